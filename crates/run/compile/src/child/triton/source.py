# A submission's source: running it, finding the kernel in it, and describing its errors.

import ast
import collections
import importlib.abc
import importlib.util
import inspect
import linecache
import re
import sys
import traceback
import types

# Maximum length of a message and of a trace that are passed on, in characters.
MOST_TEXT = 16 << 10

# Maximum number of failed statements that are listed.
MOST_FAILED = 5

# Number of failed statements after which no more are run.
MOST_KEPT = 1000

# Name of the submission's file in messages and in line information.
FILE = "kernel.py"


class Refused(Exception):
    """Raised when the submission cannot be compiled, with an error code."""

    def __init__(self, code, message, **more):
        super().__init__(message)
        self.code, self.message, self.more = code, message, more

    def as_answer(self):
        refused = {"code": self.code, "message": self.message[:MOST_TEXT], **self.more}
        return {"refused": refused}


# A statement of a module that failed. `name` is the name that a definition would have defined.
Failed = collections.namedtuple("Failed", "file first last name error")

FAILED = []

# Imports that a stand-in answers: the file, the line, and the name of the absent package.
ABSENT_IMPORTS = []


class FilesOfSource(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports the files that come with a source. A directory without an `__init__.py` is a package, too."""

    def __init__(self, files, path):
        self.files = files
        # As for a script, modules beside the source are found by their names alone.
        self.roots = ["", path.rpartition("/")[0] + "/"]

    def find_spec(self, name, path=None, target=None):
        for root in self.roots:
            within = root.lstrip("/") + name.replace(".", "/")
            for file, is_package in ((f"{within}/__init__.py", True), (f"{within}.py", False)):
                if file in self.files:
                    return self.spec(name, file, is_package)
            if any(file.startswith(f"{within}/") for file in self.files):
                return self.spec(name, None, True)

    def spec(self, name, file, is_package):
        return importlib.util.spec_from_loader(name, self, origin=file, is_package=is_package)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        file = module.__spec__.origin
        if file is not None:
            module.__file__ = file
            run_statements(self.files[file], file, module)


def run_source(source, file, files=None, path=None):
    """Runs a module's body and returns its names. `files`: texts of modules that it imports, by path; `path`: its path
    among them."""
    module = types.ModuleType("kernel")
    module.__file__ = file
    path = path or file
    module.__package__ = path.rpartition("/")[0].replace("/", ".")
    if files:
        sys.meta_path.insert(0, FilesOfSource(files, path))
    sys.modules[module.__name__] = module
    FAILED.clear()
    ABSENT_IMPORTS.clear()
    run_statements(source, file, module)
    return module.__dict__


def run_statements(source, file, module):
    """Runs the statements of a module. One that fails is skipped, since modules test their kernels or query the device, and
    there is none."""
    lines = source.splitlines(keepends=True)
    # Triton reads the text of functions from the same place as Python's tracebacks.
    linecache.cache[file] = (len(source), None, lines, file)
    tree = ast.parse(source, file)
    future = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    waiting = tree.body[::-1]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and (chosen := branch_of(node, file, module)) is not None:
            waiting.extend(reversed(chosen))
            continue
        body = future + [node] if node not in future else [node]
        code = compile(ast.Module(body, []), file, "exec")
        try:
            exec(code, module.__dict__)
        except MemoryError:
            raise
        except BaseException as error:  # A stranger's code may raise anything, and exit.
            if isinstance(error, ImportError) and isinstance(node, ast.ImportFrom) and len(node.names) > 1:
                # The other names are imported nevertheless.
                each = (ast.ImportFrom(node.module, [name], node.level) for name in reversed(node.names))
                waiting.extend(ast.copy_location(one, node) for one in each)
                continue
            if isinstance(node, (ast.Import, ast.ImportFrom)) and answered(node, error, module):
                ABSENT_IMPORTS.append((file, node.lineno, absent_of(node, error)))
                if not getattr(node, "level", 0):
                    waiting.append(node)
                continue
            FAILED.append(Failed(file, node.lineno, node.end_lineno, getattr(node, "name", None), error))
            if isinstance(error, (SystemExit, KeyboardInterrupt)) or len(FAILED) >= MOST_KEPT:
                break


def branch_of(node, file, module):
    """Returns the statements of an `if` that run, or None if its condition fails. A condition that only an absent package
    could decide counts as true, since such conditions guard the definitions of kernels."""
    try:
        holds = eval(compile(ast.Expression(node.test), file, "eval"), module.__dict__)
        return node.body if holds else node.orelse
    except NeedsPackage:
        return node.body
    except Exception:
        return None


def answered(node, error, module):
    """Returns whether a stand-in answers an import that failed. One within `try` fails, since the source has an alternative."""
    if not getattr(node, "level", 0):
        return stand_in_for(error)
    name = node.names[0].name
    # A name that is missing in an existing module has no stand-in.
    if name == "*" or isinstance(error, ImportError) and error.path is not None:
        return False
    module.__dict__[node.names[0].asname or name] = attribute(absent_of(node, error), name)
    return True


def absent_of(node, error):
    """Returns the absent part of an import that failed: a package, or a module beside the source."""
    return f"{'.' * node.level}{node.module or ''}" if getattr(node, "level", 0) else error.name.partition(".")[0]


def left_out():
    """Returns notes on the statements that failed, and on imports that a stand-in answers."""
    notes = []
    for file, line, absent in ABSENT_IMPORTS[:MOST_FAILED]:
        within = "" if file == FILE else f"{file}, line {line}: "
        notes.append({
            "line": line if file == FILE else 0,
            "message": f"{within}`{absent}` is not installed here: its names are placeholders that cannot be computed with",
        })  # fmt: skip
    for failed in FAILED[:MOST_FAILED]:
        lines = "" if failed.first == failed.last else f" to line {failed.last}"
        within = "" if failed.file == FILE else f"{failed.file}, line {failed.first}: "
        notes.append({
            "line": failed.first if failed.file == FILE else 0,
            "message": f"{within}left out{lines}, since it failed without a device: {cause(failed)}",
        })  # fmt: skip
    if len(FAILED) > MOST_FAILED:
        notes.append({"line": 0, "message": f"{len(FAILED) - MOST_FAILED} more statements failed"})
    return notes


def layers_of(kernel):
    """Returns a kernel's decorators from the outside in; the last is the function itself."""
    layers = [kernel]
    while not inspect.isfunction(layers[-1].fn):
        layers.append(layers[-1].fn)
    return layers


def kernels_of(triton, names):
    """Returns the kernels that the submission defines, by name, in source order."""
    found = {}
    for name, value in names.items():
        if not isinstance(value, triton.runtime.KernelInterface):
            continue
        function = layers_of(value)[-1]
        if function.fn.__module__ != "kernel":
            continue
        # One kernel under two names is listed once.
        if all(layers_of(other)[-1] is not function or other is value for other in found.values()):
            found[name] = value
        else:
            inner = next(n for n, o in found.items() if layers_of(o)[-1] is function)
            if len(layers_of(value)) > len(layers_of(found[inner])):
                found[inner] = value
    return found


def called_in(function):
    """Returns the names that a function's text mentions."""
    return {node.id for node in ast.walk(function.parse()) if isinstance(node, ast.Name)}


def entry_of(triton, names, wanted):
    kernels = kernels_of(triton, names)
    listed = ", ".join(list(kernels)[:50])
    # The error of a failed definition is more helpful than a message that there is no kernel.
    own = [failed for failed in FAILED if failed.file == FILE]
    for name, error in ((failed.name, failed.error) for failed in own):
        if name is not None and name not in kernels and (wanted == name or wanted is None and not kernels):
            raise error
    if not kernels and own:
        raise own[0].error
    if not kernels:
        raise Refused(
            "no_kernel",
            "the source defines no kernel: decorate a function of the module, or one within such a function, with "
            "@triton.jit",
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
    """Converts an error of the submission to a refusal, with the submission's part of the traceback."""
    line = column = None
    message = text_of(error)
    innermost = error
    # Errors in helper functions are wrapped by the errors of their callers.
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
    if isinstance(innermost, NeedsPackage):
        message = str(innermost)
    else:
        message = absent_in(message) or reasoned(error, message)
    notes = "".join(f"{note['message']}\n" for note in left_out())
    if FAILED and FAILED[0].error is not error:
        # The first failure is often the cause.
        before = FAILED[0]
        message = f"{message}; before that, line {before.first} of {before.file} failed: {cause(before)}"
    detail = f"{notes}{trace}{text_of(error)}"
    return Refused(
        "compilation_failed",
        message,
        line=line,
        column=column,
        log=detail[-MOST_TEXT:],
    ).as_answer()


def absent_in(message):
    """Returns why a name that an error mentions has no value here."""
    for name, value in sys.modules["kernel"].__dict__.items():
        path = path_of_absent(value)
        if path is not None and re.search(rf"\b{re.escape(name)}\b", message):
            known = f"`{name}`" if path == name else f"`{name}` ({path})"
            return f"{known} is not installed here: provide the modules that a kernel uses in kernel.files"
    return ""


def cause(failed):
    """Returns the message of a statement's error."""
    return reasoned(failed.error, text_of(failed.error))[:500]


def text_of(error):
    """Returns an error's type and message. The submission's code may fail while it makes the message."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__


def reasoned(error, message):
    """Returns the message of an error, with the reason why it happens here."""
    own = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == FILE]
    if isinstance(error, ModuleNotFoundError):
        message = missing_module(error)
    elif isinstance(error, SystemExit):
        message = "the module's body ends the process (sys.exit)"
    files = "those of Python and Triton: a kernel gets its data through its arguments"
    return with_reason(error, message, own, "a Triton module", files)


def missing_module(error):
    return f"the source imports {error.name}, which is not installed beside Triton"


def line_in_file(error, node):
    """Returns the position of an error of Triton's compiler, which counts lines from the function's first."""
    first = None
    for value in list(sys.modules["kernel"].__dict__.values()):
        if isinstance(value, sys.modules["triton"].runtime.KernelInterface):
            function = layers_of(value)[-1]
            if getattr(function, "src", None) == getattr(error, "src", ""):
                text, begin = inspect.getsourcelines(function.fn)
                first = begin + next(
                    (i for i, line in enumerate(text) if line.lstrip().startswith("def ")), 0
                )
    line = node.lineno + first - 1 if first is not None else node.lineno
    return line, node.col_offset + 1
