// out[c][r] = in[r][c] through a shared-memory tile, so that both the loads and the stores of a
// warp touch consecutive addresses. The tile's extra column keeps its columns in different banks.
constexpr int TILE = 32;
constexpr int ROWS_PER_STEP = 8;  // = blockDim.y

extern "C" __global__ void transpose(const float* __restrict__ in, float* __restrict__ out,
                                     int rows, int cols) {
    __shared__ float tile[TILE][TILE + 1];

    const int in_col = blockIdx.x * TILE + threadIdx.x;
    const int in_row = blockIdx.y * TILE + threadIdx.y;
    for (int step = 0; step < TILE; step += ROWS_PER_STEP) {
        if (in_row + step < rows && in_col < cols) {
            tile[threadIdx.y + step][threadIdx.x] = in[(in_row + step) * cols + in_col];
        }
    }
    __syncthreads();

    const int out_col = blockIdx.y * TILE + threadIdx.x;
    const int out_row = blockIdx.x * TILE + threadIdx.y;
    for (int step = 0; step < TILE; step += ROWS_PER_STEP) {
        if (out_row + step < cols && out_col < rows) {
            out[(out_row + step) * rows + out_col] = tile[threadIdx.x][threadIdx.y + step];
        }
    }
}
