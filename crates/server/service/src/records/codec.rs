//! Encodes requests and reports for the store, and decodes them.
//!
//! A request consists of one byte for the format, and of MessagePack, which preserves every bit of
//! a number. Large payloads follow. They are copied between the store's file and separate files
//! without being held in memory. A report is JSON, which other programs can read. Its numbers have
//! all their digits, so that a decoded report encodes to the same text.

use std::io::{self, Read};
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::submission::JobRequest;
use warpgauge_model::JobKind;
use warpgauge_report::SweepView;
use warpgauge_store::{Bulk, NewReport, RequestReader, StoredReport};
use warpgauge_tensor::{Blob, PayloadForm, put_back, set_apart};

/// Format of stored requests that consist of MessagePack only.
const ALONE: u8 = 1;

/// Format of stored requests with payloads: the length of the MessagePack and the number of
/// payloads, 8 bytes each. Then come the MessagePack and the payloads.
const WITH_PAYLOADS: u8 = 2;

/// Version of stored reports. Readers support all versions up to this one.
const REPORT_VERSION: u32 = 1;

/// Reasons why stored bytes cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CodecError {
    /// A newer program wrote the bytes.
    #[error("it was written in format {found}; this program supports formats up to {known}")]
    Newer {
        /// Format in which the bytes were written.
        found: u32,
        /// The newest format that this program supports.
        known: u32,
    },
    /// The bytes are malformed.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// An I/O error: the bytes cannot be read, or a payload cannot be written to a file.
    #[error("reading it failed: {0}")]
    Failed(#[from] io::Error),
}

/// An encoded request.
pub(crate) struct Packed {
    /// The format and the MessagePack.
    pub(crate) head: Vec<u8>,
    /// Large payloads, in order.
    pub(crate) payloads: Vec<Arc<dyn Bulk>>,
}

pub(crate) fn encode(request: &JobRequest) -> Result<Packed, CodecError> {
    let (text, payloads) = set_apart(|| match request {
        JobRequest::Evaluate(request) | JobRequest::Execute(request) => packed(request),
        JobRequest::Compare(request) => packed(request),
        JobRequest::Sweep(request) => packed(request),
        JobRequest::Gate(request) => packed(request),
    });
    let text = text?;
    let mut head = Vec::with_capacity(text.len() + 17);
    if payloads.is_empty() {
        head.push(ALONE);
    } else {
        head.push(WITH_PAYLOADS);
        head.extend((text.len() as u64).to_le_bytes());
        head.extend((payloads.len() as u64).to_le_bytes());
    }
    head.extend(text);
    let part = |blob| Arc::new(Part(blob)) as Arc<dyn Bulk>;
    Ok(Packed { head, payloads: payloads.into_iter().map(part).collect() })
}

fn packed(request: &impl Serialize) -> Result<Vec<u8>, CodecError> {
    let mut bytes = Vec::new();
    let mut writer = rmp_serde::Serializer::new(&mut bytes).with_struct_map();
    request.serialize(&mut writer).map_err(|error| CodecError::Unreadable(error.to_string()))?;
    Ok(bytes)
}

impl Packed {
    /// Returns a hash that distinguishes this request from others, including those of other kinds.
    /// It reads the payloads, so it may block.
    pub(crate) fn hash(&self, kind: JobKind) -> io::Result<[u8; 32]> {
        let mut hash = blake3::Hasher::new();
        hash.update(kind.name().as_bytes());
        hash.update(&[0]);
        hash.update(&self.head);
        for payload in &self.payloads {
            hash.update_reader(payload.reader())?;
        }
        Ok(*hash.finalize().as_bytes())
    }
}

/// A payload as it is stored after a request: its type, its length in bytes, and its content.
#[derive(Debug)]
struct Part(Blob);

/// Number of bytes before the content of a payload: its type and its length.
const HEADING: usize = 9;

impl Bulk for Part {
    fn bytes(&self) -> u64 {
        self.0.kept().1 + HEADING as u64
    }

    fn reader(&self) -> Box<dyn Read + Send> {
        let (kept, bytes, content) = self.0.kept();
        let form = match kept {
            PayloadForm::Text => 0,
            PayloadForm::Decoded => 1,
            PayloadForm::Nothing => 2,
        };
        let mut heading = vec![form];
        heading.extend(bytes.to_le_bytes());
        Box::new(io::Cursor::new(heading).chain(content))
    }
}

/// Decodes a request from the store on a blocking thread.
pub(crate) async fn decoded(kind: JobKind, from: RequestReader) -> Result<JobRequest, CodecError> {
    let decoding = tokio::task::spawn_blocking(move || decode(kind, from));
    decoding.await.map_err(|error| CodecError::Failed(io::Error::other(error)))?
}

