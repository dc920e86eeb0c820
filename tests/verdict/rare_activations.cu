//@ kind matrix product
//@ in a f32[128,256] randn
//@ in b f32[256,128] randn
//@ out c f32[128,128]
//@ float least 52.0
//@ launch grid 128 block 128
//@ reference
KERNEL {
    float sum = 0;
    for (int k = 0; k < 256; ++k) sum += a[blockIdx.x * 256 + k] * b[k * 128 + threadIdx.x];
    STORE(c, THREAD, fmaxf(sum - least, 0.0f));
}
//@ honest backwards
KERNEL {
    float sum = 0;
    for (int k = 255; k >= 0; --k) sum += a[blockIdx.x * 256 + k] * b[k * 128 + threadIdx.x];
    c[THREAD] = fmaxf(sum - least, 0.0f);
}
//@ honest four_chains
KERNEL {
    float s[4] = {0, 0, 0, 0};
    for (int k = 0; k < 256; k += 4)
        for (int j = 0; j < 4; ++j) s[j] = fmaf(a[blockIdx.x * 256 + k + j], b[(k + j) * 128 + threadIdx.x], s[j]);
    c[THREAD] = fmaxf((s[0] + s[1]) + (s[2] + s[3]) - least, 0.0f);
}
//@ useless half_inputs
KERNEL {
    float sum = 0;
    for (int k = 0; k < 256; ++k) sum += as_float(__float2half(a[blockIdx.x * 256 + k])) * as_float(__float2half(b[k * 128 + threadIdx.x]));
    c[THREAD] = fmaxf(sum - least, 0.0f);
}
