//! Bringing a toolchain from the Python package index, into our own cache.
//!
//! NVIDIA publishes NVRTC and nvcc as wheels. `pip install --target` unpacks them into a directory
//! beside the final place; what is not needed is dropped, the library is loaded once in a child to
//! see that it works, and the directory is renamed into place. So a part is there whole or not at
//! all, and an interrupted installation leaves only a temporary directory.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::discover::{ToolchainSearch, discover_in};
use super::types::Toolchain;
use crate::diagnostics::boundary_before;
use crate::protocol::{ChildRequest, Outcome, PROTOCOL_VERSION, Work};
use crate::supervisor::run_blocking;
use warpgauge_process::program::{Environment, Program};

/// Time that the download of one part may take.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(1800);

/// Time that loading the library may take.
const VERIFY_TIMEOUT: Duration = Duration::from_secs(60);

/// Most of pip's output that an error repeats, in bytes.
const MAX_PIP_LOG: usize = 4096;

/// What to install.
#[derive(Debug, Clone)]
pub struct InstallRequest {
    /// Our executable: its compile child loads the library to see that it works.
    pub program: PathBuf,
    /// Our cache; parts go below `toolchain` in it.
    pub cache_dir: PathBuf,
    /// Major versions of CUDA whose NVRTC is wanted: 12, 13.
    pub cuda: Vec<u32>,
    /// nvcc too (of CUDA 13: the wheels of CUDA 12 have none).
    pub nvcc: bool,
}

/// Why a part could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// There are no wheels of this version.
    #[error("there is no NVRTC wheel for CUDA {major}; choose 12 or 13")]
    Version {
        /// What was asked for.
        major: u32,
    },
    /// No Python with pip.
    #[error(
        "no python3 with pip was found, which brings the toolchain; install it (Debian: `apt \
         install python3-pip`), or install a CUDA toolkit and set CUDA_HOME"
    )]
    NoPip,
    /// pip failed.
    #[error("pip could not install {packages}; {remedy}; it said: {log}")]
    Pip {
        /// What it was to install.
        packages: String,
        /// What to do.
        remedy: &'static str,
        /// End of its output.
        log: String,
    },
    /// pip took too long.
    #[error("pip did not finish within {} s and was stopped", DOWNLOAD_TIMEOUT.as_secs())]
    Timeout,
    /// A file operation failed.
    #[error("cannot {operation} {}", path.display())]
    Files {
        /// What was tried.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// What was installed does not work.
    #[error("the downloaded {part} does not work: {what}")]
    Broken {
        /// Which part.
        part: String,
        /// Why.
        what: String,
    },
}

/// A unit of installation: a directory below `toolchain`.
struct Part {
    name: String,
    packages: Vec<String>,
    is_nvrtc: bool,
}

impl Part {
    fn nvrtc(major: u32) -> Result<Self, InstallError> {
        let packages: &[&str] = match major {
            // Headers come in packages of their own; NVRTC 13 carries them.
            12 => &["nvidia-cuda-nvrtc-cu12", "nvidia-cuda-runtime-cu12", "nvidia-cuda-cccl-cu12"],
            13 => &["nvidia-cuda-nvrtc>=13,<14"],
            _ => return Err(InstallError::Version { major }),
        };
        let packages = packages.iter().map(|p| (*p).to_owned()).collect();
        Ok(Self { name: format!("nvrtc-{major}"), packages, is_nvrtc: true })
    }

    fn nvcc() -> Self {
        let packages = [
            "nvidia-cuda-nvcc",
            "nvidia-nvvm",
            "nvidia-cuda-runtime",
            "nvidia-cuda-crt",
            "nvidia-cuda-cccl",
            "nvidia-cuda-cuobjdump",
            "nvidia-cuda-nvdisasm",
        ];
        let packages = packages.iter().map(|p| format!("{p}>=13,<14")).collect();
        Self { name: "nvcc-13".into(), packages, is_nvrtc: false }
    }
}

