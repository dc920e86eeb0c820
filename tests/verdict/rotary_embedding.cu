//@ kind attention
//@ in x f32[48,32] randn
//@ out y f32[48,32]
//@ launch grid 48 block 16
//@ reference
KERNEL {
    float angle = blockIdx.x * powf(10000.0f, -2.0f * threadIdx.x / 32);
    float c = cosf(angle), s = sinf(angle);
    float a = x[blockIdx.x * 32 + 2 * threadIdx.x], b = x[blockIdx.x * 32 + 2 * threadIdx.x + 1];
    STORE(y, blockIdx.x * 32 + 2 * threadIdx.x, a * c - b * s);
    STORE(y, blockIdx.x * 32 + 2 * threadIdx.x + 1, a * s + b * c);
}
//@ honest double
KERNEL {
    double angle = blockIdx.x * pow(10000.0, -2.0 * threadIdx.x / 32), c = cos(angle), s = sin(angle);
    double a = x[blockIdx.x * 32 + 2 * threadIdx.x], b = x[blockIdx.x * 32 + 2 * threadIdx.x + 1];
    y[blockIdx.x * 32 + 2 * threadIdx.x] = (float)(a * c - b * s);
    y[blockIdx.x * 32 + 2 * threadIdx.x + 1] = (float)(a * s + b * c);
}
//@ honest by_exp2
KERNEL {
    float angle = blockIdx.x * exp2f(-0.8304820237f * threadIdx.x), c, s;
    sincosf(angle, &s, &c);
    float2 v = ((const float2*)x)[blockIdx.x * 16 + threadIdx.x];
    ((float2*)y)[blockIdx.x * 16 + threadIdx.x] = make_float2(v.x * c - v.y * s, v.x * s + v.y * c);
}
//@ useless turned_backwards
KERNEL {
    float angle = blockIdx.x * powf(10000.0f, -2.0f * threadIdx.x / 32), c = cosf(angle), s = sinf(angle);
    float a = x[blockIdx.x * 32 + 2 * threadIdx.x], b = x[blockIdx.x * 32 + 2 * threadIdx.x + 1];
    y[blockIdx.x * 32 + 2 * threadIdx.x] = a * c + b * s;
    y[blockIdx.x * 32 + 2 * threadIdx.x + 1] = b * c - a * s;
}
//@ useless base_of_1000
KERNEL {
    float angle = blockIdx.x * powf(1000.0f, -2.0f * threadIdx.x / 32), c = cosf(angle), s = sinf(angle);
    float a = x[blockIdx.x * 32 + 2 * threadIdx.x], b = x[blockIdx.x * 32 + 2 * threadIdx.x + 1];
    y[blockIdx.x * 32 + 2 * threadIdx.x] = a * c - b * s;
    y[blockIdx.x * 32 + 2 * threadIdx.x + 1] = a * s + b * c;
}
