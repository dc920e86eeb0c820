//! Expected outputs of a device kernel, computed by torch kernels on the CPU. They are computed for
//! the contract's inputs, and for inputs from secret seeds.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::TorchBackend;
use super::evaluate::{reference_failed, seed};
use super::fault::Failed;
use super::inputs::Inputs;
use super::player::{Player, REFERENCE, submission_for};
use super::process::{Answer, Order};
use super::runs::no_verdict;
use super::values::{Named, Value};
use crate::error::{ExecError, Problem};
use crate::prepare::ComputedOutputs;
use crate::progress::ActiveOrder;
use warpgauge_contract::{EvaluateRequest, InputChoice, IoContract, KernelFamily, Sanitize};
use warpgauge_model::FailureCode;
use warpgauge_tensor::shape;
use warpgauge_torch::{JudgeError, RunnerSession, TorchSubmission};

/// A torch kernel, and the names of the outputs that it defines.
#[derive(Debug, Serialize, Deserialize)]
struct Wanted {
    submission: TorchSubmission,
    outputs: Vec<String>,
}

/// Order to a judge process: compute the outputs of torch kernels for a contract's inputs.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Computation {
    wanted: Vec<Wanted>,
    io: IoContract,
    /// Seeds of further inputs. Outputs are computed for them in order, while time and memory allow
    /// it.
    seeds: Vec<u64>,
    timeout: f64,
}

/// Number of further input sets on which a kernel is verified. If references are slow or outputs
/// large, the minimum applies, or fewer sets if even these exceed the limits below.
const SETS: RangeInclusive<usize> = 3..=16;

/// Time limit for computing sets beyond the minimum.
const TIME_FOR_MORE: Duration = Duration::from_millis(200);

/// Limits on the total size of the outputs of all sets, in bytes. The first applies to sets beyond
/// the minimum, and the second to all sets.
const BYTES_FOR_MORE: u64 = 64 << 20;
const MOST_SET_BYTES: u64 = 2 << 30;

/// Share of the request's timeout within which further sets must be computed. Each is assumed to
/// take as long as the slowest so far.
const SHARE_OF_TIMEOUT: f64 = 0.8;

/// Computes the outputs that torch kernels define, and writes them to files in `directory`.
pub(crate) async fn expectations(
    backend: &TorchBackend,
    job: &ActiveOrder<'_>,
    request: &EvaluateRequest,
    directory: &Path,
) -> Result<ComputedOutputs, ExecError> {
    let mut wanted: BTreeMap<String, Wanted> = BTreeMap::new();
    for (name, expected) in &request.expected {
        let Some(kernel) =
            expected.kernel.as_deref().filter(|one| one.family() == KernelFamily::Torch)
        else {
            continue;
        };
        let identity = serde_json::to_string(kernel).unwrap_or_else(|_| name.clone());
        let io = request.kernel.io.as_ref();
        let submission = || submission_for(kernel, REFERENCE, io);
        let new = || Wanted { submission: submission(), outputs: Vec::new() };
        wanted.entry(identity).or_insert_with(new).outputs.push(name.clone());
    }
    if wanted.is_empty() {
        return Ok(ComputedOutputs::default());
    }
    // Expected values in the contract's data apply only to the contract's inputs.
    let others = request.measure.inputs == InputChoice::Fresh
        && request.sanitize == Sanitize::Off
        && request.expected.values().all(|expected| expected.data.is_none());
    let mut seeds: Vec<u64> =
        if others { (0..*SETS.end()).map(|_| seed()).collect() } else { Vec::new() };
    let mut entered = backend.enter(request.timeout, job.owner()).await?;
    let sides = wanted.len();
    let runners = entered.runners(sides).await?;
    let computation = Computation {
        wanted: wanted.into_values().collect(),
        io: request.kernel.io.clone().unwrap_or_default(),
        seeds: seeds.clone(),
        timeout: request.timeout,
    };
    let file = |(index, name): (usize, &String)| {
        (name.clone(), directory.join(format!("computed-{index}.bin")))
    };
    let paths: Vec<(String, PathBuf)> = computation.names().enumerate().map(file).collect();
    let empty_files = || -> Result<Vec<File>, ExecError> {
        paths.iter().map(|(_, path)| empty_file(path)).collect()
    };
    let path = computation.wanted.first().map(Wanted::path).unwrap_or_default();
    let order = Arc::new(Order::Compute(Box::new(computation)));
    let most = MOST_ANSWER_BYTES;
    let judged =
        entered.judged_surely(&order, (sides, runners), request.timeout, most, empty_files);
    match judged.await?.answer {
        Ok(Answer::Computed(sets)) => {
            seeds.truncate(sets);
            Ok(ComputedOutputs { files: paths.into_iter().collect(), drawn: seeds })
        }
        Ok(other) => Err(other.error()),
        Err(JudgeError::TimedOut) => Err(reference_failed(&path, Failed::late(request.timeout))),
        Err(lost) => Err(no_verdict(lost)),
    }
}

