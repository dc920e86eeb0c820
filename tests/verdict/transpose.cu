//@ kind data movement
//@ in x f32[40,70] randn
//@ out y f32[70,40]
//@ launch grid 70 block 40
//@ reference
KERNEL {
    STORE(y, THREAD, x[threadIdx.x * 70 + blockIdx.x]);
}
//@ honest tiles grid 3 2 block 32 32
KERNEL {
    __shared__ float tile[32][33];
    int r = blockIdx.y * 32 + threadIdx.y, c = blockIdx.x * 32 + threadIdx.x;
    if (r < 40 && c < 70) tile[threadIdx.y][threadIdx.x] = x[r * 70 + c];
    __syncthreads();
    r = blockIdx.x * 32 + threadIdx.y, c = blockIdx.y * 32 + threadIdx.x;
    if (r < 70 && c < 40) y[r * 40 + c] = tile[threadIdx.x][threadIdx.y];
}
//@ honest written_by_columns grid 40 block 70
KERNEL {
    y[threadIdx.x * 40 + blockIdx.x] = x[THREAD];
}
//@ useless reshaped
KERNEL {
    y[THREAD] = x[THREAD];
}
//@ useless tail_of_tiles_missing
KERNEL {
    if (blockIdx.x < 64 && threadIdx.x < 32) y[THREAD] = x[threadIdx.x * 70 + blockIdx.x];
}
