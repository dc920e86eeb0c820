//! Checks of a list of steps as it is written, before loops are unrolled.

use serde_json::Value;

use super::{LaunchStep, MAX_LISTED, MAX_LOOPS};
use crate::error::{Mistakes, quoted};
use crate::{ArgKind, ArgSpec, ContractLimits, Extent, KernelCode, Launch, Role};
use warpgauge_model::FailureCode;

/// A step of the list that is not a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Path of the step in the kernel, such as `launches[1].steps[0]`.
    pub path: String,
    /// What the step does, such as `relax` for the launch of a kernel of this name, or `memset hist`.
    pub what: String,
}

/// Returns the steps of a kernel's `launches` that are not loops, in the order of the list.
pub fn lines_of(kernel: &KernelCode) -> Vec<Line> {
    let mut lines = Vec::new();
    listed(&kernel.launches, "launches", &mut lines);
    lines
}

/// A step of a list, with the index of its line.
pub(super) struct Listed<'a> {
    pub step: &'a LaunchStep,
    /// Launch configuration of the step, if it launches a kernel.
    pub launch: Launch,
    pub path: String,
    /// Index of the step's line. For a loop, index of the first line inside it.
    pub line: usize,
    /// Size of the step's arguments and expressions, which are evaluated each time, bytes.
    pub size: usize,
    pub steps: Vec<Listed<'a>>,
}

/// Numbers the steps of a list. `lines` receives those that are not loops.
pub(super) fn listed<'a>(
    steps: &'a [LaunchStep],
    path: &str,
    lines: &mut Vec<Line>,
) -> Vec<Listed<'a>> {
    let number = |(index, step): (usize, &'a LaunchStep)| {
        let (path, line) = (format!("{path}[{index}]"), lines.len());
        let inner = if step.steps.is_empty() {
            lines.push(Line { path: path.clone(), what: what(step) });
            Vec::new()
        } else {
            listed(&step.steps, &format!("{path}.steps"), lines)
        };
        Listed { step, launch: step.launch(), path, line, size: size(step), steps: inner }
    };
    steps.iter().enumerate().map(number).collect()
}

/// Bytes that an argument or an extent counts in addition to its text.
pub(super) const EACH: usize = 16;

/// Returns the size of a step's arguments and expressions, bytes. Each counts `EACH` bytes in
/// addition to its text.
fn size(step: &LaunchStep) -> usize {
    let text = |extent: &Extent| match extent {
        Extent::Value(_) => EACH,
        Extent::Expression(text) => EACH + text.len(),
    };
    let dims = [&step.grid, &step.block, &step.cluster].into_iter().flatten();
    let extents = dims.flat_map(|dim| [&dim.x, &dim.y, &dim.z]);
    let others = [&step.shared_memory_bytes, &step.repeat, &step.most].into_iter().flatten();
    let args = step.args.iter().flatten();
    let args = args.map(value_size);
    extents.chain(others).map(text).chain(args).sum()
}

