//! Kernels with several configurations: the server chooses one, and the report says how.

use serde_json::{Value, json};

use crate::server::Server;
use crate::support::has_triton;

/// A sum with configurations, of which two are wrong: one by what it computes, one as it compiles.
const SOURCE: &str = "
import triton
import triton.language as tl

def prune(configs, named_args, **_):
    return [config for config in configs if config.kwargs['BLOCK'] <= named_args['n']]

@triton.autotune(
    configs=[
        triton.Config({'BLOCK': 64, 'WRONG': 0}, num_warps=4),
        triton.Config({'BLOCK': 1024, 'WRONG': 0}, num_warps=4),
        triton.Config({'BLOCK': 1024, 'WRONG': 1}, num_warps=1),
        triton.Config({'BLOCK': 1024, 'WRONG': 2}, num_warps=1),
        triton.Config({'BLOCK': 1 << 20, 'WRONG': 0}, num_warps=4),
    ],
    key=['n'],
    prune_configs_by={'early_config_prune': prune},
)
@triton.heuristics({'EVEN': lambda args: args['n'] % args['BLOCK'] == 0})
@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr, WRONG: tl.constexpr, EVEN: tl.constexpr):
    tl.static_assert(WRONG < 2, 'two is too wrong')
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    sum = tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask)
    tl.store(out + at, sum + WRONG, mask=mask)
";

fn request() -> Value {
    let tensor = |name: &str, role: &str| {
        let mut spec = json!({"shape": [5120], "dtype": "float32"});
        if role == "input" {
            spec["init"] = json!({"kind": "randn", "seed": 7});
        }
        json!({"name": name, "type": "tensor", "role": role, "tensor_spec": spec})
    };
    json!({
        "kernel": {
            "kernel_type": "triton",
            "source_code": SOURCE,
            "io": {
                "args": [tensor("x", "input"), tensor("y", "input"), tensor("out", "output"),
                         {"name": "n", "type": "int", "value": 5120}],
                "launch": {"grid": {"x": "cdiv(n, BLOCK)"}}
            }
        },
        "expected": {"out": {"kernel": cuda()}},
        "num_trials": 3
    })
}

fn cuda() -> Value {
    json!({
        "kernel_type": "cuda",
        "source_code": "extern \"C\" __global__ void r(const float* x, const float* y, float* out, \
                        int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; \
                        if (i < n) out[i] = x[i] + y[i]; }",
        "io": {"launch": {"grid": {"x": "ceil_div(n, 256)"}, "block": {"x": 256}}}
    })
}

/// Outcomes by index.
fn outcomes(tuning: &Value) -> Vec<(u64, String)> {
    let all = tuning["configurations"].as_array().unwrap();
    let one =
        |one: &Value| (one["index"].as_u64().unwrap(), one["outcome"].as_str().unwrap().to_owned());
    all.iter().map(one).collect()
}

#[test]
fn the_best_of_the_right_configurations_is_chosen_and_found_again() {
    needs!("Triton", has_triton());
    let server = Server::start();
    let report = server.evaluate(&request());
    assert_eq!(report["kernel_exec_result"]["correctness"], true, "{report}\n{}", server.output());
    let tuning = &report["tuning"];
    let told = outcomes(tuning);
    let expected = [(0, "outdone"), (1, "chosen"), (2, "wrong"), (3, "not_compiled")]
        .map(|(i, o)| (i, o.to_owned()));
    assert_eq!(tuning["pruned"], 1, "{tuning}");
    assert_eq!(tuning["from_cache"], false, "{tuning}");
    let reasons: Vec<_> =
        (2..4).map(|i| tuning["configurations"][i]["reason"].to_string()).collect();
    assert!(reasons[0].contains("differ"), "{reasons:?}");
    assert!(reasons[1].contains("two is too wrong"), "{reasons:?}");
    let again = server.evaluate(&request());
    assert_eq!(again["tuning"]["from_cache"], true, "{again}");
    assert_eq!(again["tuning"]["chosen"], tuning["chosen"], "{again}");
    // Which of the right ones is faster only a GPU says.
    if tuning["decided_by"] == "counts" {
        assert_eq!(told, expected, "{tuning}");
        let winner = &report["kernel_exec_result"]["metadata"]["configuration"];
        assert_eq!((&winner["BLOCK"], &winner["num_warps"]), (&json!(1024), &json!(4)), "{winner}");
    } else {
        assert_eq!(told[2..], expected[2..], "{tuning}");
    }
}

