# A submission's source: running it, finding the function to call, and explaining errors.

import inspect
import linecache
import traceback
import types

# The submission's file name in tracebacks.
FILE = "kernel.py"


def run_source(source, given):
    """Runs the source as a module, and returns its names."""
    lines = source.splitlines(keepends=True)
    linecache.cache[FILE] = (len(source), None, lines, FILE)
    module = types.ModuleType("kernel")
    module.__file__ = FILE
    module.__dict__.update(given)
    sys.modules[module.__name__] = module
    try:
        exec(compile(source, FILE, "exec"), module.__dict__)
    except BaseException as error:
        raise explained(error, "compilation_failed") from None
    return module.__dict__


def init_inputs(names):
    """Returns the arguments that the submission gives its constructor."""
    make = names.get("get_init_inputs")
    if not callable(make):
        return []
    try:
        return make()
    except BaseException as error:
        raise explained(error, "inputs_failed") from None


class Target:
    """The function to call, or the method of an object that is constructed once."""

    def __init__(self, name, function=None, cls=None, method=None):
        self.name, self.function, self.cls, self.method = name, function, cls, method
        self.model = None
        # Arguments of a kernel for a device that the parameters receive: indexes in order, and by
        # name.
        self.chosen = None

    def construct(self, init):
        if self.cls is None:
            return
        try:
            positional, named = arguments_of(init)
            self.model = self.cls(*positional, **named)
        except BaseException as error:
            raise explained(error, "constructor_failed") from None
        self.bind()

    def bind(self):
        """Sets the function to the current object's method."""
        if self.method == "forward" and callable(self.model):
            # Calling the module object makes PyTorch run its hooks as part of the call.
            self.function = self.model
        else:
            self.function = getattr(self.model, self.method)

    def call(self, *arguments):
        if self.chosen is None:
            return self.function(*arguments)
        positional, named = self.chosen
        return self.function(
            *[arguments[index] for index in positional],
            **{name: arguments[index] for name, index in named.items()},
        )

    def choose(self, given):
        """Binds the parameters to arguments of a kernel for a device: by name, and then its tensors in order."""
        parameters = list(self.signature().parameters.values())
        kinds = inspect.Parameter
        if not given or any(one.kind == kinds.VAR_POSITIONAL for one in parameters):
            return
        names = {argument["name"]: index for index, argument in enumerate(given)}
        parameters = [one for one in parameters if one.kind != kinds.VAR_KEYWORD]
        bound = {one.name: names[one.name] for one in parameters if one.name in names}
        required = [one.name for one in parameters if one.default is kinds.empty]
        if not bound and len(required) <= len(given) <= len(parameters):
            return
        left = [index for index in range(len(given)) if index not in bound.values()]
        # A kernel's counters and sums are written, too. A reference is more likely to take
        # arguments that are only read.
        left.sort(key=lambda index: (not given[index]["is_tensor"], given[index]["is_written"]))
        for name in required:
            if name not in bound and left:
                bound[name] = left.pop(0)
        listed = ", ".join(names) or "none"
        missing = [name for name in required if name not in bound]
        if missing:
            raise Refused(
                "different_arguments",
                f"the parameter `{missing[0]}` of {self.name} has no argument: there are {listed}",
            )
        unused = [
            given[index]["name"]
            for index in left
            if given[index]["is_tensor"] and not given[index]["is_written"]
        ]
        if unused:
            raise Refused(
                "different_arguments",
                f"{self.name} has no parameter for the tensor `{unused[0]}`: name a parameter like it, or take `*rest`",
            )
        positional, named = [], {}
        for one in parameters:
            if one.name not in bound:
                continue
            in_order = one.kind == kinds.POSITIONAL_ONLY or one.kind == kinds.POSITIONAL_OR_KEYWORD
            if in_order and not named and len(positional) == parameters.index(one):
                positional.append(bound[one.name])
            else:
                named[one.name] = bound[one.name]
        self.chosen = positional, named

    def signature(self):
        function = getattr(self.model, self.method) if self.cls is not None else self.function
        return inspect.signature(function)


