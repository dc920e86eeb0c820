//@ kind normalisation
//@ in x bf16[24,128] randn std=3
//@ in weight bf16[128] randn
//@ out y bf16[24,128]
//@ launch grid 24 block 1
//@ reference
KERNEL {
    const __nv_bfloat16* row = x + blockIdx.x * 128;
    float squares = 0;
    for (int j = 0; j < 128; ++j) squares += as_float(row[j]) * as_float(row[j]);
    float r = rsqrtf(squares / 128 + 1e-6f);
    for (int j = 0; j < 128; ++j) STORE(y, blockIdx.x * 128 + j, as_float(row[j]) * r * as_float(weight[j]));
}
//@ honest block grid 24 block 128
KERNEL {
    float v = as_float(x[THREAD]), r = rsqrtf(tree_sum(v * v) / 128 + 1e-6f);
    y[THREAD] = __float2bfloat16(v * (r * as_float(weight[threadIdx.x])));
}
//@ honest rounded_before_the_weight grid 24 block 128
KERNEL {
    float v = as_float(x[THREAD]), r = rsqrtf(tree_sum(v * v) / 128 + 1e-6f);
    y[THREAD] = __hmul(__float2bfloat16(v * r), weight[threadIdx.x]);
}
//@ useless no_weight grid 24 block 128
KERNEL {
    float v = as_float(x[THREAD]), r = rsqrtf(tree_sum(v * v) / 128 + 1e-6f);
    y[THREAD] = __float2bfloat16(v * r);
}
//@ useless sum_in_place_of_mean grid 24 block 128
KERNEL {
    float v = as_float(x[THREAD]), r = rsqrtf(tree_sum(v * v) + 1e-6f);
    y[THREAD] = __float2bfloat16(v * r * as_float(weight[threadIdx.x]));
}
