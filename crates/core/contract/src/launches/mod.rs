//! Programs of several launches: a list of steps in place of a kernel's host code. The main types are [`LaunchStep`],
//! its wire form, and [`ResolvedProgram`], the steps with all loops unrolled.

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::types::{Dim3, Extent, Launch};

pub(crate) use listed::check_fields;
pub use listed::{Line, lines_of};
pub use pointers::{MAX_POINTERS, PointerEntry};
pub(crate) use unrolled::resolve_into;
pub use unrolled::{ResolvedProgram, ResolvedStep, resolve_program};
pub(crate) use values::pointers_fit;
pub use values::{FieldPath, MAX_FIELDS, StepArgument, StructureField, ValueError, composed_value};

mod listed;
mod pointers;
mod unrolled;
mod values;

/// Largest number of steps that one list and its loops describe.
pub const MAX_LISTED: usize = 256;

/// Largest number of steps and passes of loops after unrolling.
pub const MAX_STEPS: usize = 65_536;

/// Largest size of the arguments and expressions of all steps after unrolling, bytes.
const MAX_SIZE: usize = 32 << 20;

/// Maximum nesting depth of loops.
pub const MAX_LOOPS: usize = 4;

/// Step of a kernel of several launches: a launch, an operation on memory, or a loop of steps. Exactly one of
/// `kernel`, `memset`, `memcpy`, `swap` and `steps` is given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LaunchStep {
    /// Name of the kernel to launch, as in `metadata.kernel_name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Arguments in the order of the parameters. Default: the arguments of `io` in their order. An argument is a
    /// number, null, the name of an argument of `io`, or an expression over scalars, shapes and loop indices such as
    /// `n - i`. It may also be a pointer to an element of a tensor, such as `x + i * n`, or an object with the fields
    /// of a structure by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<serde_json::Value>>")]
    pub args: Option<Vec<serde_json::Value>>,
    /// Number of blocks in the grid. Required with `kernel`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grid: Option<Dim3>,
    /// Number of threads in a block. Required with `kernel`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<Dim3>,
    /// Dynamic shared memory per block, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_memory_bytes: Option<Extent>,
    /// Number of blocks in a thread block cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<Dim3>,
    /// Whether the launch is cooperative: the whole grid is resident and can synchronise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cooperative: bool,
    /// Name of a tensor, every byte of which is set to `value`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memset: Option<String>,
    /// Byte that `memset` writes; default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<u8>,
    /// Copy of one tensor to another of the same size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memcpy: Option<CopyStep>,
    /// Names of two tensors of the same type and shape, which are exchanged from here on, as host code exchanges two
    /// pointers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap: Option<[String; 2]>,
    /// Steps of a loop, in order.
    #[serde(default, deserialize_with = "steps", skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<LaunchStep>,
    /// Number of repetitions of the step: a number, or an expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<Extent>,
    /// Name by which expressions refer to the number of the current pass, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<String>,
    /// Name of an integer or boolean tensor of one element. The step runs once, and again while the element is not 0
    /// after a pass.
    #[serde(default, rename = "while", skip_serializing_if = "Option::is_none")]
    pub while_flag: Option<String>,
    /// Maximum number of passes, required with `while`. The run fails if the flag is still set after the last pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<Extent>,
}

impl LaunchStep {
    /// Returns the launch configuration of a kernel's step.
    pub(crate) fn launch(&self) -> Launch {
        Launch {
            grid: self.grid.clone(),
            block: self.block.clone(),
            shared_memory_bytes: self.shared_memory_bytes.clone(),
            cluster: self.cluster.clone(),
            cooperative: self.cooperative,
            ..Launch::default()
        }
    }

    /// Returns the first kernel that this step launches, in the order of the list.
    pub(crate) fn first_kernel(&self) -> Option<&str> {
        self.kernel.as_deref().or_else(|| self.steps.iter().find_map(LaunchStep::first_kernel))
    }

    /// Adds the names of all kernels of this step.
    pub(crate) fn add_kernels<'a>(&'a self, names: &mut Vec<&'a str>) {
        if let Some(name) = self.kernel.as_deref().filter(|name| !names.contains(name)) {
            names.push(name);
        }
        self.steps.iter().for_each(|step| step.add_kernels(names));
    }
}

/// Deserialises a list of steps. Each step must be an object. A derived implementation would also
/// accept a list, because all fields have defaults.
pub(crate) fn steps<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<LaunchStep>, D::Error> {
    let steps = Vec::<Object>::deserialize(deserializer)?;
    Ok(steps.into_iter().map(|Object(step)| step).collect())
}

/// Wrapper that deserialises a step only from an object.
struct Object(LaunchStep);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OfObject)
    }
}

struct OfObject;

impl<'de> Visitor<'de> for OfObject {
    type Value = Object;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a step: an object with `kernel`, `memset`, `memcpy`, `swap` or `steps`")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object, A::Error> {
        LaunchStep::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

/// Step that copies one tensor to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CopyStep {
    /// Name of the tensor that is read.
    pub from: String,
    /// Name of the tensor that is written.
    pub to: String,
}

#[cfg(test)]
mod tests;
