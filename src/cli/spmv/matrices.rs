//! Finds the matrices that the command line lists.

use std::path::{Path, PathBuf};

use crate::cli::CliError;
use warpgauge_sparse::spmv::is_generated;

/// Maximum number of matrices that one command accepts.
const MAX_MATRICES: usize = 10_000;

/// A matrix in a file, or with a name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Matrix {
    /// A file on this machine.
    File(PathBuf),
    /// Name of a generated matrix, or of a matrix on the server.
    Named(String),
}

impl Matrix {
    /// Returns the name of the matrix. For a file, it is the file name without the folder.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Named(name) => name,
            Self::File(path) => path.file_name().and_then(|name| name.to_str()).unwrap_or("matrix"),
        }
    }
}

/// Returns the matrices that the command line lists. A folder contributes its .mtx and .spasm
/// files, sorted by name.
pub(super) fn named(texts: &[String], at_server: bool) -> Result<Vec<Matrix>, CliError> {
    let mut all = Vec::new();
    for text in texts {
        let path = Path::new(text);
        if path.is_dir() {
            all.extend(files_of(path)?.into_iter().map(Matrix::File));
        } else if path.exists() {
            all.push(Matrix::File(path.to_owned()));
        } else if is_generated(text) || (at_server && !text.contains('/')) {
            all.push(Matrix::Named(text.clone()));
        } else {
            return Err(CliError::Usage(format!(
                "{text}: no such file; an uploaded matrix needs --server, a generated one has a colon, \
                 e.g. poisson2d:nx=512"
            )));
        }
        if all.len() > MAX_MATRICES {
            return Err(CliError::Usage(format!(
                "the command names more than {MAX_MATRICES} matrices"
            )));
        }
    }
    Ok(all)
}

fn files_of(folder: &Path) -> Result<Vec<PathBuf>, CliError> {
    let failed = |source| CliError::System { operation: "list a folder of matrices", source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let is_matrix = path.extension().is_some_and(|it| it == "mtx" || it == "spasm");
        if is_matrix && path.is_file() {
            files.push(path);
        }
    }
    if files.is_empty() {
        let message = format!("{}: the folder contains no .mtx or .spasm file", folder.display());
        return Err(CliError::Usage(message));
    }
    files.sort();
    Ok(files)
}
