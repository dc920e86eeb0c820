// Definitions that code written for nvcc expects and NVRTC lacks: limits, fixed-width integers,
// mathematical constants, and a part of namespace std. The prelude precedes every source.
//
// A name that the source defines is not defined here. Then WARPGAUGE_OWN_<name> is defined.
#ifndef WARPGAUGE_PRELUDE
#define WARPGAUGE_PRELUDE

// <stdint.h>, as on 64-bit Linux. libcu++ defines some of these types, and the limits below,
// differently. If the source uses libcu++, its definitions apply.
#ifdef WARPGAUGE_LIBCUXX
#include <cuda/std/cfloat>
#include <cuda/std/climits>
#include <cuda/std/cstdint>
#else
#ifndef WARPGAUGE_OWN_int8_t
typedef signed char int8_t;
#endif
#ifndef WARPGAUGE_OWN_uint8_t
typedef unsigned char uint8_t;
#endif
#ifndef WARPGAUGE_OWN_int16_t
typedef short int16_t;
#endif
#ifndef WARPGAUGE_OWN_uint16_t
typedef unsigned short uint16_t;
#endif
#ifndef WARPGAUGE_OWN_int32_t
typedef int int32_t;
#endif
#ifndef WARPGAUGE_OWN_uint32_t
typedef unsigned int uint32_t;
#endif
#ifndef WARPGAUGE_OWN_int64_t
typedef long int64_t;
#endif
#ifndef WARPGAUGE_OWN_uint64_t
typedef unsigned long uint64_t;
#endif
#ifndef WARPGAUGE_OWN_intptr_t
typedef long intptr_t;
#endif
#ifndef WARPGAUGE_OWN_uintptr_t
typedef unsigned long uintptr_t;
#endif
#endif
#ifndef WARPGAUGE_OWN_ssize_t
typedef long ssize_t;
#endif
#ifndef WARPGAUGE_OWN_uchar
typedef unsigned char uchar;
#endif
#ifndef WARPGAUGE_OWN_ushort
typedef unsigned short ushort;
#endif
#ifndef WARPGAUGE_OWN_uint
typedef unsigned int uint;
#endif
#ifndef WARPGAUGE_OWN_ulong
typedef unsigned long ulong;
#endif

// <cuda.h>: handles that are parameters of kernels.
#ifndef WARPGAUGE_OWN_CUdeviceptr
typedef unsigned long long CUdeviceptr;
#endif
#ifndef WARPGAUGE_OWN_CUtexObject
typedef unsigned long long CUtexObject;
#endif
#ifndef WARPGAUGE_OWN_CUsurfObject
typedef unsigned long long CUsurfObject;
#endif

// <cufft.h>: elements that kernels read and write.
#ifndef WARPGAUGE_OWN_cufftReal
typedef float cufftReal;
#endif
#ifndef WARPGAUGE_OWN_cufftDoubleReal
typedef double cufftDoubleReal;
#endif
#ifndef WARPGAUGE_OWN_cufftComplex
typedef float2 cufftComplex;
#endif
#ifndef WARPGAUGE_OWN_cufftDoubleComplex
typedef double2 cufftDoubleComplex;
#endif

// Replaces `constexpr` before a function without an execution space, as with nvcc's
// --expt-relaxed-constexpr.
#define WG_CONSTX __host__ __device__ constexpr
// Replaces `const` before a number that device code reads and that depends on other constants.
#define WG_CX constexpr

