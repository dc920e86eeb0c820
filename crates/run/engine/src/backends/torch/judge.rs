//! The order of the calls of one evaluation: one with the contract's own inputs, one to warm up, and then
//! those that are timed, each with inputs that no call before it saw. Every one is verified.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use warpgauge_contract::Tolerance;
use warpgauge_report::{InputsShown, TorchParameters};
use warpgauge_statistics::StopReason;
use warpgauge_torch::{Secret, Tree};
use warpgauge_validate::{Comparison, Reason, ReasonCode};

use super::backward::is_gradient;
use super::fault::Failed;
use super::gpu::beside::{Compared, SideBySide};
use super::gpu::traced::Traced;
use super::inputs::{Inputs, Presented};
use super::player::{Played, Player};
use super::values::{Named, Value};

/// Calls before the first that is timed.
pub(super) const WARMUP: u32 = 1;

/// Names of parameters that a report lists.
const MOST_NAMES: usize = 10;

/// How many calls to time.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Plan {
    /// At most so many.
    pub trials: u32,
    /// No more are begun after that long, but for the first three.
    pub max_time: Duration,
    /// Whether each call is to see inputs of its own.
    pub fresh: bool,
}

/// Fewest calls that are timed, however long they take.
const LEAST: usize = 3;

/// What outputs are to be.
pub(super) struct Expectations {
    /// Values that do not depend on the call, by name.
    pub data: BTreeMap<String, Value>,
    /// Submissions that compute them, with the names of the outputs that count of each; without names
    /// all do.
    pub references: Vec<(Player, Option<Vec<String>>)>,
}

/// What came of an evaluation.
#[derive(Default)]
pub(super) struct Judged {
    pub samples_ms: Vec<f32>,
    /// Why no more calls were timed.
    pub stopped: Option<StopReason>,
    /// Calls whose outputs were verified, or would have been had anything been expected.
    pub verified: u32,
    pub comparisons: BTreeMap<String, Comparison>,
    pub reasons: Vec<Reason>,
    /// Why it ended early, and whether it was a reference that did.
    pub failed: Option<(Failed, bool)>,
    /// What the first call returned.
    pub outputs: Named,
    /// What the first call got.
    pub arguments: Option<Tree>,
    pub parameters: Option<TorchParameters>,
    pub shown: Option<InputsShown>,
    /// Gradients of one side that the other one does not have.
    pub unchecked: Vec<String>,
    /// Why there is no verdict, where that is the machine's fault.
    pub broken: Option<String>,
    /// What two clocks say, where there is a device.
    pub clocks: Option<Clocks>,
    /// The candidate beside the reference, where that was asked for and there is a device.
    pub compared: Option<Compared>,
    /// What the device did during some calls, or why that is not known, where it was asked for.
    pub traced: Option<Result<Traced, String>>,
    /// Whether a call was made that a tool looked at, or why not, where that was asked for.
    pub counted: Option<Result<(), String>>,
    pub executing: Duration,
    pub verifying: Duration,
    pub presenting: Duration,
}

/// What the clocks say of a kernel on a device.
#[derive(Debug, Clone, Default)]
pub(super) struct Clocks {
    /// Events round each call, with a cold cache, by the runner that has the submission, milliseconds.
    pub inside_ms: Vec<f32>,
    /// Of one call of each batch, by the judge's clock, milliseconds: at least what it took, since of handing
    /// over what is not sure is not deducted.
    pub outside_ms: Vec<f32>,
    /// Calls of such a batch.
    pub batch: u32,
    /// What handing a batch over takes, milliseconds: what of it is sure was deducted.
    pub hand_over_ms: f64,
    /// Bytes written before each call that events were round.
    pub flushed: u64,
    /// Calls that were neither the first nor timed.
    pub warmup: u32,
}

/// How much handing over varies, of what it takes.
pub(super) const UNSURE: f64 = 0.25;

/// What is not sure of handing a batch over, of each of its calls, milliseconds.
pub(super) fn unsure_ms(hand_over_ms: f64, batch: u32) -> f64 {
    hand_over_ms * UNSURE / f64::from(batch.max(1))
}

