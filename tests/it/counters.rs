//! Counts with known values, from the hardware of a GPU or from the emulator.

use serde_json::{Value, json};

use crate::contracts::{example, increment};
use crate::server::Server;
use crate::support::on_gpu;

/// What the catalogue says of a contract, by the best source that the device has.
fn metrics(server: &Server, contract: &Value, ids: &[&str]) -> Value {
    let mut contract = contract.clone();
    contract["num_trials"] = json!(3);
    contract["profile"] = json!({"metrics": ids});
    let report = server.evaluate(&contract);
    assert_eq!(report["profile"]["available"], true, "{}", report["profile"]);
    let found = report["kernel_exec_result"]["metadata"]["device_metrics"].clone();
    let source = if report["device"]["kind"] == "cuda" { "cupti" } else { "emulator" };
    assert_eq!(found["source"], source, "{found}");
    found["metrics"].clone()
}

/// The values are those expected, to 1 %; counts of the hardware may include a little more.
fn assert_known(metrics: &Value, expected: &[(&str, f64)]) {
    for (id, expected) in expected {
        let value = metrics[id]["value"].as_f64();
        let value = value.unwrap_or_else(|| panic!("{id}: {}", metrics[id]));
        let close = (value - expected).abs() <= 0.01 * expected.abs();
        assert!(close, "{id}: {value}, and {expected} was expected");
    }
}

fn tensor(name: &str, shape: &[u64], dtype: &str, role: &str) -> Value {
    let mut tensor = json!({
        "name": name, "type": "tensor", "role": role,
        "tensor_spec": {"shape": shape, "dtype": dtype},
    });
    if role != "output" {
        tensor["tensor_spec"]["init"] = json!({"kind": "ones"});
    }
    tensor
}

fn contract(source: &str, name: &str, args: Value, grid: Value, block: Value) -> Value {
    json!({
        "kernel": {
            "kernel_type": "cuda",
            "source_code": source,
            "metadata": {"kernel_name": name},
            "io": {"args": args, "launch": {"grid": grid, "block": block}},
        },
    })
}

#[test]
fn vector_addition_moves_its_bytes_and_adds_once_for_each_element() {
    let server = Server::start();
    let n = f64::from(1 << 20);
    let expected = [
        ("global_load_sectors", 2.0 * n / 8.0),
        ("global_store_sectors", n / 8.0),
        ("sectors_per_global_load", 4.0),
        ("sectors_per_global_store", 4.0),
        ("fadd_instructions", n),
        ("flop_count", n),
    ];
    let ids = expected.map(|(id, _)| id);
    assert_known(&metrics(&server, &example("vector_add"), &ids), &expected);
}

#[test]
fn a_matrix_product_takes_two_operations_for_each_of_its_terms() {
    let source = "extern \"C\" __global__ void product(const float* a, const float* b, float* c, \
                  int n) { int i = blockIdx.y * 16 + threadIdx.y, j = blockIdx.x * 16 + \
                  threadIdx.x; float sum = 0; for (int k = 0; k < n; k++) \
                  sum = fmaf(a[i * n + k], b[k * n + j], sum); c[i * n + j] = sum; }";
    let n = 64_u64;
    let args = json!([
        tensor("a", &[n, n], "float32", "input"),
        tensor("b", &[n, n], "float32", "input"),
        tensor("c", &[n, n], "float32", "output"),
        {"name": "n", "type": "int", "value": n},
    ]);
    let contract =
        contract(source, "product", args, json!({"x": 4, "y": 4}), json!({"x": 16, "y": 16}));
    let terms = (n * n * n) as f64;
    let expected = [("flop_count_single", 2.0 * terms), ("ffma_instructions", terms)];
    let found = metrics(&Server::start(), &contract, &expected.map(|(id, _)| id));
    assert_known(&found, &expected);
}

