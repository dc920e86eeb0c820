//! Parses units of the Nsight tools: `nsecond` and `ns`, `Kbyte`, `cycle/usecond`, `Ghz`.

/// Dimension of a unit, e.g. time or bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dimension {
    /// Time; the base unit is the second.
    Time,
    /// Bytes.
    Bytes,
    Percent,
    /// Cycles per second; the base unit is Hz.
    Frequency,
    /// Bytes per second.
    ByteRate,
    /// Other events per second.
    Rate,
    /// A count, or a quotient.
    Other,
}

/// A unit: the factor that converts it to the base unit, and its dimension.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Unit {
    pub(crate) scale: f64,
    pub(crate) dimension: Dimension,
}

/// Units of time in seconds, by their names in several versions.
const TIMES: [(&str, f64); 14] = [
    ("ps", 1e-12),
    ("psecond", 1e-12),
    ("ns", 1e-9),
    ("nsecond", 1e-9),
    ("us", 1e-6),
    ("usecond", 1e-6),
    ("\u{b5}s", 1e-6),
    ("ms", 1e-3),
    ("msecond", 1e-3),
    ("s", 1.0),
    ("sec", 1.0),
    ("second", 1.0),
    ("min", 60.0),
    ("minute", 60.0),
];

/// Decimal prefixes. The Nsight tools do not use binary prefixes.
const MULTIPLES: [(char, f64); 7] =
    [('K', 1e3), ('k', 1e3), ('M', 1e6), ('G', 1e9), ('T', 1e12), ('P', 1e15), ('E', 1e18)];

/// Parses a unit. Returns `None` if it is unknown.
pub(crate) fn unit(text: &str) -> Option<Unit> {
    let text = text.trim();
    let mut parts = text.split('/');
    let above = parts.next()?;
    let mut unit = part(above)?;
    for name in parts {
        let below = part(name)?;
        unit.scale /= below.scale;
        unit.dimension = match (unit.dimension, below.dimension) {
            (Dimension::Bytes, Dimension::Time) => Dimension::ByteRate,
            (_, Dimension::Time) if above.trim().contains("cycle") => Dimension::Frequency,
            (_, Dimension::Time) => Dimension::Rate,
            // A unit per block, thread or warp keeps its dimension.
            (dimension, _) if matches!(name.trim(), "block" | "thread" | "warp") => dimension,
            _ => Dimension::Other,
        };
    }
    unit.scale.is_finite().then_some(unit)
}

fn part(text: &str) -> Option<Unit> {
    let text = text.trim();
    let of = |scale, dimension| Some(Unit { scale, dimension });
    if let Some((_, seconds)) = TIMES.iter().find(|(name, _)| *name == text) {
        return of(*seconds, Dimension::Time);
    }
    match text {
        "%" => return of(1.0, Dimension::Percent),
        "" | "SM" | "TPC" | "GPC" => return of(1.0, Dimension::Other),
        _ => {}
    }
    if let Some(dimension) = counted(text) {
        return of(1.0, dimension);
    }
    let first = text.chars().next()?;
    let rest = &text[first.len_utf8()..];
    if let Some((_, scale)) = MULTIPLES.iter().find(|(letter, _)| *letter == first)
        && let Some(dimension) = counted(rest)
    {
        return of(*scale, dimension);
    }
    // Unknown units are counts with factor one. A leading capital letter may be the prefix of an
    // unknown unit, so such a unit is rejected.
    let word = text.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-' | '.'));
    (word && first.is_lowercase() && text.len() <= 32).then_some(())?;
    of(1.0, Dimension::Other)
}

/// Returns the dimension of a unit that may have a prefix.
fn counted(text: &str) -> Option<Dimension> {
    Some(match text {
        "byte" | "bytes" | "B" => Dimension::Bytes,
        "hz" | "Hz" | "HZ" => Dimension::Frequency,
        "inst" | "cycle" | "cycles" | "sector" | "sectors" | "request" | "thread" | "warp"
        | "block" | "register" | "op" | "ops" | "flop" | "wavefront" | "sample" | "branch"
        | "branches" => Dimension::Other,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_all_versions() {
        let scale = |text: &str| unit(text).map(|unit| unit.scale);
        for (old, new) in [
            ("nsecond", "ns"),
            ("usecond", "us"),
            ("byte/second", "byte/s"),
            ("cycle/second", "hz"),
            ("cycle/nsecond", "Ghz"),
            ("Kbyte", "KB"),
            ("sector/nsecond", "sector/ns"),
        ] {
            let (old_scale, new_scale) = (scale(old).unwrap(), scale(new).unwrap());
            assert!((old_scale / new_scale - 1.0).abs() < 1e-12, "{old} {new}");
        }
        assert_eq!(scale("Tbyte/s"), Some(1e12));
        assert_eq!(scale("%/Kbyte"), Some(1e-3));
        assert_eq!(scale("Kbyte/block"), Some(1e3));
        assert_eq!(scale("register/thread"), Some(1.0));
        assert_eq!(scale("SM"), Some(1.0));
        assert_eq!(scale(""), Some(1.0));
        assert_eq!(scale("clusters"), Some(1.0), "counted by one");
        assert_eq!(unit("ns").unwrap().dimension, Dimension::Time);
        assert_eq!(unit("Gbyte/s").unwrap().dimension, Dimension::ByteRate);
        assert_eq!(unit("cycle/usecond").unwrap().dimension, Dimension::Frequency);
        assert_eq!(unit("Ghz").unwrap().dimension, Dimension::Frequency);
        assert_eq!(unit("sector/ns").unwrap().dimension, Dimension::Rate);
        assert_eq!(unit("Kbyte/block").unwrap().dimension, Dimension::Bytes);
        assert_eq!(unit("byte/cycle").unwrap().dimension, Dimension::Other);
        assert_eq!(unit("Mbyte").unwrap().dimension, Dimension::Bytes);
    }

    #[test]
    fn what_may_be_a_multiple_of_something_unknown_is_not_guessed() {
        for text in ["Kfrobs", "Gfrobs", "Xbyte", "byte/Kfrobs", "1", "??"] {
            assert_eq!(unit(text), None, "{text}");
        }
    }
}
