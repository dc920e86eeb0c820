//@ kind reduction
//@ in x f32[30,128] randn
//@ in keep bool[30,128] randint
//@ out y f32[30]
//@ launch grid 30 block 1
//@ reference
KERNEL {
    float sum = 0;
    int count = 0;
    for (int j = 0; j < 128; ++j)
        if (keep[blockIdx.x * 128 + j]) sum += x[blockIdx.x * 128 + j], ++count;
    STORE(y, blockIdx.x, count > 0 ? sum / count : 0.0f);
}
//@ honest tree grid 30 block 128
KERNEL {
    int at = THREAD;
    float sum = tree_sum(keep[at] ? x[at] : 0.0f);
    int count = __syncthreads_count(keep[at]);
    if (threadIdx.x == 0) y[blockIdx.x] = sum / max(count, 1);
}
//@ honest reciprocal
KERNEL {
    float sum = 0, count = 0;
    for (int j = 127; j >= 0; --j) {
        float w = keep[blockIdx.x * 128 + j];
        sum += w * x[blockIdx.x * 128 + j];
        count += w;
    }
    y[blockIdx.x] = sum * (1.0f / fmaxf(count, 1.0f));
}
//@ useless mask_ignored
KERNEL {
    float sum = 0;
    for (int j = 0; j < 128; ++j) sum += x[blockIdx.x * 128 + j];
    y[blockIdx.x] = sum / 128;
}
//@ useless divided_by_all
KERNEL {
    float sum = 0;
    for (int j = 0; j < 128; ++j) if (keep[blockIdx.x * 128 + j]) sum += x[blockIdx.x * 128 + j];
    y[blockIdx.x] = sum / 128;
}
