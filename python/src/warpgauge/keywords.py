"""Keywords of the clients' methods, with which type checkers find misspelt keywords.

A test compares every keyword with the fields of the request in the specification. `None` leaves a field out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

from .models import CompareAs, Compress, DataFormat, Tolerance

CacheState = Literal["cold", "hot"]
InputChoice = Literal["fresh", "same"]
PresetName = Literal["quick", "ci", "deep"]
Regime = Literal["isolated", "sustained"]
DeviceKind = Literal["cuda", "emulator"]
Isolation = Literal["warm", "fresh", "sealed"]
Checker = Literal["all", "memcheck", "racecheck", "initcheck", "synccheck"]


class MeasureSpec(TypedDict, total=False):
    cache: CacheState
    inputs: InputChoice
    max_time: float | None
    min_warmup_time: float | None
    preset: PresetName
    rank_unlisted_state: bool
    regime: Regime


class ProfileSpec(TypedDict, total=False):
    metrics: list[str]
    tools: list[str]


class Requirements(TypedDict, total=False):
    architecture: str | None
    device: DeviceKind | None
    gpu_model: str | None
    tools: list[str]


class Work(TypedDict, total=False):
    bytes: float | None
    flops: float | None


class DecisionSpec(TypedDict, total=False):
    alpha: float | None
    blocks: int | None
    equivalence: float | None
    margin: float | None


class KeepOutput(TypedDict, total=False):
    cuda_device: int
    evict: bool
    name: str | None
    sample_rate: int | None
    ttl_s: float | None


class OutputEncoding(TypedDict, total=False):
    compress: Compress
    format: DataFormat


class CommonFields(TypedDict, total=False):
    """Fields that evaluations and comparisons share."""

    allow_weak: bool | None
    compare_as: dict[str, CompareAs] | None
    isolation: Isolation | None
    measure: MeasureSpec | None
    num_trials: int | None
    profile: ProfileSpec | None
    requires: Requirements | None
    timeout: float | None
    tolerance: Tolerance | None
    work: Work | None


class CheckFields(CommonFields, total=False):
    """Fields that evaluations and sweeps share."""

    output_encoding: OutputEncoding | None
    return_outputs: Literal["none", "all"] | list[str] | None
    sanitize: bool | Checker | None


class EvaluateFields(CheckFields, total=False):
    """Fields of `EvaluateRequest`, without `kernel` and `expected`."""

    keep_outputs: dict[str, KeepOutput] | None


class CompareFields(CommonFields, total=False):
    """Fields of `CompareRequest`, without kernels. `tolerance` replaces its four fields."""

    allow_non_finite: bool | None
    atol: float | None
    decision: DecisionSpec | None
    measure_identical: bool | None
    required_matched_ratio: float | None
    rtol: float | None


class KernelKeywords(TypedDict, total=False):
    """Keywords of `build`, beside a kernel and its arguments."""

    launch: Mapping[str, object] | Sequence[Mapping[str, object]] | None
    outputs: Sequence[str]
    constants: Mapping[str, object] | None
    expected: Mapping[str, object] | None
    reference: object
    setup: Sequence[Mapping[str, object]]


class SweepFields(CheckFields, KernelKeywords, total=False):
    """Keywords of `sweep`, without `axes`."""

    include_reports: bool | None


class SubmitFields(EvaluateFields, SweepFields, CompareFields, total=False):
    """Keywords of `submit`: those of each kind of job."""

    axes: Mapping[str, Sequence[object]] | None


class MapFields(EvaluateFields, KernelKeywords, total=False):
    """Keywords of `map` for kernels."""

    label: str | None
    priority: int | None


class FunctionFields(TypedDict, total=False):
    """Keywords of `map` for a function."""

    cores: int | None
    memory: int | str | None
    pickles: bool | None
    seed: int | None
    stand_in: bool | None
    timeout: float | None
