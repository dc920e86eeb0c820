//! What a fork asks to have built, on a socket of its own, as the server hears it.
//!
//! A frame is an order, and a frame is the answer; with one that tells of a file comes the file, sealed. The
//! fork may say what it likes, and need not listen: frames are bounded, and who waits for it can be given
//! up.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as BlockingStream;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;

/// Longest order, bytes: sources are in it.
pub const MAX_ORDER_BYTES: usize = 4 << 20;

/// Longest message of an answer, bytes.
const MAX_TEXT: usize = 12 << 10;

/// Why there is nothing to load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotBuilt {
    /// What programs compare.
    pub code: String,
    /// What happened.
    pub message: String,
    /// What compilers said.
    pub log: String,
}

/// The answer, as it travels.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Answer<'a> {
    /// Whose file comes with it.
    Built {
        bytes: usize,
        log: &'a str,
    },
    Refused(NotBuilt),
}

/// The server's end of a fork's socket.
#[derive(Debug)]
pub struct BuildSocket(UnixStream);

impl BuildSocket {
    /// Must be called within a runtime.
    pub(crate) fn new(stream: BlockingStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self(UnixStream::from_std(stream)?))
    }

    /// The next order; `None`: there are no more, or what came is none. Safe to give up, not to go on with
    /// after.
    pub async fn order<T: DeserializeOwned>(&mut self) -> Option<T> {
        let mut prefix = [0; 4];
        self.0.read_exact(&mut prefix).await.ok()?;
        let length = u32::from_le_bytes(prefix) as usize;
        if length > MAX_ORDER_BYTES {
            return None;
        }
        let mut body = Vec::new();
        // Grows with what arrives.
        (&mut self.0).take(length as u64).read_to_end(&mut body).await.ok()?;
        serde_json::from_slice(&body).ok().filter(|_| body.len() == length)
    }

    /// Hands over what was built.
    ///
    /// # Errors
    /// The fork is gone, or the system has no memory for it.
    pub async fn hand_over(&mut self, object: &[u8], log: &str) -> io::Result<()> {
        let file = sealed(object)?;
        let log = shortened(log);
        self.send(&Answer::Built { bytes: object.len(), log: &log }, Some(file)).await
    }

    /// Says why nothing was built.
    ///
    /// # Errors
    /// The fork is gone.
    pub async fn refuse(&mut self, why: NotBuilt) -> io::Result<()> {
        let NotBuilt { code, message, log } = why;
        let why = NotBuilt { code, message: shortened(&message), log: shortened(&log) };
        self.send(&Answer::Refused(why), None).await
    }

    async fn send(&mut self, answer: &Answer<'_>, file: Option<OwnedFd>) -> io::Result<()> {
        let body = serde_json::to_vec(answer)?;
        let length = u32::try_from(body.len()).map_err(io::Error::other)?.to_le_bytes();
        match file {
            None => self.0.write_all(&length).await?,
            // The file comes with the first bytes, all four of which fit an empty buffer.
            Some(file) => {
                let stream = &self.0;
                let sent =
                    stream.async_io(Interest::WRITABLE, || sent_with(stream, &length, &file));
                sent.await?;
            }
        }
        self.0.write_all(&body).await
    }
}

fn sent_with(stream: &UnixStream, bytes: &[u8; 4], file: &OwnedFd) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let files = [file.as_fd()];
    if !ancillary.push(SendAncillaryMessage::ScmRights(&files)) {
        return Err(io::Error::other("there is no room for a descriptor"));
    }
    match sendmsg(stream, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL)? {
        4 => Ok(()),
        // A socket of this machine takes four bytes or none.
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
}

/// Memory that nobody can change any more, as a file.
fn sealed(bytes: &[u8]) -> io::Result<OwnedFd> {
    use std::io::{Seek as _, Write as _};
    let made = memfd_create("built", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut file = std::fs::File::from(made);
    file.write_all(bytes)?;
    // Whoever gets the descriptor gets its place, too.
    file.rewind()?;
    let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    fcntl_add_seals(&file, seals)?;
    Ok(file.into())
}

/// The beginning of a text, where compilers say what is decisive.
fn shortened(text: &str) -> String {
    let end = (0..=MAX_TEXT.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
    text[..end.unwrap_or(0)].to_owned()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use serde_json::Value;

    use super::*;

    fn framed(body: &[u8]) -> Vec<u8> {
        [&(body.len() as u32).to_le_bytes()[..], body].concat()
    }

    #[tokio::test]
    async fn orders_are_bounded() {
        let good = br#"{"ptxas": {"ptx": ".version 8.0", "options": []}}"#;
        let (near, mut far) = BlockingStream::pair().unwrap();
        let mut counter = BuildSocket::new(near).unwrap();
        far.write_all(&framed(good)).unwrap();
        let order: Value = counter.order().await.unwrap();
        assert_eq!(order["ptxas"]["ptx"], ".version 8.0");
        for rubbish in [
            (u32::MAX).to_le_bytes().to_vec(),
            framed(&[b'['; 100_000]),
            [&framed(good)[..20]].concat(),
            Vec::new(),
        ] {
            let (near, mut far) = BlockingStream::pair().unwrap();
            let mut counter = BuildSocket::new(near).unwrap();
            far.write_all(&rubbish).unwrap();
            drop(far);
            assert_eq!(counter.order::<Value>().await, None, "{rubbish:?}");
        }
    }

    #[tokio::test]
    async fn what_was_built_arrives_as_a_file_that_nobody_can_change() {
        let (near, mut far) = BlockingStream::pair().unwrap();
        let mut counter = BuildSocket::new(near).unwrap();
        counter.hand_over(b"object", "a warning").await.unwrap();
        // Whoever forgets the descriptor hears of it all the same.
        let mut prefix = [0; 4];
        far.read_exact(&mut prefix).unwrap();
        let mut body = vec![0; u32::from_le_bytes(prefix) as usize];
        far.read_exact(&mut body).unwrap();
        assert_eq!(body, br#"{"built":{"bytes":6,"log":"a warning"}}"#);
        let mut file = std::fs::File::from(sealed(b"object").unwrap());
        let mut read = Vec::new();
        file.read_to_end(&mut read).unwrap();
        assert_eq!(read, b"object");
        assert!(file.write_all(b"x").is_err() && file.set_len(0).is_err());
        let why = NotBuilt { code: "c".into(), message: "ä".repeat(MAX_TEXT), log: String::new() };
        counter.refuse(why).await.unwrap();
        far.read_exact(&mut prefix).unwrap();
        assert!((u32::from_le_bytes(prefix) as usize) < MAX_TEXT + 100);
        drop(far);
        assert!(counter.order::<Value>().await.is_none());
    }
}
