//! Journal of evaluations. It ensures that each file is evaluated once, even if the process is
//! killed. The main type is [`Entry`].
//!
//! A file goes through these steps. Each is a rename, or a file that appears with its complete
//! content:
//!
//! 1. `jobs/KEY`: the file's name and version. KEY is the idempotency key of its evaluation.
//! 2. `ready/KEY`: the complete result.
//! 3. `jobs/KEY` becomes `published/KEY`. From this step on, the file is not evaluated again.
//! 4. `ready/KEY` becomes the result in `results/`.
//! 5. The kernel file moves from `kernels/` to `gone/KEY`. If it is another version by now, it
//!    moves back.
//! 6. `published/KEY` is removed.
//!
//! After a kill, each entry shows the last step of its file, and the next watcher completes the
//! other steps. A power loss can remove the last entries of `jobs/`; their files are then evaluated
//! again. The content of a result is written to disk before its name.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::{Deserialize, Serialize};

use crate::folder::{Folder, FolderError, failed};
use crate::intake::Version;

/// A file that is being evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Name of the file as bytes, because it may not be UTF-8.
    name: Vec<u8>,
    pub version: Version,
    /// The contract file next to the kernel, if any.
    contract: Option<(Vec<u8>, Version)>,
}

impl Entry {
    pub(crate) fn new(
        name: &OsStr,
        version: Version,
        contract: Option<(OsString, Version)>,
    ) -> Self {
        let contract = contract.map(|(name, version)| (name.into_vec(), version));
        Self { name: name.as_bytes().to_vec(), version, contract }
    }

    pub(crate) fn name(&self) -> OsString {
        OsString::from_vec(self.name.clone())
    }
}

/// Creates an entry. This is step 1.
pub(crate) fn begin(folder: &Folder, key: &str, entry: &Entry) -> Result<(), FolderError> {
    let path = folder.own("jobs", key);
    let text =
        serde_json::to_vec(entry).map_err(|error| failed("describe", &path)(error.into()))?;
    write_whole(&folder.own("ready", &format!("{key}.new")), &path, &text, false)
}

/// Completes an entry. These are steps 2 to 6. Returns the path of the result.
pub(crate) fn publish(
    folder: &Folder,
    key: &str,
    entry: &Entry,
    result: &[u8],
) -> Result<std::path::PathBuf, FolderError> {
    let ready = folder.own("ready", key);
    write_whole(&folder.own("ready", &format!("{key}.new")), &ready, result, true)?;
    finish(folder, key, entry)
}

/// Performs steps 3 to 6 for an entry whose result is ready or published.
fn finish(folder: &Folder, key: &str, entry: &Entry) -> Result<std::path::PathBuf, FolderError> {
    let (job, published) = (folder.own("jobs", key), folder.own("published", key));
    if job.exists() {
        fs::rename(&job, &published).map_err(failed("rename", &job))?;
    }
    let name = entry.name();
    let result = folder.result_of(&name);
    let ready = folder.own("ready", key);
    match fs::rename(&ready, &result) {
        Ok(()) => {}
        // The rename happened before the process was killed.
        Err(error) if error.kind() == io::ErrorKind::NotFound && !ready.exists() => {}
        Err(error) => return Err(failed("write", &result)(error)),
    }
    remove(folder, key, &name, entry.version)?;
    if let Some((contract, version)) = &entry.contract {
        let contract = OsStr::from_bytes(contract);
        if !is_wanted(folder, contract) {
            remove(folder, key, contract, *version)?;
        }
    }
    fs::remove_file(&published).map_err(failed("remove", &published))?;
    Ok(result)
}

/// Returns whether there is another kernel that uses this contract.
fn is_wanted(folder: &Folder, contract: &OsStr) -> bool {
    let stem = Path::new(contract).file_stem().unwrap_or(contract);
    warpgauge_contract::FILE_EXTENSIONS.iter().any(|(ending, _)| {
        let mut name = stem.to_owned();
        name.push(".");
        name.push(ending);
        folder.kernels().join(name).symlink_metadata().is_ok()
    })
}

/// Removes a file from `kernels/` if it is still the given version. A version that has replaced it
/// is kept.
fn remove(folder: &Folder, key: &str, name: &OsStr, version: Version) -> Result<(), FolderError> {
    let path = folder.kernels().join(name);
    if Version::at(&path) != Some(version) {
        return Ok(());
    }
    // The file is moved first, because it may be replaced between the check and the removal.
    let gone = folder.own("gone", key);
    match fs::rename(&path, &gone) {
        Ok(()) => settle(&gone, &path, version),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed("remove", &path)(error)),
    }
}

/// Removes a file that was moved away. If it is another version, moves it back.
fn settle(gone: &Path, path: &Path, version: Version) -> Result<(), FolderError> {
    if Version::at(gone) != Some(version) {
        match renameat_with(CWD, gone, CWD, path, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(()),
            // The file was replaced again; the newest version is kept.
            Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(failed("put back", path)(error.into())),
        }
    }
    fs::remove_file(gone).map_err(failed("remove", gone))
}

/// Removes an entry whose file no longer needs an evaluation.
pub(crate) fn forget(folder: &Folder, key: &str) -> Result<(), FolderError> {
    let path = folder.own("jobs", key);
    fs::remove_file(&path).map_err(failed("remove", &path))
}

