//! Builds the program and installs its toolchain.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::shell;

/// Kind of build: Cargo's profile, and the packages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Debug build of the program alone. It uses the dependency features of the test build. With
    /// other features, Cargo would compile most crates again for the tests.
    Dev,
    /// Debug build of the libraries, programs and examples of the whole workspace.
    Test,
    /// Optimised build of the program and the emulator.
    Release,
}

/// Options that select the packages of the demo, and a package that enables the dependency features
/// of the test build.
const PROGRAM: [&str; 6] =
    ["-p", "warpgauge", "-p", "warpgauge-emulator", "-p", "warpgauge-test-features"];

/// Input and output of `wheel` and `tarball`.
#[derive(clap::Args)]
pub struct Packing {
    /// Program to pack. The library of the emulated device must be in the same directory. Default:
    /// a new release build.
    #[arg(long)]
    program: Option<PathBuf>,
    /// Oldest version of glibc with which the built program starts, or `host` for the version of
    /// this machine. Default: 2.28 if cargo-zigbuild is installed, otherwise `host`.
    #[arg(long, value_name = "VERSION", conflicts_with = "program")]
    glibc: Option<String>,
    /// Directory for the package. Older packages of the same kind in it are removed. Default:
    /// `target/wheel` or `target/tarball`.
    #[arg(long)]
    out: Option<PathBuf>,
}

impl Packing {
    /// Returns the program and the output directory. If no option names the program, builds it. The
    /// default output directory is `folder` in the target directory.
    pub fn paths(&self, folder: &str) -> Result<(PathBuf, PathBuf)> {
        let program = match &self.program {
            Some(program) => program.clone(),
            None => build_release(Glibc::choose(self.glibc.as_deref())?)?,
        };
        let out = match &self.out {
            Some(out) => out.clone(),
            None => target_dir()?.join(folder),
        };
        Ok((program, out))
    }
}

/// Version of glibc for which a release is linked.
#[derive(Debug, PartialEq)]
enum Glibc {
    /// The version of this machine. The program does not start with an older version.
    Host,
    /// A version such as 2.28.
    Version(String),
}

/// Version of glibc in the oldest distributions that are common on GPU hosts, such as RHEL 8 and
/// Debian 10.
const OLD_GLIBC: &str = "2.28";

/// Description of the command that installs the tools for linking for another version of glibc.
const ZIGBUILD: &str = "`pip install ziglang cargo-zigbuild` installs it";

impl Glibc {
    /// Chooses the version by the option and by the installed tools, and prints the choice.
    fn choose(given: Option<&str>) -> Result<Self> {
        let can_link = shell::find("cargo-zigbuild").is_some();
        let chosen = Self::of(given, can_link)?;
        match &chosen {
            Self::Version(version) => eprintln!("linking for glibc {version} with cargo-zigbuild"),
            Self::Host if given.is_none() => eprintln!(
                "linking for this machine's glibc: without cargo-zigbuild no older one is possible \
                 ({ZIGBUILD})"
            ),
            Self::Host => eprintln!("linking for this machine's glibc"),
        }
        Ok(chosen)
    }

    fn of(given: Option<&str>, can_link: bool) -> Result<Self> {
        let is_version = |text: &str| {
            let parts = text.split_once('.');
            parts.is_some_and(|(a, b)| a.parse::<u32>().is_ok() && b.parse::<u32>().is_ok())
        };
        match given {
            None if can_link => Ok(Self::Version(OLD_GLIBC.to_owned())),
            None | Some("host") => Ok(Self::Host),
            Some(version) if !is_version(version) => {
                bail!("--glibc {version}: write a version such as {OLD_GLIBC}, or `host`")
            }
            Some(version) if !can_link => {
                bail!("--glibc {version}: cargo-zigbuild is not installed; {ZIGBUILD}")
            }
            Some(version) => Ok(Self::Version(version.to_owned())),
        }
    }
}

/// Builds the program and the emulator for users, and returns the program's path.
fn build_release(glibc: Glibc) -> Result<PathBuf> {
    let Glibc::Version(version) = glibc else { return build(Profile::Release) };
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut cargo = shell::cargo();
    cargo.args(["zigbuild", "--release", "-p", "warpgauge", "-p", "warpgauge-emulator"]);
    shell::run(cargo.args(["--target", &format!("{target}.{version}")]))?;
    let program = target_dir()?.join(target).join("release/warpgauge");
    if !program.is_file() {
        bail!("cargo zigbuild built no {}", program.display());
    }
    Ok(program)
}

/// Checks that the demo's build compiles no crate again after the build of the tests.
pub fn check_builds_are_shared() -> Result<()> {
    let mut cargo = shell::cargo();
    let messages =
        shell::capture(cargo.arg("build").args(PROGRAM).args(["--message-format", "json"]))?;
    let compiled = messages.lines().filter_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let fresh = message["fresh"].as_bool()?;
        (!fresh).then(|| message["target"]["name"].to_string())
    });
    let compiled: Vec<String> = compiled.collect();
    if !compiled.is_empty() {
        bail!(
            "the demo compiles {} again, because the test build uses other features: \
             add the features that differ to xtask/test-features/Cargo.toml",
            compiled.join(", ")
        );
    }
    Ok(())
}

/// Builds the program and the emulator, and returns the program's path.
pub fn build(profile: Profile) -> Result<PathBuf> {
    let mut cargo = shell::cargo();
    cargo.arg("build");
    match profile {
        Profile::Dev => cargo.args(PROGRAM),
        // The examples enable dependency features that only tests use.
        Profile::Test => cargo.args(["--workspace", "--lib", "--bins", "--examples"]),
        Profile::Release => {
            cargo.args(["--release", "-p", "warpgauge", "-p", "warpgauge-emulator"])
        }
    };
    shell::run(&mut cargo)?;
    let program = profile_dir(profile)?.join("warpgauge");
    if !program.is_file() {
        bail!("cargo did not build {}", program.display());
    }
    Ok(program)
}

