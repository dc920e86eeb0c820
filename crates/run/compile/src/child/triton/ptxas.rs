//! Runs Triton's assembler, which generates machine code from PTX, with the same options as Triton.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use super::{ptx_of, rejected};
use crate::diagnostics::{MAX_LOG_BYTES, bound_log};
use crate::protocol::TritonBuilt;
use crate::protocol::{MAX_FRAME_BYTES, Outcome};
use crate::ptxas::without_usage;
use warpgauge_model::FailureCode;
use warpgauge_sandbox::program::{ChildProgram, Environment};

/// Adds machine code to a result.
pub(super) fn assemble(
    job_dir: &Path,
    ptxas: &Path,
    arch: u32,
    built: &mut TritonBuilt,
) -> Result<(), Outcome> {
    let failed = |error: io::Error| Outcome::Failed {
        what: format!("cannot run {}: {error}", ptxas.display()),
    };
    let (image, log) = run(job_dir, ptxas, arch, built).map_err(failed)??;
    built.cubin = image;
    built.log.push_str(&log);
    Ok(())
}

fn run(
    job_dir: &Path,
    ptxas: &Path,
    arch: u32,
    built: &TritonBuilt,
) -> io::Result<Result<(Vec<u8>, String), Outcome>> {
    let path = |name: &str| job_dir.join(name);
    fs::write(path("kernel.ptx"), ptx_of(built).unwrap_or_default())?;
    // The log is a file rather than a pipe: its size is limited, and no thread must drain it.
    let log = File::create(path("ptxas.log"))?;
    // From compute capability 9.0 on Triton uses architecture-specific features.
    let suffix = if arch >= 90 { "a" } else { "" };
    let program = ChildProgram::new(ptxas, Environment::Empty)
        .args(["-lineinfo", "-v"])
        .args((!built.metadata.enable_fp_fusion).then_some("--fmad=false"))
        .arg(format!("--gpu-name=sm_{arch}{suffix}"))
        // Relative names keep the directory out of messages.
        .args(["kernel.ptx", "-o", "kernel.cubin"])
        .within(job_dir);
    let status = program.to_blocking().stdout(log.try_clone()?).stderr(log).status()?;
    let mut text = Vec::new();
    File::open(path("ptxas.log"))?.take(4 * MAX_LOG_BYTES as u64).read_to_end(&mut text)?;
    let text = String::from_utf8_lossy(&text).into_owned();
    if !status.success() {
        // A signal means that a resource limit or a crash ended the assembler.
        let code = match status.signal() {
            Some(_) => FailureCode::CompilerFailed,
            None => FailureCode::CompilationFailed,
        };
        let kept = bound_log(without_usage(&text));
        let log = if kept.trim().is_empty() { format!("ptxas ended with {status}") } else { kept };
        return Ok(Err(rejected(code, log)));
    }
    let size = fs::metadata(path("kernel.cubin"))?.len();
    if size > MAX_FRAME_BYTES as u64 {
        let log = format!("it has {size} bytes; at most {MAX_FRAME_BYTES} are accepted");
        return Ok(Err(rejected(FailureCode::CompilerOutputTooLarge, log)));
    }
    Ok(Ok((fs::read(path("kernel.cubin"))?, text)))
}
