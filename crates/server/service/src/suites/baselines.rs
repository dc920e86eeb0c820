//! Stored baselines: finds them by name, promotes candidates of passed runs, and removes baselines.
//! No operation needs a device. The main type is [`GateBaselines`].

use super::history::unix_s;
use super::invalid;
use crate::error::{self, ServiceError, refused};
use crate::records::gate_job;
use crate::settings;
use crate::submission::Caller;
use warpgauge_config::Config;
use warpgauge_gate::{Baseline, BaselinePin, BaselineSummary, SuiteVerdict, check_baseline_name};
use warpgauge_model::ErrorCode;
use warpgauge_store::{BaselineRow, NewBaselineRow, Store, StoredBaseline, Visibility};

/// Maximum number of versions of baselines that one query reads.
const MAX_VERSIONS: usize = 10_000;

/// Number of older versions that are kept for each name, in addition to the promoted ones.
const KEPT_VERSIONS: usize = 20;

/// Maximum number of baselines in a list.
const MAX_LISTED: usize = 200;

/// The baselines in a store.
pub struct GateBaselines {
    store: Store,
    /// Name of the device that the gate uses on this machine, if known.
    device: Option<String>,
}

impl GateBaselines {
    pub(crate) fn new(store: Store, device: Option<String>) -> Self {
        Self { store, device }
    }

    /// Opens the baselines in this machine's store, without starting the rest of the pipeline.
    ///
    /// # Errors
    /// The store cannot be opened.
    pub async fn open(config: &Config) -> Result<Self, ServiceError> {
        let store = Store::open(&settings::store_config(config)).await.map_err(refused)?;
        Ok(Self::new(store, None))
    }

    /// Closes the store.
    pub async fn close(self) {
        self.store.close().await;
    }

    /// Returns the owner's baseline with this name.
    ///
    /// # Errors
    /// [`ServiceError::NoSuchBaseline`], or an error of the store.
    pub async fn named(&self, name: &str, owner: &str) -> Result<Baseline, ServiceError> {
        if check_baseline_name(name).is_err() {
            return Err(missing(name));
        }
        let rows = self.versions(name, owner).await?;
        let chosen = self.chosen(rows).ok_or_else(|| missing(name))?;
        self.read(&chosen.id, owner).await?.ok_or_else(|| missing(name))
    }

    async fn versions(&self, name: &str, owner: &str) -> Result<Vec<BaselineRow>, ServiceError> {
        let who = Visibility::Owner(owner);
        self.store.baselines().list(who, Some(name), MAX_VERSIONS).await.map_err(refused)
    }

    /// Chooses one of the baselines of a name that are valid under different conditions: the newest
    /// for this machine's device, or otherwise the newest of all.
    fn chosen(&self, rows: Vec<BaselineRow>) -> Option<BaselineRow> {
        let here = |row: &BaselineRow| {
            let pin = warpgauge_document::from_json::<BaselinePin>(row.pin.as_bytes()).ok();
            pin.is_some_and(|pin| Some(pin.device) == self.device)
        };
        let promoted = rows.into_iter().filter(|row| row.promoted);
        promoted.max_by_key(|row| (here(row), row.created_at))
    }

    async fn read(&self, id: &str, owner: &str) -> Result<Option<Baseline>, ServiceError> {
        let stored =
            self.store.baselines().get(id, Visibility::Owner(owner)).await.map_err(refused)?;
        let read = |stored: StoredBaseline| {
            warpgauge_document::from_json(&stored.body)
                .map_err(|error| error::internal("reading a stored baseline", &error))
        };
        stored.map(read).transpose()
    }

