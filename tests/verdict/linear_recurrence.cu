//@ kind scan
//@ in a f32[8,200] uniform low=0.5 high=0.99
//@ in b f32[8,200] randn
//@ out h f32[8,200]
//@ copy b
//@ launch grid 8 block 1
//@ reference
KERNEL {
    float state = 0;
    for (int t = 0; t < 200; ++t) {
        state = a[blockIdx.x * 200 + t] * state + b[blockIdx.x * 200 + t];
        STORE(h, blockIdx.x * 200 + t, state);
    }
}
//@ honest scan_of_maps grid 8 block 256
KERNEL {
    __shared__ float slope[256], shift[256];
    bool inside = threadIdx.x < 200;
    float p = inside ? a[blockIdx.x * 200 + threadIdx.x] : 1, q = inside ? b[blockIdx.x * 200 + threadIdx.x] : 0;
    for (int step = 1; step < 256; step *= 2) {
        slope[threadIdx.x] = p;
        shift[threadIdx.x] = q;
        __syncthreads();
        if (threadIdx.x >= step) {
            q += p * shift[threadIdx.x - step];
            p *= slope[threadIdx.x - step];
        }
        __syncthreads();
    }
    if (inside) h[blockIdx.x * 200 + threadIdx.x] = q;
}
//@ honest double
KERNEL {
    double state = 0;
    for (int t = 0; t < 200; ++t)
        h[blockIdx.x * 200 + t] = (float)(state = a[blockIdx.x * 200 + t] * state + b[blockIdx.x * 200 + t]);
}
//@ useless short_memory grid 8 block 200
KERNEL {
    float state = 0;
    for (int t = max(0, (int)threadIdx.x - 2); t <= threadIdx.x; ++t)
        state = a[blockIdx.x * 200 + t] * state + b[blockIdx.x * 200 + t];
    h[blockIdx.x * 200 + threadIdx.x] = state;
}
