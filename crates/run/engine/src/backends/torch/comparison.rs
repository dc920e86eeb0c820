//! Comparison of several torch kernels. The reference is evaluated alone, and then each candidate
//! is evaluated against it. On a GPU both are timed in turns.

use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::TorchBackend;
use super::evaluate::{Case, Judgement, plan_of, seed};
use super::gpu::beside::{Compared as Timed, SideBySide};
use super::oracles::Oracle;
use super::player::{CANDIDATE, REFERENCE, submission_for};
use super::reused::ReferenceReports;
use super::runs::Entered;
use super::timing::{Enough, Plan};
use crate::backend::{
    Compared, ComparisonSession, Conclusion, Contest, REFERENCE_PATH, decision, different_clocks,
};
use crate::clock::ms;
use crate::error::{self, ExecError};
use crate::progress::ActiveOrder;
use warpgauge_contract::{CompareRequest, EvaluateRequest, KernelCode};
use warpgauge_model::JobStage;
use warpgauge_report::{EvaluateResponse, KernelVerdict, Timings, VerdictBy};
use warpgauge_statistics::paired::{PairedComparison, PairedVerdict, across_processes};

/// Explanations in comparisons that call no candidate faster or slower.
const NOT_COMPARED: &str = "times on the CPU are not ranked: the reports contain both";
const NOT_BESIDE: &str = "the remaining time was too short to time both sides in turns: the reports contain both times; \
                          raise `measure.max_time` or `timeout`";

/// Tolerated relative slowdown of the reference while it is timed beside the candidate, compared
/// with the reference alone. The resolution is added to it. A larger slowdown makes the comparison
/// inconclusive.
const SLOWED: f64 = 0.1;

/// A comparison of torch kernels with their reference.
pub(super) struct TorchSession<'a> {
    backend: &'a TorchBackend,
    job: &'a ActiveOrder<'a>,
    request: CompareRequest,
    /// Permit and device, which one evaluation passes to the next.
    entered: Option<Entered<'a>>,
    /// Candidates still to be judged.
    waiting: std::vec::IntoIter<KernelCode>,
    /// Number of candidates. They share the false-positive rate.
    comparisons: usize,
    /// Paired times of each judged candidate; `None` if it was not timed in turns with the
    /// reference.
    timed: Vec<Option<Paired>>,
    /// Seed for the parameters of all sides.
    seed: u64,
    /// Key of the reference's evaluation, if later comparisons may reuse it.
    key: Option<blake3::Hash>,
}

/// Paired times of a candidate and the reference.
struct Paired {
    timed: Timed,
    /// Reason why a small difference is not reported: another pair of processes did not confirm it.
    unconfirmed: Option<String>,
}

/// Every difference must be confirmed by another pair of processes, which allocate their memory
/// anew before each block. One further pair is enough if both differences exceed this logarithm of
/// a ratio. On an H200 a transposed convolution takes 33.7 or 35.8 ms, depending on the location of
/// its memory. It was `faster` than itself in three successive pairs of processes. Another one took
/// 28 % longer in one process than in another. A network whose calls take longer on the host than
/// on the device took 47 % longer in one process.
const CLOSE: f64 = 0.35;

/// Maximum number of further pairs of processes that confirm a difference. Memory that does not
/// move between blocks, such as that of parameters, is at another location in each pair. Two
/// networks of KernelBench's level 3 differed from themselves by 3 % in two pairs of processes, in
/// the same direction and with intervals of less than 1 %.
const CONFIRMATIONS: usize = 5;

impl<'a> TorchSession<'a> {
    pub(super) fn new(
        backend: &'a TorchBackend,
        job: &'a ActiveOrder<'a>,
        contest: Contest,
    ) -> Self {
        job.stage(JobStage::WaitingForDevice);
        let own = contest.candidates().into_iter().map(|(_, candidate)| candidate.kernel);
        let waiting = own.collect::<Vec<_>>().into_iter();
        let comparisons = waiting.len();
        let request = contest.request;
        Self {
            backend,
            job,
            request,
            entered: None,
            waiting,
            comparisons,
            timed: Vec::new(),
            seed: seed(),
            key: None,
        }
    }

