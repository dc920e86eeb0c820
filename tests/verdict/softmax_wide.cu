//@ kind normalisation
//@ in x f32[4,4096] randn
//@ out y f32[4,4096]
//@ launch grid 4 block 256
//@ reference
KERNEL {
    const float* row = x + blockIdx.x * 4096;
    float most = -1e30f, sum = 0;
    for (int j = threadIdx.x; j < 4096; j += 256) most = fmaxf(most, row[j]);
    most = tree_max(most);
    for (int j = threadIdx.x; j < 4096; j += 256) sum += expf(row[j] - most);
    sum = tree_sum(sum);
    for (int j = threadIdx.x; j < 4096; j += 256) STORE(y, blockIdx.x * 4096 + j, expf(row[j] - most) / sum);
}
//@ honest fast grid 4 block 128
KERNEL {
    const float* row = x + blockIdx.x * 4096;
    float sum = 0;
    for (int j = threadIdx.x; j < 4096; j += 128) sum += __expf(row[j]);
    sum = 1.0f / tree_sum(sum);
    for (int j = threadIdx.x; j < 4096; j += 128) y[blockIdx.x * 4096 + j] = __expf(row[j]) * sum;
}
//@ honest double grid 4 block 64
KERNEL {
    const float* row = x + blockIdx.x * 4096;
    double sum = 0;
    for (int j = threadIdx.x; j < 4096; j += 64) sum += exp((double)row[j]);
    sum = tree_sum(sum);
    for (int j = threadIdx.x; j < 4096; j += 64) y[blockIdx.x * 4096 + j] = (float)(exp((double)row[j]) / sum);
}
//@ useless uniform
KERNEL {
    for (int j = threadIdx.x; j < 4096; j += 256) y[blockIdx.x * 4096 + j] = 1.0f / 4096;
}
//@ useless expected_sum
KERNEL {
    for (int j = threadIdx.x; j < 4096; j += 256)
        y[blockIdx.x * 4096 + j] = expf(x[blockIdx.x * 4096 + j]) / (4096 * 1.6487213f);
}
