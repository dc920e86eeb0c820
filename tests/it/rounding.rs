//! Integers computed from integers through floating point: a value next to a tie may be off by one,
//! any other value may not.

use serde_json::{Value, json};

use crate::server::Server;

/// A grey value by its weights, in one order of the sum or in another.
fn grey(name: &str, weights: [&str; 3], order: [usize; 3]) -> String {
    let term = |at: usize| format!("{}f * rgb[3 * i + {at}]", weights[at]);
    let sum: Vec<String> = order.map(term).to_vec();
    format!("{name}[i] = (unsigned char)({} + 0.5f);", sum.join(" + "))
}

const FIRST: [&str; 3] = ["0.299", "0.587", "0.114"];
const SECOND: [&str; 3] = ["0.2126", "0.7152", "0.0722"];

fn kernel(body: &str) -> Value {
    let source = format!(
        "extern \"C\" __global__ void grey(const unsigned char* rgb, unsigned char* y, unsigned char* z) {{\n    \
         const int i = blockIdx.x * blockDim.x + threadIdx.x;\n    {body}\n}}"
    );
    json!({"kernel_type": "cuda", "source_code": source})
}

/// Both outputs, each with its own reference kernel.
fn request(isolation: &str, body: &str) -> Value {
    let tensor = |shape: Value| json!({"shape": shape, "dtype": "uint8"});
    let mut input = tensor(json!([4096, 3]));
    input["init"] = json!({"kind": "randint", "low": 0, "high": 256, "seed": 3});
    let mut kernel_of = kernel(body);
    let output = |name: &str| json!({"name": name, "type": "tensor", "role": "output", "tensor_spec": tensor(json!([4096]))});
    kernel_of["io"] = json!({
        "args": [{"name": "rgb", "type": "tensor", "tensor_spec": input}, output("y"), output("z")],
        "launch": {"grid": {"x": 16}, "block": {"x": 256}},
    });
    let all = [0, 1, 2];
    json!({
        "kernel": kernel_of, "isolation": isolation, "num_trials": 20,
        "expected": {
            "y": {"kernel": kernel(&grey("y", FIRST, all))},
            "z": {"kernel": kernel(&grey("z", SECOND, all))},
        },
    })
}

#[test]
fn ties_of_several_references_are_seen_whatever_process_judges() {
    let server = Server::start();
    let other = [2, 1, 0];
    let honest = grey("y", FIRST, other) + &grey("z", SECOND, other);
    // The same element in every launch, whatever the inputs.
    let off = honest.clone() + " if (i == 70) z[i] += 1;";
    for isolation in ["warm", "fresh", "sealed"] {
        let report = server.evaluate(&request(isolation, &honest));
        assert_eq!(report["verdict"], "correct", "{isolation}: {report:#}");
        let report = server.evaluate(&request(isolation, &off));
        let reason = &report["validation"]["reasons"][0];
        assert_eq!(
            (&report["verdict"], &reason["code"]),
            (&json!("wrong"), &json!("output_mismatch"))
        );
        assert!(reason["message"].as_str().unwrap().contains("`z`"), "{isolation}: {reason}");
    }
}
