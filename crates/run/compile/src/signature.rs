//! Parameter types of kernels whose symbols carry none, asked of the compiler itself.
//!
//! A template instantiated with the type of a kernel has that type in its own symbol. So after the
//! source stands the template below, and for each kernel an instance of it is asked for by name;
//! the symbol of the instance, demangled, gives the parameter types after typedefs and macros.

use super::ctype::CType;
use super::demangle::{Type, demangle};

/// Most kernels that are asked about in one compilation.
pub(crate) const MAX_PROBES: usize = 64;

const TEMPLATE: &str = "__warpgauge_signature";

/// Text to append to a source. On lines of its own: the source may end in a comment.
pub(crate) fn suffix() -> String {
    format!(
        "\n#line 1 \"warpgauge/signature.cuh\"\n\
         template <class F> __global__ void {TEMPLATE}() {{}}\n"
    )
}

/// Name expression that asks for the type of `kernel` (a C++ name, with template arguments).
pub(crate) fn probe(kernel: &str) -> String {
    format!("{TEMPLATE}<decltype(&{kernel})>")
}

/// Text to append to a source for a compiler without name expressions: explicit instances of
/// the template, numbered, for `kernels`, and references that keep `instances` alive.
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

/// Number and parameter types told by the symbol of a numbered instance.
pub(crate) fn numbered_answer(symbol: &str) -> Option<(usize, Vec<CType>)> {
    let function = demangle(symbol).filter(|f| f.name.starts_with(TEMPLATE))?;
    let [Type::Value(at), kernel] = function.template_args.as_slice() else { return None };
    let params = kernel.function_params()?;
    Some((at.parse().ok()?, params.iter().map(Type::ctype).collect()))
}

/// Whether a symbol is that of a probe.
pub(crate) fn is_probe(symbol: &str) -> bool {
    symbol.contains(TEMPLATE)
}

/// Parameter types told by the symbol of a probe.
pub(crate) fn answer(symbol: &str) -> Option<Vec<CType>> {
    let function = demangle(symbol)?;
    let params = function.template_args.first()?.function_params()?;
    Some(params.iter().map(Type::ctype).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

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