/// Completes those entries of an earlier process that have a result. Returns the other entries.
pub(crate) fn recover(folder: &Folder) -> Result<Vec<(String, Entry)>, FolderError> {
    let mut unfinished = Vec::new();
    for key in names(&folder.own_directory("published"))? {
        if let Some(entry) = entry(&folder.own("published", &key)) {
            let gone = folder.own("gone", &key);
            if gone.symlink_metadata().is_ok() {
                settle_either(folder, &gone, &entry)?;
            }
            finish(folder, &key, &entry)?;
        }
    }
    for key in names(&folder.own_directory("jobs"))? {
        let path = folder.own("jobs", &key);
        let Some(entry) = entry(&path) else {
            // The entry is incomplete, so the evaluation of its file never began.
            fs::remove_file(&path).map_err(failed("remove", &path))?;
            continue;
        };
        if folder.own("ready", &key).exists() {
            finish(folder, &key, &entry)?;
        } else if Version::at(&folder.kernels().join(entry.name())) == Some(entry.version) {
            unfinished.push((key, entry));
        } else {
            // The file was replaced or removed in the meantime. If there is a file now, it is a
            // later version.
            fs::remove_file(&path).map_err(failed("remove", &path))?;
        }
    }
    for name in names(&folder.own_directory("ready"))? {
        let path = folder.own("ready", &name);
        fs::remove_file(&path).map_err(failed("remove", &path))?;
    }
    Ok(unfinished)
}

/// Completes the move that was in progress when the process ended: that of the kernel or of its
/// contract.
fn settle_either(folder: &Folder, gone: &Path, entry: &Entry) -> Result<(), FolderError> {
    let now = Version::at(gone);
    match &entry.contract {
        Some((name, version)) if now == Some(*version) => {
            settle(gone, &folder.kernels().join(OsStr::from_bytes(name)), *version)
        }
        _ => settle(gone, &folder.kernels().join(entry.name()), entry.version),
    }
}

fn entry(path: &Path) -> Option<Entry> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn names(directory: &Path) -> Result<Vec<String>, FolderError> {
    let read = fs::read_dir(directory).map_err(failed("list", directory))?;
    let names =
        read.map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()));
    names.collect::<Result<_, _>>().map_err(failed("list", directory))
}

/// Writes a file under a temporary name, and renames it once it is complete.
pub(crate) fn write_whole(
    unnamed: &Path,
    path: &Path,
    content: &[u8],
    lasting: bool,
) -> Result<(), FolderError> {
    let written = File::create(unnamed).and_then(|mut file| {
        file.write_all(content)?;
        if lasting { file.sync_all() } else { Ok(()) }
    });
    written.map_err(failed("write", unnamed))?;
    fs::rename(unnamed, path).map_err(failed("rename", unnamed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(folder: &Folder, name: &str, content: &str) -> Version {
        let path = folder.kernels().join(name);
        fs::write(&path, content).unwrap();
        Version::at(&path).unwrap()
    }

    fn left(directory: &Path) -> Vec<String> {
        let mut names = names(directory).unwrap();
        names.sort();
        names
    }

    /// Simulates an end of the process after each step.
    #[test]
    fn wherever_it_ends_the_rest_is_done() {
        for step in 1..=5 {
            let directory = tempfile::tempdir().unwrap();
            let folder = Folder::open(directory.path()).unwrap();
            let version = put(&folder, "a.cu", "code");
            let entry = Entry::new(OsStr::new("a.cu"), version, None);
            begin(&folder, "K", &entry).unwrap();
            if step >= 2 {
                fs::write(folder.own("ready", "K"), "result").unwrap();
            }
            if step >= 3 {
                fs::rename(folder.own("jobs", "K"), folder.own("published", "K")).unwrap();
            }
            if step >= 4 {
                fs::rename(folder.own("ready", "K"), folder.results().join("a.json")).unwrap();
            }
            if step >= 5 {
                fs::rename(folder.kernels().join("a.cu"), folder.own("gone", "K")).unwrap();
            }
            let unfinished = recover(&folder).unwrap();
            if step == 1 {
                assert_eq!(unfinished, [("K".to_owned(), entry.clone())]);
                publish(&folder, "K", &entry, b"result").unwrap();
            } else {
                assert_eq!(unfinished, []);
            }
            assert_eq!(
                fs::read_to_string(folder.results().join("a.json")).unwrap(),
                "result",
                "{step}"
            );
            assert!(left(&folder.kernels()).is_empty(), "{step}");
            for below in ["jobs", "published", "ready", "gone"] {
                assert!(left(&folder.own_directory(below)).is_empty(), "{step}: {below}");
            }
        }
    }

    #[test]
    fn a_file_that_was_replaced_meanwhile_stays() {
        let directory = tempfile::tempdir().unwrap();
        let folder = Folder::open(directory.path()).unwrap();
        let entry = Entry::new(OsStr::new("a.cu"), put(&folder, "a.cu", "old"), None);
        begin(&folder, "K", &entry).unwrap();
        put(&folder, "a.cu", "a new one");
        publish(&folder, "K", &entry, b"result").unwrap();
        assert_eq!(fs::read_to_string(folder.kernels().join("a.cu")).unwrap(), "a new one");
        // The file is replaced between the check and the removal.
        fs::rename(folder.kernels().join("a.cu"), folder.own("gone", "L")).unwrap();
        settle(&folder.own("gone", "L"), &folder.kernels().join("a.cu"), entry.version).unwrap();
        assert_eq!(fs::read_to_string(folder.kernels().join("a.cu")).unwrap(), "a new one");
    }
}
