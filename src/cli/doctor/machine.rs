//! Checks of the machine: the driver, the emulator, confinement, and files.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{Check, State};
use crate::cli::format::bytes;
use warpgauge_config::Config;
use warpgauge_device::loader::find_emulator;
use warpgauge_sandbox::{enforcement, own_root};

/// File that contains the version of NVIDIA's kernel module.
const DRIVER: &str = "/proc/driver/nvidia/version";

/// Free space below which writes to caches and the store may soon fail, bytes.
const LITTLE_SPACE: u64 = 2 << 30;

/// Free space below which evaluations may fail, bytes.
const NO_SPACE: u64 = 64 << 20;

/// Checks NVIDIA's driver.
pub(super) fn driver() -> Check {
    let purpose = "runs kernels on a GPU; without it the emulator runs them";
    match std::fs::read_to_string(DRIVER) {
        Ok(text) => Check::ok("driver", purpose, version_of(&text)),
        Err(_) => {
            let remedy = remedy_of_driver(Path::new("/"));
            Check::lacks("driver", purpose, State::Absent, ("no NVIDIA driver", remedy))
        }
    }
}

/// Returns the version in the first line of the kernel module's text; if there is none, returns the
/// whole line.
fn version_of(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    let is_version = |word: &&str| {
        word.contains('.') && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    first.split_whitespace().find(is_version).unwrap_or(first).to_owned()
}

/// Returns the command or the step that installs the driver on the operating system whose root
/// directory is `root`.
fn remedy_of_driver(root: &Path) -> &'static str {
    if root.join(".dockerenv").exists() || root.join("run/.containerenv").exists() {
        return "start the container with --gpus all, on a host with the driver and \
                nvidia-container-toolkit";
    }
    let release = std::fs::read_to_string(root.join("etc/os-release")).unwrap_or_default();
    let id = release.lines().find_map(|line| line.strip_prefix("ID="));
    match id.map(|id| id.trim_matches('"')) {
        Some("ubuntu") => "sudo ubuntu-drivers install",
        Some("debian") => "sudo apt install nvidia-driver",
        Some("fedora") => "sudo dnf install akmod-nvidia",
        Some("arch") => "sudo pacman -S nvidia",
        _ => "install the driver from https://www.nvidia.com/drivers",
    }
}

/// Checks the emulator's library.
pub(super) fn emulator(config: &Config) -> Check {
    let purpose = "runs CUDA without a GPU";
    let explicit = Some(&config.devices.emulator).filter(|path| !path.is_empty());
    let found = find_emulator(explicit.map(PathBuf::from).as_deref());
    match found {
        Some(path) if path.is_file() => Check::ok("emulator", purpose, path.display().to_string()),
        Some(path) => Check::lacks(
            "emulator",
            purpose,
            State::Weak,
            (
                format!("{} is not a file", path.display()),
                "correct devices.emulator (WARPGAUGE_EMULATOR), or remove the setting",
            ),
        ),
        None => Check::lacks(
            "emulator",
            purpose,
            State::Absent,
            (
                "its library is not beside this program",
                "cargo build -p warpgauge-emulator, or name the library in WARPGAUGE_EMULATOR",
            ),
        ),
    }
}

/// Checks the mechanisms that confine submitted code.
pub(super) fn sandbox() -> Vec<Check> {
    let files = match enforcement::probe() {
        full @ enforcement::Enforcement::Full => Check::ok("landlock", LANDLOCK, full.to_string()),
        weaker => Check::lacks(
            "landlock",
            LANDLOCK,
            State::Weak,
            (
                weaker.to_string(),
                "boot Linux 6.12 or later with landlock in its list of security modules (lsm=)",
            ),
        ),
    };
    let root = match own_root::visible_because() {
        None => Check::ok("own root directory", OWN_ROOT, "user namespaces are allowed"),
        Some(why) => {
            let remedy = "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0 \
                          user.max_user_namespaces=10000";
            Check::lacks("own root directory", OWN_ROOT, State::Weak, (why, remedy))
        }
    };
    vec![files, root]
}

