"""Builds the request of an evaluation from a kernel and its arguments, or from a contract."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from .errors import ArgumentError
from .kernels import Parameters, code_of, is_contract
from .models import ArgSpec, Dim3, Expected, KernelCode, Launch, LaunchStep, SurfaceSpec, TextureSpec
from .tensors import InOut, Out, Shared, Surface, Tensor, Texture, data_of, library, spec_of

_MAX_CONTRACT = 64 << 20


@dataclass(frozen=True)
class Request:
    """A body for the server, and the library of each output's array."""

    body: dict[str, Any]
    kinds: Mapping[str, str]
    #: Notes on fields of a contract that the request lacks.
    notes: tuple[str, ...] = ()


def build(
    kernel: object,
    args: Mapping[str, object] | Sequence[object] | None = None,
    *,
    launch: Mapping[str, object] | Sequence[Mapping[str, object]] | None = None,
    outputs: Sequence[str] = (),
    constants: Mapping[str, object] | None = None,
    expected: Mapping[str, object] | None = None,
    reference: object = None,
    setup: Sequence[Mapping[str, object]] = (),
    **more: object,
) -> Request:
    """Returns a request for any kernel that `Client.evaluate` accepts."""
    if is_contract(kernel):
        own = {"args": args, "launch": launch, "outputs": outputs, "constants": constants,
                 "expected": expected, "reference": reference, "setup": setup}  # fmt: skip
        if extra := [name for name, value in own.items() if value]:
            raise ArgumentError(f"a contract brings its own {', '.join(extra)}: put them there, or give a kernel")
        return Request({**load(kernel), **given(more)}, {})
    code, parameters = code_of(kernel)
    named = _named(args if args is not None else {}, parameters)
    unknown = set(outputs) - named.keys()
    if unknown:
        raise ArgumentError(f"outputs {sorted(unknown)} are no arguments; there are {list(named)}")
    specs, kinds = _arguments(named, set(outputs), parameters)
    for name, value in (constants or {}).items():
        specs.append({**_scalar(name, value), "is_meta": True})
    if specs or launch:
        code["io"] = {"args": specs}
    if isinstance(launch, Mapping):
        code["io"]["launch"] = launch_of(launch)
    elif launch:
        code["launches"] = steps_of(launch)
    if setup:
        code["setup"] = steps_of(setup)
    body: dict[str, Any] = {"kernel": code}
    written = [spec["name"] for spec in specs if spec.get("role") in ("output", "inout")]
    checks = _expected(expected, reference, written)
    if checks:
        body["expected"] = checks
    if written and "return_outputs" not in more:
        body["return_outputs"] = "all"
    return Request({**body, **given(more)}, kinds)


def given(more: Mapping[str, object]) -> dict[str, object]:
    """Returns the fields that are not `None`."""
    return {name: value for name, value in more.items() if value is not None}


def _named(args: Mapping[str, object] | Sequence[object], parameters: Parameters | None) -> dict[str, object]:
    if isinstance(args, Mapping):
        return dict(args)
    if parameters is None:
        return {f"arg{i}": value for i, value in enumerate(args)}
    names = [name for name in parameters.names if name not in parameters.constants]
    if len(args) > len(names):
        raise ArgumentError(f"{len(args)} arguments for the parameters {names}; constants go to `constants`")
    return dict(zip(names, args, strict=False))


def _arguments(
    named: Mapping[str, object], outputs: set[str], parameters: Parameters | None
) -> tuple[list[ArgSpec], dict[str, str]]:
    specs: list[ArgSpec] = []
    arrays = {n: getattr(v, "array", v) if isinstance(v, (Out, InOut)) else v for n, v in named.items()}
    found = {name: kind for name, value in arrays.items() if (kind := library(value))}
    # An output that is only described becomes an array of the same library as the other arguments.
    usual = next(iter(found.values()), "numpy")
    kinds: dict[str, str] = {}
    for name, value in named.items():
        where = f"argument `{name}`"
        if not isinstance(value, (Shared, Tensor, Out, InOut)) and library(value) is None:
            spec = _scalar(name, value)
            if parameters and name in parameters.constants:
                spec["is_meta"] = True
            specs.append(spec)
            continue
        kinds[name] = found.get(name, usual)
        specs.append(_tensor(name, value, name in outputs, where))
    return specs, kinds


