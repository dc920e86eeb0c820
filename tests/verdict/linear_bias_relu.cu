//@ kind matrix product
//@ in x f32[24,80] randn
//@ in w f32[32,80] randn std=0.1
//@ in bias f32[32] randn
//@ out y f32[24,32]
//@ launch grid 24 block 32
//@ reference
KERNEL {
    float sum = 0;
    for (int k = 0; k < 80; ++k) sum += x[blockIdx.x * 80 + k] * w[threadIdx.x * 80 + k];
    STORE(y, THREAD, fmaxf(sum + bias[threadIdx.x], 0.0f));
}
//@ honest bias_first
KERNEL {
    float sum = bias[threadIdx.x];
    for (int k = 0; k < 80; ++k) sum = fmaf(x[blockIdx.x * 80 + k], w[threadIdx.x * 80 + k], sum);
    y[THREAD] = sum > 0 ? sum : 0;
}
//@ honest vectors_of_four
KERNEL {
    const float4 *p = (const float4*)(x + blockIdx.x * 80), *q = (const float4*)(w + threadIdx.x * 80);
    float4 sum = make_float4(0, 0, 0, 0);
    for (int k = 0; k < 20; ++k) {
        sum.x += p[k].x * q[k].x;
        sum.y += p[k].y * q[k].y;
        sum.z += p[k].z * q[k].z;
        sum.w += p[k].w * q[k].w;
    }
    y[THREAD] = fmaxf((sum.x + sum.y) + (sum.z + sum.w) + bias[threadIdx.x], 0.0f);
}
//@ useless no_bias
KERNEL {
    float sum = 0;
    for (int k = 0; k < 80; ++k) sum += x[blockIdx.x * 80 + k] * w[threadIdx.x * 80 + k];
    y[THREAD] = fmaxf(sum, 0.0f);
}
//@ useless no_relu
KERNEL {
    float sum = 0;
    for (int k = 0; k < 80; ++k) sum += x[blockIdx.x * 80 + k] * w[threadIdx.x * 80 + k];
    y[THREAD] = sum + bias[threadIdx.x];
}
//@ useless bias_only
KERNEL {
    y[THREAD] = fmaxf(bias[threadIdx.x], 0.0f);
}
