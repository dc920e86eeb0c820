//! Paths of the HTTP API.

/// Returns the path of a job, followed by a suffix.
pub(crate) fn job_route(job_id: &str, below: &str) -> String {
    format!("/jobs/{}{below}", encoded(job_id))
}

/// Percent-encodes a text for use in a path or a query.
pub(crate) fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(byte.into());
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_a_path_stays_one_piece() {
        assert_eq!(encoded("a-b_c.d~9"), "a-b_c.d~9");
        assert_eq!(encoded("../ä?b=c&d#%"), "..%2F%C3%A4%3Fb%3Dc%26d%23%25");
        assert_eq!(job_route("a/b", "/events"), "/jobs/a%2Fb/events");
    }
}
