//! Reads the rest of bodies that were not read to their end: those of rejected requests, and of
//! requests that need no body.
//!
//! If a connection is closed while bytes arrive, it is reset, and the client loses the answer. So
//! the server continues to read for a while and discards the bytes.

use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{BoxStream, Stream, StreamExt};
use poem::http::{HeaderMap, header};
use poem::{Body, Request};
use tokio::runtime::Handle;
use tokio::time::timeout;

/// Maximum time for which the server continues to read: many clients read the answer only after
/// they have sent everything. The same time applies to an upload with an invalid form.
pub(crate) const LINGER: Duration = Duration::from_secs(5);
pub(crate) const LINGER_BYTES: usize = 64 << 20;

/// Maximum time for which the server continues to read a body that missed its deadline.
pub(crate) const LINGER_LATE: Duration = Duration::from_millis(500);

/// Returns the request with a body that is drained if it is dropped unread. Once a reader has
/// begun, that reader decides how far to read.
pub(crate) fn unless_read(mut request: Request) -> Request {
    if announces_body(request.headers()) {
        let stream = Some(request.take_body().into_bytes_stream().boxed());
        request.set_body(Body::from_bytes_stream(Unread { stream, is_read: false }));
    }
    request
}

/// Returns whether these headers announce a body in HTTP/1.1 (RFC 9112, section 6.3).
fn announces_body(headers: &HeaderMap) -> bool {
    let length = headers.get(header::CONTENT_LENGTH);
    headers.contains_key(header::TRANSFER_ENCODING) || length.is_some_and(|length| length != "0")
}

struct Unread {
    stream: Option<BoxStream<'static, io::Result<Bytes>>>,
    is_read: bool,
}

impl Stream for Unread {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.is_read = true;
        match &mut self.stream {
            Some(stream) => stream.poll_next_unpin(context),
            None => Poll::Ready(None),
        }
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        let stream = self.stream.take().filter(|_| !self.is_read);
        if let (Some(stream), Ok(runtime)) = (stream, Handle::try_current()) {
            runtime.spawn(drain(stream, LINGER, LINGER_BYTES));
        }
    }
}

/// Reads and discards bytes for at most `patience`, and at most about `most` bytes.
pub(crate) async fn drain(
    stream: impl Stream<Item = io::Result<impl AsRef<[u8]>>>,
    patience: Duration,
    most: usize,
) {
    let mut stream = pin!(stream);
    let mut seen = 0;
    let reading = async {
        while let Some(Ok(piece)) = stream.next().await {
            seen += piece.as_ref().len();
            if seen > most {
                break;
            }
        }
    };
    // The connection is closed afterwards in any case.
    let _ = timeout(patience, reading).await;
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::stream;
    use tokio::sync::Notify;

    use super::*;

    /// Returns a request with a body of three pieces, the number of pieces that were read, and a
    /// signal of the body's drop.
    fn request(head: (&str, &str)) -> (Request, Arc<AtomicUsize>, Arc<Notify>) {
        struct Told(Arc<Notify>);
        impl Drop for Told {
            fn drop(&mut self) {
                self.0.notify_one();
            }
        }
        let (read, gone) = (Arc::<AtomicUsize>::default(), Arc::<Notify>::default());
        let (counter, told) = (Arc::clone(&read), Told(Arc::clone(&gone)));
        let pieces = stream::iter(0..3).map(move |_| {
            let _ = &told;
            counter.fetch_add(1, Ordering::Relaxed);
            io::Result::Ok(Bytes::from_static(b"piece"))
        });
        let body = Body::from_bytes_stream(pieces);
        (Request::builder().header(head.0, head.1).body(body), read, gone)
    }

    #[tokio::test]
    async fn a_body_that_nobody_reads_is_read_to_its_end() {
        for head in [("content-length", "15"), ("transfer-encoding", "chunked")] {
            let (request, read, gone) = request(head);
            drop(unless_read(request));
            gone.notified().await;
            assert_eq!(read.load(Ordering::Relaxed), 3, "{head:?}");
        }
    }

    #[tokio::test]
    async fn how_far_a_body_is_read_on_is_up_to_who_has_begun() {
        let (request, read, gone) = request(("content-length", "15"));
        let mut stream = unless_read(request).take_body().into_bytes_stream();
        assert_eq!(stream.next().await.unwrap().unwrap(), "piece");
        drop(stream);
        gone.notified().await;
        assert_eq!(read.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn heads_without_a_body_are_left_alone() {
        for head in [("content-length", "0"), ("accept", "*/*")] {
            assert!(!announces_body(request(head).0.headers()), "{head:?}");
        }
    }
}
