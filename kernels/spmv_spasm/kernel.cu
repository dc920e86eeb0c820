// y += A * x for a sparse matrix in SPASM form: one block of threads per tile, one position each.
//
// A position is a word: column of the 4 x 4 block in its tile (bits 0 to 12), its row there (14 to
// 26), and the template (28 to 31). A template is a mask of four cells, bit 4 * row + column; their
// values follow one another.
constexpr int TILE = 1024;
constexpr int CELLS = 4;

extern "C" __global__ void spmv_spasm(int rows, int cols, int tiles,
                                      const int* __restrict__ templates,
                                      const int* __restrict__ tile_row,
                                      const int* __restrict__ tile_col,
                                      const int* __restrict__ ranges,
                                      const int* __restrict__ positions,
                                      const float* __restrict__ values,
                                      const float* __restrict__ x, float* __restrict__ y) {
    const int tile = blockIdx.x;
    if (tile >= tiles) {
        return;
    }
    for (int p = ranges[tile] + threadIdx.x; p < ranges[tile + 1]; p += blockDim.x) {
        const unsigned word = positions[p];
        const int first_row = tile_row[tile] * TILE + int(word >> 14 & 0x1fff) * 4;
        const int first_col = tile_col[tile] * TILE + int(word & 0x1fff) * 4;
        unsigned mask = templates[word >> 28];
        for (int cell = 0; cell < CELLS; ++cell) {
            const int at = __ffs(mask) - 1;
            mask &= mask - 1;
            const int row = first_row + at / 4;
            const int col = first_col + at % 4;
            if (row < rows && col < cols) {
                atomicAdd(&y[row], values[p * CELLS + cell] * x[col]);
            }
        }
    }
}
