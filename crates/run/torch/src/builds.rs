//! Server's side of the socket through which a fork orders compilations.
//!
//! An order is one frame, and so is the answer. An answer that announces a file carries the
//! descriptor of the sealed file. The fork is not trusted: it may send invalid data, or stop
//! reading. Frames are therefore bounded, and the server can stop waiting.

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

/// Maximum size of an order including its sources, bytes.
pub const MAX_ORDER_BYTES: usize = 4 << 20;

/// Maximum length of the message or the log in an answer to a build order, bytes.
const MAX_TEXT: usize = 12 << 10;

/// Reason why a build failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotBuilt {
    /// Stable code for programs.
    pub code: String,
    pub message: String,
    /// Output of the compilers.
    pub log: String,
}

/// Answer to a build order, as it is sent.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Answer<'a> {
    /// The build succeeded. The descriptor of the file accompanies this frame.
    Built {
        bytes: usize,
        log: &'a str,
    },
    Refused(NotBuilt),
}

/// The server's end of the socket through which a fork orders compilations.
#[derive(Debug)]
pub struct BuildSocket(UnixStream);

impl BuildSocket {
    /// Registers the socket with the runtime. Must be called within a runtime.
    pub(crate) fn new(stream: BlockingStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self(UnixStream::from_std(stream)?))
    }

    /// Returns the next order, or `None` if the fork has closed the socket or sent no valid order.
    /// If the future is dropped, the socket must not be used again.
    pub async fn order<T: DeserializeOwned>(&mut self) -> Option<T> {
        let mut prefix = [0; 4];
        self.0.read_exact(&mut prefix).await.ok()?;
        let length = u32::from_le_bytes(prefix) as usize;
        if length > MAX_ORDER_BYTES {
            return None;
        }
        let mut body = Vec::new();
        // Memory grows with the bytes that arrive, not with the announced length.
        (&mut self.0).take(length as u64).read_to_end(&mut body).await.ok()?;
        serde_json::from_slice(&body).ok().filter(|_| body.len() == length)
    }

    /// Sends the result of a build.
    ///
    /// # Errors
    /// Fails if the fork has ended, or the system has no memory for the file.
    pub async fn hand_over(&mut self, object: &[u8], log: &str) -> io::Result<()> {
        let file = sealed(object)?;
        let log = shortened(log);
        self.send(&Answer::Built { bytes: object.len(), log: &log }, Some(file)).await
    }

    /// Reports to the fork why a build failed.
    ///
    /// # Errors
    /// Fails if the fork has ended.
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
            // The file accompanies the first bytes. All four fit into an empty buffer.
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
        // A local socket takes four bytes or none.
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
}

/// Creates a file in memory that no process can change.
fn sealed(bytes: &[u8]) -> io::Result<OwnedFd> {
    use std::io::{Seek as _, Write as _};
    let made = memfd_create("built", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut file = std::fs::File::from(made);
    file.write_all(bytes)?;
    // The file offset is shared with the receiver of the descriptor.
    file.rewind()?;
    let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    fcntl_add_seals(&file, seals)?;
    Ok(file.into())
}

/// Returns the beginning of a text, because compilers print the decisive errors first.
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
        // The frame arrives even if the receiver ignores the descriptor.
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
