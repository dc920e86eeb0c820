//! Lints and tests the Python package. It is installed from the wheel that contains the program.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::installed;
use super::tools::is_current;
use crate::product::{self, Profile};
use crate::{shell, wheel};

/// Installs the wheel into a virtual environment below `home`, and checks the package. `data` is a
/// data directory that contains the compilers.
pub fn check(home: &Path, data: &Path) -> Result<()> {
    let program = product::build(Profile::Test)?;
    let venv = home.join("venv");
    let python = || Command::new(venv.join("bin/python"));
    install_tools(home, &venv)?;

    let wheel = wheel::build(python(), &program, &home.join("wheel"))?;
    installed::check_tag(&venv.join("bin/auditwheel"), &wheel)?;
    installed::try_wheel(home, &wheel, &venv.join("bin/uvx"))?;
    installed::try_tarball(home, &program)?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    shell::run(python().args(pip).arg(&wheel))?;
    // pip would skip a wheel of the same version, even if its content differs.
    shell::run(python().args(pip).args(["--force-reinstall", "--no-deps"]).arg(&wheel))?;

    let package = shell::root().join("python");
    let caches = home.join("cache");
    for (tool, arguments) in [
        ("ruff", &["check", "."][..]),
        ("ruff", &["format", "--check", "."]),
        ("mypy", &["--cache-dir"]),
    ] {
        let mut command = python();
        command.args(["-m", tool]).args(arguments).env("RUFF_CACHE_DIR", caches.join("ruff"));
        if tool == "mypy" {
            command.arg(caches.join("mypy"));
        }
        shell::run(command.current_dir(&package))?;
    }
    // The tests use the server's Triton and PyTorch. If these are absent, the tests report it.
    let libraries = ["triton", "torch"].map(|name| data.join("toolchain").join(name));
    let libraries =
        std::env::join_paths(libraries).context("the path of the data directory contains a `:`")?;
    // The command that the wheel installs starts the program.
    shell::run(Command::new(venv.join("bin/warpgauge")).arg("--version"))?;
    shell::run(
        python()
            .args(["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider"])
            .current_dir(&package)
            .env("WARPGAUGE_BIN", installed(&venv)?)
            .env("WARPGAUGE_TEST_DATA", data)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("PYTHONPATH", libraries),
    )
}

/// Installs the linters and test tools, unless they are already installed.
fn install_tools(home: &Path, venv: &Path) -> Result<()> {
    let requirements = shell::root().join("xtask/clients/python_package.txt");
    let stamp = venv.join("installed.txt");
    if is_current(&stamp, &requirements)? {
        return Ok(());
    }
    std::fs::create_dir_all(home).with_context(|| format!("cannot create {}", home.display()))?;
    shell::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(venv))
        .context("on Debian and Ubuntu, install the package python3-venv")?;
    shell::run(
        Command::new(venv.join("bin/python"))
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"])
            .arg(&requirements),
    )?;
    std::fs::copy(&requirements, &stamp)
        .with_context(|| format!("cannot write {}", stamp.display()))?;
    Ok(())
}

/// Returns the path of the program in the installed wheel.
fn installed(venv: &Path) -> Result<String> {
    let script = "import warpgauge.program as p; print(p._INSTALLED)";
    let mut python = Command::new(venv.join("bin/python"));
    // Python must not import the package from the source tree, which contains no program.
    let found = shell::capture(python.args(["-c", script]).current_dir(venv))?;
    Ok(found.trim().to_owned())
}
