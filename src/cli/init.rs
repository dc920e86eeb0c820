//! `warpgauge init`: infers a contract from a kernel file and writes it.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Map, Value, json};

use super::args::Target;
use super::assume::Assume;
use super::kernel_contract::KernelFile;
use super::progress::Progress;
use super::terminal::Terminal;
use super::{CliError, place};
use crate::exit::Exit;
use warpgauge_code::infer;
use warpgauge_config::Config;
use warpgauge_watch::infer_file;

#[derive(Debug, Args)]
pub(in crate::cli) struct InitArgs {
    /// Kernel: .cu, .ptx, .cubin, .fatbin, or .py with Triton or PyTorch
    #[arg(value_name = "KERNEL")]
    pub kernel: PathBuf,
    /// Name of the kernel, if the file has several; default: the first
    #[arg(long, value_name = "NAME")]
    pub kernel_name: Option<String>,
    /// Include a placeholder for a reference kernel
    #[arg(long)]
    pub reference: bool,
    /// New file for the contract; default: standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub assume: Assume,
    #[command(flatten)]
    pub target: Target,
}

pub(super) fn run(args: &InitArgs, config: &Config, terminal: Terminal) -> Result<Exit, CliError> {
    let kernel = KernelFile::read(&args.kernel)?;
    let progress = Progress::start(terminal);
    let mut place = place::open(&args.target, place::NONE, config, terminal)?;
    progress.stage(&place.stage("compiling", "compiling"));
    let wishes = args.assume.single_wishes(args.kernel_name.as_deref());
    let inferred = kernel.inferred(&mut *place, |name, content, compile| {
        infer_file(name, content, &wishes, compile)
    });
    drop((place, progress));
    let mut inferred = inferred?;
    if !inferred.guess.io.is_empty() {
        let kernel = json!({"io": inferred.guess.io});
        let mut fields = Map::from_iter([("kernel".to_owned(), kernel)]);
        args.assume.apply(&mut fields, "kernel")?;
        if let Some(Value::Object(io)) = fields["kernel"].get_mut("io").map(Value::take) {
            inferred.guess.io = io;
        }
    }
    if args.kernel_name.is_none() && inferred.entries.len() > 1 {
        terminal.note(&format!(
            "warpgauge: the file has {} kernels: {}; the contract is for the first; --kernel-name chooses another",
            inferred.entries.len(),
            inferred.entries.join(", ")
        ));
    }
    if let Some(program) = inferred.assumed.iter().find(|text| text.contains("main()")) {
        terminal.note(&format!("warpgauge: {program}"));
    }
    let file = beside(args, &kernel.name);
    let kind = inferred.kernel_type.name();
    let text = infer::text(&inferred.guess, kind, &file, &inferred.kernel_name, args.reference);
    match &args.output {
        None => terminal.print(&text)?,
        Some(path) => {
            let written = std::fs::File::create_new(path)
                .and_then(|mut file| file.write_all(text.as_bytes()));
            written.map_err(|source| match source.kind() {
                std::io::ErrorKind::AlreadyExists => CliError::Usage(format!(
                    "{} already exists and is not overwritten; remove it, or choose another name",
                    path.display()
                )),
                _ => CliError::Write { path: path.clone(), source },
            })?;
            terminal.note(&format!("wrote {}", path.display()));
        }
    }
    Ok(Exit::Success)
}

/// Returns the path of the kernel relative to the directory of the contract, for `source_file`.
fn beside(args: &InitArgs, name: &str) -> String {
    let directory = args.output.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
    match args.kernel.strip_prefix(directory) {
        Ok(relative) if relative.is_relative() => relative.display().to_string(),
        _ => name.to_owned(),
    }
}
