// Graphs and linked structures.

// Breadth-first search: a level's vertices in one queue, the next level's in another.
extern "C" __global__ void bfs_level(const int* start, const int* edge, int* depth, const int* queue, int size,
                                     int* next, int* count, int level) {
    __shared__ int found[256], here, at;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0) here = 0;
    __syncthreads();
    if (i < size) {
        int v = queue[i];
        for (int e = start[v]; e < start[v + 1]; e++) {
            int u = edge[e];
            if (atomicCAS(&depth[u], -1, level + 1) != -1) continue;
            int slot = atomicAdd(&here, 1);
            if (slot < 256) found[slot] = u;
            else next[atomicAdd(count, 1)] = u;
        }
    }
    __syncthreads();
    int n = min(here, 256);
    if (threadIdx.x == 0) at = atomicAdd(count, n);
    __syncthreads();
    for (int k = threadIdx.x; k < n; k += blockDim.x) next[at + k] = found[k];
}

// Shortest paths by relaxing every edge until nothing changes.
extern "C" __global__ void relax(const int* from, const int* to, const int* weight, int* distance, int edges,
                                 int* changed) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    bool better = false;
    if (e < edges) {
        int d = *(volatile int*)&distance[from[e]];
        if (d < 1 << 29) better = atomicMin(&distance[to[e]], d + weight[e]) > d + weight[e];
    }
    if (__syncthreads_or(better) && threadIdx.x == 0) *changed = 1;
}

// Connected components: roots are joined with compare-and-swap, paths are halved on the way.
__device__ int root(int* parent, int v) {
    int p = *(volatile int*)&parent[v];
    while (p != v) {
        int up = *(volatile int*)&parent[p];
        *(volatile int*)&parent[v] = up;
        v = p, p = up;
    }
    return v;
}

extern "C" __global__ void unite(const int* from, const int* to, int* parent, int edges) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= edges) return;
    int a = from[e], b = to[e];
    for (;;) {
        a = root(parent, a), b = root(parent, b);
        if (a == b) return;
        if (a < b) {
            int t = a;
            a = b, b = t;
        }
        if (atomicCAS(&parent[a], a, b) == a) return;
    }
}

extern "C" __global__ void flatten(int* parent, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v < n) parent[v] = root(parent, v);
}

// All shortest paths through vertex k.
extern "C" __global__ void floyd_warshall(int* d, int n, int k) {
    int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n || j >= n || i == k || j == k) return;
    int through = d[i * n + k] + d[k * n + j];
    if (through < d[i * n + j]) d[i * n + j] = through;
}

// A step of PageRank over incoming edges; a warp for each vertex.
extern "C" __global__ void page_rank(const int* start, const int* edge, const int* degree, const float* rank,
                                     float* next, int n) {
    int v = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x & 31;
    if (v >= n) return;
    float sum = 0;
    for (int e = start[v] + lane; e < start[v + 1]; e += 32) sum += rank[edge[e]] / degree[edge[e]];
    for (int d = 16; d; d >>= 1) sum += __shfl_down_sync(~0u, sum, d);
    if (lane == 0) next[v] = 0.15f / n + 0.85f * sum;
}

// A hash table with open addresses: key and value in one word; values of equal keys are added.
__device__ unsigned hash(unsigned k) {
    k ^= k >> 16, k *= 0x85ebca6bu, k ^= k >> 13, k *= 0xc2b2ae35u;
    return k ^ k >> 16;
}

extern "C" __global__ void insert(const unsigned* key, const unsigned* value, unsigned long long* table,
                                  unsigned mask, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned k = key[i], v = value[i];
    for (unsigned at = hash(k) & mask;; at = (at + 1) & mask) {
        unsigned long long old = table[at];
        while (old == 0 || (unsigned)(old >> 32) == k) {
            unsigned long long want = (unsigned long long)k << 32 | ((unsigned)old + v);
            unsigned long long seen = atomicCAS(&table[at], old, want);
            if (seen == old) return;
            old = seen;
        }
    }
}

extern "C" __global__ void find(const unsigned* key, const unsigned long long* table, unsigned mask, int* value,
                                int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    for (unsigned at = hash(key[i]) & mask;; at = (at + 1) & mask) {
        unsigned long long e = table[at];
        if (e == 0 || (unsigned)(e >> 32) == key[i]) {
            value[i] = e == 0 ? -1 : (int)(unsigned)e;
            return;
        }
    }
}

struct Node {
    Node* next;
    int value;
    short copies[3];
};

// Lists of nodes of the device's heap; every thread pushes, then one thread for each list empties it.
extern "C" __global__ void push(Node** heads, int lists, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Node* node = (Node*)malloc(sizeof(Node));
    if (!node) __trap();
    node->value = i;
    for (int k = 0; k < 3; k++) node->copies[k] = (short)(i + k);
    unsigned long long* head = (unsigned long long*)&heads[i % lists];
    unsigned long long old = *(volatile unsigned long long*)head, seen;
    for (;;) {
        node->next = (Node*)old;
        __threadfence();
        seen = atomicCAS(head, old, (unsigned long long)node);
        if (seen == old) break;
        old = seen;
    }
}

extern "C" __global__ void drain(Node** heads, long long* sum, int* length) {
    int l = threadIdx.x, n = 0;
    long long s = 0;
    for (Node* p = heads[l]; p;) {
        s += p->value + p->copies[0] - p->copies[2] + 2;
        n++;
        Node* next = p->next;
        free(p);
        p = next;
    }
    heads[l] = nullptr, sum[l] = s, length[l] = n;
}
