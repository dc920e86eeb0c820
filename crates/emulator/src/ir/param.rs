//! The layout of a kernel's parameters.

/// One kernel parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamLayout {
    /// Name in the PTX.
    pub name: String,
    /// Offset in the parameter buffer, in bytes.
    pub offset: usize,
    /// Size in bytes.
    pub bytes: usize,
    /// Alignment in bytes.
    pub align: usize,
}
