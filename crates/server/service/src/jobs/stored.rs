//! Reads the jobs in the store without starting the pipeline.

use super::views::summary;
use crate::error::{ServiceError, refused};
use crate::settings;
use crate::submission::{Caller, JobQuery};
use warpgauge_config::Config;
use warpgauge_gate::SuiteVerdict;
use warpgauge_job_views::JobList;
use warpgauge_report::KernelVerdict;
use warpgauge_store::{JobFilter, Page, StoreView};

/// Lists the jobs in this machine's store, newest first. The query can filter them by state, kind,
/// verdict, decision and label.
///
/// # Errors
/// The store cannot be read, or has another version than this program supports.
pub async fn stored_jobs(
    config: &Config,
    query: &JobQuery,
    caller: &Caller,
) -> Result<JobList, ServiceError> {
    let store = StoreView::open(&settings::store_config(config)).await.map_err(refused)?;
    let Some(store) = store else { return Ok(JobList { jobs: Vec::new(), next_cursor: None }) };
    let filter = JobFilter {
        owner: (!caller.admin).then_some(caller.owner.as_str()),
        states: query.states.clone(),
        kind: query.kind,
        verdict: query.verdict.map(KernelVerdict::name),
        decision: query.decision.map(SuiteVerdict::name),
        label: query.label.as_deref(),
        idempotency_key: None,
    };
    let page = Page { after: query.cursor.clone(), limit: query.limit as usize };
    let found = store.jobs(&filter, &page).await;
    store.close().await;
    let found = found.map_err(refused)?;
    Ok(JobList { jobs: found.jobs.into_iter().map(summary).collect(), next_cursor: found.next })
}
