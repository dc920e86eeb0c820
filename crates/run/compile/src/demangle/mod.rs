//! Reads types of kernel parameters from mangled C++ symbols (Itanium C++ ABI, section 5.1).
//!
//! Only the constructs that occur in kernel signatures are supported: names, templates, built-in
//! types, pointers, functions, arrays, substitutions. Anything else (local names, expressions,
//! member pointers) yields `None`. The caller then knows only sizes, but never a wrong type.

mod parser;
mod types;

pub(crate) use types::{Function, Type};

/// Maximum length of a symbol that is read, bytes.
const MAX_SYMBOL: usize = 16_384;

/// Reads a mangled function symbol.
pub(crate) fn demangle(symbol: &str) -> Option<Function> {
    if symbol.len() > MAX_SYMBOL || !symbol.is_ascii() {
        return None;
    }
    parser::Parser::new(symbol.strip_prefix("_Z")?).function()
}

/// Returns a kernel's readable name: the demangled name with namespaces and template arguments. A
/// symbol that cannot be demangled is returned unchanged.
pub fn readable(symbol: &str) -> String {
    demangle(symbol.trim()).map_or_else(|| symbol.to_owned(), |function| function.name)
}

/// Returns a function's readable name with its parameters, such as `f(float const*, int)`. Returns
/// `None` if the symbol cannot be demangled or the text would be too long.
pub(crate) fn with_parameters(symbol: &str) -> Option<String> {
    let Function { mut name, params, .. } = demangle(symbol)?;
    name.push('(');
    types::write_list(&params, &mut name, 0)?;
    name.push(')');
    Some(name)
}

#[cfg(test)]
mod tests;