/// Returns the directory of a profile's build output.
pub fn profile_dir(profile: Profile) -> Result<PathBuf> {
    Ok(target_dir()?.join(match profile {
        Profile::Dev | Profile::Test => "debug",
        Profile::Release => "release",
    }))
}

/// Returns the target directory of Cargo. The user's Cargo configuration is respected.
pub fn target_dir() -> Result<PathBuf> {
    let text = shell::capture(shell::cargo().args([
        "metadata",
        "--no-deps",
        "--format-version",
        "1",
        "--offline",
    ]))
    .or_else(|_| {
        // Offline, cargo fails if the lock file lists a package that was never downloaded.
        shell::capture(shell::cargo().args(["metadata", "--no-deps", "--format-version", "1"]))
    })?;
    let metadata: serde_json::Value =
        serde_json::from_str(&text).context("`cargo metadata` did not print JSON")?;
    let directory = metadata["target_directory"]
        .as_str()
        .context("`cargo metadata` reports no target directory")?;
    Ok(PathBuf::from(directory))
}

/// Installs NVRTC with pip if the program does not find it.
pub fn ensure_toolchain(program: &Path) -> Result<()> {
    if lists(program, "nvrtc")? {
        return Ok(());
    }
    shell::require("python3", "its pip installs the CUDA compiler: install python3 with pip")?;
    shell::run(Command::new(program).args(["toolchain", "install"]))?;
    if !lists(program, "nvrtc")? {
        bail!("`warpgauge toolchain install` succeeded, but `toolchain show` lists no NVRTC");
    }
    Ok(())
}

/// Installs a Python package if the program does not find it. A failure is an error in CI;
/// elsewhere the tests that need the package report that they are skipped.
pub fn ensure_package(program: &Path, package: &str) -> Result<()> {
    if lists(program, package)? {
        return Ok(());
    }
    let installed =
        shell::run(Command::new(program).args(["toolchain", "install", "--with", package]));
    match installed {
        Err(error) if std::env::var_os("CI").is_none() => {
            eprintln!("{error}: tests that need {package} do not run");
            Ok(())
        }
        Err(error) => Err(error),
        Ok(()) if lists(program, package)? => Ok(()),
        Ok(()) => bail!(
            "`warpgauge toolchain install --with {package}` succeeded, but `toolchain show` lists \
             no {package}"
        ),
    }
}

/// Version of Triton that is tested in addition to the installed one. It is the newest supported
/// version.
const OTHER_TRITON: &str = "3.9.0";

/// Returns the `site-packages` directory of another version of Triton, which is downloaded once. If
/// pip cannot install it, this is an error in CI. Elsewhere the function returns `None`, and the
/// test that needs the package reports that it was skipped.
pub fn other_triton() -> Result<Option<PathBuf>> {
    let place = target_dir()?.join("xtask").join(format!("triton-{OTHER_TRITON}"));
    if place.is_dir() {
        return Ok(Some(place));
    }
    let staging = place.with_extension("new");
    if staging.exists() {
        std::fs::remove_dir_all(&staging)?;
    }
    let fetched = shell::run(
        Command::new("python3")
            .args(["-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"])
            .args(["--only-binary=:all:", "--disable-pip-version-check", "--target"])
            .arg(&staging)
            .arg(format!("triton=={OTHER_TRITON}")),
    );
    match fetched {
        Ok(()) => std::fs::rename(&staging, &place)?,
        Err(error) if std::env::var_os("CI").is_none() => {
            eprintln!("{error}: only the installed version of Triton is tested");
            return Ok(None);
        }
        Err(error) => return Err(error),
    }
    Ok(Some(place))
}

/// Returns whether `toolchain show` lists a version of the compiler.
fn lists(program: &Path, compiler: &str) -> Result<bool> {
    let output = Command::new(program)
        .args(["toolchain", "show"])
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).to_lowercase();
    Ok(text.lines().any(|line| names_version(line, compiler)))
}

/// Returns whether the line contains the name of the compiler and a number after it, such as `nvrtc
/// 13.0.88 …`.
fn names_version(line: &str, compiler: &str) -> bool {
    line.split_once(compiler).is_some_and(|(_, rest)| {
        rest.trim_start_matches([' ', ':', '\t']).starts_with(|c: char| c.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::{Glibc, OLD_GLIBC, names_version};

    #[test]
    fn an_old_glibc_is_linked_for_where_that_is_possible() {
        let old = || Glibc::Version(OLD_GLIBC.to_owned());
        for (given, can_link, due) in [
            (None, true, Some(old())),
            (None, false, Some(Glibc::Host)),
            (Some("host"), true, Some(Glibc::Host)),
            (Some("2.28"), true, Some(old())),
            (Some("2.28"), false, None),
            (Some("old"), true, None),
        ] {
            assert_eq!(Glibc::of(given, can_link).ok(), due, "{given:?} {can_link}");
        }
    }

    #[test]
    fn a_version_counts_and_an_absence_does_not() {
        assert!(names_version("nvrtc 13.0.88 (/usr/local/cuda/lib64)", "nvrtc"));
        assert!(names_version("  nvrtc:  12.9", "nvrtc"));
        assert!(!names_version("nvrtc: not found", "nvrtc"));
        assert!(!names_version("no nvrtc here", "nvrtc"));
        assert!(names_version("triton             3.6.0      /data/toolchain/triton", "triton"));
        assert!(!names_version("triton             triton was not found; get it", "triton"));
    }
}
