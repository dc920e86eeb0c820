# Turns one Triton kernel into PTX, with no GPU and no torch: the part that our own child runs.
#
# Started with the sources of the prelude, of this file and of the others beside it, one behind the
# other. The argument is one JSON object. What comes in on file descriptor 0, and goes out there, are
# frames. Everything that takes long and knows nothing of a request is done before the request is read: a
# process that waits is warm.

import functools
import inspect


class NoGpu:
    """What Triton asks of a driver, for a device that is not here."""

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
    """Has torch be missing: Triton 3.6 and its like look for it when they first meet an argument, and
    importing it takes seconds. They remember that it was not there."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError("torch is not needed here", name=name)


def warm(settings):
    """Imports Triton, and compiles a kernel that uses what most kernels use."""
    sys.path.insert(0, settings["site_packages"])
    import triton
    from triton import knobs
    from triton.backends.compiler import GPUTarget
    from triton.runtime import driver

    # Some versions ask the assembler for its version whenever they compile: it is started once.
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
    """The assembler that Triton itself would start for an architecture."""
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
    # From here on an end without an answer is the submission's.
    write_frame(channel, {"taken": True})
    # Freed where memory runs out, so that there is some to say so.
    reserve = bytearray(32 << 20)
    try:
        answer = answer_to(triton, request)
    except Refused as refused:
        answer = refused.as_answer()
    except MemoryError:
        del reserve
        sys.modules.pop("kernel").__dict__.clear()
        refused = Refused("compiler_out_of_memory", "the memory that it may take did not suffice")
        answer = refused.as_answer()
    except BaseException as error:  # A stranger's code may raise anything, and exit.
        answer = explained(error)
    sys.stdout.flush()
    sys.stderr.flush()
    write_frame(channel, answer)
    # Threads and exit handlers of the submission do not run.
    os._exit(0)
