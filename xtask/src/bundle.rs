//! `cargo xtask bundle`: packs a folder with which the tests and benchmarks run on hosts without
//! Rust.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::product::{self, Profile};
use crate::shell;

/// Maximum size of an archive, bytes.
const SIZE_LIMIT: u64 = 60_000_000;

const RUN_SH: &str = include_str!("../bundle/run.sh");

/// Options of `bundle`.
#[derive(clap::Args)]
pub struct Options {
    /// Folder to write. An earlier bundle in this folder is replaced.
    #[arg(long, default_value = "bundle")]
    out: PathBuf,
}

/// Builds everything in release mode and packs it into a folder.
pub fn run(options: &Options) -> Result<()> {
    let program = product::build(Profile::Release)?;
    shell::run(shell::cargo().args(["build", "--release", "-p", "xtask"]))?;
    let tests = build_tests()?;
    let release = product::profile_dir(Profile::Release)?;

    let out = shell::root().join(&options.out);
    clear(&out)?;
    for (source, name) in [
        (program, "warpgauge"),
        (release.join("libwarpgauge_emulator.so"), "libwarpgauge_emulator.so"),
        (release.join("xtask"), "xtask"),
        (tests, "it-tests"),
    ] {
        let target = out.join(name);
        fs::copy(&source, &target).with_context(|| format!("cannot copy {}", source.display()))?;
        strip(&target);
    }
    for folder in ["kernels", "openapi"] {
        copy_tree(&shell::root().join(folder), &out.join(folder))?;
    }
    for corpus in ["exploits", "legitimate", "verdict"] {
        let folder = Path::new("tests").join(corpus);
        copy_tree(&shell::root().join(&folder), &out.join(&folder))?;
    }
    copy_self_test(&out.join("selftest"))?;
    let script = out.join("run.sh");
    fs::write(&script, RUN_SH)?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;

    let size = tree_size(&out)? as f64 / 1e6;
    let archive = pack(&out)?;
    let packed = fs::metadata(&archive)?.len();
    println!(
        "{}: {size:.1} MB, {:.1} MB as {}; start run.sh on the GPU host",
        out.display(),
        packed as f64 / 1e6,
        archive.display()
    );
    if packed > SIZE_LIMIT {
        bail!("the archive is larger than {} MB", SIZE_LIMIT / 1_000_000);
    }
    Ok(())
}

/// Packs a bundle into an archive inside its folder, for upload over slow connections.
fn pack(out: &Path) -> Result<PathBuf> {
    // The archive is first written next to the folder, because tar reports an error if the folder
    // changes while it is read.
    let (written, archive) = (out.with_extension("tar.gz"), out.join("bundle.tar.gz"));
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(out).arg("-czf").arg(&written).arg(".");
    shell::run(&mut tar)?;
    fs::rename(&written, &archive)?;
    Ok(archive)
}

/// Builds the integration tests. Returns the path of their program. They are built without
/// optimisation, which would take longer than the rest of the build.
fn build_tests() -> Result<PathBuf> {
    let mut cargo = shell::cargo();
    cargo.args(["test", "--workspace", "--test", "it", "--no-run"]);
    eprintln!("$ {}", shell::describe(&cargo));
    let messages = shell::capture(cargo.args(["--message-format", "json"]))?;
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == "it")
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .context("cargo reported no test program `it`")
}

/// Copies the sources of the self-test. The self-test compiles them on the host for the host's
/// device.
fn copy_self_test(to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for (source, name) in [
        ("crates/run/device/src/support.cu", "support.cu"),
        ("crates/run/worker/src/selftest/kernels.cu", "selftest.cu"),
    ] {
        let source = shell::root().join(source);
        fs::copy(&source, to.join(name))
            .with_context(|| format!("cannot copy {}", source.display()))?;
    }
    Ok(())
}

/// Removes an earlier bundle. Fails if the folder contains anything else.
fn clear(out: &Path) -> Result<()> {
    if out.exists() {
        if !out.join("run.sh").is_file() {
            bail!("{} exists and is not a bundle; remove it or choose --out", out.display());
        }
        fs::remove_dir_all(out).with_context(|| format!("cannot remove {}", out.display()))?;
    }
    fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))
}

/// Removes the symbols of a program. If `strip` is missing, the program stays larger, but works.
fn strip(program: &Path) {
    let stripped = Command::new("strip").arg(program).status();
    if !stripped.is_ok_and(|status| status.success()) {
        eprintln!("`strip` is missing or failed: {} keeps its symbols", program.display());
    }
}

fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target)
                .with_context(|| format!("cannot copy {}", entry.path().display()))?;
        }
    }
    Ok(())
}

fn tree_size(directory: &Path) -> Result<u64> {
    let mut size = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        size += if entry.file_type()?.is_dir() {
            tree_size(&entry.path())?
        } else {
            entry.metadata()?.len()
        };
    }
    Ok(size)
}
