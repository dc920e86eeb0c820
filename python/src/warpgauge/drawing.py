"""Small drawings as SVG: the distribution of times, and the roofline."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from .report import plain

_WIDTH, _HEIGHT, _FOOT = 320, 120, 16
_BINS = 40
_MAX_POINTS = 50


def _svg(inside: str, label: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" role="img" '
        f'aria-label="{escape(label)}" font-family="sans-serif" font-size="10">{inside}</svg>'
    )


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="currentColor">{escape(text)}</text>'


def _finite(value: object) -> float | None:
    """A positive finite number, or nothing."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and number > 0 else None


def distribution(samples_ms: Sequence[float]) -> str:
    """A histogram of launch times with its ends and the median; nothing for fewer than three."""
    samples = sorted(s for value in samples_ms if (s := _finite(value)) is not None)
    if len(samples) < 3:
        return ""
    low, high = samples[0], samples[-1]
    bins = [0] * min(_BINS, max(3, math.isqrt(len(samples)) * 2))
    for sample in samples:
        share = (sample - low) / (high - low) if high > low else 0.0
        bins[min(int(share * len(bins)), len(bins) - 1)] += 1
    step, tall = _WIDTH / len(bins), (_HEIGHT - _FOOT - 4) / max(bins)
    bars = "".join(
        f'<rect x="{i * step:.1f}" y="{_HEIGHT - _FOOT - n * tall:.1f}" width="{step - 1:.1f}" '
        f'height="{n * tall:.1f}" fill="#0969da"/>'
        for i, n in enumerate(bins)
        if n
    )
    median = samples[len(samples) // 2]
    axis = (
        _text(0, _HEIGHT - 3, f"{low * 1e3:.4g} µs")
        + _text(_WIDTH / 2, _HEIGHT - 3, f"median {median * 1e3:.4g} µs", "middle")
        + _text(_WIDTH, _HEIGHT - 3, f"{high * 1e3:.4g} µs", "end")
    )
    return _svg(bars + axis, "distribution of launch times")


def roofline(roof: Mapping[str, Any] | None) -> str:
    """Rates over intensities, both logarithmic, below what is attainable; nothing without points."""
    points = []
    for point in (roof or {}).get("points", [])[:_MAX_POINTS]:
        x, rate = _finite(point.get("intensity")), _finite(point.get("rate"))
        attainable = _finite(point.get("attainable"))
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
    ends = _text(0, _HEIGHT - 3, f"1e{left} op/B") + _text(_WIDTH, _HEIGHT - 3, f"1e{right} op/B", "end")
    # Roofs go beyond the picture; what lies there is not drawn.
    clipped = f'<svg width="{_WIDTH}" height="{tall}" overflow="hidden">{"".join(parts)}</svg>'
    return _svg(clipped + ends, "roofline")


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def _ceiling(roof: Mapping[str, Any]) -> float | None:
    ceiling = roof.get("ceiling")
    return _finite(ceiling.get("per_second")) if isinstance(ceiling, Mapping) else None
