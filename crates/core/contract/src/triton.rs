//! Rules of Triton kernels: compile-time constants, and launches whose block the compiler
//! determines. It also completes kernels that take the arguments of another kernel.

use super::error::Mistakes;
use super::{ArgKind, ArgSpec, IoContract, KernelCode, KernelType, Launch, Padding, Role};

use warpgauge_model::FailureCode;

/// Warps per block. CUDA allows 1024 threads.
const NUM_WARPS: std::ops::RangeInclusive<u32> = 1..=32;
const NUM_STAGES: std::ops::RangeInclusive<u32> = 1..=32;
const NUM_CTAS: std::ops::RangeInclusive<u32> = 1..=16;
/// Range of ptxas for `.maxnreg` (PTX ISA).
const MAXNREG: std::ops::RangeInclusive<u32> = 8..=255;

impl KernelCode {
    /// Completes this reference kernel with the run-time arguments of another kernel. The result
    /// has those arguments and its own scalars and compile-time constants (or the other's
    /// constants, if both are Triton kernels). It has its own launch (or the other's, if both types
    /// share launches).
    pub fn as_reference(&self, other: &IoContract, other_kind: KernelType) -> Self {
        let mut kernel = self.clone();
        let (mut descriptors, mut own_scalars) = (Vec::new(), Vec::new());
        if let Some(own) = &mut kernel.io {
            let passed = own.args.iter().filter(|arg| !arg.is_meta && !arg.is_private());
            let passed = passed.collect::<Vec<_>>();
            if self.kernel_type.has_launches() && !passed.is_empty() {
                // The kernel's own list determines the positions of scratch memory and structures among its parameters,
                // and the tensors in its variables.
                for arg in own.args.iter_mut().filter(|arg| !arg.is_meta && !arg.is_private()) {
                    if let Some(theirs) = other.args.iter().find(|theirs| theirs.name == arg.name) {
                        let symbol = arg.symbol.take();
                        *arg = ArgSpec { descriptor: None, symbol, ..theirs.clone() };
                    }
                }
                return kernel.beside(other, other_kind);
            }
            descriptors = passed.iter().map(|arg| arg.descriptor.clone()).collect();
            let is_own = |arg: &&&ArgSpec| {
                arg.kind != ArgKind::Tensor && other.args.iter().all(|other| other.name != arg.name)
            };
            own_scalars = passed.iter().filter(is_own).map(|arg| (*arg).clone()).collect();
            own.args.retain(|arg| arg.is_meta || arg.is_private());
        }
        let mut kernel = kernel.beside(other, other_kind);
        // The data is that of the other kernel, but this kernel decides whether it takes a tensor
        // as a descriptor.
        let args = kernel.io.iter_mut().flat_map(|io| &mut io.args).filter(|arg| !arg.is_meta);
        args.zip(descriptors).for_each(|(arg, own)| arg.descriptor = own);
        kernel.io.iter_mut().for_each(|io| io.args.append(&mut own_scalars));
        kernel
    }

    /// Completes this kernel with the run-time arguments of another kernel, as [`KernelCode::as_reference`] does, but
    /// keeps the run-time arguments that this kernel lists.
    pub fn beside(mut self, other: &IoContract, other_kind: KernelType) -> Self {
        let kind = self.kernel_type;
        let own = self.io.take().unwrap_or_default();
        let is_own = |arg: &ArgSpec| !arg.is_meta && !arg.is_private();
        let brings_arguments = own.args.iter().any(is_own);
        let args = if brings_arguments {
            own.args
        } else {
            let is_triton = kind == KernelType::Triton;
            let constants = |args: &[ArgSpec]| {
                args.iter().filter(|arg| arg.is_meta && is_triton).cloned().collect::<Vec<_>>()
            };
            // Scratch memory, structures and arrays of pointers belong to the kernel that lists them. If both kernels
            // have one launch, and this kernel lists none of these, it has the same parameters as the other.
            let private = own.args.iter().filter(|arg| arg.is_private()).cloned();
            let private = private.collect::<Vec<_>>();
            let has_same = private.is_empty()
                && self.launches.is_empty()
                && other.launch.is_some()
                && kind.has_launches();
            // Two Triton kernels also share arrays of pointers.
            let has_arrays = private.is_empty() && kind == KernelType::Triton && other_kind == kind;
            let is_cuda = kind == KernelType::Cuda;
            let fits = |arg: &&ArgSpec| {
                let is_taken = match arg.kind {
                    ArgKind::Struct => is_cuda,
                    ArgKind::Pointers => kind.takes_pointers(),
                    ArgKind::Texture | ArgKind::Surface => kind.has_launches(),
                    _ => true,
                };
                let is_same = has_same || has_arrays && arg.kind == ArgKind::Pointers;
                !arg.is_meta && (is_same || !arg.is_private()) && is_taken
            };
            let passed = other.args.iter().filter(fits);
            let passed = passed.cloned().chain(private);
            let bare =
                |arg: ArgSpec| ArgSpec { descriptor: arg.descriptor.filter(|_| is_triton), ..arg };
            let mut args: Vec<ArgSpec> = passed.map(bare).collect();
            let named = constants(&own.args);
            args.extend(if named.is_empty() { constants(&other.args) } else { named });
            args
        };
        let shares = self.launches.is_empty() && kind.shares_launch_with(other_kind);
        let launch = own.launch.or_else(|| other.launch.clone().filter(|_| shares));
        let mut io = IoContract { args, launch };
        io.settle_shapes();
        self.io = Some(io);
        self
    }
}

