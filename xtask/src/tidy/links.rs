//! Checks the links in Markdown files.

use std::fs;
use std::path::Path;

use super::{Source, Violation};

/// Checks the relative links in a Markdown file. The file and the heading to which a link leads
/// must exist.
pub fn check(root: &Path, source: &Source, violations: &mut Vec<Violation>) {
    let own = root.join(&source.path);
    let directory = own.parent().unwrap_or(root);
    let mut in_code = false;
    for (index, line) in source.text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        for link in links(line) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { own.clone() } else { directory.join(file) };
            let message = if !target.exists() {
                format!("the file of the link `{link}` does not exist")
            } else if !heading.is_empty() && !has_heading(&target, heading) {
                format!("the heading of the link `{link}` does not exist")
            } else {
                continue;
            };
            violations.push(Violation { path: source.path.clone(), line: index + 1, message });
        }
    }
}

/// Returns the targets of `[text](target)` in a line.
fn links(line: &str) -> Vec<&str> {
    line.match_indices("](")
        .filter_map(|(at, _)| line[at + 2..].split_once(')'))
        .map(|(target, _)| target.split(' ').next().unwrap_or(target))
        .collect()
}

fn has_heading(file: &Path, anchor: &str) -> bool {
    fs::read_to_string(file).is_ok_and(|text| {
        text.lines()
            .filter(|line| line.starts_with('#'))
            .any(|line| anchor_of(line.trim_start_matches('#')) == anchor)
    })
}

/// Returns the anchor of a heading: lower case, with hyphens in place of spaces, without
/// punctuation.
fn anchor_of(heading: &str) -> String {
    heading
        .trim()
        .chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            '-' | '_' => Some(c),
            c if c.is_alphanumeric() => Some(c.to_ascii_lowercase()),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{anchor_of, links};

    #[test]
    fn finds_links_and_anchors() {
        assert_eq!(links("see [a](x.md#b) and [c](d)"), ["x.md#b", "d"]);
        assert_eq!(anchor_of(" What it does, and why"), "what-it-does-and-why");
    }
}
