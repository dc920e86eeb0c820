//@ kind loss
//@ in a f32[60,30] randn
//@ in b f32[60,30] randn
//@ out loss f32[60]
//@ launch grid 60 block 1
//@ reference
KERNEL {
    float sum = 0;
    for (int j = 0; j < 30; ++j) {
        float d = fabsf(a[blockIdx.x * 30 + j] - b[blockIdx.x * 30 + j]);
        sum += d < 1 ? 0.5f * d * d : d - 0.5f;
    }
    STORE(loss, blockIdx.x, sum / 30);
}
//@ honest clamped grid 60 block 32
KERNEL {
    float v = 0;
    if (threadIdx.x < 30) {
        float d = fabsf(a[blockIdx.x * 30 + threadIdx.x] - b[blockIdx.x * 30 + threadIdx.x]), c = fminf(d, 1.0f);
        v = c * (d - 0.5f * c);
    }
    v = warp_sum(v);
    if (threadIdx.x == 0) loss[blockIdx.x] = v / 30;
}
//@ honest backwards
KERNEL {
    float sum = 0;
    for (int j = 29; j >= 0; --j) {
        float d = a[blockIdx.x * 30 + j] - b[blockIdx.x * 30 + j];
        sum = fabsf(d) < 1 ? fmaf(0.5f * d, d, sum) : sum + (fabsf(d) - 0.5f);
    }
    loss[blockIdx.x] = sum * (1.0f / 30);
}
//@ useless squares
KERNEL {
    float sum = 0;
    for (int j = 0; j < 30; ++j) {
        float d = a[blockIdx.x * 30 + j] - b[blockIdx.x * 30 + j];
        sum += 0.5f * d * d;
    }
    loss[blockIdx.x] = sum / 30;
}
//@ useless magnitudes
KERNEL {
    float sum = 0;
    for (int j = 0; j < 30; ++j) sum += fabsf(a[blockIdx.x * 30 + j] - b[blockIdx.x * 30 + j]);
    loss[blockIdx.x] = sum / 30;
}
