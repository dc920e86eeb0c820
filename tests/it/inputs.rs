//! Inputs that depend on each other: permutations, offsets, and tensors that follow from them.

use serde_json::{Value, json};

use crate::server::Server;

const KERNELS: &str = r#"
extern "C" __global__ void by_offsets(const int* x, const int* offsets, const int* lengths, const int* columns,
                                      const int* rows, const int* order, const int* sorted, int* sums, int* found) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= ROWS) return;
    int sum = 0;
    for (int j = offsets[r]; j < offsets[r] + lengths[r]; ++j) sum += x[columns[j]];
    sums[order[r]] = sum;
    int low = 0, high = KEYS;
    while (low < high) {
        int middle = (low + high) / 2;
        if (sorted[middle] < r * 16) low = middle + 1; else high = middle;
    }
    found[r] = low;
}
extern "C" __global__ void by_rows(const int* x, const int* offsets, const int* lengths, const int* columns,
                                   const int* rows, const int* order, const int* sorted, int* sums, int* found) {
    for (int r = 0; r < ROWS; ++r) {
        sums[r] = found[r] = 0;
        for (int k = 0; k < KEYS; ++k) found[r] += sorted[k] < r * 16;
    }
    for (int j = 0; j < COLUMNS; ++j) sums[order[rows[j]]] += x[columns[j]];
}"#;

fn tensor(name: &str, shape: &Value, init: Value) -> Value {
    let role = if init.is_null() { "output" } else { "input" };
    let mut spec = json!({"shape": shape, "dtype": "int32"});
    if !init.is_null() {
        spec["init"] = init;
    }
    json!({"name": name, "type": "tensor", "role": role, "tensor_spec": spec})
}

/// A sum over the rows of a sparse matrix, by its offsets; the reference uses the row of each element.
fn contract(rows: u64, columns: u64) -> Value {
    let defines = format!("#define ROWS {rows}\n#define COLUMNS {columns}\n#define KEYS 1000\n");
    let source = format!("{defines}{KERNELS}");
    json!({
        "kernel": {
            "kernel_type": "cuda", "source_code": source, "metadata": {"kernel_name": "by_offsets"},
            "io": {
                "args": [
                    tensor("x", &json!([500]), json!({"kind": "choice", "values": [-3, 1, 4, 1000]})),
                    tensor("offsets", &json!([rows + 1]), json!({"kind": "offsets", "of": "columns", "seed": 3})),
                    tensor("lengths", &json!([rows]), json!({"kind": "lengths", "of": "offsets"})),
                    tensor("columns", &json!([columns]), json!({"kind": "randint", "of": "x"})),
                    tensor("rows", &json!(["columns.size"]), json!({"kind": "segments", "of": "offsets"})),
                    tensor("order", &json!([rows]), json!({"kind": "permutation", "of": "sums"})),
                    tensor("sorted", &json!([1000]), json!({"kind": "sorted", "high": 5000})),
                    tensor("sums", &json!([rows]), Value::Null),
                    tensor("found", &json!([rows]), Value::Null),
                ],
                "launch": {"grid": {"x": rows.div_ceil(64)}, "block": {"x": 64}}
            }
        },
        "expected": {
            "sums": {"kernel": {"kernel_type": "cuda", "source_code": source, "metadata": {"kernel_name": "by_rows"},
                "io": {"launch": {"grid": {"x": 1}, "block": {"x": 1}}}}},
            "found": {"kernel": {"kernel_type": "cuda", "source_code": source, "metadata": {"kernel_name": "by_rows"},
                "io": {"launch": {"grid": {"x": 1}, "block": {"x": 1}}}}},
        },
        "num_trials": 5,
    })
}

#[test]
fn dependent_inputs_fit_each_other_in_every_launch() {
    let server = Server::start();
    for isolation in ["warm", "sealed"] {
        // On a GPU the larger tensors are generated on the device, and the smaller ones on the host.
        for (rows, columns) in [(300, 2000), (300, 30_000)] {
            let mut contract = contract(rows, columns);
            contract["isolation"] = json!(isolation);
            let report = server.evaluate(&contract);
            assert_eq!(report["verdict"], "correct", "{report:#}");
            assert_eq!(report["measurement"]["inputs"], "fresh", "{report:#}");
        }
    }
}

#[test]
fn dependence_on_what_is_not_there_is_refused_by_name() {
    let server = Server::start();
    let cases = [
        (2, json!({"kind": "lengths"}), "of", "the name of a tensor of the kind `offsets`"),
        (2, json!({"kind": "lengths", "of": "x"}), "of", "not generated as `kind: offsets`"),
        (2, json!({"kind": "lengths", "of": "nobody"}), "of", "no tensor `nobody`"),
        (4, json!({"kind": "segments", "of": "offsets", "seed": 1, "high": 3}), "", ""),
        (0, json!({"kind": "segments", "of": "offsets"}), "of", "covers 2000 positions, not 500"),
        (3, json!({"kind": "randint", "of": "x", "high": 7}), "of", "`of` or `high`, not both"),
        (3, json!({"kind": "randn", "of": "x"}), "of", "`of` is for the kind"),
        (
            5,
            json!({"kind": "permutation", "low": 0, "high": 299}),
            "high",
            "cannot all be different",
        ),
        (1, json!({"kind": "offsets", "low": 5, "high": 4}), "high", "offsets must not fall"),
        (0, json!({"kind": "choice"}), "values", "1 to 32 `values`, not 0"),
    ];
    for (index, init, field, says) in cases {
        let mut contract = contract(300, 2000);
        contract["kernel"]["io"]["args"][index]["tensor_spec"]["init"] = init.clone();
        let answer = server.post_json("/evaluate", &contract);
        if field.is_empty() {
            assert_eq!(answer.status, 200, "{init}: {}", answer.text);
            continue;
        }
        assert_eq!(answer.status, 400, "{init}: {}", answer.text);
        let path = format!("kernel.io.args[{index}].tensor_spec.init.{field}");
        assert!(
            answer.text.contains(&path) && answer.text.contains(says),
            "{init}: {}",
            answer.text
        );
    }
}
