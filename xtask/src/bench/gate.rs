//! Measures the claims of docs/gate.md with its script.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::product::{self, Profile};
use crate::shell;

/// Options of `bench gate`.
#[derive(clap::Args)]
pub struct Options {
    /// Runs of each part.
    #[arg(long, default_value_t = 100)]
    runs: u32,
    /// Parts of docs/gate/figures.py: `counts` needs no GPU, `aa`, `slower`, `ten` and `identical`
    /// do.
    #[arg(default_values_t = ["counts".to_owned()])]
    parts: Vec<String>,
    /// The program to measure. Without it one is built, in release.
    #[arg(long)]
    program: Option<PathBuf>,
}

/// Builds the program and starts the script, which fails if a claim is false.
pub fn run(options: &Options) -> Result<()> {
    let python = shell::require("python3", "it runs docs/gate/figures.py")?;
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
