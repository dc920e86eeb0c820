# Triton kernels in a fork with a device. The server runs the other programs that Triton would run,
# and Triton's cache files are kept in memory.
#
# Everything up to PTX happens in this process, as usual. The server runs the assembler, and the C
# compiler for the modules that launch kernels.

import pathlib


class MemoryFile:
    """A file of Triton's cache, in memory, with the methods that Triton uses."""

    # Contents by paths. The paths have a prefix that no real file has.
    files = {}

    def __init__(self, path):
        self.path = path
        self.suffix = pathlib.PurePosixPath(path).suffix

    def read_bytes(self):
        return self.files[self.path]

    def read_text(self):
        return self.files[self.path].decode()


class MemoryCache:
    """Triton's cache for this process. The server caches the compilers' results."""

    def __init__(self, key, override=False, dump=False):
        self.key = key
        self.groups = {}

    def path_of(self, name):
        return f"/memory/{self.key}/{name}"

    def has_file(self, name):
        return self.path_of(name) in MemoryFile.files

    def get_file(self, name):
        return self.path_of(name) if self.has_file(name) else None

    def put(self, data, name, binary=True):
        data = data if isinstance(data, bytes) else str(data).encode()
        MemoryFile.files[self.path_of(name)] = data
        return self.path_of(name)

    def get_group(self, name):
        kept = self.get_file(f"__grp__{name}")
        return json.loads(MemoryFile.files[kept]) if kept is not None else None

    def put_group(self, name, group):
        return self.put(json.dumps(group), f"__grp__{name}", binary=False)


def path_of_triton(path):
    """Replaces `Path` in the code with which Triton reads its compiled files."""
    return MemoryFile(path) if path in MemoryFile.files else pathlib.Path(path)


class TritonBuilder:
    """Replaces the programs that Triton runs."""

    def __init__(self, triton, builder, tools):
        self.builder, self.tools = builder, tools
        self.knobs = triton.knobs
        self.error = importlib.import_module("triton.runtime.errors").PTXASError
        # Loaded modules by name and source.
        self.modules = {}

    def module(self, src, name, *given, **named):
        """Builds and loads a module from C. It calls the driver that this process has loaded."""
        key = (name, src)
        if key not in self.modules:
            ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
            file, _ = self.builder.built({"c": {"name": name, "source": src}})
            self.modules[key] = self.builder.module(name, file)
        return self.modules[key]

    def cubin(self, src, opt):
        options = ["-lineinfo"]
        if self.knobs.compilation.disable_line_info:
            options.append("-suppress-debug-info")
        elif self.knobs.nvidia.disable_ptxas_opt:
            options = ["-g", "--opt-level", "0"]
        if not opt.enable_fp_fusion:
            options.append("--fmad=false")
        options += (getattr(opt, "ptx_options", None) or "").split()
        try:
            file, _ = self.builder.built({"ptxas": {"ptx": src, "options": options + ["-v"]}})
        except NotBuilt as error:
            # Triton skips configurations that the assembler rejects.
            raise self.error(f"`ptxas` failed: {error.message}\n{error.log}") from None
        with open(file, "rb") as made:
            return made.read()

    def tool(self, arch=80):
        return self.tools[1 if arch >= 100 else 0]


def triton_tools(triton):
    """Returns Triton's assemblers with their versions. Triton runs an assembler to query its version."""
    ordinary = triton.knobs.nvidia.ptxas
    blackwell = getattr(triton.knobs.nvidia, "ptxas_blackwell", ordinary)
    return [types.SimpleNamespace(path=tool.path, version=tool.version) for tool in (ordinary, blackwell)]


def with_triton(triton, builder):
    """Patches Triton to compile in forks of this process. Information that needs other programs is queried
    now, while this process can still start some."""
    backend = importlib.import_module("triton.backends.nvidia.compiler")
    driver = importlib.import_module("triton.backends.nvidia.driver")
    compiler = importlib.import_module("triton.compiler.compiler")
    cache = importlib.import_module("triton.runtime.cache")
    build = importlib.import_module("triton.runtime.build")
    # This call reads Triton's own files, and caches the result.
    key = getattr(cache, "triton_key", None)
    if key is not None:
        key()
    programs = TritonBuilder(triton, builder, triton_tools(triton))
    backend.get_ptxas = programs.tool
    backend.get_ptxas_version = lambda *given: programs.tool(*given).version
    backend.CUDABackend.make_cubin = lambda self, src, metadata, opt, capability: programs.cubin(src, opt)
    driver.library_dirs = lambda: []
    driver.compile_module_from_src = build.compile_module_from_src = programs.module
    compiler.Path = path_of_triton
    triton.knobs.cache.manager_class = MemoryCache
