//! Wire types of a comparison.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::{ContractError, Mistakes};
use super::{
    CompareAs, ContractLimits, EvaluateRequest, Expected, IoContract, Isolation, KernelCode,
    MatrixUsed, MeasureSpec, ProfileSpec, RequestWarning, ReturnOutputs, Sanitize, TensorUsed,
    Tolerance, validate,
};
use super::{NamesMatrices, NamesTensors, named, shared};
use crate::check::program;
use crate::{KernelFamily, KernelRuntime, compare_as};
use warpgauge_model::{FailureCode, Regime, Requirements, Work};
use warpgauge_tensor::{OutputEncoding, set_apart};

/// Maximum number of kernels that one request compares with the reference.
pub const MAX_CANDIDATES: usize = 6;

/// Longest name of a candidate, bytes.
pub const MAX_CANDIDATE_NAME_BYTES: usize = 128;

/// Request of `POST /compare` and `warpgauge compare`: a reference, and one `custom_kernel` or several `candidates`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompareRequest {
    /// Reference kernel. It also computes the expected outputs.
    pub ref_kernel: KernelCode,
    /// Candidate kernel. Without `io` it takes the arguments and the launch of the reference.
    /// Arguments that it lists must include the reference's tensors in the same order; scalars may
    /// be its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_kernel: Option<KernelCode>,
    /// Candidate kernels, 1–6, in place of `custom_kernel`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<Candidate>,
    /// Number of timed launches of each kernel in its evaluation, 1–10000. Default: the number that the preset's
    /// precision requires. The blocks of the comparison always have the preset's number. Long calls of torch kernels
    /// on a GPU are timed less often if the median is already precise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10000))]
    pub num_trials: Option<u32>,
    /// Time limit of each run on the device from the start of its execution, seconds, 0.1–600. A side-by-side run has
    /// the preset's time (or `measure.max_time`) in addition. The same limit, but at least 10 s and at most the
    /// server's limit, applies to each compilation.
    #[serde(default = "default_timeout")]
    #[schemars(range(min = 0.1, max = 600))]
    pub timeout: f64,
    /// Absolute tolerance. Default: derived from the reference's rounding errors; 0 for integers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub atol: Option<f64>,
    /// Relative tolerance, with the same default as `atol`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtol: Option<f64>,
    /// Share of elements that must pass, 0–1; default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_matched_ratio: Option<f64>,
    /// Whether NaN matches NaN, and an infinity matches an equal infinity; default true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_non_finite: Option<bool>,
    /// Rules for outputs that have more than one right content, by argument name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub compare_as: BTreeMap<String, CompareAs>,
    /// Whether kernels are compared although a useless kernel would pass too. Otherwise the verdict on each is
    /// `weak`.
    #[serde(default)]
    pub allow_weak: bool,
    /// Minimum work that each kernel must do, for the roofline and the speed-of-light floor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Work>,
    /// Settings of the measurement.
    #[serde(default)]
    pub measure: MeasureSpec,
    /// Device metrics to collect for each kernel, in launches that are not timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileSpec>,
    /// Processes that run and judge each kernel in its evaluation. `warm` (default): a running worker; `fresh`: a new
    /// process; `sealed`: a process that contains only the kernel, judged by another process.
    #[serde(default)]
    pub isolation: Isolation,
    /// Requirements for the device and the installed tools.
    #[serde(default, skip_serializing_if = "Requirements::is_empty")]
    pub requires: Requirements,
    /// Decision rule for times, in place of the preset's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<DecisionSpec>,
    /// Whether a single candidate is timed even if its image and launch are the reference's. Otherwise both run for
    /// their outputs only, and the report has `same_image`.
    #[serde(default = "default_true")]
    pub measure_identical: bool,
    /// Matrices whose content the request contains, as in [`EvaluateRequest::matrices`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub matrices: Vec<MatrixUsed>,
    /// Shared tensors whose content the request contains, as in [`EvaluateRequest::tensors`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub tensors: Vec<TensorUsed>,
    /// Ignored fields of the request, and missing fields that were filled in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub warnings: Vec<RequestWarning>,
}

