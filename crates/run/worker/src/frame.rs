//! Sends and receives frames. A frame is a length in four bytes, little-endian, followed by a
//! MessagePack document.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::protocol::MAX_FRAME_BYTES;
use warpgauge_document::DocumentError;

/// Maximum number of values in a frame. A worker under a kernel's control may send any number.
const MAX_VALUES: u64 = 1 << 20;

/// Time for which a thread polls for a message that is due soon before it blocks.
const SOON: Duration = Duration::from_micros(500);

/// Reason why a frame could not be sent or received.
#[derive(Debug, Error)]
pub enum FrameError {
    /// The other side closed the connection between two frames.
    #[error("the connection was closed")]
    Closed,
    /// Reading or writing failed, or the connection ended inside a frame.
    #[error("the connection broke: {0}")]
    Io(#[source] io::Error),
    /// The message is larger than [`MAX_FRAME_BYTES`].
    #[error("the frame has {bytes} bytes; the limit is {MAX_FRAME_BYTES}")]
    TooLarge {
        /// Size of the message, bytes.
        bytes: usize,
    },
    /// The message cannot be encoded.
    #[error("cannot encode a frame: {0}")]
    Encode(#[source] rmp_serde::encode::Error),
    /// The bytes are not the expected message.
    #[error("cannot decode a frame: {0}")]
    Decode(#[source] DocumentError),
}

/// Encodes a message as a frame.
///
/// # Errors
/// Fails if the message is larger than a frame may be or cannot be encoded.
pub fn encode(message: &impl Serialize) -> Result<Vec<u8>, FrameError> {
    let mut frame = vec![0; 4];
    // Field names are needed: types that omit empty fields cannot be decoded without them.
    rmp_serde::encode::write_named(&mut frame, message).map_err(FrameError::Encode)?;
    let bytes = frame.len() - 4;
    if bytes > MAX_FRAME_BYTES {
        return Err(FrameError::TooLarge { bytes });
    }
    frame[..4].copy_from_slice(&(bytes as u32).to_le_bytes());
    Ok(frame)
}

/// Decodes a message from the bytes after the length.
///
/// # Errors
/// Fails if the bytes are not the expected message.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, FrameError> {
    warpgauge_document::from_msgpack_within(MAX_VALUES, bytes).map_err(FrameError::Decode)
}

fn checked_length(prefix: [u8; 4]) -> Result<usize, FrameError> {
    let bytes = u32::from_le_bytes(prefix) as usize;
    if bytes > MAX_FRAME_BYTES {
        return Err(FrameError::TooLarge { bytes });
    }
    Ok(bytes)
}

/// Sends a message.
///
/// # Errors
/// Returns a [`FrameError`].
pub fn write(stream: &mut impl Write, message: &impl Serialize) -> Result<(), FrameError> {
    stream.write_all(&encode(message)?).map_err(FrameError::Io)
}

/// Waits for a message and receives it.
///
/// # Errors
/// Returns a [`FrameError`].
pub fn read<T: DeserializeOwned>(stream: &mut impl Read) -> Result<T, FrameError> {
    let mut prefix = [0; 4];
    let first = stream.read(&mut prefix).map_err(FrameError::Io)?;
    if first == 0 {
        return Err(FrameError::Closed);
    }
    stream.read_exact(&mut prefix[first..]).map_err(FrameError::Io)?;
    let length = checked_length(prefix)?;
    let mut bytes = Vec::new();
    // The vector grows as data arrives, so a length prefix alone does not reserve memory.
    let got = stream.take(length as u64).read_to_end(&mut bytes).map_err(FrameError::Io)?;
    if got < length {
        return Err(FrameError::Io(io::ErrorKind::UnexpectedEof.into()));
    }
    decode(&bytes)
}

/// Like [`read`], for a message that another process is about to send. A blocked thread takes some
/// 50 µs to wake, so this function polls for a while before it blocks.
///
/// # Errors
/// Returns a [`FrameError`].
pub fn read_soon<T: DeserializeOwned>(stream: &mut UnixStream) -> Result<T, FrameError> {
    let began = Instant::now();
    // `read` handles any data, the end of the stream, and errors.
    while recv(&*stream, &mut [0_u8; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT).err()
        == Some(Errno::AGAIN)
        && began.elapsed() < SOON
    {
        // On a machine with few processors, the sender may need this processor.
        std::thread::yield_now();
    }
    read(stream)
}

/// Like [`write`], for an asynchronous stream.
///
/// # Errors
/// Returns a [`FrameError`].
pub async fn send<S: AsyncWrite + Unpin>(
    stream: &mut S,
    message: &impl Serialize,
) -> Result<(), FrameError> {
    let frame = encode(message)?;
    stream.write_all(&frame).await.map_err(FrameError::Io)
}

/// Like [`read`], for an asynchronous stream. It is not safe to cancel: a cancelled call may have
/// consumed part of a frame.
///
/// # Errors
/// Returns a [`FrameError`].
pub async fn receive<S: AsyncRead + Unpin, T: DeserializeOwned>(
    stream: &mut S,
) -> Result<T, FrameError> {
    let mut prefix = [0; 4];
    let first = stream.read(&mut prefix).await.map_err(FrameError::Io)?;
    if first == 0 {
        return Err(FrameError::Closed);
    }
    stream.read_exact(&mut prefix[first..]).await.map_err(FrameError::Io)?;
    let length = checked_length(prefix)?;
    let mut bytes = Vec::new();
    let mut body = stream.take(length as u64);
    let got = body.read_to_end(&mut bytes).await.map_err(FrameError::Io)?;
    if got < length {
        return Err(FrameError::Io(io::ErrorKind::UnexpectedEof.into()));
    }
    decode(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{BufferContent, FromWorker, ToWorker};
    use warpgauge_tensor::{InitKind, OffsetsInit, TensorInit};

    #[test]
    fn frames_survive_the_way_and_the_end_is_told_from_a_break() {
        let mut bytes = encode(&ToWorker::Hello { protocol: 7 }).unwrap();
        bytes.extend(encode(&ToWorker::Exit).unwrap());
        let mut stream = bytes.as_slice();
        assert!(matches!(read(&mut stream).unwrap(), ToWorker::Hello { protocol: 7 }));
        assert!(matches!(read(&mut stream).unwrap(), ToWorker::Exit));
        assert!(matches!(read::<ToWorker>(&mut stream), Err(FrameError::Closed)));
        for end in 1..bytes.len() - encode(&ToWorker::Exit).unwrap().len() {
            let broken = read::<ToWorker>(&mut &bytes[..end]);
            assert!(matches!(broken, Err(FrameError::Io(_))), "{end} bytes");
        }
    }

    #[test]
    fn fields_that_are_left_out_come_back() {
        let of = OffsetsInit { name: "rows".to_owned(), elements: 5, top: 9, seed: None };
        let init = TensorInit {
            std: Some(2.0),
            step: Some(3.0),
            values: vec![1.0],
            offsets: Some(Box::new(of)),
            ..TensorInit::of_kind(InitKind::Randn)
        };
        let frame = encode(&BufferContent::Init(Box::new(init.clone()))).unwrap();
        assert!(matches!(decode(&frame[4..]).unwrap(), BufferContent::Init(back) if *back == init));
    }

    #[test]
    fn a_length_beyond_the_limit_is_refused_without_reserving_it() {
        let frame = u32::MAX.to_le_bytes();
        let refused = read::<FromWorker>(&mut frame.as_slice());
        assert!(matches!(refused, Err(FrameError::TooLarge { .. })));
    }

    #[test]
    fn rubbish_is_an_error() {
        let frame = [3, 0, 0, 0, 0xC1, 0xC1, 0xC1];
        assert!(matches!(read::<FromWorker>(&mut frame.as_slice()), Err(FrameError::Decode(_))));
    }

    #[tokio::test]
    async fn the_asynchronous_form_reads_what_the_other_writes() {
        let mut bytes = Vec::new();
        write(&mut bytes, &FromWorker::Progress { trials: 3, statistics: None }).unwrap();
        send(&mut bytes, &FromWorker::Started).await.unwrap();
        let mut stream = bytes.as_slice();
        assert!(matches!(
            receive(&mut stream).await.unwrap(),
            FromWorker::Progress { trials: 3, .. }
        ));
        assert!(matches!(receive(&mut stream).await.unwrap(), FromWorker::Started));
        assert!(matches!(receive::<_, FromWorker>(&mut stream).await, Err(FrameError::Closed)));
    }
}
