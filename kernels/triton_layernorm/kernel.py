"""Layer normalisation of the rows of a matrix, which also leaves the mean and the reciprocal of the
standard deviation of each row, as a backward pass needs them. One program a row."""

import triton
import triton.language as tl


@triton.jit
def layernorm(x, gamma, beta, y, mean, rstd, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x += row * cols
    y += row * cols

    # Sums are kept lane by lane, and put together once, after the loop.
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        sums += tl.load(x + col, mask=col < cols, other=0.0)
    average = tl.sum(sums, axis=0) / cols

    # A second pass: the difference of the mean of squares and the square of the mean would lose
    # what matters where the mean is large.
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        value = tl.load(x + col, mask=col < cols, other=0.0)
        apart = tl.where(col < cols, value - average, 0.0)
        squares += apart * apart
    scale = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / cols + eps)

    tl.store(mean + row, average)
    tl.store(rstd + row, scale)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        inside = col < cols
        value = tl.load(x + col, mask=inside, other=0.0)
        weight = tl.load(gamma + col, mask=inside, other=0.0)
        shift = tl.load(beta + col, mask=inside, other=0.0)
        tl.store(y + col, (value - average) * scale * weight + shift, mask=inside)
