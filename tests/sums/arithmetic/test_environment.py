"""Rounding modes and flushing that another library has set: results are the same, and they are found again.

Results are compared as digests (see environments.py), each environment in a process of its own, in which it
is set before anything of warpsim is imported: tables must not be made in it either, nor kernels compiled.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers.environments import ENVIRONMENTS, control, set_environment, supported
from tests.helpers.families import WHOLE, usual
from tests.sums.products import test_gemm
from tools.digests.digests_file import committed
from warpsim import OperandError, WarpsimError
from warpsim.base import environment
from warpsim.base.environment import default_environment, in_default_environment, is_default
from warpsim.sums.arithmetic.kernels._jit import interpreted

pytestmark = pytest.mark.skipif(not supported(), reason="no way to set an environment for these tests here")
every_environment = pytest.mark.parametrize("name", ENVIRONMENTS)

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    yield
    set_environment("default")


def process(*arguments: str, **variables: str) -> str:
    """The output of Python with these arguments and environment variables."""
    paths = str(ROOT)
    variables = {**os.environ, "NUMBA_DISABLE_JIT": "0", "PYTHONPATH": paths, **variables}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def results(*arguments: str, **variables: str) -> dict[str, str]:
    """Digests of environments.py, none of whose calls changes the environment."""
    found = json.loads(process(str(ROOT / "tests" / "helpers" / "environments.py"), *arguments, **variables))
    assert found["changed"] == []
    digests: dict[str, str] = found["digests"]
    return digests


@cache
def clean() -> dict[str, str]:
    return results("default")


def different(found: dict[str, str], expected: dict[str, str]) -> list[str]:
    """Names of the results that differ; there are the same ones."""
    assert found.keys() == expected.keys()
    return [name for name in found if found[name] != expected[name]]


def few(environment: str, which: str = "few", **variables: str) -> list[str]:
    """Names of those of a few instructions that differ; a result has the same name among few and all."""
    found = results(environment, which, **variables)
    assert 0 < len(found) < len(clean())
    return different(found, {name: clean()[name] for name in found})


# --- results -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", usual(["flush up"], ["flush up", "down", "zero"]))
def test_results_do_not_depend_on_it(name: str) -> None:
    """Flushing and one rounding at once: a process takes ten seconds, and neither hides the other."""
    assert len(clean()) > usual(300, 400)
    assert different(results(name), clean()) == []


def test_they_are_those_of_every_platform() -> None:
    """After a change that is meant to be one: python -m tools.digests, and the reason in the commit."""
    expected, found = committed(), clean()
    both = [name for name in expected if name in found]
    assert len(both) > usual(250, len(expected) - 1)
    assert [name for name in both if found[name] != expected[name]] == []


def test_nor_without_a_compiler() -> None:
    assert few("flush down", NUMBA_DISABLE_JIT="1") == []


# --- compiled cold, in an environment that is not the default, for a processor of no features ---------

WARM_UP = """
import sys
from tests.helpers.environments import set_environment
set_environment("flush up")
from warpsim.show.cli import cli
cli(["warmup", "--target", CHIP])
"""
EXECUTE = """
from tests.helpers.environments import set_environment
set_environment("flush up")
import numpy as np
import warpsim
from warpsim.sums.execution.compilation_budget import PROCESS
from warpsim.sums.products import warming
PROCESS.limit = 0
for form in warpsim.instructions(CHIP):
    words = {name: np.zeros((32, n), np.uint32) for name, n in form.registers.items() if name != "d"}
    warpsim.execute(form, **words)
    shapes = [form.matrix_shape(operand) for operand in "abc"]
    many = [np.zeros((1 << 12, *shape), form.format(x).code_dtype) for x, shape in zip("abc", shapes)]
    warpsim.matmul(form, *many)
    if form.c == form.d:
        warpsim.gemm(form, *(matrix[0] for matrix in many))
"""
DIGEST = """
from tests.sums.products import test_gemm
print(test_gemm.digest({every}))
"""


@pytest.fixture(scope="module")
def cold(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A folder of kernels that is empty at first; the tests below fill it in their order."""
    return {"NUMBA_CPU_NAME": "generic", "NUMBA_CACHE_DIR": str(tmp_path_factory.mktemp("kernels"))}


def compiled(variables: dict[str, str]) -> set[str]:
    return {path.name for path in Path(variables["NUMBA_CACHE_DIR"]).rglob("*.nbc")}


@pytest.mark.skipif(interpreted(), reason="nothing is compiled")
def test_nothing_is_compiled_after_warming_up(cold: dict[str, str]) -> None:
    chip = usual("sm_70", "sm_75")
    process("-c", f"CHIP = {chip!r}{WARM_UP}", **cold)
    warm = compiled(cold)
    assert warm
    process("-c", f"CHIP = {chip!r}{EXECUTE}", **cold)
    assert compiled(cold) == warm


def test_nor_do_kernels_that_are_compiled_in_it(cold: dict[str, str]) -> None:
    assert few("flush up", "few" if WHOLE else "one", **cold) == []