#[test]
fn a_strided_copy_reads_a_sector_for_each_element() {
    let source = "extern \"C\" __global__ void strided(const float* a, float* b, int n) { int i = \
                  blockIdx.x * blockDim.x + threadIdx.x; if (i < n) b[i] = a[i * 8]; }";
    let n = 1_u64 << 16;
    let args = json!([
        tensor("a", &[8 * n], "float32", "input"),
        tensor("b", &[n], "float32", "output"),
        {"name": "n", "type": "int", "value": n},
    ]);
    let contract = contract(source, "strided", args, json!({"x": n / 256}), json!({"x": 256}));
    let expected = [("sectors_per_global_load", 32.0), ("sectors_per_global_store", 4.0)];
    let found = metrics(&Server::start(), &contract, &expected.map(|(id, _)| id));
    assert_known(&found, &expected);
}

#[test]
fn a_column_of_shared_memory_conflicts_in_its_bank() {
    let source = "extern \"C\" __global__ void column(const int* a, int* out) { __shared__ int \
                  s[1024]; int t = threadIdx.x; s[t * 32] = a[blockIdx.x * 32 + t]; __syncwarp(); \
                  out[blockIdx.x * 32 + t] = s[(t ^ 1) * 32]; }";
    let blocks = 256_u64;
    let args = json!([
        tensor("a", &[32 * blocks], "int32", "input"),
        tensor("out", &[32 * blocks], "int32", "output"),
    ]);
    let contract = contract(source, "column", args, json!({"x": blocks}), json!({"x": 32}));
    let conflicts = 31.0 * blocks as f64;
    let expected = [("shared_load_conflicts", conflicts), ("shared_store_conflicts", conflicts)];
    let found = metrics(&Server::start(), &contract, &expected.map(|(id, _)| id));
    assert_known(&found, &expected);
}

#[test]
fn a_source_that_is_not_there_is_named_and_nothing_else_suffers() {
    let server = Server::start();
    let mut contract = increment();
    contract["profile"] = json!({"tools": ["cupti"], "metrics": ["speed_of_light"]});
    let report = server.evaluate(&contract);
    assert_eq!(report["kernel_exec_result"]["correctness"], true);
    assert!(report["kernel_exec_result"]["runtime_stats"]["mean"].as_f64().unwrap() > 0.0);
    if on_gpu(&report["device"]["kind"]) {
        assert!(report["timings"]["profile"].as_f64().unwrap() > 0.0);
    } else {
        assert_eq!(report["profile"]["available"], false);
        let reason = report["profile"]["reason"].as_str().unwrap();
        assert!(reason.contains("cupti") && reason.contains("emulat"), "{reason}");
        assert_eq!(report["timings"]["profile"], 0.0);
    }
}

#[test]
fn a_profile_is_planned_before_it_runs() {
    let server = Server::start();
    let mut contract = increment();
    contract["profile"] = json!({"metrics": ["speed_of_light"]});
    let plan = server.post_json("/profile/plan", &contract).json;
    let ids = plan["metrics"].as_array().unwrap();
    // The emulated device counts what follows from the launch; the plan has the reason for the rest.
    for id in ["sm_throughput", "duration"] {
        let on_gpu = plan["kind"] == "cuda";
        assert_eq!(ids.contains(&json!(id)), on_gpu, "{plan}");
        assert_eq!(plan["missing"][id].is_string(), !on_gpu, "{plan}");
    }
    assert_eq!(plan["unknown"], Value::Null, "all names are known: {plan}");
    if !on_gpu(&plan["kind"]) {
        assert_eq!(plan["source"], "emulator");
        assert_eq!(plan["passes"], 1);
    } else {
        assert_eq!(plan["source"], "cupti", "{plan}");
        let passes = plan["passes"].as_u64().unwrap();
        assert!((2..32).contains(&passes), "{plan}");
        assert!(plan["estimated_ms"].as_f64().unwrap() > 0.0);
        // It is what an evaluation then takes.
        let report = server.evaluate(&contract);
        let found = &report["kernel_exec_result"]["metadata"]["device_metrics"];
        assert_eq!(found["conditions"]["passes"], passes, "{found}");
    }
    // A contract that is not valid is refused as everywhere.
    contract["kernel"]["io"]["args"][0]["tensor_spec"]["dtype"] = json!("float33");
    assert_eq!(server.post_json("/profile/plan", &contract).status, 400);
}

