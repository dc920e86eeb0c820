//! `warpgauge import`: reads files that NVIDIA's tools wrote.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::args::ImportArgs;
use super::contract_file::{ContractFileError, check_file};
use super::terminal::Terminal;
use super::{CliError, import_changes, import_table, local};
use crate::exit::Exit;
use warpgauge_config::Config;
use warpgauge_metrics::import::{self, Imported, MAX_REPORT_BYTES};
use warpgauge_metrics::{Selection, select, unknown_name};
use warpgauge_model::Unavailable;
use warpgauge_nsight::{ReportFileError, ToolSearch, Tools, read_report, sqlite};
use warpgauge_page::PageOf;

/// Maximum size of a file, bytes.
const MAX_BYTES: u64 = MAX_REPORT_BYTES as u64;

/// Number of bytes that show whether a file is an SQLite database.
const HEAD_BYTES: u64 = 16;

pub(super) fn run(
    args: &ImportArgs,
    config: &Config,
    terminal: Terminal,
) -> Result<Exit, CliError> {
    let selection = select(&args.metrics);
    if let Some(name) = selection.unknown.iter().next() {
        let text = format!("--metrics: {}", unknown_name(name));
        return Err(CliError::Usage(text));
    }
    args.html.check(std::iter::once(&args.file).chain(&args.against))?;
    let is_stdin = |path: &Path| path.as_os_str() == "-";
    if is_stdin(&args.file) && args.against.as_deref().is_some_and(is_stdin) {
        let text = "--against -: standard input is the report itself; name a file";
        return Err(CliError::Usage(text.to_owned()));
    }
    let imported = imported(&args.file, &selection, config)?;
    let after = name(&args.file);
    let shown = match &args.against {
        Some(path) => {
            let before = self::imported(path, &selection, config)?;
            let found = import::changes(&before, &imported)
                .map_err(|error| CliError::Usage(format!("--against: {error}")))?;
            args.html.write(PageOf::Changes(&found, [&name(path), &after]), terminal)?;
            if args.json { json(&found)? } else { import_changes::changes(&found) }
        }
        None => {
            args.html.write(PageOf::Imported(&imported, &after), terminal)?;
            if args.json { json(&imported)? } else { import_table::table(&imported) }
        }
    };
    terminal.print(&shown)?;
    Ok(Exit::Success)
}

/// Returns the name of a file for messages and pages.
fn name(path: &Path) -> String {
    match path.as_os_str() == "-" {
        true => "standard input".to_owned(),
        false => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
    }
}

fn json(value: &impl serde::Serialize) -> Result<String, CliError> {
    let text = serde_json::to_string(value)
        .map_err(|error| CliError::Internal(format!("import to JSON: {error}")))?;
    Ok(format!("{text}\n"))
}

/// Returns the content of a file. Its metrics have the names of warpgauge's catalogue.
fn imported(path: &Path, selection: &Selection, config: &Config) -> Result<Imported, CliError> {
    // SQLite opens its files itself.
    let Some(bytes) = read(path)? else { return export(path, path) };
    let bytes = import::unpacked(bytes, MAX_REPORT_BYTES).map_err(|error| refused(path, error))?;
    if import::is_ncu_report(&bytes) {
        let text = exported(&bytes, config)?;
        return import::import(&text, selection).map_err(|error| {
            unreadable(&format!("its output for this file is not readable ({error})"))
        });
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    read_report(bytes, &name, selection).map_err(|error| match error {
        ReportFileError::Temporary(source) => {
            CliError::System { operation: "write a temporary file", source }
        }
        error => refused(path, error),
    })
}

/// Returns the content of an SQLite export of Nsight Systems. Errors contain the path `named`.
fn export(path: &Path, named: &Path) -> Result<Imported, CliError> {
    sqlite::read_export(path)
        .map(import::nsys_export)
        .map_err(|error| CliError::Usage(format!("{}: {error}", named.display())))
}

fn refused(path: &Path, error: impl std::fmt::Display) -> CliError {
    CliError::Usage(format!("{}: {error}", path.display()))
}

/// Reads a file, or standard input. Returns `None` for a file that is an SQLite database.
fn read(path: &Path) -> Result<Option<Vec<u8>>, CliError> {
    let unreadable = |source| ContractFileError::Read { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    if path.as_os_str() == "-" {
        let mut input = std::io::stdin().lock().take(MAX_BYTES + 1);
        input.read_to_end(&mut bytes).map_err(unreadable)?;
    } else {
        check_file(path)?;
        let mut file = File::open(path).map_err(unreadable)?;
        file.by_ref().take(HEAD_BYTES).read_to_end(&mut bytes).map_err(unreadable)?;
        if import::is_sqlite(&bytes) {
            return Ok(None);
        }
        // A file that is too large is rejected before the rest of it is read.
        let length = file.metadata().map_err(unreadable)?.len();
        if length > MAX_BYTES {
            return Err(too_long(path));
        }
        bytes.reserve_exact(usize::try_from(length).unwrap_or(0).saturating_add(1));
        let rest = (MAX_BYTES + 1).saturating_sub(bytes.len() as u64);
        file.take(rest).read_to_end(&mut bytes).map_err(unreadable)?;
    }
    match bytes.len() as u64 > MAX_BYTES {
        true => Err(too_long(path)),
        false => Ok(Some(bytes)),
    }
}

fn too_long(path: &Path) -> CliError {
    CliError::Usage(format!(
        "{} is longer than {} MiB; export fewer kernels (`--launch-count`), fewer metrics \
         (`--metrics`) or fewer tables (`--report`)",
        path.display(),
        MAX_BYTES >> 20
    ))
}

/// Returns the raw page of a `.ncu-rep` file as CSV, which Nsight Compute exports.
fn exported(report: &[u8], config: &Config) -> Result<String, CliError> {
    let system = |operation| move |source| CliError::System { operation, source };
    let directory = tempfile::tempdir().map_err(system("make a temporary directory"))?;
    let file = directory.path().join("report.ncu-rep");
    std::fs::write(&file, report).map_err(system("write a temporary file"))?;
    let search = ToolSearch::new(&config.tools.path, directory.path().to_owned());
    let tools = Tools::new(search);
    let read = warpgauge_nsight::ncu::read_report(&tools, &file, directory.path());
    local::runtime()?
        .block_on(read)
        .map_err(|Unavailable { reason, remedy, .. }| unreadable(&format!("{reason} ({remedy})")))
}

/// Returns the error for a `.ncu-rep` file that cannot be read.
fn unreadable(why: &str) -> CliError {
    CliError::Unavailable(format!(
        "a report of Nsight Compute can only be read with Nsight Compute: {why}; alternatively, export it where \
         it was made: `ncu --import FILE --csv --page raw --print-units \
         base`"
    ))
}
