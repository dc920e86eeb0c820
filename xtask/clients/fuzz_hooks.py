"""Hooks of schemathesis: no generated request may keep its kernel running for longer than the fuzzer waits.

A request that says nothing gives its kernel 120 seconds, and may give it 600. Both are legitimate, and
the emulated device uses them up: 6,144 launches over a million elements, say. So valid times are
shortened here, in every request that has a kernel. Invalid ones stay as they were generated.
"""

import schemathesis

#: Seconds that a kernel gets. Suites and sweeps run several, one after the other.
LONGEST = 3

#: Fields beside which a request has its `timeout`.
KERNELS = ("kernel", "ref_kernel", "custom_kernel", "ref_code", "custom_code", "candidates")

#: Fields of a sparse product, whose `timeout` is one of its `options`.
MATRICES = ("matrix_data", "mtx_filename")


def is_valid(timeout):
    return isinstance(timeout, int | float) and not isinstance(timeout, bool) and 0.1 <= timeout <= 600


def shorten(fields):
    timeout = fields.get("timeout", LONGEST)
    if is_valid(timeout):
        fields["timeout"] = min(timeout, LONGEST)


def bounded(value):
    """The same value, in which no kernel has more than `LONGEST` seconds."""
    if isinstance(value, list):
        return [bounded(item) for item in value]
    if not isinstance(value, dict):
        return value
    value = {name: bounded(item) for name, item in value.items()}
    if any(name in value for name in KERNELS):
        shorten(value)
    if any(name in value for name in MATRICES) and isinstance(value.setdefault("options", {}), dict):
        shorten(value["options"])
    return value


@schemathesis.hook
def before_call(context, case, **kwargs):
    case.body = bounded(case.body)
