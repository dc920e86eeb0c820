//! Products that succeed, and products of wrong kernels.

use serde_json::{Value, json};

use super::{KERNEL, readme_request, y};
use crate::server::{Server, emulated};

/// Every field that the reference's README and code have.
const FIELDS: [&str; 13] = [
    "y",
    "execution_time_ms",
    "execution_time_std_ms",
    "transfer_h2d_ms",
    "transfer_d2h_ms",
    "transfer_time_ms",
    "total_time_ms",
    "gflops",
    "num_rows",
    "num_cols",
    "nnz",
    "num_runs",
    "method",
];

#[test]
fn a_product_has_the_fields_of_the_reference_and_is_a_job_like_every_other() {
    let server = Server::start();
    let (request, product) = readme_request();
    let answer = server.post_json("/execute_spmv", &request);
    assert_eq!(answer.status, 200, "{}", answer.json);
    let answer = answer.json;
    assert_eq!(answer["success"], true, "{answer}");
    // Every sum is exact.
    assert_eq!(y(&answer), product);
    let result = answer["result"].as_object().unwrap();
    let fields: Vec<&str> = result.keys().map(String::as_str).collect();
    let mut wanted = FIELDS.to_vec();
    wanted.sort();
    let mut sorted = fields.clone();
    sorted.sort();
    assert_eq!(sorted, wanted);
    let number = |name: &str| result[name].as_f64().unwrap();
    let ms = number("execution_time_ms");
    assert!(ms > 0.0);
    assert!((number("gflops") - 2.0 * 5000.0 / (ms * 1e6)).abs() < 1e-9);
    assert_eq!(number("transfer_time_ms"), number("transfer_h2d_ms") + number("transfer_d2h_ms"));
    assert_eq!((&result["num_runs"], &result["method"]), (&json!(3), &json!("custom")));

    let job = server.get(&format!("/jobs/{}", answer["job_id"].as_str().unwrap())).json;
    assert_eq!((&job["state"], &job["kind"]), (&json!("completed"), &json!("evaluate")));
    assert_eq!(job["result"]["validation"]["status"], "passed");
}

/// Lists of JSON, lists of MessagePack and the bytes of arrays are the same request.
#[test]
fn messagepack_and_bytes_say_the_same() {
    let server = Server::start();
    let (request, product) = readme_request();
    let bytes = |name: &str, float: bool| {
        let list = request["matrix_data"][name].as_array().unwrap();
        let element = |it: &Value| match float {
            true => (it.as_f64().unwrap() as f32).to_le_bytes(),
            false => (it.as_i64().unwrap() as i32).to_le_bytes(),
        };
        list.iter().flat_map(element).collect::<Vec<u8>>()
    };
    let mut spmv: warpgauge_sparse::spmv::SpmvRequest =
        serde_json::from_value(request.clone()).unwrap();
    let data = &mut spmv.matrix_data;
    data.values = warpgauge_sparse::spmv::Numbers::Bytes(bytes("values", true));
    data.col_indices = warpgauge_sparse::spmv::Numbers::Bytes(bytes("col_indices", false));
    data.row_ptr = warpgauge_sparse::spmv::Numbers::Bytes(bytes("row_ptr", false));
    data.x = warpgauge_sparse::spmv::Numbers::Bytes(bytes("x", true));
    let bodies = [
        ("application/msgpack", rmp_serde::to_vec_named(&request).unwrap()),
        ("application/msgpack", rmp_serde::to_vec_named(&spmv).unwrap()),
        ("application/json", serde_json::to_vec(&spmv).unwrap()),
    ];
    for (media_type, body) in bodies {
        let answer = server.post("/execute_spmv", &[("Content-Type", media_type)], &body).json;
        assert_eq!(y(&answer), product, "{media_type}");
    }
}

/// The reference sends a cubin. Where the device takes none for that architecture, it says so.
#[test]
fn a_cubin_runs_on_its_architecture_and_is_refused_elsewhere() {
    let server = Server::start();
    let (mut request, product) = readme_request();
    let device = server.get("/info").json;
    let capability = device["info"]["compute_capability"].as_array().unwrap().clone();
    let arch = match emulated() {
        true => "sm_90".to_owned(),
        false => format!("sm_{}{}", capability[0], capability[1]),
    };
    let kernel = json!({
        "kernel_type": "cuda", "source_code": KERNEL, "metadata": {"kernel_name": "csr_spmv_kernel"},
    });
    let compile = json!({"kernel": kernel, "arch": arch, "return_image": true});
    let compiled = server.post_json("/compile", &compile).json;
    let image = compiled["image_b64"].as_str().unwrap_or_else(|| panic!("{compiled}"));
    // As in the README: nothing but a kernel and a matrix.
    request["kernel"] = image.into();
    request.as_object_mut().unwrap().remove("options");
    request.as_object_mut().unwrap().remove("num_runs");
    let answer = server.post_json("/execute_spmv", &request).json;
    if crate::support::on_gpu(&json!(if emulated() { "emulator" } else { "cuda" })) {
        assert_eq!(y(&answer), product);
    } else {
        assert_eq!(answer["success"], false, "{answer}");
        let error = answer["error"].as_str().unwrap();
        assert!(error.contains("sm_90") || error.contains("PTX"), "{error}");
    }
}