/// What `GET /capabilities` says of the first device's monitoring.
fn monitoring(server: &Server) -> Value {
    let capabilities = server.get("/capabilities").json;
    let sources = capabilities["devices"][0]["profile"].as_array().expect("sources").clone();
    sources.into_iter().find(|source| source["name"] == "gpm").unwrap_or_default()
}

/// A kernel long enough to be told from the time between launches.
fn doubling(role: &str) -> Value {
    let n = 1_u64 << 24;
    let source = "extern \"C\" __global__ void twice(float* a, int n) { int i = blockIdx.x * \
                  blockDim.x + threadIdx.x; if (i < n) a[i] = a[i] + a[i]; }";
    let args =
        json!([tensor("a", &[n], "float32", role), {"name": "n", "type": "int", "value": n}]);
    contract(source, "twice", args, json!({"x": n / 256}), json!({"x": 256}))
}

#[test]
fn monitoring_needs_no_counters() {
    let server = Server::start();
    let mut contract = increment();
    contract["profile"] = json!({"tools": ["gpm"]});
    let source = monitoring(&server);
    if source.is_null() {
        // The emulated device: nothing is launched for it.
        let report = server.evaluate(&contract);
        assert_eq!(report["profile"]["available"], false, "{}", report["profile"]);
        let plan = server.post_json("/profile/plan", &contract).json;
        assert_eq!(plan["source"], "emulator");
        assert!(plan["unavailable"]["reason"].as_str().unwrap().contains("gpm"), "{plan}");
    }
    the_rest_needs!("a GPU", !source.is_null());
    let mut contract = doubling("inout");
    contract["num_trials"] = json!(3);
    contract["profile"] = json!({"tools": ["gpm"]});
    let plan = server.post_json("/profile/plan", &contract).json;
    let report = server.evaluate(&contract);
    assert!(report["kernel_exec_result"]["runtime_stats"]["mean"].as_f64().unwrap() > 0.0);
    let found = &report["kernel_exec_result"]["metadata"]["device_metrics"];
    if source["available"] != true {
        assert_eq!((&found["source"], &plan["source"]), (&json!("static"), &json!("static")));
        assert_eq!(found["unavailable"]["code"], source["code"], "{found}");
    }
    the_rest_needs!("a GPU that can be monitored (GPM)", source["available"] == true);
    assert_eq!((&found["source"], &plan["source"]), (&json!("gpm"), &json!("gpm")), "{found}");
    assert_eq!(found["conditions"]["replay"], "back_to_back", "{found}");
    assert!(found["conditions"]["window_ms"].as_u64().unwrap() >= 100, "{found}");
    assert!(found["conditions"]["launches"].as_u64().unwrap() > 100, "{found}");
    // It reads and writes memory as fast as that allows, without the copies that put inputs back.
    let memory = &found["metrics"]["dram_throughput"];
    assert!((40.0..=100.0).contains(&memory["value"].as_f64().unwrap_or(0.0)), "{memory}");
    assert_eq!(memory["source"], "gpm");
    assert!(memory["note"].as_str().unwrap().contains("restoring inputs"), "{memory}");
    let tensor = &found["metrics"]["tensor_pipe_active"];
    assert!(tensor["value"].as_f64().unwrap() < 1.0, "{tensor}");
    let occupancy = &found["metrics"]["achieved_occupancy"];
    assert!((30.0..=100.0).contains(&occupancy["value"].as_f64().unwrap()), "{occupancy}");
    // Nothing is told that it does not tell.
    contract["profile"] = json!({"tools": ["gpm"], "metrics": ["flop_count"]});
    let found =
        server.evaluate(&contract)["kernel_exec_result"]["metadata"]["device_metrics"].clone();
    assert_eq!(found["source"], "static", "{found}");
    assert_eq!(found["unavailable"]["code"], "no_data", "{found}");
}
