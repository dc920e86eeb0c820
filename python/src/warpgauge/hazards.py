"""Hazards of a function whose loop is split although no iteration reads what another assigned: seeds from which all
iterations draw, names that are looked up by text, and objects that several results share."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from .effects import operands_in
from .flow import bound, reads, within

# Functions that set the state of a generator of random numbers.
_SEEDS = {
    "seed",
    "manual_seed",
    "manual_seed_all",
    "seed_all",
    "seed_everything",
    "set_rng_state",
    "set_state",
    "setstate",
}

# Functions that read or change names that the source does not show.
_BY_TEXT = {"eval", "exec", "globals", "locals"}

# Methods that change their object.
CHANGE = {
    "__next__", "add", "append", "appendleft", "backward", "clear", "discard", "extend", "extendleft", "fill", "insert",
    "intersection_update", "pop", "popitem", "popleft", "push", "put", "put_nowait", "remove", "resize", "reverse",
    "rotate", "send", "setdefault", "sort", "step", "subtract", "symmetric_difference_update", "update",
    "write", "writelines", "zero_grad",
}  # fmt: skip


def seeded(before: Iterable[ast.stmt]) -> ast.Call | None:
    """Returns a call that seeds random numbers before the loop, whose iterations then draw them in sequence."""
    for node in within(before):
        if isinstance(node, ast.Call) and _called(node) in _SEEDS:
            return node
    return None


def by_text(function: ast.FunctionDef) -> ast.Call | None:
    """Returns a call that may read or change any name."""
    for node in within(function.body, functions=True):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _BY_TEXT:
            return node
    return None


def _called(call: ast.Call) -> str | None:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else None


def root_of(node: ast.expr) -> str | None:
    """Returns the name whose object an expression is a part or a view of."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def shared_and_changed(
    loop: ast.For, after: Iterable[ast.stmt], results: set[str], foreign: set[str], own: set[str]
) -> ast.AST | None:
    """Returns what changes, after the loop, an object that iterations kept without creating it, or kept twice: each
    place would hold a copy. `foreign` are names of iterations whose objects are not theirs."""
    kept = [name for operand in operands_in(loop.body, results) for name in _whole(operand)]
    shared = {name for name in kept if name not in own or name in foreign or kept.count(name) > 1}
    if not shared:
        return None
    if shared & foreign:
        shared |= {name.id for name in reads(loop.iter)}
    after = list(after)
    # Names of parts of results, or of what they hold.
    parts: set[str] = set()
    for _ in range(len(after) + 1):
        more = {name for statement in after for name in _made_of(statement, results | shared | parts)}
        if more <= parts:
            break
        parts |= more
    for node, changed in _changes(after):
        root = root_of(changed)
        if root in shared or root in parts or (root in results and not isinstance(changed, ast.Name)):
            return node
    return None


def _whole(operand: ast.expr) -> Iterator[str]:
    """Yields the names whose objects an operand keeps unchanged."""
    if isinstance(operand, (ast.Tuple, ast.List)):
        for item in operand.elts:
            yield from _whole(item)
    elif isinstance(operand, (ast.Name, ast.Attribute, ast.Subscript, ast.Starred)):
        root = root_of(operand)
        if root is not None:
            yield root


def _made_of(statement: ast.stmt, names: set[str]) -> set[str]:
    found: set[str] = set()
    for node in within(statement):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
            value: ast.expr | None = node.value
        elif isinstance(node, ast.For):
            value = node.iter
        else:
            continue
        if value is not None and any(name.id in names for name in reads(value)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= bound(targets)
    return found


def _changes(statements: Iterable[ast.stmt]) -> Iterator[tuple[ast.AST, ast.expr]]:
    """Yields what is changed in place, with the node that does so. A change of an item or attribute changes its
    owner."""
    for node in within(statements, functions=True):
        if isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
            yield node, node.value
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            yield node, node.target
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            if name in CHANGE or (name.endswith("_") and not name.endswith("__")):
                yield node, node.func.value
