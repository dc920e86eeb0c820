//! Preparation of a job before it uses a device: compiling kernels, binding arguments, and writing
//! the job's private directory. The main type is [`Prepared`].

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use crate::error::{self, ExecError, Problem, chain};
use crate::room::RoomShare;
use arrangements::{arrangement, has_scales};
use bind::{BindError, bind_arguments};
use globals::Globals;
pub(crate) use globals::unfilled;
use warpgauge_compile::{CompileError, CompileFailure, CompileOptions, CompiledModule, Compiler};
use warpgauge_contract::{
    ArgKind, ArgSpec, CodeForm, ContractLimits, EvaluateRequest, IoContract, KernelCode,
    KernelRuntime, KernelType, ProfileSpec, Role, Sanitize, TensorSpec,
};
use warpgauge_model::{FailureCode, Image, Target};
use warpgauge_tensor::{Dtype, OnDevice, TensorData, TensorInit, can_nudge, encoding, real_view};
use warpgauge_turns::Owner;
use warpgauge_worker::protocol::{
    BufferContent, BufferSpec, Checks, EvaluatePlan, KernelLaunch, KernelProgram, Launches,
    ReferenceRun, Tolerances, TrialPlan, WorkerJob,
};

mod arrangements;
mod arrays;
pub(crate) mod bind;
mod compiled_launch;
mod globals;
pub(crate) mod libraries;
mod steps;

/// Names in `profile.tools` that request the emulator's counts.
const EMULATOR_TOOLS: [&str; 2] = ["auto", "emulator"];

/// A job that is ready for a device, and the result of its compilation.
pub(crate) struct Prepared {
    /// Result of compiling the candidate.
    pub(crate) artifact: CompiledModule,
    /// Job that a worker will run.
    pub(crate) job: WorkerJob<EvaluatePlan>,
    /// Contains the files that the job names. Dropping it removes them.
    _directory: TempDir,
    /// Share of the disk space. It is declared after the files, because fields are dropped in this
    /// order.
    _room: RoomShare,
}

impl Prepared {
    pub(crate) fn buffer_name(&self, buffer: usize) -> &str {
        &self.job.program.buffers[buffer].name
    }
}

/// Results of compiling the candidate and its references.
#[derive(Clone)]
pub(crate) struct Compiled {
    pub(crate) candidate: CompiledModule,
    references: Vec<CompiledReference>,
}

#[derive(Clone)]
struct CompiledReference {
    artifact: CompiledModule,
    /// The kernel compiled without fused multiply-add. `None` if that is not needed or does not
    /// change the image.
    unfused: Option<CompiledModule>,
    code: KernelCode,
    /// Names of the outputs that the reference defines.
    outputs: Vec<String>,
}

/// Result of compiling an evaluation's kernels.
pub(crate) enum CompileOutcome {
    Compiled(Box<Compiled>),
    /// The candidate does not compile, which is a result rather than an error.
    Failed(Box<CompileFailure>),
}

/// Compiles the candidate and every distinct reference kernel in parallel, on behalf of the owner.
pub(crate) async fn compile(
    compiler: &Compiler,
    request: &EvaluateRequest,
    target: &Target,
    owner: Owner,
) -> Result<CompileOutcome, ExecError> {
    let timeout = time_for(request.timeout);
    let options =
        CompileOptions { lineinfo: wants_lines(request), timeout, owner, ..Default::default() };
    let references = distinct_references(request);
    let candidate = built(compiler, &request.kernel, target, options, "kernel");
    let others = futures_util::future::try_join_all(references.into_iter().map(
        |(code, outputs)| async move {
            let path = format!("expected.{}.kernel", outputs[0]);
            let options = CompileOptions { timeout, owner, ..CompileOptions::default() };
            let build = |code| built(compiler, code, target, options, &path);
            let separate = unfused(request, &code, &outputs);
            let without = async {
                match &separate {
                    Some(code) => build(code).await.map(Result::ok),
                    None => Ok(None),
                }
            };
            let (artifact, without) = futures_util::future::join(build(&code), without).await;
            let artifact = artifact?.map_err(|error| reference_failure(&outputs[0], error))?;
            let unfused = without?.filter(|without| without.image != artifact.image);
            Ok::<_, ExecError>(CompiledReference { artifact, unfused, code, outputs })
        },
    ));
    let (candidate, references) = futures_util::future::join(candidate, others).await;
    match candidate? {
        Ok(candidate) => {
            Ok(CompileOutcome::Compiled(Box::new(Compiled { candidate, references: references? })))
        }
        Err(CompileError::Rejected(failure)) => Ok(CompileOutcome::Failed(failure)),
        Err(error) => Err(error::from_compile(error)),
    }
}

