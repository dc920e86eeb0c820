"""Reports in notebooks. Everything that comes from a server is escaped, bounded, or a number."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from .drawing import distribution, roofline
from .report import plain

if TYPE_CHECKING:
    from .report import ComparisonReport, Report, SweepReport

_COLOURS = {
    "correct": "#1a7f37",
    "wrong": "#cf222e",
    "failed": "#cf222e",
    "not_compiled": "#cf222e",
}
# Most rows of a table.
_MAX_ROWS = 200


def text(value: object) -> str:
    """A server's text as HTML."""
    return escape(plain(value), quote=True)


def report_html(report: Report) -> str:
    """Verdict, distribution of the times, and roofline where there is one."""
    colour = _COLOURS.get(report.verdict, "#57606a")
    head, *rest = report.explain().splitlines()
    pictures = distribution(report.samples_ms) + roofline(report.roofline)
    details = f"<pre style='margin:4px 0'>{text(chr(10).join(rest))}</pre>" if rest else ""
    return (
        f"<div style='border-left:4px solid {colour};padding-left:8px'>"
        f"<b style='color:{colour}'>{text(report.verdict)}</b> {text(head.removeprefix(report.verdict))}"
        f"{details}{pictures}</div>"
    )


def comparison_html(report: ComparisonReport) -> str:
    """A report for each kernel, below the verdict."""
    parts = [f"<p><b>{text(report.verdict or 'not compared')}</b></p>"]
    for name, one in [("reference", report.reference), *report.candidates.items()]:
        parts.append(f"<p>{text(name)}</p>{report_html(one)}")
    return f"<div>{''.join(parts)}</div>"


def sweep_html(report: SweepReport) -> str:
    """The table."""
    columns = report.raw["table"]["columns"]
    head = "".join(f"<th>{text(name)}</th>" for name in columns)
    rows = report.raw["table"]["rows"]
    body = "".join(f"<tr>{''.join(f'<td>{text(_shown(cell))}</td>' for cell in row)}</tr>" for row in rows[:_MAX_ROWS])
    more = f"<p>and {len(rows) - _MAX_ROWS} more</p>" if len(rows) > _MAX_ROWS else ""
    return f"<p>{text(report.explain())}</p><table><tr>{head}</tr>{body}</table>{more}"


def _shown(cell: object) -> object:
    return "" if cell is None else f"{cell:.6g}" if isinstance(cell, float) else cell
