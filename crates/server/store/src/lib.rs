//! Stores jobs so that they outlive the process: rows, files and transactions. This crate contains
//! all SQL of the program.
//!
//! The store knows nothing of HTTP, stages or requests; it stores bytes, states and numbers. One
//! code path serves SQLite (a file in the data directory) and PostgreSQL. The statements differ
//! only where PostgreSQL must lock rows. docs/store.md explains the design.
//!
//! - Callers open a [`Store`]. It has a part for each kind of data: [`JobQueue`], [`JobReader`],
//!   [`ArtifactStore`], [`BaselineStore`], [`MatrixStore`], [`DeliveryQueue`]; and [`Membership`],
//!   [`StoreHealth`] and [`Cleaner`]. The parts share an `Access` to rows and files.
//! - [`JobLease`] is the right to work on a job.
//! - One task per process (`writer`) performs all writes, and commits waiting ones as a group.
//! - [`may_follow`] is the only table of allowed transitions.
//! - An accepted job always ends. The holder of its lease ends it. If the holder counts as dead,
//!   the job is requeued. Only the current holder of the lease can end the job, so it ends once.

#![forbid(unsafe_code)]

#[cfg(test)]
#[macro_use]
#[path = "../../../../tests/support/needs.rs"]
mod needs;

mod access;
mod ahead;
mod artifacts;
mod baselines;
mod bulk;
mod cancel;
mod claim;
mod cleanup;
mod clock;
mod condition;
mod database;
mod deliveries;
mod error;
#[cfg(test)]
mod faults_tests;
mod history;
mod instance;
mod jobs;
#[cfg(test)]
mod kept_tests;
mod kept_types;
mod lease;
mod log;
mod matrices;
mod membership;
mod migrate;
mod objects;
mod offer;
mod open;
mod queue;
mod read;
mod recover;
mod repeated;
mod retention;
mod rows;
mod sound;
mod state;
mod submit;
mod tally;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod types;
#[cfg(test)]
mod verdict_tests;
mod view;
mod writer;

pub use artifacts::ArtifactStore;
pub use baselines::BaselineStore;
pub use bulk::{Bulk, RequestReader};
pub use cleanup::Cleaner;
pub use database::Durability;
pub use deliveries::DeliveryQueue;
pub use error::StoreError;
pub use jobs::JobReader;
pub use kept_types::{
    ArtifactRow, BaselineRow, CleanupCounts, Delivery, DeliveryOutcome, HistoryRow, NewBaselineRow,
    PointPage, Retention, SeriesFilter, SeriesRow, StoredArtifact, StoredBaseline,
};
pub use lease::{HEARTBEAT, JobLease, LEASE};
pub use matrices::{MatrixRow, MatrixStore, NewMatrix};
pub use membership::Membership;
pub use offer::MAX_REQUIREMENT_BYTES;
pub use open::{Quotas, Store, StoreConfig};
pub use queue::JobQueue;
pub use sound::StoreHealth;
pub use state::{STATES, has_ended, may_follow, name as state_name, parse as parse_state};
pub use types::{
    AcceptedJob, CancelResult, ClaimedJob, Heartbeat, Idempotency, JobEnding, JobError, JobFilter,
    JobId, JobKind, JobPage, JobRow, JobState, JobStateCounts, MAX_ATTEMPTS, MAX_BATCH,
    MAX_ERROR_BYTES, MAX_KEY_BYTES, MAX_LABEL_BYTES, MAX_OWNER_BYTES, MAX_WEBHOOK_BYTES, NewJob,
    NewReport, Page, Requeued, StoredReport, Visibility,
};
pub use view::StoreView;
