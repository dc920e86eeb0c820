"""C = A * B for row-major fp16 A [m, k], B [k, n], C [m, n], with sums in fp32.

Each program computes one tile of C. No extent need be a multiple of its tile.
"""

import triton
import triton.language as tl


@triton.jit
def grouped(program, tiles_m, tiles_n, GROUP: tl.constexpr):
    """Row and column of a program's tile: GROUP rows of tiles are walked column by column, so that
    programs which run together share rows of A and columns of B in the L2 cache."""
    group = program // (GROUP * tiles_n)
    first = group * GROUP
    # The last group may have fewer rows.
    height = min(tiles_m - first, GROUP)
    within = program % (GROUP * tiles_n)
    return first + within % height, within // height


@triton.jit
def matmul(
    a, b, c, m, n, k,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):
    tile_m, tile_n = grouped(tl.program_id(0), tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N), GROUP)
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)

    at_a = a + rows[:, None] * k + depth[None, :]
    at_b = b + depth[:, None] * n + cols[None, :]
    row_inside = rows[:, None] < m
    col_inside = cols[None, :] < n

    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        # Zeros beyond the edges add nothing.
        left = k - start
        a_tile = tl.load(at_a, mask=row_inside & (depth[None, :] < left), other=0.0)
        b_tile = tl.load(at_b, mask=(depth[:, None] < left) & col_inside, other=0.0)
        total = tl.dot(a_tile, b_tile, total)
        at_a += BLOCK_K
        at_b += BLOCK_K * n

    at_c = c + rows[:, None] * n + cols[None, :]
    tl.store(at_c, total.to(tl.float16), mask=row_inside & col_inside)