/// Decision rule for times. Missing fields have the preset's values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DecisionSpec {
    /// Margin: the least relative difference that is called `faster` or `slower`, 0.0001–0.5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<f64>,
    /// Relative difference within which the verdict is `same`, 0.0002–1; at least two margins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equivalence: Option<f64>,
    /// Probability of a wrong `slower`, and likewise of a wrong `faster`, 0.000000001–0.2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
    /// Number of blocks, 8–1024, after which the decision is made once, in place of the preset's looks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 8, max = 1024))]
    pub blocks: Option<u32>,
}

impl DecisionSpec {
    fn check(&self, mistakes: &mut Mistakes) {
        let shares = [
            ("margin", self.margin, 1e-4..=0.5),
            ("equivalence", self.equivalence, 2e-4..=1.0),
            ("alpha", self.alpha, 1e-9..=0.2),
        ];
        for (field, value, range) in shares {
            let fits = value.is_none_or(|value| range.contains(&value));
            mistakes.require(fits, format!("decision.{field}"), FailureCode::OutOfRange, || {
                format!("must be from {} to {}", range.start(), range.end())
            });
        }
        let fits = self.blocks.is_none_or(|blocks| (8..=1024).contains(&blocks));
        mistakes.require(fits, "decision.blocks", FailureCode::OutOfRange, || {
            "must be from 8 to 1024".to_owned()
        });
    }
}

/// Candidate of a comparison.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// Name in the report. It must be unique, and not `reference`; at most 128 bytes.
    pub name: String,
    /// Kernel of the candidate.
    pub kernel: KernelCode,
}

/// Name of the reference in responses.
pub const REFERENCE_NAME: &str = "reference";

/// Name of `custom_kernel` in responses.
pub const CUSTOM_NAME: &str = "custom";

fn default_timeout() -> f64 {
    120.0
}

fn default_true() -> bool {
    true
}

impl CompareRequest {
    /// Gives a Python reference the arguments of the first candidate that a worker runs, if the reference lists no
    /// arguments or only some of these. Python code takes the arguments that its parameters name.
    pub fn settle_arguments(&mut self) {
        if self.ref_kernel.family() != KernelFamily::Torch {
            return;
        }
        let candidates = self.candidates.iter().map(|candidate| &candidate.kernel);
        let for_device = self
            .custom_kernel
            .iter()
            .chain(candidates)
            .filter(|kernel| kernel.family().runtime() == KernelRuntime::Worker);
        let theirs = for_device.filter_map(|kernel| kernel.io.as_ref()).map(|io| &io.args);
        let Some(theirs) = theirs.into_iter().find(|args| !args.is_empty()) else { return };
        let own = self.ref_kernel.io.as_ref().map_or(&[][..], |io| &io.args);
        let is_theirs = |own: &super::ArgSpec| {
            let same = theirs.iter().find(|theirs| theirs.name == own.name);
            same.is_some_and(|theirs| describes(own, theirs))
        };
        if own.len() >= theirs.len() || !own.iter().all(is_theirs) {
            return;
        }
        let args = theirs.iter().filter(|arg| is_compared(arg)).cloned();
        let args = args.map(|arg| super::ArgSpec { descriptor: None, symbol: None, ..arg });
        self.ref_kernel.io = Some(IoContract { args: args.collect(), launch: None });
    }

    /// Returns the candidates by name. A candidate without `io` gets the reference's.
    pub fn named_candidates(&self) -> Vec<Candidate> {
        let custom = self
            .custom_kernel
            .iter()
            .map(|kernel| Candidate { name: CUSTOM_NAME.to_owned(), kernel: kernel.clone() });
        let mut all = custom.chain(self.candidates.iter().cloned()).collect::<Vec<_>>();
        let none = IoContract::default();
        let reference = self.ref_kernel.io.as_ref().unwrap_or(&none);
        for candidate in &mut all {
            let kernel = candidate.kernel.clone();
            candidate.kernel = kernel.beside(reference, self.ref_kernel.kernel_type);
        }
        all
    }

    /// Returns the candidates as they were sent, each with its path in the request.
    pub(super) fn paths(&self) -> impl Iterator<Item = (String, &KernelCode)> {
        let candidates = self.candidates.iter().map(|candidate| &candidate.kernel);
        let kernels = self.custom_kernel.iter().chain(candidates);
        kernels.enumerate().map(|(index, kernel)| (self.path_of(index), kernel))
    }

