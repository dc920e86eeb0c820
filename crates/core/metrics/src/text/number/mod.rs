//! Parses numbers in the formats of different locales.
//!
//! Nsight Compute groups digits and writes decimals according to the locale: `1,209.5`, `1.209,5`,
//! `1 209,5`. `8.930` may then be 8.93 or 8930. The other cells of the same file decide this. If
//! they do not, the cell is rejected.

/// Reason given for a value that is missing because the number overflows or underflows.
pub(crate) const OUT_OF_BOUNDS: &str = "the tool gave a number that is too large or too small";

/// The decimal separator of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Convention {
    /// No cell of the file shows which separator is used.
    #[default]
    Unknown,
    /// The decimal separator is a dot.
    Dot,
    /// The decimal separator is a comma.
    Comma,
}

/// A cell of a file that contains a number, with its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell<'a> {
    pub(crate) text: &'a str,
    /// Whether it must be a whole number: `1.024` then has grouped digits.
    pub(crate) whole: bool,
    pub(crate) line: usize,
    pub(crate) column: &'a str,
}

/// Cells that contradict each other, with their positions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Conflict {
    pub(crate) dot: String,
    pub(crate) comma: String,
}

/// Value of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value {
    /// A finite number.
    Number(f64),
    /// The tool reported no value, for this reason.
    Missing(&'static str),
    /// The number is ambiguous.
    Ambiguous,
    /// The cell contains other text.
    Text,
}

impl Convention {
    /// Returns the separator that follows from all cells of a page.
    pub(crate) fn of<'a>(cells: impl Iterator<Item = Cell<'a>>) -> Result<Self, Conflict> {
        let mut shown = Shown::default();
        cells.for_each(|cell| shown.see(cell));
        shown.convention()
    }
}

/// Decimal separators that the cells read so far show.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shown {
    dot: Option<String>,
    comma: Option<String>,
}

impl Shown {
    pub(crate) fn see(&mut self, cell: Cell<'_>) {
        if self.contradicts() {
            return;
        }
        let told = Digits::of(cell.text).and_then(|digits| match digits.convention() {
            Some(Convention::Unknown) if cell.whole => Some(digits.grouped()),
            told => told,
        });
        let seen = match told {
            Some(Convention::Dot) => &mut self.dot,
            Some(Convention::Comma) => &mut self.comma,
            Some(Convention::Unknown) | None => return,
        };
        seen.get_or_insert_with(|| {
            let text: String = cell.text.trim().chars().take(40).collect();
            format!("`{text}` (line {}, {})", cell.line, cell.column)
        });
    }

    /// Returns whether a cell has shown a separator.
    pub(crate) fn any(&self) -> bool {
        self.dot.is_some() || self.comma.is_some()
    }

    /// Returns whether cells have shown a decimal comma, and none a decimal point.
    pub(crate) fn only_comma(&self) -> bool {
        self.comma.is_some() && self.dot.is_none()
    }

    /// Returns whether cells contradict each other.
    pub(crate) fn contradicts(&self) -> bool {
        self.dot.is_some() && self.comma.is_some()
    }

    /// Returns the separator, or the two cells that contradict each other.
    pub(crate) fn convention(self) -> Result<Convention, Conflict> {
        match (self.dot, self.comma) {
            (None, None) => Ok(Convention::Unknown),
            (Some(_), None) => Ok(Convention::Dot),
            (None, Some(_)) => Ok(Convention::Comma),
            (Some(dot), Some(comma)) => Err(Conflict { dot, comma }),
        }
    }
}

/// Parses a cell according to the file's decimal separator.
pub(crate) fn value(cell: &str, convention: Convention) -> Value {
    let cell = cell.trim();
    // Large pages have millions of cells, and nearly all of them begin with a digit.
    if !cell.starts_with(|c: char| c.is_ascii_digit())
        && let Some(reason) = missing(cell)
    {
        return Value::Missing(reason);
    }
    let Some(digits) = Digits::of(cell) else { return Value::Text };
    let Some(own) = digits.convention() else { return Value::Text };
    let decimal = match (own, convention) {
        (Convention::Unknown, convention) => convention,
        (own, Convention::Unknown) => own,
        (own, convention) if own == convention => own,
        _ => return Value::Text,
    };
    match decimal {
        Convention::Unknown if digits.separated() => Value::Ambiguous,
        Convention::Unknown | Convention::Dot => digits.parse('.', ','),
        Convention::Comma => digits.parse(',', '.'),
    }
}

/// If the cell contains one of the tools' words for a missing value, returns the reason.
fn missing(cell: &str) -> Option<&'static str> {
    let plain = cell.trim_start_matches("(!)").trim().to_ascii_lowercase();
    Some(match plain.as_str() {
        "" => "the tool left it empty",
        "n/a" | "na" => "the tool reports that it does not apply (n/a)",
        "no data" => "the tool has no data for it",
        "none" | "null" | "<na>" => "the program that saved the page had no value for it",
        "nan" | "-nan" | "+nan" | "-nan(ind)" => "the tool gave no number (nan)",
        "inf" | "-inf" | "+inf" | "infinity" | "-infinity" => "the tool gave no number (inf)",
        _ => return None,
    })
}

