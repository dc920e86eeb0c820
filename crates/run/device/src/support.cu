// Kernels of the device worker: seeded tensor content, comparison, scrubbing, locked calls.
//
// Compiled with --fmad=false: every operation of the random numbers is rounded separately, so that
// the bits equal those of the CPU (the tensor crate) and of the numpy snippet in the docs.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

// Mirrors `InitParams` in support.rs.
struct InitParams {
    u64 key0, key1;  // random stream: seed, hash of the argument's name
    double a, b;     // uniform: low, high - low; normal: mean, std; arange: start, step
    u64 low, span;   // integers: smallest value (two's complement), number of values; quantized: key of the scales
    u64 pattern;     // constant: the element's bytes; quantized: smallest scale (double)
    u32 generator;   // see below
    u32 dtype;       // see below
    u32 secret;      // whether the seed is secret: see `secret_words`
    u32 columns;     // number of columns with separate ranges; arange: numbers in an element, real one first;
                     // quantized: type of the scales, | 256 to round to whole numbers, | 512 for tiles, | 1024 for
                     // zero points, | 2048 for a global scale, | its type << 16
    u64 points;      // rising sequences: number of steps; quantized: number of dimensions
    u64 table[32];   // choice: bytes of the elements; columns: low and high - low (doubles), or low and span;
                     // quantized: extent, block and stride of each dimension, the last first; from 24 on both halves
                     // of the key of the zero points with their least | count << 32, and of the global scale with its
                     // least (double)
};

enum {
    CONSTANT,
    ARANGE,
    UNIFORM,
    NORMAL,
    INTEGERS,
    QUICK_NORMAL,
    CHOICE,
    UNIFORM_COLUMNS,
    INTEGER_COLUMNS,
    // Generators from here on use no words.
    PERMUTATION,
    SORTED,
    SORTED_UNIQUE,
    SORTED_FLOATS,
    OFFSETS,
    LENGTHS,
    SEGMENTS,
    SCALES,
    QUANTIZED,  // uses words
    ZERO_POINTS
};
enum { F64, F32, F16, BF16, E4M3, E5M2, I8, I16, I32, I64, U8, U16, U32, U64, BOOL, E8M0, F4, I4, U4 };

// Philox4x64-10.

struct Words {
    u64 w[4];
};

static __device__ Words philox(u64 block, u64 key0, u64 key1) {
    const u64 M0 = 0xD2E7470EE14C6C93ull, M1 = 0xCA5A826395121157ull;
    const u64 W0 = 0x9E3779B97F4A7C15ull, W1 = 0xBB67AE8584CAA73Bull;
    u64 first = block + 1;
    u64 s0 = first, s1 = first == 0 ? 1 : 0, s2 = 0, s3 = 0;
#pragma unroll
    for (int round = 0; round < 10; round++) {
        if (round > 0) {
            key0 += W0;
            key1 += W1;
        }
        u64 high0 = __umul64hi(M0, s0), low0 = M0 * s0;
        u64 high1 = __umul64hi(M1, s2), low1 = M1 * s2;
        s0 = high1 ^ s1 ^ key0;
        s1 = low1;
        s2 = high0 ^ s3 ^ key1;
        s3 = low0;
    }
    Words words = {{s0, s1, s2, s3}};
    return words;
}

// Normal numbers: AS 241 (PPND16), as in normal.rs of the tensor crate.

__constant__ double CENTRE_UP[8] = {
    3.387132872796366608, 1.3314166789178437745e2,
    1.9715909503065514427e3, 1.3731693765509461125e4,
    4.5921953931549871457e4, 6.7265770927008700853e4,
    3.3430575583588128105e4, 2.5090809287301226727e3};
__constant__ double CENTRE_DOWN[8] = {
    1.0, 4.2313330701600911252e1,
    6.8718700749205790830e2, 5.3941960214247511077e3,
    2.1213794301586595867e4, 3.9307895800092710610e4,
    2.8729085735721942674e4, 5.2264952788528545610e3};
__constant__ double TAIL_UP[8] = {
    1.42343711074968357734, 4.63033784615654529590,
    5.76949722146069140550, 3.64784832476320460504,
    1.27045825245236838258, 2.41780725177450611770e-1,
    2.27238449892691845833e-2, 7.74545014278341407640e-4};
__constant__ double TAIL_DOWN[8] = {
    1.0, 2.05319162663775882187,
    1.67638483018380384940, 6.89767334985100004550e-1,
    1.48103976427480074590e-1, 1.51986665636164571966e-2,
    5.47593808499534494600e-4, 1.05075007164441684324e-9};
__constant__ double FAR_TAIL_UP[8] = {
    6.65790464350110377720, 5.46378491116411436990,
    1.78482653991729133580, 2.96560571828504891230e-1,
    2.65321895265761230930e-2, 1.24266094738807843860e-3,
    2.71155556874348757815e-5, 2.01033439929228813265e-7};
__constant__ double FAR_TAIL_DOWN[8] = {
    1.0, 5.99832206555887937690e-1,
    1.36929880922735805310e-1, 1.48753612908506148525e-2,
    7.86869131145613259100e-4, 1.84631831751005468180e-5,
    1.42151175831644588870e-7, 2.04426310338993978564e-15};

static __device__ double horner(const double* c, double x) {
    double sum = c[7];
#pragma unroll
    for (int i = 6; i >= 0; i--) sum = sum * x + c[i];
    return sum;
}

static __device__ double natural_logarithm(double x) {
    u64 bits = (u64)__double_as_longlong(x);
    i64 exponent = (i64)((bits >> 52) & 0x7ff) - 1022;
    double mantissa =
        __longlong_as_double((i64)((bits & ((1ull << 52) - 1)) | (1022ull << 52)));
    if (mantissa < 0.70710678118654752440) {
        mantissa *= 2.0;
        exponent -= 1;
    }
    double s = (mantissa - 1.0) / (mantissa + 1.0);
    double t = s * s;
    double sum = 1.0 / 21.0;
#pragma unroll
    for (int divisor = 19; divisor >= 1; divisor -= 2) sum = sum * t + 1.0 / (double)divisor;
    return (double)exponent * 0.693147180559945309417 + 2.0 * s * sum;
}

static __device__ double standard_normal(u64 word) {
    const double LARGEST = 1.0 - 1.1102230246251565e-16;
    double p = (double)(word >> 11) * 1.1102230246251565e-16 + 5.5511151231257827e-17;
    if (p > LARGEST) p = LARGEST;
    double q = p - 0.5;
    if (fabs(q) <= 0.425) {
        double r = 0.180625 - q * q;
        return q * horner(CENTRE_UP, r) / horner(CENTRE_DOWN, r);
    }
    double r = sqrt(-natural_logarithm(q < 0.0 ? p : 1.0 - p));
    double z;
    if (r <= 5.0) {
        r = r - 1.6;
        z = horner(TAIL_UP, r) / horner(TAIL_DOWN, r);
    } else {
        r = r - 5.0;
        z = horner(FAR_TAIL_UP, r) / horner(FAR_TAIL_DOWN, r);
    }
    return q < 0.0 ? -z : z;
}

// binary64 to an element.

// Rounds to nearest even with `digits` mantissa bits and the smallest normal exponent `lowest`.
// Saturates at the code `largest`.
static __device__ u8 to_float8(float x, int digits, int lowest, u32 largest) {
    u32 sign = (__float_as_uint(x) >> 24) & 0x80;
    if (x != x) return (u8)(sign | 0x7F);
    double magnitude = (double)fabsf(x);
    int exponent = lowest;
    if (magnitude != 0.0) {
        int own = (int)((u64)__double_as_longlong(magnitude) >> 52) - 1023;
        if (own > lowest) exponent = own;
    }
    double scale = __longlong_as_double((i64)(digits - exponent + 1023) << 52);
    double code = (double)((exponent - lowest) << digits) + rint(magnitude * scale);
    return (u8)(sign | (code > (double)largest ? largest : (u32)code));
}

