# Confinement of a fork before it receives a submission. It gives up all descriptors but its own,
# unlimited memory, and system calls that computations do not need. Access to files was restricted
# before Python was started.

import fcntl
import resource

# Descriptor of the session.
SESSION = 3


def keep_only(session, output, builds):
    """Keeps the session, the output and the build socket, and closes all descriptors of the zygote and of
    other forks."""
    nothing = os.open("/dev/null", os.O_RDONLY)
    # These copies have higher numbers than all descriptors that are overwritten below.
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


# Landlock access rights.
WRITE_FILE, READ_FILE, READ_DIRECTORY = 1 << 1, 1 << 2, 1 << 3


def open_only(handled, granted):
    """Makes landlock deny these rights except for the granted paths. This is a second layer, for a process
    that has its own entries in /proc. A rule applies to such an entry while it is open, so they stay
    open. A fork in such a layer can access neither the zygote nor other forks."""
    libc = ctypes.CDLL(None, use_errno=True)
    create_ruleset, add_rule, restrict_self, beneath = 444, 445, 446, 1
    # If the kernel has no landlock, there is no first layer either.
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
    """Sets the device and the file access, before the driver is loaded."""
    os.environ["CUDA_VISIBLE_DEVICES"] = device["visible"]
    read = READ_FILE | READ_DIRECTORY
    granted = [(path, read) for path in device["read"]]
    granted += [(path, READ_DIRECTORY) for path in device["list"]]
    granted += [(path, read | WRITE_FILE) for path in device["modify"]]
    granted += [(path, READ_FILE) for path in device["own"] if os.path.exists(path)]
    # The driver sets the names of its threads.
    granted.append(("/proc/self/task", READ_DIRECTORY | WRITE_FILE))
    open_only(READ_FILE | READ_DIRECTORY | WRITE_FILE, granted)


def become_runner(settings, given, builder, descriptors, queues):
    """Confines this process and serves its session; does not return. `queues`: number of hardware queues of its
    context, or 0 for the driver's."""
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
            if queues:
                os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = str(queues)
            # A driver reserves addresses for all of the device's memory and for other purposes.
            limit(resource.RLIMIT_DATA, device["data"])
            open_device(device)
        limit(resource.RLIMIT_FSIZE, 0)
        limit(resource.RLIMIT_NOFILE, 64 if device is None else 512)
        given["torch"].set_num_threads(settings["threads"])
        serve_session(settings, given)
    except BaseException as error:
        # No submission has been read yet, so this is an error of this program or of the machine.
        os.write(2, f"the runner cannot be confined: {error}".encode())
    finally:
        os._exit(1)


def become_only_runner(settings, given, builder, control):
    """Serves a session in this process itself; does not return. The process was confined before it became an
    interpreter; its other descriptors belong to a tool."""
    global SESSION, BUILDS
    try:
        _, handed, _, _ = socket.recv_fds(control, 1, 4)
        # The pipe for the exit status remains open until the process ends.
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
        # The driver creates sockets and opens devices for the context, and needs neither
        # afterwards.
        runner.use_device()
    allow_only(settings["filters"], SESSION)
    runner.serve()
