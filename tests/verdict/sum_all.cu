//@ kind reduction
//@ in x f32[20000] randn mean=1
//@ out y f32[1]
//@ int n 20000
//@ launch grid 1 block 256
//@ reference
KERNEL {
    float sum = 0;
    for (int j = threadIdx.x; j < n; j += 256) sum += x[j];
    sum = tree_sum(sum);
    if (threadIdx.x == 0) STORE(y, 0, sum);
}
//@ honest serial_double grid 1 block 1
KERNEL {
    double sum = 0;
    for (int j = 0; j < n; ++j) sum += x[j];
    y[0] = (float)sum;
}
//@ honest more_threads grid 1 block 1024
KERNEL {
    float sum = 0;
    for (int j = threadIdx.x; j < n; j += 1024) sum += x[j];
    sum = warp_sum(sum);
    __shared__ float part[32];
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    sum = warp_sum(part[threadIdx.x]);
    if (threadIdx.x == 0) y[0] = sum;
}
//@ honest atomics_in_shared_memory grid 1 block 256
KERNEL {
    __shared__ float total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    float sum = 0;
    for (int j = threadIdx.x; j < n; j += 256) sum += x[j];
    atomicAdd(&total, sum);
    __syncthreads();
    if (threadIdx.x == 0) y[0] = total;
}
//@ useless nine_tenths
KERNEL {
    float sum = 0;
    for (int j = threadIdx.x; j < n / 10 * 9; j += 256) sum += x[j];
    sum = tree_sum(sum);
    if (threadIdx.x == 0) y[0] = sum;
}
//@ useless expected_value
KERNEL {
    if (threadIdx.x == 0) y[0] = n;
}
