//! Metrics that follow from the launch, the kernel's resources and the device, without counters.

use super::found::{Found, Known};
use super::occupancy::{self, Block, Limits};
use super::types::MetricSource;
use warpgauge_model::{DeviceInfo, DeviceKind, FunctionFacts};

const NO_FACTS: &str = "the driver did not describe the kernel";
const ESTIMATED: &str = "based on the emulator's estimate of the registers that a GPU would use";
const SET_UP: &str = "shared memory does not limit the blocks of this launch, so the size that \
                      the driver configured is not known: Nsight Compute reports it";

/// Ids of the metrics that follow from a launch, without counters.
const FACTS: [&str; 14] = [
    "block_size",
    "grid_size",
    "registers_per_thread",
    "shared_memory_per_block",
    "local_memory_per_thread",
    "static_shared_memory_per_block",
    "dynamic_shared_memory_per_block",
    "driver_shared_memory_per_block",
    "occupancy_limit_registers",
    "occupancy_limit_shared_memory",
    "occupancy_limit_warps",
    "occupancy_limit_blocks",
    "theoretical_occupancy",
    "waves_per_sm",
];

/// Configuration of a launch, with the device and the kernel's resources.
#[derive(Debug, Clone, Copy)]
pub struct DeviceLaunch<'a> {
    pub device: &'a DeviceInfo,
    /// Resources of the kernel, if the driver reported them.
    pub function: Option<&'a FunctionFacts>,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// Dynamic shared memory per block, bytes.
    pub dynamic_shared_bytes: u32,
}

fn known(value: f64, note: Option<&'static str>) -> Found {
    Ok(Known { note: note.map(Into::into), ..Known::plain(value, MetricSource::Static) })
}

impl DeviceLaunch<'_> {
    /// Returns whether the metric with this id follows from a launch, without counters.
    pub(super) fn follows(id: &str) -> bool {
        FACTS.contains(&id)
    }

    /// Returns the metric with this id, if it follows from the launch. Returns `None` for all other
    /// ids.
    pub(super) fn fact(&self, id: &str) -> Option<Found> {
        let threads = self.threads();
        let blocks = self.grid.iter().map(|&extent| f64::from(extent)).product::<f64>();
        let of_function = |value: fn(&FunctionFacts) -> u32, note| match self.function {
            Some(facts) => known(f64::from(value(facts)), note),
            None => Err(NO_FACTS.into()),
        };
        let limit = |of: fn(&Limits) -> u32, note| match self.limits() {
            Some(limits) => known(f64::from(of(&limits)), note),
            None => Err(NO_FACTS.into()),
        };
        let resident = self.function.map(|facts| facts.max_active_blocks);
        let estimated = self.estimated();
        Some(match id {
            "block_size" => known(threads as f64, None),
            "grid_size" => known(blocks, None),
            "registers_per_thread" => of_function(|facts| facts.registers, estimated),
            "shared_memory_per_block" => match self.function {
                Some(_) => known(f64::from(self.shared_bytes()) + self.reserved(), None),
                None => Err(NO_FACTS.into()),
            },
            "local_memory_per_thread" => of_function(|facts| facts.local_bytes, None),
            "static_shared_memory_per_block" => {
                of_function(|facts| facts.static_shared_bytes, None)
            }
            "dynamic_shared_memory_per_block" => known(f64::from(self.dynamic_shared_bytes), None),
            "driver_shared_memory_per_block" => known(self.reserved(), None),
            "occupancy_limit_registers" => limit(|limits| limits.registers, estimated),
            "occupancy_limit_shared_memory" => self.shared_limit(),
            "occupancy_limit_warps" => limit(|limits| limits.warps, None),
            "occupancy_limit_blocks" => limit(|limits| limits.blocks, None),
            "theoretical_occupancy" => match resident {
                Some(resident) => {
                    let threads = u32::try_from(threads).unwrap_or(u32::MAX);
                    let pct = occupancy::theoretical_pct(&self.device.sm, threads, resident);
                    known(pct, estimated)
                }
                None => Err(NO_FACTS.into()),
            },
            "waves_per_sm" => match resident {
                Some(resident) if resident > 0 && self.device.multiprocessors > 0 => {
                    let at_once = f64::from(resident) * f64::from(self.device.multiprocessors);
                    known(blocks / at_once, estimated)
                }
                _ => Err(NO_FACTS.into()),
            },
            _ => return None,
        })
    }

    /// Returns the number of blocks that fit into the shared memory that the driver configured for
    /// the launch. Nsight Compute computes it as `launch__shared_mem_config_size` divided by the
    /// allocation of a block (`launch__shared_mem_per_block_allocated`), rounded down. The driver
    /// configures at least what the resident blocks need, and at most all of the shared memory. If
    /// both limits give the same number, the value is known. Otherwise the driver's description of
    /// the launch does not determine it.
    fn shared_limit(&self) -> Found {
        let (Some(limits), Some(facts)) = (self.limits(), self.function) else {
            return Err(NO_FACTS.into());
        };
        match limits.shared == facts.max_active_blocks {
            true => known(f64::from(limits.shared), None),
            false => Err(SET_UP.into()),
        }
    }

    /// Returns the note for values that depend on the number of registers.
    fn estimated(&self) -> Option<&'static str> {
        (self.device.kind == DeviceKind::Emulator).then_some(ESTIMATED)
    }

    fn threads(&self) -> u64 {
        self.block.iter().map(|&extent| u64::from(extent)).product()
    }

    fn shared_bytes(&self) -> u32 {
        let fixed = self.function.map_or(0, |facts| facts.static_shared_bytes);
        fixed.saturating_add(self.dynamic_shared_bytes)
    }

    fn reserved(&self) -> f64 {
        f64::from(self.device.sm.reserved_shared_bytes)
    }

    fn limits(&self) -> Option<Limits> {
        let block = Block {
            threads: u32::try_from(self.threads()).ok()?,
            registers: self.function?.registers,
            shared_bytes: self.shared_bytes(),
        };
        occupancy::limits(&self.device.sm, self.device.target.compute_capability.0, block)
    }
}
