//! Detects the language of a `.cu` file that is not CUDA C++. KRAIT writes kernels in all languages
//! to such files, and states the language in a header. The main function is [`of_cuda_file`].

use warpgauge_contract::KernelType;

use crate::evaluator::FileRejection;

/// Maximum number of lines that are read in order to recognise the language.
const MAX_LINES: usize = 400;

/// Language of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    Cuda,
    OpenCl,
    Python,
}

/// Returns the kernel type and the text of a file that ends in `.cu`. The header of a Python file
/// becomes a Python comment.
///
/// # Errors
/// The file is in a language that is not supported in `.cu` files.
pub(crate) fn of_cuda_file(
    name: &str,
    text: String,
) -> Result<(KernelType, String), FileRejection> {
    let backend = backend(&text);
    let (language, reason) = match backend.and_then(named) {
        Some(language) => {
            (language, format!("as its header says (`Backend: {}`)", backend.unwrap_or_default()))
        }
        None => recognised(&text),
    };
    let refused = |what: &str, remedy: &str| {
        let message = format!("`{name}` is {what}, not CUDA C++, {reason}: {remedy}");
        Err(FileRejection::new("other_language", message))
    };
    match (language, backend.is_some()) {
        (Language::Cuda, _) => Ok((KernelType::Cuda, text)),
        (Language::OpenCl, _) => {
            refused("OpenCL", "OpenCL is not supported; write the kernel in CUDA C++")
        }
        (Language::Python, true) => Ok((KernelType::Triton, python(&text))),
        (Language::Python, false) => {
            refused("Python", "name it NAME.py, and put a contract, NAME.yaml, beside it")
        }
    }
}

/// Returns the text of a Python file. KRAIT indents the first line after its header, which is not
/// valid Python.
pub(crate) fn of_python_file(text: String) -> String {
    if field(&text, "#", "backend").is_none() { text } else { unindented(&text, "#") }
}

/// Returns whether the header of a file requests only a compilation, in the form that KRAIT writes.
pub(crate) fn is_compiled_only(text: &str) -> bool {
    ["//", "#"].iter().any(|sign| {
        field(text, sign, "type").is_some_and(|kind| kind.eq_ignore_ascii_case("compile_only"))
    })
}

/// Returns the value of `// Backend:` in the comments at the beginning.
fn backend(text: &str) -> Option<&str> {
    field(text, "//", "backend")
}

/// Returns the value of a field in the comments at the beginning. The comment lines begin with
/// `sign`.
fn field<'t>(text: &'t str, sign: &'t str, wanted: &'t str) -> Option<&'t str> {
    header(text, sign).find_map(|line| {
        let (name, value) = line.strip_prefix(sign)?.split_once(':')?;
        name.trim().eq_ignore_ascii_case(wanted).then(|| value.trim())
    })
}

