# What every interpreter of ours begins with: how it talks to its parent, and how it gives up system calls
# before it reads what a stranger wrote.
#
# Started with `python -c` and this source before its own. Frames are a length of four bytes, little
# endian, and so many bytes of JSON.

import base64
import ctypes
import json
import linecache
import os
import socket
import struct
import sys


def read_exactly(descriptor, count):
    parts = []
    while count:
        part = os.read(descriptor, min(count, 1 << 20))
        if not part:
            # Whoever started us is gone, or has seen enough.
            os._exit(0)
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def read_frame(descriptor):
    (length,) = struct.unpack("<I", read_exactly(descriptor, 4))
    return json.loads(read_exactly(descriptor, length))


def frame(message):
    body = json.dumps(message).encode()
    return struct.pack("<I", len(body)) + body


def write_all(descriptor, data):
    data = memoryview(data)
    while data:
        data = data[os.write(descriptor, data) :]


def write_frame(descriptor, message):
    write_all(descriptor, frame(message))


class Program(ctypes.Structure):
    """struct sock_fprog"""

    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def control_process(what, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(what, *arguments) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({what})")


# Flags of seccomp: a filter holds for all threads; the kernel asks where it leaves a call open; and of a
# thread to which it cannot be applied there is an error, and no number.
ALL_THREADS, ASKING, OR_FAIL = 1, 8, 16


def install_filter(encoded, flags):
    seccomp = {"x86_64": 317, "aarch64": 277}[os.uname().machine]
    libc = ctypes.CDLL(None, use_errno=True)
    code = base64.b64decode(encoded)
    kept = ctypes.create_string_buffer(code, len(code))
    program = Program(len(code) // 8, ctypes.cast(kept, ctypes.c_void_p).value)
    result = libc.syscall(seccomp, 1, flags, ctypes.byref(program))
    if result < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    return result


def allow_only(filters, channel=None):
    """Has the kernel refuse all threads of this process what is on no list, by seccomp filters as the
    kernel takes them. There is no way back. With a channel, a socket, the first filter has the kernel ask
    for threads, and where it asks goes to the other side."""
    no_new_privileges = 38
    control_process(no_new_privileges, 1, 0, 0, 0)
    if channel is not None:
        hand_over(filters[0], channel)
        filters = filters[1:]
    for encoded in filters:
        install_filter(encoded, ALL_THREADS)


def hand_over(asking, channel):
    try:
        descriptors = [install_filter(asking, ALL_THREADS | ASKING | OR_FAIL)]
    except OSError:
        # An older kernel does not ask, and a kernel asks one supervisor at most: the other side reports it.
        descriptors = []
    own = socket.socket(fileno=os.dup(channel))
    socket.send_fds(own, [b"t"], descriptors)
    own.close()
    for descriptor in descriptors:
        os.close(descriptor)


def with_reason(error, message, own, who, files):
    """The message, and what warpgauge refuses where the system only gives a number. `own`: the frames of what was
    submitted; `who`: what that is; `files`: those that it finds, and what to do where it needs others."""
    if isinstance(error, FileNotFoundError):
        return f"{message}; {who} finds no files but {files}"
    if isinstance(error, PermissionError):
        refused = (
            f"warpgauge refuses this system call: {who} computes in memory, and changes no files, starts no "
            "programs, uses no network and reaches no other processes"
        )
        call = called(own[-1]) if own else None
        return f"{message} in `{call}`; {refused}" if call else f"{message}; {refused}"
    if isinstance(error, RuntimeError) and "can't start new thread" in message:
        return f"{message}; {who} has a limited number of threads"
    return message


def called(frame):
    """The expression of a frame in which it raised, where that is in one line."""
    line = linecache.getline(frame.filename, frame.lineno)
    start, end = getattr(frame, "colno", None), getattr(frame, "end_colno", None)
    if start is None or end is None or frame.lineno != getattr(frame, "end_lineno", None):
        return frame.line
    return line.encode()[start:end].decode("utf-8", "replace")