impl Clocks {
    /// How much of a call's time may be that of handing over, milliseconds, beyond what was deducted; or how much
    /// more may have been deducted: it varies by less than a quarter.
    pub(super) fn resolution_ms(&self) -> f64 {
        unsure_ms(self.hand_over_ms, self.batch)
    }

    /// Whether the clocks agree: the judge's says no more than the events do, but for a hundredth and what
    /// handing over may be.
    pub(super) fn agree(&self) -> bool {
        let (inside, outside) = (median(&self.inside_ms), median(&self.outside_ms));
        !self.inside_ms.is_empty() && outside <= inside * 1.01 + 2.0 * self.resolution_ms()
    }

    /// The times that count: those of the events, if the judge's clock agrees.
    pub(super) fn samples(&self) -> &[f32] {
        if self.agree() { &self.inside_ms } else { &self.outside_ms }
    }
}

/// The middle of some times, milliseconds.
pub(super) fn median(times: &[f32]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f32::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default().into()
}

/// One evaluation.
pub(super) struct Judge {
    pub candidate: Player,
    pub expectations: Expectations,
    pub inputs: Inputs,
    pub tolerance: Option<Tolerance>,
    pub plan: Option<Plan>,
    /// How the candidate is timed beside the reference, if it is to be.
    pub beside: Option<SideBySide>,
    /// Whether what the device does is to be told, where there is one.
    pub trace: bool,
    /// Whether a call is to be made that the tool round the candidate looks at.
    pub count: bool,
    /// Whether gradients are computed, too.
    pub backward: bool,
    pub secret: Secret,
    pub judged: Judged,
}

/// Whose failure it was.
pub(super) enum Stop {
    Candidate(Failed),
    Reference(Failed),
    /// The machine's, in words.
    Broken(String),
    /// Something speaks against the candidate.
    Wrong,
}

impl Judge {
    /// Calls, and verifies each call before the next.
    pub(super) fn run(mut self) -> (Judged, Player) {
        let ended = self.calls().and_then(|()| self.still_stopped());
        self.ended(ended)
    }

    /// Whether the candidate has been stopped since its last answer: what was read of it since then counts.
    pub(super) fn still_stopped(&mut self) -> Result<(), Stop> {
        self.candidate.still_stopped().map_err(Stop::Candidate)
    }

    /// What it came to.
    pub(super) fn ended(mut self, ended: Result<(), Stop>) -> (Judged, Player) {
        match ended {
            Ok(()) | Err(Stop::Wrong) => {}
            Err(Stop::Broken(what)) => self.judged.broken = Some(what),
            Err(Stop::Candidate(failed)) => self.judged.failed = Some((failed, false)),
            Err(Stop::Reference(failed)) => self.judged.failed = Some((failed, true)),
        }
        (self.judged, self.candidate)
    }

    fn calls(&mut self) -> Result<(), Stop> {
        self.share_parameters()?;
        let before = self.candidate.parameters().map_err(Stop::Candidate)?;
        self.begin_backward()?;
        let varies = self.plan.is_some_and(|plan| plan.fresh)
            && self.inputs.can_vary()
            && self.expectations.data.is_empty();
        self.judged.shown = Some(if varies { InputsShown::Fresh } else { InputsShown::Same });
        // Values of contracts are those of its own seeds; what makes its inputs has none.
        let own = matches!(self.inputs, Inputs::Made).then(|| self.seed());
        self.call(own, true)?;
        if let Some(plan) = self.plan {
            for _ in 0..WARMUP {
                let seed = if varies { Some(self.seed()) } else { own };
                self.call(seed, false)?;
            }
            let began = Instant::now();
            while self.judged.samples_ms.len() < plan.trials as usize
                && (self.judged.samples_ms.len() < LEAST || began.elapsed() < plan.max_time)
            {
                let seed = if varies { Some(self.seed()) } else { own };
                let took = self.call(seed, false)?;
                self.judged.samples_ms.push((took.as_secs_f64() * 1e3) as f32);
            }
            let all = self.judged.samples_ms.len() == plan.trials as usize;
            self.judged.stopped =
                Some(if all { StopReason::TrialsDone } else { StopReason::TimeBudget });
        }
        self.check_parameters(&before)
    }

