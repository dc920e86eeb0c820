# What a fork gives up before it is told what to run: all descriptors but its own, memory without end,
# and the system calls that computing does not need. Files were closed before Python was started.

import resource

# Where a fork has its session.
SESSION = 3


def keep_only(session, output):
    """Leaves the session, the output and nothing of the zygote's or of other forks."""
    nothing = os.open("/dev/null", os.O_RDONLY)
    # Above all that is overwritten below.
    session, output, nothing = (os.dup(fd) for fd in (session, output, nothing))
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.dup2(session, SESSION)
    os.closerange(SESSION + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def limit(which, most):
    resource.setrlimit(which, (most, most))


def become_runner(settings, given, session, output):
    """Confines this process and has it serve its session; does not come back."""
    try:
        keep_only(session, output)
        end_signal_of_parent = 1
        control_process(end_signal_of_parent, signal.SIGKILL, 0, 0, 0)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        limit(resource.RLIMIT_AS, settings["address_space"])
        limit(resource.RLIMIT_FSIZE, 0)
        limit(resource.RLIMIT_NOFILE, 64)
        given["torch"].set_num_threads(settings["threads"])
        refuse_calls(settings["filters"])
        Runner(given).serve()
    except BaseException as error:
        # Before a submission was read this is a fault of ours or of the machine.
        os.write(2, f"the runner cannot be confined: {error}".encode())
    finally:
        os._exit(1)
