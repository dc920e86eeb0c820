// Ordinary CUDA C++ with the headers of the toolkit.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

namespace cg = cooperative_groups;

extern "C" __global__ void cub_block(const int* x, int* sum, int* scan, unsigned* sorted) {
    using Reduce = cub::BlockReduce<int, 128>;
    using Scan = cub::BlockScan<int, 128>;
    using Sort = cub::BlockRadixSort<unsigned, 128, 4>;
    __shared__ union {
        typename Reduce::TempStorage reduce;
        typename Scan::TempStorage scan;
        typename Sort::TempStorage sort;
    } s;
    int t = threadIdx.x, at = blockIdx.x * 128 + t;
    int total = Reduce(s.reduce).Sum(x[at]);
    if (t == 0) sum[blockIdx.x] = total;
    __syncthreads();
    int before;
    Scan(s.scan).ExclusiveSum(x[at], before);
    scan[at] = before;
    __syncthreads();
    unsigned keys[4];
    for (int i = 0; i < 4; i++) keys[i] = (unsigned)x[at] * (2654435761u + 97 * i);
    Sort(s.sort).Sort(keys);
    for (int i = 0; i < 4; i++) sorted[blockIdx.x * 512 + t * 4 + i] = keys[i];
}

extern "C" __global__ void groups(const int* x, int* tiles, int* total, int* steps) {
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<8>(block);
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    int sum = cg::reduce(tile, x[at], cg::plus<int>());
    if (tile.thread_rank() == 0) tiles[at / 8] = sum;
    auto grid = cg::this_grid();
    for (int i = 0; i < 3; i++) {
        if (grid.thread_rank() == 0) *steps = *steps + 1;
        grid.sync();
        if (*(volatile int*)steps != i + 1) atomicAdd(total, 1000000);
        grid.sync();
    }
    auto active = cg::coalesced_threads();
    if (x[at] & 1) {
        auto odd = cg::coalesced_threads();
        if (odd.thread_rank() == 0) atomicAdd(total, odd.size());
    }
    if (active.size() != 32) atomicAdd(total, 1000);
}

extern "C" __global__ void conversions(const float* x, unsigned char* e4, unsigned char* e5, float* back, __half* h,
                                       __nv_bfloat16* b, int* r) {
    int t = threadIdx.x;
    __nv_fp8_e4m3 p(x[t]);
    __nv_fp8_e5m2 q(x[t]);
    e4[t] = p.__x;
    e5[t] = q.__x;
    back[t] = float(p) + float(q);
    __half v = __float2half_rz(x[t]);
    h[t] = hsin(v) + hsqrt(__habs(v)) * hrcp(v) + __h2div(__half2half2(v), __float2half2_rn(3.f)).x;
#if __CUDA_ARCH__ >= 800
    b[t] = __hfma(__float2bfloat16(x[t]), __float2bfloat16(1.5f), __float2bfloat16_rd(x[t]));
#endif
    r[t] = __half2int_rd(v) + __half2int_ru(v) * 3 + __float2int_rn(x[t]) + __double2int_rz(x[t] * 1.5) + (int)__half2ull_rn(__habs(v));
}
