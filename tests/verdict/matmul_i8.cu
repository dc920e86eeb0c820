//@ kind quantised
//@ in a i8[24,64] randint low=-128 high=128
//@ in b i8[32,64] randint low=-128 high=128
//@ out c i32[24,32]
//@ launch grid 24 block 32
//@ reference
KERNEL {
    int sum = 0;
    for (int k = 0; k < 64; ++k) sum += a[blockIdx.x * 64 + k] * b[threadIdx.x * 64 + k];
    STORE(c, THREAD, sum);
}
//@ honest four_at_once
KERNEL {
    const int *p = (const int*)(a + blockIdx.x * 64), *q = (const int*)(b + threadIdx.x * 64);
    int sum = 0;
    for (int k = 0; k < 16; ++k) sum = __dp4a(p[k], q[k], sum);
    c[THREAD] = sum;
}
//@ honest in_float
KERNEL {
    float sum = 0;
    for (int k = 0; k < 64; ++k) sum += (float)a[blockIdx.x * 64 + k] * (float)b[threadIdx.x * 64 + k];
    c[THREAD] = (int)sum;
}
//@ useless in_half
KERNEL {
    float sum = 0;
    for (int k = 0; k < 64; ++k) sum += __half2float(__float2half((float)a[blockIdx.x * 64 + k] * b[threadIdx.x * 64 + k]));
    c[THREAD] = (int)sum;
}
//@ useless products_of_16_bits
KERNEL {
    short sum = 0;
    for (int k = 0; k < 64; ++k) sum += a[blockIdx.x * 64 + k] * b[threadIdx.x * 64 + k];
    c[THREAD] = sum;
}
