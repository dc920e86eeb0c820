//! Reads a contract from the comment at the beginning of a kernel file.

/// First line of a comment that contains a contract.
const MARK: &str = "warpgauge contract:";

/// Returns the YAML of the contract in one of the comments at the beginning, if any. Such a comment
/// is a block comment, or consecutive lines with `//` or `#`. Its first line is `warpgauge
/// contract:`.
pub(crate) fn contract(source: &str) -> Option<String> {
    let mut rest = source.trim_start_matches('\u{feff}').trim_start();
    loop {
        let (comment, after) = next_comment(rest)?;
        let mut lines = comment.lines();
        while let Some(line) = lines.next() {
            if line.trim() == MARK {
                return Some(unindented(&lines.collect::<Vec<_>>()));
            }
        }
        rest = after.trim_start();
    }
}

/// Returns the first comment without its markers, and the text after it.
fn next_comment(text: &str) -> Option<(String, &str)> {
    for (open, close) in [("/*", "*/"), ("\"\"\"", "\"\"\"")] {
        if let Some(inner) = text.strip_prefix(open) {
            let end = inner.find(close)?;
            let lines = inner[..end].lines().collect::<Vec<_>>();
            let starred =
                |line: &&str| line.trim_start().starts_with('*') || line.trim().is_empty();
            let all_starred = lines.len() > 1 && lines[1..].iter().all(starred);
            let bare = |(at, line): (usize, &&str)| {
                let decorated = all_starred && at > 0;
                let bare = if decorated { line.trim_start().trim_start_matches('*') } else { line };
                bare.to_owned()
            };
            let bare = lines.iter().enumerate().map(bare).collect::<Vec<_>>().join("\n");
            return Some((bare, &inner[end + close.len()..]));
        }
    }
    let sign = ["//", "#"].into_iter().find(|sign| text.starts_with(sign))?;
    let is_directive = |line: &str| {
        let word = line.trim_start_matches('#').trim_start();
        line.starts_with('#')
            && ["include", "define", "pragma", "if", "ifdef", "ifndef"]
                .iter()
                .any(|d| word.starts_with(d))
    };
    let mut end = 0;
    let mut comment = String::new();
    for line in text.split_inclusive('\n') {
        let bare = line.trim_start();
        let Some(content) = bare.strip_prefix(sign).filter(|_| !is_directive(bare)) else { break };
        comment.push_str(content.trim_end());
        comment.push('\n');
        end += line.len();
    }
    (end > 0).then(|| (comment, &text[end..]))
}

/// Removes the indentation that all lines share.
fn unindented(lines: &[&str]) -> String {
    let filled = lines.iter().filter(|line| !line.trim().is_empty());
    let least = filled.map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
    lines.iter().map(|line| line.get(least..).unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_it() {
        let expected = "kernel:\n  kernel_type: cuda";
        for source in [
            "/* warpgauge contract:\nkernel:\n  kernel_type: cuda*/\ncode",
            "// Hardware: T4\n// warpgauge contract:\n// kernel:\n//   kernel_type: cuda\n__global__",
            "/*\n * warpgauge contract:\n * kernel:\n *   kernel_type: cuda\n */",
            "// licence\n\n/* warpgauge contract:\n   kernel:\n     kernel_type: cuda\n */",
            "# warpgauge contract:\n# kernel:\n#   kernel_type: cuda\nimport torch",
            "\"\"\"warpgauge contract:\nkernel:\n  kernel_type: cuda\n\"\"\"",
        ] {
            assert_eq!(
                contract(source).map(|text| text.trim_end().to_owned()).as_deref(),
                Some(expected),
                "{source}"
            );
        }
        for source in [
            "",
            "#include <x>\n// warpgauge contract:\n// a: b",
            "// other",
            "/*",
            "x /* warpgauge contract: */",
        ] {
            assert_eq!(contract(source), None, "{source}");
        }
    }
}