// <limits.h>
#if !defined(CHAR_BIT) && !defined(WARPGAUGE_OWN_CHAR_BIT)
#define CHAR_BIT 8
#endif
#if !defined(SCHAR_MIN) && !defined(WARPGAUGE_OWN_SCHAR_MIN)
#define SCHAR_MIN (-128)
#endif
#if !defined(SCHAR_MAX) && !defined(WARPGAUGE_OWN_SCHAR_MAX)
#define SCHAR_MAX 127
#endif
#if !defined(UCHAR_MAX) && !defined(WARPGAUGE_OWN_UCHAR_MAX)
#define UCHAR_MAX 255
#endif
#if !defined(CHAR_MIN) && !defined(WARPGAUGE_OWN_CHAR_MIN)
#define CHAR_MIN (-128)
#endif
#if !defined(CHAR_MAX) && !defined(WARPGAUGE_OWN_CHAR_MAX)
#define CHAR_MAX 127
#endif
#if !defined(SHRT_MIN) && !defined(WARPGAUGE_OWN_SHRT_MIN)
#define SHRT_MIN (-32768)
#endif
#if !defined(SHRT_MAX) && !defined(WARPGAUGE_OWN_SHRT_MAX)
#define SHRT_MAX 32767
#endif
#if !defined(USHRT_MAX) && !defined(WARPGAUGE_OWN_USHRT_MAX)
#define USHRT_MAX 65535
#endif
#if !defined(INT_MIN) && !defined(WARPGAUGE_OWN_INT_MIN)
#define INT_MIN (-2147483647 - 1)
#endif
#if !defined(INT_MAX) && !defined(WARPGAUGE_OWN_INT_MAX)
#define INT_MAX 2147483647
#endif
#if !defined(UINT_MAX) && !defined(WARPGAUGE_OWN_UINT_MAX)
#define UINT_MAX 4294967295u
#endif
#if !defined(LONG_MIN) && !defined(WARPGAUGE_OWN_LONG_MIN)
#define LONG_MIN (-9223372036854775807l - 1)
#endif
#if !defined(LONG_MAX) && !defined(WARPGAUGE_OWN_LONG_MAX)
#define LONG_MAX 9223372036854775807l
#endif
#if !defined(ULONG_MAX) && !defined(WARPGAUGE_OWN_ULONG_MAX)
#define ULONG_MAX 18446744073709551615ul
#endif
#if !defined(LLONG_MIN) && !defined(WARPGAUGE_OWN_LLONG_MIN)
#define LLONG_MIN (-9223372036854775807ll - 1)
#endif
#if !defined(LLONG_MAX) && !defined(WARPGAUGE_OWN_LLONG_MAX)
#define LLONG_MAX 9223372036854775807ll
#endif
#if !defined(ULLONG_MAX) && !defined(WARPGAUGE_OWN_ULLONG_MAX)
#define ULLONG_MAX 18446744073709551615ull
#endif

// <stdint.h>
#if !defined(INT8_MIN) && !defined(WARPGAUGE_OWN_INT8_MIN)
#define INT8_MIN (-128)
#endif
#if !defined(INT8_MAX) && !defined(WARPGAUGE_OWN_INT8_MAX)
#define INT8_MAX 127
#endif
#if !defined(UINT8_MAX) && !defined(WARPGAUGE_OWN_UINT8_MAX)
#define UINT8_MAX 255
#endif
#if !defined(INT16_MIN) && !defined(WARPGAUGE_OWN_INT16_MIN)
#define INT16_MIN (-32768)
#endif
#if !defined(INT16_MAX) && !defined(WARPGAUGE_OWN_INT16_MAX)
#define INT16_MAX 32767
#endif
#if !defined(UINT16_MAX) && !defined(WARPGAUGE_OWN_UINT16_MAX)
#define UINT16_MAX 65535
#endif
#if !defined(INT32_MIN) && !defined(WARPGAUGE_OWN_INT32_MIN)
#define INT32_MIN (-2147483647 - 1)
#endif
#if !defined(INT32_MAX) && !defined(WARPGAUGE_OWN_INT32_MAX)
#define INT32_MAX 2147483647
#endif
#if !defined(UINT32_MAX) && !defined(WARPGAUGE_OWN_UINT32_MAX)
#define UINT32_MAX 4294967295u
#endif
#if !defined(INT64_MIN) && !defined(WARPGAUGE_OWN_INT64_MIN)
#define INT64_MIN (-9223372036854775807l - 1)
#endif
#if !defined(INT64_MAX) && !defined(WARPGAUGE_OWN_INT64_MAX)
#define INT64_MAX 9223372036854775807l
#endif
#if !defined(UINT64_MAX) && !defined(WARPGAUGE_OWN_UINT64_MAX)
#define UINT64_MAX 18446744073709551615ul
#endif
#if !defined(SIZE_MAX) && !defined(WARPGAUGE_OWN_SIZE_MAX)
#define SIZE_MAX 18446744073709551615ul
#endif

