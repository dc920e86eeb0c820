//! A temporary file that is written while its content arrives: [`Spool`].

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

use bytes::Bytes;
use poem::http::StatusCode;
use tokio::task::JoinHandle;

use crate::error::ApiError;
use warpgauge_model::ErrorCode;

/// Number of pending bytes, or of pending pieces, at which they are written to the file.
const WRITTEN_BYTES: usize = 1 << 20;
const WRITTEN_PIECES: usize = 64;

/// A file whose content arrives in pieces. A blocking thread writes the pieces that have arrived.
/// It is free for other work while a slow client sends the next piece. The file is removed when
/// this value is dropped.
#[derive(Default)]
pub(crate) struct Spool {
    /// Pieces for which no write has started yet.
    pieces: Vec<Bytes>,
    pending: usize,
    /// The most recent write, which owns the file.
    writing: Option<JoinHandle<io::Result<File>>>,
}

impl Spool {
    /// Adds a piece. If enough pieces are pending, waits for the previous write and starts the
    /// next.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub(crate) async fn write(&mut self, piece: Bytes) -> Result<(), ApiError> {
        self.pending += piece.len();
        self.pieces.push(piece);
        if self.pending >= WRITTEN_BYTES || self.pieces.len() >= WRITTEN_PIECES {
            let mut file = self.written().await?;
            let pieces = std::mem::take(&mut self.pieces);
            self.pending = 0;
            self.writing = Some(tokio::task::spawn_blocking(move || {
                pieces.iter().try_for_each(|piece| file.write_all(piece)).map(|()| file)
            }));
        }
        Ok(())
    }

    /// Returns the file, positioned at its beginning, and its size in bytes.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) async fn end(mut self) -> Result<(File, u64), ApiError> {
        let mut file = self.written().await?;
        let pieces = std::mem::take(&mut self.pieces);
        run_blocking(move || {
            pieces.iter().try_for_each(|piece| file.write_all(piece))?;
            let bytes = file.stream_position()?;
            file.seek(SeekFrom::Start(0))?;
            Ok((file, bytes))
        })
        .await
    }

    /// Returns the file after the last write has ended.
    async fn written(&mut self) -> Result<File, ApiError> {
        match self.writing.take() {
            Some(writing) => writing.await.map_err(io::Error::other).flatten().map_err(failed),
            None => run_blocking(tempfile::tempfile).await,
        }
    }
}

async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other).flatten().map_err(failed)
}

fn failed(error: io::Error) -> ApiError {
    let text = format!("the server cannot write a file in its temporary folder: {error}");
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::Unavailable, text)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    async fn content(pieces: &[Vec<u8>]) -> (Vec<u8>, u64) {
        let mut spool = Spool::default();
        for piece in pieces {
            spool.write(Bytes::from(piece.clone())).await.unwrap();
        }
        let (mut file, bytes) = spool.end().await.unwrap();
        let mut content = Vec::new();
        file.read_to_end(&mut content).unwrap();
        (content, bytes)
    }

    #[tokio::test]
    async fn pieces_become_a_file_in_their_order() {
        let small: Vec<Vec<u8>> = (0..200u8).map(|turn| vec![turn; usize::from(turn)]).collect();
        let large: Vec<Vec<u8>> = (0..9).map(|turn| vec![turn; 700 << 10]).collect();
        for pieces in [Vec::new(), small, large] {
            let whole = pieces.concat();
            assert_eq!(content(&pieces).await, (whole.clone(), whole.len() as u64));
        }
    }
}
