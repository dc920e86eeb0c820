//! The launches: kernels of `kernels.cu`, their sizes and their data, which are the same in every
//! run.

use crate::common::{Plain, Random};

/// An argument of a kernel.
pub enum Arg {
    /// A buffer that the kernel reads.
    In(Vec<u8>),
    /// A buffer that the kernel writes. It has this number of bytes, initially zero.
    Out(usize),
    /// A buffer that the kernel reads and writes.
    InOut(Vec<u8>),
    /// A 32-bit integer.
    Int(i32),
    /// A 32-bit float.
    Float(f32),
    /// Bits of a 16-bit float.
    Half(u16),
    /// Bits of a pair of 16-bit floats.
    Pair(u32),
}

/// One launch of a kernel, with its arguments.
pub struct Case {
    /// Name of the launch in the table.
    pub label: &'static str,
    pub kernel: &'static str,
    pub grid: (u32, u32, u32),
    pub block: (u32, u32, u32),
    /// Dynamic shared memory of a block, bytes.
    pub shared: u32,
    pub args: Vec<Arg>,
}

use Arg::{Float, Half, In, InOut, Int, Out, Pair};

fn bytes<T: Plain>(values: impl IntoIterator<Item = T>) -> Vec<u8> {
    values.into_iter().flat_map(|value| value.bytes()).collect()
}

fn floats(seed: u64, n: usize) -> Vec<u8> {
    bytes(Random(seed).floats(n))
}

/// Returns floats between 1 and 2, for which no operation takes a special path.
fn normal(seed: u64, n: usize) -> Vec<u8> {
    bytes(Random(seed).floats(n).into_iter().map(|value| 1.5 + 0.49 * value))
}

fn doubles(seed: u64, n: usize) -> Vec<u8> {
    bytes(Random(seed).floats(n).into_iter().map(|value| 1.5 + 0.49 * f64::from(value)))
}

/// Returns the bits of f16 numbers around 1. Kernels that read them as bf16 get other values.
fn halves(seed: u64, n: usize) -> Vec<u8> {
    let mut random = Random(seed);
    bytes((0..n).map(|_| 0x3c00 | (random.next() & 0x83ff) as u16))
}

fn below(seed: u64, n: usize, limit: u64) -> Vec<u8> {
    let mut random = Random(seed);
    bytes((0..n).map(|_| (random.next() >> 20) as u32 as u64 % limit).map(|v| v as i32))
}

fn flat(label: &'static str, kernel: &'static str, grid: u32, block: u32, args: Vec<Arg>) -> Case {
    Case { label, kernel, grid: (grid, 1, 1), block: (block, 1, 1), shared: 0, args }
}

fn plane(label: &'static str, grid: (u32, u32), block: (u32, u32), args: Vec<Arg>) -> Case {
    let (grid, block) = ((grid.0, grid.1, 1), (block.0, block.1, 1));
    Case { label, kernel: label, grid, block, shared: 0, args }
}

/// Returns all launches that are compared, in order.
pub fn all() -> Vec<Case> {
    let mut all = examples();
    all.extend(global());
    all.extend(shared());
    all.extend(arithmetic());
    all.extend(expansions());
    all.extend(matrices());
    all.extend(others());
    all
}

/// Returns launches of the kernels of the project's examples. Their sizes are not multiples of the
/// block size where the kernels support that.
fn examples() -> Vec<Case> {
    let n = 1_000_003;
    let count = n as usize;
    let (m, k, w) = (200, 150, 120);
    let matrices = || {
        let (a, b) = (floats(3, 200 * 150), floats(4, 150 * 120));
        vec![In(a), In(b), Out(200 * 120 * 4), Int(m), Int(w), Int(k)]
    };
    let row_norm = vec![
        In(floats(7, 256 * 768)),
        In(floats(8, 768)),
        In(floats(9, 768)),
        Out(256 * 768 * 4),
        Int(768),
        Float(1e-5),
    ];
    let bins = bytes((0..1 << 20).map({
        let mut random = Random(12);
        move |_| (random.next() >> 33) as u8
    }));
    vec![
        flat(
            "vector_add",
            "vector_add",
            3907,
            256,
            vec![In(floats(1, count)), In(floats(2, count)), Out(4 * count), Int(n)],
        ),
        flat(
            "saxpy",
            "saxpy",
            977,
            256,
            vec![Float(0.75), In(floats(1, count)), InOut(floats(2, count)), Int(n)],
        ),
        plane("matmul_naive", (8, 13), (16, 16), matrices()),
        plane("matmul_tiled", (8, 13), (16, 16), matrices()),
        flat(
            "reduce_sum",
            "reduce_sum",
            256,
            256,
            vec![In(normal(5, count)), InOut(bytes([0f32])), Int(n)],
        ),
        flat(
            "softmax",
            "softmax",
            256,
            256,
            vec![In(floats(6, 256 * 1000)), Out(256 * 1000 * 4), Int(256), Int(1000)],
        ),
        flat("layernorm", "layernorm", 256, 256, row_norm),
        sparse(),
        flat(
            "histogram",
            "histogram",
            128,
            256,
            vec![In(bins), InOut(bytes([0i32; 256])), Int(1 << 20)],
        ),
        plane(
            "transpose",
            (32, 32),
            (32, 8),
            vec![In(floats(13, 1000 * 1024)), Out(1000 * 1024 * 4), Int(1000), Int(1024)],
        ),
    ]
}

