"""Kernels as arguments: text, a path, a `@triton.jit` function, or a `Kernel` with options."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from .errors import ArgumentError
from .jit import is_jit, parameters_of, source_of
from .models import KernelCode, KernelMetadata, KernelType

_SUFFIXES: dict[str, KernelType] = {
    ".cu": "cuda", ".cuh": "cuda", ".ptx": "ptx", ".cubin": "cubin", ".fatbin": "fatbin", ".py": "triton",
}  # fmt: skip
_BINARY = ("cubin", "fatbin")
# Maximum size of a source that is read from a file, bytes. The server's limit is lower.
_MAX_SOURCE = 256 << 20


@dataclass(frozen=True)
class Kernel:
    """A kernel, with properties that its code does not show.

    `code` is source, machine code, a path or a `@triton.jit` function. `name` is the entry point, if there are
    several. `type` is the language, if the code does not show it. `options` are for the compiler.
    """

    code: object
    name: str | None = None
    type: KernelType | None = None
    options: Sequence[str] = field(default=())
    metadata: KernelMetadata | None = None


@dataclass(frozen=True)
class Parameters:
    """Names of the parameters of a kernel in Python, and which of them are constants."""

    names: tuple[str, ...]
    constants: frozenset[str]


def code_of(kernel: object) -> tuple[KernelCode, Parameters | None]:
    """Returns the kernel in the form of a request, without arguments."""
    if isinstance(kernel, Mapping):
        if "kernel_type" not in kernel:
            raise ArgumentError("a kernel as a dict needs `kernel_type` and `source_code` or `binary_b64`")
        return cast(KernelCode, dict(kernel)), None
    if not isinstance(kernel, Kernel):
        kernel = Kernel(kernel)
    parameters, name = None, kernel.name
    if is_jit(kernel.code):
        names, constants, own = parameters_of(kernel.code)
        parameters, name = Parameters(names, constants), name or own
        code: KernelCode = {"kernel_type": "triton", "source_code": source_of(kernel.code)}
    else:
        code = _from_text_or_file(kernel)
    metadata = cast(KernelMetadata, dict(kernel.metadata or {}))
    if name:
        metadata["kernel_name"] = name
    if kernel.options:
        metadata["compiler_options"] = list(kernel.options)
    if metadata:
        code["metadata"] = metadata
    return code, parameters


def _from_text_or_file(kernel: Kernel) -> KernelCode:
    code = kernel.code
    if isinstance(code, str) and (path := _as_path(code)) is not None:
        code = path
    if isinstance(code, os.PathLike):
        return _from_file(Path(code), kernel.type)
    if isinstance(code, bytes):
        if kernel.type not in _BINARY:
            raise ArgumentError("machine code needs Kernel(code, type='cubin') or 'fatbin'")
        return {"kernel_type": kernel.type, "binary_b64": base64.b64encode(code).decode("ascii")}
    if not isinstance(code, str):
        raise ArgumentError(
            f"a {type(code).__name__} is no kernel; give source, a path, a `@triton.jit` function, or a `Kernel`"
        )
    return {"kernel_type": kernel.type or _language(code), "source_code": code}


def _as_path(text: str) -> Path | None:
    """Returns a short text of one line as a path if it ends like the file of a kernel, else `None`."""
    one_line = "\n" not in text and len(text) < 4096
    return Path(text) if one_line and Path(text).suffix in _SUFFIXES else None


def _from_file(path: Path, kind: KernelType | None) -> KernelCode:
    kind_by_name = _SUFFIXES.get(path.suffix)
    try:
        if path.stat().st_size > _MAX_SOURCE:
            raise ArgumentError(f"{path} has more than {_MAX_SOURCE >> 20} MiB")
        raw = path.read_bytes()
    except OSError as error:
        raise ArgumentError(f"cannot read the kernel {path}: {error.strerror}") from error
    kind = kind or (kind_by_name if path.suffix != ".py" else None)
    if kind in _BINARY:
        return {"kernel_type": kind, "binary_b64": base64.b64encode(raw).decode("ascii")}
    try:
        source = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ArgumentError(
            f"{path} is not UTF-8 (byte {error.start}); say what it is: Kernel(path, type=...)"
        ) from None
    return {"kernel_type": kind or _language(source), "source_code": source}


def _language(source: str) -> KernelType:
    if ("triton" in source and ".jit" in source) or "@jit" in source:
        return "triton"
    if "__global__" in source:
        return "cuda"
    if ".target" in source and ".entry" in source:
        return "ptx"
    if "import torch" in source or "from torch" in source:
        return "torch"
    raise ArgumentError(
        "the kernel's language cannot be told from its source (no __global__, .entry, @triton.jit or torch): "
        "give Kernel(source, type=...)"
    )


def is_contract(value: object) -> bool:
    """Returns whether a value is a whole contract: a dict with `kernel`, or the path of a YAML or JSON file."""
    if isinstance(value, Mapping):
        return "kernel" in value or "ref_kernel" in value
    if isinstance(value, (str, os.PathLike)):
        text = os.fspath(value)
        return "\n" not in text and Path(cast(Any, text)).suffix in (".yaml", ".yml", ".json")
    return False
