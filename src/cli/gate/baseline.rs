//! The source tree with which the working tree is compared. It is available as a directory:
//! [`Baseline`].

use std::path::{Path, PathBuf};

use super::{GateError, git};
use crate::cli::CliError;
use warpgauge_gate::BaselineOrigin;
use warpgauge_gate::report::BaselineKind;

/// A baseline. Dropping it removes the files that were written for it.
#[derive(Debug)]
pub(super) struct Baseline {
    /// Name and kind of the baseline, for the report.
    pub origin: BaselineOrigin,
    /// Directory in the baseline's tree that corresponds to the directory of the suite.
    pub directory: PathBuf,
    _files: Option<tempfile::TempDir>,
}

impl Baseline {
    /// Finds the baseline `name`: a directory, or a commit of the suite's repository.
    pub(super) fn find(name: &str, suite: &Path) -> Result<Self, CliError> {
        let home = match suite.parent() {
            Some(parent) if parent != Path::new("") => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        let is_directory = Path::new(name).is_dir();
        // If the baseline is a directory, git is not needed.
        let root = match git::root(&home) {
            Err(_) if is_directory => Err(String::new()),
            other => other?,
        };
        let commit = match &root {
            Ok(root) => git::commit(root, name)?,
            Err(message) => Err(message.clone()),
        };
        let plainly_a_path = name.starts_with(['.', '/']);
        match (is_directory, root, commit) {
            (true, _, Ok(_)) if !plainly_a_path => {
                Err(GateError::Ambiguous { name: name.to_owned() }.into())
            }
            (true, ..) => Ok(Self {
                origin: BaselineOrigin {
                    kind: BaselineKind::Directory,
                    name: name.to_owned(),
                    commit: None,
                },
                directory: PathBuf::from(name),
                _files: None,
            }),
            (false, Ok(root), Ok(commit)) => Self::of_commit(name, commit, &root, &home),
            (false, Ok(repository), Err(message)) => {
                Err(GateError::NoBaseline { name: name.to_owned(), repository, message }.into())
            }
            (false, Err(message), _) => Err(GateError::NoRepository {
                name: name.to_owned(),
                suite: suite.to_owned(),
                message,
            }
            .into()),
        }
    }

    fn of_commit(name: &str, commit: String, root: &Path, home: &Path) -> Result<Self, CliError> {
        let system = |operation| move |source| CliError::System { operation, source };
        let files = tempfile::Builder::new()
            .prefix("warpgauge-baseline-")
            .tempdir()
            .map_err(system("create a temporary directory"))?;
        let tree = files.path().join("tree");
        std::fs::create_dir(&tree).map_err(system("create a temporary directory"))?;
        git::write_tree(root, &commit, &tree, &files.path().join("index"))?;
        let root = root.canonicalize().map_err(system("find the repository"))?;
        let home = home.canonicalize().map_err(system("find the suite's directory"))?;
        let within = home.strip_prefix(&root).map_err(|_| GateError::Git {
            operation: "rev-parse",
            message: format!("{} is not in {}", home.display(), root.display()),
        })?;
        Ok(Self {
            origin: BaselineOrigin {
                kind: BaselineKind::Git,
                name: name.to_owned(),
                commit: Some(commit),
            },
            directory: tree.join(within),
            _files: Some(files),
        })
    }
}
