// Adds the sum of x[0..n) to *sum.
//
// Each thread sums a strided part, each warp reduces by shuffles, the first warp of each block
// reduces the warps' sums, and one atomic per block adds to the result.
constexpr unsigned FULL_WARP = 0xffffffffu;

__device__ __forceinline__ float warp_sum(float value) {
    for (int offset = 16; offset > 0; offset /= 2) {
        value += __shfl_down_sync(FULL_WARP, value, offset);
    }
    return value;
}

extern "C" __global__ void reduce_sum(const float* __restrict__ x, float* __restrict__ sum,
                                      int n) {
    __shared__ float warp_sums[32];
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;

    float value = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        value += x[i];
    }
    value = warp_sum(value);
    if (lane == 0) {
        warp_sums[warp] = value;
    }
    __syncthreads();

    if (warp == 0) {
        value = lane < blockDim.x / 32 ? warp_sums[lane] : 0.0f;
        value = warp_sum(value);
        if (lane == 0) {
            atomicAdd(sum, value);
        }
    }
}