def arguments_of(init):
    """Splits KernelBench's forms: a list of arguments, a dictionary by name, or a list and a dictionary."""
    if isinstance(init, dict):
        return [], init
    positional = list(init)
    if len(positional) == 2 and isinstance(positional[0], list) and isinstance(positional[1], dict):
        return positional
    return positional, {}


def target_of(names, entry, preferred):
    """Returns the target that the contract names, else the first preferred class, else the only candidate."""
    if entry["function"] is not None:
        function = named(names, entry["function"], "function")
        if inspect.isclass(function):
            raise Refused("unknown_kernel", f"`{entry['function']}` is a class: use metadata.class_name")
        return Target(entry["function"], function=function)
    method = entry["method"] or "forward"
    if entry["class"] is not None:
        return of_class(entry["class"], named(names, entry["class"], "class"), method)
    for name in preferred:
        if inspect.isclass(names.get(name)):
            return of_class(name, names[name], method)
    own = {n: v for n, v in names.items() if getattr(v, "__module__", None) == "kernel"}
    module = names["torch"].nn.Module
    classes = [n for n, v in own.items() if inspect.isclass(v) and issubclass(v, module)]
    if len(classes) == 1:
        return of_class(classes[0], own[classes[0]], method)
    functions = [n for n, v in own.items() if inspect.isfunction(v) and is_public(n)]
    if not classes and len(functions) == 1:
        return Target(functions[0], function=own[functions[0]])
    several = ", ".join((classes + functions)[:50])
    if several:
        raise Refused(
            "ambiguous_kernel",
            "the source has no class `Model`, and several functions or classes to call; name one in "
            f"metadata.class_name or metadata.function_name: {several}",
        )
    raise Refused(
        "no_kernel",
        "the source defines nothing to call: define a class `Model` (a torch.nn.Module) or a function",
    )


def is_public(name):
    return not name.startswith("_") and name not in ("get_inputs", "get_init_inputs")


def named(names, name, what):
    if name not in names or not callable(names[name]):
        found = [n for n, v in names.items() if getattr(v, "__module__", None) == "kernel"]
        found = ", ".join(found[:50]) or "nothing"
        raise Refused(
            "unknown_kernel", f"the source has no {what} `{name}`; it defines: {found}"
        )
    return names[name]


def of_class(name, cls, method):
    if not inspect.isclass(cls):
        raise Refused("unknown_kernel", f"`{name}` is not a class: use metadata.function_name")
    if not callable(getattr(cls, method, None)):
        raise Refused("unknown_kernel", f"class `{name}` has no method `{method}`")
    return Target(f"{name}.{method}", cls=cls, method=method)


# Parts of PyTorch's messages when memory of the host or of a device is exhausted.
NO_MEMORY = (
    "can't allocate memory",
    "not enough memory",
    "Cannot allocate memory",
    "CUDA out of memory",
    "CUDA error: out of memory",
)


# Files that a submission can read, and a remedy if it needs others.
FILES = "those of Python and PyTorch: make the data in the source, or send them as inputs"


def explained(error, code):
    """Returns a `Refused` for an exception, with the submission's part of the traceback."""
    if isinstance(error, Refused):
        own = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == FILE]
        if own and error.line is None:
            error.line = own[-1].lineno
            error.log = "".join(traceback.format_list(own)) + error.log
        return error
    message = f"{type(error).__name__}: {error}"
    own = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == FILE]
    line = own[-1].lineno if own else None
    last = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError) and error.filename == FILE:
        line, message = error.lineno, f"SyntaxError: {error.msg}"
        # The line, with a mark below its column.
        last = "".join(traceback.format_exception_only(error)).rstrip("\n")
    elif isinstance(error, MemoryError) or any(words in message for words in NO_MEMORY):
        code = "out_of_memory"
    elif isinstance(error, ModuleNotFoundError):
        message = f"the source imports {error.name}, which is not installed together with PyTorch"
    elif isinstance(error, SystemExit):
        message = "the submission ends the process (sys.exit)"
    message = with_reason(error, without_gpu(message), own, "a kernel", FILES)
    place = f" (line {line})" if line is not None else ""
    log = "".join(traceback.format_list(own)) + last
    return Refused(code, message[: MOST_TEXT - 64] + place, line=line, log=log)
