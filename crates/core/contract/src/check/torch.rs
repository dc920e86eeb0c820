//! Checks of Python kernels that are run: they have no launch, and may define their own arguments.

use super::{args, code, data, outputs};
use crate::error::Mistakes;
use crate::{
    ContractLimits, EvaluateRequest, IoContract, KernelCode, KernelFamily, KernelMetadata, Role,
};
use warpgauge_model::{DeviceKind, FailureCode};

/// Checks a torch kernel to evaluate.
pub(super) fn check(request: &EvaluateRequest, limits: &ContractLimits, mistakes: &mut Mistakes) {
    let kernel = &request.kernel;
    alone(kernel, "kernel", limits, mistakes);
    not_emulated(request, mistakes);
    let none = IoContract::default();
    let io = kernel.io.as_ref().unwrap_or(&none);
    if io.args.is_empty() && !request.expected.is_empty() {
        mistakes.add(
            "expected",
            FailureCode::MissingIo,
            "the contract must name the outputs: give `io.args`, or compare two kernels",
        );
        return;
    }
    args::check(&io.args, kernel.kernel_type, limits, mistakes);
    outputs::check(request, io, limits, mistakes);
    if kernel.wants_backward() {
        backward(request, mistakes);
    }
    data::check(request, limits, mistakes);
}

/// Checks a torch kernel in any position; `path` is its path in the request.
pub(super) fn alone(
    kernel: &KernelCode,
    path: &str,
    limits: &ContractLimits,
    mistakes: &mut Mistakes,
) {
    code::check(kernel, limits, path, mistakes);
    if let Some(metadata) = &kernel.metadata {
        entry(metadata, &format!("{path}.metadata"), limits, mistakes);
    }
    let launched = kernel.io.as_ref().is_some_and(|io| io.launch.is_some());
    mistakes.require(!launched, format!("{path}.io.launch"), FailureCode::WrongField, || {
        "a torch kernel is called and not launched: leave `launch` out".to_owned()
    });
}

/// Checks the names of the function or class. Compiler settings are rejected.
fn entry(metadata: &KernelMetadata, path: &str, limits: &ContractLimits, mistakes: &mut Mistakes) {
    let names = [
        ("function_name", &metadata.function_name),
        ("entry_point", &metadata.entry_point),
        ("class_name", &metadata.class_name),
        ("method_name", &metadata.method_name),
    ];
    for (field, name) in names {
        let Some(name) = name else { continue };
        let fits = (1..=limits.max_name_len).contains(&name.len())
            && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        mistakes.require(fits, format!("{path}.{field}"), FailureCode::InvalidName, || {
            format!(
                "must be the name of a function, class or method in the source, of at most {} \
                 bytes",
                limits.max_name_len
            )
        });
    }
    let function = metadata.function_name.is_some() || metadata.entry_point.is_some();
    let class = metadata.class_name.is_some() || metadata.method_name.is_some();
    mistakes.require(!(function && class), path, FailureCode::ConflictingFields, || {
        "name a function (`function_name`) or a class and its method (`class_name`, `method_name`), \
         not both"
            .to_owned()
    });
    let theirs = [
        ("kernel_name", metadata.kernel_name.is_some()),
        ("compiler_options", !metadata.compiler_options.is_empty()),
        ("backend", metadata.backend.is_some()),
        ("name_expressions", !metadata.name_expressions.is_empty()),
        ("configuration", metadata.configuration.is_some()),
    ];
    for (field, given) in theirs {
        mistakes.require(!given, format!("{path}.{field}"), FailureCode::WrongField, || {
            format!("a torch kernel has no `{field}`; name what to call in `function_name` or `class_name`")
        });
    }
}

/// Rejects the emulated device, which runs no Python.
fn not_emulated(request: &EvaluateRequest, mistakes: &mut Mistakes) {
    let emulated = request.requires.device == Some(DeviceKind::Emulator);
    mistakes.require(!emulated, "requires.device", FailureCode::InvalidRequirement, || {
        "torch kernels run on GPUs and on the CPU, but not on the emulated device: leave it out"
            .to_owned()
    });
}

/// Checks a request for gradients. Inputs that the function changes have no gradients, and one
/// kernel must compute all expected outputs.
fn backward(request: &EvaluateRequest, mistakes: &mut Mistakes) {
    let args = request.kernel.io.iter().flat_map(|io| &io.args).enumerate();
    for (index, arg) in args.filter(|(_, arg)| arg.role == Role::Inout) {
        let path = format!("kernel.io.args[{index}].role");
        let message = format!(
            "`{}` has no gradient if the call changes it (`metadata.backward`): return it as an output",
            arg.name
        );
        mistakes.add(path, FailureCode::WrongField, message);
    }
    let outputs = request.kernel.io.iter().flat_map(|io| &io.args).filter(|arg| arg.is_output());
    let kernels = outputs.map(|arg| request.expected.get(&arg.name)?.kernel.as_deref());
    let kernels: Vec<_> = kernels.collect();
    let Some(first) = kernels.iter().find_map(|kernel| *kernel) else { return };
    let text = |kernel: &KernelCode| serde_json::to_string(kernel).ok();
    let same = |kernel: &Option<&KernelCode>| kernel.is_some_and(|one| text(one) == text(first));
    let one = first.family() == KernelFamily::Torch && kernels.iter().all(same);
    mistakes.require(one, "expected", FailureCode::ConflictingFields, || {
        "with `metadata.backward`, one torch kernel must compute all expected outputs, so that it \
         has their gradients; or give values as `data`, in which case gradients are not compared"
            .to_owned()
    });
}

impl KernelMetadata {
    /// Returns the function that a Python kernel names in `function_name` or `entry_point`.
    pub fn python_function(&self) -> Option<&str> {
        self.function_name.as_deref().or(self.entry_point.as_deref())
    }
}
