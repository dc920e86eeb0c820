//! Unrolls the loops of a list of steps, and evaluates all expressions.

use std::collections::HashMap;

use super::listed::{self, EACH, Line, Listed, ONLY_SCRATCH, listed};
use super::values::{StepArgument, ValueError, Values};
use super::{LaunchStep, MAX_SIZE, MAX_STEPS};
use crate::error::{ContractError, Mistakes, quoted};
use crate::resolve::{Names, ResolvedLaunch, Scope, resolve_launch_of};
use crate::{ArgKind, ArgSpec, ContractLimits, Extent, IoContract, KernelCode, Role};
use warpgauge_model::FailureCode;

/// A program whose loops are unrolled and whose expressions are evaluated.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResolvedProgram {
    /// Names of the kernels that are launched, each once, in the order of the list.
    pub kernels: Vec<String>,
    /// The steps of `launches` as they are listed, without loops.
    pub lines: Vec<Line>,
    /// The steps of `setup` as they are listed.
    pub setup_lines: Vec<Line>,
    /// Steps that run before the program and are not timed.
    pub setup: Vec<ResolvedStep>,
    /// Steps of the program.
    pub steps: Vec<ResolvedStep>,
}

/// A step that is executed once.
#[derive(Debug, Clone, PartialEq)]
pub enum ResolvedStep {
    /// Launches one of the program's kernels.
    Launch {
        /// Index of the step's line in the list.
        line: usize,
        /// Index of the kernel in `kernels`.
        kernel: usize,
        /// Arguments in the order of the kernel's parameters.
        arguments: Vec<StepArgument>,
        launch: ResolvedLaunch,
    },
    /// Sets every byte of a tensor, given by its index among the arguments.
    Memset { line: usize, tensor: usize, value: u8 },
    /// Copies a tensor to another.
    Copy { line: usize, from: usize, to: usize },
    /// The end of a pass of a `while` loop.
    Pass {
        /// The tensor whose element decides whether there is another pass.
        flag: usize,
        /// Index of the step after the loop, which follows if the element is 0.
        end: usize,
        /// Whether this is the last pass that `most` allows.
        is_last: bool,
    },
}

/// Resolves the program of a kernel. `path` is the kernel's path in the request. A kernel without a list of launches is
/// a program of one launch.
///
/// # Errors
/// Every mistake, up to `limits.max_errors`.
pub fn resolve_program(
    kernel: &KernelCode,
    io: &IoContract,
    limits: &ContractLimits,
    path: &str,
) -> Result<ResolvedProgram, Vec<ContractError>> {
    let mut mistakes = Mistakes::new(limits.max_errors);
    if !kernel.launches.is_empty() {
        let program = resolve_into(kernel, io, limits, path, &mut mistakes);
        return mistakes.into_result().map(|()| program);
    }
    let at = format!("{path}.io.launch");
    let names = Names::Given(kernel.kernel_type);
    let launch = crate::resolve::resolve_into(io, names, limits, &at, &mut mistakes);
    let passed = io.args.iter().enumerate().filter(|(_, arg)| arg.is_parameter());
    let arguments = passed.map(|(index, _)| StepArgument::Given(index, 0)).collect();
    let only = ResolvedStep::Launch { line: 0, kernel: 0, arguments, launch };
    let program = ResolvedProgram { steps: vec![only], ..ResolvedProgram::default() };
    mistakes.into_result().map(|()| program)
}

/// Resolves as far as possible and adds every mistake. A mistake ends the list that contains it.
pub(crate) fn resolve_into(
    kernel: &KernelCode,
    io: &IoContract,
    limits: &ContractLimits,
    path: &str,
    mistakes: &mut Mistakes,
) -> ResolvedProgram {
    let mut program = ResolvedProgram::default();
    let lists = [("setup", &kernel.setup, true), ("launches", &kernel.launches, false)];
    for (field, steps, is_setup) in lists {
        let path = format!("{path}.{field}");
        let before = mistakes.count();
        listed::check(steps, (&io.args, is_setup), limits, &path, mistakes);
        if mistakes.count() > before {
            continue;
        }
        let mut lines = Vec::new();
        let listed = listed(steps, field, &mut lines);
        let names = io.args.iter().enumerate().map(|(index, arg)| (arg.name.as_str(), index));
        let mut unroller = Unroller {
            args: &io.args,
            names: names.collect(),
            meant: (0..io.args.len()).collect(),
            counters: Vec::new(),
            kernels: std::mem::take(&mut program.kernels),
            steps: Vec::new(),
            units: 0,
            size: 0,
            is_setup,
            limits,
            at: path.clone(),
        };
        // The mistake that ended the list is already among `mistakes`.
        let _ = unroller.all(&listed, mistakes);
        program.kernels = unroller.kernels;
        let nothing = !steps.is_empty() && unroller.steps.is_empty();
        mistakes.require(
            !nothing || mistakes.count() > before,
            path,
            FailureCode::OutOfRange,
            || "no step is executed: no loop has a pass".to_owned(),
        );
        if is_setup {
            (program.setup, program.setup_lines) = (unroller.steps, lines);
        } else {
            (program.steps, program.lines) = (unroller.steps, lines);
        }
    }
    program
}

