# What submissions may ask for that is not here: files to compile, and a GPU. It is said when it is asked
# for, and what would help; in place of what a library says that does not find it.

# What runs CUDA without a GPU beside PyTorch.
INSTEAD = (
    "send the CUDA source by itself (`kernel_type: cuda`, with `io`), and what it must compute as a torch "
    "kernel in `expected`, or as the reference of a comparison"
)


def refuse_files(name, /, *given, **named):
    """Stands for what compiles files."""
    raise Refused(
        "not_supported",
        f"`{name}` compiles files, and submissions have none and write none: give the text of the sources to "
        f"`load_inline`",
    )


def without_files(module):
    """What builds extensions from files refuses to."""
    for name in ("load", "CppExtension", "CUDAExtension", "SyclExtension", "BuildExtension"):
        setattr(module, name, functools.partial(refuse_files, name))


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
