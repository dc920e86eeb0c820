//! The evaluation of a program, from contract to report.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::launched;
use super::tools::{self, Seen};
use super::verdict::{self, judged};
use crate::backend::{Contest, Evaluator, KernelBackend, Opened, Purpose};
use crate::clock::ms;
use crate::error::{self, ExecError, internal};
use crate::host::{Host, need};
use crate::kept;
use crate::prepare::time_for;
use crate::progress::ActiveOrder;
use crate::reporting::{Additions, assemble, finished};
use crate::start;
use crate::whole_program::{NotRun, ProgramDevice, ProgramEnd, WholeProgram};
use warpgauge_compile::{BuildOutput, CompileError, CompileFailure, ProgramOrder};
use warpgauge_contract::{Checked, EvaluateRequest, KernelType};
use warpgauge_device::loader::find_emulator;
use warpgauge_model::{DeviceInfo, DeviceKind, JobStage};
use warpgauge_report::{
    CompileReport, EvaluateResponse, PrintedText, ProgramReport, TimelineReport, Timings,
    ToolReport,
};
use warpgauge_sandbox::contained::CapturedText;
use warpgauge_sandbox::program::ChildProgram;

/// Maximum length of a program's output in a report, in bytes. The two limits apply to the
/// beginning and to the end.
const SHOWN_FIRST: usize = 48 << 10;
const SHOWN_LAST: usize = 16 << 10;

/// A built program, and the directory for files of its runs.
pub(super) struct Ready<'a> {
    pub request: &'a EvaluateRequest,
    pub device: &'a DeviceInfo,
    object: PathBuf,
    libraries: Vec<PathBuf>,
    server: PathBuf,
    /// Library that implements the emulated device, if the device is emulated.
    pub emulator: Option<PathBuf>,
    directory: &'a Path,
}

impl Ready<'_> {
    /// Returns the program for one run, whose files are in a new directory `name`.
    pub(super) fn for_run(&self, name: &str) -> Result<WholeProgram, ExecError> {
        let directory = self.directory.join(name);
        std::fs::create_dir(&directory)
            .map_err(|error| internal("making a directory for a program", &error))?;
        let metadata = self.request.kernel.metadata.as_ref();
        let stdin = metadata.and_then(|metadata| metadata.stdin.clone()).unwrap_or_default();
        Ok(WholeProgram {
            server: self.server.clone(),
            object: self.object.clone(),
            arguments: self.request.kernel.arguments().to_vec(),
            stdin: stdin.into_bytes(),
            device: match &self.emulator {
                Some(library) => ProgramDevice::Emulated(library.clone()),
                None => ProgramDevice::Gpu(self.device.uuid.clone()),
            },
            libraries: self.libraries.clone(),
            directory,
        })
    }

    /// Prepares the program for one run under a tool. Also returns the command that the tool
    /// starts.
    pub(super) fn under_tool(&self, name: &str) -> Result<(WholeProgram, ChildProgram), ExecError> {
        let program = self.for_run(name)?;
        let command = program.prepare().and_then(|()| program.command(Some(&program.directory)));
        let command = command.map_err(|why| not_run(&why))?;
        Ok((program, command))
    }
}

/// Builds whole programs and runs them in separate processes.
pub(crate) struct ProgramBackend {
    host: Arc<Host>,
}

impl KernelBackend for ProgramBackend {
    fn tools(&self, host: &Host) -> Vec<ToolReport> {
        let nvcc = host.compiler.toolchain().nvcc.as_ref();
        let lacking = host.compiler.lacks_for_programs();
        vec![ToolReport {
            name: KernelType::Program.name().to_owned(),
            available: lacking.is_none(),
            path: nvcc.map(|nvcc| nvcc.path.display().to_string()),
            version: nvcc.map(|nvcc| nvcc.version.clone()),
            remedy: lacking.as_ref().map(|(_, remedy)| remedy.clone()),
            reason: lacking.map(|(reason, _)| reason),
        }]
    }