// <stdint.h>, <inttypes.h>
#if !defined(INT8_C) && !defined(WARPGAUGE_OWN_INT8_C)
#define INT8_C(x) x
#endif
#if !defined(UINT8_C) && !defined(WARPGAUGE_OWN_UINT8_C)
#define UINT8_C(x) x
#endif
#if !defined(INT16_C) && !defined(WARPGAUGE_OWN_INT16_C)
#define INT16_C(x) x
#endif
#if !defined(UINT16_C) && !defined(WARPGAUGE_OWN_UINT16_C)
#define UINT16_C(x) x
#endif
#if !defined(INT32_C) && !defined(WARPGAUGE_OWN_INT32_C)
#define INT32_C(x) x
#endif
#if !defined(UINT32_C) && !defined(WARPGAUGE_OWN_UINT32_C)
#define UINT32_C(x) x##u
#endif
#if !defined(INT64_C) && !defined(WARPGAUGE_OWN_INT64_C)
#define INT64_C(x) x##l
#endif
#if !defined(UINT64_C) && !defined(WARPGAUGE_OWN_UINT64_C)
#define UINT64_C(x) x##ul
#endif
#if !defined(INTMAX_C) && !defined(WARPGAUGE_OWN_INTMAX_C)
#define INTMAX_C(x) x##l
#endif
#if !defined(UINTMAX_C) && !defined(WARPGAUGE_OWN_UINTMAX_C)
#define UINTMAX_C(x) x##ul
#endif
#if !defined(PRId8) && !defined(WARPGAUGE_OWN_PRId8)
#define PRId8 "d"
#endif
#if !defined(PRIi8) && !defined(WARPGAUGE_OWN_PRIi8)
#define PRIi8 "i"
#endif
#if !defined(PRIo8) && !defined(WARPGAUGE_OWN_PRIo8)
#define PRIo8 "o"
#endif
#if !defined(PRIu8) && !defined(WARPGAUGE_OWN_PRIu8)
#define PRIu8 "u"
#endif
#if !defined(PRIx8) && !defined(WARPGAUGE_OWN_PRIx8)
#define PRIx8 "x"
#endif
#if !defined(PRIX8) && !defined(WARPGAUGE_OWN_PRIX8)
#define PRIX8 "X"
#endif
#if !defined(PRId16) && !defined(WARPGAUGE_OWN_PRId16)
#define PRId16 "d"
#endif
#if !defined(PRIi16) && !defined(WARPGAUGE_OWN_PRIi16)
#define PRIi16 "i"
#endif
#if !defined(PRIo16) && !defined(WARPGAUGE_OWN_PRIo16)
#define PRIo16 "o"
#endif
#if !defined(PRIu16) && !defined(WARPGAUGE_OWN_PRIu16)
#define PRIu16 "u"
#endif
#if !defined(PRIx16) && !defined(WARPGAUGE_OWN_PRIx16)
#define PRIx16 "x"
#endif
#if !defined(PRIX16) && !defined(WARPGAUGE_OWN_PRIX16)
#define PRIX16 "X"
#endif
#if !defined(PRId32) && !defined(WARPGAUGE_OWN_PRId32)
#define PRId32 "d"
#endif
#if !defined(PRIi32) && !defined(WARPGAUGE_OWN_PRIi32)
#define PRIi32 "i"
#endif
#if !defined(PRIo32) && !defined(WARPGAUGE_OWN_PRIo32)
#define PRIo32 "o"
#endif
#if !defined(PRIu32) && !defined(WARPGAUGE_OWN_PRIu32)
#define PRIu32 "u"
#endif
#if !defined(PRIx32) && !defined(WARPGAUGE_OWN_PRIx32)
#define PRIx32 "x"
#endif
#if !defined(PRIX32) && !defined(WARPGAUGE_OWN_PRIX32)
#define PRIX32 "X"
#endif
#if !defined(PRId64) && !defined(WARPGAUGE_OWN_PRId64)
#define PRId64 "ld"
#endif
#if !defined(PRIi64) && !defined(WARPGAUGE_OWN_PRIi64)
#define PRIi64 "li"
#endif
#if !defined(PRIo64) && !defined(WARPGAUGE_OWN_PRIo64)
#define PRIo64 "lo"
#endif
#if !defined(PRIu64) && !defined(WARPGAUGE_OWN_PRIu64)
#define PRIu64 "lu"
#endif
#if !defined(PRIx64) && !defined(WARPGAUGE_OWN_PRIx64)
#define PRIx64 "lx"
#endif
#if !defined(PRIX64) && !defined(WARPGAUGE_OWN_PRIX64)
#define PRIX64 "lX"
#endif
#if !defined(PRIdPTR) && !defined(WARPGAUGE_OWN_PRIdPTR)
#define PRIdPTR "ld"
#endif
#if !defined(PRIiPTR) && !defined(WARPGAUGE_OWN_PRIiPTR)
#define PRIiPTR "li"
#endif
#if !defined(PRIuPTR) && !defined(WARPGAUGE_OWN_PRIuPTR)
#define PRIuPTR "lu"
#endif
#if !defined(PRIxPTR) && !defined(WARPGAUGE_OWN_PRIxPTR)
#define PRIxPTR "lx"
#endif

