//! Detection of integers that are off by one in every launch.
//!
//! A value close to a rounding tie may be rounded either way, and the inputs determine which values are close to
//! ties. Therefore an element that is off in every launch, each with new inputs, is not a tie.

use super::ResolvedTolerance;
use warpgauge_tensor::Dtype;

/// Largest probability that an element is reported in the output of a correct kernel.
const FALSE_ALARM: f64 = 1e-6;

/// Minimum number of launches after which an element may be reported.
const LEAST_LAUNCHES: f64 = 3.0;

/// Elements of one output that were off by one in every launch so far.
#[derive(Debug, Default)]
pub struct StandingTies {
    /// Indices of the elements that were off by one in every launch. `None` before the first launch.
    elements: Option<Vec<usize>>,
    launches: u32,
}

impl StandingTies {
    /// Adds a launch that passed, on inputs that no earlier launch had. Returns an element that was off in too many
    /// launches to be a tie.
    pub fn add(
        &mut self,
        dtype: Dtype,
        (actual, expected): (&[u8], &[u8]),
        tolerance: &ResolvedTolerance,
    ) -> Option<usize> {
        let outliers = tolerance.outliers.filter(|_| !dtype.is_float())?;
        let size = dtype.size();
        let differs = |element: usize| {
            let at = element * size..(element + 1) * size;
            actual.get(at.clone()) != expected.get(at)
        };
        let elements = expected.len() / size;
        let standing = match self.elements.take() {
            None => (0..elements).filter(|element| differs(*element)).collect(),
            Some(before) => {
                before.into_iter().filter(|element| differs(*element)).collect::<Vec<_>>()
            }
        };
        self.launches += 1;
        let found = standing.first().copied();
        self.elements = Some(standing);
        // An element is off with at most the probability `share`, and launches are independent. The bound is
        // divided by the number of elements.
        let chance = FALSE_ALARM / (elements as f64).max(1.0);
        let enough = (chance.ln() / (outliers.share * dtype.parts() as f64).min(0.5).ln())
            .ceil()
            .max(LEAST_LAUNCHES);
        found.filter(|_| f64::from(self.launches) >= enough)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OutlierTolerance, resolve_by_type};

    fn tolerance(share: f64) -> ResolvedTolerance {
        let outliers = Some(OutlierTolerance { share, atol: 1.0 });
        ResolvedTolerance { outliers, ..resolve_by_type(None, Dtype::Uint8) }
    }

    /// Returns the launch that finds an element, and the element. Each launch is off at the elements listed.
    fn found(share: f64, launches: &[&[usize]]) -> Option<(usize, usize)> {
        let expected = vec![7u8; 4096];
        let mut standing = StandingTies::default();
        launches.iter().enumerate().find_map(|(launch, off)| {
            let mut actual = expected.clone();
            off.iter().for_each(|&element| actual[element] += 1);
            let contents = (&actual[..], &expected[..]);
            standing.add(Dtype::Uint8, contents, &tolerance(share)).map(|element| (launch, element))
        })
    }

    #[test]
    fn an_element_that_is_off_in_every_launch_is_no_tie() {
        assert_eq!(found(5e-4, &[&[9, 70], &[70], &[3, 70], &[70]]), Some((2, 70)));
        assert_eq!(found(5e-4, &[&[9, 70], &[], &[70], &[70], &[70], &[70]]), None);
        assert_eq!(found(5e-4, &[&[9], &[70], &[9], &[9], &[9]]), None);
    }

    #[test]
    fn more_ties_take_more_launches() {
        let same: [&[usize]; 12] = [&[70]; 12];
        assert_eq!(found(0.04, &same).map(|(launch, _)| launch + 1), Some(7));
    }
}
