//! One call of a function in its runner: what it is told, and what it says until it ends.
//!
//! Nothing here judges: a function answers to whoever sent it. So the runner is not stopped between two
//! questions, and what it writes is kept as it comes, within a bound, also of one that ends before it is
//! done.

use std::io;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::fork::{Fork, Runner};
use super::session::confined;
use super::wire::{fill, receive, send, send_all};

/// What a runner is told.
#[derive(Debug, Clone)]
pub struct Function<'a> {
    /// The function, its data, and what is to be done with them.
    pub program: &'a [u8],
    /// Whether it may have pickled objects.
    pub pickles: bool,
    /// Whether tensors that are sent to a GPU stay on the CPU.
    pub stand_in: bool,
    /// Bytes that it may allocate.
    pub memory: u64,
    /// Threads that PyTorch computes with.
    pub threads: usize,
}

/// What came of a call.
#[derive(Debug)]
pub struct Collected {
    /// Records, each its length (four bytes, little endian) and so many bytes.
    pub records: Vec<u8>,
    /// How it ended.
    pub end: End,
    /// The beginning of what it printed.
    pub printed: String,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It says that it is done.
    Done,
    /// It did not end in time.
    TimedOut,
    /// Its process ended, in words.
    Died(String),
    /// It returned more than it may.
    TooLarge,
    /// What it said is no answer.
    Garbled(String),
}

#[derive(Serialize)]
struct Question {
    /// Runners repeat it; here nobody asks twice.
    turn: u64,
    r#do: &'static str,
    bytes: usize,
    pickles: bool,
    stand_in: bool,
    memory: u64,
    threads: usize,
}

/// What it says: that so many bytes of a record follow, or that it is done.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    Record(u32),
    Done(()),
}

/// Has a runner make a call, until the deadline; it ends with this. At most `most` bytes of records are
/// kept. Blocks.
///
/// # Errors
/// The runner could not be confined, in words.
pub fn collect(
    runner: Runner,
    deadline: Instant,
    function: &Function<'_>,
    most: u64,
) -> Result<Collected, String> {
    let fork = confined(runner, deadline)?;
    let mut records = Vec::new();
    fork.go_on();
    let asked = ask(&fork, deadline, function);
    let end = match asked.and_then(|()| listen(&fork, deadline, most, &mut records)) {
        Ok(end) => end,
        Err(error) => silence(&fork, &error),
    };
    // What it began to write is no record.
    records.truncate(whole(&records));
    fork.end();
    Ok(Collected { records, end, printed: fork.printed() })
}

fn ask(fork: &Fork, deadline: Instant, function: &Function<'_>) -> io::Result<()> {
    let Function { program, pickles, stand_in, memory, threads } = *function;
    let bytes = program.len();
    let question =
        Question { turn: 0, r#do: "function", bytes, pickles, stand_in, memory, threads };
    send(&fork.session, &question, deadline)?;
    send_all(&fork.session, program, deadline)
}

fn listen(fork: &Fork, deadline: Instant, most: u64, records: &mut Vec<u8>) -> io::Result<End> {
    loop {
        let frame = receive(&fork.session, deadline)?;
        let length = match serde_json::from_slice(&frame) {
            Ok(Said::Record(length)) => length,
            Ok(Said::Done(())) => return Ok(End::Done),
            Err(error) => return Ok(End::Garbled(format!("what it said cannot be read: {error}"))),
        };
        let needed = records.len() as u64 + 4 + u64::from(length);
        if needed > most {
            return Ok(End::TooLarge);
        }
        records.extend(length.to_le_bytes());
        // At most `most`, which is in memory.
        let until = records.len() + length as usize;
        fill(&fork.session, records, until, deadline)?;
    }
}

/// Bytes of whole records.
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

fn silence(fork: &Fork, error: &io::Error) -> End {
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => End::TimedOut,
        io::ErrorKind::InvalidData => End::Garbled(format!("it said too much: {error}")),
        _ => End::Died(match fork.end() {
            Some(end) => end.text(),
            None => "nobody can tell how".to_owned(),
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
        assert!(said(r#"{"record": -1}"#).is_err() && said("[]").is_err());
    }
}