impl ArgSpec {
    /// Returns a compile-time constant.
    pub fn constant(name: &str, kind: ArgKind, value: serde_json::Value) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            value: Some(value),
            value_of: None,
            tensor_spec: None,
            fields: serde_json::Map::new(),
            pointers: Vec::new(),
            texture: None,
            surface: None,
            symbol: None,
            role: Role::Input,
            is_meta: true,
            c_type: None,
            descriptor: None,
        }
    }
}

/// Checks that the fields of a launch suit the kernel's type, and the ranges of Triton's fields.
pub(super) fn check_launch(launch: &Launch, kind: KernelType, path: &str, mistakes: &mut Mistakes) {
    if kind != KernelType::Triton {
        for (field, given) in [("num_ctas", launch.num_ctas), ("maxnreg", launch.maxnreg)] {
            mistakes.require(
                given.is_none(),
                format!("{path}.{field}"),
                FailureCode::WrongField,
                || format!("`{field}` is for Triton kernels; see `cluster` and `compiler_options`"),
            );
        }
        return;
    }
    let theirs = [
        ("block", launch.block.is_some(), "it has 32 × `num_warps` threads"),
        (
            "shared_memory_bytes",
            launch.shared_memory_bytes.is_some(),
            "its compiler determines \
                                                                       the size",
        ),
        ("cluster", launch.cluster.is_some(), "it has `num_ctas` blocks"),
        ("cooperative", launch.cooperative, "give `launch_cooperative_grid=true` as an option"),
    ];
    for (field, given, instead) in theirs {
        mistakes.require(!given, format!("{path}.{field}"), FailureCode::WrongField, || {
            format!("a Triton kernel takes no `{field}`: {instead}")
        });
    }
    let numbers = [
        ("num_warps", launch.num_warps, NUM_WARPS, true),
        ("num_stages", launch.num_stages, NUM_STAGES, false),
        ("num_ctas", launch.num_ctas, NUM_CTAS, true),
        ("maxnreg", launch.maxnreg, MAXNREG, false),
    ];
    for (field, given, range, power) in numbers {
        let Some(value) = given else { continue };
        let fits = range.contains(&value) && (!power || value.is_power_of_two());
        mistakes.require(fits, format!("{path}.{field}"), FailureCode::OutOfRange, || {
            let kind = if power { "a power of two from" } else { "from" };
            format!("must be {kind} {} to {}, not {value}", range.start(), range.end())
        });
    }
}

/// Checks the fields of an argument that apply only to Triton kernels.
pub(super) fn check_argument(arg: &ArgSpec, kind: KernelType, path: &str, mistakes: &mut Mistakes) {
    let is_triton = kind == KernelType::Triton;
    if arg.is_meta && !is_triton {
        let message = "compile-time constants are for Triton kernels; use a macro or a template \
                       argument (`metadata.name_expressions`)";
        mistakes.add(format!("{path}.is_meta"), FailureCode::WrongField, message);
    }
    if arg.is_meta && arg.kind == ArgKind::Tensor {
        let message = "a tensor cannot be a compile-time constant; leave `is_meta` out";
        mistakes.add(format!("{path}.is_meta"), FailureCode::WrongField, message);
    }
    let Some(descriptor) = &arg.descriptor else { return };
    let path = format!("{path}.descriptor");
    let Some(spec) = arg.tensor_spec.as_ref().filter(|_| is_triton) else {
        let message = "only tensors of Triton kernels are passed as descriptors";
        mistakes.add(path, FailureCode::WrongField, message);
        return;
    };
    let rank = spec.shape.len();
    let fits = descriptor.block_shape.len() == rank
        && (1..=5).contains(&rank)
        && descriptor.block_shape.iter().all(|extent| extent.is_power_of_two());
    mistakes.require(fits, format!("{path}.block_shape"), FailureCode::InvalidShape, || {
        format!(
            "must have as many extents as the tensor has dimensions, {rank} (1 to 5 are possible), \
             each a power of two"
        )
    });
    let fits = descriptor.padding == Padding::Zero || spec.dtype.is_float();
    mistakes.require(fits, format!("{path}.padding"), FailureCode::WrongField, || {
        format!("a tensor of {} cannot be padded with `nan`; leave `padding` out", spec.dtype)
    });
}
