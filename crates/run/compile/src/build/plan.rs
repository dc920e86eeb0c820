//! Plan of a build: its commands, the files that they read, and its content address.

use std::path::{Path, PathBuf};

use crate::cache::{Key, KeyCompiler, key_of};
use crate::error::CompileError;
use crate::protocol::{BuildStep, BuildWork};
use warpgauge_model::FailureCode;

/// Remedies for a missing compiler.
pub(super) const NVCC_REMEDY: &str =
    "run `warpgauge toolchain install --with nvcc`, or set CUDA_HOME to a CUDA toolkit";
pub(super) const CXX_REMEDY: &str = "install one (Debian: `apt install g++`)";

/// System directories that contain CUDA libraries outside any toolkit.
pub(super) const SYSTEM_LIBRARIES: [&str; 2] = ["/usr/lib/x86_64-linux-gnu", "/usr/lib64"];

/// Maximum length of a module's name, bytes.
const LONGEST_NAME: usize = 100;

/// Commands of a build, and everything that determines their result.
#[derive(Debug)]
pub(crate) struct Plan {
    kind: &'static str,
    pub compilers: Vec<KeyCompiler>,
    pub read: Vec<PathBuf>,
    pub execute: Vec<PathBuf>,
    pub files: Vec<(String, String)>,
    pub stages: Vec<Vec<BuildStep>>,
    pub output: String,
    /// Whether the code is generated for the processor that compiles it.
    pub for_this_processor: bool,
    /// Options that a report shows, without directories and files.
    pub options: Vec<String>,
}

impl Plan {
    /// Returns a plan without commands.
    pub fn of(kind: &'static str) -> Self {
        Self {
            kind,
            compilers: Vec::new(),
            read: Vec::new(),
            execute: Vec::new(),
            files: Vec::new(),
            stages: Vec::new(),
            output: String::new(),
            for_this_processor: false,
            options: Vec::new(),
        }
    }

    /// Adds headers in a directory of the job.
    pub fn add_headers(&mut self, directory: &str, headers: super::lean::Headers) {
        let placed = headers.into_iter().map(|(name, text)| (format!("{directory}/{name}"), text));
        self.files.extend(placed);
    }

    /// Returns the content address. The commands contain all options, and the files contain all
    /// sources.
    pub fn key(&self) -> Key {
        let files: Vec<String> =
            self.files.iter().flat_map(|(name, text)| [name.clone(), text.clone()]).collect();
        let steps = self.stages.iter().flatten();
        let ways = steps.flat_map(|step| step.ways.iter().map(move |way| (step, way)));
        let commands: Vec<String> = ways
            .flat_map(|(step, way)| {
                let program =
                    [step.name.clone(), text(&step.program), way.arguments.len().to_string()];
                program.into_iter().chain(way.arguments.iter().cloned())
            })
            .collect();
        let processor = if self.for_this_processor { processor() } else { Vec::new() };
        key_of(self.kind, &self.compilers, &[&files, &commands, &processor])
    }

    /// Converts the plan to a request for a compile child.
    pub fn work(self) -> BuildWork {
        let Self { mut read, execute, files, stages, output, .. } = self;
        read.retain(|path| path.exists());
        BuildWork { read, execute, files, stages, output }
    }
}

/// Returns the model and features of this processor.
fn processor() -> Vec<String> {
    let told = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let first = |name: &str| told.lines().find(|line| line.starts_with(name)).map(str::to_owned);
    ["model name", "flags", "Features"].into_iter().filter_map(first).collect()
}

/// Converts a path to a word of a command line.
pub(super) fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Returns the path of `libNAME.so` in a directory, or else of the first `libNAME.so.VERSION`.
pub(super) fn library_in(directory: &Path, name: &str) -> Option<String> {
    let start = format!("lib{name}.so");
    let versioned = format!("{start}.");
    let mut found: Vec<PathBuf> =
        directory.read_dir().ok()?.flatten().map(|it| it.path()).collect();
    found.retain(|path| {
        let file = path.file_name().map(|file| file.to_string_lossy().into_owned());
        file.is_some_and(|file| file == start || file.starts_with(&versioned))
    });
    found.sort();
    found.first().map(|path| text(path))
}

/// Checks that a name is a Python identifier: it becomes part of commands and file names.
pub(super) fn check_name(name: &str) -> Result<(), CompileError> {
    let begins = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let fits = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if begins && fits && name.len() <= LONGEST_NAME {
        return Ok(());
    }
    let message = format!(
        "the name of an extension must be a Python identifier of at most {LONGEST_NAME} ASCII characters"
    );
    Err(CompileError::rejected(FailureCode::InvalidSource, message))
}
