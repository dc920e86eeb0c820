//@ kind scan
//@ in x f32[32,128] randn
//@ out y f32[32,128]
//@ launch grid 32 block 1
//@ reference
KERNEL {
    float most = -1e38f;
    for (int j = 0; j < 128; ++j) {
        most = fmaxf(most, x[blockIdx.x * 128 + j]);
        STORE(y, blockIdx.x * 128 + j, most);
    }
}
//@ honest doubling grid 32 block 128
KERNEL {
    __shared__ float part[128];
    float most = x[THREAD];
    for (int step = 1; step < 128; step *= 2) {
        part[threadIdx.x] = most;
        __syncthreads();
        if (threadIdx.x >= step) most = fmaxf(most, part[threadIdx.x - step]);
        __syncthreads();
    }
    y[THREAD] = most;
}
//@ honest each_by_itself grid 32 block 128
KERNEL {
    float most = x[blockIdx.x * 128];
    for (int j = 1; j <= threadIdx.x; ++j) most = fmaxf(most, x[blockIdx.x * 128 + j]);
    y[THREAD] = most;
}
//@ useless last_two
KERNEL {
    for (int j = 0; j < 128; ++j)
        y[blockIdx.x * 128 + j] = fmaxf(x[blockIdx.x * 128 + j], x[blockIdx.x * 128 + max(j - 1, 0)]);
}
