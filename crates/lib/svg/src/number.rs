//! Formats numbers in drawings for people.

/// Formats a power of ten, such as `10⁻³`, without markup. Powers from 0.01 to 1000 are written as
/// plain numbers.
pub fn power_of_ten(exponent: i32) -> String {
    match exponent {
        -2 => "0.01".to_owned(),
        -1 => "0.1".to_owned(),
        0..=3 => 10i64.pow(exponent.unsigned_abs()).to_string(),
        _ => {
            let digits = "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().collect::<Vec<_>>();
            let sign = if exponent < 0 { "⁻" } else { "" };
            let number = exponent.unsigned_abs().to_string();
            let raised = number.bytes().map(|byte| digits[usize::from(byte - b'0')]);
            format!("10{sign}{}", raised.collect::<String>())
        }
    }
}

/// Formats a number with a unit prefix, e.g. `3.21 TB/s`.
pub fn si(value: f64, unit: &str) -> String {
    const PREFIXES: [(f64, &str); 6] =
        [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (0.0, "")];
    // The last entry matches all remaining values that are not negative.
    let (scale, prefix) =
        PREFIXES.into_iter().find(|(from, _)| value >= *from).unwrap_or((0.0, ""));
    let shown = if scale > 0.0 { value / scale } else { value };
    let digits = match shown {
        _ if shown.fract() == 0.0 => 0,
        _ if shown >= 100.0 => 0,
        _ if shown >= 10.0 => 1,
        _ => 2,
    };
    format!("{shown:.digits$} {prefix}{unit}")
}

/// Formats a number with at least four significant digits, but at most 12 decimal places. Numbers
/// from 10¹⁵ on are in scientific notation. Numbers that are not finite become 0.
pub fn rounded(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    let magnitude = value.abs().log10().floor() as i32;
    if magnitude >= 15 {
        return format!("{value:.3e}");
    }
    let digits = usize::try_from((3 - magnitude).clamp(0, 12)).unwrap_or(0);
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!([-3, 0, 3, 12].map(power_of_ten), ["10⁻³", "1", "1000", "10¹²"]);
        assert_eq!(si(3.21e12, "B/s"), "3.21 TB/s");
        assert_eq!(si(1e9, "OP/s"), "1 GOP/s");
        assert_eq!(si(0.5, "B"), "0.50 B");
        assert_eq!(si(345.6e6, "B"), "346 MB");
        let cases = [(0.0, "0"), (0.012345, "0.01235"), (1.0, "1.000"), (123456.0, "123456")];
        for (value, text) in cases {
            assert_eq!(rounded(value), text);
        }
    }
}
