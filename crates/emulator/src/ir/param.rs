//! The layout of a kernel's parameters.

/// Layout of one kernel parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamLayout {
    /// Name of the parameter in the PTX.
    pub name: String,
    /// Offset in the parameter buffer, in bytes.
    pub offset: usize,
    /// Size of the parameter in bytes.
    pub bytes: usize,
    /// Alignment of the parameter in bytes.
    pub align: usize,
}
