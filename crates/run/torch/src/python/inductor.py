# `torch.compile` with Inductor. The files that it would write are kept in memory, and compilers run
# outside this process.
#
# Its Python modules are kept in memory. Its C++ code is built like an extension of `load_inline`.
# Its Triton kernels are compiled like all others. Inductor is imported on first use, because the
# import takes a second.

import hashlib
import io
import linecache

# The module that every user of Inductor imports.
ENTRANCE = "torch._inductor.compile_fx"

# Settings, some under the names of several versions. They disable caches in files, and features
# that need files, tools or other processes.
OF_INDUCTOR = {
    "fx_graph_cache": False,
    "fx_graph_remote_cache": False,
    "autotune_local_cache": False,
    "autotune_remote_cache": False,
    "bundled_autotune_remote_cache": False,
    "bundle_triton_into_fx_graph_cache": False,
    "use_static_cuda_launcher": False,
    "use_static_triton_launcher": False,
    "autotune_in_subproc": False,
    "cpp_cache_precompile_headers": False,
    "cpp_wrapper": False,
    # Inductor would otherwise test-compile a kernel for this processor.
    "cpp.vec_isa_ok": True,
}

# Macros and floating-point options of Inductor's own builds.
DEFINED = (
    "-DNDEBUG",
    "-DTORCH_INDUCTOR_CPP_WRAPPER",
    "-DSTANDALONE_TORCH_HEADER",
    "-DC10_USING_CUSTOM_GENERATED_MACROS",
)

ARITHMETIC = (
    "-fno-trapping-math",
    "-funsafe-math-optimizations",
    "-ffinite-math-only",
    "-fno-signed-zeros",
    "-fno-math-errno",
    "-fno-finite-math-only",
    "-fexcess-precision=fast",
    "-fno-tree-loop-vectorize",
)


