//! Passes sockets to a worker through its existing socket. Such a socket has no name, so only
//! processes that hold one of its ends can use it.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// The byte that accompanies the socket: ancillary data needs at least one byte of payload.
const BYTE: u8 = b's';

/// Sends a socket. The sender must announce it in a frame first, so that the receiver expects it.
///
/// # Errors
/// Fails if the connection breaks.
pub(crate) async fn send(
    stream: &tokio::net::UnixStream,
    socket: BorrowedFd<'_>,
) -> io::Result<()> {
    let write = || {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let sockets = [socket];
        // The buffer has room for one descriptor.
        ancillary.push(SendAncillaryMessage::ScmRights(&sockets));
        sendmsg(stream, &[IoSlice::new(&[BYTE])], &mut ancillary, SendFlags::NOSIGNAL)
            .map_err(io::Error::from)
    };
    stream.async_io(tokio::io::Interest::WRITABLE, write).await.map(drop)
}

/// Waits for a socket and receives it.
///
/// # Errors
/// Fails if the connection breaks or something other than a socket arrives.
pub(crate) fn receive(stream: &UnixStream) -> io::Result<OwnedFd> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut byte)];
    let got = recvmsg(stream.as_fd(), &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let handed = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut sockets) => sockets.next(),
        _ => None,
    });
    let nothing =
        || io::Error::new(io::ErrorKind::InvalidData, "no socket arrived where one was expected");
    handed.filter(|_| got.bytes == 1 && byte == [BYTE]).ok_or_else(nothing)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[tokio::test]
    async fn whoever_gets_a_socket_can_talk_through_it() {
        let (sender, receiver) = UnixStream::pair().unwrap();
        let (near, mut far) = UnixStream::pair().unwrap();
        sender.set_nonblocking(true).unwrap();
        let mut sender = tokio::net::UnixStream::from_std(sender).unwrap();
        send(&sender, near.as_fd()).await.unwrap();
        drop(near);
        let mut handed = UnixStream::from(receive(&receiver).unwrap());
        handed.write_all(b"hello").unwrap();
        let mut heard = [0; 5];
        far.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"hello");
        // A byte without a socket is an error.
        tokio::io::AsyncWriteExt::write_all(&mut sender, &[BYTE]).await.unwrap();
        assert_eq!(receive(&receiver).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
