"""Reports as objects. `raw` has the server's whole answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from .errors import ProtocolError
from .models import CompareResponse, EvaluateResponse, RuntimeStats, SweepPoint, SweepResponse
from .readable import duration_ms, finite, significant
from .tensors import Outputs

# Maximum number of lines of each kind in an explanation.
_MOST = 10


def plain(text: object) -> str:
    """Returns a server's text for people: bounded, and without control characters."""
    shown = str(text)[:2000]
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in shown)


def _object(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ProtocolError(f"`{where}` of the report is no object: is the server of another version?")
    return cast(dict[str, Any], value)


class Report:
    """The report of one evaluation."""

    def __init__(self, raw: EvaluateResponse, kinds: Mapping[str, str] | None = None) -> None:
        self.raw = raw
        self._result = _object(raw.get("kernel_exec_result"), "kernel_exec_result")
        self._validation = _object(raw.get("validation", {}), "validation")
        self.outputs = Outputs(cast(Any, _object(raw.get("outputs", {}), "outputs")), kinds or {})

    @property
    def job_id(self) -> str:
        return self.raw["job_id"]

    @property
    def compiled(self) -> bool:
        return self._result.get("compiled") is True

    @property
    def correct(self) -> bool | None:
        """Whether all outputs are right. `None` means that nothing was checked, that a useless kernel would pass too
        (`weak`), or that the machine lacked something."""
        value = self._result.get("correctness")
        if value is None and self.raw.get("status") == "success" and not self.compiled:
            return False
        return value if isinstance(value, bool) else None

    @property
    def runtime(self) -> RuntimeStats | None:
        """Statistics of the launch times, milliseconds. On the emulated device they say nothing about a GPU."""
        return cast("RuntimeStats | None", self._result.get("runtime_stats"))

    @property
    def median_us(self) -> float | None:
        """Median time of a launch, microseconds; `None` if it was not timed."""
        return None if self.runtime is None else self.runtime["median"] * 1e3

    @property
    def samples_ms(self) -> list[float]:
        """Timed launches in order, milliseconds."""
        measured = cast(Any, self.raw).get("measurement", {})
        return [s for s in measured.get("samples_ms", []) if isinstance(s, (int, float))]

    @property
    def roofline(self) -> dict[str, Any] | None:
        """The kernel's place below the limits of the device, if `profile` was requested."""
        metrics = self._result.get("metadata", {}).get("device_metrics") or {}
        return cast("dict[str, Any] | None", metrics.get("roofline"))

    @property
    def verdict(self) -> str:
        """`correct`, `not_checked`, `weak`, `wrong`, `failed`, `not_compiled` or `error`."""
        if (said := self.raw.get("verdict")) is not None:
            return str(said)
        # The report was stored by an earlier version.
        if self.raw.get("status") == "error":
            return "error"
        if not self.compiled:
            return "not_compiled"
        if "failure" in self.raw:
            return "failed"
        return {True: "correct", False: "wrong", None: "not_checked"}[self.correct]

    def explain(self) -> str:
        """Returns the verdict and the evidence for and against the kernel, in a few lines."""
        lines = [self._headline()]
        if failure := self.raw.get("failure"):
            lines.append(f"  {failure.get('code')}: {failure.get('message')}")
        for key in ("compilation_error", "validation_error"):
            # The reasons have the same content for each output.
            said = key == "validation_error" and self._validation.get("reasons")
            if (text := self._result.get(key)) and not said:
                lines += [f"  {line}" for line in str(text).splitlines()[:_MOST]]
        for kind in ("reasons", "weaknesses"):
            for reason in self._validation.get(kind, [])[:_MOST]:
                lines.append(f"  {reason.get('code')}: {reason.get('message')}")
        for name, compared in list(self._validation.get("outputs", {}).items())[:_MOST]:
            lines.append(f"  {name}: {compared.get('matched')} of {compared.get('elements')} elements match")
            for miss in compared.get("first_mismatches", [])[:3]:
                lines.append(f"    at {miss.get('index')}: {miss.get('actual')}, expected {miss.get('expected')}")
        if roof := self.roofline:
            bound = roof.get("bound_by")
            lines.append(f"  {f'bound by {bound}' if bound else 'bottleneck unknown'}: {roof.get('bound_reason')}")
        for note in cast(Any, self.raw).get("measurement", {}).get("notes", [])[:_MOST]:
            lines.append(f"  {note}")
        return "\n".join(plain(line) for line in lines)

    def _headline(self) -> str:
        time = ""
        if (stats := self.runtime) is not None:
            low, high = finite(stats.get("median_ci_low")), finite(stats.get("median_ci_high"))
            interval = f" ({duration_ms(low)} to {duration_ms(high)})" if low and high else ""
            time = f", median {duration_ms(stats['median'])}{interval} of {stats.get('samples')} launches"
        return f"{self.verdict}{time} on {self.raw.get('gpu_type', 'no device')}"

    def __repr__(self) -> str:
        return f"<Report {plain(self._headline())}>"

    def _repr_html_(self) -> str:
        from .html import report_html

        return report_html(self)


class ComparisonReport:
    """The report of a comparison. Properties are those of the first candidate unless stated otherwise."""

    def __init__(
        self, raw: CompareResponse, kinds: Mapping[str, str] | None = None, notes: tuple[str, ...] = ()
    ) -> None:
        self.raw = raw
        #: Notes on fields of a contract that the comparison did not use.
        self.notes = notes
        self.reference = Report(raw["reference"], kinds)
        self.candidates = {
            one.get("name", "custom"): Report(one["evaluation"], kinds) for one in raw.get("candidates", [])
        }

    @property
    def correct(self) -> bool:
        """Whether every candidate is right."""
        return all(report.correct is True for report in self.candidates.values())

    @property
    def kernel_verdict(self) -> str | None:
        """The worst verdict on any candidate, independent of times; `None` in reports of earlier versions."""
        return self.raw.get("verdict")

    @property
    def verdict(self) -> str | None:
        """`faster`, `slower`, `same` or `inconclusive`; on the emulated device `less_work`, `more_work`, …"""
        compared = self.raw.get("comparison") or self.raw.get("counted")
        return compared["verdict"] if compared else None

    @property
    def speedup(self) -> float | None:
        """Time of the reference over that of the candidate; `None` if times are not compared."""
        return self.raw.get("comparison", {}).get("speedup")

    def verdicts(self) -> list[str]:
        """Returns a line for each candidate: its verdict beside the reference, and the speed-up with its interval."""
        lines = []
        for one in self.raw.get("candidates", []):
            compared: Any = one.get("comparison") or one.get("counted") or {}
            line = f"{one.get('name', 'custom')}: {compared.get('verdict', 'not compared')}"
            if (speedup := finite(compared.get("speedup"))) is not None:
                low, high = finite(compared.get("speedup_ci_low")), finite(compared.get("speedup_ci_high"))
                interval = f" ({significant(low)} to {significant(high)})" if low and high else ""
                line += f", {significant(speedup)} times as fast as the reference{interval}"
            lines.append(line)
        return lines

    def explain(self) -> str:
        """Returns the verdict on each candidate, in a few lines."""
        lines = [f"reference: {self.reference.explain()}"]
        candidates = zip(self.verdicts(), self.raw.get("candidates", []), self.candidates.values(), strict=True)
        for verdict, one, report in candidates:
            lines.append(verdict)
            if why := one.get("not_compared"):
                lines.append(f"  {why}")
            lines += [f"  {line}" for line in report.explain().splitlines()]
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(plain(line) for line in lines)

    def __repr__(self) -> str:
        return f"<ComparisonReport {plain(self.verdict or 'not compared')} of {len(self.candidates)}>"

    def _repr_html_(self) -> str:
        from .html import comparison_html

        return comparison_html(self)


class SweepReport:
    """The table of a sweep: a row for each point."""

    def __init__(self, raw: SweepResponse) -> None:
        self.raw = raw
        _object(raw.get("table"), "table")

    @property
    def points(self) -> list[SweepPoint]:
        return self.raw["points"]

    @property
    def verdict(self) -> str | None:
        """The worst verdict on any point; `None` if no point has a verdict."""
        return self.raw.get("verdict")

    @property
    def correct(self) -> bool:
        """Whether every point is right."""
        return all(point.get("correctness") is True for point in self.points)

    @property
    def best(self) -> dict[str, Any]:
        """The best points by each criterion; `not_ranked` is the reason if they are not ranked by time."""
        return cast(dict[str, Any], cast(Any, self.raw).get("best", {}))

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yields the rows as dicts by the names of the columns."""
        table = self.raw["table"]
        for row in table["rows"]:
            yield dict(zip(table["columns"], row, strict=True))

    def explain(self) -> str:
        """Returns the number of points by their status."""
        counts = ", ".join(f"{n} {status}" for status, n in self.raw.get("counts", {}).items() if n)
        return plain(f"{len(self.points)} points: {counts}")

    def __repr__(self) -> str:
        return f"<SweepReport {self.explain()}>"

    def _repr_html_(self) -> str:
        from .html import sweep_html

        return sweep_html(self)
