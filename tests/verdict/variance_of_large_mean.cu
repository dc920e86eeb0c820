//@ kind reduction
//@ in x f32[48,400] randn mean=100
//@ out y f32[48]
//@ launch grid 48 block 1
//@ weak the reference cancels, and its rounding is as wide as its results
//@ reference
KERNEL {
    const float* row = x + blockIdx.x * 400;
    float sum = 0, squares = 0;
    for (int j = 0; j < 400; ++j) sum += row[j], squares += row[j] * row[j];
    STORE(y, blockIdx.x, squares / 400 - sum / 400 * (sum / 400));
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
    y[blockIdx.x] = squares / 400;
}
//@ honest two_passes grid 48 block 128
KERNEL {
    const float* row = x + blockIdx.x * 400;
    float sum = 0, squares = 0;
    for (int j = threadIdx.x; j < 400; j += 128) sum += row[j];
    float m = tree_sum(sum) / 400;
    for (int j = threadIdx.x; j < 400; j += 128) squares += (row[j] - m) * (row[j] - m);
    squares = tree_sum(squares);
    if (threadIdx.x == 0) y[blockIdx.x] = squares / 400;
}
//@ useless expected_value
KERNEL {
    y[blockIdx.x] = 1;
}
