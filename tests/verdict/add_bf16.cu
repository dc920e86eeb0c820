//@ kind half precision
//@ in a bf16[4096] randn
//@ in b bf16[4096] randn
//@ out c bf16[4096]
//@ launch grid 16 block 256
//@ reference
KERNEL {
    int i = THREAD;
    STORE(c, i, __bfloat162float(a[i]) + __bfloat162float(b[i]));
}
//@ honest in_bfloat16
KERNEL {
    int i = THREAD;
    c[i] = __hadd(a[i], b[i]);
}
//@ honest pairs grid 8 block 256
KERNEL {
    int i = THREAD;
    ((__nv_bfloat162*)c)[i] = __hadd2(((const __nv_bfloat162*)a)[i], ((const __nv_bfloat162*)b)[i]);
}
//@ useless missing_term
KERNEL {
    int i = THREAD;
    c[i] = a[i];
}
//@ useless difference
KERNEL {
    int i = THREAD;
    c[i] = __hsub(a[i], b[i]);
}
