//! Reads the fields of a form piece by piece: [`MultipartForm`].
//!
//! The parser takes all pieces that its stream has ready before it parses any of them. So this
//! stream has only one piece ready at a time. Because the head of a field is short, the stream ends
//! with an error if many bytes contain no content.

use std::error::Error;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::{self, BoxStream, StreamExt};
use poem::http::{HeaderMap, StatusCode, header};

use super::body::{BodyLimits, Pieces, Share};
use crate::error::ApiError;
use warpgauge_model::{ErrorCode, FailureCode};

/// Maximum number of bytes without content. A connection may deliver up to half of this at once,
/// and those bytes may contain the end of a field and part of the next head. The rest of the head
/// may need the same number of bytes again.
const MAX_UNREAD: usize = 1 << 20;

/// Media type of forms.
pub(crate) const FORM: &str = "multipart/form-data";

pub(crate) struct MultipartForm<'a> {
    fields: multer::Multipart<'a>,
    state: Arc<State>,
}

/// State that the stream of a form shares with the reader of its fields.
#[derive(Default)]
struct State {
    /// Bytes since the last content.
    unread: AtomicUsize,
    /// Reservation of disk space from the budget for all uploads.
    share: Mutex<Share>,
}

impl State {
    /// Enlarges the reservation to this number of bytes.
    fn cover(&self, bytes: usize, limits: &BodyLimits) -> Result<(), ApiError> {
        let mut share = self.share.lock().unwrap_or_else(PoisonError::into_inner);
        share.cover(bytes, limits)
    }
}

/// Reason why a stream ended: an error of the body, or too many bytes without content.
type Ended = Box<dyn Error + Send + Sync>;

impl<'a> MultipartForm<'a> {
    /// Reads a body within these limits as a form.
    pub(crate) fn new(pieces: Pieces<'a>, limits: &'a BodyLimits, boundary: String) -> Self {
        let state = Arc::<State>::default();
        let begin = (pieces, Arc::clone(&state));
        let stream = stream::try_unfold(begin, move |(mut pieces, state)| async move {
            let Some(piece) = pieces.next().await? else { return Ok(None) };
            state.cover(pieces.read(), limits)?;
            Ok(Some((piece, (pieces, state))))
        });
        Self::of(stream.boxed(), state, boundary)
    }

    fn of(
        source: BoxStream<'a, Result<Bytes, Ended>>,
        state: Arc<State>,
        boundary: String,
    ) -> Self {
        let stream = OneByOne { source, waits: false, state: Arc::clone(&state) };
        Self { fields: multer::Multipart::new(stream, boundary), state }
    }

    /// Returns the next field. The field before it must have been read or [skipped](Self::skip).
    ///
    /// # Errors
    /// The form is malformed, or the body cannot be read.
    pub(crate) async fn next(&mut self) -> multer::Result<Option<multer::Field<'a>>> {
        self.state.unread.store(0, Ordering::Relaxed);
        self.fields.next_field().await
    }

    /// Returns the next piece of a field's content.
    ///
    /// # Errors
    /// The form is malformed, or the body cannot be read.
    pub(crate) async fn piece(
        &self,
        field: &mut multer::Field<'a>,
    ) -> multer::Result<Option<Bytes>> {
        self.state.unread.store(0, Ordering::Relaxed);
        field.chunk().await
    }

    /// Reads and discards the rest of a field.
    pub(crate) async fn skip(&self, mut field: multer::Field<'a>) -> multer::Result<()> {
        while self.piece(&mut field).await?.is_some() {}
        Ok(())
    }

    /// Returns the form's reservation of disk space.
    pub(crate) fn into_share(self) -> Share {
        std::mem::take(&mut *self.state.share.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns the boundary in the media type of a form; `None` if the media type is another one.
pub(crate) fn boundary(text: &str) -> Option<String> {
    let essence = text.split(';').next().unwrap_or_default().trim();
    let form = essence.eq_ignore_ascii_case(FORM);
    form.then(|| multer::parse_boundary(text).ok()).flatten()
}

/// Returns the boundary of a request that must be a form. `otherwise` says what to do in place of a
/// form.
///
/// # Errors
/// The media type of the body is another one.
pub(crate) fn required_boundary(headers: &HeaderMap, otherwise: &str) -> Result<String, ApiError> {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.and_then(boundary).ok_or_else(|| {
        let text = format!("Content-Type must be {FORM} with a boundary; {otherwise}");
        ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, ErrorCode::UnsupportedMediaType, text)
    })
}

/// Converts an error of the form's parser. `field` is the name of the field for the file.
pub(crate) fn malformed(field: &str, error: multer::Error) -> ApiError {
    match error {
        multer::Error::StreamReadFailed(ended) => match ended.downcast::<ApiError>() {
            Ok(of_body) => *of_body,
            Err(ended) => {
                let text = format!("the form cannot be read: {ended}");
                ApiError::field(field, FailureCode::TooLong, text)
            }
        },
        error => {
            let text = format!("the form cannot be read: {error}; it may be incomplete");
            ApiError::field(field, FailureCode::TruncatedBody, text)
        }
    }
}

/// A stream that has only one piece ready at a time.
struct OneByOne<'a> {
    source: BoxStream<'a, Result<Bytes, Ended>>,
    /// Whether the parser must parse the last piece before it receives the next.
    waits: bool,
    state: Arc<State>,
}