#[test]
fn a_configuration_that_is_named_is_taken() {
    needs!("Triton", has_triton());
    let server = Server::start();
    let mut named = request();
    named["kernel"]["metadata"] = json!({"configuration": 0});
    let report = server.evaluate(&named);
    assert_eq!(report["kernel_exec_result"]["correctness"], true, "{report}");
    assert!(report["tuning"].is_null(), "{report}");
    named["kernel"]["metadata"] = json!({"configuration": 2});
    assert_eq!(server.evaluate(&named)["kernel_exec_result"]["correctness"], false);
    named["kernel"]["metadata"] = json!({"configuration": 9});
    let report = server.evaluate(&named);
    assert_eq!(report["failure"]["code"], "out_of_range", "{report}");
    // What each configuration says itself is not the launch's to say.
    let mut settings = request();
    settings["kernel"]["io"]["launch"]["num_warps"] = json!(8);
    let report = server.evaluate(&settings);
    assert_eq!(report["failure"]["code"], "conflicting_fields", "{report}");
    // All that is tuned may be given, too; a part of it may not.
    let mut given = request();
    let args = given["kernel"]["io"]["args"].as_array_mut().unwrap();
    args.push(json!({"name": "BLOCK", "type": "int", "value": 512, "is_meta": true}));
    let report = server.evaluate(&given);
    assert_eq!(report["failure"]["code"], "conflicting_fields", "{report}");
    let args = given["kernel"]["io"]["args"].as_array_mut().unwrap();
    args.push(json!({"name": "WRONG", "type": "int", "value": 0, "is_meta": true}));
    let report = server.evaluate(&given);
    assert_eq!(report["kernel_exec_result"]["correctness"], true, "{report}");
    assert!(report["tuning"].is_null(), "{report}");
}

#[test]
fn comparisons_compare_what_was_chosen() {
    needs!("Triton", has_triton());
    let server = Server::start();
    let tuned = request()["kernel"].clone();
    let mut plain = cuda();
    plain["io"]["args"] = tuned["io"]["args"].clone();
    let comparison = json!({"ref_kernel": plain, "custom_kernel": tuned, "num_trials": 3});
    let answer = server.post_json("/compare", &comparison);
    assert_eq!(answer.status, 200, "{}", answer.text);
    let one = &answer.json["candidates"][0]["evaluation"];
    assert_eq!(one["kernel_exec_result"]["correctness"], true, "{}", answer.text);
    assert!(one["tuning"]["chosen"].is_number(), "{one}");
    // As the reference its first configuration says what the others must leave.
    let mut reference = tuned;
    reference["source_code"] =
        reference["source_code"].as_str().unwrap().replace("num_warps=1", "num_warps=2").into();
    let mut candidate = cuda();
    candidate["io"]["args"] = json!([]);
    let comparison = json!({"ref_kernel": reference, "custom_kernel": candidate, "num_trials": 3});
    let answer = server.post_json("/compare", &comparison);
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert!(answer.json["reference"]["tuning"]["chosen"].is_number(), "{}", answer.text);
    let one = &answer.json["candidates"][0]["evaluation"];
    assert_eq!(one["kernel_exec_result"]["correctness"], true, "{}", answer.text);
}

#[test]
fn what_is_reset_before_each_launch_must_say_so_in_the_contract() {
    needs!("Triton", has_triton());
    let server = Server::start();
    let mut request = request();
    let source = request["kernel"]["source_code"].as_str().unwrap();
    let source = source.replace("key=['n'],", "key=['n'], reset_to_zero=['out'],").replace(
        "tl.store(out + at, sum + WRONG, mask=mask)",
        "tl.atomic_add(out + at, sum + WRONG, mask=mask)",
    );
    request["kernel"]["source_code"] = source.into();
    let answer = server.post_json("/evaluate", &request);
    assert_eq!(answer.status, 400, "{}", answer.text);
    assert!(answer.text.contains("role: inout"), "{}", answer.text);
    let out = &mut request["kernel"]["io"]["args"][2];
    out["role"] = "inout".into();
    out["tensor_spec"]["init"] = json!({"kind": "zeros"});
    let report = server.evaluate(&request);
    assert_eq!(report["kernel_exec_result"]["correctness"], true, "{report}\n{}", server.output());
}
