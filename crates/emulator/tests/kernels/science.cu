// Simulation, linear algebra and statistics.

// Accelerations of bodies (x, y, z, mass) by all others, tile by tile.
extern "C" __global__ void n_body(const float4* body, float4* acceleration, int n, float softening) {
    __shared__ float4 tile[128];
    int i = blockIdx.x * 128 + threadIdx.x;
    float4 me = body[min(i, n - 1)];
    float ax = 0, ay = 0, az = 0;
    for (int base = 0; base < n; base += 128) {
        int j = base + threadIdx.x;
        tile[threadIdx.x] = j < n ? body[j] : make_float4(0, 0, 0, 0);
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < 128; k++) {
            float4 o = tile[k];
            float dx = o.x - me.x, dy = o.y - me.y, dz = o.z - me.z;
            float r = rsqrtf(dx * dx + dy * dy + dz * dz + softening);
            float f = o.w * r * r * r;
            ax += dx * f, ay += dy * f, az += dz * f;
        }
        __syncthreads();
    }
    if (i < n) acceleration[i] = make_float4(ax, ay, az, 0);
}

// Philox4x32-10.
__device__ uint4 philox(uint4 c, uint2 k) {
#pragma unroll
    for (int i = 0; i < 10; i++) {
        unsigned h0 = __umulhi(0xd2511f53u, c.x), l0 = 0xd2511f53u * c.x;
        unsigned h1 = __umulhi(0xcd9e8d57u, c.z), l1 = 0xcd9e8d57u * c.z;
        c = make_uint4(h1 ^ c.y ^ k.x, l1, h0 ^ c.w ^ k.y, l0);
        k.x += 0x9e3779b9u, k.y += 0xbb67ae85u;
    }
    return c;
}

extern "C" __global__ void philox_fill(uint4* out, int n, uint2 key) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = philox(make_uint4(i, i * 3, i ^ 0x55, ~i), key);
}

// How many of the points lie in the circle.
extern "C" __global__ void monte_carlo(unsigned long long* inside, int rounds, uint2 key) {
    unsigned count = 0, i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int r = 0; r < rounds; r++) {
        uint4 v = philox(make_uint4(i, r, 0, 0), key);
        float x = (v.x >> 8) * 0x1p-24f, y = (v.y >> 8) * 0x1p-24f;
        float z = (v.z >> 8) * 0x1p-24f, w = (v.w >> 8) * 0x1p-24f;
        count += __fmaf_rn(x, x, __fmul_rn(y, y)) < 1.0f;
        count += __fmaf_rn(z, z, __fmul_rn(w, w)) < 1.0f;
    }
    bool odd = __syncthreads_or(count & 1), all = __syncthreads_and(count > 0);
    if (odd || all) {
        for (int d = 16; d; d >>= 1) count += __shfl_xor_sync(~0u, count, d);
        if ((threadIdx.x & 31) == 0) atomicAdd(inside, (unsigned long long)count);
    }
}

// The Cholesky factor of small symmetric matrices in place, a block for each; the upper part is zeroed.
extern "C" __global__ void cholesky(double* a, int n) {
    extern __shared__ double m[];
    a += (size_t)blockIdx.x * n * n;
    for (int i = threadIdx.x; i < n * n; i += blockDim.x) m[i] = a[i];
    __syncthreads();
    for (int k = 0; k < n; k++) {
        if (threadIdx.x == 0) m[k * n + k] = sqrt(m[k * n + k]);
        __syncthreads();
        for (int i = k + 1 + threadIdx.x; i < n; i += blockDim.x) m[i * n + k] /= m[k * n + k];
        __syncthreads();
        for (int e = threadIdx.x; e < n * n; e += blockDim.x) {
            int i = e / n, j = e % n;
            if (j > k && i >= j) m[e] -= m[i * n + k] * m[j * n + k];
        }
        __syncthreads();
    }
    for (int i = threadIdx.x; i < n * n; i += blockDim.x) a[i] = i % n > i / n ? 0 : m[i];
}

// Solves A x = b by elimination with row exchanges; one warp, a row of [A | b] in each lane.
extern "C" __global__ void lu_solve(const float* a, const float* b, float* x, int n, int batch) {
    int which = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x & 31;
    if (which >= batch) return;
    float row[33];
    a += (size_t)which * n * n;
    for (int j = 0; j < 32; j++) row[j] = lane < n && j < n ? a[lane * n + j] : (lane == j ? 1.f : 0.f);
    row[32] = lane < n ? b[which * n + lane] : 0;
    int pivot_of = -1;
    for (int k = 0; k < n; k++) {
        float best = pivot_of < 0 && lane < n ? fabsf(row[k]) : -1;
        int at = lane;
        for (int d = 16; d; d >>= 1) {
            float o = __shfl_xor_sync(~0u, best, d);
            int p = __shfl_xor_sync(~0u, at, d);
            if (o > best || (o == best && p < at)) best = o, at = p;
        }
        if (lane == at) pivot_of = k;
        float pivot = __shfl_sync(~0u, row[k], at), scale = lane == at ? 0 : row[k] / pivot;
        for (int j = 0; j < 33; j++) row[j] -= scale * __shfl_sync(~0u, row[j], at);
    }
    if (lane < n) x[which * n + pivot_of] = row[32] / row[pivot_of];
}

