//! Checks of expected and returned outputs, and of the memory of all tensors together.

use super::{args, family, program};
use crate::error::{Mistakes, quoted};
use crate::{
    ArgKind, ArgSpec, ContractLimits, EvaluateRequest, Expected, IoContract, KernelCode,
    KernelRuntime, KernelType, ReturnOutputs, Role, TensorSpec, compare_as, triton,
};
use warpgauge_model::FailureCode;
use warpgauge_tensor::{Dtype, TensorData, shape};

pub(super) fn check(
    request: &EvaluateRequest,
    io: &IoContract,
    limits: &ContractLimits,
    mistakes: &mut Mistakes,
) {
    for (name, expected) in &request.expected {
        if mistakes.full() {
            return;
        }
        let path = format!("expected.{}", quoted(name));
        if let Some(arg) = output_named(name, io, &path, mistakes) {
            let candidate = request.kernel.kernel_type;
            check_expected(expected, arg, (io, candidate), limits, &path, mistakes);
        }
    }
    let has_expectation = |name: &str| request.expected.contains_key(name);
    compare_as::check(
        &request.compare_as,
        &io.args,
        request.kernel.kernel_type,
        has_expectation,
        mistakes,
    );
    returned(request, io, limits, mistakes);
    kept(request, io, limits, mistakes);
    total(request, io, limits, mistakes);
}

impl ArgSpec {
    /// Returns whether the argument is a tensor that the kernel writes.
    pub fn is_output(&self) -> bool {
        self.kind == ArgKind::Tensor && matches!(self.role, Role::Output | Role::Inout)
    }

    /// Returns whether the kernel reads the content that the argument has before the launch.
    pub fn is_read(&self) -> bool {
        matches!(self.role, Role::Input | Role::Inout)
    }

    /// Returns the size of the argument's tensor, bytes; 0 for a scalar or an invalid shape, which
    /// another check reports.
    pub(crate) fn tensor_bytes(&self) -> u64 {
        self.tensor_spec
            .as_ref()
            .and_then(|spec| shape::bytes(&spec.shape, spec.dtype).ok())
            .unwrap_or(0)
    }
}

fn output_named<'a>(
    name: &str,
    io: &'a IoContract,
    path: &str,
    mistakes: &mut Mistakes,
) -> Option<&'a ArgSpec> {
    match io.args.iter().find(|arg| arg.name == name) {
        Some(arg) if arg.is_output() => Some(arg),
        Some(_) => {
            let message = format!(
                "`{}` is not an output; give it `role: output` or `role: inout`",
                quoted(name)
            );
            mistakes.add(path, FailureCode::NotAnOutput, message);
            None
        }
        None => {
            let outputs: Vec<&str> =
                io.args.iter().filter(|arg| arg.is_output()).map(|arg| arg.name.as_str()).collect();
            let message = format!(
                "no argument `{}`; the outputs are: {}",
                quoted(name),
                if outputs.is_empty() { "none".to_owned() } else { quoted(&outputs.join(", ")) }
            );
            mistakes.add(path, FailureCode::UnknownOutput, message);
            None
        }
    }
}

fn check_expected(
    expected: &Expected,
    arg: &ArgSpec,
    (io, candidate): (&IoContract, KernelType),
    limits: &ContractLimits,
    path: &str,
    mistakes: &mut Mistakes,
) {
    if let Some(bounds) = &expected.bounds {
        check_bounds(bounds, expected, arg, candidate, &format!("{path}.bounds"), mistakes);
    }
    program::not_of_outputs(expected, path, mistakes);
    if expected.times.is_some() {
        let message = "goes with `matrix`, the name of the matrix that is multiplied by it";
        mistakes.add(format!("{path}.times"), FailureCode::MissingField, message);
    }
    match (&expected.data, &expected.kernel) {
        (Some(data), None) => {
            if let Some(spec) = &arg.tensor_spec {
                args::check_data(data, spec, &format!("{path}.data"), mistakes);
            }
        }
        (None, Some(kernel)) => {
            let path = format!("{path}.kernel");
            reference(kernel, io, candidate, limits, &path, mistakes);
        }
        (Some(_), Some(_)) => {
            mistakes.add(path, FailureCode::ConflictingFields, "give `data` or `kernel`, not both");
        }
        (None, None) => mistakes.add(
            path,
            FailureCode::MissingField,
            "give the values as `data`, or a reference `kernel` that computes them",
        ),
    }
}

