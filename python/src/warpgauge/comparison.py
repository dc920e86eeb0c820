"""The request of a comparison, from kernels and arguments or from a contract, as in `warpgauge compare`."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from .contract import Request, build, given, load
from .errors import ArgumentError
from .kernels import Kernel, code_of, is_contract
from .models import KernelCode

# Fields that have the same name in an evaluation and a comparison.
_SHARED = ("num_trials", "timeout", "allow_weak", "compare_as", "work", "measure", "profile", "isolation", "requires")
_WHOLE = ("ref_kernel", "ref_code")
_CANDIDATES = ("custom_kernel", "candidates", "custom_code")
_REFERENCE_NAME = "reference"
# Maximum length of a candidate's name in a request, bytes.
_MAX_NAME = 128
_PYTHON = ("triton", "torch")
# Maximum number of characters between `__global__` and the name of its kernel.
_MAX_HEAD = 2000


def compare_request(
    reference: object,
    candidates: object,
    args: Mapping[str, object] | Sequence[object] | None,
    **more: Any,
) -> Request:
    """Returns the body of a comparison. `Request.notes` names the fields of a contract that it leaves out."""
    if is_contract(reference):
        return _of_contract(reference, candidates, args, more)
    if candidates is None:
        raise ArgumentError("compare needs a kernel beside the reference, or several by name")
    request = build(reference, args, **_flat(more))
    body = {name: value for name, value in request.body.items() if name not in ("kernel", "return_outputs")}
    body["ref_kernel"] = request.body["kernel"]
    _add(body, reference, candidates, None)
    return Request(body, request.kinds)


def _of_contract(reference: object, candidates: object, args: object, more: Mapping[str, Any]) -> Request:
    """Returns a comparison whose reference is the kernel of a contract, or a contract that already is a comparison."""
    own = {name: more[name] for name in ("launch", "outputs", "constants") if more.get(name)}
    if extra := [*(["args"] if args else []), *own]:
        raise ArgumentError(f"a contract brings its own {', '.join(extra)}: put them there, or give a kernel")
    fields = load(reference)
    notes: tuple[str, ...] = ()
    if not any(name in fields for name in _WHOLE):
        fields, notes = _without_expectation(fields)
    shown = os.fspath(cast(Any, reference)) if isinstance(reference, (str, os.PathLike)) else "the contract"
    has_own = any(name in fields for name in _CANDIDATES)
    if has_own and candidates is not None:
        raise ArgumentError(f"{shown} has its own kernels to compare; leave out `candidates`")
    if not has_own:
        if candidates is None:
            raise ArgumentError(
                f"nothing to compare {shown} with; give a kernel (source, path or contract), a list, or a dict by name"
            )
        if not isinstance(fields.get("ref_kernel"), Mapping):
            raise ArgumentError(f"{shown}: `kernel` is no mapping")
        _add(fields, reference, candidates, cast(KernelCode, fields["ref_kernel"]))
    settings = {name: value for name, value in more.items() if name not in ("launch", "outputs", "constants")}
    return Request({**fields, **given(_flat(settings))}, {}, notes)


def _flat(more: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields of a comparison, which has the fields of `tolerance` directly."""
    fields = dict(more)
    tolerance = fields.pop("tolerance", None) or {}
    return {**{name: value for name, value in tolerance.items() if value is not None}, **fields}


