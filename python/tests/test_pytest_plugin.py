"""The plug-in, in a pytest of its own."""

from __future__ import annotations

import pytest
from conftest import VECTOR_ADD

import warpgauge

CONTRACT = """
kernel:
  kernel_type: cuda
  source_file: {file}
  metadata: {{kernel_name: vector_add}}
  io:
    args:
      - {{name: a, type: tensor, tensor_spec: {{shape: [1000], init: {{kind: randn, seed: 1}}}}}}
      - {{name: b, type: tensor, tensor_spec: {{shape: [1000], init: {{kind: randn, seed: 2}}}}}}
      - {{name: c, type: tensor, role: output, tensor_spec: {{shape: [1000]}}}}
      - {{name: "n", type: int, value: 1000}}
    launch: {{grid: {{x: "ceil_div(n, 256)"}}, block: {{x: 256}}}}
expected:
  c:
    kernel: {{kernel_type: cuda, source_file: good.cu}}
num_trials: 2
"""


@pytest.fixture
def files(pytester: pytest.Pytester) -> pytest.Pytester:
    slow = VECTOR_ADD.replace("a[i] + b[i]", "a[i] + b[i] + sinf(a[i]) * 0.0f")
    sources = {"good": VECTOR_ADD, "slow": slow, "wrong": VECTOR_ADD.replace("a[i] + b[i]", "a[i]")}
    for name, source in sources.items():
        (pytester.path / f"{name}.cu").write_text(source)
        (pytester.path / f"{name}.yaml").write_text(CONTRACT.format(file=f"{name}.cu"))
    return pytester


def test_a_wrong_or_slower_kernel_fails_its_test(files: pytest.Pytester, server: warpgauge.Server) -> None:
    files.makepyfile("""
        import pytest

        @pytest.mark.warpgauge("good.yaml")
        def test_right(): ...

        @pytest.mark.warpgauge("wrong.yaml")
        def test_wrong(): raise AssertionError("not reached")

        @pytest.mark.warpgauge("good.yaml", baseline="slow.yaml")
        def test_faster(): ...

        @pytest.mark.warpgauge("slow.yaml", baseline="good.yaml")
        def test_slower(): ...

        @pytest.mark.warpgauge("good.yaml")
        def test_itself_fails(): assert 1 == 2

        def test_by_the_fixture(warpgauge_check):
            assert warpgauge_check("good.yaml").correct
            with pytest.raises(pytest.fail.Exception, match="expected"):
                warpgauge_check("wrong.yaml")
    """)
    result = files.runpytest_subprocess(f"--warpgauge-server={server.url}", "-rA")
    result.assert_outcomes(passed=3, failed=3)
    result.stdout.fnmatch_lines_random(
        ["wrong on *", "*REGRESSION (more_work)*", "*assert 1 == 2*", "PASSED *test_faster*"]
    )
    result.stdout.no_fnmatch_line("*not reached*")


def test_stored_baselines_that_are_not_there_are_an_error(files: pytest.Pytester, server: warpgauge.Server) -> None:
    files.makepyfile("""
        import pytest

        @pytest.mark.warpgauge("good.yaml", baseline="stored:none-of-that-name")
        def test_it(): ...
    """)
    result = files.runpytest_subprocess(f"--warpgauge-server={server.url}")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*none-of-that-name*"])
