//@ kind sparse
//@ in value f32[80,10] randn
//@ in column i32[80,10] randint low=0 high=120
//@ in x f32[120] randn
//@ out y f32[80]
//@ copy x
//@ launch grid 80 block 1
//@ reference
KERNEL {
    float sum = 0;
    for (int k = 0; k < 10; ++k) sum += value[blockIdx.x * 10 + k] * x[column[blockIdx.x * 10 + k]];
    STORE(y, blockIdx.x, sum);
}
//@ honest thread_for_each_row grid 1 block 80
KERNEL {
    float even = 0, odd = 0;
    for (int k = 0; k < 10; k += 2) {
        even += value[threadIdx.x * 10 + k] * x[column[threadIdx.x * 10 + k]];
        odd += value[threadIdx.x * 10 + k + 1] * x[column[threadIdx.x * 10 + k + 1]];
    }
    y[threadIdx.x] = even + odd;
}
//@ honest warp grid 80 block 32
KERNEL {
    int i = blockIdx.x * 10 + threadIdx.x;
    float sum = warp_sum(threadIdx.x < 10 ? value[i] * x[column[i]] : 0.0f);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
//@ useless columns_ignored
KERNEL {
    float sum = 0;
    for (int k = 0; k < 10; ++k) sum += value[blockIdx.x * 10 + k] * x[k];
    y[blockIdx.x] = sum;
}
//@ useless half_values
KERNEL {
    float sum = 0;
    for (int k = 0; k < 10; ++k)
        sum += as_float(__float2half(value[blockIdx.x * 10 + k])) * x[column[blockIdx.x * 10 + k]];
    y[blockIdx.x] = sum;
}
