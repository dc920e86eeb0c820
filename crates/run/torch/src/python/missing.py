# Features that submissions cannot use here: compiling files, and in some processes a GPU. The
# errors name a remedy, which the libraries' own errors do not.

# Remedy for a submission that would compile CUDA code without a GPU.
INSTEAD = (
    "send the CUDA source by itself (`kernel_type: cuda`, with `io`), and what it must compute as a torch "
    "kernel in `expected`, or as the reference of a comparison"
)


def refuse_files(name, /, *given, **named):
    """Replaces functions that compile files."""
    raise Refused(
        "not_supported",
        f"`{name}` compiles files, but submissions cannot read or write files: pass the text of the sources to "
        f"`load_inline`",
    )


def without_files(module):
    """Replaces the functions of a module that build extensions from files."""
    for name in ("load", "CppExtension", "CUDAExtension", "SyclExtension", "BuildExtension"):
        setattr(module, name, functools.partial(refuse_files, name))


# Parts of error messages that mean that there is no GPU.
NO_GPU = (
    "Torch not compiled with CUDA enabled",
    "Found no NVIDIA driver",
    "No CUDA GPUs are available",
    "no NVIDIA GPU detected",
    "0 active drivers",
    "CUDA driver version is insufficient",
    # The machine has a GPU, but the process does not.
    "Unexpected error from cudaGetDeviceCount()",
)


def without_gpu(message):
    """Returns the message, with a remedy if it means that there is no GPU."""
    if not any(part in message for part in NO_GPU):
        return message
    return (
        f"{message}: there is no GPU here, so Python code runs on the CPU, where `.cuda()` and `device='cuda'` leave "
        f"tensors; streams, events and properties need a GPU; send a Triton kernel without Python code around it "
        f"(`kernel_type: triton`, with `io`)"
    )
