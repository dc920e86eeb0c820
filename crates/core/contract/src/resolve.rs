//! Resolves the launch configuration: evaluates expressions, and checks CUDA's limits. The main
//! type is [`ResolvedLaunch`].

use std::cell::Cell;

use super::error::{ContractError, Mistakes, quoted};
use super::expr::{Variable, evaluate};
use super::scalar::ScalarValue;
use super::{
    ArgKind, ArgSpec, ContractLimits, Dim3, Extent, IoContract, KernelFamily, KernelType, Launch,
    triton,
};

use warpgauge_model::FailureCode;

/// A launch configuration with all expressions evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResolvedLaunch {
    /// Number of blocks of the grid in x, y and z.
    pub grid: [u32; 3],
    /// Number of threads per block in x, y and z.
    pub block: [u32; 3],
    /// Dynamic shared memory per block, bytes.
    pub shared_bytes: u32,
    /// Number of blocks per cluster in x, y and z. `None` if the launch has no clusters.
    pub cluster: Option<[u32; 3]>,
    /// Whether the launch is cooperative.
    pub cooperative: bool,
}

impl ResolvedLaunch {
    /// Launch configuration that is returned in place of an invalid one.
    const ONE_THREAD: Self =
        Self { grid: [1; 3], block: [1; 3], shared_bytes: 0, cluster: None, cooperative: false };
}

/// Largest extents of any CUDA device (CUDA C++ Programming Guide, compute capabilities).
const MAX_GRID: [i128; 3] = [i32::MAX as i128, 65_535, 65_535];
const MAX_BLOCK: [i128; 3] = [1024, 1024, 64];
const MAX_THREADS: u64 = 1024;
/// Maximum number of blocks in a cluster. For more than 8, the kernel must opt in, and not all
/// devices support it.
const MAX_CLUSTER: u64 = 16;

const AXES: [&str; 3] = ["x", "y", "z"];

/// Type of the kernel of a launch, and whether all names in the launch have values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// A kernel that is launched as it was submitted. All names are those of arguments.
    Given(KernelType),
    /// A Triton kernel before its compilation. Constants that its decorators choose have no value
    /// yet, and an extent that uses such a constant counts as 1.
    Submitted,
}

impl Names {
    /// Returns the names of a kernel's launch before its compilation.
    pub fn of_submitted(kind: KernelType) -> Self {
        if kind == KernelType::Triton { Self::Submitted } else { Self::Given(kind) }
    }

    fn kind(self) -> KernelType {
        match self {
            Self::Given(kind) => kind,
            Self::Submitted => KernelType::Triton,
        }
    }
}

/// Resolves the launch configuration of a contract.
pub fn resolve_launch(
    io: &IoContract,
    limits: &ContractLimits,
) -> Result<ResolvedLaunch, Vec<ContractError>> {
    resolve_launch_at(io, KernelType::Cuda, limits, "kernel.io.launch")
}

/// Resolves the launch configuration of a compiled kernel. The block of a Triton kernel counts as
/// one thread, because the compiler decides the number of threads. `path` is the configuration's
/// path in the request.
pub fn resolve_launch_at(
    io: &IoContract,
    kind: KernelType,
    limits: &ContractLimits,
    path: &str,
) -> Result<ResolvedLaunch, Vec<ContractError>> {
    let mut mistakes = Mistakes::new(limits.max_errors);
    let resolved = resolve_into(io, Names::Given(kind), limits, path, &mut mistakes);
    mistakes.into_result().map(|()| resolved)
}

/// Resolves as far as possible. An extent that cannot be resolved adds a mistake and counts as 1.
pub(super) fn resolve_into(
    io: &IoContract,
    names: Names,
    limits: &ContractLimits,
    path: &str,
    mistakes: &mut Mistakes,
) -> ResolvedLaunch {
    if names.kind().family() == KernelFamily::Library {
        mistakes.require(io.launch.is_none(), path, FailureCode::WrongField, || {
            "a library decides how its functions are launched: leave `launch` out".to_owned()
        });
        return ResolvedLaunch::ONE_THREAD;
    }
    let scope = Scope { args: &io.args, counters: &[], names };
    resolve_launch_of(io.launch.as_ref(), scope, limits, path, mistakes)
}