    /// Stores a baseline. It replaces the baseline of the same name and conditions.
    pub(crate) async fn keep(
        &self,
        baseline: &Baseline,
        caller: &Caller,
    ) -> Result<BaselineSummary, ServiceError> {
        let written = |error: &serde_json::Error| error::internal("writing a baseline", error);
        let new = NewBaselineRow {
            owner: caller.owner.clone(),
            name: baseline.name.clone(),
            pin: serde_json::to_string(&baseline.pin).map_err(|error| written(&error))?,
            job: baseline.promoted_from.clone(),
            body: serde_json::to_vec(baseline).map_err(|error| written(&error))?,
            promote: true,
        };
        self.store.baselines().put(new).await.map_err(refused)?;
        self.drop_old_versions(&baseline.name, &caller.owner).await?;
        Ok(baseline.summary())
    }

    /// Removes old versions of a baseline, except the latest [`KEPT_VERSIONS`].
    async fn drop_old_versions(&self, name: &str, owner: &str) -> Result<(), ServiceError> {
        let mut rows = self.versions(name, owner).await?;
        rows.retain(|row| !row.promoted);
        rows.sort_by_key(|row| std::cmp::Reverse(row.created_at));
        for row in rows.iter().skip(KEPT_VERSIONS) {
            let who = Visibility::Owner(owner);
            self.store.baselines().delete(&row.id, who).await.map_err(refused)?;
        }
        Ok(())
    }

    /// Returns the caller's baselines, sorted by name.
    ///
    /// # Errors
    /// An error of the store.
    pub async fn list(&self, caller: &Caller) -> Result<Vec<BaselineSummary>, ServiceError> {
        let who = Visibility::Owner(&caller.owner);
        let rows = self.store.baselines().list(who, None, MAX_VERSIONS).await.map_err(refused)?;
        let mut summaries = Vec::new();
        for row in rows.into_iter().filter(|row| row.promoted).take(MAX_LISTED) {
            // A baseline that was removed in the meantime is not listed.
            if let Some(baseline) = self.read(&row.id, &caller.owner).await? {
                summaries.push(baseline.summary());
            }
        }
        Ok(summaries)
    }

    /// Makes the candidate of a passed gate job the baseline with this name.
    ///
    /// # Errors
    /// [`ServiceError::Conflict`] if the job did not pass or is not a run of the gate.
    pub async fn promote(
        &self,
        name: &str,
        job_id: &str,
        caller: &Caller,
    ) -> Result<BaselineSummary, ServiceError> {
        check_baseline_name(name).map_err(|error| invalid(&error))?;
        let (request, report) = gate_job(&self.store, job_id, caller).await?;
        let no =
            |why: String| ServiceError::Conflict { code: ErrorCode::NotPromotable, message: why };
        if report.verdict != SuiteVerdict::Pass {
            return Err(no(format!(
                "the verdict of job {job_id} is {}, not PASS; a candidate becomes the baseline \
                 only if its run passed",
                report.verdict.name()
            )));
        }
        let (Some(device), Some(method)) = (&report.device, &report.method) else {
            return Err(no(format!("job {job_id} measured no case")));
        };
        let baseline = Baseline {
            name: name.to_owned(),
            pin: BaselinePin {
                device: device.name.clone(),
                driver: method.driver.clone(),
                cuda: device.cuda_version.clone(),
                method: method.method.clone(),
                method_version: method.method_version,
            },
            suite: request.suite.clone(),
            commit: request.commit.clone(),
            promoted_from: Some(job_id.to_owned()),
            stored_unix_s: unix_s(),
            cases: request.contracts(),
        };
        self.keep(&baseline, caller).await
    }

    /// Removes all baselines of this name, whatever their conditions.
    ///
    /// # Errors
    /// [`ServiceError::NoSuchBaseline`] if there is no such baseline.
    pub async fn remove(&self, name: &str, caller: &Caller) -> Result<(), ServiceError> {
        let rows = self.versions(name, &caller.owner).await?;
        if rows.is_empty() {
            return Err(missing(name));
        }
        for row in rows {
            let who = Visibility::Owner(&caller.owner);
            self.store.baselines().delete(&row.id, who).await.map_err(refused)?;
        }
        Ok(())
    }
}

/// Returns the error for a missing baseline. A long name is truncated in the message.
fn missing(name: &str) -> ServiceError {
    ServiceError::NoSuchBaseline(name.chars().take(128).collect())
}
