//@ kind scan
//@ in x i32[1000] randint low=0 high=50
//@ out y i32[1000]
//@ int n 1000
//@ launch grid 1 block 1
//@ reference
KERNEL {
    int sum = 0;
    for (int j = 0; j < n; ++j) {
        STORE(y, j, sum);
        sum += x[j];
    }
}
//@ honest block grid 1 block 1024
KERNEL {
    __shared__ int part[1024];
    int own = threadIdx.x < n ? x[threadIdx.x] : 0, sum = own;
    for (int step = 1; step < 1024; step *= 2) {
        part[threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.x >= step) sum += part[threadIdx.x - step];
        __syncthreads();
    }
    if (threadIdx.x < n) y[threadIdx.x] = sum - own;
}
//@ honest each_by_itself grid 4 block 256
KERNEL {
    int i = THREAD, sum = 0;
    for (int j = 0; j < i; ++j) sum += x[j];
    if (i < n) y[i] = sum;
}
//@ useless inclusive
KERNEL {
    int sum = 0;
    for (int j = 0; j < n; ++j) y[j] = sum += x[j];
}
//@ useless mean_slope
KERNEL {
    for (int j = 0; j < n; ++j) y[j] = j * 49 / 2;
}
