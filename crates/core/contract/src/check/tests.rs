use serde_json::{Value, json};

use super::*;
use crate::{ResolvedLaunch, resolve_launch};
use warpgauge_model::FailureCode;
use warpgauge_tensor::Blob;

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
    validate(&request, &ContractLimits::default()).err().unwrap_or_default()
}

/// Returns the good request with the value at `pointer` replaced; null removes it.
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
        ("/kernel/io/args/1/tensor_spec/init", json!({"kind": "zeros"})),
        ("/kernel/io/launch/grid", json!({"y": 4})),
        ("/kernel/io/launch/shared_memory_bytes", json!("n * 4")),
        ("/kernel/io/launch/cluster", json!({"x": 4})),
        ("/kernel/metadata", Value::Null),
        ("/timeout", json!(600)),
        ("/tolerance", json!({"atol": 0, "required_matched_ratio": 0.99})),
        ("/expected/y", json!({"kernel": {"kernel_type": "cuda", "source_code": "x"}})),
    ] {
        assert_eq!(errors_of(&changed(pointer, &new)), [], "{pointer}");
    }
}

/// One mistake per line: the changed path of the good request, the new value, and the path and code
/// of the error. `args`, `spec`, `launch` and `metadata` abbreviate their full paths.
const MISTAKES: &str = include_str!("mistakes.txt");

#[test]
fn every_mistake_is_named() {
    for line in MISTAKES.lines() {
        let fields: Vec<&str> = line.split(" | ").collect();
        let [pointer, new, path, code] = fields[..] else { panic!("{line}") };
        let pointer = match pointer.split_once('/') {
            Some(("args", rest)) => format!("/kernel/io/args/{rest}"),
            Some(("spec", rest)) => format!("/kernel/io/args/0/tensor_spec/{rest}"),
            Some(("launch", rest)) => format!("/kernel/io/launch/{rest}"),
            Some(("metadata", rest)) => format!("/kernel/metadata/{rest}"),
            _ => format!("/{pointer}"),
        };
        let path = match path.split(['[', '.']).next() {
            Some("args" | "launch") => format!("kernel.io.{path}"),
            _ => path.to_owned(),
        };
        let reference = r#"{"kernel_type": "ptx", "source_code": "x", "io":"#;
        let new = serde_json::from_str(&new.replace("REFERENCE", reference)).unwrap();
        expect_mistake(&pointer, &new, &path, code);
    }
}

#[test]
fn no_load_is_steady_where_another_process_begins_each_launch() {
    let mut request = good();
    request["measure"] = json!({"regime": "sustained"});
    assert_eq!(errors_of(&request), []);
    request["isolation"] = json!("sealed");
    let found = errors_of(&request);
    assert_eq!((found.len(), found[0].path.as_str()), (1, "measure.regime"));
    request["measure"] = json!({});
    assert_eq!(errors_of(&request), []);
}

#[test]
fn long_texts_are_refused() {
    let options = "/kernel/metadata/compiler_options";
    let path = "kernel.metadata.compiler_options";
    expect_mistake(options, &json!(vec!["-a"; 65]), path, "too_large");
    let path = "kernel.metadata.compiler_options[0]";
    expect_mistake(options, &json!(["x".repeat(1025)]), path, "too_large");
    let name = "/kernel/io/args/0/name";
    expect_mistake(name, &json!("a".repeat(300)), "kernel.io.args[0].name", "invalid_name");
    let source = json!("x".repeat(ContractLimits::default().max_source_bytes + 1));
    expect_mistake("/kernel/source_code", &source, "kernel.source_code", "too_large");
}

fn expect_mistake(pointer: &str, new: &Value, path: &str, code: &str) {
    let errors = errors_of(&changed(pointer, new));
    let found = errors.iter().any(|error| error.path == path && error.code.as_str() == code);
    assert!(found, "{pointer}: {path} {code} not among {errors:#?}");
    let readable = |error: &ContractError| (1..400).contains(&error.message.len());
    assert!(errors.iter().all(readable), "{errors:#?}");
}

/// Clients of the CUDA Evaluation Server send every optional field as null.
#[test]
fn nulls_stand_for_absent_fields() {
    let mut request = good();
    let nulls = [
        ("/kernel", &["binary_b64"][..]),
        ("/kernel/metadata", &["backend", "jitify", "function_name", "entry_point"]),
        ("/kernel/io/launch", &["num_warps", "num_stages", "cluster", "shared_memory_bytes"]),
        ("/kernel/io/args/0", &["value", "c_type"]),
        ("/kernel/io/args/0/tensor_spec", &["data"]),
        ("/kernel/io/args/0/tensor_spec/init", &["seed", "mean", "low", "fill_value", "step"]),
        ("/kernel/io/args/1/tensor_spec", &["init", "data"]),
        ("/kernel/io/args/2", &["tensor_spec"]),
        ("", &["tolerance", "work", "profile"]),
    ];
    for (place, fields) in nulls {
        for field in fields {
            request.pointer_mut(place).unwrap()[field] = Value::Null;
        }
    }
    assert_eq!(errors_of(&request), []);
}

