//! A validated request to compile a Triton kernel, with everything that the compilation needs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value};

use super::{image, options};
use crate::artifact::{CompiledModule, Constant};
use crate::cache::{Key, KeyCompiler, KeyInputs};
use crate::child::TRITON_SOURCE;
use crate::environment::Environment;
use crate::error::{CompileError, CompileFailure};
use crate::exceeded;
use crate::job::kernel_name;
use crate::protocol::triton::{LeftOut, TritonAnswer, TritonMetadata, TritonRefused};
use crate::protocol::{ChildReply, Outcome, TritonTask, TritonWork};
use crate::source::source_text;
use crate::summary::summary;
use crate::toolchain::TritonInstall;
use crate::tunable::Tunable;
use warpgauge_contract::{
    ArgKind, ArgSpec, Backend, KernelCode, KernelType, Padding, StepArgument,
};
use warpgauge_model::{Diagnostic, FailureCode, Severity, Target};
use warpgauge_sandbox::enforcement::Enforcement;

/// Name of the submitted source in messages and line information.
const SOURCE_NAME: &str = "kernel.py";

/// The newest architecture whose instructions the emulated device supports completely.
const EMULATED_ARCH: u32 = 89;

/// Maximum number of configurations of a kernel.
const MAX_CONFIGURATIONS: usize = 4096;

/// Maximum number of constants of a configuration.
const MAX_CONSTANTS: usize = 64;

/// Maximum length of a name or text constant, bytes.
const MAX_TEXT: usize = 128;

/// Maximum number of notes on statements that were left out, and maximum length of a note in
/// characters.
const MOST_LEFT_OUT: usize = 6;
const MAX_NOTE: usize = 1024;

/// The request that the interpreter receives.
#[derive(Serialize)]
struct Question<'a> {
    source: &'a str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    files: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_path: Option<&'a str>,
    kernel_name: Option<&'a str>,
    arguments: Vec<Argument<'a>>,
    /// Keyword arguments of the launch.
    options: Map<String, Value>,
    /// Index of the configuration to compile, if there are several.
    configuration: Option<u32>,
    /// Architecture to compile for. The interpreter receives it when it starts. The field is here
    /// because it is part of the content address.
    arch: u32,
}

/// Properties of an argument that can affect the compiled code.
#[derive(Serialize)]
struct Argument<'a> {
    name: &'a str,
    kind: ArgKind,
    is_meta: bool,
    value: Option<Value>,
    dtype: Option<&'static str>,
    shape: Option<&'a [u64]>,
    block_shape: Option<&'a [u32]>,
    padding: Option<Padding>,
    /// Length of an array of pointers, and the indices of the tensors in it. `None` for other
    /// arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pointers: Option<(usize, BTreeSet<usize>)>,
}

/// A Triton kernel, with everything that determines the result.
pub(crate) struct TritonJob {
    work: TritonWork,
    question: String,
    compiler: String,
    key: Key,
    target: Target,
    source_lines: usize,
    /// The caller's options, each as `NAME=VALUE`.
    given: Vec<String>,
}

impl TritonJob {
    /// Checks a request for a Triton kernel.
    pub(crate) fn new(
        kernel: &KernelCode,
        target: &Target,
        environment: &Environment,
    ) -> Result<Self, CompileError> {
        let install = environment.toolchain().triton().map_err(|no| CompileError::Environment {
            what: format!("a kernel is written in Triton, but {}", no.reason),
            remedy: no.remedy,
        })?;
        let source = source_text(kernel)?;
        let metadata = kernel.metadata.as_ref();
        let given = metadata.map_or(&[][..], |metadata| &metadata.compiler_options);
        let mut checked = options::check(given)?;
        let arch = arch(checked.arch, target)?;
        let given = checked.keywords.iter();
        let given = given.map(|(name, value)| match value {
            Value::String(text) => format!("{name}={text}"),
            value => format!("{name}={value}"),
        });
        let given = given.collect();
        let io = kernel.io.as_ref();
        if let Some(launch) = io.and_then(|io| io.launch.as_ref()) {
            let numbers = [
                ("num_warps", launch.num_warps),
                ("num_stages", launch.num_stages),
                ("num_ctas", launch.num_ctas),
                ("maxnreg", launch.maxnreg),
            ];
            let given =
                numbers.into_iter().filter_map(|(name, n)| Some((name.to_owned(), n?.into())));
            checked.keywords.extend(given);
        }
        let args = io.map_or(&[][..], |io| &io.args);
        let question = Question {
            source,
            files: &kernel.files,
            source_path: kernel.source_path.as_deref(),
            kernel_name: kernel_name(kernel)?,
            arguments: args.iter().map(|arg| argument(args, arg)).collect::<Result<_, _>>()?,
            options: checked.keywords,
            configuration: metadata.and_then(|metadata| metadata.configuration),
            arch,
        };
        let question = serde_json::to_string(&question)
            .map_err(|error| CompileError::internal(format!("cannot ask Triton: {error}")))?;
        let compiler = format!("triton {} for sm_{arch}", install.version);
        Ok(Self {
            key: key(&question, install, target),
            work: TritonWork::for_arch(install, arch, target),
            question,
            compiler,
            target: *target,
            source_lines: source.lines().count(),
            given,
        })
    }

