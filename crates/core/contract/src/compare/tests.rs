use serde_json::{Value, json};

use super::*;

use warpgauge_model::FailureCode;

fn args() -> Value {
    json!([
        {"name": "x", "type": "tensor", "role": "input",
         "tensor_spec": {"shape": [64], "dtype": "float32", "init": {"kind": "randn", "seed": 1}}},
        {"name": "y", "type": "tensor", "role": "output",
         "tensor_spec": {"shape": [64], "dtype": "float32"}},
        {"name": "z", "type": "tensor", "role": "inout",
         "tensor_spec": {"shape": [4], "dtype": "int32", "init": {"kind": "zeros"}}},
        {"name": "n", "type": "int", "value": 64, "role": "input"},
    ])
}

fn kernel(io: &Value) -> Value {
    let mut kernel = json!({
        "source_code": "__global__ void k(const float* x, float* y, int* z, int n) {}",
        "kernel_type": "cuda",
        "metadata": {"kernel_name": "k"},
    });
    if !io.is_null() {
        kernel["io"] = io.clone();
    }
    kernel
}

/// Returns a request as for the CUDA Evaluation Server: both kernels have their whole contract.
fn verbatim() -> Value {
    let io = json!({"args": args(), "launch": {"grid": {"x": 1}, "block": {"x": 64}}});
    json!({
        "ref_kernel": kernel(&io),
        "custom_kernel": kernel(&io),
        "num_trials": 100,
        "timeout": 120,
        "atol": 0.01,
        "rtol": 0.02,
    })
}

fn request(value: &Value) -> CompareRequest {
    serde_json::from_value(value.clone()).expect("a request")
}

/// Returns the path and code of every error.
fn errors(value: &Value) -> Vec<(String, FailureCode)> {
    let found =
        validate_compare(&request(value), &ContractLimits::default()).err().unwrap_or_default();
    found.into_iter().map(|error| (error.path, error.code)).collect()
}

/// Returns the verbatim request with the value at `pointer` replaced.
fn changed(pointer: &str, new: Value) -> Value {
    let mut value = verbatim();
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    let parent = value.pointer_mut(parent).expect("the parent");
    match parent {
        Value::Array(items) => items[key.parse::<usize>().expect("an index")] = new,
        other => other[key] = new,
    }
    value
}

#[test]
fn the_request_of_the_reference_server_is_taken_as_it_is() {
    assert_eq!(errors(&verbatim()), []);
    let request = request(&verbatim());
    let candidates = request.named_candidates();
    assert_eq!(candidates.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), [CUSTOM_NAME]);
    let evaluation = request.evaluation_of(&candidates[0].kernel);
    assert_eq!((evaluation.num_trials, evaluation.timeout), (Some(100), 120.0));
    let tolerance = evaluation.tolerance.expect("a tolerance");
    assert_eq!((tolerance.atol, tolerance.rtol), (Some(0.01), Some(0.02)));
}

#[test]
fn what_may_be_left_out_has_the_reference_servers_defaults() {
    let full = verbatim();
    let short = json!({"ref_kernel": full["ref_kernel"], "custom_kernel": full["custom_kernel"]});
    let request = request(&short);
    assert_eq!((request.atol, request.rtol, request.timeout), (None, None, 120.0));
    assert_eq!(request.num_trials, None);
    assert_eq!(errors(&short), []);
}

#[test]
fn every_output_is_expected_to_be_the_references() {
    let request = request(&verbatim());
    let evaluation = request.evaluation_of(&request.ref_kernel);
    assert_eq!(evaluation.expected.keys().collect::<Vec<_>>(), ["y", "z"]);
    for expected in evaluation.expected.values() {
        let oracle = expected.kernel.as_ref().expect("a kernel");
        assert_eq!(oracle.source_code, request.ref_kernel.source_code);
        let io = oracle.io.as_ref().expect("its launch");
        assert!(io.args.is_empty() && io.launch.is_some());
    }
}

#[test]
fn a_candidate_without_io_has_the_references() {
    let mut value = verbatim();
    value["custom_kernel"] = kernel(&Value::Null);
    assert_eq!(errors(&value), []);
    let own = |value: &Value| {
        let candidate = request(value).named_candidates().remove(0).kernel;
        serde_json::to_value(candidate.io).expect("JSON")
    };
    let reference = serde_json::to_value(request(&value).ref_kernel.io).expect("JSON");
    assert_eq!(own(&value), reference);
    // A given launch stays; the arguments are still the reference's.
    value["custom_kernel"]["io"] = json!({"launch": {"grid": {"x": 2}, "block": {"x": 32}}});
    assert_eq!(errors(&value), []);
    assert_eq!(own(&value)["args"], reference["args"]);
    assert_eq!(own(&value)["launch"]["grid"]["x"], 2);
}

