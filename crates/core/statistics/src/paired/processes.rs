//! Test of whether a difference between kernels exceeds the variation between processes. The main
//! function is [`across_processes`].

use super::estimate::t_quantile;

/// Mean of the ratios of a kernel's time to a reference's, with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AcrossProcesses {
    /// Geometric mean of the ratios.
    pub ratio: f64,
    /// Bounds of the mean's 95 % confidence interval.
    pub interval: [f64; 2],
    /// Whether the mean differs from 1 by more than the variation of the ratios explains.
    pub outweighs: bool,
}

/// Absolute logarithm of a ratio from which a larger error probability is allowed, because differences between
/// processes are less likely to cause it.
const LARGE: f64 = 0.1;

/// One-sided confidence levels of the test: for differences below [`LARGE`], and for larger ones.
const LEVELS: [f64; 2] = [0.995, 0.975];

/// Returns the mean of ratios that were measured in separate pairs of processes, and whether it differs from 1 in
/// Student's one-sided test at 99.5 % (97.5 % for a difference of 10 % or more). Returns `None` for fewer than two
/// ratios.
pub fn across_processes(ratios: &[f64]) -> Option<AcrossProcesses> {
    let count = ratios.len();
    if count < 2 {
        return None;
    }
    let logarithms = ratios.iter().map(|ratio| ratio.ln()).collect::<Vec<_>>();
    let mean = logarithms.iter().sum::<f64>() / count as f64;
    let squares = logarithms.iter().map(|one| (one - mean).powi(2)).sum::<f64>();
    let freedom = (count - 1) as f64;
    let error = (squares / freedom / count as f64).sqrt();
    let level = LEVELS[usize::from(mean.abs() >= LARGE)];
    let half = t_quantile(0.975, freedom) * error;
    Some(AcrossProcesses {
        ratio: mean.exp(),
        interval: [(mean - half).exp(), (mean + half).exp()],
        outweighs: mean.abs() > t_quantile(level, freedom) * error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn outweighs(ratios: &[f64]) -> bool {
        across_processes(ratios).is_some_and(|found| found.outweighs)
    }

    #[test]
    fn two_pairs_decide_only_where_they_agree_closely() {
        assert!(!outweighs(&[1.5]));
        // Student's t for one degree of freedom: 63.7 at 99.5 %, and 12.7 at 97.5 %.
        assert!(outweighs(&[1.0200, 1.0206]) && !outweighs(&[1.020, 1.021]));
        assert!(outweighs(&[1.20, 1.22]) && !outweighs(&[1.20, 1.24]));
        assert!(outweighs(&[0.80, 0.81]) && !outweighs(&[1.0, 1.0]));
    }

    #[test]
    fn further_pairs_decide_about_a_small_difference() {
        let small = [1.020, 1.023, 1.018, 1.021];
        assert!(!outweighs(&small[..2]) && outweighs(&small[..3]) && outweighs(&small));
        let found = across_processes(&small).unwrap();
        assert!((found.ratio - 1.0205).abs() < 1e-4, "{found:?}");
        assert!(found.interval[0] > 1.016 && found.interval[1] < 1.025, "{found:?}");
        assert!(!outweighs(&[1.03, 1.01, 1.04, 1.02]), "processes differ by as much");
    }

    #[test]
    fn equal_kernels_are_seldom_told_apart() {
        // Processes that differ by 3 %, by normal quantiles in a fixed irregular order.
        let mut seed = 12_345_u64;
        let mut uniform = || {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((seed >> 11) as f64 + 0.5) / (1u64 << 53) as f64
        };
        let mut normal = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        let mut called = 0;
        for _ in 0..2000 {
            let first = normal();
            let mut ratios: Vec<f64> = Vec::new();
            for _ in 0..5 {
                let other = normal();
                if other.signum() != first.signum() {
                    break;
                }
                ratios.push((0.03 * other).exp());
                if outweighs(&ratios) {
                    called += 1;
                    break;
                }
            }
        }
        assert!(called < 40, "{called} of 2000");
    }
}
