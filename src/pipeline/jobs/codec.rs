//! Requests and reports as the store keeps them.
//!
//! A request is MessagePack, which keeps every bit of a number, behind a byte for its format. A report
//! is JSON, for others to read; numbers are written with all their digits, so that what is read back
//! writes the same text again.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::super::submission::JobRequest;
use crate::report::{EvaluateResponse, JobKind, SweepView};
use crate::store::{NewReport, StoredReport};

/// Format of stored requests.
const REQUEST_FORMAT: u8 = 1;

/// Version of stored reports. Readers know all versions up to this one.
const REPORT_VERSION: u32 = 1;

/// Why stored bytes mean nothing here.
#[derive(Debug, thiserror::Error)]
pub(super) enum CodecError {
    /// A newer program wrote them.
    #[error("it was written in format {found}, this program knows formats up to {known}")]
    Newer {
        /// Their format.
        found: u32,
        /// The newest that is known.
        known: u32,
    },
    /// They are not what they should be.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
}

/// A request for the store.
pub(super) fn encode(request: &JobRequest) -> Result<Vec<u8>, CodecError> {
    match request {
        JobRequest::Evaluate(request) | JobRequest::Execute(request) => packed(request),
        JobRequest::Compare(request) => packed(request),
        JobRequest::Sweep(request) => packed(request),
        JobRequest::Gate(request) => packed(request),
    }
}

fn packed(request: &impl Serialize) -> Result<Vec<u8>, CodecError> {
    let mut bytes = vec![REQUEST_FORMAT];
    let mut writer = rmp_serde::Serializer::new(&mut bytes).with_struct_map();
    request.serialize(&mut writer).map_err(|error| CodecError::Unreadable(error.to_string()))?;
    Ok(bytes)
}

/// A request from the store.
pub(super) fn decode(kind: JobKind, bytes: &[u8]) -> Result<JobRequest, CodecError> {
    let (&format, content) =
        bytes.split_first().ok_or_else(|| CodecError::Unreadable("it is empty".to_owned()))?;
    if format > REQUEST_FORMAT {
        return Err(CodecError::Newer { found: format.into(), known: REQUEST_FORMAT.into() });
    }
    Ok(match kind {
        JobKind::Evaluate => JobRequest::Evaluate(unpacked(content)?),
        JobKind::Execute => JobRequest::Execute(unpacked(content)?),
        JobKind::Compare => JobRequest::Compare(unpacked(content)?),
        JobKind::Sweep => JobRequest::Sweep(unpacked(content)?),
        JobKind::Gate => JobRequest::Gate(unpacked(content)?),
    })
}

fn unpacked<T: DeserializeOwned>(content: &[u8]) -> Result<T, CodecError> {
    rmp_serde::from_slice(content).map_err(|error| CodecError::Unreadable(error.to_string()))
}

/// A report for the store.
pub(super) fn report(kind: JobKind, content: &impl Serialize) -> Result<NewReport, CodecError> {
    let body =
        serde_json::to_vec(content).map_err(|error| CodecError::Unreadable(error.to_string()))?;
    Ok(NewReport { version: REPORT_VERSION, kind: kind_name(kind).to_owned(), body })
}

/// A report from the store.
pub(super) fn read<T: DeserializeOwned>(stored: &StoredReport) -> Result<T, CodecError> {
    if stored.version > REPORT_VERSION {
        return Err(CodecError::Newer { found: stored.version, known: REPORT_VERSION });
    }
    serde_json::from_slice(&stored.body).map_err(|error| CodecError::Unreadable(error.to_string()))
}

/// Name of a kind, as on the wire.
pub(super) fn kind_name(kind: JobKind) -> &'static str {
    to_store(kind).name()
}

/// A kind as the store has it.
pub(super) fn to_store(kind: JobKind) -> crate::store::JobKind {
    match kind {
        JobKind::Evaluate => crate::store::JobKind::Evaluate,
        JobKind::Execute => crate::store::JobKind::Execute,
        JobKind::Compare => crate::store::JobKind::Compare,
        JobKind::Sweep => crate::store::JobKind::Sweep,
        JobKind::Gate => crate::store::JobKind::Gate,
    }
}

/// A kind of the store's.
pub(super) fn from_store(kind: crate::store::JobKind) -> JobKind {
    match kind {
        crate::store::JobKind::Evaluate => JobKind::Evaluate,
        crate::store::JobKind::Execute => JobKind::Execute,
        crate::store::JobKind::Compare => JobKind::Compare,
        crate::store::JobKind::Sweep => JobKind::Sweep,
        crate::store::JobKind::Gate => JobKind::Gate,
    }
}

