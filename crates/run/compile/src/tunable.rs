//! Kernels with several configurations, of which one is compiled.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::artifact::Constant;

/// The configurations of a kernel that has several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tunable {
    /// The configurations that remain after the kernel's own pruning.
    pub configurations: Vec<Configuration>,
    /// Number of configurations before pruning.
    pub configurations_in_all: u32,
    /// Indices of the arguments that must be set to zero before each launch.
    #[serde(default)]
    pub reset_to_zero: Vec<usize>,
    /// Indices of the arguments whose content must be restored before each launch.
    #[serde(default)]
    pub restore_value: Vec<usize>,
}

/// A configuration of a kernel: values of compile-time constants, and settings of the compiler.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Configuration {
    /// Index among all configurations that the source lists, from 0.
    pub index: u32,
    /// Values of compile-time constants, by name.
    pub meta: BTreeMap<String, Constant>,
    /// Number of warps per block.
    pub num_warps: u32,
    /// Number of software-pipeline stages.
    pub num_stages: u32,
    /// Number of blocks per cluster.
    pub num_ctas: u32,
    /// Maximum number of registers per thread. `None` means no limit.
    #[serde(default)]
    pub maxnreg: Option<u32>,
}
