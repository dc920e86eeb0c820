//! Kernels defined in a source. The main type is [`KernelEntry`].

use crate::infer::lexer::{Source, closing, integer, is_name, read};

/// Maximum number of kernels returned.
const MAX_ENTRIES: usize = 64;

/// Values of integer template parameters without a better guess.
const TEMPLATE_INTEGER: u64 = 256;
const TEMPLATE_TILE: u64 = 16;

/// A kernel defined in a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelEntry {
    /// Name of the kernel, as passed to the compiler. The name of a template includes guessed
    /// template arguments.
    pub name: String,
    /// Whether the name has guessed template arguments.
    pub guessed_instance: bool,
}

/// A kernel and the location of its code.
#[derive(Debug)]
pub(crate) struct Kernel<'a> {
    pub name: &'a str,
    /// Kind and name of each template parameter; empty if the kernel is not a template.
    pub template: Vec<(&'a str, &'a str)>,
    pub parameters: Vec<&'a str>,
    /// Token range between its braces.
    pub body: std::ops::Range<usize>,
    /// Token range of the first argument of `__launch_bounds__`.
    pub launch_bound: Option<std::ops::Range<usize>>,
    /// Names of the parameters that are textures or surfaces, and whether each is a surface.
    pub objects: Vec<(&'a str, bool)>,
}

/// Returns the kernels that a source defines, in their order.
pub fn entries(source: &str) -> Vec<KernelEntry> {
    let read = read(source);
    kernels(&read).iter().map(|kernel| kernel.entry(&read.tokens)).collect()
}

/// Returns whether the source is a whole program, which defines `main`.
pub fn is_whole_program(source: &str) -> bool {
    let tokens = read(source).tokens;
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "{" if at > 0 && tokens[at - 1] == "\"\"" => {}
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            "main" if depth == 0 && at > 0 && tokens.get(at + 1) == Some(&"(") => {
                let defines = closing(&tokens, at + 1).is_some_and(|close| {
                    matches!(tokens.get(close + 1), Some(&"{" | &"->" | &"try"))
                });
                if defines && matches!(tokens[at - 1], "int" | "auto" | "void") {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

impl Kernel<'_> {
    fn entry(&self, tokens: &[&str]) -> KernelEntry {
        if self.template.is_empty() {
            return KernelEntry { name: self.name.to_owned(), guessed_instance: false };
        }
        let argument = |(kind, name): &(&str, &str)| match *kind {
            "typename" | "class" => "float".to_owned(),
            "bool" => "true".to_owned(),
            _ => self.template_value(name, tokens).to_string(),
        };
        let arguments = self.template.iter().map(argument).collect::<Vec<_>>();
        KernelEntry {
            name: format!("{}<{}>", self.name, arguments.join(", ")),
            guessed_instance: true,
        }
    }

    /// Returns a value for an integer template parameter.
    pub(crate) fn template_value(&self, name: &str, tokens: &[&str]) -> u64 {
        let body = &tokens[self.body.clone()];
        let by = |operator: &str| {
            body.windows(3).any(|window| *window == ["threadIdx.x", operator, name])
        };
        match name.to_ascii_lowercase().as_str() {
            // Tile sizes of matrix products, for the block, the warp and the thread.
            "bm" | "bn" | "block_m" | "block_n" | "wm" | "wn" => 64,
            "bk" | "block_k" | "tm" | "tn" | "wk" | "thread_m" | "thread_n" => 8,
            // The kernel maps a row of threads to a square.
            _ if by("/") && by("%") => 32,
            lower if lower.contains("tile") || lower.contains("dim") => TEMPLATE_TILE,
            _ => TEMPLATE_INTEGER,
        }
    }
}

/// Returns the kernels that have a body.
pub(crate) fn kernels<'a>(source: &Source<'a>) -> Vec<Kernel<'a>> {
    let tokens = &source.tokens;
    let mut kernels = Vec::new();
    let mut at = 0;
    while at < tokens.len() && kernels.len() < MAX_ENTRIES {
        if tokens[at] == "__global__"
            && let Some(kernel) = kernel(tokens, at)
        {
            at = kernel.body.end;
            kernels.push(kernel);
        }
        at += 1;
    }
    kernels
}

