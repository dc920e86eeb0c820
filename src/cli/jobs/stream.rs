//! Following a job's events, across connections that break.

use std::io::BufReader;
use std::time::{Duration, Instant};

use super::args::JobArgs;
use crate::cli::args::Target;
use crate::cli::remote_events::{Message, next_message};
use crate::cli::{CliError, format, remote};
use crate::report::JobEvent;

/// Longest time for which a stream is read before it is opened anew.
const STREAM_TIMEOUT: Duration = Duration::from_secs(3_600);

/// Streams that may break off one after the other without news between them.
const MAX_BREAKS: u32 = 5;

/// Wait before the first of them is opened again; before each further one it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// Tells of each event until the last; whether that came before `timeout_s` was over.
pub(super) fn follow(
    args: &JobArgs,
    timeout_s: Option<u64>,
    on_event: &mut dyn FnMut(&JobEvent, &str) -> Result<(), CliError>,
) -> Result<bool, CliError> {
    let (target, server) = args.place();
    follow_job(&target, server, &args.job_id, timeout_s, on_event)
}

/// The same of a job by its id.
pub(in crate::cli) fn follow_job(
    target: &Target,
    server: &str,
    job_id: &str,
    timeout_s: Option<u64>,
    on_event: &mut dyn FnMut(&JobEvent, &str) -> Result<(), CliError>,
) -> Result<bool, CliError> {
    let until = timeout_s.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let left = || until.map_or(STREAM_TIMEOUT, |it| it.saturating_duration_since(Instant::now()));
    let url = remote::endpoint(server, &format!("/jobs/{}/events", remote::encoded(job_id)))?;
    let (mut last_id, mut breaks) = (None::<String>, 0);
    loop {
        let patience = left();
        if patience.is_zero() {
            return Ok(false);
        }
        let broken = match remote::open(target, &url, last_id.as_deref(), patience) {
            Ok(response) => {
                let mut reader = BufReader::new(response.into_body().into_reader());
                loop {
                    match next_message(&mut reader, &url) {
                        Ok(Some(Message { id, data, .. })) => {
                            breaks = 0;
                            let event: JobEvent = remote::understood(&url, &data)?;
                            on_event(&event, &data)?;
                            last_id = id.or(last_id);
                            if event.state.is_end() {
                                return Ok(true);
                            }
                        }
                        // The server goes down, or the connection did.
                        Ok(None) => break None,
                        Err(error) => break Some(error),
                    }
                }
            }
            // The first connection tells whether server and job are there.
            Err(error) if last_id.is_none() || !error.is_broken() => return Err(error.into()),
            Err(error) => Some(error),
        };
        breaks += 1;
        if breaks > MAX_BREAKS {
            let ended = remote::RemoteError::Answer {
                url: url.clone(),
                message: "the stream ended before the job did".to_owned(),
            };
            return Err(broken.unwrap_or(ended).into());
        }
        std::thread::sleep((FIRST_PAUSE * 2_u32.pow(breaks - 1)).min(left()));
    }
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
