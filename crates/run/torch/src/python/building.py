# Builds PyTorch extensions for submissions that call `load_inline` in a process without a compiler.
# The sources are sent to the server, which returns a loadable file.
#
# The sources are those that PyTorch's own `load_inline` would write to files. The result is loaded
# into this process, and has no more rights than it.

import ast
import importlib.machinery
import importlib.util
import itertools
import re
import sysconfig
import threading

# Descriptor of the socket for build orders.
BUILDS = 4

# Maximum size of an order, bytes.
LONGEST_ORDER = 4 << 20


class NotBuilt(Refused, RuntimeError):
    """A failed build. It is a `RuntimeError`, as from PyTorch's `load_inline`, so submissions can catch
    it."""


class Extensions:
    """Settings with which this PyTorch builds extensions. They are parsed from its source without importing
    it."""

    def __init__(self, torch):
        path = os.path.join(os.path.dirname(torch.__file__), "utils", "cpp_extension.py")
        with open(path) as file:
            text = file.read()
        standard = re.search(r"-std=(c\+\+\d+)", text)
        self.standard = standard.group(1) if standard else "c++17"
        functions = (node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef))
        own = next((node for node in functions if node.name == "load_inline"), None)
        # The order of the parameters has changed between versions.
        self.parameters = [argument.arg for argument in own.args.args] if own else []
        self.defines = []
        abi = getattr(torch._C, "_GLIBCXX_USE_CXX11_ABI", None)
        if abi is not None:
            self.defines.append(f"-D_GLIBCXX_USE_CXX11_ABI={int(abi)}")
        for name in ("COMPILER_TYPE", "STDLIB", "BUILD_ABI"):
            value = getattr(torch._C, f"_PYBIND11_{name}", None)
            if value is not None:
                self.defines.append(f'-DPYBIND11_{name}="{value}"')

    def as_told(self):
        return {
            "include": sysconfig.get_path("include", scheme="posix_prefix"),
            "standard": self.standard,
            "defines": self.defines,
        }


