//! Compiles with nvcc, inside the child.
//!
//! nvcc starts a host compiler, so more of the system is readable than for NVRTC: nvcc's directory
//! tree, `/usr` and the libraries. No other files are readable, and only the job's directory is
//! writable.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Instant;

use super::{confine, write_files};
use crate::artifact::KernelInfo;
use crate::binary::{read_cubin, read_ptx};
use crate::describe::Knowledge;
use crate::diagnostics::{self, MAX_LOG_BYTES};
use crate::layout::{LayoutQueries, Offset};
use crate::prelude::SOURCE_NAME;
use crate::protocol::{
    Built, ChildRequest, FILES, MAX_FRAME_BYTES, NvccWork, Outcome, without_directory,
};
use crate::ptxas;
use crate::signature::{numbered_answer, numbered_suffix};
use warpgauge_code::source::{SourceKernel, enumerations, find_kernels};
use warpgauge_model::FailureCode;
use warpgauge_model::ImageFormat;
use warpgauge_sandbox::calls::ChildKind;
use warpgauge_sandbox::enforcement::{Enforcement, FileAccess};
use warpgauge_sandbox::program::{ChildProgram, Environment};

/// System paths that host compilers need. Those that do not exist are skipped.
pub(super) const SYSTEM: [&str; 5] = ["/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache"];

/// Free space below which a disk counts as full, bytes.
const LEAST_ROOM_BYTES: u64 = 1 << 20;

/// Compiles the request's source.
pub(super) fn compile(
    request: &ChildRequest,
    work: &NvccWork,
    sandbox: &mut Option<Enforcement>,
) -> Outcome {
    let system = SYSTEM.iter().map(PathBuf::from).filter(|path| path.exists());
    let access = FileAccess {
        read: work.include_dirs.clone(),
        // The compiler finds its other programs through its path on the command line.
        execute: system.chain([work.root.clone(), work.nvcc.clone()]).collect(),
        write: vec!["/dev/null".into()],
        ..FileAccess::default()
    };
    match confine(request, access, ChildKind::Compilers, sandbox) {
        Ok(()) => run(&request.job_dir, work).unwrap_or_else(|e| Outcome::Failed {
            what: format!("cannot run {}: {e}", work.nvcc.display()),
        }),
        Err(outcome) => outcome,
    }
}

fn run(job_dir: &Path, work: &NvccWork) -> io::Result<Outcome> {
    let started = Instant::now();
    write_files(&job_dir.join(FILES), &work.source.files)?;
    let kernels = find_kernels(&work.source.whole());
    let asked: Vec<&SourceKernel> = kernels.iter().filter(|k| k.extern_c).collect();
    let names: Vec<&str> = asked.iter().map(|k| k.name.as_str()).collect();
    // As with NVRTC, type queries must not fail a source that compiles without them.
    let mut result = attempt(job_dir, work, &numbered_suffix(&names, &work.name_expressions))?;
    if !result.0.success() && !names.is_empty() {
        result = attempt(job_dir, work, &numbered_suffix(&[], &work.name_expressions))?;
    }
    let (status, log, output) = result;
    let kept = diagnostics::bound_log(ptxas::without_usage(&log));
    let diagnostics = diagnostics::parse(&kept);
    if !status.success() {
        if let Some(what) = no_room(job_dir, &kept) {
            return Ok(Outcome::Toolchain { what });
        }
        // A signal means that a resource limit or a crash ended the compiler.
        let code = match status.signal() {
            Some(_) => FailureCode::CompilerFailed,
            None => FailureCode::CompilationFailed,
        };
        let log = if kept.trim().is_empty() { format!("nvcc ended with {status}") } else { kept };
        return Ok(Outcome::Rejected { code, log, diagnostics });
    }
    let size = fs::metadata(&output)?.len();
    if size > MAX_FRAME_BYTES as u64 {
        let log = format!("it has {size} bytes; at most {MAX_FRAME_BYTES} are accepted");
        let code = FailureCode::CompilerOutputTooLarge;
        return Ok(Outcome::Rejected { code, log, diagnostics });
    }
    let image = fs::read(&output)?;
    let mut knowledge = Knowledge { source: &kernels, ..Knowledge::default() };
    knowledge.usage = ptxas::usage(&log);
    knowledge.enumerations = enumerations(&work.source.whole());
    let mut described = match describe(&image, work.arch.machine_code, &asked, knowledge) {
        Ok(kernels) => kernels,
        Err(what) => return Ok(Outcome::Failed { what }),
    };
    if let Some(queries) = LayoutQueries::new(&work.fields, &described) {
        let mut suffix = queries.suffix(Offset::Builtin);
        for instance in queries.instances() {
            suffix.push_str(&format!("template __global__ void {instance}();\n"));
        }
        let (status, _, output) = attempt(job_dir, work, &suffix)?;
        if status.success() && fs::metadata(&output)?.len() <= MAX_FRAME_BYTES as u64 {
            let symbols = symbols_of(&fs::read(&output)?, work.arch.machine_code);
            let symbols = symbols.unwrap_or_default();
            queries.answer(symbols.iter().map(String::as_str), &mut described);
        }
    }
    Ok(Outcome::Built(Box::new(Built {
        image,
        format: if work.arch.machine_code { ImageFormat::Cubin } else { ImageFormat::Ptx },
        kernels: described,
        log: kept,
        diagnostics,
        compiler_ms: started.elapsed().as_secs_f64() * 1e3,
    })))
}

