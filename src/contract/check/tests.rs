use serde_json::{Value, json};

use super::*;
use crate::contract::{ResolvedLaunch, resolve_launch};
use crate::tensor::Blob;

fn good() -> Value {
    json!({
        "kernel": {
            "kernel_type": "cuda",
            "source_code": "extern \"C\" __global__ void f(float* x, float* y, int n) {}",
            "io": {
                "args": [
                    {"name": "x", "type": "tensor",
                     "tensor_spec": {"shape": [100, 10], "init": {"kind": "randn"}}},
                    {"name": "y", "type": "tensor", "role": "output",
                     "tensor_spec": {"shape": [4], "dtype": "float32"}},
                    {"name": "n", "type": "int", "value": 1000},
                    {"name": "a", "type": "float", "value": "inf"},
                ],
                "launch": {"grid": {"x": "ceil_div(x.size, 256)"}, "block": {"x": 256}},
            },
            "metadata": {"kernel_name": "f"},
        },
        "expected": {"y": {"data": {"data_b64": Blob::from_bytes(&[0; 16])}}},
        "return_outputs": ["y"],
    })
}

fn errors_of(value: &Value) -> Vec<ContractError> {
    let request: EvaluateRequest = serde_json::from_value(value.clone()).unwrap();
    validate(&request, &Limits::default())
        .err()
        .unwrap_or_default()
}

/// The good request with the value at `pointer` replaced, or removed by null.
fn changed(pointer: &str, new: &Value) -> Value {
    let mut request = good();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match request.pointer_mut(parent).unwrap() {
        Value::Object(fields) => {
            if new.is_null() {
                fields.remove(key);
            } else {
                fields.insert(key.to_owned(), new.clone());
            }
        }
        Value::Array(items) => items[key.parse::<usize>().unwrap()] = new.clone(),
        other => panic!("{other}"),
    }
    request
}

#[test]
fn a_good_request_passes() {
    assert_eq!(errors_of(&good()), []);
    for (pointer, new) in [
        ("/kernel/io/args/2/value", json!(1e6)),
        (
            "/kernel/io/args/1/tensor_spec/init",
            json!({"kind": "zeros"}),
        ),
        ("/kernel/io/launch", Value::Null),
        ("/kernel/io/launch/shared_memory_bytes", json!("n * 4")),
        ("/kernel/io/launch/cluster", json!({"x": 4})),
        ("/kernel/metadata", Value::Null),
        ("/timeout", json!(600)),
        (
            "/tolerance",
            json!({"atol": 0, "required_matched_ratio": 0.99}),
        ),
        (
            "/expected/y",
            json!({"kernel": {"kernel_type": "cuda", "source_code": "x"}}),
        ),
    ] {
        assert_eq!(errors_of(&changed(pointer, &new)), [], "{pointer}");
    }
}

