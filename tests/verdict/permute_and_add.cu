//@ kind data movement
//@ in x f32[8,10,12] randn
//@ in shift f32[12] randn
//@ out y f32[12,8,10]
//@ launch grid 12 block 80
//@ reference
KERNEL {
    STORE(y, THREAD, x[threadIdx.x * 12 + blockIdx.x] + shift[blockIdx.x]);
}
//@ honest read_in_order grid 80 block 12
KERNEL {
    y[threadIdx.x * 80 + blockIdx.x] = shift[threadIdx.x] + x[THREAD];
}
//@ honest double
KERNEL {
    y[THREAD] = (float)((double)shift[blockIdx.x] + x[threadIdx.x * 12 + blockIdx.x]);
}
//@ useless other_axes
KERNEL {
    int j = threadIdx.x % 10, i = threadIdx.x / 10;
    y[THREAD] = x[(j % 8 * 10 + i) * 12 + blockIdx.x] + shift[blockIdx.x];
}
//@ useless shift_missing
KERNEL {
    y[THREAD] = x[threadIdx.x * 12 + blockIdx.x];
}
