//! Adds names of arguments to addresses in messages.

use serde_json::Value;

/// Location of an argument's memory.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Place {
    pub name: String,
    /// Address of the first byte.
    pub start: u64,
    /// Size, bytes.
    pub bytes: u64,
    /// Size of an element, bytes; at least 1.
    pub element: u64,
}

/// Maximum distance of an address from an argument's memory at which the message names the
/// argument, bytes. Most kernels that overrun a buffer do so by little.
const NEAR: u64 = 64 << 10;

/// Maximum number of hexadecimal digits of an address.
const DIGITS: usize = 16;

/// Adds to each address in the text the argument that it belongs to, as in `0x7f… (element 17 of
/// `x`)` or `0x7f… (4 bytes before `x`)`.
pub(super) fn named(text: &str, places: &[Place]) -> String {
    let mut named = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("0x") {
        let digits = rest[at + 2..].bytes().take_while(u8::is_ascii_hexdigit).count();
        let end = at + 2 + digits;
        named.push_str(&rest[..end]);
        let address = u64::from_str_radix(&rest[at + 2..end], 16);
        if let (Ok(address), 1..=DIGITS) = (address, digits)
            && let Some(place) = nearest(address, places)
        {
            named.push_str(&format!(" ({})", within(address, place)));
        }
        rest = &rest[end..];
    }
    named.push_str(rest);
    named
}

/// Adds the arguments to the messages of a report, which are its fields `message` and `text`.
pub(super) fn name_all(report: &mut Value, places: &[Place]) {
    match report {
        Value::Array(items) => items.iter_mut().for_each(|item| name_all(item, places)),
        Value::Object(fields) => fields.iter_mut().for_each(|(name, field)| match field {
            Value::String(text) if matches!(name.as_str(), "message" | "text") => {
                *text = named(text, places);
            }
            field => name_all(field, places),
        }),
        _ => {}
    }
}

/// Returns the distance of an address from the argument's memory, bytes.
fn distance(address: u64, place: &Place) -> u64 {
    let end = place.start.saturating_add(place.bytes);
    match address {
        before if before < place.start => place.start - before,
        after if after >= end => after - end,
        _ => 0,
    }
}

/// Returns the argument that contains the address or else the nearest one within [`NEAR`]. An
/// address between two arguments is assigned to the first of them, because overruns are more
/// frequent.
fn nearest(address: u64, places: &[Place]) -> Option<&Place> {
    let near = places.iter().filter(|place| place.bytes > 0 && distance(address, place) <= NEAR);
    near.min_by_key(|place| {
        let is_inside = (place.start..place.start.saturating_add(place.bytes)).contains(&address);
        (!is_inside, address < place.start, distance(address, place))
    })
}

fn within(address: u64, place: &Place) -> String {
    let name = &place.name;
    let away = distance(address, place);
    if address < place.start {
        return format!("{away} bytes before `{name}`");
    }
    let index = (address - place.start) / place.element.max(1);
    let elements = place.bytes / place.element.max(1);
    match address - place.start < place.bytes {
        true => format!("element {index} of `{name}`"),
        false => format!("element {index} of `{name}`, which has {elements}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn places() -> Vec<Place> {
        let place = |name: &str, start, bytes, element| Place {
            name: name.to_owned(),
            start,
            bytes,
            element,
        };
        vec![place("x", 0x1000, 0x100, 4), place("y", 0x1200, 0x80, 8), place("none", 0x1180, 0, 4)]
    }

    #[test]
    fn addresses_are_named_by_their_arguments() {
        for (text, expected) in [
            ("read at 0x1004 by", "read at 0x1004 (element 1 of `x`) by"),
            ("0x1100, 0 bytes", "0x1100 (element 64 of `x`, which has 64), 0 bytes"),
            ("0x11f8", "0x11f8 (element 126 of `x`, which has 64)"),
            (
                "0x1288 and 0xffc",
                "0x1288 (element 17 of `y`, which has 16) and 0xffc (4 bytes before `x`)",
            ),
            ("0x7f0000000000", "0x7f0000000000"),
            ("0x, 0xg, 0x11112222333344445", "0x, 0xg, 0x11112222333344445"),
            ("no address", "no address"),
        ] {
            assert_eq!(named(text, &places()), expected);
        }
        assert_eq!(named("0x1004", &[]), "0x1004");
    }

    #[test]
    fn all_texts_of_a_report_are_named() {
        let mut report =
            json!({"findings": [{"message": "at 0x1000", "kernel": "k_0x1000"}], "n": null});
        name_all(&mut report, &places());
        assert_eq!(report["findings"][0]["message"], "at 0x1000 (element 0 of `x`)");
        assert_eq!(report["findings"][0]["kernel"], "k_0x1000");
        let last = Place { name: "z".to_owned(), start: u64::MAX - 3, bytes: 8, element: 4 };
        assert_eq!(named("0xfffffffffffffffe", &[last]), "0xfffffffffffffffe (element 0 of `z`)");
    }
}
