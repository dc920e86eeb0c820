//@ kind elementwise
//@ in x f32[40,100] randn
//@ in exponent f32[40] uniform low=-6 high=6
//@ out y f32[40,100]
//@ copy x
//@ launch grid 40 block 100
//@ reference
KERNEL {
    STORE(y, THREAD, x[THREAD] * exp10f(exponent[blockIdx.x]));
}
//@ honest by_powf
KERNEL {
    y[THREAD] = powf(10.0f, exponent[blockIdx.x]) * x[THREAD];
}
//@ honest double
KERNEL {
    y[THREAD] = (float)(x[THREAD] * exp10((double)exponent[blockIdx.x]));
}
//@ useless small_rows_zero
KERNEL {
    y[THREAD] = exponent[blockIdx.x] < -1 ? 0 : x[THREAD] * exp10f(exponent[blockIdx.x]);
}
