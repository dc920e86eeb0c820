//! Names of the fields that requests may have, from their schemas.

use std::sync::LazyLock;

use schemars::JsonSchema;
use warpgauge_tensor::{TensorData, TensorInit};

use crate::{
    ArgSpec, CompareRequest, Dim3, EvaluateRequest, IoContract, KernelMetadata, Launch,
    LegacyCompareRequest, TensorSpec,
};

/// Names of the fields of each type of a request.
pub(super) struct Known {
    pub(super) evaluation: Vec<String>,
    pub(super) comparison: Vec<String>,
    pub(super) two_sources: Vec<String>,
    pub(super) metadata: Vec<String>,
    pub(super) io: Vec<String>,
    pub(super) argument: Vec<String>,
    pub(super) tensor: Vec<String>,
    pub(super) init: Vec<String>,
    pub(super) data: Vec<String>,
    pub(super) launch: Vec<String>,
    pub(super) extents: Vec<String>,
}

/// Fields that are in no schema, because only warpgauge's own programs add them.
const ADDED: [&str; 3] = ["matrices", "tensors", "warnings"];

pub(super) static KNOWN: LazyLock<Known> = LazyLock::new(|| Known {
    evaluation: names::<EvaluateRequest>(&ADDED),
    comparison: names::<CompareRequest>(&ADDED),
    two_sources: names::<LegacyCompareRequest>(&[]),
    metadata: names::<KernelMetadata>(&[]),
    io: names::<IoContract>(&[]),
    argument: names::<ArgSpec>(&[]),
    tensor: names::<TensorSpec>(&[]),
    init: names::<TensorInit>(&["offsets"]),
    data: names::<TensorData>(&[]),
    launch: names::<Launch>(&[]),
    extents: names::<Dim3>(&[]),
});

fn names<T: JsonSchema>(added: &[&str]) -> Vec<String> {
    let schema = schemars::SchemaGenerator::default().into_root_schema_for::<T>();
    let properties = schema.get("properties").and_then(|properties| properties.as_object());
    let own = properties.into_iter().flat_map(|properties| properties.keys().cloned());
    own.chain(added.iter().map(|name| (*name).to_owned())).collect()
}
