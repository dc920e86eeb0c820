//! The system's compilers for host code, which nvcc uses, too.

use std::path::{Path, PathBuf};

/// Directories in which children look for programs.
const DIRECTORIES: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// Returns the system's C++ compiler, `g++`.
pub(crate) fn cxx() -> Option<PathBuf> {
    program("g++")
}

/// Returns the system's C compiler, `gcc`.
pub(crate) fn cc() -> Option<PathBuf> {
    program("gcc")
}

fn program(name: &str) -> Option<PathBuf> {
    let places = DIRECTORIES.iter().map(|directory| Path::new(directory).join(name));
    places.into_iter().find(|path| path.is_file())
}
