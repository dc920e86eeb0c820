# What submissions may ask for that is not here: compilers for C++ and CUDA, and a GPU. It is said when it is
# asked for, and what would help; in place of what a library says that does not find it.

# What runs CUDA without a compiler beside PyTorch.
INSTEAD = (
    "send the CUDA source by itself (`kernel_type: cuda`, with `io`), and what it must compute as a torch "
    "kernel in `expected`, or as the reference of a comparison"
)


def refuse_building(name, /, *given, **named):
    """Stands for what compiles an extension of PyTorch's."""
    sources = named.get("cuda_sources")
    if sources is None and name == "load_inline" and len(given) > 2:
        sources = given[2]
    what = "C++" if name == "load_inline" and not sources else "C++ and CUDA"
    raise Refused(
        "not_supported",
        f"`{name}` compiles {what} code and loads it into the process: submissions have no compiler, start "
        f"no processes and write no files; {INSTEAD}",
    )


def without_builders(torch):
    """What builds extensions refuses to, by whatever way it is imported."""
    module = types.ModuleType("torch.utils.cpp_extension")
    module.CUDA_HOME = None
    for name in ("load", "load_inline", "CppExtension", "CUDAExtension", "BuildExtension"):
        setattr(module, name, functools.partial(refuse_building, name))
    sys.modules[module.__name__] = torch.utils.cpp_extension = module


# What is said where there is no GPU, and what is meant. The first of each is a part of the message.
NO_GPU = (
    "Torch not compiled with CUDA enabled",
    "Found no NVIDIA driver",
    "No CUDA GPUs are available",
    "no NVIDIA GPU detected",
    "0 active drivers",
    # A machine with a GPU, in a process that has none.
    "Unexpected error from cudaGetDeviceCount()",
)


def without_gpu(message):
    """The message, and what to do where it says that there is no GPU."""
    if not any(part in message for part in NO_GPU):
        return message
    return (
        f"{message}: there is no GPU here, and Python is run on the CPU: leave tensors where they are; "
        f"kernels of Triton's are run by themselves (`kernel_type: triton`, with `io`)"
    )
