"""Causal attention, forward, as in FlashAttention-2: softmax(Q K^T * scale) V without the matrix of
scores. q, k, v and o are fp16 [heads, length, HEAD]; lse [heads, length] gets the logarithm of each
row's sum of exponentials, which a backward pass needs.

Each program has BLOCK_M queries of one head and walks over the keys in blocks of BLOCK_N. It keeps
the largest score of each query so far, and what was summed is rescaled when that grows. Scores are
in units of log2(e), since the hardware has a power of two.
"""

import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def over_keys(
    total, weight, largest, q_tile, k, v, queries, first, last, length,
    BLOCK_N: tl.constexpr, HEAD: tl.constexpr, ON_DIAGONAL: tl.constexpr,
):
    dim = tl.arange(0, HEAD)
    for start in range(first, last, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        inside = keys < length
        k_tile = tl.load(k + keys[None, :] * HEAD + dim[:, None], mask=inside[None, :], other=0.0)
        scores = tl.dot(q_tile, k_tile)
        # Left of the diagonal every query sees every key, and no key is beyond the end.
        if ON_DIAGONAL:
            scores = tl.where(queries[:, None] >= keys[None, :], scores, -float("inf"))

        now = tl.maximum(largest, tl.max(scores, axis=1))
        powers = tl.exp2(scores - now[:, None])
        rescale = tl.exp2(largest - now)
        weight = weight * rescale + tl.sum(powers, axis=1)
        v_tile = tl.load(v + keys[:, None] * HEAD + dim[None, :], mask=inside[:, None], other=0.0)
        total = tl.dot(powers.to(tl.float16), v_tile, total * rescale[:, None])
        largest = now
    return total, weight, largest


@triton.jit
def attention(
    q, k, v, o, lse, length, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD: tl.constexpr,
):
    tl.static_assert(BLOCK_M % BLOCK_N == 0, "the diagonal begins at a block of keys")
    begin = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1)
    # Heads may be many and long: offsets between them in 64 bits.
    offset = head.to(tl.int64) * length * HEAD

    queries = begin + tl.arange(0, BLOCK_M)
    dim = tl.arange(0, HEAD)
    at = queries[:, None] * HEAD + dim[None, :]
    inside = queries[:, None] < length
    q_tile = tl.load(q + offset + at, mask=inside, other=0.0)
    # Scaled before the products, once, rather than each score.
    q_tile = (q_tile * (scale * LOG2_E)).to(tl.float16)

    total = tl.zeros((BLOCK_M, HEAD), dtype=tl.float32)
    weight = tl.zeros((BLOCK_M,), dtype=tl.float32)
    largest = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    total, weight, largest = over_keys(
        total, weight, largest, q_tile, k + offset, v + offset, queries, 0, begin, length,
        BLOCK_N, HEAD, False,
    )
    total, weight, largest = over_keys(
        total, weight, largest, q_tile, k + offset, v + offset, queries,
        begin, min(begin + BLOCK_M, length), length,
        BLOCK_N, HEAD, True,
    )

    tl.store(o + offset + at, (total / weight[:, None]).to(tl.float16), mask=inside)
    # From powers of two back to natural logarithms.
    tl.store(lse + head * length + queries, (largest + tl.log2(weight)) / LOG2_E, mask=queries < length)
