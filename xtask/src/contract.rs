//! Reads contract files. Before a contract is sent, each `source_file` is replaced by the text of
//! the file.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Reads a contract and replaces each `source_file` by `source_code`.
///
/// The text is edited line by line. So no YAML parser is needed, and the other lines do not change.
/// Each `source_file` must be on a separate line.
pub fn read_inlined(path: &Path) -> Result<String> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let directory = path.parent().unwrap_or(Path::new("."));
    inline(&text, |file| {
        let source = directory.join(file);
        fs::read_to_string(&source).with_context(|| format!("cannot read {}", source.display()))
    })
}

fn inline(text: &str, read: impl Fn(&str) -> Result<String>) -> Result<String> {
    let mut out = String::new();
    for line in text.lines() {
        let indent = &line[..line.len() - line.trim_start().len()];
        match line.trim_start().strip_prefix("source_file:") {
            Some(file) => {
                let source = read(file.trim().trim_matches('"'))?;
                out.push_str(indent);
                out.push_str("source_code: |\n");
                for source_line in source.lines() {
                    out.push_str(indent);
                    out.push_str("  ");
                    out.push_str(source_line.trim_end());
                    out.push('\n');
                }
            }
            None => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::inline;

    #[test]
    fn a_source_file_becomes_a_block() {
        let text = "kernel:\n  source_file: k.cu\n  kernel_type: cuda\n";
        let inlined = inline(text, |file| {
            assert_eq!(file, "k.cu");
            Ok("void f() {\n    g();\n}\n".to_owned())
        });
        assert_eq!(
            inlined.ok().as_deref(),
            Some(
                "kernel:\n  source_code: |\n    void f() {\n        g();\n    }\n  \
                 kernel_type: cuda\n"
            )
        );
    }
}
