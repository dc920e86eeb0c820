//! Checks the statements of docs/gate.md with the script docs/gate/figures.py.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::product::{self, Profile};
use crate::shell;

/// Options of `bench gate`.
#[derive(clap::Args)]
pub struct Options {
    /// Number of repetitions of each part.
    #[arg(long, default_value_t = 100)]
    runs: u32,
    /// Parts of docs/gate/figures.py: `counts` needs no GPU; `aa`, `slower`, `ten` and `identical`
    /// need a GPU.
    #[arg(default_values_t = ["counts".to_owned()])]
    parts: Vec<String>,
    /// Program to measure. Default: a new release build.
    #[arg(long)]
    program: Option<PathBuf>,
}

/// Builds the program if necessary, and runs the script. The script fails if a statement is false.
pub fn run(options: &Options) -> Result<()> {
    let python = shell::require("python3", "docs/gate/figures.py needs it")?;
    let program = match &options.program {
        Some(program) => program.clone(),
        None => product::build(Profile::Release)?,
    };
    product::ensure_toolchain(&program)?;
    let mut script = Command::new(python);
    script
        .arg(shell::root().join("docs/gate/figures.py"))
        .arg("--warpgauge")
        .arg(program)
        .args(["--runs", &options.runs.to_string(), "--out"])
        .arg(product::target_dir()?.join("gate-figures"))
        .args(&options.parts);
    shell::run(&mut script)
}
