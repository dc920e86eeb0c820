//! A series of launches that keep the modules' variables. It detects errors that occur late.
//!
//! A timed launch starts with variables as after loading, and the warm-up is short. A kernel that
//! counts its launches, and is wrong from the sixtieth on, would thus be correct in every other
//! verified launch.

use std::time::{Duration, Instant};

use super::batch::{Memory, Rig};
use super::judge::{Phase, Referee};
use super::trials::{BATCH_S, HISTORY_LAUNCHES, launches_in};
use crate::child::failure::{JobResult, candidate};
use crate::child::launch::program::LoadedProgram;
use crate::protocol::{LastingFacts, TrialPlan};

/// Number of launches that are verified at random positions of the series, before its last
/// launches.
const ON_THE_WAY: usize = 12;

/// Number of launches at the start of the series that are not verified, because as many earlier
/// launches were: launches one and two, and the verified launches of the warm-up.
const VERIFIED_BEFORE: usize = 2 + HISTORY_LAUNCHES;

/// Number of launches at the end of the series, all of which are verified.
const LAST: u32 = 3;

/// Share of the candidate's time limit that the series may take.
const SHARE_OF_LIMIT: f64 = 0.05;

/// Share of the remaining time that the series may take.
const SHARE_OF_REST: f64 = 0.5;

/// Result of the series.
pub(in crate::child) struct Lasting {
    pub facts: LastingFacts,
    /// Wall time of verification.
    pub verifying: Duration,
}

/// Number of earlier launches of the candidate, and their total duration.
#[derive(Debug, Clone, Copy)]
pub(in crate::child) struct Spent {
    pub launches: u32,
    /// Wall time without verification, seconds.
    pub seconds: f64,
}

/// Makes the planned number of launches, or as many as the time allows. The first starts with
/// variables as after loading.
pub(in crate::child) fn run(
    rig: &mut Rig<'_, '_>,
    arm: &mut LoadedProgram,
    (plan, spent): (&TrialPlan, Spent),
    judge: &mut dyn Referee,
) -> JobResult<Lasting> {
    let wanted = plan.lasting;
    let budget_s = budget_s(plan.time_limit_s, spent.seconds);
    // The conversion saturates, which handles numbers that are too large or negative.
    let most = ((budget_s / spent.each_s()) as u32).min(wanted);
    let mut lasting =
        Lasting { facts: LastingFacts { launches: 0, wanted }, verifying: Duration::ZERO };
    let Some(before_last) = most.checked_sub(LAST) else { return Ok(lasting) };
    let before_last = before_last as usize;
    arm.forget(&rig.executor.stream).map_err(candidate)?;
    let unknown = before_last.saturating_sub(VERIFIED_BEFORE);
    let looks = rig.inputs.secret.choose(ON_THE_WAY, unknown).into_iter();
    let looks = looks.map(|look| VERIFIED_BEFORE + look).collect::<Vec<_>>();
    let began = Instant::now();
    let passed_s =
        |lasting: &Lasting| began.elapsed().saturating_sub(lasting.verifying).as_secs_f64();
    let mut done = 0;
    let mut each = Duration::from_secs_f64(spent.each_s());
    while done < before_last && passed_s(&lasting) < budget_s {
        let count = launches_in(each, BATCH_S).min(before_last - done);
        let here = done..done + count;
        let places = looks.iter().filter(|look| here.contains(look)).map(|look| look - done);
        let later = looks.iter().filter(|look| **look >= here.end).count();
        // Launches are numbered from 1.
        judge.begin(Phase::Lasting, 1 + done, places.collect(), later);
        rig.run_with(arm, count, judge, Memory::Kept)?;
        lasting.verifying += judge.spent();
        done += count;
        each = Duration::from_secs_f64(passed_s(&lasting) / done as f64);
    }
    judge.begin(Phase::Last, 1 + done, (0..LAST as usize).collect(), 0);
    rig.run_with(arm, LAST as usize, judge, Memory::Kept)?;
    lasting.verifying += judge.spent();
    lasting.facts.launches = done as u32 + LAST;
    Ok(lasting)
}

/// Returns the time that the series may take, seconds, given the time limit and the time spent so
/// far.
fn budget_s(limit_s: f64, spent_s: f64) -> f64 {
    (SHARE_OF_LIMIT * limit_s).min(SHARE_OF_REST * (limit_s - spent_s))
}

impl Spent {
    fn each_s(self) -> f64 {
        (self.seconds / f64::from(self.launches.max(1))).max(1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_keep_to_the_time_limit() {
        // A twentieth of the limit; half of the rest; nothing if there is no rest.
        assert_eq!(budget_s(100.0, 3.0), 5.0);
        assert_eq!(budget_s(100.0, 96.0), 2.0);
        assert!(budget_s(100.0, 120.0) < 0.0);
    }
}