const LANDLOCK: &str = "keeps submitted code from files and the network";
const OWN_ROOT: &str = "hides the existence of paths from submitted code";

/// Checks the directory that contains jobs and caches.
pub(super) fn data_directory(path: &Path) -> Check {
    let purpose = "stores jobs, reports and caches";
    let shown = path.display();
    let remedy = format!(
        "set WARPGAUGE_DATA_DIR to a directory that you own, or: mkdir -p {shown} && chmod 700 {shown}"
    );
    let nearest = path.ancestors().find(|path| path.exists());
    let Some(nearest) = nearest else {
        let found = format!("{shown} cannot be created");
        return Check::lacks("data directory", purpose, State::Fault, (found, remedy));
    };
    let is_there = nearest == path;
    if !nearest.is_dir() {
        let found = format!("{} is not a directory", nearest.display());
        return Check::lacks("data directory", purpose, State::Fault, (found, remedy));
    }
    let own = nearest
        .metadata()
        .is_ok_and(|file| !is_there || file.uid() == rustix::process::geteuid().as_raw());
    let writable = rustix::fs::access(nearest, rustix::fs::Access::WRITE_OK).is_ok();
    match own && writable {
        true if is_there => Check::ok("data directory", purpose, shown.to_string()),
        true => Check::ok("data directory", purpose, format!("{shown}, created when it is needed")),
        false => {
            let found = format!("{} cannot be written", nearest.display());
            Check::lacks("data directory", purpose, State::Fault, (found, remedy))
        }
    }
}

/// Checks the free space on the disk of the data directory.
pub(super) fn space(path: &Path) -> Check {
    let purpose = "caches, reports and artifacts grow up to the limits of [storage]";
    let nearest = path.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    let free = rustix::fs::statvfs(nearest).map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    let remedy =
        format!("free space on the disk of {}, or set WARPGAUGE_DATA_DIR", nearest.display());
    let state = match free {
        Ok(free) if free < NO_SPACE => State::Fault,
        Ok(free) if free < LITTLE_SPACE => State::Weak,
        Ok(free) => return Check::ok("disk space", purpose, format!("{} free", bytes(free))),
        Err(_) => State::Weak,
    };
    let found = free.map_or("not known".to_owned(), |free| format!("{} free", bytes(free)));
    Check::lacks("disk space", purpose, state, (found, remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drivers_version_is_found_in_both_forms_of_the_text() {
        let closed = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5\nGCC";
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release";
        assert_eq!(
            (version_of(closed).as_str(), version_of(open).as_str()),
            ("550.54.15", "580.65.06")
        );
        assert_eq!(version_of("odd"), "odd");
    }

    #[test]
    fn the_remedy_fits_the_system() {
        let root = tempfile::tempdir().unwrap();
        assert!(remedy_of_driver(root.path()).contains("nvidia.com"));
        std::fs::create_dir(root.path().join("etc")).unwrap();
        std::fs::write(root.path().join("etc/os-release"), "NAME=x\nID=\"debian\"\n").unwrap();
        assert_eq!(remedy_of_driver(root.path()), "sudo apt install nvidia-driver");
        std::fs::write(root.path().join(".dockerenv"), "").unwrap();
        assert!(remedy_of_driver(root.path()).contains("--gpus all"));
    }

    #[test]
    fn a_data_directory_is_one_that_can_be_written() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(data_directory(root.path()).state, State::Ok);
        assert_eq!(data_directory(&root.path().join("a/b")).state, State::Ok);
        std::fs::write(root.path().join("file"), "").unwrap();
        for path in ["file", "file/below"] {
            let check = data_directory(&root.path().join(path));
            assert_eq!(check.state, State::Fault, "{path}: {}", check.found);
        }
        assert!(space(&root.path().join("a/b")).found.contains("free"));
    }
}
