//@ kind matrix product
//@ in a f32[60] randn
//@ in b f32[50] randn
//@ out c f32[60,50]
//@ launch grid 60 block 50
//@ reference
KERNEL {
    STORE(c, THREAD, a[blockIdx.x] * b[threadIdx.x]);
}
//@ honest flat grid 3 block 256
KERNEL {
    for (int i = THREAD; i < 3000; i += 768) c[i] = b[i % 50] * a[i / 50];
}
//@ honest row_of_each_thread grid 1 block 60
KERNEL {
    float v = a[threadIdx.x];
    for (int j = 0; j < 50; ++j) c[threadIdx.x * 50 + j] = v * b[j];
}
//@ useless sum
KERNEL {
    c[THREAD] = a[blockIdx.x] + b[threadIdx.x];
}
//@ useless transposed
KERNEL {
    c[threadIdx.x * 60 + blockIdx.x] = a[blockIdx.x] * b[threadIdx.x];
}
