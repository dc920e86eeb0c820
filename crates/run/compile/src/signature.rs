//! Queries the compiler for parameter types of kernels whose symbols do not contain them.
//!
//! The symbol of a template that is instantiated with the type of a kernel contains that type. The
//! template below is therefore appended to the source, and an instance for each kernel is requested
//! by name. The demangled symbol of the instance contains the parameter types, in which typedefs
//! and macros are resolved.

use super::ctype::CType;
use super::demangle::{Type, demangle};
use warpgauge_code::listing::PROBE as TEMPLATE;

/// Maximum number of kernels queried in one compilation.
pub(crate) const MAX_PROBES: usize = 64;

/// Returns the text to append to a source. It begins on a new line, because the source may end with
/// a comment.
pub(crate) fn suffix() -> String {
    format!(
        "\n#line 1 \"warpgauge/signature.cuh\"\n\
         template <class F> __global__ void {TEMPLATE}() {{}}\n"
    )
}

/// Returns the name expression that queries the type of `kernel`, which is a C++ name with template
/// arguments.
pub(crate) fn probe(kernel: &str) -> String {
    format!("{TEMPLATE}<decltype(&{kernel})>")
}

/// Returns the text to append to a source for a compiler without name expressions. It contains
/// explicit, numbered instances of the template for `kernels`, and references that make the
/// compiler emit `instances`.
pub(crate) fn numbered_suffix(kernels: &[&str], instances: &[String]) -> String {
    let mut text = format!(
        "\n#line 1 \"warpgauge/signature.cuh\"\n\
         template <int I, class F> __global__ void {TEMPLATE}() {{}}\n"
    );
    for (at, kernel) in kernels.iter().take(MAX_PROBES).enumerate() {
        text.push_str(&format!(
            "template __global__ void {TEMPLATE}<{at}, decltype(&{kernel})>();\n"
        ));
    }
    for (at, instance) in instances.iter().enumerate() {
        text.push_str(&format!("auto* __warpgauge_instance_{at} = &{instance};\n"));
    }
    text
}

/// Decodes the symbol of a numbered instance. Returns its number and the kernel's parameter types.
pub(crate) fn numbered_answer(symbol: &str) -> Option<(usize, Vec<CType>)> {
    let function = demangle(symbol).filter(|f| f.name.starts_with(TEMPLATE))?;
    let [Type::Value(at), kernel] = function.template_args.as_slice() else { return None };
    let params = kernel.function_params()?;
    Some((at.parse().ok()?, params.iter().map(Type::ctype).collect()))
}

/// Returns the parameter types that the symbol of a query contains.
pub(crate) fn answer(symbol: &str) -> Option<Vec<CType>> {
    let function = demangle(symbol)?;
    let params = function.template_args.first()?.function_params()?;
    Some(params.iter().map(Type::ctype).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_code::listing::is_probe;

    #[test]
    fn the_answer_is_read_off_the_symbol() {
        let symbol = "_Z21__warpgauge_signatureIPFvPKfjEEvv";
        assert!(is_probe(symbol));
        let pointer = CType::Pointer { pointee: Some(Box::new(CType::F32)), is_const: true };
        assert_eq!(answer(symbol), Some(vec![pointer, CType::U32]));
        assert_eq!(answer("_Z21__warpgauge_signatureIPFvvEEvv"), Some(vec![]));
        assert_eq!(answer("_Z1kPf"), None);
    }

    #[test]
    fn the_probe_names_the_kernel() {
        assert_eq!(probe("ns::k<float>"), "__warpgauge_signature<decltype(&ns::k<float>)>");
    }
}
