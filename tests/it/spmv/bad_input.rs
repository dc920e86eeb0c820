//! Requests that are no product: the error names the place, and nothing runs.

use serde_json::{Value, json};

use super::readme_request;
use crate::server::Server;

/// The error of a request that is refused, and where it says that the fault is.
fn refused(server: &Server, request: &Value) -> (String, String) {
    let answer = server.post_json("/execute_spmv", request);
    assert_eq!(answer.status, 400, "{}", answer.json);
    let body = answer.json;
    assert_eq!(body["success"], false, "{body}");
    let text = |field: &str| body[field].as_str().unwrap_or_default().to_owned();
    (text("path"), text("error"))
}

#[test]
fn matrices_that_are_none_are_refused_with_the_place() {
    let server = Server::start();
    let (good, _) = readme_request();
    let cases: [(&str, Value, &str); 11] = [
        ("/row_ptr/7", json!(1), "must not decrease"),
        ("/row_ptr/1000", json!(5001), "there are 5000 non-zeros"),
        ("/row_ptr", json!([0]), "1001 are needed"),
        ("/row_ptr/0", json!(-1), "begin at 0"),
        ("/col_indices/44", json!(1000), "columns 0 to 999"),
        ("/col_indices/44", json!(-3), "columns 0 to 999"),
        ("/values/3", json!(1e300), "finite"),
        ("/nnz", json!(4999), "5000 elements"),
        ("/num_rows", json!(u64::MAX), "at most"),
        ("/x", json!([1, 2, 3]), "1000 columns"),
        ("/x/5", json!("1"), "a number"),
    ];
    for (place, value, message) in cases {
        let mut request = good.clone();
        let data = request["matrix_data"].pointer_mut(place).unwrap();
        *data = value;
        let (path, error) = refused(&server, &request);
        assert!(error.contains(message), "{place}: {error}");
        assert!(path.starts_with("matrix_data"), "{place}: {path}");
    }
    let mut unknown = good.clone();
    unknown["matrix_data"]["rows"] = json!(1);
    assert!(refused(&server, &unknown).1.contains("unknown field"));
    let mut wrong = good.clone();
    wrong["options"]["args"] = json!(["x", "y", "spam"]);
    assert!(refused(&server, &wrong).1.contains("the parts are num_rows"));
    assert_eq!(server.get("/jobs").json["jobs"], json!([]), "nothing was accepted");
}

/// Python's `json.dumps` writes NaN, which is no JSON; MessagePack can hold it.
#[test]
fn what_is_no_number_is_refused() {
    let server = Server::start();
    let (request, _) = readme_request();
    let text = request.to_string().replacen("\"values\":[", "\"values\":[NaN,", 1);
    let json = [("Content-Type", "application/json")];
    let answer = server.post("/execute_spmv", &json, text.as_bytes());
    assert_eq!((answer.status, &answer.json["code"]), (400, &json!("malformed_json")));
    let mut spmv: warpgauge_sparse::spmv::SpmvRequest = serde_json::from_value(request).unwrap();
    spmv.matrix_data.x = warpgauge_sparse::spmv::Numbers::Floats(vec![f64::NAN; 1000]);
    let body = rmp_serde::to_vec_named(&spmv).unwrap();
    let msgpack = [("Content-Type", "application/msgpack")];
    let answer = server.post("/execute_spmv", &msgpack, &body);
    assert_eq!(answer.status, 400);
    assert_eq!(answer.json["path"], "matrix_data.x[0]");
}

/// A problem of the contract that a request becomes is at the field of the request.
#[test]
fn problems_are_at_the_fields_of_the_request() {
    let server = Server::start();
    let (good, _) = readme_request();
    let cases = [
        ("num_runs", json!(0), "num_runs"),
        ("num_runs", json!(10_001), "num_runs"),
        ("kernel", json!(""), "kernel"),
        ("options", json!({"kernel_type": "cuda", "timeout": 0}), "options.timeout"),
        ("options", json!({"kernel_type": "cuda", "kernel_name": ""}), "options.kernel_name"),
        (
            "options",
            json!({"kernel_type": "cuda", "launch": {"grid": {"x": 1}, "block": {"x": 5000}}}),
            "options.launch.block.x",
        ),
    ];
    for (field, value, place) in cases {
        let mut request = good.clone();
        request[field] = value;
        let (path, error) = refused(&server, &request);
        assert_eq!(path, place, "{error}");
        assert!(error.contains(place), "{error}");
    }
    let stored = json!({
        "mtx_filename": "poisson2d:nx=4", "kernel": good["kernel"], "num_runs": 0,
        "options": {"kernel_type": "cuda"},
    });
    let answer = server.post_json("/execute_spmv_mtx", &stored);
    assert_eq!((answer.status, &answer.json["path"]), (400, &json!("num_runs")));
}

/// An operator sets the variables of that service; the key counts, and callers are asked for it.
#[test]
fn the_key_of_the_remote_gpu_execution_service_is_asked_for() {
    let key = "your-secret-api-key-here";
    let server = Server::start_with(&[], &[("GPU_SERVICE_API_KEY", key)]);
    let (mut request, _) = readme_request();
    request["num_runs"] = json!(1);
    let body = serde_json::to_vec(&request).unwrap();
    let json = ("Content-Type", "application/json");
    assert_eq!(server.post("/execute_spmv", &[json], &body).status, 401);
    assert_eq!(server.post("/execute_spmv", &[json, ("X-API-Key", "another")], &body).status, 401);
    let answer = server.post("/execute_spmv", &[json, ("X-API-Key", key)], &body);
    assert_eq!(answer.json["success"], true, "{}", answer.json);
}

#[test]
fn keys_are_asked_for_and_errors_keep_their_shape() {
    let key = "0123456789abcdef0123456789abcdef";
    let server = Server::start_configured(&format!("[server]\napi_keys = [\"{key}\"]\n"));
    let (request, _) = readme_request();
    let body = serde_json::to_vec(&request).unwrap();
    let json = ("Content-Type", "application/json");
    let answer = server.post("/execute_spmv", &[json], &body);
    assert_eq!((answer.status, &answer.json["success"]), (401, &json!(false)));
    let answer = server.post("/execute_spmv", &[json, ("X-API-Key", key)], &body);
    assert_eq!(answer.json["success"], true, "{}", answer.json);
}
