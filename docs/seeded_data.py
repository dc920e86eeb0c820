"""Seeded tensor content of warpgauge in numpy, bit for bit (see seeded-data.md)."""
import numpy as np

INT_TYPES = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool".split()
# Types of the numbers; `float4` has its sign in the highest bit.
PACKED = {"float4_e2m1fn_x2": "float4", "int4x2": "int8", "uint4x2": "int8"}
COMPLEX = {"complex64": "float32", "complex128": "float64"}  # types of the parts


def fnv1a64(name):
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = ((h ^ byte) * 0x100000001B3) % 2**64
    return h


def words(seed, name, first, n):
    """Words first .. first+n-1 of the argument's random stream; element i uses word i."""
    key = np.array([seed, fnv1a64(name)], dtype=np.uint64)
    bits = np.random.Philox(key=key, counter=first // 4)
    return bits.random_raw(first % 4 + n)[first % 4 :]


def ln(x):
    m, e = np.frexp(x)
    low = m < 0.7071067811865476
    m, e = np.where(low, m * 2, m), np.where(low, e - 1, e).astype(np.float64)
    s = (m - 1) / (m + 1)
    t, p = s * s, np.full_like(s, 1 / 21)
    for k in (19, 17, 15, 13, 11, 9, 7, 5, 3, 1):
        p = p * t + 1 / k
    return e * 0.6931471805599453 + 2 * s * p


def rational(pair, r):
    n, d = (np.full_like(r, c[7]) for c in pair)
    for k in range(6, -1, -1):
        n, d = n * r + pair[0][k], d * r + pair[1][k]
    return n, d


CENTRE = [[3.387132872796366608, 133.14166789178437745, 1971.5909503065514427,
           13731.693765509461125, 45921.953931549871457, 67265.770927008700853,
           33430.575583588128105, 2509.0809287301226727],
          [1.0, 42.313330701600911252, 687.18700749205790830, 5394.1960214247511077,
           21213.794301586595867, 39307.895800092710610, 28729.085735721942674,
           5226.4952788528545610]]
TAIL = [[1.42343711074968357734, 4.63033784615654529590, 5.76949722146069140550,
         3.64784832476320460504, 1.27045825245236838258, 2.41780725177450611770e-1,
         2.27238449892691845833e-2, 7.74545014278341407640e-4],
        [1.0, 2.05319162663775882187, 1.67638483018380384940, 6.89767334985100004550e-1,
         1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
         1.05075007164441684324e-9]]
FAR = [[6.65790464350110377720, 5.46378491116411436990, 1.78482653991729133580,
        2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
        2.71155556874348757815e-5, 2.01033439929228813265e-7],
       [1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
        7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
        2.04426310338993978564e-15]]


def standard_normal(w):
    p = np.minimum((w >> 11).astype(np.float64) * 2.0**-53 + 2.0**-54, 1 - 2.0**-53)
    q = p - 0.5
    r = np.sqrt(-ln(np.where(q < 0, p, 1 - p)))
    n, d = rational(CENTRE, 0.180625 - q * q)
    (tn, td), (fn, fd) = rational(TAIL, r - 1.6), rational(FAR, r - 5)
    tail = np.where(r <= 5, tn / td, fn / fd)
    return np.where(np.abs(q) <= 0.425, q * n / d, np.where(q < 0, -tail, tail))


def integers(w, low, high):
    span = high - low
    if span <= 2**32:
        offset = ((w >> 32) * np.uint64(span)) >> 32
    else:
        offset = np.array([(int(x) * span) >> 64 for x in w], dtype=np.uint64)
    return offset + np.uint64(low % 2**64)  # two's complement: the low bits are the element


def float8(x, mantissa_bits, bias, largest):
    a = np.abs(x.astype(np.float64))
    e = np.maximum(np.frexp(np.where(a == 0, 1e-30, a))[1] - 1, 1 - bias)
    steps = np.rint(a * 2.0 ** (mantissa_bits - e))
    code = np.minimum((e - 1 + bias) * 2**mantissa_bits + steps, largest)
    return np.where(np.isnan(x), 127, code).astype(np.uint8) | (np.signbit(x) * np.uint8(128))


def scale8(x):
    """The nearest power of two, as float8_e8m0fnu has it."""
    bits = np.maximum(x, np.float32(0)).view(np.uint32)
    exponent, fraction = bits >> 23, bits & 0x7FFFFF
    code = np.minimum(exponent + (fraction >= np.where(exponent == 0, 0x600000, 0x400000)), 254)
    return np.where(np.isnan(x), 255, code).astype(np.uint8)


def convert(x, dtype):
    """float64 to the bytes of a dtype."""
    if dtype in INT_TYPES:
        info = np.iinfo("uint8" if dtype == "bool" else dtype)
        low, high = (0, 1) if dtype == "bool" else (info.min, info.max)
        x = np.trunc(np.nan_to_num(x, nan=0.0, posinf=1e300, neginf=-1e300))
        inside = np.where((x > low) & (x < high), x, 0).astype(info.dtype)
        top = np.where(x >= high, info.dtype.type(high), info.dtype.type(low))
        return np.where((x > low) & (x < high), inside, top).astype(info.dtype).tobytes()
    if dtype == "float64":
        return x.tobytes()
    with np.errstate(over="ignore"):
        single = x.astype(np.float32)
        if dtype == "bfloat16":
            u = single.view(np.uint32)
            rounded = (u + 0x7FFF + ((u >> 16) & 1)) >> 16
            return np.where(np.isnan(single), (u >> 16) | 0x40, rounded).astype(np.uint16).tobytes()
        if dtype == "float8_e4m3":
            return float8(single, 3, 7, 0x7E).tobytes()
        if dtype == "float4":
            return float8(single, 1, 1, 7).tobytes()
        if dtype == "float8_e5m2":
            return float8(single, 2, 15, 0x7B).tobytes()
        if dtype == "float8_e8m0fnu":
            return scale8(single).tobytes()
        return single.astype(dtype).tobytes()


def pack(numbers, dtype):
    """Two numbers of four bits in a byte, the first in the low half."""
    codes = np.frombuffer(numbers, dtype=np.uint8)
    if dtype == "float4_e2m1fn_x2":
        codes = codes & 7 | codes >> 4 & 8
    else:
        low, high = (-8, 7) if dtype == "int4x2" else (0, 15)
        codes = np.clip(codes.view(np.int8), low, high).astype(np.uint8) & 15
    return (codes[0::2] | codes[1::2] << 4).tobytes()


def scale_index(index, shape, block, layout="rows"):
    """Indices of the scales of numbers of a tensor of this shape, in blocks of this shape."""
    at = [a // b for a, b in zip(np.unravel_index(index, shape), block)]
    grid = [-(-extent // b) for extent, b in zip(shape, block)]
    if layout == "tiles_128x4":
        *matrix, row, column = at
        matrix = np.ravel_multi_index(matrix, grid[:-2]) if matrix else 0
        tile = (matrix * -(-grid[-2] // 128) + row // 128) * -(-grid[-1] // 4) + column // 4
        return tile * 512 + row % 32 * 16 + row // 32 % 4 * 4 + column % 4
    step = -1 if layout == "transposed" else 1
    return np.ravel_multi_index(at[::step], grid[::step])


LARGEST = {"float8_e4m3": 448, "float8_e5m2": 57344, "float4_e2m1fn_x2": 6, "int8": 127, "int4x2": 7,
           "uint8": 127, "uint4x2": 7}
ZERO_POINTS = {"uint8": (112, 32), "uint4x2": (6, 4)}  # the least, and their number


def scale_numbers(std, quantized, dtype, key, index, part=None):
    """Scales before they are rounded to their type. `quantized`: the type of the values. `part`: `block` for those
    beside a global scale, `global` for that one."""
    low = 64.0 if part == "block" else 3.0 * (std / 64.0 if part == "global" else std) / LARGEST[quantized]
    if dtype == "float8_e8m0fnu":
        low = decode(convert(np.array([low]), dtype), dtype)[0]
    u = (node_words(key, index.astype(np.uint64)) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return low + u * low


def zero_points(quantized, key, index):
    """Zero points. `quantized`: the type of the values."""
    low, span = ZERO_POINTS[quantized]
    word = node_words(key, index.astype(np.uint64)) >> np.uint64(32)
    return low + (word * np.uint64(span) >> np.uint64(32)).astype(np.float64)


def decode(raw, dtype):
    """Scales as numbers."""
    if dtype == "bfloat16":
        return (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if dtype in ("float32", "float16"):
        return np.frombuffer(raw, dtype).astype(np.float64)
    codes = np.frombuffer(raw, np.uint8).astype(np.int64)
    if dtype == "float8_e8m0fnu":
        return 2.0 ** (codes - 127)
    return (8 + (codes & 7)) * 2.0 ** ((codes >> 3) - 10)  # e4m3, above the smallest normal number


def node_words(key, nodes):
    """SplitMix64 of the numbers of nodes and both halves of a key (uint64)."""
    x = key[0] + nodes * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> 30)) * np.uint64(0xBF58476D1CE4E5B9) ^ key[1]
    x = (x ^ (x >> 27)) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> 31)


def permuted(key, span, i):
    """Images of the indices i under the permutation of 0 .. span-1."""
    half = np.uint64((max((span - 1).bit_length(), 2) + 1) // 2)
    mask = (np.uint64(1) << half) - np.uint64(1)
    x, todo = i.astype(np.uint64), np.ones(len(i), dtype=bool)
    while todo.any():
        left, right = x[todo] >> half, x[todo] & mask
        for r in range(1, 7):
            word = node_words(key, np.uint64(r << 32) | right) >> np.uint64(32)
            left, right = right, left ^ (word & mask)
        x[todo] = left << half | right
        todo = x >= span
    return x


def rising(key, points, top, wanted, by_value=False):
    """Values at the indices `wanted` of the sequence with points+1 values from 0 to top; or, by_value, the
    indices of the last values that are at most `wanted`."""
    found, drawn = [], {}
    for k in wanted:
        first, last, low, high = 0, points, 0, top
        while last - first > 1:
            middle, height = first + (last - first) // 2, high - low
            if middle not in drawn:
                width = height >> (((last - first).bit_length() - 1) // 2)
                word = int(node_words(key, np.array([middle], dtype=np.uint64))[0])
                drawn[middle] = low + (height - width) // 2 + ((word * (width + 1)) >> 64)
            value = drawn[middle]
            if k < (value if by_value else middle):
                last, high = middle, value
            else:
                first, low = middle, value
        found.append(first if by_value else high if k == last else low)
    return found


def tensor(kind, dtype, name, n, seed=0, first=0, mean=0.0, std=1.0, low=None, high=None,
           fill_value=None, start=0.0, step=1.0, values=(), columns=(), unique=False,
           elements=None, offsets=None, pair=None, shape=None, zeros_pair=None, global_pair=None):
    """Bytes of elements first .. first+n-1 of the tensor argument `name`, which has `elements` in all.

    `offsets`, for lengths and segments: seed, name, number of elements and last value less the first of
    the tensor of offsets. `pair`, for quantized: the scales, and for scales, zero points and a global scale: the
    values; `zeros_pair` and `global_pair`, for quantized: the zero points and the global scale; `shape`, for
    quantized: that of the numbers, and in `pair` the `block` of each scale."""
    own = np.array([seed, fnv1a64(name)], dtype=np.uint64)
    key_of = lambda other: np.array([other.get("seed", 0), fnv1a64(other["name"])], dtype=np.uint64)
    if kind in ("scales", "global_scale"):
        index = np.arange(first, first + n)
        part = "global" if kind == "global_scale" else "block" if pair.get("has_global") else None
        return convert(scale_numbers(pair.get("std", 1.0), pair["dtype"], dtype, own, index, part), dtype)
    if kind == "zero_points":
        parts = 2 if dtype in PACKED else 1
        raw = convert(zero_points(pair["dtype"], own, np.arange(parts * first, parts * (first + n))),
                      PACKED.get(dtype, dtype))
        return pack(raw, dtype) if parts == 2 else raw
    if kind == "quantized":
        parts = 2 if dtype in PACKED else 1
        index = scale_index(np.arange(parts * first, parts * (first + n)), shape, pair["block"],
                            pair.get("layout", "rows"))
        part = "block" if global_pair else None
        scales = convert(scale_numbers(std, dtype, pair["dtype"], key_of(pair), index, part), pair["dtype"])
        scales = decode(scales, pair["dtype"])
        if global_pair:
            whole = scale_numbers(std, dtype, global_pair["dtype"], key_of(global_pair), np.array([0]), "global")
            scales = scales * decode(convert(whole, global_pair["dtype"]), global_pair["dtype"])[0]
        x = (mean + std * standard_normal(words(seed, name, parts * first, parts * n))) / scales
        x = np.rint(x) if dtype in ("int8", "int4x2", "uint8", "uint4x2") else x
        if dtype in ZERO_POINTS:
            x = x + (zero_points(dtype, key_of(zeros_pair), index) if zeros_pair else {"uint8": 128, "uint4x2": 8}[dtype])
        # Numbers of four bits are packed from signed ones.
        raw = convert(np.clip(x, 0, 15) if dtype == "uint4x2" else x, PACKED.get(dtype, dtype))
        return pack(raw, dtype) if parts == 2 else raw
    if dtype in PACKED:  # two numbers in a byte, the first in the low half
        given = dict(seed=seed, mean=mean, std=std, low=low, high=high, fill_value=fill_value, start=start,
                     step=step, values=values, columns=columns, unique=unique, offsets=offsets)
        if dtype != "float4_e2m1fn_x2" and kind in ("randint", "uniform", "randn", "sorted"):
            least, end = (-8, 8) if dtype == "int4x2" else (0, 16)
            given["low"] = least if kind == "randn" else 0 if low is None else low
            given["high"] = end if high is None or kind == "randn" else high
            kind = "sorted" if kind == "sorted" else "randint"
        total = None if elements is None else 2 * elements
        numbers = tensor(kind, PACKED[dtype], name, 2 * n, first=2 * first, elements=total, **given)
        return pack(numbers, dtype)
    if dtype in COMPLEX:
        given = dict(seed=seed, mean=mean, std=std, low=low, high=high, fill_value=fill_value, start=start,
                     step=step, values=values)
        if kind in ("zeros", "ones", "full", "arange"):  # real numbers
            parts = np.zeros((n, 2))
            parts[:, 0] = np.frombuffer(tensor(kind, "float64", name, n, first=first, **given))
            return convert(parts.reshape(-1), COMPLEX[dtype])
        return tensor(kind, COMPLEX[dtype], name, 2 * n, first=2 * first, **given)
    if dtype == "float8_e8m0fnu" and kind == "randn":  # of exponents
        z = standard_normal(words(seed, name, first, n))
        return (np.clip(np.rint(mean + std * z), -127, 127) + 127).astype(np.uint8).tobytes()
    if dtype == "float8_e8m0fnu" and kind == "uniform":
        low, high = 0.25 if low is None else low, 4.0 if high is None else high
    is_int = dtype in INT_TYPES
    as_type = np.uint8 if dtype == "bool" else np.dtype(dtype if is_int else "float64")
    exactly = lambda x: np.array([int(v) % 2**64 for v in x], dtype=np.uint64).astype(as_type).tobytes()
    index = np.arange(first, first + n, dtype=np.uint64)
    elements = first + n if elements is None else elements
    if kind in ("zeros", "ones", "full"):
        value = {"zeros": 0.0, "ones": 1.0, "full": fill_value}[kind]
        return convert(np.full(n, value, dtype=np.float64), dtype)
    if kind == "arange":
        return convert(start + np.arange(first, first + n).astype(np.float64) * step, dtype)
    if kind in ("permutation", "sorted", "offsets", "lengths", "segments"):
        if offsets:
            seed, name, elements, top = offsets
        key = np.array([seed, fnv1a64(name)], dtype=np.uint64)
        low, at = 0 if low is None else low, [int(i) for i in index]
        if kind == "permutation":
            span = elements if high is None else int(high - low)
            return exactly(int(low) + int(k) for k in permuted(key, span, index))
        if kind == "sorted" and not is_int:
            r = rising(key, elements + 1, 2**53, [i + 1 for i in at])
            return convert(low + np.array(r, dtype=np.float64) * 2.0**-53 * ((1.0 if high is None else high) - low), dtype)
        if kind == "sorted":
            high = (2 if dtype == "bool" else 100) if high is None else high
            top = int(high - low) - (elements if unique else 1)
            r = rising(key, elements + 1, top, [i + 1 for i in at])
            return exactly(int(low) + v + (i if unique else 0) for v, i in zip(r, at))
        if kind == "offsets":
            return exactly(int(low) + v for v in rising(key, max(elements - 1, 1), int(high - low), at))
        points = max(elements - 1, 1)
        if kind == "segments":
            return exactly(rising(key, points, top, at, by_value=True))
        ends = rising(key, points, top, at + [first + n])
        return exactly(b - a for a, b in zip(ends, ends[1:]))
    w = words(seed, name, first, n)
    if kind == "choice":
        return convert(np.array(values, dtype=np.float64)[integers(w, 0, len(values)).astype(int)], dtype)
    if columns:
        pieces = [tensor(kind, dtype, name, n, seed, first, low=l, high=h) for l, h in columns]
        pieces = [np.frombuffer(p, dtype=np.uint8).reshape(n, -1) for p in pieces]
        return np.stack(pieces)[index % np.uint64(len(columns)), np.arange(n)].tobytes()
    if is_int:
        if kind == "randn":
            info = np.iinfo("uint8" if dtype == "bool" else dtype)
            low, high = int(info.min), int(info.max) + 1
            low, high = {"bool": (0, 2), "int64": (-10**6, 10**6),
                         "uint64": (0, 10**6)}.get(dtype, (low, high))
        low = 0 if low is None else low
        high = (2 if dtype == "bool" else 100) if high is None else high
        return integers(w, int(low), int(high)).astype(as_type).tobytes()
    if kind == "uniform":
        low, high = (0.0 if low is None else low), (1.0 if high is None else high)
        u = (w >> 11).astype(np.float64) * 2.0**-53
        return convert(low + u * (high - low), dtype)
    if kind == "randn":
        return convert(mean + std * standard_normal(w), dtype)
    raise ValueError(f"{kind} of {dtype}")


if __name__ == "__main__":
    x = np.frombuffer(tensor("randn", "float32", "x", 1000, seed=42), dtype=np.float32)
    print(x[:4], "mean", x.mean(), "std", x.std())
