//! Formats text like C's `printf`.

use super::view::View;

/// Maximum field width and number of digits, so that a format cannot request gigabytes.
const MAX_FIELD: usize = 4096;
/// Maximum length of the text of one call, bytes: the size of a GPU's whole buffer. Longer text is
/// truncated.
const MAX_OUTPUT: usize = 1 << 20;

/// The arguments of a call: consecutive values, each aligned to its size.
pub(super) struct Args<'v, 'w> {
    view: View<'v, 'w>,
    at: u64,
    count: u64,
}

impl<'v, 'w> Args<'v, 'w> {
    pub(super) fn new(view: View<'v, 'w>, at: u64) -> Self {
        Self { view, at, count: 0 }
    }

    /// Returns the number of arguments read so far.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    fn take(&mut self, bytes: u64) -> Option<u64> {
        let at = self.at.checked_next_multiple_of(bytes)?;
        self.at = at.checked_add(bytes)?;
        self.count += 1;
        self.view.number(at, bytes)
    }

    fn text(&mut self) -> Option<Vec<u8>> {
        let va = self.take(8)?;
        if va == 0 {
            return Some(b"(null)".to_vec());
        }
        self.view.text(va)
    }
}

/// A conversion specification: `%[flags][width][.precision][length]conversion`.
#[derive(Default)]
struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
    /// Whether the length modifier is `l`, `ll`, `j`, `z`, `t` or `L`.
    long: bool,
    /// Number of bits to which `h` or `hh` truncates the argument.
    short: Option<u32>,
}

/// Returns the text that a call prints, or `None` if an argument cannot be read.
pub(super) fn format(text: &[u8], args: &mut Args<'_, '_>) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < text.len() && out.len() < MAX_OUTPUT {
        if text[at] != b'%' {
            out.push(text[at]);
            at += 1;
            continue;
        }
        let begin = at;
        at += 1;
        let mut spec = Spec::default();
        parse(text, &mut at, &mut spec, args)?;
        let Some(conversion) = text.get(at) else {
            out.extend_from_slice(&text[begin..]);
            break;
        };
        at += 1;
        match conversion {
            b'%' => out.push(b'%'),
            b'd' | b'i' => signed(&mut out, &spec, args)?,
            b'u' | b'o' | b'x' | b'X' => unsigned(&mut out, &spec, *conversion, args)?,
            b'c' => {
                let c = args.take(4)? as u8;
                field(&mut out, &spec, b"", &[c], false);
            }
            b's' => {
                let mut s = args.text()?;
                s.truncate(spec.precision.unwrap_or(usize::MAX));
                field(&mut out, &spec, b"", &s, false);
            }
            b'p' => {
                let v = args.take(8)?;
                let digits = if v == 0 { "(nil)".into() } else { format!("{v:#x}") };
                field(&mut out, &spec, b"", digits.as_bytes(), false);
            }
            b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A' => {
                float(&mut out, &spec, *conversion, f64::from_bits(args.take(8)?));
            }
            // An unknown conversion is printed unchanged.
            _ => out.extend_from_slice(&text[begin..at]),
        }
    }
    out.truncate(MAX_OUTPUT);
    Some(out)
}

fn number(text: &[u8], at: &mut usize) -> usize {
    let mut n = 0usize;
    while let Some(d @ b'0'..=b'9') = text.get(*at) {
        n = (n * 10 + usize::from(d - b'0')).min(MAX_FIELD);
        *at += 1;
    }
    n
}