#[test]
fn every_mistake_is_named() {
    let spec = "/kernel/io/args/0/tensor_spec";
    let cases: Vec<(String, Value, &str, &str)> = vec![
        ("/num_trials".into(), json!(0), "num_trials", "out_of_range"),
        (
            "/num_trials".into(),
            json!(10_001),
            "num_trials",
            "out_of_range",
        ),
        ("/timeout".into(), json!(0.01), "timeout", "out_of_range"),
        ("/timeout".into(), json!(601), "timeout", "out_of_range"),
        (
            "/kernel/kernel_type".into(),
            json!("torch"),
            "kernel.kernel_type",
            "unsupported_kernel_type",
        ),
        (
            "/kernel/kernel_type".into(),
            json!("triton"),
            "kernel.kernel_type",
            "unsupported_kernel_type",
        ),
        (
            "/kernel/source_code".into(),
            Value::Null,
            "kernel.source_code",
            "missing_code",
        ),
        (
            "/kernel/source_code".into(),
            json!(" \n"),
            "kernel.source_code",
            "missing_code",
        ),
        (
            "/kernel/source_code".into(),
            json!("a\0b"),
            "kernel.source_code",
            "invalid_value",
        ),
        (
            "/kernel/binary_b64".into(),
            json!("QUJD"),
            "kernel.binary_b64",
            "wrong_field",
        ),
        (
            "/kernel/kernel_type".into(),
            json!("cubin"),
            "kernel.source_code",
            "wrong_field",
        ),
        (
            "/kernel/kernel_type".into(),
            json!("fatbin"),
            "kernel.binary_b64",
            "missing_code",
        ),
        ("/kernel/io".into(), Value::Null, "kernel.io", "missing_io"),
        (
            "/kernel/metadata/kernel_name".into(),
            json!(""),
            "kernel.metadata.kernel_name",
            "invalid_value",
        ),
        (
            "/kernel/metadata/compiler_options".into(),
            json!(["-a\n"]),
            "kernel.metadata.compiler_options[0]",
            "invalid_value",
        ),
        (
            "/kernel/metadata/compiler_options".into(),
            json!(vec!["-a"; 65]),
            "kernel.metadata.compiler_options",
            "too_large",
        ),
        (
            "/kernel/metadata/compiler_options".into(),
            json!(["x".repeat(1025)]),
            "kernel.metadata.compiler_options[0]",
            "too_large",
        ),
        (
            "/kernel/io/args/0/name".into(),
            json!("n"),
            "kernel.io.args[2].name",
            "duplicate_name",
        ),
        (
            "/kernel/io/args/0/name".into(),
            json!(""),
            "kernel.io.args[0].name",
            "invalid_name",
        ),
        (
            "/kernel/io/args/0/name".into(),
            json!("1x"),
            "kernel.io.args[0].name",
            "invalid_name",
        ),
        (
            "/kernel/io/args/0/name".into(),
            json!("a b"),
            "kernel.io.args[0].name",
            "invalid_name",
        ),
        (
            "/kernel/io/args/0/name".into(),
            json!("a".repeat(300)),
            "kernel.io.args[0].name",
            "invalid_name",
        ),
        (
            "/kernel/io/args/0/value".into(),
            json!(3),
            "kernel.io.args[0].value",
            "wrong_field",
        ),
        (
            "/kernel/io/args/0/is_meta".into(),
            json!(true),
            "kernel.io.args[0].is_meta",
            "wrong_field",
        ),
        (
            spec.into(),
            Value::Null,
            "kernel.io.args[0].tensor_spec",
            "missing_tensor_spec",
        ),
        (
            format!("{spec}/init"),
            Value::Null,
            "kernel.io.args[0].tensor_spec",
            "missing_content",
        ),
        (
            format!("{spec}/data"),
            json!({"data_b64": ""}),
            "kernel.io.args[0].tensor_spec",
            "conflicting_fields",
        ),
        (
            format!("{spec}/init"),
            json!({"kind": "randn", "std": -1}),
            "kernel.io.args[0].tensor_spec.init.std",
            "invalid_init",
        ),
        (
            format!("{spec}/init"),
            json!({"kind": "full"}),
            "kernel.io.args[0].tensor_spec.init.fill_value",
            "invalid_init",
        ),
        (
            format!("{spec}/shape"),
            json!([0, 3]),
            "kernel.io.args[0].tensor_spec.shape",
            "invalid_shape",
        ),
        (
            format!("{spec}/shape"),
            json!([1u64 << 40, 1u64 << 40]),
            "kernel.io.args[0].tensor_spec.shape",
            "invalid_shape",
        ),
        (
            format!("{spec}/shape"),
            json!([1u64 << 40]),
            "kernel.io.args[0].tensor_spec.shape",
            "too_large",
        ),
        (
            "/kernel/io/args/2/value".into(),
            Value::Null,
            "kernel.io.args[2].value",
            "missing_value",
        ),
        (
            "/kernel/io/args/2/value".into(),
            json!(1.5),
            "kernel.io.args[2].value",
            "wrong_type",
        ),
        (
            "/kernel/io/args/2/value".into(),
            json!("5"),
            "kernel.io.args[2].value",
            "wrong_type",
        ),
        (
            "/kernel/io/args/2/value".into(),
            json!(true),
            "kernel.io.args[2].value",
            "wrong_type",
        ),
        (
            "/kernel/io/args/2/type".into(),
            json!("bool"),
            "kernel.io.args[2].value",
            "wrong_type",
        ),
        (
            "/kernel/io/args/2/type".into(),
            json!("str"),
            "kernel.io.args[2].type",
            "wrong_type",
        ),
        (
            "/kernel/io/args/2/role".into(),
            json!("output"),
            "kernel.io.args[2].role",
            "wrong_field",
        ),
        (
            "/kernel/io/args/3/value".into(),
            json!("infinite"),
            "kernel.io.args[3].value",
            "wrong_type",
        ),
        (
            "/kernel/io/args/2/c_type".into(),
            json!(""),
            "kernel.io.args[2].c_type",
            "invalid_value",
        ),
        (
            "/kernel/io/launch/grid/x".into(),
            json!(0),
            "kernel.io.launch.grid.x",
            "out_of_range",
        ),
        (
            "/kernel/io/launch/grid/x".into(),
            json!(1u64 << 31),
            "kernel.io.launch.grid.x",
            "out_of_range",
        ),
        (
            "/kernel/io/launch/grid/y".into(),
            json!(65_536),
            "kernel.io.launch.grid.y",
            "out_of_range",
        ),
        (
            "/kernel/io/launch/grid/x".into(),
            json!("n - 1001"),
            "kernel.io.launch.grid.x",
            "out_of_range",
        ),
        (
            "/kernel/io/launch/grid/x".into(),
            json!("m"),
            "kernel.io.launch.grid.x",
            "invalid_expression",
        ),
        (
            "/kernel/io/launch/grid/x".into(),
            json!("a"),
            "kernel.io.launch.grid.x",
            "invalid_expression",
        ),
        (
            "/kernel/io/launch/grid/x".into(),
            json!("x"),
            "kernel.io.launch.grid.x",
            "invalid_expression",
        ),
        (
            "/kernel/io/launch/grid/x".into(),
            json!("x.shape[2]"),
            "kernel.io.launch.grid.x",
            "invalid_expression",
        ),
        (
            "/kernel/io/launch/block/x".into(),
            json!(1025),
            "kernel.io.launch.block.x",
            "out_of_range",
        ),
        (
            "/kernel/io/launch/block/z".into(),
            json!(65),
            "kernel.io.launch.block.z",
            "out_of_range",
        ),
        (
            "/kernel/io/launch/block/y".into(),
            json!(5),
            "kernel.io.launch.block",
            "block_too_large",
        ),
        (
            "/kernel/io/launch/shared_memory_bytes".into(),
            json!(1u64 << 40),
            "kernel.io.launch.shared_memory_bytes",
            "out_of_range",
        ),
        (
            "/kernel/io/launch/shared_memory_bytes".into(),
            json!("0 - 1"),
            "kernel.io.launch.shared_memory_bytes",
            "out_of_range",
        ),
        (
            "/kernel/io/launch/cluster".into(),
            json!({"x": 3}),
            "kernel.io.launch.cluster.x",
            "cluster_does_not_divide_grid",
        ),
        (
            "/kernel/io/launch/cluster".into(),
            json!({"x": 4, "y": 5}),
            "kernel.io.launch.cluster",
            "cluster_too_large",
        ),
        (
            "/tolerance".into(),
            json!({"rtol": -1}),
            "tolerance.rtol",
            "out_of_range",
        ),
        (
            "/tolerance".into(),
            json!({"required_matched_ratio": 1.5}),
            "tolerance.required_matched_ratio",
            "out_of_range",
        ),
        (
            "/work".into(),
            json!({"flops": -1}),
            "work.flops",
            "out_of_range",
        ),
        (
            "/measure".into(),
            json!({"min_warmup_time": 11}),
            "measure.min_warmup_time",
            "out_of_range",
        ),
        (
            "/profile".into(),
            json!({"tools": [""]}),
            "profile.tools",
            "too_large",
        ),
        (
            "/expected/z".into(),
            json!({}),
            "expected.z",
            "unknown_output",
        ),
        (
            "/expected/x".into(),
            json!({}),
            "expected.x",
            "not_an_output",
        ),
        (
            "/expected/y".into(),
            json!({}),
            "expected.y",
            "missing_field",
        ),
        (
            "/expected/y/kernel".into(),
            json!({"kernel_type": "cuda"}),
            "expected.y",
            "conflicting_fields",
        ),
        (
            "/expected/y".into(),
            json!({"kernel": {"kernel_type": "cuda"}}),
            "expected.y.kernel.source_code",
            "missing_code",
        ),
        (
            "/expected/y".into(),
            json!({"kernel": {"kernel_type": "torch"}}),
            "expected.y.kernel.kernel_type",
            "unsupported_kernel_type",
        ),
        (
            "/expected/y".into(),
            json!({"kernel": {"kernel_type": "ptx", "source_code": "x", "io": {"args": [], "launch": {"grid": {"x": 0}}}}}),
            "expected.y.kernel.io.launch.grid.x",
            "out_of_range",
        ),
        (
            "/expected/y".into(),
            json!({"kernel": {"kernel_type": "ptx", "source_code": "x", "io": {"args": [{"name": "q", "type": "int"}]}}}),
            "expected.y.kernel.io.args",
            "reference_args_differ",
        ),
        (
            "/expected/y/data/data_b64".into(),
            json!(Blob::from_bytes(&[0; 15])),
            "expected.y.data.data_b64",
            "size_mismatch",
        ),
        (
            "/expected/y/data/dtype".into(),
            json!("int32"),
            "expected.y.data.dtype",
            "dtype_mismatch",
        ),
        (
            "/expected/y/data/shape".into(),
            json!([2, 2]),
            "expected.y.data.shape",
            "shape_mismatch",
        ),
        (
            "/return_outputs".into(),
            json!(["x"]),
            "return_outputs[0]",
            "not_an_output",
        ),
        (
            "/return_outputs".into(),
            json!(["w"]),
            "return_outputs[0]",
            "unknown_output",
        ),
        (
            "/kernel/io/args/1/tensor_spec/shape".into(),
            json!([1u64 << 28]),
            "return_outputs",
            "too_large",
        ),
    ];
    for (pointer, new, path, code) in cases {
        let errors = errors_of(&changed(&pointer, &new));
        let found = errors
            .iter()
            .any(|error| error.path == path && error.code == code);
        assert!(found, "{pointer} = {new}: {errors:#?}");
        assert!(
            errors
                .iter()
                .all(|error| !error.message.is_empty() && error.message.len() < 400)
        );
    }
}

