# Compiles a kernel as its launch would, up to PTX.

import inspect
import itertools
import types

# Results of the patched compiler: one entry for each compilation.
COMPILED = []


def keep_in_memory(triton):
    """Makes Triton's launches end with PTX in memory: no assembler, no files, no driver."""
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


def answer_to(triton, request):
    names = run_source(request["source"], FILE, request.get("files"), request.get("source_path"))
    taken = define_within(triton, request["source"], names, request["kernel_name"], request["arguments"])
    name, kernel = entry_of(triton, names, request["kernel_name"])
    layers = layers_of(kernel)
    function = layers[-1]
    given, indices, metas, constants = passed(function, request["arguments"], taken)
    options = {key: value for key, value in request["options"].items() if value is not None}
    check_options(triton, options)
    metas, options = divided(metas, options, constants)

    tuners = [layer for layer in layers if hasattr(layer, "configs")]
    if len(tuners) > 1:
        raise Refused("unsupported_decorator", "only one @triton.autotune is supported")
    outer = layers[: next((i for i, layer in enumerate(layers) if layer in tuners), 0)]
    # As in a launch, heuristics above the tuner do not know its choice.
    for layer in outer:
        for computed, rule in getattr(layer, "values", {}).items():
            try:
                metas = {**metas, computed: rule({**given, **metas})}
            except KeyError as error:
                raise Refused(
                    "unsupported_decorator",
                    f"the heuristic `{computed}` reads {error}, which is not known there, nor in a launch: put "
                    "@triton.heuristics below @triton.autotune if the tuner chooses it",
                ) from None
    inner = layers[len(outer) + len(tuners)]
    if tuners:
        chosen = configured(tuners[0], given, metas, options, request["configuration"])
        if chosen is None:
            return {"tunable": tunable(tuners[0], given, metas)}
        metas, options = divided({**metas, **chosen[0]}, {**options, **chosen[1]}, constants)
    elif request["configuration"] is not None:
        raise Refused(
            "wrong_field",
            "metadata.configuration is given, but the kernel has no @triton.autotune",
        )
    check_constants(function, inner, constants, metas)
    # Constants may be between the other parameters.
    leading = list(itertools.takewhile(lambda name: name in given, (param.name for param in function.params)))
    by_name = {name: value for name, value in given.items() if name not in leading}
    inner.warmup(*(given[name] for name in leading), grid=(1,), **by_name, **metas, **options)
    if not COMPILED:
        raise Refused("compilation_failed", "nothing was compiled: a hook of the source ended it")
    answer = built(name, function, given, indices, COMPILED[-1])
    answer["built"]["left_out"] = left_out()
    return answer


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
    """Appends the machine code's parameters for one parameter of the function."""
    if isinstance(kind, tuple):
        raise Refused("argument_type", f"`{name}` is a tuple, which no contract can provide")
    if kind == "constexpr":
        return
    base = getattr(value, "base", None)
    if base is not None:
        out.append({
            "name": name, "type": kind, "argument": index,
            "descriptor": {
                "dtype": str(base.dtype), "shape": list(value.shape),
                "strides": list(value.strides), "block_shape": list(value.block_shape),
                "nan": getattr(value, "padding", "zero") == "nan",
                "tf32": bool(getattr(value, "round_f32_to_tf32", False)),
            },
        })  # fmt: skip
    elif index is not None:
        out.append({"name": name, "type": kind, "argument": index})
    else:
        # The parameter has a default.
        out.append({"name": name, "type": kind, "value": value})