    /// Evaluates a candidate, with the reference beside it.
    async fn judge(
        &mut self,
        kernel: &KernelCode,
        beside: SideBySide,
    ) -> Result<Judgement, ExecError> {
        let arrived = Instant::now();
        let request = self.evaluation_of(kernel);
        let entered = self.enter(&request).await?;
        self.judge_in(entered, (kernel, request), Some(beside), arrived).await
    }

    /// Builds the evaluation request for one kernel.
    fn evaluation_of(&self, kernel: &KernelCode) -> EvaluateRequest {
        let mut request = self.request.evaluation_of(kernel);
        // Expected values come from the reference, which is called beside the candidate.
        request.expected.clear();
        request
    }

    /// Returns the permit and device of the previous evaluation, or acquires new ones.
    async fn enter(&mut self, request: &EvaluateRequest) -> Result<Entered<'a>, ExecError> {
        let owner = self.job.owner();
        match (self.entered.take(), self.request.is_mixed()) {
            (Some(entered), _) => Ok(entered.anew(request.timeout)),
            (None, true) => self.backend.enter(request.timeout, owner).await,
            (None, false) => self.backend.enter_for(request, owner).await,
        }
    }

    /// Evaluates the reference, or reuses its report from an earlier comparison.
    async fn judge_reference(&mut self) -> Result<EvaluateResponse, ExecError> {
        let arrived = Instant::now();
        let kernel = self.request.ref_kernel.clone();
        let request = self.evaluation_of(&kernel);
        let entered = self.enter(&request).await?;
        let (reports, is_mixed) = (&self.backend.references, self.request.is_mixed());
        let key = ReferenceReports::key(&request, self.job.owner(), &entered);
        let key = key.filter(|_| !is_mixed);
        self.key = key;
        if let Some(mut report) = key.and_then(|key| reports.get(key)) {
            let from = std::mem::replace(&mut report.job_id, self.job.id().to_owned());
            if let Some(torch) = &mut report.torch {
                torch.reused_from = Some(from);
            }
            let of = |took: Duration| took.as_secs_f64() * 1e3;
            let (queue, start) = (of(entered.queue), of(entered.start));
            report.timings = Timings { queue, start, ..Timings::default() };
            report.timings.set_total(ms(arrived));
            self.entered = Some(entered);
            return Ok(report);
        }
        let judged = self.judge_in(entered, (&kernel, request), None, arrived).await?;
        if let Some(key) = key {
            reports.put(key, &judged.report);
        }
        Ok(judged.report)
    }

    async fn judge_in(
        &mut self,
        mut entered: Entered<'a>,
        (kernel, request): (&KernelCode, EvaluateRequest),
        beside: Option<SideBySide>,
        arrived: Instant,
    ) -> Result<Judgement, ExecError> {
        let plan = Some(Plan { enough: Enough::Brief, ..plan_of(&request) });
        let against = beside.is_some();
        let beside = beside.filter(|_| !self.request.is_mixed());
        // If other kernels are for a device, the Python reference takes their arguments.
        let io = self.request.ref_kernel.io.as_ref().filter(|_| self.request.is_mixed());
        let reference = || Oracle {
            submission: submission_for(&self.request.ref_kernel, REFERENCE, io),
            outputs: None,
            path: REFERENCE_PATH.to_owned(),
            lends_init: true,
        };
        let (references, known) = (&self.backend.references, self.key.filter(|_| against));
        let case = Case {
            submission: submission_for(kernel, if against { CANDIDATE } else { REFERENCE }, io),
            oracles: if against { vec![reference()] } else { Vec::new() },
            plan,
            beside: beside.filter(|_| entered.device.is_some()),
            count: false,
            backward: self.request.wants_backward(),
            is_reference: !against,
            seed: self.seed,
            tolerances: known.map(|key| references.tolerances(key)).unwrap_or_default(),
            request,
        };
        let judged = self.backend.judge_torch(self.job, &mut entered, case, arrived).await;
        if let (Ok(judged), Some(key)) = (&judged, known) {
            references.put_tolerances(key, &judged.tolerances);
        }
        // Evaluations of expected results by kernels of other families need the permit.
        self.entered = Some(entered).filter(|_| !self.request.is_mixed());
        judged
    }

    /// Returns how to time a candidate and the reference in turns. `relocates`: whether both
    /// allocate their memory anew before each block.
    fn beside(&self, relocates: bool) -> SideBySide {
        let seconds = decision::max_time_s(&self.request);
        SideBySide {
            policy: decision::policy(&self.request).with_early_look().for_family(self.comparisons),
            max_time: Duration::try_from_secs_f64(seconds).unwrap_or_default(),
            relocates,
        }
    }

    async fn judge_next(&mut self) -> Result<EvaluateResponse, ExecError> {
        let Some(kernel) = self.waiting.next() else {
            let error = std::io::Error::other("there are fewer candidates than are asked for");
            return Err(error::internal("comparing kernels", &error));
        };
        let beside = self.beside(false);
        let Judgement { mut report, compared, .. } = self.judge(&kernel, beside).await?;
        let mut paired = compared.map(|timed| Paired { timed, unconfirmed: None });
        // Times of an incorrect kernel are not ranked.
        let is_ranked = report.kernel_verdict() == KernelVerdict::Correct;
        let doubtful = paired.as_mut().filter(|paired| is_ranked && is_doubtful(&paired.timed));
        if let Some(paired) = doubtful {
            let least = decision::policy(&self.request).margin;
            let mut ratios = Vec::new();
            for _ in 0..CONFIRMATIONS {
                let other = self.judge(&kernel, self.beside(true)).await?;
                let mut timings = report.timings;
                timings.add(&other.report.timings);
                // A candidate that fails in any evaluation is reported as wrong.
                if other.report.kernel_verdict() != KernelVerdict::Correct {
                    report = other.report;
                }
                report.timings = timings;
                let again = confirmed(&paired.timed.comparison, other.compared, least);
                let outcome = again.map(|again| {
                    ratios.extend(again.comparison.time.map(|time| time.ratio));
                    let are_far = is_far(&paired.timed) && is_far(&again) && ratios.len() == 1;
                    if are_far { Across::Decided(Box::new(again)) } else { across(again, &ratios) }
                });
                match outcome {
                    Ok(Across::Decided(timed)) => {
                        paired.timed = *timed;
                        paired.unconfirmed = None;
                        break;
                    }
                    Ok(Across::Open(why)) => paired.unconfirmed = Some(why),
                    Err(why) => {
                        paired.unconfirmed = Some(why);
                        break;
                    }
                }
            }
        }
        self.timed.push(paired);
        Ok(report)
    }

    fn concluded(self, reports: &[EvaluateResponse]) -> Conclusion {
        let (is_mixed, timed) = (self.request.is_mixed(), self.timed);
        let compared = reports.split_first().map(|(reference, own)| {
            let beside = |(own, timed): (&EvaluateResponse, _)| {
                Compared::of(match is_mixed {
                    true => Err(different_clocks(reference, own)),
                    false => side_by_side(reference, own, timed),
                })
            };
            own.iter().zip(timed).map(beside).collect::<Vec<_>>()
        });
        let compared = compared.unwrap_or_default();
        let is_timed = compared.iter().any(|one| one.comparison.is_ok());
        Conclusion {
            queue_ms: 0.0,
            verdict_by: if is_timed { VerdictBy::Times } else { VerdictBy::Nothing },
            compared,
            ranking: None,
            counted_ranking: Vec::new(),
        }
    }
}

