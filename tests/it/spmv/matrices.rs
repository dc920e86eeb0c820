//! Uploaded matrices: stored for their key, replaced as a whole, and multiplied by name.

use serde_json::{Value, json};

use super::{KERNEL, y};
use crate::contracts::base64;
use crate::server::{Answer, Server};

pub const SYMMETRIC: &str =
    "%%MatrixMarket matrix coordinate real symmetric\n3 3 4\n1 1 4\n2 1 -1\n2 2 4\n3 3 2.5\n";
pub const GENERAL: &str =
    "%%MatrixMarket matrix coordinate pattern general\n2 3 3\n1 1\n1 3\n2 2\n";

pub fn upload(server: &Server, name: &str, text: &str, key: Option<&str>) -> Answer {
    let body = json!({"filename": name, "content": base64(text.as_bytes())}).to_string();
    let mut headers = vec![("Content-Type", "application/json")];
    headers.extend(key.map(|key| ("X-API-Key", key)));
    server.post("/upload_mtx", &headers, body.as_bytes())
}

fn form(name: &str, text: &str) -> Vec<u8> {
    format!(
        "--B\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nignored\r\n--B\r\n\
         Content-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
         Content-Type: application/octet-stream\r\n\r\n{text}\r\n--B--\r\n"
    )
    .into_bytes()
}

const FORM: (&str, &str) = ("Content-Type", "multipart/form-data; boundary=B");

fn product(server: &Server, name: &str, x: Value) -> Value {
    let request = json!({
        "mtx_filename": name, "x": x, "method": "custom", "kernel": KERNEL, "num_runs": 1,
        "options": {"kernel_type": "cuda"},
    });
    server.post_json("/execute_spmv_mtx", &request).json
}

#[test]
fn an_upload_is_found_multiplied_replaced_and_removed() {
    let server = Server::start();
    let uploaded = server.post("/upload_mtx", &[FORM], &form("small.mtx", SYMMETRIC));
    assert_eq!(uploaded.status, 200, "{}", uploaded.json);
    // What the reference's client reads of the answer.
    let info = json!({"num_rows": 3, "num_cols": 3, "nnz": 5, "exists": true});
    assert_eq!(uploaded.json["info"], info);
    assert_eq!(server.get("/check_mtx/small.mtx").json["info"], info);
    let matrix = &uploaded.json["matrix"];
    assert_eq!((&matrix["num_rows"], &matrix["nnz"]), (&json!(3), &json!(5)), "{matrix}");
    assert_eq!(matrix["blake3"], blake3::hash(SYMMETRIC.as_bytes()).to_hex().as_str());
    assert_eq!(matrix["symmetry"], "symmetric");
    assert_eq!(server.get("/check_mtx/small.mtx").json["exists"], true);
    assert_eq!(server.get("/check_mtx/other.mtx").json["exists"], false);
    assert_eq!(server.get("/list_mtx").json["files"], json!(["small.mtx"]));
    let answer = product(&server, "small.mtx", json!([1, 2, 3]));
    assert_eq!(y(&answer), [2.0, 7.0, 7.5], "{answer}");

    // The second takes the place of the first, and of what was made of it.
    assert_eq!(upload(&server, "small.mtx", GENERAL, None).status, 200);
    let answer = product(&server, "small.mtx", json!([1, 2, 3]));
    assert_eq!(y(&answer), [4.0, 2.0], "{answer}");
    // Without a vector: ones.
    assert_eq!(y(&product(&server, "small.mtx", json!(null))), [2.0, 1.0]);

    let removed = server.delete("/check_mtx/small.mtx");
    assert_eq!((removed.status, &removed.json["exists"]), (200, &json!(false)));
    assert_eq!(server.delete("/check_mtx/small.mtx").status, 404);
    let gone = product(&server, "small.mtx", json!([1, 2, 3]));
    assert_eq!((&gone["success"], &gone["code"]), (&json!(false), &json!("no_such_matrix")));
}

#[test]
fn generated_matrices_have_names_too() {
    let server = Server::start();
    let answer = product(&server, "poisson2d:nx=8,ny=8", json!(null));
    let y = y(&answer);
    assert_eq!((y.len(), y[0], y[1], y[9]), (64, 2.0, 1.0, 0.0), "{answer}");
    let answer = product(&server, "poisson2d:nx=x", json!(null));
    assert!(answer["error"].as_str().unwrap().contains("name=number"), "{answer}");
}

