//! What the working tree is compared with, as a directory.

use std::path::{Path, PathBuf};

use super::{GateError, git};
use crate::cli::CliError;
use warpgauge_gate::BaselineOrigin;
use warpgauge_gate::report::BaselineKind;

/// A baseline. Its files are gone once it is dropped, if they were made for it.
#[derive(Debug)]
pub(super) struct Baseline {
    /// What it is.
    pub origin: BaselineOrigin,
    /// The directory that stands for the suite's.
    pub directory: PathBuf,
    _files: Option<tempfile::TempDir>,
}

impl Baseline {
    /// Finds `name`: a directory, or a commit of the repository that the suite is in.
    pub(super) fn find(name: &str, suite: &Path) -> Result<Self, CliError> {
        let home = match suite.parent() {
            Some(parent) if parent != Path::new("") => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        let is_directory = Path::new(name).is_dir();
        // Without git a directory still is one.
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
            .map_err(system("make a temporary directory"))?;
        let tree = files.path().join("tree");
        std::fs::create_dir(&tree).map_err(system("make a temporary directory"))?;
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
