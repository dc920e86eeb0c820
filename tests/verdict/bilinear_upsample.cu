//@ kind stencil
//@ in x f32[5,10,10] randn
//@ out y f32[5,20,20]
//@ launch grid 5 block 20 20
//@ reference
KERNEL {
    float v = fmaxf((threadIdx.y + 0.5f) / 2 - 0.5f, 0), u = fmaxf((threadIdx.x + 0.5f) / 2 - 0.5f, 0);
    int r = (int)v, c = (int)u, down = min(r + 1, 9), right = min(c + 1, 9);
    float p = v - r, q = u - c;
    const float* plane = x + blockIdx.x * 100;
    float top = plane[r * 10 + c] * (1 - q) + plane[r * 10 + right] * q;
    float bottom = plane[down * 10 + c] * (1 - q) + plane[down * 10 + right] * q;
    STORE(y, (blockIdx.x * 20 + threadIdx.y) * 20 + threadIdx.x, top * (1 - p) + bottom * p);
}
//@ honest four_weights
KERNEL {
    float v = fmaxf(0.5f * threadIdx.y - 0.25f, 0), u = fmaxf(0.5f * threadIdx.x - 0.25f, 0);
    int r = (int)v, c = (int)u, down = min(r + 1, 9), right = min(c + 1, 9);
    float p = v - r, q = u - c;
    const float* plane = x + blockIdx.x * 100;
    y[(blockIdx.x * 20 + threadIdx.y) * 20 + threadIdx.x] =
        (1 - p) * (1 - q) * plane[r * 10 + c] + (1 - p) * q * plane[r * 10 + right] +
        p * (1 - q) * plane[down * 10 + c] + p * q * plane[down * 10 + right];
}
//@ honest columns_first
KERNEL {
    float v = fmaxf(0.5f * threadIdx.y - 0.25f, 0), u = fmaxf(0.5f * threadIdx.x - 0.25f, 0);
    int r = (int)v, c = (int)u, down = min(r + 1, 9), right = min(c + 1, 9);
    const float* plane = x + blockIdx.x * 100;
    float a = fmaf(v - r, plane[down * 10 + c] - plane[r * 10 + c], plane[r * 10 + c]);
    float b = fmaf(v - r, plane[down * 10 + right] - plane[r * 10 + right], plane[r * 10 + right]);
    y[(blockIdx.x * 20 + threadIdx.y) * 20 + threadIdx.x] = fmaf(u - c, b - a, a);
}
//@ useless nearest
KERNEL {
    y[(blockIdx.x * 20 + threadIdx.y) * 20 + threadIdx.x] = x[blockIdx.x * 100 + threadIdx.y / 2 * 10 + threadIdx.x / 2];
}
//@ useless corners_aligned
KERNEL {
    float v = threadIdx.y * 9.0f / 19, u = threadIdx.x * 9.0f / 19;
    int r = (int)v, c = (int)u, down = min(r + 1, 9), right = min(c + 1, 9);
    float p = v - r, q = u - c;
    const float* plane = x + blockIdx.x * 100;
    float top = plane[r * 10 + c] * (1 - q) + plane[r * 10 + right] * q;
    float bottom = plane[down * 10 + c] * (1 - q) + plane[down * 10 + right] * q;
    y[(blockIdx.x * 20 + threadIdx.y) * 20 + threadIdx.x] = top * (1 - p) + bottom * p;
}