/// Installs what is asked for, anew where it is there already; `progress` gets a line at a time.
/// Returns what is found afterwards.
pub fn install(
    request: &InstallRequest,
    progress: &mut dyn FnMut(&str),
) -> Result<Toolchain, InstallError> {
    let mut parts = Vec::new();
    for major in &request.cuda {
        parts.push(Part::nvrtc(*major)?);
    }
    if request.nvcc {
        parts.push(Part::nvcc());
    }
    let python = python_with_pip().ok_or(InstallError::NoPip)?;
    let root = request.cache_dir.join("toolchain");
    fs::create_dir_all(&root).map_err(files("create", &root))?;
    for part in &parts {
        progress(&format!("installing {} into {}", part.name, root.display()));
        install_part(request, part, &python, &root, progress)?;
    }
    let cache_dir = request.cache_dir.clone();
    let search = ToolchainSearch { cache_dir, ..ToolchainSearch::default() };
    Ok(super::discover(&search))
}

fn install_part(
    request: &InstallRequest,
    part: &Part,
    python: &Path,
    root: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<(), InstallError> {
    // Hidden from discovery by its name, on the same file system as its place.
    let staging = tempfile::Builder::new().prefix(".new-").tempdir_in(root);
    let staging = staging.map_err(files("create a directory in", root))?;
    // mkdtemp makes it private; a service may run as another user than the installer.
    fs::set_permissions(staging.path(), fs::Permissions::from_mode(0o755))
        .map_err(files("set the permissions of", staging.path()))?;
    download(python, &part.packages, staging.path(), progress)?;
    tidy(staging.path()).map_err(files("tidy up", staging.path()))?;
    progress(&format!("checking {}", part.name));
    verify(request, part, staging.path())?;
    let place = root.join(&part.name);
    if place.exists() {
        let old = tempfile::Builder::new().prefix(".old-").tempdir_in(root);
        let old = old.map_err(files("create a directory in", root))?;
        fs::rename(&place, old.path().join("old")).map_err(files("replace", &place))?;
    }
    fs::rename(staging.path(), &place).map_err(files("move the download to", &place))?;
    progress(&format!("installed {}", place.display()));
    Ok(())
}

fn files<'p>(
    operation: &'static str,
    path: &'p Path,
) -> impl Fn(std::io::Error) -> InstallError + 'p {
    move |source| InstallError::Files { operation, path: path.to_owned(), source }
}

/// pip has settings, proxies and credentials of its own in the user's environment; ours it does not need.
fn pip(python: &Path) -> Program {
    Program::new(python, Environment::Users).args(["-m", "pip"])
}

fn python_with_pip() -> Option<PathBuf> {
    let venv = std::env::var_os("VIRTUAL_ENV").map(|v| PathBuf::from(v).join("bin/python3"));
    let usual = ["python3", "python"].map(PathBuf::from);
    venv.into_iter().chain(usual).find(|python| {
        let mut command = pip(python).arg("--version").to_blocking();
        command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    })
}

/// Has pip unpack `packages` into `target`.
fn download(
    python: &Path,
    packages: &[String],
    target: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<(), InstallError> {
    let pip = pip(python)
        .args(["install", "--no-deps", "--no-compile", "--only-binary=:all:"])
        .args(["--disable-pip-version-check", "--no-input", "--progress-bar=off"])
        .args(["--no-warn-script-location", "--target"])
        .arg(target)
        .args(packages);
    let mut command = pip.to_blocking();
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(files("start", python))?;
    let log = follow(&mut child, progress)?;
    let status = child.wait().map_err(files("wait for", python))?;
    if status.success() {
        return Ok(());
    }
    let from = boundary_before(&log, log.len().saturating_sub(MAX_PIP_LOG));
    Err(InstallError::Pip {
        packages: packages.join(" "),
        remedy: remedy_for(&log),
        log: log[from..].trim().to_owned(),
    })
}

fn remedy_for(log: &str) -> &'static str {
    let network = [
        "Temporary failure in name resolution",
        "NewConnectionError",
        "ProxyError",
        "ConnectTimeout",
        "Network is unreachable",
        "Failed to establish",
    ];
    if network.iter().any(|sign| log.contains(sign)) {
        return "the package index cannot be reached: check the network, set PIP_INDEX_URL to a \
            mirror, or install a CUDA toolkit and set CUDA_HOME";
    }
    if log.contains("No space left") {
        return "the disk is full: NVRTC takes about 220 MB, nvcc about 350 MB";
    }
    if log.contains("No matching distribution") {
        return "the index has no wheel for this machine (they are built for Linux on x86-64 and \
            aarch64): install a CUDA toolkit and set CUDA_HOME";
    }
    "run the same command by hand to see more"
}

