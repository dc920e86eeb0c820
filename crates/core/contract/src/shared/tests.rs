use serde_json::{Value, json};

use super::*;
use crate::KernelType;
use crate::{ContractLimits, validate};

/// Returns a copied tensor of zeros.
fn tensor(dtype: Dtype, extents: &[u64]) -> CopiedTensor {
    let count: u64 = extents.iter().product();
    let used = TensorUsed {
        tensor_id: "t".to_owned(),
        origin: TensorOrigin::Shared,
        blake3: None,
        device: None,
        dtype,
        shape: extents.to_vec(),
    };
    let content = Blob::from_bytes(&vec![0; count as usize * dtype.size()]);
    CopiedTensor { used, content }
}

fn request(spec: Value, expected: Value) -> EvaluateRequest {
    let value = json!({
        "kernel": {
            "kernel_type": "ptx", "source_code": "x", "metadata": {"kernel_name": "k"},
            "io": {
                "args": [
                    {"name": "x", "type": "tensor", "tensor_spec": spec},
                    {"name": "y", "type": "tensor", "role": "output", "tensor_spec": {"shape": [4]}},
                ],
                "launch": {"grid": {"x": 1}, "block": {"x": 1}},
            },
        },
        "expected": expected,
    });
    serde_json::from_value(value).unwrap()
}

fn refused(spec: Value, expected: Value, tensor: &CopiedTensor) -> (String, FailureCode) {
    let mut request = request(spec, expected);
    if let Err(error) = request.put_tensor("t", tensor) {
        return (error.path, error.code);
    }
    let error = validate(&request, &ContractLimits::default()).unwrap_err().remove(0);
    (error.path, error.code)
}

#[test]
fn what_an_argument_leaves_out_is_the_tensors() {
    let named = json!({"tensor_id": "t"});
    for (spec, extents) in [
        (json!({"data": named}), vec![2, 2]),
        (json!({"data": named, "shape": [4], "dtype": "int32"}), vec![4]),
        (json!({"data": {"tensor_id": "t", "dtype": "int32", "shape": [2, 2]}}), vec![2, 2]),
    ] {
        let mut request = request(spec, json!({}));
        let names = request.tensor_names();
        let path = "kernel.io.args[0].tensor_spec.data.tensor_id".to_owned();
        assert_eq!(names["t"], NamedTensor { path: path.clone(), places: 1 });
        // An unresolved name is a mistake, and is serialised unchanged.
        let error = validate(&request, &ContractLimits::default()).unwrap_err().remove(0);
        assert_eq!((error.path, error.code), (path, FailureCode::InvalidData));
        let written = serde_json::to_value(&request).unwrap();
        request = serde_json::from_value(written).unwrap();
        request.put_tensor("t", &tensor(Dtype::Int32, &[2, 2])).unwrap();
        assert!(request.tensor_names().is_empty());
        validate(&request, &ContractLimits::default()).unwrap();
        let spec = request.kernel.io.unwrap().args[0].tensor_spec.clone().unwrap();
        assert_eq!((spec.dtype, spec.shape), (Dtype::Int32, extents));
    }
}

#[test]
fn what_does_not_fit_says_where() {
    let spec = |more: Value| {
        let mut spec = json!({"data": {"tensor_id": "t"}});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        spec
    };
    let at = |rest: &str| format!("kernel.io.args[0].tensor_spec.{rest}");
    let floats = tensor(Dtype::Float32, &[4]);
    let bytes = base64_of(4);
    for (more, path, code) in [
        (json!({"dtype": "int32"}), "dtype", FailureCode::DtypeMismatch),
        (json!({"shape": [5]}), "shape", FailureCode::ShapeMismatch),
        (json!({"shape": [1u64 << 40, 1u64 << 40]}), "shape", FailureCode::ShapeMismatch),
        (json!({"init": {"kind": "ones"}}), "data", FailureCode::ConflictingFields),
        (
            json!({"data": {"tensor_id": "t", "data_b64": bytes}}),
            "data",
            FailureCode::ConflictingFields,
        ),
        (
            json!({"data": {"tensor_id": "t", "compress": "zlib"}}),
            "data",
            FailureCode::ConflictingFields,
        ),
        (
            json!({"data": {"tensor_id": "t", "matrix": "m", "part": "x"}}),
            "data",
            FailureCode::ConflictingFields,
        ),
        (
            json!({"data": {"tensor_id": "t", "dtype": "int8"}}),
            "data.dtype",
            FailureCode::DtypeMismatch,
        ),
        (
            json!({"data": {"tensor_id": "t", "shape": [2, 2]}}),
            "data.shape",
            FailureCode::ShapeMismatch,
        ),
    ] {
        assert_eq!(refused(spec(more.clone()), json!({}), &floats), (at(path), code), "{more}");
    }
    let ones = json!({"shape": [4], "init": {"kind": "ones"}});
    let expected = |field: &str| json!({"y": {"data": {"data_b64": base64_of(16)}, field: {"tensor_id": "t"}}});
    for (tensor, field, path, code) in [
        (tensor(Dtype::Float32, &[5]), "data", "data.tensor_id", FailureCode::ShapeMismatch),
        (tensor(Dtype::Int32, &[4]), "data", "data.dtype", FailureCode::DtypeMismatch),
        (tensor(Dtype::Float32, &[4]), "bounds", "bounds.dtype", FailureCode::DtypeMismatch),
    ] {
        let found = refused(ones.clone(), expected(field), &tensor);
        assert_eq!(found, (format!("expected.y.{path}"), code));
    }
    let mut fits = request(ones.clone(), expected("data"));
    fits.put_tensor("t", &tensor(Dtype::Float32, &[2, 2])).unwrap();
    validate(&fits, &ContractLimits::default()).unwrap();
    let mut fits = request(ones, expected("bounds"));
    fits.put_tensor("t", &tensor(Dtype::Float64, &[4])).unwrap();
    validate(&fits, &ContractLimits::default()).unwrap();
}

