//! Following a job's events, across connections that break and servers that restart.

use std::io::BufReader;
use std::time::{Duration, Instant};

use crate::cli::args::Target;
use crate::cli::patience::Patience;
use crate::cli::remote::RemoteError;
use crate::cli::remote_events::{Message, next_message};
use crate::cli::{CliError, format, remote};
use crate::report::JobEvent;

/// Longest time for which a stream is read before it is opened anew: what lies between here and a
/// server may forget a connection and tell neither end.
const STREAM_TIMEOUT: Duration = Duration::from_secs(60);

/// Tells of each event until the last; whether that came before `until`.
///
/// # Errors
/// Where the server refuses, or did not answer for as long as there is patience; and those of
/// `on_event`.
pub(in crate::cli) fn follow(
    target: &Target,
    server: &str,
    job_id: &str,
    until: Option<Instant>,
    patience: &mut Patience,
    on_event: &mut dyn FnMut(&JobEvent, &str) -> Result<(), CliError>,
) -> Result<bool, CliError> {
    let url = remote::endpoint(server, &remote::job_route(job_id, "/events"))?;
    let mut last_id = None::<String>;
    loop {
        let left = until.map_or(STREAM_TIMEOUT, |it| it.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return Ok(false);
        }
        let limit = left.min(STREAM_TIMEOUT);
        let opened = Instant::now();
        let error = match remote::open(target, &url, last_id.as_deref(), limit) {
            Ok(response) => {
                let mut reader = BufReader::new(response.into_body().into_reader());
                loop {
                    match next_message(&mut reader, &url) {
                        Ok(Some(Message { id, data, .. })) => {
                            patience.answered();
                            let event: JobEvent = remote::understood(&url, &data)?;
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

fn ended_early(url: &str) -> RemoteError {
    let source = std::io::Error::other("the stream ended before the job did");
    RemoteError::Broken { url: url.to_owned(), source: ureq::Error::Io(source) }
}

/// An event in a line.
pub(super) fn line(event: &JobEvent) -> String {
    let mut text = format!("{} ({:.1} s)", event.state.name(), event.elapsed_s);
    if let (Some(done), Some(all)) = (event.points_done, event.points) {
        text.push_str(&format!(", {done} of {all} points"));
    }
    if event.trials_done > 0 {
        text.push_str(&format!(", {} launches timed", event.trials_done));
    }
    if let Some(statistics) = &event.statistics {
        text.push_str(&format!(
            ", median {} ({} to {})",
            format::duration_ms(statistics.median_ms),
            format::duration_ms(statistics.ci_lower_ms),
            format::duration_ms(statistics.ci_upper_ms),
        ));
    }
    if event.attempt > 1 {
        text.push_str(&format!(", attempt {}", event.attempt));
    }
    if let Some(error) = &event.error {
        text.push_str(&format!(": {error}"));
    }
    crate::cli::terminal::plain(&text)
}
