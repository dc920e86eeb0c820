//! What a submission is called with, and where that comes from.

use std::sync::Arc;

use blake3::Hash;

use crate::error::{ExecError, Problem, chain};
use warpgauge_contract::{ArgKind, ArgSpec, IoContract, Role};
use warpgauge_model::FailureCode;
use warpgauge_report::{TorchArgument, TorchInputSource, TorchInputs};
use warpgauge_tensor::{ElementGenerator, InitKind, TensorInit, encoding, fill_parallel, shape};
use warpgauge_torch::{
    RunnerFault, RunnerSession, Scalar, SubmissionMemory, SuggestedInput, SuggestedInputs,
    TensorAt, TensorLayout, Tree, TreeOf,
};

use super::MOST_BYTES;
use warpgauge_validate::Nudge;

/// Most inputs that are generated, and the bytes of all of them.
const MOST_SUGGESTED: usize = 64;
const MOST_SUGGESTED_BYTES: u64 = 256 << 20;

/// What a tensor of the contract holds.
#[derive(Debug, Clone)]
pub(super) enum Content {
    /// Numbers that follow from a seed.
    Init(TensorInit),
    /// These.
    Bytes(Arc<[u8]>),
}

impl Content {
    pub(super) fn is_random(&self) -> bool {
        let random = [InitKind::Uniform, InitKind::Randn, InitKind::Randint];
        matches!(self, Self::Init(init) if random.contains(&init.kind))
    }
}

/// One argument.
#[derive(Debug, Clone)]
pub(super) enum Argument {
    Tensor { name: String, what: TensorLayout, content: Content },
    Value { name: String, value: Scalar },
}

/// An output that the contract names.
#[derive(Debug, Clone)]
pub(super) struct Output {
    pub name: String,
    pub what: TensorLayout,
    /// The argument that it is as well, by its place, where the call changes one.
    pub argument: Option<usize>,
}

/// What is called with what.
#[derive(Debug, Clone)]
pub(super) enum Inputs {
    /// The contract, or a rule, says it.
    Given {
        arguments: Vec<Argument>,
        outputs: Vec<Output>,
        source: TorchInputSource,
        rule: Option<String>,
    },
    /// `get_inputs()` of one side makes it.
    Made,
}

impl Inputs {
    /// What a contract says; data are unpacked. Blocking.
    ///
    /// # Errors
    /// Data that are not what the contract says they are.
    pub(super) fn of_contract(io: &IoContract) -> Result<Self, ExecError> {
        let (mut arguments, mut outputs) = (Vec::new(), Vec::new());
        for (index, arg) in io.args.iter().enumerate().filter(|(_, arg)| !arg.is_meta) {
            let argument = (arg.role != Role::Output).then_some(arguments.len());
            if let (ArgKind::Tensor, Some(spec)) = (arg.kind, &arg.tensor_spec) {
                let what = TensorLayout::in_order(spec.dtype, spec.shape.clone());
                if arg.role != Role::Input {
                    outputs.push(Output { name: arg.name.clone(), what, argument });
                }
            }
            if arg.role != Role::Output {
                arguments.push(argument_of(index, arg)?);
            }
        }
        Ok(Self::Given { arguments, outputs, source: TorchInputSource::Contract, rule: None })
    }

    /// What was found by trying. It comes from the submission: what cannot be is refused.
    ///
    /// # Errors
    /// In words.
    pub(super) fn of_suggestion(suggestion: SuggestedInputs, seed: u64) -> Result<Self, String> {
        let mut arguments = Vec::new();
        let mut left = MOST_SUGGESTED_BYTES;
        if suggestion.arguments.len() > MOST_SUGGESTED {
            return Err(format!("{} inputs were suggested", suggestion.arguments.len()));
        }
        for suggested in suggestion.arguments {
            arguments.push(match suggested {
                SuggestedInput::Value { name, value } => Argument::Value { name, value },
                SuggestedInput::Tensor { name, dtype, shape, init } => {
                    let bytes = shape::bytes(&shape, dtype).map_err(|error| error.to_string())?;
                    left = left.checked_sub(bytes).ok_or("the inputs take too much memory")?;
                    ElementGenerator::new(&init, dtype).map_err(|error| error.to_string())?;
                    let content = Content::Init(TensorInit { seed: Some(seed), ..init });
                    Argument::Tensor { name, what: TensorLayout::in_order(dtype, shape), content }
                }
            });
        }
        let rule = suggestion.rule.chars().take(1024).collect();
        Ok(Self::Given {
            arguments,
            outputs: Vec::new(),
            source: TorchInputSource::Generated,
            rule: Some(rule),
        })
    }