/// Compiles a kernel. A library kernel gets a substitute, because it has no code.
async fn built(
    compiler: &Compiler,
    code: &KernelCode,
    target: &Target,
    options: CompileOptions,
    path: &str,
) -> Result<Result<CompiledModule, CompileError>, ExecError> {
    match code.kernel_type.code_form() {
        CodeForm::Absent => libraries::artifact(code, path).map(Ok),
        CodeForm::Text | CodeForm::Binary => Ok(compiler.compile(code, target, options).await),
    }
}

/// Returns the time limit for each compilation of a request.
pub(crate) fn time_for(timeout_s: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(timeout_s).ok()
}

/// Returns whether the candidate is compiled with line information. Memory checks need it, because
/// their findings contain line numbers.
pub(crate) fn wants_lines(request: &EvaluateRequest) -> bool {
    request.sanitize != Sanitize::Off
}

/// Returns whether the emulator must count for the profile.
pub(crate) fn wants_counts(request: &EvaluateRequest) -> bool {
    request.profile.as_ref().is_some_and(accepts_emulator)
}

/// Returns whether a profile may use the emulator's counts.
pub(crate) fn accepts_emulator(profile: &ProfileSpec) -> bool {
    let accepts = |tool: &String| EMULATOR_TOOLS.contains(&tool.as_str());
    profile.tools.is_empty() || profile.tools.iter().any(accepts)
}

/// Returns each distinct reference kernel with its arguments, and the outputs that it defines.
fn distinct_references(request: &EvaluateRequest) -> Vec<(KernelCode, Vec<String>)> {
    let none = IoContract::default();
    let (io, kind) = (request.kernel.io.as_ref().unwrap_or(&none), request.kernel.kernel_type);
    let mut distinct: BTreeMap<String, (KernelCode, Vec<String>)> = BTreeMap::new();
    for (output, expected) in &request.expected {
        // Outputs that Python code computes are already available as data.
        let Some(code) = expected.kernel.as_ref() else { continue };
        if code.family().runtime() != KernelRuntime::Worker {
            continue;
        }
        let identity = serde_json::to_string(code).unwrap_or_else(|_| output.clone());
        let entry =
            distinct.entry(identity).or_insert_with(|| (code.as_reference(io, kind), Vec::new()));
        entry.1.push(output.clone());
    }
    distinct.into_values().collect()
}

/// Compiler options that affect fused multiply-add.
const DECIDE_ON_FUSION: [&str; 2] = ["fmad", "fast"];

/// Returns the reference without fused multiply-add. Returns `None` unless only that shows the
/// effect of rounding on an output. This is the case for integer outputs of integer inputs, because
/// no input can be changed slightly.
fn unfused(request: &EvaluateRequest, code: &KernelCode, outputs: &[String]) -> Option<KernelCode> {
    let io = request.kernel.io.as_ref()?;
    let mut tensors = io.args.iter().filter_map(|arg| Some((arg, arg.tensor_spec.as_ref()?)));
    let is_moved = |(arg, spec): &(&ArgSpec, &TensorSpec)| arg.is_read() && can_nudge(spec.dtype);
    if code.kernel_type != KernelType::Cuda || tensors.clone().any(|one| is_moved(&one)) {
        return None;
    }
    let given = request.tolerance.as_ref();
    tensors.find(|(arg, spec)| {
        let is_whole = !spec.dtype.is_float() && warpgauge_validate::is_open(given, spec.dtype);
        outputs.contains(&arg.name) && is_whole
    })?;
    let mut code = code.clone();
    let options = &mut code.metadata.get_or_insert_default().compiler_options;
    if options.iter().any(|option| DECIDE_ON_FUSION.iter().any(|word| option.contains(word))) {
        return None;
    }
    options.push("--fmad=false".to_owned());
    Some(code)
}

