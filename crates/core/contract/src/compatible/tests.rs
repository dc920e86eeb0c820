use serde_json::{Value, json};

use super::*;
use crate::{BodyFormat, ParseError, parse, parse_compatible};
use warpgauge_model::FailureCode;

fn contract() -> Value {
    json!({
        "kernel": {
            "source_code": "s", "kernel_type": "cuda",
            "io": {
                "args": [
                    {"name": "a", "type": "tensor", "tensor_spec":
                        {"shape": [4], "init": {"kind": "ones"}}},
                    {"name": "b", "type": "tensor", "tensor_spec": {"shape": [4]}, "role": "output"},
                ],
                "launch": {"grid": {"x": 2}, "block": {"x": 32}},
            },
        },
    })
}

fn read<T: Compatible>(body: &Value) -> Result<T, ParseError> {
    parse_compatible(BodyFormat::Json, body.to_string().as_bytes())
}

fn changed(change: impl FnOnce(&mut Value)) -> Value {
    let mut body = contract();
    change(&mut body);
    body
}

fn paths(warnings: &[RequestWarning]) -> Vec<&str> {
    warnings.iter().map(|warning| warning.path.as_str()).collect()
}

#[test]
fn unknown_fields_are_ignored_with_warnings_where_the_reference_system_ignores_them() {
    let body = changed(|body| {
        body["collect_device_metrics"] = json!(true);
        let kernel = &mut body["kernel"];
        kernel["metadata"] = json!({"author": "me", "kernel_name": "k"});
        let io = &mut kernel["io"];
        io["version"] = json!(2);
        io["args"][0]["index"] = json!(0);
        io["args"][0]["tensor_spec"]["device"] = json!("cuda");
        io["args"][0]["tensor_spec"]["init"]["generator"] = json!(null);
        io["launch"]["stream"] = json!(0);
        io["launch"]["grid"]["order"] = json!("xyz");
    });
    let read: EvaluateRequest = read(&body).unwrap();
    assert_eq!(
        paths(&read.warnings),
        [
            "collect_device_metrics",
            "kernel.metadata.author",
            "kernel.io.version",
            "kernel.io.args[0].index",
            "kernel.io.args[0].tensor_spec.device",
            "kernel.io.args[0].tensor_spec.init.generator",
            "kernel.io.launch.stream",
            "kernel.io.launch.grid.order",
        ]
    );
    assert!(read.warnings[0].message.contains("`collect_device_metrics` is not a field"));
    assert_eq!(read.kernel.metadata.unwrap().kernel_name.as_deref(), Some("k"));
    // A request of ours has none.
    let error = parse::<EvaluateRequest>(BodyFormat::Json, body.to_string().as_bytes());
    assert_eq!(error.unwrap_err().code, FailureCode::UnknownField);
    assert!(read_whole(&contract()).warnings.is_empty());
}

fn read_whole(body: &Value) -> EvaluateRequest {
    read(body).unwrap()
}

#[test]
fn names_near_a_known_one_and_fields_of_ours_stay_errors() {
    for (path, near, change) in [
        (
            "num_trial",
            Some("num_trials"),
            (|body: &mut Value| body["num_trial"] = json!(3)) as fn(&mut Value),
        ),
        ("kernel.io.launch.blocks", Some("block"), |body| {
            body["kernel"]["io"]["launch"]["blocks"] = json!(1);
        }),
        ("kernel.metadata.kernelname", Some("kernel_name"), |body| {
            body["kernel"]["metadata"] = json!({"kernelname": "k"});
        }),
        ("kernel.source", None, |body| body["kernel"]["source"] = json!("s")),
        ("kernel.sourc_code", Some("source_code"), |body| {
            body["kernel"]["sourc_code"] = json!("s");
        }),
        ("tolerance.atoll", Some("atol"), |body| body["tolerance"] = json!({"atoll": 1})),
        ("measure.anything", None, |body| body["measure"] = json!({"anything": 1})),
    ] {
        let body = changed(change);
        let error = read::<EvaluateRequest>(&body).unwrap_err();
        assert_eq!((error.code, error.path.as_str()), (FailureCode::UnknownField, path));
        let told = error.message.split_once("(did you mean `").map(|(_, rest)| rest);
        let told = told.and_then(|rest| rest.split_once("`?)")).map(|(told, _)| told);
        assert_eq!(told, near, "{}", error.message);
        assert_eq!(error.message.matches("did you mean").count(), usize::from(near.is_some()));
        assert_eq!(error.line, Some(1), "{path}");
    }
}

