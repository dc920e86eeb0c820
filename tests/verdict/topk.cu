//@ kind integers and order
//@ in x f32[20,80] randn
//@ out value f32[20,5]
//@ out at i32[20,5]
//@ launch grid 20 block 1
//@ reference
KERNEL {
    const float* row = x + blockIdx.x * 80;
    unsigned long long taken[2] = {0, 0};
    for (int k = 0; k < 5; ++k) {
        int best = -1;
        for (int j = 0; j < 80; ++j)
            if (!(taken[j / 64] >> j % 64 & 1) && (best < 0 || row[j] > row[best])) best = j;
        taken[best / 64] |= 1ull << best % 64;
        STORE(value, blockIdx.x * 5 + k, row[best]);
        STORE(at, blockIdx.x * 5 + k, best);
    }
}
//@ honest by_rank grid 20 block 80
KERNEL {
    const float* row = x + blockIdx.x * 80;
    int rank = 0;
    for (int j = 0; j < 80; ++j) rank += row[j] > row[threadIdx.x] || (row[j] == row[threadIdx.x] && j < threadIdx.x);
    if (rank < 5) value[blockIdx.x * 5 + rank] = row[threadIdx.x], at[blockIdx.x * 5 + rank] = threadIdx.x;
}
//@ honest insertion
KERNEL {
    const float* row = x + blockIdx.x * 80;
    float v[5];
    int p[5], held = 0;
    for (int j = 0; j < 80; ++j) {
        int k = held < 5 ? held++ : 4;
        if (k == 4 && held == 5 && j >= 5 && row[j] <= v[4]) continue;
        while (k > 0 && v[k - 1] < row[j]) v[k] = v[k - 1], p[k] = p[k - 1], --k;
        v[k] = row[j], p[k] = j;
    }
    for (int k = 0; k < 5; ++k) value[blockIdx.x * 5 + k] = v[k], at[blockIdx.x * 5 + k] = p[k];
}
//@ useless first_five grid 20 block 5
KERNEL {
    value[THREAD] = x[blockIdx.x * 80 + threadIdx.x];
    at[THREAD] = threadIdx.x;
}
//@ useless maximum_five_times
KERNEL {
    int best = 0;
    for (int j = 1; j < 80; ++j) if (x[blockIdx.x * 80 + j] > x[blockIdx.x * 80 + best]) best = j;
    for (int k = 0; k < 5; ++k) value[blockIdx.x * 5 + k] = x[blockIdx.x * 80 + best], at[blockIdx.x * 5 + k] = best;
}
