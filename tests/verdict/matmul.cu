//@ kind matrix product
//@ in a f32[32,64] randn
//@ in b f32[64,48] randn
//@ out c f32[32,48]
//@ launch grid 32 block 48
//@ reference
KERNEL {
    float sum = 0;
    for (int k = 0; k < 64; ++k) sum += a[blockIdx.x * 64 + k] * b[k * 48 + threadIdx.x];
    STORE(c, blockIdx.x * 48 + threadIdx.x, sum);
}
//@ honest tiles grid 3 2 block 16 16
KERNEL {
    __shared__ float s[16][17], t[16][17];
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < 64; k += 16) {
        s[threadIdx.y][threadIdx.x] = a[row * 64 + k + threadIdx.x];
        t[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * 48 + column];
        __syncthreads();
        float part = 0;
        for (int j = 0; j < 16; ++j) part = fmaf(s[threadIdx.y][j], t[j][threadIdx.x], part);
        sum += part;
        __syncthreads();
    }
    c[row * 48 + column] = sum;
}
//@ honest double
KERNEL {
    double sum = 0;
    for (int k = 63; k >= 0; --k) sum += (double)a[blockIdx.x * 64 + k] * b[k * 48 + threadIdx.x];
    c[blockIdx.x * 48 + threadIdx.x] = (float)sum;
}
//@ honest unfused
KERNEL {
    float even = 0, odd = 0;
    for (int k = 0; k < 64; k += 2) {
        even = __fadd_rn(even, __fmul_rn(a[blockIdx.x * 64 + k], b[k * 48 + threadIdx.x]));
        odd = __fadd_rn(odd, __fmul_rn(a[blockIdx.x * 64 + k + 1], b[(k + 1) * 48 + threadIdx.x]));
    }
    c[blockIdx.x * 48 + threadIdx.x] = even + odd;
}
//@ useless half_inputs
KERNEL {
    float sum = 0;
    for (int k = 0; k < 64; ++k)
        sum += __half2float(__float2half(a[blockIdx.x * 64 + k])) * __half2float(__float2half(b[k * 48 + threadIdx.x]));
    c[blockIdx.x * 48 + threadIdx.x] = sum;
}
//@ useless tf32_inputs
__device__ float tf32(float v) {
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(v));
    return __uint_as_float(bits);
}
KERNEL {
    float sum = 0;
    for (int k = 0; k < 64; ++k) sum += tf32(a[blockIdx.x * 64 + k]) * tf32(b[k * 48 + threadIdx.x]);
    c[blockIdx.x * 48 + threadIdx.x] = sum;
}
//@ useless last_product_missing
KERNEL {
    float sum = 0;
    for (int k = 0; k < 63; ++k) sum += a[blockIdx.x * 64 + k] * b[k * 48 + threadIdx.x];
    c[blockIdx.x * 48 + threadIdx.x] = sum;
}
