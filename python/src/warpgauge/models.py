"""The parts of requests and answers that users see, as in `openapi/warpgauge.yaml`.

A test compares every field with the specification. Answers may have more fields.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict

Dtype = Literal[
    "float64", "float32", "float16", "bfloat16", "float8_e4m3", "float8_e5m2",
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool", "complex64", "complex128",
    "float8_e8m0fnu", "float4_e2m1fn_x2", "int4x2", "uint4x2",
]  # fmt: skip
Role = Literal["input", "output", "inout", "scratch"]
ArgKind = Literal["tensor", "int", "float", "bool", "str", "none", "struct", "pointers", "texture", "surface"]
KernelType = Literal[
    "cuda", "ptx", "cubin", "fatbin", "torch", "torch_cuda", "triton", "multi_kernel", "library",
    "program",
]  # fmt: skip
Library = Literal["cusparse", "cublas"]
LibraryFunction = Literal["spmv", "gemm"]
JobKind = Literal["evaluate", "execute", "compare", "sweep", "gate"]
JobState = Literal[
    "submitted", "queued", "compiling", "validating", "profiling",
    "completed", "failed", "cancelled", "timed_out",
]  # fmt: skip
ResponseStatus = Literal["success", "error"]
ErrorStatus = Literal["client_error", "error"]
ValidationStatus = Literal["passed", "failed", "not_checked", "not_run"]
SuiteVerdict = Literal["PASS", "INCONCLUSIVE", "ERROR", "REGRESSION", "INVALID"]
GateOutcome = Literal["PASS", "NEW", "IMPROVED", "INCONCLUSIVE", "ERROR", "MISSING", "REGRESSION", "INVALID"]
KernelVerdict = Literal["correct", "not_checked", "weak", "wrong", "failed", "not_compiled", "error"]
PairedVerdict = Literal["faster", "slower", "same", "inconclusive"]
CountedVerdict = Literal["less_work", "more_work", "same_work", "mixed"]
Compress = Literal["none", "zlib", "zstd"]
DataFormat = Literal["raw", "npy"]
HandleKind = Literal["cuda_ipc", "shared_memory"]
Extent = int | str


class Dim3(TypedDict, total=False):
    x: Extent
    y: Extent
    z: Extent


class TensorData(TypedDict, total=False):
    data_b64: str
    tensor_id: str
    dtype: Dtype
    shape: list[int]
    compress: Compress
    format: DataFormat


class ColumnRange(TypedDict):
    low: float
    high: float


class TensorInit(TypedDict, total=False):
    kind: str
    seed: int
    mean: float
    std: float
    low: float
    high: float
    fill_value: float
    start: float
    step: float
    values: list[float]
    columns: list[ColumnRange]
    unique: bool
    of: str
    block: list[int]
    layout: Literal["rows", "transposed", "tiles_128x4"]


class TensorSpec(TypedDict, total=False):
    shape: list[Extent]
    dtype: Dtype
    data: TensorData
    init: TensorInit


class TextureSpec(TypedDict, total=False):
    tensor: str
    channels: int
    address: Literal["clamp", "wrap", "mirror", "border"]
    filter: Literal["point", "linear"]
    normalized: bool
    read: Literal["element", "normalized"]
    layered: bool
    array: bool


class SurfaceSpec(TypedDict, total=False):
    tensor: str
    channels: int
    layered: bool


class ArgSpec(TypedDict, total=False):
    name: str
    type: ArgKind
    role: Role
    value: bool | int | float | str
    fields: dict[str, Any]
    pointers: list[Any]
    texture: TextureSpec
    surface: SurfaceSpec
    tensor_spec: TensorSpec
    symbol: str
    is_meta: bool
    c_type: str


class Launch(TypedDict, total=False):
    grid: Dim3
    block: Dim3
    cluster: Dim3
    cooperative: bool
    shared_memory_bytes: Extent
    num_warps: int
    num_stages: int
    num_ctas: int
    maxnreg: int


CopyStep = TypedDict("CopyStep", {"from": str, "to": str}, total=False)
LaunchStep = TypedDict(
    "LaunchStep",
    {
        "kernel": str,
        "args": list[Any],
        "grid": Dim3,
        "block": Dim3,
        "shared_memory_bytes": Extent,
        "cluster": Dim3,
        "cooperative": bool,
        "memset": str,
        "value": int,
        "memcpy": "CopyStep",
        "swap": list[str],
        "steps": "list[LaunchStep]",
        "repeat": Extent,
        "index": str,
        "while": str,
        "most": Extent,
    },
    total=False,
)


class IoContract(TypedDict, total=False):
    args: list[ArgSpec]
    launch: Launch


class KernelMetadata(TypedDict, total=False):
    kernel_name: str
    library: Library
    function: LibraryFunction
    function_name: str
    class_name: str
    entry_point: str
    compiler_options: list[str]
    configuration: int
    name_expressions: list[str]
    arguments: list[str]
    stdin: str


class KernelCode(TypedDict, total=False):
    kernel_type: KernelType
    source_code: str
    binary_b64: str
    metadata: KernelMetadata
    io: IoContract
    launches: list[LaunchStep]
    setup: list[LaunchStep]


class Expected(TypedDict, total=False):
    data: TensorData
    kernel: KernelCode
    text: str
    contains: str
    code: int


class Tolerance(TypedDict, total=False):
    atol: float
    rtol: float
    allow_non_finite: bool
    required_matched_ratio: float


class ScalesOf(TypedDict, total=False):
    of: str
    block: list[int]
    layout: Literal["rows", "transposed", "tiles_128x4"]


class CompareAs(TypedDict, total=False):
    any_order: bool
    segments: str
    equal: str
    along: list[str]
    up_to: str
    mask: str
    empty: float
    through: str
    scales: ScalesOf


class EvaluateRequest(TypedDict, total=False):
    kernel: KernelCode
    expected: dict[str, Expected]
    num_trials: int
    return_outputs: Literal["none", "all"] | list[str]
    timeout: float
    tolerance: Tolerance
    compare_as: dict[str, CompareAs]
    allow_weak: bool


class ValidationError(TypedDict):
    field: str
    message: str
    type: str


class ErrorBody(TypedDict, total=False):
    status: ErrorStatus
    code: str
    error: str
    detail: str
    path: str
    line: int
    column: int
    details: str
    job_id: str
    validation_errors: list[ValidationError]


class Accepted(TypedDict):
    job_id: str
    status: JobState
    status_url: str
    existing: bool


class CancelReport(TypedDict):
    job_id: str
    outcome: Literal["cancelled", "stopping", "ended"]
    state: JobState


class OutputReport(TypedDict, total=False):
    dtype: Dtype
    shape: list[int]
    blake3: str
    data_b64: str
    compress: Compress
    format: DataFormat


class KeptOutput(TypedDict, total=False):
    tensor_id: str
    device: str
    reason: str


class RuntimeStats(TypedDict, total=False):
    mean: float
    std: float
    min: float
    max: float
    median: float
    median_ci_low: float
    median_ci_high: float
    percentile_95: float
    percentile_99: float
    samples: int


class KernelExecResult(TypedDict, total=False):
    compiled: bool
    correctness: bool | None
    runtime: float | None
    runtime_stats: RuntimeStats | None
    compilation_error: str | None
    validation_error: str | None


class FailureReport(TypedDict):
    stage: str
    code: str
    message: str


class Reason(TypedDict):
    code: str
    message: str


class Weakness(Reason, total=False):
    output: str
    blocks: bool


class ValidationReport(TypedDict, total=False):
    status: ValidationStatus
    reasons: list[Reason]
    weaknesses: list[Weakness]
    unchecked: list[str]


class EvaluateResponse(TypedDict, total=False):
    job_id: str
    status: ResponseStatus
    verdict: KernelVerdict
    gpu_type: str
    kernel_exec_result: KernelExecResult
    validation: ValidationReport
    failure: FailureReport
    outputs: dict[str, OutputReport]
    kept_outputs: dict[str, KeptOutput]
    printed: str


class PairedComparison(TypedDict, total=False):
    verdict: PairedVerdict
    speedup: float
    speedup_ci_low: float
    speedup_ci_high: float
    confidence: float
    p_value: float
    margin: float
    blocks_used: int
    clock_induced: bool


class CountedComparison(TypedDict, total=False):
    verdict: CountedVerdict
    warp_instructions: float
    global_sectors: float


class CandidateReport(TypedDict, total=False):
    name: str
    evaluation: EvaluateResponse
    comparison: PairedComparison
    counted: CountedComparison
    identical_code: bool
    not_compared: str


class CompareResponse(TypedDict, total=False):
    job_id: str
    status: ResponseStatus
    verdict: KernelVerdict
    reference: EvaluateResponse
    candidates: list[CandidateReport]
    comparison: PairedComparison
    counted: CountedComparison
    not_compared: str


class SweepPoint(TypedDict, total=False):
    index: int
    values: dict[str, Any]
    status: str
    verdict: KernelVerdict
    correctness: bool
    runtime_stats: RuntimeStats
    gbps: float
    gflops: float
    total_ms: float


class SweepTable(TypedDict):
    columns: list[str]
    rows: list[list[Any]]


class SweepAxis(TypedDict):
    name: str
    values: list[Any]


class SweepResponse(TypedDict, total=False):
    axes: list[SweepAxis]
    job_id: str
    status: ResponseStatus
    verdict: KernelVerdict
    counts: dict[str, int]
    points: list[SweepPoint]
    table: SweepTable
    total_ms: float


class GateCaseReport(TypedDict, total=False):
    name: str
    metric: str
    outcome: GateOutcome
    kernel_verdict: KernelVerdict
    detail: str
    blocking: bool
    duration_s: float


class GateReport(TypedDict, total=False):
    verdict: SuiteVerdict
    exit_code: int
    statement: str
    suite: str
    job_id: str
    cases: list[GateCaseReport]
    notes: list[str]


class SweepView(TypedDict, total=False):
    points: int
    points_done: int
    result: SweepResponse


class JobView(TypedDict, total=False):
    job_id: str
    kind: JobKind
    state: JobState
    status: ResponseStatus
    verdict: KernelVerdict
    attempt: int
    trials_done: int
    label: str
    code: str
    error: str
    created_at: float
    finished_at: float
    result: EvaluateResponse
    comparison: CompareResponse
    sweep: SweepView
    gate: GateReport


class _EventHead(TypedDict):
    event: str
    job_id: str
    state: JobState
    attempt: int
    trials_done: int
    elapsed_s: float


class Event(_EventHead, total=False):
    """An event of a job; `event` is `progress` or `end`. The specification has no schema with this name."""

    stage: str
    error: str
    ahead: int
    statistics: dict[str, float]
    points: int
    points_done: int


class SharedTensor(TypedDict, total=False):
    tensor_id: str
    shape: list[int]
    dtype: str
    device: str
    sample_rate: int | None
    message: str
    element_type: Dtype
    element_size: int
    numel: int
    nbytes: int
    held_bytes: int
    kind: HandleKind
    name: str
    original_filename: str | None
    created_at: float
    expires_in_s: float
    leases: int


class TensorList(TypedDict, total=False):
    tensors: list[SharedTensor]
    count: int
    held_bytes: int


class TensorHandle(TypedDict, total=False):
    tensor_id: str
    kind: HandleKind
    ipc_handle: str | None
    event_handle: str | None
    shared_memory: str | None
    offset: int
    nbytes: int
    allocation_bytes: int
    shape: list[int]
    strides: list[int]
    dtype: str
    element_type: Dtype
    device: str
    device_uuid: str | None
    data_ptr: int
    element_size: int
    numel: int
    sample_rate: int | None
    emulator_library: str
    emulator_ipc_dir: str
    lease_id: str
    lease_s: float
