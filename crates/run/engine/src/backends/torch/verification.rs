//! Compares the results of the candidate's calls with the expected ones, and collects reasons for
//! rejecting the candidate.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use blake3::Hash;

use super::fault::Stop;
use super::gradients::{self, is_gradient};
use super::lint::Lint;
use super::noise::Noise;
use super::players::Players;
use super::values::{Named, Value};
use super::{MOST_FETCHED, MOST_FETCHED_UNASKED};
use warpgauge_contract::{EvaluateRequest, ReturnOutputs, Tolerance};
use warpgauge_report::InputsShown;
use warpgauge_tensor::Dtype;
use warpgauge_torch::Tree;
use warpgauge_validate::{
    ArgumentContents, Comparison, Reason, ReasonCode, ResolvedTolerance, ToleranceBasis, Weakness,
    resolve, resolve_by_noise, sample,
};

/// Names of a module's parameters, with hashes of their contents.
pub(super) type ParameterHashes = [(String, Hash)];

/// Returns the names of the parameters whose contents have changed.
pub(super) fn changed_parameters(before: &ParameterHashes, now: &ParameterHashes) -> Vec<String> {
    let held = |name: &String| before.iter().find(|(other, _)| other == name);
    let changed =
        now.iter().filter(|(name, now)| held(name).is_some_and(|(_, before)| before != now));
    changed.map(|(name, _)| name.clone()).collect()
}

/// Verifies the results of calls, on the CPU and on a device.
pub(super) struct Verification {
    rules: Rules,
    /// Data with which useless kernels that would pass are found.
    pub lint: Lint,
    /// Measured effect of rounding on the references' outputs.
    pub noise: Noise,
    /// Tolerance of each output, set at its first comparison or known from an earlier evaluation.
    tolerances: BTreeMap<String, ResolvedTolerance>,
    /// Whether all tolerances also hold for other parameters and inputs of the same contract.
    are_lasting: bool,
    pub found: Findings,
}

/// Requirements that the results of calls must meet.
pub(super) struct Rules {
    pub tolerance: Option<Tolerance>,
    /// Whether the results include gradients.
    pub backward: bool,
    /// Outputs whose expected values are in the contract's data.
    pub data: BTreeSet<String>,
    /// Whether the contract names the outputs; otherwise the reference does.
    pub names_outputs: bool,
    /// Parameters of the candidate that have gradients.
    pub trained: BTreeSet<String>,
    /// Whether calls after the first have other inputs.
    pub shown: InputsShown,
    /// Whether the kernel is the reference of a comparison. Such a kernel may change its inputs and
    /// parameters.
    pub is_reference: bool,
    /// Outputs that the caller requests.
    pub asked: AskedOutputs,
}

/// Outputs that the caller requests: in the answer, or as shared tensors.
#[derive(Debug, Clone, Default)]
pub(super) struct AskedOutputs {
    pub returned: ReturnOutputs,
    pub kept: BTreeSet<String>,
}

/// Findings of the verification of all calls.
#[derive(Default)]
pub(super) struct Findings {
    /// Number of verified calls. Calls without any expected output count, too.
    pub verified: u32,
    /// Digests of the inputs of these calls, and the number of calls whose inputs repeat those of
    /// an earlier call.
    pub inputs: HashSet<Hash>,
    pub repeated_inputs: u32,
    pub comparisons: BTreeMap<String, Comparison>,
    pub reasons: Vec<Reason>,
    /// Arguments of the first call.
    pub arguments: Option<Tree>,
    /// Results of the first call.
    pub outputs: Named,
    /// Gradients that only the candidate or only the reference has.
    pub unchecked: Vec<String>,
    /// Useless kernels that would pass the verification.
    pub weaknesses: Vec<Weakness>,
    /// Tolerances that later evaluations beside the same reference may reuse.
    pub tolerances: BTreeMap<String, ResolvedTolerance>,
}

/// Fetches the inputs of the call that is being verified, with their elements on the host.
pub(super) type InputsOf<'a> = dyn FnMut() -> Result<Named, Stop> + 'a;

/// Minimum number of sampled elements. With fewer, the measured effect of rounding depends too much
/// on their values.
const MANY: usize = 64;

