// Integer and bit operations, each against its definition.

extern "C" __global__ void bits(const unsigned* x, const unsigned* y, unsigned* out, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    unsigned a = x[t], b = y[t], r[24];
    asm("bfe.u32 %0, %1, %2, %3;" : "=r"(r[0]) : "r"(a), "r"(b & 63), "r"(b >> 8 & 63));
    asm("bfe.s32 %0, %1, %2, %3;" : "=r"(r[1]) : "r"(a), "r"(b & 63), "r"(b >> 8 & 63));
    asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(r[2]) : "r"(a), "r"(~a), "r"(b & 63), "r"(b >> 8 & 63));
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r[3]) : "r"(a), "r"(b), "r"(a ^ b));
    asm("lop3.b32 %0, %1, %2, %3, 0x1e;" : "=r"(r[4]) : "r"(a), "r"(b), "r"(a + b));
    asm("shf.r.clamp.b32 %0, %1, %2, %3;" : "=r"(r[5]) : "r"(a), "r"(b), "r"(a & 63));
    asm("shf.l.wrap.b32 %0, %1, %2, %3;" : "=r"(r[6]) : "r"(a), "r"(b), "r"(a & 63));
    asm("sad.s32 %0, %1, %2, %3;" : "=r"(r[7]) : "r"(a), "r"(b), "r"(7));
    asm("mul24.lo.s32 %0, %1, %2;" : "=r"(r[8]) : "r"(a), "r"(b));
    asm("mad24.hi.u32 %0, %1, %2, %3;" : "=r"(r[9]) : "r"(a), "r"(b), "r"(1));
    asm("dp4a.s32.u32 %0, %1, %2, %3;" : "=r"(r[10]) : "r"(a), "r"(b), "r"(5));
    asm("dp2a.hi.u32.s32 %0, %1, %2, %3;" : "=r"(r[11]) : "r"(a), "r"(b), "r"(5));
    asm("fns.b32 %0, %1, %2, %3;" : "=r"(r[12]) : "r"(a), "r"(b & 31), "r"((int)(b >> 8 & 7) - 3));
    asm("bmsk.clamp.b32 %0, %1, %2;" : "=r"(r[13]) : "r"(a & 63), "r"(b & 63));
    asm("szext.wrap.s32 %0, %1, %2;" : "=r"(r[14]) : "r"(a), "r"(b & 63));
    asm("bfind.s32 %0, %1;" : "=r"(r[15]) : "r"(a >> (b & 31)));
    asm("add.sat.s32 %0, %1, %2;" : "=r"(r[16]) : "r"(a), "r"(b));
    asm("sub.sat.s32 %0, %1, %2;" : "=r"(r[17]) : "r"(a), "r"(b));
    asm("shr.s32 %0, %1, %2;" : "=r"(r[18]) : "r"(a), "r"(b & 63));
    asm("shl.b32 %0, %1, %2;" : "=r"(r[19]) : "r"(a), "r"(b & 63));
    asm("slct.u32.s32 %0, %1, %2, %3;" : "=r"(r[20]) : "r"(a), "r"(b), "r"(a - b));
    asm("set.lt.u32.s32 %0, %1, %2;" : "=r"(r[21]) : "r"(a), "r"(b));
    asm("mad.hi.s32 %0, %1, %2, %3;" : "=r"(r[22]) : "r"(a), "r"(b), "r"(9));
    asm("{.reg .pred p, q; setp.gt.and.u32 p|q, %1, %2, 1; selp.u32 %0, 1, 0, p; @q add.u32 %0, %0, 2;}" : "=r"(r[23]) : "r"(a), "r"(b));
    for (int i = 0; i < 24; i++) out[t * 24 + i] = r[i];
}