/// Returns the launch of a kernel on a sparse matrix whose rows have 0 to 99 elements.
fn sparse() -> Case {
    let rows = 2000;
    let mut random = Random(10);
    let mut starts = vec![0i32];
    let mut end = 0;
    for _ in 0..rows {
        end += ((random.next() >> 33) % 100) as i32;
        starts.push(end);
    }
    let count = end as usize;
    let args = vec![
        Int(rows),
        In(bytes(starts)),
        In(below(11, count, 4096)),
        In(floats(12, count)),
        In(floats(13, 4096)),
        Out(4 * rows as usize),
    ];
    flat("spmv_csr", "spmv_csr", 250, 256, args)
}

fn global() -> Vec<Case> {
    let n = 1 << 18;
    let copy = |label, kernel, step: i32| {
        let args = vec![In(floats(20, 8 * n)), Out(4 * n + 64), Int(n as i32), Int(step)];
        flat(label, kernel, 1024, 256, args)
    };
    let square = vec![In(floats(21, 512 * 512)), Out(512 * 512 * 4), Int(512)];
    let stencil = vec![In(floats(22, 500 * 300)), Out(500 * 300 * 4), Int(500), Int(300)];
    let gather = vec![In(below(23, n, n as u64)), In(floats(24, n)), Out(4 * n), Int(n as i32)];
    let byte = vec![In(floats(25, n / 4)), Out(n), Int(n as i32)];
    let wide = vec![In(doubles(26, n)), Out(8 * n), Int(n as i32 / 2)];
    let masked = vec![In(floats(27, n)), Out(4 * n)];
    vec![
        plane("transpose_naive", (16, 64), (32, 8), square),
        copy("strided_copy, 2", "strided_copy", 2),
        copy("strided_copy, 8", "strided_copy", 8),
        copy("shifted_copy, 1", "shifted_copy", 1),
        copy("shifted_copy, 8", "shifted_copy", 8),
        flat("gather", "gather", 1024, 256, gather),
        flat("bytes_copy", "bytes_copy", 1024, 256, byte),
        flat("wide_copy", "wide_copy", 512, 256, wide),
        flat("masked_copy", "masked_copy", 1024, 256, masked),
        plane("stencil", (16, 38), (32, 8), stencil),
    ]
}

fn shared() -> Vec<Case> {
    let (blocks, block) = (256u32, 256u32);
    let n = (blocks * block) as usize;
    let strided = |label, kernel, size: usize, stride: i32| {
        let args = vec![In(floats(30, n * size / 4)), Out(n * size), Int(stride)];
        let shared = block * size as u32 * stride as u32;
        Case { shared, ..flat(label, kernel, blocks, block, args) }
    };
    let square = vec![In(floats(31, 512 * 512)), Out(512 * 512 * 4), Int(512)];
    let gather = vec![In(below(32, n, 1024)), In(floats(33, 1024)), Out(4 * n)];
    vec![
        plane("transpose_conflicts", (16, 16), (32, 8), square),
        strided("shared_bytes, 1", "shared_bytes", 1, 1),
        strided("shared_bytes, 8", "shared_bytes", 1, 8),
        strided("shared_words, 1", "shared_words", 4, 1),
        strided("shared_words, 2", "shared_words", 4, 2),
        strided("shared_words, 33", "shared_words", 4, 33),
        strided("shared_words, 32", "shared_words", 4, 32),
        strided("shared_pairs, 1", "shared_pairs", 8, 1),
        strided("shared_pairs, 2", "shared_pairs", 8, 2),
        strided("shared_pairs, 3", "shared_pairs", 8, 3),
        strided("shared_quads, 1", "shared_quads", 16, 1),
        strided("shared_quads, 2", "shared_quads", 16, 2),
        strided("shared_quads, 8", "shared_quads", 16, 8),
        flat("shared_gather", "shared_gather", blocks, block, gather),
    ]
}

