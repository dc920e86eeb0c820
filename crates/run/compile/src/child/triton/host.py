# Compiles one Triton kernel to PTX, without a GPU and without torch, in a child process of the
# compile child.
#
# The script consists of the prelude, this file and the files beside it, concatenated. Its argument
# is one JSON object. Requests and answers are frames on file descriptor 0. Slow steps that do not
# depend on a request run before the request is read, so that a waiting process answers quickly.

import functools
import inspect


class NoGpu:
    """Answers Triton's queries to a driver, for a device that is not present."""

    def __init__(self, target):
        self.target = target

    def get_current_target(self):
        return self.target

    def get_current_device(self):
        return 0

    def get_current_stream(self, device=None):
        return 0

    def get_active_torch_device(self):
        import torch

        return torch.device("cpu")

    def get_benchmarker(self):
        def refuse(*_, **__):
            raise RuntimeError("nothing is timed while a kernel is compiled")

        return refuse


class NoTorch:
    """Makes torch absent: versions such as Triton 3.6 look for it at the first argument, and
    importing it takes seconds. They remember that it is absent."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError("torch is not needed here", name=name)


def warm(settings):
    """Imports Triton, and compiles a kernel with features that most kernels use."""
    sys.path.insert(0, settings["site_packages"])
    import triton
    from triton import knobs
    from triton.backends.compiler import GPUTarget
    from triton.runtime import driver

    # Some versions query the assembler's version at each compilation. The cache starts it only
    # once.
    knobs.NvidiaTool.from_path = staticmethod(functools.lru_cache(knobs.NvidiaTool.from_path))

    target = GPUTarget("cuda", settings["arch"], 32)
    driver.set_active(NoGpu(target))
    keep_in_memory(triton)
    sys.meta_path.insert(0, NoTorch)
    run_source(WARM_SOURCE, "<warm>")["warm"].warmup(
        Tensor(0, "float32", [1024]), 1024, BLOCK=128, grid=(1,)
    )
    sys.meta_path.remove(NoTorch)
    stand_in_for_torch(settings["arch"])
    COMPILED.clear()
    return triton


def assembler(arch):
    """Returns the path of the assembler that Triton would start for an architecture."""
    from triton.backends.nvidia import compiler

    takes = inspect.signature(compiler.get_ptxas).parameters
    return compiler.get_ptxas(*([arch] if takes else [])).path


WARM_SOURCE = """
import triton
import triton.language as tl
from triton.language.extra.cuda import libdevice

@triton.jit
def warm(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=0.0)
    tl.store(x + at, value + tl.sum(value, axis=0), mask=at < n)
"""


def main():
    settings = json.loads(sys.argv[1])
    channel = os.dup(0)
    empty = os.open("/dev/null", os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    triton = warm(settings)
    allow_only(settings["filters"], channel)
    write_frame(channel, {"ptxas": assembler(settings["arch"])})
    request = read_frame(channel)
    # After this message, the submission is the cause of an end without an answer.
    write_frame(channel, {"taken": True})
    # Freed when memory runs out, so that some is left to report it.
    reserve = bytearray(32 << 20)
    try:
        answer = answer_to(triton, request)
    except Refused as refused:
        answer = refused.as_answer()
    except MemoryError:
        del reserve
        sys.modules.pop("kernel").__dict__.clear()
        refused = Refused("compiler_out_of_memory", "the compilation needs more memory than it may use")
        answer = refused.as_answer()
    except BaseException as error:  # A stranger's code may raise anything, and exit.
        answer = explained(error)
    sys.stdout.flush()
    sys.stderr.flush()
    write_frame(channel, answer)
    # Threads and exit handlers of the submission do not run.
    os._exit(0)