class Inductor:
    """Replaces Inductor's files and compilers."""

    def __init__(self, torch, builder):
        self.torch, self.builder = torch, builder
        self.sources = {}
        self.cache = None

    def prepare(self):
        """Patches Inductor to work in this process."""
        config = importlib.import_module("torch._inductor.config")
        cache = importlib.import_module("torch._inductor.codecache")
        for name, value in OF_INDUCTOR.items():
            *parts, last = name.split(".")
            holder = functools.reduce(getattr, parts, config)
            if hasattr(holder, last):
                setattr(holder, last, value)
        importlib.import_module("torch._functorch.config").enable_autograd_cache = False
        self.name_compiler(importlib.import_module("torch._inductor.cpp_builder"))
        # Inductor would test AVX-512 extensions with a compiler in this process; its code works
        # without them.
        importlib.import_module("torch._inductor.cpu_vec_isa").VecISA.check_build = lambda isa, code: False
        cache.write = self.write
        cache._reload_python_module = self.module
        cache.CppCodeCache.load_async = classmethod(lambda cls, *given, **named: self.load(cls, *given, **named))
        for name in ("torch._dynamo.debug_utils", "torch._dynamo.repro.after_aot"):
            # These comments in error reports describe the machine, and creating them would run
            # nvcc.
            module = importlib.import_module(name)
            if hasattr(module, "_cuda_system_info_comment"):
                module._cuda_system_info_comment = lambda: ""
        for name, module in list(sys.modules.items()):
            if name.startswith("torch._inductor.") and type(module) is types.ModuleType:
                # Inductor reads back the files that it wrote.
                module.open = self.opened
        self.cache = cache

    @staticmethod
    def name_compiler(builder):
        """Replaces the functions that run the compiler to identify it."""
        builder.get_cpp_compiler = lambda: "g++"
        for name in ("_is_gcc", "_is_clang", "_is_apple_clang", "_is_msvc_cl", "_is_intel_compiler"):
            if hasattr(builder, name):
                setattr(builder, name, lambda compiler, answer=name == "_is_gcc": answer)

    def write(self, content, extension, extra="", *given, **named):
        """Replaces writing a file: returns its key and its path."""
        data = content if isinstance(content, bytes) else content.encode()
        key = "c" + hashlib.sha256(data + b"\0" + extra.encode()).hexdigest()[:50]
        path = f"/memory/inductor/{key}.{extension}"
        self.sources[path] = content
        return key, path

    def opened(self, path, *given, **named):
        source = self.sources.get(path)
        if source is None:
            return open(path, *given, **named)
        return io.BytesIO(source) if isinstance(source, bytes) else io.StringIO(source)

    def module(self, key, path, set_sys_modules=True):
        """Replaces importing a module from a file."""
        source = self.sources[path]
        # Triton reads the source of its kernels from this cache.
        linecache.cache[path] = (len(source), None, source.splitlines(keepends=True), path)
        module = types.ModuleType(f"torch._inductor.runtime.compile_tasks.{key}")
        module.__file__ = path
        module.key = key
        exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)
        if set_sys_modules:
            sys.modules[module.__name__] = module
        return module

    def load(self, cls, main_code, device_type="cpu", submit_fn=None, extra_flags=(), optimized_code=None):
        """Replaces compiling and loading a library: returns a function that does it."""
        flags = ["-O3", "-std=c++17", "-march=native", "-fopenmp", *DEFINED, *self.of_arithmetic(), *self.of_processor()]
        flags += [word for flag in extra_flags for word in flag.split()]
        sources = [main_code] if not optimized_code else [optimized_code, main_code]
        bound = issubclass(cls, self.cache.CppPythonBindingsCodeCache)
        name = cls.entry_function if bound else "library"
        order = {
            "name": name,
            "cpp": "\n".join(sources),
            "cuda": None,
            "cflags": flags,
            "cuda_cflags": [],
            "ldflags": ["-fopenmp"],
            "with_cuda": False,
        }

        def load(file, log):
            if not bound:
                return self.builder.library(file)
            # The compiled code reads this variable to find PyTorch's function for the address of a tensor's
            # elements.
            address = self.torch._C._dynamo.guards._torchinductor_pyobject_tensor_data_ptr
            os.environ["_TORCHINDUCTOR_PYOBJECT_TENSOR_DATA_PTR"] = str(address)
            return self.builder.module(name, file)

        return lambda: self.builder.extension(order, load)

    def of_processor(self):
        """Returns the compiler options for this processor."""
        isa = importlib.import_module("torch._inductor.cpu_vec_isa").pick_vec_isa()
        if not isa:
            return []
        macros = isa.build_macro()
        macros = macros if isinstance(macros, list) else macros.replace("-D", "").split()
        return [f"-D{macro}" for macro in macros] + isa.build_arch_flags().split()

    def of_arithmetic(self):
        """Returns the floating-point options of Inductor's own builds, which keep NaN and infinities."""
        config = self.torch._inductor.config.cpp
        contract = getattr(config, "enable_floating_point_contract_flag", "off")
        contract = contract if isinstance(contract, str) else ("fast" if contract else "off")
        exact = [] if getattr(config, "enable_unsafe_math_opt_flag", False) else ["-fno-unsafe-math-optimizations"]
        return [*ARITHMETIC, *exact, f"-ffp-contract={contract}"]


class WhenImported:
    """Calls `done` as soon as a module has been imported by any code."""

    def __init__(self, name, done):
        self.name, self.done = name, done

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            try:
                self.done()
            except Exception as error:
                # The next import will try again.
                sys.meta_path.insert(0, self)
                raise Refused(
                    "not_supported", f"`{self.name}` of this PyTorch does not work in submissions: {error}"
                ) from error

        spec.loader.exec_module = exec_module
        return spec


def with_inductor(torch, builder):
    """Prepares Inductor now if it is already imported, and otherwise when it is imported."""
    inductor = Inductor(torch, builder)
    if ENTRANCE in sys.modules:
        inductor.prepare()
    else:
        sys.meta_path.insert(0, WhenImported(ENTRANCE, inductor.prepare))
