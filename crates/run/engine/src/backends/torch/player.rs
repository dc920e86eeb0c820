//! One submission in its runner: loading it, giving it inputs, calling it, and naming its results.

use std::time::Duration;

use warpgauge_contract::{ArgKind, IoContract, KernelCode, KernelMetadata};
use warpgauge_torch::{
    EntryPoint, GivenArgument, GradientInput, LoadedModule, ModuleParameter, RunnerFault,
    RunnerSession, TensorAt, TorchSubmission, TreeOf,
};
use warpgauge_validate::{Reason, ReasonCode};

use super::MOST_BYTES;
use super::fault::{Failed, Stage, Stop};
use super::gradients::separated;
use super::inputs::{self, Inputs, Output, Presented};
use super::values::{Named, Value, copied};

/// Class names to look for in a reference, in this order, as in KernelBench.
pub(super) const REFERENCE: &[&str] = &["Model", "ModelNew"];

/// Class names to look for in a candidate, in this order.
pub(super) const CANDIDATE: &[&str] = &["ModelNew", "Model"];

/// Returns the part of a kernel's code that its runner receives. `preferred` are class names to
/// look for.
pub(super) fn submission(kernel: &KernelCode, preferred: &[&str]) -> TorchSubmission {
    let none = KernelMetadata::default();
    let metadata = kernel.metadata.as_ref().unwrap_or(&none);
    TorchSubmission {
        source: kernel.source_code.clone().unwrap_or_default(),
        entry: EntryPoint {
            function: metadata.python_function().map(str::to_owned),
            class: metadata.class_name.clone(),
            method: metadata.method_name.clone(),
        },
        preferred: preferred.iter().map(|&name| name.to_owned()).collect(),
        given: Vec::new(),
    }
}

/// Like [`submission`], for Python code that takes the arguments of a device kernel. Each parameter
/// gets the argument with its name, or otherwise the next input tensor.
pub(super) fn submission_for(
    kernel: &KernelCode,
    preferred: &[&str],
    io: Option<&IoContract>,
) -> TorchSubmission {
    let given = io.into_iter().flat_map(inputs::passed_to_python).map(|arg| GivenArgument {
        name: arg.name.clone(),
        is_tensor: arg.kind == ArgKind::Tensor,
        is_written: arg.is_output(),
    });
    TorchSubmission { given: given.collect(), ..submission(kernel, preferred) }
}

/// A submission that its runner has loaded.
pub(super) struct Player {
    pub session: RunnerSession,
    pub loaded: LoadedModule,
    /// Whether calls also return gradients.
    pub backward: bool,
    timeout: f64,
}

/// Results of one call, and the time that it took.
pub(super) struct Played {
    pub values: Named,
    pub took: Duration,
}

impl Player {
    /// Loads a submission. `init` are its constructor's arguments. `timeout` is that of the request
    /// in seconds, for messages.
    pub(super) fn load(
        mut session: RunnerSession,
        submission: &TorchSubmission,
        init: Option<&TreeOf<()>>,
        seed: u64,
        timeout: f64,
    ) -> Result<Self, Box<(RunnerSession, Failed)>> {
        match session.load(submission, init, seed) {
            Ok(loaded) => Ok(Self { session, loaded, backward: false, timeout }),
            Err(fault) => Err(Box::new((session, Failed::of(fault, Stage::Load, timeout)))),
        }
    }

    /// Converts a runner's fault to the failure of a call.
    pub(super) fn failed(&self, fault: RunnerFault) -> Failed {
        Failed::of(self.session.explained(fault), Stage::Call, self.timeout)
    }

    /// Converts a runner's fault to the end of an evaluation.
    pub(super) fn stopped(&self, of_reference: bool, fault: RunnerFault) -> Stop {
        let failed = self.failed(fault);
        if of_reference { Stop::Reference(failed) } else { Stop::Candidate(failed) }
    }

    /// Checks that the runner has remained stopped since its last answer.
    pub(super) fn still_stopped(&mut self) -> Result<(), Failed> {
        self.session.still_stopped().map_err(|fault| self.failed(fault))
    }