#[test]
fn names_orders_types_and_formats_are_the_callers() {
    let server = Server::start();
    let (mut request, product) = readme_request();
    request["kernel"] = json!(
        "template <typename T> __device__ T times(T a, T b) { return a * b; }\n\
         extern \"C\" __global__ void by_slots(double* out, const double* in, const int* columns,\n\
             const double* values, int width, long long rows) {\n\
             long long row = blockIdx.x * (long long)blockDim.x + threadIdx.x;\n\
             if (row >= rows) return;\n\
             double sum = 0;\n\
             for (int k = 0; k < width; ++k) {\n\
                 int column = columns[k * rows + row];\n\
                 if (column >= 0) sum += times(values[k * rows + row], in[column]);\n\
             }\n\
             out[row] = sum;\n\
         }\n"
    );
    request["options"] = json!({
        "kernel_type": "cuda", "kernel_name": "by_slots", "dtype": "float64",
        "args": ["y", "x", "ell_col_indices", "ell_values", "ell_width", "num_rows"],
        "launch": {"grid": {"x": "ceil_div(num_rows, 64)"}, "block": {"x": 64}},
    });
    let answer = server.post_json("/execute_spmv", &request).json;
    assert_eq!(y(&answer), product, "{answer}");
}

/// Each row has a tolerance of its own: an error that would be rounding in a long row is none in a short.
#[test]
fn kernels_that_are_wrong_are_told_from_those_that_round() {
    let server = Server::start();
    let (long, cols) = (4096, 4096);
    let mut data = json!({
        "num_rows": 3, "num_cols": cols, "nnz": long + 2,
        "row_ptr": [0, long, long + 2, long + 2],
        "x": (0..cols).map(|at| 1.0 + f64::from(at % 7) / 7.0).collect::<Vec<_>>(),
    });
    data["values"] = (0..long + 2).map(|at| 0.1 + f64::from(at % 11) / 13.0).collect();
    data["col_indices"] = (0..long + 2).map(|at| at % cols).collect();
    let mut request = json!({
        "kernel": KERNEL, "matrix_data": data, "num_runs": 1, "options": {"kernel_type": "cuda"},
    });
    let answer = server.post_json("/execute_spmv", &request).json;
    assert_eq!(answer["success"], true, "summed one after the other: {answer}");
    // 2⁻¹⁶ of the result: within the bound of 4096 roundings, far beyond that of two.
    let off = "y[row] = sum * (row == WRONG ? 1.0f + 1.0f / 65536 : 1.0f);";
    for (row, right) in [(0, true), (1, false)] {
        let kernel = KERNEL.replace("y[row] = sum;", &off.replace("WRONG", &row.to_string()));
        request["kernel"] = kernel.into();
        let answer = server.post_json("/execute_spmv", &request);
        assert_eq!(answer.status, 200);
        let answer = answer.json;
        assert_eq!(answer["success"], right, "row {row}: {answer}");
        assert!(right || answer["error"].as_str().unwrap().contains("wrong"), "{answer}");
    }
    // An empty row is 0, and nothing else.
    request["kernel"] = KERNEL.replace("y[row] = sum;", "y[row] = row == 2 ? 1e-30f : sum;").into();
    assert_eq!(server.post_json("/execute_spmv", &request).json["success"], false);
    request["kernel"] = "extern \"C\" __global__ void csr_spmv_kernel(int n) { n = ; }".into();
    let answer = server.post_json("/execute_spmv", &request).json;
    assert!(answer["error"].as_str().unwrap().contains("does not compile"), "{answer}");
}

/// The reference hands what it gets to the driver, which takes PTX as well.
#[test]
fn ptx_in_the_place_of_a_cubin_is_run() {
    let server = Server::start();
    let (mut request, product) = readme_request();
    let ptx = include_str!("csr_spmv.ptx");
    let base64 = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, ptx);
    for (kernel, options) in [
        (base64.as_str(), json!({})),
        (base64.as_str(), json!({"kernel_type": "cubin"})),
        (base64.as_str(), json!({"kernel_type": "fatbin"})),
        (ptx, json!({})),
    ] {
        request["kernel"] = kernel.into();
        request["options"] = options;
        assert_eq!(y(&server.post_json("/execute_spmv", &request).json), product);
    }
}

