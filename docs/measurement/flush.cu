// How much must be written to flush L2: medians of launches after fills of several sizes, in microseconds.
//
//     nvcc -O3 -arch=native flush.cu -o flush && ./flush
//
// For each size of vectors and each kernel it takes turns between fills of 0 to 3 times the size of L2, 150 launches each.
// The inputs are written before each fill, so that L2 holds what it can of them.
#include <algorithm>
#include <cstdio>
#include <vector>

__global__ void fill(float* a, float value, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) a[i] = value;
}

__global__ void add(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}

__global__ void sum(const float* a, float* c, int n) {
    float total = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) total += a[i];
    if (total == 123456) *c = total;
}

int main() {
    const int sizes = 9, rounds = 150;
    const double times[sizes] = {0, 0.5, 0.75, 1, 1.1, 1.25, 1.5, 2, 3};
    int l2 = 0;
    cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, 0);
    char* memory;
    if (cudaMalloc(&memory, 3L * l2)) return 1;
    cudaEvent_t before, start, end;
    cudaEventCreate(&before), cudaEventCreate(&start), cudaEventCreate(&end);
    for (int n : {1 << 18, 1 << 20, 1 << 22, 1 << 24}) {
        float *a, *b, *c;
        if (cudaMalloc(&a, 4L * n) || cudaMalloc(&b, 4L * n) || cudaMalloc(&c, 4L * n)) return 1;
        for (bool sums : {false, true}) {
            std::vector<float> taken[sizes], flushed[sizes];
            for (int round = 0; round < rounds; round++) {
                for (int turn = 0; turn < sizes; turn++) {
                    const int which = (turn * 4 + round * 5) % sizes;
                    for (float* each : {a, b, c}) fill<<<264, 1024>>>(each, round, n);
                    cudaEventRecord(before);
                    if (times[which] > 0) cudaMemsetAsync(memory, 0, size_t(times[which] * l2));
                    cudaEventRecord(start);
                    if (sums) sum<<<264, 1024>>>(a, c, n);
                    else add<<<n / 256, 256>>>(a, b, c, n);
                    cudaEventRecord(end);
                    if (cudaDeviceSynchronize()) return 1;
                    float launch, flush;
                    cudaEventElapsedTime(&launch, start, end);
                    cudaEventElapsedTime(&flush, before, start);
                    taken[which].push_back(launch * 1e3f), flushed[which].push_back(flush * 1e3f);
                }
            }
            std::printf("%d Ki, %s:", n >> 10, sums ? "sum" : "add");
            for (int which = 0; which < sizes; which++) {
                for (auto* all : {&taken[which], &flushed[which]}) std::sort(all->begin(), all->end());
                std::printf(" %g: %.2f (flush %.1f)", times[which], taken[which][rounds / 2], flushed[which][rounds / 2]);
            }
            std::printf("\n");
        }
        cudaFree(a), cudaFree(b), cudaFree(c);
    }
}
