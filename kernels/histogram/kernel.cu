// Adds to bins[v] how often each byte value v occurs in data[0..n).
//
// Each block counts into its own bins in shared memory, where atomics are cheap and collide only
// within the block, and adds them to the global bins once at the end.
constexpr int BINS = 256;

extern "C" __global__ void histogram(const unsigned char* __restrict__ data,
                                     int* __restrict__ bins, int n) {
    __shared__ int counts[BINS];
    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) {
        counts[bin] = 0;
    }
    __syncthreads();

    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicAdd(&counts[data[i]], 1);
    }
    __syncthreads();

    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) {
        if (counts[bin] != 0) {
            atomicAdd(&bins[bin], counts[bin]);
        }
    }
}
