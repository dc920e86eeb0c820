//! Times at which failed deliveries are retried.

use std::time::Duration;

/// Maximum number of attempts for one message. The last is about two hours after the first.
pub const MAX_ATTEMPTS: u32 = 10;

/// Wait after the first attempt. Each later wait is three times as long, up to [`LONGEST`].
const FIRST: Duration = Duration::from_secs(1);

/// Maximum wait between attempts, before it is varied by job.
const LONGEST: Duration = Duration::from_secs(3_600);

/// Returns the wait after the attempt with this number, counted from 1; `None` after the last. The
/// wait varies by up to a quarter from job to job, so that failed messages are not all retried at
/// the same time.
pub fn delay(job_id: &str, attempt: u32) -> Option<Duration> {
    if attempt >= MAX_ATTEMPTS {
        return None;
    }
    let wait = FIRST.saturating_mul(3_u32.saturating_pow(attempt.saturating_sub(1))).min(LONGEST);
    let hash = blake3::hash(format!("{job_id} {attempt}").as_bytes());
    let share = f64::from(hash.as_bytes()[0]) / 255.0;
    Some(wait.mul_f64(0.75 + 0.5 * share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_end() {
        for attempt in 1..MAX_ATTEMPTS {
            let waits = (0..50).map(|job| delay(&format!("job-{job}"), attempt).unwrap());
            let middle = 3_f64.powi(attempt as i32 - 1).min(3600.0);
            let waits = waits.map(|wait| wait.as_secs_f64() / middle).collect::<Vec<_>>();
            assert!(waits.iter().all(|wait| (0.75..=1.25).contains(wait)), "{waits:?}");
            assert!(waits.iter().any(|wait| (wait - waits[0]).abs() > 0.1), "{waits:?}");
        }
        assert_eq!(delay("job", MAX_ATTEMPTS), None);
        assert_eq!(delay("job", u32::MAX), None);
    }
}
