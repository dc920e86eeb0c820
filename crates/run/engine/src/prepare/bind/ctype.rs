//! C type names that a contract may give in `c_type`.

use warpgauge_compile::CType;

/// Returns the size of a scalar type in bytes, or `None` if the type does not determine it.
pub(super) fn scalar_size(ctype: &CType) -> Option<u32> {
    match ctype {
        CType::F64 | CType::I64 | CType::U64 | CType::Pointer { .. } => Some(8),
        CType::F32 | CType::I32 | CType::U32 => Some(4),
        CType::F16 | CType::Bf16 | CType::I16 | CType::U16 => Some(2),
        CType::I8 | CType::U8 | CType::Bool => Some(1),
        CType::Aggregate(_) | CType::Enumeration(_) | CType::Integer | CType::Unknown => None,
    }
}

/// Parses a C type name: the usual spellings of CUDA C++ on 64-bit Linux.
pub(super) fn parse(text: &str) -> Option<CType> {
    let words = text.split_whitespace().filter(|w| !matches!(*w, "const" | "volatile"));
    let name = words.collect::<Vec<_>>().join(" ");
    if let Some(pointee) = name.strip_suffix('*') {
        let pointee = parse(pointee.trim()).map(Box::new);
        return Some(CType::Pointer { pointee, is_const: text.trim_start().starts_with("const") });
    }
    Some(match name.as_str() {
        "float" => CType::F32,
        "double" => CType::F64,
        "half" | "__half" => CType::F16,
        "__nv_bfloat16" | "nv_bfloat16" | "bfloat16" => CType::Bf16,
        "char" | "signed char" | "int8_t" => CType::I8,
        "short" | "int16_t" => CType::I16,
        "int" | "signed int" | "int32_t" => CType::I32,
        "long" | "long long" | "long int" | "int64_t" | "ptrdiff_t" => CType::I64,
        "unsigned char" | "uint8_t" => CType::U8,
        "unsigned short" | "uint16_t" => CType::U16,
        "unsigned" | "unsigned int" | "uint" | "uint32_t" => CType::U32,
        "unsigned long" | "unsigned long long" | "uint64_t" | "size_t" => CType::U64,
        "bool" => CType::Bool,
        _ => return None,
    })
}

/// All names that [`parse`] accepts, for error messages.
pub(super) const KNOWN: &str = "float, double, __half, __nv_bfloat16, bool, int8_t … int64_t, \
                                uint8_t … uint64_t, int, unsigned int, long long, size_t, or a \
                                pointer to one of them";
