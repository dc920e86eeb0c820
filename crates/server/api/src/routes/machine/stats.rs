//! `GET /stats`: statistics with the fields of the CUDA Evaluation Server. All values are measured.

use std::collections::BTreeMap;
use std::time::SystemTime;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::views::JobStats;
use warpgauge_job_views::{
    CompilationStatistics, DeviceStatistics, DeviceUse, ServiceStatistics, ThroughputStatistics,
};
use warpgauge_service::ServiceStatus;
use warpgauge_telemetry::Recent;

/// Statistics since the start of the process; times are in seconds. Before the first event, means,
/// minima and maxima are 0, success and correctness rates are 1, and the cache hit rate is 0.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Stats {
    /// Statistics of stored jobs.
    pub job_stats: JobStats,
    /// Numbers, durations and cache hits of compilations.
    pub compilation_metrics: CompilationMetrics,
    /// Statistics of runs on devices.
    pub profiling_metrics: ProfilingMetrics,
    /// Use of devices, and waits for them.
    pub gpu_utilization: GpuUtilization,
    /// Statistics of accepted jobs.
    pub throughput: Throughput,
    /// Time at which this answer was created, seconds since the Unix epoch.
    pub timestamp: f64,
}

/// Numbers, durations and cache hits of compilations.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CompilationMetrics {
    /// Number of compilations, including those whose image was in the cache.
    pub total_compilations: u64,
    /// Number of compilations that produced an image.
    pub successful_compilations: u64,
    /// Number of compilations that produced no image.
    pub failed_compilations: u64,
    /// Sum of the durations, seconds.
    pub total_time_seconds: f64,
    /// Mean duration, seconds.
    pub average_time_seconds: f64,
    /// Shortest duration, seconds.
    pub min_time_seconds: f64,
    /// Longest duration, seconds.
    pub max_time_seconds: f64,
    /// Share of successful compilations, 0–1.
    pub success_rate: f64,
    /// Cache hits divided by look-ups, 0–1.
    pub cache_hit_rate: f64,
    /// Number of images that were in memory or on disk, or that another request was compiling at
    /// the time.
    pub cache_hits: u64,
    /// Number of images that were not in the cache. Kernels that are submitted as machine code are
    /// not counted.
    pub cache_misses: u64,
}

/// Statistics of runs on devices.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ProfilingMetrics {
    /// Number of runs.
    pub total_profilings: u64,
    /// Number of runs that ended normally.
    pub successful_profilings: u64,
    /// Number of runs that crashed, hung or were stopped.
    pub failed_profilings: u64,
    /// Sum of the durations, seconds.
    pub total_time_seconds: f64,
    /// Mean duration, seconds.
    pub average_time_seconds: f64,
    /// Shortest duration, seconds.
    pub min_time_seconds: f64,
    /// Longest duration, seconds.
    pub max_time_seconds: f64,
    /// Share of successful runs, 0–1.
    pub success_rate: f64,
    /// Number of runs whose outputs were correct.
    pub correctness_passed: u64,
    /// Number of runs whose outputs were wrong.
    pub correctness_failed: u64,
    /// Share of runs with correct outputs among those whose outputs were checked, 0–1.
    pub correctness_rate: f64,
    /// Total time of runs on each device, seconds.
    pub gpu_usage_times: BTreeMap<String, f64>,
}

/// Statistics of the use of devices, and of waiting times for them.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct GpuUtilization {
    /// Number of leases that began.
    pub gpu_acquisitions: u64,
    /// Number of leases that have ended.
    pub gpu_releases: u64,
    /// Number of current leases.
    pub active_sessions: u64,
    /// Sum of the durations of the leases, seconds.
    pub total_gpu_time_seconds: f64,
    /// Total time spent waiting for devices, seconds.
    pub total_wait_time_seconds: f64,
    /// Mean waiting time, seconds.
    pub average_wait_time_seconds: f64,
    /// Shortest waiting time, seconds.
    pub min_wait_time_seconds: f64,
    /// Longest waiting time, seconds.
    pub max_wait_time_seconds: f64,
    /// Total duration of the leases of each device, seconds.
    pub utilization_by_gpu: BTreeMap<String, f64>,
    /// Share of the uptime during which each device was leased, 0–1.
    pub utilization_share_by_gpu: BTreeMap<String, f64>,
}

