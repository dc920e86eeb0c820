# Function calls, in a fork that does nothing else. The fork loads the program, runs it, and writes
# records for the caller who sent the function.

# Memory that PyTorch, its libraries and threads need in addition to the caller's limit, bytes.
OWN_MEMORY = 1 << 30

# The same with a driver, which maps more memory, bytes.
OWN_MEMORY_WITH_DEVICE = 32 << 30

# Maximum number of failed iterations that are reported with a traceback.
MOST_FAILURES = 20


class Records:
    """Sends the caller's records one after another, each as soon as it exists."""

    def __init__(self):
        self.failures = 0

    def write(self, record, iteration=None):
        """Writes a record, or a failure if the value cannot be encoded."""
        writer = ValueWriter(to_cpu=True)
        try:
            packed = writer.packed(writer.tree(record, "the result"))
        except NotData as error:
            self.failed(error, "not_data", iteration)
            return
        self.send(packed)

    def send(self, packed):
        write_frame(SESSION, {"record": len(packed)})
        write_all(SESSION, packed)

    def failed(self, error, code, iteration=None):
        self.failures += 1
        record = {"error": failure_told(error, code, self.failures <= MOST_FAILURES)}
        if iteration is not None:
            record["iteration"] = iteration
        writer = ValueWriter()
        self.send(writer.packed(writer.tree(record)))


def failure_told(error, code, in_full):
    """Describes an exception, with the caller's part of its traceback."""
    try:
        text = str(error)
    except BaseException as inner:
        text = f"(its text is not available: {type(inner).__name__})"
    message = text if isinstance(error, (Broken, NotData)) else f"{type(error).__name__}: {text}"
    if isinstance(error, MemoryError) or any(words in message for words in NO_MEMORY):
        code = "out_of_memory"
    frames = []
    if not isinstance(error, (Broken, NotData)):
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename not in ("<string>", "-c")]
        files = "those of Python and PyTorch: send what it needs as arguments"
        message = with_reason(error, message, frames, "a function", files)
    if not in_full:
        frames = []
    lines = [part.rstrip("\n") for part in traceback.format_list(frames)]
    if lines:
        lines = ["Traceback (most recent call last, on the server):", *lines]
    trace = "\n".join([*lines, message])[-MOST_TEXT:]
    return {
        "code": code,
        "type": type(error).__name__,
        "message": message[:MOST_TEXT].encode("utf-8", "replace").decode(),
        "traceback": trace.encode("utf-8", "replace").decode(),
    }


def stand_in_for_cuda(torch):
    """Returns a mode in which tensors that the code moves to a GPU stay on the CPU."""

    def here(value):
        if isinstance(value, torch.device) and value.type == "cuda":
            return torch.device("cpu")
        if isinstance(value, str) and (value == "cuda" or value.startswith("cuda:")):
            return "cpu"
        return value

    def named_here(name, value):
        # A number alone is also the index of a GPU.
        is_index = name == "device" and isinstance(value, int)
        return torch.device("cpu") if is_index else here(value)

    class OnCpu(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, kinds, args=(), kwargs=None):
            if function is torch.Tensor.cuda or function is torch.Tensor.pin_memory:
                return args[0]
            kwargs = {name: named_here(name, value) for name, value in (kwargs or {}).items()}
            # Memory can be pinned only on a machine with a GPU.
            kwargs.pop("pin_memory", None)
            return function(*map(here, args), **kwargs)

    def nothing(*args, **kwargs):
        return None

    for name in ("synchronize", "empty_cache", "set_device", "manual_seed", "manual_seed_all"):
        setattr(torch.cuda, name, nothing)
    return OnCpu()


class FunctionCall:
    """One call of a function."""

    def __init__(self, runner, asked, data):
        self.runner, self.records = runner, Records()
        self.program = FunctionProgram(data, asked["pickles"])
        self.root = self.program.root
        self.base = self.root["seed"]

    def run(self):
        function = self.program.entry()
        return getattr(self, "do_" + self.root["do"])(function)

    def arguments(self):
        return self.program.value("args"), self.program.value("kwargs")

    def do_once(self, function):
        args, kwargs = self.arguments()
        self.runner.seed(seed_of(self.base, "once"))
        self.records.write({"value": function(*args, **kwargs)})

    def do_map(self, function):
        watched = self.program.data()
        before = {name: fingerprint(value) for name, value in watched.items()}
        began = time.perf_counter()
        for iteration, item in self.program.value("items"):
            self.runner.seed(seed_of(self.base, iteration))
            try:
                value = function(item)
            except BaseException as error:  # Submitted code may raise anything, including SystemExit.
                self.records.failed(error, "raised", iteration)
            else:
                self.records.write({"iteration": iteration, "value": value}, iteration)
        seconds = time.perf_counter() - began
        changed = [name for name in watched if fingerprint(watched[name]) != before[name]]
        self.records.write({"changed": changed, "loop_s": seconds})

    def do_part(self, function):
        args, kwargs = self.arguments()
        self.runner.seed(seed_of(self.base, "once"))
        loop = PartOfLoop(self.runner, self.root["ranges"], self.base, self.program.data(), self.records)
        self.program.namespace_of_entry()["__warpgauge_loop"] = loop
        try:
            function(*args, **kwargs)
        except NoParts as reason:
            self.records.write({"whole": str(reason)})
            return
        seconds = loop.seconds()
        ended = {"changed": loop.changed(), "count": loop.count, "loop_s": seconds}
        self.records.write(ended)

    def do_finish(self, function):
        args, kwargs = self.arguments()
        self.runner.seed(seed_of(self.base, "once"))
        loop = JoinedLoop(self.program.value("effects"))
        self.program.namespace_of_entry()["__warpgauge_loop"] = loop
        try:
            self.records.write({"value": function(*args, **kwargs)})
        except NoParts as reason:
            self.records.write({"whole": str(reason)})


def run_functions(runner, asked):
    """Makes one call, and further calls while the caller keeps the process."""
    while run_function(runner, asked):
        asked = read_frame(SESSION)
    # The server sends no further call.
    os._exit(0)


def run_function(runner, asked):
    """Reads a call, makes it and reports its end. Returns whether this process waits for another call. Errors
    become records."""
    data = read_exactly(SESSION, asked["bytes"])
    torch, reserve = runner.torch, bytearray(16 << 20)
    which = resource.RLIMIT_DATA
    before = resource.getrlimit(which)[1]
    most = asked["memory"] + (OWN_MEMORY if runner.device is None else OWN_MEMORY_WITH_DEVICE)
    limit(which, most if before == resource.RLIM_INFINITY else min(most, before))
    torch.set_num_threads(max(1, asked["threads"]))
    mode = stand_in_for_cuda(torch) if asked["stand_in"] and runner.device is None else None
    records = Records()
    call = None
    replace_programs()
    try:
        call = FunctionCall(runner, asked, data)
        records = call.records
        if mode is None:
            call.run()
        else:
            with mode:
                call.run()
    except RaisedByProgram as error:
        records.failed(error.error, "raised")
    except BaseException as error:
        reserve = None
        code = "not_data" if isinstance(error, NotData) else "raised"
        records.failed(error, "broken" if isinstance(error, Broken) else code)
    # After an error the process may be in any state. Remaining threads would run during the next
    # call.
    waits = asked["keep"] and call is not None and not records.failures and threading.active_count() == 1
    del reserve, call, data
    sys.stdout.flush()
    sys.stderr.flush()
    write_frame(SESSION, {"waits" if waits else "done": None})
    if waits:
        # Objects that were frozen before the fork are not collected.
        gc.collect()
    return waits