/// Returns an error message if the compiler failed because the disk is full, which the source did
/// not cause.
pub(super) fn no_room(job_dir: &Path, log: &str) -> Option<String> {
    let full = rustix::fs::statvfs(job_dir).is_ok_and(|disk| {
        disk.f_bavail.saturating_mul(disk.f_frsize) < LEAST_ROOM_BYTES || disk.f_favail == 0
    });
    (full && log.contains("No space left on device")).then(|| {
        format!("there is not enough disk space in {} for the compiler's files", job_dir.display())
    })
}

fn attempt(
    job_dir: &Path,
    work: &NvccWork,
    suffix: &str,
) -> io::Result<(ExitStatus, String, PathBuf)> {
    // No path of a submitted file contains `~`, so none of them can conflict with these files.
    let (source, output) = (job_dir.join(SOURCE_NAME), job_dir.join("kernel~.out"));
    fs::write(&source, format!("{}{suffix}", work.source.text))?;
    let log_path = job_dir.join("nvcc~.log");
    // The log is a file rather than a pipe: its size is limited, and no thread must drain it.
    let log = File::create(&log_path)?;
    let program = ChildProgram::new(&work.nvcc, Environment::Empty)
        .args(&work.options)
        .args(["-I", FILES].into_iter().filter(|_| !work.source.files.is_empty()))
        .args(work.include_dirs.iter().flat_map(|dir| [Path::new("-I"), dir]))
        .args([Path::new("-o"), &output, Path::new(SOURCE_NAME)])
        .variable("PATH", "/usr/local/bin:/usr/bin:/bin")
        .within(job_dir);
    let status = program.to_blocking().stdout(log.try_clone()?).stderr(log).status()?;
    let mut text = Vec::new();
    File::open(&log_path)?.take(4 * MAX_LOG_BYTES as u64).read_to_end(&mut text)?;
    Ok((status, without_directory(&String::from_utf8_lossy(&text)), output))
}

/// Returns the symbols of the kernels in an image.
fn symbols_of(image: &[u8], machine_code: bool) -> Result<Vec<String>, String> {
    if machine_code {
        let cubin = read_cubin(image).map_err(|error| error.to_string())?;
        return Ok(cubin.kernels.into_iter().map(|kernel| kernel.symbol).collect());
    }
    let ptx = read_ptx(&String::from_utf8_lossy(image)).map_err(|error| error.to_string())?;
    Ok(ptx.kernels.into_iter().map(|kernel| kernel.symbol).collect())
}

fn describe(
    image: &[u8],
    machine_code: bool,
    asked: &[&SourceKernel],
    mut knowledge: Knowledge<'_>,
) -> Result<Vec<KernelInfo>, String> {
    let text = String::from_utf8_lossy(image);
    let (cubin, ptx) = if machine_code {
        (read_cubin(image).map_err(|e| e.to_string())?.kernels, Vec::new())
    } else {
        (Vec::new(), read_ptx(&text).map_err(|e| e.to_string())?.kernels)
    };
    let symbols = cubin.iter().map(|k| &k.symbol).chain(ptx.iter().map(|k| &k.symbol));
    let answers = symbols.filter_map(|symbol| numbered_answer(symbol));
    let types: HashMap<String, _> = answers
        .filter_map(|(at, types)| Some((asked.get(at)?.base_name().to_owned(), types)))
        .collect();
    knowledge.types = types;
    let described = cubin.into_iter().map(|k| knowledge.machine_code(k));
    let mut kernels: Vec<KernelInfo> = described.collect();
    kernels.extend(ptx.into_iter().map(|k| knowledge.ptx(k)));
    kernels.retain(|k| !warpgauge_code::listing::is_probe(&k.symbol));
    Ok(kernels)
}
