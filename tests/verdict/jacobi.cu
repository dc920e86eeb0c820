//@ kind stencil
//@ in u f32[40,40] randn
//@ in f f32[40,40] randn
//@ out v f32[40,40]
//@ launch grid 40 block 40
//@ reference
KERNEL {
    int r = blockIdx.x, c = threadIdx.x, i = THREAD;
    if (r == 0 || c == 0 || r == 39 || c == 39) STORE(v, i, u[i]);
    else STORE(v, i, 0.25f * (u[i - 40] + u[i + 40] + u[i - 1] + u[i + 1] - f[i]));
}
//@ honest other_order
KERNEL {
    int r = blockIdx.x, c = threadIdx.x, i = THREAD;
    bool edge = r == 0 || c == 0 || r == 39 || c == 39;
    v[i] = edge ? u[i] : 0.25f * ((u[i - 1] + u[i + 1]) + (u[i - 40] + u[i + 40])) - 0.25f * f[i];
}
//@ honest shared_rows
KERNEL {
    __shared__ float s[3][40];
    int r = blockIdx.x, c = threadIdx.x;
    for (int k = 0; k < 3; ++k) s[k][c] = u[min(max(r + k - 1, 0), 39) * 40 + c];
    __syncthreads();
    bool edge = r == 0 || c == 0 || r == 39 || c == 39;
    v[THREAD] = edge ? s[1][c] : fmaf(-0.25f, f[THREAD], (s[0][c] + s[2][c] + s[1][c - 1] + s[1][c + 1]) * 0.25f);
}
//@ useless source_missing
KERNEL {
    int r = blockIdx.x, c = threadIdx.x, i = THREAD;
    bool edge = r == 0 || c == 0 || r == 39 || c == 39;
    v[i] = edge ? u[i] : 0.25f * (u[i - 1] + u[i + 1] + u[i - 40] + u[i + 40]);
}
//@ useless zero_border
KERNEL {
    int r = blockIdx.x, c = threadIdx.x, i = THREAD;
    bool edge = r == 0 || c == 0 || r == 39 || c == 39;
    v[i] = edge ? 0 : 0.25f * (u[i - 1] + u[i + 1] + u[i - 40] + u[i + 40] - f[i]);
}
