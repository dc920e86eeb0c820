//! What a kernel for a device is expected to leave, computed by torch kernels on the CPU for the contract's
//! own inputs.

use std::collections::BTreeMap;

use super::evaluate::{reference_failed, seed};
use super::inputs::Inputs;
use super::player::{Player, REFERENCE, submission};
use super::runs::with_runners;
use super::values::{Named, Value};
use crate::error::{ExecError, Problem};
use crate::local::LocalExecutor;
use warpgauge_contract::{EvaluateRequest, IoContract, KernelCode, KernelType};
use warpgauge_model::FailureCode;
use warpgauge_tensor::shape;
use warpgauge_torch::{Session, Submission};

/// Whether a kernel is run as Python.
pub(in super::super) fn is_torch(kernel: &KernelCode) -> bool {
    kernel.kernel_type == KernelType::Torch
}

/// A torch kernel, and the outputs that it defines.
struct Wanted {
    submission: Submission,
    outputs: Vec<String>,
}

impl LocalExecutor {
    /// Elements of each output that a torch kernel defines, by name.
    pub(in super::super) async fn torch_expectations(
        &self,
        request: &EvaluateRequest,
    ) -> Result<BTreeMap<String, Vec<u8>>, ExecError> {
        let mut wanted: BTreeMap<String, Wanted> = BTreeMap::new();
        for (name, expected) in &request.expected {
            let Some(kernel) = expected.kernel.as_deref().filter(|one| is_torch(one)) else {
                continue;
            };
            let identity = serde_json::to_string(kernel).unwrap_or_else(|_| name.clone());
            let new = || Wanted { submission: submission(kernel, REFERENCE), outputs: Vec::new() };
            wanted.entry(identity).or_insert_with(new).outputs.push(name.clone());
        }
        if wanted.is_empty() {
            return Ok(BTreeMap::new());
        }
        let entered = self.enter_torch(request.timeout).await?;
        let sessions = entered.sessions(wanted.len()).await?;
        let io = request.kernel.io.clone().unwrap_or_default();
        let timeout = request.timeout;
        let work = move |sessions: Vec<Session>| {
            let mut found = BTreeMap::new();
            for (wanted, session) in wanted.into_values().zip(sessions) {
                found.extend(computed(&wanted, session, &io, timeout)?);
            }
            Ok(found)
        };
        with_runners(sessions, work).await?
    }
}

/// Runs one of them. Blocking.
fn computed(
    wanted: &Wanted,
    session: Session,
    io: &IoContract,
    timeout: f64,
) -> Result<BTreeMap<String, Vec<u8>>, ExecError> {
    let path = format!("expected.{}.kernel", wanted.outputs[0]);
    let seed = seed();
    let player = Player::load(session, &wanted.submission, None, seed, timeout);
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
