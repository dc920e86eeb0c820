// Architectures: 80
// Hashes, ciphers and integers.

__device__ unsigned crc_table[256];

extern "C" __global__ void crc_prepare() {
    unsigned c = threadIdx.x;
    for (int i = 0; i < 8; i++) c = c & 1 ? 0xedb88320u ^ c >> 1 : c >> 1;
    crc_table[threadIdx.x] = c;
}

// CRC-32 of messages of different lengths, one after the other in `text`.
extern "C" __global__ void crc32(const unsigned char* text, const int* start, unsigned* crc, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned c = ~0u;
    for (int p = start[i]; p < start[i + 1]; p++) c = crc_table[(c ^ text[p]) & 255] ^ c >> 8;
    crc[i] = ~c;
}

__constant__ unsigned sha_k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

__device__ unsigned rotate(unsigned v, int n) { return __funnelshift_r(v, v, n); }

// SHA-256 of messages of `len` bytes.
extern "C" __global__ void sha256(const unsigned char* text, int len, unsigned* digest, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const unsigned char* m = text + (size_t)i * len;
    unsigned h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    auto byte = [&](int p, int last) -> unsigned {
        if (p < len) return m[p];
        if (p == len) return 0x80;
        return p < last - 8 ? 0 : (unsigned)((unsigned long long)len * 8 >> (last - 1 - p) * 8) & 255;
    };
    int total = (len + 9 + 63) / 64 * 64;
    for (int base = 0; base < total; base += 64) {
        unsigned w[16], s[8];
        for (int k = 0; k < 16; k++) {
            int p = base + 4 * k;
            w[k] = byte(p, total) << 24 | byte(p + 1, total) << 16 | byte(p + 2, total) << 8 | byte(p + 3, total);
        }
        for (int k = 0; k < 8; k++) s[k] = h[k];
        for (int r = 0; r < 64; r++) {
            if (r >= 16) {
                unsigned a = w[(r + 1) & 15], b = w[(r + 14) & 15];
                w[r & 15] += (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[(r + 9) & 15] +
                             (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
            }
            unsigned t = s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) +
                         ((s[4] & s[5]) ^ (~s[4] & s[6])) + sha_k[r] + w[r & 15];
            unsigned u = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) +
                         ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
            for (int k = 7; k > 0; k--) s[k] = s[k - 1];
            s[4] += t, s[0] = t + u;
        }
        for (int k = 0; k < 8; k++) h[k] += s[k];
    }
    for (int k = 0; k < 8; k++) digest[i * 8 + k] = h[k];
}

// ChaCha20: the key stream of block `i` over the text, 64 bytes for each thread.
extern "C" __global__ void chacha20(const uint4* in, uint4* out, const unsigned* key, unsigned counter, int blocks) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= blocks) return;
    unsigned s[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574}, x[16];
    for (int k = 0; k < 8; k++) s[4 + k] = key[k];
    s[12] = counter + i, s[13] = key[8], s[14] = key[9], s[15] = key[10];
    for (int k = 0; k < 16; k++) x[k] = s[k];
    auto quarter = [&](int a, int b, int c, int d) {
        x[a] += x[b], x[d] = __byte_perm(x[d] ^ x[a], 0, 0x1032);
        x[c] += x[d], x[b] = rotate(x[b] ^ x[c], 20);
        x[a] += x[b], x[d] = __byte_perm(x[d] ^ x[a], 0, 0x2103);
        x[c] += x[d], x[b] = rotate(x[b] ^ x[c], 25);
    };
    for (int r = 0; r < 10; r++) {
        quarter(0, 4, 8, 12), quarter(1, 5, 9, 13), quarter(2, 6, 10, 14), quarter(3, 7, 11, 15);
        quarter(0, 5, 10, 15), quarter(1, 6, 11, 12), quarter(2, 7, 8, 13), quarter(3, 4, 9, 14);
    }
    for (int k = 0; k < 4; k++) {
        uint4 v = in[i * 4 + k];
        v.x ^= x[4 * k] + s[4 * k], v.y ^= x[4 * k + 1] + s[4 * k + 1];
        v.z ^= x[4 * k + 2] + s[4 * k + 2], v.w ^= x[4 * k + 3] + s[4 * k + 3];
        out[i * 4 + k] = v;
    }
}

