//! Queries a Python interpreter, and evaluates its answer.
//!
//! The interpreter is queried once, isolated from the working directory, the user's packages and
//! `PYTHON*` variables. It imports no package, because importing Triton maps 400 MB. The configured
//! file may be any program, so it has a deadline, and its output is limited.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::super::types::PartOrigin;
use super::find::TRITON_VERSIONS;
use super::types::{INSTALL, NoTriton, NoTritonCode, Package, TRITON, TritonInstall, programs};
use warpgauge_sandbox::contained::{self, ProcessEnd, ProcessLaunch};
use warpgauge_sandbox::program::{ChildProgram, Environment};

/// The script that the interpreter runs.
const SCRIPT: &str = include_str!("ask.py");

/// Time limit for an answer. An answer usually takes 30 ms, but several seconds from a slow network
/// disk.
const DEADLINE: Duration = Duration::from_secs(10);

/// Maximum length of an answer, bytes.
const MAX_ANSWER_BYTES: usize = 64 << 10;

/// Maximum size of a file that the interpreter writes, bytes. Shell scripts that start interpreters
/// keep their input in files.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Number of characters of an interpreter's output that an error quotes.
const MAX_QUOTE: usize = 200;

/// Names under which the package is published: the release, PyTorch's builds, nightly builds.
const DISTRIBUTIONS: [&str; 3] = ["triton-", "pytorch_triton-", "triton_nightly-"];

/// Facts that an interpreter reports about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) struct Answer {
    executable: PathBuf,
    pub(in super::super) version: String,
    /// Executable of the Python that a virtual environment is based on.
    base_executable: Option<PathBuf>,
    base_prefix: PathBuf,
    /// Path of Triton's `__init__.py`. `None` if the interpreter cannot import Triton.
    package: Option<PathBuf>,
    /// Path of PyTorch's `__init__.py`. `None` if the interpreter cannot import PyTorch.
    #[serde(default)]
    pub(in super::super) torch: Option<PathBuf>,
    library: Vec<PathBuf>,
    mapped: Vec<PathBuf>,
}

impl Answer {
    /// Returns the interpreter that the virtual environment is based on, or this interpreter
    /// outside virtual environments.
    pub(in super::super) fn outside_of_environments(self) -> PathBuf {
        let base = self.base_executable.filter(|path| path.is_absolute() && path.is_file());
        base.unwrap_or(self.executable)
    }

    /// Returns the path of the interpreter that answered. If a script started it, this is not the
    /// given path.
    pub(in super::super) fn interpreter(&self, asked: &Path) -> PathBuf {
        if is_script(asked) { self.executable.clone() } else { asked.to_owned() }
    }

    /// Returns the answer with `origin` as the path of the package.
    pub(super) fn with_package(self, package: &Package, origin: PathBuf) -> Self {
        match package.name == TRITON.name {
            true => Self { package: Some(origin), ..self },
            false => Self { torch: Some(origin), ..self },
        }
    }
}

/// Queries an interpreter. If `first` is given, this directory comes first on its module search
/// path.
pub(in super::super) fn ask(python: &Path, first: Option<&Path>) -> Result<Answer, NoTriton> {
    ask_within(python, first, DEADLINE)
}

pub(super) fn ask_within(
    python: &Path,
    first: Option<&Path>,
    deadline: Duration,
) -> Result<Answer, NoTriton> {
    // A script that starts an interpreter (pyenv, conda) must find programs. The interpreter itself
    // gets the environment that it will have for compilations.
    let environment = if is_script(python) { Environment::Cuda } else { Environment::Empty };
    let program = ChildProgram::new(python, environment)
        .args(["-I", "-B", "-c", SCRIPT])
        .args(first.map(Path::as_os_str));
    let launch = ProcessLaunch {
        stdout_bytes: MAX_ANSWER_BYTES,
        file_bytes: MAX_FILE_BYTES,
        ..ProcessLaunch::new(program)
    };
    let end = run_blocking(&launch, deadline)
        .map_err(|error| NoTriton::interpreter(python, format!("cannot be started: {error}")))?;
    let fault = |what: String| {
        let said = quoted(&end);
        let said = if said.is_empty() { said } else { format!("; it said: {said}") };
        Err(NoTriton::interpreter(python, format!("{what}{said}")))
    };
    if end.status.is_none() {
        return fault(format!(
            "did not answer within {} s and was stopped",
            deadline.as_secs_f32()
        ));
    }
    if !end.succeeded() {
        return fault(format!("failed with {}", end.description()));
    }
    // Packages may print when the interpreter starts; the answer is the last line.
    let line = end.stdout.text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    match serde_json::from_str::<Answer>(line) {
        Ok(answer) if end.stdout.left_out == 0 && answer.executable.is_absolute() => Ok(answer),
        _ => fault("does not answer as Python 3 does".to_owned()),
    }
}

/// Runs a process to its end, for blocking callers. It uses a thread, since callers may belong to
/// an asynchronous runtime.
pub(in super::super) fn run_blocking(
    launch: &ProcessLaunch,
    deadline: Duration,
) -> io::Result<ProcessEnd> {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(contained::run(launch, deadline))
    };
    std::thread::scope(|scope| {
        let thread = scope.spawn(run);
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that asks panicked")))
    })
}

