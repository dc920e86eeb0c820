"""A function made in parts without a server: what its processes run, in this one, each part in a namespace of its
own. Values travel as they do."""

from __future__ import annotations

import inspect
import linecache
import random
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from conftest import ROOT

from warpgauge.remote import Options, Plan, _joined, _program, plan_of
from warpgauge.spread import RunWhole
from warpgauge.values import ValueReader, ValueWriter

SERVER = ROOT / "crates/run/torch/src/python"
FILES = ("program.py", "fingerprint.py", "split.py")


class _Seeds:
    def seed(self, number: int) -> None:
        random.seed(number)


class _Records:
    """What a process would send."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def write(self, record: Any, iteration: int | None = None) -> None:
        writer = ValueWriter()
        self.sent.append(ValueReader(writer.packed(writer.tree(record))).value())

    def failed(self, error: Exception, code: str, iteration: int | None = None) -> None:
        raise error


def _process(program: bytes, do: Callable[[Any, Any, Any, _Records], None]) -> list[Any]:
    space: dict[str, Any] = {
        "__name__": __name__, "sys": sys, "types": types, "inspect": inspect, "linecache": linecache,
    }  # fmt: skip
    for path in [Path(sys.modules[ValueWriter.__module__].__file__ or ""), *(SERVER / name for name in FILES)]:
        exec(compile(path.read_text(), path, "exec"), space)
    made = space["FunctionProgram"](program, False)
    records = _Records()
    function, args, kwargs = made.entry(), made.value("args"), made.value("kwargs")
    try:
        do(space, made, lambda: function(*args, **kwargs), records)
    except space["NoParts"] as reason:
        raise RunWhole(str(reason)) from None
    return records.sent


def call(function: Any, *args: Any) -> tuple[Plan, Any]:
    """The plan, with the reason where the function is to run as a whole; else what its parts come to."""
    options = Options()
    plan = plan_of(function, options)
    if not plan.parallel or plan.split is None:
        return plan, None
    found = plan.split

    def part(iteration: int) -> list[Any]:
        made = _program(function, found.part, options, args, {})

        def do(space: Any, program: Any, called: Callable[[], Any], records: _Records) -> None:
            loop = space["PartOfLoop"](_Seeds(), [(iteration, iteration + 1)], 0, program.data(), records)
            program.namespace_of_entry()["__warpgauge_loop"] = loop
            called()
            records.write({"changed": loop.changed(), "count": loop.count})

        return _process(made.packed(made.root), do)

    def finish(space: Any, program: Any, called: Callable[[], Any], records: _Records) -> None:
        program.namespace_of_entry()["__warpgauge_loop"] = space["JoinedLoop"](program.value("effects"))
        records.write(called())

    effects, count, iteration = [], 1, 0
    try:
        while iteration < count:
            *came, ended = part(iteration)
            if ended["count"] is None:
                raise RunWhole("it returns before it comes to the loop")
            if ended["changed"]:
                raise RunWhole(f"an iteration changed {ended['changed']}")
            effects += [record["effects"] for record in came]
            count, iteration = ended["count"], iteration + 1
        if found.returned is not None:
            return plan, _joined(found, effects)
        made = _program(function, found.finish, options, args, {})
        tree = made.capture.tree(effects, "effects")
        return plan, _process(made.packed({**made.root, "effects": tree}), finish)[0]
    except RunWhole as reason:
        plan.reason = str(reason)
        return plan, None
