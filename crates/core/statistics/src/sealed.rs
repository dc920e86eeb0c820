//! Comparison of the times of sealed launches, which another process judges, with those of the
//! other launches. The main function is [`sealed_times`].
//!
//! A kernel that omits work in launches that are not checked is slower in sealed launches.

use super::stats::Sorted;

/// Largest relative slowdown of sealed launches: twice the value measured for honest kernels on an
/// H200. Their times depend on what the device runs between two launches.
const SLACK: f64 = 0.05;

/// Largest slowdown for short kernels, in milliseconds: the cost of reloading code and address
/// translations.
const SLACK_MS: f64 = 0.000_5;

/// Median times of sealed launches and of other launches, milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SealedTimes {
    /// Median time of the sealed launches, milliseconds.
    pub sealed_ms: f64,
    /// Median time of the other launches, milliseconds.
    pub others_ms: f64,
    /// Whether the medians agree: noise explains any slowdown of the sealed launches.
    pub agree: bool,
}

/// Compares the two kinds of launches, or returns `None` if either kind has no launches. They
/// disagree if every sealed launch is slower than half of the others, and their medians differ by
/// more than the slack. With noisy launches this occasionally happens by chance for three sealed
/// launches, but hardly ever for twelve. Therefore more launches are sealed if the first ones
/// disagree.
pub fn sealed_times(sealed_ms: &[f32], others_ms: &[f32]) -> Option<SealedTimes> {
    let sorted =
        |samples: &[f32]| Sorted::new(&samples.iter().map(|x| f64::from(*x)).collect::<Vec<_>>());
    let (sealed, others) = (sorted(sealed_ms)?, sorted(others_ms)?);
    let (sealed_ms, others_ms) = (sealed.median(), others.median());
    let slack = (SLACK * others_ms).max(SLACK_MS);
    let agree = sealed.percentile(0.0) <= others_ms || sealed_ms - others_ms <= slack;
    Some(SealedTimes { sealed_ms, others_ms, agree })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::RandomStream;

    fn noisy(n: usize, median: f64, sd: f64, random: &mut RandomStream) -> Vec<f32> {
        (0..n).map(|_| (median * (1.0 + sd * random.normal())) as f32).collect()
    }

    #[test]
    fn work_left_out_where_nobody_looks_shows() {
        let mut random = RandomStream::new(7);
        let missed = (0..1000).filter(|index| {
            let sd = [0.002, 0.01, 0.02][index % 3];
            let sealed = noisy(12, 0.1, sd, &mut random);
            // A tenth of the work is omitted, in all of the other launches or in six of ten.
            let mut others = noisy(60, 0.09, sd, &mut random);
            others.extend(noisy([0, 40][index % 2], 0.1, sd, &mut random));
            sealed_times(&sealed, &others).is_some_and(|times| times.agree)
        });
        let missed = missed.count();
        assert!(missed <= 10, "{missed} of 1000");
    }

    #[test]
    fn noise_does_not() {
        let mut random = RandomStream::new(9);
        let mut parted = |sd: f64| {
            (0..1000)
                .filter(|index| {
                    let mut sealed = noisy(3, 0.102, sd, &mut random);
                    let others = noisy([17, 97][index % 2], 0.1, sd, &mut random);
                    let part = |sealed: &[f32]| !sealed_times(sealed, &others).unwrap().agree;
                    part(&sealed) && {
                        sealed.extend(noisy(9, 0.102, sd, &mut random));
                        part(&sealed)
                    }
                })
                .count()
        };
        for (sd, most) in [(0.001, 0), (0.01, 0), (0.03, 8), (0.1, 12)] {
            let found = parted(sd);
            assert!(found <= most, "{found} of 1000 where launches differ by {sd}");
        }
        // A difference of half a microsecond is not significant for a kernel of four.
        assert!(sealed_times(&[0.0044; 5], &[0.004; 15]).unwrap().agree);
        assert!(!sealed_times(&[0.0046; 5], &[0.004; 15]).unwrap().agree);
    }

    #[test]
    fn with_one_kind_alone_there_is_nothing_to_compare() {
        assert_eq!(sealed_times(&[], &[1.0]), None);
        assert_eq!(sealed_times(&[1.0], &[]), None);
    }
}
