//! The media type that a client prefers (RFC 9110, section 12.5.1).

use poem::http::{HeaderMap, header};

/// Maximum number of media ranges that are read from a header.
const MAX_RANGES: usize = 64;

/// Returns whether the client prefers HTML to JSON. A client without a preference, or with equal
/// weights, gets JSON: programs often accept everything, and browsers list HTML first.
pub(crate) fn prefers_html(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let ranges = values.flat_map(|value| value.split(',')).take(MAX_RANGES).filter_map(Range::read);
    let ranges = ranges.collect::<Vec<_>>();
    quality(&ranges, "text", "html") > quality(&ranges, "application", "json")
}

/// A media range and its weight.
struct Range {
    kind: String,
    subtype: String,
    weight: f64,
}

impl Range {
    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let (kind, subtype) = parts.next()?.split_once('/')?;
        let weight = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
        let weight = weight.map_or(Some(1.0), |weight| weight.parse().ok())?;
        let [kind, subtype] = [kind, subtype].map(str::to_ascii_lowercase);
        (0.0..=1.0).contains(&weight).then_some(Self { kind, subtype, weight })
    }

    /// Returns how precisely the range specifies a type; `None` if the range does not include the
    /// type.
    fn precision(&self, kind: &str, subtype: &str) -> Option<u8> {
        match (self.kind == kind, self.subtype == subtype) {
            (true, true) => Some(2),
            (true, false) if self.subtype == "*" => Some(1),
            _ if self.kind == "*" && self.subtype == "*" => Some(0),
            _ => None,
        }
    }
}

/// Returns the weight of a type: that of the most precise range that includes it, or 0 if there is
/// none.
fn quality(ranges: &[Range], kind: &str, subtype: &str) -> f64 {
    let covering =
        ranges.iter().filter_map(|range| Some((range.precision(kind, subtype)?, range.weight)));
    covering.max_by_key(|(precision, _)| *precision).map_or(0.0, |(_, weight)| weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefers(accept: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, accept.parse().unwrap());
        prefers_html(&headers)
    }

    #[test]
    fn browsers_get_html_and_programs_json() {
        let firefox = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        for accept in [
            firefox,
            "text/html",
            "TEXT/HTML;level=1",
            "text/*, application/json;q=0.5",
            "*/*;q=0.1, text/html",
        ] {
            assert!(prefers(accept), "{accept}");
        }
        for accept in [
            "*/*",
            "application/json",
            "application/json, text/plain, */*",
            "text/html, application/json",
            "text/html;q=0.5, application/json",
            "text/html;q=0, */*",
            "text/html;q=2",
            "text/event-stream",
            "html",
            "",
        ] {
            assert!(!prefers(accept), "{accept}");
        }
        assert!(!prefers_html(&HeaderMap::new()));
    }
}
