//@ kind integers and order
//@ in x i32[12,60] randint low=0 high=15
//@ out at i32[12,60]
//@ launch grid 12 block 60
//@ reference
KERNEL {
    const int* row = x + blockIdx.x * 60;
    int rank = 0;
    for (int j = 0; j < 60; ++j) rank += row[j] < row[threadIdx.x] || (row[j] == row[threadIdx.x] && j < threadIdx.x);
    STORE(at, blockIdx.x * 60 + rank, threadIdx.x);
}
//@ honest ties_the_other_way
KERNEL {
    const int* row = x + blockIdx.x * 60;
    int rank = 0;
    for (int j = 0; j < 60; ++j) rank += row[j] < row[threadIdx.x] || (row[j] == row[threadIdx.x] && j > threadIdx.x);
    at[blockIdx.x * 60 + rank] = threadIdx.x;
}
//@ honest counting grid 12 block 1
KERNEL {
    int start[16] = {};
    for (int j = 0; j < 60; ++j) ++start[x[blockIdx.x * 60 + j] + 1];
    for (int v = 1; v < 16; ++v) start[v] += start[v - 1];
    for (int j = 0; j < 60; ++j) at[blockIdx.x * 60 + start[x[blockIdx.x * 60 + j]]++] = j;
}
//@ useless same_index_for_equals
KERNEL {
    const int* row = x + blockIdx.x * 60;
    int rank = 0, first = threadIdx.x;
    for (int j = 0; j < 60; ++j) rank += row[j] < row[threadIdx.x] || (row[j] == row[threadIdx.x] && j < threadIdx.x);
    for (int j = 59; j >= 0; --j) if (row[j] == row[threadIdx.x]) first = j;
    at[blockIdx.x * 60 + rank] = first;
}
//@ useless ranks
KERNEL {
    const int* row = x + blockIdx.x * 60;
    int rank = 0;
    for (int j = 0; j < 60; ++j) rank += row[j] < row[threadIdx.x] || (row[j] == row[threadIdx.x] && j < threadIdx.x);
    at[THREAD] = rank;
}
