//! Types of the data that the store keeps in addition to jobs.

use std::time::{Duration, SystemTime};

use super::{JobId, Visibility};

/// An artifact of a job, without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactRow {
    /// Name, unique within the job.
    pub name: String,
    /// Kind, chosen by the process that stored the artifact.
    pub kind: String,
    /// Size in bytes.
    pub bytes: u64,
    pub created_at: SystemTime,
    /// Whether the content was removed for newer artifacts.
    pub gone: bool,
}

/// An artifact with its content, unless the content was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredArtifact {
    pub artifact: ArtifactRow,
    pub bytes: Option<Vec<u8>>,
}

/// A webhook that announces the end of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub job: JobId,
    pub url: String,
    /// Number of this attempt, from 1.
    pub attempt: u32,
}

/// Result of a delivery attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// The receiver accepted the message.
    Delivered,
    /// The attempt failed for this reason, and is retried at this time.
    RetryAt(SystemTime, String),
    /// The attempt failed for this reason, and is not retried.
    GivenUp(String),
}

/// A measured value.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryRow {
    pub owner: String,
    /// Name of the measured case.
    pub case: String,
    /// Name of the measured quantity.
    pub metric: String,
    /// Name of the device. Values of different devices are different series.
    pub device: String,
    /// Measurement method. Values of different methods are different series.
    pub method: String,
    pub at: SystemTime,
    pub value: f64,
    /// Lower end of the confidence interval.
    pub low: Option<f64>,
    /// Upper end of the confidence interval.
    pub high: Option<f64>,
    /// Revision of the source.
    pub revision: Option<String>,
    /// The job that measured the value.
    pub job: Option<JobId>,
    /// Further data, opaque to the store.
    pub detail: Vec<u8>,
}

/// Filter for the points of a case.
#[derive(Debug, Clone, Copy)]
pub struct SeriesFilter<'a> {
    pub owner: Visibility<'a>,
    pub case: &'a str,
    /// Only points of this metric.
    pub metric: Option<&'a str>,
    /// Only points of this device.
    pub device: Option<&'a str>,
    /// Only points with this method.
    pub method: Option<&'a str>,
}

/// A page of points, newest first.
#[derive(Debug, Clone, PartialEq)]
pub struct PointPage {
    pub points: Vec<HistoryRow>,
    /// Start of the next page; `None` on the last page.
    pub next: Option<String>,
}

/// A series of points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesRow {
    pub owner: String,
    /// Name of the measured case.
    pub case: String,
    /// Name of the measured quantity.
    pub metric: String,
    pub device: String,
    /// Measurement method.
    pub method: String,
    pub points: u64,
    /// Time of the latest point.
    pub latest_at: SystemTime,
}

/// A baseline to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewBaselineRow {
    pub owner: String,
    pub name: String,
    /// Conditions of the baseline as one text: GPU model, driver, method.
    pub pin: String,
    /// The job that measured the baseline.
    pub job: Option<JobId>,
    /// The baseline, opaque to the store.
    pub body: Vec<u8>,
    /// Whether to promote the baseline at once.
    pub promote: bool,
}

/// A baseline, without its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaselineRow {
    /// Id of this version.
    pub id: String,
    pub owner: String,
    pub name: String,
    /// Conditions of the baseline.
    pub pin: String,
    /// Whether this version is the promoted one of its owner, name and pin.
    pub promoted: bool,
    pub created_at: SystemTime,
    /// The job that measured the baseline.
    pub job: Option<JobId>,
}

/// A baseline with its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBaseline {
    pub row: BaselineRow,
    /// Content of the baseline, exactly as it was stored.
    pub body: Vec<u8>,
}

/// Limits of retention. Jobs that have not ended are never removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Retention {
    /// Maximum age of ended jobs; `None` means no limit.
    pub max_age: Option<Duration>,
    /// Maximum number of ended jobs; 0 means no limit.
    pub max_jobs: u64,
    /// Maximum size of requests and reports, before compression, bytes; 0 means no limit.
    pub max_bytes: u64,
    /// Maximum number of points of the history; `None` means no limit.
    pub max_points: Option<u64>,
}

/// Counts of the data that a clean-up removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CleanupCounts {
    /// Number of jobs, with their requests, reports and artifacts.
    pub jobs: u64,
    /// Size of the jobs' requests and reports, before compression, bytes.
    pub bytes: u64,
    /// Number of points of the history.
    pub points: u64,
    /// Number of files to which no row referred.
    pub files: u64,
    /// Number of empty pages of the SQLite file that were returned to the file system.
    pub pages: u64,
}
