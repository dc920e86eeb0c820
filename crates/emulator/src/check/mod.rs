//! Findings of the sanitiser: what a kernel did wrong, where, and how often.

/// One kind of error at one source position, with the first thread that made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// `out_of_bounds`, `misaligned`, `use_after_free`, `uninitialised_read`, `shared_race`,
    /// `global_race`, `divergent_barrier` or `read_only_write`.
    pub check: &'static str,
    /// Name of the kernel as it stands in the PTX.
    pub kernel: String,
    /// Block index of the first occurrence.
    pub block: [u32; 3],
    /// Thread index within the block of the first occurrence.
    pub thread: [u32; 3],
    /// Address of the access; the generic address for shared and local memory.
    pub address: u64,
    /// Bytes accessed by one thread; 0 where there is no access.
    pub bytes: u32,
    /// Source file and line, where the PTX carries line information.
    pub source: Option<(String, u32)>,
    /// One sentence for a person.
    pub message: String,
    /// Occurrences at this position, over all threads.
    pub count: u64,
}