impl ComparisonSession for TorchSession<'_> {
    fn reference(&mut self) -> BoxFuture<'_, Result<EvaluateResponse, ExecError>> {
        self.judge_reference().boxed()
    }

    fn next_candidate(&mut self) -> BoxFuture<'_, Result<EvaluateResponse, ExecError>> {
        self.judge_next().boxed()
    }

    fn conclude<'a>(
        self: Box<Self>,
        reports: &'a [EvaluateResponse],
    ) -> BoxFuture<'a, Result<Conclusion, ExecError>>
    where
        Self: 'a,
    {
        futures_util::future::ready(Ok(self.concluded(reports))).boxed()
    }
}

/// Returns the paired comparison, or the reason why it is inconclusive.
fn side_by_side(
    reference: &EvaluateResponse,
    own: &EvaluateResponse,
    timed: Option<Paired>,
) -> Result<PairedComparison, String> {
    let Some(Paired { timed, unconfirmed }) = timed else {
        return Err(if own.device.is_some() { NOT_BESIDE } else { NOT_COMPARED }.to_owned());
    };
    if let Some(why) = own.unranked().or_else(|| reference.unranked()) {
        return Err(why.to_owned());
    }
    if let Some(why) = unconfirmed {
        return Err(why);
    }
    let Timed { comparison, reference_ms, candidate_ms, resolution_ms, alone_ms, .. } = timed;
    // The candidate must also be faster than the reference alone, since it cannot slow that run
    // down.
    let most = alone_ms + resolution_ms;
    let faster = comparison.verdict == PairedVerdict::Faster;
    let only_beside = faster && candidate_ms * (1.0 + comparison.margin) > most;
    if only_beside || reference_ms > most + SLOWED * alone_ms {
        return Err(format!(
            "the reference took {reference_ms:.5} ms beside the candidate, and {alone_ms:.5} ms in the same process \
             after the candidate's had ended, by the judge's clock: something slowed it, which may be work that the \
             candidate left running on the device"
        ));
    }
    Ok(comparison)
}

