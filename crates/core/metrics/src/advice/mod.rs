//! Advice on a launch: observations about its metrics, each with its evidence. The main type is
//! [`Advice`].
//!
//! A rule reads a few metrics, and gives no advice if one that it needs is missing. Each piece of
//! advice has a share: an upper bound on the part of the time, traffic, work or capacity that it
//! concerns. A share of the traffic is multiplied by the memory's utilisation, if that is known, so
//! that wasted bytes of a kernel that is limited by arithmetic do not come first.

mod arithmetic;
mod launch;
mod memory;
mod saturation;
mod stalls;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::facts::{Facts, Values};
use super::roofline::{Roofline, dram_throughput};
use warpgauge_model::DeviceKind;

/// Maximum number of observations about a launch. A longer list would hardly be read to the end.
const MAX_OBSERVATIONS: usize = 6;

/// Observation about a kernel, with its evidence and possible remedies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Advice {
    /// Stable code of the observation.
    pub code: AdviceCode,
    /// Observation with its numbers, and possible remedies.
    pub message: String,
    /// Largest possible gain, as a share of the quantity in `share_of`, 0–1.
    pub share: f64,
    /// Quantity that the share is a part of.
    pub share_of: ShareOf,
    /// Threshold of the observation, with the reason for it.
    pub threshold: String,
    /// Values on which the observation is based.
    pub evidence: Vec<Evidence>,
}

/// Kind of an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AdviceCode {
    /// Requests to global memory access more sectors than necessary.
    UncoalescedAccess,
    /// Requests to global memory access adjacent addresses that begin within a sector.
    MisalignedAccess,
    /// Accesses to shared memory take several passes.
    BankConflicts,
    /// Resource limits allow few resident warps.
    LowOccupancy,
    /// Far fewer warps are resident on average than the theoretical occupancy allows.
    UnevenOccupancy,
    /// Registers are spilled, or arrays are in local memory.
    LocalMemory,
    /// The last wave of blocks leaves much of the GPU idle.
    TailEffect,
    /// The grid has fewer blocks than the GPU has multiprocessors.
    SmallGrid,
    /// Most of the time is the overhead of the launch.
    LaunchBound,
    /// Threads of a warp diverge or are inactive.
    Divergence,
    /// Tensor cores could execute the arithmetic.
    TensorCoresUnused,
    /// Device memory throughput is near its peak.
    DramSaturated,
    /// The L2 cache limits the kernel.
    L2Bound,
    /// Warps wait at barriers.
    BarrierStalls,
    /// Warps wait for global or local memory.
    MemoryLatency,
    /// Warps wait for shared memory or special functions.
    SharedMemoryLatency,
}

impl AdviceCode {
    /// Returns whether the observation is how a launch waits, and not why it does.
    fn is_symptom(self) -> bool {
        matches!(self, AdviceCode::MemoryLatency | AdviceCode::SharedMemoryLatency)
    }
}

/// Quantity of which an observation's share is a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShareOf {
    /// Execution time of the kernel.
    Time,
    /// Bytes that the kernel's memory requests move. The time that they take is not known.
    Traffic,
    /// Instructions that the kernel executes. The time that they take is not known.
    Work,
    /// Capacity of the GPU: multiprocessors, or resident warps.
    Capacity,
}

/// Value on which an observation is based.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Id of the metric, or path of a field in the report.
    pub metric: String,
    /// Value of the metric or field.
    pub value: f64,
    /// Unit of the value. Absent for a number without a unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}

/// Input of the advice rules.
#[derive(Clone, Copy)]
struct Launched<'a> {
    values: Values<'a>,
    facts: &'a Facts<'a>,
    roofline: Option<&'a Roofline>,
}

type Rule = fn(&Launched<'_>) -> Option<Advice>;

const RULES: [Rule; 16] = [
    launch::launch_bound,
    launch::small_grid,
    launch::tail_effect,
    launch::low_occupancy,
    launch::uneven_occupancy,
    memory::uncoalesced,
    memory::misaligned,
    memory::bank_conflicts,
    memory::local_memory,
    saturation::dram,
    saturation::l2,
    arithmetic::divergence,
    arithmetic::tensor_cores,
    stalls::barrier,
    stalls::memory,
    stalls::shared_memory,
];

/// Share from which a cause precedes symptoms of larger shares.
const CAUSE_FROM: f64 = 0.1;

/// Returns the advice about a launch, with the largest shares first. Symptoms follow causes that
/// may explain them.
pub fn advise(values: Values<'_>, facts: &Facts<'_>, roofline: Option<&Roofline>) -> Vec<Advice> {
    let launched = Launched { values, facts, roofline };
    let mut found: Vec<Advice> = RULES.iter().filter_map(|rule| rule(&launched)).collect();
    let has_cause = found.iter().any(|one| !one.code.is_symptom() && one.share >= CAUSE_FROM);
    let is_late = |one: &Advice| has_cause && one.code.is_symptom();
    // The sort is stable: equal shares keep the order of the rules.
    found.sort_by(|a, b| is_late(a).cmp(&is_late(b)).then(b.share.total_cmp(&a.share)));
    found.truncate(MAX_OBSERVATIONS);
    found
}

impl Launched<'_> {
    fn is_emulated(&self) -> bool {
        self.facts.device.kind == DeviceKind::Emulator
    }

    fn get(&self, id: &str) -> Option<f64> {
        self.values.get(id)
    }

    /// Returns the metrics with these ids as evidence. Returns `None` if one of them has no value.
    fn evidence(&self, ids: &[&str]) -> Option<Vec<Evidence>> {
        ids.iter().map(|id| self.metric(id)).collect()
    }

    fn metric(&self, id: &str) -> Option<Evidence> {
        let value = self.get(id)?;
        let unit = self.values.unit(id).map(str::to_owned);
        Some(Evidence { metric: id.to_owned(), value, unit })
    }

    /// Returns the utilisation of the busiest memory level as a fraction of its peak. Returns
    /// `None` if it is not known.
    fn memory_use(&self) -> Option<f64> {
        let levels = self.roofline.map_or(&[][..], |roofline| &roofline.memory);
        let rates = levels.iter().filter_map(|level| level.fraction);
        rates.chain(dram_throughput(self.values)).max_by(f64::total_cmp)
    }

    /// Converts a share of the traffic to a share of the time, if the memory's utilisation is
    /// known.
    fn of_traffic(&self, share: f64) -> (f64, ShareOf) {
        match self.memory_use() {
            Some(used) => (share * used.clamp(0.0, 1.0), ShareOf::Time),
            None => (share, ShareOf::Traffic),
        }
    }

    /// Returns the fraction of cycles in which schedulers had nothing to issue. The cost of waiting
    /// is at most this fraction.
    fn idle_issue(&self) -> Option<f64> {
        Some((1.0 - self.values.part("issue_active")?).clamp(0.0, 1.0))
    }
}

/// Returns a field of the report as evidence.
fn field(path: &str, value: f64, unit: &str) -> Evidence {
    Evidence { metric: path.to_owned(), value, unit: Some(unit.to_owned()) }
}

/// Formats a fraction as a percentage.
fn percent(part: f64) -> String {
    format!("{:.0} %", 100.0 * part)
}

#[cfg(test)]
mod tests;
