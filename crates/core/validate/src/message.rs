//! The message of a failed comparison.

use std::fmt::Write;

use super::Comparison;
use warpgauge_tensor::shape;

/// Number of mismatches in the message. The comparison lists more.
const QUOTED: usize = 3;

/// Returns the text of `validation_error` for an output, or `None` if the output passed.
pub fn validation_error(name: &str, comparison: &Comparison) -> Option<String> {
    if comparison.passed {
        return None;
    }
    if comparison.half_precision {
        return Some(format!(
            "every number in output `{name}` is exact in float16, but the reference's numbers \
             need more bits: compute in the reference's type, or set `tolerance` if half \
             precision is enough"
        ));
    }
    let tolerance = &comparison.tolerance;
    let wrong = comparison.elements - comparison.matched;
    let mut text = format!("output `{name}`: {wrong} of {} elements differ", comparison.elements);
    if tolerance.atol > 0.0 || tolerance.rtol > 0.0 {
        let _ = write!(
            text,
            " beyond atol {} + rtol {}·|expected|",
            number(tolerance.atol),
            number(tolerance.rtol)
        );
    }
    if let Some(outliers) = tolerance.outliers {
        let _ = write!(
            text,
            " (for a share of {} of the elements, atol {})",
            number(outliers.share),
            number(outliers.atol)
        );
    }
    if tolerance.required_matched_ratio < 1.0 {
        let share = comparison.matched as f64 / comparison.elements.max(1) as f64;
        let _ =
            write!(text, "; {share:.6} match, {} are required", tolerance.required_matched_ratio);
    }
    if let Some(pattern) = &comparison.pattern {
        let _ = write!(text, "; these are {pattern}");
    }
    if comparison.unwritten > 0 {
        let _ = write!(text, "; {} were never written", comparison.unwritten);
        if comparison.unwritten == wrong {
            text.push_str(": does the grid cover them?");
        }
    }
    if comparison.non_finite > 0 {
        let _ = write!(text, "; {} are NaN or infinite and should not be", comparison.non_finite);
    }
    if comparison.max_abs_error > 0.0 {
        let _ = write!(text, "; largest |error| {}", number(comparison.max_abs_error));
    }
    if comparison.max_rel_error > 0.0 {
        let _ = write!(text, ", relative {}", number(comparison.max_rel_error));
    }
    if comparison.max_abs_error > 0.0 {
        let _ = write!(text, ", mean {}", number(comparison.mean_abs_error));
    }
    for (position, mismatch) in comparison.first_mismatches.iter().take(QUOTED).enumerate() {
        let _ = write!(
            text,
            "{}{} is {}, expected {}",
            if position == 0 { "; first: " } else { ", " },
            shape::shown(&mismatch.index),
            mismatch.actual,
            mismatch.expected
        );
    }
    Some(text)
}

/// Formats a number with four significant digits, plain or with an exponent.
fn number(value: f64) -> String {
    let rounded: f64 = format!("{value:.3e}").parse().unwrap_or(value);
    if rounded == 0.0 || (1e-3..1e6).contains(&rounded.abs()) {
        rounded.to_string()
    } else {
        format!("{rounded:e}")
    }
}
