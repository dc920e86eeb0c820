//! Invalid uploads and requests: each gets an error with the reason, and nothing is stored.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use serde_json::json;

use super::*;

fn refused(server: &Server, file: &[u8], fields: &[(&str, &str)], message: &str) {
    refused_with(400, server, file, fields, message);
}

fn refused_with(status: u16, server: &Server, file: &[u8], fields: &[(&str, &str)], message: &str) {
    let answer = upload(server, file, fields);
    assert_eq!(answer.status, status, "{message}: {}", answer.text);
    assert_eq!(answer.json["detail"], answer.json["error"]);
    let error = answer.json["error"].as_str().unwrap();
    assert!(error.contains(message), "{message}: {error}");
}

/// The same file with other bytes at some place.
fn patched(file: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut file = file.to_vec();
    file[at..at + bytes.len()].copy_from_slice(bytes);
    file
}

#[test]
fn files_that_lie_are_refused_and_nothing_is_kept() {
    let server = Server::start();
    let sound = mono(&[1, 2, 3, 4]);
    let sizes = 40;
    refused(&server, &sound[..sound.len() - 3], &[], "was truncated");
    refused(&server, &sound[..20], &[], "WAV");
    refused(&server, &patched(&sound, sizes, &u32::MAX.to_le_bytes()), &[], "WAV");
    refused(
        &server,
        &patched(&sound, sizes, &4_000_000_000u32.to_le_bytes()),
        &[],
        "was truncated",
    );
    refused(&server, &patched(&sound, 16, &u32::MAX.to_le_bytes()), &[], "WAV");
    refused(&server, &patched(&sound, 22, &[0, 0]), &[], "WAV");
    refused(&server, &patched(&sound, 24, &[0; 4]), &[], "WAV");
    refused(&server, &patched(&sound, 20, &[7, 0]), &[], "WAV");
    refused(&server, &mono(&[]), &[], "no samples");

    let header = |descr: &str, fortran: &str, shape: &str| {
        format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n")
    };
    let one = header("'<f4'", "False", "(1,)");
    refused(&server, &npy(&header("'|O'", "False", "(1,)"), &[0; 4]), &[], "pickled");
    refused(&server, &npy(&header("'<f4'", "True", "(1,)"), &[0; 4]), &[], "Fortran");
    refused(&server, &npy(&header("'>f4'", "False", "(1,)"), &[0; 4]), &[], "little-endian");
    refused(&server, &npy(&header("[('a', '<f4')]", "False", "(1,)"), &[0; 4]), &[], "header");
    refused(&server, &npy(&header("'<f4'", "False", "(0,)"), &[]), &[], "zero");
    refused(
        &server,
        &npy(&header("'<f4'", "False", "(3,)"), &[0; 4]),
        &[],
        "12 bytes, but 4 bytes follow",
    );
    refused(&server, &npy(&one, &[0; 5]), &[], "5 bytes follow");
    let huge = header("'<f4'", "False", "(4611686018427387904, 4611686018427387904)");
    refused(&server, &npy(&huge, &[]), &[], "2^63");
    let tera = npy(&header("'<f4'", "False", "(274877906944,)"), &[]);
    assert_eq!(upload(&server, &tera, &[]).status, 413);

    let entry = |shape: Value, offsets: Value| json!({"t": {"dtype": "F32", "shape": shape, "data_offsets": offsets}});
    for (header, message) in [
        (entry(json!([1]), json!([0, 8])), "4 bytes follow"),
        (entry(json!([2]), json!([0, 8])), "4 bytes follow"),
        (entry(json!([1]), json!([4, 0])), "data_offsets"),
        (entry(json!([1]), json!([u64::MAX - 3, u64::MAX])), "data_offsets"),
        (entry(json!([-1]), json!([0, 4])), "-1"),
        (entry(json!([0]), json!([0, 0])), "zero"),
        (json!({"t": {"dtype": "COMPLEX", "shape": [1], "data_offsets": [0, 4]}}), "dtype"),
        (json!({"t": {"dtype": "F4", "shape": [1, 3], "data_offsets": [0, 1]}}), "even"),
        (json!({"t": {"dtype": "F4", "shape": [], "data_offsets": [0, 1]}}), "even"),
        (json!({"t": {"dtype": "F4", "shape": [2, 2], "data_offsets": [0, 4]}}), "2 bytes"),
        (json!({}), "no tensor"),
    ] {
        refused(&server, &safetensors(&header, &[0; 4]), &[], message);
    }
    let long = patched(&safetensors(&entry(json!([1]), json!([0, 4])), &[0; 4]), 0, &[0xFF; 8]);
    refused(&server, &long, &[], "announces a header");

    refused(&server, b"MZ and more than that", &[], "Only WAV files are supported");
    refused(&server, b"", &[], "Only WAV files are supported");
    refused(&server, &sound, &[("cuda_device", "7")], "Invalid CUDA device 7");
    refused(&server, &sound, &[("cuda_device", "-2")], "Invalid CUDA device -2");
    refused_with(422, &server, &sound, &[("cuda_device", "first")], "must be an integer");
    refused(&server, &sound, &[("ttl_s", "-1")], "must be more than 0");
    refused(&server, &sound, &[("ttl_s", "NaN")], "must be more than 0");
    refused_with(422, &server, &sound, &[("device", "0")], "wav_file, cuda_device");
    assert_eq!(server.get("/tensors").json["held_bytes"], 0);
}

