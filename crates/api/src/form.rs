//! The fields of a form that was spooled to a file, read piece by piece.
//!
//! The parser takes all that its stream has ready before it looks at any of it. So the stream has one piece
//! ready at a time, and ends with an error where a piece after the other makes no field: what stands before a
//! field's content is short.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use poem::http::StatusCode;

use super::error::ApiError;
use warpgauge_model::{ErrorCode, FailureCode};

/// Bytes that are read at once.
const PIECE_BYTES: usize = 256 << 10;

/// Pieces in a row of which no content comes: one with the end of a field and a part of the next head, one with
/// the rest of it, and one more.
const MAX_PIECES: usize = 3;

/// A form.
pub(super) struct Form {
    fields: multer::Multipart<'static>,
    unread: Arc<AtomicUsize>,
}

impl Form {
    /// The form in a file, from its beginning. Reading it blocks.
    ///
    /// # Errors
    /// The file's.
    pub(super) fn new(mut file: File, boundary: String) -> io::Result<Self> {
        file.seek(SeekFrom::Start(0))?;
        let unread = Arc::<AtomicUsize>::default();
        let pieces = Pieces { file, waits: false, unread: Arc::clone(&unread) };
        Ok(Self { fields: multer::Multipart::new(pieces, boundary), unread })
    }

    /// The next field. What was before it must have been read or [skipped](Self::skip).
    ///
    /// # Errors
    /// The form's, or the file's.
    pub(super) async fn next(&mut self) -> multer::Result<Option<multer::Field<'static>>> {
        self.unread.store(0, Ordering::Relaxed);
        self.fields.next_field().await
    }

    /// The next piece of a field's content.
    ///
    /// # Errors
    /// The form's, or the file's.
    pub(super) async fn piece(
        &self,
        field: &mut multer::Field<'static>,
    ) -> multer::Result<Option<Bytes>> {
        self.unread.store(0, Ordering::Relaxed);
        field.chunk().await
    }

    /// Reads the rest of a field, which is for nobody.
    ///
    /// # Errors
    /// The form's, or the file's.
    pub(super) async fn skip(&self, mut field: multer::Field<'static>) -> multer::Result<()> {
        while self.piece(&mut field).await?.is_some() {}
        Ok(())
    }
}

/// What is wrong with a form whose file is in `field`.
pub(super) fn malformed(field: &str, error: multer::Error) -> ApiError {
    if let multer::Error::StreamReadFailed(source) = &error {
        let of_form = source
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::InvalidData);
        let text = format!("the form cannot be read: {source}");
        return match of_form {
            true => ApiError::field(field, FailureCode::TooLong, text),
            false => ApiError::new(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::Unavailable, text),
        };
    }
    let text = format!("the form cannot be read: {error}; it may have been cut off");
    ApiError::field(field, FailureCode::TruncatedBody, text)
}

/// A file, of which one piece is ready at a time.
struct Pieces {
    file: File,
    /// Whether the piece before is to be looked at first.
    waits: bool,
    /// Pieces since anything came of them.
    unread: Arc<AtomicUsize>,
}

impl Stream for Pieces {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if std::mem::take(&mut self.waits) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if self.unread.fetch_add(1, Ordering::Relaxed) >= MAX_PIECES {
            let message =
                "what stands before the content of a field is longer than any head of a field";
            return Poll::Ready(Some(Err(io::Error::new(io::ErrorKind::InvalidData, message))));
        }
        let mut piece = vec![0; PIECE_BYTES];
        Poll::Ready(match self.file.read(&mut piece) {
            Ok(0) => None,
            Ok(count) => {
                piece.truncate(count);
                self.waits = true;
                Some(Ok(Bytes::from(piece)))
            }
            Err(error) => Some(Err(error)),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn form(content: &[&[u8]]) -> Form {
        let mut file = tempfile::tempfile().unwrap();
        content.iter().for_each(|part| file.write_all(part).unwrap());
        Form::new(file, "B".to_owned()).unwrap()
    }

    fn head(name: &str) -> String {
        format!("--B\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n")
    }

    #[tokio::test]
    async fn no_more_than_some_pieces_are_in_memory() {
        let large = vec![b'x'; 40 * PIECE_BYTES];
        let [a, b] = [head("a"), head("b")];
        let mut form =
            form(&[a.as_bytes(), &large, b"\r\n", b.as_bytes(), &large, b"\r\n--B--\r\n"]);
        let mut field = form.next().await.unwrap().unwrap();
        let (mut bytes, mut pieces) = (0, 0);
        while let Some(piece) = form.piece(&mut field).await.unwrap() {
            assert!(piece.len() <= 2 * PIECE_BYTES, "{}", piece.len());
            (bytes, pieces) = (bytes + piece.len(), pieces + 1);
        }
        assert_eq!(bytes, large.len());
        assert!(pieces >= 40);
        drop(field);
        let field = form.next().await.unwrap().unwrap();
        assert_eq!(field.name(), Some("b"));
        form.skip(field).await.unwrap();
        assert!(form.next().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_head_without_an_end_is_refused_early() {
        let endless = vec![b'h'; 64 * PIECE_BYTES];
        for start in ["--B\r\nContent-Disposition: ", "", "--B\r\n"] {
            let mut form = form(&[start.as_bytes(), &endless]);
            let error = form.next().await.unwrap_err();
            assert!(matches!(error, multer::Error::StreamReadFailed(_)), "{error}");
        }
        let padding = vec![b' '; 64 * PIECE_BYTES];
        assert!(form(&[b"--B", &padding]).next().await.is_err());
    }

    #[tokio::test]
    async fn a_form_that_is_cut_off_ends_with_an_error() {
        let large = vec![b'x'; 3 * PIECE_BYTES];
        let mut form = form(&[head("a").as_bytes(), &large]);
        let field = form.next().await.unwrap().unwrap();
        form.skip(field).await.unwrap_err();
    }
}
