//! The wheel and the tarball as a new user installs them: in empty environments, without a compiler of the machine.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::{shell, tarball};

/// Minor versions of Python 3 that the wheel is for.
const MINORS: std::ops::RangeInclusive<u32> = 10..=14;

/// A first kernel, which needs no contract.
const KERNEL: &str = r#"extern "C" __global__ void vector_add(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
"#;

/// Variables that would bring compilers or settings of this machine in.
const FOREIGN: [&str; 7] = [
    "WARPGAUGE_TOOLCHAIN",
    "WARPGAUGE_PYTHON",
    "WARPGAUGE_CONFIG",
    "WARPGAUGE_SERVER",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYTHONPATH",
];

/// Fails unless `auditwheel` finds that the wheel runs on all systems that its tag names.
pub fn check_tag(auditwheel: &Path, wheel: &Path) -> Result<()> {
    let text = shell::capture(Command::new(auditwheel).arg("show").arg(wheel))?;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let found = text
        .split_once("constrains the platform tag to \"")
        .or_else(|| text.split_once("consistent with the following platform tag: \""))
        .and_then(|(_, rest)| rest.split_once('"'))
        .map(|(tag, _)| tag.to_owned())
        .with_context(|| format!("auditwheel says nothing of a tag: {text}"))?;
    let name = wheel.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if !name.ends_with(&format!("-{found}.whl")) {
        bail!("{name} has another tag than {found}, which its programs need");
    }
    Ok(())
}

/// Installs the wheel into an empty environment of every Python that is here, evaluates a kernel in the newest, and
/// says what is not here.
pub fn try_wheel(home: &Path, wheel: &Path, uvx: &Path) -> Result<()> {
    let kernel = home.join("k.cu");
    std::fs::write(&kernel, KERNEL)?;
    let mut newest = None;
    for minor in MINORS {
        let Some(python) = python(minor) else {
            eprintln!("Python 3.{minor} is not here: the wheel is not tried with it");
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
    let (venv, began) = newest.context("no Python of 3.10 to 3.14 is here")?;
    let program = venv.join("bin/warpgauge");
    first_verdict(own(Command::new(&program), home), home, &kernel)?;
    eprintln!(
        "first verdict {:.1} s after the environment was made",
        began.elapsed().as_secs_f64()
    );
    // The compiler is that of the wheel's dependencies.
    let shown = shell::capture(own(Command::new(&program), home).args(["toolchain", "show"]))?;
    let packages = format!("{}/lib/python", venv.display());
    if !shown.lines().any(|line| line.starts_with("nvrtc") && line.contains(&packages)) {
        bail!("the program does not find the compiler beside itself:\n{shown}");
    }
    let mut uv = own(Command::new(uvx), home);
    uv.args(["--isolated", "--from"]).arg(wheel).arg("warpgauge");
    first_verdict(uv, home, &kernel)
}

/// Evaluates the kernel with an empty data directory, and fails unless there is a verdict. An expectation would take
/// PyTorch or a contract.
fn first_verdict(mut program: Command, home: &Path, kernel: &Path) -> Result<()> {
    let data = home.join("first-data");
    if data.exists() {
        std::fs::remove_dir_all(&data)?;
    }
    program.env("WARPGAUGE_DATA_DIR", &data);
    program.args(["--device", "emulator", "eval"]).arg(kernel);
    let text = shell::capture(&mut program)?;
    if !text.starts_with("NOT CHECKED  vector_add ran") {
        bail!("the first kernel has no verdict:\n{text}");
    }
    Ok(())
}

/// Packs the program, checks the sum, unpacks the tarball, and evaluates PTX with the program in it: CUDA C++ takes
/// a compiler, which a tarball does not bring.
pub fn try_tarball(home: &Path, program: &Path) -> Result<()> {
    let made = tarball::pack(program, &home.join("tarball"))?;
    let directory = made.path.parent().context("a tarball is in a directory")?;
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
            bail!("the tarball has no {file}");
        }
    }
    let devices = shell::capture(
        own(Command::new(place.join("warpgauge")), home).args(["--device", "emulator", "devices"]),
    )?;
    if !devices.contains("warpgauge emulator") {
        bail!("the program of the tarball does not find its emulated device:\n{devices}");
    }
    Ok(())
}

/// A command with the user's environment, but for what would help it.
fn own(mut command: Command, home: &Path) -> Command {
    for name in FOREIGN {
        command.env_remove(name);
    }
    command.env("WARPGAUGE_DATA_DIR", home.join("empty-data")).current_dir(home);
    command
}

/// An interpreter of a minor version: on the path, or one of pyenv's.
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