/// A mistake was added, and the rest of the list is not unrolled.
struct Mistaken;

struct Unroller<'a> {
    args: &'a [ArgSpec],
    names: HashMap<&'a str, usize>,
    /// For each argument, the index of the argument that its name refers to after exchanges.
    meant: Vec<usize>,
    /// Names and values of the loop indices, outermost first.
    counters: Vec<(&'a str, u64)>,
    kernels: Vec<String>,
    steps: Vec<ResolvedStep>,
    /// Number of steps and passes that were unrolled so far.
    units: usize,
    /// Size of all arguments and expressions so far, bytes.
    size: usize,
    is_setup: bool,
    limits: &'a ContractLimits,
    /// Path of the list of steps in the request.
    at: String,
}

impl<'a> Unroller<'a> {
    fn all(&mut self, steps: &[Listed<'a>], mistakes: &mut Mistakes) -> Result<(), Mistaken> {
        steps.iter().try_for_each(|step| self.repeated(step, mistakes))
    }

    /// Unrolls the passes of a step.
    fn repeated(&mut self, listed: &Listed<'a>, mistakes: &mut Mistakes) -> Result<(), Mistaken> {
        let step = listed.step;
        let passes = match (&step.repeat, &step.most) {
            (Some(count), _) => self.count(count, &self.path(listed, "repeat"), 0, mistakes)?,
            (_, Some(most)) => self.count(most, &self.path(listed, "most"), 1, mistakes)?,
            (None, None) => return self.once(listed, mistakes),
        };
        let flag = step.while_flag.as_ref().and_then(|name| self.names.get(name.as_str()).copied());
        let mut ends = Vec::new();
        for pass in 0..passes {
            self.spend(listed.size, mistakes)?;
            self.counters.extend(step.index.as_deref().map(|index| (index, pass)));
            let done = self.once(listed, mistakes);
            if step.index.is_some() {
                self.counters.pop();
            }
            done?;
            if let Some(flag) = flag {
                ends.push(self.steps.len());
                let is_last = pass + 1 == passes;
                self.steps.push(ResolvedStep::Pass { flag: self.meant[flag], end: 0, is_last });
            }
        }
        let after = self.steps.len();
        for at in ends {
            if let ResolvedStep::Pass { end, .. } = &mut self.steps[at] {
                *end = after;
            }
        }
        Ok(())
    }

    fn once(&mut self, listed: &Listed<'a>, mistakes: &mut Mistakes) -> Result<(), Mistaken> {
        let (step, line) = (listed.step, listed.line);
        if !listed.steps.is_empty() {
            return self.all(&listed.steps, mistakes);
        }
        self.spend(listed.size, mistakes)?;
        let tensor = |name: &String| self.names.get(name.as_str()).map(|&index| self.meant[index]);
        if let Some(name) = &step.kernel {
            return self.launch((listed, step), name, mistakes);
        }
        if let Some(tensor) = step.memset.as_ref().and_then(tensor) {
            let value = step.value.unwrap_or(0);
            self.steps.push(ResolvedStep::Memset { line, tensor, value });
        } else if let Some(copy) = &step.memcpy {
            let both = tensor(&copy.from).zip(tensor(&copy.to));
            self.steps.extend(both.map(|(from, to)| ResolvedStep::Copy { line, from, to }));
        } else if let Some([a, b]) = &step.swap
            && let Some((&a, &b)) = self.names.get(a.as_str()).zip(self.names.get(b.as_str()))
        {
            self.meant.swap(a, b);
        }
        Ok(())
    }

    fn launch(
        &mut self,
        (listed, step): (&Listed<'a>, &LaunchStep),
        name: &str,
        mistakes: &mut Mistakes,
    ) -> Result<(), Mistaken> {
        let before = mistakes.count();
        let names = Names::Given(crate::KernelType::Cuda);
        let scope = Scope { args: self.args, counters: &self.counters, names };
        let path = self.path(listed, "");
        let launch = resolve_launch_of(Some(&listed.launch), scope, self.limits, &path, mistakes);
        let arguments = match &step.args {
            None => {
                self.size += EACH * self.args.len();
                match self.all_arguments() {
                    Ok(arguments) => {
                        self.grow(arguments.iter().map(StepArgument::size).sum(), mistakes)?;
                        arguments
                    }
                    Err((code, message)) => {
                        mistakes.add(format!("{path}.args"), code, message);
                        return Err(Mistaken);
                    }
                }
            }
            Some(given) => {
                let mut arguments = Vec::with_capacity(given.len());
                for (index, value) in given.iter().enumerate() {
                    match self.with_values(|values| values.argument(value)) {
                        Ok(argument) => {
                            self.grow(argument.size(), mistakes)?;
                            arguments.push(argument);
                        }
                        Err((code, message)) => {
                            mistakes.add(format!("{path}.args[{index}]"), code, message);
                        }
                    }
                }
                arguments
            }
        };
        let used = arguments.iter().flat_map(StepArgument::used).map(|index| &self.args[index]);
        let mut foreign =
            used.filter(|arg| arg.kind == ArgKind::Tensor && arg.role != Role::Scratch);
        if let Some(arg) = foreign.next().filter(|_| self.is_setup) {
            let message = format!("`{}`: {ONLY_SCRATCH}", quoted(&arg.name));
            mistakes.add(format!("{path}.args"), FailureCode::WrongField, message);
        }
        if mistakes.count() > before {
            return Err(Mistaken);
        }
        let kernel = self.kernels.iter().position(|known| known == name).unwrap_or_else(|| {
            self.kernels.push(name.to_owned());
            self.kernels.len() - 1
        });
        self.steps.push(ResolvedStep::Launch { line: listed.line, kernel, arguments, launch });
        Ok(())
    }

    fn all_arguments(&self) -> Result<Vec<StepArgument>, ValueError> {
        let mut passed = self.args.iter().enumerate().filter(|(_, arg)| arg.is_parameter());
        self.with_values(|values| {
            passed.try_fold(Vec::new(), |mut made, (index, _)| {
                made.push(values.given(index)?);
                Ok(made)
            })
        })
    }

    /// Calls `use_values` with the current meanings of all names.
    fn with_values<T>(&self, use_values: impl FnOnce(&Values<'_>) -> T) -> T {
        let index_of = |name: &str| self.names.get(name).copied();
        let (args, meant, counters) = (self.args, &self.meant[..], &self.counters[..]);
        use_values(&Values { args, meant, counters, index_of: &index_of })
    }

    /// Returns the number of passes.
    fn count(
        &self,
        extent: &Extent,
        path: &str,
        least: i128,
        mistakes: &mut Mistakes,
    ) -> Result<u64, Mistaken> {
        let value = match extent {
            Extent::Value(value) => Ok(i128::from(*value)),
            Extent::Expression(text) => self.with_values(|values| values.number(text)),
        };
        match value {
            Err(error) => mistakes.add(path, FailureCode::InvalidExpression, error),
            Ok(value) if (least..=MAX_STEPS as i128).contains(&value) => return Ok(value as u64),
            Ok(value) => {
                let message = format!("must be {least} to {MAX_STEPS}, not {value}");
                mistakes.add(path, FailureCode::OutOfRange, message);
            }
        }
        Err(Mistaken)
    }

    /// Counts a step or a pass, whose arguments and expressions have this size.
    fn spend(&mut self, size: usize, mistakes: &mut Mistakes) -> Result<(), Mistaken> {
        self.units += 1;
        if self.units > MAX_STEPS {
            let message = format!("more than {MAX_STEPS} steps, counting the passes of all loops");
            mistakes.add(self.at.as_str(), FailureCode::TooLarge, message);
            return Err(Mistaken);
        }
        self.grow(size, mistakes)
    }

    /// Counts arguments and expressions of this size.
    fn grow(&mut self, size: usize, mistakes: &mut Mistakes) -> Result<(), Mistaken> {
        self.size += size;
        if self.size <= MAX_SIZE {
            return Ok(());
        }
        let message = format!(
            "the arguments and expressions of all steps, counting the passes of all loops, are \
             larger than {} MiB",
            MAX_SIZE >> 20
        );
        mistakes.add(self.at.as_str(), FailureCode::TooLarge, message);
        Err(Mistaken)
    }

    /// Returns the path of a step, or of a field of it, in the request.
    fn path(&self, listed: &Listed<'_>, field: &str) -> String {
        let (_, inner) = listed.path.split_once('[').unwrap_or_default();
        let dot = if field.is_empty() { "" } else { "." };
        format!("{}[{inner}{dot}{field}", self.at)
    }
}
