//! `warpgauge send`: sends a kernel through a git repository and waits for the result.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde_json::Value;

use crate::cli::args::seconds;
use crate::cli::contract_file::read_file;
use crate::cli::terminal::{Terminal, plain};
use crate::cli::{CliError, report, signals};
use crate::exit::Exit;
use warpgauge_config::Config;
use warpgauge_report::EvaluateResponse;
use warpgauge_watch::mailbox::{self, MailboxAddress, MailboxMessage};
use warpgauge_watch::{WatchStop, kernel_type};

/// Maximum size of each file that is sent, bytes.
const MAX_BYTES: u64 = 64 << 20;

#[derive(Debug, Args)]
pub(in crate::cli) struct SendArgs {
    /// Kernel: .cu, .py, .ptx, .cubin or .fatbin
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Repository, as a URL or a path
    #[arg(long, value_name = "URL")]
    pub git: String,
    /// Branch of the repository
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub branch: String,
    /// Directory of the repository that contains kernels/ and results/; default: its root
    #[arg(long, value_name = "DIR", value_parser = super::directory)]
    pub within: Option<String>,
    /// Contract; default: the file beside the kernel, if it exists
    #[arg(long, value_name = "FILE")]
    pub contract: Option<PathBuf>,
    /// Seconds to wait for the result, 0 to 3600
    #[arg(long, value_name = "SECONDS", default_value_t = 600.0, allow_negative_numbers = true, value_parser = seconds)]
    pub patience: f64,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

pub(in crate::cli) fn run(
    args: &SendArgs,
    _: &Config,
    terminal: Terminal,
) -> Result<Exit, CliError> {
    let letter = letter(args)?;
    let directory = tempfile::tempdir()
        .map_err(|source| CliError::System { operation: "create a temporary directory", source })?;
    let stop = Arc::new(WatchStop::default());
    let interrupt = Arc::clone(&stop);
    signals::interrupts(Box::new(move || {
        interrupt.stop();
        true
    }));
    let address = MailboxAddress {
        url: &args.git,
        branch: &args.branch,
        within: args.within.as_deref(),
        directory: directory.path(),
    };
    let sent =
        || terminal.note(&format!("warpgauge: sent as {}; waiting for the result", letter.stem));
    let patience = Duration::from_secs_f64(args.patience);
    let result = mailbox::send(&address, &letter, patience, &stop, &sent)?;
    let report = serde_json::from_value::<EvaluateResponse>(result["report"].clone()).ok();
    if args.json {
        let text = serde_json::to_string(&result)
            .map_err(|error| CliError::Internal(format!("the result to JSON: {error}")))?;
        terminal.print_line(&text)?;
    } else {
        terminal.print(&page(&result, report.as_ref(), terminal))?;
    }
    Ok(match &report {
        Some(report) => Exit::of_report(report),
        None if code_of(&result) == "compile_error" => Exit::NotCompiled,
        None if result["success"] == true => Exit::Success,
        None => Exit::Usage,
    })
}

/// Returns the error code in a failed result, which may have either format.
fn code_of(result: &Value) -> &Value {
    result.get("error_code").unwrap_or(&result["error"]["code"])
}

/// Formats a result as text.
fn page(result: &Value, report: Option<&EvaluateResponse>, terminal: Terminal) -> String {
    let mut text = String::new();
    for assumed in result["assumed"].as_array().into_iter().flatten() {
        text.push_str(&plain(&format!("assumed  {}\n", assumed.as_str().unwrap_or_default())));
    }
    match report {
        Some(report) => text.push_str(&report::evaluation(report, terminal.style())),
        None => {
            let message = result["message"].as_str().unwrap_or("there is no report");
            let word = if result["success"] == true { "done" } else { "failed" };
            text.push_str(&plain(&format!("{word}  {message}\n")));
        }
    }
    text
}

/// Returns the kernel and its contract as a message with a unique name.
fn letter(args: &SendArgs) -> Result<MailboxMessage, CliError> {
    let name =
        args.file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if kernel_type(&name).is_none() {
        return Err(CliError::Usage(format!(
            "{}: expected a kernel: .cu, .py, .ptx, .cubin or .fatbin",
            args.file.display()
        )));
    }
    let (stem, ending) = name.rsplit_once('.').unwrap_or((&name, "cu"));
    let contract = match &args.contract {
        Some(given) => Some(given.clone()),
        None => ["yaml", "yml", "json"]
            .into_iter()
            .map(|it| args.file.with_extension(it))
            .find(|it| it.is_file()),
    };
    let mut files = Vec::new();
    if let Some(contract) = contract {
        let ending = contract.extension().and_then(|ending| ending.to_str());
        let Some(ending) = ending.filter(|ending| ["yaml", "yml", "json"].contains(ending)) else {
            return Err(CliError::Usage(format!(
                "{}: expected .yaml, .yml or .json",
                contract.display()
            )));
        };
        files.push((ending.to_owned(), content(&contract)?));
    }
    files.push((ending.to_owned(), content(&args.file)?));
    let plain = stem.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' });
    let plain = plain.take(64).collect::<String>();
    let id = uuid::Uuid::new_v4().simple().to_string();
    // A leading dot would hide the file, and a leading dash would turn its name into an option.
    Ok(MailboxMessage { stem: format!("{}-{}", plain.trim_start_matches('-'), &id[..12]), files })
}

fn content(path: &Path) -> Result<Vec<u8>, CliError> {
    Ok(read_file(path, MAX_BYTES)?)
}
