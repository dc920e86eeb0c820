//! Compilers of host code: those of the system, which nvcc starts as well.

use std::path::{Path, PathBuf};

/// Where children look for programs.
const DIRECTORIES: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// The system's compiler of C++, `g++`.
pub(crate) fn cxx() -> Option<PathBuf> {
    program("g++")
}

/// The system's compiler of C, `gcc`.
pub(crate) fn cc() -> Option<PathBuf> {
    program("gcc")
}

fn program(name: &str) -> Option<PathBuf> {
    let places = DIRECTORIES.iter().map(|directory| Path::new(directory).join(name));
    places.into_iter().find(|path| path.is_file())
}
