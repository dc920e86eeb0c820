//@ kind quantised
//@ in q i8[48,128] randint low=-127 high=128
//@ in scale f32[48] uniform low=0.01 high=0.02
//@ in x f32[128] randn
//@ out y f32[48]
//@ copy x
//@ launch grid 48 block 1
//@ reference
KERNEL {
    float sum = 0;
    for (int k = 0; k < 128; ++k) sum += q[blockIdx.x * 128 + k] * scale[blockIdx.x] * x[k];
    STORE(y, blockIdx.x, sum);
}
//@ honest scaled_at_the_end
KERNEL {
    float sum = 0;
    for (int k = 0; k < 128; ++k) sum += q[blockIdx.x * 128 + k] * x[k];
    y[blockIdx.x] = sum * scale[blockIdx.x];
}
//@ honest warp grid 48 block 32
KERNEL {
    float sum = 0;
    for (int k = threadIdx.x; k < 128; k += 32) sum += q[blockIdx.x * 128 + k] * x[k];
    sum = warp_sum(sum);
    if (threadIdx.x == 0) y[blockIdx.x] = sum * scale[blockIdx.x];
}
//@ useless not_scaled
KERNEL {
    float sum = 0;
    for (int k = 0; k < 128; ++k) sum += q[blockIdx.x * 128 + k] * x[k];
    y[blockIdx.x] = sum;
}
//@ useless first_scale
KERNEL {
    float sum = 0;
    for (int k = 0; k < 128; ++k) sum += q[blockIdx.x * 128 + k] * scale[0] * x[k];
    y[blockIdx.x] = sum;
}
//@ useless half_weights
KERNEL {
    float sum = 0;
    for (int k = 0; k < 128; ++k) sum += __half2float(__float2half(q[blockIdx.x * 128 + k] * scale[blockIdx.x])) * x[k];
    y[blockIdx.x] = sum;
}