// Rounds to the nearest power of two, midway up. A value without one, or below all, becomes the
// smallest.
static __device__ u8 to_scale(float x) {
    if (x != x) return 0xFF;
    if (!(x > 0.0f)) return 0;
    u32 exponent = __float_as_uint(x) >> 23, fraction = __float_as_uint(x) & 0x7FFFFF;
    u32 code = exponent + (fraction >= (exponent == 0 ? 0x600000 : 0x400000) ? 1 : 0);
    return (u8)(code > 254 ? 254 : code);
}

// The sign and three bits, in the lowest four bits.
static __device__ u8 to_float4(float x) {
    if (x != x) return 7;
    u32 code = to_float8(fminf(fmaxf(x, -8.0f), 8.0f), 1, 0, 7);
    return (u8)((code & 7) | (code >> 4 & 8));
}

// The scale of an exponent.
static __device__ u8 to_power(double exponent) {
    double whole = rint(exponent);
    return (u8)((whole < -127.0 ? -127.0 : whole > 127.0 ? 127.0 : whole) + 127.0);
}

static __device__ u16 to_half(float x) {
    u16 bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}

// The upper half of binary32, rounded to nearest even. Uses integers, because the instruction
// requires sm_80.
static __device__ u16 to_bfloat(float x) {
    u32 bits = __float_as_uint(x);
    if (x != x) return (u16)((bits >> 16) | 0x40);
    return (u16)((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

// Truncates and saturates; NaN gives 0.
static __device__ u64 to_signed(double x, double lowest, double end, u64 first, u64 last) {
    if (x != x) return 0;
    if (x <= lowest) return first;
    if (x >= end) return last;
    return (u64)(i64)x;
}

static __device__ u64 to_unsigned(double x, double end, u64 last) {
    if (!(x > 0.0)) return 0;
    if (x >= end) return last;
    return (u64)x;
}

static __device__ u64 element(double x, u32 dtype) {
    switch (dtype) {
        case F64: return (u64)__double_as_longlong(x);
        case F32: return __float_as_uint(__double2float_rn(x));
        case F16: return to_half(__double2float_rn(x));
        case BF16: return to_bfloat(__double2float_rn(x));
        case E4M3: return to_float8(__double2float_rn(x), 3, -6, 0x7E);
        case E5M2: return to_float8(__double2float_rn(x), 2, -14, 0x7B);
        case E8M0: return to_scale(__double2float_rn(x));
        case F4: return to_float4(__double2float_rn(x));
        case I4: return to_signed(x, -8.0, 8.0, (u64)-8, 7);
        case U4: return to_unsigned(x, 16.0, 15);
        case I8: return to_signed(x, -128.0, 128.0, (u64)-128, 127);
        case I16: return to_signed(x, -32768.0, 32768.0, (u64)-32768, 32767);
        case I32: return to_signed(x, -2147483648.0, 2147483648.0, (u64)-2147483648ll, 2147483647);
        case I64:
            return to_signed(x, -9223372036854775808.0, 9223372036854775808.0, 1ull << 63,
                             ~(1ull << 63));
        case U8: return to_unsigned(x, 256.0, 255);
        case U16: return to_unsigned(x, 65536.0, 65535);
        case U32: return to_unsigned(x, 4294967296.0, 4294967295ull);
        case U64: return to_unsigned(x, 18446744073709551616.0, ~0ull);
        default: return x >= 1.0 ? 1 : 0;  // bool
    }
}

// Permutations and rising sequences: see docs/seeded-data.md. These are functions that are not
// inlined, so that the other kinds need no registers for them. They take numbers, so that the
// parameters are not copied to local memory.

static __device__ u64 node_word(u64 key0, u64 key1, u64 node) {
    u64 x = key0 + node * 0x9E3779B97F4A7C15ull;
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull) ^ key1;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

static __device__ __noinline__ u64 permuted(u64 index, u64 span, u64 key0, u64 key1) {
    int bits = 64 - __clzll((i64)(span - 1));
    int half = ((bits < 2 ? 2 : bits) + 1) / 2;
    u64 mask = (1ull << half) - 1, x = index;
    // Elements past the end of a tensor are computed too, but not used.
    if (index >= span) return 0;
    do {
        u64 left = x >> half, right = x & mask;
        for (u64 round = 1; round <= 6; round++) {
            u64 word = node_word(key0, key1, round << 32 | right) >> 32;
            u64 next = left ^ (word & mask);
            left = right;
            right = next;
        }
        x = left << half | right;
    } while (x >= span);
    return x;
}

// Returns the value at index `wanted` or, if `by_value`, the index of the last value that is at
// most `wanted`.
static __device__ __noinline__ u64 rising(u64 wanted, bool by_value, u64 points, u64 top, u64 key0, u64 key1) {
    u64 first = 0, last = points, low = 0, high = top;
    while (last - first > 1) {
        u64 steps = last - first, middle = first + steps / 2, height = high - low;
        u64 width = height >> ((63 - __clzll((i64)steps)) / 2);
        u64 value = low + (height - width) / 2 + __umul64hi(node_word(key0, key1, middle), width + 1);
        if (wanted < (by_value ? value : middle)) {
            last = middle;
            high = value;
        } else {
            first = middle;
            low = value;
        }
    }
    return by_value ? first : wanted >= last ? high : low;
}

static __device__ u64 scaled_down(u64 word, u64 span) {
    return span <= 1ull << 32 ? ((word >> 32) * span) >> 32 : __umul64hi(word, span);
}

static __device__ u64 uniform(u64 word, double low, double width, u32 dtype) {
    return element(low + (double)(word >> 11) * 1.1102230246251565e-16 * width, dtype);
}

static __device__ double scale_number(double low, u64 index, u64 key0, u64 key1) {
    double u = (double)(node_word(key0, key1, index) >> 11) * 1.1102230246251565e-16;
    return low + u * low;
}

// The value of a scale's bits.
static __device__ double scale_value(u64 bits, u32 dtype) {
    switch (dtype) {
        case F32: return __uint_as_float((u32)bits);
        case F16: {
            float x;
            asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"((u16)bits));
            return x;
        }
        case BF16: return __uint_as_float((u32)bits << 16);
        // Scales are above the smallest normal number.
        case E4M3: return __longlong_as_double((i64)((bits >> 3) - 7 + 1023) << 52 | (i64)(bits & 7) << 49);
        default: return __longlong_as_double((i64)(bits - 127 + 1023) << 52);  // E8M0
    }
}

// The scale with this index, rounded to the type of the scales.
static __device__ __noinline__ double scale_at(u64 index, u64 key0, u64 key1, double low, u32 dtype) {
    return scale_value(element(scale_number(low, index, key0, key1), dtype), dtype);
}

// The index of a number's scale: `ScaleBlocks::scale_of` in blocks.rs.
static __device__ u64 scale_index(u64 number, const InitParams& p) {
    if ((p.columns & 512) == 0) {
        u64 scale = 0;
        for (u64 k = 0; k < p.points; k++) {
            u64 extent = p.table[3 * k], at = number;
            if (k + 1 < p.points) {
                number = at / extent;
                at -= number * extent;
            }
            scale += at / p.table[3 * k + 1] * p.table[3 * k + 2];
        }
        return scale;
    }
    u64 line = number / p.table[0], column = number % p.table[0] / p.table[1];
    u64 matrix = line / p.table[3], row = line % p.table[3];
    u64 tile = (matrix * p.table[5] + row / 128) * p.table[2] + column / 4;
    return tile * 512 + row % 32 * 16 + row / 32 % 4 * 4 + column % 4;
}

// The zero point with this index.
static __device__ u64 zero_point(u64 index, u64 low, u64 span, u64 key0, u64 key1) {
    return low + ((node_word(key0, key1, index) >> 32) * span >> 32);
}

// A normal number, divided by the scale of its block.
static __device__ u64 quantized(u64 index, u64 word, const InitParams& p) {
    double low = __longlong_as_double((i64)p.pattern);
    double scale = scale_at(scale_index(index, p), p.low, p.span, low, p.columns & 255);
    if ((p.columns & 2048) != 0) {
        scale *= scale_at(0, p.table[27], p.table[28], __longlong_as_double((i64)p.table[29]), p.columns >> 16);
    }
    double quotient = (p.a + p.b * standard_normal(word)) / scale;
    if ((p.columns & 256) != 0) quotient = rint(quotient);
    if ((p.columns & 1024) != 0) {
        u64 range = p.table[26];
        quotient += (double)zero_point(scale_index(index, p), range & 0xffffffff, range >> 32, p.table[24], p.table[25]);
    }
    return element(quotient, p.dtype);
}

static __device__ u64 value(u64 index, u64 word, const InitParams& p) {
    switch (p.generator) {
        case CONSTANT: return p.pattern;
        case ARANGE: {
            double number = p.a + (double)(index / p.columns) * p.b;
            return element(index % p.columns == 0 ? number : 0.0, p.dtype);
        }
        case UNIFORM: return uniform(word, p.a, p.b, p.dtype);
        case NORMAL: {
            double number = p.a + p.b * standard_normal(word);
            return p.dtype == E8M0 ? to_power(number) : element(number, p.dtype);
        }
        case CHOICE: return p.table[scaled_down(word, p.span)];
        case UNIFORM_COLUMNS: {
            u64 column = 2 * (index % p.columns);
            double low = __longlong_as_double((i64)p.table[column]);
            return uniform(word, low, __longlong_as_double((i64)p.table[column + 1]), p.dtype);
        }
        case INTEGER_COLUMNS: {
            u64 column = 2 * (index % p.columns);
            return p.table[column] + scaled_down(word, p.table[column + 1]);
        }
        case PERMUTATION: return p.low + permuted(index, p.span, p.key0, p.key1);
        case SORTED: case SORTED_UNIQUE:
            return p.low + rising(index + 1, false, p.points, p.span, p.key0, p.key1) +
                   (p.generator == SORTED_UNIQUE ? index : 0);
        case SORTED_FLOATS: {
            double part = (double)rising(index + 1, false, p.points, p.span, p.key0, p.key1);
            return element(p.a + part * 1.1102230246251565e-16 * p.b, p.dtype);
        }
        case OFFSETS: return p.low + rising(index, false, p.points, p.span, p.key0, p.key1);
        case LENGTHS:
            return rising(index + 1, false, p.points, p.span, p.key0, p.key1) -
                   rising(index, false, p.points, p.span, p.key0, p.key1);
        case SEGMENTS: return rising(index, true, p.points, p.span, p.key0, p.key1);
        case SCALES: return element(scale_number(p.a, index, p.key0, p.key1), p.dtype);
        case QUANTIZED: return quantized(index, word, p);
        case ZERO_POINTS: return element((double)zero_point(index, p.low, p.span, p.key0, p.key1), p.dtype);
        default: return p.low + scaled_down(word, p.span);
    }
}

static __device__ void store(u8* out, u64 index, u64 bits, u32 dtype) {
    switch (dtype) {
        case F64: case I64: case U64: ((u64*)out)[index] = bits; break;
        case F32: case I32: case U32: ((u32*)out)[index] = (u32)bits; break;
        case F16: case BF16: case I16: case U16: ((u16*)out)[index] = (u16)bits; break;
        default: out[index] = (u8)bits; break;
    }
}

// Words of secret content. The seed is drawn at random and kept secret, so the numbers need not
// equal those of other machines. Philox4x32-10 yields as many bits as Philox4x64-10 in a fraction
// of its time on a GPU. The seed is its key, and the hash of the argument's name is the upper half
// of its counter. The top two bits of the lower half distinguish streams.
static __device__ uint4 philox_short(u64 block, u64 stream, const InitParams& p) {
    u64 low = block | stream << 62;
    u32 s0 = (u32)low, s1 = (u32)(low >> 32), s2 = (u32)p.key1, s3 = (u32)(p.key1 >> 32);
    u32 key0 = (u32)p.key0, key1 = (u32)(p.key0 >> 32);
#pragma unroll
    for (int round = 0; round < 10; round++) {
        u64 a = (u64)0xD2511F53u * s0, b = (u64)0xCD9E8D57u * s2;
        s0 = (u32)(b >> 32) ^ s1 ^ key0;
        s1 = (u32)b;
        s2 = (u32)(a >> 32) ^ s3 ^ key1;
        s3 = (u32)a;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return make_uint4(s0, s1, s2, s3);
}

static __device__ Words secret_words(u64 block, const InitParams& p) {
    uint4 high = philox_short(block, 0, p), low = philox_short(block, 1, p);
    Words words = {{(u64)high.x << 32 | low.x, (u64)high.y << 32 | low.y,
                    (u64)high.z << 32 | low.z, (u64)high.w << 32 | low.w}};
    return words;
}

// A pair of independent standard normal numbers in single precision (Box and Muller, 1958): at the
// distance sqrt(-2 log u) from the origin, in a random direction. The direction is drawn as an
// angle of up to an eighth of a turn, and the eighth that contains it. Neither number is zero, and
// neither is larger than the largest of `standard_normal`. `more` has further bits if `radius` is
// 0, which yields the far tail.
static __device__ void quick_normals(u32 radius, u32 direction, u32 more, float* pair) {
    float u = (float)radius * 2.32830644e-10f + 1.16415322e-10f;  // 2^-32, 2^-33
    if (radius == 0) u = ((float)more + 0.5f) * 5.42101086e-20f;  // 2^-64
    // 1 - u, precise where u is near 1.
    float rest = ((float)~radius + 0.5f) * 2.32830644e-10f;
    float series = rest * fmaf(rest, fmaf(rest, fmaf(rest, 0.25f, 0.333333333f), 0.5f), 1.0f);
    float minus_log = u < 0.984375f ? -__logf(u) : series;
    float distance;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(distance) : "f"(2.0f * minus_log));
    distance = fminf(distance, 8.209f);
    // Angle over pi, in (-1/4, 1/4), from 29 bits; sine and cosine by their series.
    float turn = ((float)(int)(direction & ~7u) + 4.0f) * 1.16415322e-10f;
    float square = turn * turn;
    float sine = turn * fmaf(square, fmaf(square, fmaf(square, -0.599264529f, 2.55016404f), -5.16771278f),
                             3.14159265f);
    float cosine = fmaf(square, fmaf(square, fmaf(square, fmaf(square, 0.235330630f, -1.33526277f),
                                                  4.05871213f), -4.93480220f), 1.0f);
    if (direction & 1) cosine = -cosine;
    bool turned = (direction & 2) != 0;
    pair[0] = distance * (turned ? cosine : sine);
    pair[1] = distance * (turned ? sine : cosine);
}

static __device__ u64 quick_element(float x, u32 dtype) {
    switch (dtype) {
        case F32: return __float_as_uint(x);
        case F16: return to_half(x);
        case BF16: return to_bfloat(x);
        case E4M3: return to_float8(x, 3, -6, 0x7E);
        case F4: return to_float4(x);
        default: return to_float8(x, 2, -14, 0x7B);
    }
}

static __device__ u64 size_of(u32 dtype) {
    switch (dtype) {
        case F64: case I64: case U64: return 8;
        case F32: case I32: case U32: return 4;
        case F16: case BF16: case I16: case U16: return 2;
        default: return 1;
    }
}

// Whether a byte holds two numbers, the first in its low half. Then numbers are counted instead of
// bytes.
static __device__ bool is_packed(u32 dtype) {
    return dtype == F4 || dtype == I4 || dtype == U4;
}

static __device__ u64 numbers_in(u64 bytes, u32 dtype) {
    return is_packed(dtype) ? 2 * bytes : bytes / size_of(dtype);
}

// The first byte of a number.
static __device__ u64 byte_of_number(u64 number, u32 dtype) {
    return is_packed(dtype) ? number / 2 : number * size_of(dtype);
}

static __device__ u32 four_packed(const u64* bits) {
    return ((u32)bits[0] & 15) | ((u32)bits[1] & 15) << 4 | ((u32)bits[2] & 15) << 8 | ((u32)bits[3] & 15) << 12;
}

static __device__ bool holds(const u8* at, u64 index, u64 bits, u32 dtype) {
    switch (dtype) {
        case F64: case I64: case U64: return ((const u64*)at)[index] == bits;
        case F32: case I32: case U32: return ((const u32*)at)[index] == (u32)bits;
        case F16: case BF16: case I16: case U16: return ((const u16*)at)[index] == (u16)bits;
        default: return at[index] == (u8)bits;
    }
}

// Content of a memory range: the elements of a tensor from `first` on. `first` is a multiple of 4,
// which is the number of words of one counter value. Mirrors `RangeContent` in content.rs.
struct Content {
    u64 at;     // from the kernel's `base`; of a tensor a multiple of 16
    u64 bytes;  // whole elements of a tensor
    u64 first;
    InitParams init;
};

enum { CONTENTS = 8 };

// Ranges that one launch writes or checks. Blocks ends[i - 1] to ends[i] - 1 handle range i.
struct Contents {
    Content of[CONTENTS];
    u32 ends[CONTENTS];
};

// Four normal numbers in single precision.
static __device__ void quick_four(u64 block, const InitParams& p, float* numbers) {
    uint4 words = philox_short(block, 2, p);
    uint2 more = make_uint2(0, 0);
    if (words.x == 0 || words.z == 0) {
        uint4 all = philox_short(block, 3, p);
        more = make_uint2(all.x, all.z);
    }
    quick_normals(words.x, words.y, more.x, numbers);
    quick_normals(words.z, words.w, more.y, numbers + 2);
    float mean = (float)p.a, deviation = (float)p.b;
#pragma unroll
    for (int k = 0; k < 4; k++) numbers[k] = fmaf(numbers[k], deviation, mean);
}

// The bits of four elements, starting at element 4 * block.
static __device__ void four(u64 block, const Content& c, u64* bits) {
    const InitParams& p = c.init;
    u64 index = c.first + 4 * block;
    if (p.generator == QUICK_NORMAL) {
        float numbers[4];
        quick_four(index / 4, p, numbers);
#pragma unroll
        for (int k = 0; k < 4; k++) bits[k] = quick_element(numbers[k], p.dtype);
        return;
    }
    Words words = {{0, 0, 0, 0}};
    if (p.generator != CONSTANT && p.generator != ARANGE &&
        (p.generator < PERMUTATION || p.generator == QUANTIZED)) {
        words = p.secret ? secret_words(index / 4, p) : philox(index / 4, p.key0, p.key1);
    }
#pragma unroll
    for (int k = 0; k < 4; k++) bits[k] = value(index + k, words.w[k], p);
}

// Calls `each(block, lane, stride)` for the range that this block handles.
template <typename Each>
static __device__ void in_own_range(const Contents& all, Each each) {
    u32 range = 0, begin = 0;
    while (range + 1 < CONTENTS && blockIdx.x >= all.ends[range]) begin = all.ends[range++];
    u64 stride = (u64)(all.ends[range] - begin) * blockDim.x;
    each(range, (u64)(blockIdx.x - begin) * blockDim.x + threadIdx.x, stride);
}

// Writes elements from 4 * block on to memory, in one access if all of them are within it.
static __device__ void put_four(u8* at, u64 block, const u64* bits, u64 count, u32 dtype) {
    if (is_packed(dtype)) {
        // The count is even, so two numbers remain if four do not.
        u32 packed = four_packed(bits);
        if (block * 4 + 4 > count) at[2 * block] = (u8)packed;
        else ((u16*)at)[block] = (u16)packed;
        return;
    }
    if (block * 4 + 4 > count) {
#pragma unroll
        for (int k = 0; k < 4; k++) {
            if (block * 4 + k < count) store(at, block * 4 + k, bits[k], dtype);
        }
        return;
    }
    switch (size_of(dtype)) {
        case 8:
            ((ulonglong2*)at)[2 * block] = make_ulonglong2(bits[0], bits[1]);
            ((ulonglong2*)at)[2 * block + 1] = make_ulonglong2(bits[2], bits[3]);
            break;
        case 4:
            ((uint4*)at)[block] =
                make_uint4((u32)bits[0], (u32)bits[1], (u32)bits[2], (u32)bits[3]);
            break;
        case 2:
            ((uint2*)at)[block] = make_uint2((u32)(u16)bits[0] | (u32)bits[1] << 16,
                                             (u32)(u16)bits[2] | (u32)bits[3] << 16);
            break;
        default:
            ((u32*)at)[block] = (u32)(u8)bits[0] | (u32)(u8)bits[1] << 8 |
                                (u32)(u8)bits[2] << 16 | (u32)bits[3] << 24;
            break;
    }
}

// Returns which of these elements differ from memory: bit k for element 4 * block + k.
static __device__ u32 missing_of_four(const u8* at, u64 block, const u64* bits, u64 count, u32 dtype) {
    u32 missing = 0;
    if (is_packed(dtype)) {
        bool whole = block * 4 + 4 <= count;
        u32 other = four_packed(bits) ^ (whole ? ((const u16*)at)[block] : at[2 * block]);
        for (u32 k = 0; k < (whole ? 4 : 2); k++) missing |= ((other >> 4 * k & 15) != 0 ? 1u : 0u) << k;
        return missing;
    }
    if (block * 4 + 4 > count) {
#pragma unroll
        for (int k = 0; k < 4; k++) {
            bool there = block * 4 + k < count;
            if (there && !holds(at, block * 4 + k, bits[k], dtype)) missing |= 1u << k;
        }
        return missing;
    }
    u64 found[4];
    switch (size_of(dtype)) {
        case 8: {
            ulonglong2 low = ((const ulonglong2*)at)[2 * block], high = ((const ulonglong2*)at)[2 * block + 1];
            found[0] = low.x, found[1] = low.y, found[2] = high.x, found[3] = high.y;
            break;
        }
        case 4: {
            uint4 all = ((const uint4*)at)[block];
            found[0] = all.x, found[1] = all.y, found[2] = all.z, found[3] = all.w;
            break;
        }
        case 2: {
            uint2 all = ((const uint2*)at)[block];
            found[0] = all.x & 0xFFFF, found[1] = all.x >> 16;
            found[2] = all.y & 0xFFFF, found[3] = all.y >> 16;
            break;
        }
        default: {
            u32 all = ((const u32*)at)[block];
            found[0] = all & 0xFF, found[1] = all >> 8 & 0xFF, found[2] = all >> 16 & 0xFF, found[3] = all >> 24;
            break;
        }
    }
    u64 mask = ~0ull >> (64 - 8 * size_of(dtype));
#pragma unroll
    for (int k = 0; k < 4; k++) missing |= (found[k] != (bits[k] & mask) ? 1u : 0u) << k;
    return missing;
}

// Bytes before the first of `bytes` whose address is a multiple of 16.
static __device__ u64 before_aligned(const u8* at, u64 bytes) {
    u64 before = (16 - ((u64)at & 15)) & 15;
    return before < bytes ? before : bytes;
}

// Sixteen bytes of a pattern of eight, from its byte `from` on.
static __device__ uint4 repeated(u64 pattern, u64 from) {
    u64 by = from % 8 * 8;
    if (by != 0) pattern = pattern >> by | pattern << (64 - by);
    return make_uint4((u32)pattern, (u32)(pattern >> 32), (u32)pattern, (u32)(pattern >> 32));
}

static __device__ u8 byte_of(u64 pattern, u64 at) {
    return (u8)(pattern >> (at % 8 * 8));
}

// Writes all ranges.
extern "C" __global__ void wg_write(u8* base, const __grid_constant__ Contents all) {
    in_own_range(all, [&](u32 range, u64 thread, u64 stride) {
        const Content& c = all.of[range];
        u8* at = base + c.at;
        if (c.init.generator == CONSTANT) {
            u64 head = before_aligned(at, c.bytes), wide = (c.bytes - head) / 16;
            uint4 same = repeated(c.init.pattern, head);
            for (u64 i = thread; i < wide; i += stride) ((uint4*)(at + head))[i] = same;
            for (u64 i = thread; i < head; i += stride) at[i] = byte_of(c.init.pattern, i);
            for (u64 i = head + wide * 16 + thread; i < c.bytes; i += stride) {
                at[i] = byte_of(c.init.pattern, i);
            }
            return;
        }
        u64 count = numbers_in(c.bytes, c.init.dtype), i = thread;
        if (c.init.generator == QUICK_NORMAL && c.init.dtype == F32) {
            for (; i * 4 + 4 <= count; i += stride) {
                float x[4];
                quick_four(c.first / 4 + i, c.init, x);
                ((float4*)at)[i] = make_float4(x[0], x[1], x[2], x[3]);
            }
        }
        for (; i * 4 < count; i += stride) {
            u64 bits[4];
            four(i, c, bits);
            put_four(at, i, bits, count, c.init.dtype);
        }
    });
}

// Lowers lowest[i] to the index of the first byte of an element of range i that differs from what
// wg_write would write.
extern "C" __global__ void wg_look(const u8* base, const __grid_constant__ Contents all, u64* lowest) {
    in_own_range(all, [&](u32 range, u64 thread, u64 stride) {
        const Content& c = all.of[range];
        const u8* at = base + c.at;
        if (c.init.generator == CONSTANT) {
            u64 head = before_aligned(at, c.bytes), wide = (c.bytes - head) / 16;
            uint4 same = repeated(c.init.pattern, head);
            auto look = [&](u64 i) {
                if (at[i] != byte_of(c.init.pattern, i)) atomicMin(lowest + range, i);
            };
            for (u64 i = thread; i < wide; i += stride) {
                uint4 found = ((const uint4*)(at + head))[i];
                u32 other = (found.x ^ same.x) | (found.y ^ same.y) | (found.z ^ same.z) | (found.w ^ same.w);
                if (other == 0) continue;
                for (u64 k = 0; k < 16; k++) look(head + i * 16 + k);
            }
            for (u64 i = thread; i < head; i += stride) look(i);
            for (u64 i = head + wide * 16 + thread; i < c.bytes; i += stride) look(i);
            return;
        }
        u64 size = size_of(c.init.dtype), count = numbers_in(c.bytes, c.init.dtype), i = thread;
        if (c.init.generator == QUICK_NORMAL && c.init.dtype == F32) {
            for (; i * 4 + 4 <= count; i += stride) {
                float x[4];
                quick_four(c.first / 4 + i, c.init, x);
                uint4 found = ((const uint4*)at)[i];
                u32 missing = (found.x != __float_as_uint(x[0]) ? 1 : 0) |
                              (found.y != __float_as_uint(x[1]) ? 2 : 0) |
                              (found.z != __float_as_uint(x[2]) ? 4 : 0) |
                              (found.w != __float_as_uint(x[3]) ? 8 : 0);
                if (missing != 0) atomicMin(lowest + range, (i * 4 + __ffs(missing) - 1) * size);
            }
        }
        for (; i * 4 < count; i += stride) {
            u64 bits[4];
            four(i, c, bits);
            u32 missing = missing_of_four(at, i, bits, count, c.init.dtype);
            if (missing != 0) {
                atomicMin(lowest + range, byte_of_number(i * 4 + __ffs(missing) - 1, c.init.dtype));
            }
        }
    });
}

// Lowers *first to the index of the first byte in which a and b differ. Both come from the
// allocator, so 8-byte words are aligned.
extern "C" __global__ void wg_differ(const u8* a, const u8* b, u64 bytes, u64* first) {
    u64 stride = (u64)gridDim.x * blockDim.x;
    u64 words = bytes / 8;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i <= words; i += stride) {
        u64 end = (i + 1) * 8 < bytes ? (i + 1) * 8 : bytes;
        if (i < words && ((const u64*)a)[i] == ((const u64*)b)[i]) continue;
        for (u64 at = i * 8; at < end; at++) {
            if (a[at] != b[at]) {
                atomicMin(first, at);
                break;
            }
        }
    }
}

enum { MEASURE_THREADS = 256 };

// An element as binary64, exactly. Only for the types of `Support::compares`.
static __device__ double number(const u8* at, u64 index, u32 dtype) {
    switch (dtype) {
        case F64: return ((const double*)at)[index];
        case F32: return ((const float*)at)[index];
        case F16: {
            float x;
            asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(((const u16*)at)[index]));
            return x;
        }
        case BF16: return __uint_as_float((u32)((const u16*)at)[index] << 16);
        case I8: return ((const signed char*)at)[index];
        case I16: return ((const short*)at)[index];
        case I32: return ((const int*)at)[index];
        case U16: return ((const u16*)at)[index];
        case U32: return ((const u32*)at)[index];
        default: return at[index];  // u8, bool
    }
}

static __device__ bool is_close(double x, double y, double atol, double rtol, u32 allow_non_finite) {
    if (isfinite(x) && isfinite(y)) return fabs(x - y) <= atol + rtol * fabs(y);
    return allow_non_finite && (x == y || (x != x && y != y));
}

// Lowers *first to the index of the first element that is not within the tolerance of the expected
// element, by the rule of compare in the validate crate.
extern "C" __global__ void wg_compare(
    const u8* actual, const u8* expected, u64 count, double atol, double rtol, u32 dtype,
    u32 allow_non_finite, u64* first) {
    u64 stride = (u64)gridDim.x * blockDim.x, thread = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    auto look = [&](u64 i) {
        double x = number(actual, i, dtype), y = number(expected, i, dtype);
        if (!is_close(x, y, atol, rtol, allow_non_finite)) atomicMin(first, i);
    };
    // Processes four floats at a time. Most are equal and finite, and thus within any tolerance.
    u64 together = dtype == F32 && (((u64)actual | (u64)expected) & 15) == 0 ? count / 4 : 0;
    for (u64 i = thread; i < together; i += stride) {
        float4 x = ((const float4*)actual)[i], y = ((const float4*)expected)[i];
        bool same = x.x == y.x && x.y == y.y && x.z == y.z && x.w == y.w;
        bool finite = isfinite(x.x) && isfinite(x.y) && isfinite(x.z) && isfinite(x.w);
        if (same && finite) continue;
        for (u64 k = 0; k < 4; k++) look(4 * i + k);
    }
    for (u64 i = 4 * together + thread; i < count; i += stride) look(i);
}

// Result of a block of wg_measure: `Part` in measured.rs.
struct Part {
    u64 pairs, matched, near, non_finite, non_finite_matched, first;
    double max_abs, max_rel, sum, squares;

    __device__ void add(const Part& other) {
        pairs += other.pairs;
        matched += other.matched;
        near += other.near;
        non_finite += other.non_finite;
        non_finite_matched += other.non_finite_matched;
        first = min(first, other.first);
        max_abs = fmax(max_abs, other.max_abs);
        max_rel = fmax(max_rel, other.max_rel);
        sum += other.sum;
        squares += other.squares;
    }
};

static constexpr double LARGEST = 1.7976931348623157e308;

// Compares two tensors by the rule and with the sums of compare in the validate crate. Blocks have
// MEASURE_THREADS threads. Each writes one part, so that the sums do not depend on the order of
// execution.
extern "C" __global__ void wg_measure(
    const u8* actual, const u8* expected, u64 count, double atol, double rtol, double further, u32 dtype,
    u32 allow_non_finite, Part* parts) {
    __shared__ Part shared[MEASURE_THREADS];
    Part own = {0, 0, 0, 0, 0, ~0ull, 0, 0, 0, 0};
    u64 stride = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
        double x = number(actual, i, dtype), y = number(expected, i, dtype);
        bool finite = isfinite(x), both = finite && isfinite(y);
        if (both) {
            double error = fmin(fabs(x - y), LARGEST), size = fabs(y);
            own.pairs++;
            own.max_abs = fmax(own.max_abs, error);
            if (size > 0) own.max_rel = fmax(own.max_rel, fmin(error / size, LARGEST));
            own.sum += error;
            own.squares += error * error;
        }
        if (is_close(x, y, atol, rtol, allow_non_finite)) {
            own.matched++;
            own.non_finite_matched += !finite;
            continue;
        }
        own.first = min(own.first, i);
        own.non_finite += !finite;
        own.near += both && fabs(x - y) <= further + rtol * fabs(y);
    }
    shared[threadIdx.x] = own;
    for (u32 half = MEASURE_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) shared[threadIdx.x].add(shared[threadIdx.x + half]);
    }
    if (threadIdx.x == 0) parts[blockIdx.x] = shared[0];
}

