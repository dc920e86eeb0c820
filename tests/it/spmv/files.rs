//! SPASM files, and matrices as files: uploaded, downloaded, and uploaded again.

use serde_json::{Value, json};

use super::matrices::{GENERAL, upload};
use super::named::contract;
use super::{KERNEL, y};
use crate::contracts::base64;
use crate::server::{Answer, Server};

fn put(server: &Server, name: &str, file: &[u8]) -> Answer {
    server.post_json("/upload_mtx", &json!({"filename": name, "content": base64(file)}))
}

/// A matrix as a file.
fn data(server: &Server, name: &str, format: &str) -> Vec<u8> {
    let url = format!("{}/check_mtx/{name}/data?format={format}", server.url);
    ureq::get(url).call().unwrap().body_mut().read_to_vec().unwrap()
}

fn product(server: &Server, name: &str) -> Value {
    let request = json!({
        "mtx_filename": name, "kernel": KERNEL, "num_runs": 1, "options": {"kernel_type": "cuda"},
    });
    server.post_json("/execute_spmv_mtx", &request).json
}

/// A file of one tile, as the reference's converter writes it: without that tile.
pub fn spasm() -> Vec<u8> {
    let mut file = b"SPAS".to_vec();
    for number in [2u32, 3, 4, 1024] {
        file.extend(number.to_le_bytes());
    }
    for number in [3u64, 8] {
        file.extend(number.to_le_bytes());
    }
    for number in [0u32, 2, 2] {
        file.extend(number.to_le_bytes());
    }
    // The first row, and the diagonal.
    for mask in [0x000fu16, 0x8421] {
        file.extend(mask.to_le_bytes());
    }
    for word in [0u32, 1 << 28] {
        file.extend(word.to_le_bytes());
    }
    for value in [0f32, 0.0, 2.0, 5.0, 0.0, -1.5, 0.0, 0.0] {
        file.extend(value.to_le_bytes());
    }
    file
}

#[test]
fn a_spasm_file_is_a_matrix_like_every_other_whatever_it_is_called() {
    let server = Server::start();
    for name in ["a.spasm", "b.mtx"] {
        let uploaded = put(&server, name, &spasm());
        assert_eq!(uploaded.status, 200, "{}", uploaded.json);
        let matrix = &uploaded.json["matrix"];
        assert_eq!((&matrix["layout"], &matrix["nnz"]), (&json!("spasm"), &json!(3)), "{matrix}");
        assert_eq!(matrix["blake3"], blake3::hash(&spasm()).to_hex().as_str());
        assert_eq!(y(&product(&server, name)), [7.0, -1.5, 0.0]);
    }
    let report = server.evaluate(&contract("a.spasm"));
    assert_eq!(report["kernel_exec_result"]["correctness"], true, "{report}");
    // A text is one, too.
    assert_eq!(upload(&server, "text.spasm", GENERAL, None).json["matrix"]["layout"], "coordinate");
}

#[test]
fn a_spasm_file_that_lies_is_refused_and_changes_nothing() {
    let server = Server::start();
    assert_eq!(put(&server, "a.spasm", &spasm()).status, 200);
    let changed = |at: usize, with: &[u8]| {
        let mut file = spasm();
        file[at..at + with.len()].copy_from_slice(with);
        file
    };
    let cut = spasm()[..spasm().len() - 1].to_vec();
    let more = [spasm(), vec![0]].concat();
    let cases = [
        (changed(4, &[1]), "has version 1"),
        (changed(8, &[0xff; 4]), "num_rows"),
        (changed(8, &[0xff, 0xff, 0xff, 0x7f]), "are accepted"),
        (changed(36, &[0xff; 4]), "announces"),
        (changed(40, &[3]), "3 positions have 12 values"),
        (changed(48, &[0, 0]), "does not have 4 cells"),
        (changed(52, &[0xff, 0x1f]), "of its tile, which has 256 × 256"),
        (changed(52, &[1]), "outside the matrix"),
        (changed(55, &[0x20]), "template 2, but there are 2"),
        (changed(60, &f32::NAN.to_le_bytes()), "not a finite number"),
        (cut, "cut off"),
        (more, "data was added after it"),
        (b"SPAS".to_vec(), "ends within its header"),
    ];
    for (file, message) in cases {
        let answer = put(&server, "a.spasm", &file);
        let error = answer.json["error"].as_str().unwrap_or_default();
        assert_eq!(answer.status, 400, "{message}: {}", answer.json);
        assert!(error.contains(message), "{message}: {error}");
    }
    assert_eq!(y(&product(&server, "a.spasm")), [7.0, -1.5, 0.0]);
}

