"""What the statements of a loop read and assign, and in which order: whether an iteration depends on another."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def within(node: ast.AST | Iterable[ast.AST], *, functions: bool = False) -> Iterator[ast.AST]:
    """Yields the nodes of a tree, without those of nested functions and classes."""
    todo = [node] if isinstance(node, ast.AST) else list(node)
    while todo:
        one = todo.pop()
        yield one
        if functions or not isinstance(one, _SCOPES):
            todo.extend(ast.iter_child_nodes(one))


def bound(node: ast.AST | Iterable[ast.AST]) -> set[str]:
    """Returns the names that statements bind in their function."""
    found: set[str] = set()
    hidden: set[int] = set()
    for one in within(node):
        if isinstance(one, _COMPREHENSIONS):
            hidden |= {id(name) for part in one.generators for name in ast.walk(part.target)}
    for one in within(node):
        if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load) and id(one) not in hidden:
            found.add(one.id)
        elif isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(one.name)
        elif isinstance(one, ast.alias):
            found.add((one.asname or one.name).partition(".")[0])
        elif isinstance(one, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and one.name:
            found.add(one.name)
        elif isinstance(one, ast.MatchMapping) and one.rest:
            found.add(one.rest)
    return found


def reads(node: ast.AST | None) -> Iterator[ast.Name]:
    """Yields the names that an expression reads from outside, in any order. A function counts as reading its names at
    once."""
    if node is None:
        return
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Load):
            yield node
        return
    own: set[str] = set()
    if isinstance(node, _COMPREHENSIONS):
        own = {name.id for part in node.generators for name in ast.walk(part.target) if isinstance(name, ast.Name)}
    elif isinstance(node, (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef)):
        own = {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
        own |= bound(node.body) if isinstance(node.body, list) else set()
    for child in ast.iter_child_nodes(node):
        yield from (name for name in reads(child) if name.id not in own)


class Flow:
    """Follows statements, and finds reads of names that may not have been assigned before."""

    def __init__(self, names: set[str]) -> None:
        self._names = names
        self.early: list[ast.Name] = []

    def follow(self, statements: Iterable[ast.stmt], assigned: set[str]) -> set[str] | None:
        """Returns the names that are certainly assigned after the statements, or `None` if nothing follows them."""
        now: set[str] | None = set(assigned)
        for statement in statements:
            if now is None:
                return None
            now = self._statement(statement, now)
        return now

    def _look(self, assigned: set[str], *nodes: ast.AST | None) -> None:
        for node in nodes:
            for name in reads(node):
                if name.id in self._names and name.id not in assigned:
                    self.early.append(name)

    def _statement(self, node: ast.stmt, now: set[str]) -> set[str] | None:
        if isinstance(node, (ast.Continue, ast.Break)):
            return None
        if isinstance(node, (ast.Return, ast.Raise)):
            self._look(now, node)
            return None
        if isinstance(node, ast.AugAssign):
            if isinstance(node.target, ast.Name):
                self._look(now, ast.Name(node.target.id, ast.Load(), lineno=node.lineno, col_offset=0))
            self._look(now, node.target, node.value)
            return now | bound(node.value)
        if isinstance(node, ast.If):
            self._look(now, node.test)
            now = now | bound(node.test)
            return _both(self.follow(node.body, now), self.follow(node.orelse, now))
        if isinstance(node, (ast.For, ast.AsyncFor)):
            self._look(now, node.iter, node.target)
            self.follow(node.body, now | bound(node.target))
            after = self.follow(node.orelse, now)
            return now if after is None else after
        if isinstance(node, ast.While):
            self._look(now, node.test)
            self.follow(node.body, now | bound(node.test))
            self.follow(node.orelse, now)
            return now
        if isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                self._look(now, item.context_expr, item.optional_vars)
                now = now | bound(item)
            return self.follow(node.body, now)
        if isinstance(node, ast.Try) or type(node).__name__ == "TryStar":
            return self._try(node, now)  # type: ignore[arg-type]
        if isinstance(node, ast.Match):
            self._look(now, node.subject)
            ends: list[set[str] | None] = [now]
            for case in node.cases:
                inside = now | bound(case.pattern)
                self._look(inside, case.guard)
                ends.append(self.follow(case.body, inside))
            return _all(ends)
        self._look(now, node)
        return now | bound(node)

    def _try(self, node: ast.Try, now: set[str]) -> set[str] | None:
        body = self.follow(node.body, now)
        ends = [body if body is None else self.follow(node.orelse, body)]
        for handler in node.handlers:
            self._look(now, handler.type)
            ends.append(self.follow(handler.body, now | ({handler.name} if handler.name else set())))
        end = _all(ends)
        last = self.follow(node.finalbody, now)
        return None if end is None or last is None else end | last


def _both(one: set[str] | None, other: set[str] | None) -> set[str] | None:
    return _all([one, other])


def _all(ends: list[set[str] | None]) -> set[str] | None:
    reached = [end for end in ends if end is not None]
    return set.intersection(*reached) if reached else None
