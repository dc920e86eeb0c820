//! The process that reads uploaded reports for the server. It may access only its own temporary
//! directory.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use warpgauge_metrics::import::{self, Imported, MAX_REPORT_BYTES};
use warpgauge_metrics::{Selection, select, unknown_name};
use warpgauge_nsight::read_report;
use warpgauge_page::{Links, PageOf, page};
use warpgauge_sandbox::calls::{self, ChildKind};
use warpgauge_sandbox::enforcement::{self, FileAccess, ResourceLimits, SandboxError};
use warpgauge_sandbox::own_root::{self, Processes};
use warpgauge_service::{
    EARLIER_FIELD, IMPORT_REFUSED, ImportForm, ImportOrder, ImportRefusal, REPORT_FIELD,
};

/// Maximum address space, bytes. The largest reports need 0.6 GiB.
const ADDRESS_SPACE: u64 = 2 << 30;

/// Maximum processor time, seconds.
const CPU_SECONDS: u64 = 120;

/// Maximum number of open files.
const OPEN_FILES: u64 = 64;

/// Reads the reports on standard input, and writes the answer to standard output.
pub(super) fn main(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let order = arguments.next().and_then(|order| serde_json::from_str(order.to_str()?).ok());
    let Some(order) = order else { return ExitCode::FAILURE };
    if let Err(error) = confine() {
        eprintln!("warpgauge: cannot confine the process that reads a report: {}", error.whole());
        return ExitCode::FAILURE;
    }
    let (code, text) = match answer(&order, io::stdin().lock()) {
        Ok(text) => (ExitCode::SUCCESS, text),
        Err(refusal) => match serde_json::to_vec(&refusal) {
            Ok(text) => (ExitCode::from(IMPORT_REFUSED), text),
            Err(_) => return ExitCode::FAILURE,
        },
    };
    // The server closes the pipe if the answer is too long.
    match io::stdout().lock().write_all(&text) {
        Ok(()) => code,
        Err(_) => ExitCode::FAILURE,
    }
}

fn confine() -> Result<(), SandboxError> {
    enforcement::limit_resources(&ResourceLimits {
        address_space: ADDRESS_SPACE,
        cpu_seconds: CPU_SECONDS,
        // SQLite reads the unpacked database from a file.
        file_size: MAX_REPORT_BYTES as u64,
        open_files: OPEN_FILES,
    })?;
    let directory: Vec<PathBuf> =
        std::env::var_os("TMPDIR").map(PathBuf::from).into_iter().collect();
    let access = FileAccess { write: directory, ..FileAccess::default() };
    own_root::confine(&access, Processes::All)?;
    calls::allow_only(ChildKind::Reader);
    Ok(())
}

fn answer(order: &ImportOrder, mut content: impl Read) -> Result<Vec<u8>, ImportRefusal> {
    let refused = |field: &str, message: String| ImportRefusal { field: field.to_owned(), message };
    let selection = select(&order.metrics);
    if let Some(name) = selection.unknown.iter().next() {
        return Err(refused("metrics", unknown_name(name)));
    }
    let mut read = Vec::with_capacity(order.reports.len());
    for report in &order.reports {
        let imported = next(&mut content, report.bytes, &report.name, &selection);
        read.push(imported.map_err(|message| refused(&report.field, message))?);
    }
    if order.reports.first().is_some_and(|report| report.field == REPORT_FIELD) {
        // The earlier report comes first from here on.
        read.reverse();
    }
    let name = |field: &str| {
        let found = order.reports.iter().find(|report| report.field == field);
        found.map_or("", |report| report.name.as_str())
    };
    match (read.as_slice(), order.form) {
        ([report], ImportForm::Json) => json(report),
        ([report], ImportForm::Page) => {
            let links = Links { root: Some("./"), ..Links::none() };
            Ok(page(PageOf::Imported(report, name(REPORT_FIELD)), &links).into_bytes())
        }
        ([before, after], form) => {
            let changes = import::changes(before, after)
                .map_err(|error| refused(EARLIER_FIELD, error.to_string()))?;
            let links = Links { root: Some("../"), ..Links::none() };
            match form {
                ImportForm::Json => json(&changes),
                ImportForm::Page => Ok(page(
                    PageOf::Changes(&changes, [name(EARLIER_FIELD), name(REPORT_FIELD)]),
                    &links,
                )
                .into_bytes()),
            }
        }
        _ => Err(refused(REPORT_FIELD, "one or two reports are read at a time".to_owned())),
    }
}

/// Reads the next report of the content. The error is the reason why it is refused.
fn next(
    content: &mut impl Read,
    bytes: u64,
    name: &str,
    selection: &Selection,
) -> Result<Imported, String> {
    let mut report = Vec::with_capacity(usize::try_from(bytes).unwrap_or(0));
    content
        .take(bytes)
        .read_to_end(&mut report)
        .map_err(|error| format!("the uploaded file cannot be read: {error}"))?;
    let report = import::unpacked(report, MAX_REPORT_BYTES).map_err(|error| error.to_string())?;
    read_report(report, name, selection).map_err(|error| error.to_string())
}

fn json(value: &impl serde::Serialize) -> Result<Vec<u8>, ImportRefusal> {
    serde_json::to_vec(value).map_err(|error| ImportRefusal {
        field: REPORT_FIELD.to_owned(),
        message: format!("its content cannot be written as JSON: {error}"),
    })
}
