//! A temporary file that is written while its content comes.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

use bytes::Bytes;
use poem::http::StatusCode;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::error::ApiError;
use warpgauge_model::ErrorCode;

/// Pieces that wait to be written while the next one comes.
const WAITING: usize = 8;

/// A file, written on a thread that may block. Dropping this drops the file.
pub(super) struct Spool {
    pieces: mpsc::Sender<Bytes>,
    writing: JoinHandle<io::Result<(File, u64)>>,
}

impl Spool {
    /// An empty file.
    pub(super) fn new() -> Self {
        let (pieces, mut waiting) = mpsc::channel::<Bytes>(WAITING);
        let writing = tokio::task::spawn_blocking(move || {
            let mut file = tempfile::tempfile()?;
            while let Some(piece) = waiting.blocking_recv() {
                file.write_all(&piece)?;
            }
            let bytes = file.stream_position()?;
            file.seek(SeekFrom::Start(0))?;
            Ok((file, bytes))
        });
        Self { pieces, writing }
    }

    /// Adds a piece. Waits while too many are not written yet.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) async fn write(&mut self, piece: Bytes) -> Result<(), ApiError> {
        if self.pieces.send(piece).await.is_ok() {
            return Ok(());
        }
        // It has ended early, and says why.
        let ended = (&mut self.writing).await.map_err(io::Error::other).flatten();
        Err(failed(&ended.err().unwrap_or_else(|| io::Error::other("it ended early"))))
    }

    /// The file, at its beginning, and its bytes.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) async fn end(self) -> Result<(File, u64), ApiError> {
        drop(self.pieces);
        let ended = self.writing.await.map_err(io::Error::other).flatten();
        ended.map_err(|error| failed(&error))
    }
}

fn failed(error: &io::Error) -> ApiError {
    let text = format!("the server cannot keep a file in its temporary folder: {error}");
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::Unavailable, text)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[tokio::test]
    async fn pieces_become_a_file_in_their_order() {
        let mut spool = Spool::new();
        let pieces: Vec<Vec<u8>> = (0..100u8).map(|turn| vec![turn; usize::from(turn)]).collect();
        for piece in &pieces {
            spool.write(Bytes::from(piece.clone())).await.unwrap();
        }
        let (mut file, bytes) = spool.end().await.unwrap();
        let mut content = Vec::new();
        file.read_to_end(&mut content).unwrap();
        assert_eq!((content.len() as u64, content), (bytes, pieces.concat()));
        let (_, bytes) = Spool::new().end().await.unwrap();
        assert_eq!(bytes, 0);
    }
}
