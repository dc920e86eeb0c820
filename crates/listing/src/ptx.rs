//! PTX as NVRTC and nvcc write it.

use super::{Instructions, MAX_INSTRUCTIONS, squeezed};

/// Directives that say where code came from, not what it does.
const SAYS_NOTHING: [&str; 4] = [".loc", ".file", ".pragma", ".section"];

/// The instructions of a kernel: what stands between its braces.
pub(super) fn instructions(listing: &str, symbol: &str) -> Option<Instructions> {
    let body = body(listing, symbol)?;
    let (mut lines, mut cut) = (Vec::new(), false);
    for line in body.lines() {
        let line = squeezed(line.split("//").next().unwrap_or_default());
        let line = line.trim_end_matches(';');
        let silent = line.is_empty() || SAYS_NOTHING.iter().any(|word| line.starts_with(word));
        if silent {
            continue;
        }
        if lines.len() == MAX_INSTRUCTIONS {
            cut = true;
            break;
        }
        lines.push(labels_of_the_function(&line.replace(symbol, "kernel")));
    }
    Some(Instructions { lines, cut })
}

/// From the first brace after the kernel's parameters to the one that closes it.
fn body<'a>(listing: &'a str, symbol: &str) -> Option<&'a str> {
    let mut rest = listing;
    loop {
        let (_, after) = rest.split_once(".entry")?;
        rest = after;
        let name = after.trim_start();
        let name = name.split(|c: char| c == '(' || c == '{' || c.is_whitespace()).next()?;
        if name != symbol {
            continue;
        }
        let start = after.find('{')? + 1;
        let mut depth = 1;
        for (at, byte) in after.bytes().enumerate().skip(start) {
            match byte {
                b'{' => depth += 1,
                b'}' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return after.get(start..at);
            }
        }
        return None;
    }
}

/// `$L__BB3_7` is the label 7 of the fourth function: the function's number says nothing.
fn labels_of_the_function(line: &str) -> String {
    let mut parts = line.split("$L__BB");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        out.push_str("$L");
        out.push_str(&part[digits..]);
    }
    out
}