    fn evaluate<'a>(
        &'a self,
        _evaluator: &'a dyn Evaluator,
        job: &'a ActiveOrder<'_>,
        request: Checked<EvaluateRequest>,
        purpose: Purpose,
    ) -> BoxFuture<'a, Result<EvaluateResponse, ExecError>> {
        self.evaluate_program(job, request.into_inner(), purpose).boxed()
    }

    fn compare<'a>(&'a self, _job: &'a ActiveOrder<'a>, contest: Contest) -> Opened<'a> {
        futures_util::future::ready(Err(contest.refused())).boxed()
    }
}

impl ProgramBackend {
    pub(crate) fn new(host: &Arc<Host>) -> Self {
        Self { host: Arc::clone(host) }
    }

    /// Evaluates a whole program and returns its report.
    async fn evaluate_program(
        &self,
        job: &ActiveOrder<'_>,
        request: EvaluateRequest,
        purpose: Purpose,
    ) -> Result<EvaluateResponse, ExecError> {
        let arrived = Instant::now();
        let device = self.host.device_for(&request.requires)?;
        let emulator = self.emulator_of(&device)?;
        job.stage(JobStage::Compiling);
        let compiling = Instant::now();
        let built = self.build_program(job, &request, &device, emulator.as_deref()).await?;
        let mut timings = Timings { compile: ms(compiling), ..Timings::default() };
        let log = match &built {
            Ok(built) => built.log.clone(),
            Err(failure) => failure.log.clone(),
        };
        job.keep(kept::program(&request.kernel, device.target, log));
        let built = match built {
            Ok(built) => built,
            Err(failure) => {
                let report = assemble::not_compiled(job.id(), &request, &device, &failure, timings);
                return Ok(finished(report, request.allow_weak, ms(arrived), Additions::default()));
            }
        };
        job.stage(JobStage::Preparing);
        let directory = self.host.scratch.directory()?;
        let object = directory.path().join("object");
        tokio::fs::write(&object, &built.object)
            .await
            .map_err(|error| internal("writing a program", &error))?;
        job.stage(JobStage::WaitingForDevice);
        let queued = Instant::now();
        let mut lease = self.host.quiet_lease(&need(job, &device, &request.requires)).await?;
        timings.queue = ms(queued);
        // The leased device may differ from this one, but is of the same kind.
        let leased = lease.device().clone();
        let nvcc = self.host.compiler.toolchain().nvcc.as_ref();
        let ready = Ready {
            request: &request,
            device: &leased,
            object,
            libraries: nvcc.map(|nvcc| nvcc.root().to_owned()).into_iter().collect(),
            server: start::program()?,
            emulator,
            directory: directory.path(),
        };
        job.stage(JobStage::Running);
        let running = Instant::now();
        let limit = Duration::from_secs_f64(request.timeout);
        let ended = ready.for_run("run")?.run(limit).await.map_err(|why| not_run(&why))?;
        timings.execute = ms(running);
        let verdict = judged(&request, &ended);
        let mut seen = Seen::default();
        if purpose != Purpose::Execute {
            job.stage(JobStage::Profiling);
            let profiling = Instant::now();
            seen =
                tools::look_into(&self.host, &ready, &mut lease, verdict.failure.is_some()).await?;
            timings.profile = ms(profiling);
            job.keep_files(&seen.artifacts);
        }
        drop(lease);
        let compile = compiled(&built, nvcc.map(|nvcc| nvcc.version.as_str()));
        let mut report = assemble::empty(job.id(), &request, &leased, timings);
        report.compile = Some(compile);
        report.kernel_exec_result.compiled = true;
        report.kernel_exec_result.correctness = verdict.correctness;
        let why = verdict.validation.reasons.first().map(|reason| reason.message.clone());
        report.kernel_exec_result.validation_error = why;
        report.validation = verdict.validation;
        report.failure = verdict.failure;
        report.program = Some(told(&ended, seen.timeline.as_ref()));
        report.timeline = seen.timeline;
        report.profile = seen.profile;
        report.kernel_exec_result.metadata.device_metrics = seen.device_metrics;
        Ok(finished(report, request.allow_weak, ms(arrived), Additions::default()))
    }

