use serde_json::{Value, json};

use super::*;
use crate::{ContractError, ContractLimits, IoContract, KernelCode};
use warpgauge_model::FailureCode;

fn kernel(launches: &Value) -> KernelCode {
    serde_json::from_value(json!({
        "kernel_type": "cuda", "source_code": "…",
        "io": {"args": [
            {"name": "x", "type": "tensor", "tensor_spec": {"shape": [8, 4], "init": {"kind": "ones"}}},
            {"name": "y", "type": "tensor", "role": "output", "tensor_spec": {"shape": [8, 4]}},
            {"name": "a", "type": "tensor", "role": "scratch", "tensor_spec": {"shape": [32]}},
            {"name": "b", "type": "tensor", "role": "scratch", "tensor_spec": {"shape": [32]}},
            {"name": "flag", "type": "tensor", "role": "scratch",
             "tensor_spec": {"shape": [1], "dtype": "int32"}},
            {"name": "n", "type": "int", "value": 3},
        ]},
        "launches": launches,
    }))
    .unwrap()
}

fn resolved(launches: &Value) -> Result<ResolvedProgram, Vec<ContractError>> {
    let kernel = kernel(launches);
    let io: IoContract = kernel.io.clone().unwrap();
    resolve_program(&kernel, &io, &ContractLimits::default(), "kernel")
}

fn step(args: &Value) -> Value {
    json!({"kernel": "k", "grid": {"x": 1}, "block": {"x": 32}, "args": args})
}

/// Arguments of each launch, and the other steps, in short.
fn shown(program: &ResolvedProgram) -> Vec<String> {
    let argument = |argument: &StepArgument| match argument {
        StepArgument::Given(index, 0) => format!("#{index}"),
        StepArgument::Given(index, offset) => format!("#{index}+{offset}"),
        StepArgument::Number(value) => value.to_string(),
        StepArgument::Object(_, tensor) => format!("texture #{tensor}"),
        StepArgument::Pointers(_, entries) => format!("{entries:?}"),
        StepArgument::Null | StepArgument::Structure(_) => String::new(),
    };
    let step = |step: &ResolvedStep| match step {
        ResolvedStep::Launch { arguments, .. } => {
            arguments.iter().map(argument).collect::<Vec<_>>().join(" ")
        }
        ResolvedStep::Memset { tensor, value, .. } => format!("set #{tensor} {value}"),
        ResolvedStep::Copy { from, to, .. } => format!("copy #{from} #{to}"),
        ResolvedStep::Pass { flag, end, is_last } => format!("pass #{flag} {end} {is_last}"),
    };
    program.steps.iter().map(step).collect()
}

#[test]
fn loops_are_unrolled_with_their_indexes() {
    let program = resolved(&json!([
        step(&json!(["x", 1.5, true, "n"])),
        {"repeat": "n", "index": "i", "steps": [
            step(&json!(["x + i * x.shape[1]", "n - i"])),
            {"repeat": "i", "index": "j", "steps": [{"memset": "y", "value": 7}]},
        ]},
    ]))
    .unwrap();
    assert_eq!(
        shown(&program),
        ["#0 1.5 true #5", "#0 3", "#0+4 2", "set #1 7", "#0+8 1", "set #1 7", "set #1 7",]
    );
    let paths: Vec<&str> = program.lines.iter().map(|line| line.path.as_str()).collect();
    assert_eq!(paths, ["launches[0]", "launches[1].steps[0]", "launches[1].steps[1].steps[0]"]);
    assert_eq!(program.kernels, ["k"]);
}

#[test]
fn exchanged_tensors_stand_for_one_another() {
    let program = resolved(&json!([
        {"repeat": 3, "steps": [step(&json!(["a", "b"])), {"swap": ["a", "b"]}]},
        {"memcpy": {"from": "a", "to": "b"}},
    ]))
    .unwrap();
    assert_eq!(shown(&program), ["#2 #3", "#3 #2", "#2 #3", "copy #3 #2"]);
}

#[test]
fn a_pass_of_a_while_ends_behind_the_loop() {
    let program = resolved(&json!([
        {"while": "flag", "most": 2, "steps": [{"memset": "flag"}, step(&json!(["flag"]))]},
        {"memset": "y"},
    ]))
    .unwrap();
    assert_eq!(
        shown(&program),
        ["set #4 0", "#4", "pass #4 6 false", "set #4 0", "#4", "pass #4 6 true", "set #1 0",]
    );
}

