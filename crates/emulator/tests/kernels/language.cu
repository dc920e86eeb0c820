// What C++ compiles to: calls, tables, stacks, unions.
#include <cuda_fp16.h>

// Virtual functions and destructors.
struct Shape {
    int id;
    __device__ Shape(int id) : id(id) {}
    __device__ virtual float area() const = 0;
    __device__ virtual int corners() const { return 0; }
    __device__ virtual ~Shape() {}
};
struct Circle : Shape {
    float r;
    __device__ Circle(int id, float r) : Shape(id), r(r) {}
    __device__ float area() const override { return 3.0f * r * r; }
};
struct Box : Shape {
    float w, h;
    __device__ Box(int id, float w, float h) : Shape(id), w(w), h(h) {}
    __device__ float area() const override { return w * h; }
    __device__ int corners() const override { return 4; }
};
struct Square final : Box {
    __device__ Square(int id, float w) : Box(id, w, w) {}
    __device__ int corners() const override { return 40 + Box::corners() + id; }
};

extern "C" __global__ void shapes(float* area, int* corners, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Shape* s;
    if (i % 3 == 0) s = new Circle(i, i);
    else if (i % 3 == 1) s = new Box(i, i, 2);
    else s = new Square(i, 0.5f * i);
    __syncwarp(__activemask());
    area[i] = s->area(), corners[i] = s->corners();
    delete s;
}

// A machine with a stack, whose programs come from memory: jumps by table.
extern "C" __global__ void interpreter(const int* code, const int* start, int* result, int n, int most) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int stack[16], top = 0, steps = 0;
    for (int pc = start[i % 4]; steps < most; steps++) {
        int op = code[pc++], a = top > 0 ? stack[(top - 1) & 15] : 0, b = top > 1 ? stack[(top - 2) & 15] : 0;
        switch (op) {
            case 0: result[i] = a; return;
            case 1: stack[top++ & 15] = code[pc++]; break;
            case 2: stack[--top - 1 & 15] = b + a; break;
            case 3: stack[--top - 1 & 15] = b - a; break;
            case 4: stack[--top - 1 & 15] = b * a; break;
            case 5: stack[top++ & 15] = a; break;
            case 6: stack[top++ & 15] = i; break;
            case 7: stack[top - 1 & 15] = b, stack[top - 2 & 15] = a; break;
            case 8: top--, pc = a ? code[pc] : pc + 1; break;
            case 9: stack[top - 1 & 15] = a ^ a >> 3; break;
            case 10: stack[top++ & 15] = b; break;
            case 11: stack[--top - 1 & 15] = a ? b % a : 0; break;
            case 12: top--; break;
            default: result[i] = -op; return;
        }
    }
    result[i] = 0x7fffffff;
}

// Recursion: sorting a private array, and queens that do not attack each other.
__device__ void quick_sort(short* a, int from, int to) {
    if (to - from < 2) return;
    short pivot = a[(from + to) / 2];
    int i = from, j = to - 1;
    while (i <= j) {
        while (a[i] < pivot) i++;
        while (a[j] > pivot) j--;
        if (i <= j) {
            short t = a[i];
            a[i++] = a[j], a[j--] = t;
        }
    }
    quick_sort(a, from, j + 1);
    quick_sort(a, i, to);
}

extern "C" __global__ void sort_private(const short* in, short* out, int n) {
    short a[40];
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    for (int i = 0; i < 40; i++) a[i] = in[t * 40 + i];
    quick_sort(a, 0, 40);
    for (int i = 0; i < 40; i++) out[t * 40 + i] = a[i];
}

__device__ int place(int n, unsigned cols, unsigned left, unsigned right) {
    unsigned all = (1u << n) - 1;
    if (cols == all) return 1;
    int count = 0;
    for (unsigned open = all & ~(cols | left | right); open; open &= open - 1) {
        unsigned bit = open & -open;
        count += place(n, cols | bit, (left | bit) << 1, (right | bit) >> 1);
    }
    return count;
}

extern "C" __global__ void queens(int* count, int n) {
    int c = threadIdx.x;
    if (c < n) atomicAdd(count, place(n, 1u << c, 2u << c, 1u << c >> 1));
}

