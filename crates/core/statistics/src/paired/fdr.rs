//! Correction of several tests for the false discovery rate. The main function is
//! [`benjamini_hochberg`].

/// Returns p-values corrected for the false discovery rate, in the given order (Benjamini and
/// Hochberg, "Controlling the false discovery rate", J. R. Statist. Soc. B 57, 1995). The k-th
/// smallest of m, from 1, is multiplied by m / k, and is at most the corrected value after it. If
/// values up to q are accepted, the expected share of false ones is at most q, for tests that are
/// independent or depend positively. NaN counts as 1.
pub fn benjamini_hochberg(p_values: &[f64]) -> Vec<f64> {
    let p: Vec<f64> =
        p_values.iter().map(|p| if p.is_nan() { 1.0 } else { p.clamp(0.0, 1.0) }).collect();
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|x, y| p[*x].total_cmp(&p[*y]));
    let mut adjusted = vec![1.0; p.len()];
    let mut least = 1.0_f64;
    for (rank, index) in order.into_iter().enumerate().rev() {
        least = least.min(p[index] * p.len() as f64 / (rank + 1) as f64);
        adjusted[index] = least;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_go_up() {
        // The fifteen p-values of the example in the paper (thrombolysis); at 0.05 it rejects four.
        let paper = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.0,
        ];
        let adjusted = benjamini_hochberg(&paper);
        assert_eq!(adjusted.iter().filter(|q| **q <= 0.05).count(), 4);
        // The values 0.01·4/1, 0.02·4/2, 0.03·4/3 and 0.04·4/4 are equal, so all results are 0.04.
        let adjusted = benjamini_hochberg(&[0.03, 0.01, 0.04, 0.02]);
        assert!(adjusted.iter().all(|q| (q - 0.04).abs() < 1e-12), "{adjusted:?}");
        assert_eq!(benjamini_hochberg(&[f64::NAN, 2.0]), [1.0, 1.0]);
        assert!(benjamini_hochberg(&[]).is_empty());
    }
}
