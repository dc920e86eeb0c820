//! Order statistics of samples.

/// Returns the quantile `q` (0–1), computed by linear interpolation between order statistics
/// (Hyndman–Fan type 7). Returns `None` if there are no samples.
pub fn quantile(samples: &[f64], q: f64) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let position = q.clamp(0.0, 1.0) * last as f64;
    let below = position.floor();
    let index = below as usize;
    let lower = sorted[index];
    let upper = sorted[(index + 1).min(last)];
    Some(lower + (position - below) * (upper - lower))
}

#[cfg(test)]
mod tests {
    use super::quantile;

    #[test]
    fn matches_type_7() {
        let samples = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(quantile(&samples, 0.5), Some(2.5));
        assert_eq!(quantile(&samples, 0.0), Some(1.0));
        assert_eq!(quantile(&samples, 1.0), Some(4.0));
        // R computes: quantile(c(4, 1, 3, 2), 0.95) = 3.85
        assert!((quantile(&samples, 0.95).unwrap_or(0.0) - 3.85).abs() < 1e-12);
        assert_eq!(quantile(&[], 0.5), None);
    }
}
