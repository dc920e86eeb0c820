# A process that has imported PyTorch, and forks for each evaluation: it runs no stranger's code.
#
# Started with the sources of the prelude, of this file and of the others beside it, one behind the
# other. The argument is one JSON object. File descriptor 0 is a socket to the server: a byte with four
# descriptors asks for a fork, and a frame with the fork's number and a handle of it is the answer. The
# descriptors are the fork's: the socket of its session, where its output goes, where its end is told, and
# where it asks for what it cannot compile itself. Where a tool is round this process it does not fork, and
# becomes the runner itself.

import functools
import gc
import math
import select
import signal
import socket
import tempfile


def warm(settings):
    """Imports what submissions use; gives what they find without importing it, and what builds extensions."""
    sys.path.insert(0, settings["site_packages"])
    # Who asks for a place gets one, and is refused when he writes there.
    tempfile.tempdir = "/tmp"
    import torch

    given = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "math": math}
    for name, package in (("np", "numpy"), ("triton", "triton"), ("tl", "triton.language")):
        try:
            __import__(package)
            given[name] = sys.modules[package]
        except Exception:
            # It is not installed, or does not work here: submissions that need it say so.
            pass
    extensions, builder = with_builder(torch)
    with_inductor(torch, builder)
    if settings["device"] is not None and "triton" in given:
        try:
            with_triton(given["triton"], builder)
        except Exception as error:
            # Its kernels will say that no program can be started.
            print(f"Triton compiles nothing in torch kernels: {error}", file=sys.stderr)
    # The first operation without memory imports 900 modules, which takes a second. It starts no thread.
    try:
        with torch.device("meta"):
            torch.nn.functional.relu(torch.empty(1))
    except Exception as error:
        # Inputs will be looked for among real ones alone.
        print(f"no tensors without memory: {error}", file=sys.stderr)
    return given, extensions, builder


class Zygote:
    def __init__(self, settings, given, builder, control):
        self.settings, self.given, self.builder = settings, given, builder
        self.control = control
        # Forks by their handles: the number, and the descriptor on which their end is told. No signal is
        # asked for: it would come each time that a fork is stopped or goes on, too, and wake this process
        # while a fork is timed.
        self.forks = {}

    def serve(self):
        while True:
            ready, _, _ = select.select([self.control, *self.forks], [], [])
            for handle in ready:
                if handle in self.forks:
                    self.reap(handle)
            if self.control in ready:
                self.asked()

    def reap(self, handle):
        number, told = self.forks.pop(handle)
        os.close(handle)
        _, status = os.waitpid(number, 0)
        try:
            os.write(told, struct.pack("<i", status))
        except OSError:
            # Nobody wants to know any more.
            pass
        os.close(told)

    def asked(self):
        byte, handed, _, _ = socket.recv_fds(self.control, 1, 4)
        if not byte:
            # The server is gone, or wants no more.
            os._exit(0)
        session, output, told, builds = handed
        number = os.fork()
        if number == 0:
            become_runner(self.settings, self.given, self.builder, (session, output, builds))
        os.close(session)
        os.close(output)
        os.close(builds)
        handle = os.pidfd_open(number)
        self.forks[handle] = (number, told)
        socket.send_fds(self.control, [frame({"forked": number})], [handle])


def main():
    settings = json.loads(sys.argv[1])
    given, extensions, builder = warm(settings)
    gc.collect()
    # What is there now is every fork's, and shared as long as nobody writes to it.
    gc.freeze()
    torch = given["torch"]
    versions = {
        "torch": torch.__version__,
        "python": sys.version.split()[0],
        "cuda": torch.version.cuda,
        "building": extensions.as_told(),
    }
    control = socket.socket(fileno=os.dup(0))
    control.sendall(frame({"ready": versions}))
    if settings["alone"]:
        become_only_runner(settings, given, builder, control)
    Zygote(settings, given, builder, control).serve()
