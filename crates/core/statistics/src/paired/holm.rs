//! Correction of several tests for the probability of any error. The main function is
//! [`holm_adjusted`].

/// Returns p-values corrected for their number, in the given order (Holm, "A simple sequentially
/// rejective multiple test procedure", Scand. J. Statist. 6, 1979). The k-th smallest of m, from 1,
/// is multiplied by m − k + 1; it is at least the corrected value before it, and at most 1. If
/// values up to α are rejected, the probability of any false rejection is at most α, however the
/// tests depend on one another. NaN counts as 1.
pub fn holm_adjusted(p_values: &[f64]) -> Vec<f64> {
    let p: Vec<f64> =
        p_values.iter().map(|p| if p.is_nan() { 1.0 } else { p.clamp(0.0, 1.0) }).collect();
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|x, y| p[*x].total_cmp(&p[*y]));
    let mut adjusted = vec![1.0; p.len()];
    let mut largest = 0.0_f64;
    for (rank, index) in order.into_iter().enumerate() {
        largest = largest.max(p[index] * (p.len() - rank) as f64).min(1.0);
        adjusted[index] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_go_down() {
        // The values are 0.01·4, 0.02·3, max(0.06, 0.03·2), and 0.04·1 raised to 0.06.
        let adjusted = holm_adjusted(&[0.03, 0.01, 0.04, 0.02]);
        for (actual, expected) in adjusted.iter().zip([0.06, 0.04, 0.06, 0.06]) {
            assert!((actual - expected).abs() < 1e-12, "{adjusted:?}");
        }
        // Bonferroni's correction would give 0.06 for the second; Holm's multiplies it by two only.
        assert_eq!(holm_adjusted(&[0.001, 0.02, 0.9]), [0.003, 0.04, 0.9]);
        assert_eq!(holm_adjusted(&[f64::NAN, 2.0]), [1.0, 1.0]);
        assert!(holm_adjusted(&[]).is_empty());
    }
}
