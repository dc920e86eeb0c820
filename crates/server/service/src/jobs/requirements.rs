//! Finds processes whose capabilities meet the requirements of requests. The main type is
//! [`Placements`].

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Problem, ServiceError, chain, refused};
use crate::submission::JobRequest;
use warpgauge_contract::{EvaluateRequest, UsesLanguages};
use warpgauge_executor::{ExecError, Executor};
use warpgauge_model::{ExecutorCapabilities, FailureCode, Requirements};
use warpgauge_store::Store;

/// Requirements of stored jobs that this process can meet.
#[derive(Default)]
struct Taking {
    now: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    capabilities: ExecutorCapabilities,
    /// Requirements that the executor offered to meet but did not meet. They are excluded until its
    /// capabilities change.
    broken: BTreeSet<String>,
}

impl Taking {
    fn takes(&self, key: &str) -> bool {
        let taken = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        let meets = |order: &Requirements| taken.capabilities.meet(order).is_ok();
        !taken.broken.contains(key) && Requirements::of_key(key).as_ref().is_some_and(meets)
    }

    /// Stores the capabilities, and returns whether they changed.
    fn update(&self, capabilities: &ExecutorCapabilities) -> bool {
        let mut taken = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = taken.capabilities != *capabilities;
        if changed {
            *taken = Taken { capabilities: capabilities.clone(), broken: BTreeSet::new() };
        }
        changed
    }

    fn broke(&self, key: String) {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).broken.insert(key);
    }
}

/// Returns the requirements of a request on the executor.
///
/// # Errors
/// Parts of the request have different requirements, although they share one device.
pub(super) fn requirements_of(request: &JobRequest) -> Result<Requirements, ServiceError> {
    let (mut requires, languages) = match request {
        JobRequest::Evaluate(request) | JobRequest::Execute(request) => {
            (request.requires.clone(), request.languages())
        }
        JobRequest::Compare(request) => (request.requires.clone(), request.languages()),
        JobRequest::Sweep(request) => (request.requires.clone(), request.languages()),
        JobRequest::Gate(request) => {
            let all = request.cases.iter().map(|case| &case.contract.requires);
            let all: BTreeSet<&Requirements> = all.collect();
            let mut all = all.into_iter();
            let first = all.next().cloned().unwrap_or_default();
            if all.next().is_some() {
                return Err(ServiceError::invalid(vec![Problem {
                    path: "cases".to_owned(),
                    code: FailureCode::DifferentRequirements,
                    message: "the cases of a suite run on one device: set the same `requires` in all contracts, \
                              or none"
                        .to_owned(),
                }]));
            }
            let baselines = request.cases.iter().filter_map(|case| case.baseline.as_ref());
            let sides = request.cases.iter().map(|case| &case.contract).chain(baselines);
            (first, sides.flat_map(EvaluateRequest::languages).collect())
        }
    };
    requires.languages.extend(languages);
    Ok(requires)
}

/// The process that can run a job.
pub(super) enum Placement {
    /// This process.
    Here,
    /// Another process that uses the same store.
    Elsewhere,
}

/// Finds processes that can run jobs. For this process it asks the executor; for other processes it
/// reads their capabilities from the store.
pub(super) struct Placements {
    store: Store,
    executor: Arc<dyn Executor>,
    taking: Arc<Taking>,
}

impl Placements {
    /// Creates placements for this executor and for the processes that use this store.
    pub(super) fn new(store: Store, executor: Arc<dyn Executor>) -> Arc<Self> {
        Arc::new(Self { store, executor, taking: Arc::default() })
    }

    /// Publishes this process's capabilities in the store, for the other processes. The upkeep
    /// repeats this, because capabilities may change.
    pub(super) async fn offer_capabilities(&self) {
        let capabilities = self.executor.capabilities().await;
        if !self.taking.update(&capabilities) {
            return;
        }
        let text = match serde_json::to_string(&capabilities) {
            Ok(text) => text,
            Err(error) => {
                tracing::error!(%error, "the capabilities cannot be serialized");
                return;
            }
        };
        let taking = Arc::clone(&self.taking);
        if let Err(error) = self.store.membership().offer(text, move |key| taking.takes(key)).await
        {
            // The next call publishes them again. Until then, this process accepts only jobs
            // without requirements.
            self.taking.update(&ExecutorCapabilities::default());
            tracing::error!(
                error = chain(&error),
                "cannot publish the capabilities of this machine"
            );
        }
    }

    /// Finds a process that meets these requirements.
    ///
    /// # Errors
    /// No process meets them. The message contains each reason.
    pub(super) async fn find(&self, order: &Requirements) -> Result<Placement, ServiceError> {
        if order.is_empty() {
            return Ok(Placement::Here);
        }
        let here = match self.executor.capabilities().await.meet(order) {
            Ok(()) => return Ok(Placement::Here),
            Err(reason) => reason,
        };
        let mut reasons = BTreeSet::from([here]);
        for offer in self.store.membership().offers_of_others().await.map_err(refused)? {
            // A process of another version may publish capabilities that this process cannot read.
            // Such a process is skipped.
            let Ok(offer) = serde_json::from_str::<ExecutorCapabilities>(&offer) else { continue };
            match offer.meet(order) {
                Ok(()) => return Ok(Placement::Elsewhere),
                Err(reason) => drop(reasons.insert(reason)),
            }
        }
        Err(unmet(reasons))
    }

    /// Excludes requirements that the executor failed to meet. From then on, this process accepts
    /// no job with them. Succeeds if another process may run the job.
    ///
    /// # Errors
    /// No other process meets the requirements.
    pub(super) async fn reject(&self, key: String, why: &str) -> Result<(), ServiceError> {
        self.taking.broke(key.clone());
        let order = Requirements::of_key(&key).unwrap_or_default();
        tracing::error!(
            requires = key,
            why,
            "this machine does not meet requirements that it was expected to meet"
        );
        for offer in self.store.membership().offers_of_others().await.map_err(refused)? {
            let offer = serde_json::from_str::<ExecutorCapabilities>(&offer);
            if offer.is_ok_and(|offer| offer.meet(&order).is_ok()) {
                return Ok(());
            }
        }
        Err(unmet(BTreeSet::from([why.to_owned()])))
    }
}

fn unmet(reasons: BTreeSet<String>) -> ServiceError {
    let reasons = reasons.into_iter().collect::<Vec<_>>().join("; ");
    ExecError::NotOffered(format!("not available here: {reasons}")).into()
}

/// Converts unmet requirements into a problem of the request.
pub(crate) fn refusal(error: ServiceError) -> ServiceError {
    match error {
        ServiceError::Exec(ExecError::NotOffered(message)) => {
            ServiceError::invalid(vec![Problem {
                path: "requires".to_owned(),
                code: FailureCode::UnmetRequirements,
                message,
            }])
        }
        other => other,
    }
}
