//! Summarises a failed compilation in one line.

use super::limits::ADDRESS_SPACE;
use warpgauge_model::{Diagnostic, FailureCode, Severity};

/// Summarises the first error of a compilation in one line.
pub(crate) fn summary(code: &FailureCode, diagnostics: &[Diagnostic], log: &str) -> String {
    match code {
        FailureCode::CompilerOutOfMemory => {
            let most = ADDRESS_SPACE >> 30;
            return format!(
                "the compiler needs more than the {most} GiB of memory that it may use; simplify the \
                 code: large initialisers, macros and templates need the most memory"
            );
        }
        FailureCode::CompilerOutputTooLarge => {
            return format!(
                "the compiler's output is too large: {}; put less data or fewer kernels into the \
                 source",
                log.trim()
            );
        }
        // The compiler's message is more useful.
        _ => {}
    }
    let mut errors = diagnostics.iter().filter(|d| d.severity == Severity::Error);
    let Some(first) = errors.next() else {
        let said = || log.lines().map(str::trim).filter(|line| !line.is_empty());
        // Assembler and linker begin with a line that ends with a colon.
        let line = said().find(|line| !line.ends_with(':')).or_else(|| said().next());
        return format!("compilation failed: {}", line.unwrap_or("the compiler gave no reason"));
    };
    let place = match (&first.file, first.line, first.column) {
        (Some(file), Some(line), Some(column)) => format!("{file}:{line}:{column}: "),
        (Some(file), Some(line), None) => format!("{file}:{line}: "),
        _ => String::new(),
    };
    let more = match errors.count() {
        0 => String::new(),
        n => format!(" (and {n} more)"),
    };
    format!("compilation failed: {place}{}{more}", first.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_is_told_and_not_where_it_was_being_done() {
        let told = |log: &str| summary(&FailureCode::CompilationFailed, &[], log);
        let assembler = "x.s: Assembler messages:\nx.s:3: Error: file not found: data\n";
        assert_eq!(told(assembler), "compilation failed: x.s:3: Error: file not found: data");
        let linker =
            "\nmain.o: in function `f':\nmain.cpp:(.text+0x5): undefined reference to `g'\n";
        assert!(told(linker).ends_with("undefined reference to `g'"), "{}", told(linker));
        assert_eq!(told("something:\n"), "compilation failed: something:");
        assert_eq!(told(" \n"), "compilation failed: the compiler gave no reason");
    }
}
