# A submission's source: running it, finding the kernel in it, and telling what is wrong with it.

import ast
import inspect
import linecache
import sys
import traceback
import types

# Longest message and trace that are passed on, characters.
MOST_TEXT = 16 << 10

# What the submission's file is called in messages and in line information.
FILE = "kernel.py"


class Refused(Exception):
    """The submission cannot be compiled, with a code that programs compare."""

    def __init__(self, code, message, **more):
        super().__init__(message)
        self.code, self.message, self.more = code, message, more

    def as_answer(self):
        refused = {"code": self.code, "message": self.message[:MOST_TEXT], **self.more}
        return {"refused": refused}


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
                f"the source has {len(kernels)} kernels; name one in metadata.kernel_name: "
                f"{listed}",
            )
        return entries[0], kernels[entries[0]]
    return next(iter(kernels.items()))


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
    files = "those of Python and Triton: what a kernel needs of data comes with its arguments"
    message = with_reason(error, message, own, "a Triton module", files)
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
            "Python that WARPGAUGE_PYTHON names, or import it inside of the functions that need "
            "it; kernels themselves do not"
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
