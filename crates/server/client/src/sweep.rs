//! Runs a sweep on a server. The report arrives as a stream.

use serde_json::Value;

use warpgauge_job_views::SweepEvent;
use warpgauge_model::ErrorCode;
use warpgauge_report::SweepResponse;

use crate::call::Call;
use crate::connection::{Reply, understood};
use crate::error::ClientError;
use crate::events::{EventStream, Message};
use crate::refusal::{explain, problems};

/// Sends a sweep, passes each event to the caller, and returns the report.
pub(crate) fn sweep(
    call: &Call,
    on_event: &mut dyn FnMut(SweepEvent),
) -> Result<Reply<SweepResponse>, ClientError> {
    let url = call.url();
    let mut stream = EventStream::new(call.send(&url)?, &url);
    while let Some(Message { kind, data, .. }) = stream.next()? {
        match kind.as_str() {
            "started" => on_event(SweepEvent::Started(understood(&url, &data)?)),
            "point" => on_event(SweepEvent::Point(understood(&url, &data)?)),
            "done" => {
                let value = understood(&url, &data)?;
                return Ok(Reply { text: data, value });
            }
            "error" => return Err(refused(url, &data)),
            // A newer server may send other events.
            _ => {}
        }
    }
    let why = "the stream ended before the sweep did";
    Err(ClientError::broken(&url, std::io::Error::new(std::io::ErrorKind::UnexpectedEof, why)))
}

/// Converts a sweep's error event to the error that its HTTP status would have caused.
fn refused(url: String, data: &str) -> ClientError {
    let body = serde_json::from_str::<Value>(data).unwrap_or_default();
    let status = match body.get("code").and_then(Value::as_str).map(ErrorCode::from) {
        Some(ErrorCode::ShuttingDown | ErrorCode::Unavailable) => 503,
        _ => 500,
    };
    let (message, problems) = (explain(data, status), problems(data));
    ClientError::Refused { url, status, message, problems, retry_after: None }
}