    /// Whether each call can be shown others.
    pub(super) fn can_vary(&self) -> bool {
        match self {
            Self::Given { arguments, .. } => arguments.iter().any(|argument| {
                matches!(argument, Argument::Tensor { content, .. } if content.is_random())
            }),
            Self::Made => true,
        }
    }

    /// Outputs that have names.
    pub(super) fn outputs(&self) -> &[Output] {
        match self {
            Self::Given { outputs, .. } => outputs,
            Self::Made => &[],
        }
    }

    /// What places of results begin with.
    pub(super) fn root(&self) -> &'static str {
        if self.outputs().is_empty() { "output" } else { "returned" }
    }

    /// Places of the arguments that the contract lets a call change.
    pub(super) fn changing(&self) -> Vec<String> {
        let arguments = self.outputs().iter().filter_map(|output| output.argument);
        arguments.map(|argument| format!("[{argument}]")).collect()
    }

    /// Its arguments as a runner makes them; `None`: it makes its own.
    pub(super) fn tree(&self) -> Option<TreeOf<TensorLayout>> {
        match self {
            Self::Given { arguments, .. } => {
                Some(TreeOf::List(arguments.iter().map(Argument::tree).collect()))
            }
            Self::Made => None,
        }
    }

    /// An argument by its name, if it has one, else by its place.
    pub(super) fn name_of(&self, place: &str) -> String {
        let shown = self.shown(None).arguments;
        let index = place.trim_start_matches('[').split(']').next().and_then(|n| n.parse().ok());
        let named = index.and_then(|index: usize| shown.get(index));
        named.map_or_else(|| format!("inputs{place}"), |argument| argument.name.clone())
    }

    /// As reports show them; `made`: what the first call got.
    pub(super) fn shown(&self, made: Option<&Tree>) -> TorchInputs {
        let (source, rule, arguments) = match self {
            Self::Given { arguments, source, rule, .. } => {
                (*source, rule.clone(), arguments.iter().map(Argument::shown).collect())
            }
            Self::Made => {
                let leaves = made.map(|made| made.leaves("inputs")).unwrap_or_default();
                let shown = leaves.into_iter().map(|(name, leaf)| shown_leaf(name, leaf));
                (TorchInputSource::GetInputs, None, shown.collect())
            }
        };
        TorchInputs { source, rule, arguments }
    }
}

fn shown_leaf(name: String, leaf: &Tree) -> TorchArgument {
    let tensor = match leaf {
        TreeOf::Tensor(tensor) => Some(tensor),
        _ => None,
    };
    TorchArgument {
        name,
        dtype: tensor.map(|tensor| tensor.dtype),
        shape: tensor.map(|tensor| tensor.shape.clone()),
        init: None,
    }
}

impl Argument {
    fn shown(&self) -> TorchArgument {
        match self {
            Self::Tensor { name, what, content } => TorchArgument {
                name: name.clone(),
                dtype: Some(what.dtype),
                shape: Some(what.shape.clone()),
                init: match content {
                    Content::Init(init) => Some(init.clone()),
                    Content::Bytes(_) => None,
                },
            },
            Self::Value { name, .. } => {
                TorchArgument { name: name.clone(), dtype: None, shape: None, init: None }
            }
        }
    }

    fn tree(&self) -> TreeOf<TensorLayout> {
        match self {
            Self::Tensor { what, .. } => TreeOf::Tensor(what.clone()),
            Self::Value { value, .. } => TreeOf::Value(value.clone()),
        }
    }
}

