//! What a kernel for a device is expected to leave, computed by torch kernels on the CPU for the contract's
//! own inputs.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::TorchBackend;
use super::evaluate::{reference_failed, seed};
use super::fault::Failed;
use super::inputs::Inputs;
use super::player::{Player, REFERENCE, submission};
use super::process::{Answer, Order};
use super::runs::no_verdict;
use super::values::{Named, Value};
use crate::error::{ExecError, Problem};
use crate::progress::ActiveOrder;
use warpgauge_contract::{EvaluateRequest, IoContract, KernelFamily};
use warpgauge_model::FailureCode;
use warpgauge_tensor::shape;
use warpgauge_torch::{JudgeError, RunnerSession, TorchSubmission};

/// A torch kernel, and the outputs that it defines.
#[derive(Debug, Serialize, Deserialize)]
struct Wanted {
    submission: TorchSubmission,
    outputs: Vec<String>,
}

/// What torch kernels make of the inputs of a contract: what the process that judges is asked.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Computation {
    wanted: Vec<Wanted>,
    io: IoContract,
    timeout: f64,
}

/// Files in `directory` with the elements of each output that a torch kernel defines, by name.
pub(crate) async fn expectations(
    backend: &TorchBackend,
    job: &ActiveOrder<'_>,
    request: &EvaluateRequest,
    directory: &Path,
) -> Result<BTreeMap<String, PathBuf>, ExecError> {
    let mut wanted: BTreeMap<String, Wanted> = BTreeMap::new();
    for (name, expected) in &request.expected {
        let Some(kernel) =
            expected.kernel.as_deref().filter(|one| one.family() == KernelFamily::Torch)
        else {
            continue;
        };
        let identity = serde_json::to_string(kernel).unwrap_or_else(|_| name.clone());
        let new = || Wanted { submission: submission(kernel, REFERENCE), outputs: Vec::new() };
        wanted.entry(identity).or_insert_with(new).outputs.push(name.clone());
    }
    if wanted.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut entered = backend.enter(request.timeout, job.owner()).await?;
    let sides = wanted.len();
    let runners = entered.runners(sides).await?;
    let computation = Computation {
        wanted: wanted.into_values().collect(),
        io: request.kernel.io.clone().unwrap_or_default(),
        timeout: request.timeout,
    };
    let path = |(index, name): (usize, &String)| {
        (name.clone(), directory.join(format!("computed-{index}.bin")))
    };
    let paths: Vec<(String, PathBuf)> = computation.names().enumerate().map(path).collect();
    let empty_files = || -> Result<Vec<File>, ExecError> {
        paths.iter().map(|(_, path)| empty_file(path)).collect()
    };
    let order = Arc::new(Order::Compute(Box::new(computation)));
    let most = MOST_ANSWER_BYTES;
    let judged =
        entered.judged_surely(&order, (sides, runners), request.timeout, most, empty_files);
    match judged.await?.answer {
        Ok(Answer::Computed) => Ok(paths.into_iter().collect()),
        Ok(other) => Err(other.error()),
        Err(JudgeError::TimedOut) => {
            let Order::Compute(computation) = &*order else { return Ok(BTreeMap::new()) };
            let path = computation.wanted.first().map(Wanted::path).unwrap_or_default();
            Err(reference_failed(&path, Failed::late(request.timeout)))
        }
        Err(lost) => Err(no_verdict(lost)),
    }
}

/// A file that holds nothing yet.
fn empty_file(path: &Path) -> Result<File, ExecError> {
    File::create(path).map_err(|error| {
        tracing::error!(file = %path.display(), %error, "a file of a job cannot be written");
        ExecError::Unavailable(format!("cannot write a file of the job: {error}"))
    })
}

/// Most bytes of an answer that is no more than that, or why not.
const MOST_ANSWER_BYTES: u64 = 1 << 20;

impl Wanted {
    /// Where it stands in the request.
    fn path(&self) -> String {
        format!("expected.{}.kernel", self.outputs[0])
    }
}

impl Computation {
    /// Outputs, in the order of their files.
    fn names(&self) -> impl Iterator<Item = &String> {
        self.wanted.iter().flat_map(|wanted| &wanted.outputs)
    }

    /// Computes them. Blocking.
    pub(super) fn carried_out(
        self,
        sessions: Vec<RunnerSession>,
        files: Vec<File>,
    ) -> Result<(), ExecError> {
        let mut files: BTreeMap<&String, File> = self.names().zip(files).collect();
        for (wanted, session) in self.wanted.iter().zip(sessions) {
            for (name, elements) in computed(wanted, session, &self.io, self.timeout)? {
                let Some(file) = files.get_mut(&name) else { continue };
                file.write_all(&elements).map_err(|error| {
                    ExecError::Unavailable(format!("cannot write what is expected: {error}"))
                })?;
            }
        }
        Ok(())
    }
}

/// Runs one of them. Blocking.
fn computed(
    wanted: &Wanted,
    session: RunnerSession,
    io: &IoContract,
    timeout: f64,
) -> Result<BTreeMap<String, Vec<u8>>, ExecError> {
    let path = wanted.path();
    let seed = seed();
    let player = Player::load(session.unobserved(), &wanted.submission, None, seed, timeout);
    let mut player = player.map_err(|failed| reference_failed(&path, failed.1))?;
    let inputs = Inputs::of_contract(io)?;
    let mut play = || {
        let shown = player.show(&inputs, None)?;
        player.play(&inputs, &shown, seed, Some(&wanted.outputs))
    };
    let played = play().map_err(|failed| reference_failed(&path, failed))?;
    let invalid = |message: String| {
        let code = FailureCode::UnusableOutput.of_reference();
        ExecError::Invalid(vec![Problem { path: path.clone(), code, message }])
    };
    let values = played.map_err(|reason| invalid(reason.message))?.values;
    checked(wanted, &inputs, values).map_err(invalid)
}

/// The outputs that count, which must be what the contract says they are.
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
