//@ kind loss
//@ in a f32[50,100] randn
//@ in b f32[50,100] randn
//@ out y f32[50]
//@ launch grid 50 block 1
//@ reference
KERNEL {
    float ab = 0, aa = 0, bb = 0;
    for (int j = 0; j < 100; ++j) {
        float p = a[blockIdx.x * 100 + j], q = b[blockIdx.x * 100 + j];
        ab += p * q, aa += p * p, bb += q * q;
    }
    STORE(y, blockIdx.x, ab / (sqrtf(aa) * sqrtf(bb)));
}
//@ honest warp grid 50 block 32
KERNEL {
    float ab = 0, aa = 0, bb = 0;
    for (int j = threadIdx.x; j < 100; j += 32) {
        float p = a[blockIdx.x * 100 + j], q = b[blockIdx.x * 100 + j];
        ab += p * q, aa += p * p, bb += q * q;
    }
    ab = warp_sum(ab), aa = warp_sum(aa), bb = warp_sum(bb);
    if (threadIdx.x == 0) y[blockIdx.x] = ab * rsqrtf(aa * bb);
}
//@ honest normalised_first
KERNEL {
    float ab = 0, aa = 0, bb = 0;
    for (int j = 0; j < 100; ++j) aa += a[blockIdx.x * 100 + j] * a[blockIdx.x * 100 + j];
    for (int j = 0; j < 100; ++j) bb += b[blockIdx.x * 100 + j] * b[blockIdx.x * 100 + j];
    float p = rsqrtf(aa), q = rsqrtf(bb);
    for (int j = 0; j < 100; ++j) ab += (a[blockIdx.x * 100 + j] * p) * (b[blockIdx.x * 100 + j] * q);
    y[blockIdx.x] = ab;
}
//@ useless scaled_dot
KERNEL {
    float ab = 0;
    for (int j = 0; j < 100; ++j) ab += a[blockIdx.x * 100 + j] * b[blockIdx.x * 100 + j];
    y[blockIdx.x] = ab / 100;
}
//@ useless one_norm_missing
KERNEL {
    float ab = 0, aa = 0;
    for (int j = 0; j < 100; ++j) {
        float p = a[blockIdx.x * 100 + j], q = b[blockIdx.x * 100 + j];
        ab += p * q, aa += p * p;
    }
    y[blockIdx.x] = ab / (sqrtf(aa) * 10);
}
