# `torch.compile` with Inductor: what it writes to files elsewhere is kept in this process, and what it has
# compilers make is asked for outside.
#
# Its Python modules are memory, its C++ is an extension like those of `load_inline`, and its Triton kernels go
# the way of all of them. It is imported when it is asked for, since that takes a second.

import hashlib
import io
import linecache

# What whoever wants code of it imports.
ENTRANCE = "torch._inductor.compile_fx"

# Settings, by the names that versions have had: no caches in files, and nothing that files, tools or other
# processes are needed for.
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
    # Whether a kernel for this processor can be compiled would be tried out.
    "cpp.vec_isa_ok": True,
}

# What its own builds define, and how they have arithmetic.
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
    """Stands for the files and the compilers of Inductor's."""

    def __init__(self, torch, builder):
        self.torch, self.builder = torch, builder
        self.sources = {}
        self.cache = None

    def prepare(self):
        """Has it work in this process."""
        config = importlib.import_module("torch._inductor.config")
        cache = importlib.import_module("torch._inductor.codecache")
        for name, value in OF_INDUCTOR.items():
            *parts, last = name.split(".")
            holder = functools.reduce(getattr, parts, config)
            if hasattr(holder, last):
                setattr(holder, last, value)
        importlib.import_module("torch._functorch.config").enable_autograd_cache = False
        self.name_compiler(importlib.import_module("torch._inductor.cpp_builder"))
        # Extensions of AVX-512 would be tried out with a compiler of this process: code does without them.
        importlib.import_module("torch._inductor.cpu_vec_isa").VecISA.check_build = lambda isa, code: False
        cache.write = self.write
        cache._reload_python_module = self.module
        cache.CppCodeCache.load_async = classmethod(lambda cls, *given, **named: self.load(cls, *given, **named))
        for name in ("torch._dynamo.debug_utils", "torch._dynamo.repro.after_aot"):
            # What a report of an error would have of the machine: they ask nvcc.
            module = importlib.import_module(name)
            if hasattr(module, "_cuda_system_info_comment"):
                module._cuda_system_info_comment = lambda: ""
        for name, module in list(sys.modules.items()):
            if name.startswith("torch._inductor.") and type(module) is types.ModuleType:
                # Where it reads what it wrote.
                module.open = self.opened
        self.cache = cache

    @staticmethod
    def name_compiler(builder):
        """It asks the compiler who it is."""
        builder.get_cpp_compiler = lambda: "g++"
        for name in ("_is_gcc", "_is_clang", "_is_apple_clang", "_is_msvc_cl", "_is_intel_compiler"):
            if hasattr(builder, name):
                setattr(builder, name, lambda compiler, answer=name == "_is_gcc": answer)

    def write(self, content, extension, extra="", *given, **named):
        """Stands for a file that is written: its key and its path."""
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
        """Stands for a module that is imported from a file."""
        source = self.sources[path]
        # Triton reads the text of its kernels there.
        linecache.cache[path] = (len(source), None, source.splitlines(keepends=True), path)
        module = types.ModuleType(f"torch._inductor.runtime.compile_tasks.{key}")
        module.__file__ = path
        module.key = key
        exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)
        if set_sys_modules:
            sys.modules[module.__name__] = module
        return module

    def load(self, cls, main_code, device_type="cpu", submit_fn=None, extra_flags=(), optimized_code=None):
        """Stands for a library that is compiled and loaded: what gives it."""
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
            # Where its code asks for the address of a tensor's elements.
            address = self.torch._C._dynamo.guards._torchinductor_pyobject_tensor_data_ptr
            os.environ["_TORCHINDUCTOR_PYOBJECT_TENSOR_DATA_PTR"] = str(address)
            return self.builder.module(name, file)

        return lambda: self.builder.extension(order, load)

    def of_processor(self):
        """What makes its code that of this processor."""
        isa = importlib.import_module("torch._inductor.cpu_vec_isa").pick_vec_isa()
        if not isa:
            return []
        macros = isa.build_macro()
        macros = macros if isinstance(macros, list) else macros.replace("-D", "").split()
        return [f"-D{macro}" for macro in macros] + isa.build_arch_flags().split()

    def of_arithmetic(self):
        """How its own builds have arithmetic: no NaN, infinity or order of operations is lost."""
        config = self.torch._inductor.config.cpp
        contract = getattr(config, "enable_floating_point_contract_flag", "off")
        contract = contract if isinstance(contract, str) else ("fast" if contract else "off")
        exact = [] if getattr(config, "enable_unsafe_math_opt_flag", False) else ["-fno-unsafe-math-optimizations"]
        return [*ARITHMETIC, *exact, f"-ffp-contract={contract}"]


class WhenImported:
    """Has something done as soon as a module is there, whoever imports it."""

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
                # Whoever tries again is told again.
                sys.meta_path.insert(0, self)
                raise Refused(
                    "not_supported", f"`{self.name}` of this PyTorch does not work in submissions: {error}"
                ) from error

        spec.loader.exec_module = exec_module
        return spec


def with_inductor(torch, builder):
    """Has Inductor prepared, whatever way leads to it."""
    inductor = Inductor(torch, builder)
    if ENTRANCE in sys.modules:
        inductor.prepare()
    else:
        sys.meta_path.insert(0, WhenImported(ENTRANCE, inductor.prepare))