/// Checks error bounds. They require `data`, and contain one binary64 number for each of its
/// elements.
fn check_bounds(
    bounds: &TensorData,
    expected: &Expected,
    arg: &ArgSpec,
    candidate: KernelType,
    path: &str,
    mistakes: &mut Mistakes,
) {
    let message = match (&arg.tensor_spec, candidate) {
        _ if expected.data.is_none() => "error bounds require expected values: give `data`",
        (_, kind) if kind.family().runtime() == KernelRuntime::Judge => {
            "a torch kernel is checked within `tolerance` alone: leave it out"
        }
        (Some(spec), _) if !spec.dtype.is_float() => "integers are exact: leave it out",
        (Some(spec), _) if spec.dtype.parts() > 1 => {
            "an element of several numbers has no single error bound: give `tolerance`"
        }
        (Some(spec), _) => {
            let spec = TensorSpec::new(spec.shape.clone(), Dtype::Float64);
            return args::check_data(bounds, &spec, path, mistakes);
        }
        (None, _) => return,
    };
    mistakes.add(path, FailureCode::WrongField, message);
}

/// Checks a reference kernel. Arguments that it lists must include the candidate's tensors in the
/// same order.
fn reference(
    kernel: &KernelCode,
    io: &IoContract,
    candidate: KernelType,
    limits: &ContractLimits,
    path: &str,
    mistakes: &mut Mistakes,
) {
    let kind = kernel.kernel_type;
    if program::is_misplaced(kind, &format!("{path}.kernel_type"), mistakes) {
        return;
    }
    family::check_reference(kernel, (io, candidate), limits, path, mistakes);
}

/// Checks the arguments that a reference lists. They must include the candidate's tensors in the same order. Scalars
/// and scratch memory may be its own.
pub(super) fn check_reference_arguments(
    kernel: &KernelCode,
    io: &IoContract,
    limits: &ContractLimits,
    path: &str,
    mistakes: &mut Mistakes,
) {
    let own = kernel.io.as_ref().map_or(&[][..], |own| &own.args);
    let names = |args: &[ArgSpec]| {
        let shared =
            |arg: &&ArgSpec| arg.kind == ArgKind::Tensor && !arg.is_meta && !arg.is_private();
        args.iter().filter(shared).map(|arg| arg.name.clone()).collect::<Vec<_>>()
    };
    if own.len() > limits.max_args {
        let message = format!("{} arguments; at most {} are accepted", own.len(), limits.max_args);
        mistakes.add(format!("{path}.io.args"), FailureCode::TooLarge, message);
        return;
    }
    let whole = kernel.as_reference(io, kernel.kernel_type).io.unwrap_or_default();
    args::check_pointer_total(&whole.args, &format!("{path}.io.args"), mistakes);
    for (index, arg) in own.iter().enumerate() {
        let path = format!("{path}.io.args[{index}]");
        if !arg.is_private() {
            triton::check_argument(arg, kernel.kernel_type, &path, mistakes);
            let is_own = arg.kind != ArgKind::Tensor && !arg.is_meta;
            if !is_own || io.args.iter().any(|theirs| theirs.name == arg.name) {
                continue;
            }
        }
        // The argument's shape and fields may use the candidate's arguments.
        let settled = whole.args.iter().find(|other| other.name == arg.name).unwrap_or(arg);
        args::check_one(&whole.args, settled, kernel.kernel_type, limits, &path, mistakes);
        let others = own.iter().chain(io.args.iter().filter(|arg| !arg.is_private()));
        let named = others.filter(|other| other.name == arg.name).count();
        mistakes.require(named == 1, format!("{path}.name"), FailureCode::DuplicateName, || {
            format!("another argument is named `{}` too", quoted(&arg.name))
        });
    }
    let lists = own.iter().any(|arg| !arg.is_meta && !arg.is_private());
    if lists && names(own) != names(&io.args) {
        let message = "a reference kernel takes the candidate's tensors in the same order, and \
                       may have its own scalars; leave `args` empty to take the candidate's \
                       arguments";
        mistakes.add(format!("{path}.io.args"), FailureCode::ReferenceArgsDiffer, message);
    }
}