/// Converts the compile error of a reference kernel to an error of the contract.
fn reference_failure(output: &str, error: CompileError) -> ExecError {
    match error {
        CompileError::Rejected(failure) => ExecError::Invalid(vec![Problem {
            path: format!("expected.{output}.kernel"),
            code: failure.code.of_reference(),
            message: format!("the reference kernel does not compile: {}", failure.message),
        }]),
        CompileError::Tunable(_) => ExecError::Invalid(vec![Problem {
            path: format!("expected.{output}.kernel.metadata.configuration"),
            code: FailureCode::SeveralConfigurations,
            message: "the reference kernel has several configurations, and none is chosen for it: \
                      name one"
                .to_owned(),
        }]),
        other => error::from_compile(other),
    }
}

/// Data that the layout of a job needs in addition to the contract.
pub(crate) struct Layout {
    pub(crate) job_id: String,
    pub(crate) directory: TempDir,
    pub(crate) limits: ContractLimits,
    pub(crate) trials: Option<TrialPlan>,
    /// Share of the disk space for the contract's data.
    pub(crate) room: RoomShare,
    /// Expected outputs that torch kernels computed.
    pub(crate) computed: ComputedOutputs,
}

/// Expected outputs that were computed before the kernel runs.
#[derive(Debug, Default)]
pub(crate) struct ComputedOutputs {
    /// Files with the raw elements of each output, by name. They contain the elements for the
    /// contract's inputs, then those for the inputs of each seed in `drawn`.
    pub(crate) files: BTreeMap<String, PathBuf>,
    /// Random seeds, which the kernel does not know.
    pub(crate) drawn: Vec<u64>,
}