fn arithmetic() -> Vec<Case> {
    let n = 1 << 17;
    let count = n as i32;
    let paired = |a| vec![a, In(halves(40, 2 * n)), InOut(halves(41, 2 * n)), Int(count)];
    let bf16 = vec![Pair(0x3f00_3f80), In(halves(42, 2 * n)), InOut(halves(43, 2 * n)), Int(count)];
    let scalar = vec![In(halves(44, n)), In(halves(45, n)), Out(2 * n), Int(count)];
    let dot = vec![In(doubles(46, n)), In(doubles(47, n)), InOut(bytes([0f64])), Int(count)];
    vec![
        flat("haxpy", "haxpy", 512, 256, paired(Half(0x3800))),
        flat("half_scalar", "half_scalar", 512, 256, scalar),
        flat("bf16_axpy", "bf16_axpy", 512, 256, bf16),
        flat("dot_f64", "dot_f64", 64, 256, dot),
        flat("nbody", "nbody", 8, 128, vec![In(normal(48, 4096)), Out(1 << 14), Int(1024)]),
        plane("mandelbrot", (16, 32), (32, 8), vec![Out(512 * 256), Int(512), Int(256)]),
    ]
}

fn expansions() -> Vec<Case> {
    let n = 1 << 16;
    let one = |seed| vec![In(normal(seed, n)), Out(4 * n), Int(n as i32)];
    let two = vec![In(normal(50, n)), In(normal(51, n)), Out(4 * n), Int(n as i32)];
    let wide = vec![In(doubles(52, n)), In(doubles(53, n)), Out(8 * n), Int(n as i32)];
    let half = vec![In(halves(56, n)), In(halves(57, n)), Out(2 * n), Int(n as i32)];
    let pairs = vec![In(halves(58, 2 * n)), In(halves(59, 2 * n)), Out(4 * n), Int(n as i32)];
    let root = vec![In(doubles(64, n)), Out(8 * n), Int(n as i32)];
    vec![
        flat("divisions", "divisions", 256, 256, two),
        flat("roots", "roots", 256, 256, one(54)),
        flat("reciprocals", "reciprocals", 256, 256, one(55)),
        flat("divisions_f64", "divisions_f64", 256, 256, wide),
        flat("roots_f64", "roots_f64", 256, 256, root),
        flat("specials", "specials", 256, 256, one(65)),
        flat("half_convert", "half_convert", 256, 256, half),
        flat("bf16_sums", "bf16_sums", 256, 256, pairs),
    ]
}

fn matrices() -> Vec<Case> {
    let operands =
        |out| vec![In(halves(60, 128 * 96)), In(halves(61, 96 * 64)), Out(out), Int(64), Int(96)];
    let product = |label, pitch: i32| {
        let args = vec![In(halves(62, 64 * 1024)), In(halves(63, 512)), Out(64 * 512), Int(pitch)];
        let shared = 16 * pitch as u32 * 2;
        Case { shared, ..flat(label, "mma_ldmatrix", 64, 32, args) }
    };
    let single = |label, size: usize| {
        let (a, b) = (halves(66, 16 * 32 * size / 2), halves(67, 16 * 32 * size / 2));
        plane(label, (1, 1), (32, 1), vec![In(a), In(b), InOut(bytes(vec![0f32; 32 * 32]))])
    };
    vec![
        single("wmma_columns", 2),
        single("wmma_halves", 4),
        single("wmma_bytes", 2),
        single("wmma_tf32", 4),
        plane("wmma_gemm", (4, 8), (32, 1), operands(128 * 64 * 4)),
        plane("wmma_shared", (4, 8), (32, 1), operands(128 * 64 * 2)),
        product("mma_ldmatrix, 64", 64),
        product("mma_ldmatrix, 72", 72),
    ]
}

fn others() -> Vec<Case> {
    let n = 1 << 15;
    let atomics = vec![
        In(below(70, n, 1 << 20)),
        InOut(bytes([0i32; 64])),
        InOut(bytes(vec![0i32; 64 + n])),
        Int(n as i32),
    ];
    let local = vec![In(below(71, n, 1000)), Out(4 * n), Int(20)];
    vec![
        flat("atomics", "atomics", 128, 256, atomics),
        flat("local_array", "local_array", 128, 256, local),
    ]
}
