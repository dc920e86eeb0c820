//! What a process prints: read to its end, so that nobody waits to print, and kept in part.

use std::io::{self, PipeReader, PipeWriter, Read};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

/// Most that is kept, bytes.
const MAX_BYTES: usize = 64 << 10;

/// The beginning of what is printed.
#[derive(Debug)]
pub(crate) struct Printed(Mutex<Option<JoinHandle<Vec<u8>>>>);

impl Printed {
    /// A pipe whose other end is read until nobody can write to it any more.
    pub(crate) fn pipe() -> io::Result<(Self, PipeWriter)> {
        let (reader, writer) = io::pipe()?;
        Ok((Self::of(reader)?, writer))
    }

    /// What comes out of a pipe, from now on.
    pub(crate) fn of(reader: PipeReader) -> io::Result<Self> {
        let thread = std::thread::Builder::new().name("torch-printed".into());
        let kept = thread.spawn(move || beginning(reader))?;
        Ok(Self(Mutex::new(Some(kept))))
    }

    /// As text, once; waits until nobody can print any more.
    pub(crate) fn whole(&self) -> String {
        let reader = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let kept = reader.and_then(|reader| reader.join().ok()).unwrap_or_default();
        String::from_utf8_lossy(&kept).into_owned()
    }
}

fn beginning(mut reader: PipeReader) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut part = [0; 16 << 10];
    while let Ok(count @ 1..) = reader.read(&mut part) {
        let room = MAX_BYTES - kept.len();
        kept.extend_from_slice(&part[..count.min(room)]);
    }
    kept
}
