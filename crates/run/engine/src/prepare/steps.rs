//! Programs of several launches. This module converts a contract's list of steps to the form that
//! workers execute.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use super::arrays::{Arrays, Uses};
use super::bind::{BindError, Passed, Tensors, bind_passed_in, bind_passed_list, parameters_of};
use super::compiled_launch;
use super::globals::Globals;
use super::{binding_failure, tensor_arguments};
use crate::error::{self, ExecError};
use warpgauge_compile::{CompileError, CompiledLaunch, CompiledModule, KernelInfo, Param};
use warpgauge_contract::{
    ArgKind, ArgSpec, ContractLimits, KernelCode, Line, PointerEntry, ResolvedLaunch, ResolvedStep,
    Role, StepArgument, TensorSpec, resolve_program,
};
use warpgauge_model::{FailureCode, Image, TexelGrid, TextureLayout};
use warpgauge_tensor::shape;
use warpgauge_worker::protocol::{
    Argument, Launches, Memory, Piece, Pointee, Step, StepLaunch, StepProgram,
};

/// Returns whether a kernel needs more than one launch of its entry, or memory in addition to its
/// tensors.
pub(super) fn are_needed(code: &KernelCode, globals: &Globals<'_>) -> bool {
    !code.launches.is_empty()
        || !globals.variables.is_empty()
        || globals
            .io
            .args
            .iter()
            .any(|arg| arg.role == Role::Scratch || arg.kind == ArgKind::Pointers)
        || globals.io.args.iter().any(|arg| is_in_array(arg, &globals.io.args))
}

/// Returns whether an argument is an object over a CUDA array. The contract is already validated.
fn is_in_array(arg: &ArgSpec, args: &[ArgSpec]) -> bool {
    let layout = arg.texture.as_ref().and_then(|texture| texture.layout(args).ok());
    arg.kind == ArgKind::Surface || layout.is_some_and(|(_, layout)| layout.in_array)
}

/// Returns the steps of a kernel, bound to the parameters of the kernels of `artifact`.
pub(super) fn launches_of(
    artifact: &CompiledModule,
    code: &KernelCode,
    globals: &Globals<'_>,
    limits: &ContractLimits,
    path: &str,
) -> Result<Launches, ExecError> {
    let io = &*globals.io;
    if let Some(decided) = &artifact.launch {
        return decided_launch(artifact, decided, globals, limits, path);
    }
    let program = resolve_program(code, io, limits, path).map_err(error::invalid)?;
    let kernels = match code.launches.is_empty() {
        true => vec![artifact.entry_kernel()],
        false => kernels_of(artifact, &program.kernels, path)?,
    };
    let binder = Binder::new(globals, &kernels, path, !code.launches.is_empty());
    let setup = binder.steps(&program.setup, &program.setup_lines)?;
    let steps = binder.steps(&program.steps, &program.lines)?;
    let symbols = kernels.iter().map(|kernel| kernel.symbol.clone()).collect();
    let image = Image { bytes: Arc::clone(&artifact.image), format: artifact.format };
    let launch_of = |step: &Step| match step {
        Step::Launch(launch) => Some(launch.clone()),
        _ => None,
    };
    let Some(first) = steps.iter().find_map(launch_of) else {
        let message = "no step launches a kernel".to_owned();
        let problem = BindError::step("launches", FailureCode::OutOfRange, message);
        return Err(binding_failure(path, vec![problem]));
    };
    let first = first.whole(image, &kernels[first.kernel].symbol);
    let Binder { workspaces, pointer_arrays, arrays, memory, is_list, .. } = binder;
    let pointer_arrays = pointer_arrays.into_inner().0;
    let (pointers, variables) = (&pointer_arrays, &globals.variables);
    let all = setup.iter().chain(&steps).collect();
    let uses = Uses { steps: all, pointers, globals: variables, is_list };
    let arrays = arrays.into_inner().finished(io, &memory, &uses);
    let (arrays, objects) = arrays.map_err(|errors| binding_failure(path, errors))?;
    let program = StepProgram {
        symbols,
        workspaces,
        pointer_arrays,
        arrays,
        objects,
        globals: globals.variables.clone(),
        setup,
        steps,
        lines: program.lines.len(),
    };
    Ok(Launches { first, rest: Vec::new(), program: Some(Box::new(program)) })
}

