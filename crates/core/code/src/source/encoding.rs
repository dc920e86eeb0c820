//! Text of source files that are not UTF-8. The main function is [`text_of`].

use super::lexer::tokens;

/// Returns the text of a source file. Bytes that are not UTF-8 are accepted in C++ comments, where
/// they do not affect the code. Then the whole file is read as ISO 8859-1.
///
/// # Errors
/// Returns the offset of the first byte that is not UTF-8, if such a byte is outside of comments.
pub fn text_of(content: Vec<u8>) -> Result<String, usize> {
    let error = match String::from_utf8(content) {
        Ok(text) => return Ok(text),
        Err(error) => error,
    };
    let at = error.utf8_error().valid_up_to();
    let text: String = error.as_bytes().iter().map(|byte| char::from(*byte)).collect();
    let has_only_comments = tokens(&text).all(|token| token.text.is_ascii());
    if has_only_comments { Ok(text) } else { Err(at) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_may_have_any_bytes() {
        let source = b"/* \xa9 2013 */ int x; // caf\xe9\nint y;".to_vec();
        assert_eq!(text_of(source).unwrap(), "/* \u{a9} 2013 */ int x; // caf\u{e9}\nint y;");
        assert_eq!(text_of("int \u{e9};".into()).unwrap(), "int \u{e9};");
        for (source, at) in [
            (&b"int \xe9;"[..], 4),
            (b"const char* s = \"\xe9\";", 17),
            (b"#define A \xe9\n", 10),
            (b"// \xe9\nint \xe9;", 3),
            (b"\xff\xfei\0", 0),
        ] {
            assert_eq!(text_of(source.to_vec()), Err(at), "{source:?}");
        }
    }
}
