//! `cargo xtask tarball`: packs the program and the other files of an installation, for hosts
//! without Rust and Python.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::product::Packing;
use crate::shell;

/// Name of the library that the program loads from its own directory.
const EMULATOR: &str = "libwarpgauge_emulator.so";

/// Tarball that was packed.
pub struct Tarball {
    pub path: PathBuf,
    /// Oldest version of glibc with which the program and the emulated device start.
    pub glibc: (u32, u32),
}

/// Packs the tarball. Prints its path and the oldest version of glibc with which it works.
pub fn run(options: &Packing) -> Result<()> {
    let (program, out) = options.paths("tarball")?;
    let tarball = pack(&program, &out)?;
    let (major, minor) = tarball.glibc;
    println!("{}: needs Linux with glibc {major}.{minor} or newer", tarball.path.display());
    Ok(())
}

/// Packs the program, the emulated device, the licence, completions, manual pages and the files of
/// `deploy/`.
pub fn pack(program: &Path, out: &Path) -> Result<Tarball> {
    let program = fs::canonicalize(program)
        .with_context(|| format!("the program {} does not exist", program.display()))?;
    let emulator = program.with_file_name(EMULATOR);
    if !emulator.is_file() {
        bail!("{} does not exist: build it with -p warpgauge-emulator", emulator.display());
    }
    let glibc = needed_glibc(&program)?.max(needed_glibc(&emulator)?);
    let version = shell::capture(Command::new(&program).arg("--version"))?;
    let version = version.split_whitespace().nth(1).context("the program printed no version")?;
    let (major, minor) = glibc;
    let name = format!("warpgauge-{version}-{}-linux-glibc{major}.{minor}", std::env::consts::ARCH);

    fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
    let out = fs::canonicalize(out)?;
    remove_old(&out)?;
    let folder = out.join(&name);
    fill(&folder, &program, &emulator)?;
    let archive = out.join(format!("{name}.tar.gz"));
    compress(&out, &name, &archive)?;
    fs::remove_dir_all(&folder)?;
    let sum = shell::capture(
        Command::new("sha256sum").arg(archive.file_name().unwrap_or_default()).current_dir(&out),
    )?;
    fs::write(out.join(format!("{name}.tar.gz.sha256")), sum)?;
    Ok(Tarball { path: archive, glibc })
}

/// Removes the results of earlier runs: tarballs, their checksums, and directories whose names
/// begin with `warpgauge-`.
fn remove_old(out: &Path) -> Result<()> {
    for entry in fs::read_dir(out).with_context(|| format!("cannot read {}", out.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.starts_with("warpgauge-") {
            continue;
        }
        if path.is_dir() {
            fs::remove_dir_all(&path)?;
        } else if name.ends_with(".tar.gz") || name.ends_with(".tar.gz.sha256") {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Copies and generates the files of the tarball.
fn fill(folder: &Path, program: &Path, emulator: &Path) -> Result<()> {
    let (completions, manuals) = (folder.join("completions"), folder.join("man/man1"));
    let deploy = folder.join("deploy");
    for directory in [&completions, &manuals, &deploy] {
        fs::create_dir_all(directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
    }
    let copy = |from: &Path, to: PathBuf| {
        fs::copy(from, to).map(|_| ()).with_context(|| format!("cannot copy {}", from.display()))
    };
    copy(program, folder.join("warpgauge"))?;
    copy(emulator, folder.join(EMULATOR))?;
    for name in ["LICENSE", "README.md", "CHANGELOG.md"] {
        copy(&shell::root().join(name), folder.join(name))?;
    }
    for name in ["warpgauge.service", "prometheus-rules.yaml", "grafana.json"] {
        copy(&shell::root().join("deploy").join(name), deploy.join(name))?;
    }
    for (shell_name, file) in
        [("bash", "warpgauge.bash"), ("zsh", "_warpgauge"), ("fish", "warpgauge.fish")]
    {
        let script = shell::capture(Command::new(program).args(["completions", shell_name]))?;
        fs::write(completions.join(file), script)?;
    }
    shell::run(Command::new(program).args(["--quiet", "manual"]).arg(&manuals))
}

/// Packs the folder. For the same commit, identical files give an identical archive.
fn compress(out: &Path, name: &str, archive: &Path) -> Result<()> {
    let commit = ["log", "-1", "--format=%ct"];
    let time = shell::capture(Command::new("git").args(commit).current_dir(shell::root()));
    // The sources in a release tarball are not in a git repository.
    let time = time.map_or_else(|_| "0".to_owned(), |time| time.trim().to_owned());
    shell::run(
        Command::new("tar")
            .args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"])
            .args(["--mode=u+rw,go+r-w,a-s", "--use-compress-program=gzip -n"])
            .arg(format!("--mtime=@{time}"))
            .arg("-cf")
            .arg(archive)
            .arg("-C")
            .arg(out)
            .arg(name),
    )
}

/// Returns the newest version of glibc in the symbol versions of a file. `python/hatch_build.py`
/// derives the tag of a wheel in the same way.
fn needed_glibc(file: &Path) -> Result<(u32, u32)> {
    const SIGN: &[u8] = b"GLIBC_";
    let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let versions = bytes.windows(SIGN.len()).enumerate().filter(|(_, window)| *window == SIGN);
    versions
        .filter_map(|(at, _)| version(&bytes[at + SIGN.len()..]))
        .max()
        .with_context(|| format!("{} is not linked with glibc", file.display()))
}

/// Reads a version such as `2.34` at the start of a text.
fn version(text: &[u8]) -> Option<(u32, u32)> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'.')?;
    let text = std::str::from_utf8(&text[..end]).ok()?;
    let mut parts = text.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn versions_of_symbols_are_read() {
        assert_eq!(version(b"2.34\0next"), Some((2, 34)));
        assert_eq!(version(b"2.3.4\0"), Some((2, 3)));
        assert_eq!(version(b"PRIVATE\0"), None);
    }
}
