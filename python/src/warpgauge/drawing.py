"""Small drawings as SVG: the distribution of times, and the roofline."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from .readable import duration_ms, finite
from .report import plain

_WIDTH, _HEIGHT, _HEAD, _FOOT = 320, 120, 14, 16
# Maximum number of bars, and minimum number of samples of a histogram, as on the command line.
_BINS, _LEAST = 24, 8
_MAX_POINTS = 50


def vector(inside: str, label: str, size: tuple[int, int] = (_WIDTH, _HEIGHT)) -> str:
    """Returns a drawing of this width and height, with a description for readers who cannot see it."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[0]}" height="{size[1]}" role="img" '
        f'aria-label="{escape(label)}" font-family="sans-serif" font-size="10">{inside}</svg>'
    )


def text(x: float, y: float, words: str, anchor: str = "start", colour: str = "currentColor") -> str:
    """Returns a text whose start, middle or end is at a position."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(words)}</text>'


def distribution(samples_ms: Sequence[float], stats: Mapping[str, Any] | None = None) -> str:
    """Returns a histogram of launch times, with the minimum, the maximum and the median, which `stats` may have.

    Its bars are those of the command line. The result is empty for fewer than eight samples, or if all are equal.
    """
    said = stats or {}
    samples = [s for value in samples_ms if (s := finite(value)) is not None]
    low, high = finite(said.get("min")), finite(said.get("max"))
    low = min(samples, default=0.0) if low is None else low
    high = max(samples, default=0.0) if high is None else high
    # Samples are sent in binary32.
    samples = [s for s in samples if low - 1e-6 * high <= s <= high + 1e-6 * high]
    if len(samples) < _LEAST or low >= high:
        return ""
    median = finite(said.get("median")) or statistics.median(samples)
    bins = [0] * min(max(len(samples) // 2, _LEAST // 2), _BINS)
    for sample in samples:
        share = (sample - low) / (high - low)
        bins[min(max(int(share * len(bins)), 0), len(bins) - 1)] += 1
    step, tall = _WIDTH / len(bins), (_HEIGHT - _FOOT - _HEAD) / max(bins)
    bars = "".join(
        f'<rect x="{i * step:.1f}" y="{_HEIGHT - _FOOT - n * tall:.1f}" width="{step - 1:.1f}" '
        f'height="{n * tall:.1f}" fill="#0969da"/>'
        for i, n in enumerate(bins)
        if n
    )
    share = min(max((median - low) / (high - low), 0.0), 1.0)
    at = share * _WIDTH
    anchor = "start" if share < 0.25 else "end" if share > 0.75 else "middle"
    axis = (
        _line(at, _HEAD - 2, at, _HEIGHT - _FOOT, "#cf222e")
        + text(at, _HEAD - 4, f"median {duration_ms(median)}", anchor)
        + text(0, _HEIGHT - 3, duration_ms(low))
        + text(_WIDTH, _HEIGHT - 3, duration_ms(high), "end")
    )
    return vector(bars + axis, "distribution of launch times")


def roofline(roof: Mapping[str, Any] | None) -> str:
    """Returns rates by intensity, both logarithmic, below the attainable rates; empty without points."""
    points = []
    for point in (roof or {}).get("points", [])[:_MAX_POINTS]:
        x, rate = finite(point.get("intensity")), finite(point.get("rate"))
        attainable = finite(point.get("attainable"))
        if x is not None and (rate is not None or attainable is not None):
            points.append((x, rate, attainable, f"{point.get('precision')} {point.get('level')}"))
    rates = [_ceiling(r) for r in (roof or {}).get("compute", [])[:_MAX_POINTS]]
    speeds = [_ceiling(r) for r in (roof or {}).get("memory", [])[:_MAX_POINTS]]
    flat, slopes = [r for r in rates if r], [s for s in speeds if s]
    if not points:
        return ""
    xs = [math.log10(x) for x, *_ in points]
    ys = [math.log10(y) for _, *pair, _ in points for y in pair if isinstance(y, float)]
    ys += [math.log10(r) for r in flat]
    left, right = math.floor(min(xs)) - 1, math.ceil(max(xs)) + 1
    bottom, top = math.floor(min(ys)) - 1, math.ceil(max(ys)) + 0.2
    tall = _HEIGHT - _FOOT

    def at(x: float, y: float) -> tuple[float, float]:
        return (x - left) / (right - left) * _WIDTH, tall - (y - bottom) / (top - bottom) * tall

    parts = []
    for speed in slopes:
        (x1, y1), (x2, y2) = (
            at(left, left + math.log10(speed)),
            at(right, right + math.log10(speed)),
        )
        parts.append(_line(x1, y1, x2, y2, "#9a6700"))
    for rate in flat:
        (x1, y1), (x2, y2) = at(left, math.log10(rate)), at(right, math.log10(rate))
        parts.append(_line(x1, y1, x2, y2, "#57606a"))
    for x, own_rate, attainable, name in points:
        for y, colour in ((attainable, "none"), (own_rate, "#cf222e")):
            if y is not None:
                cx, cy = at(math.log10(x), math.log10(y))
                parts.append(
                    f'<circle cx="{cx:.1f}" cy="{cy:.1f}" r="3" fill="{colour}" stroke="#cf222e">'
                    f"<title>{escape(plain(name[:100]))}</title></circle>"
                )
    ends = text(0, _HEIGHT - 3, f"1e{left} op/B") + text(_WIDTH, _HEIGHT - 3, f"1e{right} op/B", "end")
    # Roofs extend beyond the picture, which clips them.
    clipped = f'<svg width="{_WIDTH}" height="{tall}" overflow="hidden">{"".join(parts)}</svg>'
    return vector(clipped + ends, "roofline")


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def _ceiling(roof: Mapping[str, Any]) -> float | None:
    ceiling = roof.get("ceiling")
    return finite(ceiling.get("per_second")) if isinstance(ceiling, Mapping) else None
