//! What goes on beside the one who waits: sending the request, again where it must be, and following its
//! job.

use std::time::{Duration, Instant};

use super::{Call, Message, Tell, Told};
use crate::cli::CliError;
use crate::cli::jobs::stream::follow;
use crate::cli::patience::{Patience, without_advice};
use crate::cli::remote::RemoteError;
use crate::cli::terminal::Terminal;

/// First pause before a request is sent again; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// Longest pause, whatever the server says.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// What waited so long for its answer was at the server, and waits anew if that goes away again.
const WAS_THERE: Duration = Duration::from_secs(15);

/// When the job is looked for first, and longest pause between two looks. Short work has its answer
/// before anybody asks.
const FIRST_LOOK: Duration = Duration::from_millis(100);
const LATER_LOOKS: Duration = Duration::from_secs(2);

/// Asks for the answer; while the server has the job and does not answer, again.
pub(super) fn deliver<R>(
    call: &Call,
    patience: Duration,
    sender: &Tell<Told, R>,
    ask: impl Fn() -> Result<R, RemoteError>,
) -> Result<R, RemoteError> {
    let began = Instant::now();
    let (mut away_since, mut pause) = (None, FIRST_PAUSE);
    loop {
        let asked = Instant::now();
        let error = match ask() {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        if call.job().is_none() || !error.is_broken() || error.is_late() {
            return Err(error);
        }
        if asked.elapsed() > WAS_THERE {
            (away_since, pause) = (None, FIRST_PAUSE);
        }
        let since = *away_since.get_or_insert_with(Instant::now);
        let wait = error.retry_after().unwrap_or(pause).clamp(FIRST_PAUSE, LONGEST_PAUSE);
        if since.elapsed() + wait > patience || began.elapsed() > call.longest {
            return Err(error);
        }
        let why = error.to_string();
        let why = without_advice(&why);
        let text = format!("{why}; asking for the job again in {:.1} s", wait.as_secs_f64());
        let _ = sender.send(Message::Told(Told::Again(text)));
        std::thread::sleep(wait);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Looks for the job, then tells its news until it ends or nobody waits any more. One that ended
/// because the server lacked something makes place for another, when the request is sent again.
pub(super) fn watch<R>(call: &Call, sender: &Tell<Told, R>) {
    while let Some(id) = look_for(call, sender) {
        call.found(id.clone());
        tell_news(call, &id, sender);
    }
}

/// Tells the news of a job until its end.
fn tell_news<R>(call: &Call, id: &str, sender: &Tell<Told, R>) {
    // Who asks for the answer says what is wrong; this is but its company.
    let silent = Terminal { quiet: true, colour: false, interactive: false };
    let mut patience = Patience::new(WAS_THERE.as_secs_f64(), silent);
    while !call.has_ended() {
        let (target, server) = (&call.target, &call.server);
        let outcome = follow(target, server, id, None, &mut patience, &mut |event, _| {
            // The one who waits has gone.
            let told = sender.send(Message::Told(Told::Job(event.clone())));
            told.map_err(|_| CliError::Interrupted)
        });
        if outcome.is_ok() {
            return;
        }
        std::thread::sleep(LATER_LOOKS);
    }
}

/// The job, once the server has it and it is not the one that is known already.
fn look_for<R>(call: &Call, sender: &Tell<Told, R>) -> Option<String> {
    let known = call.job();
    let mut pause = FIRST_LOOK;
    loop {
        std::thread::sleep(pause);
        if call.has_ended() {
            return None;
        }
        match call.find() {
            Ok(Some(id)) if Some(&id) != known.as_ref() => return Some(id),
            Err(RemoteError::Refused { status: 400 | 404 | 405, .. }) => {
                let _ = sender.send(Message::Told(Told::Untold));
                return None;
            }
            // The answer to the request itself tells what is wrong.
            Ok(_) | Err(_) => {}
        }
        pause = (pause * 2).min(LATER_LOOKS);
    }
}
