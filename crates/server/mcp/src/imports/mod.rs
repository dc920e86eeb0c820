//! Reads output of NVIDIA's profilers for an agent, without a device and without a job. The main
//! type is [`Reading`].
//!
//! Programs that were profiled wrote parts of the text, so every name is bounded and has no control
//! characters.

mod call;
mod changes;
mod draft;
mod ncu;
mod nsys;
mod sanitizer;
mod source;

use serde_json::{Map, Value};

use super::backend::JobBackendError;
use super::places::CallPermits;
pub(crate) use draft::Reading;
use warpgauge_metrics::import::Imported;

/// Reads the report in the arguments of a call. Parsing takes seconds for the longest texts, so it
/// runs on another thread, and only few reports are parsed at once.
pub(crate) async fn read(
    permits: &CallPermits,
    owner: &str,
    given: Map<String, Value>,
) -> Result<Reading, JobBackendError> {
    let call = call::parse(given)?;
    let permit = permits.import(owner).await?;
    let parsing = tokio::task::spawn_blocking(move || {
        // A cancelled call does not end this thread, which therefore owns the permit.
        let _permit = permit;
        reading(call)
    });
    parsing.await.unwrap_or_else(|error| {
        tracing::error!(%error, "parsing a report of a profiler panicked");
        let message =
            "the report could not be parsed, because of a defect of warpgauge; send fewer kernels";
        Err(JobBackendError::new("internal", message))
    })
}

fn reading(call: call::ImportCall) -> Result<Reading, JobBackendError> {
    let with_metrics = call.with_metrics();
    let loaded = call.load()?;
    if let Some(found) = &loaded.changes {
        return Ok(changes::reading(found));
    }
    Ok(match &loaded.report {
        Imported::Ncu { device_metrics, verdicts, rules, notes } => {
            let metrics = with_metrics.then_some(&**device_metrics);
            ncu::reading(verdicts, rules, metrics, notes)
        }
        Imported::NcuSource(page) => source::reading(page),
        Imported::Nsys { report, timelines } => nsys::reading(report, timelines),
        Imported::Sanitizer(log) => sanitizer::reading(log),
    })
}

#[cfg(test)]
mod tests;
