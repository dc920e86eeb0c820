// Grids of pixels and cells.

#define RADIUS 3
__constant__ float weights[(2 * RADIUS + 1) * (2 * RADIUS + 1)];

// Convolution by a 7 × 7 kernel in constant memory; pixels outside repeat the border.
extern "C" __global__ void convolve(const float* in, float* out, int w, int h) {
    __shared__ float tile[8 + 2 * RADIUS][16 + 2 * RADIUS];
    int x0 = blockIdx.x * 16, y0 = blockIdx.y * 8;
    for (int i = threadIdx.y * 16 + threadIdx.x; i < (8 + 2 * RADIUS) * (16 + 2 * RADIUS); i += 128) {
        int r = i / (16 + 2 * RADIUS), c = i % (16 + 2 * RADIUS);
        int y = min(max(y0 + r - RADIUS, 0), h - 1), x = min(max(x0 + c - RADIUS, 0), w - 1);
        tile[r][c] = in[y * w + x];
    }
    __syncthreads();
    int x = x0 + threadIdx.x, y = y0 + threadIdx.y;
    if (x >= w || y >= h) return;
    float sum = 0;
#pragma unroll
    for (int r = 0; r <= 2 * RADIUS; r++)
#pragma unroll
        for (int c = 0; c <= 2 * RADIUS; c++)
            sum = fmaf(weights[r * (2 * RADIUS + 1) + c], tile[threadIdx.y + r][threadIdx.x + c], sum);
    out[y * w + x] = sum;
}

// Transposes by a 32 × 32 tile: without one, with a column more, and with permuted columns.
extern "C" __global__ void transpose_naive(const float* in, float* out, int rows, int cols) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (r < rows && c < cols) out[c * rows + r] = in[r * cols + c];
}

template <int PAD, bool SWIZZLE> __device__ void transpose(const float* in, float* out, int rows, int cols) {
    __shared__ float tile[32][32 + PAD];
    int c0 = blockIdx.x * 32, r0 = blockIdx.y * 32, t = threadIdx.x;
    for (int y = threadIdx.y; y < 32; y += blockDim.y)
        if (r0 + y < rows && c0 + t < cols) tile[y][SWIZZLE ? t ^ y : t] = in[(r0 + y) * cols + c0 + t];
    __syncthreads();
    for (int y = threadIdx.y; y < 32; y += blockDim.y)
        if (c0 + y < cols && r0 + t < rows) out[(c0 + y) * rows + r0 + t] = tile[t][SWIZZLE ? y ^ t : y];
}

extern "C" __global__ void transpose_padded(const float* in, float* out, int rows, int cols) {
    transpose<1, false>(in, out, rows, cols);
}

extern "C" __global__ void transpose_swizzled(const float* in, float* out, int rows, int cols) {
    transpose<0, true>(in, out, rows, cols);
}

// A step of the game of life on a torus.
extern "C" __global__ void life(const unsigned char* in, unsigned char* out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    int n = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++)
            if (dx || dy) n += in[(y + dy + h) % h * w + (x + dx + w) % w];
    out[y * w + x] = n == 3 || (n == 2 && in[y * w + x]);
}

// The median of nine pixels by a network of exchanges; the border is copied.
extern "C" __global__ void median(const unsigned char* in, unsigned char* out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    if (x == 0 || y == 0 || x == w - 1 || y == h - 1) {
        out[y * w + x] = in[y * w + x];
        return;
    }
    unsigned char p[9];
    for (int i = 0; i < 9; i++) p[i] = in[(y + i / 3 - 1) * w + x + i % 3 - 1];
    auto order = [&](int a, int b) {
        unsigned char lo = min(p[a], p[b]), hi = max(p[a], p[b]);
        p[a] = lo, p[b] = hi;
    };
    order(1, 2), order(4, 5), order(7, 8), order(0, 1), order(3, 4), order(6, 7), order(1, 2);
    order(4, 5), order(7, 8), order(0, 3), order(5, 8), order(4, 7), order(3, 6), order(1, 4);
    order(2, 5), order(4, 7), order(4, 2), order(6, 4), order(4, 2);
    out[y * w + x] = p[4];
}

// Bilinear scaling of pixels of four bytes, with fixed-point weights.
extern "C" __global__ void resize(const uchar4* in, uchar4* out, int w, int h, int ow, int oh) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= ow || y >= oh) return;
    int fx = (int)((long long)x * (w - 1) * 256 / (ow - 1)), fy = (int)((long long)y * (h - 1) * 256 / (oh - 1));
    int x0 = fx >> 8, y0 = fy >> 8, x1 = min(x0 + 1, w - 1), y1 = min(y0 + 1, h - 1);
    fx &= 255, fy &= 255;
    uchar4 a = in[y0 * w + x0], b = in[y0 * w + x1], c = in[y1 * w + x0], d = in[y1 * w + x1];
    auto mix = [&](int a, int b, int c, int d) {
        return (unsigned char)(((a * (256 - fx) + b * fx) * (256 - fy) + (c * (256 - fx) + d * fx) * fy) >> 16);
    };
    out[y * ow + x] = make_uchar4(mix(a.x, b.x, c.x, d.x), mix(a.y, b.y, c.y, d.y), mix(a.z, b.z, c.z, d.z),
                                  mix(a.w, b.w, c.w, d.w));
}

// How long points stay, in double precision.
extern "C" __global__ void mandelbrot(unsigned short* out, int w, int h, int most) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    double cr = 3.0 * x / w - 2.0, ci = 2.0 * y / h - 1.0, a = 0, b = 0;
    int i = 0;
    for (; i < most && a * a + b * b < 4; i++) {
        double t = __dadd_rn(__dsub_rn(__dmul_rn(a, a), __dmul_rn(b, b)), cr);
        b = __dadd_rn(__dmul_rn(2.0 * a, b), ci);
        a = t;
    }
    out[y * w + x] = i;
}

// A Jacobi step with six neighbours; planes go through registers.
extern "C" __global__ void jacobi3d(const float* in, float* out, int nx, int ny, int nz) {
    __shared__ float s[10][34];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, plane = nx * ny;
    int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    bool inside = x < nx && y < ny, inner = x > 0 && y > 0 && x < nx - 1 && y < ny - 1;
    int at = y * nx + x;
    float below = 0, here = inside ? in[at] : 0, above = inside && nz > 1 ? in[at + plane] : 0;
    if (inside) out[at] = here;
    for (int z = 1; z < nz; z++) {
        below = here, here = above;
        above = inside && z + 1 < nz ? in[at + (z + 1) * plane] : 0;
        __syncthreads();
        s[ty][tx] = here;
        if (inside) {
            const float* p = in + z * plane + at;
            if (threadIdx.x == 0 && x > 0) s[ty][0] = p[-1];
            if (threadIdx.x == 31 && x + 1 < nx) s[ty][33] = p[1];
            if (threadIdx.y == 0 && y > 0) s[0][tx] = p[-nx];
            if (threadIdx.y == 7 && y + 1 < ny) s[9][tx] = p[nx];
        }
        __syncthreads();
        if (!inside) continue;
        bool edge = !inner || z == nz - 1;
        float sum = s[ty][tx - 1] + s[ty][tx + 1] + s[ty - 1][tx] + s[ty + 1][tx] + below + above;
        out[at + z * plane] = edge ? here : sum * (1.0f / 6);
    }
}
