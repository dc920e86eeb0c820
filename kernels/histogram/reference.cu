// Adds to bins[v] how often each byte value v occurs: one atomic in global memory per element.
extern "C" __global__ void reference(const unsigned char* data, int* bins, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicAdd(&bins[data[i]], 1);
    }
}
