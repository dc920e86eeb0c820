//! C++ types that a mangled symbol contains.

use std::rc::Rc;

use crate::ctype::CType;

/// A function, as its symbol describes it.
#[derive(Debug, Clone)]
pub(crate) struct Function {
    /// Name with namespaces and template arguments, e.g. `ns::scale<float>`.
    pub name: String,
    /// Arguments of the function's template, in order.
    pub template_args: Vec<Type>,
    /// Types of the function's parameters, in order.
    pub params: Vec<Type>,
}

/// A C++ type, with the details that kernel parameters need.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Type {
    Builtin(Builtin),
    /// A type qualified with `const` or `volatile`.
    Qualified {
        is_const: bool,
        /// The type that is qualified.
        inner: Rc<Type>,
    },
    Pointer(Rc<Type>),
    /// An lvalue or rvalue reference.
    Reference(Rc<Type>),
    /// An array with the given extent.
    Array(Rc<Type>, String),
    /// A function type with these parameters.
    Function(Rc<Vec<Type>>),
    /// Name of a class, union or enumeration.
    Named(Rc<str>),
    /// A parameter pack.
    Pack(Rc<Vec<Type>>),
    /// Value of a template argument, as written.
    Value(Rc<str>),
}

/// A built-in type: its C++ name, and its type as a kernel parameter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Builtin {
    /// Name of the type in C++.
    pub name: &'static str,
    /// Type as a kernel parameter. `None` for `void` and for types that no kernel takes.
    pub ctype: Option<CType>,
}

/// Maximum length of a type's name in C++ syntax, bytes.
const MAX_NAME: usize = 1024;

/// Maximum depth of pointers to pointers that is described.
const MAX_POINTER_DEPTH: usize = 8;

impl Type {
    /// Returns the type as that of a kernel parameter. References are not passed to kernels, so
    /// they become unknown types.
    pub(crate) fn ctype(&self) -> CType {
        self.ctype_at(0)
    }

    fn ctype_at(&self, depth: usize) -> CType {
        match self {
            Self::Builtin(builtin) => builtin.ctype.clone().unwrap_or(CType::Unknown),
            Self::Qualified { inner, .. } => inner.ctype_at(depth),
            Self::Pointer(to) if depth < MAX_POINTER_DEPTH => {
                let (is_const, target) = to.unqualified();
                let pointee = target.pointee(depth + 1).map(Box::new);
                CType::Pointer { pointee, is_const }
            }
            Self::Pointer(_) => CType::Pointer { pointee: None, is_const: false },
            Self::Named(name) => match &**name {
                "__half" => CType::F16,
                "__nv_bfloat16" => CType::Bf16,
                _ => CType::Aggregate(name.to_string()),
            },
            Self::Reference(_)
            | Self::Array(..)
            | Self::Function(_)
            | Self::Pack(_)
            | Self::Value(_) => CType::Unknown,
        }
    }

    fn unqualified(&self) -> (bool, &Type) {
        let (mut is_const, mut target) = (false, self);
        while let Self::Qualified { is_const: c, inner } = target {
            is_const |= c;
            target = inner;
        }
        (is_const, target)
    }

    fn pointee(&self, depth: usize) -> Option<CType> {
        match self.ctype_at(depth) {
            CType::Unknown => None,
            known => Some(known),
        }
    }

    /// Returns the parameter types of the function that this type is or points to. `None` for other
    /// types.
    pub(crate) fn function_params(&self) -> Option<&[Type]> {
        match self {
            Self::Function(params) => Some(params),
            Self::Pointer(to) => to.function_params(),
            _ => None,
        }
    }

    /// Returns the type in C++ syntax, or `None` if the text would be too long.
    pub(crate) fn written(&self) -> Option<String> {
        let mut out = String::new();
        self.write(&mut out, 0)?;
        Some(out)
    }

    fn write(&self, out: &mut String, depth: usize) -> Option<()> {
        if out.len() > MAX_NAME || depth > 64 {
            return None;
        }
        match self {
            Self::Builtin(builtin) => out.push_str(builtin.name),
            Self::Qualified { is_const, inner } => {
                inner.write(out, depth + 1)?;
                out.push_str(if *is_const { " const" } else { " volatile" });
            }
            Self::Pointer(to) => {
                to.write(out, depth + 1)?;
                out.push('*');
            }
            Self::Reference(to) => {
                to.write(out, depth + 1)?;
                out.push('&');
            }
            Self::Array(of, extent) => {
                of.write(out, depth + 1)?;
                out.push('[');
                out.push_str(extent);
                out.push(']');
            }
            Self::Function(params) => {
                out.push_str("void(");
                write_list(params, out, depth)?;
                out.push(')');
            }
            Self::Named(name) | Self::Value(name) => out.push_str(name),
            Self::Pack(items) => write_list(items, out, depth)?,
        }
        Some(())
    }
}

/// Writes types, separated by commas.
pub(crate) fn write_list(items: &[Type], out: &mut String, depth: usize) -> Option<()> {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        item.write(out, depth + 1)?;
    }
    Some(())
}

/// Returns the built-in type that a one-letter code denotes.
pub(crate) fn builtin(code: u8) -> Option<Type> {
    let (name, ctype) = match code {
        b'v' => ("void", None),
        b'w' => ("wchar_t", Some(CType::I32)),
        b'b' => ("bool", Some(CType::Bool)),
        b'c' => ("char", Some(CType::I8)),
        b'a' => ("signed char", Some(CType::I8)),
        b'h' => ("unsigned char", Some(CType::U8)),
        b's' => ("short", Some(CType::I16)),
        b't' => ("unsigned short", Some(CType::U16)),
        b'i' => ("int", Some(CType::I32)),
        b'j' => ("unsigned int", Some(CType::U32)),
        b'l' => ("long", Some(CType::I64)),
        b'm' => ("unsigned long", Some(CType::U64)),
        b'x' => ("long long", Some(CType::I64)),
        b'y' => ("unsigned long long", Some(CType::U64)),
        b'n' => ("__int128", None),
        b'o' => ("unsigned __int128", None),
        b'f' => ("float", Some(CType::F32)),
        b'd' => ("double", Some(CType::F64)),
        b'e' => ("long double", None),
        b'z' => ("...", None),
        _ => return None,
    };
    Some(Type::Builtin(Builtin { name, ctype }))
}

/// Returns the built-in type that a code after `D` denotes.
pub(crate) fn builtin_after_d(code: u8) -> Option<Type> {
    let (name, ctype) = match code {
        b'h' => ("__fp16", Some(CType::F16)),
        b'n' => ("decltype(nullptr)", None),
        b'i' => ("char32_t", Some(CType::U32)),
        b's' => ("char16_t", Some(CType::U16)),
        b'u' => ("char8_t", Some(CType::U8)),
        _ => return None,
    };
    Some(Type::Builtin(Builtin { name, ctype }))
}
