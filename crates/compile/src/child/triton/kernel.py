# Turns one Triton kernel into PTX: the part that knows Triton. It stands behind host.py.

import ast
import inspect
import linecache
import traceback
import types

# Longest message and trace that are passed on, characters.
MOST_TEXT = 16 << 10

# What the submission's file is called in messages and in line information.
FILE = "kernel.py"

# What the patched compiler made: one entry for each compilation.
COMPILED = []

# Element types of contracts by the names that Triton gives them.
DTYPES = {
    "float64": "float64", "float32": "float32", "float16": "float16", "bfloat16": "bfloat16",
    "float8_e4m3": "float8e4nv", "float8_e5m2": "float8e5",
    "int64": "int64", "int32": "int32", "int16": "int16", "int8": "int8",
    "uint64": "uint64", "uint32": "uint32", "uint16": "uint16", "uint8": "uint8", "bool": "int1",
}  # fmt: skip


class Refused(Exception):
    """The submission cannot be compiled, with a code that programs compare."""

    def __init__(self, code, message, **more):
        super().__init__(message)
        self.code, self.message, self.more = code, message, more

    def as_answer(self):
        refused = {"code": self.code, "message": self.message[:MOST_TEXT], **self.more}
        return {"refused": refused}


class Dtype:
    """An element type as both Triton and host code of a submission ask for it."""

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
    """An argument that is a pointer: all that is known of it before there is a device."""

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
            f"host code asks for `{name}` of a tensor: when a kernel is compiled there are only "
            "shape, strides and dtype"
        )


def keep_in_memory(triton):
    """Has Triton's launches end with PTX, in memory: no assembler, no files, no driver."""
    from triton.compiler import compiler as module

    def compile(src, target=None, options=None, **_):
        backend = module.make_backend(target)
        options = backend.parse_options(dict(options or {}, **src.parse_options()))
        stages = {}
        backend.add_stages(stages, options, src.language)
        context = module.ir.context()
        module.ir.load_dialects(context)
        backend.load_dialects(context)
        given = {
            "target": target, "options": options, "context": context,
            "codegen_fns": backend.get_codegen_implementation(options),
            "module_map": backend.get_module_map(),
        }  # fmt: skip
        wanted = inspect.signature(src.make_ir).parameters
        made = src.make_ir(**{name: given[name] for name in wanted})
        metadata = {"target": target, **options.__dict__}
        texts = {}
        for name, stage in stages.items():
            if name == "cubin":
                break
            made = stage(made, metadata)
            texts[name] = str(made)
        COMPILED.append((src, options, metadata, texts))
        return types.SimpleNamespace(src=src, metadata=metadata, asm=texts)

    module.compile = compile
    triton.compiler.compile = compile


def run_source(source, file):
    """Runs a module's body, and gives what it defines."""
    lines = source.splitlines(keepends=True)
    # Triton reads the text of functions where Python's tracebacks read it.
    linecache.cache[file] = (len(source), None, lines, file)
    module = types.ModuleType("kernel")
    module.__file__ = file
    sys.modules[module.__name__] = module
    exec(compile(source, file, "exec"), module.__dict__)
    return module.__dict__


def layers_of(kernel):
    """A kernel's decorators from the outside in; the last is the function itself."""
    layers = [kernel]
    while not inspect.isfunction(layers[-1].fn):
        layers.append(layers[-1].fn)
    return layers


def kernels_of(triton, names):
    """Kernels that the submission defines, by name, in their order in the source."""
    found = {}
    for name, value in names.items():
        if not isinstance(value, triton.runtime.KernelInterface):
            continue
        function = layers_of(value)[-1]
        if function.fn.__module__ != "kernel":
            continue
        # One kernel under two names is one.
        if all(layers_of(other)[-1] is not function or other is value for other in found.values()):
            found[name] = value
        else:
            inner = next(n for n, o in found.items() if layers_of(o)[-1] is function)
            if len(layers_of(value)) > len(layers_of(found[inner])):
                found[inner] = value
    return found


def called_in(function):
    """Names that a function's text mentions."""
    return {node.id for node in ast.walk(function.parse()) if isinstance(node, ast.Name)}


