//! Launches that a compiler determined. The contract gives the number of programs, and the compiler
//! determines everything else.

use std::sync::Arc;

use crate::error::{self, ExecError, Problem};
use crate::prepare::bind::{BindError, bind_map, value_bytes};
use crate::prepare::binding_failure;
use warpgauge_compile::{CompiledLaunch, CompiledModule, Constant, Param, PassedValue};
use warpgauge_contract::{ArgKind, ArgSpec, ContractLimits, IoContract, KernelType};
use warpgauge_model::{FailureCode, Image};
use warpgauge_worker::protocol::{Argument, KernelLaunch};

/// Maximum scratch memory of a launch, in bytes.
const MAX_SCRATCH: u64 = 8 << 30;

/// Returns the launch of `artifact`'s entry as its compiler determined it, with the arguments and
/// the grid of `io`. `path` is the kernel's path in the request. `bind` binds an argument, by
/// index, to its parameter.
pub(crate) fn bound(
    artifact: &CompiledModule,
    decided: &CompiledLaunch,
    io: &IoContract,
    limits: &ContractLimits,
    path: &str,
    bind: &dyn Fn(usize, &Param) -> Result<Argument, BindError>,
) -> Result<KernelLaunch, ExecError> {
    let at = format!("{path}.io.launch");
    let known = IoContract { args: with_constants(&io.args, decided), launch: io.launch.clone() };
    let launch = warpgauge_contract::resolve_launch_at(&known, KernelType::Triton, limits, &at)
        .map_err(error::invalid)?;
    let wide = launch.grid[0].checked_mul(decided.blocks_per_program);
    let Some(wide) = wide.filter(|blocks| i32::try_from(*blocks).is_ok()) else {
        return Err(invalid(
            format!("{at}.grid.x"),
            format!(
                "{} programs of {} blocks each exceed the maximum size of a grid",
                launch.grid[0], decided.blocks_per_program
            ),
        ));
    };
    let grid = [wide, launch.grid[1], launch.grid[2]];
    let scratch = scratch_bytes(decided, grid).ok_or_else(|| {
        let bytes = decided.scratch.bytes_per_block;
        invalid(
            format!("{at}.grid"),
            format!(
                "each block needs {bytes} bytes of scratch memory; all of them together would need \
                 more than the {} GiB that a launch may take",
                MAX_SCRATCH >> 30
            ),
        )
    })?;
    let entry = artifact.entry_kernel();
    let params = entry.params.as_deref().unwrap_or_default();
    let mut arguments = Vec::new();
    let mut errors = Vec::new();
    for (param, passed) in params.iter().zip(&decided.parameters) {
        let argument = match passed {
            PassedValue::Argument(index) => bind(*index, param),
            PassedValue::Value(value) => value_bytes(value, param).map(Argument::Scalar),
            PassedValue::Scratch if scratch > 0 => Ok(Argument::Scratch(scratch)),
            PassedValue::Scratch => Ok(Argument::Scalar(vec![0; 8])),
            PassedValue::Map { argument, map } => bind_map(*argument, &io.args, map),
        };
        match argument {
            Ok(argument) => arguments.push(argument),
            Err(error) => errors.push(error),
        }
    }
    if !errors.is_empty() {
        return Err(binding_failure(path, errors));
    }
    Ok(KernelLaunch {
        image: Image { bytes: Arc::clone(&artifact.image), format: artifact.format },
        symbol: entry.symbol.clone(),
        arguments,
        grid,
        block: [decided.threads, 1, 1],
        shared_bytes: decided.shared_bytes,
        cluster: (decided.blocks_per_program > 1).then_some([decided.blocks_per_program, 1, 1]),
        cooperative: decided.cooperative,
    })
}

/// Returns the bytes of scratch memory of the whole grid, or `None` if they exceed the limit.
fn scratch_bytes(decided: &CompiledLaunch, grid: [u32; 3]) -> Option<u64> {
    let blocks = grid.iter().try_fold(1u64, |all, &extent| all.checked_mul(extent.into()))?;
    let bytes = decided.scratch.bytes_per_block.checked_mul(blocks)?;
    (bytes <= MAX_SCRATCH).then_some(bytes)
}

/// Returns the contract's arguments, and the kernel's compile-time constants, including those that
/// a decorator chose.
fn with_constants(args: &[ArgSpec], decided: &CompiledLaunch) -> Vec<ArgSpec> {
    let chosen = |name: &str| decided.constants.iter().any(|(constant, _)| constant == name);
    let given = args.iter().filter(|arg| !(arg.is_meta && chosen(&arg.name))).cloned();
    let mut all: Vec<ArgSpec> = given.collect();
    for (name, value) in &decided.constants {
        // An argument with value 1 can be compiled in as a constant. It is still present under its
        // own name.
        if all.iter().any(|arg| arg.name == *name) {
            continue;
        }
        let (kind, value) = match value {
            Constant::Bool(value) => (ArgKind::Bool, (*value).into()),
            Constant::Int(value) => (ArgKind::Int, (*value).into()),
            Constant::Unsigned(value) => (ArgKind::Int, (*value).into()),
            Constant::Float(value) => (ArgKind::Float, (*value).into()),
            Constant::Text(value) => (ArgKind::Str, value.as_str().into()),
        };
        all.push(ArgSpec::constant(name, kind, value));
    }
    all
}

fn invalid(path: String, message: String) -> ExecError {
    ExecError::Invalid(vec![Problem { path, code: FailureCode::OutOfRange, message }])
}