#[test]
fn what_cannot_be_done_is_named() {
    let deep = json!({"repeat": 1, "steps": [{"repeat": 1, "steps": [{"repeat": 1, "steps": [
        {"repeat": 1, "steps": [{"repeat": 1, "steps": [{"memset": "a"}]}]}]}]}]});
    let empty_passes =
        json!({"repeat": 60_000, "steps": [{"repeat": 0, "steps": [{"memset": "a"}]}]});
    let too_long = json!({"repeat": 60_000, "steps": [{"memset": "a"}, {"memset": "b"}]});
    for (wrong, code, says) in [
        (json!({}), FailureCode::ConflictingFields, "exactly one"),
        (json!({"memset": "a", "kernel": "k"}), FailureCode::ConflictingFields, "exactly one"),
        (json!({"memset": "x"}), FailureCode::WrongField, "an input"),
        (json!({"memset": "n"}), FailureCode::UnknownTensor, "no tensor"),
        (json!({"memset": "a", "grid": {"x": 1}}), FailureCode::WrongField, "goes with `kernel`"),
        (json!({"memcpy": {"from": "x", "to": "flag"}}), FailureCode::ShapeMismatch, "128 and 4"),
        (json!({"swap": ["a", "y"]}), FailureCode::ShapeMismatch, "same type and shape"),
        (json!({"swap": ["a", "x"]}), FailureCode::WrongField, "an input"),
        (
            json!({"while": "flag", "most": 3, "steps": [{"repeat": 2, "swap": ["a", "b"]}]}),
            FailureCode::WrongField,
            "number of its passes",
        ),
        (
            json!({"memset": "a", "repeat": 2, "while": "flag", "most": 1}),
            FailureCode::ConflictingFields,
            "`repeat` or `while`",
        ),
        (json!({"memset": "a", "repeat": "m"}), FailureCode::InvalidExpression, "no argument `m`"),
        (json!({"memset": "a", "repeat": -1}), FailureCode::OutOfRange, ""),
        (json!({"memset": "a", "repeat": "n - 4"}), FailureCode::OutOfRange, "not -1"),
        (json!({"memset": "a", "repeat": 70_000}), FailureCode::OutOfRange, "65536"),
        (json!({"memset": "a", "repeat": 0}), FailureCode::OutOfRange, "no loop has a pass"),
        (step(&json!(["x + 32"])), FailureCode::OutOfRange, "element 32"),
        (step(&json!(["x - 1"])), FailureCode::InvalidExpression, "tensor"),
        (step(&json!([[1]])), FailureCode::WrongType, "must be"),
        (json!({"kernel": "k", "grid": {"x": 1}}), FailureCode::MissingBlock, "missing"),
        (too_long, FailureCode::TooLarge, "65536 steps"),
        (empty_passes, FailureCode::OutOfRange, "no loop has a pass"),
        (deep, FailureCode::TooLarge, "deeper"),
    ] {
        let launches = json!([wrong]);
        if serde_json::from_value::<Vec<LaunchStep>>(launches.clone()).is_err() {
            assert_eq!(wrong["repeat"], -1, "{wrong}");
            continue;
        }
        let errors = resolved(&launches).expect_err(&wrong.to_string());
        let found = errors.iter().any(|error| error.code == code && error.message.contains(says));
        assert!(found, "{wrong}: {errors:?}");
        assert!(errors.iter().all(|error| error.path.starts_with("kernel.launches")), "{errors:?}");
    }
    let wide = vec![json!(format!("n + {}", "1 + ".repeat(100) + "1")); 200];
    let heavy = json!([{"repeat": 60_000, "steps": [step(&json!(wide))]}]);
    let errors = resolved(&heavy).unwrap_err();
    assert_eq!(errors[0].code, FailureCode::TooLarge, "{errors:?}");
    assert!(errors[0].message.contains("32 MiB"), "{errors:?}");
    let many = vec![json!({"memset": "a"}); MAX_LISTED + 1];
    assert_eq!(resolved(&json!(many)).unwrap_err()[0].code, FailureCode::TooLarge);
}

#[test]
fn a_setup_uses_nothing_but_scratch_memory() {
    for (list, is_right) in [
        (json!([step(&json!(["a", "n"]))]), true),
        (json!([{"memset": "b"}]), true),
        (json!([step(&json!(["a", "x"]))]), false),
        (json!([{"memset": "y"}]), false),
        (json!([{"memcpy": {"from": "x", "to": "a"}}]), false),
    ] {
        let mut kernel = kernel(&json!([step(&json!(["x", "a", "y"]))]));
        kernel.setup = serde_json::from_value(list.clone()).unwrap();
        let io = kernel.io.clone().unwrap();
        let resolved = resolve_program(&kernel, &io, &ContractLimits::default(), "kernel");
        assert_eq!(resolved.is_ok(), is_right, "{list}: {resolved:?}");
        if let Err(errors) = resolved {
            assert!(errors[0].path.starts_with("kernel.setup"), "{errors:?}");
            assert!(errors[0].message.contains("role: scratch"), "{errors:?}");
        }
    }
}