    /// Returns the content address of the compilation's result.
    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    /// Compiles within the time limit, in a child that may have been started earlier.
    pub(crate) async fn run(
        &self,
        environment: &Environment,
        limit: Duration,
    ) -> Result<(CompiledModule, Option<Enforcement>), CompileError> {
        let task = TritonTask { question: self.question.clone() };
        let reply = environment.ask_triton(&self.work, &task, limit).await;
        let ChildReply { sandbox, result } =
            reply.map_err(|error| exceeded::judged(error, limit))?;
        let artifact = self.artifact(result)?;
        Ok((artifact, sandbox))
    }

    fn artifact(&self, outcome: Outcome) -> Result<CompiledModule, CompileError> {
        match outcome {
            Outcome::Triton(answer) => match *answer {
                TritonAnswer::Built(mut built) => {
                    let compiler = self.compiler.clone();
                    let left_out = std::mem::take(&mut built.left_out);
                    let options = self.options(&built.metadata);
                    let site_packages = &self.work.site_packages;
                    let mut artifact =
                        image::artifact(*built, compiler, &self.target, site_packages)?;
                    let notes = left_out.into_iter().take(MOST_LEFT_OUT);
                    artifact.options = options;
                    artifact.diagnostics = notes.map(|one| self.note(one)).collect();
                    Ok(artifact)
                }
                TritonAnswer::Tunable(tunable) => Err(several(tunable)),
                TritonAnswer::Refused(refused) => Err(self.refused(refused)),
            },
            other => Err(CompileError::of_outcome(other)),
        }
    }

    /// Returns the options of the compiler: those that Triton resolved, followed by the caller's.
    fn options(&self, metadata: &TritonMetadata) -> Vec<String> {
        let resolved = [
            ("num_warps", Some(metadata.num_warps)),
            ("num_stages", metadata.num_stages),
            ("num_ctas", Some(metadata.num_ctas)),
            ("maxnreg", metadata.maxnreg),
        ];
        let resolved = resolved.into_iter().filter_map(|(name, n)| Some(format!("{name}={}", n?)));
        let arch = format!("arch=sm_{}", self.work.arch);
        std::iter::once(arch).chain(resolved).chain(self.given.iter().cloned()).collect()
    }

    /// Returns the note about a statement that was left out. The answer is not trusted, so its
    /// numbers are checked.
    fn note(&self, left_out: LeftOut) -> Diagnostic {
        let LeftOut { line, message } = left_out;
        let message = message.chars().take(MAX_NOTE).collect();
        let line = Some(line).filter(|line| (1..=self.source_lines).contains(&(*line as usize)));
        let file = Some(SOURCE_NAME.to_owned());
        Diagnostic { severity: Severity::Warning, file, line, column: None, message }
    }

    fn refused(&self, refused: TritonRefused) -> CompileError {
        let TritonRefused { code, message, line, column, log } = refused;
        // The answer is not trusted: a line number beyond the source is ignored.
        let line = line.filter(|line| (1..=self.source_lines).contains(&(*line as usize)));
        let place = match (line, column) {
            (Some(line), Some(column)) => format!("{SOURCE_NAME}:{line}:{column}: "),
            (Some(line), None) => format!("{SOURCE_NAME}:{line}: "),
            _ => String::new(),
        };
        let diagnostic = Diagnostic {
            severity: Severity::Error,
            file: Some(SOURCE_NAME.to_owned()),
            line,
            column: column.filter(|_| line.is_some()),
            message: message.clone(),
        };
        if code == FailureCode::CompilerOutOfMemory {
            let message = summary(&code, &[], &log);
            let failure = CompileFailure { code, message, diagnostics: Vec::new(), log };
            return CompileError::Rejected(Box::new(failure));
        }
        let is_compilation = code == FailureCode::CompilationFailed;
        let told =
            if is_compilation { format!("compilation failed: {place}{message}") } else { message };
        CompileError::Rejected(Box::new(CompileFailure {
            code,
            message: told,
            diagnostics: if is_compilation { vec![diagnostic] } else { Vec::new() },
            log,
        }))
    }
}

/// Returns the architecture to compile for: the device's, or the one that the caller names.
fn arch(named: Option<u32>, target: &Target) -> Result<u32, CompileError> {
    let device = target.architecture();
    match named {
        Some(named) if named > device => {
            let message = format!(
                "the option arch names sm_{named}, but the device is sm_{device}; name sm_{device} or \
                 an older architecture"
            );
            Err(CompileError::rejected(FailureCode::WrongArchitecture, message))
        }
        Some(named) => Ok(named),
        None => Ok(TritonWork::default_arch(target)),
    }
}

