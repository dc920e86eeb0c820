//! Errors of binding a contract's arguments to a kernel. The main type is [`BindError`].

use warpgauge_compile::{CType, KernelInfo, Param};
use warpgauge_model::FailureCode;

/// An argument that does not fit its parameter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct BindError {
    /// JSON path below the kernel, e.g. `io.args[3]`.
    pub path: String,
    /// Stable error code: `argument_count`, `argument_type`, `argument_value`, `unknown_c_type`.
    pub code: FailureCode,
    /// Message that names the expected and the actual argument, with a remedy.
    pub message: String,
}

impl BindError {
    /// Returns an error in a list of steps.
    pub(crate) fn step(path: &str, code: FailureCode, message: String) -> Self {
        Self { path: path.to_owned(), code, message }
    }

    /// Prefixes the path of the error with that of the step whose kernel it concerns.
    pub(crate) fn at_step(self, step: &str) -> Self {
        let field = self.path.strip_prefix("io.").unwrap_or(&self.path);
        Self { path: format!("{step}.{field}"), ..self }
    }

    /// Returns whether the error is that the kernel has a different number of parameters.
    pub(crate) fn is_about_count(&self) -> bool {
        self.code == FailureCode::ArgumentCount
    }

    pub(super) fn argument(index: usize, code: FailureCode, message: String) -> Self {
        Self { path: format!("io.args[{index}]"), code, message }
    }

    pub(super) fn count(kernel: &KernelInfo, params: &[Param], names: &[&str]) -> Self {
        let wanted = params.iter().enumerate().map(|(i, p)| describe(p, i)).collect::<Vec<_>>();
        Self {
            path: "io.args".to_owned(),
            code: FailureCode::ArgumentCount,
            message: format!(
                "kernel `{}` takes {} parameters ({}) but the contract gives {} arguments ({}); \
                 give one argument per parameter, in order",
                kernel.name,
                params.len(),
                wanted.join(", "),
                names.len(),
                names.join(", "),
            ),
        }
    }
}

/// Describes a parameter for a user: `float alpha`, or `int (parameter 3)`.
pub(super) fn describe(param: &Param, index: usize) -> String {
    match &param.name {
        Some(name) => format!("{} {name}", type_name(&param.ctype, param.bytes)),
        None => format!("{} (parameter {index})", type_name(&param.ctype, param.bytes)),
    }
}

/// Returns the C spelling of a type.
pub(crate) fn type_name(ctype: &CType, bytes: u32) -> String {
    match ctype {
        CType::F32 => "float".to_owned(),
        CType::F64 => "double".to_owned(),
        CType::F16 => "__half".to_owned(),
        CType::Bf16 => "__nv_bfloat16".to_owned(),
        CType::I8 => "signed char".to_owned(),
        CType::I16 => "short".to_owned(),
        CType::I32 => "int".to_owned(),
        CType::I64 => "long long".to_owned(),
        CType::U8 => "unsigned char".to_owned(),
        CType::U16 => "unsigned short".to_owned(),
        CType::U32 => "unsigned int".to_owned(),
        CType::U64 => "unsigned long long".to_owned(),
        CType::Bool => "bool".to_owned(),
        CType::Pointer { pointee, is_const } => {
            let inner = pointee.as_ref().map_or("void".to_owned(), |p| type_name(p, 0));
            match (is_const, pointee.as_deref()) {
                (false, _) => format!("{inner}*"),
                (true, Some(CType::Pointer { .. })) => format!("{inner} const*"),
                (true, _) => format!("const {inner}*"),
            }
        }
        CType::Aggregate(name) if name.is_empty() => format!("{bytes}-byte structure"),
        CType::Aggregate(name) => name.clone(),
        CType::Enumeration(name) => format!("enum {name}"),
        CType::Integer => format!("{}-bit integer", bytes * 8),
        CType::Unknown => format!("{bytes}-byte value of unknown type"),
    }
}
