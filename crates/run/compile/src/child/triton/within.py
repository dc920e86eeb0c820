# Kernels that a function of the source defines: `def make(): @triton.jit def k(...)`.

import ast
import inspect
import sys


def is_jit(decorator):
    """Returns whether a decorator turns the function below it into a kernel."""
    names = {n.attr if isinstance(n, ast.Attribute) else getattr(n, "id", None) for n in ast.walk(decorator)}
    return "jit" in names


def kernels_within(node):
    """Returns the names of the kernels that a function's text defines."""
    return [
        inner.name
        for inner in ast.walk(node)
        if inner is not node and isinstance(inner, ast.FunctionDef) and any(map(is_jit, inner.decorator_list))
    ]


def factories_in(source, file):
    """Returns the functions of a module that define kernels, with the kernels' names, in source order."""
    tree = ast.parse(source, file)
    found = ((node.name, kernels_within(node)) for node in tree.body if isinstance(node, ast.FunctionDef))
    return {name: kernels for name, kernels in found if kernels}


def define_within(triton, source, names, wanted, arguments):
    """Calls the functions of the source that define the wanted kernel (any kernel, if the module defines none itself), and
    adds their kernels to its names. Returns the names of the constants that were passed to the functions."""
    factories = factories_in(source, FILE)
    if wanted is None:
        chosen = {} if kernels_of(triton, names) else factories
    else:
        there = wanted in kernels_of(triton, names)
        chosen = {} if there else {n: kernels for n, kernels in factories.items() if wanted in kernels}
    several = {k: [n for n, kernels in chosen.items() if k in kernels] for kernels in chosen.values() for k in kernels}
    for kernel, within in several.items():
        if len(within) > 1:
            raise Refused(
                "ambiguous_kernel",
                f"`{kernel}` is defined within each of {', '.join(within)}: leave all but one out, or rename one",
            )
    taken = set()
    for name, kernels in chosen.items():
        # Decorators such as functools.lru_cache wrap the function.
        factory = inspect.unwrap(names.get(name))
        # If its definition failed, that error is reported.
        if inspect.isfunction(factory):
            taken |= call_factory(triton, factory, kernels, names, arguments)
    return taken


def call_factory(triton, factory, kernels, names, arguments):
    """Calls one of these functions. The kernels are those that it had defined when it returned or failed."""
    given = constants_for(factory, arguments)
    found = {}

    def watch(frame, event, _):
        if event == "return" and frame.f_code is factory.__code__:
            found.update((n, frame.f_locals[n]) for n in kernels if n in frame.f_locals)

    failed = None
    sys.setprofile(watch)
    try:
        returned = factory(**given)
    except MemoryError:
        raise
    except BaseException as error:  # A stranger's code may raise anything, and exit.
        failed, returned = error, None
    finally:
        sys.setprofile(None)
    if isinstance(returned, triton.runtime.KernelInterface):
        found.setdefault(layers_of(returned)[-1].fn.__name__, returned)
    found = {n: kernel for n, kernel in found.items() if isinstance(kernel, triton.runtime.KernelInterface)}
    if not found and failed is not None:
        raise failed
    for name, kernel in found.items():
        names.setdefault(name, kernel)
    return set(given)


def constants_for(factory, arguments):
    """Returns values for a function's parameters: the contract's constants with the same names."""
    metas = {a["name"]: a for a in arguments if a["is_meta"]}
    parameters = inspect.signature(factory).parameters.values()
    plain = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    missing = [p.name for p in plain if p.name not in metas and p.default is inspect.Parameter.empty]
    if missing:
        raise Refused(
            "missing_constant",
            f"the kernel is defined within `{factory.__name__}`, which needs values for {', '.join(missing)}: add arguments "
            "with `is_meta: true` of these names",
        )
    if any(p.kind is p.POSITIONAL_ONLY for p in plain):
        raise Refused(
            "no_kernel",
            f"the kernel is defined within `{factory.__name__}`, which has positional-only parameters: "
            "leave out the `/`",
        )
    return {p.name: value_of(metas[p.name]) for p in plain if p.name in metas}