class Builder:
    """Sends build orders, and loads the results."""

    def __init__(self, torch, extensions):
        self.torch, self.parameters = torch, extensions.parameters
        self.lock = threading.Lock()
        self.connection = None
        # Whether there is a device. CUDA sources are compiled only for that device.
        self.has_device = False
        # Loaded results and errors by order: a submission may repeat an order in each call.
        self.loaded, self.refused = {}, {}
        # Each file that is loaded needs a different path.
        self.count = itertools.count(1)

    def built(self, order):
        """Returns a descriptor of the result, and the compilers' output."""
        message = frame(order)
        if len(message) > LONGEST_ORDER:
            raise NotBuilt(
                "source_too_large",
                f"the sources have {len(message)} bytes; the limit is {LONGEST_ORDER}: pass data as tensors",
            )
        with self.lock:
            try:
                if self.connection is None:
                    self.connection = socket.socket(fileno=BUILDS)
                self.connection.sendall(message)
                prefix, files, _, _ = socket.recv_fds(self.connection, 4, 1)
                prefix += self.more(4 - len(prefix))
                answer = json.loads(self.more(struct.unpack("<I", prefix)[0]))
            except (OSError, EOFError) as error:
                raise NotBuilt(
                    "not_supported",
                    "nothing more is compiled for this process: its last order was invalid, or it reached the "
                    f"maximum number of orders ({type(error).__name__})",
                ) from None
        why = answer.get("refused")
        if why is not None:
            raise NotBuilt(why["code"], why["message"], log=why["log"])
        return files[0], answer["built"]["log"]

    def more(self, count):
        parts = []
        while count:
            part = self.connection.recv(min(count, 1 << 20))
            if not part:
                raise EOFError
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def path_of(self, file):
        """Returns a unique path of a descriptor, because the loader treats files with equal paths as one file."""
        return f"/proc/self/fd/{'./' * next(self.count)}{file}"

    def module(self, name, file):
        """Loads a Python module from a file, and closes the file."""
        path = self.path_of(file)
        try:
            loader = importlib.machinery.ExtensionFileLoader(name, path)
            spec = importlib.util.spec_from_file_location(name, path, loader=loader)
            made = importlib.util.module_from_spec(spec)
            loader.exec_module(made)
            return made
        finally:
            os.close(file)

    def library(self, file):
        """Loads a library, which may register operators, and closes the file."""
        try:
            with self.torch._ops.dl_open_guard():
                return ctypes.CDLL(self.path_of(file))
        finally:
            os.close(file)

    def extension(self, order, load):
        """Returns what `load` makes of the file and the compilers' output, once per order, or raises the
        build's error."""
        key = json.dumps(order, sort_keys=True)
        if key in self.loaded:
            return self.loaded[key]
        if key in self.refused:
            raise NotBuilt(*self.refused[key])
        try:
            file, log = self.built({"extension": order})
        except NotBuilt as error:
            self.refused[key] = error.code, error.message, None, error.log
            raise
        made = self.loaded[key] = load(file, log)
        return made

    def load_inline(self, *given, **named):
        """Replaces PyTorch's `load_inline`, with the parameters of this version."""
        if len(given) > len(self.parameters):
            raise TypeError(f"load_inline() takes {len(self.parameters)} arguments, not {len(given)}")
        arguments = dict(zip(self.parameters, given))
        for name, value in named.items():
            if name in arguments or name not in self.parameters:
                what = "multiple values for" if name in arguments else "an unexpected keyword"
                raise TypeError(f"load_inline() got {what} argument '{name}'")
            arguments[name] = value
        for name in ("name", "cpp_sources"):
            if name not in arguments:
                raise TypeError(f"load_inline() missing required argument: '{name}'")
        order = self.order(arguments)

        def load(file, log):
            if arguments.get("verbose") and log:
                print(log)
            if arguments.get("is_python_module", True):
                return self.module(order["name"], file)
            # Like PyTorch, return the library's path.
            return self.library(file)._name

        return self.extension(order, load)

    def order(self, arguments):
        """Returns the order: the sources as PyTorch would write them to files, and the options."""

        def listed(name):
            value = arguments.get(name) or []
            value = [value] if isinstance(value, str) else list(value)
            if not all(isinstance(item, str) for item in value):
                raise TypeError(f"load_inline(): {name} must be a text or a list of texts")
            return value

        cpp, cuda = listed("cpp_sources"), listed("cuda_sources")
        if listed("sycl_sources") or arguments.get("with_sycl"):
            raise NotBuilt("not_supported", "`load_inline` compiles C++ and CUDA here, but not SYCL")
        if listed("extra_include_paths"):
            raise NotBuilt(
                "compiler_option_refused",
                "extra_include_paths: the compilers find the headers of PyTorch, Python, CUDA and the system, "
                "but no other files; put the included text into the sources",
            )
        if cuda and not self.has_device:
            raise NotBuilt(
                "not_supported",
                f"`load_inline` compiles C++ and CUDA code for a GPU, but there is no GPU; {INSTEAD}",
            )
        implicit = not arguments.get("no_implicit_headers", False)
        if implicit:
            cpp.insert(0, "#include <torch/extension.h>")
        cpp += bindings(arguments.get("functions"), arguments.get("with_pytorch_error_handling", True))
        if cuda and implicit:
            cuda[:0] = [f"#include <{name}>" for name in ("torch/types.h", "cuda.h", "cuda_runtime.h")]
        with_cuda = arguments.get("with_cuda")
        return {
            "name": str(arguments["name"]),
            "cpp": "\n".join(cpp),
            "cuda": "\n".join(cuda) if cuda else None,
            "cflags": listed("extra_cflags"),
            "cuda_cflags": listed("extra_cuda_cflags"),
            "ldflags": listed("extra_ldflags"),
            "with_cuda": bool(cuda) if with_cuda is None else bool(with_cuda),
        }


def bindings(functions, checked):
    """Returns the lines of C++ that bind functions to a Python module."""
    if functions is None:
        return []
    if isinstance(functions, str):
        functions = [functions]
    if isinstance(functions, (list, tuple)):
        functions = {name: name for name in functions}
    elif not isinstance(functions, dict):
        raise ValueError(f"Expected 'functions' to be a list or dict, but was {type(functions)}")
    called = "torch::wrap_pybind_function({})" if checked else "{}"
    return [
        "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {",
        *(f'm.def("{name}", {called.format(name)}, "{text}");' for name, text in functions.items()),
        "}",
    ]


def with_builder(torch):
    """Installs the builder in place of PyTorch's own module, for every form of import."""
    extensions = Extensions(torch)
    builder = Builder(torch, extensions)
    module = types.ModuleType("torch.utils.cpp_extension")
    module.CUDA_HOME = None
    module.load_inline = builder.load_inline
    without_files(module)
    sys.modules[module.__name__] = torch.utils.cpp_extension = module
    return extensions, builder