// Functions by number, and a closure that a template takes.
typedef double (*Function)(double, double);
__device__ __noinline__ double add(double a, double b) { return a + b; }
__device__ __noinline__ double subtract(double a, double b) { return a - b; }
__device__ __noinline__ double divide(double a, double b) { return a / b; }
__device__ __noinline__ double larger(double a, double b) { return fmax(a, b); }
__device__ Function functions[4] = {add, subtract, divide, larger};

template <typename F> __device__ double fold(const double* x, int n, double init, F f) {
    for (int i = 0; i < n; i++) init = f(init, x[i]);
    return init;
}

extern "C" __global__ void dispatch(const double* x, const int* which, double* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Function f = functions[which[i] & 3];
    double bias = i * 0.5;
    out[i] = fold(x, 4, x[i], f) + fold(x, 3, 0.0, [=](double a, double b) { return a * 2 + b + bias; });
}

// Arguments and results by value: structures, bit fields, vectors, unions.
struct Config {
    char tag;
    short table[5];
    union {
        float f;
        unsigned u;
    } word;
    double scale;
    struct {
        unsigned low : 5, high : 11;
        int sign : 3;
    } bits;
    bool flag;
    float3 v;
};
struct Pair {
    long long sum;
    char mark;
    float4 f;
};

__device__ __noinline__ Pair pack(Config c, int i) {
    Pair p;
    c.table[i % 5] += i;
    p.sum = c.table[0] + c.table[1] + c.table[2] + c.table[3] + c.table[4] + c.bits.low * c.bits.high + c.bits.sign;
    p.mark = c.flag ? c.tag : '-';
    p.f = make_float4(c.v.x, c.v.y * c.scale, c.v.z, __uint_as_float(c.word.u ^ 0x80000000u));
    return p;
}

extern "C" __global__ void by_value(Config c, Pair* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = pack(c, i);
}

// Variables of the module: with initial values, pointers to each other, and one that is static.
__device__ int numbers[6] = {2, 3, 5, 7, 11, 13};
__device__ int* second = &numbers[1];
__constant__ float factor = 2.5f;
__device__ unsigned calls() {
    static unsigned n = 100;
    return atomicAdd(&n, 1u);
}

extern "C" __global__ void variables(float* out, unsigned* most) {
    int i = threadIdx.x;
    out[i] = second[i % 5] * factor;
    atomicMax(most, calls());
    __syncthreads();
    if (i == 0) second = second == numbers + 1 ? numbers : numbers + 1;
}

// Atomics of every width and kind, on global and shared memory.
extern "C" __global__ void atomics(unsigned* wrap, unsigned short* narrow, double* d, int* exchange, float* least,
                                   __half* half, unsigned long long* mask, int n) {
    __shared__ unsigned ring;
    __shared__ float sum;
    if (threadIdx.x == 0) ring = 0, sum = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        atomicInc(&wrap[0], 99);
        atomicDec(&wrap[1], 50);
        atomicInc(&ring, 6);
        atomicAdd(&sum, 0.5f);
        for (unsigned short old = narrow[1], seen;; old = seen)
            if ((seen = atomicCAS(&narrow[1], old, (unsigned short)(old + 3))) == old) break;
        atomicAdd(d, 0.25);
        int mine = i + 1;
        mine = atomicExch(exchange, mine);
        atomicAdd(exchange + 1, mine);
        // Order of non-negative floats is that of their bits.
        atomicMin((int*)least, __float_as_int(fabsf(n / 3 - i) + 0.5f));
        atomicAdd(half, __float2half(1.0f));
        atomicXor(mask, 1ull << (i % 64));
        atomicOr(mask + 1, 1ull << (i * 7 % 64));
        atomicAnd(mask + 2, ~(1ull << (i % 13)));
    }
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(&wrap[2], ring), atomicAdd(d + 1, (double)sum);
}

// Steps until 1 is reached by 3n + 1; 64-bit, very uneven.
extern "C" __global__ void collatz(const unsigned long long* from, int* steps, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long v = from[i];
    int s = 0;
    while (v != 1) {
        if (v % 2) {
            v = 3 * v + 1;
            s++;
        }
        int z = __ffsll(v) - 1;
        v >>= z, s += z;
    }
    steps[i] = s;
}

extern "C" __global__ void report(const float* x, int n) {
    int i = threadIdx.x;
    if (i < n) printf("%d: %g %s %#x %5.1f%% %c %lld\n", i, x[i], x[i] < 0 ? "minus" : "plus", i * 17, x[i] * 100, 'a' + i, (long long)i << 40);
}
