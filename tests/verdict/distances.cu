//@ kind loss
//@ in a f32[30,8] randn
//@ in b f32[40,8] randn
//@ out y f32[30,40]
//@ launch grid 30 block 40
//@ reference
KERNEL {
    float sum = 0;
    for (int d = 0; d < 8; ++d) {
        float v = a[blockIdx.x * 8 + d] - b[threadIdx.x * 8 + d];
        sum += v * v;
    }
    STORE(y, THREAD, sqrtf(sum));
}
//@ honest pairs
KERNEL {
    float even = 0, odd = 0;
    for (int d = 0; d < 8; d += 2) {
        float v = a[blockIdx.x * 8 + d] - b[threadIdx.x * 8 + d], w = a[blockIdx.x * 8 + d + 1] - b[threadIdx.x * 8 + d + 1];
        even = fmaf(v, v, even);
        odd = fmaf(w, w, odd);
    }
    y[THREAD] = __fsqrt_rn(even + odd);
}
//@ honest expanded_in_double
KERNEL {
    double aa = 0, ab = 0, bb = 0;
    for (int d = 0; d < 8; ++d) {
        double p = a[blockIdx.x * 8 + d], q = b[threadIdx.x * 8 + d];
        aa += p * p, ab += p * q, bb += q * q;
    }
    y[THREAD] = (float)sqrt(aa - 2 * ab + bb);
}
//@ honest expanded
KERNEL {
    float aa = 0, ab = 0, bb = 0;
    for (int d = 0; d < 8; ++d) {
        float p = a[blockIdx.x * 8 + d], q = b[threadIdx.x * 8 + d];
        aa += p * p, ab += p * q, bb += q * q;
    }
    y[THREAD] = sqrtf(fmaxf(aa - 2 * ab + bb, 0.0f));
}
//@ useless squared
KERNEL {
    float sum = 0;
    for (int d = 0; d < 8; ++d) {
        float v = a[blockIdx.x * 8 + d] - b[threadIdx.x * 8 + d];
        sum += v * v;
    }
    y[THREAD] = sum;
}
//@ useless last_dimension_missing
KERNEL {
    float sum = 0;
    for (int d = 0; d < 7; ++d) {
        float v = a[blockIdx.x * 8 + d] - b[threadIdx.x * 8 + d];
        sum += v * v;
    }
    y[THREAD] = sqrtf(sum);
}
