//! Finds pip, and runs it to unpack packages into a directory.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::{InstallError, Part, files};
use crate::diagnostics::boundary_before;
use warpgauge_sandbox::program::{ChildProgram, Environment};

/// Time limit for the download of one part.
pub(super) const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(1800);

/// Maximum length of pip's output that an error quotes, in bytes.
const MAX_PIP_LOG: usize = 4096;

/// Returns a command that runs pip. It receives the user's environment, with any settings, proxies
/// and credentials for pip, but without the secrets of this program.
fn pip(python: &Path) -> ChildProgram {
    ChildProgram::new(python, Environment::Users).args(["-m", "pip"])
}

/// Returns whether an interpreter has pip.
pub(super) fn has_pip(python: &Path) -> bool {
    let mut command = pip(python).arg("--version").to_blocking();
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Returns the Python interpreter of the active environment, then the usual ones.
pub(super) fn pythons() -> impl Iterator<Item = PathBuf> {
    let venv = std::env::var_os("VIRTUAL_ENV").map(|v| PathBuf::from(v).join("bin/python3"));
    venv.into_iter().chain(["python3", "python"].map(PathBuf::from))
}

/// Runs pip to unpack a part into `target`, with its temporary files in `temporary`. pip unpacks
/// there and then moves the files, so both should be on one file system.
pub(super) fn download(
    python: &Path,
    part: &Part,
    target: &Path,
    temporary: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<(), InstallError> {
    let pip = pip(python)
        .arg("install")
        .args((!part.with_needs).then_some("--no-deps"))
        .args(["--no-compile", "--only-binary=:all:"])
        .args(["--disable-pip-version-check", "--no-input", "--progress-bar=off"])
        .args(["--no-warn-script-location", "--target"])
        .arg(target)
        .args(&part.packages)
        .variable("TMPDIR", temporary)
        // These override user settings that do not work with a target directory.
        .variable("PIP_USER", "0")
        .variable("PIP_REQUIRE_VIRTUALENV", "0");
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
        packages: part.packages.join(" "),
        remedy: remedy_for(part, &log),
        log: log[from..].trim().to_owned(),
    })
}

fn remedy_for(part: &Part, log: &str) -> String {
    let network = [
        "Temporary failure in name resolution",
        "Name or service not known",
        "NewConnectionError",
        "ProxyError",
        "ConnectTimeout",
        "ReadTimeout",
        "Network is unreachable",
        "Failed to establish",
        "CERTIFICATE_VERIFY_FAILED",
    ];
    let instead = part.instead;
    if network.iter().any(|sign| log.contains(sign)) {
        return format!(
            "the package index cannot be reached: check the network, set PIP_INDEX_URL to a \
             mirror, or {instead}"
        );
    }
    if log.contains("No space left") || log.contains("Disk quota exceeded") {
        return format!("the disk is full: {}", part.room);
    }
    if log.contains("No matching distribution") {
        return format!("the index has no wheel for this machine ({}): {instead}", part.wheels);
    }
    "run the same command manually to see more".to_owned()
}

/// Passes each line of a child's output to `progress` until the child closes its output. Returns
/// the last lines.
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

#[cfg(test)]
#[path = "pip_tests.rs"]
mod tests;
