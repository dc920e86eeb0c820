//! Tests the wheel and the tarball in the way in which a new user installs them: in empty
//! environments, without the compilers of this machine.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::{shell, tarball};

/// Minor versions of Python 3 that the wheel supports.
const MINORS: std::ops::RangeInclusive<u32> = 10..=14;

/// A kernel for the first evaluation, which needs no contract.
const KERNEL: &str = r#"extern "C" __global__ void vector_add(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
"#;

/// Environment variables that would make compilers or settings of this machine visible to the
/// tests.
const FOREIGN: [&str; 7] = [
    "WARPGAUGE_TOOLCHAIN",
    "WARPGAUGE_PYTHON",
    "WARPGAUGE_CONFIG",
    "WARPGAUGE_SERVER",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYTHONPATH",
];

/// Fails unless `auditwheel` confirms that the wheel runs on all systems that its tag lists.
pub fn check_tag(auditwheel: &Path, wheel: &Path) -> Result<()> {
    let text = shell::capture(Command::new(auditwheel).arg("show").arg(wheel))?;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let found = text
        .split_once("constrains the platform tag to \"")
        .or_else(|| text.split_once("consistent with the following platform tag: \""))
        .and_then(|(_, rest)| rest.split_once('"'))
        .map(|(tag, _)| tag.to_owned())
        .with_context(|| format!("auditwheel printed no platform tag: {text}"))?;
    let name = wheel.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if !name.ends_with(&format!("-{found}.whl")) {
        bail!("the tag of {name} is not {found}, which its programs need");
    }
    Ok(())
}

/// Installs the wheel into an empty environment of each Python version on this machine. Evaluates a
/// kernel with the newest version. Prints which versions are not installed.
pub fn try_wheel(home: &Path, wheel: &Path, uvx: &Path) -> Result<()> {
    let kernel = home.join("k.cu");
    std::fs::write(&kernel, KERNEL)?;
    let mut newest = None;
    for minor in MINORS {
        let Some(python) = python(minor) else {
            eprintln!("Python 3.{minor} is not installed: the wheel is not tested with it");
            continue;
        };
        let venv = home.join(format!("empty-3.{minor}"));
        let began = Instant::now();
        shell::run(Command::new(&python).args(["-m", "venv", "--clear"]).arg(&venv))?;
        shell::run(
            own(Command::new(venv.join("bin/python")), home)
                .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
                .arg(wheel),
        )?;
        let script = "import warpgauge; assert warpgauge.Client and warpgauge.Out";
        shell::run(own(Command::new(venv.join("bin/python")), home).args(["-c", script]))?;
        shell::run(own(Command::new(venv.join("bin/warpgauge")), home).arg("--version"))?;
        newest = Some((venv, began));
    }
    let (venv, began) = newest.context("no Python from 3.10 to 3.14 is installed")?;
    let program = venv.join("bin/warpgauge");
    first_verdict(own(Command::new(&program), home), home, &kernel)?;
    eprintln!(
        "first verdict {:.1} s after the start of the installation",
        began.elapsed().as_secs_f64()
    );
    // The compiler must be a dependency of the wheel.
    let shown = shell::capture(own(Command::new(&program), home).args(["toolchain", "show"]))?;
    let packages = format!("{}/lib/python", venv.display());
    if !shown.lines().any(|line| line.starts_with("nvrtc") && line.contains(&packages)) {
        bail!("the program does not find the compiler in its environment:\n{shown}");
    }
    let mut uv = own(Command::new(uvx), home);
    uv.args(["--isolated", "--from"]).arg(wheel).arg("warpgauge");
    first_verdict(uv, home, &kernel)
}

/// Evaluates the kernel with an empty data directory. Fails unless the program prints a verdict.
/// The result of the kernel is not checked, because that would need PyTorch or a contract.
fn first_verdict(mut program: Command, home: &Path, kernel: &Path) -> Result<()> {
    let data = home.join("first-data");
    if data.exists() {
        std::fs::remove_dir_all(&data)?;
    }
    program.env("WARPGAUGE_DATA_DIR", &data);
    program.args(["--device", "emulator", "eval"]).arg(kernel);
    let text = shell::capture(&mut program)?;
    if !text.starts_with("NOT CHECKED  vector_add ran") {
        bail!("no verdict on the first kernel:\n{text}");
    }
    Ok(())
}

/// Packs the program, checks the checksum, and unpacks the tarball. Evaluates PTX with the program
/// in it. CUDA C++ would need a compiler, which the tarball does not contain.
pub fn try_tarball(home: &Path, program: &Path) -> Result<()> {
    let made = tarball::pack(program, &home.join("tarball"))?;
    let directory = made.path.parent().context("the tarball's path has no directory")?;
    let mut name = made.path.file_name().unwrap_or_default().to_owned();
    name.push(".sha256");
    shell::run(Command::new("sha256sum").arg("--check").arg(name).current_dir(directory))?;
    let place = home.join("unpacked");
    if place.exists() {
        std::fs::remove_dir_all(&place)?;
    }
    std::fs::create_dir_all(&place)?;
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--strip-components", "1", "--file"]).arg(&made.path);
    shell::run(tar.arg("--directory").arg(&place))?;
    for file in [
        "LICENSE",
        "README.md",
        "completions/_warpgauge",
        "completions/warpgauge.bash",
        "man/man1/warpgauge.1",
        "man/man1/warpgauge-eval.1",
        "deploy/warpgauge.service",
    ] {
        let path = place.join(file);
        if !path.metadata().is_ok_and(|found| found.len() > 0) {
            bail!("the tarball does not contain {file}");
        }
    }
    let devices = shell::capture(
        own(Command::new(place.join("warpgauge")), home).args(["--device", "emulator", "devices"]),
    )?;
    if !devices.contains("warpgauge emulator") {
        bail!("the program in the tarball does not find its emulated device:\n{devices}");
    }
    Ok(())
}

/// Returns a command that has the user's environment, except for the variables in `FOREIGN`.
fn own(mut command: Command, home: &Path) -> Command {
    for name in FOREIGN {
        command.env_remove(name);
    }
    command.env("WARPGAUGE_DATA_DIR", home.join("empty-data")).current_dir(home);
    command
}

/// Returns an interpreter of this minor version, from `PATH` or from the versions that pyenv
/// installed.
fn python(minor: u32) -> Option<PathBuf> {
    let runs = |python: &Path| {
        let version = format!("import sys, ensurepip; assert sys.version_info[:2] == (3, {minor})");
        let output = Command::new(python).args(["-c", &version]).output();
        output.is_ok_and(|output| output.status.success())
    };
    if let Some(found) = shell::find(format!("python3.{minor}")).filter(|python| runs(python)) {
        return Some(found);
    }
    let versions = PathBuf::from(std::env::var_os("HOME")?).join(".pyenv/versions");
    let mut named = std::fs::read_dir(versions).ok()?.flatten().map(|entry| entry.path());
    let wanted = format!("3.{minor}.");
    let found = named.find(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&wanted))
    });
    found.map(|path| path.join("bin/python")).filter(|python| runs(python))
}
