# A process that has imported PyTorch, and forks for each evaluation. It runs no submitted code.
#
# It is started with the concatenated sources of the prelude, of this file and of the other files in
# this folder. The argument is one JSON object. File descriptor 0 is a socket to the server. A byte
# with four descriptors requests a fork. The byte is the number of hardware queues of the fork's
# context, or 0 for the driver's number. The answer is a frame with the fork's process number and
# handle. The four descriptors are the fork's session, its output, the pipe for its exit status, and
# the socket for its build orders. Under a tool this process does not fork, and becomes the runner
# itself.

import functools
import gc
import math
import select
import signal
import socket
import tempfile


def warm(settings):
    """Imports the modules that submissions use. Returns the names that need no import, and the builder of
    extensions."""
    sys.path.insert(0, settings["site_packages"])
    # A request for a temporary directory succeeds, but writing there is denied.
    tempfile.tempdir = "/tmp"
    import torch

    given = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "math": math}
    for name, package in (("np", "numpy"), ("triton", "triton"), ("tl", "triton.language")):
        try:
            __import__(package)
            given[name] = sys.modules[package]
        except Exception:
            # The package is not installed, or does not work here. Submissions that need it report
            # that.
            pass
    extensions, builder = with_builder(torch)
    with_inductor(torch, builder)
    if settings["device"] is not None and "triton" in given:
        try:
            with_triton(given["triton"], builder)
        except Exception as error:
            # Triton kernels will report that no program can be started.
            print(f"Triton compiles nothing in torch kernels: {error}", file=sys.stderr)
    # The first operation on a meta tensor imports 900 modules, which takes a second. It does not
    # start a thread.
    try:
        with torch.device("meta"):
            torch.nn.functional.relu(torch.empty(1))
    except Exception as error:
        # Only real tensors will be used in the search for inputs.
        print(f"no tensors without memory: {error}", file=sys.stderr)
    return given, extensions, builder


class Zygote:
    def __init__(self, settings, given, builder, control):
        self.settings, self.given, self.builder = settings, given, builder
        self.control = control
        # Forks by their handles: the process number, and the descriptor for the exit status. This
        # process does not handle SIGCHLD. That signal is also sent when a fork stops or continues,
        # and would wake this process while a fork is timed.
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
            # The reader of the exit status has closed the pipe.
            pass
        os.close(told)

    def asked(self):
        byte, handed, _, _ = socket.recv_fds(self.control, 1, 4)
        if not byte:
            # The server has ended or closed the connection.
            os._exit(0)
        session, output, told, builds = handed
        number = os.fork()
        if number == 0:
            become_runner(self.settings, self.given, self.builder, (session, output, builds), byte[0])
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
    # All forks share the current objects, until a fork writes to them.
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
