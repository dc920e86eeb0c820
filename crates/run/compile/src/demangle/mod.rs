//! Types of kernel parameters, read off mangled C++ symbols (Itanium C++ ABI, section 5.1).
//!
//! Only what kernel signatures are made of is understood: names, templates, built-in types,
//! pointers, functions, arrays, substitutions. Anything else (local names, expressions, member
//! pointers) yields `None`: the caller then knows sizes only, never a wrong type.

mod parser;
mod types;

pub(crate) use types::{Function, Type};

/// Longest symbol that is looked at.
const MAX_SYMBOL: usize = 8192;

/// Reads a mangled function symbol.
pub(crate) fn demangle(symbol: &str) -> Option<Function> {
    if symbol.len() > MAX_SYMBOL || !symbol.is_ascii() {
        return None;
    }
    parser::Parser::new(symbol.strip_prefix("_Z")?).function()
}

/// A kernel's name for people: that of a mangled symbol, with namespaces and template arguments;
/// any other name as it is.
pub fn readable(symbol: &str) -> String {
    demangle(symbol.trim()).map_or_else(|| symbol.to_owned(), |function| function.name)
}

#[cfg(test)]
mod tests;