fn returned(
    request: &EvaluateRequest,
    io: &IoContract,
    limits: &ContractLimits,
    mistakes: &mut Mistakes,
) {
    let bytes = match &request.return_outputs {
        ReturnOutputs::None => 0,
        ReturnOutputs::All => sum(io.args.iter().filter(|arg| arg.is_output())),
        ReturnOutputs::Names(names) if names.len() > limits.max_args => {
            let message =
                format!("{} names; at most {} are accepted", names.len(), limits.max_args);
            mistakes.add("return_outputs", FailureCode::TooLarge, message);
            0
        }
        ReturnOutputs::Names(names) => {
            let mut found = Vec::new();
            for (index, name) in names.iter().enumerate() {
                let path = format!("return_outputs[{index}]");
                found.extend(output_named(name, io, &path, mistakes));
            }
            sum(found)
        }
    };
    mistakes.require(
        bytes <= limits.max_output_bytes,
        "return_outputs",
        FailureCode::TooLarge,
        || {
            format!(
                "the requested outputs have {bytes} bytes; at most {} are returned. Request fewer \
                 (the answer always contains the hashes of all outputs)",
                limits.max_output_bytes
            )
        },
    );
}

/// Checks kept outputs. They take disk space until a process holds them as shared tensors.
fn kept(
    request: &EvaluateRequest,
    io: &IoContract,
    limits: &ContractLimits,
    mistakes: &mut Mistakes,
) {
    let mut found = Vec::new();
    for name in request.keep_outputs.keys() {
        if mistakes.full() {
            return;
        }
        found.extend(output_named(name, io, &format!("keep_outputs.{}", quoted(name)), mistakes));
    }
    let bytes = sum(found);
    mistakes.require(
        bytes <= limits.max_decoded_bytes,
        "keep_outputs",
        FailureCode::TooLarge,
        || {
            format!(
                "the outputs to keep have {bytes} bytes; at most {} can be kept per evaluation \
                 (limits.max_decoded_bytes). Keep fewer",
                limits.max_decoded_bytes
            )
        },
    );
}

/// Checks the memory of all tensors, with a second copy of every compared output.
fn total(
    request: &EvaluateRequest,
    io: &IoContract,
    limits: &ContractLimits,
    mistakes: &mut Mistakes,
) {
    let compared = io.args.iter().filter(|arg| request.expected.contains_key(&arg.name));
    let references = request.expected.values().filter_map(|expected| expected.kernel.as_ref());
    let theirs = references.filter_map(|kernel| kernel.io.as_ref());
    let scratch = |io: &IoContract| sum(io.args.iter().filter(|arg| arg.role == Role::Scratch));
    // Outputs mostly share one reference.
    let scratch = theirs.map(scratch).max().unwrap_or(0);
    let bytes = sum(io.args.iter()).saturating_add(sum(compared)).saturating_add(scratch);
    mistakes.require(
        bytes <= limits.max_total_bytes,
        "kernel.io.args",
        FailureCode::TooLarge,
        || {
            format!(
                "all tensors together, expected ones included, have {bytes} bytes; at most {} are \
             accepted",
                limits.max_total_bytes
            )
        },
    );
}

fn sum<'a>(args: impl IntoIterator<Item = &'a ArgSpec>) -> u64 {
    args.into_iter().fold(0, |sum, arg| sum.saturating_add(arg.tensor_bytes()))
}
