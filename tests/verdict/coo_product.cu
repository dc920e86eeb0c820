//@ kind sparse
//@ in value f32[800] randn
//@ in row i32[800] randint low=0 high=40
//@ in column i32[800] randint low=0 high=60
//@ in x f32[60] randn
//@ out y f32[40]
//@ copy x
//@ launch grid 40 block 1
//@ reference
KERNEL {
    float sum = 0;
    for (int k = 0; k < 800; ++k) if (row[k] == blockIdx.x) sum += value[k] * x[column[k]];
    STORE(y, blockIdx.x, sum);
}
//@ honest atomics grid 1 block 256
KERNEL {
    if (threadIdx.x < 40) y[threadIdx.x] = 0;
    __syncthreads();
    for (int k = threadIdx.x; k < 800; k += 256) atomicAdd(&y[row[k]], value[k] * x[column[k]]);
}
//@ honest tree grid 40 block 64
KERNEL {
    float sum = 0;
    for (int k = threadIdx.x; k < 800; k += 64) if (row[k] == blockIdx.x) sum += value[k] * x[column[k]];
    sum = tree_sum(sum);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
//@ useless duplicates_overwritten grid 1 block 1
KERNEL {
    for (int r = 0; r < 40; ++r) y[r] = 0;
    for (int k = 0; k < 800; ++k) y[row[k]] = value[k] * x[column[k]];
}
//@ useless transposed
KERNEL {
    float sum = 0;
    for (int k = 0; k < 800; ++k) if (column[k] == blockIdx.x) sum += value[k] * x[row[k]];
    y[blockIdx.x] = sum;
}
