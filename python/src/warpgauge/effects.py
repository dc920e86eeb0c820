"""Changes that iterations of a loop may make outside it although other processes run them: append to a list, set an
item, add to a sum, take a minimum. Each change is recorded, and repeated in order where all records arrive."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .flow import within

# Name of the object that replaces a loop, in the processes that run its parts and in the source that they run.
LOOP = "__warpgauge_loop"

_OPERATORS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}


def effect_of(statement: ast.stmt) -> tuple[str, ast.stmt] | None:
    """Returns the name that a statement changes, and the statement's replacement, if it is such a change."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        method = call.func
        if (
            isinstance(method, ast.Attribute)
            and isinstance(method.value, ast.Name)
            and method.attr in ("append", "extend")
            and len(call.args) == 1
            and not call.keywords
            and not isinstance(call.args[0], ast.Starred)
        ):
            return _noted(statement, method.value.id, method.attr, call.args[0])
    if isinstance(statement, ast.AugAssign) and type(statement.op) in _OPERATORS:
        operation = _OPERATORS[type(statement.op)]
        if isinstance(statement.target, ast.Name):
            return _noted(statement, statement.target.id, "change", ast.Constant(operation), statement.value)
        if isinstance(statement.target, ast.Subscript) and isinstance(statement.target.value, ast.Name):
            target = statement.target
            name = statement.target.value.id
            return _noted(statement, name, "change_item", ast.Constant(operation), statement.value, _key(target))
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target_ = statement.targets[0]
        if isinstance(target_, ast.Subscript) and isinstance(target_.value, ast.Name):
            return _noted(statement, target_.value.id, "item", statement.value, _key(target_))
        if isinstance(target_, ast.Name):
            return _extreme(statement, target_.id, statement.value)
    return None


def _extreme(statement: ast.stmt, name: str, value: ast.expr) -> tuple[str, ast.stmt] | None:
    """Recognises `best = max(best, x)`, with the arguments in either order."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name) or value.keywords:
        return None
    if value.func.id not in ("min", "max") or len(value.args) != 2:
        return None
    for own, other, operation in ((0, 1, value.func.id), (1, 0, f"{value.func.id}_first")):
        argument = value.args[own]
        if isinstance(argument, ast.Name) and argument.id == name:
            return _noted(statement, name, "change", ast.Constant(operation), value.args[other])
    return None


def _key(target: ast.Subscript) -> ast.expr:
    """Returns the key as a value. Slices are valid in brackets only, alone or in a tuple."""
    key = target.slice
    if isinstance(key, ast.Tuple):
        return ast.Tuple([_part(part) for part in key.elts], ast.Load())
    return _part(key)


def _part(key: ast.expr) -> ast.expr:
    if isinstance(key, ast.Slice):
        bounds = [part or ast.Constant(None) for part in (key.lower, key.upper, key.step)]
        return ast.Call(ast.Attribute(ast.Name(LOOP, ast.Load()), "slice", ast.Load()), bounds, [])
    return key


def _noted(statement: ast.stmt, name: str, method: str, *arguments: ast.expr) -> tuple[str, ast.stmt]:
    call = ast.Call(ast.Attribute(ast.Name(LOOP, ast.Load()), method, ast.Load()), [ast.Constant(name), *arguments], [])
    made = ast.fix_missing_locations(ast.copy_location(ast.Expr(call), statement))
    return name, made


def effects_in(body: list[ast.stmt]) -> dict[str, int]:
    """Returns the names that statements change in these ways, each with its number of occurrences in such
    statements."""
    found: dict[str, int] = {}
    for node in within(body):
        effect = effect_of(node) if isinstance(node, ast.stmt) else None
        if effect is not None:
            # `best = max(best, x)` has the name twice.
            twice = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
            found[effect[0]] = found.get(effect[0], 0) + (2 if twice else 1)
    return found


def operands_in(body: list[ast.stmt], names: set[str]) -> Iterator[ast.expr]:
    """Yields what such statements store in the objects of these names: elements and items, not summands."""
    for node in within(body):
        effect = effect_of(node) if isinstance(node, ast.stmt) else None
        if effect is None or effect[0] not in names:
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield node.value.args[0]
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            yield node.value


class Noted(ast.NodeTransformer):
    """Replaces statements that change these names by records of the changes."""

    def __init__(self, names: set[str]) -> None:
        self._names = names

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.stmt):
            effect = effect_of(node)
            if effect is not None and effect[0] in self._names:
                return effect[1]
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            return node
        return self.generic_visit(node)