/// Returns the last part of a process's output as one line.
pub(in super::super) fn quoted(end: &ProcessEnd) -> String {
    let said = [&end.stderr.text, &end.stdout.text];
    let last = said.iter().find_map(|text| text.lines().rfind(|line| !line.trim().is_empty()));
    let visible = last.unwrap_or_default().trim().chars().filter(|c| !c.is_control());
    visible.take(MAX_QUOTE).collect()
}

/// Returns whether a program is a script rather than machine code.
pub(super) fn is_script(path: &Path) -> bool {
    let mut start = [0; 2];
    let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == *b"#!"
}

/// Returns the Triton that the answer of the interpreter `python` describes.
pub(in super::super) fn install(
    python: &Path,
    answer: &Answer,
    source: PartOrigin,
) -> Result<TritonInstall, NoTriton> {
    let Some(package) = &answer.package else {
        return Err(NoTriton::new(
            NoTritonCode::NotInstalled,
            format!("{} (Python {}) has no Triton", python.display(), answer.version),
            format!(
                "`{} -m pip install triton=={PINNED}` installs it there (packages in the user's home \
                 home do not count), or name another Python in compile.python (WARPGAUGE_PYTHON), \
                 or leave that empty: {INSTALL}",
                python.display()
            ),
        ));
    };
    let incomplete = |what: String| {
        let reason = format!("the Triton that {} imports is not usable: {what}", python.display());
        let again =
            format!("{} -m pip install --force-reinstall triton=={PINNED}", python.display());
        NoTriton::new(NoTritonCode::Incomplete, reason, format!("`{again}`, or {INSTALL}"))
    };
    let site_packages = package.parent().and_then(Path::parent).filter(|dir| dir.is_absolute());
    let site_packages =
        site_packages.ok_or_else(|| incomplete(format!("it is in {}", package.display())))?;
    let version = distribution(site_packages, &DISTRIBUTIONS).ok_or_else(|| {
        // Triton finds its backends through the metadata.
        incomplete(format!("there is no triton-….dist-info in {}", site_packages.display()))
    })?;
    supported(python, &version)?;
    let bin = programs(site_packages);
    let ptxas = bin.join("ptxas");
    if !ptxas.is_file() {
        return Err(incomplete(format!("there is no {}", ptxas.display())));
    }
    let python = answer.interpreter(python);
    Ok(TritonInstall {
        roots: roots(&python, answer),
        python,
        python_version: answer.version.clone(),
        site_packages: site_packages.to_owned(),
        version,
        ptxas,
        ptxas_blackwell: Some(bin.join("ptxas-blackwell")).filter(|path| path.is_file()),
        torch: site_packages.join("torch/__init__.py").is_file(),
        source,
    })
}

/// Returns the version in the name of a package's metadata directory. Returns `None` if no such
/// name begins with one of `names`.
pub(in super::super) fn distribution(site_packages: &Path, names: &[&str]) -> Option<String> {
    fs::read_dir(site_packages).ok()?.flatten().find_map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let rest = names.iter().find_map(|prefix| name.strip_prefix(prefix))?;
        rest.strip_suffix(".dist-info").map(str::to_owned)
    })
}

fn supported(python: &Path, version: &str) -> Result<(), NoTriton> {
    let mut parts = version.split(['.', '+']).map(|part| part.parse::<u32>().unwrap_or(0));
    let pair = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    let (oldest, newest) = TRITON_VERSIONS;
    if (oldest..=newest).contains(&pair) {
        return Ok(());
    }
    let range = format!("{}.{} to {}.{}", oldest.0, oldest.1, newest.0, newest.1);
    Err(NoTriton::new(
        NoTritonCode::UnsupportedVersion,
        format!("{} has Triton {version}; versions {range} are supported", python.display()),
        format!("`{} -m pip install triton=={PINNED}`, or {INSTALL}", python.display()),
    ))
}

/// Returns the paths that the interpreter needs, as few as possible. They are the interpreter, its
/// standard library, the shared libraries that it has loaded, and the file that marks a virtual
/// environment.
pub(in super::super) fn roots(python: &Path, answer: &Answer) -> Vec<PathBuf> {
    let mut wanted = vec![python.canonicalize().unwrap_or_else(|_| python.to_owned())];
    wanted.extend(answer.library.iter().cloned());
    if answer.base_prefix.join("conda-meta").is_dir() {
        // Conda's interpreters look there for system libraries, such as the C++ library.
        wanted.push(answer.base_prefix.join("lib"));
    }
    let beside = python.ancestors().skip(1).take(2);
    wanted.extend(beside.map(|directory| directory.join("pyvenv.cfg")));
    wanted.extend(answer.mapped.iter().cloned());
    let mut roots: Vec<PathBuf> = Vec::new();
    for path in wanted {
        if path.exists() && !roots.iter().any(|root| path.starts_with(root)) {
            roots.push(path);
        }
    }
    roots
}

/// Version that this program recommends and installs.
pub(in super::super) const PINNED: &str = "3.6.0";

#[cfg(test)]
#[path = "ask_tests.rs"]
mod tests;