#[test]
fn a_matrix_goes_out_as_a_file_and_comes_in_again() {
    let server = Server::start();
    assert_eq!(upload(&server, "g.mtx", GENERAL, None).status, 200);
    for name in ["g.mtx", "poisson2d:nx=9", "banded:n=40,half=3,seed=5"] {
        let wanted = y(&product(&server, name));
        for (format, layout) in [("mtx", "coordinate"), ("spasm", "spasm")] {
            let again = put(&server, "again", &data(&server, name, format));
            assert_eq!(again.status, 200, "{}", again.json);
            assert_eq!(again.json["matrix"]["layout"], layout);
            assert_eq!(y(&product(&server, "again")), wanted, "{name} as {format}");
        }
    }
    let whole = server.get("/check_mtx/g.mtx/data");
    let head = "%%MatrixMarket matrix coordinate real general\n2 3 3\n1 1 1e0\n";
    assert!(whole.text.starts_with(head), "{}", whole.text);
    assert_eq!(whole.header("content-disposition"), Some("attachment; filename=\"g.mtx\""));
    let large = "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 1e39\n";
    assert_eq!(upload(&server, "large.mtx", large, None).status, 200);
    assert_eq!(server.get("/check_mtx/large.mtx/data").status, 200);
    for (path, status) in [
        ("large.mtx/data?format=spasm", 400),
        ("large.mtx/data?format=csr", 400),
        ("none.mtx/data", 404),
        ("poisson2d:nx=99999999/data", 400),
    ] {
        assert_eq!(server.get(&format!("/check_mtx/{path}")).status, status, "{path}");
    }
}

/// A name is short, and must not become more than a request may.
#[test]
fn what_a_name_of_a_product_stands_for_has_a_bound() {
    let server = Server::start();
    let wide = "%%MatrixMarket matrix coordinate real general\n2 2147483647 1\n1 1 1\n";
    assert_eq!(upload(&server, "wide.mtx", wide, None).status, 200);
    let asked = |name: &str, args: Value| {
        let options = json!({"kernel_type": "cuda", "args": args});
        let request = json!({"mtx_filename": name, "kernel": KERNEL, "options": options});
        server.post_json("/execute_spmv_mtx", &request)
    };
    let refused = asked("wide.mtx", json!(["x", "y"]));
    assert_eq!((refused.status, &refused.json["path"]), (400, &json!("mtx_filename")));
    let refused = asked("diagonal:n=2000000000", json!([]));
    assert_eq!((refused.status, &refused.json["path"]), (400, &json!("mtx_filename")));
    // A width that no row but one needs.
    let refused = asked("random:rows=200000,nnz_per_row=1,long_rows=1", json!(["ell_values", "y"]));
    assert_eq!(refused.json["path"], "options.args[0]", "{}", refused.json);
    assert!(refused.json["error"].as_str().unwrap().contains("ELL would hold"));
    // What float32 cannot hold, of the matrix or of the product.
    let large = "%%MatrixMarket matrix coordinate real general\n1 2 2\n1 1 2e38\n1 2 2e38\n";
    assert_eq!(upload(&server, "large.mtx", large, None).status, 200);
    let refused = product(&server, "large.mtx");
    assert!(refused["error"].as_str().unwrap().contains("not finite in float32"), "{refused}");
}

#[test]
fn compilations_and_plans_of_profiles_take_names_too() {
    let server = Server::start();
    assert_eq!(upload(&server, "g.mtx", GENERAL, None).status, 200);
    for name in ["g.mtx", "poisson2d:nx=9"] {
        let compiled = server.post_json("/compile", &json!({"kernel": contract(name)["kernel"]}));
        assert_eq!(compiled.json["compiled"], true, "{}", compiled.json);
        let mut profiled = contract(name);
        profiled["profile"] = json!({});
        let plan = server.post_json("/profile/plan", &profiled);
        assert_eq!(plan.status, 200, "{}", plan.json);
    }
    let unknown = server.post_json("/compile", &json!({"kernel": contract("no.mtx")["kernel"]}));
    let path = "kernel.io.args[0].value_of.matrix";
    assert_eq!((unknown.status, &unknown.json["path"]), (400, &json!(path)));
    let unknown = server.post_json("/profile/plan", &contract("no.mtx"));
    assert_eq!((unknown.status, &unknown.json["path"]), (400, &json!(path)));
}