/// Returns the size of an argument, bytes, including the fields of a structure.
fn value_size(value: &Value) -> usize {
    EACH + match value {
        Value::String(text) => text.len(),
        Value::Array(elements) => elements.iter().map(value_size).sum(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| name.len() + value_size(value)).sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

fn what(step: &LaunchStep) -> String {
    if let Some(kernel) = &step.kernel {
        return kernel.clone();
    }
    match (&step.memset, &step.memcpy, &step.swap) {
        (Some(tensor), ..) => format!("memset {tensor}"),
        (_, Some(copy), _) => format!("memcpy {} to {}", copy.from, copy.to),
        (.., Some([a, b])) => format!("swap {a} and {b}"),
        _ => String::new(),
    }
}

/// Checks that the kernel's type allows a list of launches, and that no field contradicts the list.
pub(crate) fn check_fields(kernel: &KernelCode, path: &str, mistakes: &mut Mistakes) {
    let has_any = !kernel.launches.is_empty() || !kernel.setup.is_empty();
    if !has_any {
        return;
    }
    let able = kernel.kernel_type.has_launches();
    mistakes.require(able, format!("{path}.launches"), FailureCode::WrongField, || {
        format!(
            "only kernels of the types cuda, ptx, cubin and fatbin have a list of launches, not {}: leave it out",
            kernel.kernel_type.name()
        )
    });
    mistakes.require(
        !kernel.launches.is_empty(),
        format!("{path}.launches"),
        FailureCode::MissingField,
        || "`setup` requires `launches`: give the steps that are timed, too".to_owned(),
    );
    let one = kernel.io.as_ref().is_none_or(|io| io.launch.is_none());
    mistakes.require(one, format!("{path}.io.launch"), FailureCode::ConflictingFields, || {
        "each step of `launches` has its own grid and block: leave `io.launch` out".to_owned()
    });
    let named = kernel.metadata.as_ref().is_none_or(|metadata| metadata.name().is_none());
    mistakes.require(
        named,
        format!("{path}.metadata.kernel_name"),
        FailureCode::ConflictingFields,
        || "each step of `launches` names its kernel: leave it out".to_owned(),
    );
}

/// Checks the steps of a list one by one.
pub(super) fn check(
    steps: &[LaunchStep],
    (args, is_setup): (&[ArgSpec], bool),
    limits: &ContractLimits,
    path: &str,
    mistakes: &mut Mistakes,
) {
    let mut count = 0;
    for (index, step) in steps.iter().enumerate() {
        count_steps(step, 0, &mut count);
        if count > MAX_LISTED {
            let message = format!(
                "at most {MAX_LISTED} steps can be listed; repeat them by `repeat` or `while`"
            );
            mistakes.add(path, FailureCode::TooLarge, message);
            return;
        }
        let checker = Checker { args, is_setup, limits };
        checker.step(step, (0, false), &format!("{path}[{index}]"), mistakes);
    }
}

/// Counts steps down to the maximum depth of nesting.
fn count_steps(step: &LaunchStep, depth: usize, count: &mut usize) {
    *count += 1;
    if depth <= MAX_LOOPS && *count <= MAX_LISTED {
        step.steps.iter().for_each(|inner| count_steps(inner, depth + 1, count));
    }
}

struct Checker<'a> {
    args: &'a [ArgSpec],
    is_setup: bool,
    limits: &'a ContractLimits,
}

impl Checker<'_> {
    fn step(
        &self,
        step: &LaunchStep,
        (depth, in_while): (usize, bool),
        path: &str,
        mistakes: &mut Mistakes,
    ) {
        if mistakes.full() {
            return;
        }
        if depth > MAX_LOOPS {
            let message = format!("loops are nested deeper than {MAX_LOOPS}");
            mistakes.add(path, FailureCode::TooLarge, message);
            return;
        }
        let actions = [
            step.kernel.is_some(),
            step.memset.is_some(),
            step.memcpy.is_some(),
            step.swap.is_some(),
            !step.steps.is_empty(),
        ];
        if actions.iter().filter(|&&given| given).count() != 1 {
            let message = "give exactly one of `kernel`, `memset`, `memcpy`, `swap` and `steps`";
            mistakes.add(path, FailureCode::ConflictingFields, message);
            return;
        }
        self.fields(step, path, mistakes);
        self.repetition(step, path, mistakes);
        if let Some(name) = &step.kernel {
            let fits = !name.trim().is_empty() && name.len() <= self.limits.max_name_len;
            mistakes.require(fits, format!("{path}.kernel"), FailureCode::InvalidName, || {
                format!("must have 1 to {} bytes", self.limits.max_name_len)
            });
        }
        let count = step.args.as_ref().map_or(0, Vec::len);
        mistakes.require(
            count <= self.limits.max_args,
            format!("{path}.args"),
            FailureCode::TooLarge,
            || format!("{count} arguments; at most {} are accepted", self.limits.max_args),
        );
        if let Some(name) = &step.memset {
            self.written(name, &format!("{path}.memset"), mistakes);
        }
        if let Some(copy) = &step.memcpy {
            let to = self.written(&copy.to, &format!("{path}.memcpy.to"), mistakes);
            let from = self.tensor(&copy.from, &format!("{path}.memcpy.from"), mistakes);
            self.same_size((from, to), &format!("{path}.memcpy"), mistakes);
        }
        if let Some([a, b]) = &step.swap {
            mistakes.require(!in_while, format!("{path}.swap"), FailureCode::WrongField, || {
                "after a `while`, the exchange would depend on the number of its passes: list two \
                 passes with the tensors exchanged"
                    .to_owned()
            });
            let a = self.written(a, &format!("{path}.swap[0]"), mistakes);
            let b = self.written(b, &format!("{path}.swap[1]"), mistakes);
            let alike = a.zip(b).is_none_or(|(a, b)| match (&a.tensor_spec, &b.tensor_spec) {
                (Some(a), Some(b)) => a.dtype == b.dtype && a.shape == b.shape,
                _ => true,
            });
            mistakes.require(alike, format!("{path}.swap"), FailureCode::ShapeMismatch, || {
                "the two tensors must have the same type and shape".to_owned()
            });
        }
        for (index, inner) in step.steps.iter().enumerate() {
            let path = format!("{path}.steps[{index}]");
            self.step(inner, (depth + 1, in_while || step.while_flag.is_some()), &path, mistakes);
        }
    }

    /// Checks that each field belongs to the action of its step.
    fn fields(&self, step: &LaunchStep, path: &str, mistakes: &mut Mistakes) {
        let of_kernels = [
            ("args", step.args.is_some()),
            ("grid", step.grid.is_some()),
            ("block", step.block.is_some()),
            ("shared_memory_bytes", step.shared_memory_bytes.is_some()),
            ("cluster", step.cluster.is_some()),
            ("cooperative", step.cooperative),
        ];
        for (field, given) in of_kernels {
            let fits = !given || step.kernel.is_some();
            mistakes.require(fits, format!("{path}.{field}"), FailureCode::WrongField, || {
                "goes with `kernel`".to_owned()
            });
        }
        let fits = step.value.is_none() || step.memset.is_some();
        mistakes.require(fits, format!("{path}.value"), FailureCode::WrongField, || {
            "goes with `memset`".to_owned()
        });
    }

    fn repetition(&self, step: &LaunchStep, path: &str, mistakes: &mut Mistakes) {
        let (repeats, waits) = (step.repeat.is_some(), step.while_flag.is_some());
        mistakes.require(!(repeats && waits), path, FailureCode::ConflictingFields, || {
            "give `repeat` or `while`; put one of them around `steps` with the other".to_owned()
        });
        let fits = step.index.is_none() || repeats || waits;
        mistakes.require(fits, format!("{path}.index"), FailureCode::WrongField, || {
            "requires `repeat` or `while`, whose passes it counts".to_owned()
        });
        if let Some(index) = &step.index {
            let path = format!("{path}.index");
            crate::check::check_name(index, self.limits, &path, mistakes);
            let taken = self.args.iter().any(|arg| arg.name == *index);
            mistakes.require(!taken, path, FailureCode::DuplicateName, || {
                format!("an argument is named `{}` too", quoted(index))
            });
        }
        mistakes.require(
            waits == step.most.is_some(),
            format!("{path}.most"),
            FailureCode::MissingField,
            || "`while` and `most`, its largest number of passes, go together".to_owned(),
        );
        if let Some(flag) = &step.while_flag {
            let path = format!("{path}.while");
            if let Some(spec) =
                self.written(flag, &path, mistakes).and_then(|arg| arg.tensor_spec.as_ref())
            {
                let fits = spec.shape.iter().product::<u64>() == 1 && !spec.dtype.is_float();
                mistakes.require(fits, path, FailureCode::WrongType, || {
                    format!("`{}` must be an integer or bool tensor of one element", quoted(flag))
                });
            }
        }
    }

    /// Returns the tensor of this name, and reports a mistake if there is none.
    fn tensor(&self, name: &str, path: &str, mistakes: &mut Mistakes) -> Option<&ArgSpec> {
        let found = self.args.iter().find(|arg| arg.name == name && arg.kind == ArgKind::Tensor);
        if found.is_none() {
            let message = format!("no tensor of `io.args` is named `{}`", quoted(name));
            mistakes.add(path, FailureCode::UnknownTensor, message);
        }
        let found = found?;
        if self.is_setup && found.role != Role::Scratch {
            mistakes.add(path, FailureCode::WrongField, ONLY_SCRATCH);
        }
        Some(found)
    }

    /// Returns the tensor of this name, which the step writes. An input is a mistake.
    fn written(&self, name: &str, path: &str, mistakes: &mut Mistakes) -> Option<&ArgSpec> {
        let found = self.tensor(name, path, mistakes)?;
        mistakes.require(found.role != Role::Input, path, FailureCode::WrongField, || {
            format!("`{}` is an input; give it `role: scratch`, `output` or `inout`", quoted(name))
        });
        Some(found)
    }

    fn same_size(
        &self,
        (a, b): (Option<&ArgSpec>, Option<&ArgSpec>),
        path: &str,
        mistakes: &mut Mistakes,
    ) {
        let Some((a, b)) = a.zip(b) else { return };
        let (a, b) = (a.tensor_bytes(), b.tensor_bytes());
        mistakes.require(a == b, path, FailureCode::ShapeMismatch, || {
            format!("the tensors have {a} and {b} bytes; both must have the same size")
        });
    }
}

/// Why `setup` may not use a tensor.
pub(super) const ONLY_SCRATCH: &str = "`setup` is not timed, so it may depend on shapes and scalars alone: it uses \
                                       tensors of `role: scratch`";
