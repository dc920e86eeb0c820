//! Files of the libraries, by their names: none is opened here.

use std::path::Path;

use warpgauge_model::Library;

/// What file names begin with: the libraries, and those that they need beside them.
const LIBRARY_FILES: [&str; 4] =
    ["libcusparse.so.", "libcublas.so.", "libcublasLt.so.", "libnvJitLink.so."];

/// Major version in the name that programs ask for, such as `libcusparse.so.12`.
pub fn major_version(name: &str) -> Option<u32> {
    LIBRARY_FILES.iter().find_map(|stem| name.strip_prefix(stem))?.parse().ok()
}

/// Names under which the dynamic loader knows a library, newest first. The number is the library's own: that
/// of CUDA 13 has `libcusparse.so.12`.
pub fn sonames(library: Library) -> [&'static str; 2] {
    match library {
        Library::Cusparse => ["libcusparse.so.13", "libcusparse.so.12"],
        Library::Cublas => ["libcublas.so.13", "libcublas.so.12"],
    }
}

/// Whether a file is the library, by its name.
pub fn is_file_of(library: Library, file: &Path) -> bool {
    file.file_name().is_some_and(|name| sonames(library).iter().any(|wanted| name == *wanted))
}

/// What to do where a library is missing.
pub fn remedy(library: Library) -> &'static str {
    match library {
        Library::Cusparse => {
            "install the CUDA toolkit, or `pip install nvidia-cusparse`, and name its place in \
             compile.toolchain"
        }
        Library::Cublas => {
            "install the CUDA toolkit, or `pip install nvidia-cublas`, and name its place in \
             compile.toolchain"
        }
    }
}
