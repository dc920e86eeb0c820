"""What reports say, and that nothing of a server's reaches a notebook as markup."""

from __future__ import annotations

import copy
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from conftest import REPORT

from warpgauge import ComparisonReport, Report, SweepReport
from warpgauge.drawing import distribution, roofline

EVIL = "<script>alert('x')</script>\x1b[31m\"&"


def poisoned(value: Any) -> Any:
    """The same with every text replaced, and every key that is a name."""
    if isinstance(value, dict):
        return {key: poisoned(one) for key, one in value.items()}
    if isinstance(value, list):
        return [poisoned(one) for one in value]
    return EVIL if isinstance(value, str) else value


FULL: dict[str, Any] = {
    **REPORT,
    "verdict": "wrong",
    "gpu_type": "GPU",
    "failure": {"stage": "s", "code": "c", "message": "m"},
    "kernel_exec_result": {
        "compiled": True,
        "correctness": False,
        "validation_error": "v",
        "compilation_error": "e",
        "runtime_stats": {"median": 0.002, "samples": 9},
        "metadata": {
            "device_metrics": {
                "roofline": {
                    "bound_by": "dram",
                    "bound_reason": "r",
                    "points": [{"precision": "fp32", "level": "dram", "intensity": 0.08, "rate": 1e11}],
                    "compute": [{"precision": "fp32", "ceiling": {"per_second": 6e13}}],
                    "memory": [{"level": "dram", "ceiling": {"per_second": 4.8e12}}],
                }
            }
        },
    },
    "validation": {
        "status": "failed",
        "reasons": [{"code": "mismatch", "message": "m"}],
        "weaknesses": [{"code": "w", "message": "m"}],
        "outputs": {
            EVIL: {"matched": 1, "elements": 2, "first_mismatches": [{"index": [0], "actual": "1", "expected": "2"}]}
        },
    },
    "measurement": {"samples_ms": [0.002, 0.0021, 0.003], "notes": ["n"]},
}


def clean(html: str) -> None:
    root = ET.fromstring(html if html.startswith("<div") else f"<div>{html}</div>")
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    known = {"div", "b", "p", "pre", "svg", "rect", "text", "line", "circle", "title", "table", "tr", "td", "th"}
    assert tags <= known
    attributes = {name for element in root.iter() for name in element.attrib}
    assert not {name for name in attributes if name.startswith("on") or "href" in name}
    assert "\x1b" not in html


def test_everything_of_the_server_is_escaped() -> None:
    evil = poisoned(FULL)
    clean(Report(evil)._repr_html_())
    comparison = {"job_id": "j", "status": "success", "reference": evil, "candidates": []}
    comparison["candidates"] = [{"name": EVIL, "evaluation": evil, "not_compared": EVIL}]
    clean(ComparisonReport(comparison)._repr_html_())  # type: ignore[arg-type]
    table = {"columns": [EVIL], "rows": [[EVIL], [1.5], [None]]}
    sweep = {"job_id": "j", "status": "success", "counts": {EVIL: 1}, "points": [], "table": table}
    clean(SweepReport(sweep)._repr_html_())  # type: ignore[arg-type]


def test_an_explanation_has_what_counts() -> None:
    text = Report(FULL).explain()  # type: ignore[arg-type]
    for part in ("wrong, median 2 µs of 9 launches on GPU", "mismatch: m", "at [0]: 1, expected 2", "bound by dram"):
        assert part in text
    html = Report(FULL)._repr_html_()  # type: ignore[arg-type]
    assert html.count("<svg") == 3 and "median 2.1" in html


@pytest.mark.parametrize(
    ("change", "verdict", "correct"),
    [
        ({}, "correct", True),
        ({"kernel_exec_result": {"compiled": False}}, "not_compiled", False),
        ({"kernel_exec_result": {"compiled": True}}, "not_checked", None),
        ({"kernel_exec_result": {"compiled": True}, "status": "error"}, "error", None),
        ({"kernel_exec_result": {"compiled": True}, "verdict": "weak"}, "weak", None),
        ({"kernel_exec_result": {"compiled": True, "correctness": False}}, "wrong", False),
    ],
)
def test_verdicts(change: dict[str, Any], verdict: str, correct: bool | None) -> None:
    report = Report({**copy.deepcopy(REPORT), **change})  # type: ignore[typeddict-item]
    assert (report.verdict, report.correct, report.median_us) == (verdict, correct, None)


def test_drawings_bear_any_numbers() -> None:
    assert distribution([1.0, 2.0]) == ""
    assert distribution([float("nan"), -1, 0, 10**400, float("inf")]) == ""
    ET.fromstring(distribution([1e-300, 1.0, 1e300] * 1000))
    ET.fromstring(distribution([1.0] * 5))
    assert roofline(None) == "" and roofline({"points": [{"intensity": 1}]}) == ""
    points = [{"intensity": 1e-200, "rate": 1e200}, {"intensity": 10**400, "rate": 1}] * 100
    ET.fromstring(roofline({"points": points, "compute": [{}], "memory": [{"ceiling": {"per_second": 1e-3}}]}))
