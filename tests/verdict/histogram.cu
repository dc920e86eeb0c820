//@ kind integers and order
//@ in x i32[5000] randint low=0 high=64
//@ out count i32[64]
//@ int n 5000
//@ launch grid 64 block 1
//@ reference
KERNEL {
    int sum = 0;
    for (int j = 0; j < n; ++j) sum += x[j] == blockIdx.x;
    STORE(count, blockIdx.x, sum);
}
//@ honest atomics grid 1 block 256
KERNEL {
    __shared__ int part[64];
    if (threadIdx.x < 64) part[threadIdx.x] = 0;
    __syncthreads();
    for (int j = threadIdx.x; j < n; j += 256) atomicAdd(&part[x[j]], 1);
    __syncthreads();
    if (threadIdx.x < 64) count[threadIdx.x] = part[threadIdx.x];
}
//@ honest ballots grid 64 block 32
KERNEL {
    int sum = 0;
    for (int j = 0; j < n; j += 32)
        sum += __popc(__ballot_sync(ALL, j + threadIdx.x < n && x[min(j + (int)threadIdx.x, n - 1)] == blockIdx.x));
    if (threadIdx.x == 0) count[blockIdx.x] = sum;
}
//@ useless mean_count
KERNEL {
    count[blockIdx.x] = n / 64;
}
//@ useless sample
KERNEL {
    int sum = 0;
    for (int j = 0; j < n; j += 2) sum += 2 * (x[j] == blockIdx.x);
    count[blockIdx.x] = sum;
}