static __device__ u64 mixed(u64 x) {
    x += 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

template <typename Word>
static __device__ void nudge(Word* elements, u64 count, u64 infinity, u64 steps, u64 seed) {
    u64 stride = (u64)gridDim.x * blockDim.x;
    const Word SIGN = (Word)((Word)1 << (8 * sizeof(Word) - 1));
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
        Word sign = elements[i] & SIGN;
        u64 magnitude = elements[i] & (Word)~SIGN;
        if (magnitude == 0 || magnitude >= infinity) continue;
        bool up = (mixed(seed ^ i) & 1) == 0;
        u64 binade = infinity & (~infinity + 1), first = magnitude & ~(binade - 1);
        if ((up || magnitude <= steps) && magnitude + steps < infinity) {
            u64 above = magnitude + steps, next = first + binade;
            magnitude = above > next && first > 0 ? next + (above - next) / 2 : above;
        } else {
            u64 below = magnitude - first;
            u64 down = below < steps && first > binade ? 2 * steps - below : steps;
            magnitude = magnitude > down + 1 ? magnitude - down : 1;
        }
        elements[i] = (Word)(sign | (Word)magnitude);
    }
}

// Moves each element by some units in the last place, as nudge.rs of the tensor crate does.
extern "C" __global__ void wg_nudge(u8* at, u64 count, u32 dtype, u32 steps, u64 seed) {
    switch (dtype) {
        case F64: nudge((u64*)at, count, 0x7FF0000000000000ull, steps, seed); break;
        case F32: nudge((u32*)at, count, 0x7F800000ull, steps, seed); break;
        case F16: nudge((u16*)at, count, 0x7C00ull, steps, seed); break;
        case BF16: nudge((u16*)at, count, 0x7F80ull, steps, seed); break;
        default: break;
    }
}

