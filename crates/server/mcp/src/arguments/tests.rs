use super::*;
use warpgauge_contract::KernelType;

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        other => panic!("an object: {other}"),
    }
}

fn io() -> Value {
    json!({
        "args": [
            {"name": "x", "type": "tensor", "role": "input", "value": null, "is_meta": false,
             "tensor_spec": {"shape": [64], "dtype": "float32", "data": null,
                             "init": {"kind": "randn", "seed": 1}}},
            {"name": "y", "type": "tensor", "role": "output", "tensor_spec": {"shape": [64]}},
        ],
        "launch": {"grid": {"x": 1, "y": 1, "z": 1}, "block": {"x": 64, "y": 1, "z": 1}}
    })
}

fn kernel() -> Value {
    json!({"source_code": "k", "kernel_type": "cuda", "io": io(), "metadata": {"kernel_name": "k"}})
}

fn evaluated(tool: ToolName, arguments: Value) -> EvaluateRequest {
    match job(tool, object(arguments)).expect("a call").order.request {
        JobRequest::Evaluate(request) => *request,
        other => panic!("an evaluation: {other:?}"),
    }
}

fn compared(tool: ToolName, arguments: Value) -> CompareRequest {
    match job(tool, object(arguments)).expect("a call").order.request {
        JobRequest::Compare(request) => *request,
        other => panic!("a comparison: {other:?}"),
    }
}

fn refused(tool: ToolName, arguments: Value) -> JobBackendError {
    job(tool, object(arguments)).expect_err("a refusal")
}

#[test]
fn the_reference_systems_arguments_are_taken_as_they_are() {
    let request = json!({"kernel": kernel(), "num_trials": 100, "timeout": 120});
    let request = evaluated(ToolName::Evaluate, json!({"request": request}));
    assert_eq!((request.num_trials, request.timeout), (Some(100), 120.0));
    let request = json!({
        "ref_kernel": kernel(), "custom_kernel": kernel(), "num_trials": 100, "timeout": 120,
        "atol": 0.01, "rtol": 0.01,
    });
    let request = compared(ToolName::Compare, json!({"request": request}));
    assert_eq!((request.atol, request.custom_kernel.is_some()), (Some(0.01), true));
}

#[test]
fn its_older_arguments_too() {
    let flat = json!({
        "kernel_source": "k", "kernel_type": "triton", "io_contract": io(), "num_trials": 7,
        "num_warmup": 10, "enable_device_metrics": true, "timeout": 60,
        "metadata": {"kernel_name": "k", "compile_options": ["-O3"]},
        "reference_kernel_source": null,
    });
    let request = evaluated(ToolName::Evaluate, flat);
    assert_eq!(request.kernel.kernel_type, KernelType::Triton);
    assert_eq!((request.num_trials, request.timeout), (Some(7), 60.0));
    let metadata = request.kernel.metadata.expect("metadata");
    assert_eq!(metadata.compiler_options, ["-O3"]);
    assert!(request.profile.is_some() && request.kernel.io.is_some());

    let flat = json!({
        "kernel_source": "k", "kernel_type": "cuda", "io_contract": io(),
        "reference_kernel_source": "r", "reference_kernel_type": "cuda",
    });
    let request = compared(ToolName::Evaluate, flat);
    assert_eq!((request.atol, request.rtol), (None, None));
    assert_eq!(request.ref_kernel.source_code.as_deref(), Some("r"));
    assert_eq!(request.ref_kernel.io.expect("those of the other").args.len(), 2);

    let flat = json!({
        "ref_kernel_source": "r", "ref_kernel_type": "cuda", "ref_kernel_io": io(),
        "custom_kernel_source": "c", "custom_kernel_type": "cuda", "rtol": 0.5,
    });
    let request = compared(ToolName::Compare, flat);
    assert_eq!((request.atol, request.rtol), (None, Some(0.5)));
    assert!(request.custom_kernel.is_some_and(|custom| custom.io.is_none()));

    let refusal = refused(ToolName::Evaluate, json!({"kernel_source": "k", "kernel_typ": "cuda"}));
    assert_eq!(refusal.path.as_deref(), Some("kernel_typ"));
    assert!(refusal.message.contains("kernel_type"), "{}", refusal.message);
}

