#!/usr/bin/env python3
"""Compiles the kernels of this folder to ../ptx with NVRTC, for every architecture the tests use.

    compile.py LIBNVRTC [-I FOLDER]... [NAME.cu]...
    compile.py LIBNVRTC [-I FOLDER]... --to OUT.ptx --arch ARCH PATH.cu

Without names all kernels are compiled. The folders are those of the CUDA headers (`cuda_fp16.h`,
`mma.h`, `cub/`, …). Paths in the line information are cut to file names. A source whose first line
is `// Architectures: 80 90` is compiled for those alone. PTX that differs from that for the
architecture before in nothing but its target is not kept: `tests/emulator/common.rs` makes it from that one.
The second form compiles one file from anywhere, for one architecture.
"""
import ctypes
import os
import re
import sys

ARCHS = ["75", "80", "90"]
HERE = os.path.dirname(os.path.abspath(__file__))


def compile_ptx(lib, source, arch, options):
    program = ctypes.c_void_p()
    name = os.path.basename(source).encode()
    with open(source, "rb") as f:
        text = f.read()
    lib.nvrtcCreateProgram(ctypes.byref(program), text, name, 0, None, None)
    args = [f"--gpu-architecture=compute_{arch}", "-lineinfo", "--std=c++17", "--device-int128"]
    args += options
    argv = (ctypes.c_char_p * len(args))(*[a.encode() for a in args])
    result = lib.nvrtcCompileProgram(program, len(args), argv)
    size = ctypes.c_size_t()
    lib.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    lib.nvrtcGetProgramLog(program, log)
    if result:
        sys.exit(f"{source} for {arch}:\n{log.value.decode()}")
    lib.nvrtcGetPTXSize(program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value)
    lib.nvrtcGetPTX(program, ptx)
    return re.sub(r'(\.file\s+\d+\s+")[^"]*/', r"\1", ptx.value.decode())


def archs_of(source):
    with open(source) as f:
        found = re.match(r"// Architectures: ([\d ]+)$", f.readline().rstrip())
    return found.group(1).split() if found else ARCHS


def essence(ptx):
    """What makes a text another one than that for another architecture."""
    return re.sub(r"^(\.target .*|)\n", "", re.sub(r"[ \t]*//.*", "", ptx), flags=re.M)


def compile_for_all(lib, name, options):
    before = None
    for arch in archs_of(os.path.join(HERE, name)):
        ptx = compile_ptx(lib, os.path.join(HERE, name), arch, options)
        path = os.path.join(HERE, "..", "ptx", f"{name[:-3]}.{arch}.ptx")
        if essence(ptx) != before:
            with open(path, "w") as f:
                f.write(ptx)
        elif os.path.exists(path):
            os.remove(path)
        before = essence(ptx)


def main():
    args = sys.argv[1:]
    lib = ctypes.CDLL(args.pop(0))
    options, names, to, arch = [], [], None, "90"
    while args:
        arg = args.pop(0)
        if arg == "-I":
            options.append("-I" + args.pop(0))
        elif arg == "--to":
            to = args.pop(0)
        elif arg == "--arch":
            arch = args.pop(0)
        else:
            names.append(arg)
    if to:
        (source,) = names
        with open(to, "w") as f:
            f.write(compile_ptx(lib, source, arch, options))
        return
    names = names or sorted(n for n in os.listdir(HERE) if n.endswith(".cu"))
    for name in names:
        compile_for_all(lib, name, options)


main()