fn parse(text: &[u8], at: &mut usize, spec: &mut Spec, args: &mut Args<'_, '_>) -> Option<()> {
    while let Some(c) = text.get(*at) {
        match c {
            b'-' => spec.left = true,
            b'+' => spec.plus = true,
            b' ' => spec.space = true,
            b'#' => spec.alternate = true,
            b'0' => spec.zero = true,
            _ => break,
        }
        *at += 1;
    }
    if text.get(*at) == Some(&b'*') {
        *at += 1;
        let w = args.take(4)? as i32;
        spec.left |= w < 0;
        spec.width = (w.unsigned_abs() as usize).min(MAX_FIELD);
    } else {
        spec.width = number(text, at);
    }
    if text.get(*at) == Some(&b'.') {
        *at += 1;
        if text.get(*at) == Some(&b'*') {
            *at += 1;
            let p = args.take(4)? as i32;
            spec.precision = (p >= 0).then_some((p as usize).min(MAX_FIELD));
        } else {
            spec.precision = Some(number(text, at));
        }
    }
    while let Some(c) = text.get(*at) {
        match c {
            b'l' | b'j' | b'z' | b't' | b'L' => spec.long = true,
            b'h' => spec.short = Some(if spec.short.is_some() { 8 } else { 16 }),
            _ => break,
        }
        *at += 1;
    }
    Some(())
}

/// Appends a sign or prefix and the digits, padded to the width of the field.
fn field(out: &mut Vec<u8>, spec: &Spec, prefix: &[u8], body: &[u8], zeros: bool) {
    let pad = spec.width.saturating_sub(prefix.len() + body.len());
    let fill = |out: &mut Vec<u8>, c| out.resize(out.len() + pad, c);
    if !spec.left && !zeros {
        fill(out, b' ');
    }
    out.extend_from_slice(prefix);
    if !spec.left && zeros {
        fill(out, b'0');
    }
    out.extend_from_slice(body);
    if spec.left {
        fill(out, b' ');
    }
}

/// Appends digits, with as many leading zeros as the precision requires.
fn integer(out: &mut Vec<u8>, spec: &Spec, prefix: &str, digits: String) {
    let digits = match spec.precision {
        Some(0) if digits == "0" => String::new(),
        Some(p) => format!("{}{digits}", "0".repeat(p.saturating_sub(digits.len()))),
        None => digits,
    };
    let zeros = spec.zero && spec.precision.is_none();
    field(out, spec, prefix.as_bytes(), digits.as_bytes(), zeros);
}

fn sign(spec: &Spec, negative: bool) -> &'static str {
    match (negative, spec.plus, spec.space) {
        (true, ..) => "-",
        (_, true, _) => "+",
        (_, _, true) => " ",
        _ => "",
    }
}

fn signed(out: &mut Vec<u8>, spec: &Spec, args: &mut Args<'_, '_>) -> Option<()> {
    let v = match (spec.long, spec.short) {
        (true, _) => args.take(8)? as i64,
        (_, Some(8)) => args.take(4)? as i8 as i64,
        (_, Some(_)) => args.take(4)? as i16 as i64,
        _ => args.take(4)? as i32 as i64,
    };
    integer(out, spec, sign(spec, v < 0), v.unsigned_abs().to_string());
    Some(())
}

fn unsigned(out: &mut Vec<u8>, spec: &Spec, conversion: u8, args: &mut Args<'_, '_>) -> Option<()> {
    let v = match (spec.long, spec.short) {
        (true, _) => args.take(8)?,
        (_, Some(bits)) => args.take(4)? & ((1 << bits) - 1),
        _ => args.take(4)?,
    };
    let (prefix, digits) = match conversion {
        b'o' if spec.alternate && v != 0 => ("", format!("0{v:o}")),
        b'o' => ("", format!("{v:o}")),
        b'x' => (if spec.alternate && v != 0 { "0x" } else { "" }, format!("{v:x}")),
        b'X' => (if spec.alternate && v != 0 { "0X" } else { "" }, format!("{v:X}")),
        _ => ("", v.to_string()),
    };
    integer(out, spec, prefix, digits);
    Some(())
}

/// Formats with an exponent as in C: `1.5e+03`, for which Rust writes `1.5e3`.
fn exponent(v: f64, precision: usize) -> String {
    let text = format!("{v:.precision$e}");
    let (digits, exp) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exp) = exp.strip_prefix('-').map_or(('+', exp), |e| ('-', e));
    format!("{digits}e{sign}{exp:0>2}")
}

