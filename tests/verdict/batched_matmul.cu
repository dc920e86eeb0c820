//@ kind matrix product
//@ in a f32[6,12,20] randn
//@ in b f32[6,20,16] randn
//@ out c f32[6,12,16]
//@ launch grid 12 6 block 16
//@ reference
KERNEL {
    float sum = 0;
    for (int k = 0; k < 20; ++k)
        sum += a[(blockIdx.y * 12 + blockIdx.x) * 20 + k] * b[(blockIdx.y * 20 + k) * 16 + threadIdx.x];
    STORE(c, (blockIdx.y * 12 + blockIdx.x) * 16 + threadIdx.x, sum);
}
//@ honest rank_one_updates grid 6 block 192
KERNEL {
    int row = threadIdx.x / 16, column = threadIdx.x % 16;
    __shared__ float p[12], q[16];
    float sum = 0;
    for (int k = 19; k >= 0; --k) {
        if (column == 0) p[row] = a[(blockIdx.x * 12 + row) * 20 + k];
        if (row == 0) q[column] = b[(blockIdx.x * 20 + k) * 16 + column];
        __syncthreads();
        sum += p[row] * q[column];
        __syncthreads();
    }
    c[blockIdx.x * 192 + threadIdx.x] = sum;
}
//@ honest double
KERNEL {
    double sum = 0;
    for (int k = 0; k < 20; ++k)
        sum += (double)a[(blockIdx.y * 12 + blockIdx.x) * 20 + k] * b[(blockIdx.y * 20 + k) * 16 + threadIdx.x];
    c[(blockIdx.y * 12 + blockIdx.x) * 16 + threadIdx.x] = (float)sum;
}
//@ useless first_matrix_for_all
KERNEL {
    float sum = 0;
    for (int k = 0; k < 20; ++k)
        sum += a[(blockIdx.y * 12 + blockIdx.x) * 20 + k] * b[k * 16 + threadIdx.x];
    c[(blockIdx.y * 12 + blockIdx.x) * 16 + threadIdx.x] = sum;
}