/// Returns whether the verdict is faster or slower, which other processes must confirm.
fn is_doubtful(timed: &Timed) -> bool {
    matches!(timed.comparison.verdict, PairedVerdict::Faster | PairedVerdict::Slower)
}

/// Returns whether the times differ by more than is usual between processes, and the calls of both
/// sides include the same waits.
fn is_far(Timed { comparison, waits_differ, .. }: &Timed) -> bool {
    !waits_differ && comparison.time.is_some_and(|time| time.ratio.ln().abs() >= CLOSE)
}

/// Conclusion from the ratios of several pairs of processes.
enum Across {
    /// The ratios differ from 1 by more than they vary. The times contain their mean and its
    /// interval.
    Decided(Box<Timed>),
    /// Further pairs of processes must decide. The text is the reason why there is no comparison if
    /// no further pair follows.
    Open(String),
}

/// Returns the conclusion from the ratios of the confirming pairs, the last of which is `timed`.
fn across(mut timed: Timed, ratios: &[f64]) -> Across {
    let Some(found) = across_processes(ratios).filter(|found| found.outweighs) else {
        return Across::Open(varying(ratios));
    };
    if let Some(time) = &mut timed.comparison.time {
        let [low, high] = found.interval;
        (time.ratio, time.ci_low, time.ci_high) = (found.ratio, low, high);
    }
    Across::Decided(Box::new(timed))
}

fn varying(ratios: &[f64]) -> String {
    let shown = ratios.iter().map(|ratio| format!("{ratio:.4}")).collect::<Vec<_>>().join(", ");
    format!(
        "the candidate took {shown} of the reference's time in further pairs of processes: from process to process, times \
         vary too much to determine whether the kernels differ"
    )
}

