//! Finds files of the libraries by their names, without opening them.

use std::path::Path;

use warpgauge_model::Library;

/// Prefixes of the file names of the libraries, and of the libraries that these need.
const LIBRARY_FILES: [&str; 4] =
    ["libcusparse.so.", "libcublas.so.", "libcublasLt.so.", "libnvJitLink.so."];

/// Returns the major version in a SONAME such as `libcusparse.so.12`.
pub fn major_version(name: &str) -> Option<u32> {
    LIBRARY_FILES.iter().find_map(|stem| name.strip_prefix(stem))?.parse().ok()
}

/// Returns the names under which the dynamic loader finds a library, newest first. The number is
/// the version of the library, not of CUDA: CUDA 13 has `libcusparse.so.12`.
pub fn sonames(library: Library) -> [&'static str; 2] {
    match library {
        Library::Cusparse => ["libcusparse.so.13", "libcusparse.so.12"],
        Library::Cublas => ["libcublas.so.13", "libcublas.so.12"],
    }
}

/// Returns whether a file's name is one of the library's names.
pub fn is_file_of(library: Library, file: &Path) -> bool {
    file.file_name().is_some_and(|name| sonames(library).iter().any(|wanted| name == *wanted))
}

/// Returns the remedy for a missing library.
pub fn remedy(library: Library) -> &'static str {
    match library {
        Library::Cusparse => {
            "install the CUDA toolkit, or `pip install nvidia-cusparse`, and set its path in \
             compile.toolchain"
        }
        Library::Cublas => {
            "install the CUDA toolkit, or `pip install nvidia-cublas`, and set its path in \
             compile.toolchain"
        }
    }
}
