//! Captures the beginning and the end of a program's output. The main type is [`CapturedText`].

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt};

/// The number of bytes kept from the end of excessively long output.
const TAIL_BYTES: usize = 64 << 10;

/// The captured output of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CapturedText {
    /// The captured output, converted to UTF-8 with replacement characters.
    pub text: String,
    /// The number of bytes omitted between the beginning and the end.
    pub left_out: u64,
}

/// A buffer of limited size. Reading continues beyond the limit, so that the program does not
/// block.
#[derive(Clone)]
pub(super) struct Capture {
    state: Arc<Mutex<State>>,
}

struct State {
    head: Vec<u8>,
    limit: usize,
    tail: VecDeque<u8>,
    left_out: u64,
}

impl Capture {
    pub(super) fn new(limit: usize) -> Self {
        let state = State { head: Vec::new(), limit, tail: VecDeque::new(), left_out: 0 };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Reads until all writers have closed the pipe.
    pub(super) async fn drain(self, mut pipe: impl AsyncRead + Unpin) {
        let mut buffer = vec![0; 16 << 10];
        while let Ok(got @ 1..) = pipe.read(&mut buffer).await {
            self.lock().take_in(&buffer[..got]);
        }
    }

    /// Returns the output that was read so far.
    pub(super) fn captured(&self) -> CapturedText {
        let state = self.lock();
        let mut bytes = state.head.clone();
        if state.left_out > 0 {
            let note = format!("\n[{} bytes left out]\n", state.left_out);
            bytes.extend_from_slice(note.as_bytes());
        }
        bytes.extend(&state.tail);
        CapturedText {
            text: String::from_utf8_lossy(&bytes).into_owned(),
            left_out: state.left_out,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take_in(&mut self, bytes: &[u8]) {
        let room = self.limit.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        self.tail.extend(&bytes[room..]);
        let surplus = self.tail.len().saturating_sub(TAIL_BYTES);
        self.tail.drain(..surplus);
        self.left_out += surplus as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_beginning_and_the_end_are_kept() {
        let text = [vec![b'a'; 10], vec![b'b'; TAIL_BYTES + 5], vec![b'c'; 3]].concat();
        let capture = Capture::new(10);
        capture.clone().drain(text.as_slice()).await;
        let captured = capture.captured();
        assert_eq!(captured.left_out, 8);
        assert!(captured.text.starts_with("aaaaaaaaaa\n[8 bytes left out]\nb"));
        assert!(captured.text.ends_with("bccc"));

        let capture = Capture::new(100);
        capture.clone().drain(&b"short"[..]).await;
        assert_eq!(capture.captured(), CapturedText { text: "short".to_owned(), left_out: 0 });
    }
}
