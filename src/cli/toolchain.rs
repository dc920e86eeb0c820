//! `warpgauge toolchain`: lists and installs compilers.

use super::args::{ToolchainCommand, ToolchainInstall};
use super::terminal::Terminal;
use super::{CliError, json};
use crate::exit::Exit;
use warpgauge_compile::toolchain::{self, InstallRequest, Toolchain};
use warpgauge_config::Config;
use warpgauge_engine::{program, toolchain_search};
use warpgauge_service::{ServiceError, error_chain};

/// Major versions of NVRTC that `install` installs if the user names none. Each supports drivers of
/// the same version.
const BOTH: [u32; 2] = [12, 13];

pub(super) fn run(
    command: &ToolchainCommand,
    config: &Config,
    terminal: Terminal,
) -> Result<Exit, CliError> {
    let (found, as_json) = match command {
        ToolchainCommand::Show(args) => (toolchain::discover(&toolchain_search(config)), args.json),
        ToolchainCommand::Install(args) => (install(config, args, terminal)?, args.json),
    };
    if as_json {
        terminal.print_line(&json::text("toolchain", &found)?)?;
    } else {
        terminal.print(&shown(&found))?;
    }
    // Scripts use this command to check whether this machine can compile. Success would mean that
    // it can.
    let nothing = found.nvrtc.is_empty() && found.triton.is_none() && found.torch.is_none();
    Ok(if nothing { Exit::Environment } else { Exit::Success })
}

/// Installs the requested compilers into the data directory. Returns the toolchain that is found
/// afterwards.
fn install(
    config: &Config,
    args: &ToolchainInstall,
    terminal: Terminal,
) -> Result<Toolchain, CliError> {
    let search = toolchain_search(config);
    // If `--with` is given without a version, an installed NVRTC is kept.
    let keeps = || !args.with.is_empty() && !toolchain::discover(&search).nvrtc.is_empty();
    let cuda = match args.cuda {
        Some(major) => vec![major],
        None if keeps() => Vec::new(),
        None => BOTH.to_vec(),
    };
    let with = |name: &str| args.with.iter().any(|part| part == name);
    let request = InstallRequest {
        program: program().map_err(|error| CliError::Service(error.into()))?,
        cache_dir: config.data_dir().to_owned(),
        cuda,
        nvcc: with("nvcc"),
        triton: with("triton"),
        torch: with("torch"),
        named_python: search.python.clone(),
    };
    let mut progress = |line: &str| terminal.note(line);
    toolchain::install(&request, &mut progress)
        .map_err(|error| CliError::Service(ServiceError::unavailable(error_chain(&error))))
}

/// Returns a line for each program that was found. The preferred one comes first.
fn shown(found: &Toolchain) -> String {
    let mut text = String::new();
    for nvrtc in &found.nvrtc {
        text += &line("nvrtc", &nvrtc.version_text(), &nvrtc.path, &nvrtc.source.to_string());
        if !nvrtc.lacks.is_empty() {
            text += &format!("  lacks            {}\n", nvrtc.lacks.join(", "));
        }
    }
    if found.nvrtc.is_empty() {
        text += "nvrtc              not found: `warpgauge toolchain install` installs it\n";
    }
    match &found.nvcc {
        Some(nvcc) => text += &line("nvcc", &nvcc.version, &nvcc.path, &nvcc.source.to_string()),
        None => text += "nvcc               not found: `warpgauge toolchain install --with nvcc`\n",
    }
    match found.triton() {
        Ok(triton) => {
            text +=
                &line("triton", &triton.version, &triton.site_packages, &triton.source.to_string());
            text += &line("  python", &triton.python_version, &triton.python, "");
        }
        Err(why) => text += &format!("{:<18} {why}\n", "triton"),
    }
    match found.torch() {
        Ok(torch) => {
            text += &line("torch", &torch.version, &torch.site_packages, &torch.source.to_string());
            text += &line("  python", &torch.python_version, &torch.python, "");
        }
        Err(why) => text += &format!("{:<18} {why}\n", "torch"),
    }
    for (name, tool) in [
        ("cuobjdump", &found.cuobjdump),
        ("nvdisasm", &found.nvdisasm),
        ("ncu", &found.ncu),
        ("nsys", &found.nsys),
        ("compute-sanitizer", &found.compute_sanitizer),
    ] {
        match tool {
            Some(tool) => {
                text += &line(name, tool.version.as_deref().unwrap_or(""), &tool.path, "")
            }
            None => text += &format!("{name:<18} not found\n"),
        }
    }
    for cupti in &found.cupti {
        text += &line("cupti", "", cupti, "");
    }
    if found.cupti.is_empty() {
        text += &format!("{:<18} not found\n", "cupti");
    }
    text
}

fn line(name: &str, version: &str, path: &std::path::Path, source: &str) -> String {
    let origin = if source.is_empty() { String::new() } else { format!("  ({source})") };
    format!("{name:<18} {version:<10} {}{origin}\n", path.display())
}
