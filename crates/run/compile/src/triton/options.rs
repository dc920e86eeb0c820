//! The options of Triton's compiler that a caller may give, in `metadata.compiler_options`. They
//! have the form `NAME=VALUE`, like keyword arguments of a launch. Dashes before and within the
//! name are accepted.

use serde_json::{Map, Value};

use crate::error::CompileError;
use warpgauge_model::FailureCode;

/// Names of options that are passed to Triton. The installed version of Triton determines which of
/// them are supported.
const PASSED: [&str; 10] = [
    "enable_fp_fusion",
    "enable_reflect_ftz",
    "enable_warp_specialization",
    "launch_cooperative_grid",
    "launch_pdl",
    "max_num_imprecise_acc_default",
    "default_dot_input_precision",
    "allowed_dot_input_precisions",
    "sanitize_overflow",
    "debug",
];

/// Options that are not accepted, each with the reason or with the field of the contract that sets
/// it.
const ELSEWHERE: [(&str, &str); 9] = [
    ("num_warps", "give it in io.launch"),
    ("num_stages", "give it in io.launch"),
    ("num_ctas", "give it in io.launch"),
    ("maxnreg", "give it in io.launch"),
    ("extern_libs", "the compiler reads only the libraries in Triton's package"),
    ("ir_override", "the compiler reads no files"),
    ("ptx_version", "the driver determines it"),
    ("ptx_options", "Triton determines the assembler's options"),
    ("instrumentation_mode", "instrumented code must not be timed"),
];

/// Options of Triton that passed the check.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Checked {
    /// Keyword arguments of the launch.
    pub keywords: Map<String, Value>,
    /// The architecture to compile for, 10 × major + minor. `None` if the caller names none.
    pub arch: Option<u32>,
}

/// Checks options.
///
/// # Errors
/// Fails for an option that is unknown, not accepted, or malformed.
pub(super) fn check(given: &[String]) -> Result<Checked, CompileError> {
    let mut checked = Checked::default();
    for option in given {
        let text = option.trim().trim_start_matches('-');
        let Some((name, value)) = text.split_once('=') else {
            let message = format!("option {option:?} is not of the form name=value");
            return Err(CompileError::rejected(FailureCode::InvalidCompilerOption, message));
        };
        let name = name.trim().replace('-', "_");
        let value = value.trim();
        if matches!(name.as_str(), "arch" | "gpu_name") {
            checked.arch = Some(arch(option, value)?);
            continue;
        }
        if let Some((_, why)) = ELSEWHERE.iter().find(|(known, _)| *known == name) {
            let message = format!("option {name:?} is not accepted: {why}");
            return Err(CompileError::rejected(FailureCode::CompilerOptionRefused, message));
        }
        if !PASSED.contains(&name.as_str()) {
            let message = format!(
                "option {name:?} is unknown; the known options are arch, {}",
                PASSED.join(", ")
            );
            return Err(CompileError::rejected(FailureCode::UnknownCompilerOption, message));
        }
        checked.keywords.insert(name, value_of(value));
    }
    Ok(checked)
}

fn value_of(text: &str) -> Value {
    match text {
        "true" | "True" => Value::Bool(true),
        "false" | "False" => Value::Bool(false),
        _ => text.parse::<i64>().map_or_else(|_| Value::from(text), Value::from),
    }
}

fn arch(option: &str, value: &str) -> Result<u32, CompileError> {
    let digits = value.trim_start_matches("sm_").trim_start_matches("sm").trim_end_matches('a');
    digits.parse().ok().filter(|number| (70..=199).contains(number)).ok_or_else(|| {
        let message = format!("option {option:?} is not an architecture such as sm_80");
        CompileError::rejected(FailureCode::InvalidCompilerOption, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(option: &str) -> Result<Checked, String> {
        check(&[option.to_owned()]).map_err(|error| error.to_string())
    }

    #[test]
    fn options_are_keywords_in_any_spelling() {
        for option in ["enable_fp_fusion=false", "--enable-fp-fusion=False"] {
            let checked = checked(option).unwrap();
            assert_eq!(checked.keywords["enable_fp_fusion"], Value::Bool(false), "{option}");
        }
        for option in ["arch=80", "-arch=sm_80", "--gpu-name=sm80"] {
            assert_eq!(checked(option).unwrap().arch, Some(80), "{option}");
        }
        assert_eq!(checked("-arch=sm_90a").unwrap().arch, Some(90));
    }

    #[test]
    fn what_is_not_taken_is_refused_by_name() {
        for (option, part) in [
            ("extern_libs=/etc/passwd", "only the libraries"),
            ("num_warps=4", "io.launch"),
            ("-O3", "name=value"),
            ("nonsense=1", "is unknown"),
            ("arch=pentium", "not an architecture"),
        ] {
            let message = checked(option).unwrap_err();
            assert!(message.contains(part), "{option}: {message}");
        }
    }
}
