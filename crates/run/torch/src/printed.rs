//! Reads the output of a process until its end, so that no write blocks. Keeps the beginning of the
//! output.

use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use super::awaited::awaited;

/// Maximum number of bytes kept of a process's output.
const MAX_BYTES: usize = 64 << 10;

/// Maximum number of bytes that one call reads, so that a process that prints endlessly does not
/// block the reader.
const MAX_DRAINED: usize = 8 << 20;

/// Maximum wait for output before the thread polls again.
const LOOK_AGAIN: Duration = Duration::from_secs(3600);

/// The beginning of a process's output.
#[derive(Debug)]
pub(crate) struct Printed {
    shared: Arc<Mutex<Reading>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Reading {
    pipe: PipeReader,
    kept: Vec<u8>,
}

impl Printed {
    /// Creates a pipe, and reads it until every writer has closed it.
    pub(crate) fn pipe() -> io::Result<(Self, PipeWriter)> {
        let (reader, writer) = io::pipe()?;
        Ok((Self::of(reader)?, writer))
    }

    /// Starts to read the output from this pipe.
    pub(crate) fn of(pipe: PipeReader) -> io::Result<Self> {
        fcntl_setfl(&pipe, fcntl_getfl(&pipe)? | OFlags::NONBLOCK)?;
        let told = pipe.try_clone()?;
        let shared = Arc::new(Mutex::new(Reading { pipe, kept: Vec::new() }));
        let reads = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("torch-printed".into());
        let thread = thread.spawn(move || {
            loop {
                awaited(&told, Instant::now() + LOOK_AGAIN);
                // This reads nothing at the end of the stream, or if another thread has read the
                // output.
                if locked(&reads).drain() {
                    return;
                }
            }
        })?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Waits until every writer has closed the pipe, and returns the output that was not returned
    /// before.
    pub(crate) fn whole(&self) -> String {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
        self.so_far()
    }

    /// Returns the output that has arrived since the last call.
    pub(crate) fn so_far(&self) -> String {
        let mut reading = locked(&self.shared);
        reading.drain();
        String::from_utf8_lossy(&std::mem::take(&mut reading.kept)).into_owned()
    }
}

fn locked(shared: &Mutex<Reading>) -> MutexGuard<'_, Reading> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Reading {
    /// Reads the available bytes. Returns whether the stream has ended.
    fn drain(&mut self) -> bool {
        let mut part = [0; 16 << 10];
        let mut drained = 0;
        while drained < MAX_DRAINED {
            match self.pipe.read(&mut part) {
                Ok(count @ 1..) => {
                    drained += count;
                    let room = MAX_BYTES - self.kept.len();
                    self.kept.extend_from_slice(&part[..count.min(room)]);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => return true,
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn what_was_printed_is_told_once_and_all_of_it_is_read() {
        let (printed, mut writer) = Printed::pipe().unwrap();
        writer.write_all(b"first").unwrap();
        assert_eq!(printed.so_far(), "first");
        assert_eq!(printed.so_far(), "");
        // More than a pipe holds, and more than is kept.
        writer.write_all(&vec![b'x'; 1 << 20]).unwrap();
        assert_eq!(printed.so_far().len(), MAX_BYTES);
        writer.write_all(b"last").unwrap();
        drop(writer);
        assert_eq!(printed.whole(), "last");
        assert_eq!(printed.whole(), "");
    }
}
