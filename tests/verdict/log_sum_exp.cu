//@ kind reduction
//@ in x f32[32,200] randn std=4
//@ out y f32[32]
//@ launch grid 32 block 1
//@ reference
KERNEL {
    const float* row = x + blockIdx.x * 200;
    float most = row[0], sum = 0;
    for (int j = 1; j < 200; ++j) most = fmaxf(most, row[j]);
    for (int j = 0; j < 200; ++j) sum += expf(row[j] - most);
    STORE(y, blockIdx.x, most + logf(sum));
}
//@ honest online
KERNEL {
    const float* row = x + blockIdx.x * 200;
    float most = -1e30f, sum = 0;
    for (int j = 0; j < 200; ++j) {
        float next = fmaxf(most, row[j]);
        sum = sum * __expf(most - next) + __expf(row[j] - next);
        most = next;
    }
    y[blockIdx.x] = most + __logf(sum);
}
//@ honest no_shift
KERNEL {
    float sum = 0;
    for (int j = 0; j < 200; ++j) sum += expf(x[blockIdx.x * 200 + j]);
    y[blockIdx.x] = logf(sum);
}
//@ honest tree grid 32 block 64
KERNEL {
    const float* row = x + blockIdx.x * 200;
    float most = -1e30f, sum = 0;
    for (int j = threadIdx.x; j < 200; j += 64) most = fmaxf(most, row[j]);
    most = tree_max(most);
    for (int j = threadIdx.x; j < 200; j += 64) sum += exp2f((row[j] - most) * 1.44269504f);
    sum = tree_sum(sum);
    if (threadIdx.x == 0) y[blockIdx.x] = most + log2f(sum) * 0.69314718f;
}
//@ useless maximum
KERNEL {
    float most = x[blockIdx.x * 200];
    for (int j = 1; j < 200; ++j) most = fmaxf(most, x[blockIdx.x * 200 + j]);
    y[blockIdx.x] = most;
}
//@ useless shift_not_added
KERNEL {
    const float* row = x + blockIdx.x * 200;
    float most = row[0], sum = 0;
    for (int j = 1; j < 200; ++j) most = fmaxf(most, row[j]);
    for (int j = 0; j < 200; ++j) sum += expf(row[j] - most);
    y[blockIdx.x] = logf(sum);
}
