//! Compiles with Triton, inside the child.
//!
//! A kernel is the body of a Python module, which is submitted code. It runs in an interpreter that
//! was confined from its start and has imported Triton before it receives the kernel. Then the
//! interpreter blocks all system calls that a computation does not need. It returns PTX. The
//! assembler is a separate process, which this module starts.

mod interpreter;
mod ptxas;

use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Instant;

use super::confine;
use super::nvcc::SYSTEM;
use crate::diagnostics::bound_log;
use crate::protocol::{ChildRequest, Outcome, TritonTask, TritonWork, read_frame};
use crate::protocol::{TritonAnswer, TritonBuilt};
pub(crate) use interpreter::SOURCE;
use interpreter::{Ended, Interpreter};
use warpgauge_model::FailureCode;
use warpgauge_sandbox::calls::ChildKind;
use warpgauge_sandbox::enforcement::{Enforcement, FileAccess};

/// System paths that an interpreter may read in addition to its own files. Those that do not exist
/// are skipped.
const READ: [&str; 3] = ["/dev/urandom", "/dev/null", "/proc/cpuinfo"];

/// An interpreter that waits for a kernel, or the error that occurred when it was started.
pub(super) struct Ready<'a> {
    request: &'a ChildRequest,
    work: &'a TritonWork,
    interpreter: Result<Interpreter, Outcome>,
}

impl<'a> Ready<'a> {
    /// Confines this process and starts the interpreter.
    pub(super) fn new(
        request: &'a ChildRequest,
        work: &'a TritonWork,
        sandbox: &mut Option<Enforcement>,
    ) -> Self {
        let system = SYSTEM.iter().map(PathBuf::from).filter(|path| path.exists());
        let own = work.roots.iter().chain([&work.python, &work.site_packages]).cloned();
        let access = FileAccess {
            read: READ.iter().map(PathBuf::from).filter(|path| path.exists()).collect(),
            execute: system.chain(own).collect(),
            write: vec!["/dev/null".into()],
            ..FileAccess::default()
        };
        let interpreter = confine(request, access, ChildKind::Compilers, sandbox)
            .and_then(|()| Interpreter::start(work).map_err(not_started(work)));
        Self { request, work, interpreter }
    }

    /// Waits for the parent to send the kernel.
    pub(super) fn task(&self, socket: &UnixStream) -> io::Result<TritonTask> {
        read_frame(socket)
    }

    pub(super) fn compile(self, task: &TritonTask) -> Outcome {
        let began = Instant::now();
        let interpreter = match self.interpreter {
            Ok(interpreter) => interpreter,
            Err(outcome) => return outcome,
        };
        let answered = match interpreter.ask(&task.question) {
            Ok(answered) => answered,
            Err(ended) => return of_end(&ended, self.work),
        };
        let mut answer = match serde_json::from_slice::<TritonAnswer>(&answered.message) {
            Ok(answer) => answer,
            // Submitted code may write anything to its end of the socket.
            Err(error) => {
                return rejected(
                    FailureCode::CompilerFailed,
                    format!("the result of the compilation cannot be read: {error}"),
                );
            }
        };
        match &mut answer {
            TritonAnswer::Built(built) => {
                built.log = answered.printed;
                if self.work.machine_code {
                    let (directory, arch) = (&self.request.job_dir, self.work.arch);
                    let assembled = ptxas::assemble(directory, &answered.ptxas, arch, built);
                    if let Err(outcome) = assembled {
                        return outcome;
                    }
                }
                built.compiler_ms = began.elapsed().as_secs_f64() * 1e3;
            }
            TritonAnswer::Refused(refused) => {
                if !answered.printed.is_empty() {
                    refused.log = bound_log(format!("{}{}", answered.printed, refused.log));
                }
            }
            TritonAnswer::Tunable(_) => {}
        }
        Outcome::Triton(Box::new(answer))
    }
}

fn not_started(work: &TritonWork) -> impl Fn(io::Error) -> Outcome + '_ {
    |error| Outcome::Toolchain {
        what: format!("cannot start the Python interpreter {}: {error}", work.python.display()),
    }
}

fn rejected(code: FailureCode, log: String) -> Outcome {
    Outcome::Rejected { code, log, diagnostics: Vec::new() }
}

/// Returns the outcome for an interpreter that ended without an answer.
fn of_end(ended: &Ended, work: &TritonWork) -> Outcome {
    let printed = ended.printed.trim();
    if !ended.was_ready {
        return Outcome::Toolchain {
            what: format!(
                "the Python interpreter {} cannot compile with Triton ({}): {}",
                work.python.display(),
                ended.how,
                printed.lines().last().unwrap_or("it printed nothing")
            ),
        };
    }
    let code = match ended.signal {
        Some(libc_signal::XCPU | libc_signal::KILL) => FailureCode::CompilerCpuLimit,
        Some(_) => FailureCode::CompilerCrashed,
        None => FailureCode::CompilerFailed,
    };
    let what = format!(
        "Python ended without an answer while it compiled this source ({}), which happens if the \
         source ends it, uses more memory than allowed, or triggers a fault of the compiler",
        ended.how
    );
    rejected(code, bound_log(format!("{what}\n{printed}")))
}

/// Numbers of signals on Linux (`signal(7)`).
mod libc_signal {
    pub(super) const KILL: i32 = 9;
    pub(super) const XCPU: i32 = 24;
}

/// Returns the PTX of a result, or `None` if the result contains no PTX.
fn ptx_of(built: &TritonBuilt) -> Option<&str> {
    built.texts.get("ptx").map(String::as_str)
}