def entry_of(triton, names, wanted):
    kernels = kernels_of(triton, names)
    listed = ", ".join(list(kernels)[:50])
    if not kernels:
        raise Refused(
            "no_kernel",
            "the source defines no kernel: decorate a function of the module with @triton.jit",
        )
    if wanted is not None:
        if wanted in kernels:
            return wanted, kernels[wanted]
        by_function = [n for n, k in kernels.items() if layers_of(k)[-1].fn.__name__ == wanted]
        if len(by_function) == 1:
            return by_function[0], kernels[by_function[0]]
        raise Refused("unknown_kernel", f'no kernel is called "{wanted}"; found: {listed}')
    if len(kernels) > 1:
        mentioned = set()
        for kernel in kernels.values():
            mentioned |= called_in(layers_of(kernel)[-1])
        entries = [name for name in kernels if name not in mentioned]
        if len(entries) != 1:
            raise Refused(
                "ambiguous_kernel",
                f"the source has {len(kernels)} kernels; name one in metadata.kernel_name: {listed}",
            )
        return entries[0], kernels[entries[0]]
    return next(iter(kernels.items()))


def value_of(argument):
    """A scalar of the contract as Python has it."""
    if argument["kind"] == "str":
        import triton.language as tl

        text = argument["value"]
        dtype = getattr(tl, text[3:], None) if text.startswith("tl.") else None
        return dtype if isinstance(dtype, tl.dtype) else text
    if argument["kind"] == "float":
        return float(argument["value"])
    return argument["value"]


def passed(function, arguments):
    """The contract's arguments as those of a launch: by position, and constants by name."""
    params = list(function.signature.parameters.values())
    constants = [param.name for param in params if function.params[params.index(param)].is_constexpr]
    plain = [param.name for param in params if param.name not in constants]
    given, metas = [], {}
    for index, argument in enumerate(arguments):
        if argument["is_meta"]:
            if argument["name"] not in constants:
                raise Refused(
                    "unknown_constant",
                    f"`{argument['name']}` is marked `is_meta`, and {function.fn.__name__} has no "
                    f"compile-time constant of that name; it has: {', '.join(constants) or 'none'}",
                )
            metas[argument["name"]] = value_of(argument)
        elif argument["kind"] == "tensor":
            given.append(tensor_of(index, argument))
        else:
            given.append(value_of(argument))
    named = [a["name"] for a in arguments if not a["is_meta"]]
    wrong = [name for name in named if name in constants]
    if wrong and len(named) > len(plain):
        raise Refused(
            "argument_count",
            f"`{wrong[0]}` is a compile-time constant of {function.fn.__name__}: mark it "
            "`is_meta: true`",
        )
    least = sum(function.signature.parameters[name].default is inspect.Parameter.empty for name in plain)
    if not least <= len(named) <= len(plain):
        raise Refused(
            "argument_count",
            f"{function.fn.__name__} takes {len(plain)} arguments ({', '.join(plain)}) and the "
            f"contract has {len(named)} ({', '.join(named)}), beside compile-time constants "
            f"({', '.join(constants) or 'none'})",
        )
    indices = [index for index, argument in enumerate(arguments) if not argument["is_meta"]]
    return dict(zip(plain, given)), dict(zip(plain, indices)), metas, constants


def tensor_of(index, argument):
    tensor = Tensor(index, argument["dtype"], argument["shape"])
    blocks = argument.get("block_shape")
    if blocks is None:
        return tensor
    from triton.tools.tensor_descriptor import TensorDescriptor

    try:
        return TensorDescriptor(tensor, list(tensor.shape), list(tensor.stride()), list(blocks))
    except (AssertionError, ValueError, TypeError) as error:
        raise Refused(
            "invalid_shape", f"descriptor of `{argument['name']}`: {error}"
        ) from None