/// Returns the times in another pair of processes if they differ in the same direction by more than
/// `least`, a relative margin. Otherwise returns the reason why the comparison is inconclusive. Its
/// blocks differ in the location of memory, so its interval includes that effect.
fn confirmed(
    comparison: &PairedComparison,
    again: Option<Timed>,
    least: f64,
) -> Result<Timed, String> {
    let ratio = |one: &PairedComparison| one.time.map_or(1.0, |time| time.ratio);
    let Some(mut again) = again else {
        return Err(format!(
            "the candidate took {:.4} of the reference's time, but no time was left to confirm this in \
             other processes: raise `measure.max_time` or `timeout`",
            ratio(comparison)
        ));
    };
    let differs = again.comparison.time.is_some_and(|time| match comparison.verdict {
        PairedVerdict::Faster => time.ci_high * (1.0 + least) < 1.0,
        PairedVerdict::Slower => time.ci_low > 1.0 + least,
        PairedVerdict::Same | PairedVerdict::Inconclusive => false,
    });
    if again.comparison.verdict != comparison.verdict && !differs {
        return Err(format!(
            "the candidate took {:.4} of the reference's time in one pair of processes, but {:.4} ({}) in another one, \
             which allocated its memory anew before each block: the difference is caused by the processes, such as the location \
             of their memory on the device, and not by the kernels",
            ratio(comparison),
            ratio(&again.comparison),
            again.comparison.time.map_or_else(
                || "no interval".to_owned(),
                |time| format!("{:.4} to {:.4}", time.ci_low, time.ci_high)
            )
        ));
    }
    if again.comparison.verdict != comparison.verdict {
        again.comparison = PairedComparison { time: again.comparison.time, ..comparison.clone() };
    }
    Ok(again)
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_statistics::paired::{BlockOrder, ComparePolicy, PairedBlock, conclude};

    fn compared(ratio: f32) -> PairedComparison {
        let block = |index| PairedBlock {
            order: BlockOrder::of_block(index),
            a: [vec![1.0; 3], vec![1.0; 3]],
            b: [vec![ratio; 3], vec![ratio; 3]],
            clock_hz: [None; 4],
            throttle_reasons: 0,
        };
        let blocks: Vec<PairedBlock> = (0..16).map(block).collect();
        conclude(&blocks, &ComparePolicy::default())
    }

    fn timed(comparison: PairedComparison) -> Timed {
        Timed {
            comparison,
            reference_ms: 1.0,
            candidate_ms: 1.0,
            resolution_ms: 0.0,
            alone_ms: 1.0,
            waits_differ: false,
        }
    }

    #[test]
    fn differences_are_looked_at_in_other_processes() {
        for (ratio, differs, far) in [
            (1.03, true, false),
            (0.75, true, false),
            (1.0, false, false),
            (1.5, true, true),
            (0.5, true, true),
        ] {
            let one = timed(compared(ratio));
            assert_eq!((is_doubtful(&one), is_far(&one)), (differs, far), "{ratio}");
        }
        assert!(!is_far(&Timed { waits_differ: true, ..timed(compared(2.0)) }));
    }

    #[test]
    fn a_difference_that_other_processes_do_not_have_is_none() {
        let slower = compared(1.03);
        assert_eq!(slower.verdict, PairedVerdict::Slower);
        let again = confirmed(&slower, Some(timed(compared(1.02))), 0.005).unwrap();
        assert!((again.comparison.time.unwrap().ratio - 1.02).abs() < 1e-6);
        let same = PairedComparison { verdict: PairedVerdict::Same, ..compared(1.02) };
        let again = confirmed(&slower, Some(timed(same)), 0.005).unwrap();
        let time = again.comparison.time;
        assert_eq!(again.comparison.verdict, slower.verdict, "its margin is wider, but it differs");
        assert!((time.unwrap().ratio - 1.02).abs() < 1e-6);
        for other in [compared(1.0), compared(1.004), compared(0.97)] {
            let why = confirmed(&slower, Some(timed(other)), 0.005).unwrap_err();
            assert!(why.contains("1.0300") && why.contains("location of their memory"), "{why}");
        }
        assert!(confirmed(&slower, None, 0.005).unwrap_err().contains("max_time"));
    }

    #[test]
    fn pairs_of_processes_decide_by_what_they_differ_by() {
        let last = || timed(compared(1.03));
        let of = |ratios: &[f64]| across(last(), ratios);
        for open in [&[1.03][..], &[1.03, 1.02], &[1.03, 1.01, 1.05]] {
            let Across::Open(why) = of(open) else { panic!("{open:?}") };
            assert!(why.contains("1.0300") && why.contains("process to process"), "{why}");
        }
        let Across::Decided(decided) = of(&[1.03, 1.028, 1.031]) else { panic!("they agree") };
        let time = decided.comparison.time.unwrap();
        assert!((time.ratio - 1.0297).abs() < 1e-3, "{time:?}");
        assert!(time.ci_low > 1.02 && time.ci_high < 1.04, "{time:?}");
    }
}