def _tensor(name: str, value: object, is_output: bool, where: str) -> ArgSpec:
    if isinstance(value, Tensor):
        described: dict[str, Any] = {"shape": list(value.shape), "dtype": value.dtype}
        if value.init is not None:
            described["init"] = value.init
        role = "output" if is_output and value.role == "input" else value.role
        whole = {"name": name, "type": "tensor", "role": role, "tensor_spec": described}
        return cast(ArgSpec, whole if value.symbol is None else {**whole, "symbol": value.symbol})
    if isinstance(value, Shared):
        named: dict[str, Any] = {"data": {"tensor_id": value.tensor_id}}
        if value.shape is not None:
            named["shape"] = list(value.shape)
        if value.dtype is not None:
            named["dtype"] = value.dtype
        # The content of the argument is read, so an output of this kind is an input, too.
        role = "inout" if is_output and value.role == "input" else value.role
        return cast(ArgSpec, {"name": name, "type": "tensor", "role": role, "tensor_spec": named})
    role = "inout" if isinstance(value, InOut) else "output" if isinstance(value, Out) or is_output else "input"
    array = value.array if isinstance(value, (Out, InOut)) else value
    spec = spec_of(array, where, with_data=role != "output")
    return cast(ArgSpec, {"name": name, "type": "tensor", "role": role, "tensor_spec": spec})


def _scalar(name: str, value: object) -> ArgSpec:
    # NumPy's scalars, and PyTorch's arrays without dimensions, do not reach this: they have `item`.
    if type(value).__module__.partition(".")[0] == "numpy" and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, Mapping):
        return {"name": name, "type": "struct", "fields": {key: _field(name, one) for key, one in value.items()}}
    if isinstance(value, Texture):
        return {"name": name, "type": "texture", "texture": cast(TextureSpec, asdict(value))}
    if isinstance(value, Surface):
        return {"name": name, "type": "surface", "surface": cast(SurfaceSpec, asdict(value))}
    if isinstance(value, (list, tuple)):
        return {"name": name, "type": "pointers", "pointers": [_pointer(name, one) for one in value]}
    if value is None:
        return {"name": name, "type": "none"}
    if isinstance(value, bool):
        return {"name": name, "type": "bool", "value": value}
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 64:
            raise ArgumentError(f"argument `{name}`: {value} does not fit into 64 bits")
        return {"name": name, "type": "int", "value": value}
    if isinstance(value, float):
        # JSON has no infinities; the server reads these texts.
        shown = value if math.isfinite(value) else "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
        return {"name": name, "type": "float", "value": shown}
    if isinstance(value, str):
        return {"name": name, "type": "str", "value": value}
    raise ArgumentError(
        f"argument `{name}`: a {type(value).__name__} is no argument of a kernel; give an array of NumPy or "
        "PyTorch, int, float, bool, str, None, a dict of a structure's fields, a list of names for an array of "
        "pointers, `warpgauge.Tensor`, `warpgauge.Texture`, `warpgauge.Surface`, or `warpgauge.Shared`"
    )