def answer_to(triton, request):
    names = run_source(request["source"], FILE)
    name, kernel = entry_of(triton, names, request["kernel_name"])
    layers = layers_of(kernel)
    function = layers[-1]
    given, indices, metas, constants = passed(function, request["arguments"])
    options = {key: value for key, value in request["options"].items() if value is not None}
    check_options(triton, options, constants)

    tuners = [layer for layer in layers if hasattr(layer, "configs")]
    if tuners:
        chosen, more = configured(tuners, given, metas, options, request["configuration"])
        if chosen is None:
            return more
        metas, options = {**metas, **chosen[0]}, {**options, **chosen[1]}
    elif request["configuration"] is not None:
        raise Refused(
            "wrong_field",
            "metadata.configuration is given, and the kernel has no @triton.autotune",
        )
    inner = [layer for layer in layers if not hasattr(layer, "configs")][0]
    if tuners and layers.index(inner) > 0 and any(hasattr(l, "configs") for l in layers[layers.index(inner):]):
        raise Refused("unsupported_decorator", "@triton.autotune must be the outermost decorator")
    check_constants(function, inner, constants, metas)
    inner.warmup(*given.values(), grid=(1,), **metas, **options)
    if not COMPILED:
        raise Refused("compilation_failed", "nothing was compiled: a hook of the source ended it")
    return built(name, function, given, indices, COMPILED[-1])


def check_options(triton, options, constants):
    from triton.backends.nvidia.compiler import CUDAOptions

    known = CUDAOptions.__dataclass_fields__
    for name in options:
        if name not in known:
            raise Refused(
                "unknown_compiler_option",
                f"Triton {triton.__version__} has no option `{name}`; it has: "
                + ", ".join(sorted(known)),
            )
        if name in constants:
            raise Refused("conflicting_fields", f"`{name}` is an option and a constant of the kernel")


def check_constants(function, inner, constants, metas):
    """Names constants that nobody gives a value; heuristics give theirs in the launch."""
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


def configured(tuners, given, metas, options, wanted):
    """The configuration to compile, or the list of those that there are."""
    if len(tuners) > 1:
        raise Refused("unsupported_decorator", "two @triton.autotune of one kernel are not supported")
    tuner = tuners[0]
    names = {name for config in tuner.configs for name in config.kwargs}
    fixed = names & metas.keys()
    if names and fixed == names:
        # The contract says all that would be tuned.
        return ({}, {}), None
    if fixed:
        raise Refused(
            "conflicting_fields",
            f"{', '.join(sorted(fixed))} are tuned by @triton.autotune: leave them out of the "
            f"contract, or give all of {', '.join(sorted(names))} to tune nothing",
        )
    if wanted is None and len(tuner.configs) > 1:
        return None, {"tunable": tunable(tuner, given, metas)}
    if (wanted or 0) >= len(tuner.configs):
        raise Refused(
            "out_of_range",
            f"metadata.configuration is {wanted}; the kernel has {len(tuner.configs)} "
            "configurations, counted from 0",
        )
    config = tuner.configs[wanted or 0]
    if getattr(config, "ir_override", None) is not None:
        raise Refused("unsupported_decorator", "ir_override reads files, which are not there")
    if config.pre_hook is not None:
        run_hook(config.pre_hook, {**given, **metas, **config.all_kwargs()})
    launch = {key: value for key, value in config.all_kwargs().items() if key not in config.kwargs}
    return (config.kwargs, launch), None


def tunable(tuner, given, metas):
    tuner.nargs = dict(given)
    kept = tuner.prune_configs(dict(metas))
    listed = [index for index, config in enumerate(tuner.configs) if any(config is k for k in kept)]
    zeroed = list(tuner.reset_to_zero)
    if tuner.user_defined_pre_hook:
        run_hook(tuner.pre_hook, dict(given))
        zeroed += [name for name, value in given.items() if getattr(value, "zeroed", False)]
    plain = (bool, int, float, str)

    def shown(value):
        return value if isinstance(value, plain) else str(value)

    return {
        "configurations": [
            {
                "index": index,
                "meta": {key: shown(value) for key, value in tuner.configs[index].kwargs.items()},
                "num_warps": tuner.configs[index].num_warps,
                "num_stages": tuner.configs[index].num_stages,
                "num_ctas": tuner.configs[index].num_ctas,
                "maxnreg": tuner.configs[index].maxnreg,
            }
            for index in listed
        ],
        "configurations_in_all": len(tuner.configs),
        "reset_to_zero": arguments_named(given, zeroed),
        "restore_value": arguments_named(given, tuner.restore_value),
    }


def arguments_named(given, names):
    """Indices in the contract of the tensors that parameters of these names get."""
    indices = set()
    for name in names:
        value = given.get(name)
        base = getattr(value, "base", value)
        if isinstance(base, Tensor):
            indices.add(base.index)
    return sorted(indices)


