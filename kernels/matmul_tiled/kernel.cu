// C = A * B for row-major A [m, k], B [k, n], C [m, n], by tiles in shared memory.
//
// Each block computes one TILE x TILE tile of C. It walks along k, loads one tile of A and one of B
// per step, and reads each loaded element TILE times from shared memory. Parts of a tile outside
// the matrices are filled with zeros, so any m, n and k will do.
#ifndef TILE_WIDTH
#define TILE_WIDTH 16
#endif
constexpr int TILE = TILE_WIDTH;  // = blockDim.x = blockDim.y

extern "C" __global__ void matmul_tiled(const float* __restrict__ a, const float* __restrict__ b,
                                        float* __restrict__ c, int m, int n, int k) {
    __shared__ float a_tile[TILE][TILE];
    __shared__ float b_tile[TILE][TILE];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int row = blockIdx.y * TILE + ty;
    const int col = blockIdx.x * TILE + tx;

    float sum = 0.0f;
    for (int start = 0; start < k; start += TILE) {
        a_tile[ty][tx] = (row < m && start + tx < k) ? a[row * k + start + tx] : 0.0f;
        b_tile[ty][tx] = (start + ty < k && col < n) ? b[(start + ty) * n + col] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TILE; ++i) {
            sum = fmaf(a_tile[ty][i], b_tile[i][tx], sum);
        }
        // The next step overwrites the tiles.
        __syncthreads();
    }
    if (row < m && col < n) {
        c[row * n + col] = sum;
    }
}