// Tridiagonal systems of one block by cyclic reduction in parallel.
extern "C" __global__ void tridiagonal(const double* lower, const double* diagonal, const double* upper,
                                       const double* right, double* x, int n) {
    extern __shared__ double buffer[];
    double *a = buffer, *b = a + n, *c = b + n, *d = c + n;
    int t = threadIdx.x, base = blockIdx.x * n;
    a[t] = t > 0 ? lower[base + t] : 0, b[t] = diagonal[base + t];
    c[t] = t < n - 1 ? upper[base + t] : 0, d[t] = right[base + t];
    __syncthreads();
    for (int s = 1; s < n; s <<= 1) {
        int i = max(t - s, 0), j = min(t + s, n - 1);
        double p = t - s >= 0 ? -a[t] / b[i] : 0, q = t + s < n ? -c[t] / b[j] : 0;
        double na = p * a[i], nc = q * c[j], nb = b[t] + p * c[i] + q * a[j], nd = d[t] + p * d[i] + q * d[j];
        __syncthreads();
        a[t] = na, b[t] = nb, c[t] = nc, d[t] = nd;
        __syncthreads();
    }
    x[base + t] = d[t] / b[t];
}

// Sparse matrix times vector: a part of a warp for each row, and by columns of padded rows.
template <int LANES> __device__ void csr(const int* start, const int* col, const double* v, const double* x,
                                         double* y, int rows) {
    int thread = blockIdx.x * blockDim.x + threadIdx.x, row = thread / LANES, lane = thread % LANES;
    double sum = 0;
    if (row < rows)
        for (int i = start[row] + lane; i < start[row + 1]; i += LANES) sum += v[i] * x[col[i]];
#pragma unroll
    for (int d = LANES / 2; d; d /= 2) sum += __shfl_down_sync(~0u, sum, d, LANES);
    if (row < rows && lane == 0) y[row] = sum;
}

extern "C" __global__ void spmv_csr8(const int* start, const int* col, const double* v, const double* x,
                                     double* y, int rows) {
    csr<8>(start, col, v, x, y, rows);
}

extern "C" __global__ void spmv_ell(const int* col, const double* v, const double* __restrict__ x, double* y,
                                    int rows, int width) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    double sum = 0;
    for (int k = 0; k < width; k++) {
        int c = col[k * rows + row];
        if (c >= 0) sum += v[k * rows + row] * __ldg(x + c);
    }
    y[row] = sum;
}

// The cost of the best global alignment of two strings, by diagonals; a block for each pair.
extern "C" __global__ void align(const char* a, const char* b, const int* lengths, int* score, int most,
                                 int gap, int mismatch) {
    extern __shared__ int cell[];
    int na = lengths[2 * blockIdx.x], nb = lengths[2 * blockIdx.x + 1], width = most + 1;
    a += blockIdx.x * most, b += blockIdx.x * most;
    for (int d = 0; d <= na + nb; d++) {
        int *now = cell + d % 3 * width, *last = cell + (d + 2) % 3 * width, *other = cell + (d + 1) % 3 * width;
        for (int i = threadIdx.x; i <= na; i += blockDim.x) {
            int j = d - i;
            if (j < 0 || j > nb) continue;
            int best = i == 0 ? j * gap : j == 0 ? i * gap : 0x7fffffff;
            if (i && j) {
                best = other[i - 1] + (a[i - 1] == b[j - 1] ? 0 : mismatch);
                best = min(best, min(last[i - 1], last[i]) + gap);
            }
            now[i] = best;
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) score[blockIdx.x] = cell[(na + nb) % 3 * width + na];
}

// K-means: nearest centre of each point, and sums and counts for the next centres.
extern "C" __global__ void assign(const float2* point, const float2* centre, int* nearest, double* sum,
                                  unsigned* size, int n, int k) {
    extern __shared__ double acc[];
    unsigned* count = (unsigned*)(acc + 2 * k);
    for (int i = threadIdx.x; i < k; i += blockDim.x) acc[2 * i] = acc[2 * i + 1] = 0, count[i] = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float2 p = point[i];
        float best = 3.4e38f;
        int at = 0;
        for (int c = 0; c < k; c++) {
            float dx = p.x - centre[c].x, dy = p.y - centre[c].y;
            float d = __fmaf_rn(dx, dx, __fmul_rn(dy, dy));
            if (d < best) best = d, at = c;
        }
        nearest[i] = at;
        atomicAdd(&acc[2 * at], (double)p.x);
        atomicAdd(&acc[2 * at + 1], (double)p.y);
        atomicAdd(&count[at], 1u);
    }
    __syncthreads();
    for (int c = threadIdx.x; c < k; c += blockDim.x) {
        atomicAdd(&sum[2 * c], acc[2 * c]);
        atomicAdd(&sum[2 * c + 1], acc[2 * c + 1]);
        atomicAdd(&size[c], count[c]);
    }
}