/// Returns the single launch of a kernel that takes arrays of pointers. Returns `None` unless the
/// kernel's compiler determines the launch.
fn decided_launch(
    artifact: &CompiledModule,
    decided: &CompiledLaunch,
    globals: &Globals<'_>,
    limits: &ContractLimits,
    path: &str,
) -> Result<Launches, ExecError> {
    let kernels = [artifact.entry_kernel()];
    let binder = Binder::new(globals, &kernels, path, false);
    let bind = |index, param: &Param| {
        let place = |tensor: usize, elements: u64| binder.pointer(tensor, elements);
        let array = |entries: &[PointerEntry]| binder.pointer_array(entries);
        let args = &binder.args;
        let tensors = Tensors { args, place: &place, array: &array, object: &|_, _, _| None };
        bind_passed_in(index, &tensors, param)
    };
    let mut first = compiled_launch::bound(artifact, decided, &globals.io, limits, path, &bind)?;
    let mut workspaces = Vec::new();
    for argument in &mut first.arguments {
        if let Argument::Scratch(bytes) = *argument {
            *argument = Argument::Workspace(workspaces.len(), 0);
            workspaces.push(bytes);
        }
    }
    let launch = StepLaunch {
        line: 0,
        kernel: 0,
        arguments: first.arguments.clone(),
        grid: first.grid,
        block: first.block,
        shared_bytes: first.shared_bytes,
        cluster: first.cluster,
        cooperative: first.cooperative,
    };
    let program = StepProgram {
        symbols: vec![first.symbol.clone()],
        workspaces,
        pointer_arrays: binder.pointer_arrays.into_inner().0,
        arrays: Vec::new(),
        objects: Vec::new(),
        globals: Vec::new(),
        setup: Vec::new(),
        steps: vec![Step::Launch(launch)],
        lines: 0,
    };
    Ok(Launches { first, rest: Vec::new(), program: Some(Box::new(program)) })
}

/// Returns the kernels of an image that have these names.
fn kernels_of<'a>(
    artifact: &'a CompiledModule,
    names: &[String],
    path: &str,
) -> Result<Vec<&'a KernelInfo>, ExecError> {
    let found = names.iter().map(|name| artifact.kernel_named(name));
    found.collect::<Result<Vec<_>, _>>().map_err(|error| match error {
        CompileError::Rejected(failure) => {
            binding_failure(path, vec![BindError::step("launches", failure.code, failure.message)])
        }
        other => error::from_compile(other),
    })
}

/// Distinct arrays of pointers, and the index of each.
#[derive(Default)]
struct PointerArrays(Vec<Vec<Option<Pointee>>>, HashMap<Vec<Option<Pointee>>, usize>);

struct Binder<'a> {
    /// The contract's arguments, without their content.
    args: Vec<ArgSpec>,
    kernels: &'a [&'a KernelInfo],
    /// Memory of each argument that is a tensor.
    memory: Vec<Option<Piece>>,
    workspaces: Vec<u64>,
    pointer_arrays: RefCell<PointerArrays>,
    arrays: RefCell<Arrays>,
    globals: &'a Globals<'a>,
    path: &'a str,
    /// Whether the contract lists steps, each with its arguments.
    is_list: bool,
}