    /// Returns the path of the emulator's library if the device is emulated.
    fn emulator_of(&self, device: &DeviceInfo) -> Result<Option<PathBuf>, ExecError> {
        if device.kind != DeviceKind::Emulator {
            return Ok(None);
        }
        let given = Some(&self.host.config.devices.emulator).filter(|path| !path.is_empty());
        let found = find_emulator(given.map(Path::new)).ok_or_else(|| {
            ExecError::Unavailable(
                "the emulator's library is missing; install warpgauge again".to_owned(),
            )
        })?;
        Ok(Some(found))
    }

    async fn build_program(
        &self,
        job: &ActiveOrder<'_>,
        request: &EvaluateRequest,
        device: &DeviceInfo,
        emulator: Option<&Path>,
    ) -> Result<Result<BuildOutput, Box<CompileFailure>>, ExecError> {
        let order = ProgramOrder { kernel: &request.kernel, target: device.target, emulator };
        let limit = time_for(request.timeout).unwrap_or(Duration::MAX);
        match self.host.compiler.build_program(&order, limit, job.owner()).await {
            Ok(built) => Ok(Ok(built)),
            Err(CompileError::Rejected(failure)) => Ok(Err(explained(failure, emulator.is_some()))),
            Err(error) => Err(error::from_compile(error)),
        }
    }
}

/// Adds an explanation to a link error on the emulated device, whose runtime does not provide all
/// functions of CUDA.
fn explained(mut failure: Box<CompileFailure>, emulated: bool) -> Box<CompileFailure> {
    if emulated && failure.message.contains("undefined reference to `cu") {
        failure.message.push_str(
            "; the emulated device does not provide all of CUDA's runtime: run the program on a GPU, or avoid this function",
        );
    }
    failure
}

fn not_run(why: &NotRun) -> ExecError {
    internal("running a program", why)
}

fn compiled(built: &BuildOutput, nvcc: Option<&str>) -> CompileReport {
    CompileReport {
        compiler: format!("nvcc {}", nvcc.unwrap_or("of unknown version")),
        options: assemble::shown_options(&built.options),
        cache_hit: built.cached,
        key: built.key.clone(),
        log: built.log.clone(),
        ..CompileReport::default()
    }
}

fn told(ended: &ProgramEnd, timeline: Option<&TimelineReport>) -> ProgramReport {
    let (kernels, messages) = match (&ended.counted, timeline) {
        (Some(counted), _) => launched::counted(counted),
        (None, Some(timeline)) => (launched::of_timeline(timeline), Vec::new()),
        (None, None) => Default::default(),
    };
    ProgramReport {
        exit_code: ended.status.and_then(|status| status.code()),
        signal: verdict::signal(ended),
        stdout: shown(&ended.stdout),
        stderr: shown(&ended.stderr),
        wall_ms: ended.wall.as_secs_f64() * 1e3,
        kernels,
        messages,
        confinement: ended.confinement.to_string(),
    }
}

/// Returns the beginning and the end of a program's output.
fn shown(printed: &CapturedText) -> PrintedText {
    let text = &printed.text;
    if text.len() <= SHOWN_FIRST + SHOWN_LAST {
        return PrintedText { text: text.clone(), left_out_bytes: printed.left_out };
    }
    let boundary = |at: &usize| text.is_char_boundary(*at);
    let first = (0..=SHOWN_FIRST).rev().find(boundary).unwrap_or(0);
    let last = (text.len() - SHOWN_LAST..text.len()).find(boundary).unwrap_or(text.len());
    let left_out = (last - first) as u64;
    PrintedText {
        text: format!("{}\n[{left_out} bytes left out]\n{}", &text[..first], &text[last..]),
        left_out_bytes: printed.left_out + left_out,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_keep_their_beginning_and_their_end() {
        let captured = |text: String, left_out| CapturedText { text, left_out };
        let short = shown(&captured("ä".to_owned(), 0));
        assert_eq!((short.text.as_str(), short.left_out_bytes), ("ä", 0));
        let long = shown(&captured(format!("a{}z", "ä".repeat(100_000)), 7));
        assert!(long.text.starts_with("aä") && long.text.ends_with("äz"));
        assert!(long.text.len() < SHOWN_FIRST + SHOWN_LAST + 100);
        assert!(long.left_out_bytes > 100_000, "{}", long.left_out_bytes);
    }
}
