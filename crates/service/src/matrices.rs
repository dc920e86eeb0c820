//! Sparse matrices that callers keep here: uploaded, parsed once, and found by name.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use futures_util::FutureExt;

use super::error::{self, Problem, ServiceError};
use super::jobs::refused;
use super::start::LocalService;
use super::submission::{Answer, Caller};
use warpgauge_model::FailureCode;
use warpgauge_sparse::{Csr, Generator, MarketError, ReadLimits, market, packed};
use warpgauge_spmv::{MatrixShape, MatrixSummary, check_matrix_name};
use warpgauge_store::{Bulk, MatrixRow, NewMatrix};

/// Bytes that are read at once of what was uploaded.
pub(super) const READ_BYTES: usize = 1 << 20;

/// A Matrix Market file that came.
pub struct Upload {
    /// Name of the matrix.
    pub name: String,
    /// The file. Read on a thread that may block.
    pub content: Box<dyn Read + Send>,
}

/// Matrices of callers. Each sees its own.
pub trait MatrixService: Send + Sync {
    /// Reads a Matrix Market file and keeps the matrix in place of the one of its name.
    fn put_matrix<'a>(&'a self, upload: Upload, caller: &'a Caller) -> Answer<'a, MatrixSummary>;

    /// The caller's matrices, by name.
    fn matrices<'a>(&'a self, caller: &'a Caller) -> Answer<'a, Vec<MatrixSummary>>;

    /// A matrix: the caller's of this name or, where the name has a colon or is that of a kind, one that
    /// is generated.
    ///
    /// # Errors
    /// [`ServiceError::NoSuchMatrix`] where there is none.
    fn matrix<'a>(&'a self, name: &'a str, caller: &'a Caller) -> Answer<'a, Arc<Csr>>;

    /// Removes one.
    ///
    /// # Errors
    /// [`ServiceError::NoSuchMatrix`] where there is none.
    fn remove_matrix<'a>(&'a self, name: &'a str, caller: &'a Caller) -> Answer<'a, ()>;
}

impl MatrixService for LocalService {
    fn put_matrix<'a>(&'a self, upload: Upload, caller: &'a Caller) -> Answer<'a, MatrixSummary> {
        async move {
            let Upload { name, content } = upload;
            check_matrix_name(&name).map_err(|message| invalid("filename", message))?;
            let max_bytes = self.shared.config.limits.max_matrix_bytes_per_key;
            let parsed = aside(move || parsed(content, max_bytes)).await?;
            let detail = serde_json::to_vec(&parsed.shape)
                .map_err(|error| error::internal("describing a matrix", &error))?;
            let owner = caller.owner.clone();
            let hash = parsed.hash;
            let new = NewMatrix { owner, name: name.clone(), hash, detail, max_bytes };
            self.shared.store.put_matrix(new, Arc::new(parsed.file)).await.map_err(refused)?;
            let all = self.matrices(caller).await?;
            // Another upload may have removed it meanwhile.
            all.into_iter().find(|one| one.filename == name).ok_or(ServiceError::NoSuchMatrix(name))
        }
        .boxed()
    }

    fn matrices<'a>(&'a self, caller: &'a Caller) -> Answer<'a, Vec<MatrixSummary>> {
        async move {
            let rows = self.shared.store.matrices(&caller.owner).await.map_err(refused)?;
            rows.into_iter().map(summary).collect()
        }
        .boxed()
    }

