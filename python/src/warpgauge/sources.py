"""Definitions of functions and classes in files, with their positions."""

from __future__ import annotations

import ast
import inspect
import os
import sys
import textwrap
from collections.abc import Mapping
from types import FunctionType
from typing import Any

from .values import NotData


class FoundSource:
    """The definition of a function or a class, with its position."""

    def __init__(self, text: str, file: str, first_line: int, definition: Any) -> None:
        self.text, self.file, self.first_line, self.definition = text, file, first_line, definition

    def describe(self, described: dict[str, Any], definition: Any) -> None:
        """Adds the definition, which may have been changed, and the lines of its parts in the user's file."""
        source = ast.unparse(ast.Module([definition], []))
        lines = [self.first_line] * (source.count("\n") + 1)
        # Both trees have the same nodes, in the same order.
        written, here = list(ast.walk(ast.parse(source).body[0])), list(ast.walk(definition))
        for new, old in zip(written, here, strict=False):
            if type(new) is type(old) and isinstance(new, (ast.stmt, ast.expr)) and hasattr(old, "lineno"):
                lines[new.lineno - 1] = self.first_line + old.lineno - 1
        described.update(source=source, lines=lines, shown=self.text, first_line=self.first_line, file=self.file)
        if [type(node) for node in written] == [type(node) for node in here]:
            # Older servers read only the lines, which cannot locate the parts of an expression of several lines.
            described["places"] = [self._place(node) for node in here]

    def _place(self, node: ast.AST) -> list[int] | None:
        """Returns first and last line, first and last column of a node, or `None` for a created node."""
        first, last = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
        begin, end = getattr(node, "col_offset", None), getattr(node, "end_col_offset", None)
        if first is None or last is None or begin is None or end is None:
            return None
        return [self.first_line + first - 1, self.first_line + last - 1, begin, end]


def source_of(thing: FunctionType | type) -> FoundSource:
    """Returns the source without annotations, defaults and the decorator `cluster`. Raises `NotData` without a
    source."""
    try:
        lines, first = inspect.getsourcelines(thing)
        text = "".join(lines)
    except (OSError, TypeError):
        raise NotData(f"{thing.__name__}, whose source is not there: define it in a file or a notebook") from None
    file = os.path.basename(inspect.getsourcefile(thing) or "?")
    if isinstance(thing, FunctionType) and thing.__name__ == "<lambda>":
        text = textwrap.dedent(text)
        return FoundSource(text, file, first, _lambda(thing, text))
    try:
        definition = _parsed(text)
    except (SyntaxError, IndexError):
        raise NotData(f"{thing.__name__}, whose source does not stand alone") from None
    if isinstance(definition, (ast.AsyncFunctionDef, ast.FunctionDef)) and inspect.isgeneratorfunction(thing):
        pass
    elif isinstance(definition, ast.AsyncFunctionDef):
        raise NotData(f"{thing.__name__}, which is `async`: functions on a server are plain ones")
    _strip(definition, thing)
    if isinstance(thing, FunctionType):
        _take_out_of_class(definition, thing)
    return FoundSource(text, file, max(first, 1), definition)


def _parsed(text: str) -> Any:
    """Returns the definition in a text that may be indented. Strings and comments in it may be further to the left."""
    if not text[:1].isspace():
        return ast.parse(text).body[0]
    block = ast.parse(f"if True:\n{text}").body[0]
    assert isinstance(block, ast.If)
    ast.increment_lineno(block, -1)
    return block.body[0]


def _take_out_of_class(definition: Any, function: FunctionType) -> None:
    """Rewrites a method so that it works outside its class: mangled names, and `super()` with its arguments."""
    *_, owner, _ = ["", *function.__qualname__.split(".")]
    if not owner or owner == "<locals>":
        return
    for node in ast.walk(definition):
        if isinstance(node, ast.Attribute):
            node.attr = _mangled(owner, node.attr)
        elif isinstance(node, ast.Name):
            node.id = _mangled(owner, node.id)
        elif isinstance(node, ast.arg):
            node.arg = _mangled(owner, node.arg)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super":
            first = next(iter([*definition.args.posonlyargs, *definition.args.args]), None)
            if not node.args and first is not None:
                # The class is in a closure under this name.
                node.args = [ast.copy_location(ast.Name(name, ast.Load()), node) for name in ("__class__", first.arg)]


