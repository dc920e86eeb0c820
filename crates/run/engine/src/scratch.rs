//! Files that are removed when their order ends. The main type is [`Scratch`].

use std::path::{Path, PathBuf};

use tempfile::{Builder, TempDir};

use crate::error::{self, ExecError};
use warpgauge_job_views::Unready;

/// Number of bytes that a check of the disk writes. If even these cannot be written, the disk is
/// full.
const PROBE_BYTES: usize = 16 << 10;

/// The run directory of this process. Each order has a subdirectory in it.
pub(crate) struct Scratch {
    run_dir: PathBuf,
}

impl Scratch {
    pub(crate) fn new(run_dir: &Path) -> Self {
        Self { run_dir: run_dir.to_owned() }
    }

    /// Creates a directory for one order. Dropping the result removes the directory.
    ///
    /// # Errors
    /// [`ExecError::Unavailable`] if no directory can be created.
    pub(crate) fn directory(&self) -> Result<TempDir, ExecError> {
        let made = Builder::new().prefix("job-").tempdir_in(&self.run_dir);
        made.map_err(|error| self.unusable("create a job directory", &error))
    }

    /// Checks whether orders can currently create files. A full disk is noticed only when something
    /// is written.
    ///
    /// # Errors
    /// [`ExecError::Unavailable`] with the operation that failed.
    pub(crate) async fn probe(&self) -> Result<(), ExecError> {
        let directory = self.directory()?;
        let written = tokio::task::spawn_blocking(move || write_probe(directory.path())).await;
        let written = written.map_err(|error| error::internal("looking for room", &error))?;
        written.map_err(|error| self.unusable("write", &error))
    }

    /// Returns the reason why orders cannot create files, or `None` if they can. Blocking.
    pub(crate) fn unready(&self) -> Option<Unready> {
        let directory = Builder::new().prefix("job-").tempdir_in(&self.run_dir);
        let error = directory.and_then(|directory| write_probe(directory.path())).err()?;
        let code = match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => "disk_full",
            std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
                "read_only"
            }
            _ => "files_unusable",
        };
        Some(Unready::new(code, self.unusable("write", &error).to_string()))
    }

    fn unusable(&self, operation: &str, error: &std::io::Error) -> ExecError {
        tracing::error!(directory = %self.run_dir.display(), %error, "jobs cannot create files");
        ExecError::Unavailable(format!(
            "cannot {operation} in the server's run directory: {error}; check space and permissions"
        ))
    }
}

fn write_probe(directory: &Path) -> std::io::Result<()> {
    std::fs::write(directory.join("probe"), [1; PROBE_BYTES])
}
