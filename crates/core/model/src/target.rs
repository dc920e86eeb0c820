//! Compilation targets. The main type is [`Target`].

use serde::{Deserialize, Serialize};

/// The device that an image is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Target {
    /// Compute capability, e.g. (9, 0).
    pub compute_capability: (u32, u32),
    /// Highest CUDA version that the driver supports, as `cuDriverGetVersion` returns it, e.g.
    /// 13000.
    pub driver_version: i32,
    /// Whether the target is the emulated device, which executes PTX, not machine code.
    pub emulated: bool,
}

impl Target {
    /// Returns the compute capability times 10, as in names of architectures: 90 for `sm_90`.
    pub fn architecture(&self) -> u32 {
        let (major, minor) = self.compute_capability;
        major.saturating_mul(10).saturating_add(minor)
    }
}