    /// Returns whether the kernels have different runtimes, so that no clock times all of them.
    pub fn is_mixed(&self) -> bool {
        let runtime = self.ref_kernel.family().runtime();
        let candidates = self.candidates.iter().map(|candidate| &candidate.kernel);
        let mut kernels = self.custom_kernel.iter().chain(candidates);
        kernels.any(|kernel| kernel.family().runtime() != runtime)
    }

    /// Returns whether any kernel requests gradients, which are then computed for all kernels.
    pub fn wants_backward(&self) -> bool {
        let candidates = self.candidates.iter().map(|candidate| &candidate.kernel);
        let mut kernels =
            std::iter::once(&self.ref_kernel).chain(&self.custom_kernel).chain(candidates);
        kernels.any(KernelCode::wants_backward)
    }

    /// Returns the path of a candidate's kernel in the request.
    pub fn path_of(&self, candidate: usize) -> String {
        match &self.custom_kernel {
            Some(_) => "custom_kernel".to_owned(),
            None => format!("candidates[{candidate}].kernel"),
        }
    }

    /// Returns the evaluation of one of the kernels. The reference computes its expected outputs.
    pub fn evaluation_of(&self, kernel: &KernelCode) -> EvaluateRequest {
        let mut oracle = self.ref_kernel.clone();
        // Each kernel has its own choice of arguments that are descriptors.
        let described = [&oracle, kernel].into_iter().filter_map(|kernel| kernel.io.as_ref());
        let described = described.flat_map(|io| &io.args).any(|arg| arg.descriptor.is_some());
        if let Some(io) = &mut oracle.io {
            // Each kernel has its own scratch memory, structures and variables, and may have its own scalars.
            let names = |args: &[super::ArgSpec]| {
                let passed = args.iter().filter(|arg| is_compared(arg));
                passed.map(|arg| arg.name.clone()).collect::<Vec<_>>()
            };
            let theirs = kernel.io.as_ref().map_or(&[][..], |io| &io.args);
            let has_own = io.args.iter().any(|arg| arg.is_private() || arg.symbol.is_some())
                || names(&io.args) != names(theirs);
            io.args.retain(|arg| arg.is_meta || described || has_own);
        }
        let empty = IoContract::default();
        let args = &self.ref_kernel.io.as_ref().unwrap_or(&empty).args;
        let outputs = args.iter().filter(|arg| arg.is_output());
        let expected = outputs.map(|arg| {
            let kernel = Some(Box::new(oracle.clone()));
            let expected = Expected { kernel, ..Expected::default() };
            (arg.name.clone(), expected)
        });
        EvaluateRequest {
            kernel: kernel.clone(),
            num_trials: self.num_trials,
            timeout: self.timeout,
            expected: expected.collect(),
            tolerance: Some(Tolerance {
                atol: self.atol,
                rtol: self.rtol,
                required_matched_ratio: self.required_matched_ratio,
                allow_non_finite: self.allow_non_finite,
            }),
            // A torch kernel that is compared with a device kernel is only its reference.
            compare_as: match kernel.family() == KernelFamily::Device {
                true => self.compare_as.clone(),
                false => BTreeMap::new(),
            },
            allow_weak: self.allow_weak,
            work: self.work.clone(),
            measure: self.measure.clone(),
            profile: self.profile.clone().filter(|_| kernel.family().has_metrics()),
            sanitize: Sanitize::Off,
            return_outputs: ReturnOutputs::None,
            output_encoding: OutputEncoding::default(),
            keep_outputs: BTreeMap::new(),
            isolation: self.isolation,
            matrices: Vec::new(),
            tensors: Vec::new(),
            warnings: Vec::new(),
            requires: match kernel.family().runtime() {
                // The required device is for the other kernels.
                KernelRuntime::Judge if self.is_mixed() => Requirements::default(),
                KernelRuntime::Worker | KernelRuntime::Judge | KernelRuntime::Process => {
                    self.requires.clone()
                }
            },
        }
    }
}

