//! Upper bounds of contracts. The main type is [`ContractLimits`].

/// Limits of one server. The configuration can change every default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContractLimits {
    /// Bytes of one tensor.
    pub max_tensor_bytes: u64,
    /// Bytes of all tensors of a contract together, including expected ones.
    pub max_total_bytes: u64,
    /// Number of kernel arguments.
    pub max_args: usize,
    /// Bytes of an argument's or a kernel's name.
    pub max_name_len: usize,
    /// Bytes of source code.
    pub max_source_bytes: usize,
    /// Decoded bytes of a cubin or fatbin.
    pub max_binary_bytes: u64,
    /// Bytes of all returned outputs, before encoding.
    pub max_output_bytes: u64,
    /// Decoded bytes of a contract's compressed tensor data, including expected ones.
    pub max_decoded_bytes: u64,
    /// Bytes of one named sparse matrix: in CSR form, in a padded form, or as a vector.
    pub max_matrix_bytes: u64,
    /// Number of compiler options, and of name expressions.
    pub max_compiler_options: usize,
    /// Bytes of one compiler option or name expression.
    pub max_compiler_option_len: usize,
    /// Bytes of dynamic shared memory per block.
    pub max_shared_bytes: u64,
    /// Number of points of one sweep.
    pub max_sweep_points: usize,
    /// Number of errors reported for one contract.
    pub max_errors: usize,
}

impl Default for ContractLimits {
    fn default() -> Self {
        Self {
            max_tensor_bytes: 16 << 30,
            max_total_bytes: 64 << 30,
            max_args: 256,
            max_name_len: 256,
            max_source_bytes: 4 << 20,
            max_binary_bytes: 48 << 20,
            max_output_bytes: 256 << 20,
            max_decoded_bytes: 1 << 30,
            max_matrix_bytes: 1 << 30,
            max_compiler_options: 64,
            max_compiler_option_len: 1024,
            max_shared_bytes: 1 << 20,
            max_sweep_points: 1024,
            max_errors: 50,
        }
    }
}
