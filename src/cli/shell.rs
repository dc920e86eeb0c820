//! `warpgauge completions` and `warpgauge manual`: write files for shells and for `man`.

use std::io::Write as _;
use std::path::Path;

use clap::CommandFactory as _;

use super::CliError;
use super::args::{Cli, CompletionsArgs, ManualArgs};
use super::terminal::Terminal;
use crate::exit::Exit;

const NAME: &str = "warpgauge";

pub(super) fn completions(args: &CompletionsArgs, terminal: Terminal) -> Result<Exit, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), NAME, &mut script);
    terminal.print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Success)
}

/// Writes a manual page for the program and a page for each command.
pub(super) fn manual(args: &ManualArgs, terminal: Terminal) -> Result<Exit, CliError> {
    std::fs::create_dir_all(&args.directory).map_err(|source| failed(&args.directory, source))?;
    let mut command = Cli::command();
    command.build();
    let mut pages = 0_usize;
    write(&command, NAME, &args.directory, &mut pages)?;
    terminal.note(&format!("wrote {pages} pages into {}", args.directory.display()));
    Ok(Exit::Success)
}

fn write(
    command: &clap::Command,
    name: &str,
    directory: &Path,
    pages: &mut usize,
) -> Result<(), CliError> {
    let path = directory.join(format!("{name}.1"));
    let mut page = Vec::new();
    let titled = command.clone().version(env!("CARGO_PKG_VERSION"));
    clap_mangen::Man::new(titled).render(&mut page).map_err(|source| failed(&path, source))?;
    let written = std::fs::File::create(&path).and_then(|mut file| file.write_all(&page));
    written.map_err(|source| failed(&path, source))?;
    *pages += 1;
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        write(inner, &format!("{name}-{}", inner.get_name()), directory, pages)?;
    }
    Ok(())
}

fn failed(path: &Path, source: std::io::Error) -> CliError {
    CliError::Write { path: path.to_owned(), source }
}