impl Stream for OneByOne<'_> {
    type Item = Result<Bytes, Ended>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if std::mem::take(&mut self.waits) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let next = ready!(self.source.poll_next_unpin(context));
        if let Some(Ok(piece)) = &next {
            self.waits = true;
            let unread = self.state.unread.fetch_add(piece.len(), Ordering::Relaxed);
            if unread > 0 && unread + piece.len() > MAX_UNREAD {
                let message = "the head of a field is too long";
                return Poll::Ready(Some(Err(message.into())));
            }
        }
        Poll::Ready(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a form that arrives in pieces of this size.
    fn form(content: &[&[u8]], piece: usize) -> MultipartForm<'static> {
        let content = content.concat();
        let pieces: Vec<_> =
            content.chunks(piece).map(|it| Ok(Bytes::copy_from_slice(it))).collect();
        MultipartForm::of(stream::iter(pieces).boxed(), Arc::default(), "B".to_owned())
    }

    fn head(name: &str) -> String {
        format!("--B\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n")
    }

    #[tokio::test]
    async fn no_more_than_some_pieces_are_in_memory() {
        const PIECE: usize = 256 << 10;
        let large = vec![b'x'; 40 * PIECE];
        let [a, b] = [head("a"), head("b")];
        let content: [&[u8]; 6] =
            [a.as_bytes(), &large, b"\r\n", b.as_bytes(), &large, b"\r\n--B--\r\n"];
        for piece in [PIECE, 4_099] {
            let mut form = form(&content, piece);
            let mut field = form.next().await.unwrap().unwrap();
            let (mut bytes, mut pieces) = (0, 0);
            while let Some(chunk) = form.piece(&mut field).await.unwrap() {
                assert!(chunk.len() <= 2 * piece, "{}", chunk.len());
                (bytes, pieces) = (bytes + chunk.len(), pieces + 1);
            }
            assert_eq!(bytes, large.len());
            assert!(pieces >= 40);
            drop(field);
            let field = form.next().await.unwrap().unwrap();
            assert_eq!(field.name(), Some("b"));
            form.skip(field).await.unwrap();
            assert!(form.next().await.unwrap().is_none());
        }
    }

    #[tokio::test]
    async fn a_form_may_come_in_bytes() {
        let [a, b] = [head("a"), head("b")];
        let mut form = form(&[a.as_bytes(), b"1\r\n", b.as_bytes(), b"\r\n--B--\r\n"], 1);
        for (name, length) in [("a", 1), ("b", 0)] {
            let field = form.next().await.unwrap().unwrap();
            assert_eq!(field.name(), Some(name));
            assert_eq!(field.bytes().await.unwrap().len(), length);
        }
        assert!(form.next().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_head_without_an_end_is_refused_early() {
        let endless = vec![b'h'; 16 << 20];
        for piece in [256 << 10, 1_000] {
            for start in ["--B\r\nContent-Disposition: ", "", "--B\r\n"] {
                let mut form = form(&[start.as_bytes(), &endless], piece);
                let error = form.next().await.unwrap_err();
                assert!(matches!(error, multer::Error::StreamReadFailed(_)), "{error}");
            }
            let padding = vec![b' '; 16 << 20];
            assert!(form(&[b"--B", &padding], piece).next().await.is_err());
        }
    }

    #[tokio::test]
    async fn a_form_that_is_cut_off_ends_with_an_error() {
        let large = vec![b'x'; 3 << 20];
        let mut form = form(&[head("a").as_bytes(), &large], 256 << 10);
        let field = form.next().await.unwrap().unwrap();
        form.skip(field).await.unwrap_err();
    }
}
