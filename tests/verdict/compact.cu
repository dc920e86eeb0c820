//@ kind data movement
//@ in x i32[600] randint low=-50 high=50
//@ out y i32[600]
//@ out count i32[1]
//@ launch grid 1 block 1
//@ reference
KERNEL {
    int kept = 0;
    for (int j = 0; j < 600; ++j) kept += x[j] > 0;
    STORE(count, 0, kept);
    int to = 0;
    for (int j = 0; j < 600; ++j) if (x[j] > 0) {
        STORE(y, to, x[j]);
        ++to;
    }
    for (; to < 600; ++to) STORE(y, to, 0);
}
//@ honest scan grid 1 block 1024
KERNEL {
    __shared__ int part[1024];
    bool kept = threadIdx.x < 600 && x[min((int)threadIdx.x, 599)] > 0;
    int sum = kept;
    for (int step = 1; step < 1024; step *= 2) {
        part[threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.x >= step) sum += part[threadIdx.x - step];
        __syncthreads();
    }
    part[threadIdx.x] = sum;
    __syncthreads();
    int all = part[1023];
    if (kept) y[sum - 1] = x[threadIdx.x];
    if (threadIdx.x >= all && threadIdx.x < 600) y[threadIdx.x] = 0;
    if (threadIdx.x == 0) count[0] = all;
}
//@ honest ballots grid 1 block 32
KERNEL {
    int to = 0;
    for (int j = threadIdx.x; j < 608; j += 32) {
        bool kept = j < 600 && x[min(j, 599)] > 0;
        unsigned votes = __ballot_sync(ALL, kept);
        if (kept) y[to + __popc(votes & ((1u << threadIdx.x) - 1))] = x[j];
        to += __popc(votes);
    }
    for (int j = to + threadIdx.x; j < 600; j += 32) y[j] = 0;
    if (threadIdx.x == 0) count[0] = to;
}
//@ useless zeros_in_place
KERNEL {
    int kept = 0;
    for (int j = 0; j < 600; ++j) kept += x[j] > 0, y[j] = max(x[j], 0);
    count[0] = kept;
}
//@ useless not_negative
KERNEL {
    int to = 0;
    for (int j = 0; j < 600; ++j) if (x[j] >= 0) y[to++] = x[j];
    count[0] = to;
    for (; to < 600; ++to) y[to] = 0;
}
