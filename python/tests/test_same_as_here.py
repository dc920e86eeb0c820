"""Loops in parts against Python itself: the same value, or a reason why the function runs as a whole."""

from __future__ import annotations

import collections
import copy
import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from in_parts import call

Function = Callable[..., Any]


def _nth(iterator: Iterator[Any]) -> Any:
    return next(iterator)


def slices(n: int) -> Any:
    a = np.zeros((n, n, 4))
    for i in range(n):
        a[i, 1:3, ::2] = i
        a[i, ..., 3] += 1
        a[:, i, None, 1] -= 1
    return a


def a_row_that_is_changed_after(n: int) -> Any:
    out, total = np.zeros((n, 3)), np.zeros(3)
    for i in range(n):
        row = np.full(3, float(i))
        out[i] = row
        total += row
        row += 1
    return out, total


def a_list_that_is_changed_after(n: int) -> Any:
    r, kept = [], []
    for i in range(n):
        row = [i]
        r += row
        kept.append(row)
        row.append(9)
    return r, kept


def calls_itself(n: int) -> Any:
    if n == 0:
        return 1
    return [calls_itself(n - 1) for _ in range(2)]


def two_names_of_one_list(n: int) -> Any:
    a = b = []
    for i in range(n):
        a.append(i)
        b.append(-i)
    return a, b


def different_keys(n: int) -> Any:
    d: dict[Any, Any] = {}
    for i in range(n):
        slice = i + 1
        d[i, "x"] = slice
        d[i % 2] = i
    return d


def below_an_if(n: int) -> Any:
    r: list[Any] = []
    if (m := n + 1) > 2:
        for i in range(m):
            r.append(i)
        r.append("end")
    elif n > 1:
        r = [-i for i in range(n)]
    else:
        return None
    return r, m


def returned_below_an_if(n: int) -> Any:
    if n > 2:
        return {i: i * i for i in range(n)}
    return None


def after_an_if(n: int) -> Any:
    names: list[str] = []
    if n < 0:
        names = [str(i) for i in range(n)]
    r = []
    for i in range(n):
        r.append(i)
    return names, r


SPLIT: list[Function] = [
    slices, a_row_that_is_changed_after, a_list_that_is_changed_after, calls_itself, two_names_of_one_list,
    different_keys, below_an_if, returned_below_an_if, after_an_if,
]  # fmt: skip


def another_name(n: int) -> Any:
    a = [0] * n
    b = a
    r = []
    for i in range(n):
        a[i] = i
        r.append(sum(b))
    return r


def a_view(n: int) -> Any:
    out = np.zeros(n)
    view, r = out[1:], []
    for i in range(n):
        out[i] = i
        r.append(float(view.sum()))
    return r


def a_function_that_reads(n: int) -> Any:
    r: list[Any] = []

    def length() -> int:
        return len(r)

    for i in range(n):
        r.append(10 * i + length())
    return r


def a_method_that_reads(n: int) -> Any:
    r: list[Any] = []
    count = r.__len__
    for i in range(n):
        r.append(10 * i + count())
    return r


def elements_of_what_is_filled(n: int) -> Any:
    r: list[Any] = []

    def lengths() -> Iterator[int]:
        while len(r) < n:
            yield len(r)

    for x in lengths():
        r.append(x)
    return r


def an_iterator(n: int) -> Any:
    it = iter(list(range(100)))
    return [_nth(it) for _ in range(n)]


def a_count(n: int) -> Any:
    it = itertools.count()
    return [_nth(it) for _ in range(n)]


def a_generator(n: int) -> Any:
    def numbers() -> Iterator[int]:
        k = 0
        while True:
            yield k
            k += 1

    it = numbers()
    return [_nth(it) for _ in range(n)]


def slots(n: int) -> Any:
    class Counter:
        __slots__ = ("value",)

        def __init__(self) -> None:
            self.value = 0

    counter = Counter()

    def counted() -> int:
        counter.value += 1
        return counter.value

    return [counted() for _ in range(n)]


def a_deque(n: int) -> Any:
    seen: Any = collections.deque([0])

    def more() -> int:
        seen.append(1)
        return len(seen)

    return [more() for _ in range(n)]


def a_default(n: int) -> Any:
    counts: Any = collections.defaultdict(int)

    def counted() -> int:
        counts["a"] += 1
        return int(counts["a"])

    return [counted() for _ in range(n)]


def counts_from_nothing(n: int) -> Any:
    counts: dict[int, int] = {}
    for i in range(n):
        try:
            counts[i % 2] += 1
        except KeyError:
            counts[i % 2] = 1
    return counts


def one_object_in_many_places(n: int) -> Any:
    base: list[int] = []
    r = []
    for _ in range(n):
        r.append(base)
    base.append(1)
    return r


def one_object_in_two_lists(n: int) -> Any:
    r, s = [], []
    for i in range(n):
        x = [i]
        r.append(x)
        s.append(x)
    for row in r:
        row.append(3)
    return r, s


def seeded(n: int) -> Any:
    random.seed(1)
    return [random.random() for _ in range(n)]


def the_other_branch(n: int) -> Any:
    if n > 100:
        return [i for i in range(n)]
    r = 0
    while r < n:
        r += 2
    return r


def names_by_text(n: int) -> Any:
    r = []
    for i in range(n):
        k = i
        r.append(sorted(locals()))
        m = k
        r.append([str(m)])
    return r


WHOLE: dict[Function, str] = {
    another_name: "`b`", a_view: "`view`", a_function_that_reads: "`length`", a_method_that_reads: "`count`",
    elements_of_what_is_filled: "`lengths`", an_iterator: "it", a_count: "it", a_generator: "it", slots: "counted",
    a_deque: "more", a_default: "counted", counts_from_nothing: "KeyError", one_object_in_many_places: "base.append",
    the_other_branch: "before it comes to the loop", one_object_in_two_lists: "row.append", seeded: "seeds",
    names_by_text: "locals()",
}  # fmt: skip


def same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    return bool(one == other)


@pytest.mark.parametrize("function", SPLIT, ids=lambda function: function.__name__)
def test_parts_come_to_what_the_loop_comes_to_here(function: Function) -> None:
    plan, value = call(function, 5)
    assert plan.parallel, plan.reason
    expected = copy.deepcopy(function(5))
    assert same(value, expected), (value, expected)


@pytest.mark.parametrize("function", WHOLE, ids=lambda function: function.__name__)
def test_what_parts_would_do_in_another_way_runs_as_a_whole(function: Function) -> None:
    plan, value = call(function, 5)
    assert not plan.parallel, value
    assert WHOLE[function] in str(plan.reason)
