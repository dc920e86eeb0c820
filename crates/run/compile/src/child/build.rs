//! Runs compilers for files that a Python process loads, inside the child. The parent determines
//! the commands; the sources are submitted.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::nvcc::{SYSTEM, no_room};
use super::{confine, write_files};
use crate::diagnostics::{self, MAX_LOG_BYTES};
use crate::protocol::{
    BuildStep, BuildWork, BuiltObject, ChildRequest, MAX_OBJECT_BYTES, Outcome, without_directory,
};
use crate::ptxas;
use warpgauge_model::{FailureCode, Severity};
use warpgauge_sandbox::calls::ChildKind;
use warpgauge_sandbox::enforcement::{Enforcement, FileAccess};
use warpgauge_sandbox::program::{ChildProgram, Environment};

/// Runs the request's commands.
pub(super) fn build(
    request: &ChildRequest,
    work: &BuildWork,
    sandbox: &mut Option<Enforcement>,
) -> Outcome {
    let system = SYSTEM.iter().map(PathBuf::from).filter(|path| path.exists());
    let programs = work.stages.iter().flatten().map(|step| step.program.clone());
    let programs = programs.filter(|path| path.exists());
    let access = FileAccess {
        read: work.read.clone(),
        execute: system.chain(work.execute.iter().cloned()).chain(programs).collect(),
        write: vec!["/dev/null".into()],
        ..FileAccess::default()
    };
    match confine(request, access, ChildKind::Compilers, sandbox) {
        Ok(()) => run(&request.job_dir, work).unwrap_or_else(|error| Outcome::Failed {
            what: format!("cannot run a compiler: {error}"),
        }),
        Err(outcome) => outcome,
    }
}

fn run(job_dir: &Path, work: &BuildWork) -> io::Result<Outcome> {
    let started = Instant::now();
    write_files(job_dir, &work.files)?;
    let (mut ways, mut log) = (Vec::new(), String::new());
    for stage in &work.stages {
        let ended: Vec<io::Result<Ended>> = std::thread::scope(|scope| {
            let steps = stage.iter().map(|step| scope.spawn(|| taken(job_dir, work, step)));
            let steps: Vec<_> = steps.collect();
            steps.into_iter().map(|step| step.join().unwrap_or_else(|_| panicked())).collect()
        });
        let mut failed = None;
        for ended in ended {
            let Ended { way, code, log: said } = ended?;
            ways.extend(way);
            log.push_str(&said);
            failed = failed.or(code);
        }
        if let Some(code) = failed {
            let log = diagnostics::bound_log(log);
            if let Some(what) = no_room(job_dir, &log) {
                return Ok(Outcome::Toolchain { what });
            }
            let diagnostics = diagnostics::parse(&log);
            return Ok(Outcome::Rejected { code, log, diagnostics });
        }
    }
    let path = job_dir.join(&work.output);
    let size = fs::metadata(&path)?.len();
    if size > MAX_OBJECT_BYTES {
        let log = format!("it has {size} bytes; at most {MAX_OBJECT_BYTES} are accepted");
        let code = FailureCode::CompilerOutputTooLarge;
        return Ok(Outcome::Rejected { code, log, diagnostics: Vec::new() });
    }
    Ok(Outcome::Object(Box::new(BuiltObject {
        object: fs::read(path)?,
        ways,
        log: diagnostics::bound_log(log),
        compiler_ms: started.elapsed().as_secs_f64() * 1e3,
    })))
}

fn panicked() -> io::Result<Ended> {
    Err(io::Error::other("a thread that waits for a compiler panicked"))
}

/// How a step of a build ended.
struct Ended {
    /// Name of the alternative that succeeded. `None` if none did.
    way: Option<String>,
    /// The error code, if the step failed.
    code: Option<FailureCode>,
    log: String,
}