// The layout of a tensor's elements in memory.
enum { MOST_AXES = 8 };

struct Layout {
    u64 extents[MOST_AXES], strides[MOST_AXES];
};

template <typename Word>
static __device__ void gather(const Word* from, Word* to, u64 count, u32 axes, const Layout& how) {
    u64 all = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += all) {
        u64 rest = i, at = 0;
        for (u32 axis = axes; axis-- > 0;) {
            at += rest % how.extents[axis] * how.strides[axis];
            rest /= how.extents[axis];
        }
        to[i] = from[at];
    }
}

// Copies the elements of a tensor, of `size` bytes each, contiguously in C order.
extern "C" __global__ void wg_gather(
    const u8* from, u8* to, u64 count, u32 size, u32 axes, const __grid_constant__ Layout how
) {
    switch (size) {
        case 1: gather(from, to, count, axes, how); break;
        case 2: gather((const u16*)from, (u16*)to, count, axes, how); break;
        case 4: gather((const u32*)from, (u32*)to, count, axes, how); break;
        case 8: gather((const u64*)from, (u64*)to, count, axes, how); break;
        default: break;
    }
}

static __device__ u64 global_time() {
    u64 ns;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
    return ns;
}

// Scrubbing.

// Both scrubbing kernels are launched cooperatively with as many blocks as fit on the device. No
// block ends before all have begun, so every block has a separate part of the memory. Together they
// cover all shared or local memory of the multiprocessors.
static __device__ void wait_for_all_blocks(u32* arrived) {
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(arrived, 1);
        while (*(volatile u32*)arrived < gridDim.x) {
        }
    }
    __syncthreads();
}

