//! The compile child: a process for one compilation, with access only to what the compilation
//! needs.
//!
//! It reads one request from the socket that is its standard input, confines itself, compiles, and
//! writes one reply. The parent kills it at its deadline. For Triton the first request only
//! describes the preparation, and a second frame contains the kernel. Such a child can be started
//! before its kernel is known.

mod attempt;
mod build;
mod disassemble;
mod nvcc;
mod nvrtc;
mod triton;

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;

use rustix::process::DumpableBehavior;

use super::limits::{ADDRESS_SPACE, FILE_SIZE};
use super::protocol::{
    ChildReply, ChildRequest, FrameError, Outcome, PROTOCOL_VERSION, Work, frame, read_frame,
};
use warpgauge_model::FailureCode;
use warpgauge_sandbox::calls::{self, ChildKind};
use warpgauge_sandbox::enforcement::{self, Enforcement, FileAccess, ResourceLimits, SandboxError};
use warpgauge_sandbox::own_root::{self, Processes};

pub(crate) use triton::SOURCE as TRITON_SOURCE;

/// Maximum number of open files of a compilation.
const OPEN_FILES: u64 = 256;

/// Runs the child; the program calls this for its hidden subcommand `__compile`.
pub fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("compile child: {e}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> io::Result<()> {
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let request: ChildRequest = read_frame(&socket)?;
    let mut sandbox = None;
    let result = match &request.work {
        Work::Triton(work) if request.protocol == PROTOCOL_VERSION => {
            let ready = triton::Ready::new(&request, work, &mut sandbox);
            // The parent may end while this child waits for a kernel. The read then fails.
            let task = ready.task(&socket)?;
            end_with_parent(socket.try_clone()?)?;
            catch_unwind(AssertUnwindSafe(|| ready.compile(&task)))
        }
        _ => {
            end_with_parent(socket.try_clone()?)?;
            catch_unwind(AssertUnwindSafe(|| answer(&request, &mut sandbox)))
        }
    };
    let result = result.unwrap_or_else(|panic| Outcome::Failed {
        what: format!("the compile child panicked: {}", panic_text(&*panic)),
    });
    let frame = match frame(&ChildReply { sandbox: sandbox.clone(), result }) {
        Err(error @ FrameError::TooLong { .. }) => {
            let result = Outcome::Rejected {
                code: FailureCode::CompilerOutputTooLarge,
                log: error.to_string(),
                diagnostics: Vec::new(),
            };
            frame(&ChildReply { sandbox, result }).map_err(io::Error::other)?
        }
        other => other.map_err(io::Error::other)?,
    };
    (&socket).write_all(&frame)
}

/// Ends this process and its children when the parent closes its end of the socket or ends.
fn end_with_parent(socket: UnixStream) -> io::Result<()> {
    let wait = move || {
        let mut socket = socket;
        // The parent sends no further data that matters, so this loop ends when the parent is gone.
        while socket.read(&mut [0; 1]).is_ok_and(|read| read > 0) {}
        let own = rustix::process::getpid();
        if rustix::process::getpgrp() == own {
            let _ = rustix::process::kill_process_group(own, rustix::process::Signal::KILL);
        }
        std::process::exit(1);
    };
    std::thread::Builder::new().name("parent-watch".into()).spawn(wait)?;
    Ok(())
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

fn answer(request: &ChildRequest, sandbox: &mut Option<Enforcement>) -> Outcome {
    if request.protocol != PROTOCOL_VERSION {
        let what = format!(
            "the program on disk speaks version {PROTOCOL_VERSION} of the compile protocol, the \
             running server version {}; restart the server",
            request.protocol
        );
        return Outcome::Failed { what };
    }
    match &request.work {
        Work::Nvrtc(work) => nvrtc::compile(request, work, sandbox),
        Work::Nvcc(work) => nvcc::compile(request, work, sandbox),
        // A Triton request has two frames, and the version determines the second.
        Work::Triton(_) => Outcome::Failed { what: "there is no kernel to compile".into() },
        Work::Build(work) => build::build(request, work, sandbox),
        Work::Disassemble(work) => disassemble::list(request, work, sandbox),
        Work::UnpackHeaders { library, version } => {
            let library = nvrtc::Library { path: library, version: *version };
            nvrtc::unpack_headers(request, library, sandbox)
        }
        Work::Describe { library, version } => {
            let library = nvrtc::Library { path: library, version: *version };
            nvrtc::describe(request, library, sandbox)
        }
    }
}

/// Writes files by their relative paths, and creates the directories.
fn write_files(directory: &Path, files: &[(String, String)]) -> io::Result<()> {
    for (name, text) in files {
        let path = directory.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)?;
    }
    Ok(())
}

/// Restricts this process to the resources that the compilation needs.
fn confine(
    request: &ChildRequest,
    mut access: FileAccess,
    kind: ChildKind,
    sandbox: &mut Option<Enforcement>,
) -> Result<(), Outcome> {
    let apply = |access: &FileAccess| -> Result<Enforcement, SandboxError> {
        enforcement::limit_resources(&ResourceLimits {
            address_space: ADDRESS_SPACE,
            cpu_seconds: request.cpu_seconds,
            file_size: FILE_SIZE,
            open_files: OPEN_FILES,
        })?;
        let files = own_root::confine(access, Processes::All)?;
        // Without this, processes that the child starts could find its directory and program
        // through `/proc`, and read its memory.
        let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
        Ok(files.and(calls::allow_only(kind)))
    };
    access.write.push(request.job_dir.clone());
    match apply(&access) {
        Ok(enforcement) => {
            *sandbox = Some(enforcement);
            Ok(())
        }
        Err(error) => {
            Err(Outcome::Failed { what: format!("cannot confine the compiler: {}", error.whole()) })
        }
    }
}