impl<'a> Binder<'a> {
    fn new(
        globals: &'a Globals<'a>,
        kernels: &'a [&'a KernelInfo],
        path: &'a str,
        is_list: bool,
    ) -> Self {
        let io = &*globals.io;
        let bare = |arg: &ArgSpec| {
            let spec = arg.tensor_spec.as_ref();
            // One step may read data that another step writes, so the role of a tensor does not
            // apply to a single parameter.
            let spec = spec.map(|spec| TensorSpec::new(spec.shape.clone(), spec.dtype));
            ArgSpec {
                name: arg.name.clone(),
                kind: arg.kind,
                value: arg.value.clone(),
                value_of: None,
                tensor_spec: spec,
                fields: arg.fields.clone(),
                pointers: arg.pointers.clone(),
                texture: arg.texture.clone(),
                surface: arg.surface.clone(),
                symbol: arg.symbol.clone(),
                role: Role::Input,
                is_meta: arg.is_meta,
                descriptor: None,
                c_type: arg.c_type.clone(),
            }
        };
        let mut memory = vec![None; io.args.len()];
        let bytes = |arg: &ArgSpec| {
            let spec = arg.tensor_spec.as_ref();
            spec.and_then(|spec| shape::bytes(&spec.shape, spec.dtype).ok()).unwrap_or(0)
        };
        for (buffer, (index, arg)) in tensor_arguments(io).into_iter().enumerate() {
            memory[index] = Some(Piece { memory: Memory::Buffer(buffer), bytes: bytes(arg) });
        }
        let mut workspaces = Vec::new();
        for (index, arg) in io.args.iter().enumerate().filter(|(_, arg)| arg.role == Role::Scratch)
        {
            let memory_of = Memory::Workspace(workspaces.len());
            memory[index] = Some(Piece { memory: memory_of, bytes: bytes(arg) });
            workspaces.push(bytes(arg));
        }
        let args = io.args.iter().map(bare).collect();
        let (pointer_arrays, arrays) = (RefCell::default(), RefCell::default());
        Self { args, kernels, memory, workspaces, pointer_arrays, arrays, globals, path, is_list }
    }

    fn steps(&self, steps: &[ResolvedStep], lines: &[Line]) -> Result<Vec<Step>, ExecError> {
        steps.iter().map(|step| self.step(step, lines)).collect()
    }

    fn step(&self, step: &ResolvedStep, lines: &[Line]) -> Result<Step, ExecError> {
        Ok(match step {
            ResolvedStep::Launch { line, kernel, arguments, launch } => {
                let at = lines.get(*line).map(|line| line.path.as_str());
                let arguments = self.arguments(*kernel, arguments, at)?;
                let ResolvedLaunch { grid, block, shared_bytes, cluster, cooperative } = *launch;
                let (line, kernel) = (*line, *kernel);
                Step::Launch(StepLaunch {
                    line,
                    kernel,
                    arguments,
                    grid,
                    block,
                    shared_bytes,
                    cluster,
                    cooperative,
                })
            }
            &ResolvedStep::Memset { line, tensor, value } => {
                Step::Fill { line, at: self.piece(tensor)?, value }
            }
            &ResolvedStep::Copy { line, from, to } => {
                Step::Copy { line, from: self.piece(from)?, to: self.piece(to)? }
            }
            &ResolvedStep::Pass { flag, end, is_last } => {
                Step::Pass { flag: self.piece(flag)?, end, is_last }
            }
        })
    }

    fn arguments(
        &self,
        kernel: usize,
        arguments: &[StepArgument],
        at: Option<&str>,
    ) -> Result<Vec<Argument>, ExecError> {
        let passed = match self.is_list {
            true => {
                let each = arguments.iter().enumerate().map(|(index, argument)| {
                    Passed::new(index, &format!("argument {index}"), argument, &self.args)
                });
                each.collect()
            }
            false => parameters_of(self.kernels[kernel], &self.args)
                .map_err(|error| binding_failure(self.path, vec![error]))?,
        };
        let place = |tensor: usize, elements: u64| self.pointer(tensor, elements);
        let array = |entries: &[PointerEntry]| self.pointer_array(entries);
        let object = |tensor: usize, grid: &TexelGrid, texture: Option<&TextureLayout>| {
            let memory = self.memory[tensor]?.memory;
            Some(self.arrays.borrow_mut().object(memory, grid, texture))
        };
        let tensors = Tensors { args: &self.args, place: &place, array: &array, object: &object };
        bind_passed_list(self.kernels[kernel], &passed, &tensors).map_err(|errors| {
            let located = errors.into_iter().map(|error| match at {
                Some(at) => error.at_step(at),
                None => error,
            });
            binding_failure(self.path, self.globals.explain(located.collect()))
        })
    }

    /// Returns the pointer to a tensor, starting at an element. Returns `None` if the tensor has no
    /// memory.
    fn pointer(&self, tensor: usize, elements: u64) -> Option<Argument> {
        let size = self.args[tensor].tensor_spec.as_ref().map_or(1, |spec| spec.dtype.size());
        let offset = elements * size as u64;
        Some(match self.memory[tensor]?.memory {
            Memory::Buffer(buffer) if offset == 0 => Argument::Buffer(buffer),
            Memory::Buffer(buffer) => Argument::Inside(buffer, offset),
            Memory::Workspace(index) => Argument::Workspace(index, offset),
        })
    }

    /// Returns the pointer to an array of pointers, or `None` if an entry points to a tensor
    /// without memory.
    fn pointer_array(&self, entries: &[PointerEntry]) -> Option<Argument> {
        let pointee = |entry: &PointerEntry| {
            let Some((tensor, elements)) = entry else { return Some(None) };
            let size = self.args.get(*tensor)?.tensor_spec.as_ref()?.dtype.size();
            let memory = self.memory[*tensor]?.memory;
            Some(Some(Pointee { memory, offset: elements * size as u64 }))
        };
        let entries = entries.iter().map(pointee).collect::<Option<Vec<_>>>()?;
        let PointerArrays(arrays, indexes) = &mut *self.pointer_arrays.borrow_mut();
        let index = *indexes.entry(entries).or_insert_with_key(|entries| {
            arrays.push(entries.clone());
            arrays.len() - 1
        });
        Some(Argument::PointerArray(index))
    }

    fn piece(&self, tensor: usize) -> Result<Piece, ExecError> {
        self.memory.get(tensor).copied().flatten().ok_or_else(|| {
            let message = "a step uses an argument that is not a tensor".to_owned();
            let problem = BindError::step("launches", FailureCode::WrongType, message);
            binding_failure(self.path, vec![problem])
        })
    }
}
