//! Reads streams of server-sent events.

use std::io::{BufRead, BufReader, Read};

use ureq::http::Response;
use ureq::{Body, BodyReader};

use crate::ClientError;

/// Maximum length of a line in a stream, bytes. The last event may contain a complete report.
const MAX_LINE_BYTES: u64 = 256 << 20;

/// An open stream of events.
pub(crate) struct EventStream {
    reader: BufReader<BodyReader<'static>>,
    url: String,
}

/// A server-sent event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) id: Option<String>,
    /// Type of the event; empty if it has none.
    pub(crate) kind: String,
    pub(crate) data: String,
}

impl EventStream {
    pub(crate) fn new(response: Response<Body>, url: &str) -> Self {
        let reader = BufReader::new(response.into_body().into_reader());
        Self { reader, url: url.to_owned() }
    }

    /// Returns the next event, or `None` at the end of the stream.
    pub(crate) fn next(&mut self) -> Result<Option<Message>, ClientError> {
        next_message(&mut self.reader, &self.url)
    }
}

fn next_message(reader: &mut impl BufRead, url: &str) -> Result<Option<Message>, ClientError> {
    let broken = |source| ClientError::broken(url, source);
    let (mut id, mut kind, mut data) = (None, String::new(), String::new());
    loop {
        let mut line = String::new();
        let read = reader.by_ref().take(MAX_LINE_BYTES).read_line(&mut line).map_err(broken)?;
        if read == 0 {
            return Ok(None);
        }
        if read as u64 == MAX_LINE_BYTES {
            let message = format!("an event is longer than {MAX_LINE_BYTES} bytes");
            return Err(ClientError::Answer { url: url.to_owned(), message });
        }
        let line = line.trim_end_matches(['\n', '\r']);
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            // A blank line ends an event. If it contains no data, there is no event.
            "" if line.is_empty() && !data.is_empty() => {
                return Ok(Some(Message { id, kind, data }));
            }
            "" if line.is_empty() => kind.clear(),
            "id" => id = Some(value.to_owned()),
            "event" => value.clone_into(&mut kind),
            "data" if data.is_empty() => value.clone_into(&mut data),
            "data" => {
                let message = "an event has several lines of data".to_owned();
                return Err(ClientError::Answer { url: url.to_owned(), message });
            }
            // Comments keep the connection alive. Other fields are not needed.
            _ => {}
        }
    }
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
