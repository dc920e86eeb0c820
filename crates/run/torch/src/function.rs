//! Function calls in a runner: the messages of the server, and those of the runner until a call
//! ends.
//!
//! This module does not judge: the result is returned to the caller who sent the function. The
//! runner is therefore not stopped between two questions. Its records are kept as they arrive,
//! within a limit, even if the runner ends early. The runner may make another call if the caller
//! sends one.

use std::io;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::awaited::awaited;
use super::fork::{Fork, Runner};
use super::session::confined;
use super::wire::{fill, receive, send, send_all};

/// A function call that a runner makes.
#[derive(Debug, Clone)]
pub struct RunnerCall<'a> {
    /// The function, its data, and the kind of call.
    pub program: &'a [u8],
    /// Whether the runner may unpickle objects.
    pub pickles: bool,
    /// Whether tensors that the function moves to a GPU stay on the CPU.
    pub stand_in: bool,
    /// Maximum number of bytes that the function may allocate.
    pub memory: u64,
    /// Number of threads that PyTorch uses for computation.
    pub threads: usize,
    /// Whether the runner waits for another call after this one succeeds.
    pub keep: bool,
}

/// Result of a function call in a runner.
#[derive(Debug)]
pub struct RunnerOutput {
    /// Records: each is a length (four bytes, little-endian) followed by as many bytes.
    pub records: Vec<u8>,
    pub end: CallEnd,
    /// The beginning of the text that the function printed.
    pub printed: String,
    /// Whether the runner waits for another call.
    pub waits: bool,
}

/// How a function call in a runner ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallEnd {
    /// The runner reported the end of the call.
    Done,
    /// The call did not end before the deadline.
    TimedOut,
    /// The runner's process ended; the text describes how.
    Died(String),
    /// The runner returned more bytes than allowed.
    TooLarge,
    /// The runner sent an invalid frame.
    Garbled(String),
}

#[derive(Serialize)]
struct Question {
    /// Runners repeat this number in their answer. Calls of functions do not use it, so it is
    /// always 0.
    turn: u64,
    r#do: &'static str,
    bytes: usize,
    pickles: bool,
    stand_in: bool,
    memory: u64,
    threads: usize,
    keep: bool,
}

/// Frame that a runner sends: the length of the record that follows, or the end of a call. After a
/// call, the runner ends or waits for another call.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    Record(u32),
    Done(()),
    Waits(()),
}

/// A runner that makes calls. Dropping it kills the process.
#[derive(Debug)]
pub struct FunctionRunner {
    fork: Fork,
}

impl FunctionRunner {
    /// Waits until a runner has confined itself. Blocks.
    ///
    /// # Errors
    /// Fails with the reason if the runner could not confine itself.
    pub fn new(runner: Runner, deadline: Instant) -> Result<Self, String> {
        let fork = confined(runner, deadline).map_err(|why| why.what)?;
        fork.go_on();
        Ok(Self { fork })
    }

    /// Returns whether the runner is alive, and has sent nothing since its last call.
    pub fn is_waiting(&self) -> bool {
        awaited(&self.fork.session, Instant::now()).is_empty()
    }

    /// Makes a call and waits until it ends or the deadline passes. Afterwards the runner is
    /// killed, unless it [waits](RunnerOutput::waits) for another call. At most `most` bytes of
    /// records are kept. Blocks.
    pub fn call(&self, deadline: Instant, function: &RunnerCall<'_>, most: u64) -> RunnerOutput {
        let fork = &self.fork;
        let mut records = Vec::new();
        let asked = ask(fork, deadline, function);
        let heard = asked.and_then(|()| listen(fork, deadline, most, &mut records));
        let (end, waits) = heard.unwrap_or_else(|error| (silence(fork, &error), false));
        // An incomplete record is dropped.
        records.truncate(whole(&records));
        if !waits {
            // Do not wait for the process to free its memory.
            fork.kill();
        }
        RunnerOutput { records, end, printed: fork.printed_so_far(), waits: waits && function.keep }
    }
}

fn ask(fork: &Fork, deadline: Instant, function: &RunnerCall<'_>) -> io::Result<()> {
    let RunnerCall { program, pickles, stand_in, memory, threads, keep } = *function;
    let bytes = program.len();
    let question =
        Question { turn: 0, r#do: "function", bytes, pickles, stand_in, memory, threads, keep };
    send(&fork.session, &question, deadline)?;
    send_all(&fork.session, program, deadline)
}

/// Reads records until the call ends. Returns how it ended, and whether the runner waits for
/// another call.
fn listen(
    fork: &Fork,
    deadline: Instant,
    most: u64,
    records: &mut Vec<u8>,
) -> io::Result<(CallEnd, bool)> {
    loop {
        let frame = receive(&fork.session, deadline)?;
        let length = match serde_json::from_slice(&frame) {
            Ok(Said::Record(length)) => length,
            Ok(Said::Done(())) => return Ok((CallEnd::Done, false)),
            Ok(Said::Waits(())) => return Ok((CallEnd::Done, true)),
            Err(error) => {
                let what = format!("its message cannot be read: {error}");
                return Ok((CallEnd::Garbled(what), false));
            }
        };
        let needed = records.len() as u64 + 4 + u64::from(length);
        if needed > most {
            return Ok((CallEnd::TooLarge, false));
        }
        records.extend(length.to_le_bytes());
        // This is at most `most`, which fits in memory.
        let until = records.len() + length as usize;
        fill(&fork.session, records, until, deadline)?;
    }
}

/// Returns the total size of the complete records, bytes.
fn whole(records: &[u8]) -> usize {
    let mut end = 0;
    while let Some((length, rest)) = records[end..].split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length) as usize;
        if rest.len() < length {
            break;
        }
        end += 4 + length;
    }
    end
}

fn silence(fork: &Fork, error: &io::Error) -> CallEnd {
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => CallEnd::TimedOut,
        io::ErrorKind::InvalidData => CallEnd::Garbled(format!("its message is too long: {error}")),
        _ => CallEnd::Died(match fork.end() {
            Some(end) => end.text(),
            None => "in an unknown way".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_that_were_begun_do_not_count() {
        let two = [&[2u8, 0, 0, 0, 7, 7, 0, 0, 0, 0][..], &[3, 0, 0, 0, 1]].concat();
        assert_eq!(whole(&two), 10);
        assert_eq!(whole(&two[..10]), 10);
        assert_eq!(whole(&two[..9]), 6);
        assert_eq!(whole(&two[..3]), 0);
        assert_eq!(whole(&[]), 0);
    }

    #[test]
    fn what_runners_say_is_read() {
        let said = |text: &str| serde_json::from_str::<Said>(text);
        assert!(matches!(said(r#"{"record": 7}"#), Ok(Said::Record(7))));
        assert!(matches!(said(r#"{"done": null}"#), Ok(Said::Done(()))));
        assert!(matches!(said(r#"{"waits": null}"#), Ok(Said::Waits(()))));
        assert!(said(r#"{"record": -1}"#).is_err() && said("[]").is_err());
    }
}