#[test]
fn both_sizes_are_named() {
    let errors = errors_of(&changed(
        "/expected/y/data/data_b64",
        &json!(Blob::from_bytes(&[0; 15])),
    ));
    assert_eq!(
        errors[0].message,
        "15 bytes of data, but shape [4] of float32 needs 16"
    );
}

#[test]
fn all_mistakes_are_reported_up_to_a_bound() {
    let mut request = good();
    request["num_trials"] = json!(0);
    request["timeout"] = json!(0);
    request["kernel"]["io"]["args"][2]["value"] = json!("x");
    assert_eq!(errors_of(&request).len(), 3);
    let bad = json!({"name": "?", "type": "tensor"});
    request["kernel"]["io"]["args"] = json!(vec![bad; 200]);
    assert_eq!(errors_of(&request).len(), Limits::default().max_errors);
}

#[test]
fn total_memory_counts_expected_outputs() {
    let request: EvaluateRequest = serde_json::from_value(good()).unwrap();
    let exact = 4000 + 16 + 16;
    let limits = |max_total_bytes| Limits {
        max_total_bytes,
        ..Limits::default()
    };
    assert_eq!(validate(&request, &limits(exact)), Ok(()));
    let errors = validate(&request, &limits(exact - 1)).unwrap_err();
    assert_eq!(
        (errors[0].path.as_str(), errors[0].code),
        ("kernel.io.args", "too_large")
    );
}