impl TritonWork {
    fn default_arch(target: &Target) -> u32 {
        let device = target.architecture();
        if target.emulated { device.min(EMULATED_ARCH) } else { device }
    }

    fn for_arch(install: &TritonInstall, arch: u32, target: &Target) -> Self {
        Self {
            python: install.python.clone(),
            roots: install.roots.clone(),
            site_packages: install.site_packages.clone(),
            arch,
            // Code for another architecture is passed to the driver as PTX.
            machine_code: !target.emulated && arch == target.architecture(),
        }
    }
}

fn key(question: &str, install: &TritonInstall, target: &Target) -> Key {
    let name = format!("triton {} with Python {}", install.version, install.python_version);
    KeyInputs {
        kind: KernelType::Triton,
        code: question.as_bytes(),
        options: &[],
        arch_suffix: None,
        backend: Backend::default(),
        name_expressions: &[],
        fields: &[],
        kernel_name: None,
        target: *target,
        lineinfo: true,
        compiler: Some(KeyCompiler::of(name, &install.ptxas)),
        prelude: TRITON_SOURCE,
        headers: &[],
    }
    .key()
}

fn argument<'a>(args: &[ArgSpec], arg: &'a ArgSpec) -> Result<Argument<'a>, CompileError> {
    let spec = arg.tensor_spec.as_ref().filter(|_| arg.kind == ArgKind::Tensor);
    let pointers = match arg.kind {
        ArgKind::Pointers => match warpgauge_contract::composed_value(args, arg) {
            Ok(StepArgument::Pointers(_, entries)) => {
                let tensors = entries.iter().flatten().map(|(tensor, _)| *tensor).collect();
                Some((entries.len(), tensors))
            }
            Ok(_) => None,
            Err((code, message)) => {
                let message = format!("argument `{}`: {message}", arg.name);
                return Err(CompileError::rejected(code, message));
            }
        },
        _ => None,
    };
    Ok(Argument {
        name: &arg.name,
        kind: arg.kind,
        is_meta: arg.is_meta,
        value: value(arg)?,
        dtype: spec.map(|spec| spec.dtype.name()),
        shape: spec.map(|spec| spec.shape.as_slice()),
        block_shape: arg.descriptor.as_ref().map(|d| d.block_shape.as_slice()),
        padding: arg.descriptor.as_ref().map(|d| d.padding),
        pointers,
    })
}

/// Returns a scalar's value in the form in which the Python code receives it.
fn value(arg: &ArgSpec) -> Result<Option<Value>, CompileError> {
    use warpgauge_contract::ScalarValue;
    let misfit = |why: String| {
        let message = format!("argument `{}`: {why}", arg.name);
        CompileError::rejected(FailureCode::ArgumentValue, message)
    };
    Ok(match arg.kind {
        ArgKind::Tensor
        | ArgKind::None
        | ArgKind::Struct
        | ArgKind::Pointers
        | ArgKind::Texture
        | ArgKind::Surface => None,
        ArgKind::Str => arg.value.clone(),
        _ => Some(match arg.scalar_value().map_err(misfit)? {
            ScalarValue::Bool(value) => Value::Bool(value),
            ScalarValue::Int(value) => i64::try_from(value)
                .map(Value::from)
                .or_else(|_| u64::try_from(value).map(Value::from))
                .map_err(|_| misfit("does not fit 64 bits".to_owned()))?,
            // Numbers that JSON cannot express are sent to Python as text.
            ScalarValue::Float(value) if value.is_finite() => Value::from(value),
            ScalarValue::Float(value) => Value::from(value.to_string()),
        }),
    })
}

/// Checks a submitted list of configurations against the limits.
fn several(tunable: Tunable) -> CompileError {
    let text = |value: &Constant| matches!(value, Constant::Text(text) if text.len() > MAX_TEXT);
    let too_large = tunable.configurations.len() > MAX_CONFIGURATIONS
        || tunable.reset_to_zero.len() + tunable.restore_value.len() > MAX_CONSTANTS
        || tunable.configurations.iter().any(|one| {
            one.meta.len() > MAX_CONSTANTS
                || one.meta.iter().any(|(name, value)| name.len() > MAX_TEXT || text(value))
        });
    if too_large {
        let message = format!(
            "@triton.autotune lists more than the maximum: at most {MAX_CONFIGURATIONS} configurations of \
             {MAX_CONSTANTS} constants with names and texts of {MAX_TEXT} bytes"
        );
        return CompileError::rejected(FailureCode::CompilerOutputTooLarge, message);
    }
    CompileError::Tunable(Box::new(tunable))
}