extern __shared__ u32 shared_words[];

extern "C" __global__ void wg_scrub_shared(u32* arrived, u32 words) {
    volatile u32* all = shared_words;
    for (u32 i = threadIdx.x; i < words; i += blockDim.x) all[i] = 0;
    wait_for_all_blocks(arrived);
}

// Zeroes shared memory between two launches of one kernel, when the device is free and a
// cooperative launch would cost the host 0.2 ms. Each block takes all the shared memory of a
// multiprocessor, so that all blocks run at the same time. If they do not, blocks give up after
// `patience_ns`.
extern "C" __global__ void wg_wipe_shared(u32* arrived, u32 words, u64 patience_ns) {
    volatile u32* all = shared_words;
    for (u32 i = threadIdx.x; i < words; i += blockDim.x) all[i] = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(arrived, 1);
        u64 start = global_time();
        while (*(volatile u32*)arrived < gridDim.x && global_time() - start < patience_ns) {
        }
    }
}

// `zero` is 0. The compiler cannot know this index, so it keeps the array in local memory.
template <int WORDS>
static __device__ void scrub_local(u32* arrived, u32 zero) {
    volatile u32 words[WORDS];
#pragma unroll 1
    for (u32 i = 0; i < WORDS; i++) words[i + zero] = 0;
    wait_for_all_blocks(arrived);
    // Read one back, so that the array is alive across the wait.
    if (words[zero] != 0) *arrived = 0xFFFFFFFFu;
}

