//! Streaming base64 decoder.
//!
//! The decoder accepts the standard alphabet (RFC 4648 §4). Padding is optional, and white space
//! (line breaks) is allowed anywhere. The main type is [`Base64Reader`].

use std::io::{self, Read};

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use thiserror::Error;

const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Number of characters decoded at once; a multiple of 4.
const CHUNK: usize = 1 << 16;

/// Text that is not base64.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("not base64 at character {offset}: {reason}")]
pub struct Base64Error {
    /// Offset of the first invalid character, from 0, white space included.
    pub offset: usize,
    /// Description of the error.
    pub reason: String,
}

/// Decodes text piece by piece, in constant memory. `T` holds the text.
pub(crate) struct Base64Reader<T> {
    text: T,
    /// Index of the next character to read.
    position: usize,
    decoded: Vec<u8>,
    /// Number of decoded bytes that the reader has already returned.
    taken: usize,
}

impl<T: AsRef<[u8]>> Base64Reader<T> {
    pub(crate) fn new(text: T) -> Self {
        Self { text, position: 0, decoded: Vec::new(), taken: 0 }
    }

    /// Decodes the next piece into `self.decoded`, which is empty at the end of the text.
    fn refill(&mut self) -> Result<(), Base64Error> {
        let text = self.text.as_ref();
        let start = self.position;
        let mut characters = Vec::with_capacity(CHUNK.min(text.len() - start));
        let mut end = start;
        while end < text.len() && characters.len() < CHUNK {
            let rest = &text[end..(end + CHUNK - characters.len()).min(text.len())];
            let run = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
            characters.extend_from_slice(&rest[..run]);
            end += run;
            end += text[end..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        }
        self.position = end;
        self.taken = 0;
        self.decoded.clear();
        if end < text.len() && characters.last() == Some(&b'=') {
            let reason = "padding before the end".to_owned();
            return Err(Base64Error { offset: end, reason });
        }
        ENGINE
            .decode_vec(&characters, &mut self.decoded)
            .map_err(|error| located(error, &text[start..end], start))
    }
}

/// Converts the offset within the characters of a piece into an offset within the text.
fn located(error: base64::DecodeError, piece: &[u8], start: usize) -> Base64Error {
    use base64::DecodeError::{InvalidByte, InvalidLastSymbol, InvalidLength, InvalidPadding};
    let (index, reason) = match error {
        InvalidByte(index, byte) => (index, unexpected_character(byte)),
        InvalidLastSymbol(offset, symbol) => {
            let symbol = char::from(symbol);
            (offset, format!("the last character `{symbol}` contains bits beyond the last byte"))
        }
        InvalidLength(length) => (
            length.saturating_sub(1),
            "the text stops within a group of four characters; it may be cut off".to_owned(),
        ),
        InvalidPadding => (usize::MAX, "wrong padding".to_owned()),
    };
    let offset = piece
        .iter()
        .enumerate()
        .filter(|(_, byte)| !byte.is_ascii_whitespace())
        .nth(index)
        .map_or(piece.len(), |(offset, _)| offset);
    Base64Error { offset: start + offset, reason }
}

fn unexpected_character(byte: u8) -> String {
    match byte {
        b'-' | b'_' => format!(
            "`{}` belongs to the URL-safe alphabet; use the standard one (`+` and `/`)",
            char::from(byte)
        ),
        b'=' => "padding before the end".to_owned(),
        0x20..=0x7e => format!("`{}` is not a base64 character", char::from(byte)),
        other => format!("byte 0x{other:02x} is not a base64 character"),
    }
}

impl<T: AsRef<[u8]>> Read for Base64Reader<T> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.decoded.len() && self.position < self.text.as_ref().len() {
            self.refill().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        }
        let available = &self.decoded[self.taken..];
        let count = available.len().min(out.len());
        out[..count].copy_from_slice(&available[..count]);
        self.taken += count;
        Ok(count)
    }
}

/// Encodes a whole buffer, with padding.
pub fn encode(bytes: &[u8]) -> String {
    ENGINE.encode(bytes)
}

/// Returns the engine of [`encode`], for use in streaming encoders.
pub(crate) fn engine() -> &'static GeneralPurpose {
    &ENGINE
}

/// Checks text and returns the number of bytes that it decodes to.
pub(crate) fn decoded_len(text: &str) -> Result<u64, Base64Error> {
    let mut reader = Base64Reader::new(text.as_bytes());
    let mut bytes = 0;
    while reader.position < text.len() {
        reader.refill()?;
        bytes += reader.decoded.len() as u64;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(text: &str) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        Base64Reader::new(text.as_bytes())
            .read_to_end(&mut bytes)
            .map(|_| bytes)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn padding_and_line_breaks_do_not_matter() {
        for text in ["aGVsbG8=", "aGVsbG8", "aGVs\r\nbG8=\n", " a G V s bG8"] {
            assert_eq!(decode(text).as_deref(), Ok(&b"hello"[..]), "{text:?}");
            assert_eq!(decoded_len(text), Ok(5));
        }
        assert_eq!(decode(""), Ok(vec![]));
        assert_eq!(decode("\n\n"), Ok(vec![]));
    }

    #[test]
    fn errors_name_the_character() {
        for (text, offset, word) in [
            ("aGV*bG8=", 3, "`*`"),
            ("aG\nV\n*", 5, "`*`"),
            ("aGVs-_==", 4, "URL-safe"),
            ("aGVsb", 4, "cut off"),
            ("aG=VsbG8", 2, "padding"),
            ("aGVsbG9=", 6, "beyond"),
        ] {
            let error = decoded_len(text).unwrap_err();
            assert_eq!(error.offset, offset, "{text:?}: {error}");
            assert!(error.reason.contains(word), "{text:?}: {error}");
            assert_eq!(decode(text), Err(error.to_string()));
        }
    }

    #[test]
    fn padding_at_a_piece_boundary_is_seen() {
        let mut text = encode(&vec![7; CHUNK / 4 * 3 - 1]);
        assert_eq!(text.len(), CHUNK);
        assert!(text.ends_with('='));
        text.push_str("AAAA");
        assert_eq!(decoded_len(&text).unwrap_err().offset, CHUNK);
    }

    proptest! {
        #[test]
        fn round_trip(
            bytes in proptest::collection::vec(any::<u8>(), 0..300_000),
            every in 1..90usize,
        ) {
            let plain = encode(&bytes);
            prop_assert_eq!(decoded_len(&plain), Ok(bytes.len() as u64));
            let mut broken = String::new();
            for (i, character) in plain.chars().enumerate() {
                if i % every == 0 {
                    broken.push('\n');
                }
                broken.push(character);
            }
            prop_assert_eq!(decode(&broken), Ok(bytes));
        }
    }
}