def run_hook(hook, arguments):
    try:
        hook(arguments)
    except Exception as error:
        raise Refused(
            "unsupported_decorator",
            f"a pre_hook of @triton.autotune needs host code that is not run here: {error}",
        ) from None


def built(name, function, given, indices, compiled):
    src, options, metadata, texts = compiled
    values = dict(src.constants)
    constants = {}
    for path, value in values.items():
        param = function.params[path[0]].name if isinstance(path, tuple) else path
        value = getattr(value, "value", value)
        finite = isinstance(value, float) and abs(value) < float("inf")
        if isinstance(value, (bool, int)) or finite:
            constants[param] = value
    parameters = []
    for param, kind in src.signature.items():
        default = function.signature.parameters[param].default
        flatten(param, kind, given.get(param, default), indices.get(param), parameters)
    wanted = [
        "name", "shared", "num_warps", "num_ctas", "cluster_dims", "launch_cooperative_grid",
        "launch_pdl", "global_scratch_size", "global_scratch_align", "profile_scratch_size",
        "maxnreg", "num_stages", "enable_fp_fusion", "ptx_options", "tensordesc_meta",
    ]  # fmt: skip
    return {
        "built": {
            "kernel": name,
            "texts": texts,
            "parameters": parameters,
            "constants": constants,
            "metadata": {key: metadata[key] for key in wanted if metadata.get(key) is not None},
        }
    }


def flatten(name, kind, value, index, out):
    """Parameters of the machine code that stand for one of the function."""
    if isinstance(kind, tuple):
        raise Refused("argument_type", f"`{name}` is a tuple, which no contract can give")
    if kind == "constexpr":
        return
    base = getattr(value, "base", None)
    if base is not None:
        out.append({
            "name": name, "type": kind, "argument": index,
            "descriptor": {
                "dtype": str(base.dtype), "shape": list(value.shape),
                "strides": list(value.strides), "block_shape": list(value.block_shape),
            },
        })  # fmt: skip
    elif index is not None:
        out.append({"name": name, "type": kind, "argument": index})
    else:
        # A default of the function's own.
        out.append({"name": name, "type": kind, "value": value})


def explained(error):
    """What the submission's own part of a traceback says."""
    line = column = None
    message = f"{type(error).__name__}: {error}"
    innermost = error
    # Errors inside of helper functions are told by those that call them.
    while innermost.__cause__ is not None:
        innermost = innermost.__cause__
    for candidate in (innermost, error):
        node = getattr(candidate, "node", None)
        if getattr(node, "lineno", None) is None:
            continue
        line, column = line_in_file(candidate, node)
        message = str(getattr(candidate, "error_message", None) or candidate)
        if candidate is not innermost and str(innermost):
            message = str(innermost)
        break
    own = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == FILE]
    trace = "".join(traceback.format_list(own))
    if line is None and isinstance(error, SyntaxError) and error.filename == FILE:
        line, column, message = error.lineno, error.offset, f"SyntaxError: {error.msg}"
    elif line is None and own:
        line = own[-1].lineno
    if isinstance(error, ModuleNotFoundError):
        message = missing_module(error)
    elif isinstance(error, SystemExit):
        message = "the module's body ends the process (sys.exit)"
    detail = f"{trace}{type(error).__name__}: {error}"
    return Refused(
        "compilation_failed",
        message,
        line=line,
        column=column,
        log=detail[-MOST_TEXT:],
    ).as_answer()


def missing_module(error):
    if error.name == "torch":
        return (
            "the source imports torch, which is not installed beside Triton: install it into the "
            "Python that WARPGAUGE_PYTHON names, or import it inside of the functions that need it; "
            "kernels themselves do not"
        )
    return f"the source imports {error.name}, which is not installed beside Triton"


def line_in_file(error, node):
    """Where an error of Triton's compiler is: it counts lines from the function's first."""
    first = None
    for value in list(sys.modules["kernel"].__dict__.values()):
        if hasattr(value, "fn"):
            function = layers_of(value)[-1]
            if getattr(function, "src", None) == getattr(error, "src", ""):
                text, begin = inspect.getsourcelines(function.fn)
                first = begin + next(
                    (i for i, line in enumerate(text) if line.lstrip().startswith("def ")), 0
                )
    line = node.lineno + first - 1 if first is not None else node.lineno
    return line, node.col_offset + 1