extern "C" __global__ void __launch_bounds__(1024, 1) wg_scrub_local_small(u32* arrived, u32 zero) {
    scrub_local<(1 << 10) / 4>(arrived, zero);
}

extern "C" __global__ void __launch_bounds__(1024, 1) wg_scrub_local_large(u32* arrived, u32 zero) {
    scrub_local<(8 << 10) / 4>(arrived, zero);
}

// Copies `count` ranges, each given by three words of the table: target, source, bytes. The driver
// would need a separate call for each of the many small variables that headers define.
extern "C" __global__ void wg_copy_ranges(const u64* table, u32 count) {
    u64 first = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    u64 stride = (u64)gridDim.x * blockDim.x;
    for (u32 range = 0; range < count; range++) {
        u64 to = table[3 * range], from = table[3 * range + 1], bytes = table[3 * range + 2];
        u64 words = ((to | from) & 15) == 0 ? bytes / 16 : 0;
        for (u64 i = first; i < words; i += stride) ((uint4*)to)[i] = ((const uint4*)from)[i];
        for (u64 i = words * 16 + first; i < bytes; i += stride) ((u8*)to)[i] = ((const u8*)from)[i];
    }
}

// Timing.

// Signals to the host by *arrived that all previous work has ended. Then holds the stream until the
// host writes `generation` to *open, so that all work queued after it is present when it starts. It
// ends `quiet_ns` later, because reads of the host's memory that are still in progress would be
// part of the next kernel's time. It gives up after `patience_ns`: a host that died must not hang
// the device.
extern "C" __global__ void wg_block(volatile u32* arrived, const volatile u32* open, u32 generation,
                                   u32 quiet_ns, u64 patience_ns) {
    *arrived = generation;
    u64 start = global_time();
    while (*open != generation && global_time() - start < patience_ns) {
    }
    u64 opened = global_time();
    while (global_time() - opened < quiet_ns) {
    }
}

