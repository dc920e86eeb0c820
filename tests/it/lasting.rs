//! A kernel that keeps state must be right in all of its launches, and not only in the first.

use serde_json::{Value, json};

use crate::server::{Server, emulated};

/// A kernel that counts its launches: `early` in the first so many, and `late` from then on.
fn counting(until: u32, early: &str, late: &str) -> Value {
    json!({
        "kernel_type": "cuda",
        "source_code": format!(
            "__device__ unsigned launches = 0;\n\
             extern \"C\" __global__ void k(const float* x, float* y, int n) {{\n\
             __shared__ unsigned launch;\nif (threadIdx.x == 0) launch = launches++;\n\
             __syncthreads();\n\
             for (int i = threadIdx.x; i < n; i += blockDim.x) {{\n\
             if (launch < {until}) {{ {early} }} else {{ {late} }}\n}}\n}}\n"
        ),
        "metadata": {"kernel_name": "k"},
        "io": {
            "args": [
                {"name": "x", "type": "tensor", "role": "input", "tensor_spec": {
                    "shape": [512], "dtype": "float32", "init": {"kind": "randn", "seed": 1}}},
                {"name": "y", "type": "tensor", "role": "output", "tensor_spec": {
                    "shape": [512], "dtype": "float32"}},
                {"name": "n", "type": "int", "value": 512}
            ],
            "launch": {"grid": {"x": 1}, "block": {"x": 64}}
        }
    })
}

/// Doubles each element in the first so many launches, and triples it afterwards.
fn doubling(until: u32) -> Value {
    counting(until, "y[i] = 2.0f * x[i];", "y[i] = 3.0f * x[i];")
}

fn honest() -> Value {
    let mut kernel = doubling(0);
    kernel["source_code"] = json!(
        "extern \"C\" __global__ void k(const float* x, float* y, int n) {\n\
         for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = 2.0f * x[i];\n}\n"
    );
    kernel
}

fn contract(kernel: Value, trials: u32, inputs: &str) -> Value {
    let mut reference = honest();
    reference["io"]["args"] = json!([]);
    json!({"kernel": kernel, "expected": {"y": {"kernel": reference}}, "num_trials": trials,
           "measure": {"inputs": inputs}})
}

/// Wrong, since it hangs on the launches before; the number of the launch that showed it.
#[track_caller]
fn wrong_at(report: &Value) -> u32 {
    assert_eq!(report["verdict"], "wrong", "{report:#}");
    assert!(report["kernel_exec_result"]["runtime"].is_null(), "{report:#}");
    let reasons = report["validation"]["reasons"].as_array().unwrap();
    let found = |reason: &&Value| reason["code"] == "depends_on_history";
    let reason = reasons.iter().find(found).unwrap_or_else(|| panic!("{reasons:?}"));
    let text = reason["message"].as_str().unwrap();
    let number = text.split("in launch ").nth(1).unwrap().split(" with its state kept").next();
    number.unwrap().parse().unwrap_or_else(|_| panic!("{text}"))
}

#[test]
fn a_kernel_that_goes_wrong_late_is_wrong() {
    let server = Server::start();
    for inputs in ["fresh", "same"] {
        // The twelfth launch belongs to the warm-up, which says so in other words.
        for until in [15, 59, 149, 199] {
            let launch = wrong_at(&server.evaluate(&contract(doubling(until), 5, inputs)));
            assert!((until + 1..=200).contains(&launch), "{launch} of those after {until}");
        }
        // There are as many launches as trials.
        let launch = wrong_at(&server.evaluate(&contract(doubling(249), 250, inputs)));
        assert_eq!(launch, 250);
    }
    let mut sealed = contract(doubling(149), 5, "fresh");
    sealed["isolation"] = json!("sealed");
    assert!(wrong_at(&server.evaluate(&sealed)) >= 150);
}

/// A GPU compares the results of a launch while the next one is prepared. It leaves what is not finite to the host,
/// which must find the results and inputs of that launch.
#[test]
fn launches_whose_results_the_device_cannot_compare_are_judged_by_the_host() {
    let not_finite = |kernel: Value| {
        let mut kernel = kernel;
        let source = kernel["source_code"]
            .as_str()
            .unwrap()
            .replace("x[i];", "x[i] * (i == 7 ? NAN : 1.0f);");
        kernel["source_code"] = json!(source);
        kernel
    };
    let body = |kernel: Value, trials: u32| {
        let mut body = contract(not_finite(kernel), trials, "fresh");
        body["expected"]["y"]["kernel"] = not_finite(honest());
        body["expected"]["y"]["kernel"]["io"]["args"] = json!([]);
        body
    };
    let server = Server::start();
    let right = server.evaluate(&body(honest(), 40));
    assert_eq!(right["verdict"], "correct", "{right:#}");
    assert!(right["measurement"]["audited"].as_u64().unwrap() >= 30, "{right:#}");
    let launch = wrong_at(&server.evaluate(&body(doubling(59), 5)));
    assert!((60..=200).contains(&launch), "{launch}");
    // The variables of a timed launch are as after loading, so the inputs decide.
    let mut sometimes = honest();
    sometimes["source_code"] = json!(
        "extern \"C\" __global__ void k(const float* x, float* y, int n) {\n\
         for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = (x[5] > 1.5f ? 2.5f : 2.0f) * x[i];\n}\n"
    );
    let wrong = server.evaluate(&body(sometimes, 100));
    assert_eq!(wrong["verdict"], "wrong", "{wrong:#}");
}

#[test]
fn a_kernel_that_goes_wrong_late_is_not_compared() {
    let server = Server::start();
    for inputs in ["fresh", "same"] {
        let body = json!({"ref_kernel": honest(), "custom_kernel": doubling(149), "num_trials": 5,
                          "measure": {"inputs": inputs}});
        let answer = server.post_json("/compare", &body);
        assert_eq!(answer.status, 200, "{}\n{}", answer.text, server.output());
        wrong_at(&answer.json["candidates"][0]["evaluation"]);
        assert!(answer.json["comparison"].is_null(), "{}", answer.text);
    }
}

/// Where launches take so long that the time limit leaves no time for all of them, the report says so.
#[test]
fn launches_that_keep_state_keep_to_the_time_limit() {
    needs!("emulated launches, which are slow", emulated());
    let server = Server::start();
    // It converges soon, and goes on.
    let slow = "float sum = x[i]; for (int k = 0; k < 100000; k++) sum = 0.5f * sum + x[i]; \
                y[i] = sum;";
    let mut contract = contract(counting(u32::MAX, slow, slow), 1, "same");
    contract["timeout"] = json!(8.0);
    let report = server.evaluate(&contract);
    assert_eq!(report["verdict"], "correct", "{report:#}");
    let notes = report["measurement"]["notes"].to_string();
    assert!(notes.contains("instead of 200 consecutive launches"), "{notes}");
}