def test_nor_does_the_processor_that_they_are_compiled_for(cold: dict[str, str]) -> None:
    every = usual(3, 1)
    assert process("-c", DIGEST.format(every=every), **cold).strip() == test_gemm.digest(every)


FAST = """
import ctypes, sys
from tests.helpers.environments import control
before = control()
library = ctypes.CDLL(sys.argv[1])
if control() == before:
    sys.stdout.write("has set nothing")
    sys.exit()
found = control()
import numpy as np
import warpsim
from warpsim.sums.execution.compilation_budget import PROCESS
form = warpsim.decode("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", target="sm_80")
A, B, C = np.zeros((16, 16), np.uint16), np.zeros((16, 8), np.uint16), np.zeros((16, 8), np.uint32)
A[0, 0], B[0, 0], C[1, 1] = 1, 0x3C00, 7
for PROCESS.limit in (1 << 23, 0):  # by NumPy, then by kernels
    for D in (warpsim.gemm(form, A, B, C, threads=2), warpsim.matmul(form, A, B, C)):
        assert D[0, 0] == 2.0**-24
        assert D.view(np.uint32)[1, 1] == 7
assert control() == found
"""


def test_a_library_built_with_fast_math(tmp_path: Path) -> None:
    library = tmp_path / "fast.so"
    command = ["gcc", "-ffast-math", "-shared", "-fPIC", "-x", "c", os.devnull, "-o", str(library)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no compiler that builds it")
    if said := process("-c", FAST, str(library)):
        pytest.skip(f"the library {said}")


# --- the environment ---------------------------------------------------------------------------------


@every_environment
def test_it_is_noticed_replaced_and_restored(name: str) -> None:
    set_environment("default")
    assert is_default()
    default = control()
    set_environment(name)
    found = control()
    assert not is_default()
    with default_environment():
        assert is_default()
        assert control() == default
        with default_environment():
            assert is_default()
        assert is_default()
    assert control() == found


def test_flushing_is_noticed_of_operands_and_of_results_alone() -> None:
    if os.uname().machine != "x86_64":
        pytest.skip("flushing is one here")
    for name in ("operands", "results"):
        set_environment(name)
        assert not is_default()


def test_it_is_restored_after_an_error() -> None:
    set_environment("flush up")
    found = control()
    with pytest.raises(ZeroDivisionError), default_environment():
        1 / 0  # noqa: B018
    assert control() == found
    form = warpsim.decode("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", target="sm_80")
    A, B = np.zeros((16, 16), np.float16), np.zeros((16, 8), np.float16)
    for wrong in (lambda: warpsim.gemm(form, A, B[1:]), lambda: warpsim.matmul(form, A, B[1:])):
        with pytest.raises(OperandError):
            wrong()
        assert control() == found


def test_what_is_set_inside_a_block_is_not_taken_for_the_default() -> None:
    with default_environment():
        set_environment("up")  # as a library might that is loaded there
        with default_environment():
            assert is_default()
        assert not is_default()


@every_environment
def test_it_is_each_threads_own(name: str) -> None:
    form = warpsim.decode("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", target="sm_80")
    rng = np.random.default_rng(0)
    A = rng.integers(0, 0x7C00, (300, 64), np.uint16) & 0x83FF
    B = (rng.standard_normal((64, 300)) * 2.0**-10).astype(np.float16)
    expected = warpsim.gemm(form, A, B, promote_every=1)
    seen: list[Any] = []

    def work() -> None:
        set_environment(name)
        found = control()
        seen.append(warpsim.gemm(form, A, B, promote_every=1, threads=2))
        seen.append(control() == found)

    thread = Thread(target=work)
    thread.start()
    thread.join()
    assert is_default()
    assert seen[1]
    assert np.array_equal(seen[0], expected)


# --- what cannot be -----------------------------------------------------------------------------------


def test_where_it_cannot_be_set_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "_setter", lambda: lambda: lambda: None)
    with default_environment():
        pass
    set_environment("flush")
    found = control()
    message = "^another library has set a rounding mode, or flushes subnormal numbers to zero"
    with pytest.raises(WarpsimError, match=message), default_environment():
        pass
    assert control() == found


def test_generators_would_hand_it_to_their_callers() -> None:
    def generator() -> Iterator[int]:
        yield 1

    with pytest.raises(AssertionError, match="would hand its environment to its caller"):
        in_default_environment(generator)


class Control:
    """Microsoft's _controlfp_s, on a word."""

    def __init__(self, word: int) -> None:
        self.word = word

    def __call__(self, current: Any, new: int, mask: int) -> int:
        self.word = self.word & ~mask | new & mask
        current._obj.value = self.word
        return 0


def test_the_control_word_of_windows() -> None:
    control_word = Control(0x0108021F)  # rounds up, flushes, and has masks of exceptions
    restore = environment._by_control_word(control_word)()
    assert control_word.word == 0x0008001F
    restore()
    assert control_word.word == 0x0108021F
