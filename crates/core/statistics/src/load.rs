//! Checks that load launches take as long as the timed launches between them.
//!
//! Otherwise a kernel that recognises load launches could idle in them, and be timed at a clock
//! that continuous use does not allow. The main function is [`load_agrees`].

/// Largest relative difference of the medians. Continuous load lowers the clock by about this
/// share, so ineffective load is detected.
const SLACK: f64 = 0.05;

/// Difference that is always allowed, milliseconds. Short kernels need it, because load launches,
/// unlike timed launches, do not wait for a blocking kernel.
const SLACK_MS: f64 = 0.002;

/// Returns whether the median times of load launches and timed launches, in milliseconds, agree.
pub fn load_agrees(load_ms: f64, timed_ms: f64) -> bool {
    (load_ms - timed_ms).abs() <= (SLACK * timed_ms).max(SLACK_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_rests_in_the_load_shows() {
        assert!(load_agrees(0.205, 0.2) && load_agrees(0.195, 0.2));
        assert!(!load_agrees(0.22, 0.2) && !load_agrees(0.18, 0.2));
        // The gate accounts for about a microsecond.
        assert!(load_agrees(0.0045, 0.003) && !load_agrees(0.006, 0.003));
    }
}
