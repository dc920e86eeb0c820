//! `warpgauge watch`: evaluates the kernels that arrive in a folder or in a git repository.

mod evaluators;
mod send;

use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::Args;

use self::evaluators::evaluator;
pub(super) use self::send::{SendArgs, run as send};
use super::CliError;
use super::args::{Target, seconds};
use super::terminal::Terminal;
use crate::exit::Exit;
use warpgauge_config::Config;
use warpgauge_watch::{Folder, WatchEvent, WatchOptions, WatchStop, mailbox};

#[derive(Debug, Args)]
pub(in crate::cli) struct WatchArgs {
    /// Folder: kernels are read from DIR/kernels, and results are written to DIR/results
    #[arg(value_name = "DIR", required_unless_present = "git", conflicts_with = "git")]
    pub folder: Option<PathBuf>,
    /// Repository to watch in place of a folder, with its directories kernels/ and results/
    #[arg(long, value_name = "URL")]
    pub git: Option<String>,
    /// Branch of the repository
    #[arg(long, value_name = "NAME", default_value = "main", requires = "git")]
    pub branch: String,
    /// Directory of the repository that contains kernels/ and results/, e.g. gpu-executor; default: its root
    #[arg(long, value_name = "DIR", requires = "git", value_parser = directory)]
    pub within: Option<String>,
    #[command(flatten)]
    pub target: Target,
    /// Maximum number of files that are evaluated at once
    #[arg(long, value_name = "N", default_value_t = 4, allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub jobs: u16,
    /// Seconds for which a file must be unchanged, unless it is known to be complete, 0 to 3600
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, allow_negative_numbers = true, value_parser = seconds)]
    pub settle: f64,
    /// Seconds between scans of the folder, in place of notifications; for a repository the default
    /// is 10
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = interval)]
    pub poll: Option<f64>,
    /// Evaluate the kernels that are present, then exit
    #[arg(long)]
    pub once: bool,
    /// Collect no device metrics: faster, and results contain only times
    #[arg(long)]
    pub no_profile: bool,
    /// Name results NAME_result.json, with `error` as a string, as KRAIT's executor does
    #[arg(long)]
    pub suffixed_results: bool,
}

/// Parses the path of a directory in a repository.
pub(super) fn directory(text: &str) -> Result<String, String> {
    let text = text.trim_end_matches('/');
    let is_plain = |part: &str| {
        !part.starts_with(['.', '-'])
            && !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    };
    match text.split('/').all(is_plain) && text.len() <= MAX_DIRECTORY_BYTES {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "expected a directory from the repository's root such as `gpu-executor`: letters, digits, `.`, `_` \
             and `-`, {MAX_DIRECTORY_BYTES} bytes at most"
        )),
    }
}

/// Maximum length of a directory's path in a repository, bytes.
const MAX_DIRECTORY_BYTES: usize = 255;

/// Parses the polling interval in seconds.
fn interval(text: &str) -> Result<f64, String> {
    seconds(text).and_then(|value| {
        if value >= 0.01 {
            Ok(value)
        } else {
            Err("expected a number of seconds from 0.01 to 3600".to_owned())
        }
    })
}

pub(super) fn run(args: &WatchArgs, config: &Config, terminal: Terminal) -> Result<Exit, CliError> {
    let stop = Arc::new(WatchStop::default());
    let options = WatchOptions {
        at_once: args.jobs.into(),
        settle: Duration::from_secs_f64(args.settle),
        poll: args.poll.map(Duration::from_secs_f64),
        once: args.once,
        profile: !args.no_profile,
        suffixed_results: args.suffixed_results,
    };
    let dots = Dots::default();
    match (&args.folder, &args.git) {
        (Some(folder), _) => {
            let mut folder = Folder::open(folder)?;
            if args.suffixed_results {
                folder.suffix_results();
            }
            let evaluator = evaluator(&args.target, config, &stop)?;
            let told = |told: WatchEvent<'_>| {
                tell(&folder.kernels(), folder.root(), &told, &dots, terminal)
            };
            warpgauge_watch::watch(&folder, &options, &*evaluator, &stop, &told)?;
        }
        (None, Some(url)) => {
            let within = args.within.as_deref();
            let directory = directory_of(config, url, &args.branch, within);
            std::fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&directory)
                .map_err(|source| CliError::Write { path: directory.clone(), source })?;
            let address = mailbox::MailboxAddress {
                url,
                branch: &args.branch,
                within,
                directory: &directory,
            };
            let evaluator = evaluator(&args.target, config, &stop)?;
            let root = directory.join("folder");
            let told = |told: WatchEvent<'_>| {
                tell(Path::new("the mailbox"), &root, &told, &dots, terminal)
            };
            mailbox::serve(&address, &options, &*evaluator, &stop, &told)?;
        }
        // clap requires one of these two arguments.
        (None, None) => {
            return Err(CliError::Usage("name a folder, or a repository with --git".to_owned()));
        }
    }
    Ok(Exit::Success)
}

/// Returns the local directory for the files of a mailbox.
fn directory_of(config: &Config, url: &str, branch: &str, within: Option<&str>) -> PathBuf {
    let within = within.map(|within| format!("\0{within}")).unwrap_or_default();
    let name = blake3::hash(format!("{url}\0{branch}{within}").as_bytes()).to_hex();
    config.data_dir().join("mailboxes").join(&name[..16])
}

/// Shows on a terminal that the watcher is active. It prints a dot each time it polls a folder
/// without changes.
#[derive(Default)]
struct Dots(Mutex<usize>);

/// Maximum number of dots on one line.
const DOTS_IN_LINE: usize = 60;

impl Dots {
    fn add(&self, terminal: Terminal) {
        if terminal.quiet || !terminal.interactive {
            return;
        }
        let mut count = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *count += 1;
        let end = *count == DOTS_IN_LINE;
        let mut out = std::io::stderr().lock();
        // A failure to print a dot is ignored.
        let _ = out.write_all(if end { b".\n" } else { b"." }).and_then(|()| out.flush());
        if end {
            *count = 0;
        }
    }

    /// Ends the line of dots, if there is one.
    fn end(&self) {
        let mut count = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut *count) > 0 {
            super::terminal::write_error_stream("");
        }
    }
}

/// Prints an event: a result as a line on standard output, any other event as a note.
fn tell(kernels: &Path, root: &Path, told: &WatchEvent<'_>, dots: &Dots, terminal: Terminal) {
    match told {
        WatchEvent::Looked => return dots.add(terminal),
        _ => dots.end(),
    }
    match told {
        WatchEvent::Looked => {}
        WatchEvent::Watching { polling: None } => {
            terminal.note(&format!("warpgauge: watching {}", kernels.display()));
        }
        WatchEvent::Watching { polling: Some((every, why)) } => terminal.note(&format!(
            "warpgauge: scanning {} every {:.1} s: {why}",
            kernels.display(),
            every.as_secs_f64()
        )),
        WatchEvent::Result { line, path } => {
            let path = path.strip_prefix(root).unwrap_or(path);
            // The reader of these lines may have closed the stream. The folder contains the
            // results.
            let line = super::terminal::plain_line(&format!("{line}  {}", path.display()));
            let _ = terminal.print_line(&line);
        }
        WatchEvent::Waiting { file, why } => {
            let text = format!("warpgauge: {file} waits: {why}");
            terminal.note(&super::terminal::plain_line(&text));
        }
        WatchEvent::Trouble(error) => {
            let text = warpgauge_service::error_chain(*error);
            super::terminal::write_error_stream(&format!(
                "warpgauge: {}",
                super::terminal::plain(&text)
            ));
        }
    }
}
