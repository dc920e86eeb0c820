//@ kind data movement
//@ in table f32[100,24] randn
//@ in at i32[64] randint low=0 high=100
//@ out y f32[64,24]
//@ launch grid 64 block 24
//@ reference
KERNEL {
    STORE(y, THREAD, table[at[blockIdx.x] * 24 + threadIdx.x]);
}
//@ honest flat grid 6 block 256
KERNEL {
    int i = THREAD;
    y[i] = table[at[i / 24] * 24 + i % 24];
}
//@ honest vectors_of_four grid 64 block 6
KERNEL {
    ((float4*)y)[THREAD] = ((const float4*)table)[at[blockIdx.x] * 6 + threadIdx.x];
}
//@ useless rows_in_order
KERNEL {
    y[THREAD] = table[THREAD];
}
//@ useless next_row
KERNEL {
    y[THREAD] = table[(at[blockIdx.x] + 1) % 100 * 24 + threadIdx.x];
}