#[test]
fn launches_resolve() {
    let resolved = |pointer: &str, new: Value| {
        let request: EvaluateRequest = serde_json::from_value(changed(pointer, &new)).unwrap();
        resolve_launch(request.kernel.io.as_ref().unwrap(), &Limits::default())
    };
    let expected = ResolvedLaunch {
        grid: [4, 1, 1],
        block: [256, 1, 1],
        shared_bytes: 0,
        cluster: None,
        cooperative: false,
    };
    assert_eq!(resolved("/kernel/metadata", Value::Null), Ok(expected));
    assert_eq!(
        resolved("/kernel/io/launch", Value::Null),
        Ok(ResolvedLaunch {
            grid: [1; 3],
            ..expected
        })
    );
    assert_eq!(
        resolved(
            "/kernel/io/launch",
            json!({"grid": {"x": 8, "y": "x.shape[1]"}, "block": {"x": 32, "y": 2},
                   "shared_memory_bytes": "32*2*4", "cluster": {"x": 2}, "cooperative": true})
        ),
        Ok(ResolvedLaunch {
            grid: [8, 10, 1],
            block: [32, 2, 1],
            shared_bytes: 256,
            cluster: Some([2, 1, 1]),
            cooperative: true,
        })
    );
    assert!(resolved("/kernel/io/launch/grid/x", json!("n / 0")).is_err());
}