// Locked calls: the inputs of a call are encrypted until its turn, and its results are hashed
// before the next key is given. locked.rs has the order of events.

// Words of the page of host memory that both sides use: `gate_page` in the model crate.
enum { GATE_ARRIVED = 0, GATE_OPEN = 16, GATE_KEY = 32, GATE_DONE = 48, GATE_DIGESTS = 128 };

// BLAKE3: https://github.com/BLAKE3-team/BLAKE3-specs, section 2.
enum { CHUNK_START = 1, CHUNK_END = 2, PARENT = 4, ROOT = 8, KEYED_HASH = 16 };
enum { BLAKE3_BLOCK = 64, BLAKE3_CHUNK = 1024 };

static __constant__ u32 BLAKE3_IV[8] = {
    0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19,
};

static __device__ __forceinline__ u32 rotated(u32 x, u32 by) {
    return __funnelshift_r(x, x, by);
}

static __device__ __forceinline__ void blake3_mix(u32& a, u32& b, u32& c, u32& d, u32 x, u32 y) {
    a += b + x;
    d = rotated(d ^ a, 16);
    c += d;
    b = rotated(b ^ c, 12);
    a += b + y;
    d = rotated(d ^ a, 8);
    c += d;
    b = rotated(b ^ c, 7);
}

// The compression function. Returns all 16 words of its output.
static __device__ __forceinline__ void blake3_compress(const u32 cv[8], const u32 block[16], u64 counter,
                                                       u32 length, u32 flags, u32 out[16]) {
    u32 m[16], v[16];
#pragma unroll
    for (int i = 0; i < 16; i++) m[i] = block[i];
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = cv[i];
#pragma unroll
    for (int i = 0; i < 4; i++) v[8 + i] = BLAKE3_IV[i];
    v[12] = (u32)counter, v[13] = (u32)(counter >> 32), v[14] = length, v[15] = flags;
#pragma unroll
    for (int round = 0; round < 7; round++) {
        blake3_mix(v[0], v[4], v[8], v[12], m[0], m[1]);
        blake3_mix(v[1], v[5], v[9], v[13], m[2], m[3]);
        blake3_mix(v[2], v[6], v[10], v[14], m[4], m[5]);
        blake3_mix(v[3], v[7], v[11], v[15], m[6], m[7]);
        blake3_mix(v[0], v[5], v[10], v[15], m[8], m[9]);
        blake3_mix(v[1], v[6], v[11], v[12], m[10], m[11]);
        blake3_mix(v[2], v[7], v[8], v[13], m[12], m[13]);
        blake3_mix(v[3], v[4], v[9], v[14], m[14], m[15]);
        const int order[16] = {2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8};
        u32 permuted[16];
#pragma unroll
        for (int i = 0; i < 16; i++) permuted[i] = m[order[i]];
#pragma unroll
        for (int i = 0; i < 16; i++) m[i] = permuted[i];
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
        out[i] = v[i] ^ v[i + 8];
        out[i + 8] = v[i + 8] ^ cv[i];
    }
}

// Holds the stream until the host writes `call` to the page, and copies the key of that call to the
// device. Gives up after `patience_ns`: a host that died must not hang the device.
extern "C" __global__ void wg_gate(volatile u32* page, u32 call, u64 patience_ns, u32* key) {
    if (threadIdx.x == 0) {
        page[GATE_ARRIVED] = call;
        u64 start = global_time();
        while (page[GATE_OPEN] != call && global_time() - start < patience_ns) {
        }
        __threadfence_system();
    }
    __syncthreads();
    if (threadIdx.x < 8) key[threadIdx.x] = page[GATE_KEY + threadIdx.x];
}

static __device__ __forceinline__ void chacha_mix(u32& a, u32& b, u32& c, u32& d) {
    a += b, d = rotated(d ^ a, 16);
    c += d, b = rotated(b ^ c, 20);
    a += b, d = rotated(d ^ a, 24);
    c += d, b = rotated(b ^ c, 25);
}

// ChaCha8's key stream of 64 bytes for a block, with the nonce 0, because every call has a separate
// key. D. J. Bernstein, "ChaCha, a variant of Salsa20", 2008.
static __device__ __forceinline__ void chacha_stream(const u32 key[8], u64 block, u32 out[16]) {
    u32 first[16] = {0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, key[0], key[1], key[2],     key[3],
                     key[4],     key[5],     key[6],     key[7],     (u32)block, (u32)(block >> 32), 0, 0};
    u32 v[16];
#pragma unroll
    for (int k = 0; k < 16; k++) v[k] = first[k];
#pragma unroll
    for (int round = 0; round < 4; round++) {
        chacha_mix(v[0], v[4], v[8], v[12]);
        chacha_mix(v[1], v[5], v[9], v[13]);
        chacha_mix(v[2], v[6], v[10], v[14]);
        chacha_mix(v[3], v[7], v[11], v[15]);
        chacha_mix(v[0], v[5], v[10], v[15]);
        chacha_mix(v[1], v[6], v[11], v[12]);
        chacha_mix(v[2], v[7], v[8], v[13]);
        chacha_mix(v[3], v[4], v[9], v[14]);
    }
#pragma unroll
    for (int k = 0; k < 16; k++) out[k] = v[k] + first[k];
}

// Swaps units of 16 bytes between two lanes whose numbers differ in `bit`: for each `u` with this
// bit, unit `u` of the lane without the bit, and unit `u - bit` of the other lane.
static __device__ __forceinline__ void exchange_units(u32 v[16], u32 bit) {
    bool has_bit = threadIdx.x & bit;
#pragma unroll
    for (u32 u = 0; u < 4; u++) {
        if (!(u & bit)) continue;
#pragma unroll
        for (u32 k = 0; k < 4; k++) {
            u32& upper = v[4 * u + k];
            u32& lower = v[4 * (u - bit) + k];
            u32 got = __shfl_xor_sync(0xFFFFFFFF, has_bit ? lower : upper, bit);
            if (has_bit) lower = got;
            else upper = got;
        }
    }
}

// Encrypts or decrypts `bytes` bytes, a multiple of 64. `to` and `from` may be equal. Each lane
// computes the key stream of one block of 64 bytes. Four lanes then exchange units of 16 bytes, so
// that they access one block at a time and a warp writes whole sectors of 32 bytes.
extern "C" __global__ void wg_lock(u32* to, const u32* from, u64 bytes, const u32* key) {
    u32 words[8];
#pragma unroll
    for (int i = 0; i < 8; i++) words[i] = key[i];
    u64 blocks = bytes / 64, stride = (u64)gridDim.x * blockDim.x;
    u32 lane = threadIdx.x % 32, unit = lane % 4;
    u64 first_of_warp = (u64)blockIdx.x * blockDim.x + threadIdx.x - lane;
    for (u64 base = first_of_warp; base < blocks; base += stride) {
        u32 v[16];
        chacha_stream(words, base + lane, v);
        exchange_units(v, 1);
        exchange_units(v, 2);
#pragma unroll
        for (u32 k = 0; k < 4; k++) {
            u64 block = base + lane - unit + k;
            if (block >= blocks) continue;
            uint4 word = ((const uint4*)(from + 16 * block))[unit];
            word.x ^= v[4 * k], word.y ^= v[4 * k + 1], word.z ^= v[4 * k + 2], word.w ^= v[4 * k + 3];
            ((uint4*)(to + 16 * block))[unit] = word;
        }
    }
}

