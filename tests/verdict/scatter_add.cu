//@ kind data movement
//@ in x f32[512,8] randn
//@ in at i32[512] randint low=0 high=20
//@ out y f32[20,8]
//@ launch grid 20 block 8
//@ reference
KERNEL {
    float sum = 0;
    for (int j = 0; j < 512; ++j) if (at[j] == blockIdx.x) sum += x[j * 8 + threadIdx.x];
    STORE(y, THREAD, sum);
}
//@ honest atomics grid 1 block 256
KERNEL {
    if (threadIdx.x < 160) y[threadIdx.x] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < 4096; i += 256) atomicAdd(&y[at[i / 8] * 8 + i % 8], x[i]);
}
//@ honest backwards_double
KERNEL {
    double sum = 0;
    for (int j = 511; j >= 0; --j) if (at[j] == blockIdx.x) sum += x[j * 8 + threadIdx.x];
    y[THREAD] = (float)sum;
}
//@ useless last_one_wins grid 1 block 8
KERNEL {
    for (int k = 0; k < 20; ++k) y[k * 8 + threadIdx.x] = 0;
    for (int j = 0; j < 512; ++j) y[at[j] * 8 + threadIdx.x] = x[j * 8 + threadIdx.x];
}
//@ useless mean
KERNEL {
    float sum = 0;
    int count = 0;
    for (int j = 0; j < 512; ++j) if (at[j] == blockIdx.x) sum += x[j * 8 + threadIdx.x], ++count;
    y[THREAD] = count ? sum / count : 0;
}
