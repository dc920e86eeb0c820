//@ kind scan
//@ in x f32[32,128] uniform low=0.2 high=1
//@ out y f32[32,128]
//@ launch grid 32 block 1
//@ reference
KERNEL {
    float product = 1;
    for (int j = 0; j < 128; ++j) {
        product *= x[blockIdx.x * 128 + j];
        STORE(y, blockIdx.x * 128 + j, product);
    }
}
//@ honest doubling grid 32 block 128
KERNEL {
    __shared__ float part[128];
    float product = x[THREAD];
    for (int step = 1; step < 128; step *= 2) {
        part[threadIdx.x] = product;
        __syncthreads();
        if (threadIdx.x >= step) product *= part[threadIdx.x - step];
        __syncthreads();
    }
    y[THREAD] = product;
}
//@ honest double
KERNEL {
    double product = 1;
    for (int j = 0; j < 128; ++j) y[blockIdx.x * 128 + j] = (float)(product *= x[blockIdx.x * 128 + j]);
}
//@ useless first_forty_only grid 32 block 1
KERNEL {
    float product = 1;
    for (int j = 0; j < 128; ++j) y[blockIdx.x * 128 + j] = j < 40 ? product *= x[blockIdx.x * 128 + j] : 0;
}
//@ useless previous_only grid 32 block 128
KERNEL {
    y[THREAD] = threadIdx.x ? x[THREAD] * x[THREAD - 1] : x[THREAD];
}
