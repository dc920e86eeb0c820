//! `warpgauge schema`: prints the JSON Schema for a kind of file.

use super::CliError;
use super::terminal::Terminal;
use crate::exit::Exit;
use warpgauge_contract::schema::of_file;
use warpgauge_contract::{CompareRequest, EvaluateRequest, SweepRequest};

#[derive(Debug, clap::Args)]
pub(super) struct SchemaArgs {
    /// Kind of file
    #[arg(value_enum)]
    kind: FileKind,
}

/// A kind of file that commands read.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum FileKind {
    /// Contract for `eval` and `profile`, and for `compare` as the reference
    Contract,
    /// Comparison for `compare`: a reference and its candidates
    Comparison,
    /// Sweep for `sweep`: a contract with `axes`
    Sweep,
}

pub(super) fn run(args: &SchemaArgs, terminal: Terminal) -> Result<Exit, CliError> {
    let schema = match args.kind {
        FileKind::Contract => of_file::<EvaluateRequest>("warpgauge contract"),
        FileKind::Comparison => of_file::<CompareRequest>("warpgauge comparison"),
        FileKind::Sweep => of_file::<SweepRequest>("warpgauge sweep"),
    };
    terminal.print(&format!("{schema:#}\n"))?;
    Ok(Exit::Success)
}
