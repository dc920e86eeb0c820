# Replaces programs that a function starts, because no program may be started. `python -c CODE` runs
# in the function's own process; everything else is rejected with the reason.

import contextlib
import io
import re
import signal
import subprocess

PYTHON = re.compile(r"python(3(\.\d+)?)?")

NO_PROGRAMS = (
    "a function on a server starts no programs: only `python -c CODE` runs, in the function's own process; "
    "do the work in Python"
)


class CodeTimedOut(BaseException):
    """The code took longer than its caller allows."""


class PythonCode:
    """Replaces `subprocess.Popen`: runs the code of `python -c` when its result is requested."""

    def __init__(
        self, args, bufsize=-1, executable=None, stdin=None, stdout=None, stderr=None, preexec_fn=None,
        close_fds=True, shell=False, cwd=None, env=None, universal_newlines=None, *more, encoding=None,
        errors=None, text=None, **others
    ):
        self.args = args
        self.code, self.argv = code_of(args, shell or executable is not None or cwd is not None)
        self.env = env
        self.encoding, self.errors = encoding or "utf-8", errors or "strict"
        self.is_text = bool(text or universal_newlines or encoding or errors)
        self.targets = stdout, stderr
        self.pid, self.returncode = os.getpid(), None
        self.stdin = self.stream(b"") if stdin == subprocess.PIPE else None
        self.streams = None, None

    def __class_getitem__(cls, item):
        return cls

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.wait()

    @property
    def stdout(self):
        self.wait()
        return self.streams[0]

    @property
    def stderr(self):
        self.wait()
        return self.streams[1]

    def communicate(self, input=None, timeout=None):
        if input is not None and self.stdin is not None:
            self.stdin = self.stream(input.encode() if isinstance(input, str) else bytes(input))
        self.wait(timeout)
        return tuple(stream and stream.read() for stream in self.streams)

    def wait(self, timeout=None):
        if self.returncode is None:
            self.run(timeout)
        return self.returncode

    def poll(self):
        return self.wait()

    def kill(self):
        """Does nothing: the code has already ended or was interrupted."""

    terminate = kill

    def send_signal(self, number):
        self.kill()

    def stream(self, data):
        raw = io.BytesIO(data)
        return io.TextIOWrapper(raw, self.encoding, self.errors) if self.is_text else raw

    def run(self, timeout):
        out, err = io.BytesIO(), io.BytesIO()
        given = b"" if self.stdin is None else self.input()
        try:
            with contextlib.ExitStack() as stack:
                stack.enter_context(replaced_streams(self.targets, out, err, given))
                stack.enter_context(replaced_arguments(self.argv, self.env))
                stack.enter_context(interrupted_after(timeout))
                self.returncode = exit_code_of(self.code)
        except CodeTimedOut:
            self.returncode = -signal.SIGKILL
            raise subprocess.TimeoutExpired(self.args, timeout, out.getvalue(), err.getvalue()) from None
        kept = [target == subprocess.PIPE for target in self.targets]
        self.streams = tuple(
            self.stream(made.getvalue()) if is_kept else None for made, is_kept in zip((out, err), kept)
        )

    def input(self):
        if not self.is_text:
            return self.stdin.getvalue()
        self.stdin.flush()
        return self.stdin.buffer.getvalue()


def code_of(args, is_refused):
    """Returns the code of `python -c CODE` and its `sys.argv`. Other programs are an error."""
    words = [args] if isinstance(args, (str, bytes, os.PathLike)) else list(args)
    words = [os.fsdecode(word) for word in words]
    name = os.path.basename(words[0]) if words else ""
    is_python = PYTHON.fullmatch(name) is not None or words[:1] == [sys.executable]
    if is_refused or not is_python or words[1:2] != ["-c"] or len(words) < 3:
        shown = " ".join(words)[:80]
        raise PermissionError(f"`{shown}`: {NO_PROGRAMS}")
    return words[2], ["-c", *words[3:]]


def exit_code_of(code):
    """Runs code as a program's main module, and returns the exit code that Python would return."""
    try:
        exec(compile(code, "<string>", "exec"), {"__name__": "__main__", "__builtins__": builtins})
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return (end.code or 0) & 0xFF
        print(end.code, file=sys.stderr)
        return 1
    except CodeTimedOut:
        raise
    except BaseException as error:  # Submitted code may raise anything.
        own = error.__traceback__.tb_next if error.__traceback__ else None
        traceback.print_exception(type(error), error, own)
        return 1
    return 0


@contextlib.contextmanager
def replaced_streams(targets, out, err, given):
    """Replaces Python's standard streams with those of a program. Output of C code is not redirected."""
    stdout, stderr = targets
    before = sys.stdin, sys.stdout, sys.stderr
    sys.stdin = io.TextIOWrapper(io.BytesIO(given), "utf-8")
    if stdout is not None:
        sys.stdout = io.TextIOWrapper(out, "utf-8", write_through=True)
    if stderr is not None:
        sys.stderr = sys.stdout if stderr == subprocess.STDOUT else io.TextIOWrapper(err, "utf-8", write_through=True)
    made = [new for new, old in zip((sys.stdout, sys.stderr), before[1:]) if new is not old]
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = before
        # Otherwise the streams would close the buffers.
        for stream in {id(stream): stream for stream in made if stream not in before}.values():
            stream.flush()
            stream.detach()


@contextlib.contextmanager
def replaced_arguments(argv, env):
    before, variables = sys.argv, dict(os.environ)
    sys.argv = argv
    if env is not None:
        os.environ.clear()
        os.environ.update({os.fsdecode(name): os.fsdecode(value) for name, value in env.items()})
    try:
        yield
    finally:
        sys.argv = before
        os.environ.clear()
        os.environ.update(variables)


@contextlib.contextmanager
def interrupted_after(timeout):
    """Raises `CodeTimedOut` in the main thread after `timeout` seconds."""
    if timeout is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number, frame):
        raise CodeTimedOut

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, max(timeout, 1e-6))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def refused_command(*args, **kwargs):
    raise PermissionError(NO_PROGRAMS)


def replace_programs():
    """Replaces `subprocess.Popen` and `os.system` for functions."""
    subprocess.Popen = PythonCode
    os.system = refused_command