    /// A seed that every language and JSON reader has room for.
    pub(super) fn seed(&mut self) -> u64 {
        self.secret.bits() >> 32
    }

    pub(super) fn share_parameters(&mut self) -> Result<(), Stop> {
        let count = self.candidate.loaded.parameters.len() as u32;
        let mut told = TorchParameters { count, ..TorchParameters::default() };
        if let Some((reference, _)) = self.expectations.references.first()
            && !reference.loaded.parameters.is_empty()
        {
            let taken = self.candidate.take_parameters(reference).map_err(Stop::Candidate)?;
            let (carried, mut without) = taken;
            without.truncate(MOST_NAMES);
            told.carried_over = Some(carried);
            told.without_counterpart = without;
        }
        if told != TorchParameters::default() {
            self.judged.parameters = Some(told);
        }
        Ok(())
    }

    /// One call of all sides with the same inputs; what the candidate took.
    fn call(&mut self, seed: Option<u64>, first: bool) -> Result<Duration, Stop> {
        let began = Instant::now();
        let (expected, shown) = self.expected(seed)?;
        self.judged.presenting += began.elapsed();
        if first {
            self.judged.arguments = Some(shown.arguments.clone());
        }
        let generator = self.seed_of_call(seed);
        let began = Instant::now();
        let played = self.candidate.play(&self.inputs, &shown, generator, None);
        self.judged.executing += began.elapsed();
        let played = played.map_err(Stop::Candidate)?;
        let began = Instant::now();
        let took = self.verify(played, &expected, &shown, first);
        self.judged.verifying += began.elapsed();
        took
    }

    /// Random numbers of a call are the same on all sides.
    pub(super) fn seed_of_call(&self, seed: Option<u64>) -> u64 {
        seed.unwrap_or_default().wrapping_add(1)
    }

    /// What is expected of the next call, and the inputs that the candidate will find.
    fn expected(
        &mut self,
        seed: Option<u64>,
    ) -> Result<(BTreeMap<String, Value>, Presented), Stop> {
        let generator = self.seed_of_call(seed);
        let Expectations { data, references } = &mut self.expectations;
        let mut expected = data.clone();
        if let (Inputs::Made, Some((maker, names))) = (&self.inputs, references.first_mut()) {
            let made = maker.show(&self.inputs, seed).map_err(Stop::Reference)?;
            // Before the maker runs, which may change what it made.
            let shown = self.candidate.show_as(maker, &made).map_err(Stop::Candidate)?;
            let played = play_reference(maker, &self.inputs, &made, generator, None)?;
            take(&mut expected, played, names.as_deref());
            return Ok((expected, shown));
        }
        for (player, names) in references {
            let shown = player.show(&self.inputs, seed).map_err(Stop::Reference)?;
            let names = names.as_deref();
            let played = play_reference(player, &self.inputs, &shown, generator, names)?;
            take(&mut expected, played, names);
        }
        let shown = self.candidate.show(&self.inputs, seed).map_err(Stop::Candidate)?;
        Ok((expected, shown))
    }

    fn verify(
        &mut self,
        played: Result<Played, Reason>,
        expected: &BTreeMap<String, Value>,
        shown: &Presented,
        first: bool,
    ) -> Result<Duration, Stop> {
        let Played { values, took } = match played {
            Ok(played) => played,
            Err(reason) => return Err(self.wrong(reason)),
        };
        self.judged.verified += 1;
        let changing: Vec<usize> =
            self.inputs.outputs().iter().filter_map(|output| output.argument).collect();
        let changed = shown.changed(&self.candidate.session, &changing);
        if let Some(place) =
            changed.map_err(|fault| Stop::Candidate(self.candidate.failed(fault)))?
        {
            let name = self.name_of(&place);
            return Err(self.wrong(Reason::input_modified(&name, None)));
        }
        if let Some(reason) = self.missing(&values, expected) {
            return Err(self.wrong(reason));
        }
        for (name, value) in &values {
            let Some(wanted) = expected.get(name) else { continue };
            self.told(name, value, wanted, first);
        }
        if first {
            self.note_unchecked(&values, expected);
            self.judged.outputs = values;
        }
        if self.judged.reasons.is_empty() { Ok(took) } else { Err(Stop::Wrong) }
    }