def _field(name: str, value: object) -> object:
    """Returns a field of a structure: a number, the name of an argument, None, a list, or the fields of a nested
    structure."""
    if isinstance(value, Mapping):
        return {key: _field(name, one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_field(name, one) for one in value]
    if type(value).__module__.partition(".")[0] == "numpy" and hasattr(value, "item"):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ArgumentError(
        f"argument `{name}`: a {type(value).__name__} is no field of a structure; give a number, None, a list, a "
        "dict, or the name of an argument that is a tensor"
    )


def _pointer(name: str, value: object) -> object:
    """Returns an entry of an array of pointers: the name of an argument that is a tensor, None, or a dict."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return {key: _field(name, one) for key, one in value.items()}
    raise ArgumentError(
        f"argument `{name}`: a list is an array of pointers to other arguments; give their names, None, or dicts of "
        f"`tensor`, `step` and `count`, not a {type(value).__name__}"
    )


def launch_of(launch: Mapping[str, object]) -> Launch:
    """Returns a launch whose dimensions may be numbers, expressions, tuples or dicts."""
    dimensions = ("grid", "block", "cluster")
    return cast(
        Launch,
        {name: _dim3(name, value) if name in dimensions else value for name, value in launch.items()},
    )


def steps_of(steps: Sequence[Mapping[str, object]]) -> list[LaunchStep]:
    """Returns the steps of several launches, with dimensions as for one launch."""
    made = []
    for step in steps:
        whole = dict(launch_of(step))
        if isinstance(inner := whole.get("steps"), Sequence):
            whole["steps"] = steps_of(inner)
        made.append(cast(LaunchStep, whole))
    return made


def _dim3(name: str, value: object) -> Dim3:
    if isinstance(value, Mapping):
        return cast(Dim3, dict(value))
    if isinstance(value, (int, str)):
        return {"x": value}
    if isinstance(value, Sequence) and 1 <= len(value) <= 3:
        return cast(Dim3, dict(zip("xyz", value, strict=False)))
    raise ArgumentError(
        f"launch: `{name}` is {value!r}; give a number, an expression such as 'ceil_div(n, 256)', or up to three"
    )


def _expected(expected: Mapping[str, object] | None, reference: object, written: list[str]) -> dict[str, Expected]:
    checks: dict[str, Expected] = {}
    if reference is not None:
        code, _ = code_of(reference)
        checks = {name: {"kernel": code} for name in written}
    for name, value in (expected or {}).items():
        if library(value) is not None:
            checks[name] = {"data": data_of(value, f"expected `{name}`")}
        elif isinstance(value, Shared):
            checks[name] = {"data": {"tensor_id": value.tensor_id}}
        elif isinstance(value, Mapping) and ("data" in value or "kernel" in value):
            checks[name] = cast(Expected, dict(value))
        else:
            checks[name] = {"kernel": code_of(value)[0]}
    return checks


def load(contract: object) -> dict[str, Any]:
    """Returns a contract as a dict. For a file, the sources that it names are read."""
    if isinstance(contract, Mapping):
        return dict(contract)
    path = Path(os.fspath(cast(Any, contract)))
    try:
        if path.stat().st_size > _MAX_CONTRACT:
            raise ArgumentError(f"{path} has more than {_MAX_CONTRACT >> 20} MiB")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"cannot read the contract {path}: {error}") from error
    try:
        if path.suffix == ".json":
            read = json.loads(text)
        else:
            from .yaml_core import parse

            read = parse(text)
    except ValueError as error:
        raise ArgumentError(f"{path}: {error}") from None
    if not isinstance(read, dict):
        raise ArgumentError(f"{path}: a contract is a mapping, with `kernel` in it")
    _inline(read, path)
    return read


def _inline(contract: dict[str, Any], path: Path) -> None:
    """Puts the content of `source_file` into the kernels that have one."""
    kernels = [contract.get(name) for name in ("kernel", "ref_kernel", "custom_kernel")]
    expected = contract.get("expected")
    if isinstance(expected, dict):
        kernels += [check.get("kernel") for check in expected.values() if isinstance(check, dict)]
    candidates = contract.get("candidates")
    if isinstance(candidates, list):
        kernels += [one.get("kernel") for one in candidates if isinstance(one, dict)]
    for kernel in kernels:
        if not isinstance(kernel, dict):
            continue
        name = kernel.pop("source_file", None)
        if name is None:
            continue
        if not isinstance(name, str) or Path(name).is_absolute():
            raise ArgumentError(f"{path}: source_file: {name!r} is no path relative to the contract file")
        if "source_code" in kernel or "binary_b64" in kernel:
            raise ArgumentError(f"{path}: source_file beside the code itself; give one of them")
        read = _read(path.parent / name, kernel.get("kernel_type"))
        kernel.update({key: value for key, value in read.items() if key != "kernel_type"})


def _read(path: Path, kind: object) -> KernelCode:
    from .kernels import Kernel

    return code_of(Kernel(path, type=cast(Any, kind)))[0]
