// Architectures: 80
// The mathematics library in double and single precision.

#define EACH(T, S)                                                                                 \
    int i = blockIdx.x * blockDim.x + threadIdx.x;                                                 \
    if (i >= n) return;                                                                            \
    T a = x[i], b = y[i], *o = out + i * 32;                                                       \
    o[0] = sin##S(a), o[1] = cos##S(a), o[2] = tan##S(a), o[3] = asin##S(b), o[4] = acos##S(b);     \
    o[5] = atan##S(a), o[6] = atan2##S(a, b), o[7] = sinh##S(b), o[8] = cosh##S(b);                \
    o[9] = tanh##S(b), o[10] = asinh##S(a), o[11] = acosh##S(fabs##S(a) + 1), o[12] = atanh##S(b); \
    o[13] = exp##S(b * 20), o[14] = exp2##S(b * 9), o[15] = exp10##S(b), o[16] = expm1##S(b);      \
    o[17] = log##S(fabs##S(a)), o[18] = log2##S(fabs##S(a)), o[19] = log10##S(fabs##S(a));         \
    o[20] = log1p##S(b), o[21] = pow##S(fabs##S(a), b * 3), o[22] = cbrt##S(a);                    \
    o[23] = hypot##S(a, b), o[24] = fmod##S(a, b), o[25] = rint##S(a), o[26] = ldexp##S(b, 5);     \
    o[27] = erf##S(b), o[28] = rsqrt##S(fabs##S(a)), o[29] = nextafter##S(a, b);                   \
    o[30] = round##S(a) + trunc##S(a) * 3, o[31] = fdim##S(a, b) + fmax##S(a, b) * copysign##S((T)1, b)

extern "C" __global__ void double_functions(const double* x, const double* y, double* out, int n) {
    EACH(double, );
}

extern "C" __global__ void float_functions(const float* x, const float* y, float* out, int n) {
    EACH(float, f);
}

// Rounding by name: nearest is what everything else uses.
extern "C" __global__ void directed(const double* x, const double* y, double* d, float* f, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double a = x[i], b = y[i];
    d += i * 8;
    d[0] = __dadd_ru(a, b), d[1] = __dadd_rd(a, b), d[2] = __dmul_rz(a, b), d[3] = __ddiv_ru(a, b);
    d[4] = __dsqrt_rd(fabs(a)), d[5] = __drcp_ru(b), d[6] = __fma_rd(a, b, a), d[7] = __dsub_rz(a, b);
    float p = (float)a, q = (float)b;
    f += i * 8;
    f[0] = __fadd_ru(p, q), f[1] = __fadd_rd(p, q), f[2] = __fmul_rz(p, q), f[3] = __fdiv_ru(p, q);
    f[4] = __fsqrt_rd(fabsf(p)), f[5] = __frcp_ru(q), f[6] = __fmaf_rd(p, q, p), f[7] = __double2float_ru(a);
}
