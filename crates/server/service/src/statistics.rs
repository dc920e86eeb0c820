//! Counters of the service since it started.

use warpgauge_job_views::{
    CompilationStatistics, DeviceStatistics, DeviceUse, Durations, JobCounts, ProfilingStatistics,
    ServiceStatistics, ThroughputStatistics,
};
use warpgauge_telemetry::{CacheResult, EndState, Observed, Stage, telemetry};

/// Returns the statistics of this process. `jobs` contains the counts of stored jobs, and `devices`
/// the ordinals of all devices.
pub(super) fn so_far(
    jobs: JobCounts,
    devices: impl Iterator<Item = u32>,
    uptime_s: f64,
) -> ServiceStatistics {
    let telemetry = telemetry();
    let time = |stage| durations(&telemetry.stage_times(stage));
    let images = |origin| telemetry.images_from(origin);
    let (runs, compile) = (telemetry.runs(), time(Stage::Compile));
    let failed = images(CacheResult::Failed);
    let endings: u64 = telemetry.endings().iter().map(|(_, count)| count).sum();
    let completed = telemetry.ended_in(EndState::Completed);
    let (total, recent) = telemetry.submissions();
    ServiceStatistics {
        jobs,
        compilation: CompilationStatistics {
            successful: compile.count.saturating_sub(failed),
            failed,
            cache_hits: images(CacheResult::Memory)
                + images(CacheResult::Disk)
                + images(CacheResult::Shared),
            cache_misses: images(CacheResult::Miss) + failed,
            time: compile,
        },
        profiling: ProfilingStatistics {
            successful: runs.all.saturating_sub(runs.failed),
            failed: runs.failed,
            correct: runs.correct,
            wrong: runs.wrong,
            time: time(Stage::Worker),
        },
        devices: DeviceStatistics {
            acquisitions: time(Stage::Queue).count,
            releases: telemetry.releases(),
            wait: time(Stage::Queue),
            devices: devices.map(|device| used(device, uptime_s)).collect(),
        },
        throughput: ThroughputStatistics {
            uptime_s,
            total,
            completed,
            failed: endings.saturating_sub(completed),
            recent,
            end_to_end: time(Stage::Total),
        },
    }
}

fn used(device: u32, uptime_s: f64) -> DeviceUse {
    let used = telemetry().device_use(device);
    DeviceUse {
        device,
        held_s: used.busy_s,
        run_s: used.run_s,
        held_now: used.leased,
        utilization: (used.busy_s / uptime_s.max(1e-9)).min(1.0),
    }
}

fn durations(observed: &Observed) -> Durations {
    Durations {
        count: observed.count(),
        total_s: observed.sum_s,
        min_s: observed.min_s,
        max_s: observed.max_s,
    }
}