def _without_expectation(contract: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Returns the fields of a comparison with a contract's kernel, and a note on those that it leaves out.

    The reference defines the expected outputs.
    """
    fields = {name: contract[name] for name in _SHARED if name in contract}
    fields["ref_kernel"] = contract.get("kernel")
    tolerance = contract.get("tolerance")
    if isinstance(tolerance, Mapping):
        fields = {**{name: value for name, value in tolerance.items() if value is not None}, **fields}
    asked = {name: value for name, value in contract.items() if _asks(value)}
    if "return_outputs" not in asked:
        asked.pop("output_encoding", None)
    left = [name for name in asked if name not in (*_SHARED, "kernel", "tolerance")]
    if not left:
        return fields, ()
    why = "; what the reference computes is what is expected" if "expected" in left else ""
    return fields, (f"a comparison does not use {', '.join(f'`{name}`' for name in left)} of the contract{why}",)


def _asks(value: object) -> bool:
    """Returns whether a field with this value asks for something."""
    if value is None or value is False:
        return False
    return len(value) > 0 if isinstance(value, (Mapping, list)) else True


def _add(body: dict[str, Any], reference: object, candidates: object, like: KernelCode | None) -> None:
    """Puts the candidates into a body without any. A candidate that is only code gets the launch of `like`."""
    one = not isinstance(candidates, (Mapping, list, tuple))
    if isinstance(candidates, Mapping):
        one = "kernel_type" in candidates or (is_contract(candidates) and isinstance(candidates.get("kernel"), Mapping))
    if one and not _is_file(candidates):
        body["custom_kernel"] = _candidate(candidates, like)
        return
    if isinstance(candidates, Mapping):
        named = [(str(name), kernel) for name, kernel in candidates.items()]
    else:
        many = [candidates] if one else list(cast(Sequence[object], candidates))
        named = list(zip(_names(reference, many), many, strict=True))
    if not named:
        raise ArgumentError("compare needs at least one candidate beside the reference")
    body["candidates"] = [{"name": name, "kernel": _candidate(kernel, like)} for name, kernel in named]


def _candidate(kernel: object, like: KernelCode | None) -> KernelCode:
    """Returns the kernel of one candidate."""
    if is_contract(kernel):
        code = load(kernel).get("kernel")
        if not isinstance(code, Mapping):
            raise ArgumentError(f"candidate {kernel!r}: a contract is a mapping, with `kernel` in it")
        return cast(KernelCode, dict(code))
    code, _ = code_of(kernel)
    return code if like is None or isinstance(kernel, Mapping) else _called_like(code, kernel, like)


def _called_like(code: KernelCode, kernel: object, like: KernelCode) -> KernelCode:
    """Returns code with the launch and options of the reference, except for what `Kernel` sets."""
    source, of_reference = code.get("source_code", ""), str(like.get("kernel_type"))
    own_type = kernel.type if isinstance(kernel, Kernel) else None
    is_torch = of_reference.startswith("torch") and ("triton.jit" not in source or "class Model" in source)
    if own_type is None and code["kernel_type"] == "triton" and is_torch:
        code["kernel_type"] = "torch"
    kind = code["kernel_type"]
    same = kind == of_reference if kind in _PYTHON else not of_reference.startswith(_PYTHON)
    # Names and options of C++ have no meaning in Python, and the reverse.
    metadata: dict[str, Any] = dict(like.get("metadata") or {}) if same else {}
    metadata.pop("description", None)
    own = dict(code.get("metadata") or {})
    named = metadata.get("kernel_name")
    if "kernel_name" in own:
        # Template instantiations of the reference are not kernels of this source.
        metadata.pop("name_expressions", None)
    elif named and (only := _only_kernel(kind, source)) and re.split(r"[<(]", named)[0] != only:
        metadata["kernel_name"] = only
    if metadata or own:
        code["metadata"] = cast(Any, {**metadata, **own})
    return code


def _only_kernel(kind: str, source: str) -> str | None:
    """Returns the name of the source's kernel, or `None` unless exactly one is found."""
    if kind == "cuda":
        plain = re.sub(r"//[^\n]*|/\*.*?\*/", " ", source, flags=re.DOTALL)
        heads = [plain[at.end() : at.end() + _MAX_HEAD] for at in re.finditer(r"\b__global__\b", plain)]
        names = [m[1] for head in heads if (m := re.search(r"\b(?!__launch_bounds__|__attribute__)(\w+)\s*\(", head))]
    elif kind == "triton":
        names = re.findall(
            r"^[ \t]*@(?:triton\.)?jit\b[^\n]*\n(?:[ \t]*[@#][^\n]*\n)*[ \t]*def (\w+)", source, re.MULTILINE
        )
    else:
        names = []
    found = set(names)
    return found.pop() if len(found) == 1 else None


def _is_file(kernel: object) -> bool:
    """Returns whether a kernel is given as the path of a file."""
    if isinstance(kernel, Kernel):
        kernel = kernel.code
    if isinstance(kernel, os.PathLike):
        return True
    return isinstance(kernel, str) and "\n" not in kernel and (is_contract(kernel) or _has_suffix(kernel))


def _has_suffix(text: str) -> bool:
    from .kernels import _as_path

    return _as_path(text) is not None


def _names(reference: object, kernels: Sequence[object]) -> list[str]:
    """Returns names of candidates: those of their files or, if two are equal, their paths."""

    def path(kernel: object) -> Path | None:
        code = kernel.code if isinstance(kernel, Kernel) else kernel
        return Path(os.fspath(cast(Any, code))) if _is_file(kernel) else None

    paths = [path(kernel) for kernel in kernels]
    files = [one for one in (path(reference), *paths) if one is not None]
    distinct = len({one.name for one in files}) == len(files)
    taken = {_REFERENCE_NAME}
    names = []
    for number, one in enumerate(paths, 1):
        shown = f"candidate {number}" if one is None else one.name if distinct else str(one)
        names.append(_free(shown, taken))
    return names


def _free(name: str, taken: set[str]) -> str:
    """Returns a valid name that is not taken, this name or this name with a number, and marks it as taken."""
    name = "".join("\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) in ("Cc", "Cf", "Cs") else c for c in name)
    number = 1
    while (found := _ended(name, "" if number == 1 else f" ({number})")) in taken:
        number += 1
    taken.add(found)
    return found


def _ended(name: str, ending: str) -> str:
    """Returns the end of the name with this ending, within the limit. The end of a path says most."""
    room = _MAX_NAME - len(ending)
    return name.encode()[-room:].decode("utf-8", "ignore") + ending