// <float.h>
#if !defined(FLT_RADIX) && !defined(WARPGAUGE_OWN_FLT_RADIX)
#define FLT_RADIX 2
#endif
#if !defined(FLT_DIG) && !defined(WARPGAUGE_OWN_FLT_DIG)
#define FLT_DIG 6
#endif
#if !defined(FLT_MANT_DIG) && !defined(WARPGAUGE_OWN_FLT_MANT_DIG)
#define FLT_MANT_DIG 24
#endif
#if !defined(FLT_MIN_EXP) && !defined(WARPGAUGE_OWN_FLT_MIN_EXP)
#define FLT_MIN_EXP (-125)
#endif
#if !defined(FLT_MAX_EXP) && !defined(WARPGAUGE_OWN_FLT_MAX_EXP)
#define FLT_MAX_EXP 128
#endif
#if !defined(FLT_MAX) && !defined(WARPGAUGE_OWN_FLT_MAX)
#define FLT_MAX 3.402823466e+38f
#endif
#if !defined(FLT_MIN) && !defined(WARPGAUGE_OWN_FLT_MIN)
#define FLT_MIN 1.175494351e-38f
#endif
#if !defined(FLT_EPSILON) && !defined(WARPGAUGE_OWN_FLT_EPSILON)
#define FLT_EPSILON 1.192092896e-07f
#endif
#if !defined(DBL_DIG) && !defined(WARPGAUGE_OWN_DBL_DIG)
#define DBL_DIG 15
#endif
#if !defined(DBL_MANT_DIG) && !defined(WARPGAUGE_OWN_DBL_MANT_DIG)
#define DBL_MANT_DIG 53
#endif
#if !defined(DBL_MIN_EXP) && !defined(WARPGAUGE_OWN_DBL_MIN_EXP)
#define DBL_MIN_EXP (-1021)
#endif
#if !defined(DBL_MAX_EXP) && !defined(WARPGAUGE_OWN_DBL_MAX_EXP)
#define DBL_MAX_EXP 1024
#endif
#if !defined(DBL_MAX) && !defined(WARPGAUGE_OWN_DBL_MAX)
#define DBL_MAX 1.7976931348623157e+308
#endif
#if !defined(DBL_MIN) && !defined(WARPGAUGE_OWN_DBL_MIN)
#define DBL_MIN 2.2250738585072014e-308
#endif
#if !defined(DBL_EPSILON) && !defined(WARPGAUGE_OWN_DBL_EPSILON)
#define DBL_EPSILON 2.2204460492503131e-16
#endif

// <math.h>. Newer versions of libcu++ define INFINITY and NAN.
#if defined(WARPGAUGE_LIBCUXX) && !defined(WARPGAUGE_OWN_INFINITY) && !defined(WARPGAUGE_OWN_NAN)
#include <cuda/std/cmath>
#endif
#if !defined(INFINITY) && !defined(WARPGAUGE_OWN_INFINITY)
#define INFINITY __int_as_float(0x7f800000)
#endif
#if !defined(NAN) && !defined(WARPGAUGE_OWN_NAN)
#define NAN __int_as_float(0x7fffffff)
#endif
#if !defined(HUGE_VALF) && !defined(WARPGAUGE_OWN_HUGE_VALF)
#define HUGE_VALF __int_as_float(0x7f800000)
#endif
#if !defined(HUGE_VAL) && !defined(WARPGAUGE_OWN_HUGE_VAL)
#define HUGE_VAL __longlong_as_double(0x7ff0000000000000ll)
#endif
#if !defined(M_E) && !defined(WARPGAUGE_OWN_M_E)
#define M_E 2.7182818284590452354
#endif
#if !defined(M_LOG2E) && !defined(WARPGAUGE_OWN_M_LOG2E)
#define M_LOG2E 1.4426950408889634074
#endif
#if !defined(M_LOG10E) && !defined(WARPGAUGE_OWN_M_LOG10E)
#define M_LOG10E 0.43429448190325182765
#endif
#if !defined(M_LN2) && !defined(WARPGAUGE_OWN_M_LN2)
#define M_LN2 0.69314718055994530942
#endif
#if !defined(M_LN10) && !defined(WARPGAUGE_OWN_M_LN10)
#define M_LN10 2.30258509299404568402
#endif
#if !defined(M_PI) && !defined(WARPGAUGE_OWN_M_PI)
#define M_PI 3.14159265358979323846
#endif
#if !defined(M_PI_2) && !defined(WARPGAUGE_OWN_M_PI_2)
#define M_PI_2 1.57079632679489661923
#endif
#if !defined(M_PI_4) && !defined(WARPGAUGE_OWN_M_PI_4)
#define M_PI_4 0.78539816339744830962
#endif
#if !defined(M_1_PI) && !defined(WARPGAUGE_OWN_M_1_PI)
#define M_1_PI 0.31830988618379067154
#endif
#if !defined(M_2_PI) && !defined(WARPGAUGE_OWN_M_2_PI)
#define M_2_PI 0.63661977236758134308
#endif
#if !defined(M_2_SQRTPI) && !defined(WARPGAUGE_OWN_M_2_SQRTPI)
#define M_2_SQRTPI 1.12837916709551257390
#endif
#if !defined(M_SQRT2) && !defined(WARPGAUGE_OWN_M_SQRT2)
#define M_SQRT2 1.41421356237309504880
#endif
#if !defined(M_SQRT1_2) && !defined(WARPGAUGE_OWN_M_SQRT1_2)
#define M_SQRT1_2 0.70710678118654752440
#endif