/// Returns whether a tolerance that was derived from this number of sampled elements also applies
/// to other values of the same distribution.
fn lasts(tolerance: &ResolvedTolerance, elements: usize) -> bool {
    match tolerance.basis {
        ToleranceBasis::ReferenceNoise | ToleranceBasis::InnerRounding => elements >= MANY,
        ToleranceBasis::ExpectedSize => false,
        ToleranceBasis::Given
        | ToleranceBasis::Exact
        | ToleranceBasis::ElementType
        | ToleranceBasis::Scales => true,
    }
}

/// Returns whether an output of indices differs from the expected one only where keys of an input
/// are equal.
fn is_tied(value: &Value, wanted: &Value, inputs: &mut InputsOf<'_>) -> Result<bool, Stop> {
    let (Value::Tensor { dtype, shape, bytes }, Value::Tensor { bytes: wanted, .. }) =
        (value, wanted)
    else {
        return Ok(false);
    };
    if dtype.is_float() {
        return Ok(false);
    }
    let inputs = inputs()?;
    let seeds = inputs.iter().map(|(_, input)| match input {
        Value::Tensor { bytes, .. } => [&bytes[..]],
        _ => [&[][..]],
    });
    let seeds: Vec<[&[u8]; 1]> = seeds.collect();
    let keys = inputs.iter().zip(&seeds).filter_map(|((_, input), seeds)| match input {
        Value::Tensor { dtype, shape, .. } => {
            Some(ArgumentContents { name: "", dtype: *dtype, shape, seeds })
        }
        _ => None,
    });
    let keys: Vec<ArgumentContents<'_>> = keys.collect();
    let output = ArgumentContents { name: "", dtype: *dtype, shape, seeds: &[] };
    Ok(warpgauge_validate::tie(&output, (bytes, wanted), &keys).is_some())
}

impl Rules {
    /// Creates the rules for an evaluation whose sides are loaded.
    pub(super) fn of(
        players: &Players,
        tolerance: Option<Tolerance>,
        shown: InputsShown,
        (is_reference, asked): (bool, AskedOutputs),
    ) -> Self {
        let trained = players.candidate.loaded.parameters.iter();
        let trained = trained.filter(|parameter| parameter.trained);
        Self {
            tolerance,
            backward: players.candidate.backward,
            data: players.expectations.data.keys().cloned().collect(),
            names_outputs: !players.inputs.outputs().is_empty(),
            trained: trained.map(|parameter| parameter.name.clone()).collect(),
            shown,
            is_reference,
            asked,
        }
    }
}

impl AskedOutputs {
    pub(super) fn of(request: &EvaluateRequest) -> Self {
        let kept = request.keep_outputs.keys().cloned().collect();
        Self { returned: request.return_outputs.clone(), kept }
    }

    /// Returns the maximum size of a device result that is copied to the host as a whole, in bytes.
    fn most_fetched(&self, name: &str, value: &Value) -> u64 {
        let is_asked = self.returned.include(name) || self.kept.contains(name);
        let is_float = matches!(value, Value::OnDevice { dtype, .. } if dtype.is_float());
        if is_float && !is_asked { MOST_FETCHED_UNASKED } else { MOST_FETCHED }
    }
}

impl Verification {
    /// Creates a verification. `tolerances` are those of an earlier evaluation beside the same
    /// reference, if any.
    pub(super) fn new(rules: Rules, tolerances: BTreeMap<String, ResolvedTolerance>) -> Self {
        let (lint, noise, found) = (Lint::default(), Noise::default(), Findings::default());
        Self { rules, lint, noise, tolerances, are_lasting: true, found }
    }

    /// Returns whether a device result is too large to be copied to the host as a whole.
    pub(super) fn is_large(&self, name: &str, value: &Value) -> bool {
        value.bytes() > self.rules.asked.most_fetched(name, value)
    }

    /// Returns whether the effect of the references' rounding must be measured. It determines a
    /// tolerance fully or in part if the caller does not give the tolerance.
    pub(super) fn wants_noise(&self) -> bool {
        self.tolerances.is_empty()
            && warpgauge_validate::is_open(self.rules.tolerance.as_ref(), Dtype::Float32)
    }

