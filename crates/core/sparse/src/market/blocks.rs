//! Splits the text of a file into blocks of whole lines. The main type is [`Blocks`].

use std::io::{self, Read};

use super::{MarketError, wrong};

/// The number of bytes that are read at once. Lines must be shorter.
pub(super) const BLOCK_BYTES: usize = 8 << 20;

/// The maximum length of a line of the header, the comments and the sizes, in bytes.
const MAX_HEAD_BYTES: usize = 1 << 20;

/// Reads the text in blocks of whole lines.
pub(super) struct Blocks<'a, R> {
    from: &'a mut R,
    buffer: Vec<u8>,
    /// The number of bytes of the buffer that callers have received.
    taken: usize,
    ended: bool,
    /// The number of bytes read so far.
    pub(super) read: u64,
}

impl<'a, R: Read> Blocks<'a, R> {
    pub(super) fn new(from: &'a mut R) -> Self {
        Self { from, buffer: Vec::new(), taken: 0, ended: false, read: 0 }
    }

    /// Removes the bytes that callers have received, and reads until the buffer contains `most`
    /// bytes or the file ends.
    fn fill(&mut self, most: usize) -> io::Result<()> {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        let wanted = most.saturating_sub(self.buffer.len()) as u64;
        if wanted > 0 && !self.ended {
            let came = self.from.by_ref().take(wanted).read_to_end(&mut self.buffer)?;
            self.read += came as u64;
            self.ended = (came as u64) < wanted;
        }
        Ok(())
    }

    /// Returns the next line of the head, without its line end.
    pub(super) fn line(&mut self, lines: &mut u64) -> Result<Option<String>, MarketError> {
        let find = |buffer: &[u8]| buffer.iter().position(|&byte| byte == b'\n');
        let mut end = find(&self.buffer[self.taken..]);
        if end.is_none() {
            self.fill(MAX_HEAD_BYTES)?;
            end = find(&self.buffer);
        }
        let left = &self.buffer[self.taken..];
        let (line, with_end) = match end {
            Some(end) => (&left[..end], end + 1),
            None if left.is_empty() => return Ok(None),
            None if self.ended => (left, left.len()),
            None => return Err(wrong(*lines + 1, "the line is longer than 1 MiB")),
        };
        let text = String::from_utf8_lossy(line).trim_end().to_owned();
        self.taken += with_end;
        *lines += 1;
        Ok(Some(text))
    }

    /// Returns the next block. `line` is the number of lines before it.
    pub(super) fn next(&mut self, line: u64) -> Result<Option<&[u8]>, MarketError> {
        self.fill(BLOCK_BYTES)?;
        let end = match self.buffer.iter().rposition(|&byte| byte == b'\n') {
            Some(last) if !self.ended => last + 1,
            _ if self.ended => self.buffer.len(),
            _ => return Err(wrong(line + 1, "the line is longer than 8 MiB")),
        };
        self.taken = end;
        Ok((end > 0).then(|| &self.buffer[..end]))
    }
}