    fn matrix<'a>(&'a self, name: &'a str, caller: &'a Caller) -> Answer<'a, Arc<Csr>> {
        async move {
            if name.contains(':') {
                let generator: Generator =
                    name.parse().map_err(|error| invalid("mtx_filename", format!("{error}")))?;
                let made = aside(move || {
                    generator.generate().map_err(|error| invalid("mtx_filename", error.to_string()))
                });
                return Ok(Arc::new(made.await?));
            }
            check_matrix_name(name).map_err(|message| invalid("mtx_filename", message))?;
            let found = self.shared.store.matrix(&caller.owner, name).await.map_err(refused)?;
            let (_, content) = found.ok_or_else(|| ServiceError::NoSuchMatrix(name.to_owned()))?;
            let read = aside(move || {
                packed::read(&mut BufReader::with_capacity(READ_BYTES, content))
                    .map_err(|error| error::internal("reading a stored matrix", &error))
            });
            Ok(Arc::new(read.await?))
        }
        .boxed()
    }

    fn remove_matrix<'a>(&'a self, name: &'a str, caller: &'a Caller) -> Answer<'a, ()> {
        async move {
            check_matrix_name(name).map_err(|message| invalid("name", message))?;
            match self.shared.store.delete_matrix(&caller.owner, name).await.map_err(refused)? {
                true => Ok(()),
                false => Err(ServiceError::NoSuchMatrix(name.to_owned())),
            }
        }
        .boxed()
    }
}

fn invalid(path: &str, message: String) -> ServiceError {
    let path = path.to_owned();
    ServiceError::Invalid(vec![Problem { path, code: FailureCode::InvalidData, message }])
}

/// Does what takes long off the async threads.
pub(super) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ServiceError> + Send + 'static,
) -> Result<T, ServiceError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| error::internal("working on a matrix", &error))?
}

fn summary(row: MatrixRow) -> Result<MatrixSummary, ServiceError> {
    let shape: MatrixShape = serde_json::from_slice(&row.detail)
        .map_err(|error| error::internal("reading what is known of a matrix", &error))?;
    let age = row.created_at.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(MatrixSummary {
        filename: row.name,
        shape,
        blake3: row.hash,
        bytes: row.bytes,
        uploaded_at: age.as_secs_f64(),
    })
}

/// A file that was read: what is kept of it.
struct Parsed {
    shape: MatrixShape,
    hash: String,
    file: PackedFile,
}

/// Parses, and packs what came of it into a temporary file. Blocking.
fn parsed(content: Box<dyn Read + Send>, max_bytes: u64) -> Result<Parsed, ServiceError> {
    let mut hashed = Hashed { from: content, hasher: blake3::Hasher::new() };
    let limits = match max_bytes {
        0 => ReadLimits::default(),
        max_bytes => ReadLimits { max_bytes },
    };
    let (csr, info) = market::read(&mut hashed, &limits, |_| ()).map_err(|error| match error {
        MarketError::Io(error) => {
            ServiceError::Unavailable(format!("cannot read what was uploaded: {error}"))
        }
        other => invalid("content", other.to_string()),
    })?;
    let shape = MatrixShape::new(&csr, &info);
    let file = PackedFile::of(&csr).map_err(|error| {
        ServiceError::Unavailable(format!("cannot keep a matrix in a temporary file: {error}"))
    })?;
    Ok(Parsed { shape, hash: hashed.hasher.finalize().to_hex().to_string(), file })
}

/// Hashes what is read.
struct Hashed {
    from: Box<dyn Read + Send>,
    hasher: blake3::Hasher,
}

impl Read for Hashed {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(out)?;
        self.hasher.update(&out[..count]);
        Ok(count)
    }
}

/// A packed matrix in a file that goes with this.
#[derive(Debug)]
struct PackedFile {
    file: Arc<File>,
    bytes: u64,
}

impl PackedFile {
    fn of(csr: &Csr) -> io::Result<Self> {
        let mut writer = BufWriter::with_capacity(READ_BYTES, tempfile::tempfile()?);
        packed::write(csr, &mut writer)?;
        writer.flush()?;
        let mut file = writer.into_inner()?;
        let bytes = file.seek(SeekFrom::End(0))?;
        Ok(Self { file: Arc::new(file), bytes })
    }
}

impl Bulk for PackedFile {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn reader(&self) -> Box<dyn Read + Send> {
        Box::new(FromStart { file: Arc::clone(&self.file), position: 0 })
    }
}

/// Reads a shared file from its beginning.
struct FromStart {
    file: Arc<File>,
    position: u64,
}

impl Read for FromStart {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(out, self.position)?;
        self.position += count as u64;
        Ok(count)
    }
}