// <cmath> has overloads for integers, which compute in double precision.
template <class T>
struct __warpgauge_of_integer {};
template <>
struct __warpgauge_of_integer<char> {
    typedef double type;
};
template <>
struct __warpgauge_of_integer<signed char> {
    typedef double type;
};
template <>
struct __warpgauge_of_integer<unsigned char> {
    typedef double type;
};
template <>
struct __warpgauge_of_integer<short> {
    typedef double type;
};
template <>
struct __warpgauge_of_integer<unsigned short> {
    typedef double type;
};
template <>
struct __warpgauge_of_integer<int> {
    typedef double type;
};
template <>
struct __warpgauge_of_integer<unsigned int> {
    typedef double type;
};
template <>
struct __warpgauge_of_integer<long> {
    typedef double type;
};
template <>
struct __warpgauge_of_integer<unsigned long> {
    typedef double type;
};
template <>
struct __warpgauge_of_integer<long long> {
    typedef double type;
};
template <>
struct __warpgauge_of_integer<unsigned long long> {
    typedef double type;
};
#define WARPGAUGE_OF_INTEGER(name)                                                    \
    template <class T>                                                                \
    __host__ __device__ inline typename __warpgauge_of_integer<T>::type name(T x) {   \
        return ::name(static_cast<double>(x));                                        \
    }
WARPGAUGE_OF_INTEGER(acos)
WARPGAUGE_OF_INTEGER(asin)
WARPGAUGE_OF_INTEGER(atan)
WARPGAUGE_OF_INTEGER(cbrt)
WARPGAUGE_OF_INTEGER(ceil)
WARPGAUGE_OF_INTEGER(cos)
WARPGAUGE_OF_INTEGER(cosh)
WARPGAUGE_OF_INTEGER(erf)
WARPGAUGE_OF_INTEGER(exp)
WARPGAUGE_OF_INTEGER(exp2)
WARPGAUGE_OF_INTEGER(fabs)
WARPGAUGE_OF_INTEGER(floor)
WARPGAUGE_OF_INTEGER(log)
WARPGAUGE_OF_INTEGER(log10)
WARPGAUGE_OF_INTEGER(log1p)
WARPGAUGE_OF_INTEGER(log2)
WARPGAUGE_OF_INTEGER(rint)
WARPGAUGE_OF_INTEGER(round)
WARPGAUGE_OF_INTEGER(sin)
WARPGAUGE_OF_INTEGER(sinh)
WARPGAUGE_OF_INTEGER(sqrt)
WARPGAUGE_OF_INTEGER(tan)
WARPGAUGE_OF_INTEGER(tanh)
WARPGAUGE_OF_INTEGER(trunc)
#undef WARPGAUGE_OF_INTEGER
template <class T, class U>
__host__ __device__ inline typename __warpgauge_of_integer<T>::type pow(T x, U y) {
    return ::pow(static_cast<double>(x), static_cast<double>(y));
}

