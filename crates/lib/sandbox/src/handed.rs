//! Passes file descriptors through a socket. Each message is one byte with its descriptors.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// The maximum number of descriptors per byte.
pub const MOST: usize = 8;

/// Sends at most [`MOST`] descriptors, with a byte that identifies them.
///
/// # Errors
/// The connection broke, a non-blocking socket has no room, or there are too many descriptors.
pub fn send(stream: impl AsFd, byte: u8, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let fits = descriptors.len() <= MOST;
    if !fits || !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("too many descriptors for one message"));
    }
    sendmsg(stream, &[IoSlice::new(&[byte])], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives exactly `COUNT` descriptors with the byte `wanted`.
///
/// # Errors
/// The connection broke, or another message arrived.
pub fn receive<const COUNT: usize>(
    stream: &UnixStream,
    wanted: u8,
) -> io::Result<[OwnedFd; COUNT]> {
    let all = received(stream, wanted)?;
    <[OwnedFd; COUNT]>::try_from(all).map_err(|_| other_came())
}

/// Receives the byte `wanted`, with one descriptor or none.
///
/// # Errors The connection broke, or another message arrived.
pub fn receive_some(stream: &UnixStream, wanted: u8) -> io::Result<Option<OwnedFd>> {
    let mut all = received(stream, wanted)?;
    let one = all.pop();
    if all.is_empty() { Ok(one) } else { Err(other_came()) }
}

fn other_came() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "unexpected byte or number of descriptors")
}

fn received(stream: &UnixStream, wanted: u8) -> io::Result<Vec<OwnedFd>> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut byte)];
    let got = recvmsg(stream, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    if got.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut all = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            all.extend(descriptors);
        }
    }
    if byte[0] == wanted { Ok(all) } else { Err(other_came()) }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn what_was_sent_is_open_on_the_other_side() {
        let (near, far) = UnixStream::pair().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        send(&near, b'x', &[writer.as_fd(), near.as_fd()]).unwrap();
        drop(writer);
        let [writer, _] = receive(&far, b'x').unwrap();
        std::fs::File::from(writer).write_all(b"hello").unwrap();
        let mut heard = String::new();
        reader.read_to_string(&mut heard).unwrap();
        assert_eq!(heard, "hello");
        send(&near, b'y', &[near.as_fd()]).unwrap();
        let error = receive::<1>(&far, b'x').unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        (&near).write_all(b"x").unwrap();
        assert!(receive::<1>(&far, b'x').is_err(), "a byte without any");
        let mine = io::stdin();
        assert!(send(&near, b'x', &[mine.as_fd(); MOST + 1]).is_err());
    }
}
