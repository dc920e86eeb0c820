//@ kind scan
//@ in x f32[16,256] randn
//@ out y f32[16,256]
//@ launch grid 16 block 1
//@ reference
KERNEL {
    float sum = 0;
    for (int j = 0; j < 256; ++j) {
        sum += x[blockIdx.x * 256 + j];
        STORE(y, blockIdx.x * 256 + j, sum);
    }
}
//@ honest doubling grid 16 block 256
KERNEL {
    __shared__ float part[256];
    float sum = x[THREAD];
    for (int step = 1; step < 256; step *= 2) {
        part[threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.x >= step) sum += part[threadIdx.x - step];
        __syncthreads();
    }
    y[THREAD] = sum;
}
//@ honest warps grid 16 block 256
KERNEL {
    __shared__ float ends[8];
    float sum = x[THREAD];
    for (int step = 1; step < 32; step *= 2) {
        float other = __shfl_up_sync(ALL, sum, step);
        if (threadIdx.x % 32 >= step) sum += other;
    }
    if (threadIdx.x % 32 == 31) ends[threadIdx.x / 32] = sum;
    __syncthreads();
    float before = 0;
    for (int w = 0; w < threadIdx.x / 32; ++w) before += ends[w];
    y[THREAD] = before + sum;
}
//@ honest double
KERNEL {
    double sum = 0;
    for (int j = 0; j < 256; ++j) y[blockIdx.x * 256 + j] = (float)(sum += x[blockIdx.x * 256 + j]);
}
//@ useless exclusive
KERNEL {
    float sum = 0;
    for (int j = 0; j < 256; ++j) {
        y[blockIdx.x * 256 + j] = sum;
        sum += x[blockIdx.x * 256 + j];
    }
}
//@ useless within_warps grid 16 block 256
KERNEL {
    float sum = x[THREAD];
    for (int step = 1; step < 32; step *= 2) {
        float other = __shfl_up_sync(ALL, sum, step);
        if (threadIdx.x % 32 >= step) sum += other;
    }
    y[THREAD] = sum;
}