/// Resolves a launch as far as possible, with the names of `scope`.
pub(super) fn resolve_launch_of(
    launch: Option<&Launch>,
    scope: Scope<'_>,
    limits: &ContractLimits,
    path: &str,
    mistakes: &mut Mistakes,
) -> ResolvedLaunch {
    let is_triton = scope.names.kind() == KernelType::Triton;
    if let Some(launch) = launch {
        triton::check_launch(launch, scope.names.kind(), path, mistakes);
    }
    let unknown = Cell::new(false);
    let mut resolver = Resolver { scope, unknown, path, mistakes };
    let Some(launch) = launch else {
        resolver.missing("", FailureCode::MissingLaunch);
        return ResolvedLaunch::ONE_THREAD;
    };
    // There is no default, because a kernel that ran with one block by accident would look fast.
    let grid = match &launch.grid {
        None => resolver.missing(".grid", FailureCode::MissingGrid),
        Some(dim) => resolver.dim3(dim, "grid", MAX_GRID),
    };
    let block = match &launch.block {
        _ if is_triton => [1; 3],
        None => resolver.missing(".block", FailureCode::MissingBlock),
        Some(dim) => resolver.dim3(dim, "block", MAX_BLOCK),
    };
    let threads: u64 = block.iter().map(|&extent| u64::from(extent)).product();
    if threads > MAX_THREADS {
        let message = format!(
            "a block of {}×{}×{} has {threads} threads; at most {MAX_THREADS} are possible",
            block[0], block[1], block[2]
        );
        resolver.mistake("block", FailureCode::BlockTooLarge, message);
    }
    let shared_bytes = launch.shared_memory_bytes.as_ref().map_or(0, |extent| {
        let most = i128::from(limits.max_shared_bytes.min(u64::from(u32::MAX)));
        resolver.extent(extent, "shared_memory_bytes", 0, most, 0)
    });
    let cluster = launch.cluster.as_ref().map(|dim| resolver.cluster(dim, grid));
    ResolvedLaunch { grid, block, shared_bytes, cluster, cooperative: launch.cooperative }
}

/// Names that expressions can use.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub args: &'a [ArgSpec],
    /// Indexes of loops with their values, from the outermost.
    pub counters: &'a [(&'a str, u64)],
    pub names: Names,
}

struct Resolver<'a> {
    scope: Scope<'a>,
    /// Whether the last expression used a name without a value.
    unknown: Cell<bool>,
    path: &'a str,
    mistakes: &'a mut Mistakes,
}

impl Resolver<'_> {
    fn mistake(&mut self, field: &str, code: FailureCode, message: String) {
        self.mistakes.add(format!("{}.{field}", self.path), code, message);
    }

    /// Reports a missing part of the launch, with an example that uses the contract's arguments.
    fn missing(&mut self, field: &str, code: FailureCode) -> [u32; 3] {
        let tensor = self.scope.args.iter().rev().find(|arg| arg.kind == ArgKind::Tensor);
        let blocks = tensor
            .map_or("4".to_owned(), |arg| format!("\"ceil_div({}.size, 256)\"", quoted(&arg.name)));
        let message = if self.scope.names.kind() == KernelType::Triton {
            "is missing; give the number of programs that run the kernel, for instance \
             \"launch\": {\"grid\": {\"x\": \"cdiv(n, BLOCK_SIZE)\"}}; the launch of a kernel in \
             another language is not used"
                .to_owned()
        } else {
            format!(
                "is missing; give the numbers of blocks and threads that run the kernel, for \
                 instance \"launch\": {{\"grid\": {{\"x\": {blocks}}}, \"block\": {{\"x\": 256}}}}"
            )
        };
        self.mistakes.add(format!("{}{field}", self.path), code, message);
        [1; 3]
    }

    fn dim3(&mut self, dim: &Dim3, field: &str, most: [i128; 3]) -> [u32; 3] {
        let extents = [&dim.x, &dim.y, &dim.z];
        std::array::from_fn(|axis| {
            let name = format!("{field}.{}", AXES[axis]);
            self.extent(extents[axis], &name, 1, most[axis], 1)
        })
    }

    fn cluster(&mut self, dim: &Dim3, grid: [u32; 3]) -> [u32; 3] {
        let cluster = self.dim3(dim, "cluster", [MAX_CLUSTER as i128; 3]);
        let blocks: u64 = cluster.iter().map(|&extent| u64::from(extent)).product();
        if blocks > MAX_CLUSTER {
            let message = format!(
                "a cluster of {blocks} blocks; at most 8 are portable, and {MAX_CLUSTER} the \
                 maximum"
            );
            self.mistake("cluster", FailureCode::ClusterTooLarge, message);
        }
        for axis in 0..3 {
            if !grid[axis].is_multiple_of(cluster[axis]) {
                let message = format!(
                    "the grid has {} blocks in {}, which is not a multiple of the cluster's {}",
                    grid[axis], AXES[axis], cluster[axis]
                );
                let field = format!("cluster.{}", AXES[axis]);
                self.mistake(&field, FailureCode::ClusterDoesNotDivideGrid, message);
            }
        }
        cluster
    }

    /// Evaluates one extent. If the value is outside `least ..= most`, adds a mistake and returns
    /// `instead`.
    fn extent(
        &mut self,
        extent: &Extent,
        field: &str,
        least: i128,
        most: i128,
        instead: u32,
    ) -> u32 {
        let (value, origin) = match extent {
            Extent::Value(value) => (i128::from(*value), String::new()),
            Extent::Expression(text) => match evaluate(text, |name| self.lookup(name)) {
                Ok(value) => (value, format!(" (from `{}`)", quoted(text))),
                Err(_) if self.unknown.take() && self.scope.names == Names::Submitted => {
                    return instead;
                }
                Err(error) => {
                    self.mistake(field, FailureCode::InvalidExpression, error.to_string());
                    return instead;
                }
            },
        };
        if (least..=most).contains(&value) {
            return value as u32;
        }
        let message = format!("must be {least} to {most}, not {value}{origin}");
        self.mistake(field, FailureCode::OutOfRange, message);
        instead
    }

    fn lookup(&self, variable: Variable<'_>) -> Result<i128, String> {
        let found = self.scope.lookup(variable);
        if found.is_err() && !self.scope.knows(name_of(variable)) {
            self.unknown.set(true);
        }
        found
    }
}

