//! Whether launches that are load take as long as those that are timed between them.
//!
//! A kernel that knows which are which could rest in the former, and be timed at a clock that it does not
//! have in continuous use.

/// How far medians may be apart, relative: the clock of continuous use is lower by as much, so that a
/// load without effect shows.
const SLACK: f64 = 0.05;

/// The same for short kernels, milliseconds: launches of a load stand behind no gate.
const SLACK_MS: f64 = 0.002;

/// Whether medians agree, in milliseconds.
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
        // A gate is worth a microsecond.
        assert!(load_agrees(0.0045, 0.003) && !load_agrees(0.006, 0.003));
    }
}