extern "C" __global__ void wide(const unsigned long long* x, const unsigned long long* y, unsigned long long* out, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    unsigned long long a = x[t], b = y[t], r[12];
    r[0] = __umul64hi(a, b);
    r[1] = __mul64hi(a, b);
    r[2] = b ? a / b : 0;
    r[3] = b ? (long long)a % (long long)b : 0;
    r[4] = __brevll(a) ^ __popcll(b) ^ __clzll(a) ^ __ffsll(b);
    asm("bfe.s64 %0, %1, %2, %3;" : "=l"(r[5]) : "l"(a), "r"((unsigned)b & 127), "r"((unsigned)(b >> 8) & 127));
    asm("bfi.b64 %0, %1, %2, %3, %4;" : "=l"(r[6]) : "l"(a), "l"(~a), "r"((unsigned)b & 127), "r"((unsigned)(b >> 8) & 127));
    unsigned long long lo, hi;
    asm("{add.cc.u64 %0, %2, %3; addc.u64 %1, 0, 0;}" : "=l"(lo), "=l"(hi) : "l"(a), "l"(b));
    r[7] = lo ^ hi << 60;
    unsigned l, h;
    asm("{sub.cc.u32 %0, %2, %4; subc.u32 %1, %3, %5;}" : "=r"(l), "=r"(h) : "r"((unsigned)a), "r"((unsigned)(a >> 32)), "r"((unsigned)b), "r"((unsigned)(b >> 32)));
    r[8] = (unsigned long long)h << 32 | l;
    asm("{mad.lo.cc.u32 %0, %2, %3, %4; madc.hi.u32 %1, %2, %3, %5;}" : "=r"(l), "=r"(h) : "r"((unsigned)a), "r"((unsigned)b), "r"((unsigned)(a >> 32)), "r"((unsigned)(b >> 32)));
    r[9] = (unsigned long long)h << 32 | l;
    r[10] = (long long)a >> (b & 127 > 63 ? 63 : b & 63);
    asm("shr.u64 %0, %1, %2;" : "=l"(r[11]) : "l"(a), "r"((unsigned)b & 127));
    for (int i = 0; i < 12; i++) out[t * 12 + i] = r[i];
}

extern "C" __global__ void narrow(const short* x, const short* y, int* out, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    short a = x[t], b = y[t];
    unsigned short r[8];
    asm("mul.hi.s16 %0, %1, %2;" : "=h"(r[0]) : "h"(a), "h"(b));
    asm("shr.s16 %0, %1, %2;" : "=h"(r[1]) : "h"(a), "r"((int)b & 31));
    asm("min.s16 %0, %1, %2;" : "=h"(r[2]) : "h"(a), "h"(b));
    asm("max.u16 %0, %1, %2;" : "=h"(r[3]) : "h"(a), "h"(b));
    asm("mad.lo.s16 %0, %1, %2, %1;" : "=h"(r[4]) : "h"(a), "h"(b));
    asm("neg.s16 %0, %1;" : "=h"(r[5]) : "h"(a));
    r[6] = a < b;
    r[7] = (unsigned short)a < (unsigned short)b;
    int w;
    asm("mad.wide.s16 %0, %1, %2, %3;" : "=r"(w) : "h"(a), "h"(b), "r"(t));
    out[t * 10 + 8] = w;
    signed char c = (signed char)a;
    out[t * 10 + 9] = c / (b == 0 ? 1 : b);
    for (int i = 0; i < 8; i++) out[t * 10 + i] = r[i];
}

// Shuffles with every width and direction, and matches.
extern "C" __global__ void exchange(const int* x, int* out) {
    int l = threadIdx.x, v = x[l], at = 0;
    for (int w = 1; w <= 32; w *= 2) {
        for (int d = 0; d < 9; d++) {
            out[at++ * 32 + l] = __shfl_up_sync(~0u, v, d, w);
            out[at++ * 32 + l] = __shfl_down_sync(~0u, v, d, w);
            out[at++ * 32 + l] = __shfl_xor_sync(~0u, v, d, w);
            out[at++ * 32 + l] = __shfl_sync(~0u, v, d + l, w);
        }
    }
    int all;
    out[at++ * 32 + l] = __match_any_sync(~0u, v % 5);
    out[at++ * 32 + l] = __match_all_sync(~0u, v - v, &all) + all;
    if (l % 3 == 0) {
        out[at * 32 + l] = __shfl_sync(0x49249249, v, 6);
    } else {
        out[at * 32 + l] = __shfl_sync(0xb6db6db6, v, 7);
    }
}
