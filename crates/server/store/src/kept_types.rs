//! What callers give and get of what is kept beside jobs.

use std::time::{Duration, SystemTime};

use super::{JobId, Visibility};

/// A file that a job left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactRow {
    /// Its name among those of the job.
    pub name: String,
    /// What it is, in the words of whoever kept it.
    pub kind: String,
    /// Its size.
    pub bytes: u64,
    /// When it was kept.
    pub created_at: SystemTime,
    /// Whether its bytes gave way to younger artifacts.
    pub gone: bool,
}

/// A file that a job left, with its bytes unless they gave way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredArtifact {
    /// What it is.
    pub artifact: ArtifactRow,
    /// Its content.
    pub bytes: Option<Vec<u8>>,
}

/// The end of a job that is to be announced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The job.
    pub job: JobId,
    /// Where to.
    pub url: String,
    /// The how-manieth try this is, from 1.
    pub attempt: u32,
}

/// What became of an announcement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// It was accepted.
    Delivered,
    /// It failed, and is to be tried again then.
    RetryAt(SystemTime, String),
    /// It failed, and is not tried again.
    GivenUp(String),
}

/// A measured value.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryRow {
    /// Whose it is.
    pub owner: String,
    /// What was measured.
    pub case: String,
    /// Which value of it.
    pub metric: String,
    /// On what: values of different devices are different series.
    pub device: String,
    /// How: values of different methods are different series.
    pub method: String,
    /// When.
    pub at: SystemTime,
    /// The value.
    pub value: f64,
    /// Lower end of its confidence interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Which revision of the source.
    pub revision: Option<String>,
    /// The job that measured it.
    pub job: Option<JobId>,
    /// More about it, in a form its reader knows.
    pub detail: Vec<u8>,
}

/// Which points of a case.
#[derive(Debug, Clone, Copy)]
pub struct SeriesFilter<'a> {
    /// Whose.
    pub owner: Visibility<'a>,
    /// Of this case.
    pub case: &'a str,
    /// Only of this metric.
    pub metric: Option<&'a str>,
    /// Only of this device.
    pub device: Option<&'a str>,
    /// Only of this method.
    pub method: Option<&'a str>,
}

/// A page of points, newest first.
#[derive(Debug, Clone, PartialEq)]
pub struct PointPage {
    /// The points.
    pub points: Vec<HistoryRow>,
    /// Where the next page begins; `None`: there is none.
    pub next: Option<String>,
}

/// A series of points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesRow {
    /// Whose it is.
    pub owner: String,
    /// What was measured.
    pub case: String,
    /// Which value of it.
    pub metric: String,
    /// On what.
    pub device: String,
    /// How.
    pub method: String,
    /// How many points it has.
    pub points: u64,
    /// When the latest was measured.
    pub latest_at: SystemTime,
}

/// A baseline to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewBaselineRow {
    /// Whose it is.
    pub owner: String,
    /// Under which name.
    pub name: String,
    /// What it holds for: GPU model, driver, method, in one text.
    pub pin: String,
    /// The job that measured it.
    pub job: Option<JobId>,
    /// The baseline, in a form its reader knows.
    pub body: Vec<u8>,
    /// Whether it counts at once.
    pub promote: bool,
}

/// A baseline, without its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaselineRow {
    /// Identifies this version.
    pub id: String,
    /// Whose it is.
    pub owner: String,
    /// Under which name.
    pub name: String,
    /// What it holds for.
    pub pin: String,
    /// Whether it is the one that counts of its owner, name and pin.
    pub promoted: bool,
    /// When it was kept.
    pub created_at: SystemTime,
    /// The job that measured it.
    pub job: Option<JobId>,
}

/// A baseline with its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBaseline {
    /// What it is.
    pub row: BaselineRow,
    /// The bytes that were given.
    pub body: Vec<u8>,
}

/// What is to be kept. Jobs that have not ended are always kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Retention {
    /// Ended jobs up to this age; `None`: whatever their age.
    pub max_age: Option<Duration>,
    /// So many ended jobs; 0: any number.
    pub max_jobs: u64,
    /// So many bytes of requests and reports, before compression; 0: any number.
    pub max_bytes: u64,
    /// So many points of the history; `None`: any number.
    pub max_points: Option<u64>,
}

/// What was taken down.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CleanupCounts {
    /// Jobs, with their requests, reports and artifacts.
    pub jobs: u64,
    /// Bytes of their requests and reports, before compression.
    pub bytes: u64,
    /// Points of the history.
    pub points: u64,
    /// Files that no row named.
    pub files: u64,
    /// Pages of SQLite's file that held nothing and were given back to the file system.
    pub pages: u64,
}