#[test]
fn other_arguments_are_refused_where_they_differ() {
    let spec = "/custom_kernel/io/args/0/tensor_spec";
    let differs = [
        (format!("{spec}/shape"), json!([32])),
        (format!("{spec}/dtype"), json!("float64")),
        (format!("{spec}/init"), json!({"kind": "randn", "seed": 2})),
        ("/custom_kernel/io/args/0/name".to_owned(), json!("w")),
        ("/custom_kernel/io/args/0/role".to_owned(), json!("inout")),
    ];
    for (pointer, new) in differs {
        let expected = [("custom_kernel.io.args[0]".to_owned(), FailureCode::DifferentArguments)];
        assert_eq!(errors(&changed(&pointer, new)), expected, "{pointer}");
    }
    let scalar = errors(&changed("/custom_kernel/io/args/3/value", json!(63)));
    assert_eq!(scalar, [("custom_kernel.io.args[3]".to_owned(), FailureCode::DifferentArguments)]);
    let mut fewer = args();
    fewer.as_array_mut().expect("a list").remove(0);
    let fewer = errors(&changed("/custom_kernel/io/args", fewer));
    assert_eq!(fewer[0], ("custom_kernel.io.args".to_owned(), FailureCode::DifferentArguments));
    // An explicit default is the same argument.
    let mut same = verbatim();
    same["custom_kernel"]["io"]["args"][3].as_object_mut().expect("an object").remove("role");
    assert_eq!(errors(&same), []);
}

#[test]
fn kernels_have_scalars_of_their_own() {
    let scalar = json!({"name": "chunk", "type": "int", "value": 4});
    let mut more = args();
    more.as_array_mut().expect("a list").insert(1, scalar);
    assert_eq!(errors(&changed("/custom_kernel/io/args", more.clone())), []);
    let mut fewer = args();
    fewer.as_array_mut().expect("a list").pop();
    assert_eq!(errors(&changed("/custom_kernel/io/args", fewer)), []);
    let mut value = verbatim();
    value["ref_kernel"]["io"]["args"] = more;
    assert_eq!(errors(&value), []);
    // The reference keeps its own list, in its own order, beside a candidate that has another.
    let request = request(&value);
    let candidate = request.named_candidates().remove(0);
    let evaluation = request.evaluation_of(&candidate.kernel);
    let oracle = evaluation.expected.values().next().expect("an output").kernel.as_ref();
    let candidate = candidate.kernel.io.as_ref().expect("arguments");
    let oracle = oracle.expect("a kernel").as_reference(candidate, crate::KernelType::Cuda);
    let names = oracle.io.expect("arguments").args.into_iter().map(|arg| arg.name);
    assert_eq!(names.collect::<Vec<_>>()[1], "chunk");
    value["ref_kernel"]["io"]["args"][1]["value"] = json!("four");
    assert!(!errors(&value).is_empty());
}

#[test]
fn one_custom_kernel_or_some_candidates() {
    let wrong = || [("custom_kernel".to_owned(), FailureCode::Candidates)];
    let mut value = verbatim();
    let kernel = value["custom_kernel"].take();
    value.as_object_mut().expect("an object").remove("custom_kernel");
    assert_eq!(errors(&value), wrong());
    let named = |count: usize| {
        let one = |index| json!({"name": format!("k{index}"), "kernel": kernel});
        Value::Array((0..count).map(one).collect())
    };
    value["candidates"] = named(MAX_CANDIDATES);
    assert_eq!(errors(&value), []);
    let names = request(&value).named_candidates();
    assert_eq!(names[0].name, "k0");
    assert_eq!(names.len(), MAX_CANDIDATES);
    value["candidates"] = named(MAX_CANDIDATES + 1);
    assert_eq!(errors(&value), wrong());
    value["candidates"] = named(1);
    value["custom_kernel"] = kernel.clone();
    assert_eq!(errors(&value), wrong());
}

#[test]
fn names_tell_candidates_apart() {
    let mut value = verbatim();
    let kernel = value["custom_kernel"].take();
    value.as_object_mut().expect("an object").remove("custom_kernel");
    let long = "n".repeat(MAX_CANDIDATE_NAME_BYTES + 1);
    for wrong in ["", "first", "reference", "line\nbreak", &long] {
        let other = json!({"name": wrong, "kernel": kernel});
        value["candidates"] = json!([{"name": "first", "kernel": kernel}, other]);
        let expected = [("candidates[1].name".to_owned(), FailureCode::CandidateName)];
        assert_eq!(errors(&value), expected, "{wrong:?}");
    }
}

#[test]
fn mistakes_of_the_reference_are_told_once_and_at_its_place() {
    let empty = errors(&changed("/ref_kernel/source_code", json!(" ")));
    assert_eq!(empty, [("ref_kernel.source_code".to_owned(), FailureCode::MissingCode)]);
    let mixed = changed("/ref_kernel/kernel_type", json!("torch_cuda"));
    let at = |path: &str| (path.to_owned(), FailureCode::WrongField);
    assert_eq!(errors(&mixed), [at("ref_kernel.metadata.kernel_name"), at("ref_kernel.io.launch")]);
    let mut bare = mixed;
    bare["ref_kernel"].as_object_mut().expect("an object").remove("io");
    assert_eq!(errors(&bare), [("ref_kernel.io".to_owned(), FailureCode::MissingIo)]);
    let mut without = verbatim();
    without["ref_kernel"].as_object_mut().expect("an object").remove("io");
    assert_eq!(errors(&without), [("ref_kernel.io".to_owned(), FailureCode::MissingIo)]);
    let launch = errors(&changed("/ref_kernel/io/launch/block/x", json!(2048)));
    assert_eq!(launch.len(), 1, "{launch:?}");
    assert!(launch[0].0.starts_with("ref_kernel.io.launch.block"), "{launch:?}");
}