    /// Makes each further call compute gradients.
    pub(super) fn begin_backward(&mut self, upstream: &[GradientInput]) -> Result<(), Failed> {
        self.backward = true;
        self.session.backward(upstream).map_err(|fault| self.failed(fault))
    }

    /// Returns the failure of a submission whose results cannot be used.
    pub(super) fn unusable(&self, reason: Reason) -> Failed {
        Failed::unusable(reason.message)
    }

    /// Prepares the inputs of a call: the given ones, or otherwise those that the submission
    /// generates.
    pub(super) fn show(&mut self, inputs: &Inputs, seed: Option<u64>) -> Result<Presented, Failed> {
        let session = &mut self.session;
        let shown = match inputs {
            Inputs::Given { arguments, .. } => inputs::present(session, arguments, seed),
            Inputs::Made => {
                let made = session.make_inputs(seed.unwrap_or_default());
                made.and_then(|made| inputs::as_made(session, made))
            }
        };
        shown.map_err(|fault| self.failed(fault))
    }

    /// Copies the inputs of another submission's call into this submission's runner.
    pub(super) fn show_as(&mut self, other: &Self, shown: &Presented) -> Result<Presented, Failed> {
        let copied = inputs::copy(&other.session, &shown.arguments, &mut self.session);
        copied.map_err(|fault| self.failed(fault))
    }

    /// Calls the submission and copies its results before it can continue. With `only`, the
    /// relevant outputs are those with these names, and the submission may return only those.
    pub(super) fn play(
        &mut self,
        inputs: &Inputs,
        shown: &Presented,
        seed: u64,
        only: Option<&[String]>,
    ) -> Result<Result<Played, Reason>, Failed> {
        let called = self.session.call(seed).map_err(|fault| self.failed(fault))?;
        let root = inputs.root();
        let values = copied(&self.session, &called.returned, root);
        let values = values.map_err(|fault| self.failed(fault))?;
        let (values, gradients) = match self.backward {
            true => separated(values, root, inputs),
            false => (values, Named::new()),
        };
        let argument = |index| self.argument(shown, index);
        let named = named(inputs.outputs(), &values, only, &argument)?;
        Ok(named.map(|mut values| {
            values.extend(gradients);
            Played { values, took: called.took }
        }))
    }

    /// Returns the contents of an argument after the call.
    fn argument(&self, shown: &Presented, index: usize) -> Result<Value, Failed> {
        let TreeOf::List(arguments) = &shown.arguments else { return Ok(Value::Nothing) };
        let Some(TreeOf::Tensor(tensor)) = arguments.get(index) else { return Ok(Value::Nothing) };
        let bytes = self.elements(tensor)?;
        Ok(Value::Tensor { dtype: tensor.dtype, shape: tensor.shape.clone(), bytes })
    }

    /// Reads the elements of a tensor on the host, in C order.
    pub(super) fn elements(&self, tensor: &TensorAt) -> Result<Vec<u8>, Failed> {
        let bytes = tensor.read(self.session.memory(), MOST_BYTES);
        bytes.map_err(|error| self.failed(self.session.fault_of(&error)))
    }

    /// Reads the contents, after a call, of the arguments that `wanted` selects by path and layout.
    /// Names come from the contract if it gives them.
    pub(super) fn arguments_where(
        &self,
        inputs: &Inputs,
        shown: &Presented,
        wanted: &dyn Fn(&str, &TensorAt) -> bool,
    ) -> Result<Named, Failed> {
        let mut found = Named::new();
        for (place, leaf) in shown.arguments.leaves("") {
            let TreeOf::Tensor(tensor) = leaf else { continue };
            if wanted(&place, tensor) {
                let bytes = self.elements(tensor)?;
                let (dtype, shape) = (tensor.dtype, tensor.shape.clone());
                found.push((inputs.name_of(&place), Value::Tensor { dtype, shape, bytes }));
            }
        }
        Ok(found)
    }

