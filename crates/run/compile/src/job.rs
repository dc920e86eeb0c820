//! A validated request to compile source, and its attempts with particular compilers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::artifact::{CompileTimings, CompiledModule};
use super::binary::variables_of;
use super::cache::{Key, KeyCompiler, KeyInputs};
use super::diagnostics::{NO_FILE, is_header};
use super::environment::{Environment, Headers};
use super::error::{CompileError, CompileFailure, REMEDY};
use super::exceeded;
use super::options::{self, CheckedOptions};
use super::prelude::{self, Needs, PRELUDE};
use super::protocol::{ArchOption, ChildReply, NvccWork, NvrtcWork, Outcome, SourceText, Work};
use super::select::{Wanted, squeezed};
use super::source::source_of;
use super::toolchain::headers;
use super::toolchain::{NvccInstall, NvrtcInstall};
use warpgauge_code::source::{UnitedSource, find_kernels};
use warpgauge_contract::{Backend, KernelCode, KernelType};
use warpgauge_model::{FailureCode, Target};
use warpgauge_sandbox::enforcement::Enforcement;
use warpgauge_turns::Owner;

/// Maximum number of name expressions of one request.
const MAX_NAMES: usize = 64;

/// Maximum length of a name expression or kernel name, bytes.
const MAX_NAME_BYTES: usize = 1024;

/// Parts of NVRTC's messages about code that nvcc may accept.
const ONLY_OF_NVRTC: [&str; 2] = ["in JIT mode", "when compiling with NVRTC"];

/// Options of a compilation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompileOptions {
    /// Whether to add line information, so that findings name source lines.
    pub lineinfo: bool,
    /// Time limit of the request, if the request has one. It is limited to the range from
    /// [`LEAST_TIMEOUT`](super::limits::LEAST_TIMEOUT) to the configured time.
    pub timeout: Option<Duration>,
    /// Owner that the compilation is queued and run for.
    pub owner: Owner,
    /// Whether the request may leave open which of an image's kernels it means.
    pub any_kernel: bool,
    /// Suffix of the architecture: `a` for code that runs only on this architecture, `f` for code
    /// that runs on its family. An option of the request takes precedence.
    pub arch_suffix: Option<char>,
}

/// CUDA C++ source, with everything that determines the result.
pub(crate) struct SourceJob<'a> {
    source: UnitedSource<'a>,
    target: Target,
    backend: Backend,
    options: CheckedOptions,
    names: Vec<String>,
    /// Paths of the structure fields whose layout is requested.
    fields: Vec<String>,
    wanted: Wanted<'a>,
    needs: Needs,
    arch: ArchOption,
    lineinfo: bool,
}

impl<'a> SourceJob<'a> {
    /// Checks a request for CUDA C++ source. `backend` replaces the compiler of the request.
    pub(crate) fn new(
        kernel: &'a KernelCode,
        target: &Target,
        options: CompileOptions,
        backend: Option<Backend>,
    ) -> Result<Self, CompileError> {
        let source = source_of(kernel)?;
        let number = target.architecture();
        let metadata = kernel.metadata.as_ref();
        let asked = metadata.and_then(|m| m.backend);
        let backend = backend.or(asked).unwrap_or_default();
        let given = metadata.map_or(&[][..], |m| &m.compiler_options);
        let checked = options::check(given, backend, number)?;
        let kernel_name = kernel_name(kernel)?;
        let suffix = checked.arch_suffix.or(options.arch_suffix);
        Ok(Self {
            needs: prelude::needs_of(&source.whole()),
            source,
            target: *target,
            backend,
            names: name_expressions(kernel, kernel_name)?,
            fields: kernel.field_paths(),
            wanted: Wanted { name: kernel_name, any: options.any_kernel },
            arch: ArchOption { number, suffix, machine_code: !target.emulated },
            lineinfo: options.lineinfo || checked.lineinfo,
            options: checked,
        })
    }

    /// Returns attempts with the suitable compilers, best first.
    pub(crate) fn attempts<'j>(
        &'j self,
        environment: &'j Environment,
    ) -> Result<Vec<Attempt<'j>>, CompileError> {
        let with = |compiler| Attempt { job: self, compiler };
        if self.backend == Backend::Nvcc {
            let nvcc = environment.toolchain().nvcc.as_ref().ok_or_else(no_nvcc)?;
            return Ok(vec![with(With::Nvcc(nvcc))]);
        }
        let installs = environment.nvrtc_for(&self.target, self.arch.number)?;
        Ok(installs.into_iter().map(|install| with(With::Nvrtc(install))).collect())
    }
}

fn no_nvcc() -> CompileError {
    CompileError::Environment {
        what: "the nvcc backend was requested, but no nvcc was found".into(),
        remedy:
            "run `warpgauge toolchain install --with nvcc`, set CUDA_HOME to a CUDA toolkit, or \
            leave metadata.backend out to compile with NVRTC"
                .into(),
    }
}

/// Checks and returns the kernel name that the request contains.
pub(crate) fn kernel_name(kernel: &KernelCode) -> Result<Option<&str>, CompileError> {
    let field = if kernel.launches.is_empty() { "metadata.kernel_name" } else { "launches" };
    kernel.entry_name().map(|name| check_name(field, name)).transpose()
}

