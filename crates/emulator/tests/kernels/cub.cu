// Architectures: 80
// Parts of CUB.
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cub/warp/warp_reduce.cuh>

// Pairs of a block by a floating-point key, largest first.
extern "C" __global__ void sort_pairs(float* keys, int* values) {
    using Sort = cub::BlockRadixSort<float, 64, 3, int>;
    __shared__ typename Sort::TempStorage temp;
    float k[3];
    int v[3];
    int base = blockIdx.x * 192;
    cub::LoadDirectBlocked(threadIdx.x, keys + base, k);
    cub::LoadDirectBlocked(threadIdx.x, values + base, v);
    Sort(temp).SortDescendingBlockedToStriped(k, v);
    cub::StoreDirectStriped<64>(threadIdx.x, keys + base, k);
    cub::StoreDirectStriped<64>(threadIdx.x, values + base, v);
}

struct Odd {
    __device__ bool operator()(const int& a, const int& b) const {
        return (a & 1) != (b & 1) ? (a & 1) > (b & 1) : a < b;
    }
};

// The odd numbers first, each kind in order.
extern "C" __global__ void merge_sort(int* x, int n) {
    using Sort = cub::BlockMergeSort<int, 128, 2>;
    __shared__ typename Sort::TempStorage temp;
    int v[2];
    for (int i = 0; i < 2; i++) {
        int at = threadIdx.x * 2 + i;
        v[i] = at < n ? x[blockIdx.x * n + at] : 0;
    }
    Sort(temp).Sort(v, Odd(), n, 0x7ffffffe);
    for (int i = 0; i < 2; i++)
        if (threadIdx.x * 2 + i < n) x[blockIdx.x * n + threadIdx.x * 2 + i] = v[i];
}

// A histogram without atomics, sums of a custom type, and products as a scan.
struct Range {
    float low, high;
};
struct Widen {
    __device__ Range operator()(Range a, Range b) const { return {fminf(a.low, b.low), fmaxf(a.high, b.high)}; }
};

extern "C" __global__ void block_parts(const unsigned char* x, unsigned* bins, Range* range, unsigned* product,
                                       int* firsts) {
    using Histogram = cub::BlockHistogram<unsigned char, 128, 4, 64, cub::BLOCK_HISTO_SORT>;
    using Reduce = cub::BlockReduce<Range, 128, cub::BLOCK_REDUCE_RAKING>;
    using Scan = cub::BlockScan<unsigned, 128, cub::BLOCK_SCAN_RAKING>;
    using WarpReduce = cub::WarpReduce<int>;
    __shared__ union {
        typename Histogram::TempStorage histogram;
        typename Reduce::TempStorage reduce;
        typename Scan::TempStorage scan;
        typename WarpReduce::TempStorage warp[4];
    } s;
    __shared__ unsigned counts[64];
    unsigned char v[4];
    int t = threadIdx.x, base = blockIdx.x * 512;
    for (int i = 0; i < 4; i++) v[i] = x[base + t * 4 + i] & 63;
    Histogram(s.histogram).Histogram(v, counts);
    __syncthreads();
    if (t < 64) bins[blockIdx.x * 64 + t] = counts[t];
    // The histogram has sorted `v`.
    Range r = {(x[base + t * 4] & 63) * 0.5f, (x[base + t * 4 + 3] & 63) * 1.5f};
    r = Reduce(s.reduce).Reduce(r, Widen());
    if (t == 0) range[blockIdx.x] = r;
    __syncthreads();
    unsigned p = x[base + t * 4] | 1, before;
    Scan(s.scan).ExclusiveScan(p, before, 1u, [](unsigned a, unsigned b) { return a * b; });
    product[blockIdx.x * 128 + t] = before;
    __syncthreads();
    int head = t % 5 == 0;
    int sum = WarpReduce(s.warp[t / 32]).HeadSegmentedSum(x[base + t * 4 + 1], head);
    firsts[blockIdx.x * 128 + t] = head || t % 32 == 0 ? sum : 0;
}