/// Binds arguments and writes the contract's data into the job's directory. Blocking.
pub(crate) fn lay_out(
    request: &EvaluateRequest,
    compiled: Compiled,
    layout: Layout,
) -> Result<Prepared, ExecError> {
    let directory = layout.directory.path();
    let empty = IoContract::default();
    let io = request.kernel.io.as_ref().unwrap_or(&empty);
    let launches = launches_of(&compiled.candidate, &request.kernel, io, &layout.limits, "kernel")?;
    let buffers_of = tensor_arguments(io);
    let mut buffers = Vec::new();
    for (index, _) in &buffers_of {
        buffers.push(buffer(directory, *index, &io.args)?);
    }
    let position = |name: &str| buffers_of.iter().position(|(_, arg)| arg.name == name);

    let mut references = Vec::new();
    for reference in &compiled.references {
        let own = reference.code.io.as_ref().unwrap_or(io);
        let path = format!("expected.{}.kernel", reference.outputs[0]);
        let launches =
            |artifact| launches_of(artifact, &reference.code, own, &layout.limits, &path);
        references.push(ReferenceRun {
            launches: launches(&reference.artifact)?,
            unfused: reference.unfused.as_ref().map(launches).transpose()?,
            outputs: reference.outputs.iter().filter_map(|name| position(name)).collect(),
        });
    }
    let (mut files, mut bounds) = (Vec::new(), Vec::new());
    let (mut tolerances, mut open) = (Vec::new(), Vec::new());
    for (name, expected) in &request.expected {
        let Some(buffer) = position(name) else { continue };
        let BufferSpec { dtype, .. } = &buffers[buffer];
        let (element, shape) = buffers[buffer].tensor();
        let tolerance = request.tolerance.as_ref();
        let scaled = has_scales(request, name);
        let resolved = match &expected.bounds {
            Some(_) => warpgauge_validate::resolve_beside_bounds(tolerance),
            None if scaled => warpgauge_validate::resolve_with_scales(tolerance),
            None => warpgauge_validate::resolve_by_type(tolerance, *dtype),
        };
        tolerances.push((buffer, resolved));
        if expected.bounds.is_none() && !scaled && warpgauge_validate::is_open(tolerance, *dtype) {
            open.push((buffer, tolerance.cloned()));
        }
        if let Some(data) = &expected.bounds {
            let file = directory.join(format!("bounds-{buffer}.bin"));
            decode(data, Dtype::Float64, shape, &file, &format!("expected.{name}.bounds"))?;
            bounds.push((buffer, file));
        }
        if let Some(data) = &expected.data {
            let file = directory.join(format!("expected-{buffer}.bin"));
            decode(data, element, shape, &file, &format!("expected.{name}.data"))?;
            files.push((buffer, file));
        } else if let Some(file) = layout.computed.files.get(name) {
            files.push((buffer, file.clone()));
        }
    }
    let keep_outputs = buffers_of
        .iter()
        .enumerate()
        .filter(|(_, (_, arg))| {
            let wanted = request.return_outputs.include(&arg.name)
                || request.keep_outputs.contains_key(&arg.name);
            arg.is_output() && wanted
        })
        .map(|(buffer, _)| buffer)
        .collect();
    let drawn = layout.computed.drawn;
    let tolerances = Tolerances(tolerances);
    let arrangements = request.compare_as.iter();
    let arrangements =
        arrangements.filter_map(|(name, how)| arrangement(name, how, request, (io, &position)));
    let arrangements = arrangements.collect();
    let checks = Checks { references, files, drawn, bounds, tolerances, open, arrangements };
    let job = WorkerJob {
        id: layout.job_id,
        directory: directory.to_owned(),
        program: KernelProgram { buffers, launches },
        task: EvaluatePlan {
            checks,
            keep_outputs,
            trials: layout.trials,
            sanitize: request.sanitize != Sanitize::Off,
            lint: false,
            count: wants_counts(request),
        },
    };
    Ok(Prepared {
        artifact: compiled.candidate,
        job,
        _directory: layout.directory,
        _room: layout.room,
    })
}

/// Returns the arguments that have a buffer, with their indices.
pub(crate) fn tensor_arguments(io: &IoContract) -> Vec<(usize, &ArgSpec)> {
    let is_buffer =
        |arg: &ArgSpec| arg.kind == ArgKind::Tensor && !arg.is_meta && arg.role != Role::Scratch;
    io.args.iter().enumerate().filter(|(_, arg)| is_buffer(arg)).collect()
}

/// Returns the launches of a kernel whose arguments are those of `io`.
fn launches_of(
    artifact: &CompiledModule,
    code: &KernelCode,
    io: &IoContract,
    limits: &ContractLimits,
    path: &str,
) -> Result<Launches, ExecError> {
    let globals = Globals::new(artifact, io, path)?;
    if steps::are_needed(code, &globals) {
        return steps::launches_of(artifact, code, &globals, limits, path);
    }
    launch_of(artifact, code, &globals, limits, path).map(Launches::from)
}

