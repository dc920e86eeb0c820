"""Replaces comprehensions by equivalent loops."""

from __future__ import annotations

import ast

# Name of the variable that a comprehension's loop fills.
RESULT = "_result"


def unrolled(statements: list[ast.stmt], taken: set[str]) -> list[ast.stmt]:
    """Returns the statements, with a loop before each whose value is a comprehension or a call with one."""
    made: list[ast.stmt] = []
    for statement in statements:
        if isinstance(statement, (ast.With, ast.If)):
            statement.body = unrolled(statement.body, taken)
        if isinstance(statement, ast.If):
            statement.orelse = unrolled(statement.orelse, taken)
        value = getattr(statement, "value", None)
        if not isinstance(statement, (ast.Return, ast.Assign)) or value is None:
            made.append(statement)
            continue
        name = RESULT
        while name in taken:
            name += "_"
        loop, rest = _loop_of(value, name, taken)
        if loop:
            taken.add(name)
            for part in loop:
                ast.copy_location(part, statement)
                ast.fix_missing_locations(part)
            statement.value = ast.copy_location(rest, value)
            ast.fix_missing_locations(statement)
            made.extend(loop)
        made.append(statement)
    return made


def _loop_of(value: ast.expr, name: str, taken: set[str]) -> tuple[list[ast.stmt], ast.expr]:
    """Returns the loop of the comprehension that an expression evaluates first, and the rest of the expression."""
    result = ast.Name(name, ast.Load())
    if isinstance(value, (ast.ListComp, ast.DictComp)):
        return _statements(value, name, taken), result
    if isinstance(value, ast.BinOp):
        loop, rest = _loop_of(value.left, name, taken)
        return loop, ast.BinOp(rest, value.op, value.right)
    if not isinstance(value, ast.Call):
        return [], value
    if not _is_name(value.func):
        if not isinstance(value.func, ast.Attribute):
            return [], value
        loop, rest = _loop_of(value.func.value, name, taken)
        return loop, ast.Call(ast.Attribute(rest, value.func.attr, ast.Load()), value.args, value.keywords)
    if not value.args:
        return [], value
    first = value.args[0]
    called = value.func.id if isinstance(value.func, ast.Name) else ""
    if isinstance(first, _PARTS) and called in ("sum", "list") and len(value.args) == 1 and not value.keywords:
        return _statements(first, name, taken, summed=called == "sum"), result
    loop, rest = _loop_of(first, name, taken)
    return loop, ast.Call(value.func, [rest, *value.args[1:]], value.keywords)


_PARTS = (ast.ListComp, ast.GeneratorExp)


def _is_name(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _statements(
    comprehension: ast.ListComp | ast.DictComp | ast.GeneratorExp, name: str, taken: set[str], summed: bool = False
) -> list[ast.stmt]:
    if any(part.is_async for part in comprehension.generators):
        return []
    targets = {
        node.id for part in comprehension.generators for node in ast.walk(part.target) if isinstance(node, ast.Name)
    }
    # Names of a comprehension are local to it.
    renamed = _Renamed({target: f"_{target}_in_loop" for target in targets})
    result = ast.Name(name, ast.Load())
    inner: ast.stmt
    if isinstance(comprehension, ast.DictComp):
        target = ast.Subscript(result, renamed.visit(comprehension.key), ast.Store())
        inner = ast.Assign([target], renamed.visit(comprehension.value))
        empty: ast.expr = ast.Dict([], [])
    elif summed:
        inner = ast.AugAssign(ast.Name(name, ast.Store()), ast.Add(), renamed.visit(comprehension.elt))
        empty = ast.Constant(0)
    else:
        append = ast.Attribute(result, "append", ast.Load())
        inner = ast.Expr(ast.Call(append, [renamed.visit(comprehension.elt)], []))
        empty = ast.List([], ast.Load())
    for index, part in reversed(list(enumerate(comprehension.generators))):
        for test in reversed(part.ifs):
            inner = ast.If(renamed.visit(test), [inner], [])
        iterated = part.iter if index == 0 else renamed.visit(part.iter)
        inner = ast.For(renamed.visit(part.target), iterated, [inner], [])
    return [ast.Assign([ast.Name(name, ast.Store())], empty), inner]


class _Renamed(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.copy_location(ast.Name(self._names.get(node.id, node.id), node.ctx), node)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.arg = self._names.get(node.arg, node.arg)
        return node
