"""C = A * B^T for row-major fp16 A [m, k], B [n, k], C [m, n], with sums in fp32, by a fixed number
of programs, each of which takes every so manieth tile of C.

Tiles are addressed by descriptors that the kernel makes: they know the extents, so there are no
masks. Where the hardware has a tensor memory accelerator they become its descriptors, elsewhere
pointers with masks. The memory they need there is the launcher's.
"""

import triton
import triton.language as tl


@triton.jit
def matmul_persistent(
    a, b, c, m, n, k,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
    NUM_SMS: tl.constexpr,
):
    a_tiles = tl.make_tensor_descriptor(a, [m, k], [k, 1], [BLOCK_M, BLOCK_K])
    b_tiles = tl.make_tensor_descriptor(b, [n, k], [k, 1], [BLOCK_N, BLOCK_K])
    c_tiles = tl.make_tensor_descriptor(c, [m, n], [n, 1], [BLOCK_M, BLOCK_N])

    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, NUM_SMS, flatten=True):
        # GROUP rows of tiles are walked column by column, for the L2 cache.
        group = tile // (GROUP * tiles_n)
        height = min(tiles_m - group * GROUP, GROUP)
        within = tile % (GROUP * tiles_n)
        row = (group * GROUP + within % height) * BLOCK_M
        col = within // height * BLOCK_N

        total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for step in range(tl.cdiv(k, BLOCK_K)):
            a_tile = a_tiles.load([row, step * BLOCK_K])
            b_tile = b_tiles.load([col, step * BLOCK_K])
            total = tl.dot(a_tile, b_tile.T, total)
        c_tiles.store([row, col], total.to(tl.float16))
