// Divergence, scheduling and the device runtime.

extern "C" __global__ void lane_lock(int* lock, int* count, int rounds) {
    // A lock between threads of one warp: needs independent thread scheduling.
    for (int i = 0; i < rounds; i++) {
        bool done = false;
        while (!done) {
            if (atomicCAS(lock, 0, 1) == 0) {
                *(volatile int*)count = *(volatile int*)count + 1;
                __threadfence();
                atomicExch(lock, 0);
                done = true;
            }
        }
    }
}

extern "C" __global__ void spin_lock(int* lock, int* count) {
    // The loop that deadlocks on hardware without forward progress of threads.
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    *(volatile int*)count = *(volatile int*)count + 1;
    __threadfence();
    atomicExch(lock, 0);
}

extern "C" __global__ void grid_barrier(unsigned* arrived, unsigned* out) {
    __shared__ unsigned total;
    for (unsigned round = 0; round < 4; round++) {
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            atomicAdd(arrived, 1);
            while (*(volatile unsigned*)arrived < (round + 1) * gridDim.x) {
            }
            total = *(volatile unsigned*)arrived;
        }
        __syncthreads();
        if (total < (round + 1) * gridDim.x) {
            atomicAdd(out, 1);
        }
    }
}

// Prefix sum in one pass: each block waits for the sum of the block before it.
extern "C" __global__ void look_back(const unsigned* x, unsigned* y, volatile unsigned* flag,
                                     volatile unsigned* sum, unsigned* ticket) {
    __shared__ unsigned part[256], id, before;
    if (threadIdx.x == 0) {
        id = atomicAdd(ticket, 1);
    }
    __syncthreads();
    unsigned at = id * blockDim.x + threadIdx.x;
    part[threadIdx.x] = x[at];
    __syncthreads();
    for (int d = 1; d < blockDim.x; d *= 2) {
        unsigned v = threadIdx.x >= d ? part[threadIdx.x - d] : 0;
        __syncthreads();
        part[threadIdx.x] += v;
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        unsigned s = 0;
        if (id > 0) {
            while (flag[id - 1] == 0) {
            }
            __threadfence();
            s = sum[id - 1];
        }
        before = s;
        sum[id] = s + part[blockDim.x - 1];
        __threadfence();
        flag[id] = 1;
    }
    __syncthreads();
    y[at] = before + part[threadIdx.x];
}

extern "C" __global__ void printing(int n, double d) {
    if (threadIdx.x < 2) {
        printf("%d|%5.2f|%s|%lld|%-4u|%#x|%c|%%\n", n + threadIdx.x, d, "text", -5LL, 7u, 255, 'q');
    }
}

extern "C" __global__ void failing(int n) {
    if (threadIdx.x == n) {
        __trap();
    }
}

extern "C" __global__ void out_of_bounds(float* p, int n) { p[blockIdx.x * blockDim.x + threadIdx.x + n] = 1.0f; }

extern "C" __global__ void misaligned(char* p) { *(int*)(p + 2) = 1; }

extern "C" __global__ void forever(int* p) {
    while (*(volatile int*)p == 0) {
    }
}

extern "C" __global__ void endless(unsigned* p) {
    unsigned x = 1;
    while (x != 0) {
        x = x * 3;
    }
    *p = x;
}

extern "C" __global__ void half_barrier(int* p) {
    if (threadIdx.x < 32) {
        asm volatile("bar.sync 1, 64;");
    }
    p[threadIdx.x] = 1;
}

__device__ __noinline__ int deep(int n) {
    int a[16];
    for (int i = 0; i < 16; i++) {
        a[i] = n + i;
    }
    return n <= 0 ? a[n & 15] : deep(n - 1) + a[(n * 7) & 15];
}

extern "C" __global__ void overflow(int* p, int n) { p[threadIdx.x] = deep(n); }

typedef int (*Op)(int, int);
__device__ __noinline__ int add(int a, int b) { return a + b; }
__device__ __noinline__ int mul(int a, int b) { return a * b; }
__device__ __noinline__ int sub(int a, int b) { return a - b; }
__device__ Op table[3] = {add, mul, sub};

extern "C" __global__ void pointers(int* p) {
    int t = threadIdx.x;
    p[t] = table[t % 3](t, 10);
}

struct Node {
    int value;
    Node* next;
};

extern "C" __global__ void list(int* out, int n) {
    Node* head = nullptr;
    for (int i = 0; i < n; i++) {
        Node* node = (Node*)malloc(sizeof(Node));
        if (!node) {
            out[threadIdx.x] = -1;
            return;
        }
        node->value = i * (threadIdx.x + 1);
        node->next = head;
        head = node;
    }
    int sum = 0;
    while (head) {
        Node* next = head->next;
        sum += head->value;
        free(head);
        head = next;
    }
    out[threadIdx.x] = sum;
}

extern "C" __global__ void partial_warps(int* out) {
    // Different trip counts, early exits, and a vote among those who are left.
    int t = threadIdx.x, n = 0;
    for (int i = 0; i < t; i++) {
        if (i % 3 == 2) {
            continue;
        }
        n += i;
    }
    if (t % 5 == 4) {
        out[t] = -n;
        return;
    }
    unsigned m = __ballot_sync(__activemask(), n & 1);
    out[t] = n + __popc(m);
}

extern "C" __global__ void count_barriers(int* out) {
    int t = threadIdx.x;
    int odd = __syncthreads_count(t & 1);
    int all = __syncthreads_and(t < 1000);
    int any = __syncthreads_or(t == 77);
    out[t] = odd * 100 + all * 10 + any;
}

// One load and one store whose lanes point to local, shared and global memory.
extern "C" __global__ void mixed_spaces(const int* x, int* out) {
    __shared__ int s[64];
    int t = threadIdx.x, local[2] = {t * 3, t * 5};
    s[t] = t * 7;
    __syncthreads();
    int* p = t % 3 == 0 ? (int*)(x + t) : t % 3 == 1 ? &s[63 - t] : &local[t & 1];
    *p += 1;
    out[t] = *p;
}
