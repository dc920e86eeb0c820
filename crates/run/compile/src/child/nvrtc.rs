//! Compiles with NVRTC, inside the child.

use std::path::{Path, PathBuf};

use super::attempt::{AttemptError, Attempts, Finished};
use super::confine;
use crate::protocol::{ChildRequest, NvrtcWork, Outcome};
use warpgauge_device::nvrtc::{LoadedLibrary, Nvrtc, NvrtcError, NvrtcJob};
use warpgauge_model::FailureCode;
use warpgauge_sandbox::calls::ChildKind;
use warpgauge_sandbox::enforcement::{Enforcement, FileAccess};

/// Compiles the request's source.
pub(super) fn compile(
    request: &ChildRequest,
    work: &NvrtcWork,
    sandbox: &mut Option<Enforcement>,
) -> Outcome {
    open(request, library_of(work), &work.include_dirs, sandbox)
        .and_then(|nvrtc| check(&nvrtc, work).map(|()| nvrtc))
        .map_or_else(|outcome| outcome, |nvrtc| run(&nvrtc, work))
}

/// A library that the search for compilers found, with its expected version.
#[derive(Clone, Copy)]
pub(super) struct Library<'a> {
    pub path: &'a Path,
    pub version: (u32, u32),
}

fn library_of(work: &NvrtcWork) -> Library<'_> {
    Library { path: &work.library, version: work.version }
}

/// Opens the library, confines the process, and binds the library.
fn open(
    request: &ChildRequest,
    library: Library<'_>,
    include_dirs: &[PathBuf],
    sandbox: &mut Option<Enforcement>,
) -> Result<Nvrtc, Outcome> {
    let toolchain = |e: NvrtcError| Outcome::Toolchain { what: e.to_string() };
    let loaded = LoadedLibrary::open(library.path, library.version).map_err(toolchain)?;
    let access = FileAccess { read: include_dirs.to_vec(), ..FileAccess::default() };
    confine(request, access, ChildKind::Compiler, sandbox)?;
    loaded.bind().map_err(toolchain)
}

/// Checks that version and architecture are those that the parent expects.
fn check(nvrtc: &Nvrtc, work: &NvrtcWork) -> Result<(), Outcome> {
    let toolchain = |e: NvrtcError| Outcome::Toolchain { what: e.to_string() };
    let version = nvrtc.version().map_err(toolchain)?;
    if version != work.version {
        let what = format!(
            "{} was found as NVRTC {}.{} and loads as {}.{}; another library of that name \
             is loaded in its place",
            work.library.display(),
            work.version.0,
            work.version.1,
            version.0,
            version.1
        );
        return Err(Outcome::Toolchain { what });
    }
    let supported = nvrtc.supported_archs().map_err(toolchain)?;
    if !supported.contains(&work.arch.number) {
        return Err(Outcome::UnsupportedArch { supported });
    }
    Ok(())
}

fn run(nvrtc: &Nvrtc, work: &NvrtcWork) -> Outcome {
    // Line information names the source relative to the working directory. That directory is
    // private and changes between compilations, so the image must not depend on it.
    if work.lineinfo
        && let Err(error) = std::env::set_current_dir("/")
    {
        return Outcome::Failed { what: format!("cannot leave the job's directory: {error}") };
    }
    let mut options = work.options.clone();
    options.extend(work.include_dirs.iter().map(|dir| format!("-I{}", dir.display())));
    let attempts = Attempts {
        source: &work.source,
        name_expressions: &work.name_expressions,
        fields: &work.fields,
    };
    let mut compile = |source: &str, headers: &[(&str, &str)], names: &[String]| {
        nvrtc.compile(&NvrtcJob {
            source,
            file_name: crate::prelude::SOURCE_NAME,
            headers,
            options: &options,
            name_expressions: names,
            cubin: work.arch.machine_code,
        })
    };
    match attempts.run(&mut compile) {
        Ok(Finished::Built(built)) => Outcome::Built(built),
        Ok(Finished::Rejected { code, log, diagnostics }) => {
            Outcome::Rejected { code, log, diagnostics }
        }
        Err(AttemptError::Library(NvrtcError::Nul { what })) => Outcome::Rejected {
            code: FailureCode::CompilationFailed,
            log: format!("{what} contains a NUL byte"),
            diagnostics: Vec::new(),
        },
        Err(e) => Outcome::Failed { what: e.to_string() },
    }
}

/// Returns the version and the architectures of a library.
pub(super) fn describe(
    request: &ChildRequest,
    library: Library<'_>,
    sandbox: &mut Option<Enforcement>,
) -> Outcome {
    let toolchain = |e: NvrtcError| Outcome::Toolchain { what: e.to_string() };
    let look = |nvrtc: Nvrtc| Ok((nvrtc.version()?, nvrtc.supported_archs()?));
    match open(request, library, &[], sandbox).map(|nvrtc| look(nvrtc).map_err(toolchain)) {
        Ok(Ok((version, archs))) => Outcome::Description { version, archs },
        Ok(Err(outcome)) | Err(outcome) => outcome,
    }
}

/// Makes NVRTC 13.3 or later unpack its bundled headers, by a first compilation with them.
pub(super) fn unpack_headers(
    request: &ChildRequest,
    library: Library<'_>,
    sandbox: &mut Option<Enforcement>,
) -> Outcome {
    let nvrtc = match open(request, library, &[], sandbox) {
        Ok(nvrtc) => nvrtc,
        Err(outcome) => return outcome,
    };
    let directory = request.job_dir.join("include");
    let job = NvrtcJob {
        source: "#include <cuda_fp16.h>\n__global__ void k() {}\n",
        file_name: "headers.cu",
        headers: &[],
        options: &[format!("--use-bundled-headers={}", directory.display())],
        name_expressions: &[],
        cubin: false,
    };
    match nvrtc.compile(&job) {
        Ok(outcome) if outcome.built.is_ok() && directory.join("cuda_fp16.h").is_file() => {
            Outcome::HeadersUnpacked
        }
        Ok(outcome) => Outcome::Toolchain {
            what: format!("NVRTC did not unpack its headers: {}", outcome.log.trim()),
        },
        Err(e) => Outcome::Failed { what: e.to_string() },
    }
}
