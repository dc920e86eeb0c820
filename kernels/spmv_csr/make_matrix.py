"""Writes contract.yaml: the 5-point Laplacian of a square grid as a CSR matrix, times a vector.

Everything is given as data (zlib under base64), the expected product too: it is computed here, by
another program in another language than the kernel's. The vector's elements are multiples of 1/64
and the matrix holds 4 and -1, so every sum is exact and the product must match to the last bit.

    python3 make_matrix.py > contract.yaml
"""

import base64
import struct
import zlib

SIDE = 32  # points along one side of the grid; the matrix has SIDE * SIDE rows


def laplacian(side):
    """Row pointers, column indices and values of the 5-point Laplacian, rows in order."""
    row_ptr, cols, values = [0], [], []
    for r in range(side):
        for c in range(side):
            neighbours = [(r - 1, c), (r, c - 1), (r, c), (r, c + 1), (r + 1, c)]
            for nr, nc in neighbours:
                if 0 <= nr < side and 0 <= nc < side:
                    cols.append(nr * side + nc)
                    values.append(4.0 if (nr, nc) == (r, c) else -1.0)
            row_ptr.append(len(cols))
    return row_ptr, cols, values


def product(row_ptr, cols, values, x):
    """A * x, row by row."""
    return [
        sum(values[i] * x[cols[i]] for i in range(begin, end))
        for begin, end in zip(row_ptr, row_ptr[1:])
    ]


def data(elements, code):
    """Tensor data on the wire: little-endian, zlib, base64."""
    raw = struct.pack(f"<{len(elements)}{code}", *elements)
    return base64.b64encode(zlib.compress(raw, 9)).decode()


def main():
    rows = SIDE * SIDE
    row_ptr, cols, values = laplacian(SIDE)
    x = [((i * i) % 61 - 30) / 64 for i in range(rows)]
    y = product(row_ptr, cols, values, x)
    nnz = len(cols)
    print(f"""\
# Sparse matrix times vector, CSR, one warp per row. Written by make_matrix.py: the matrix is the
# 5-point Laplacian of a {SIDE} x {SIDE} grid, and both the inputs and the expected product are given
# as data.
kernel:
  kernel_type: cuda
  source_file: kernel.cu
  metadata:
    kernel_name: spmv_csr
  io:
    args:
      - {{name: rows, type: int, value: {rows}}}
      - name: row_ptr
        type: tensor
        role: input
        tensor_spec:
          shape: [{rows + 1}]
          dtype: int32
          data: {{compress: zlib, data_b64: "{data(row_ptr, 'i')}"}}
      - name: col_index
        type: tensor
        role: input
        tensor_spec:
          shape: [{nnz}]
          dtype: int32
          data: {{compress: zlib, data_b64: "{data(cols, 'i')}"}}
      - name: values
        type: tensor
        role: input
        tensor_spec:
          shape: [{nnz}]
          dtype: float32
          data: {{compress: zlib, data_b64: "{data(values, 'f')}"}}
      - name: x
        type: tensor
        role: input
        tensor_spec:
          shape: [{rows}]
          dtype: float32
          data: {{compress: zlib, data_b64: "{data(x, 'f')}"}}
      - {{name: "y", type: tensor, role: output, tensor_spec: {{shape: [{rows}], dtype: float32}}}}
    launch:
      grid: {{x: "ceil_div(rows * 32, 256)"}}
      block: {{x: 256}}
expected:
  "y":
    data: {{compress: zlib, data_b64: "{data(y, 'f')}"}}
# Every sum is exact, in any order.
tolerance: {{atol: 0.0, rtol: 0.0}}
work: {{bytes: {4 * (rows + 1) + 8 * nnz + 8 * rows}, flops: {2 * nnz}}}
num_trials: 20""")


if __name__ == "__main__":
    main()
