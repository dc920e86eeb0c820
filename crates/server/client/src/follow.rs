//! Following a job's events, across connections that break and servers that restart.

use std::time::{Duration, Instant};

use warpgauge_job_views::JobEvent;

use crate::connection::{Connection, understood};
use crate::error::ClientError;
use crate::events::{EventStream, Message};
use crate::patience::RetryPolicy;
use crate::routes::job_route;

/// Longest time for which a stream is read before it is opened anew: what lies between here and a
/// server may forget a connection and tell neither end.
const STREAM_TIMEOUT: Duration = Duration::from_secs(60);

/// Tells of each event of a job, understood and as it came, until the last; whether that came
/// before `until`.
///
/// # Errors
/// Where the server refuses, or did not answer for as long as there is patience; and those of
/// `on_event`.
pub(crate) fn follow<E: From<ClientError>>(
    connection: &Connection,
    job_id: &str,
    until: Option<Instant>,
    patience: &mut RetryPolicy,
    on_event: &mut dyn FnMut(&JobEvent, &str) -> Result<(), E>,
) -> Result<bool, E> {
    let url = connection.url_of(&job_route(job_id, "/events"));
    let mut last_id = None::<String>;
    loop {
        let left = until.map_or(STREAM_TIMEOUT, |it| it.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return Ok(false);
        }
        let limit = left.min(STREAM_TIMEOUT);
        let opened = Instant::now();
        let error = match connection.open(&url, last_id.as_deref(), limit) {
            Ok(response) => {
                let mut stream = EventStream::new(response, &url);
                loop {
                    match stream.next() {
                        Ok(Some(Message { id, data, .. })) => {
                            patience.answered();
                            let event: JobEvent = understood(&url, &data)?;
                            on_event(&event, &data)?;
                            last_id = id.or(last_id);
                            if event.state.is_end() {
                                return Ok(true);
                            }
                        }
                        // The server goes down.
                        Ok(None) => break ended_early(&url),
                        Err(error) => break error,
                    }
                }
            }
            Err(error) => error,
        };
        // It was read for as long as it was to be.
        if opened.elapsed() < limit {
            patience.pause(error)?;
        }
    }
}

fn ended_early(url: &str) -> ClientError {
    ClientError::broken(url, std::io::Error::other("the stream ended before the job did"))
}