/// Returns the launch of `artifact`'s entry. Arguments and dimensions are those of `io`.
fn launch_of(
    artifact: &CompiledModule,
    code: &KernelCode,
    globals: &Globals<'_>,
    limits: &ContractLimits,
    path: &str,
) -> Result<KernelLaunch, ExecError> {
    let (kind, io) = (code.kernel_type, &*globals.io);
    if code.kernel_type.code_form() == CodeForm::Absent {
        return libraries::launch(code, artifact, io, path);
    }
    if let Some(decided) = &artifact.launch {
        let bind = |index, param: &_| bind::bind_passed(index, &io.args, param);
        return compiled_launch::bound(artifact, decided, io, limits, path, &bind);
    }
    let entry = artifact.entry_kernel();
    let arguments = bind_arguments(entry, &io.args)
        .map_err(|errors| binding_failure(path, globals.explain(errors)))?;
    let at = format!("{path}.io.launch");
    let launch =
        warpgauge_contract::resolve_launch_at(io, kind, limits, &at).map_err(error::invalid)?;
    Ok(KernelLaunch {
        image: Image { bytes: Arc::clone(&artifact.image), format: artifact.format },
        symbol: entry.symbol.clone(),
        arguments,
        grid: launch.grid,
        block: launch.block,
        shared_bytes: launch.shared_bytes,
        cluster: launch.cluster,
        cooperative: launch.cooperative,
    })
}

pub(crate) fn binding_failure(path: &str, errors: Vec<BindError>) -> ExecError {
    let problem = |error: BindError| Problem {
        path: format!("{path}.{}", error.path),
        code: error.code,
        message: error.message,
    };
    ExecError::Invalid(errors.into_iter().map(problem).collect())
}

/// Returns an `init`, completed with data from other arguments.
pub(crate) fn settled(
    init: &TensorInit,
    args: &[ArgSpec],
    index: usize,
) -> Result<TensorInit, ExecError> {
    warpgauge_contract::settled_init(init, args).map_err(|error| {
        let path = format!("kernel.io.args[{index}].tensor_spec.init.{}", error.field);
        let (code, message) = (FailureCode::InvalidInit, error.message);
        ExecError::Invalid(vec![Problem { path, code, message }])
    })
}

fn buffer(directory: &Path, index: usize, args: &[ArgSpec]) -> Result<BufferSpec, ExecError> {
    let arg = &args[index];
    let Some(spec) = &arg.tensor_spec else {
        return Err(ExecError::Invalid(vec![Problem {
            path: format!("kernel.io.args[{index}]"),
            code: FailureCode::MissingField,
            message: format!("tensor `{}` has no `tensor_spec`", arg.name),
        }]));
    };
    let content = match (&spec.init, &spec.data) {
        (Some(init), _) => BufferContent::Init(Box::new(settled(init, args, index)?)),
        (None, Some(data)) => match data.data_b64.on_device() {
            Some(OnDevice { handle, allocation_bytes, .. }) => {
                BufferContent::Shared { handle: handle.clone(), bytes: *allocation_bytes }
            }
            None => {
                let file = directory.join(format!("input-{index}.bin"));
                let path = format!("kernel.io.args[{index}].tensor_spec.data");
                decode(data, spec.dtype, &spec.shape, &file, &path)?;
                BufferContent::File(file)
            }
        },
        (None, None) => BufferContent::Undefined,
    };
    let (dtype, shape) = real_view(spec.dtype, &spec.shape);
    Ok(BufferSpec {
        name: arg.name.clone(),
        element: spec.dtype,
        dtype,
        shape,
        role: arg.role,
        content,
    })
}

fn decode(
    data: &TensorData,
    dtype: Dtype,
    shape: &[u64],
    file: &Path,
    path: &str,
) -> Result<(), ExecError> {
    let file = File::create_new(file).map_err(|error| {
        tracing::error!(file = %file.display(), %error, "a file of a job cannot be written");
        ExecError::Unavailable(format!("cannot write a file of the job: {error}"))
    })?;
    match encoding::decode_to_file(data, dtype, shape, &file) {
        Ok(_) => Ok(()),
        Err(error) if error.is_environment() => Err(ExecError::Unavailable(chain(&error))),
        Err(error) => Err(ExecError::Invalid(vec![Problem {
            path: path.to_owned(),
            code: FailureCode::InvalidData,
            message: chain(&error),
        }])),
    }
}

#[cfg(test)]
mod tests;