    /// Reads the contents of the arguments at the given paths after a call.
    pub(super) fn arguments_at(
        &self,
        inputs: &Inputs,
        shown: &Presented,
        places: &[String],
    ) -> Result<Named, Failed> {
        self.arguments_where(inputs, shown, &|place, _| places.iter().any(|one| one == place))
    }

    /// Returns the parameter or buffer that has the name, type and shape of another module's.
    pub(super) fn counterpart(&self, of: &ModuleParameter) -> Option<&TensorAt> {
        let is_alike = |own: &&ModuleParameter| {
            (&own.name, own.tensor.dtype, &own.tensor.shape)
                == (&of.name, of.tensor.dtype, &of.tensor.shape)
        };
        self.loaded.parameters.iter().find(is_alike).map(|own| &own.tensor)
    }

    /// Writes elements, given in C order, into one of the runner's tensors on the host.
    pub(super) fn overwrite(&self, tensor: &TensorAt, elements: &[u8]) -> Result<(), Failed> {
        let written = inputs::overwrite(&self.session, tensor, elements);
        written.map_err(|fault| self.failed(fault))
    }

    /// Hashes the trained parameters. Buffers may change in a call and are omitted.
    pub(super) fn parameters(&mut self) -> Result<Vec<(String, blake3::Hash)>, Failed> {
        let now = self.session.parameters().map_err(|fault| self.failed(fault))?;
        let trained = now.iter().filter(|parameter| parameter.trained);
        let digests = trained.map(|parameter| {
            let digest = inputs::digest(&self.session, &parameter.tensor);
            Ok((parameter.name.clone(), digest.map_err(|fault| self.failed(fault))?))
        });
        digests.collect()
    }
}

/// Names results after the contract's outputs, if the contract has any. Returned values follow the
/// order of the outputs. An output that the call changes in place is read from its argument, unless
/// the call returns all outputs. With `only`, the relevant outputs are those with these names, and
/// the submission may return only those.
pub(super) fn named(
    outputs: &[Output],
    returned: &Named,
    only: Option<&[String]>,
    argument: &dyn Fn(usize) -> Result<Value, Failed>,
) -> Result<Result<Named, Reason>, Failed> {
    let all: Vec<&Output> = outputs.iter().collect();
    let found = named_as(&all, returned, argument)?;
    if let (Err(_), Some(names)) = (&found, only) {
        let few: Vec<_> = all.into_iter().filter(|one| names.contains(&one.name)).collect();
        return named_as(&few, returned, argument);
    }
    Ok(found)
}

fn named_as(
    outputs: &[&Output],
    returned: &Named,
    argument_at: &dyn Fn(usize) -> Result<Value, Failed>,
) -> Result<Result<Named, Reason>, Failed> {
    if outputs.is_empty() {
        return Ok(Ok(returned.clone()));
    }
    let by_key = |name: &str| {
        let place = format!("returned.{name}");
        returned.iter().find(|(found, _)| *found == place).map(|(_, value)| value.clone())
    };
    let fresh = outputs.iter().filter(|output| output.argument.is_none()).count();
    let nothing = returned.iter().all(|(_, value)| *value == Value::Nothing);
    let mut in_order = returned.iter().map(|(_, value)| value.clone());
    let mut named = Named::new();
    let all = returned.len() == outputs.len() && !nothing;
    for output in outputs {
        let value = match (by_key(&output.name), output.argument) {
            (Some(value), _) => Some(value),
            (None, Some(argument)) if !all => Some(argument_at(argument)?),
            _ => in_order.next(),
        };
        let Some(value) = value.filter(|_| all || nothing || returned.len() == fresh) else {
            let message = format!(
                "it returned {} values, but the contract has {} outputs: {}",
                returned.len(),
                outputs.len(),
                outputs.iter().map(|output| &*output.name).collect::<Vec<_>>().join(", ")
            );
            return Ok(Err(Reason::new(ReasonCode::OutputMismatch, message)));
        };
        named.push((output.name.clone(), value));
    }
    Ok(Ok(named))
}
