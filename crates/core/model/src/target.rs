//! What code is compiled for.

use serde::{Deserialize, Serialize};

/// The machine an image is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Target {
    /// Compute capability, e.g. (9, 0).
    pub compute_capability: (u32, u32),
    /// Highest CUDA version the driver serves, as `cuDriverGetVersion` gives it, e.g. 13000.
    pub driver_version: i32,
    /// The emulated device executes PTX, not machine code.
    pub emulated: bool,
}

impl Target {
    /// Compute capability times 10, as architectures are called: 90 for `sm_90`.
    pub fn architecture(&self) -> u32 {
        let (major, minor) = self.compute_capability;
        major.saturating_mul(10).saturating_add(minor)
    }
}
