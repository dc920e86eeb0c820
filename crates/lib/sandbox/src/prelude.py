# The common beginning of every Python source that warpgauge runs: functions that exchange messages with
# the parent process, and functions that drop system calls before submitted code is read.
#
# `python -c` runs this text, followed by the source itself. A message is a frame: its length (four bytes,
# little-endian), and that number of bytes of JSON.

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
            # The parent has ended, or has closed the connection.
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
    """The C structure `sock_fprog`: a filter program for the kernel."""

    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def control_process(what, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(what, *arguments) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({what})")


# Flags of `seccomp`: the filter applies to all threads; the kernel asks a supervisor about calls for which
# the filter requests a notification; and a thread to which the filter cannot be applied causes an error
# instead of its id as the result.
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
    """Makes the kernel refuse all system calls outside the lists, for all threads of this process.
    `filters` contains seccomp filters in the kernel's format, in base64. This cannot be undone. If there is
    a `channel`, a socket, the first filter makes the kernel ask a supervisor before a thread starts. The
    descriptor on which it asks is sent to the other end of the channel."""
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
        # Older kernels have no notifications, and a process has at most one supervisor. The receiver of the
        # message reports the missing descriptor.
        descriptors = []
    own = socket.socket(fileno=os.dup(channel))
    socket.send_fds(own, [b"t"], descriptors)
    own.close()
    for descriptor in descriptors:
        os.close(descriptor)


def with_reason(error, message, own, who, files):
    """Returns the message of an error. If the confinement caused the error, the result also contains the
    restriction. `own`: stack frames of the submitted code; `who`: the kind of code; `files`: the files that
    the code can open, and a remedy if it needs others."""
    if isinstance(error, FileNotFoundError):
        return f"{message}; {who} can open no files except {files}"
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
    """Returns the expression of a stack frame that raised the error. If it is not on one line, or its
    columns are not known, returns the line."""
    line = linecache.getline(frame.filename, frame.lineno)
    start, end = getattr(frame, "colno", None), getattr(frame, "end_colno", None)
    if start is None or end is None or frame.lineno != getattr(frame, "end_lineno", None):
        return frame.line
    return line.encode()[start:end].decode("utf-8", "replace")
