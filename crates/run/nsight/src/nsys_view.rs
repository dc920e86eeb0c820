//! Places `nsys` next to its importer.
//!
//! Nsight Compute includes both, in directories whose names differ from those that `nsys` searches.
//! `nsys` searches relative to the file that it was started from, after following links. The
//! program is therefore copied, and all other files are linked:
//!
//! ```text
//! nsys-view/target-linux-x64/nsys       copy
//! nsys-view/target-linux-x64/…          links
//! nsys-view/host-linux-x64              link to the importer's directory
//! ```

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Maximum number of files in the directory of `nsys`.
const MAX_ENTRIES: usize = 4096;

/// Name of the directory in which `nsys` searches for its importer.
const HOST: &str = "host-linux-x64";

/// Returns a path of `nsys` from which it finds its importer: the given path, or that of a copy in
/// `directory`.
///
/// # Errors
/// Fails if the directory cannot be written or the program cannot be read.
pub(super) fn make(nsys: &Path, importer: &Path, directory: &Path) -> io::Result<PathBuf> {
    let real = nsys.canonicalize()?;
    let home = real.parent().ok_or(io::ErrorKind::NotFound)?;
    let has_own = home.parent().is_some_and(|root| {
        ["host-linux-x64", "host-linux-armv8"].iter().any(|host| root.join(host).is_dir())
    });
    // A script that starts the program, such as `bin/nsys`, finds the program by itself.
    if has_own || !home.ends_with("target-linux-x64") {
        return Ok(nsys.to_owned());
    }
    let view = directory.join("nsys-view");
    if view.exists() {
        std::fs::remove_dir_all(&view)?;
    }
    let target = view.join("target-linux-x64");
    std::fs::create_dir_all(&target)?;
    for entry in home.read_dir()?.take(MAX_ENTRIES) {
        let entry = entry?;
        if entry.path() != real {
            symlink(entry.path(), target.join(entry.file_name()))?;
        }
    }
    let copy = target.join("nsys");
    std::fs::copy(&real, &copy)?;
    // Copying preserves the mode, but only this user needs access to the copy.
    std::fs::set_permissions(&copy, Permissions::from_mode(0o700))?;
    let importer = importer.canonicalize()?;
    symlink(importer.parent().ok_or(io::ErrorKind::NotFound)?, view.join(HOST))?;
    Ok(copy)
}
