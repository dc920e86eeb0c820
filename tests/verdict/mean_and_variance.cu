//@ kind reduction
//@ in x f32[24,400] randn mean=2 std=3
//@ out mean f32[24]
//@ out variance f32[24]
//@ launch grid 24 block 1
//@ reference
KERNEL {
    const float* row = x + blockIdx.x * 400;
    float sum = 0, squares = 0;
    for (int j = 0; j < 400; ++j) sum += row[j];
    float m = sum / 400;
    for (int j = 0; j < 400; ++j) squares += (row[j] - m) * (row[j] - m);
    STORE(mean, blockIdx.x, m);
    STORE(variance, blockIdx.x, squares / 400);
}
//@ honest welford
KERNEL {
    const float* row = x + blockIdx.x * 400;
    float m = 0, squares = 0;
    for (int j = 0; j < 400; ++j) {
        float d = row[j] - m;
        m += d / (j + 1);
        squares += d * (row[j] - m);
    }
    mean[blockIdx.x] = m;
    variance[blockIdx.x] = squares / 400;
}
//@ honest tree grid 24 block 128
KERNEL {
    const float* row = x + blockIdx.x * 400;
    float sum = 0, squares = 0;
    for (int j = threadIdx.x; j < 400; j += 128) sum += row[j];
    float m = tree_sum(sum) * (1.0f / 400);
    for (int j = threadIdx.x; j < 400; j += 128) squares += (row[j] - m) * (row[j] - m);
    squares = tree_sum(squares);
    if (threadIdx.x == 0) mean[blockIdx.x] = m, variance[blockIdx.x] = squares * (1.0f / 400);
}
//@ honest moments_in_double
KERNEL {
    const float* row = x + blockIdx.x * 400;
    double sum = 0, squares = 0;
    for (int j = 0; j < 400; ++j) sum += row[j], squares += (double)row[j] * row[j];
    mean[blockIdx.x] = (float)(sum / 400);
    variance[blockIdx.x] = (float)(squares / 400 - sum / 400 * sum / 400);
}
//@ useless one_less_in_the_divisor
KERNEL {
    const float* row = x + blockIdx.x * 400;
    float sum = 0, squares = 0;
    for (int j = 0; j < 400; ++j) sum += row[j];
    for (int j = 0; j < 400; ++j) squares += (row[j] - sum / 400) * (row[j] - sum / 400);
    mean[blockIdx.x] = sum / 400;
    variance[blockIdx.x] = squares / 399;
}
//@ useless known_moments
KERNEL {
    mean[blockIdx.x] = 2;
    variance[blockIdx.x] = 9;
}
//@ useless mean_not_subtracted
KERNEL {
    const float* row = x + blockIdx.x * 400;
    float sum = 0, squares = 0;
    for (int j = 0; j < 400; ++j) sum += row[j], squares += row[j] * row[j];
    mean[blockIdx.x] = sum / 400;
    variance[blockIdx.x] = squares / 400;
}