    /// Returns the tolerance of an output that was compared before.
    pub(super) fn settled(&self, name: &str) -> Option<&ResolvedTolerance> {
        self.tolerances.get(name)
    }

    /// Returns the tolerance of an output. The first call of this function for the output sets it,
    /// from the expected elements or a sample of them.
    pub(super) fn settle(&mut self, name: &str, wanted: &Value) -> ResolvedTolerance {
        if let Some(settled) = self.tolerances.get(name) {
            return *settled;
        }
        let given = self.rules.tolerance.as_ref();
        let Value::Tensor { dtype, bytes, .. } = wanted else {
            return warpgauge_validate::resolve_by_type(given, Dtype::Bool);
        };
        let base = sample(bytes, *dtype);
        let runs = self.noise.runs(name);
        let settled = match self.rules.data.contains(name) {
            true => resolve(given, *dtype, &base),
            false => resolve_by_noise(given, *dtype, &base, (&runs, self.noise.computes_in(name))),
        };
        self.are_lasting &= lasts(&settled, base.len() / dtype.size());
        self.tolerances.insert(name.to_owned(), settled);
        settled
    }

    /// Verifies the results of one call, with their elements on the host.
    pub(super) fn call(
        &mut self,
        values: Named,
        expected: &BTreeMap<String, Value>,
        first: bool,
        inputs: &mut InputsOf<'_>,
    ) -> Result<(), Stop> {
        if let Some(reason) = self.missing(&values, expected) {
            return Err(self.wrong(reason));
        }
        for (name, value) in &values {
            let Some(wanted) = expected.get(name) else { continue };
            self.compare(name, (value, wanted), first, inputs)?;
        }
        if first {
            self.note_unchecked(&values, expected);
            self.found.outputs = values;
        }
        self.verdict()
    }

    /// Compares a value with the expected one and records the outcome.
    pub(super) fn compare(
        &mut self,
        name: &str,
        (value, wanted): (&Value, &Value),
        first: bool,
        inputs: &mut InputsOf<'_>,
    ) -> Result<(), Stop> {
        let tolerance = self.settle(name, wanted);
        let mut compared = value.against(wanted, name, &tolerance);
        if let Ok(comparison) = &mut compared
            && !comparison.passed
            && is_tied(value, wanted, inputs)?
        {
            comparison.excuse_ties();
        }
        self.note(name, compared, first);
        Ok(())
    }

    /// Records a comparison of an output, and a reason for rejecting the candidate if it failed.
    pub(super) fn note(&mut self, name: &str, compared: Result<Comparison, Reason>, first: bool) {
        match compared {
            Ok(comparison) => {
                let reason = Reason::of_comparison(name, &comparison);
                if first || reason.is_some() {
                    self.found.comparisons.insert(name.to_owned(), comparison);
                }
                if let Some(reason) = reason {
                    self.found.reasons.push(if first { reason } else { self.later(reason) });
                }
            }
            Err(reason) => self.found.reasons.push(reason),
        }
    }

    /// Returns a reason if the names of results or gradients differ from the expected ones. Values
    /// are compared later.
    pub(super) fn missing(
        &self,
        values: &Named,
        expected: &BTreeMap<String, Value>,
    ) -> Option<Reason> {
        let has_parameter = |name: &str| self.rules.trained.contains(name);
        if let Some(reason) = gradients::missing(values, expected, has_parameter) {
            return Some(reason);
        }
        if self.rules.names_outputs || expected.is_empty() {
            return None;
        }
        let names = values.iter().map(|(name, _)| name);
        let names: Vec<_> = names.filter(|name| !is_gradient(name)).collect();
        let absent = expected.keys().find(|name| !is_gradient(name) && !names.contains(name));
        let surplus = names.iter().find(|name| !expected.contains_key(name.as_str()));
        let message = match (absent, surplus) {
            (Some(name), _) => format!("it does not return `{name}`, but the reference does"),
            (None, Some(name)) => format!("it returns `{name}`, but the reference does not"),
            (None, None) => return None,
        };
        Some(Reason::new(ReasonCode::OutputMismatch, message))
    }