/// Bytes a report weighs in an answer: what in it can be large.
pub(in crate::pipeline) fn weight(report: &EvaluateResponse) -> usize {
    let outputs = report.outputs.values().map(|o| o.data_b64.as_ref().map_or(0, String::len));
    let samples = report.measurement.as_ref().map_or(0, |m| m.samples_ms.len() * 4);
    let log = report.compile.as_ref().map_or(0, |c| c.log.len());
    1024 + outputs.sum::<usize>() + samples + log + report.printed.as_ref().map_or(0, String::len)
}

/// A sweep as a job shows it.
pub(super) fn swept(report: crate::report::SweepResponse) -> SweepView {
    let points = report.points.len();
    SweepView { points, points_done: points, result: Some(report) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::EvaluateRequest;

    const REPORT: &str = include_str!("../../api/examples/report.json");
    const SWEEP: &str = include_str!("../../api/examples/sweep.json");
    const COMPARE: &str = include_str!("../../api/examples/compare.json");

    fn same<T: Serialize + DeserializeOwned>(kind: JobKind, text: &str) {
        let first: T = serde_json::from_str(text).unwrap();
        let stored = report(kind, &first).unwrap();
        let stored = StoredReport { version: stored.version, kind: stored.kind, body: stored.body };
        let again: T = read(&stored).unwrap();
        assert_eq!(serde_json::to_string(&first).unwrap().as_bytes(), stored.body);
        assert_eq!(serde_json::to_string(&again).unwrap().as_bytes(), stored.body);
    }

    #[test]
    fn reports_read_back_are_the_same_text() {
        same::<EvaluateResponse>(JobKind::Evaluate, REPORT);
        // Digits that a reader in a hurry gets wrong in the last place.
        let hard = REPORT.replacen("\"runtime\": 0.0072", "\"runtime\": 0.10000000000000002", 1);
        assert_ne!(hard, REPORT);
        same::<EvaluateResponse>(JobKind::Evaluate, &hard);
        same::<crate::report::SweepResponse>(JobKind::Sweep, SWEEP);
    }

    #[test]
    fn numbers_keep_all_their_bits() {
        for bits in [0x3FB9_9999_9999_999B_u64, 0x3FF0_0000_0000_0001, 0x4340_0000_0000_0001, 1] {
            let number = f64::from_bits(bits);
            let text = serde_json::to_string(&number).unwrap();
            assert_eq!(serde_json::from_str::<f64>(&text).unwrap().to_bits(), bits, "{text}");
        }
    }

    #[test]
    fn requests_come_back_as_they_were() {
        let text = include_str!("../../../tests/it/api/contract.json");
        let mut first: EvaluateRequest = serde_json::from_str(text).unwrap();
        first.timeout = 0.1 + 0.2;
        let written = serde_json::to_value(&first).unwrap();
        let bytes = encode(&JobRequest::Evaluate(Box::new(first))).unwrap();
        let JobRequest::Evaluate(again) = decode(JobKind::Evaluate, &bytes).unwrap() else {
            panic!("an evaluation");
        };
        assert_eq!(serde_json::to_value(&again).unwrap(), written);
        assert_eq!(encode(&JobRequest::Evaluate(again)).unwrap(), bytes, "equal hashes");
        let mut sweep: serde_json::Value = serde_json::from_str(text).unwrap();
        sweep["axes"] = serde_json::json!({"n": [1, 2.5, "three"]});
        let sweep = serde_json::from_value(sweep).unwrap();
        let compare = serde_json::from_str(COMPARE).unwrap();
        for request in [JobRequest::Sweep(Box::new(sweep)), JobRequest::Compare(Box::new(compare))]
        {
            let bytes = encode(&request).unwrap();
            let again = decode(request.kind(), &bytes).unwrap();
            assert_eq!(encode(&again).unwrap(), bytes);
        }
    }

    #[test]
    fn what_a_newer_program_wrote_is_refused() {
        let newer = StoredReport { version: 2, kind: "evaluate".to_owned(), body: b"{}".to_vec() };
        let error = read::<EvaluateResponse>(&newer).unwrap_err();
        assert!(error.to_string().contains("format 2"), "{error}");
        assert!(matches!(decode(JobKind::Evaluate, &[9]), Err(CodecError::Newer { .. })));
        assert!(decode(JobKind::Evaluate, &[]).is_err());
        assert!(decode(JobKind::Evaluate, &[1, 0x80]).is_err());
    }
}
