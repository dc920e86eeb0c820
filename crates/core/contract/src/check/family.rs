//! Rules of each kernel family. A new family needs an arm in each function here, and nothing else
//! in `check`.

use super::{args, code, data, outputs, program, torch};
use crate::error::Mistakes;
use crate::resolve::{Names, resolve_into};
use crate::{
    ContractLimits, EvaluateRequest, IoContract, KernelCode, KernelFamily, KernelMetadata,
    KernelType, Sanitize, launches, library,
};
use warpgauge_model::FailureCode;

/// Checks a kernel to evaluate, and its expected outputs.
pub(super) fn check_evaluation(
    request: &EvaluateRequest,
    limits: &ContractLimits,
    mistakes: &mut Mistakes,
) {
    match request.kernel.family() {
        KernelFamily::Device => launched(request, limits, mistakes, |_, _| ()),
        KernelFamily::Library => launched(request, limits, mistakes, |io, mistakes| {
            library::call_of(&request.kernel, &io.args, "kernel", mistakes);
            unwatched(request, mistakes);
        }),
        KernelFamily::Torch => torch::check(request, limits, mistakes),
        KernelFamily::Program => program::check(request, limits, mistakes),
        #[cfg(feature = "example-kernel")]
        KernelFamily::Example => code::check(&request.kernel, limits, "kernel", mistakes),
    }
}

/// Rejects metadata that belongs to kernels of other families. `path` is its path in the request.
pub(super) fn check_metadata(
    family: KernelFamily,
    metadata: &KernelMetadata,
    path: &str,
    mistakes: &mut Mistakes,
) {
    match family {
        KernelFamily::Device | KernelFamily::Torch => {
            library::check_others(metadata, path, mistakes);
            program::check_others(metadata, path, mistakes);
        }
        KernelFamily::Library => program::check_others(metadata, path, mistakes),
        KernelFamily::Program => library::check_others(metadata, path, mistakes),
        #[cfg(feature = "example-kernel")]
        KernelFamily::Example => {
            library::check_others(metadata, path, mistakes);
            program::check_others(metadata, path, mistakes);
        }
    }
}

/// Checks a kernel that computes the expected outputs of a candidate. `io` is the candidate's.
pub(super) fn check_reference(
    kernel: &KernelCode,
    (io, candidate): (&IoContract, KernelType),
    limits: &ContractLimits,
    path: &str,
    mistakes: &mut Mistakes,
) {
    match kernel.family() {
        KernelFamily::Device => {
            code::check(kernel, limits, path, mistakes);
            outputs::check_reference_arguments(kernel, io, limits, path, mistakes);
            launch_of_reference(kernel, (io, candidate), limits, path, mistakes);
        }
        KernelFamily::Library => {
            code::check(kernel, limits, path, mistakes);
            outputs::check_reference_arguments(kernel, io, limits, path, mistakes);
            launch_of_reference(kernel, (io, candidate), limits, path, mistakes);
            library::call_of(kernel, &io.args, path, mistakes);
        }
        KernelFamily::Torch => {
            torch::alone(kernel, path, limits, mistakes);
            outputs::check_reference_arguments(kernel, io, limits, path, mistakes);
        }
        // A program computes no outputs; another check rejects its type as a reference.
        KernelFamily::Program => (),
        #[cfg(feature = "example-kernel")]
        KernelFamily::Example => (),
    }
}

/// Returns the reason why a kernel cannot be compiled without a run, or `None` if it can.
pub(super) fn not_compiled_because(kernel: &KernelCode) -> Option<String> {
    match kernel.family() {
        KernelFamily::Device => None,
        KernelFamily::Library => {
            Some("a library's function is called and not compiled: evaluate it".to_owned())
        }
        KernelFamily::Torch | KernelFamily::Program => Some(format!(
            "a kernel of the type `{}` is run and not compiled: evaluate it",
            kernel.kernel_type.name()
        )),
        #[cfg(feature = "example-kernel")]
        KernelFamily::Example => {
            Some("an expression is evaluated and not compiled: evaluate it".to_owned())
        }
    }
}

/// Checks a kernel that a worker runs; `own` runs the additional checks of its family.
fn launched(
    request: &EvaluateRequest,
    limits: &ContractLimits,
    mistakes: &mut Mistakes,
    own: impl FnOnce(&IoContract, &mut Mistakes),
) {
    let kernel = &request.kernel;
    code::check(kernel, limits, "kernel", mistakes);
    let Some(io) = &kernel.io else {
        mistakes.add(
            "kernel.io",
            FailureCode::MissingIo,
            "device kernels need `io`: their arguments and launch configuration",
        );
        return;
    };
    args::check(&io.args, kernel.kernel_type, limits, mistakes);
    if kernel.launches.is_empty() {
        let names = Names::of_submitted(kernel.kernel_type);
        resolve_into(io, names, limits, "kernel.io.launch", mistakes);
    } else if !mistakes.any() {
        launches::resolve_into(kernel, io, limits, "kernel", mistakes);
    }
    own(io, mistakes);
    outputs::check(request, io, limits, mistakes);
    data::check(request, limits, mistakes);
}

fn launch_of_reference(
    kernel: &KernelCode,
    (io, candidate): (&IoContract, KernelType),
    limits: &ContractLimits,
    path: &str,
    mistakes: &mut Mistakes,
) {
    if !kernel.launches.is_empty() {
        if !mistakes.any() {
            let whole = kernel.as_reference(io, candidate);
            let io = whole.io.clone().unwrap_or_default();
            launches::resolve_into(&whole, &io, limits, path, mistakes);
        }
        return;
    }
    let brings_launch = kernel.io.as_ref().is_some_and(|own| own.launch.is_some());
    if !brings_launch && kernel.kernel_type == candidate {
        return;
    }
    let whole = kernel.as_reference(io, candidate);
    let names = Names::of_submitted(kernel.kernel_type);
    let at = format!("{path}.io.launch");
    resolve_into(&whole.io.unwrap_or_default(), names, limits, &at, mistakes);
}

/// Rejects settings that have no effect on a library's function.
fn unwatched(request: &EvaluateRequest, mistakes: &mut Mistakes) {
    mistakes.require(request.profile.is_none(), "profile", FailureCode::WrongField, || {
        "hardware metrics of a library's function are not supported: leave it out".to_owned()
    });
    mistakes.require(
        request.sanitize == Sanitize::Off,
        "sanitize",
        FailureCode::WrongField,
        || "memory checks of a library's function are not supported: leave it out".to_owned(),
    );
}
