# Prints one line of JSON: where this interpreter would import Triton and PyTorch from, without
# importing them, and which files the interpreter needs. Directories given as arguments come first
# on the path.
import importlib.util
import json
import os
import sys

sys.path[:0] = sys.argv[1:]


def origin(package):
    try:
        spec = importlib.util.find_spec(package)
    except Exception:
        spec = None
    return spec.origin if spec else None


told = {
    "executable": sys.executable,
    "version": "%d.%d.%d" % tuple(sys.version_info[:3]),
    "base_executable": getattr(sys, "_base_executable", None),
    "base_prefix": sys.base_prefix,
    "package": origin("triton"),
    "torch": origin("torch"),
    "library": [],
    "mapped": [],
}
if told["package"] or told["torch"]:
    told["library"] = [os.path.dirname(os.__file__)]
    told["library"] += [p for p in sys.path if p.endswith(("lib-dynload", ".zip"))]
    # Triton and PyTorch import modules that load shared libraries. Importing them here adds the
    # libraries to the map.
    for name in ("_bz2", "_ctypes", "_hashlib", "_lzma", "zlib"):
        try:
            __import__(name)
        except ImportError:
            pass
    with open("/proc/self/maps") as maps:
        fields = (line.rstrip("\n").split(None, 5) for line in maps)
        files = {field[5] for field in fields if len(field) == 6}
    told["mapped"] = sorted(f for f in files if f.startswith("/") and ".so" in f)
print(json.dumps(told))