/// Tries the alternative arguments of a step in order, until one succeeds.
fn taken(job_dir: &Path, work: &BuildWork, step: &BuildStep) -> io::Result<Ended> {
    let mut ended = Ended { way: None, code: None, log: String::new() };
    for (at, way) in step.ways.iter().enumerate() {
        let log_path = job_dir.join(format!("{}~.log", step.name));
        // The log is a file rather than a pipe: its size is limited, and no thread must drain it.
        let log = File::create(&log_path)?;
        let program = ChildProgram::new(&step.program, Environment::Empty)
            .args(&way.arguments)
            .variable("PATH", "/usr/local/bin:/usr/bin:/bin")
            .within(job_dir);
        let status = program.to_blocking().stdout(log.try_clone()?).stderr(log).status();
        let status = status.map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", step.program.display()))
        })?;
        let mut text = Vec::new();
        File::open(&log_path)?.take(4 * MAX_LOG_BYTES as u64).read_to_end(&mut text)?;
        let text = ptxas::without_usage(&String::from_utf8_lossy(&text));
        let text = without_places(text, job_dir, work);
        if status.success() {
            let way = (!way.name.is_empty()).then(|| way.name.clone());
            let log = if text.is_empty() { text } else { text + "\n" };
            return Ok(Ended { way, code: None, log });
        }
        // A signal means that a resource limit or a crash ended the compiler.
        ended.code = Some(match status.signal() {
            Some(_) => FailureCode::CompilerFailed,
            None => FailureCode::CompilationFailed,
        });
        let silent = text.trim().is_empty();
        ended.log =
            if silent { format!("{} ended with {status}\n", step.name) } else { text + "\n" };
        if at + 1 < step.ways.len() && is_the_sources_own(&ended.log) {
            break;
        }
    }
    Ok(ended)
}

/// Returns a compiler's output with relative file names, so that it does not reveal the locations
/// of packages and of the job's directory.
fn without_places(mut text: String, job_dir: &Path, work: &BuildWork) -> String {
    for directory in [job_dir].into_iter().chain(work.read.iter().map(PathBuf::as_path)) {
        text = text.replace(&format!("{}/", directory.display()), "");
    }
    without_directory(&text)
}

/// Returns whether the source would fail with any headers. This is the case if its first error is a
/// syntax error, an included file is missing, or the assembler rejects its code.
fn is_the_sources_own(log: &str) -> bool {
    let no_file = ["No such file or directory", "Permission denied"];
    let no_header = log.contains("fatal error: ") && no_file.iter().any(|why| log.contains(why));
    if no_header || log.contains("Assembler messages:") {
        return true;
    }
    let errors = diagnostics::parse(log);
    let first = errors.iter().find(|found| found.severity == Severity::Error);
    first.is_some_and(|error| error.message.starts_with("expected "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::BuildWay;

    fn shell(name: &str, scripts: &[&str]) -> BuildStep {
        let way = |(at, script): (usize, &&str)| BuildWay {
            name: format!("way {at}"),
            arguments: vec!["-c".into(), (*script).into()],
        };
        let ways = scripts.iter().enumerate().map(way).collect();
        BuildStep { name: name.into(), program: "/bin/sh".into(), ways }
    }

    fn ran(stages: Vec<Vec<BuildStep>>) -> Outcome {
        let directory = tempfile::tempdir().unwrap();
        let files = vec![("in/text".to_owned(), "hello".to_owned())];
        let (read, execute) = (Vec::new(), Vec::new());
        let work = BuildWork { read, execute, files, stages, output: "out".into() };
        run(directory.path(), &work).unwrap()
    }

    #[test]
    fn steps_of_a_stage_run_side_by_side_and_ways_one_after_the_other() {
        // Each step waits for the other: one after another they would not end.
        let wait = |own: &str, other: &str| {
            format!("mkfifo {own}; until [ -p {other} ]; do :; done; echo {own} said")
        };
        let side =
            [shell("a", &[&wait("a", "b")]), shell("b", &["echo no; exit 1", &wait("b", "a")])];
        let last = shell("c", &["cp in/text out"]);
        let Outcome::Object(built) = ran(vec![side.into(), vec![last]]) else { panic!("built") };
        assert_eq!(built.object, b"hello");
        assert_eq!(built.ways, ["way 0", "way 1", "way 0"]);
        assert_eq!(built.log, "a said\nb said\n");
    }

    #[test]
    fn what_is_wrong_is_told_and_syntax_is_not_tried_again() {
        let first = "echo \"m.cpp:1:2: error: expected ';' before x\"; exit 1";
        let step = shell("a", &[first, "echo again; exit 1"]);
        let Outcome::Rejected { code, log, diagnostics } = ran(vec![vec![step]]) else {
            panic!("rejected")
        };
        assert_eq!(code, FailureCode::CompilationFailed);
        assert!(log.starts_with("m.cpp:1:2") && !log.contains("again"), "{log}");
        assert_eq!(diagnostics[0].line, Some(1));
        let step = shell("a", &["echo \"m.cpp:1:2: error: no x\"; exit 1", "kill -9 $$"]);
        let Outcome::Rejected { code, log, .. } = ran(vec![vec![step]]) else { panic!("rejected") };
        assert_eq!(code, FailureCode::CompilerFailed);
        assert!(log.starts_with("a ended with signal: 9"), "{log}");
    }
}
