"""Which loops are split, and why others are not. No server is asked."""

from __future__ import annotations

import ast

import pytest

from warpgauge.split import NotSplit, Split, split


def of(body: str, arguments: str = "n, xs") -> Split:
    source = f"def f({arguments}):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    definition = ast.parse(source).body[0]
    assert isinstance(definition, ast.FunctionDef)
    return split(definition)


LOOPS = {
    "append": "r = []\nfor i in range(n):\n    r.append(g(i))\nreturn r",
    "several": "r, s = [], 0\nfor i in range(n):\n    y = g(i)\n    r.append(y)\n    s += y\nreturn r, s",
    "extend": "r = []\nfor i in range(n):\n    r.extend([i, i])\nreturn r",
    "plus a list": "r = []\nfor i in range(n):\n    r += [i]\nreturn r",
    "items": "d = {}\nfor x in xs:\n    d[x] = g(x)\nreturn d",
    "counts": "d = make()\nfor x in xs:\n    d[x % 3] += 1\nreturn d",
    "a minimum": "best = 1e9\nfor x in xs:\n    best = min(best, g(x))\nreturn best",
    "nested": "r = []\nfor i in range(n):\n    row = []\n    for j in range(n):\n        row.append(i * j)\n    r.append(row)\nreturn r",  # noqa: E501
    "skips": "r = []\nfor i in range(n):\n    if i % 2:\n        continue\n    r.append(i)\nreturn r",
    "inner break": "r = []\nfor i in range(n):\n    for j in xs:\n        if j > i:\n            break\n        r.append(j)\nreturn r",  # noqa: E501
    "in a with": "r = []\nwith torch.no_grad():\n    for i in range(n):\n        r.append(g(i))\nreturn r",
    "a comprehension": "return [g(i) for i in range(n) if i]",
    "of two": "return [g(i, j) for i in range(n) for j in xs]",
    "by key": "return {i: g(i) for i in range(n)}",
    "a sum": "return sum(g(i) for i in range(n))",
    "in a call": "return torch.stack([g(i) for i in range(n)]).mean(0) + 1",
    "rows": "out = torch.zeros(n)\nfor i in range(n):\n    out[i] = g(i)\nreturn out.sum()",
    "both ways": "r = []\nfor i in range(n):\n    if i:\n        y = 1\n    else:\n        y = 2\n    r.append(y)\nreturn r",  # noqa: E501
    "fresh lists": "r = []\nfor i in range(n):\n    y = torch.zeros(3)\n    y[0] = i\n    y.add_(1)\n    r.append(y)\nreturn r",  # noqa: E501
    "tried": "r = []\nfor i in range(n):\n    try:\n        y = g(i)\n    except ValueError:\n        y = None\n    r.append(y)\nreturn r",  # noqa: E501
}


@pytest.mark.parametrize("name", LOOPS)
def test_iterations_that_need_nothing_of_each_other_are_split(name: str) -> None:
    found = of(LOOPS[name])
    for made in (found.part, found.finish):
        compile(ast.unparse(made), name, "exec")


WHOLE = {
    "what was computed before": ("r, x = [], 1\nfor i in range(n):\n    x = x * 2\n    r.append(x)\nreturn r", "`x`"),
    "a value that stays": (
        "r = []\nfor i in range(n):\n    if i == 0:\n        y = 5\n    r.append(y)\nreturn r",
        "`y`",
    ),
    "its own results": ("r = []\nfor i in range(n):\n    r.append(len(r))\nreturn r", "`r`"),
    "an early end": ("r = []\nfor i in range(n):\n    if i > 3:\n        break\n    r.append(i)\nreturn r", "break"),
    "a return": (
        "r = []\nfor i in range(n):\n    if i > 3:\n        return r\n    r.append(i)\nreturn r",
        "returns from",
    ),
    "an else": ("r = []\nfor i in range(n):\n    r.append(i)\nelse:\n    r.append(-1)\nreturn r", "else"),
    "the last element": ("r = []\nfor i in range(n):\n    r.append(i)\nreturn r, i", "`i` after it"),
    "a shared list": (
        "r, seen = [], set()\nfor i in range(n):\n    seen.add(i)\n    r.append(seen)\nreturn r",
        "`seen`",
    ),
    "a shared array": ("r = []\nfor i in range(n):\n    xs[i] = 0\n    r.append(i)\nreturn r", "`xs`"),
    "in place": ("r = []\nfor x in xs:\n    x.mul_(2)\n    r.append(x)\nreturn r", "`x`"),
    "by another name": ("r = []\nfor i in range(n):\n    y = xs[i]\n    y += 1\n    r.append(y)\nreturn r", "`y`"),
    "an iterator": ("r, it = [], iter(xs)\nfor i in range(n):\n    r.append(next(it))\nreturn r", "`it`"),
    "training": (
        "r = []\nfor x in xs:\n    loss = model(x)\n    loss.backward()\n    r.append(loss)\nreturn r",
        "backward",
    ),
    "an argument": ("for i in range(n):\n    xs.append(i)\nreturn xs", "argument `xs`"),
    "nothing left": ("for i in range(n):\n    print(i)", "leaves nothing"),
    "a while": ("i, r = 0, []\nwhile i < n:\n    i += 1\nreturn r", "no `for` loop"),
    "a generator": ("for i in range(n):\n    yield i", "yield"),
    "a global": ("global G\nr = []\nfor i in range(n):\n    r.append(i)\nreturn r", "global"),
    "the name it adds to": ("for i in range(n):\n    zs.append(i)\nreturn zs", "`zs`"),
}


@pytest.mark.parametrize("name", WHOLE)
def test_iterations_that_may_need_another_one_are_not(name: str) -> None:
    body, part = WHOLE[name]
    with pytest.raises(NotSplit) as caught:
        of(body)
    assert part in str(caught.value), caught.value


def test_a_reason_names_the_loop_and_the_line() -> None:
    with pytest.raises(NotSplit, match=r"the loop `for i in range\(n\)` of line 3: line 4 reads `x`"):
        of("r, x = [], 1\nfor i in range(n):\n    x = x + 1\n    r.append(x)\nreturn r")


def test_what_the_source_says_of_the_loop_is_known() -> None:
    assert of("r = []\nfor i in range(2, 20, 3):\n    r.append(i)\nreturn r").count == 6
    assert of(LOOPS["append"]).count is None
    assert of(LOOPS["several"]).returned is None, "made in one statement, so that the function goes on there"
    plain = of("r, = [],\nr = []\nfor i in range(n):\n    r.append(i)\nreturn r")
    assert plain.returned is None, "made twice"
    assert of(LOOPS["items"]).begins == {"d": {}}
