//! `warpgauge import`: reads files that NVIDIA's tools wrote elsewhere.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::args::ImportArgs;
use super::terminal::Terminal;
use super::{CliError, import_table, local};
use crate::exit::Exit;
use warpgauge_config::Config;
use warpgauge_metrics::import::{self, ImportError};
use warpgauge_metrics::{select, unknown_name};
use warpgauge_model::Unavailable;
use warpgauge_nsight::{ToolSearch, Tools};

/// Maximum size of a file, bytes.
const MAX_BYTES: u64 = 256 << 20;

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
    let bytes = read(&args.file)?;
    let own_format = import::is_ncu_report(&bytes);
    let text = if own_format { exported(&bytes, config)? } else { import::decode(&bytes) };
    let name = args.file.file_name().unwrap_or_default().to_string_lossy();
    let imported =
        import::import_file(&text, &name, &selection).map_err(|error| match own_format {
            true => unreadable(&format!("it made no page of this one ({error})")),
            false => refused(&args.file, &error),
        })?;
    let shown = if args.json {
        let json = serde_json::to_string(&imported)
            .map_err(|error| CliError::Internal(format!("import to JSON: {error}")))?;
        format!("{json}\n")
    } else {
        import_table::table(&imported)
    };
    terminal.print(&shown)?;
    Ok(Exit::Success)
}

fn refused(path: &Path, error: &ImportError) -> CliError {
    CliError::Usage(format!("{}: {error}", path.display()))
}

fn read(path: &Path) -> Result<Vec<u8>, CliError> {
    let mut bytes = Vec::new();
    let result = match path.as_os_str() == "-" {
        true => std::io::stdin().lock().take(MAX_BYTES + 1).read_to_end(&mut bytes),
        false => File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes)),
    };
    match result {
        Err(error) => Err(CliError::Usage(format!("could not read {}: {error}", path.display()))),
        Ok(_) if bytes.len() as u64 > MAX_BYTES => Err(CliError::Usage(format!(
            "{} is longer than {} MiB; export fewer kernels or fewer tables",
            path.display(),
            MAX_BYTES >> 20
        ))),
        Ok(_) => Ok(bytes),
    }
}

/// Returns the raw page of a `.ncu-rep` file, as CSV. Nsight Compute exports it.
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
        "a report of Nsight Compute can only be read with Nsight Compute: {why}; or export it where \
         it was made: `ncu --import FILE --csv --page raw --print-units \
         base`"
    ))
}
