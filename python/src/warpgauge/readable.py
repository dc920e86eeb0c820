"""Numbers in a form for people, formatted as on the command line."""

from __future__ import annotations

import math


def duration_ms(ms: float) -> str:
    """Returns a time in milliseconds as text in a suitable unit, with four significant digits."""
    size = abs(ms)
    if size == 0:
        return "0 ms"
    for below, factor, unit in ((1e-3, 1e6, "ns"), (1.0, 1e3, "µs"), (1e3, 1.0, "ms"), (math.inf, 1e-3, "s")):
        if size < below:
            return f"{significant(ms * factor)} {unit}"
    return f"{ms} s"


def significant(value: float, digits: int = 4) -> str:
    """Returns a number with this many significant digits and no exponent."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    magnitude = math.floor(math.log10(abs(value)))
    return f"{value:.{min(max(digits - 1 - magnitude, 0), 12)}f}"


def count(value: float) -> str:
    """Returns a count in thousands, millions and so on, with three significant digits."""
    for factor, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{significant(value / factor, 3)} {unit}"
    return f"{value:g}"


def finite(value: object) -> float | None:
    """Returns the value if it is a positive finite number, else `None`."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and number > 0 else None
