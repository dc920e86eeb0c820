//! Launches timed under the load of continuous use: the additional launches, their verification,
//! and the error if the regime is not available.

use serde_json::{Value, json};

use crate::server::{self, Server};

const N: u32 = 1024;

/// y = 2x by a kernel with these statements in it, timed under load.
fn doubling(variables: &str, statements: &str) -> Value {
    let kernel = |name: &str, variables: &str, statements: &str| {
        let source = format!(
            "#include <cstdio>\n{variables}\n
             extern \"C\" __global__ void {name}(const float* x, float* y, int n) {{
                {statements}
            }}"
        );
        json!({"kernel_type": "cuda", "source_code": source, "metadata": {"kernel_name": name}})
    };
    let mut candidate = kernel("twice", variables, statements);
    let spec = json!({"shape": [N], "dtype": "float32", "init": {"kind": "randn", "seed": 1}});
    candidate["io"] = json!({
        "args": [
            {"name": "x", "type": "tensor", "role": "input", "tensor_spec": spec},
            {"name": "y", "type": "tensor", "role": "output",
             "tensor_spec": {"shape": [N], "dtype": "float32"}},
            {"name": "n", "type": "int", "value": N},
        ],
        "launch": {"grid": {"x": 1}, "block": {"x": 256}},
    });
    let work = "for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = 2.0f * x[i];";
    let reference = kernel("reference", "", work);
    json!({"kernel": candidate, "expected": {"y": {"kernel": reference}}, "num_trials": 16,
           "measure": {"regime": "sustained"}})
}

fn right() -> Value {
    doubling("", "for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = 2.0f * x[i];")
}

#[test]
fn launches_are_timed_under_the_load_of_the_kernel_itself() {
    let server = Server::start();
    let report = server.evaluate(&right());
    assert_eq!(report["kernel_exec_result"]["correctness"], true, "{report}");
    let measured = &report["measurement"];
    assert_eq!(measured["regime"], "sustained");
    // They are no samples, and no timed launches that were verified.
    assert_eq!(measured["samples_ms"].as_array().map(Vec::len), Some(16), "{measured}");
    assert_eq!((&measured["audited"], &measured["stopped"]), (&json!(16), &json!("trials_done")));
    assert!(measured["sealed"]["launches"].as_u64() >= Some(3), "{measured}");
    let load = &measured["load"];
    // Two before each timed launch at least, and those that are verified.
    assert!(load["launches"].as_u64() >= Some(16 * 2 + 16), "{load}");
    assert_eq!(load["verified"], 16);
    let share = load["share"].as_f64().unwrap();
    assert!(share > 0.0 && share <= 1.0, "{load}");
    assert!(load["median_ms"].as_f64() > Some(0.0), "{load}");

    let mut isolated = right();
    isolated["measure"] = json!({});
    let report = server.evaluate(&isolated);
    let measured = &report["measurement"];
    assert_eq!((&measured["regime"], &measured["load"]), (&json!("isolated"), &Value::Null));
}

#[test]
fn launches_of_the_load_are_made() {
    needs!("the emulated device", server::emulated());
    let server = Server::start();
    let mut contract = doubling(
        "",
        "if (threadIdx.x == 0) printf(\"seen\\n\");
         for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = 2.0f * x[i];",
    );
    // Launches in all, but for the load and the warm-up.
    let others = |report: &Value| {
        let measured = &report["measurement"];
        let seen = report["printed"].as_str().unwrap().matches("seen").count() as u64;
        let load = measured["load"]["launches"].as_u64().unwrap_or(0);
        seen - load - measured["warmup_launches"].as_u64().unwrap()
    };
    let sustained = others(&server.evaluate(&contract));
    contract["measure"] = json!({});
    assert_eq!(sustained, others(&server.evaluate(&contract)));
}

/// A kernel that finds out which launches are load: what it keeps cannot be put back, since it uses the
/// heap, and only they find the inputs of the launch before.
fn rests_under_load(rest: &str) -> Value {
    doubling(
        "__device__ float last = -1.0f;",
        &format!(
            "__shared__ bool again;
             if (threadIdx.x == 0) {{
                 unsigned* own = (unsigned*)malloc(sizeof(unsigned));
                 again = own != nullptr && last == x[0];
                 last = x[0];
                 free(own);
             }}
             __syncthreads();
             if (again) {{ {rest} }}
             for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = 2.0f * x[i];"
        ),
    )
}

#[test]
fn a_kernel_that_does_nothing_under_load_is_found() {
    let server = Server::start();
    let report = server.evaluate(&rests_under_load("return;"));
    assert_eq!(report["kernel_exec_result"]["correctness"], false, "{report}");
    assert!(report["kernel_exec_result"]["runtime"].is_null());
    let codes = report["validation"]["reasons"].to_string();
    assert!(codes.contains("output_unwritten"), "{codes}");
    // Nobody else sees it.
    let mut isolated = rests_under_load("return;");
    isolated["measure"] = json!({});
    let report = server.evaluate(&isolated);
    assert_eq!(report["kernel_exec_result"]["correctness"], true, "{report}");

    let wrong = "for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = 3.0f * x[i]; return;";
    let report = server.evaluate(&rests_under_load(wrong));
    assert_eq!(report["kernel_exec_result"]["correctness"], false, "{report}");
    let reasons = report["validation"]["reasons"].to_string();
    assert!(reasons.contains("output_varies_between_trials"), "{reasons}");
    assert!(reasons.contains("in a launch of the load before launch"), "{reasons}");
}

#[test]
fn load_keeps_to_the_time_of_the_timed_launches() {
    let server = Server::start();
    let mut contract = right();
    contract.as_object_mut().unwrap().remove("num_trials");
    contract["measure"]["max_time"] = json!(0.001);
    let report = server.evaluate(&contract);
    let measured = &report["measurement"];
    // Before the first look, which is at 20.
    assert_eq!(measured["stopped"], "time_budget", "{measured}");
    let samples = measured["samples_ms"].as_array().map_or(0, Vec::len);
    assert!((1..20).contains(&samples), "{measured}");
}

#[test]
fn a_comparison_under_load_is_refused() {
    let server = Server::start();
    let contract = right();
    let compared = json!({
        "ref_kernel": contract["kernel"],
        "custom_kernel": contract["kernel"],
        "measure": {"regime": "sustained"},
    });
    let answer = server.post_json("/compare", &compared);
    assert_eq!(answer.status, 400, "{}", answer.text);
    assert!(answer.text.contains("measure.regime"), "{}", answer.text);
    let mut sealed = contract;
    sealed["isolation"] = json!("sealed");
    let answer = server.post_json("/evaluate", &sealed);
    assert_eq!(answer.status, 400, "{}", answer.text);
    assert!(answer.text.contains("measure.regime"), "{}", answer.text);
}
