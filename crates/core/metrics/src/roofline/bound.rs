//! Finds the resource that limits a kernel.
//!
//! The rule is that of the "Speed Of Light" section of Nsight Compute (its rule `SOLBottleneck`).
//! The busiest unit limits the kernel if it is at 60 % of its peak or more. If there is no such
//! unit, latency limits it, because warps then wait and no unit is busy. Another rule takes
//! precedence: a kernel that takes hardly longer than an empty one is limited by its launch.

use super::{BoundBy, ComputeRoof, Facts, Level, MemoryRoof, Values};

/// Minimum fraction of its peak at which a unit limits a kernel.
const LIMITS_FROM: f64 = 0.6;

/// If the median is less than this multiple of that of an empty kernel, the launch takes most of
/// the time.
pub(crate) const LAUNCH_FACTOR: f64 = 1.25;

/// Metrics of the pipelines and of the issue of instructions, relative to the elapsed time.
const PIPELINES: [(&str, &str); 5] = [
    ("fma_pipe_active", "FMA pipeline"),
    ("alu_pipe_active", "ALU pipeline"),
    ("fp64_pipe_active", "FP64 pipeline"),
    ("tensor_pipe_active", "tensor pipeline"),
    ("sm_issue_active", "issue of instructions"),
];

/// Utilisation of a unit as a fraction of its peak, with a name.
struct Use {
    of: BoundBy,
    fraction: f64,
    what: String,
}

/// Returns the resource that limits the kernel, and the evidence.
pub(super) fn classify(
    values: Values<'_>,
    facts: &Facts<'_>,
    compute: &[ComputeRoof],
    memory: &[MemoryRoof],
) -> (Option<BoundBy>, String) {
    if let Some((median, empty)) = facts.timed.median_s.zip(facts.timed.empty_launch_s)
        && median < LAUNCH_FACTOR * empty
    {
        let text = format!(
            "a launch takes {:.2} µs, less than {LAUNCH_FACTOR} × the {:.2} µs of an empty kernel",
            median * 1e6,
            empty * 1e6
        );
        return (Some(BoundBy::Launch), text);
    }
    let uses = uses(values, compute, memory);
    let Some(busiest) = uses.iter().max_by(|a, b| a.fraction.total_cmp(&b.fraction)) else {
        return (None, "the metrics do not include the utilisation of any unit".to_owned());
    };
    let list: Vec<String> =
        uses.iter().map(|used| format!("{} {:.0} %", used.what, 100.0 * used.fraction)).collect();
    let list = list.join(", ");
    if busiest.fraction >= LIMITS_FROM {
        return (Some(busiest.of), format!("{} is the busiest unit: {list}", busiest.what));
    }
    // If one of them is missing, it might be the busy one.
    let known = |of: BoundBy| uses.iter().any(|used| used.of == of);
    let all = [BoundBy::Compute, BoundBy::L1, BoundBy::L2, BoundBy::Dram];
    if !all.into_iter().all(known) {
        return (
            None,
            format!(
                "no unit of known utilisation is at 60 % of its peak, and that of other units is \
                 not known: {list}"
            ),
        );
    }
    (Some(BoundBy::Latency), format!("no unit is at 60 % of its peak, so warps wait: {list}"))
}

fn uses(values: Values<'_>, compute: &[ComputeRoof], memory: &[MemoryRoof]) -> Vec<Use> {
    let level = |level: Level| {
        memory.iter().find(|roof| roof.level == level).and_then(|roof| roof.fraction)
    };
    // L1 is idle while its multiprocessor is.
    let l1_active = values
        .part("l1_throughput")
        .map(|part| part * values.part("sm_active_cycles").unwrap_or(1.0));
    let parts = [
        (BoundBy::L1, "L1", largest([level(Level::L1), l1_active])),
        // The throughput of L2's busiest unit includes its internal fabric, which reaches 80 % when
        // data are streamed from device memory. So the bytes that L2 returns take precedence.
        (BoundBy::L2, "L2", level(Level::L2).or_else(|| values.part("l2_throughput"))),
        (BoundBy::Dram, "DRAM", largest([level(Level::Dram), dram_throughput(values)])),
    ];
    let memory = parts.into_iter().filter_map(|(of, what, fraction)| {
        Some(Use { of, fraction: fraction?, what: what.to_owned() })
    });
    arithmetic(values, compute).into_iter().chain(memory).collect()
}

/// Returns the utilisation of the busiest precision or pipeline.
fn arithmetic(values: Values<'_>, compute: &[ComputeRoof]) -> Option<Use> {
    let rates = compute.iter().filter_map(|roof| {
        Some((roof.fraction?, format!("{} arithmetic", roof.precision.label())))
    });
    let pipelines =
        PIPELINES.iter().filter_map(|(id, what)| Some((values.part(id)?, (*what).to_owned())));
    let busiest = rates.chain(pipelines).max_by(|a, b| a.0.total_cmp(&b.0));
    let whole = || Some((values.part("sm_throughput")?, "multiprocessors".to_owned()));
    let (fraction, what) = busiest.or_else(whole)?;
    Some(Use { of: BoundBy::Compute, fraction, what })
}

/// Returns the utilisation of device memory as a fraction of its peak. Details pages contain only
/// the throughput of the whole path to it.
pub(crate) fn dram_throughput(values: Values<'_>) -> Option<f64> {
    values.part("dram_throughput").or_else(|| values.part("gpu_dram_throughput"))
}

fn largest(parts: [Option<f64>; 2]) -> Option<f64> {
    parts.into_iter().flatten().max_by(f64::total_cmp)
}