#[test]
fn requests_that_are_wrong_say_where() {
    let server = Server::start();
    for (body, status, path) in [
        (json!({"data_b64": base64(&[0; 5])}), 400, "data_b64"),
        (json!({"data_b64": base64(&[0; 8]), "shape": [3]}), 400, "data_b64"),
        (json!({"data_b64": "", "shape": [0]}), 400, "shape"),
        (json!({"data_b64": ""}), 400, "shape"),
        (json!({"data_b64": base64(&[0; 4]), "shape": [1u64 << 62]}), 400, "shape"),
        (json!({"data_b64": base64(&[0; 4]), "shape": [1u64 << 40]}), 413, "shape"),
        (json!({"data_b64": "***"}), 422, "data_b64"),
        (json!({"data_b64": base64(&[0; 4]), "dtype": "torch.complex32"}), 422, "dtype"),
        (json!({"data_b64": base64(&[0; 4]), "cuda_device": 3}), 400, "cuda_device"),
        (json!({"data_b64": base64(&[0; 4]), "owner": "me"}), 422, "owner"),
    ] {
        let answer = server.post_json("/tensors/from-array", &body);
        assert_eq!(answer.status, status, "{body}: {}", answer.text);
        assert_eq!(answer.json["path"], path, "{body}: {}", answer.text);
    }
    let none = "00000000-0000-4000-8000-000000000000";
    for id in [none, "x", "..%2f..%2fetc", "%00", &"a".repeat(5000)] {
        for path in [
            format!("/tensors/{id}"),
            format!("/tensors/{id}/data"),
            format!("/tensors/{id}/handle"),
        ] {
            let answer = server.get(&path);
            assert_eq!(
                (answer.status, &answer.json["code"]),
                (404, &json!("no_such_tensor")),
                "{path}"
            );
        }
        let lease = server.delete(&format!("/tensor-leases/{id}"));
        assert_eq!((lease.status, &lease.json["code"]), (404, &json!("no_such_lease")), "{id}");
    }
    let id = held(&server, -1, &[1.0]);
    assert_eq!(server.get(&format!("/tensors/{id}/data?format=pickle")).status, 400);
    let json = server.post("/tensors", &[("Content-Type", "application/json")], b"{}");
    assert_eq!(json.status, 415, "{}", json.text);
    // A name is a name, and no path.
    let named = server.post("/tensors", &[FORM], &form(&mono(&[1]), "../../etc/x.wav", &[]));
    assert_eq!((named.status, &named.json["name"]), (200, &json!("x.wav")), "{}", named.text);
}

/// What is announced costs nothing, and what does not come leaves nothing.
#[test]
fn an_upload_that_does_not_come_leaves_nothing() {
    let server = Server::start();
    let address = server.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let head = format!(
        "POST /tensors HTTP/1.1\r\nHost: {address}\r\nContent-Type: {}\r\nContent-Length: \
         499000000\r\n\r\n",
        FORM.1
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&form(&mono(&[1, 2, 3]), "a.wav", &[])[..100]).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    // Either the connection just ends, or an answer says what is wrong.
    let _ = stream.read_to_string(&mut answer);
    assert!(answer.split(' ').nth(1).is_none_or(|status| status.starts_with('4')), "{answer}");
    assert_eq!(server.get("/tensors").json["held_bytes"], 0);
}

/// More uploads than the server has threads for files: none of them has one while it is waited for.
#[test]
fn uploads_that_come_slowly_keep_nobody_waiting() {
    let server = Server::start();
    let address = server.url.strip_prefix("http://").unwrap();
    let content = form(&npy(&one_byte_each(4 << 20), &vec![7; 4 << 20]), "slow.npy", &[]);
    let (begin, rest) = content.split_at(3 << 20);
    let slow = |_| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let head = format!(
            "POST /tensors HTTP/1.1\r\nHost: {address}\r\nContent-Type: {}\r\nExpect: \
             100-continue\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            FORM.1,
            content.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        // It is waited for.
        let mut line = [0; 25];
        stream.read_exact(&mut line).unwrap();
        assert_eq!(&line, b"HTTP/1.1 100 Continue\r\n\r\n");
        stream.write_all(begin).unwrap();
        stream
    };
    let slow: Vec<TcpStream> = (0..40).map(slow).collect();
    held(&server, -1, &[1.0]);
    for mut stream in slow {
        stream.write_all(rest).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

/// The header of so many bytes.
fn one_byte_each(count: usize) -> String {
    format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({count},), }}\n")
}

#[test]
fn a_form_has_bounds_of_its_own() {
    let server =
        Server::start_configured("[server]\nbody_limit_bytes = 2000\nupload_limit_bytes = 6000\n");
    let file = |count: usize| {
        let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({count},), }}\n");
        npy(&header, &vec![0; 4 * count])
    };
    uploaded(&server, &file(1000), &[]);
    let refused = upload(&server, &file(2000), &[]);
    assert_eq!(refused.status, 413, "{}", refused.text);
    assert!(refused.text.contains("server.upload_limit_bytes"), "{}", refused.text);
    let text = array(&server, -1, &[0.0; 1000], json!({}));
    assert!(text.status == 413 && text.text.contains("server.body_limit_bytes"), "{}", text.text);
}