/// Formats `%g`: the shorter form, without trailing zeros.
fn general(v: f64, precision: usize, alternate: bool) -> String {
    let p = precision.max(1);
    let exp = exponent(v, p - 1);
    let x: i64 = exp.rsplit_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
    let trim = |s: &str| {
        if alternate || !s.contains('.') {
            return s.to_string();
        }
        s.trim_end_matches('0').trim_end_matches('.').to_string()
    };
    if v != 0.0 && (x < -4 || x >= p as i64) {
        let (digits, e) = exp.split_once('e').unwrap_or((&exp, "+00"));
        return format!("{}e{e}", trim(digits));
    }
    let places = (p as i64 - 1 - if v == 0.0 { 0 } else { x }).max(0) as usize;
    trim(&format!("{v:.places$}"))
}

/// Formats `%a`, a hexadecimal floating-point number.
fn hexadecimal(v: f64, precision: Option<usize>) -> String {
    let bits = v.to_bits();
    let (mut lead, mut man, exp) = match (bits >> 52 & 0x7ff, bits & ((1 << 52) - 1)) {
        (0, 0) => (0, 0, 0),
        (0, m) => (0, m, -1022),
        (e, m) => (1u64, m, e as i64 - 1023),
    };
    let mut digits = 13;
    if let Some(p) = precision.filter(|p| *p < 13) {
        let cut = 4 * (13 - p);
        let all = (lead << 52) | man;
        let half = 1u64 << (cut - 1);
        let odd = all >> cut & 1;
        let rounded = (all + half - 1 + odd) >> cut << cut;
        (lead, man, digits) = (rounded >> 52, rounded & ((1 << 52) - 1), p);
    }
    let text = format!("{man:013x}");
    let text = match precision {
        Some(p) => format!("{}{}", &text[..digits], "0".repeat(p.saturating_sub(13))),
        None => text.trim_end_matches('0').to_string(),
    };
    let dot = if text.is_empty() { "" } else { "." };
    format!("0x{lead}{dot}{text}p{exp:+}")
}

fn float(out: &mut Vec<u8>, spec: &Spec, conversion: u8, v: f64) {
    let upper = conversion.is_ascii_uppercase();
    let negative = v.is_sign_negative();
    let magnitude = v.abs();
    let precision = spec.precision.unwrap_or(6);
    let mut body = if v.is_nan() {
        "nan".to_string()
    } else if v.is_infinite() {
        "inf".to_string()
    } else {
        match conversion.to_ascii_lowercase() {
            b'f' => format!("{magnitude:.precision$}"),
            b'e' => exponent(magnitude, precision),
            b'g' => general(magnitude, precision, spec.alternate),
            _ => hexadecimal(magnitude, spec.precision),
        }
    };
    if upper {
        body = body.to_uppercase();
    }
    let zeros = spec.zero && v.is_finite();
    field(out, spec, sign(spec, negative).as_bytes(), body.as_bytes(), zeros);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(spec: &Spec, conversion: u8, v: f64) -> String {
        let mut out = Vec::new();
        float(&mut out, spec, conversion, v);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn floats_as_c_prints_them() {
        let plain = Spec::default();
        assert_eq!(show(&plain, b'f', 1.5), "1.500000");
        assert_eq!(show(&plain, b'e', 12345.678), "1.234568e+04");
        assert_eq!(show(&plain, b'g', 0.0001), "0.0001");
        assert_eq!(show(&plain, b'g', 1e10), "1e+10");
        assert_eq!(show(&plain, b'g', 0.0), "0");
        assert_eq!(show(&plain, b'g', 100000.0), "100000");
        assert_eq!(show(&plain, b'G', 1e-10), "1E-10");
        assert_eq!(show(&plain, b'a', 1.0), "0x1p+0");
        assert_eq!(show(&plain, b'a', 0.1), "0x1.999999999999ap-4");
        assert_eq!(show(&plain, b'f', f64::NEG_INFINITY), "-inf");
        let wide = Spec { width: 8, precision: Some(2), zero: true, ..Spec::default() };
        assert_eq!(show(&wide, b'f', -2.71), "-0002.71");
        let left = Spec { width: 6, left: true, plus: true, ..Spec::default() };
        let mut out = Vec::new();
        integer(&mut out, &left, "+", "42".into());
        assert_eq!(out, b"+42   ");
    }
}
