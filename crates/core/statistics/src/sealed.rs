//! Whether times of launches that were judged from outside agree with those of the others.
//!
//! A kernel that leaves out work where it can get away with it is slower where it cannot.

use super::stats::Sorted;

/// How much slower sealed launches may be, relative to the others: twice what was seen of honest kernels
/// on an H200, whose times differ with whatever runs on the device between two launches.
const SLACK: f64 = 0.05;

/// The same for short kernels, milliseconds: what loading code and address translations anew costs them.
const SLACK_MS: f64 = 0.000_5;

/// Times of sealed launches beside those of the others, medians in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SealedTimes {
    /// Of sealed launches.
    pub sealed_ms: f64,
    /// Of the others.
    pub others_ms: f64,
    /// Whether they agree: the sealed ones are no slower than noise explains.
    pub agree: bool,
}

/// Compares them; `None` where there are none of either. They part if every sealed launch is slower than
/// half of the others, and their median by more than the slack. By chance three launches do now and then,
/// where launches are noisy, and twelve hardly ever: more are sealed where the first do.
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
            // A tenth is left out, in all of the others or in six of ten.
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
        // Half a microsecond says nothing of a kernel of four.
        assert!(sealed_times(&[0.0044; 5], &[0.004; 15]).unwrap().agree);
        assert!(!sealed_times(&[0.0046; 5], &[0.004; 15]).unwrap().agree);
    }

    #[test]
    fn with_one_kind_alone_there_is_nothing_to_compare() {
        assert_eq!(sealed_times(&[], &[1.0]), None);
        assert_eq!(sealed_times(&[1.0], &[]), None);
    }
}
