//! Captures what kernels print: standard output goes into a pipe that this process reads.

use std::io::{self, PipeReader, Read, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use warpgauge_device::flush_c_streams;

/// Maximum number of bytes kept of a job's output.
const KEPT_BYTES: usize = 64 << 10;

/// Time limit for the reader to catch up with the pipe's content, which is at most 64 KiB.
const CATCH_UP: Duration = Duration::from_secs(2);

const MARK_BYTES: usize = 16;

/// Captured standard output of this process.
pub(crate) struct Printed {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    kept: Vec<u8>,
    dropped: u64,
    /// The last bytes of the output that were received.
    tail: Vec<u8>,
    closed: bool,
}

impl Printed {
    /// Redirects standard output and starts the thread that reads it.
    ///
    /// # Errors
    /// Fails if no further descriptor or thread can be created.
    pub(crate) fn start() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        rustix::stdio::dup2_stdout(&writer)?;
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("stdout".to_owned());
        thread.spawn(move || theirs.collect(reader))?;
        Ok(Self { shared })
    }

    /// Returns the output since the last call, bounded; it ends with the number of dropped bytes,
    /// if any. All work of the device must have ended.
    pub(crate) fn take(&self) -> String {
        flush_c_streams();
        // A number that no kernel can know marks the end of a job's output.
        let mark = *uuid::Uuid::new_v4().as_bytes();
        let mut stdout = io::stdout().lock();
        let marked = stdout.write_all(&mark).and_then(|()| stdout.flush());
        drop(stdout);
        let mut state = self.shared.lock();
        if marked.is_ok() {
            let waiting = |state: &mut State| !state.closed && state.tail != mark;
            let waited = self.shared.changed.wait_timeout_while(state, CATCH_UP, waiting);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let found = state.tail == mark;
        let mut kept = std::mem::take(&mut state.kept);
        let mut dropped = std::mem::take(&mut state.dropped);
        state.tail.clear();
        drop(state);
        if found {
            // The mark is the last data received, whether kept or dropped.
            let kept_mark = (MARK_BYTES as u64).saturating_sub(dropped) as usize;
            kept.truncate(kept.len().saturating_sub(kept_mark));
            dropped = dropped.saturating_sub(MARK_BYTES as u64);
        }
        let mut text = String::from_utf8_lossy(&kept).into_owned();
        if dropped > 0 {
            text.push_str(&format!("\n[{dropped} more bytes were printed and not kept]\n"));
        }
        text
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn collect(&self, mut pipe: PipeReader) {
        let mut buffer = [0; 16 << 10];
        loop {
            let got = match pipe.read(&mut buffer) {
                Ok(0) => break,
                Ok(got) => got,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            self.lock().take_in(&buffer[..got]);
            self.changed.notify_all();
        }
        self.lock().closed = true;
        self.changed.notify_all();
    }
}

impl State {
    fn take_in(&mut self, bytes: &[u8]) {
        let room = KEPT_BYTES.saturating_sub(self.kept.len()).min(bytes.len());
        self.kept.extend_from_slice(&bytes[..room]);
        self.dropped += (bytes.len() - room) as u64;
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(MARK_BYTES)..]);
        let surplus = self.tail.len().saturating_sub(MARK_BYTES);
        self.tail.drain(..surplus);
    }
}