/// Decodes a request from the store. The call blocks.
fn decode(kind: JobKind, mut from: impl Read) -> Result<JobRequest, CodecError> {
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => {
            CodecError::Unreadable(error.to_string())
        }
        _ => CodecError::Failed(error),
    };
    let [format] = read_array(&mut from).map_err(unreadable)?;
    let mut text = Vec::new();
    let mut payloads = Vec::new();
    match format {
        ALONE => {
            from.read_to_end(&mut text).map_err(unreadable)?;
        }
        WITH_PAYLOADS => {
            let bytes = u64::from_le_bytes(read_array(&mut from).map_err(unreadable)?);
            let count = u64::from_le_bytes(read_array(&mut from).map_err(unreadable)?);
            // The MessagePack reader detects truncation.
            from.by_ref().take(bytes).read_to_end(&mut text).map_err(unreadable)?;
            for _ in 0..count {
                payloads.push(payload(&mut from).map_err(unreadable)?);
            }
        }
        newer => {
            return Err(CodecError::Newer { found: newer.into(), known: WITH_PAYLOADS.into() });
        }
    }
    put_back(payloads, || {
        Ok(match kind {
            JobKind::Evaluate => JobRequest::Evaluate(unpacked(&text)?),
            JobKind::Execute => JobRequest::Execute(unpacked(&text)?),
            JobKind::Compare => JobRequest::Compare(unpacked(&text)?),
            JobKind::Sweep => JobRequest::Sweep(unpacked(&text)?),
            JobKind::Gate => JobRequest::Gate(unpacked(&text)?),
        })
    })
}

