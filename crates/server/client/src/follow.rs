//! Follows a job's events across broken connections and restarts of the server.

use std::time::{Duration, Instant};

use warpgauge_job_views::JobEvent;

use crate::connection::{Connection, understood};
use crate::error::ClientError;
use crate::events::{EventStream, Message};
use crate::patience::RetryPolicy;
use crate::routes::job_route;

/// Maximum time for which one stream is read. A device between the client and the server may drop
/// an idle connection without notifying either side.
const STREAM_TIMEOUT: Duration = Duration::from_secs(60);

/// Passes each event of a job to `on_event`, parsed and as text, until the last event. Returns
/// whether the last event arrived before `until`.
///
/// # Errors
/// The server rejects the request, or does not answer before the retries end; or `on_event` fails.
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
                        // The server is shutting down.
                        Ok(None) => break ended_early(&url),
                        Err(error) => break error,
                    }
                }
            }
            Err(error) => error,
        };
        // A stream that was open for its full time is reopened at once.
        if opened.elapsed() < limit {
            patience.pause(error)?;
        }
    }
}

fn ended_early(url: &str) -> ClientError {
    ClientError::broken(url, std::io::Error::other("the stream ended before the job did"))
}
