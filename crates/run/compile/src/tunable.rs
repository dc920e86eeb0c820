//! Kernels with a choice of configurations, of which one is compiled.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::artifact::Constant;

/// A kernel with a choice of configurations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tunable {
    /// The configurations that are left after the kernel's own pruning.
    pub configurations: Vec<Configuration>,
    /// How many there were before.
    pub configurations_in_all: u32,
    /// Arguments that are to be zero before each launch, by index.
    #[serde(default)]
    pub reset_to_zero: Vec<usize>,
    /// Arguments that a launch must find as they were, by index.
    #[serde(default)]
    pub restore_value: Vec<usize>,
}

/// One configuration of a kernel: values of compile-time constants, and settings of the compiler.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Configuration {
    /// Its place among all that the source lists, from 0.
    pub index: u32,
    /// Compile-time constants.
    pub meta: BTreeMap<String, Constant>,
    /// Warps of a block.
    pub num_warps: u32,
    /// Pipeline stages.
    pub num_stages: u32,
    /// Blocks of a cluster.
    pub num_ctas: u32,
    /// Most registers of a thread, if they are limited.
    #[serde(default)]
    pub maxnreg: Option<u32>,
}