// <algorithm>, <utility>, <limits>: the part that kernels use.
#ifndef WARPGAUGE_OWN_std
namespace std {
// Host code of many files contains `using namespace std::chrono` and the like. The headers of these
// namespaces are empty here.
namespace chrono {}
namespace chrono_literals {}
namespace filesystem {}
namespace literals {}
namespace placeholders {}
namespace string_literals {}
namespace this_thread {}
template <class T>
__host__ __device__ constexpr const T& min(const T& a, const T& b) {
    return b < a ? b : a;
}
template <class T>
__host__ __device__ constexpr const T& max(const T& a, const T& b) {
    return a < b ? b : a;
}
template <class T>
__host__ __device__ constexpr const T& clamp(const T& x, const T& low, const T& high) {
    return x < low ? low : high < x ? high : x;
}
template <class T>
__host__ __device__ constexpr void swap(T& a, T& b) {
    T t = a;
    a = b;
    b = t;
}
using ::abs;
using ::acos;
using ::acosf;
using ::acosh;
using ::asin;
using ::asinf;
using ::asinh;
using ::atan;
using ::atan2;
using ::atan2f;
using ::atanf;
using ::atanh;
using ::cbrt;
using ::cbrtf;
using ::ceil;
using ::ceilf;
using ::copysign;
using ::copysignf;
using ::cos;
using ::cosf;
using ::cosh;
using ::coshf;
using ::erf;
using ::erfc;
using ::erff;
using ::exp;
using ::exp2;
using ::exp2f;
using ::expf;
using ::expm1;
using ::expm1f;
using ::fabs;
using ::fabsf;
using ::fdim;
using ::floor;
using ::floorf;
using ::fma;
using ::fmaf;
using ::fmax;
using ::fmaxf;
using ::fmin;
using ::fminf;
using ::fmod;
using ::fmodf;
using ::frexp;
using ::hypot;
using ::hypotf;
using ::ilogb;
using ::isfinite;
using ::isinf;
using ::isnan;
using ::ldexp;
using ::lgamma;
using ::llrint;
using ::llround;
using ::log;
using ::log10;
using ::log10f;
using ::log1p;
using ::log1pf;
using ::log2;
using ::log2f;
using ::logb;
using ::logf;
using ::lrint;
using ::lround;
using ::modf;
using ::nan;
using ::nearbyint;
using ::nearbyintf;
using ::nextafter;
using ::pow;
using ::powf;
using ::ptrdiff_t;
using ::remainder;
using ::remquo;
using ::rint;
using ::rintf;
using ::round;
using ::roundf;
using ::rsqrt;
using ::scalbln;
using ::scalbn;
using ::signbit;
using ::sin;
using ::sinf;
using ::sinh;
using ::sinhf;
using ::size_t;
using ::sqrt;
using ::sqrtf;
using ::tan;
using ::tanf;
using ::tanh;
using ::tanhf;
using ::tgamma;
using ::trunc;
using ::truncf;

// <cstdint>: the source of these types is chosen above.
#ifdef WARPGAUGE_LIBCUXX
using ::cuda::std::int8_t;
using ::cuda::std::uint8_t;
using ::cuda::std::int16_t;
using ::cuda::std::uint16_t;
using ::cuda::std::int32_t;
using ::cuda::std::uint32_t;
using ::cuda::std::int64_t;
using ::cuda::std::uint64_t;
using ::cuda::std::intptr_t;
using ::cuda::std::uintptr_t;
#else
#ifndef WARPGAUGE_OWN_int8_t
using ::int8_t;
#endif
#ifndef WARPGAUGE_OWN_uint8_t
using ::uint8_t;
#endif
#ifndef WARPGAUGE_OWN_int16_t
using ::int16_t;
#endif
#ifndef WARPGAUGE_OWN_uint16_t
using ::uint16_t;
#endif
#ifndef WARPGAUGE_OWN_int32_t
using ::int32_t;
#endif
#ifndef WARPGAUGE_OWN_uint32_t
using ::uint32_t;
#endif
#ifndef WARPGAUGE_OWN_int64_t
using ::int64_t;
#endif
#ifndef WARPGAUGE_OWN_uint64_t
using ::uint64_t;
#endif
#ifndef WARPGAUGE_OWN_intptr_t
using ::intptr_t;
#endif
#ifndef WARPGAUGE_OWN_uintptr_t
using ::uintptr_t;
#endif
#endif
using nullptr_t = decltype(nullptr);

// <type_traits>, <utility>. Values are enumerators, since a constant would be one more variable
// (see below). The compiler provides move and forward.
template <class T, T V>
struct integral_constant {
    enum : T { value = V };
    using value_type = T;
    using type = integral_constant;
    __host__ __device__ constexpr operator T() const noexcept { return V; }
    __host__ __device__ constexpr T operator()() const noexcept { return V; }
};
template <bool B>
using bool_constant = integral_constant<bool, B>;
using true_type = bool_constant<true>;
using false_type = bool_constant<false>;
template <bool B, class T = void>
struct enable_if {};
template <class T>
struct enable_if<true, T> {
    using type = T;
};
template <bool B, class T = void>
using enable_if_t = typename enable_if<B, T>::type;
template <bool B, class T, class F>
struct conditional {
    using type = T;
};
template <class T, class F>
struct conditional<false, T, F> {
    using type = F;
};
template <bool B, class T, class F>
using conditional_t = typename conditional<B, T, F>::type;
template <class...>
using void_t = void;
template <class T>
struct remove_reference {
    using type = T;
};
template <class T>
struct remove_reference<T&> {
    using type = T;
};
template <class T>
struct remove_reference<T&&> {
    using type = T;
};
template <class T>
using remove_reference_t = typename remove_reference<T>::type;
template <class T>
struct remove_const {
    using type = T;
};
template <class T>
struct remove_const<const T> {
    using type = T;
};
template <class T>
using remove_const_t = typename remove_const<T>::type;
template <class T>
struct remove_volatile {
    using type = T;
};
template <class T>
struct remove_volatile<volatile T> {
    using type = T;
};
template <class T>
struct remove_cv {
    using type = typename remove_const<typename remove_volatile<T>::type>::type;
};
template <class T>
using remove_cv_t = typename remove_cv<T>::type;
template <class T>
struct remove_pointer {
    using type = T;
};
template <class T>
struct remove_pointer<T*> {
    using type = T;
};
template <class T>
using remove_pointer_t = typename remove_pointer<T>::type;
template <class A, class B>
struct is_same : false_type {};
template <class A>
struct is_same<A, A> : true_type {};
template <class T>
struct is_pointer : false_type {};
template <class T>
struct is_pointer<T*> : true_type {};
template <class T, class... L>
struct __warpgauge_among : false_type {};
template <class T, class F, class... L>
struct __warpgauge_among<T, F, L...>
    : conditional<is_same<T, F>::value, true_type, __warpgauge_among<T, L...>>::type {};
template <class T>
struct is_floating_point : __warpgauge_among<remove_cv_t<T>, float, double> {};
template <class T>
struct is_integral
    : __warpgauge_among<remove_cv_t<T>, bool, char, signed char, unsigned char, wchar_t, char16_t,
                        char32_t, short, unsigned short, int, unsigned int, long, unsigned long,
                        long long, unsigned long long> {};
template <class T>
struct is_arithmetic : bool_constant<is_floating_point<T>::value || is_integral<T>::value> {};
template <class T, bool = is_arithmetic<T>::value>
struct is_unsigned : false_type {};
template <class T>
struct is_unsigned<T, true> : bool_constant<(T(0) < T(-1))> {};
template <class T>
struct is_signed : bool_constant<is_arithmetic<T>::value && !is_unsigned<T>::value> {};
template <class T>
struct is_enum : bool_constant<__is_enum(T)> {};
template <class B, class D>
struct is_base_of : bool_constant<__is_base_of(B, D)> {};
template <class T>
struct is_trivially_copyable : bool_constant<__is_trivially_copyable(T)> {};
template <class T>
__host__ __device__ T&& declval() noexcept;
#if __cplusplus >= 201703L
template <class A, class B>
inline constexpr bool is_same_v = is_same<A, B>::value;
template <class T>
inline constexpr bool is_pointer_v = is_pointer<T>::value;
template <class T>
inline constexpr bool is_floating_point_v = is_floating_point<T>::value;
template <class T>
inline constexpr bool is_integral_v = is_integral<T>::value;
template <class T>
inline constexpr bool is_arithmetic_v = is_arithmetic<T>::value;
template <class T>
inline constexpr bool is_signed_v = is_signed<T>::value;
template <class T>
inline constexpr bool is_unsigned_v = is_unsigned<T>::value;
template <class T>
inline constexpr bool is_enum_v = is_enum<T>::value;
template <class B, class D>
inline constexpr bool is_base_of_v = is_base_of<B, D>::value;
template <class T>
inline constexpr bool is_trivially_copyable_v = is_trivially_copyable<T>::value;
#endif

// Constants of a class become variables of the module, which a worker must restore before each
// launch. Those of a template instance exist only if a source uses it. So all classes here are
// templates, although each is used with one type only.
template <bool SIGNED, int I>
struct __warpgauge_integer {
    static constexpr bool is_specialized = true, is_integer = true, is_signed = SIGNED;
};
template <bool SIGNED, int I>
struct __warpgauge_real {
    static constexpr bool is_specialized = true, is_integer = false, is_signed = SIGNED;
    static constexpr bool has_infinity = true, has_quiet_NaN = true;
};
template <class T, int I>
struct __warpgauge_limits;
template <class T>
struct numeric_limits : __warpgauge_limits<T, 0> {};
template <int I>
struct __warpgauge_limits<bool, I> : __warpgauge_integer<false, I> {
    __host__ __device__ static constexpr bool min() { return false; }
    __host__ __device__ static constexpr bool lowest() { return false; }
    __host__ __device__ static constexpr bool max() { return true; }
};
template <int I>
struct __warpgauge_limits<char, I> : __warpgauge_integer<true, I> {
    __host__ __device__ static constexpr char min() { return (-128); }
    __host__ __device__ static constexpr char lowest() { return (-128); }
    __host__ __device__ static constexpr char max() { return 127; }
};
template <int I>
struct __warpgauge_limits<signed char, I> : __warpgauge_integer<true, I> {
    __host__ __device__ static constexpr signed char min() { return (-128); }
    __host__ __device__ static constexpr signed char lowest() { return (-128); }
    __host__ __device__ static constexpr signed char max() { return 127; }
};
template <int I>
struct __warpgauge_limits<unsigned char, I> : __warpgauge_integer<false, I> {
    __host__ __device__ static constexpr unsigned char min() { return 0; }
    __host__ __device__ static constexpr unsigned char lowest() { return 0; }
    __host__ __device__ static constexpr unsigned char max() { return 255; }
};
template <int I>
struct __warpgauge_limits<short, I> : __warpgauge_integer<true, I> {
    __host__ __device__ static constexpr short min() { return (-32768); }
    __host__ __device__ static constexpr short lowest() { return (-32768); }
    __host__ __device__ static constexpr short max() { return 32767; }
};
template <int I>
struct __warpgauge_limits<unsigned short, I> : __warpgauge_integer<false, I> {
    __host__ __device__ static constexpr unsigned short min() { return 0; }
    __host__ __device__ static constexpr unsigned short lowest() { return 0; }
    __host__ __device__ static constexpr unsigned short max() { return 65535; }
};
template <int I>
struct __warpgauge_limits<int, I> : __warpgauge_integer<true, I> {
    __host__ __device__ static constexpr int min() { return (-2147483647 - 1); }
    __host__ __device__ static constexpr int lowest() { return (-2147483647 - 1); }
    __host__ __device__ static constexpr int max() { return 2147483647; }
};
template <int I>
struct __warpgauge_limits<unsigned int, I> : __warpgauge_integer<false, I> {
    __host__ __device__ static constexpr unsigned int min() { return 0; }
    __host__ __device__ static constexpr unsigned int lowest() { return 0; }
    __host__ __device__ static constexpr unsigned int max() { return 4294967295u; }
};
template <int I>
struct __warpgauge_limits<long, I> : __warpgauge_integer<true, I> {
    __host__ __device__ static constexpr long min() { return (-9223372036854775807l - 1); }
    __host__ __device__ static constexpr long lowest() { return (-9223372036854775807l - 1); }
    __host__ __device__ static constexpr long max() { return 9223372036854775807l; }
};
template <int I>
struct __warpgauge_limits<unsigned long, I> : __warpgauge_integer<false, I> {
    __host__ __device__ static constexpr unsigned long min() { return 0; }
    __host__ __device__ static constexpr unsigned long lowest() { return 0; }
    __host__ __device__ static constexpr unsigned long max() { return 18446744073709551615ul; }
};
template <int I>
struct __warpgauge_limits<long long, I> : __warpgauge_integer<true, I> {
    __host__ __device__ static constexpr long long min() { return (-9223372036854775807ll - 1); }
    __host__ __device__ static constexpr long long lowest() { return (-9223372036854775807ll - 1); }
    __host__ __device__ static constexpr long long max() { return 9223372036854775807ll; }
};
template <int I>
struct __warpgauge_limits<unsigned long long, I> : __warpgauge_integer<false, I> {
    __host__ __device__ static constexpr unsigned long long min() { return 0; }
    __host__ __device__ static constexpr unsigned long long lowest() { return 0; }
    __host__ __device__ static constexpr unsigned long long max() { return 18446744073709551615ull; }
};
template <int I>
struct __warpgauge_limits<float, I> : __warpgauge_real<true, I> {
    __host__ __device__ static constexpr float min() { return 1.175494351e-38f; }
    __host__ __device__ static constexpr float lowest() { return -3.402823466e+38f; }
    __host__ __device__ static constexpr float max() { return 3.402823466e+38f; }
    __host__ __device__ static constexpr float epsilon() { return 1.192092896e-07f; }
    __device__ static float infinity() { return __int_as_float(0x7f800000); }
    __device__ static float quiet_NaN() { return __int_as_float(0x7fc00000); }
};
template <int I>
struct __warpgauge_limits<double, I> : __warpgauge_real<true, I> {
    __host__ __device__ static constexpr double min() { return 2.2250738585072014e-308; }
    __host__ __device__ static constexpr double lowest() { return -1.7976931348623157e+308; }
    __host__ __device__ static constexpr double max() { return 1.7976931348623157e+308; }
    __host__ __device__ static constexpr double epsilon() { return 2.2204460492503131e-16; }
    __device__ static double infinity() { return __longlong_as_double(0x7ff0000000000000ll); }
    __device__ static double quiet_NaN() { return __longlong_as_double(0x7ff8000000000000ll); }
};
}  // namespace std
#endif

#endif  // WARPGAUGE_PRELUDE
