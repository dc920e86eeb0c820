//! Evaluations of references that further comparisons of the same owner reuse: a search sends one reference with a
//! thousand candidates. What a candidate returns is compared with what the reference computes beside it in any case; its
//! evaluation by itself adds a report, and its time when nothing can slow it.

use std::time::{Duration, Instant};

use super::runs::Entered;
use crate::remembered::Remembered;
use warpgauge_contract::EvaluateRequest;
use warpgauge_report::{EvaluateResponse, KernelVerdict};
use warpgauge_tensor::set_apart;
use warpgauge_turns::Owner;

/// References that are remembered.
const MOST: usize = 64;

/// How long. The clock of a GPU is another one after some time.
const REUSED_FOR: Duration = Duration::from_secs(600);

/// Most bytes of a report that is remembered, as JSON.
const MOST_REPORT_BYTES: usize = 256 << 10;

/// Reports by what was asked, of whom, and on which device.
#[derive(Default)]
pub(super) struct ReferenceReports {
    known: Remembered<(Instant, EvaluateResponse), MOST>,
}

impl ReferenceReports {
    /// Identifies an evaluation of a reference. `None`: each is made anew, since it hands something over that belongs to
    /// its job.
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

    /// The report of an evaluation not long ago.
    pub(super) fn get(&self, key: blake3::Hash) -> Option<EvaluateResponse> {
        let (when, report) = self.known.get(key)?;
        (when.elapsed() < REUSED_FOR).then_some(report)
    }

    /// Remembers the report of a reference that ran.
    pub(super) fn put(&self, key: blake3::Hash, report: &EvaluateResponse) {
        let ran = report.kernel_verdict() == KernelVerdict::NotChecked;
        let is_small = serde_json::to_vec(report).is_ok_and(|text| text.len() <= MOST_REPORT_BYTES);
        if ran && is_small {
            self.known.put(key, (Instant::now(), report.clone()));
        }
    }
}