fn argument_of(index: usize, arg: &ArgSpec) -> Result<Argument, ExecError> {
    let name = arg.name.clone();
    let invalid = |field: &str, code, message: String| {
        let path = format!("kernel.io.args[{index}]{field}");
        ExecError::Invalid(vec![Problem { path, code, message }])
    };
    let Some(spec) = arg.tensor_spec.as_ref().filter(|_| arg.kind == ArgKind::Tensor) else {
        let value = scalar_of(arg).map_err(|why| invalid(".value", FailureCode::WrongType, why))?;
        return Ok(Argument::Value { name, value });
    };
    let what = TensorLayout::in_order(spec.dtype, spec.shape.clone());
    let content = match (&spec.init, &spec.data) {
        (Some(init), _) => Content::Init(init.clone()),
        (None, Some(data)) => {
            let decoded = encoding::decode_to_vec(data, spec.dtype, &spec.shape);
            let bytes = decoded.map_err(|error| {
                invalid(".tensor_spec.data", FailureCode::InvalidData, chain(&error))
            })?;
            Content::Bytes(bytes.into())
        }
        (None, None) => {
            let why = "the kernel reads this tensor: give its content as `init` or `data`";
            return Err(invalid(".tensor_spec", FailureCode::MissingContent, why.to_owned()));
        }
    };
    Ok(Argument::Tensor { name, what, content })
}

fn scalar_of(arg: &ArgSpec) -> Result<Scalar, String> {
    if arg.kind == ArgKind::Str {
        let text = arg.value.as_ref().and_then(|value| value.as_str());
        return text.map(|text| Scalar::Text(text.to_owned())).ok_or("must be a string".to_owned());
    }
    use warpgauge_contract::ScalarValue;
    Ok(match arg.scalar_value()? {
        ScalarValue::Int(value) => match (i64::try_from(value), u64::try_from(value)) {
            (Ok(value), _) => Scalar::Int(value),
            (_, Ok(value)) => Scalar::Large(value),
            _ => return Err("must be a whole number of 64 bits".to_owned()),
        },
        ScalarValue::Float(value) => Scalar::Float { float: format!("{value:?}").to_lowercase() },
        ScalarValue::Bool(value) => Scalar::Bool(value),
    })
}

/// What a call will find, and how to see whether it left it alone.
pub(super) struct Presented {
    pub arguments: Tree,
    /// Of each tensor among the arguments, in order.
    digests: Vec<Hash>,
}

impl Presented {
    /// Its tensors, in order.
    pub(super) fn tensors(&self) -> Vec<TensorAt> {
        let leaves = self.arguments.leaves("").into_iter();
        let tensors = leaves.filter_map(|(_, leaf)| match leaf {
            TreeOf::Tensor(tensor) => Some(tensor.clone()),
            _ => None,
        });
        tensors.collect()
    }

    /// Of all that its tensors hold.
    pub(super) fn digest(&self) -> Hash {
        let mut hasher = blake3::Hasher::new();
        self.digests.iter().for_each(|digest| {
            hasher.update(digest.as_bytes());
        });
        hasher.finalize()
    }

    /// Whether its tensors hold what another one's do.
    pub(super) fn has_content_of(&self, other: &Self) -> bool {
        self.digests == other.digests
    }

    /// The arguments that are not what they were, by their places; those in `changing` are not looked at.
    pub(super) fn changed(
        &self,
        session: &RunnerSession,
        changing: &[String],
    ) -> Result<Vec<String>, RunnerFault> {
        let mut changed = Vec::new();
        let mut digests = self.digests.iter();
        for (place, leaf) in self.arguments.leaves("") {
            let TreeOf::Tensor(tensor) = leaf else { continue };
            let Some(before) = digests.next() else { continue };
            if !changing.contains(&place) && digest(session, tensor)? != *before {
                changed.push(place);
            }
        }
        Ok(changed)
    }
}

/// Allocates what is given in a runner and writes it there; `seed`: in place of the contract's.
///
/// # Errors
/// The runner does not let us.
pub(super) fn present(
    session: &mut RunnerSession,
    arguments: &[Argument],
    seed: Option<u64>,
) -> Result<Presented, RunnerFault> {
    let wanted = TreeOf::List(arguments.iter().map(Argument::tree).collect());
    let made = session.allocate(&wanted)?;
    let mut digests = Vec::new();
    let leaves = made.leaves("");
    for (argument, (_, leaf)) in arguments.iter().zip(leaves) {
        if let (Argument::Tensor { name, content, .. }, TreeOf::Tensor(tensor)) = (argument, leaf) {
            digests.push(write(session, tensor, name, content, seed)?);
        }
    }
    Ok(Presented { arguments: made, digests })
}

