# What a fork gives up before it is told what to run: all descriptors but its own, memory without end,
# and the system calls that computing does not need. Files were closed before Python was started.

import fcntl
import resource

# Where a fork has its session.
SESSION = 3


def keep_only(session, output, builds):
    """Leaves the session, the output, where it asks for what is compiled, and nothing of the zygote's or of
    other forks."""
    nothing = os.open("/dev/null", os.O_RDONLY)
    # Above all that is overwritten below.
    own = (session, output, builds, nothing)
    session, output, builds, nothing = (fcntl.fcntl(fd, fcntl.F_DUPFD, BUILDS + 1) for fd in own)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.dup2(session, SESSION)
    os.dup2(builds, BUILDS)
    os.closerange(BUILDS + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def limit(which, most):
    resource.setrlimit(which, (most, most))


# Rights of landlock.
WRITE_FILE, READ_FILE, READ_DIRECTORY = 1 << 1, 1 << 2, 1 << 3


def open_only(handled, granted):
    """Has landlock refuse these rights but where they are granted: a second layer, in a process that has
    entries of its own in /proc. A rule holds for such an entry as long as that is open, so those stay open.
    A fork with such a layer looks neither into the zygote nor into other forks."""
    libc = ctypes.CDLL(None, use_errno=True)
    create_ruleset, add_rule, restrict_self, beneath = 444, 445, 446, 1
    # Kernels that know no landlock have no first layer either.
    rules = libc.syscall(create_ruleset, struct.pack("Q", handled), 8, 0)
    if rules < 0:
        return
    for path, rights in granted:
        if not os.path.isdir(path):
            rights &= ~READ_DIRECTORY
        opened = os.open(path, os.O_PATH)
        rule = struct.pack("=Qi", rights, opened)
        if libc.syscall(add_rule, rules, beneath, rule, 0) != 0:
            raise OSError(ctypes.get_errno(), f"landlock: {path}")
        if not path.startswith("/proc/self/"):
            os.close(opened)
    control_process(38, 1, 0, 0, 0)
    if libc.syscall(restrict_self, rules, 0) != 0:
        raise OSError(ctypes.get_errno(), "landlock")
    os.close(rules)


def open_device(device):
    """What comes before the driver is loaded."""
    os.environ["CUDA_VISIBLE_DEVICES"] = device["visible"]
    read = READ_FILE | READ_DIRECTORY
    granted = [(path, read) for path in device["read"]]
    granted += [(path, READ_DIRECTORY) for path in device["list"]]
    granted += [(path, read | WRITE_FILE) for path in device["modify"]]
    granted += [(path, READ_FILE) for path in device["own"] if os.path.exists(path)]
    # The driver names its threads.
    granted.append(("/proc/self/task", READ_DIRECTORY | WRITE_FILE))
    open_only(READ_FILE | READ_DIRECTORY | WRITE_FILE, granted)


def become_runner(settings, given, builder, descriptors):
    """Confines this process and has it serve its session; does not come back."""
    try:
        keep_only(*descriptors)
        end_signal_of_parent = 1
        control_process(end_signal_of_parent, signal.SIGKILL, 0, 0, 0)
        device = settings["device"]
        builder.has_device = device is not None
        if device is None:
            limit(resource.RLIMIT_AS, settings["address_space"])
            open_only(WRITE_FILE, [])
        else:
            # A driver reserves addresses for all of the device's memory, and more.
            limit(resource.RLIMIT_DATA, device["data"])
            open_device(device)
        limit(resource.RLIMIT_FSIZE, 0)
        limit(resource.RLIMIT_NOFILE, 64 if device is None else 512)
        given["torch"].set_num_threads(settings["threads"])
        serve_session(settings, given)
    except BaseException as error:
        # Before a submission was read this is a fault of ours or of the machine.
        os.write(2, f"the runner cannot be confined: {error}".encode())
    finally:
        os._exit(1)


def become_only_runner(settings, given, builder, control):
    """Has this process serve a session itself; does not come back. It was confined before it was an
    interpreter, and what it has open beside its own is a tool's."""
    global SESSION, BUILDS
    try:
        _, handed, _, _ = socket.recv_fds(control, 1, 4)
        # Where its end would be told it keeps open until then.
        SESSION, output, _, BUILDS = handed
        control.sendall(frame({"forked": os.getpid()}))
        control.close()
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        device = settings["device"]
        builder.has_device = device is not None
        if device is not None:
            os.environ["CUDA_VISIBLE_DEVICES"] = device["visible"]
        given["torch"].set_num_threads(settings["threads"])
        serve_session(settings, given)
    except BaseException as error:
        os.write(2, f"the runner cannot be started: {error}".encode())
    finally:
        os._exit(1)


def serve_session(settings, given):
    runner = Runner(given)
    if settings["device"] is not None:
        # The driver makes sockets and opens devices for that, and needs neither afterwards.
        runner.use_device()
    allow_only(settings["filters"], SESSION)
    runner.serve()