/// Nothing is kept of what is no matrix, and what was there before is still there.
#[test]
pub fn uploads_that_are_no_matrix_change_nothing() {
    let server = Server::start();
    assert_eq!(upload(&server, "kept.mtx", GENERAL, None).status, 200);
    let lies = GENERAL.replace("2 3 3", "2 3 4");
    let huge = GENERAL.replace("2 3 3", "2 3 99999999999");
    let complex = GENERAL.replace("pattern", "complex");
    let outside = GENERAL.replace("2 2\n", "2 4\n");
    let cases = [
        (lies.as_str(), "3 of 4 entries"),
        (huge.as_str(), "are accepted"),
        (complex.as_str(), "`complex`"),
        (outside.as_str(), "line 5: column \"4\""),
        ("PK\u{3}\u{4}", "not a Matrix Market file"),
        ("", "not a Matrix Market file"),
    ];
    for (text, message) in cases {
        let json = upload(&server, "kept.mtx", text, None);
        let form = server.post("/upload_mtx", &[FORM], &form("kept.mtx", text));
        for answer in [json, form] {
            assert_eq!(answer.status, 400, "{}", answer.json);
            let error = answer.json["error"].as_str().unwrap();
            assert!(error.contains(message), "{error}");
        }
    }
    for name in ["../x", "/etc/passwd", "..", "a/b", "", "a\u{0}"] {
        let answer = upload(&server, name, GENERAL, None);
        assert_eq!(answer.status, 400, "{name:?}");
        assert!(
            answer.json["error"].as_str().unwrap().contains("is not a valid matrix name"),
            "{}",
            answer.json
        );
    }
    let traversal = server.post("/upload_mtx", &[FORM], &form("../../x.mtx", GENERAL));
    assert_eq!(traversal.status, 400, "{}", traversal.json);
    let whole = form("cut.mtx", GENERAL);
    let cut = server.post("/upload_mtx", &[FORM], &whole[..whole.len() - 12]);
    assert_eq!((cut.status, &cut.json["code"]), (400, &json!("truncated_body")));
    let none = server.post("/upload_mtx", &[FORM], b"--B--\r\n");
    assert_eq!((none.status, &none.json["code"]), (400, &json!("missing_field")));
    let mut two = whole[..whole.len() - "--B--\r\n".len()].to_vec();
    two.extend(form("other.mtx", GENERAL));
    let two = server.post("/upload_mtx", &[FORM], &two);
    assert_eq!((two.status, &two.json["code"]), (400, &json!("duplicate_field")), "{}", two.json);
    let text = server.post("/upload_mtx", &[("Content-Type", "text/plain")], b"x");
    assert_eq!(text.status, 415);
    assert_eq!(server.get("/list_mtx").json["files"], json!(["kept.mtx"]));
    assert_eq!(y(&product(&server, "kept.mtx", json!(null))), [2.0, 1.0]);
    // cuSPARSE is refused before the server looks for a GPU.
    let empty = "%%MatrixMarket matrix coordinate real general\n2 2 0\n";
    assert_eq!(upload(&server, "empty.mtx", empty, None).status, 200);
    assert_eq!(y(&product(&server, "empty.mtx", json!(null))), [0.0, 0.0]);
    let cusparse = json!({"mtx_filename": "empty.mtx", "method": "cusparse"});
    let refused = server.post_json("/execute_spmv_mtx", &cusparse).json;
    assert_eq!(refused["path"], "mtx_filename", "{refused}");
}

#[test]
fn a_name_is_the_callers_own_and_what_a_key_keeps_has_a_bound() {
    let keys = ["one-0123456789abcdef", "two-0123456789abcdef"];
    let server = Server::start_configured(&format!(
        "[server]\napi_keys = [\"{}\", \"{}\"]\n[limits]\nmax_matrix_bytes_per_key = 220\n",
        keys[0], keys[1]
    ));
    let files =
        |key: &str| server.get_with("/list_mtx", &[("X-API-Key", key)]).json["files"].clone();
    assert_eq!(upload(&server, "a.mtx", SYMMETRIC, Some(keys[0])).status, 200);
    assert_eq!(files(keys[1]), json!([]));
    let taken = upload(&server, "a.mtx", GENERAL, Some(keys[1]));
    assert_eq!(taken.json["matrix"]["nnz"], 3, "{}", taken.json);
    let own = server.get_with("/check_mtx/a.mtx", &[("X-API-Key", keys[0])]).json;
    assert_eq!(own["matrix"]["nnz"], 5, "the other key's upload replaced nothing");
    assert_eq!(upload(&server, "b.mtx", GENERAL, Some(keys[0])).status, 200);
    let full = upload(&server, "c.mtx", GENERAL, Some(keys[0]));
    // As where a key has as many jobs, or tensors, as it may.
    assert_eq!((full.status, &full.json["code"]), (429, &json!("quota_exceeded")), "{}", full.json);
    assert!(full.json["error"].as_str().unwrap().contains("max_matrix_bytes_per_key"));
    assert_eq!(files(keys[0]), json!(["a.mtx", "b.mtx"]));
    // In place of its own former self there is room.
    assert_eq!(upload(&server, "a.mtx", SYMMETRIC, Some(keys[0])).status, 200);
}

/// What was uploaded is there after the server's end.
#[test]
fn matrices_outlive_the_server() {
    let data = crate::server::data_directory();
    let server = Server::start_in(data.path(), &[], &[]);
    assert_eq!(upload(&server, "a.mtx", GENERAL, None).status, 200);
    server.kill();
    let server = Server::start_in(data.path(), &[], &[]);
    assert_eq!(y(&product(&server, "a.mtx", json!(null))), [2.0, 1.0]);
}
