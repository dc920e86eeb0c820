//! The part of CUB that device code uses. NVRTC rejects `cub/cub.cuh`, because it includes host
//! algorithms. It is therefore replaced by headers for the names that a source uses.

use warpgauge_code::source::{Token, TokenKind};

/// The header that includes all of CUB.
pub(crate) const WHOLE: &str = "cub/cub.cuh";

/// Names in CUB, each with the header that defines it.
pub(crate) const HEADERS: [(&str, &str); 30] = [
    ("BlockAdjacentDifference", "block/block_adjacent_difference"),
    ("BlockDiscontinuity", "block/block_discontinuity"),
    ("BlockExchange", "block/block_exchange"),
    ("BlockHistogram", "block/block_histogram"),
    ("BlockLoad", "block/block_load"),
    ("BlockMergeSort", "block/block_merge_sort"),
    ("BlockRadixRank", "block/block_radix_rank"),
    ("BlockRadixSort", "block/block_radix_sort"),
    ("BlockReduce", "block/block_reduce"),
    ("BlockRunLengthDecode", "block/block_run_length_decode"),
    ("BlockScan", "block/block_scan"),
    ("BlockShuffle", "block/block_shuffle"),
    ("BlockStore", "block/block_store"),
    ("LoadDirectBlocked", "block/block_load"),
    ("LoadDirectStriped", "block/block_load"),
    ("StoreDirectBlocked", "block/block_store"),
    ("StoreDirectStriped", "block/block_store"),
    ("ThreadLoad", "thread/thread_load"),
    ("ThreadReduce", "thread/thread_reduce"),
    ("ThreadStore", "thread/thread_store"),
    ("WarpExchange", "warp/warp_exchange"),
    ("WarpLoad", "warp/warp_load"),
    ("WarpMergeSort", "warp/warp_merge_sort"),
    ("WarpReduce", "warp/warp_reduce"),
    ("WarpScan", "warp/warp_scan"),
    ("WarpStore", "warp/warp_store"),
    ("ArgMax", "thread/thread_operators"),
    ("ArgMin", "thread/thread_operators"),
    ("KeyValuePair", "util_type"),
    ("ShuffleIndex", "util_ptx"),
];

/// Operators that version 3 of CUB removed, each with the replacement that its release notes name.
pub(crate) const REMOVED: [(&str, &str); 5] = [
    ("Equality", "::cuda::std::equal_to<>"),
    ("Inequality", "::cuda::std::not_equal_to<>"),
    ("Max", "::cuda::maximum<>"),
    ("Min", "::cuda::minimum<>"),
    ("Sum", "::cuda::std::plus<>"),
];

/// Returns the text that replaces [`WHOLE`].
pub(crate) fn used(code: &[Token<'_>]) -> String {
    let words = code.iter().filter(|token| token.kind == TokenKind::Word);
    let words: std::collections::BTreeSet<&str> = words.map(|token| token.text).collect();
    let mut headers: Vec<&str> = HEADERS
        .iter()
        .filter(|(name, _)| words.contains(name))
        .map(|(_, header)| *header)
        .collect();
    headers.sort_unstable();
    headers.dedup();
    // This header always declares namespace cub, for `using namespace cub`.
    let mut text = String::from("#include <cub/util_ptx.cuh>\n");
    headers.iter().for_each(|header| text.push_str(&format!("#include <cub/{header}.cuh>\n")));
    let removed = REMOVED.iter().filter(|(name, _)| words.contains(name));
    let aliases: String =
        removed.map(|(name, instead)| format!("using {name} = {instead};\n")).collect();
    if !aliases.is_empty() {
        text.push_str("#if CUB_MAJOR_VERSION >= 3\n#include <cuda/functional>\nnamespace cub {\n");
        text.push_str(&aliases);
        text.push_str("}\n#else\n#include <cub/thread/thread_operators.cuh>\n#endif\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_code::source::tokenize;

    #[test]
    fn the_headers_of_the_names_in_use_stand_for_the_whole() {
        let text = used(&tokenize("using R = cub::BlockReduce<int, 128>; cub::Sum s; // WarpScan"));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "#include <cub/util_ptx.cuh>",
                "#include <cub/block/block_reduce.cuh>",
                "#if CUB_MAJOR_VERSION >= 3",
                "#include <cuda/functional>",
                "namespace cub {",
                "using Sum = ::cuda::std::plus<>;",
                "}",
                "#else",
                "#include <cub/thread/thread_operators.cuh>",
                "#endif",
            ]
        );
    }
}