#[test]
fn a_contract_may_be_text_or_stand_among_the_arguments() {
    let yaml = "kernel: {kernel_type: ptx, source_code: k}\nnum_trials: 3\n";
    for arguments in [json!({"contract_yaml": yaml}), json!({"request": yaml})] {
        assert_eq!(evaluated(ToolName::Evaluate, arguments).num_trials, Some(3));
    }
    let beside = json!({"kernel": kernel(), "num_trials": 4, "wait_s": 2.5, "label": "mine"});
    let call = job(ToolName::Evaluate, object(beside)).expect("a call");
    assert_eq!(call.wait, Duration::from_millis(2500));
    assert_eq!(call.order.label.as_deref(), Some("mine"));
}

#[test]
fn a_profile_is_asked_for() {
    let request = |profile: Value| {
        let mut arguments = json!({"request": {"kernel": kernel()}});
        for (name, value) in object(profile) {
            arguments[name] = value;
        }
        evaluated(ToolName::Profile, arguments).profile.expect("a profile")
    };
    assert_eq!(request(json!({})).metrics, ["explain"]);
    assert_eq!(
        request(json!({"metrics": ["occupancy", "memory"]})).metrics,
        ["occupancy", "memory"]
    );
    assert_eq!(request(json!({"metrics": "a, b", "tools": ["ncu"]})).metrics, ["a", "b"]);
    let refusal =
        refused(ToolName::Profile, json!({"request": {"kernel": kernel()}, "metrics": 7}));
    assert_eq!(refusal.code, "wrong_type");
}

#[test]
fn what_does_not_fit_says_where() {
    let mut wrong = kernel();
    wrong["io"]["args"][1]["rolle"] = json!("output");
    let refusal = refused(ToolName::Evaluate, json!({"request": {"kernel": wrong}}));
    assert_eq!(refusal.path.as_deref(), Some("kernel.io.args[1].rolle"));
    let cases = [
        (json!({}), "request"),
        (json!({"request": 7}), "request"),
        (json!({"contract_yaml": {}}), "contract_yaml"),
        (json!({"request": {"kernel": kernel()}, "contract_yaml": "a: 1"}), "contract_yaml"),
        (json!({"request": {"kernel": kernel()}, "num_trials": 3}), "num_trials"),
        (json!({"request": {"kernel": kernel()}, "wait_s": -1}), "wait_s"),
        (json!({"request": {"kernel": kernel()}, "wait_s": 1e9}), "wait_s"),
        (json!({"request": {"kernel": kernel()}, "label": "a\nb"}), "label"),
        (json!({"request": {"kernel": kernel()}, "idempotency_key": "a b"}), "idempotency_key"),
    ];
    for (arguments, path) in cases {
        let shown = arguments.to_string();
        assert_eq!(refused(ToolName::Evaluate, arguments).path.as_deref(), Some(path), "{shown}");
    }
}

#[test]
fn questions_name_a_job_and_what_to_read_of_it() {
    let ask = |arguments: Value| question(object(arguments));
    let asked =
        ask(json!({"job_id": "j", "read": "sass", "kernel": "reference"})).expect("a question");
    assert_eq!((asked.job_id.as_str(), asked.wait), ("j", Duration::ZERO));
    assert!(matches!(asked.part, Some(Part::Artifact { kernel: Some(_), .. })));
    for (arguments, path) in [
        (json!({}), "job_id"),
        (json!({"job_id": 7}), "job_id"),
        (json!({"job_id": "j", "read": "passwd"}), "read"),
        (json!({"job_id": "j", "what": "x"}), "what"),
    ] {
        assert_eq!(ask(arguments).expect_err("a refusal").path.as_deref(), Some(path));
    }
}
