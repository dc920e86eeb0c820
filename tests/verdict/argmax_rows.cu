//@ kind integers and order
//@ in x f32[50,200] randn
//@ out at i32[50]
//@ launch grid 50 block 1
//@ reference
KERNEL {
    int best = 0;
    for (int j = 1; j < 200; ++j) if (x[blockIdx.x * 200 + j] > x[blockIdx.x * 200 + best]) best = j;
    STORE(at, blockIdx.x, best);
}
//@ honest warp grid 50 block 32
KERNEL {
    const float* row = x + blockIdx.x * 200;
    int best = threadIdx.x;
    for (int j = threadIdx.x + 32; j < 200; j += 32) if (row[j] > row[best]) best = j;
    for (int step = 16; step > 0; step /= 2) {
        int other = __shfl_xor_sync(ALL, best, step);
        if (row[other] > row[best] || (row[other] == row[best] && other < best)) best = other;
    }
    if (threadIdx.x == 0) at[blockIdx.x] = best;
}
//@ honest packed_keys grid 50 block 64
KERNEL {
    unsigned long long most = 0;
    for (int j = threadIdx.x; j < 200; j += 64) {
        unsigned bits = __float_as_uint(x[blockIdx.x * 200 + j]);
        bits = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
        unsigned long long key = (unsigned long long)bits << 32 | (199 - j);
        most = key > most ? key : most;
    }
    most = tree_max(most);
    if (threadIdx.x == 0) at[blockIdx.x] = 199 - (int)(most & 0xffffffffu);
}
//@ useless argmin
KERNEL {
    int best = 0;
    for (int j = 1; j < 200; ++j) if (x[blockIdx.x * 200 + j] < x[blockIdx.x * 200 + best]) best = j;
    at[blockIdx.x] = best;
}
//@ useless rounded_keys
KERNEL {
    int best = 0;
    for (int j = 1; j < 200; ++j) if (floorf(x[blockIdx.x * 200 + j]) > floorf(x[blockIdx.x * 200 + best])) best = j;
    at[blockIdx.x] = best;
}
