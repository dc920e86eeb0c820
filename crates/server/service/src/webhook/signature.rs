//! Signatures with which a receiver verifies the sender and the time of a message.

use std::fmt::Write;

use hmac::{Hmac, Mac};
use sha2::Sha256;

/// Name of the header that contains the signature.
pub const SIGNATURE_HEADER: &str = "X-Warpgauge-Signature";

/// Returns the header's value: `t=<unix seconds>,v1=<hex of HMAC-SHA256(secret, "<t>.<body>")>`.
/// The time is signed too, so that a receiver can reject a replayed message.
pub fn signature(secret: &str, unix_s: u64, body: &[u8]) -> String {
    // HMAC accepts a key of any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else {
        return String::new();
    };
    mac.update(format!("{unix_s}.").as_bytes());
    mac.update(body);
    let mut text = format!("t={unix_s},v1=");
    for byte in mac.finalize().into_bytes() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected value is that of `printf '1767225600.{"a":1}' | openssl dgst -sha256 -hmac …`.
    #[test]
    fn the_signature_is_that_of_other_implementations() {
        let signed = signature("0123456789abcdef", 1_767_225_600, br#"{"a":1}"#);
        assert_eq!(
            signed,
            concat!(
                "t=1767225600,v1=",
                "539b0e21b535c5201ef7d1453c0a0de4ad132293226de9018be0cfbf0092faa6"
            )
        );
    }

    #[test]
    fn everything_is_signed() {
        let one = signature("0123456789abcdef", 1, b"body");
        for other in [
            signature("0123456789abcdeg", 1, b"body"),
            signature("0123456789abcdef", 2, b"body"),
            signature("0123456789abcdef", 1, b"bodz"),
        ] {
            assert_ne!(one.split(",v1=").nth(1), other.split(",v1=").nth(1));
        }
    }
}