/// Checks everything that needs no decoded tensor data.
pub fn validate_compare(
    request: &CompareRequest,
    limits: &ContractLimits,
) -> Result<(), Vec<ContractError>> {
    let mut mistakes = Mistakes::new(limits.max_errors);
    let given = (request.custom_kernel.is_some(), request.candidates.len());
    mistakes.require(
        matches!(given, (true, 0) | (false, 1..=MAX_CANDIDATES)),
        "custom_kernel",
        FailureCode::Candidates,
        || {
            format!(
                "give either `custom_kernel` or 1 to {MAX_CANDIDATES} `candidates`, not {} and {}",
                u8::from(given.0),
                given.1
            )
        },
    );
    let mut names = std::collections::BTreeSet::from([REFERENCE_NAME]);
    for (index, candidate) in request.candidates.iter().enumerate() {
        let fits = (1..=MAX_CANDIDATE_NAME_BYTES).contains(&candidate.name.len())
            && !candidate.name.chars().any(warpgauge_model::is_hidden);
        let unique = names.insert(&candidate.name);
        mistakes.require(
            fits && unique,
            format!("candidates[{index}].name"),
            FailureCode::CandidateName,
            || {
                format!(
                    "must be unique, 1 to {MAX_CANDIDATE_NAME_BYTES} printable bytes, and not \
                     `{REFERENCE_NAME}`"
                )
            },
        );
    }
    if let Some(decision) = &request.decision {
        decision.check(&mut mistakes);
    }
    let isolated = request.measure.regime == Regime::Isolated;
    mistakes.require(isolated, "measure.regime", FailureCode::OutOfRange, || {
        "must be `isolated` in a comparison: the kernels take turns, so neither runs at the clock \
         of its own steady load; evaluate each alone with `sustained`"
            .to_owned()
    });
    named::unresolved(&request.matrix_names(), &mut mistakes);
    shared::unresolved(&request.tensor_names(), &mut mistakes);
    program::is_misplaced(request.ref_kernel.kernel_type, "ref_kernel.kernel_type", &mut mistakes);
    for (path, kernel) in request.paths() {
        program::is_misplaced(kernel.kernel_type, &format!("{path}.kernel_type"), &mut mistakes);
    }
    let mut kernels = request.paths().map(|(_, kernel)| kernel).chain([&request.ref_kernel]);
    if !request.compare_as.is_empty()
        && !kernels.any(|kernel| kernel.family() == KernelFamily::Device)
    {
        compare_as::report_family(request.ref_kernel.kernel_type, &mut mistakes);
    }
    mistakes.into_result()?;
    let mut mistakes = Mistakes::new(limits.max_errors);
    let named = request.ref_kernel.io.as_ref().is_some_and(|io| !io.args.is_empty());
    mistakes.require(named || !request.is_mixed(), "ref_kernel.io", FailureCode::MissingIo, || {
        "kernels for a device need named arguments: give the reference `io.args` with their \
         inputs and outputs, in the order of their parameters"
            .to_owned()
    });
    let able = !request.is_mixed() || !request.wants_backward();
    mistakes.require(able, "ref_kernel.metadata", FailureCode::WrongField, || {
        "kernels for a device have no gradients: leave `backward` out of all kernels, or compare torch \
         kernels with each other"
            .to_owned()
    });
    mistakes.into_result()?;
    let reference = request.evaluation_of(&request.ref_kernel);
    validate(&reference, limits).map_err(|errors| at(errors, "ref_kernel"))?;
    let args = request.ref_kernel.io.as_ref().map_or(&[][..], |io| &io.args);
    for (index, candidate) in request.named_candidates().iter().enumerate() {
        let path = request.path_of(index);
        let own = candidate.kernel.io.as_ref().map_or(&[][..], |io| &io.args);
        same_arguments(args, own, &path, limits)?;
        let evaluation = request.evaluation_of(&candidate.kernel);
        validate(&evaluation, limits).map_err(|errors| at(errors, &path))?;
    }
    Ok(())
}

