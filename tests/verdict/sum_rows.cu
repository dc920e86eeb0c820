//@ kind reduction
//@ in x f32[32,1000] randn
//@ out y f32[32]
//@ int n 1000
//@ launch grid 32 block 1
//@ reference
KERNEL {
    float sum = 0;
    for (int j = 0; j < n; ++j) sum += x[blockIdx.x * n + j];
    STORE(y, blockIdx.x, sum);
}
//@ honest tree grid 32 block 128
KERNEL {
    __shared__ float part[128];
    float sum = 0;
    for (int j = threadIdx.x; j < n; j += 128) sum += x[blockIdx.x * n + j];
    part[threadIdx.x] = sum;
    for (int step = 64; step > 0; step /= 2) {
        __syncthreads();
        if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
    }
    if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}
//@ honest shuffle grid 32 block 32
KERNEL {
    float sum = 0;
    for (int j = threadIdx.x; j < n; j += 32) sum += x[blockIdx.x * n + j];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
//@ honest compensated
KERNEL {
    float sum = 0, low = 0;
    for (int j = 0; j < n; ++j) {
        float term = x[blockIdx.x * n + j] - low, next = sum + term;
        low = (next - sum) - term;
        sum = next;
    }
    y[blockIdx.x] = sum;
}
//@ honest double
KERNEL {
    double sum = 0;
    for (int j = n; j-- > 0;) sum += x[blockIdx.x * n + j];
    y[blockIdx.x] = (float)sum;
}
//@ useless last_term_missing
KERNEL {
    float sum = 0;
    for (int j = 0; j < n - 1; ++j) sum += x[blockIdx.x * n + j];
    y[blockIdx.x] = sum;
}
//@ useless half_inside
KERNEL {
    __half sum = __float2half(0.0f);
    for (int j = 0; j < n; ++j) sum = __hadd(sum, __float2half(x[blockIdx.x * n + j]));
    y[blockIdx.x] = __half2float(sum);
}
