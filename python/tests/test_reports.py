"""What reports say, and that nothing of a server's reaches a notebook as markup."""

from __future__ import annotations

import copy
import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from conftest import REPORT

from warpgauge import ComparisonReport, Report, SweepReport
from warpgauge.drawing import distribution, roofline
from warpgauge.readable import duration_ms

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
        "runtime_stats": {"median": 27.644, "min": 26.0, "max": 29.5, "samples": 10},
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
    "measurement": {"samples_ms": [26.0, 26.5, 27.0, 27.388, 27.5, 27.788, 28.0, 28.5, 29.5, 99.0], "notes": ["n"]},
}


def clean(html: str) -> None:
    root = ET.fromstring(html if html.startswith("<div") else f"<div>{html}</div>")
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    known = {"div", "b", "p", "pre", "svg", "rect", "text", "line", "polyline", "circle", "title"}
    known |= {"table", "tr", "td", "th"}
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
    table = {"columns": [EVIL, "n", "median_ms"], "rows": [[EVIL, EVIL, 1], [1.5, 2, 3], [None, 4, 10**400], []]}
    table["rows"] += [[f"{EVIL}{i}", f"{EVIL}{i % 40}", i] for i in range(1, 3000)]
    table["rows"] = [row for row in table["rows"] if len(row) == 3]
    axes = [{"name": EVIL, "values": []}, {"name": "n", "values": []}, 3]
    sweep = {"job_id": "j", "status": "success", "counts": {EVIL: 1}, "points": [], "table": table, "axes": axes}
    sweep["best"] = {}
    html = SweepReport(sweep)._repr_html_()  # type: ignore[arg-type]
    clean(html)
    assert "<polyline" in html and len(html) < 1 << 20
    sweep["best"] = {"not_ranked": EVIL}
    clean(SweepReport(sweep)._repr_html_())  # type: ignore[arg-type]


def test_an_explanation_has_what_counts() -> None:
    text = Report(FULL).explain()  # type: ignore[arg-type]
    for part in (
        "wrong, median 27.64 ms of 10 launches on GPU",
        "mismatch: m",
        "at [0]: 1, expected 2",
        "bound by dram",
    ):
        assert part in text
    html = Report(FULL)._repr_html_()  # type: ignore[arg-type]
    assert html.count("<svg") == 3


def test_a_notebook_has_one_median_in_one_unit() -> None:
    html = Report(FULL)._repr_html_()  # type: ignore[arg-type]
    # The sample that does not count is no part of the picture; the ends and the median are the report's.
    assert html.count("median 27.64 ms") == 2 and "99.00 ms" not in html
    assert "26.00 ms" in html and "29.50 ms" in html and "µs" not in html and "e+" not in html
    assert "</b> median 27.64 ms" in html
    # The label stands where the median is.
    svg = ET.fromstring(re.search("<svg.*?</svg>", html)[0])  # type: ignore[index]
    mark = next(one for one in svg.iter() if one.tag.endswith("line"))
    label = next(one for one in svg.iter() if (one.text or "").startswith("median"))
    assert float(mark.get("x1", "")) == pytest.approx(320 * (27.644 - 26) / 3.5, abs=0.1)
    assert mark.get("x1") == label.get("x")


def test_a_median_of_an_even_number_is_the_mean_of_two() -> None:
    assert "median 4.500 ms" in distribution([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0.0, "0 ms"),
        (0.000_512, "512.0 ns"),
        (0.012_345, "12.35 µs"),
        (1.0, "1.000 ms"),
        (27.64, "27.64 ms"),
        (999.94, "999.9 ms"),
        (12_345.0, "12.35 s"),
        (1e9, "1000000 s"),
    ],
)
def test_times_are_written_as_on_the_command_line(ms: float, text: str) -> None:
    assert duration_ms(ms) == text


