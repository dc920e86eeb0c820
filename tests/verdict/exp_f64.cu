//@ kind double precision
//@ in x f64[2048] randn
//@ out y f64[2048]
//@ launch grid 8 block 256
//@ reference
KERNEL {
    int i = THREAD;
    STORE(y, i, exp(x[i]) - x[i]);
}
//@ honest by_expm1
KERNEL {
    int i = THREAD;
    y[i] = expm1(x[i]) + (1.0 - x[i]);
}
//@ honest by_exp2
KERNEL {
    int i = THREAD;
    y[i] = exp2(x[i] * 1.4426950408889634) - x[i];
}
//@ useless single
KERNEL {
    int i = THREAD;
    y[i] = (double)expf((float)x[i]) - x[i];
}
//@ useless term_missing
KERNEL {
    int i = THREAD;
    y[i] = exp(x[i]);
}
