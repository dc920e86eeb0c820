//@ kind normalisation
//@ in x f32[32,160] randn std=2
//@ out y f32[32,160]
//@ launch grid 32 block 1
//@ reference
KERNEL {
    const float* row = x + blockIdx.x * 160;
    float most = row[0], sum = 0;
    for (int j = 1; j < 160; ++j) most = fmaxf(most, row[j]);
    for (int j = 0; j < 160; ++j) sum += expf(row[j] - most);
    for (int j = 0; j < 160; ++j) STORE(y, blockIdx.x * 160 + j, expf(row[j] - most) / sum);
}
//@ honest online grid 32 block 32
KERNEL {
    const float* row = x + blockIdx.x * 160;
    float most = -1e30f, sum = 0;
    for (int j = threadIdx.x; j < 160; j += 32) {
        float next = fmaxf(most, row[j]);
        sum = sum * __expf(most - next) + __expf(row[j] - next);
        most = next;
    }
    float all = warp_max(most);
    sum = warp_sum(sum * __expf(most - all));
    for (int j = threadIdx.x; j < 160; j += 32) y[blockIdx.x * 160 + j] = __expf(row[j] - all) * (1.0f / sum);
}
//@ honest no_shift
KERNEL {
    const float* row = x + blockIdx.x * 160;
    float sum = 0;
    for (int j = 0; j < 160; ++j) sum += y[blockIdx.x * 160 + j] = expf(row[j]);
    for (int j = 0; j < 160; ++j) y[blockIdx.x * 160 + j] /= sum;
}
//@ honest tree grid 32 block 256
KERNEL {
    bool inside = threadIdx.x < 160;
    float v = inside ? x[blockIdx.x * 160 + threadIdx.x] : -1e30f;
    float e = inside ? exp2f((v - tree_max(v)) * 1.44269504f) : 0.0f * tree_max(v);
    float sum = tree_sum(e);
    if (inside) y[blockIdx.x * 160 + threadIdx.x] = __fdividef(e, sum);
}
//@ useless not_divided
KERNEL {
    const float* row = x + blockIdx.x * 160;
    float most = row[0];
    for (int j = 1; j < 160; ++j) most = fmaxf(most, row[j]);
    for (int j = 0; j < 160; ++j) y[blockIdx.x * 160 + j] = expf(row[j] - most);
}
//@ useless uniform
KERNEL {
    for (int j = 0; j < 160; ++j) y[blockIdx.x * 160 + j] = 1.0f / 160;
}
//@ useless sum_without_the_last
KERNEL {
    const float* row = x + blockIdx.x * 160;
    float sum = 0;
    for (int j = 0; j < 159; ++j) sum += expf(row[j]);
    for (int j = 0; j < 160; ++j) y[blockIdx.x * 160 + j] = expf(row[j]) / sum;
}