/// Statistics of accepted jobs.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Throughput {
    /// Time since the start of the service, seconds.
    pub server_uptime_seconds: f64,
    /// Time since the start of the service, minutes.
    pub server_uptime_minutes: f64,
    /// Number of accepted jobs.
    pub total_requests: u64,
    /// Number of jobs that ended with a report.
    pub completed_requests: u64,
    /// Number of jobs that ended without a report: failed, cancelled or timed out.
    pub failed_requests: u64,
    /// Share of the ended jobs that ended with a report, 0–1.
    pub success_rate: f64,
    /// Mean number of accepted jobs per minute since the start.
    pub requests_per_minute: f64,
    /// Number of accepted jobs per minute in the last five minutes.
    pub recent_throughput_per_minute: f64,
    /// Mean time from acceptance to the end, seconds.
    pub average_end_to_end_time_seconds: f64,
    /// Shortest time from acceptance to the end, seconds.
    pub min_end_to_end_time_seconds: f64,
    /// Longest time from acceptance to the end, seconds.
    pub max_end_to_end_time_seconds: f64,
}

impl Stats {
    pub(crate) fn new(status: &ServiceStatus, statistics: &ServiceStatistics) -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self {
            job_stats: JobStats {
                total_jobs: statistics.jobs.total,
                by_status: statistics.jobs.by_state.clone(),
                average_age: status.average_job_age_s,
            },
            compilation_metrics: CompilationMetrics::new(&statistics.compilation),
            profiling_metrics: ProfilingMetrics::new(statistics),
            gpu_utilization: GpuUtilization::new(&statistics.devices),
            throughput: Throughput::new(&statistics.throughput),
            timestamp: now.map_or(0.0, |since| since.as_secs_f64()),
        }
    }
}

impl CompilationMetrics {
    fn new(of: &CompilationStatistics) -> Self {
        let (time, total) = (&of.time, of.successful + of.failed);
        Self {
            total_compilations: total,
            successful_compilations: of.successful,
            failed_compilations: of.failed,
            total_time_seconds: time.total_s,
            average_time_seconds: time.mean_s(),
            min_time_seconds: time.min_s,
            max_time_seconds: time.max_s,
            success_rate: share(of.successful, total, 1.0),
            cache_hit_rate: share(of.cache_hits, total, 0.0),
            cache_hits: of.cache_hits,
            cache_misses: of.cache_misses,
        }
    }
}

impl ProfilingMetrics {
    fn new(statistics: &ServiceStatistics) -> Self {
        let of = &statistics.profiling;
        let (time, total) = (&of.time, of.successful + of.failed);
        Self {
            total_profilings: total,
            successful_profilings: of.successful,
            failed_profilings: of.failed,
            total_time_seconds: time.total_s,
            average_time_seconds: time.mean_s(),
            min_time_seconds: time.min_s,
            max_time_seconds: time.max_s,
            success_rate: share(of.successful, total, 1.0),
            correctness_passed: of.correct,
            correctness_failed: of.wrong,
            correctness_rate: share(of.correct, of.correct + of.wrong, 1.0),
            gpu_usage_times: by_gpu(&statistics.devices, |device| device.run_s),
        }
    }
}

impl GpuUtilization {
    fn new(of: &DeviceStatistics) -> Self {
        Self {
            gpu_acquisitions: of.acquisitions,
            gpu_releases: of.releases,
            active_sessions: of.devices.iter().filter(|device| device.held_now).count() as u64,
            total_gpu_time_seconds: of.devices.iter().map(|device| device.held_s).sum(),
            total_wait_time_seconds: of.wait.total_s,
            average_wait_time_seconds: of.wait.mean_s(),
            min_wait_time_seconds: of.wait.min_s,
            max_wait_time_seconds: of.wait.max_s,
            utilization_by_gpu: by_gpu(of, |device| device.held_s),
            utilization_share_by_gpu: by_gpu(of, |device| device.utilization),
        }
    }
}

impl Throughput {
    fn new(of: &ThroughputStatistics) -> Self {
        let minutes = of.uptime_s / 60.0;
        Self {
            server_uptime_seconds: of.uptime_s,
            server_uptime_minutes: minutes,
            total_requests: of.total,
            completed_requests: of.completed,
            failed_requests: of.failed,
            success_rate: share(of.completed, of.completed + of.failed, 1.0),
            requests_per_minute: if minutes > 0.0 { of.total as f64 / minutes } else { 0.0 },
            recent_throughput_per_minute: of.recent as f64 / Recent::MINUTES,
            average_end_to_end_time_seconds: of.end_to_end.mean_s(),
            min_end_to_end_time_seconds: of.end_to_end.min_s,
            max_end_to_end_time_seconds: of.end_to_end.max_s,
        }
    }
}

fn share(part: u64, whole: u64, of_nothing: f64) -> f64 {
    if whole == 0 { of_nothing } else { part as f64 / whole as f64 }
}

fn by_gpu(of: &DeviceStatistics, value: impl Fn(&DeviceUse) -> f64) -> BTreeMap<String, f64> {
    of.devices.iter().map(|device| (device.device.to_string(), value(device))).collect()
}