fn check_name<'n>(field: &str, name: &'n str) -> Result<&'n str, CompileError> {
    if name.len() > MAX_NAME_BYTES || name.contains(warpgauge_model::is_hidden) {
        let message =
            format!("{field} must be at most {MAX_NAME_BYTES} bytes without control characters");
        return Err(CompileError::rejected(FailureCode::InvalidKernelName, message));
    }
    Ok(name)
}

/// Returns the names of the template instances to compile. Each kernel name with template arguments
/// is one of them.
fn name_expressions(
    kernel: &KernelCode,
    kernel_name: Option<&str>,
) -> Result<Vec<String>, CompileError> {
    let given = kernel.metadata.as_ref().map_or(&[][..], |m| &m.name_expressions);
    if given.len() > MAX_NAMES {
        let message = format!("{} name expressions; at most {MAX_NAMES} are compiled", given.len());
        return Err(CompileError::rejected(FailureCode::TooManyNameExpressions, message));
    }
    let mut names: Vec<String> = Vec::new();
    // Parameter lists select overloads, and are not part of an instance's name.
    let launched = kernel.launched_kernels();
    let wanted = kernel_name.into_iter().chain(launched).filter(|name| name.contains('<'));
    let wanted = wanted.map(|name| name.split_once('(').map_or(name, |(instance, _)| instance));
    for name in given.iter().map(String::as_str).chain(wanted) {
        let name = check_name("metadata.name_expressions", name)?.trim();
        if !name.is_empty() && !names.iter().any(|known| squeezed(known) == squeezed(name)) {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

#[derive(Clone, Copy)]
enum With<'a> {
    Nvrtc(&'a NvrtcInstall),
    Nvcc(&'a NvccInstall),
}

/// An attempt to compile a source with one compiler.
#[derive(Clone, Copy)]
pub(crate) struct Attempt<'a> {
    job: &'a SourceJob<'a>,
    compiler: With<'a>,
}

impl Attempt<'_> {
    /// Returns the content address of the attempt's result.
    pub(crate) fn key(&self, environment: &Environment) -> Key {
        let mut headers = self.headers(environment).identity;
        let files = self.job.source.files.iter();
        headers
            .extend(files.map(|(path, text)| format!("{path} {}", blake3::hash(text.as_bytes()))));
        KeyInputs {
            kind: KernelType::Cuda,
            code: self.job.source.text.as_bytes(),
            options: &self.job.options.words,
            arch_suffix: self.job.arch.suffix,
            backend: self.job.backend,
            name_expressions: &self.job.names,
            fields: &self.job.fields,
            kernel_name: self.job.wanted.key(),
            target: self.job.target,
            lineinfo: self.job.lineinfo,
            compiler: Some(KeyCompiler::of(self.compiler_name(), self.compiler_file())),
            prelude: PRELUDE,
            headers: &headers,
        }
        .key()
    }

    fn compiler_name(&self) -> String {
        match self.compiler {
            With::Nvrtc(install) => format!("nvrtc {}", install.version_text()),
            With::Nvcc(install) => format!("nvcc {}", install.version),
        }
    }

    /// Returns the options of the compiler: the caller's, and those of this program without
    /// directories and files.
    pub(crate) fn options(&self) -> Vec<String> {
        let job = self.job;
        let output = match self.compiler {
            With::Nvrtc(_) => None,
            With::Nvcc(_) if job.arch.machine_code => Some("-cubin"),
            With::Nvcc(_) => Some("-ptx"),
        };
        // NVRTC has no assembler to be verbose without machine code.
        let is_verbose = job.arch.machine_code || output.is_some();
        let mut words: Vec<String> = output.map(str::to_owned).into_iter().collect();
        words.push(format!("-arch={}", job.arch.value()));
        words.extend(job.options.words.iter().cloned());
        words.extend(job.lineinfo.then(|| "-lineinfo".to_owned()));
        words.extend(is_verbose.then(|| "--ptxas-options=-v".to_owned()));
        words
    }

    fn compiler_file(&self) -> &Path {
        match self.compiler {
            With::Nvrtc(install) => &install.path,
            With::Nvcc(install) => &install.path,
        }
    }

    fn headers(&self, environment: &Environment) -> Headers {
        match self.compiler {
            With::Nvrtc(_) if !self.job.needs.headers() => Headers::default(),
            With::Nvrtc(install) => environment.headers_of(install),
            With::Nvcc(install) => Headers::of_directories(&install.include_dirs),
        }
    }

    /// Compiles in a new child, within the time limit.
    pub(crate) async fn run(
        &self,
        environment: &Environment,
        limit: Duration,
    ) -> Result<(CompiledModule, Option<Enforcement>), CompileError> {
        let headers = self.headers(environment);
        if let (With::Nvrtc(install), Some(directory)) = (self.compiler, &headers.to_unpack) {
            environment.unpack_headers(install, directory).await?;
        }
        let toolkit_headers = !headers.directories.is_empty();
        let work = self.work(headers.directories);
        let reply = environment.run_child_for(work, limit).await;
        let reply = reply.map_err(|error| exceeded::judged(error, limit))?;
        let ChildReply { sandbox, result } = reply;
        let artifact = self.artifact(environment, result, toolkit_headers)?;
        Ok((artifact, sandbox))
    }

    fn work(&self, include_dirs: Vec<PathBuf>) -> Work {
        let job = self.job;
        let source = SourceText {
            text: job.source.text.clone().into_owned(),
            files: job.source.files.clone(),
            toolkit_headers: !include_dirs.is_empty(),
        };
        let (options, name_expressions) = (self.options(), job.names.clone());
        let (arch, lineinfo, fields) = (job.arch, job.lineinfo, job.fields.clone());
        match self.compiler {
            With::Nvrtc(install) => Work::Nvrtc(NvrtcWork {
                library: install.path.clone(),
                version: install.version,
                source,
                include_dirs,
                options,
                name_expressions,
                fields,
                arch,
                lineinfo,
            }),
            With::Nvcc(install) => Work::Nvcc(NvccWork {
                nvcc: install.path.clone(),
                root: install.root().to_owned(),
                source,
                include_dirs,
                options,
                name_expressions,
                fields,
                arch,
                lineinfo,
            }),
        }
    }

    fn artifact(
        &self,
        environment: &Environment,
        outcome: Outcome,
        toolkit_headers: bool,
    ) -> Result<CompiledModule, CompileError> {
        match outcome {
            Outcome::Built(built) => {
                let source = find_kernels(&self.job.source.whole());
                let entry = self.job.wanted.of(&built.kernels, &source)?;
                Ok(CompiledModule {
                    variables: variables_of(&built.image, built.format),
                    image: built.image.into(),
                    format: built.format,
                    kernels: built.kernels,
                    entry,
                    compiler: self.compiler_name(),
                    options: self.options(),
                    log: built.log,
                    diagnostics: built.diagnostics,
                    key: String::new(),
                    cache_hit: false,
                    timings: CompileTimings { total_ms: 0.0, compiler_ms: built.compiler_ms },
                    launch: None,
                    stages: Vec::new(),
                })
            }
            Outcome::UnsupportedArch { supported } => {
                environment.note_unsupported(self.compiler_file(), self.job.arch.number);
                let known: Vec<String> = supported.iter().map(|a| format!("sm_{a}")).collect();
                let what = format!(
                    "{} does not compile for sm_{} (it does for {})",
                    self.compiler_name(),
                    self.job.arch.number,
                    known.join(", ")
                );
                Err(CompileError::Environment { what, remedy: REMEDY.into() })
            }
            other => {
                let mut error = CompileError::of_outcome(other);
                // The installation is the cause, not the source.
                if let (CompileError::Rejected(failure), With::Nvrtc(install)) =
                    (&error, self.compiler)
                    && !install.lacks.is_empty()
                    && let Some(header) = headers::missing_in(&failure.log)
                {
                    let what = format!(
                        "the installation of {} lacks the toolkit's header `{header}`, which the source includes",
                        self.compiler_name()
                    );
                    return Err(CompileError::Environment { what, remedy: REMEDY.into() });
                }
                if let CompileError::Rejected(failure) = &mut error {
                    self.advise(failure, environment, toolkit_headers);
                }
                Err(error)
            }
        }
    }

    /// Adds advice for a known cause of a failure.
    fn advise(
        &self,
        failure: &mut CompileFailure,
        environment: &Environment,
        toolkit_headers: bool,
    ) {
        let needs = &self.job.needs;
        if needs.uses_curand && failure.message.contains("\"curand_kernel.h\"") {
            failure.advise(
                "cuRAND's headers come with `warpgauge toolchain install --with nvcc`, or with a CUDA toolkit that \
                 CUDA_HOME names",
            );
        }
        if self.may_suit_nvcc(failure) && environment.toolchain().nvcc.is_none() {
            failure.advise(
                "NVRTC compiles only device code, but nvcc may accept this source: `warpgauge toolchain install \
                 --with nvcc` installs it",
            );
        }
        if needs.texture_reference {
            failure.advise(
                "CUDA 12 removed texture references (`texture<float, 2> name;`): use a cudaTextureObject_t \
                 parameter instead",
            );
        }
        if needs.headers() && !toolkit_headers {
            failure.advise(
                "the source uses CUDA toolkit headers, but none were found: `warpgauge toolchain install` installs an \
                 NVRTC with these headers",
            );
        }
    }

    /// Returns whether NVRTC rejected a source for a reason that does not apply to nvcc.
    pub(crate) fn may_suit_nvcc(&self, failure: &CompileFailure) -> bool {
        let log = &failure.log;
        let missing = log.split(NO_FILE).skip(1).filter_map(|rest| rest.split('"').next());
        let missing = missing.collect::<Vec<_>>();
        matches!(self.compiler, With::Nvrtc(_))
            && missing.iter().all(|name| is_header(name))
            && (!missing.is_empty() || ONLY_OF_NVRTC.iter().any(|text| log.contains(text)))
    }
}