// base ^ exponent mod modulus for odd 64-bit moduli, in Montgomery form; 128-bit products.
extern "C" __global__ void power_mod(const unsigned long long* base, const unsigned long long* exponent,
                                     const unsigned long long* modulus, unsigned long long* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long m = modulus[i], inverse = m;
    for (int k = 0; k < 5; k++) inverse *= 2 - m * inverse;
    auto reduce = [&](unsigned __int128 t) {
        unsigned long long q = (unsigned long long)t * inverse, high = __umul64hi(q, m);
        unsigned long long a = (unsigned long long)(t >> 64);
        return a >= high ? a - high : a - high + m;
    };
    unsigned long long one = ~0ull % m + 1;
    one = one == m ? 0 : one;
    // base · 2⁶⁴ mod m, bit by bit.
    unsigned long long x = one, f = base[i] % m;
    for (int k = 0; k < 64; k++) f = f >= m - f ? f - (m - f) : f + f;
    for (unsigned long long e = exponent[i]; e; e >>= 1) {
        if (e & 1) x = reduce((unsigned __int128)x * f);
        f = reduce((unsigned __int128)f * f);
    }
    out[i] = reduce(x);
}

// Signed 128-bit products, quotients and shifts.
extern "C" __global__ void wide_integers(const long long* a, const long long* b, __int128* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __int128 p = (__int128)a[i] * b[i], q = ((__int128)a[i] << 40) + b[i];
    out[i * 4] = p;
    out[i * 4 + 1] = b[i] ? q / b[i] : 0;
    out[i * 4 + 2] = b[i] ? q % b[i] : 0;
    out[i * 4 + 3] = (p >> (b[i] & 127)) - ((unsigned __int128)q >> (a[i] & 127)) * 3 + (p < q);
}

// Primes below 64 · gridDim.x · blockDim.x: a sieve of bits in shared memory, a segment for each block.
extern "C" __global__ void sieve(unsigned long long* bits, unsigned* count) {
    extern __shared__ unsigned composite[];
    unsigned words = blockDim.x * 2, span = words * 32, low = blockIdx.x * span;
    for (unsigned w = threadIdx.x; w < words; w += blockDim.x) composite[w] = 0;
    __syncthreads();
    for (unsigned p = 2 + threadIdx.x; p * p < low + span; p += blockDim.x) {
        unsigned from = max(p * p, (low + p - 1) / p * p);
        for (unsigned v = from - low; v < span; v += p) atomicOr(&composite[v / 32], 1u << v % 32);
    }
    if (low == 0 && threadIdx.x == 0) atomicOr(&composite[0], 3u);
    __syncthreads();
    unsigned t = threadIdx.x;
    unsigned long long prime = ~((unsigned long long)composite[2 * t + 1] << 32 | composite[2 * t]);
    bits[blockIdx.x * blockDim.x + t] = prime;
    atomicAdd(count, __popcll(prime));
}

// Base 64 of groups of three bytes; and the greatest common divisor of pairs of 64-bit numbers.
extern "C" __global__ void base64(const unsigned char* in, uchar4* out, int groups) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= groups) return;
    const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned v = in[3 * i] << 16 | in[3 * i + 1] << 8 | in[3 * i + 2];
    out[i] = make_uchar4(digits[v >> 18], digits[v >> 12 & 63], digits[v >> 6 & 63], digits[v & 63]);
}

extern "C" __global__ void gcd(const unsigned long long* a, const unsigned long long* b, unsigned long long* out,
                               int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long x = a[i], y = b[i];
    while (y) {
        unsigned long long r = x % y;
        x = y, y = r;
    }
    out[i] = x;
}