#[test]
fn mistakes_of_a_candidate_and_of_the_settings_have_their_places() {
    let cases = [
        ("/custom_kernel/source_code", json!(""), "custom_kernel.source_code"),
        ("/atol", json!(-1.0), "atol"),
        ("/rtol", json!(-1.0), "rtol"),
        ("/required_matched_ratio", json!(1.5), "required_matched_ratio"),
        ("/num_trials", json!(0), "num_trials"),
        ("/timeout", json!(0.01), "timeout"),
        ("/measure", json!({"max_time": 0.0}), "measure.max_time"),
        ("/measure", json!({"regime": "sustained"}), "measure.regime"),
        ("/work", json!({"bytes": -1.0}), "work.bytes"),
    ];
    for (pointer, new, path) in cases {
        let found = errors(&changed(pointer, new));
        assert_eq!(found.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>(), [path]);
    }
    let mut value = verbatim();
    let mut kernel = value["custom_kernel"].take();
    value.as_object_mut().expect("an object").remove("custom_kernel");
    kernel["source_code"] = json!("");
    value["candidates"] = json!([{"name": "a", "kernel": kernel}]);
    assert_eq!(
        errors(&value),
        [("candidates[0].kernel.source_code".to_owned(), FailureCode::MissingCode)]
    );
}

#[test]
fn the_limits_of_the_server_hold_for_both_kernels() {
    let fits = kernel(&Value::Null)["source_code"].as_str().expect("text").to_owned();
    let limits = ContractLimits { max_source_bytes: fits.len(), ..ContractLimits::default() };
    assert_eq!(validate_compare(&request(&verbatim()), &limits), Ok(()));
    let long = format!("{fits} ");
    for which in ["ref_kernel", "custom_kernel"] {
        let value = changed(&format!("/{which}/source_code"), json!(long));
        let found = validate_compare(&request(&value), &limits).expect_err("too long");
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].path, format!("{which}.source_code"));
        assert_eq!(found[0].code, FailureCode::TooLarge);
    }
}

#[test]
fn unknown_fields_are_refused() {
    for pointer in ["/speedup", "/ref_kernel/speedup"] {
        let value = changed(pointer, json!(1));
        assert!(serde_json::from_value::<CompareRequest>(value).is_err(), "{pointer}");
    }
}

/// A launch of Triton programs does not define blocks. Each kernel takes a tensor in the form that
/// it specifies.
#[test]
fn kernels_of_two_languages_share_data_and_neither_launch_nor_descriptors() {
    let triton = |described: bool, launch: bool| {
        let mut io = json!({"args": args()});
        if described {
            io["args"][0]["descriptor"] = json!({"block_shape": [32]});
        }
        if launch {
            io["launch"] = json!({"grid": {"x": 2}});
        }
        let mut kernel = kernel(&io);
        kernel["kernel_type"] = json!("triton");
        kernel
    };
    let mut value = verbatim();
    value["custom_kernel"] = triton(true, true);
    assert_eq!(errors(&value), []);
    let oracle = |value: &Value| {
        let request = request(value);
        let evaluation = request.evaluation_of(&request.named_candidates()[0].kernel);
        let oracle = evaluation.expected["y"].kernel.clone().expect("a kernel");
        oracle.as_reference(&evaluation.kernel.io.expect("io"), evaluation.kernel.kernel_type)
    };
    let described = |kernel: &KernelCode| {
        let io = kernel.io.as_ref().expect("io");
        io.args.iter().map(|arg| arg.descriptor.is_some()).collect::<Vec<_>>()
    };
    let (none, first) = ([false; 4], [true, false, false, false]);
    assert_eq!(described(&oracle(&value)), none, "CUDA takes pointers");
    // Both kernels are Triton's: the reference's descriptors do not depend on the candidate.
    value["ref_kernel"] = triton(false, true);
    assert_eq!(errors(&value), []);
    assert_eq!(described(&oracle(&value)), none);
    value["ref_kernel"] = triton(true, true);
    value["custom_kernel"] = triton(false, true);
    assert_eq!(errors(&value), []);
    assert_eq!(described(&oracle(&value)), first);
    // A kernel of another language without arguments takes them as pointers.
    value["custom_kernel"] = kernel(&json!({"launch": {"grid": {"x": 1}, "block": {"x": 64}}}));
    assert_eq!(errors(&value), []);
    assert_eq!(described(&request(&value).named_candidates()[0].kernel), none);

    let missing = [("custom_kernel.io.launch".to_owned(), FailureCode::MissingLaunch)];
    value["custom_kernel"] = kernel(&Value::Null);
    assert_eq!(errors(&value), missing);
    let mut value = verbatim();
    value["custom_kernel"] = triton(false, false);
    assert_eq!(errors(&value), missing);
}