#[test]
fn both_sizes_are_named() {
    let errors =
        errors_of(&changed("/expected/y/data/data_b64", &json!(Blob::from_bytes(&[0; 15]))));
    assert_eq!(errors[0].message, "15 bytes of data, but shape [4] of float32 needs 16");
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
    assert_eq!(errors_of(&request).len(), ContractLimits::default().max_errors);
}

#[test]
fn total_memory_counts_expected_outputs() {
    let request: EvaluateRequest = serde_json::from_value(good()).unwrap();
    let exact = 4000 + 16 + 16;
    let limits = |max_total_bytes| ContractLimits { max_total_bytes, ..ContractLimits::default() };
    assert_eq!(validate(&request, &limits(exact)), Ok(()));
    let errors = validate(&request, &limits(exact - 1)).unwrap_err();
    assert_eq!(
        (errors[0].path.as_str(), &errors[0].code),
        ("kernel.io.args", &FailureCode::TooLarge)
    );
}

#[test]
fn compressed_data_count_as_what_they_become() {
    let tensor = |compress: &str, shape: u64| json!({"shape": [shape], "dtype": "float32", "data": {"data_b64": "", "compress": compress}});
    let mut request = good();
    request["kernel"]["io"]["args"][0]["tensor_spec"] = tensor("zstd", 1 << 30);
    let checked = |request: &Value, max_decoded_bytes| {
        let request: EvaluateRequest = serde_json::from_value(request.clone()).unwrap();
        let limits = ContractLimits { max_decoded_bytes, ..ContractLimits::default() };
        let errors = validate(&request, &limits).err().unwrap_or_default();
        (errors.iter().any(|error| error.code == FailureCode::TooMuchData), request.decoded_bytes())
    };
    assert!(
        checked(&request, ContractLimits::default().max_decoded_bytes).0,
        "4 GiB of next to nothing"
    );
    let (refused, bytes) = checked(&request, 8 << 30);
    assert!(!refused && bytes >= 4 << 30, "{bytes}");
    let compressed = bytes - checked(&good(), 0).1;
    assert!(checked(&request, compressed - 1).0 && !checked(&request, compressed).0);
    request["kernel"]["io"]["args"][0]["tensor_spec"] = tensor("zlib", 1 << 30);
    assert!(checked(&request, compressed - 1).0);
    // Uncompressed data does not count.
    assert!(!checked(&good(), 0).0);
}

#[test]
fn launches_resolve() {
    let resolved = |pointer: &str, new: Value| {
        let request: EvaluateRequest = serde_json::from_value(changed(pointer, &new)).unwrap();
        resolve_launch(request.kernel.io.as_ref().unwrap(), &ContractLimits::default())
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
        resolved("/kernel/io/launch/grid", json!({"x": 1})),
        Ok(ResolvedLaunch { grid: [1; 3], ..expected })
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

#[test]
fn a_launch_is_never_assumed() {
    for (pointer, new, path, code) in [
        ("/kernel/io/launch", Value::Null, "kernel.io.launch", "missing_launch"),
        (
            "/kernel/io/launch",
            json!({"cooperative": true}),
            "kernel.io.launch.grid",
            "missing_grid",
        ),
        ("/kernel/io/launch/grid", Value::Null, "kernel.io.launch.grid", "missing_grid"),
        ("/kernel/io/launch/block", Value::Null, "kernel.io.launch.block", "missing_block"),
    ] {
        let errors = errors_of(&changed(pointer, &new));
        let found = errors.iter().find(|error| error.path == path && error.code.as_str() == code);
        let message = &found.unwrap_or_else(|| panic!("{pointer}: {errors:#?}")).message;
        // The message has an example that can be copied.
        assert!(message.contains(r#"{"grid": {"x": "ceil_div(y.size, 256)"}"#), "{message}");
    }
    let nothing = changed("/kernel/io/launch/grid", &json!({}));
    let error = crate::from_value::<EvaluateRequest>(nothing).unwrap_err();
    assert_eq!(
        (error.path.as_str(), error.code.as_str()),
        ("kernel.io.launch.grid", "invalid_value")
    );
    assert!(error.message.contains("at least one of x, y and z"), "{error:?}");
}

#[test]
fn a_reference_without_a_launch_has_the_candidates() {
    let kernel = |launch: Value| json!({"kernel": {"kernel_type": "cuda", "source_code": "x", "io": launch}});
    assert_eq!(errors_of(&changed("/expected/y", &kernel(json!({})))), []);
    let partial = changed("/expected/y", &kernel(json!({"launch": {"grid": {"x": 4}}})));
    let errors = errors_of(&partial);
    let found =
        errors.iter().map(|error| (error.path.as_str(), error.code.as_str())).collect::<Vec<_>>();
    assert_eq!(found, [("expected.y.kernel.io.launch.block", "missing_block")]);
}
