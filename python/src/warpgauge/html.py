"""Reports in notebooks. Everything from a server is escaped, bounded, or a number."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from .drawing import distribution, roofline
from .readable import duration_ms, finite
from .report import plain

if TYPE_CHECKING:
    from .report import ComparisonReport, Report, SweepReport

_COLOURS = {
    "correct": "#1a7f37",
    "weak": "#9a6700",
    "error": "#cf222e",
    "wrong": "#cf222e",
    "failed": "#cf222e",
    "not_compiled": "#cf222e",
}
# Columns of a sweep's table, with names for people.
_COLUMNS = {
    "median_ms": "median",
    "ci_low_ms": "interval from",
    "ci_high_ms": "interval to",
    "gbps": "GB/s",
    "gflops": "GFLOP/s",
    "warp_instructions": "warp instructions",
    "global_sectors": "global sectors",
}
# Maximum number of rows of a table.
_MAX_ROWS = 200


def text(value: object) -> str:
    """Returns a server's text as HTML."""
    return escape(plain(value), quote=True)


def report_html(report: Report) -> str:
    """Returns the verdict, the distribution of the times, and the roofline if there is one."""
    colour = _COLOURS.get(report.verdict, "#57606a")
    head, *rest = report.explain().splitlines()
    pictures = distribution(report.samples_ms, report.runtime) + roofline(report.roofline)
    details = f"<pre style='margin:4px 0'>{text(chr(10).join(rest))}</pre>" if rest else ""
    return (
        f"<div style='border-left:4px solid {colour};padding-left:8px'>"
        f"<b style='color:{colour}'>{text(report.verdict)}</b> {text(head.removeprefix(report.verdict).lstrip(', '))}"
        f"{details}{pictures}</div>"
    )


def comparison_html(report: ComparisonReport) -> str:
    """Returns a report for each kernel, below the verdict on each candidate."""
    parts = ["".join(f"<p><b>{text(line)}</b></p>" for line in report.verdicts()[:_MAX_ROWS])]
    for name, one in [("reference", report.reference), *report.candidates.items()]:
        parts.append(f"<p>{text(name)}</p>{report_html(one)}")
    parts += [f"<p>{text(note)}</p>" for note in report.notes]
    return f"<div>{''.join(parts)}</div>"


def sweep_html(report: SweepReport) -> str:
    """Returns the plot and the table, without empty columns."""
    from .sweep_plot import sweep_plot

    columns, rows = report.raw["table"]["columns"], report.raw["table"]["rows"]
    shown = rows[:_MAX_ROWS]
    used = [i for i in range(len(columns)) if any(i < len(row) and row[i] is not None for row in shown)]
    head = "".join(f"<th>{text(_COLUMNS.get(columns[i], columns[i]))}</th>" for i in used)
    body = "".join(f"<tr>{''.join(_cell(columns[i], row, i) for i in used)}</tr>" for row in shown)
    more = f"<p>and {len(rows) - _MAX_ROWS} more</p>" if len(rows) > _MAX_ROWS else ""
    note = report.best.get("not_ranked")
    why = f"<p>{text(note)}</p>" if note else ""
    return f"<p>{text(report.explain())}</p>{sweep_plot(report)}{why}<table><tr>{head}</tr>{body}</table>{more}"


def _cell(column: object, row: Sequence[object], index: int) -> str:
    value = row[index] if index < len(row) else None
    if value is None:
        return "<td></td>"
    if str(column).endswith("_ms") and (time := finite(value)) is not None:
        return f"<td>{text(duration_ms(time))}</td>"
    return f"<td>{text(f'{value:.6g}' if isinstance(value, float) else value)}</td>"