/// Creates an empty file.
fn empty_file(path: &Path) -> Result<File, ExecError> {
    File::create(path).map_err(|error| {
        tracing::error!(file = %path.display(), %error, "a file of a job cannot be written");
        ExecError::Unavailable(format!("cannot write a file of the job: {error}"))
    })
}

/// Maximum size of an answer, which is only a count or an error, in bytes.
const MOST_ANSWER_BYTES: u64 = 1 << 20;

impl Wanted {
    /// Returns the path of the kernel in the request, for error messages.
    fn path(&self) -> String {
        format!("expected.{}.kernel", self.outputs[0])
    }
}

impl Computation {
    /// Returns the names of the outputs, in the order of their files.
    fn names(&self) -> impl Iterator<Item = &String> {
        self.wanted.iter().flat_map(|wanted| &wanted.outputs)
    }

    /// Computes the outputs, and returns the number of seeds for which it did. Blocking.
    pub(super) fn carried_out(
        &self,
        sessions: Vec<RunnerSession>,
        files: Vec<File>,
    ) -> Result<usize, ExecError> {
        let mut files: BTreeMap<&String, File> = self.names().zip(files).collect();
        let inputs = Inputs::of_contract(&self.io)?;
        let references = self.wanted.iter().zip(sessions);
        let mut references = references
            .map(|(wanted, session)| Reference::load(wanted, session, self.timeout))
            .collect::<Result<Vec<_>, _>>()?;
        let mut sets = Sets::default();
        let mut add = |sets: &mut Sets, outputs: &BTreeMap<String, Vec<u8>>| {
            sets.count += 1;
            sets.bytes = outputs.values().map(|elements| elements.len() as u64).sum();
            outputs.iter().try_for_each(|(name, elements)| match files.get_mut(name) {
                Some(file) => file.write_all(elements).map_err(|error| {
                    ExecError::Unavailable(format!("cannot write the expected outputs: {error}"))
                }),
                None => Ok(()),
            })
        };
        let first = sets.timed(|| computed(&mut references, &inputs, None))?;
        add(&mut sets, &first)?;
        if !inputs.can_vary() || self.seeds.is_empty() || !sets.may_grow(self.timeout) {
            return Ok(0);
        }
        // The results of a reference that keeps state depend on earlier calls. They are meaningless
        // for other inputs.
        if sets.timed(|| computed(&mut references, &inputs, None))? != first {
            return Ok(0);
        }
        for seed in &self.seeds {
            if !sets.may_grow(self.timeout) {
                break;
            }
            let outputs = sets.timed(|| computed(&mut references, &inputs, Some(*seed)))?;
            add(&mut sets, &outputs)?;
        }
        Ok(sets.count - 1)
    }
}

