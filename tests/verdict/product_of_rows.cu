//@ kind reduction
//@ in x f32[64,50] uniform low=0.5 high=1.6
//@ out y f32[64]
//@ launch grid 64 block 1
//@ reference
KERNEL {
    float product = 1;
    for (int j = 0; j < 50; ++j) product *= x[blockIdx.x * 50 + j];
    STORE(y, blockIdx.x, product);
}
//@ honest pairs
KERNEL {
    float product = 1;
    for (int j = 0; j < 25; ++j) product *= x[blockIdx.x * 50 + j] * x[blockIdx.x * 50 + 49 - j];
    y[blockIdx.x] = product;
}
//@ honest warp grid 64 block 32
KERNEL {
    float product = x[blockIdx.x * 50 + threadIdx.x];
    if (threadIdx.x < 18) product *= x[blockIdx.x * 50 + 32 + threadIdx.x];
    for (int step = 16; step > 0; step /= 2) product *= __shfl_xor_sync(ALL, product, step);
    if (threadIdx.x == 0) y[blockIdx.x] = product;
}
//@ useless last_factor_missing
KERNEL {
    float product = 1;
    for (int j = 0; j < 49; ++j) product *= x[blockIdx.x * 50 + j];
    y[blockIdx.x] = product;
}
//@ useless sum
KERNEL {
    float sum = 0;
    for (int j = 0; j < 50; ++j) sum += x[blockIdx.x * 50 + j];
    y[blockIdx.x] = sum;
}
