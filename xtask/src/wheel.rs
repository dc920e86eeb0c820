//! `cargo xtask wheel`: builds the wheel of the Python package. The wheel includes the program and
//! the emulated device.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::product::Packing;
use crate::shell;

/// Environment variable with the path of the program. `python/hatch_build.py` reads it.
const VARIABLE: &str = "WARPGAUGE_PROGRAM";

/// Builds the wheel and prints its path.
pub fn run(options: &Packing) -> Result<()> {
    let (program, out) = options.paths("wheel")?;
    let wheel = build(Command::new("python3"), &program, &out)?;
    println!("{}", wheel.display());
    Ok(())
}

/// Builds the wheel with the pip of a Python interpreter. Returns the path of the wheel.
pub fn build(mut python: Command, program: &Path, out: &Path) -> Result<PathBuf> {
    let program = fs::canonicalize(program)
        .with_context(|| format!("the program {} does not exist", program.display()))?;
    for old in wheels(out)? {
        fs::remove_file(&old).with_context(|| format!("cannot remove {}", old.display()))?;
    }
    shell::run(
        python
            .args(["-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"])
            .arg("--wheel-dir")
            .arg(out)
            .arg(shell::root().join("python"))
            .env(VARIABLE, program),
    )?;
    match wheels(out)?.as_slice() {
        [wheel] => Ok(wheel.clone()),
        found => bail!("pip wrote {} wheels to {} instead of one", found.len(), out.display()),
    }
}

/// Returns the wheels in a folder. The folder need not exist.
fn wheels(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(folder)
        .with_context(|| format!("cannot read {}", folder.display()))?
        .collect::<Result<Vec<_>, _>>()?;
    let named = |path: &PathBuf| {
        path.file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| name.starts_with("warpgauge-") && name.ends_with(".whl"))
    };
    Ok(entries.into_iter().map(|entry| entry.path()).filter(named).collect())
}