    /// Records the gradients that only the candidate or only the reference has.
    pub(super) fn note_unchecked(&mut self, values: &Named, expected: &BTreeMap<String, Value>) {
        if self.rules.backward && !expected.is_empty() {
            self.found.unchecked = gradients::unchecked(values, expected);
        }
    }

    /// Returns whether the kernel is the reference of a comparison.
    pub(super) fn is_reference(&self) -> bool {
        self.rules.is_reference
    }

    /// Checks that parameters are unchanged, except those in `changing`, which the reference also
    /// changes.
    pub(super) fn same_parameters(
        &mut self,
        before: &ParameterHashes,
        now: &ParameterHashes,
        changing: &[String],
    ) -> Result<(), Stop> {
        if self.rules.is_reference {
            return Ok(());
        }
        let differs = |((name, before), (other, now)): &(&(String, Hash), &(String, Hash))| {
            name != other || before != now && !changing.contains(name)
        };
        match before.iter().zip(now).find(differs) {
            None if before.len() == now.len() => Ok(()),
            changed => {
                let name = changed.map_or("one of them", |((name, _), _)| name.as_str());
                let message = format!(
                    "a call changed the parameter `{name}`; calls must not change parameters"
                );
                Err(self.wrong(Reason::new(ReasonCode::InputModified, message)))
            }
        }
    }

    /// Records the digest of a call's inputs, and counts repeated inputs.
    pub(super) fn note_inputs(&mut self, digest: Hash) {
        if !self.found.inputs.insert(digest) {
            self.found.repeated_inputs += 1;
        }
    }

    /// Returns whether to examine a call for useless kernels that would pass. Only the first call
    /// and calls with other inputs qualify.
    pub(super) fn wants_lint(&self, first: bool) -> bool {
        self.lint.wants_call() && (first || self.rules.shown == InputsShown::Fresh)
    }

    /// Ends the verification and returns its findings, including the weaknesses.
    pub(super) fn concluded(self) -> Findings {
        let seeded = self.rules.shown == InputsShown::Fresh && self.found.repeated_inputs == 0;
        let weaknesses = self.lint.weaknesses(&self.tolerances, seeded);
        let lasts = self.are_lasting && self.found.reasons.is_empty();
        let tolerances = if lasts { self.tolerances } else { BTreeMap::new() };
        Findings { weaknesses, tolerances, ..self.found }
    }

    /// Records a reason for rejecting the candidate, and returns the stop that ends the evaluation.
    pub(super) fn wrong(&mut self, reason: Reason) -> Stop {
        self.found.reasons.push(reason);
        Stop::Wrong
    }

    /// Returns `Stop::Wrong` if the candidate is to be rejected.
    pub(super) fn verdict(&self) -> Result<(), Stop> {
        if self.found.reasons.is_empty() { Ok(()) } else { Err(Stop::Wrong) }
    }

