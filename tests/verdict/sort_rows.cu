//@ kind integers and order
//@ in x f32[16,64] randn
//@ out y f32[16,64]
//@ launch grid 16 block 64
//@ reference
KERNEL {
    const float* row = x + blockIdx.x * 64;
    int rank = 0;
    for (int j = 0; j < 64; ++j) rank += row[j] < row[threadIdx.x] || (row[j] == row[threadIdx.x] && j < threadIdx.x);
    STORE(y, blockIdx.x * 64 + rank, row[threadIdx.x]);
}
//@ honest bitonic
KERNEL {
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = x[THREAD];
    for (int size = 2; size <= 64; size *= 2)
        for (int step = size / 2; step > 0; step /= 2) {
            __syncthreads();
            int other = t ^ step;
            if (other > t && ((s[t] > s[other]) == ((t & size) == 0))) {
                float v = s[t];
                s[t] = s[other];
                s[other] = v;
            }
        }
    __syncthreads();
    y[THREAD] = s[t];
}
//@ honest insertion grid 16 block 1
KERNEL {
    float* row = y + blockIdx.x * 64;
    for (int j = 0; j < 64; ++j) {
        float v = x[blockIdx.x * 64 + j];
        int k = j;
        for (; k > 0 && row[k - 1] > v; --k) row[k] = row[k - 1];
        row[k] = v;
    }
}
//@ useless descending
KERNEL {
    const float* row = x + blockIdx.x * 64;
    int rank = 0;
    for (int j = 0; j < 64; ++j) rank += row[j] > row[threadIdx.x] || (row[j] == row[threadIdx.x] && j < threadIdx.x);
    y[blockIdx.x * 64 + rank] = row[threadIdx.x];
}
//@ useless one_pass_of_bubbles grid 16 block 1
KERNEL {
    float* row = y + blockIdx.x * 64;
    for (int j = 0; j < 64; ++j) row[j] = x[blockIdx.x * 64 + j];
    for (int j = 1; j < 64; ++j) if (row[j] < row[j - 1]) {
        float v = row[j];
        row[j] = row[j - 1];
        row[j - 1] = v;
    }
}