/// Copies what one runner has into another, which gets memory for it.
///
/// # Errors
/// One of the runners does not let us.
pub(super) fn copy(
    from: &RunnerSession,
    made: &Tree,
    to: &mut RunnerSession,
) -> Result<Presented, RunnerFault> {
    let arguments = to.allocate(&made.map(&mut TensorLayout::of_copy))?;
    let mut digests = Vec::new();
    for ((_, source), (_, target)) in made.leaves("").iter().zip(arguments.leaves("")) {
        let (TreeOf::Tensor(source), TreeOf::Tensor(target)) = (source, target) else { continue };
        let bytes = stored(from, source)?;
        let target = target.stored(MOST_BYTES).map_err(|e| to.fault_of(&e))?;
        overwrite(to, &target, &bytes)?;
        digests.push(blake3::hash(&bytes));
    }
    Ok(Presented { arguments, digests })
}

/// What a runner made for itself.
///
/// # Errors
/// What it told of is not there.
pub(super) fn as_made(session: &RunnerSession, arguments: Tree) -> Result<Presented, RunnerFault> {
    let mut digests = Vec::new();
    for (_, leaf) in arguments.leaves("") {
        if let TreeOf::Tensor(tensor) = leaf {
            digests.push(digest(session, tensor)?);
        }
    }
    Ok(Presented { arguments, digests })
}

/// Moves the elements of those tensors that have the type, and leave no gap in memory.
///
/// # Errors
/// They are not where the runner says.
pub(super) fn nudge(
    session: &RunnerSession,
    tensors: &[TensorAt],
    nudge: Nudge,
) -> Result<(), RunnerFault> {
    for (tensor, place) in tensors.iter().zip(0u64..) {
        let tensor = tensor.stored(MOST_BYTES).map_err(|error| session.fault_of(&error))?;
        if tensor.dtype == nudge.dtype && tensor.is_contiguous() {
            let mut bytes = stored(session, &tensor)?;
            warpgauge_tensor::nudge(
                tensor.dtype,
                &mut bytes,
                nudge.steps,
                nudge.seed ^ place << 32,
            );
            overwrite(session, &tensor, &bytes)?;
        }
    }
    Ok(())
}

/// Writes elements, which are given in C order, into a tensor.
pub(super) fn overwrite(
    session: &RunnerSession,
    tensor: &TensorAt,
    bytes: &[u8],
) -> Result<(), RunnerFault> {
    let written = tensor.overwrite(session.memory(), bytes, MOST_BYTES);
    written.map_err(|error| session.fault_of(&error))
}

fn write(
    session: &RunnerSession,
    tensor: &TensorAt,
    name: &str,
    content: &Content,
    seed: Option<u64>,
) -> Result<Hash, RunnerFault> {
    let mut hasher = blake3::Hasher::new();
    let size = tensor.dtype.size() as u64;
    let init = match content {
        Content::Init(init) => {
            TensorInit { seed: seed.filter(|_| content.is_random()).or(init.seed), ..init.clone() }
        }
        Content::Bytes(bytes) => {
            overwrite(session, tensor, bytes)?;
            return Ok(blake3::hash(bytes));
        }
    };
    let mut refused = None;
    let written = tensor.write(session.memory(), |start, part| {
        refused = fill_parallel(&init, tensor.dtype, name, start / size, part).err();
        hasher.update(part);
    });
    written.map_err(|error| session.fault_of(&error))?;
    match refused {
        // The contract was checked before.
        Some(error) => Err(RunnerFault::Forged(error.to_string())),
        None => Ok(hasher.finalize()),
    }
}

/// What a tensor holds now, in the order of memory where its strides are kept.
pub(super) fn digest(session: &RunnerSession, tensor: &TensorAt) -> Result<Hash, RunnerFault> {
    Ok(blake3::hash(&stored(session, tensor)?))
}

/// The bytes that [`digest`] is of.
fn stored(session: &RunnerSession, tensor: &TensorAt) -> Result<Vec<u8>, RunnerFault> {
    let memory: &dyn SubmissionMemory = session.memory();
    let bytes = tensor.stored(MOST_BYTES).and_then(|stored| stored.read(memory, MOST_BYTES));
    bytes.map_err(|error| session.fault_of(&error))
}
