use proptest::prelude::*;

use super::*;

fn cell(text: &str) -> Cell<'_> {
    Cell { text, whole: false, line: 7, column: "m" }
}

fn file(cells: &[&str]) -> Vec<Value> {
    let convention = Convention::of(cells.iter().copied().map(cell)).unwrap();
    cells.iter().map(|cell| value(cell, convention)).collect()
}

fn numbers(values: &[f64]) -> Vec<Value> {
    values.iter().copied().map(Value::Number).collect()
}

/// The two values are equal in four locales, as Nsight Compute 2024.1.1 writes them.
#[test]
fn locales() {
    let expected = numbers(&[1_209_119_616.0, 25.4]);
    assert_eq!(file(&["1209119616", "25.40"]), expected, "C");
    assert_eq!(file(&["1,209,119,616", "25.40"]), expected, "en_US");
    assert_eq!(file(&["1.209.119.616", "25,40"]), expected, "de_DE");
    assert_eq!(file(&["1 209 119 616", "25,40"]), expected, "fr_FR");
    assert_eq!(file(&["1\u{202f}209\u{202f}119\u{202f}616", "25,40"]), expected, "fr_FR");
    assert_eq!(file(&["1\u{2019}209\u{2019}119\u{2019}616", "25.40"]), expected, "de_CH");
}

#[test]
fn what_other_cells_tell_decides() {
    assert_eq!(file(&["8.930", "25,40"]), numbers(&[8930.0, 25.4]));
    assert_eq!(file(&["8.930", "25.40"]), numbers(&[8.93, 25.4]));
    assert_eq!(file(&["8,930", "1,234.5"]), numbers(&[8930.0, 1234.5]));
    assert_eq!(file(&["8,930", "12"]), [Value::Ambiguous, Value::Number(12.0)]);
    assert_eq!(file(&["0.930", "1234.567"]), numbers(&[0.93, 1234.567]));
    let conflict = Convention::of(["1.5", "3", "2,5"].into_iter().map(cell)).unwrap_err();
    assert_eq!(
        (conflict.dot.as_str(), conflict.comma.as_str()),
        ("`1.5` (line 7, m)", "`2,5` (line 7, m)")
    );
}

/// A block cannot have 1.024 threads.
#[test]
fn whole_numbers_tell_what_groups_their_digits() {
    let of = |texts: &[(&'static str, bool)]| {
        Convention::of(texts.iter().map(|(text, whole)| Cell { whole: *whole, ..cell(text) }))
    };
    assert_eq!(of(&[("1.024", true), ("8.930", false)]), Ok(Convention::Comma));
    assert_eq!(of(&[("1,024", true), ("8.930", false)]), Ok(Convention::Dot));
    assert_eq!(of(&[("256", true), ("8.930", false)]), Ok(Convention::Unknown));
    assert!(of(&[("1.024", true), ("58.91", false)]).is_err());
}

#[test]
fn signs_exponents_and_instances() {
    assert_eq!(file(&["-1.5", "+2.25", "1.250e3"]), numbers(&[-1.5, 2.25, 1250.0]));
    assert_eq!(file(&["1,024 (512; 512)", "0.5"]), numbers(&[1024.0, 0.5]));
    assert_eq!(
        value("1e999", Convention::Dot),
        Value::Missing("the tool gave a number that is too large or too small")
    );
}

#[test]
fn what_is_too_small_for_a_number_is_no_zero() {
    assert_eq!(value("1e-999", Convention::Dot), Value::Missing(OUT_OF_BOUNDS));
    assert_eq!(file(&["0.00", "0e9", "-0"]), numbers(&[0.0, 0.0, 0.0]));
}

#[test]
fn digits_are_grouped_as_in_all_locales() {
    for (cell, number) in [
        ("12,34,567", 1_234_567.0),
        ("59,93,702.5", 5_993_702.5),
        ("599,3702.5", 5_993_702.5),
        ("1,5993,3702", 159_933_702.0),
        ("5\u{2019}993\u{2019}702.5", 5_993_702.5),
    ] {
        assert_eq!(value(cell, Convention::Dot), Value::Number(number), "{cell}");
    }
    for cell in ["123,45,678", "1,2345,678", "1,23,45.0", "12345,6789.0", ",123.0"] {
        assert_eq!(value(cell, Convention::Dot), Value::Text, "{cell}");
    }
}

#[test]
fn what_is_no_number_is_never_one() {
    for cell in ["", "n/a", "(!) n/a", "nan", "-nan", "inf", "-inf", "no data", "N/A"] {
        assert!(matches!(value(cell, Convention::Dot), Value::Missing(_)), "{cell}");
    }
    for cell in
        ["all", "PolicySpread", "1.2.3", "12,34,56", "1e", "e5", ".", "1-2", "0x10", "1,23.4.5"]
    {
        assert_eq!(value(cell, Convention::Dot), Value::Text, "{cell}");
    }
}

/// Formats a number for a locale.
fn written(value: f64, decimals: usize, group: &str, decimal: char) -> String {
    let plain = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let mut text = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 {
            text.push_str(group);
        }
        text.push(digit);
    }
    if !fraction.is_empty() {
        text.push(decimal);
        text.push_str(fraction);
    }
    if value < 0.0 { format!("-{text}") } else { text }
}

proptest! {
    /// A number with two decimals, or an integer, is parsed correctly if one cell shows the locale.
    #[test]
    fn any_locale_round_trips(
        values in prop::collection::vec((-1e15f64..1e15, prop::bool::ANY), 1..20),
        (group, decimal) in prop::sample::select(vec![
            ("", '.'), (",", '.'), (".", ','), ("\u{202f}", ','), ("'", '.'),
        ]),
    ) {
        let mut cells = vec![written(0.25, 2, group, decimal)];
        let mut expected = vec![Value::Number(0.25)];
        for (number, whole) in values {
            let (number, decimals) =
                if whole { (number.trunc(), 0) } else { ((number * 100.0).trunc() / 100.0, 2) };
            cells.push(written(number, decimals, group, decimal));
            let text = format!("{number:.decimals$}");
            expected.push(Value::Number(text.parse().unwrap()));
        }
        let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
        prop_assert_eq!(file(&cells), expected);
    }

    #[test]
    fn any_text_has_an_answer(
        cells in prop::collection::vec("[-+0-9.,eE \u{a0}n/a()]{0,12}", 0..8),
    ) {
        if let Ok(convention) = Convention::of(cells.iter().map(|text| cell(text))) {
            for cell in &cells {
                if let Value::Number(number) = value(cell, convention) {
                    prop_assert!(number.is_finite());
                    prop_assert!(cell.contains(|c: char| c.is_ascii_digit()));
                }
            }
        }
    }
}
