//@ kind convolution
//@ in x f32[4,16,16] randn
//@ in w f32[6,4,3,3] randn std=0.2
//@ out y f32[6,16,16]
//@ launch grid 6 block 16 16
//@ reference
KERNEL {
    float sum = 0;
    for (int c = 0; c < 4; ++c)
        for (int r = 0; r < 3; ++r)
            for (int s = 0; s < 3; ++s) {
                int v = (int)threadIdx.y + r - 1, u = (int)threadIdx.x + s - 1;
                if (v >= 0 && v < 16 && u >= 0 && u < 16)
                    sum += x[(c * 16 + v) * 16 + u] * w[((blockIdx.x * 4 + c) * 3 + r) * 3 + s];
            }
    STORE(y, (blockIdx.x * 16 + threadIdx.y) * 16 + threadIdx.x, sum);
}
//@ honest padded_in_shared_memory
KERNEL {
    __shared__ float tile[18][18];
    float sum = 0;
    int at = threadIdx.y * 16 + threadIdx.x;
    for (int c = 0; c < 4; ++c) {
        for (int i = at; i < 324; i += 256) {
            int v = i / 18 - 1, u = i % 18 - 1;
            tile[i / 18][i % 18] = v >= 0 && v < 16 && u >= 0 && u < 16 ? x[(c * 16 + v) * 16 + u] : 0;
        }
        __syncthreads();
        float part = 0;
        for (int t = 0; t < 9; ++t)
            part = fmaf(tile[threadIdx.y + t / 3][threadIdx.x + t % 3], w[(blockIdx.x * 4 + c) * 9 + t], part);
        sum += part;
        __syncthreads();
    }
    y[blockIdx.x * 256 + at] = sum;
}
//@ honest scattered grid 6 block 1
KERNEL {
    __shared__ float plane[256];
    for (int i = 0; i < 256; ++i) plane[i] = 0;
    for (int c = 0; c < 4; ++c)
        for (int v = 0; v < 16; ++v)
            for (int u = 0; u < 16; ++u)
                for (int t = 0; t < 9; ++t) {
                    int p = v + 1 - t / 3, q = u + 1 - t % 3;
                    if (p >= 0 && p < 16 && q >= 0 && q < 16)
                        plane[p * 16 + q] += x[(c * 16 + v) * 16 + u] * w[(blockIdx.x * 4 + c) * 9 + t];
                }
    for (int i = 0; i < 256; ++i) y[blockIdx.x * 256 + i] = plane[i];
}
//@ useless border_left_out
KERNEL {
    float sum = 0;
    bool inside = threadIdx.x > 0 && threadIdx.x < 15 && threadIdx.y > 0 && threadIdx.y < 15;
    for (int i = 0; i < 36 && inside; ++i)
        sum += x[(i / 9 * 16 + threadIdx.y + i % 9 / 3 - 1) * 16 + threadIdx.x + i % 3 - 1] * w[blockIdx.x * 36 + i];
    y[(blockIdx.x * 16 + threadIdx.y) * 16 + threadIdx.x] = sum;
}
//@ useless centre_only
KERNEL {
    float sum = 0;
    for (int c = 0; c < 4; ++c) sum += x[(c * 16 + threadIdx.y) * 16 + threadIdx.x] * w[(blockIdx.x * 4 + c) * 9 + 4];
    y[(blockIdx.x * 16 + threadIdx.y) * 16 + threadIdx.x] = sum;
}
