//@ kind scan
//@ in x f32[4096] randn
//@ in owner i32[4096] randint low=0 high=32
//@ out y f32[32]
//@ launch grid 32 block 1
//@ reference
KERNEL {
    float sum = 0;
    for (int j = 0; j < 4096; ++j) if (owner[j] == blockIdx.x) sum += x[j];
    STORE(y, blockIdx.x, sum);
}
//@ honest atomics grid 1 block 256
KERNEL {
    __shared__ float part[32];
    if (threadIdx.x < 32) part[threadIdx.x] = 0;
    __syncthreads();
    for (int j = threadIdx.x; j < 4096; j += 256) atomicAdd(&part[owner[j]], x[j]);
    __syncthreads();
    if (threadIdx.x < 32) y[threadIdx.x] = part[threadIdx.x];
}
//@ honest tree grid 32 block 128
KERNEL {
    float sum = 0;
    for (int j = threadIdx.x; j < 4096; j += 128) sum += owner[j] == blockIdx.x ? x[j] : 0.0f;
    sum = tree_sum(sum);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
//@ useless lost_updates grid 1 block 1
KERNEL {
    for (int k = 0; k < 32; ++k) y[k] = 0;
    for (int j = 0; j < 4096; ++j) y[owner[j]] = x[j];
}
//@ useless contiguous_segments
KERNEL {
    float sum = 0;
    for (int j = 0; j < 128; ++j) sum += x[blockIdx.x * 128 + j];
    y[blockIdx.x] = sum;
}