/// Computes the outputs of all references by name, for inputs from a seed or for the contract's
/// inputs.
fn computed(
    references: &mut [Reference<'_>],
    inputs: &Inputs,
    seed: Option<u64>,
) -> Result<BTreeMap<String, Vec<u8>>, ExecError> {
    let mut all = BTreeMap::new();
    for reference in references {
        all.extend(reference.computed(inputs, seed)?);
    }
    Ok(all)
}

/// Sets of inputs for which outputs were computed, including the contract's inputs.
#[derive(Debug, Default)]
struct Sets {
    count: usize,
    took: Duration,
    /// Time that the slowest set took.
    longest: Duration,
    /// Size of all outputs of one set, in bytes.
    bytes: u64,
}

impl Sets {
    /// Computes one set, and adds its time.
    fn timed<T>(&mut self, compute: impl FnOnce() -> Result<T, ExecError>) -> Result<T, ExecError> {
        let began = Instant::now();
        let computed = compute();
        self.took += began.elapsed();
        self.longest = self.longest.max(began.elapsed());
        computed
    }

    /// Returns whether time and memory allow outputs for one more set.
    fn may_grow(&self, timeout: f64) -> bool {
        let bytes = self.bytes.saturating_mul(self.count as u64 + 1);
        let after = (self.took + self.longest).as_secs_f64();
        if self.count <= *SETS.start() {
            return bytes <= MOST_SET_BYTES && after < SHARE_OF_TIMEOUT * timeout;
        }
        bytes <= BYTES_FOR_MORE && self.took < TIME_FOR_MORE
    }
}

/// A loaded torch kernel that computes outputs.
struct Reference<'a> {
    wanted: &'a Wanted,
    player: Player,
    seed: u64,
}

impl<'a> Reference<'a> {
    fn load(wanted: &'a Wanted, session: RunnerSession, timeout: f64) -> Result<Self, ExecError> {
        let seed = seed();
        let player = Player::load(session.unobserved(), &wanted.submission, None, seed, timeout);
        let player = player.map_err(|failed| reference_failed(&wanted.path(), failed.1))?;
        Ok(Self { wanted, player, seed })
    }

    /// Computes the elements of the outputs by name, for inputs from a seed or for the contract's
    /// inputs.
    fn computed(
        &mut self,
        inputs: &Inputs,
        of: Option<u64>,
    ) -> Result<BTreeMap<String, Vec<u8>>, ExecError> {
        let Self { wanted, player, seed } = self;
        let mut play = || {
            let shown = player.show(inputs, of)?;
            player.play(inputs, &shown, *seed, Some(&wanted.outputs))
        };
        let path = wanted.path();
        let played = play().map_err(|failed| reference_failed(&path, failed))?;
        let invalid = |message: String| {
            let code = FailureCode::UnusableOutput.of_reference();
            ExecError::Invalid(vec![Problem { path: path.clone(), code, message }])
        };
        let values = played.map_err(|reason| invalid(reason.message))?.values;
        checked(wanted, inputs, values).map_err(invalid)
    }
}

/// Selects the outputs that the kernel defines, and checks that their types and shapes match the
/// contract.
fn checked(
    wanted: &Wanted,
    inputs: &Inputs,
    values: Named,
) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let mut found = BTreeMap::new();
    for (name, value) in values.into_iter().filter(|(name, _)| wanted.outputs.contains(name)) {
        let Some(output) = inputs.outputs().iter().find(|output| output.name == name) else {
            continue;
        };
        let came = value.what();
        match value {
            Value::Tensor { dtype, shape, bytes }
                if (dtype, &shape) == (output.what.dtype, &output.what.shape) =>
            {
                found.insert(name, bytes);
            }
            _ => {
                return Err(format!(
                    "it returns {came} for output `{name}`, which is {} {} in the contract",
                    output.what.dtype,
                    shape::shown(&output.what.shape)
                ));
            }
        }
    }
    Ok(found)
}