/// Checks that both kernels have the same tensors in the same order, because any difference between tensors would be
/// compared too. Other arguments may belong to one kernel alone. Those that both kernels have must be equal.
fn same_arguments(
    reference: &[super::ArgSpec],
    candidate: &[super::ArgSpec],
    path: &str,
    limits: &ContractLimits,
) -> Result<(), Vec<ContractError>> {
    let mut mistakes = Mistakes::new(limits.max_errors);
    // The form in which a kernel takes a tensor may differ.
    let bare =
        |arg: &super::ArgSpec| super::ArgSpec { descriptor: None, symbol: None, ..arg.clone() };
    let same =
        |theirs: &super::ArgSpec, own: &super::ArgSpec| same_argument(&bare(theirs), &bare(own));
    let (theirs, own) = (tensors(reference), tensors(candidate));
    mistakes.require(
        theirs.len() == own.len(),
        format!("{path}.io.args"),
        FailureCode::DifferentArguments,
        || {
            format!(
                "has {} tensors, but the reference has {}; leave `args` out to take the reference's",
                own.len(),
                theirs.len()
            )
        },
    );
    for ((_, theirs), (index, own)) in theirs.into_iter().zip(own) {
        mistakes.require(
            same(theirs, own),
            format!("{path}.io.args[{index}]"),
            FailureCode::DifferentArguments,
            || {
                format!(
                    "differs from `{}`, the reference's tensor in its place; leave `args` out to take \
                     the reference's",
                    theirs.name
                )
            },
        );
    }
    let others = candidate.iter().enumerate();
    for (index, own) in
        others.filter(|(_, own)| is_compared(own) && own.kind != super::ArgKind::Tensor)
    {
        let theirs = reference.iter().find(|theirs| is_compared(theirs) && theirs.name == own.name);
        mistakes.require(
            theirs.is_none_or(|theirs| same(theirs, own)),
            format!("{path}.io.args[{index}]"),
            FailureCode::DifferentArguments,
            || {
                format!(
                    "differs from the reference's `{}`; give it another name if it has another \
                     meaning",
                    own.name
                )
            },
        );
    }
    mistakes.into_result()
}

/// Returns the tensors that kernels of a comparison share, each with its index among the arguments.
fn tensors(args: &[super::ArgSpec]) -> Vec<(usize, &super::ArgSpec)> {
    let shared = |arg: &super::ArgSpec| is_compared(arg) && arg.kind == super::ArgKind::Tensor;
    args.iter().enumerate().filter(|(_, arg)| shared(arg)).collect()
}

/// Returns whether an argument is one that kernels of a comparison share. Each kernel has its own constants, scratch
/// memory and structures.
fn is_compared(arg: &super::ArgSpec) -> bool {
    !arg.is_meta && !arg.is_private()
}

/// Returns whether an argument of a reference agrees with the candidate's argument of that name.
fn describes(own: &super::ArgSpec, theirs: &super::ArgSpec) -> bool {
    let (Some(spec), Some(their_spec)) = (&own.tensor_spec, &theirs.tensor_spec) else {
        return own.kind == theirs.kind && own.value == theirs.value;
    };
    let has_content = spec.init.is_some() || spec.data.is_some();
    let same_content = !has_content || same_argument(&with_role_of(theirs, own), theirs);
    (&spec.shape, spec.dtype) == (&their_spec.shape, their_spec.dtype) && same_content
}

/// Returns `own` with the fields of the candidate's argument that a reference need not repeat.
fn with_role_of(theirs: &super::ArgSpec, own: &super::ArgSpec) -> super::ArgSpec {
    let (descriptor, symbol) = (theirs.descriptor.clone(), theirs.symbol.clone());
    let (role, c_type) = (theirs.role, theirs.c_type.clone());
    super::ArgSpec { role, descriptor, symbol, c_type, ..own.clone() }
}

/// Compares two arguments. Large content is compared in place, without a copy as text.
fn same_argument(theirs: &super::ArgSpec, own: &super::ArgSpec) -> bool {
    let apart = |arg| set_apart(|| serde_json::to_value(arg).ok());
    let ((theirs, their_content), (own, own_content)) = (apart(theirs), apart(own));
    let mut contents = their_content.iter().zip(&own_content);
    theirs == own
        && their_content.len() == own_content.len()
        && contents.all(|(theirs, own)| theirs.same_bytes(own).unwrap_or(false))
}

/// Converts the errors of an evaluation to errors of its comparison. The path of the kernel is
/// `kernel`, and the fields of the tolerance are at the top level. Errors of the reference are
/// reported only if there are no others.
fn at(errors: Vec<ContractError>, kernel: &str) -> Vec<ContractError> {
    let moved = |mut error: ContractError| {
        if let Some(rest) = error.path.strip_prefix("kernel") {
            error.path = format!("{kernel}{rest}");
        } else if let Some(rest) = error.path.strip_prefix("tolerance.") {
            error.path = rest.to_owned();
        }
        error
    };
    let (expected, own): (Vec<_>, Vec<_>) =
        errors.into_iter().map(moved).partition(|error| error.path.starts_with("expected."));
    if own.is_empty() { expected } else { own }
}

#[cfg(test)]
mod tests;