fn kernel<'a>(tokens: &[&'a str], global: usize) -> Option<Kernel<'a>> {
    let mut at = global + 1;
    let mut launch_bound = None;
    let open = loop {
        match *tokens.get(at)? {
            "__launch_bounds__" => {
                let close = closing(tokens, at + 1)?;
                launch_bound = Some(at + 2..first_end(tokens, at + 2, close));
                at = close + 1;
            }
            "(" => break at,
            ";" | "{" | "}" => return None,
            _ => at += 1,
        }
    };
    let name = *tokens.get(open.checked_sub(1)?)?;
    let close = closing(tokens, open)?;
    if !is_name(name) || tokens.get(close + 1) != Some(&"{") {
        return None;
    }
    let end = closing(tokens, close + 1)?;
    Some(Kernel {
        name,
        template: template(tokens, global),
        parameters: parameters(&tokens[open + 1..close]),
        objects: objects(&tokens[open + 1..close]),
        body: close + 2..end,
        launch_bound,
    })
}

/// Returns the end of the first argument of a list.
fn first_end(tokens: &[&str], start: usize, close: usize) -> usize {
    let mut depth = 0_i32;
    for (at, token) in tokens.iter().enumerate().take(close).skip(start) {
        match *token {
            "(" | "[" => depth += 1,
            ")" | "]" => depth -= 1,
            "," if depth == 0 => return at,
            _ => {}
        }
    }
    close
}

/// Returns the parameters that are textures or surfaces, and whether each is a surface. The
/// compiler reports these handles as integers.
fn objects<'a>(tokens: &[&'a str]) -> Vec<(&'a str, bool)> {
    let name = |at: usize| {
        let mut rest = tokens[at + 1..].iter();
        rest.find(|token| is_name(token) && **token != "const").copied()
    };
    let object = |(at, token): (usize, &&'a str)| match *token {
        "cudaTextureObject_t" => Some((name(at)?, false)),
        "cudaSurfaceObject_t" => Some((name(at)?, true)),
        _ => None,
    };
    tokens.iter().enumerate().filter_map(object).collect()
}

/// Returns the name of each parameter in a parameter list. It is the last name before a comma or
/// before the brackets of an array.
fn parameters<'a>(tokens: &[&'a str]) -> Vec<&'a str> {
    let mut depth = 0_i32;
    let mut names = Vec::new();
    let mut last = None;
    for token in tokens.iter().chain([&","]) {
        match *token {
            "<" | "(" | "[" => depth += 1,
            ">" | ")" | "]" => depth -= 1,
            "," if depth == 0 => names.extend(last.take()),
            name if depth == 0 && is_name(name) => last = Some(name),
            _ => {}
        }
    }
    names
}

/// Returns the parameters of the `template <…>` before `__global__`.
fn template<'a>(tokens: &[&'a str], global: usize) -> Vec<(&'a str, &'a str)> {
    let head = &tokens[..global];
    let start =
        head.iter().rposition(|token| matches!(*token, ";" | "}" | "{")).map_or(0, |at| at + 1);
    let Some(at) = head[start..].iter().position(|token| *token == "template") else {
        return Vec::new();
    };
    let list = &head[start + at + 1..];
    let Some(end) = list.iter().rposition(|token| *token == ">") else { return Vec::new() };
    let mut found = Vec::new();
    for parameter in list[..end].split(|token| *token == ",") {
        let parameter = parameter.split(|token| *token == "=").next().unwrap_or_default();
        let names = parameter.iter().filter(|token| is_name(token)).collect::<Vec<_>>();
        if let [kind, .., name] = names.as_slice()
            && integer(name).is_none()
        {
            found.push((**kind, **name));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_with_their_parameters() {
        let source = "template <typename T, int TILE> __global__ void __launch_bounds__(128) k(const T* __restrict__ x, int n[4]) { }\n\
                      __global__ void declared(int); extern \"C\" __global__ void c(float4 *y) {}";
        let names = entries(source).into_iter().map(|entry| entry.name).collect::<Vec<_>>();
        assert_eq!(names, ["k<float, 16>", "c"]);
        let read = read(source);
        let found = kernels(&read);
        let bound = found[0].launch_bound.clone().map(|range| read.tokens[range].concat());
        assert_eq!(
            (found[0].parameters.as_slice(), bound.as_deref()),
            (&["x", "n"][..], Some("128"))
        );
    }

    #[test]
    fn programs_have_a_main() {
        assert!(is_whole_program(
            "extern \"C\" { }\nint main(int argc, char** argv) { return 0; }"
        ));
        assert!(is_whole_program("auto main() -> int { }"));
        for source in [
            "// int main() {}",
            "int main();",
            "__global__ void k() { int main(); }",
            "int domain() {}",
        ] {
            assert!(!is_whole_program(source), "{source}");
        }
    }
}
