"""A sweep as a plot: times, or counts of the emulated device, over one axis, with a line for each combination of
others."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from .drawing import text, vector
from .readable import count, duration_ms, finite
from .report import plain

if TYPE_CHECKING:
    from .report import SweepReport

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _FOOT = 480, 240, 70, 12, 16, 28
# Width of the legend, and maximum length of a name in it.
_LEGEND, _LEGEND_LETTERS = 140, 22
_COLOURS = ("#0969da", "#cf222e", "#1a7f37", "#9a6700", "#8250df", "#bf3989", "#57606a", "#0a7b83")
_MAX_POINTS = 2000
# Maximum number of labels below the plot.
_MAX_TICKS = 8
_MOST_LETTERS = 60


@dataclass
class _Line:
    """Points of one combination of the other axes: position, value, and whether the kernel is correct."""

    name: str
    points: list[tuple[float, float, bool]]


def sweep_plot(report: SweepReport) -> str:
    """Returns the plot as SVG, or nothing if fewer than two points of the axis have a value."""
    rows = [row for _, row in zip(range(_MAX_POINTS), report.rows(), strict=False)]
    axes = _axes(report, rows)
    # Times of the emulator say nothing about a GPU, so the server ranks by counts.
    column = "warp_instructions" if "not_ranked" in report.best else "median_ms"
    found = [(row, value) for row in rows if (value := finite(row.get(column))) is not None]
    if not axes or not found:
        return ""
    axis = max(reversed(axes), key=lambda name: _fitness(axes[name]))
    lines = _lines(found, axis, axes)
    if len({x for line in lines for x, *_ in line.points}) < 2:
        return ""
    shown = duration_ms if column == "median_ms" else count
    title = "median time" if column == "median_ms" else "warp instructions of one launch"
    return _picture(lines, (axis, axes[axis]), title, shown)


def _axes(report: SweepReport, rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Returns the values of each axis, in order."""
    listed = report.raw.get("axes", [])
    names = [axis.get("name") for axis in listed if isinstance(axis, Mapping)]
    axes: dict[str, list[Any]] = {}
    for name in names:
        values = list(dict.fromkeys(row[name] for row in rows if isinstance(row.get(name), (str, int, float))))
        if isinstance(name, str) and values:
            axes[name] = sorted(values) if _numeric(values) else values
    return axes


def _fitness(values: Sequence[Any]) -> tuple[bool, int, float]:
    """Rates how suitable an axis is as the horizontal one: numbers, many of them, and far apart."""
    numeric = _numeric(values)
    return numeric, len(values), round(math.log(values[-1] / values[0]), 6) if numeric else 0.0


def _numeric(values: Sequence[Any]) -> bool:
    return all(finite(value) is not None for value in values)


def _lines(found: Sequence[tuple[Mapping[str, Any], float]], axis: str, axes: Mapping[str, list[Any]]) -> list[_Line]:
    others = [name for name in axes if name != axis and len(axes[name]) > 1]
    numeric = _numeric(axes[axis])
    lines: dict[tuple[Any, ...], _Line] = {}
    for row, value in found:
        if row.get(axis) not in axes[axis]:
            continue
        key = tuple(row.get(name) for name in others)
        name = ", ".join(f"{name} = {part}" for name, part in zip(others, key, strict=True))
        place = float(row[axis]) if numeric else float(axes[axis].index(row[axis]))
        line = lines.setdefault(key, _Line(plain(name)[:_MOST_LETTERS], []))
        line.points.append((place, value, row.get("status") == "correct"))
    for line in lines.values():
        line.points.sort()
    return list(lines.values())


class _Scale:
    """The position of a value between two ends: linear or, if the values differ much, logarithmic."""

    def __init__(self, values: Sequence[float], start: float, end: float, ratio: float) -> None:
        low, high = min(values), max(values)
        self._log = low > 0 and high / low >= ratio
        self.low, self.high, self._start, self._end = low, high, start, end

    def __call__(self, value: float) -> float:
        if self._log:
            share = (math.log(value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        else:
            share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return self._start + share * (self._end - self._start)


def _picture(lines: Sequence[_Line], axis: tuple[str, Sequence[Any]], title: str, shown: Any) -> str:
    name, values = axis
    drawn = lines[: len(_COLOURS)]
    xs = [x for line in drawn for x, *_ in line.points]
    ys = [y for line in drawn for _, y, _ in line.points]
    right = _WIDTH - (_LEGEND if any(line.name for line in drawn) else _RIGHT)
    across = _Scale(xs, _LEFT, right, 8.0)
    up = _Scale(ys, _HEIGHT - _FOOT - 6, _TOP + 6, 20.0)
    base = _HEIGHT - _FOOT
    parts = [
        f'<line x1="{_LEFT}" y1="{base}" x2="{right}" y2="{base}" stroke="#57606a"/>',
        f'<line x1="{_LEFT}" y1="{_TOP}" x2="{_LEFT}" y2="{base}" stroke="#57606a"/>',
        text(_LEFT - 4, up(up.low) + 3, shown(up.low), "end"),
        text(_LEFT, 10, title),
        text((_LEFT + right) / 2, _HEIGHT - 3, plain(name)[:_MOST_LETTERS], "middle"),
    ]
    if up.high > up.low:
        parts.append(text(_LEFT - 4, up(up.high) + 3, shown(up.high), "end"))
    numeric = _numeric(values)
    step = math.ceil(len(values) / _MAX_TICKS)
    for number, value in enumerate(values):
        place = float(value) if numeric else float(number)
        if number % step == 0 and across.low <= place <= across.high:
            label = f"{value:g}" if isinstance(value, float) else plain(value)[:12]
            parts.append(text(across(place), base + 12, label, "middle"))
    for line, colour in zip(drawn, _COLOURS, strict=False):
        parts += _of_line(line, colour, across, up, shown)
    legend = [
        text(right + 8, _TOP + 10 + 12 * number, line.name[:_LEGEND_LETTERS], "start", colour)
        for number, (line, colour) in enumerate(zip(drawn, _COLOURS, strict=False))
        if line.name
    ]
    if more := len(lines) - len(drawn):
        legend.append(text(right + 8, _TOP + 10 + 12 * len(drawn), f"and {more} lines more"))
    return vector("".join(parts + legend), f"{title} over {plain(name)[:_MOST_LETTERS]}", (_WIDTH, _HEIGHT))


def _of_line(line: _Line, colour: str, across: _Scale, up: _Scale, shown: Any) -> list[str]:
    places = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y, _ in line.points)
    parts = [f'<polyline points="{places}" fill="none" stroke="{colour}"/>']
    for x, y, correct in line.points:
        said = f"{line.name}: {shown(y)}" if line.name else shown(y)
        said = said if correct else f"{said}, not correct"
        parts.append(
            f'<circle cx="{across(x):.1f}" cy="{up(y):.1f}" r="3" fill="{colour if correct else "none"}" '
            f'stroke="{colour}"><title>{escape(said)}</title></circle>'
        )
    return parts
