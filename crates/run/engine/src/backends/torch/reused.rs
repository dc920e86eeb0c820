//! Evaluations of references that later comparisons of the same owner reuse. A search may send one
//! reference with a thousand candidates. A candidate's results are always compared with those of
//! the reference that runs beside it. The separate evaluation of the reference adds only a report,
//! and the reference's time while no candidate can slow it down.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::runs::Entered;
use crate::remembered::Remembered;
use warpgauge_contract::EvaluateRequest;
use warpgauge_report::{EvaluateResponse, KernelVerdict};
use warpgauge_tensor::set_apart;
use warpgauge_turns::Owner;
use warpgauge_validate::ResolvedTolerance;

/// Maximum number of remembered references.
const MOST: usize = 64;

/// Maximum age of a remembered report. The clock rate of a GPU changes over time.
const REUSED_FOR: Duration = Duration::from_secs(600);

/// Maximum size of a remembered report as JSON, in bytes.
const MOST_REPORT_BYTES: usize = 256 << 10;

/// Reports by request, owner and device.
#[derive(Default)]
pub(super) struct ReferenceReports {
    known: Remembered<(Instant, EvaluateResponse), MOST>,
    /// Tolerances that follow from the reference's rounding, by output.
    tolerances: Remembered<BTreeMap<String, ResolvedTolerance>, MOST>,
}

impl ReferenceReports {
    /// Returns the key of a reference's evaluation. Returns `None` if the evaluation cannot be
    /// reused, because it produces files or a profile for its job, or because its request contains
    /// large data.
    pub(super) fn key(
        request: &EvaluateRequest,
        owner: Owner,
        entered: &Entered<'_>,
    ) -> Option<blake3::Hash> {
        if request.profile.is_some() || !request.keep_outputs.is_empty() {
            return None;
        }
        let device = entered.device.as_ref().map(|device| &device.uuid);
        let (text, payloads) = set_apart(|| serde_json::to_vec(&(owner, device, request)));
        let versions = format!("{:?}", entered.versions);
        let mut hasher = blake3::Hasher::new();
        hasher.update(&text.ok()?).update(versions.as_bytes());
        payloads.is_empty().then(|| hasher.finalize())
    }

    /// Returns a remembered report that has not expired.
    pub(super) fn get(&self, key: blake3::Hash) -> Option<EvaluateResponse> {
        let (when, report) = self.known.get(key)?;
        (when.elapsed() < REUSED_FOR).then_some(report)
    }

    /// Returns the tolerances that follow from a reference's rounding. The map is empty if they are
    /// unknown.
    pub(super) fn tolerances(&self, key: blake3::Hash) -> BTreeMap<String, ResolvedTolerance> {
        self.tolerances.get(key).unwrap_or_default()
    }

    pub(super) fn put_tolerances(
        &self,
        key: blake3::Hash,
        tolerances: &BTreeMap<String, ResolvedTolerance>,
    ) {
        if !tolerances.is_empty() {
            self.tolerances.put(key, tolerances.clone());
        }
    }

    /// Stores the report of a reference that ran, unless it is too large.
    pub(super) fn put(&self, key: blake3::Hash, report: &EvaluateResponse) {
        let ran = report.kernel_verdict() == KernelVerdict::NotChecked;
        let is_small = serde_json::to_vec(report).is_ok_and(|text| text.len() <= MOST_REPORT_BYTES);
        if ran && is_small {
            self.known.put(key, (Instant::now(), report.clone()));
        }
    }
}