#[test]
fn what_is_missing_is_filled_in_with_warnings() {
    let body = changed(|body| {
        let io = &mut body["kernel"]["io"];
        io.as_object_mut().unwrap().remove("launch");
        io["args"][0]["tensor_spec"]["init"] = Value::Null;
    });
    let read = read_whole(&body);
    assert_eq!(
        paths(&read.warnings),
        ["kernel.io.args[0].tensor_spec", "kernel.io.launch", "kernel.io.launch"]
    );
    let io = serde_json::to_value(&read.kernel.io).unwrap();
    assert_eq!(io["args"][0]["tensor_spec"]["init"], json!({"kind": "zeros"}));
    assert!(io["args"][1]["tensor_spec"].get("init").is_none(), "an output has no content");
    assert_eq!((&io["launch"]["grid"]["x"], &io["launch"]["block"]["x"]), (&json!(1), &json!(256)));

    let filled = |change: fn(&mut Value)| {
        let read = read_whole(&changed(change));
        let messages = read.warnings.into_iter().map(|warning| warning.message);
        messages.collect::<Vec<_>>().join("; ")
    };
    assert_eq!(
        filled(|body| body["kernel"]["io"]["args"][0]["tensor_spec"]["init"] = json!({"seed": 1})),
        "`kind` is missing; it is `randn`"
    );
    assert_eq!(
        filled(|body| {
            body["kernel"]["io"]["args"][0]["tensor_spec"]["init"] = json!({"kind": "full"});
        }),
        "`fill_value` is missing; it is 0"
    );
    assert_eq!(
        filled(|body| body["kernel"]["io"]["launch"] = json!({"grid": {"x": 2}})),
        "`block` is missing; it is {\"x\": 256}"
    );
    // Triton has no block, and other kernels have no defaults.
    assert_eq!(
        filled(|body| {
            body["kernel"]["kernel_type"] = json!("triton");
            body["kernel"]["io"]["launch"] = json!({"num_warps": 4});
        }),
        "`grid` is missing; it is {\"x\": 1}"
    );
    for kind in ["ptx", "torch"] {
        let body = changed(|body| {
            body["kernel"]["kernel_type"] = json!(kind);
            body["kernel"]["io"].as_object_mut().unwrap().remove("launch");
        });
        let read = read_whole(&body);
        assert!(read.warnings.is_empty() && read.kernel.io.unwrap().launch.is_none(), "{kind}");
    }
}

#[test]
fn texts_of_numbers_are_numbers() {
    let body = changed(|body| {
        body["num_trials"] = json!("100");
        body["timeout"] = json!("60");
        body["kernel"]["io"]["launch"]["num_warps"] = json!("4");
        body["kernel"]["io"]["args"][0]["tensor_spec"]["init"]["seed"] = json!(7.0);
    });
    let read = read_whole(&body);
    assert!(read.warnings.is_empty());
    assert_eq!((read.num_trials, read.timeout), (Some(100), 60.0));
    let launch = read.kernel.io.unwrap().launch.unwrap();
    assert_eq!(launch.num_warps, Some(4));
    for wrong in [json!("many"), json!(""), json!(5.5), json!(true)] {
        let error = read_error(&changed(|body| body["num_trials"] = wrong.clone()));
        assert_eq!(error.path, "num_trials", "{wrong}");
    }
}

fn read_error(body: &Value) -> ParseError {
    read::<EvaluateRequest>(body).unwrap_err()
}

#[test]
fn a_comparison_fills_in_what_no_kernel_gives() {
    let kernel = |launch: Option<Value>| {
        let mut kernel = contract()["kernel"].take();
        let io = kernel["io"].as_object_mut().unwrap();
        io.remove("launch");
        io.extend(launch.map(|launch| ("launch".to_owned(), launch)));
        kernel
    };
    let given = json!({"grid": {"x": 2}, "block": {"x": 32}});
    let body =
        json!({"ref_kernel": kernel(Some(given)), "custom_kernel": kernel(None), "atol": "0.1"});
    let both: CompareRequest = read(&body).unwrap();
    assert!(both.warnings.is_empty(), "the candidate has the reference's launch");
    assert_eq!(both.atol, Some(0.1));
    let body = json!({"ref_kernel": kernel(None), "custom_kernel": kernel(None), "seed": 3});
    let neither: CompareRequest = read(&body).unwrap();
    assert_eq!(paths(&neither.warnings), ["seed", "ref_kernel.io.launch", "ref_kernel.io.launch"]);
}

#[test]
fn two_sources_are_a_comparison() {
    let body = json!({"ref_code": "r", "custom_code": "c", "num_trials": "7", "gpu": "H100"});
    let read_so: CompareRequest = read(&body).unwrap();
    assert_eq!(paths(&read_so.warnings), ["gpu"]);
    assert_eq!((read_so.timeout, read_so.num_trials), (30.0, Some(7)));
    let legacy: LegacyCompareRequest = read(&body).unwrap();
    let legacy = CompareRequest::from(legacy);
    assert_eq!(
        serde_json::to_value(&legacy).unwrap(),
        serde_json::to_value(&read_so).unwrap(),
        "both routes read it alike"
    );
}

#[test]
fn warnings_are_bounded_and_those_of_a_caller_are_none() {
    let many = changed(|body| {
        for number in 0..=MAX_WARNINGS {
            body["kernel"]["io"][format!("unknown-field-{number}")] = json!(1);
        }
    });
    let error = read_error(&many);
    assert!(error.message.contains("more than 64 fields"), "{}", error.message);
    let forged = changed(|body| body["warnings"] = json!([{"path": "p", "message": "m"}]));
    assert!(read_whole(&forged).warnings.is_empty());
    for odd in [json!(3), json!([]), json!({"kernel": 3}), json!({"kernel": {"io": {"args": 3}}})] {
        assert!(read::<EvaluateRequest>(&odd).is_err(), "{odd}");
    }
}

#[test]
fn torch_kernels_may_have_the_launch_and_the_constants_of_the_kernel_beside_them() {
    let body = changed(|body| {
        body["kernel"]["kernel_type"] = json!("torch");
        let io = &mut body["kernel"]["io"];
        io["launch"] = json!({"grid": {"x": 4}, "num_warps": 4});
        let constant = json!({"name": "BLOCK", "type": "int", "value": 64, "is_meta": true});
        io["args"].as_array_mut().unwrap().push(constant);
    });
    let count = body["kernel"]["io"]["args"].as_array().unwrap().len();
    let read = read_whole(&body);
    let constant = format!("kernel.io.args[{}]", count - 1);
    assert_eq!(paths(&read.warnings), ["kernel.io.launch", constant.as_str()]);
    let io = read.kernel.io.unwrap();
    assert!(io.launch.is_none() && io.args.len() == count - 1);
}