/// A number as text: digits, separators, and possibly an exponent.
struct Digits<'a> {
    negative: bool,
    mantissa: &'a str,
    exponent: &'a str,
    /// All of it after the sign, if it is in the form of Rust's numbers but for grouped digits.
    plain: Option<&'a str>,
}

/// Returns whether a character groups digits in any locale: several kinds of spaces and
/// apostrophes.
fn groups(c: char) -> bool {
    matches!(c, ' ' | '\u{a0}' | '\u{202f}' | '\u{2009}' | '\'' | '\u{2019}')
}

/// Returns whether the digits are grouped as in some locale: by three, by four as in Chinese, or by
/// two before the last three as in India.
fn well_grouped(groups: &[&str]) -> bool {
    let [first, middle @ .., last] = groups else { return true };
    let by = |size: usize, end: usize| {
        (1..=size).contains(&first.len())
            && middle.iter().all(|group| group.len() == size)
            && last.len() == end
    };
    by(3, 3) || by(4, 4) || by(2, 3)
}

impl<'a> Digits<'a> {
    fn of(cell: &'a str) -> Option<Self> {
        let cell = cell.trim();
        // With `--print-metric-instances` the instances follow in parentheses.
        let cell = cell.split_once(" (").filter(|_| cell.ends_with(')')).map_or(cell, |p| p.0);
        let negative = cell.starts_with('-');
        let cell = cell.strip_prefix(['-', '+']).unwrap_or(cell);
        let (mantissa, exponent) = match cell.find(['e', 'E']) {
            Some(at) => (&cell[..at], &cell[at + 1..]),
            None => (cell, ""),
        };
        let plain = |c: char| c.is_ascii_digit() || c == '.' || c == ',' || groups(c);
        let exponent_digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        let is = mantissa.starts_with(|c: char| c.is_ascii_digit() || c == '.' || c == ',')
            && mantissa.contains(|c: char| c.is_ascii_digit())
            && mantissa.chars().all(plain)
            && exponent_digits.chars().all(|c| c.is_ascii_digit())
            && (mantissa.len() == cell.len() || !exponent_digits.is_empty())
            && cell.len() < 64;
        let plain = cell.is_ascii().then_some(cell);
        is.then_some(Self { negative, mantissa, exponent, plain })
    }

    /// Returns the decimal separator if the number's separators group digits.
    fn grouped(&self) -> Convention {
        match (self.mantissa.contains('.'), self.mantissa.contains(',')) {
            (true, false) => Convention::Comma,
            (false, true) => Convention::Dot,
            _ => Convention::Unknown,
        }
    }

    fn separated(&self) -> bool {
        self.mantissa.contains(['.', ','])
    }

    /// Returns the decimal separator that this number alone shows. Returns `None` if it is not a
    /// number in any locale.
    fn convention(&self) -> Option<Convention> {
        let dots = self.mantissa.matches('.').count();
        let commas = self.mantissa.matches(',').count();
        let decimal = |c: char| if c == '.' { Convention::Dot } else { Convention::Comma };
        match (dots, commas) {
            (0, 0) => Some(Convention::Unknown),
            (1, 0) | (0, 1) => {
                let separator = if dots == 1 { '.' } else { ',' };
                let (whole, fraction) = self.mantissa.split_once(separator)?;
                let may_group = fraction.len() == 3
                    && (1..=3).contains(&whole.len())
                    && !whole.starts_with('0')
                    && self.exponent.is_empty();
                Some(if may_group { Convention::Unknown } else { decimal(separator) })
            }
            (_, 0) => Some(Convention::Comma),
            (0, _) => Some(Convention::Dot),
            _ => {
                let last = self.mantissa.rfind(['.', ','])?;
                let last = self.mantissa[last..].chars().next()?;
                let once = if last == '.' { dots } else { commas } == 1;
                once.then(|| decimal(last))
            }
        }
    }

    fn parse(&self, decimal: char, group: char) -> Value {
        if !self.mantissa.contains(|c: char| c == group || groups(c))
            && let Some(plain) = self.plain.filter(|_| decimal == '.')
        {
            return self.finite(plain.parse());
        }
        let (whole, fraction) = self.mantissa.split_once(decimal).unwrap_or((self.mantissa, ""));
        let grouped: Vec<&str> = whole.split(|c| c == group || groups(c)).collect();
        if !well_grouped(&grouped) || !fraction.chars().all(|c| c.is_ascii_digit()) {
            return Value::Text;
        }
        let exponent = if self.exponent.is_empty() { "0" } else { self.exponent };
        let plain = format!("{}.{fraction}e{exponent}", grouped.concat());
        self.finite(plain.parse())
    }

    fn finite(&self, number: Result<f64, std::num::ParseFloatError>) -> Value {
        match number {
            // A value that underflows is not a zero.
            Ok(0.0) if self.mantissa.contains(|c: char| ('1'..='9').contains(&c)) => {
                Value::Missing(OUT_OF_BOUNDS)
            }
            Ok(number) if number.is_finite() => {
                Value::Number(if self.negative { -number } else { number })
            }
            Ok(_) => Value::Missing(OUT_OF_BOUNDS),
            Err(_) => Value::Text,
        }
    }
}

#[cfg(test)]
mod tests;