#[test]
fn a_matrix_without_entries_has_a_product_of_zeros() {
    let server = Server::start();
    let mut request = json!({
        "kernel": KERNEL, "num_runs": 1, "options": {"kernel_type": "cuda"},
        "matrix_data": {
            "num_rows": 3, "num_cols": 2, "nnz": 0, "values": [], "col_indices": [],
            "row_ptr": [0, 0, 0, 0], "x": [1.5, 2.5],
        },
    });
    let answer = server.post_json("/execute_spmv", &request).json;
    assert_eq!(y(&answer), [0.0; 3]);
    assert_eq!((&answer["verdict"], &answer["result"]["nnz"]), (&json!("correct"), &json!(0)));
    let ell = json!(["num_rows", "ell_width", "ell_values", "ell_col_indices", "x", "y"]);
    let mut padded = request.clone();
    padded["options"] = json!({"kernel_type": "cuda", "args": ell});
    padded["kernel"] = "extern \"C\" __global__ void csr_spmv_kernel(int rows, int width, const float* \
         values, const int* columns, const float* x, float* y) {\n\
         int row = blockIdx.x * blockDim.x + threadIdx.x;\n\
         if (row >= rows) return;\n\
         float sum = 0.0f;\n\
         for (int k = 0; k < width; ++k) sum += values[k * rows + row] * x[columns[k * rows + row]];\n\
         y[row] = sum;\n\
         }\n"
    .into();
    assert_eq!(y(&server.post_json("/execute_spmv", &padded).json), [0.0; 3]);

    // No columns at all, and a kernel that does not write zeros.
    request["matrix_data"]["num_cols"] = 0.into();
    request["matrix_data"]["x"] = json!([]);
    assert_eq!(y(&server.post_json("/execute_spmv", &request).json), [0.0; 3]);
    request["kernel"] = KERNEL.replace("y[row] = sum", "y[row] = 1.0f").into();
    assert_eq!(server.post_json("/execute_spmv", &request).json["verdict"], "wrong");
    request["matrix_data"]["num_rows"] = 0.into();
    request["matrix_data"]["row_ptr"] = json!([0]);
    let answer = server.post_json("/execute_spmv", &request);
    assert_eq!((answer.status, &answer.json["path"]), (400, &json!("matrix_data.num_rows")));

    let content = "%%MatrixMarket matrix coordinate real general\n2 2 0\n";
    let content = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, content);
    let upload = json!({"filename": "empty.mtx", "content": content});
    assert_eq!(server.post_json("/upload_mtx", &upload).status, 200);
    let stored = json!({
        "mtx_filename": "empty.mtx", "kernel": KERNEL, "num_runs": 1,
        "options": {"kernel_type": "cuda"},
    });
    assert_eq!(y(&server.post_json("/execute_spmv_mtx", &stored).json), [0.0; 2]);
}

#[test]
fn what_a_wrong_kernel_gave_is_in_the_answer_and_a_hang_is_called_one() {
    let server = Server::start();
    let (mut request, product) = readme_request();
    request["kernel"] = KERNEL.replace("y[row] = sum;", "y[row] = row == 7 ? NAN : -sum;").into();
    let answer = server.post_json("/execute_spmv", &request).json;
    assert_eq!((&answer["success"], &answer["verdict"]), (&json!(false), &json!("wrong")));
    assert!(answer.get("result").is_none(), "there is no time of a wrong kernel: {answer}");
    let y = answer["y"].as_array().unwrap_or_else(|| panic!("{answer}"));
    assert_eq!((y.len(), &y[7]), (product.len(), &Value::Null), "JSON has no NaN");
    assert_eq!(y[8].as_f64(), Some(-product[8]));

    request["kernel"] =
        KERNEL.replace("y[row] = sum;", "while (row_ptr[0] == 0) y[row] += 1;").into();
    request["options"] = json!({"kernel_type": "cuda", "timeout": 1});
    let answer = server.post_json("/execute_spmv", &request).json;
    assert_eq!((&answer["verdict"], &answer["code"]), (&json!("failed"), &json!("timeout")));
    let error = answer["error"].as_str().unwrap();
    assert!(error.starts_with("the kernel hung: ") && error.contains("1 s"), "{error}");
    assert!(answer.get("y").is_none(), "{answer}");
}

#[test]
fn health_and_info_have_the_fields_of_the_reference() {
    let server = Server::start();
    let health = server.get("/health").json;
    assert_eq!((&health["status"], &health["service"]), (&json!("healthy"), &json!("warpgauge")));
    assert!(health["version"].is_string());
    let info = server.get("/info").json;
    assert_eq!(info["success"], true);
    let device = &info["info"];
    assert_eq!(device["device_name"], info["devices"][0]["device"]["name"]);
    let capability = device["compute_capability"].as_array().unwrap();
    assert!(capability.len() == 2 && capability.iter().all(Value::is_u64), "{device}");
    assert!(device["total_memory_mb"].as_u64().unwrap() > 0);
    assert!(device["multiprocessor_count"].as_u64().unwrap() > 0);
}
