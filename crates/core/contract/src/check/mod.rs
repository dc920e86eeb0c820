//! Checks a parsed request against the contract's rules, without executing or decoding anything.
//! The main function is [`validate`].

mod args;
mod code;
mod data;
mod element_types;
mod family;
mod files;
mod outputs;
pub(crate) mod program;
pub(crate) mod torch;

pub(crate) use args::check_name;
pub use files::MAX_FILES;

use super::error::{ContractError, Mistakes, quoted};
use super::{ContractLimits, EvaluateRequest, Isolation, KernelCode, KernelType, Tolerance};
use super::{NamesMatrices, NamesTensors, named, shared};
use warpgauge_metrics::{select, unknown_name};
use warpgauge_model::{FailureCode, Regime, Requirements};

/// Allowed numbers of timed launches.
const NUM_TRIALS: std::ops::RangeInclusive<u32> = 1..=10_000;
/// Allowed timeouts, seconds.
const TIMEOUT_S: std::ops::RangeInclusive<f64> = 0.1..=600.0;
/// Allowed total times of timed launches, seconds.
const MEASURE_TIME_S: std::ops::RangeInclusive<f64> = 0.001..=600.0;
const WARMUP_S: std::ops::RangeInclusive<f64> = 0.0..=10.0;
const MAX_PROFILE_ENTRIES: usize = 256;
/// Tools that a request may require.
const TOOLS: [&str; 3] = ["ncu", "nsys", "compute-sanitizer"];

/// Checks everything that needs no decoded tensor data. ¶ # Errors ¶ All mistakes, up to
/// `limits.max_errors`. Unresolved names of matrices and shared tensors are reported alone.
pub fn validate(
    request: &EvaluateRequest,
    limits: &ContractLimits,
) -> Result<(), Vec<ContractError>> {
    let mut mistakes = Mistakes::new(limits.max_errors);
    named::unresolved(&request.matrix_names(), &mut mistakes);
    shared::unresolved(&request.tensor_names(), &mut mistakes);
    mistakes.into_result()?;
    let mut mistakes = Mistakes::new(limits.max_errors);
    settings(request, &mut mistakes);
    required(&request.requires, &mut mistakes);
    family::check_evaluation(request, limits, &mut mistakes);
    mistakes.into_result()
}

/// Checks that the requirements are valid. Whether a server meets them is not known here.
fn required(requires: &Requirements, mistakes: &mut Mistakes) {
    if let Some((field, message)) = requires.problem() {
        mistakes.add(format!("requires.{field}"), FailureCode::InvalidRequirement, message);
    }
    for tool in requires.tools.iter().filter(|tool| !TOOLS.contains(&tool.as_str())) {
        let message = format!("expected one of {}, got `{}`", TOOLS.join(", "), quoted(tool));
        mistakes.add("requires.tools", FailureCode::InvalidRequirement, message);
    }
}

/// Checks a kernel that is compiled and not run. It needs no launch, and only a Triton kernel needs
/// `io`.
pub fn validate_kernel(
    kernel: &KernelCode,
    limits: &ContractLimits,
) -> Result<(), Vec<ContractError>> {
    let mut mistakes = Mistakes::new(limits.max_errors);
    if let Some(message) = family::not_compiled_because(kernel) {
        mistakes.add("kernel.kernel_type", FailureCode::UnsupportedKernelType, message);
        return mistakes.into_result();
    }
    let mut tensors = shared::TensorNames::new();
    shared::in_kernel(kernel, "kernel", &mut tensors);
    shared::unresolved(&tensors, &mut mistakes);
    code::check(kernel, limits, "kernel", &mut mistakes);
    if kernel.kernel_type == KernelType::Triton {
        match &kernel.io {
            Some(io) => args::check(&io.args, kernel.kernel_type, limits, &mut mistakes),
            None => mistakes.add(
                "kernel.io",
                FailureCode::MissingIo,
                "a Triton kernel is compiled for the types of its arguments: give `io.args`",
            ),
        }
    }
    mistakes.into_result()
}

/// Checks everything except kernel and tensors.
fn settings(request: &EvaluateRequest, mistakes: &mut Mistakes) {
    if let Some(trials) = request.num_trials {
        mistakes.require(
            NUM_TRIALS.contains(&trials),
            "num_trials",
            FailureCode::OutOfRange,
            || format!("must be 1 to 10000, not {trials}"),
        );
    }
    mistakes.require(
        TIMEOUT_S.contains(&request.timeout),
        "timeout",
        FailureCode::OutOfRange,
        || format!("must be 0.1 to 600 seconds, not {}", request.timeout),
    );
    if let Some(tolerance) = &request.tolerance {
        check_tolerance(tolerance, mistakes);
    }
    if let Some(work) = &request.work {
        for (field, value) in [("bytes", work.bytes), ("flops", work.flops)] {
            non_negative(&format!("work.{field}"), value, mistakes);
        }
    }
    let steady =
        request.measure.regime != Regime::Sustained || request.isolation != Isolation::Sealed;
    mistakes.require(steady, "measure.regime", FailureCode::OutOfRange, || {
        "must be `isolated` with `isolation: sealed`: another process starts every sealed launch, \
         so the load cannot be steady"
            .to_owned()
    });
    if let Some(seconds) = request.measure.min_warmup_time {
        mistakes.require(
            WARMUP_S.contains(&seconds),
            "measure.min_warmup_time",
            FailureCode::OutOfRange,
            || format!("must be 0 to 10 seconds, not {seconds}"),
        );
    }
    if let Some(seconds) = request.measure.max_time {
        mistakes.require(
            MEASURE_TIME_S.contains(&seconds),
            "measure.max_time",
            FailureCode::OutOfRange,
            || format!("must be 0.001 to 600 seconds, not {seconds}"),
        );
    }
    if let Some(profile) = &request.profile {
        for (field, names) in [("tools", &profile.tools), ("metrics", &profile.metrics)] {
            let fits = names.len() <= MAX_PROFILE_ENTRIES
                && names.iter().all(|name| !name.is_empty() && name.len() <= MAX_PROFILE_ENTRIES);
            mistakes.require(fits, format!("profile.{field}"), FailureCode::TooLarge, || {
                format!(
                    "at most {MAX_PROFILE_ENTRIES} names of 1 to {MAX_PROFILE_ENTRIES} bytes each"
                )
            });
        }
        for (index, name) in profile.metrics.iter().enumerate().take(MAX_PROFILE_ENTRIES) {
            let known = name.is_empty() || select(std::slice::from_ref(name)).unknown.is_empty();
            mistakes.require(
                known,
                format!("profile.metrics[{index}]"),
                FailureCode::UnknownMetric,
                || unknown_name(name),
            );
        }
    }
}

fn check_tolerance(tolerance: &Tolerance, mistakes: &mut Mistakes) {
    for (field, value) in [("atol", tolerance.atol), ("rtol", tolerance.rtol)] {
        non_negative(&format!("tolerance.{field}"), value, mistakes);
    }
    if let Some(ratio) = tolerance.required_matched_ratio {
        mistakes.require(
            (0.0..=1.0).contains(&ratio),
            "tolerance.required_matched_ratio",
            FailureCode::OutOfRange,
            || format!("must be 0 to 1, not {ratio}"),
        );
    }
}

fn non_negative(path: &str, value: Option<f64>, mistakes: &mut Mistakes) {
    if let Some(value) = value {
        mistakes.require(value.is_finite() && value >= 0.0, path, FailureCode::OutOfRange, || {
            format!("must be a finite number of at least 0, not {value}")
        });
    }
}

#[cfg(test)]
mod tests;