/// Removes the indentation of the first line after the header.
fn unindented(text: &str, sign: &str) -> String {
    let first = header(text, sign).count();
    let lines = text.lines().enumerate().map(|(at, line)| match at == first {
        true => line.trim_start(),
        false => line,
    });
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// Returns the comment lines at the beginning of the text that start with this sign, without
/// indentation.
fn header<'t>(text: &'t str, sign: &'t str) -> impl Iterator<Item = &'t str> {
    let text = text.trim_start_matches('\u{feff}');
    let is_header = move |line: &&str| line.starts_with(sign) || line.is_empty();
    text.lines().map(str::trim_start).take_while(is_header)
}

/// Returns the language of a backend with this name; `None` if the name is unknown.
fn named(backend: &str) -> Option<Language> {
    let name = backend.to_ascii_lowercase();
    let begins = |words: &[&str]| words.iter().any(|word| name.starts_with(word));
    if begins(&["opencl"]) {
        Some(Language::OpenCl)
    } else if begins(&["triton", "pytorch", "torch", "python"]) {
        Some(Language::Python)
    } else if begins(&["cuda"]) {
        Some(Language::Cuda)
    } else {
        None
    }
}

/// Returns the language of a text that has no known header, and the evidence for it.
fn recognised(text: &str) -> (Language, String) {
    let signs = text.lines().take(MAX_LINES).find_map(|line| {
        // Top-level statements of a module are not indented.
        let words: Vec<&str> = line.split_whitespace().take(4).collect();
        let is_python = match words[..] {
            ["import", name] => !name.ends_with(';'),
            ["import", _, "as", _] | ["from", _, "import", ..] => true,
            ["def" | "class", ..] => line.trim_end().ends_with(':') && !line.starts_with(' '),
            _ => line.starts_with('@') && !line.trim_end().ends_with(';'),
        };
        let is_open_cl = ["__kernel", "kernel"].contains(words.first().unwrap_or(&""))
            && words.get(1) == Some(&"void");
        let language = match (is_python, is_open_cl) {
            (true, _) => Language::Python,
            (_, true) => Language::OpenCl,
            _ => return None,
        };
        let shown: String = line.trim().chars().take(60).collect();
        Some((language, format!("as the line `{shown}` shows")))
    });
    // Either pattern may also occur in a comment of CUDA code.
    let is_cuda = ["__global__", "#include", "__device__"].iter().any(|sign| text.contains(sign));
    signs.filter(|_| !is_cuda).unwrap_or((Language::Cuda, String::new()))
}

/// Converts the header to Python comments. The numbers of the lines do not change.
fn python(text: &str) -> String {
    let text = unindented(text, "//");
    let lines = header(&text, "//").count();
    let comments =
        text.lines().take(lines).map(|line| match line.trim_start().strip_prefix("//") {
            Some(rest) => format!("#{rest}"),
            None => line.to_owned(),
        });
    let rest = text.lines().skip(lines).map(str::to_owned);
    comments.chain(rest).map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> Result<(KernelType, String), String> {
        of_cuda_file("k.cu", text.to_owned()).map_err(|refusal| {
            assert_eq!(refusal.code, "other_language");
            refusal.message
        })
    }

    #[test]
    fn cuda_is_cuda() {
        for text in [
            "__global__ void k(float* x) {}",
            "// Hardware: NVIDIA T4\n// Backend: CUDA\n__global__ void k() {}",
            "// Backend: something else\n__global__ void k() {}",
            "/* like\nimport torch\n*/\n__global__ void k(float* x) {}",
            "class A;\nint main() {}",
            "",
        ] {
            assert_eq!(kind(text), Ok((KernelType::Cuda, text.to_owned())));
        }
    }

    #[test]
    fn other_languages_are_named_with_the_reason() {
        for (text, what, reason) in [
            ("import torch\n\ndef forward(x):\n    return x\n", "Python", "`import torch`"),
            ("from torch import nn\nclass A(nn.Module):\n  pass", "Python", "from torch import"),
            ("@triton.jit\ndef k(x):\n  pass", "Python", "@triton.jit"),
            ("__kernel void k(__global float* x) {}", "OpenCL", "`__kernel void"),
            ("// Backend: OpenCL\nvoid k() {}", "OpenCL", "`Backend: OpenCL`"),
        ] {
            let message = kind(text).unwrap_err();
            assert!(message.contains(&format!("is {what}, not CUDA C++")), "{message}");
            assert!(message.contains(reason), "{message}");
        }
    }

    #[test]
    fn a_header_makes_a_file_python() {
        let text = "// Hardware: NVIDIA T4\n// Backend: Triton\n\nimport triton\n# x // y\n";
        let python = "# Hardware: NVIDIA T4\n# Backend: Triton\n\nimport triton\n# x // y\n";
        assert_eq!(kind(text), Ok((KernelType::Triton, python.to_owned())));
    }

    /// The files are those of KRAIT. All lines of the header but the first are indented, and so is
    /// the first line of the code.
    #[test]
    fn the_first_line_after_a_header_may_be_indented() {
        let code = "import triton\n\n@triton.jit\ndef k(x):\n    pass\n";
        let text = format!(
            "// EXECUTION REQUEST\n    // Backend: Triton\n    // Type: execute\n\n    {code}"
        );
        let python = format!("# EXECUTION REQUEST\n# Backend: Triton\n# Type: execute\n\n{code}");
        assert_eq!(kind(&text), Ok((KernelType::Triton, python)));
        let head =
            "# EXECUTION REQUEST\n    # Backend: PYTORCH_CUDA_EXTENSION\n    # Type: execute\n\n";
        let torch = of_python_file(format!("{head}    import torch\nx = 1\n"));
        assert_eq!(torch, format!("{head}import torch\nx = 1\n"));
        for other in ["    import torch\n", "# a comment\n    import torch\n", "x = [\n    1]\n"] {
            assert_eq!(of_python_file(other.to_owned()), other);
        }
    }

    #[test]
    fn a_header_may_ask_for_a_compilation_alone() {
        assert!(is_compiled_only("// COMPILATION REQUEST\n    // Type: compile_only\n\n    code"));
        assert!(is_compiled_only("# Type: compile_only\nimport torch"));
        for text in ["// Type: execute\ncode", "code\n// Type: compile_only", "// compile_only", ""]
        {
            assert!(!is_compiled_only(text), "{text}");
        }
    }
}