    /// Compares a value with what is expected, and keeps what speaks against it.
    pub(super) fn told(&mut self, name: &str, value: &Value, wanted: &Value, first: bool) {
        match value.against(wanted, name, self.tolerance.as_ref()) {
            Ok(comparison) => {
                let found = Reason::of_comparison(name, &comparison);
                if first || found.is_some() {
                    self.judged.comparisons.insert(name.to_owned(), comparison);
                }
                if let Some(reason) = found {
                    self.judged.reasons.push(if first { reason } else { self.later(reason) });
                }
            }
            Err(reason) => self.judged.reasons.push(reason),
        }
    }

    /// Another number of values than expected is told before any of them is compared.
    pub(super) fn missing(
        &self,
        values: &Named,
        expected: &BTreeMap<String, Value>,
    ) -> Option<Reason> {
        if let Some(reason) = self.missing_gradient(values, expected) {
            return Some(reason);
        }
        if !self.inputs.outputs().is_empty() || expected.is_empty() {
            return None;
        }
        let names = values.iter().map(|(name, _)| name);
        let names: Vec<_> = names.filter(|name| !is_gradient(name)).collect();
        let absent = expected.keys().find(|name| !is_gradient(name) && !names.contains(name));
        let surplus = names.iter().find(|name| !expected.contains_key(name.as_str()));
        let message = match (absent, surplus) {
            (Some(name), _) => format!("it does not return `{name}`, which the reference does"),
            (None, Some(name)) => format!("it returns `{name}`, which the reference does not"),
            (None, None) => return None,
        };
        Some(Reason::new(ReasonCode::OutputMismatch, message))
    }

    /// What is wrong after the first call was right.
    pub(super) fn later(&self, reason: Reason) -> Reason {
        let (code, when) = match self.judged.shown {
            Some(InputsShown::Fresh) => (ReasonCode::WrongForOtherSeeds, "inputs of other seeds"),
            _ => (ReasonCode::OutputVariesBetweenTrials, "a later call with the same inputs"),
        };
        Reason::new(code, format!("right at first, and wrong for {when}: {}", reason.message))
    }

    pub(super) fn wrong(&mut self, reason: Reason) -> Stop {
        self.judged.reasons.push(reason);
        Stop::Wrong
    }

    /// An argument by its name, if it has one, else by its place.
    pub(super) fn name_of(&self, place: &str) -> String {
        self.inputs.name_of(place)
    }

    fn check_parameters(&mut self, before: &[(String, blake3::Hash)]) -> Result<(), Stop> {
        let now = self.candidate.parameters().map_err(Stop::Candidate)?;
        self.same_parameters(before, &now)
    }

    /// Whether parameters hold what they held.
    pub(super) fn same_parameters(
        &mut self,
        before: &[(String, blake3::Hash)],
        now: &[(String, blake3::Hash)],
    ) -> Result<(), Stop> {
        match before.iter().zip(now).find(|(before, now)| before != now) {
            None if before.len() == now.len() => Ok(()),
            changed => {
                let name = changed.map_or("one of them", |((name, _), _)| name.as_str());
                let message =
                    format!("a call changed the parameter `{name}`; leave parameters alone");
                Err(self.wrong(Reason::new(ReasonCode::InputModified, message)))
            }
        }
    }
}

fn play_reference(
    player: &mut Player,
    inputs: &Inputs,
    shown: &Presented,
    generator: u64,
    names: Option<&[String]>,
) -> Result<Named, Stop> {
    let played = player.play(inputs, shown, generator, names).map_err(Stop::Reference)?;
    let unusable = |reason: Reason| {
        let fault = warpgauge_torch::Fault::Refused(warpgauge_torch::Refusal {
            code: warpgauge_model::FailureCode::UnusableOutput.to_string(),
            message: reason.message,
            line: None,
            log: String::new(),
        });
        Stop::Reference(player.failed(fault))
    };
    played.map(|played| played.values).map_err(unusable)
}

fn take(expected: &mut BTreeMap<String, Value>, values: Named, names: Option<&[String]>) {
    let counts =
        |name: &String| is_gradient(name) || names.is_none_or(|names| names.contains(name));
    expected.extend(values.into_iter().filter(|(name, _)| counts(name)));
}