fn payload(from: &mut impl Read) -> io::Result<Blob> {
    let kept = match read_array(from)? {
        [0] => PayloadForm::Text,
        [1] => PayloadForm::Decoded,
        [2] => PayloadForm::Nothing,
        [other] => {
            let message = format!("a payload has the form {other}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
    };
    let bytes = u64::from_le_bytes(read_array(from)?);
    Blob::from_kept(kept, bytes, from)
}

fn read_array<const N: usize>(from: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn unpacked<T: DeserializeOwned>(content: &[u8]) -> Result<T, CodecError> {
    warpgauge_document::from_msgpack(content)
        .map_err(|error| CodecError::Unreadable(error.to_string()))
}

/// Encodes a report.
pub(crate) fn report(kind: JobKind, content: &impl Serialize) -> Result<NewReport, CodecError> {
    let body =
        serde_json::to_vec(content).map_err(|error| CodecError::Unreadable(error.to_string()))?;
    Ok(NewReport {
        version: REPORT_VERSION,
        kind: kind.name().to_owned(),
        verdict: None,
        decision: None,
        worst_case: None,
        kernel: None,
        median_ns: None,
        body,
    })
}

/// Decodes a report.
pub(crate) fn read<T: DeserializeOwned>(stored: &StoredReport) -> Result<T, CodecError> {
    if stored.version > REPORT_VERSION {
        return Err(CodecError::Newer { found: stored.version, known: REPORT_VERSION });
    }
    warpgauge_document::from_json(&stored.body)
        .map_err(|error| CodecError::Unreadable(error.to_string()))
}

/// Converts a report to the view of a sweep job.
pub(crate) fn sweep_view(report: warpgauge_report::SweepResponse) -> SweepView {
    let points = report.points.len();
    SweepView { points, points_done: points, result: Some(report) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_contract::EvaluateRequest;
    use warpgauge_report::EvaluateResponse;

    const REPORT: &str = include_str!("../../../../../openapi/examples/report.json");
    const SWEEP: &str = include_str!("../../../../../openapi/examples/sweep.json");
    const COMPARE: &str = include_str!("../../../../../openapi/examples/compare.json");

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
        // A fast but inexact parser gets the last digit of this number wrong.
        let hard = REPORT.replacen("\"runtime\": 0.0072", "\"runtime\": 0.10000000000000002", 1);
        assert_ne!(hard, REPORT);
        same::<EvaluateResponse>(JobKind::Evaluate, &hard);
        same::<warpgauge_report::SweepResponse>(JobKind::Sweep, SWEEP);
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
        let text = include_str!("../../../../../tests/it/api/contract.json");
        let mut first: EvaluateRequest = serde_json::from_str(text).unwrap();
        first.timeout = 0.1 + 0.2;
        let written = serde_json::to_value(&first).unwrap();
        let bytes = stored(&JobRequest::Evaluate(Box::new(first)));
        let JobRequest::Evaluate(again) = decode(JobKind::Evaluate, &bytes[..]).unwrap() else {
            panic!("an evaluation");
        };
        assert_eq!(serde_json::to_value(&again).unwrap(), written);
        assert_eq!(stored(&JobRequest::Evaluate(again)), bytes, "equal hashes");
        let mut sweep: serde_json::Value = serde_json::from_str(text).unwrap();
        sweep["axes"] = serde_json::json!({"n": [1, 2.5, "three"]});
        let sweep = serde_json::from_value(sweep).unwrap();
        let compare = serde_json::from_str(COMPARE).unwrap();
        for request in [JobRequest::Sweep(Box::new(sweep)), JobRequest::Compare(Box::new(compare))]
        {
            let bytes = stored(&request);
            let again = decode(request.kind(), &bytes[..]).unwrap();
            assert_eq!(stored(&again), bytes);
        }
    }

    /// Returns a request as the store keeps it.
    fn stored(request: &JobRequest) -> Vec<u8> {
        let packed = encode(request).unwrap();
        let mut bytes = packed.head;
        for payload in packed.payloads {
            let before = bytes.len();
            payload.reader().read_to_end(&mut bytes).unwrap();
            assert_eq!((bytes.len() - before) as u64, payload.bytes());
        }
        bytes
    }

    fn with_data(sizes: &[usize]) -> JobRequest {
        let text = include_str!("../../../../../tests/it/api/contract.json");
        let mut request: serde_json::Value = serde_json::from_str(text).unwrap();
        let data = |bytes: &usize| {
            let content: Vec<u8> = (0..*bytes).map(|i| (i % 251) as u8).collect();
            serde_json::json!({"name": format!("t{bytes}"), "type": "tensor", "role": "input",
                "tensor_spec": {"shape": [bytes / 4], "data": {"data_b64": Blob::from_bytes(&content)}}})
        };
        request["kernel"]["io"]["args"] = sizes.iter().map(data).collect();
        JobRequest::Evaluate(Box::new(serde_json::from_value(request).unwrap()))
    }

    #[test]
    fn large_payloads_stand_behind_the_request() {
        let request = with_data(&[400, 80_000, 4_000_000]);
        let packed = encode(&request).unwrap();
        assert_eq!(packed.payloads.len(), 2);
        assert!(packed.head.len() < 4_000, "{}", packed.head.len());
        let bytes = stored(&request);
        let again = decode(JobKind::Evaluate, &bytes[..]).unwrap();
        let text = |request: &JobRequest| match request {
            JobRequest::Evaluate(request) => serde_json::to_string(request).unwrap(),
            _ => panic!("an evaluation"),
        };
        assert!(text(&again) == text(&request));
        assert!(stored(&again) == bytes);
        for end in [5, 20, 2_000, 90_000, bytes.len() - 1] {
            let cut = decode(JobKind::Evaluate, &bytes[..end]);
            assert!(matches!(cut, Err(CodecError::Unreadable(_))), "{end} bytes");
        }
    }

    #[test]
    fn every_byte_of_a_request_is_in_its_hash() {
        let hash = |request: &JobRequest, kind| encode(request).unwrap().hash(kind).unwrap();
        let first = with_data(&[80_000, 2_000_000]);
        assert_eq!(hash(&first, JobKind::Evaluate), hash(&first, JobKind::Evaluate));
        assert_ne!(hash(&first, JobKind::Evaluate), hash(&first, JobKind::Execute));
        let bytes = stored(&first);
        for at in [bytes.len() - 1, bytes.len() - 1_999_000, bytes.len() - 2_010_000] {
            let mut other = bytes.clone();
            // This replaces a letter of base64, or a byte.
            other[at] = if other[at] == b'A' { b'B' } else { b'A' };
            let other = decode(JobKind::Evaluate, &other[..]).unwrap();
            assert_ne!(hash(&other, JobKind::Evaluate), hash(&first, JobKind::Evaluate), "{at}");
        }
    }

    #[test]
    fn what_a_newer_program_wrote_is_refused() {
        let newer = StoredReport { version: 2, kind: "evaluate".to_owned(), body: b"{}".to_vec() };
        let error = read::<EvaluateResponse>(&newer).unwrap_err();
        assert!(error.to_string().contains("format 2"), "{error}");
        assert!(matches!(decode(JobKind::Evaluate, &[9][..]), Err(CodecError::Newer { .. })));
        assert!(decode(JobKind::Evaluate, &[][..]).is_err());
        assert!(decode(JobKind::Evaluate, &[1, 0x80][..]).is_err());
    }
}