    /// Returns the reason for rejecting a kernel whose first call was correct and whose later call
    /// was not. `reason` describes the mismatch of the later call.
    fn later(&self, reason: Reason) -> Reason {
        let (code, when) = match self.rules.shown {
            InputsShown::Fresh => (ReasonCode::WrongForOtherSeeds, "inputs of other seeds"),
            InputsShown::Same | InputsShown::SameStateWiped => {
                (ReasonCode::OutputVariesBetweenTrials, "a later call with the same inputs")
            }
        };
        Reason::new(code, format!("right at first, but wrong for {when}: {}", reason.message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verification(backward: bool, shown: InputsShown) -> Verification {
        Verification::new(
            Rules {
                tolerance: None,
                backward,
                data: BTreeSet::new(),
                names_outputs: false,
                trained: BTreeSet::from(["weight".to_owned()]),
                shown,
                is_reference: false,
                asked: AskedOutputs::default(),
            },
            BTreeMap::new(),
        )
    }

    fn none() -> Result<Named, Stop> {
        Ok(Named::new())
    }

    fn number(value: f32) -> Value {
        let bytes = value.to_le_bytes().to_vec();
        Value::Tensor { dtype: Dtype::Float32, shape: vec![1], bytes }
    }

    fn named(values: &[(&str, f32)]) -> Named {
        values.iter().map(|&(name, value)| (name.to_owned(), number(value))).collect()
    }

    fn expected(values: &[(&str, f32)]) -> BTreeMap<String, Value> {
        named(values).into_iter().collect()
    }

    fn reason(verification: &Verification) -> (ReasonCode, &str) {
        let [reason] = &verification.found.reasons[..] else { panic!("one reason") };
        (reason.code, &reason.message)
    }

    #[test]
    fn a_later_call_is_wrong_in_the_words_of_its_inputs() {
        for (shown, code, when) in [
            (InputsShown::Fresh, ReasonCode::WrongForOtherSeeds, "inputs of other seeds"),
            (InputsShown::Same, ReasonCode::OutputVariesBetweenTrials, "with the same inputs"),
        ] {
            let mut verification = verification(false, shown);
            let wanted = expected(&[("output", 1.0)]);
            assert!(verification.call(named(&[("output", 1.0)]), &wanted, true, &mut none).is_ok());
            assert_eq!(verification.found.outputs, named(&[("output", 1.0)]));
            assert!(verification.found.comparisons["output"].passed);
            let stop = verification.call(named(&[("output", 2.0)]), &wanted, false, &mut none);
            assert!(matches!(stop, Err(Stop::Wrong)));
            let (found, message) = reason(&verification);
            assert_eq!(found, code);
            assert!(message.contains(when), "{message}");
            assert!(!verification.found.comparisons["output"].passed);
            // The findings keep the outputs of the first call.
            assert_eq!(verification.found.outputs, named(&[("output", 1.0)]));
        }
    }

    #[test]
    fn outputs_that_only_one_side_has_are_named() {
        for (own, theirs, text) in [
            (&[("a", 1.0)][..], &[("a", 1.0), ("b", 1.0)][..], "it does not return `b`"),
            (&[("a", 1.0), ("b", 1.0)][..], &[("a", 1.0)][..], "it returns `b`"),
        ] {
            let mut verification = verification(false, InputsShown::Same);
            assert!(verification.call(named(own), &expected(theirs), true, &mut none).is_err());
            let (code, message) = reason(&verification);
            assert_eq!(code, ReasonCode::OutputMismatch);
            assert!(message.starts_with(text), "{message}");
        }
        // Nothing is expected.
        let mut verification = verification(false, InputsShown::Same);
        assert!(verification.call(named(&[("a", 1.0)]), &expected(&[]), true, &mut none).is_ok());
    }

    #[test]
    fn gradients_of_parameters_that_the_candidate_arranges_otherwise_are_not_missed() {
        let wanted = [("output", 1.0), ("grad.parameters.bias", 1.0)];
        let mut lenient = verification(true, InputsShown::Same);
        let own = [("output", 1.0), ("grad.parameters.shift", 1.0)];
        assert!(lenient.call(named(&own), &expected(&wanted), true, &mut none).is_ok());
        assert_eq!(lenient.found.unchecked, ["grad.parameters.shift", "grad.parameters.bias"]);
        for missed in ["grad.parameters.weight", "grad.parameters.bias", "grad.x"] {
            let mut strict = verification(true, InputsShown::Same);
            let wanted = expected(&[("output", 1.0), (missed, 1.0)]);
            assert!(strict.call(named(&[("output", 1.0)]), &wanted, true, &mut none).is_err());
            let text = format!("it returns no gradient `{missed}`, but the reference does");
            assert_eq!(reason(&strict), (ReasonCode::OutputMismatch, &*text));
        }
    }

    #[test]
    fn a_changed_parameter_is_named() {
        let held = |bytes: &[u8]| [("weight".to_owned(), blake3::hash(bytes))];
        let mut verification = verification(false, InputsShown::Same);
        let with_reference = ["weight".to_owned()];
        assert!(verification.same_parameters(&held(b"1"), &held(b"2"), &with_reference).is_ok());
        assert!(verification.same_parameters(&held(b"1"), &held(b"1"), &[]).is_ok());
        assert!(verification.same_parameters(&held(b"1"), &held(b"2"), &[]).is_err());
        let (code, message) = reason(&verification);
        assert_eq!(code, ReasonCode::InputModified);
        assert!(message.contains("`weight`"), "{message}");
    }
}