def _mangled(owner: str, name: str) -> str:
    private = name.startswith("__") and not name.endswith("__")
    return f"_{owner.lstrip('_')}{name}" if private and owner.strip("_") else name


def _strip(definition: Any, thing: Any) -> None:
    for node in ast.walk(definition):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.returns = None
            for argument in ast.walk(node.args):
                if isinstance(argument, ast.arg):
                    argument.annotation = None
    if isinstance(definition, ast.ClassDef):
        # Methods run without their decorators, because the call is already at the server.
        visible = vars(sys.modules[thing.__module__]) if thing.__module__ in sys.modules else {}
        for method in definition.body:
            if isinstance(method, ast.FunctionDef):
                made_here = hasattr(vars(thing).get(method.name), "_warpgauge_function")
                _without_cluster(method, visible, made_here)
        return
    if not isinstance(definition, ast.FunctionDef):
        return
    # The values of defaults are sent separately.
    nothing = [ast.Constant(None, lineno=definition.lineno, col_offset=0) for _ in definition.args.defaults]
    definition.args.defaults = list(nothing)
    definition.args.kw_defaults = [
        default and ast.Constant(None, lineno=definition.lineno, col_offset=0)
        for default in definition.args.kw_defaults
    ]
    _without_cluster(definition, {**thing.__globals__, **closure_of(thing)}, False)


def _without_cluster(definition: ast.FunctionDef, visible: Mapping[str, Any], made_here: bool) -> None:
    """Leaves the decorators below `cluster`. `made_here` is whether one of them is `cluster`, even if its name is not
    visible."""
    kept = []
    for decorator in definition.decorator_list:
        kept.append(decorator)
        if _is_cluster(decorator, visible, made_here):
            # Decorators above `cluster` apply to its result, in this process.
            kept.clear()
    definition.decorator_list = kept


def _is_cluster(decorator: ast.expr, visible: Mapping[str, Any], made_here: bool) -> bool:
    call = decorator.func if isinstance(decorator, ast.Call) else decorator
    names = []
    while isinstance(call, ast.Attribute):
        names.append(call.attr)
        call = call.value
    if not isinstance(call, ast.Name):
        return False
    if made_here and call.id not in visible:
        return "cluster" in (call.id, *names)
    found = visible.get(call.id)
    for name in reversed(names):
        found = getattr(found, name, None)
    return getattr(found, "_is_warpgauge_cluster", False) is True


def _lambda(function: FunctionType, text: str) -> ast.FunctionDef:
    """Returns a lambda as a function, if its lines have no other lambda."""
    tree = None
    # The lines may begin or end in the middle of a statement.
    for candidate in (text, f"({text})", text.strip().rstrip(","), f"({text.strip().rstrip(',')}", f"_({text.strip()}"):
        try:
            tree = ast.parse(candidate)
            break
        except SyntaxError:
            continue
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)] if tree is not None else []
    same = [node for node in found if _names_in_code(node) == function.__code__.co_varnames[: _count(function)]]
    if len(found) != 1 or len(same) != 1:
        raise NotData("a lambda that is not the only one of its lines: define a function with `def`")
    made = ast.parse("def _lambda():\n    return None").body[0]
    assert isinstance(made, ast.FunctionDef) and isinstance(made.body[0], ast.Return)
    made.args, made.body[0].value = found[0].args, found[0].body
    for node in (made, made.body[0]):
        node.lineno = node.end_lineno = found[0].lineno
    made.args.defaults = [ast.Constant(None, lineno=made.lineno, col_offset=0) for _ in made.args.defaults]
    return made


def _names_in_code(node: ast.Lambda) -> tuple[str, ...]:
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return tuple(argument.arg for argument in every)


def _count(function: FunctionType) -> int:
    return function.__code__.co_argcount + function.__code__.co_kwonlyargcount


def closure_of(function: FunctionType) -> dict[str, Any]:
    """Returns the values of the enclosing variables that a function uses."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            # The variable has no value yet; the server reports that if it is used.
            continue
    return found