fn base64_of(bytes: usize) -> Value {
    serde_json::to_value(Blob::from_bytes(&vec![0; bytes])).unwrap()
}

#[test]
fn each_place_counts() {
    let spec = json!({"data": {"tensor_id": "t"}});
    let expected = json!({"y": {"data": {"tensor_id": "t"}, "bounds": {"tensor_id": "u"}}});
    let names = request(spec.clone(), expected).tensor_names();
    let places: Vec<_> = names.iter().map(|(name, named)| (name.as_str(), named.places)).collect();
    assert_eq!(places, [("t", 2), ("u", 1)]);
    let kernel = serde_json::to_value(request(spec, json!({})).kernel).unwrap();
    let compare: CompareRequest = serde_json::from_value(json!({
        "ref_kernel": kernel,
        "candidates": [{"name": "a", "kernel": kernel}, {"name": "b", "kernel": kernel}],
    }))
    .unwrap();
    assert_eq!(compare.tensor_names()["t"].places, 3);
    let mut put = compare.clone();
    put.put_tensor("t", &tensor(Dtype::Float32, &[4])).unwrap();
    assert!(put.tensor_names().is_empty());
    crate::validate_compare(&put, &ContractLimits::default()).unwrap();
    let errors = crate::validate_compare(&compare, &ContractLimits::default()).unwrap_err();
    assert_eq!(errors[0].path, "ref_kernel.io.args[0].tensor_spec.data.tensor_id");
}

#[test]
fn outputs_to_keep_are_outputs_and_have_a_bound() {
    let spec = json!({"shape": [4], "init": {"kind": "ones"}});
    let kept = |names: &[&str], limits: &ContractLimits| {
        let mut request = request(spec.clone(), json!({}));
        let all = names.iter().map(|name| ((*name).to_owned(), crate::KeepOutput::default()));
        request.keep_outputs = all.collect();
        validate(&request, limits).map_err(|mut errors| errors.remove(0))
    };
    kept(&["y"], &ContractLimits::default()).unwrap();
    let error = kept(&["x"], &ContractLimits::default()).unwrap_err();
    assert_eq!((error.path.as_str(), error.code), ("keep_outputs.x", FailureCode::NotAnOutput));
    let error = kept(&["z"], &ContractLimits::default()).unwrap_err();
    assert_eq!((error.path.as_str(), error.code), ("keep_outputs.z", FailureCode::UnknownOutput));
    let small = ContractLimits { max_decoded_bytes: 15, ..ContractLimits::default() };
    let error = kept(&["y"], &small).unwrap_err();
    assert_eq!((error.path.as_str(), error.code), ("keep_outputs", FailureCode::TooLarge));
}

#[test]
fn who_reads_a_tensor_decides_whether_it_may_stay() {
    let named = json!({"data": {"tensor_id": "t"}});
    let alone = |expected: Value, change: &dyn Fn(&mut EvaluateRequest)| {
        let mut request = request(named.clone(), expected);
        change(&mut request);
        let places = request.tensor_names()["t"].places;
        is_input_alone(&request, "t", places)
    };
    let kernel = |kind: &str| json!({"y": {"kernel": {"kernel_type": kind, "source_code": "x"}}});
    let same = |_: &mut EvaluateRequest| {};
    assert!(alone(json!({}), &same) && alone(kernel("cuda"), &same));
    assert!(!alone(kernel("torch"), &same), "PyTorch reads it");
    assert!(!alone(json!({"y": {"data": {"tensor_id": "t"}}}), &same), "it is compared");
    assert!(!alone(json!({"y": {"matrix": "m", "times": "x"}}), &same), "it is multiplied");
    for (kind, stays) in [
        (KernelType::Cuda, true),
        (KernelType::Triton, true),
        (KernelType::Torch, false),
        (KernelType::MultiKernel, false),
        (KernelType::Library, false),
        (KernelType::Program, false),
    ] {
        assert_eq!(alone(json!({}), &|request| request.kernel.kernel_type = kind), stays);
    }
    for role in [Role::Inout, Role::Output] {
        let written = |request: &mut EvaluateRequest| {
            request.kernel.io.as_mut().unwrap().args[0].role = role;
        };
        assert!(!alone(json!({}), &written));
    }
    assert!(!alone(json!({}), &|request| request.sanitize = Sanitize::All));
    // Two inputs share one copy.
    assert!(alone(json!({}), &|request| {
        let args = &mut request.kernel.io.as_mut().unwrap().args;
        args.push(args[0].clone());
    }));
}

#[test]
fn content_on_a_device_says_which() {
    let mut request = request(json!({"data": {"tensor_id": "t"}}), json!({}));
    assert_eq!(request.device_of_content(), None);
    let content = warpgauge_tensor::OnDevice {
        id: "c".to_owned(),
        device: 3,
        handle: vec![0; 64],
        bytes: 16,
        allocation_bytes: 2 << 20,
        held: Box::new(()),
    };
    let copied = tensor(Dtype::Float32, &[4]);
    let copied = CopiedTensor { content: Blob::of_device(content), ..copied };
    request.put_tensor("t", &copied).unwrap();
    assert_eq!(request.device_of_content(), Some(3));
    validate(&request, &ContractLimits::default()).unwrap();
    assert_eq!(request.decoded_bytes(), 0, "it takes no room on the disk");
}
