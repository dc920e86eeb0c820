//@ kind reduction
//@ in x f32[200,64] randn
//@ out y f32[64]
//@ launch grid 1 block 64
//@ reference
KERNEL {
    float sum = 0;
    for (int r = 0; r < 200; ++r) sum += x[r * 64 + threadIdx.x] * x[r * 64 + threadIdx.x];
    STORE(y, threadIdx.x, sqrtf(sum));
}
//@ honest block_for_each_column grid 64 block 64
KERNEL {
    float sum = 0;
    for (int r = threadIdx.x; r < 200; r += 64) sum += x[r * 64 + blockIdx.x] * x[r * 64 + blockIdx.x];
    sum = tree_sum(sum);
    if (threadIdx.x == 0) y[blockIdx.x] = sqrtf(sum);
}
//@ honest by_reciprocal_root
KERNEL {
    float sum = 0;
    for (int r = 199; r >= 0; --r) sum = fmaf(x[r * 64 + threadIdx.x], x[r * 64 + threadIdx.x], sum);
    y[threadIdx.x] = sum * rsqrtf(sum);
}
//@ honest hypot
KERNEL {
    float norm = 0;
    for (int r = 0; r < 200; ++r) norm = hypotf(norm, x[r * 64 + threadIdx.x]);
    y[threadIdx.x] = norm;
}
//@ useless no_root
KERNEL {
    float sum = 0;
    for (int r = 0; r < 200; ++r) sum += x[r * 64 + threadIdx.x] * x[r * 64 + threadIdx.x];
    y[threadIdx.x] = sum;
}
//@ useless last_row_missing
KERNEL {
    float sum = 0;
    for (int r = 0; r < 199; ++r) sum += x[r * 64 + threadIdx.x] * x[r * 64 + threadIdx.x];
    y[threadIdx.x] = sqrtf(sum);
}
//@ useless sum_of_magnitudes
KERNEL {
    float sum = 0;
    for (int r = 0; r < 200; ++r) sum += fabsf(x[r * 64 + threadIdx.x]);
    y[threadIdx.x] = sum;
}
