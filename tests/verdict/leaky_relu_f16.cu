//@ kind half precision
//@ in x f16[4096] randn
//@ out y f16[4096]
//@ launch grid 16 block 256
//@ reference
KERNEL {
    int i = THREAD;
    float v = __half2float(x[i]);
    STORE(y, i, v > 0 ? v : 0.1f * v);
}
//@ honest in_half
KERNEL {
    int i = THREAD;
    y[i] = __hmax(x[i], __hmul(x[i], __float2half(0.1f)));
}
//@ honest pairs grid 8 block 256
KERNEL {
    int i = THREAD;
    __half2 v = ((const __half2*)x)[i];
    ((__half2*)y)[i] = __hmax2(v, __hmul2(v, __float2half2_rn(0.1f)));
}
//@ useless relu
KERNEL {
    int i = THREAD;
    y[i] = __hmax(x[i], __float2half(0.0f));
}
//@ useless slope_of_a_ninth
KERNEL {
    int i = THREAD;
    float v = __half2float(x[i]);
    y[i] = __float2half(v > 0 ? v : 0.111f * v);
}
