//! NVIDIA's compilers. This module removes unneeded files of their wheels, and checks that the
//! compilers work.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use super::super::discover::discover_in;
use super::error::files;
use super::part::{Kind, Part};
use super::{InstallError, InstallRequest};
use crate::protocol::{ChildRequest, Outcome, PROTOCOL_VERSION, Work};
use crate::supervisor::run_blocking;

/// Maximum time for loading the library in a test.
const VERIFY_TIMEOUT: Duration = Duration::from_secs(60);

/// Removes unneeded files (a second copy of NVRTC, static libraries, cuRAND's library). Makes
/// programs executable, since the wheels lack that permission.
pub(super) fn tidy(directory: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() {
            tidy(&path)?;
            continue;
        }
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.contains(".alt.so") || name.ends_with(".a") || name.starts_with("libcurand") {
            fs::remove_file(&path)?;
        } else if kind.is_file() && directory.file_name().is_some_and(|d| d == "bin") {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        }
    }
    Ok(())
}

/// Finds the part in the downloaded files, and loads the library.
pub(super) fn verify(
    request: &InstallRequest,
    part: &Part,
    staging: &Path,
) -> Result<(), InstallError> {
    let broken = |what: String| InstallError::Broken { part: part.name.clone(), what };
    let found = discover_in(staging);
    if part.kind == Kind::Nvcc {
        return match found.nvcc {
            Some(_) => Ok(()),
            None => Err(broken("the wheels contain no nvcc".into())),
        };
    }
    let library =
        found.nvrtc.first().ok_or_else(|| broken("the wheels contain no NVRTC".into()))?;
    let job_dir = tempfile::tempdir().map_err(files("create", &std::env::temp_dir()))?;
    let child = ChildRequest {
        protocol: PROTOCOL_VERSION,
        job_dir: job_dir.path().to_owned(),
        cpu_seconds: VERIFY_TIMEOUT.as_secs(),
        work: Work::Describe { library: library.path.clone(), version: library.version },
    };
    match run_blocking(&request.program, &child, VERIFY_TIMEOUT).map(|reply| reply.result) {
        Ok(Outcome::Description { version, archs }) if version == library.version => {
            tracing::debug!(?version, ?archs, "NVRTC loads");
            Ok(())
        }
        Ok(Outcome::Description { version: (major, minor), .. }) => Err(broken(format!(
            "it reports version {major}.{minor}, but was found as {}",
            library.version_text()
        ))),
        Ok(Outcome::Toolchain { what } | Outcome::Failed { what }) => Err(broken(what)),
        Ok(_) => Err(broken("the compile child sent an unexpected answer".into())),
        Err(e) => Err(broken(e.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tidying_drops_copies_and_makes_programs_executable() {
        let dir = tempfile::tempdir().unwrap();
        let bin = dir.path().join("nvidia/cu13/bin");
        let lib = dir.path().join("nvidia/cu13/lib");
        fs::create_dir_all(&bin).unwrap();
        fs::create_dir_all(&lib).unwrap();
        for name in ["libnvrtc.so.12", "libnvrtc.alt.so.12", "libcudart_static.a"] {
            fs::write(lib.join(name), "x").unwrap();
        }
        fs::write(bin.join("nvcc"), "x").unwrap();
        tidy(dir.path()).unwrap();
        let left: Vec<_> = fs::read_dir(&lib).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["libnvrtc.so.12"]);
        let mode = fs::metadata(bin.join("nvcc")).unwrap().permissions().mode();
        assert_eq!(mode & 0o111, 0o111);
    }
}
