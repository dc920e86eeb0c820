"""Softmax over the rows of a matrix. A program has one row at a time, in registers.

A row is padded to the next power of two, BLOCK, since shapes of blocks are powers of two.
"""

import triton
import triton.language as tl


@triton.jit
def softmax(x, y, rows, cols, BLOCK: tl.constexpr):
    # As many programs as one likes: each takes every so manieth row.
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        col = tl.arange(0, BLOCK)
        inside = col < cols
        # What pads the row is no maximum, and its exponential is 0.
        values = tl.load(x + row * cols + col, mask=inside, other=-float("inf"))
        # Without the subtraction large inputs overflow.
        powers = tl.exp(values - tl.max(values, axis=0))
        tl.store(y + row * cols + col, powers / tl.sum(powers, axis=0), mask=inside)
