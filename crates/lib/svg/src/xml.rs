//! Text in XML and HTML. The main function is [`escape`].

/// Escapes text for an XML attribute or for the content of an element. Tabs and line feeds are
/// kept. Other characters below U+0020, U+FFFE and U+FFFF are replaced, because XML 1.0 does not
/// allow most of them.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\t' | '\n' => escaped.push(c),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            _ => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_escaped_reads_as_it_was() {
        let text = "a<b> & \"c\" 'd'\te\nf";
        let xml = format!("<x y=\"{0}\">{0}</x>", escape(text));
        let document = roxmltree::Document::parse(&xml).unwrap();
        assert_eq!(document.root_element().text(), Some(text));
        // A parser replaces them by spaces in an attribute.
        let attribute = text.replace(['\t', '\n'], " ");
        assert_eq!(document.root_element().attribute("y"), Some(attribute.as_str()));
    }

    #[test]
    fn every_character_can_be_parsed() {
        let all = (0..=0x2100).chain(0xfff0..=0x1_0010).filter_map(char::from_u32);
        let xml = format!("<x>{}</x>", escape(&all.collect::<String>()));
        let document = roxmltree::Document::parse(&xml).unwrap();
        assert!(document.root_element().text().unwrap().contains('\u{fffd}'));
    }
}
