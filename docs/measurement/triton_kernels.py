"""Twelve kernels in Triton, for docs/measurement/beside_triton.py. Each is written for clarity, not for speed."""

import triton
import triton.language as tl


@triton.jit
def add(a, b, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(a + at, mask=inside) + tl.load(b + at, mask=inside), mask=inside)


@triton.jit
def gelu(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    value = tl.load(x + at, mask=inside).to(tl.float32)
    result = 0.5 * value * (1.0 + tl.erf(value * 0.7071067811865476))
    tl.store(out + at, result.to(out.dtype.element_ty), mask=inside)


@triton.jit
def softmax(x, out, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    at = tl.arange(0, BLOCK)
    inside = at < cols
    value = tl.load(x + row + at, mask=inside, other=-float("inf"))
    powers = tl.exp(value - tl.max(value, axis=0))
    tl.store(out + row + at, powers / tl.sum(powers, axis=0), mask=inside)


@triton.jit
def layernorm(x, gamma, beta, out, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    at = tl.arange(0, BLOCK)
    inside = at < cols
    value = tl.load(x + row + at, mask=inside, other=0.0).to(tl.float32)
    apart = tl.where(inside, value - tl.sum(value, axis=0) / cols, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(apart * apart, axis=0) / cols + eps)
    weight = tl.load(gamma + at, mask=inside).to(tl.float32)
    shift = tl.load(beta + at, mask=inside).to(tl.float32)
    result = apart * scale * weight + shift
    tl.store(out + row + at, result.to(out.dtype.element_ty), mask=inside)


@triton.jit
def rmsnorm(x, gamma, out, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    at = tl.arange(0, BLOCK)
    inside = at < cols
    value = tl.load(x + row + at, mask=inside, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(value * value, axis=0) / cols + eps)
    result = value * scale * tl.load(gamma + at, mask=inside).to(tl.float32)
    tl.store(out + row + at, result.to(out.dtype.element_ty), mask=inside)


@triton.jit
def row_sum(x, out, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        sums += tl.load(x + row + at, mask=at < cols, other=0.0)
    tl.store(out + tl.program_id(0), tl.sum(sums, axis=0))


@triton.jit
def transpose(x, out, rows, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = (row[:, None] < rows) & (col[None, :] < cols)
    tile = tl.load(x + row[:, None] * cols + col[None, :], mask=inside)
    tl.store(out + col[:, None] * rows + row[None, :], tile.T, mask=inside.T)


@triton.jit
def matmul(
    a, b, c, m, n, k,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):
    tiles_m, tiles_n = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    group = tl.program_id(0) // (GROUP * tiles_n)
    height = min(tiles_m - group * GROUP, GROUP)
    within = tl.program_id(0) % (GROUP * tiles_n)
    rows = (group * GROUP + within % height) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = within // height * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    at_a = a + rows[:, None] * k + depth[None, :]
    at_b = b + depth[:, None] * n + cols[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        a_tile = tl.load(at_a, mask=(rows[:, None] < m) & (depth[None, :] < k - start), other=0.0)
        b_tile = tl.load(at_b, mask=(depth[:, None] < k - start) & (cols[None, :] < n), other=0.0)
        total = tl.dot(a_tile, b_tile, total)
        at_a += BLOCK_K
        at_b += BLOCK_K * n
    inside = (rows[:, None] < m) & (cols[None, :] < n)
    tl.store(c + rows[:, None] * n + cols[None, :], total.to(tl.float16), mask=inside)


@triton.jit
def attention(
    q, k, v, out, length, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD: tl.constexpr,
):
    """Not causal; the length is a multiple of both blocks."""
    head = tl.program_id(1).to(tl.int64) * length * HEAD
    queries = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    dim = tl.arange(0, HEAD)
    q_tile = tl.load(q + head + queries[:, None] * HEAD + dim[None, :])
    q_tile = (q_tile * (scale * 1.4426950408889634)).to(tl.float16)
    total = tl.zeros((BLOCK_M, HEAD), dtype=tl.float32)
    weight = tl.zeros((BLOCK_M,), dtype=tl.float32)
    largest = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    for start in range(0, length, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        k_tile = tl.load(k + head + keys[None, :] * HEAD + dim[:, None])
        scores = tl.dot(q_tile, k_tile)
        now = tl.maximum(largest, tl.max(scores, axis=1))
        powers = tl.exp2(scores - now[:, None])
        rescale = tl.exp2(largest - now)
        weight = weight * rescale + tl.sum(powers, axis=1)
        v_tile = tl.load(v + head + keys[:, None] * HEAD + dim[None, :])
        total = tl.dot(powers.to(tl.float16), v_tile, total * rescale[:, None])
        largest = now
    result = (total / weight[:, None]).to(tl.float16)
    tl.store(out + head + queries[:, None] * HEAD + dim[None, :], result)
