"""Finds a loop in a function whose iterations can run anywhere, and splits the function.

The result is two functions. One runs some of the iterations and records their effects outside the loop; the other
continues after the loop. If an iteration may depend on another, there is a reason in place of a split.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .comprehensions import unrolled
from .effects import LOOP, Noted, effects_in
from .flow import Flow, bound, reads, within
from .hazards import CHANGE, by_text, root_of, seeded, shared_and_changed


class NotSplit(Exception):
    """The loop is not split; the message has the reason."""


@dataclass
class Split:
    """A function in two parts."""

    # Name of the loop in messages.
    loop: str
    # Number of iterations, if the source shows it.
    count: int | None
    part: ast.FunctionDef
    finish: ast.FunctionDef
    # The value of the function and the initial values of its names, if nothing but `return` follows the loop.
    returned: ast.expr | None
    begins: dict[str, object]


def split(definition: ast.FunctionDef) -> Split:
    """Returns the split at the first loop with independent iterations. Raises `NotSplit` without one."""
    for node in within(definition.body):
        if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal)):
            raise NotSplit(f"line {node.lineno}: a function with `{type(node).__name__.lower()}` runs as a whole")
    if (call := by_text(definition)) is not None:
        raise NotSplit(f"line {call.lineno}: `{ast.unparse(call)[:60]}` may read or change any name")
    definition = copy.deepcopy(definition)
    definition.body = unrolled(definition.body, bound(definition) | {name.id for name in reads(definition)})
    reasons = []
    # Only a run shows whether a branch is taken, so loops outside branches are preferred.
    places = [*_loops(definition.body, []), *_loops(definition.body, [], branches=True)]
    for before, block, index, after in places:
        loop = block[index]
        assert isinstance(loop, ast.For)
        try:
            return _Candidate(definition, before, block, index, after).split()
        except NotSplit as reason:
            reasons.append(f"the loop `{_head(loop)}` of line {loop.lineno}: {reason}")
    if not reasons:
        raise NotSplit("it has no `for` loop, and no comprehension that is all of a `return` or an assignment")
    raise NotSplit("; ".join(reasons))


def _head(loop: ast.For) -> str:
    return f"for {ast.unparse(loop.target).strip('()')} in {ast.unparse(loop.iter)}"[:100]


_Place = tuple[list[ast.stmt], list[ast.stmt], int, list[ast.stmt]]


def _loops(
    body: list[ast.stmt], before: list[ast.stmt], after: tuple[ast.stmt, ...] = (), branches: bool = False
) -> Iterator[_Place]:
    """Yields outermost loops: the statements before each, its block and position, and the statements after it.
    `branches` selects loops below an `if`, otherwise loops outside."""
    for index, statement in enumerate(body):
        earlier, later = [*before, *body[:index]], (*body[index + 1 :], *after)
        if isinstance(statement, ast.For):
            if not branches:
                yield earlier, body, index, list(later)
        elif isinstance(statement, ast.With):
            context = [ast.Expr(item.context_expr) for item in statement.items]
            for expression in context:
                ast.copy_location(expression, statement)
            names: list[ast.stmt] = [
                ast.copy_location(ast.Assign([item.optional_vars], ast.Constant(None)), statement)
                for item in statement.items
                if item.optional_vars is not None
            ]
            yield from _loops(statement.body, [*earlier, *context, *names], later, branches)
        elif isinstance(statement, ast.If) and branches:
            test = ast.copy_location(ast.Expr(statement.test), statement)
            for branch in (statement.body, statement.orelse):
                yield from _loops(branch, [*earlier, test], later)
                yield from _loops(branch, [*earlier, test], later, branches)


class _Candidate:
    """A loop that may be split."""

    def __init__(
        self,
        definition: ast.FunctionDef,
        before: list[ast.stmt],
        block: list[ast.stmt],
        index: int,
        after: list[ast.stmt],
    ) -> None:
        self._definition, self._before, self._block, self._index, self._after = definition, before, block, index, after
        loop = block[index]
        assert isinstance(loop, ast.For)
        self._loop = loop
        self._arguments = {argument.arg for argument in ast.walk(definition.args) if isinstance(argument, ast.arg)}
        early = Flow(set())
        self._there = (early.follow(before, set(self._arguments)) or set()) | self._arguments
        self._results: set[str] = set()
        self._own: set[str] = set()

    def split(self) -> Split:
        self._check_control()
        if (call := seeded(self._before)) is not None:
            raise NotSplit(
                f"line {call.lineno} seeds random numbers that its iterations draw one after the other: seed them in "
                "each iteration, or leave that to `seed=`"
            )
        self._find_results()
        self._check_carried()
        foreign = self._check_changes()
        self._check_after(foreign)
        returned, begins = self._returned()
        return Split(_head(self._loop), self._count(), self._part(), self._finish(), returned, begins)

    def _check_control(self) -> None:
        if self._loop.orelse:
            raise NotSplit("it has an `else`")
        for node in _of_this_loop(self._loop.body):
            if isinstance(node, ast.Break):
                raise NotSplit(f"line {node.lineno} ends it early (`break`), so that its iterations have an order")
        for node in within(self._loop.body):
            if isinstance(node, ast.Return):
                raise NotSplit(f"line {node.lineno} returns from within it")
            if isinstance(node, ast.Delete):
                raise NotSplit(f"line {node.lineno} deletes something")

    def _find_results(self) -> None:
        """Finds the names to which iterations add, and which they use in no other way."""
        effects = effects_in(self._loop.body)
        counts: dict[str, int] = {}
        for node in within(self._loop.body, functions=True):
            if isinstance(node, ast.Name):
                counts[node.id] = counts.get(node.id, 0) + 1
        # Names in the head of the loop, and names that each iteration assigns, are excluded.
        in_head = {name.id for part in (self._loop.iter, self._loop.target) for name in ast.walk(part)
                   if isinstance(name, ast.Name)}  # fmt: skip
        made = {name for name, often in effects.items() if counts[name] != often}
        self._results = set(effects) - made - in_head
        self._read = (made | in_head) & set(effects) & self._there - bound([self._loop.target, *self._loop.body])
        for name in sorted(self._results):
            if name in self._arguments:
                raise NotSplit(f"it changes the argument `{name}`, which the caller would not see")
            if name not in self._there:
                raise NotSplit(f"`{name}`, which it adds to, is not made in the function before it in any case")
        self._own = bound([self._loop.target, *self._loop.body]) - self._results
        if self._read and not self._results:
            raise NotSplit(f"its iterations read `{min(self._read)}`, which others change")
        if not self._results:
            raise NotSplit("it leaves nothing behind: no list that it appends to, no items, no sums")

    def _check_carried(self) -> None:
        flow = Flow(self._own)
        flow.follow(self._loop.body, bound(self._loop.target))
        if flow.early:
            first = min(flow.early, key=lambda name: name.lineno)
            used = first.id
            raise NotSplit(
                f"line {first.lineno} reads `{used}` before the iteration assigned it: it is carried over from one "
                "iteration to the next"
            )

    def _check_changes(self) -> set[str]:
        """Rejects changes of objects that other iterations see. Returns names of such objects."""
        ranged = isinstance(self._loop.iter, ast.Call) and ast.unparse(self._loop.iter.func) in ("range", "enumerate")
        foreign = set() if ranged else bound(self._loop.target)
        for node in within(self._loop.body):
            if isinstance(node, ast.Assign) and all(isinstance(target, ast.Name) for target in node.targets):
                if isinstance(node.value, (ast.Name, ast.Attribute, ast.Subscript)):
                    root = root_of(node.value)
                    if root is not None and (root not in self._own or root in foreign):
                        foreign |= {target.id for target in node.targets if isinstance(target, ast.Name)}
            elif isinstance(node, ast.For) and not isinstance(node.iter, ast.Call):
                root = root_of(node.iter)
                if root is not None and (root not in self._own or root in foreign):
                    foreign |= bound(node.target)

        def outside(expression: ast.expr) -> str | None:
            root = root_of(expression)
            return root if root is not None and (root not in self._own or root in foreign) else None

        for node in within(self._loop.body):
            changed: str | None = None
            if isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, ast.Store):
                changed = outside(node)
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id in foreign:
                changed = node.target.id
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                name = node.func.attr
                in_place = name.endswith("_") and not name.endswith("__")
                if name == "backward" or (name in CHANGE or in_place):
                    changed = outside(node.func.value) if name != "backward" else ast.unparse(node.func.value)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "next":
                changed = outside(node.args[0]) if node.args else None
            if changed is not None and changed not in self._results:
                line, shown = getattr(node, "lineno", "?"), ast.unparse(node)[:60]
                raise NotSplit(f"line {line} changes `{changed}`, which other iterations see (`{shown}`)")
        return foreign

    def _check_after(self, foreign: set[str]) -> None:
        flow = Flow(self._own)
        flow.follow(self._after, set())
        if flow.early:
            first = flow.early[0]
            raise NotSplit(f"line {first.lineno} uses `{first.id}` after it, as the last iteration left it")
        changing = shared_and_changed(self._loop, self._after, self._results, foreign, self._own)
        if changing is not None:
            line, shown = getattr(changing, "lineno", "?"), ast.unparse(changing)[:60]
            raise NotSplit(f"line {line} changes what several of its results may be (`{shown}`)")

    def _count(self) -> int | None:
        call = self._loop.iter
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range":
            try:
                bounds = [ast.literal_eval(argument) for argument in call.args]
                return len(range(*bounds))
            except (ValueError, TypeError):
                return None
        return None

    def _returned(self) -> tuple[ast.expr | None, dict[str, object]]:
        """Returns the function's value, if it consists only of what the loop adds to and of simple initial values."""
        if len(self._after) != 1 or not isinstance(self._after[0], ast.Return) or self._after[0].value is None:
            return None, {}
        value = self._after[0].value
        names = {name.id for name in reads(value)}
        plain = (ast.Name, ast.Tuple, ast.List, ast.Dict, ast.Constant, ast.Load)
        if not names <= self._results or not all(isinstance(node, plain) for node in ast.walk(value)):
            return None, {}
        begins: dict[str, object] = {}
        for name in self._results:
            assigned = [node for node in within(self._before) if isinstance(node, ast.Name) and node.id == name]
            made = [
                node.value
                for node in self._before
                if isinstance(node, (ast.Assign, ast.AnnAssign)) and _names(node) == [name] and node.value is not None
            ]
            if len(assigned) != 1 or len(made) != 1:
                return None, {}
            try:
                begins[name] = ast.literal_eval(made[0])
            except ValueError:
                if ast.unparse(made[0]) not in ("list()", "dict()"):
                    return None, {}
                begins[name] = [] if ast.unparse(made[0]) == "list()" else {}
        return value, begins

    def _part(self) -> ast.FunctionDef:
        watched = sorted((self._there & {name.id for name in reads_of(self._loop)}) - self._results - self._own)
        loop = ast.Name(LOOP, ast.Load())
        given = [self._loop.iter, _by_name(watched), _by_name(sorted(self._results))]
        items = ast.Call(ast.Attribute(loop, "items", ast.Load()), given, [])
        body: list[Any] = [Noted(self._results).visit(copy.deepcopy(statement)) for statement in self._loop.body]
        noted = ast.With([ast.withitem(loop, None)], body)
        made = [ast.For(self._loop.target, items, [noted], []), ast.Return(None)]
        return self._with(made)

    def _finish(self) -> ast.FunctionDef:
        names = sorted(self._results)
        call = ast.Call(ast.Attribute(ast.Name(LOOP, ast.Load()), "joined", ast.Load()), [_by_name(names)], [])
        target = ast.Tuple([ast.Name(name, ast.Store()) for name in names], ast.Store())
        return self._with([ast.Assign([target], call)])

    def _with(self, statements: list[ast.stmt]) -> ast.FunctionDef:
        """Returns the function with these statements in place of the loop."""
        for statement in statements:
            ast.copy_location(statement, self._loop)
            ast.fix_missing_locations(statement)
        self._block[self._index : self._index + 1] = statements
        made = copy.deepcopy(self._definition)
        self._block[self._index : self._index + len(statements)] = [self._loop]
        return made


def reads_of(statement: ast.stmt) -> Iterator[ast.Name]:
    """Yields the names that a statement reads."""
    for node in within(statement, functions=True):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node


def _by_name(names: list[str]) -> ast.Dict:
    """Returns a dictionary of the values of these names."""
    return ast.Dict([ast.Constant(name) for name in names], [ast.Name(name, ast.Load()) for name in names])


def _names(node: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _of_this_loop(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Yields the nodes of a loop's body, without those of nested loops and functions."""
    for statement in body:
        if isinstance(statement, (ast.For, ast.While, ast.AsyncFor)):
            yield from _of_this_loop(statement.orelse)
            continue
        yield statement
        for name in ("body", "orelse", "finalbody"):
            inner = getattr(statement, name, None)
            if isinstance(inner, list) and not isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                yield from _of_this_loop(inner)
        for handler in getattr(statement, "handlers", []):
            yield from _of_this_loop(handler.body)
        for case in getattr(statement, "cases", []):
            yield from _of_this_loop(case.body)
