"""Source of a `@triton.jit` function, with what it needs of its module.

Triton is never imported: functions are recognised by their form. Constants are written with their present values.
Modules, imported names and other kernels are written in the way in which they are reached, and anything else by the
statement of its module.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import sys
import textwrap
from collections.abc import Callable, Mapping
from types import FunctionType, ModuleType
from typing import Any

from .errors import ArgumentError

# Maximum number of functions and statements that one kernel may need.
_MAX_PIECES = 1000


def is_jit(value: object) -> bool:
    """Returns whether this is a function of Triton, autotuned or not."""
    return _function(value) is not None and not isinstance(value, FunctionType)


def _function(value: object) -> FunctionType | None:
    """Returns the plain function inside Triton's decorators."""
    for _ in range(16):
        if isinstance(value, FunctionType):
            return value
        if isinstance(value, type) or not type(value).__module__.startswith("triton."):
            return None
        value = getattr(value, "fn", None)
    return None


def _plain(value: object) -> FunctionType:
    function = _function(value)
    if function is None:
        raise ArgumentError(f"{value!r} is no `@triton.jit` function")
    return function


def parameters_of(kernel: object) -> tuple[tuple[str, ...], frozenset[str], str]:
    """Returns the names of the parameters, those that are `tl.constexpr`, and the function's name."""
    function = _plain(kernel)
    definition = _definition(function)
    arguments = definition.args
    everything = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    constants = {a.arg for a in everything if a.annotation and "constexpr" in ast.unparse(a.annotation)}
    return tuple(a.arg for a in everything), frozenset(constants), function.__name__


def source_of(kernel: object) -> str:
    """Returns a module that defines the kernel and all that it uses."""
    return _Collector().module(_plain(kernel))


def _text(function: FunctionType) -> str:
    try:
        return textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError) as error:
        raise ArgumentError(
            f"the source of `{function.__name__}` cannot be read ({error}); define it in a file or a notebook's "
            "cell, or give its source as text"
        ) from None


def _definition(function: FunctionType) -> ast.FunctionDef:
    tree = ast.parse(_text(function)).body[0]
    if not isinstance(tree, ast.FunctionDef):
        raise ArgumentError(f"`{function.__name__}` is not defined by `def`")
    return tree


def _names(tree: ast.AST) -> list[str]:
    """Returns the names that a piece of source reads, in order."""
    found: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found[node.id] = None
    return list(found)


class _Collector:
    """Pieces of the module, each after those that it needs."""

    def __init__(self) -> None:
        self.imports: dict[str, None] = {}
        self.pieces: list[str] = []
        # Object of each name: two modules may bind different objects to a name.
        self.bound: dict[str, object] = {}

    def module(self, function: FunctionType) -> str:
        self.bound[function.__name__] = function
        self.add_function(function)
        return "\n".join([*self.imports, "", *self.pieces])

    def add_function(self, function: FunctionType) -> None:
        definition = _definition(function)
        closure = inspect.getclosurevars(function).nonlocals
        local = _local_names(definition)
        for name in _names(definition):
            if name not in local or name in _outside(definition):
                self.need(name, function, closure)
        self.piece(ast.unparse(definition))

    def need(self, name: str, user: FunctionType, closure: Mapping[str, Any]) -> None:
        if name in closure:
            value = closure[name]
        elif name in user.__globals__:
            value = user.__globals__[name]
        else:
            # The name is local or a builtin, or the server's compiler reports the error better.
            return
        if getattr(builtins, name, None) is value:
            return
        function = _function(value)
        meant = function or value
        if name in self.bound:
            if self.bound[name] is not meant and not _same_constant(self.bound[name], meant):
                raise ArgumentError(
                    f"`{name}` means two things in the modules that `{user.__name__}` needs; rename one"
                )
            return
        self.bound[name] = meant
        self.define(name, value, function, user)

    def define(self, name: str, value: object, function: FunctionType | None, user: FunctionType) -> None:
        home = getattr(value, "__module__", None)
        in_triton = isinstance(home, str) and home.partition(".")[0] == "triton"
        if isinstance(value, ModuleType):
            self.imports[f"import {value.__name__} as {name}"] = None
        elif function is not None and function.__module__.partition(".")[0] != "triton":
            self.add_function(function)
            if function.__name__ != name:
                self.piece(f"{name} = {function.__name__}")
        elif (constant := _constant(value)) is not None:
            if constant.startswith("triton."):
                self.imports["import triton.language"] = None
            self.piece(f"{name} = {constant}")
        elif in_triton and (own := _importable(value, str(home))):
            self.imports[f"from {home} import {own} as {name}"] = None
        else:
            self.by_statement(name, user)

    def by_statement(self, name: str, user: FunctionType) -> None:
        """Adds the statement of the module that binds the name."""
        module = sys.modules.get(user.__module__)
        try:
            tree = ast.parse(inspect.getsource(module)) if module else None
        except (OSError, TypeError, SyntaxError):
            tree = None
        for statement in reversed(tree.body if tree else []):
            if name in _binds(statement):
                for other in _names(statement):
                    if other != name:
                        self.need(other, user, {})
                self.piece(ast.unparse(statement))
                return
        raise ArgumentError(
            f"`{user.__name__}` uses `{name}`, a {type(user.__globals__.get(name)).__name__} that cannot be sent; "
            "use numbers, texts, `tl.constexpr`, other `@triton.jit` functions, or names at the module's top level"
        )

    def piece(self, text: str) -> None:
        if len(self.pieces) >= _MAX_PIECES:
            raise ArgumentError(f"the kernel needs more than {_MAX_PIECES} functions and names of its module")
        if text not in self.pieces:
            self.pieces.append(text)


def _outside(definition: ast.FunctionDef) -> set[str]:
    """Returns the names in decorators, defaults and annotations, which are looked up outside the function."""
    arguments = definition.args
    everything = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    trees: list[ast.AST | None] = [
        *definition.decorator_list,
        *arguments.defaults,
        *arguments.kw_defaults,
    ]
    trees += [argument.annotation for argument in everything]
    trees.append(definition.returns)
    return {name for tree in trees if tree is not None for name in _names(tree)}


def _local_names(definition: ast.FunctionDef) -> set[str]:
    arguments = definition.args
    names = {a.arg for a in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]}
    for node in ast.walk(definition):
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            names.add(node.id)
    return names


def _binds(statement: ast.stmt) -> set[str]:
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return {statement.name}
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return set()


def _constant(value: object) -> str | None:
    """Returns the source of a plain value."""
    if value is None or type(value) in (bool, int, str):
        return repr(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f"float({str(value)!r})"
    if type(value) in (tuple, list):
        parts = [_constant(part) for part in value]  # type: ignore[attr-defined]
        if None in parts:
            return None
        inner = ", ".join(str(part) for part in parts)
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(parts) == 1 else ''})"
    kind = type(value)
    if kind.__module__.startswith("triton.") and kind.__name__ == "constexpr":
        inner_constant = _constant(value.value)  # type: ignore[attr-defined]
        return inner_constant and f"triton.language.constexpr({inner_constant})"
    if kind.__module__.startswith("triton.") and kind.__name__ == "dtype":
        return f"triton.language.dtype({value.name!r})"  # type: ignore[attr-defined]
    return None


def _importable(value: object, home: str) -> str | None:
    """Returns the name under which the value's module has it."""
    own = getattr(value, "__name__", None)
    module = sys.modules.get(home)
    return own if isinstance(own, str) and getattr(module, own, None) is value else None


def _same_constant(one: object, other: object) -> bool:
    first: Callable[[object], str | None] = _constant
    return first(one) is not None and first(one) == first(other)