fn name_of(variable: Variable<'_>) -> &str {
    match variable {
        Variable::Scalar(name)
        | Variable::Shape(name, _)
        | Variable::Size(name)
        | Variable::Rank(name) => name,
    }
}

impl Scope<'_> {
    fn knows(&self, name: &str) -> bool {
        self.args.iter().any(|arg| arg.name == name)
    }

    /// Returns the value of an expression, or the reason why it has none.
    pub(super) fn evaluate(&self, text: &str) -> Result<i128, String> {
        evaluate(text, |variable| self.lookup(variable)).map_err(|error| error.to_string())
    }

    /// Returns the value of a variable, or the reason why it has none.
    pub(super) fn lookup(&self, variable: Variable<'_>) -> Result<i128, String> {
        let name = name_of(variable);
        if let Variable::Scalar(name) = variable
            && let Some((_, value)) = self.counters.iter().rev().find(|(known, _)| *known == name)
        {
            return Ok(i128::from(*value));
        }
        let Some(arg) = self.args.iter().find(|arg| arg.name == name) else {
            let known: Vec<&str> = self.args.iter().take(20).map(|arg| arg.name.as_str()).collect();
            let known = quoted(&known.join(", "));
            return Err(format!(
                "there is no argument `{}`; the arguments are {known}",
                quoted(name)
            ));
        };
        match variable {
            Variable::Scalar(_) => scalar_in_expression(arg),
            Variable::Shape(_, dimension) => {
                let shape = shape_of(arg)?;
                shape.get(dimension).map(|&extent| i128::from(extent)).ok_or_else(|| {
                    format!("`{}` has {} dimensions, counted from 0", quoted(name), shape.len())
                })
            }
            Variable::Size(_) => shape_of(arg)?
                .iter()
                .try_fold(1i128, |size, &extent| size.checked_mul(i128::from(extent)))
                .ok_or_else(|| format!("the size of `{}` does not fit in 128 bits", quoted(name))),
            Variable::Rank(_) => Ok(shape_of(arg)?.len() as i128),
        }
    }
}

fn shape_of(arg: &ArgSpec) -> Result<&[u64], String> {
    match &arg.tensor_spec {
        Some(spec) if !spec.open.is_empty() => Err(format!(
            "the shape of `{}` is not known yet: an expression in a shape may only use earlier arguments",
            quoted(&arg.name)
        )),
        Some(spec) => Ok(&spec.shape),
        None => Err(format!("`{}` is not a tensor, so it has no shape", quoted(&arg.name))),
    }
}

fn scalar_in_expression(arg: &ArgSpec) -> Result<i128, String> {
    let name = quoted(&arg.name);
    if arg.kind == ArgKind::Tensor {
        return Err(format!("`{name}` is a tensor; use `{name}.size` or `{name}.shape[0]`"));
    }
    match arg.scalar_value() {
        Ok(ScalarValue::Int(value)) => Ok(value),
        Ok(ScalarValue::Float(value)) if value.fract() == 0.0 && value.abs() < 2f64.powi(63) => {
            Ok(value as i128)
        }
        Ok(ScalarValue::Float(value)) => Err(format!("`{name}` is {value}, not an integer")),
        Ok(ScalarValue::Bool(_)) => Err(format!("`{name}` is a bool, not an integer")),
        Err(reason) => Err(format!("`{name}` has no integer value: {reason}")),
    }
}
