# Converts a contract's arguments to those of a launch.

import inspect

# Element types of contracts, with their names in Triton.
DTYPES = {
    "float64": "float64", "float32": "float32", "float16": "float16", "bfloat16": "bfloat16",
    "float8_e4m3": "float8e4nv", "float8_e5m2": "float8e5",
    # Scales and packed numbers are passed as bytes, which `tl.dot_scaled` accepts.
    "float8_e8m0fnu": "uint8", "float4_e2m1fn_x2": "uint8", "int4x2": "uint8", "uint4x2": "uint8",
    "int64": "int64", "int32": "int32", "int16": "int16", "int8": "int8",
    "uint64": "uint64", "uint32": "uint32", "uint16": "uint16", "uint8": "uint8", "bool": "int1",
}  # fmt: skip


class Dtype:
    """An element type with the attributes that Triton and the host code of a submission use."""

    def __init__(self, name):
        import triton.language as tl

        self.triton = getattr(tl, DTYPES[name])
        self.itemsize = max(1, self.triton.primitive_bitwidth // 8)
        self.is_floating_point = self.triton.is_floating()

    def __str__(self):
        return str(self.triton)

    def __eq__(self, other):
        return str(self) == str(other).split(".")[-1]

    def __hash__(self):
        return hash(str(self))


class Tensor:
    """A pointer argument, with the attributes that are known without a device."""

    def __init__(self, index, dtype, shape):
        self.index, self.dtype, self.shape = index, Dtype(dtype), tuple(shape)
        self.zeroed = False

    # Buffers begin at multiples of 256 bytes and more, as torch's allocations do.
    @staticmethod
    def data_ptr():
        return 0

    @staticmethod
    def ptr_range():
        return 0

    def stride(self, dimension=None):
        strides, size = [], 1
        for extent in reversed(self.shape):
            strides.insert(0, size)
            size *= extent
        return tuple(strides) if dimension is None else strides[dimension]

    def size(self, dimension=None):
        return self.shape if dimension is None else self.shape[dimension]

    def numel(self):
        size = 1
        for extent in self.shape:
            size *= extent
        return size

    def element_size(self):
        return self.dtype.itemsize

    @property
    def ndim(self):
        return len(self.shape)

    dim = property(lambda self: lambda: len(self.shape))

    def is_contiguous(self):
        return True

    def zero_(self):
        self.zeroed = True
        return self

    def __getattr__(self, name):
        raise AttributeError(
            f"host code reads `{name}` of a tensor: while a kernel is compiled, a tensor has only "
            "shape, strides and dtype"
        )


def value_of(argument):
    """Returns a scalar of the contract as a Python value."""
    if argument["kind"] == "str":
        import triton.language as tl

        text = argument["value"]
        dtype = getattr(tl, text[3:], None) if text.startswith("tl.") else None
        return dtype if isinstance(dtype, tl.dtype) else text
    if argument["kind"] == "float":
        return float(argument["value"])
    return argument["value"]


def taken(arguments, least, most):
    """Returns the indices of the arguments for a kernel with this many parameters. Tensors of an array of pointers are
    included only if the kernel has parameters for them, too. A second kernel may take the tensors without the arrays."""
    every = [index for index, argument in enumerate(arguments) if not argument["is_meta"]]
    used = {index for argument in arguments for index in argument.get("pointers", (0, ()))[1]}
    ways = [
        [index for index in every if index not in used],
        [index for index in every if arguments[index]["kind"] != "pointers"],
    ]
    if len(every) == most:
        return every
    return next((way for way in ways if least <= len(way) <= most), ways[0])


def passed(function, arguments, elsewhere=()):
    """Returns the launch arguments: positional ones, and constants by name. `elsewhere` contains the names of constants
    that were passed to the function around the kernel."""
    params = list(function.signature.parameters.values())
    constants = [param.name for param in function.params if param.is_constexpr]
    plain = [param.name for param in params if param.name not in constants]
    defaults = [function.signature.parameters[name].default for name in plain]
    least = sum(default is inspect.Parameter.empty for default in defaults)
    indices = taken(arguments, least, len(plain))
    given, metas = [], {}
    for index, argument in enumerate(arguments):
        if argument["is_meta"]:
            if argument["name"] not in constants and argument["name"] in elsewhere:
                continue
            if argument["name"] not in constants:
                raise Refused(
                    "unknown_constant",
                    f"`{argument['name']}` is marked `is_meta`, but {function.fn.__name__} has no "
                    f"compile-time constant of that name; it has: {', '.join(constants) or 'none'}",
                )
            metas[argument["name"]] = value_of(argument)
        elif index not in indices:
            continue
        elif argument["kind"] == "pointers":
            # Passed in the form of torch.tensor([x.data_ptr(), ...]).
            given.append(Tensor(index, "int64", [argument["pointers"][0]]))
        elif argument["kind"] == "tensor":
            given.append(tensor_of(index, argument))
        else:
            given.append(value_of(argument))
    named = [arguments[index]["name"] for index in indices]
    wrong = [name for name in named if name in constants]
    if wrong and len(named) > len(plain):
        raise Refused(
            "argument_count",
            f"`{wrong[0]}` is a compile-time constant of {function.fn.__name__}: mark it "
            "`is_meta: true`",
        )
    if not least <= len(named) <= len(plain):
        raise Refused(
            "argument_count",
            f"{function.fn.__name__} takes {len(plain)} arguments ({', '.join(plain)}), but the "
            f"contract has {len(named)} ({', '.join(named)}), in addition to compile-time constants "
            f"({', '.join(constants) or 'none'})",
        )
    return dict(zip(plain, given)), dict(zip(plain, indices)), metas, constants


def tensor_of(index, argument):
    tensor = Tensor(index, argument["dtype"], argument["shape"])
    blocks = argument.get("block_shape")
    if blocks is None:
        return tensor
    from triton.tools.tensor_descriptor import TensorDescriptor

    # Triton versions without paddings pad with zeros.
    padding = {"padding": "nan"} if argument.get("padding") == "nan" else {}
    try:
        return TensorDescriptor(
            tensor, list(tensor.shape), list(tensor.stride()), list(blocks), **padding
        )
    except (AssertionError, ValueError, TypeError) as error:
        raise Refused(
            "invalid_shape", f"descriptor of `{argument['name']}`: {error}"
        ) from None


def check_options(triton, options):
    from triton.backends.nvidia.compiler import CUDAOptions

    known = CUDAOptions.__dataclass_fields__
    for name in options:
        if name not in known:
            raise Refused(
                "unknown_compiler_option",
                f"Triton {triton.__version__} has no option `{name}`; it has: "
                + ", ".join(sorted(known)),
            )


def divided(metas, options, constants):
    """Returns constants and options. A constant with the name of an option gets its value, as in a launch by Triton."""
    for name in options.keys() & set(constants):
        if name in metas and metas[name] != options[name]:
            raise Refused(
                "conflicting_fields",
                f"`{name}` is both an option and a constant of the kernel, with the values {options[name]} and {metas[name]}: "
                f"give it once, in io.launch",
            )
    shared = {name: value for name, value in options.items() if name in constants}
    return {**metas, **shared}, {name: value for name, value in options.items() if name not in shared}


def check_constants(function, inner, constants, metas):
    """Raises an error that names constants without a value. Heuristics compute the values of theirs in the launch."""
    computed = set()
    layer = inner
    while layer is not function:
        computed |= set(getattr(layer, "values", {}))
        layer = layer.fn
    missing = [
        name
        for name in constants
        if name not in metas
        and name not in computed
        and function.signature.parameters[name].default is inspect.Parameter.empty
    ]
    if missing:
        raise Refused(
            "missing_constant",
            f"{function.fn.__name__} needs a value for its compile-time constants "
            f"{', '.join(missing)}: add arguments with `is_meta: true` of these names",
        )
