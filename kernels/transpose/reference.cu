// out[c][r] = in[r][c], one element at a time.
extern "C" __global__ void reference(const float* in, float* out, int rows, int cols) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows * cols) {
        const int r = i / cols;
        const int c = i % cols;
        out[c * rows + r] = in[i];
    }
}
