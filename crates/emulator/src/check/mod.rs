//! Findings of the sanitiser: the error, its position, and the number of occurrences.

/// An error of one kind at one source position, with the first thread that caused it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// `out_of_bounds`, `misaligned`, `use_after_free`, `uninitialised_read`, `shared_race`,
    /// `global_race`, `divergent_barrier`, `undefined_mask` or `read_only_write`.
    pub check: &'static str,
    /// Name of the kernel in the PTX.
    pub kernel: String,
    /// Block index of the first occurrence.
    pub block: [u32; 3],
    /// Thread index within the block of the first occurrence.
    pub thread: [u32; 3],
    /// Address of the access. For shared and local memory, this is the generic address.
    pub address: u64,
    /// Bytes accessed by one thread; 0 if the finding is not about an access.
    pub bytes: u32,
    /// Source file and line, if the PTX has line information.
    pub source: Option<(String, u32)>,
    /// A one-sentence description in plain language.
    pub message: String,
    /// Number of occurrences at this position, over all threads.
    pub count: u64,
}
