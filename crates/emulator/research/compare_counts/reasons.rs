//! The known differences between the emulator's counts and the GPU's, with their reasons.

/// A difference: launch, group, name, and the numbers of the emulator and of Nsight Compute.
pub type Difference = (&'static str, &'static str, &'static str, u64, u64);

/// Reasons, each with the differences that it explains.
pub const REASONS: &[(&str, &[Difference])] = &[
    (
        "The compiler loads a constant into a register with `HFMA2.MMA R, -RZ, RZ, …`, which \
         the counter counts as arithmetic.",
        &[
            ("saxpy", "f16", "hfma", 0, 250_003),
            ("matmul_naive", "f16", "hfma", 0, 24_000),
            ("matmul_tiled", "f16", "hfma", 0, 292_864),
            ("reduce_sum", "f16", "hfma", 0, 65_536),
            ("layernorm", "f16", "hfma", 0, 131_072),
            ("spmv_csr", "f16", "hfma", 0, 117_812),
            ("nbody", "f16", "hfma", 0, 1_024),
            ("mandelbrot", "f16", "hfma", 0, 1_099_197),
            ("local_array", "f16", "hfma", 0, 32_768),
        ],
    ),
    (
        "`ptxas` reads four neighbouring words of shared memory at once (`LDS.128`), so that \
         there are fewer loads, and fewer passes.",
        &[
            ("matmul_tiled", "shared requests", "loads", 266_240, 166_400),
            ("matmul_tiled", "shared wavefronts", "loads", 266_240, 199_680),
            ("softmax", "shared requests", "loads", 32_768, 24_576),
            ("softmax", "shared wavefronts", "loads", 32_768, 28_672),
            ("layernorm", "shared requests", "loads", 32_768, 8_192),
            ("layernorm", "shared wavefronts", "loads", 32_768, 16_384),
        ],
    ),
    (
        "Only lane 0 needs the result of the last step of a sum over a warp. `ptxas` moves \
         the addition after the branch that only this lane takes: 31 fewer additions for each \
         such sum (in `reduce_sum` 0.6 % of all).",
        &[
            ("reduce_sum", "f32", "fadd", 1_368_643, 1_360_707),
            ("spmv_csr", "f32", "fadd", 320_000, 258_000),
        ],
    ),
    (
        "`ptxas` unrolls all 64 rounds. In the first, twice zero is a constant (131,072 \
         additions); of the last, for the 34,418 points that reach it, only what the result \
         needs is computed.",
        &[
            ("mandelbrot", "f32", "fadd", 2_753_781, 2_588_291),
            ("mandelbrot", "f32", "fmul", 2_753_781, 2_719_363),
            ("mandelbrot", "f32", "ffma", 11_277_268, 11_139_596),
        ],
    ),
    (
        "`ptxas` makes one multiply-add of the multiplication in `__fdividef` and the \
         addition after it.",
        &[
            ("specials", "f32", "fadd", 393_216, 327_680),
            ("specials", "f32", "fmul", 262_144, 196_608),
            ("specials", "f32", "ffma", 0, 65_536),
        ],
    ),
    (
        "`cp.async` is not among the stores of this counter. The emulator counts the four \
         passes that 512 bytes take.",
        &[
            ("mma_ldmatrix, 64", "shared wavefronts", "stores", 1_024, 0),
            ("mma_ldmatrix, 72", "shared wavefronts", "stores", 1_024, 0),
        ],
    ),
    (
        "Every other row of 128 bytes that `cp.async` copies begins at an odd multiple of 16 \
         bytes in shared memory, so that one sector of its source goes to two lines there. \
         Counted twice, these are the 512 more in 256 copies of four rows; all sectors of \
         such rows counted twice are the 2,048 more by addresses. The emulator counts the \
         sectors that are read.",
        &[
            ("mma_ldmatrix, 72", "global sectors", "loads", 8_192, 8_704),
            ("mma_ldmatrix, 72", "sectors by addresses", "touched", 10_240, 12_288),
        ],
    ),
];

/// Returns the number of the reason for a difference.
pub fn of(difference: Difference) -> Option<usize> {
    REASONS.iter().position(|(_, differences)| differences.contains(&difference))
}