def sweep(best: dict[str, Any]) -> SweepReport:
    rows = [
        [n, block, status, n / block / 1e3, n * 10]
        for n in (1024, 4096, 65536)
        for block, status in ((64, "correct"), (256, "wrong" if n == 4096 else "correct"))
    ]
    raw = {
        "job_id": "j",
        "status": "success",
        "counts": {"correct": 5, "wrong": 1},
        "points": [{}] * 6,
        "axes": [{"name": "n", "values": [1024, 4096, 65536]}, {"name": "block", "values": [64, 256]}],
        "table": {"columns": ["n", "block", "status", "median_ms", "warp_instructions", "gbps"], "rows": []},
        "best": best,
    }
    raw["table"]["rows"] = [[*row, None] for row in rows]  # type: ignore[index]
    return SweepReport(raw)  # type: ignore[arg-type]


def test_a_sweep_is_a_plot() -> None:
    html = sweep({})._repr_html_()
    clean(html)
    svg = ET.fromstring(re.search("<svg.*?</svg>", html)[0])  # type: ignore[index]
    lines = [one.get("points", "").split() for one in svg.iter() if one.tag.endswith("polyline")]
    assert [len(line) for line in lines] == [3, 3]
    # A larger time is higher; sizes that differ much stand on a logarithmic axis.
    xs, ys = zip(*[map(float, place.split(",")) for place in lines[0]], strict=True)
    assert xs[1] - xs[0] == pytest.approx((xs[2] - xs[0]) / 3, abs=0.2) and list(ys) == sorted(ys, reverse=True)
    words = [one.text for one in svg.iter() if one.text]
    assert {"median time", "n", "block = 64", "block = 256", "1024", "65536", "4.000 µs", "1.024 ms"} <= set(words)
    assert words.count("block = 256: 16.00 µs, not correct") == 1
    assert "<th>median</th>" in html and "<td>16.00 µs</td>" in html and "gbps" not in html and "GB/s" not in html


def test_of_equal_axes_the_wider_goes_across() -> None:
    one = sweep({})
    rows = one.raw["table"]["rows"]
    one.raw["table"]["rows"] = [row for row in rows if row[0] != 4096]
    assert "over n" in one._repr_html_()
    for row in one.raw["table"]["rows"]:
        row[0] = {1024: 100, 65536: 101}[row[0]]
    assert "over block" in one._repr_html_()


def test_counts_are_plotted_where_times_say_nothing() -> None:
    html = sweep({"not_ranked": "the points ran on the emulator"})._repr_html_()
    assert "warp instructions of one launch" in html and "the points ran on the emulator" in html
    assert "10.2 k" in html


def test_a_sweep_without_a_line_is_a_table() -> None:
    one = sweep({})
    one.raw["table"]["rows"] = one.raw["table"]["rows"][:1]
    assert "<svg" not in one._repr_html_()
    one.raw["axes"] = []
    assert "<table" in one._repr_html_()


def test_a_comparison_says_how_much_faster() -> None:
    compared = {"verdict": "faster", "speedup": 1.3104, "speedup_ci_low": 1.29, "speedup_ci_high": 1.33}
    candidate = {"name": "b.cu", "evaluation": FULL, "comparison": compared}
    raw = {"job_id": "j", "status": "success", "reference": FULL, "candidates": [candidate]}
    report = ComparisonReport(raw)  # type: ignore[arg-type]
    line = "b.cu: faster, 1.310 times as fast as the reference (1.290 to 1.330)"
    assert line in report.explain() and line in report._repr_html_()
    assert "not compared" in repr(report)


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
    ET.fromstring(distribution([1.0, 2.0] * 5, {"min": "x", "max": None, "median": 1e300}))
    assert distribution([1.0] * 9) == ""
    assert roofline(None) == "" and roofline({"points": [{"intensity": 1}]}) == ""
    points = [{"intensity": 1e-200, "rate": 1e200}, {"intensity": 10**400, "rate": 1}] * 100
    ET.fromstring(roofline({"points": points, "compute": [{}], "memory": [{"ceiling": {"per_second": 1e-3}}]}))
