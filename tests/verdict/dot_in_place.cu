//@ kind reduction
//@ inout y f32[1] randn
//@ in a f32[10000] randn
//@ in b f32[10000] randn
//@ copy a
//@ launch grid 1 block 256
//@ reference
KERNEL {
    float sum = 0;
    for (int j = threadIdx.x; j < 10000; j += 256) sum += a[j] * b[j];
    sum = tree_sum(sum);
    if (threadIdx.x == 0) STORE(y, 0, y[0] + sum);
}
//@ honest atomics_of_all_threads grid 40 block 250
KERNEL {
    atomicAdd(y, a[THREAD] * b[THREAD]);
}
//@ honest atomics_of_blocks grid 20 block 256
KERNEL {
    float sum = 0;
    for (int j = THREAD; j < 10000; j += 5120) sum += a[j] * b[j];
    sum = tree_sum(sum);
    if (threadIdx.x == 0) atomicAdd(y, sum);
}
//@ useless left_alone
KERNEL {}
//@ useless not_added
KERNEL {
    float sum = 0;
    for (int j = threadIdx.x; j < 10000; j += 256) sum += a[j] * b[j];
    sum = tree_sum(sum);
    if (threadIdx.x == 0) y[0] = sum;
}
//@ useless last_block_only grid 20 block 256
KERNEL {
    float sum = 0;
    for (int j = THREAD; j < 10000; j += 5120) sum += a[j] * b[j];
    sum = tree_sum(sum);
    if (threadIdx.x == 0 && blockIdx.x == 19) y[0] += sum;
}
