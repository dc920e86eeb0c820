//! Streams of server-sent events, and sweeps at a server, which come as one.

use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

use serde_json::Value;

use super::CliError;
use super::args::Target;
use super::remote::{self, RemoteError};
use crate::pipeline::SweepEvent;
use crate::report::SweepResponse;

/// How long a sweep may take: its points are bounded, and each has a timeout of its own.
const SWEEP_TIMEOUT: Duration = Duration::from_secs(7 * 24 * 3_600);

/// Longest line of a stream, bytes: the last event holds the whole answer.
const MAX_LINE_BYTES: u64 = 256 << 20;

/// Carries out a sweep at a server, telling of each event; gives the answer as text and understood.
pub(super) fn sweep(
    target: &Target,
    server: &str,
    body: &Value,
    on_event: &mut dyn FnMut(SweepEvent) -> Result<(), CliError>,
) -> Result<(String, SweepResponse), CliError> {
    let url = remote::endpoint(server, "/sweep?stream=true")?;
    let response = remote::send(target, &url, body, None, SWEEP_TIMEOUT)?;
    let mut reader = BufReader::new(response.into_body().into_reader());
    while let Some(Message { kind, data, .. }) = next_message(&mut reader, &url)? {
        match kind.as_str() {
            "started" => on_event(SweepEvent::Started(remote::understood(&url, &data)?))?,
            "point" => on_event(SweepEvent::Point(remote::understood(&url, &data)?))?,
            "done" => {
                let answer = remote::understood(&url, &data)?;
                return Ok((data, answer));
            }
            "error" => return Err(refused(url, &data).into()),
            // A newer server may tell more.
            _ => {}
        }
    }
    let message = "the stream ended before the sweep did".to_owned();
    Err(RemoteError::Answer { url, message }.into())
}

/// A server-sent event.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message {
    /// Its id, if it has one.
    pub(super) id: Option<String>,
    /// Its kind; empty where it has none.
    pub(super) kind: String,
    pub(super) data: String,
}

/// The next event; `None` at the end of the stream.
pub(super) fn next_message(
    reader: &mut impl BufRead,
    url: &str,
) -> Result<Option<Message>, RemoteError> {
    let broken = |source: std::io::Error| RemoteError::Broken {
        url: url.to_owned(),
        source: ureq::Error::Io(source),
    };
    let (mut id, mut kind, mut data) = (None, String::new(), String::new());
    loop {
        let mut line = String::new();
        let read = reader.by_ref().take(MAX_LINE_BYTES).read_line(&mut line).map_err(broken)?;
        if read == 0 {
            return Ok(None);
        }
        if read as u64 == MAX_LINE_BYTES {
            let message = format!("an event is longer than {MAX_LINE_BYTES} bytes");
            return Err(RemoteError::Answer { url: url.to_owned(), message });
        }
        let line = line.trim_end_matches(['\n', '\r']);
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            // A blank line ends an event; one without data is none.
            "" if line.is_empty() && !data.is_empty() => {
                return Ok(Some(Message { id, kind, data }));
            }
            "" if line.is_empty() => kind.clear(),
            "id" => id = Some(value.to_owned()),
            "event" => value.clone_into(&mut kind),
            "data" if data.is_empty() => value.clone_into(&mut data),
            "data" => {
                let message = "an event has several lines of data".to_owned();
                return Err(RemoteError::Answer { url: url.to_owned(), message });
            }
            // Comments keep the connection alive; other fields are not needed.
            _ => {}
        }
    }
}

/// A sweep that ended without an answer, as if the status had said so.
fn refused(url: String, data: &str) -> RemoteError {
    let body = serde_json::from_str::<Value>(data).unwrap_or_default();
    let status = match body.get("code").and_then(Value::as_str) {
        Some("shutting_down" | "unavailable") => 503,
        _ => 500,
    };
    RemoteError::Refused { url, status, message: remote::explain(data, status), retry_after: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_told_apart() {
        let text = ": hello\n\nevent: started\ndata: {\"a\": 1}\n\nid: 7\r\nevent:point\r\n\
                    data:2\r\n\r\n:\n\nevent: empty\n\ndata: 3\n\nevent: cut";
        let mut reader = text.as_bytes();
        let mut events = Vec::new();
        while let Some(event) = next_message(&mut reader, "u").unwrap() {
            events.push(event);
        }
        let event = |id: Option<&str>, kind: &str, data: &str| Message {
            id: id.map(str::to_owned),
            kind: kind.to_owned(),
            data: data.to_owned(),
        };
        let started = event(None, "started", "{\"a\": 1}");
        let expected = [started, event(Some("7"), "point", "2"), event(None, "", "3")];
        assert_eq!(events, expected);
    }
}