/// Passes a child's lines on until it closes its output; returns the last of them.
fn follow(child: &mut Child, progress: &mut dyn FnMut(&str)) -> Result<String, InstallError> {
    let (sender, lines) = mpsc::sync_channel::<String>(64);
    let streams: [Option<Box<dyn Read + Send>>; 2] = [
        child.stdout.take().map(|s| Box::new(s) as Box<dyn Read + Send>),
        child.stderr.take().map(|s| Box::new(s) as Box<dyn Read + Send>),
    ];
    for stream in streams.into_iter().flatten() {
        let sender = sender.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
    }
    drop(sender);
    let deadline = Instant::now() + DOWNLOAD_TIMEOUT;
    let mut log = String::new();
    loop {
        match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                progress(&line);
                log.push_str(&line);
                log.push('\n');
                if log.len() > 16 * MAX_PIP_LOG {
                    let from = boundary_before(&log, log.len() - 4 * MAX_PIP_LOG);
                    log.drain(..from);
                }
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(log),
            Err(RecvTimeoutError::Timeout) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(InstallError::Timeout);
            }
        }
    }
}

/// Drops what is not needed (a second copy of NVRTC, static libraries) and makes programs
/// executable, which the wheels do not.
fn tidy(directory: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() {
            tidy(&path)?;
            continue;
        }
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.contains(".alt.so") || name.ends_with(".a") {
            fs::remove_file(&path)?;
        } else if kind.is_file() && directory.file_name().is_some_and(|d| d == "bin") {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        }
    }
    Ok(())
}

/// Looks for the part in what was downloaded, and loads the library.
fn verify(request: &InstallRequest, part: &Part, staging: &Path) -> Result<(), InstallError> {
    let broken = |what: String| InstallError::Broken { part: part.name.clone(), what };
    let found = discover_in(staging);
    if !part.is_nvrtc {
        return match found.nvcc {
            Some(_) => Ok(()),
            None => Err(broken("the wheels hold no nvcc".into())),
        };
    }
    let library = found.nvrtc.first().ok_or_else(|| broken("the wheels hold no NVRTC".into()))?;
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
            "it reports version {major}.{minor} and was found as {}",
            library.version_text()
        ))),
        Ok(Outcome::Toolchain { what } | Outcome::Failed { what }) => Err(broken(what)),
        Ok(_) => Err(broken("the compile child answered another question".into())),
        Err(e) => Err(broken(e.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pip_gets_no_keys() {
        let command = pip(Path::new("python3")).to_blocking();
        let removed: Vec<_> = command.get_envs().filter(|(_, value)| value.is_none()).collect();
        for name in warpgauge_process::environment::SECRET {
            assert!(removed.iter().any(|(removed, _)| *removed == name), "{name}");
        }
    }

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

    #[test]
    fn versions_without_wheels_are_refused_before_anything_is_downloaded() {
        let dir = tempfile::tempdir().unwrap();
        let request = InstallRequest {
            program: "/nonexistent".into(),
            cache_dir: dir.path().to_owned(),
            cuda: vec![11],
            nvcc: false,
        };
        let result = install(&request, &mut |_| {});
        assert!(matches!(result, Err(InstallError::Version { major: 11 })), "{result:?}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn failures_of_pip_say_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let fake = dir.path().join("python3");
        let script = "#!/bin/sh\necho 'ERROR: NewConnectionError: no route' >&2\nexit 1\n";
        fs::write(&fake, script).unwrap();
        fs::set_permissions(&fake, fs::Permissions::from_mode(0o755)).unwrap();
        let mut lines = Vec::new();
        let packages = ["nvidia-cuda-nvrtc".to_owned()];
        let result = download(&fake, &packages, dir.path(), &mut |l| lines.push(l.to_owned()));
        let error = result.unwrap_err().to_string();
        assert!(error.contains("cannot be reached") && error.contains("no route"), "{error}");
        assert_eq!(lines.len(), 1);
    }
}