// Ranges, each of which is hashed separately. Mirrors `HashedRanges` in locked.rs.
enum { HASHED_RANGES = 64, HASH_THREADS = 128 };

struct HashedRanges {
    u64 at[HASHED_RANGES];
    u64 bytes[HASHED_RANGES];
};

// The 64 bytes of a block, of which `left` remain, followed by zeros.
static __device__ __forceinline__ void blake3_load(const u8* at, u64 left, u32 block[16]) {
    if (left >= BLAKE3_BLOCK && ((u64)at & 15) == 0) {
#pragma unroll
        for (int k = 0; k < 4; k++) {
            uint4 word = ((const uint4*)at)[k];
            block[4 * k] = word.x, block[4 * k + 1] = word.y;
            block[4 * k + 2] = word.z, block[4 * k + 3] = word.w;
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < 16; i++) {
        u32 word = 0;
#pragma unroll
        for (int k = 0; k < 4; k++) {
            if ((u64)(4 * i + k) < left) word |= (u32)at[4 * i + k] << (8 * k);
        }
        block[i] = word;
    }
}

// The chaining value of a chunk.
static __device__ void blake3_chunk(const u8* at, u64 bytes, u64 index, bool root, u32 cv[8]) {
#pragma unroll
    for (int i = 0; i < 8; i++) cv[i] = BLAKE3_IV[i];
    u32 blocks = bytes == 0 ? 1 : (u32)((bytes + BLAKE3_BLOCK - 1) / BLAKE3_BLOCK);
    for (u32 k = 0; k < blocks; k++) {
        u64 left = bytes - (u64)k * BLAKE3_BLOCK;
        u32 block[16], out[16];
        blake3_load(at + k * BLAKE3_BLOCK, left, block);
        u32 flags = (k == 0 ? CHUNK_START : 0) | (k + 1 == blocks ? CHUNK_END | (root ? ROOT : 0) : 0);
        blake3_compress(cv, block, index, left < BLAKE3_BLOCK ? (u32)left : BLAKE3_BLOCK, flags, out);
#pragma unroll
        for (int i = 0; i < 8; i++) cv[i] = out[i];
    }
}

static __device__ void blake3_parent(const u32 children[16], bool root, u32 cv[8]) {
    u32 iv[8], out[16];
#pragma unroll
    for (int i = 0; i < 8; i++) iv[i] = BLAKE3_IV[i];
    blake3_compress(iv, children, 0, BLAKE3_BLOCK, PARENT | (root ? ROOT : 0), out);
#pragma unroll
    for (int i = 0; i < 8; i++) cv[i] = out[i];
}

static __device__ u64 hash_groups(u64 bytes) {
    u64 group = (u64)HASH_THREADS * BLAKE3_CHUNK;
    return bytes == 0 ? 1 : (bytes + group - 1) / group;
}

// Hashes range blockIdx.y of `all` with BLAKE3; gridDim.x is at least the number of groups of the
// largest range. Writes the digests to the page, and then `call` when all are present. `work`:
// counters, which are 0 before and after, then 64 bytes for each group.
extern "C" __global__ void __launch_bounds__(HASH_THREADS)
wg_commit(const __grid_constant__ HashedRanges all, u32* work, volatile u32* page, u32 call) {
    __shared__ u32 values[HASH_THREADS][8];
    __shared__ bool last;
    u32 range = blockIdx.y, thread = threadIdx.x;
    u64 bytes = all.bytes[range], groups = hash_groups(bytes);
    if (blockIdx.x >= groups) return;
    u64 before = 0;
    for (u32 other = 0; other < range; other++) before += hash_groups(all.bytes[other]);
    volatile u32* digests = work + HASHED_RANGES + 16 + 16 * before;
    volatile u32* others = digests + 8 * groups;
    u64 chunks = bytes == 0 ? 1 : (bytes + BLAKE3_CHUNK - 1) / BLAKE3_CHUNK;
    u64 first = (u64)blockIdx.x * HASH_THREADS, chunk = first + thread;
    if (chunk < chunks) {
        u64 from = chunk * BLAKE3_CHUNK, left = bytes - from;
        u32 cv[8];
        blake3_chunk((const u8*)all.at[range] + from, left < BLAKE3_CHUNK ? left : BLAKE3_CHUNK, chunk,
                     chunks == 1, cv);
#pragma unroll
        for (int i = 0; i < 8; i++) values[thread][i] = cv[i];
    }
    __syncthreads();
    // Neighbours are joined. A value without a neighbour stays for the next level.
    u32 count = chunks - first < HASH_THREADS ? (u32)(chunks - first) : HASH_THREADS;
    while (count > 1) {
        u32 next = (count + 1) / 2;
        u32 cv[8];
        if (thread < next) {
            if (2 * thread + 1 < count) {
                blake3_parent(values[2 * thread], groups == 1 && count == 2, cv);
            } else {
                for (int i = 0; i < 8; i++) cv[i] = values[2 * thread][i];
            }
        }
        __syncthreads();
        if (thread < next) {
            for (int i = 0; i < 8; i++) values[thread][i] = cv[i];
        }
        __syncthreads();
        count = next;
    }
    if (thread == 0) {
        for (int i = 0; i < 8; i++) digests[8 * (u64)blockIdx.x + i] = values[0][i];
        __threadfence();
        last = atomicAdd(&work[range], 1) == (u32)groups - 1;
        __threadfence();
    }
    __syncthreads();
    if (!last) return;
    u64 rest = groups;
    while (rest > 1) {
        u64 next = (rest + 1) / 2;
        for (u64 i = thread; i < next; i += HASH_THREADS) {
            u32 cv[8], children[16];
            if (2 * i + 1 < rest) {
                for (int k = 0; k < 16; k++) children[k] = digests[16 * i + k];
                blake3_parent(children, rest == 2, cv);
            } else {
                for (int k = 0; k < 8; k++) cv[k] = digests[16 * i + k];
            }
            for (int k = 0; k < 8; k++) others[8 * i + k] = cv[k];
        }
        __threadfence();
        __syncthreads();
        volatile u32* swapped = digests;
        digests = others, others = swapped, rest = next;
    }
    if (thread == 0) {
        for (int i = 0; i < 8; i++) page[GATE_DIGESTS + 8 * range + i] = digests[i];
        work[range] = 0;
        __threadfence_system();
        if (atomicAdd(&work[HASHED_RANGES], 1) == gridDim.y - 1) {
            work[HASHED_RANGES] = 0;
            __threadfence_system();
            page[GATE_DONE] = call;
        }
    }
}

// The cycle counter of every multiprocessor together with the device's time: slots[2 * smid] has
// cycles, slots[2 * smid + 1] nanoseconds. The differences between two such readings give the mean
// clock.
extern "C" __global__ void wg_stamp(u64* slots, u32 multiprocessors) {
    if (threadIdx.x != 0) return;
    u32 smid;
    asm volatile("mov.u32 %0, %smid;" : "=r"(smid));
    if (smid >= multiprocessors) return;
    u64 ns = global_time();
    u64 cycles = (u64)clock64();
    slots[2 * smid] = cycles;
    slots[2 * smid + 1] = ns;
}

extern "C" __global__ void wg_empty() {}
