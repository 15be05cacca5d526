"""Executions of a batch that share factors are computed as one product, with the bits of each by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers import nasty
from tests.helpers.environments import ENVIRONMENTS, set_environment, supported
from tests.helpers.families import sample
from warpsim.base.errors import present
from warpsim.isa.operand_places.placements import Inputs
from warpsim.sums.arithmetic.kernels import sharing
from warpsim.sums.arithmetic.kernels._jit import interpreted
from warpsim.sums.execution import fused_registers
from warpsim.sums.execution.compilation_budget import CompilationBudget
from warpsim.sums.execution.fused_registers import fused_call, run

pytestmark = pytest.mark.skipif(interpreted(), reason="Numba compiles nothing")

ALWAYS, NEVER = CompilationBudget(many=0), CompilationBudget(many=1 << 62)
CASES = 43
SPARSE = "mma.sp::ordered_metadata.sync.aligned."
FORMS = (
    ("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", "sm_75"),
    ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "sm_90a"),
    ("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", "sm_80"),
    ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "sm_80"),
    ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "sm_80"),
    ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", "sm_89"),
    ("mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e4m3.f16", "sm_90a"),
    ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", "sm_90a"),
    ("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e3m2.f32", "sm_120a"),
    (f"{SPARSE}m16n8k32.row.col.f32.f16.f16.f32", "sm_90a"),
    (f"{SPARSE}m16n8k32.row.col.f16.f16.f16.f16", "sm_80"),
    (f"{SPARSE}m16n8k16.row.col.f32.tf32.tf32.f32", "sm_80"),
    (f"{SPARSE}m16n8k64.row.col.f32.e4m3.e5m2.f32", "sm_90a"),
)


def _given(form: Any, cases: int, factors: tuple[int, int], rng: Any) -> dict[str, Any]:
    """Return registers of cases that have few different A, with metadata, and B, in no order."""
    counts = dict(zip("abc", (*factors, cases), strict=True))
    words, which = dict[str, Any](), dict[str, Any]()
    for name, count in counts.items():
        element = form.format(name)
        codes = nasty.random_codes(element, (count, *form.matrix_shape(name)), rng)
        if name != "c":  # an infinity makes a whole row of sums infinite: in each second factor only
            finite = np.arange(count)[:, None, None] % 2 == 0
            codes = np.where(nasty.is_special(codes, element) & finite, 1, codes).astype(codes.dtype)
        words[name] = warpsim.pack(form, name, codes)
        which[name] = rng.integers(0, count, cases) if name != "c" else np.arange(cases)
    if form.sparse:
        units = nasty.indices(form, (factors[0], form.shape.m), rng)
        words["e"], which["e"] = warpsim.pack_metadata(form, units), which["a"]
    return {name: words[name][which[name]] for name in words}


def _by_register(words: Any) -> Any:
    return np.ascontiguousarray(words.transpose(2, 0, 1)).transpose(1, 2, 0)


def _counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list of how many groups each batch has from now on."""
    found, groups = list[int](), sharing.groups

    def counted(*arguments: Any) -> Any:
        result = groups(*arguments)
        found.append(len(result[2]))
        return result

    monkeypatch.setattr(fused_registers, "groups", counted)
    return found


@pytest.mark.parametrize(("mnemonic", "target"), sample(FORMS, 4))
def test_bits_are_those_of_each_by_itself(
    mnemonic: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nasty factors, groups of every size, both orders of registers, C of infinities and NaN too."""
    form = warpsim.decode(mnemonic, target=target)
    groups = _counted(monkeypatch)
    given = _given(form, CASES, (5, 3), np.random.default_rng(7))
    expected = warpsim.execute(form, **given, engine="reference")
    for turned in (given, {name: _by_register(words) for name, words in given.items()}):
        call = present(fused_call(form, Inputs.plain(turned, 0, True)), "call")
        for joining in (ALWAYS, NEVER):
            np.testing.assert_array_equal(run(call, 1, joining), expected)
    assert len(groups) == 2
    assert min(groups) > 5  # of 5 different A, some have more executions than a group


def test_every_share_of_threads_has_groups_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused_registers, "_SHARE", 16 * 128)
    form = warpsim.decode(FORMS[9][0], target=FORMS[9][1])
    groups = _counted(monkeypatch)
    given = _given(form, CASES, (2, 2), np.random.default_rng(2))
    expected = warpsim.execute(form, **given, engine="reference")
    for turned in (given, {name: _by_register(words) for name, words in given.items()}):
        call = present(fused_call(form, Inputs.plain(turned, 0, True)), "call")
        np.testing.assert_array_equal(run(call, 2, ALWAYS), expected)
    assert len(groups) == 6
    assert all(groups)


@pytest.mark.skipif(not supported(), reason="the environment cannot be set here")
@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_bits_do_not_depend_on_the_environment(environment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of this thread, or of the threads that it starts: bf16 with subnormals, in float32 flushed to zero."""
    monkeypatch.setattr(fused_registers, "_SHARE", 16 * 128)
    form = warpsim.decode(FORMS[3][0], target=FORMS[3][1])
    given = _given(form, CASES, (4, 3), np.random.default_rng(11))
    expected = warpsim.execute(form, **given, engine="reference")
    call = present(fused_call(form, Inputs.plain(given, 0, False)), "call")
    try:
        set_environment(environment)
        found = [run(call, threads, ALWAYS) for threads in (1, 2)]
    finally:
        set_environment("default")
    for d in found:
        np.testing.assert_array_equal(d, expected)


def test_an_illegal_field_of_metadata_is_left_to_the_caller() -> None:
    """In a single execution, which then has another A than the others, and in all of a group."""
    form = warpsim.decode(FORMS[9][0], target=FORMS[9][1])
    given = _given(form, CASES, (2, 2), np.random.default_rng(3))
    for wrong in (slice(20, 21), slice(None)):
        e = given["e"].copy()
        e[wrong] = 0
        call = present(fused_call(form, Inputs.plain(given | {"e": e}, 0, False)), "call")
        assert run(call, 1, ALWAYS) is None
        assert run(call, 1, NEVER) is None


def test_executions_with_little_in_common_are_not_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than half of the first 64 have an A of their own, or of all; small batches are not looked at."""
    form = warpsim.decode(FORMS[1][0], target=FORMS[1][1])
    groups = _counted(monkeypatch)
    random = np.random.default_rng(5)
    alike = _given(form, 100, (1, 1), random)
    other = _given(form, 100, (4000, 2), random)
    for first, count in ((40, 100), (0, 100), (64, 100), (0, 15)):
        given = {name: np.concatenate([other[name][:first], alike[name]])[:count] for name in alike}
        if first == 64:
            given = {name: np.concatenate([alike[name][:64], other[name]]) for name in alike}
        call = present(fused_call(form, Inputs.plain(given, 0, False)), "call")
        np.testing.assert_array_equal(run(call, 1, ALWAYS), run(call, 1, NEVER))
    assert groups == [0, 13, 0]


def _slow_groups(a: list[bytes], b: list[bytes]) -> list[tuple[tuple[int, ...], int]]:
    """Return members and marks of groups: in rows of the same place among those of an A."""
    of_a = dict[bytes, list[int]]()
    for element, words in enumerate(a):
        of_a.setdefault(words, []).append(element)
    found, before = list[tuple[tuple[int, ...], int]](), None
    for row in range(0, max(map(len, of_a.values())), sharing.WIDEST_GROUP):
        for members in of_a.values():
            group = tuple(members[row : row + sharing.WIDEST_GROUP])
            if not group:
                continue
            same_a = before is not None and a[before[0]] == a[group[0]]
            same_b = before is not None and [b[k] for k in before] == [b[k] for k in group]
            found.append((group, same_a * sharing.SAME_A | same_b * sharing.SAME_B))
            before = group
    return found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("by_register", [False, True])
def test_groups_are_those_of_a_dictionary(seed: int, by_register: bool) -> None:
    """Of words that differ in a single bit, in either operand; with metadata as part of A."""
    random = np.random.default_rng(seed)
    cases, lanes = 150, 32
    registers = []
    for count, different in ((4, 6), (2, 3), (1, 2)):
        words = np.repeat(random.integers(0, 1 << 32, (1, lanes, count), dtype=np.uint32), different, 0)
        for k in range(1, different):
            words[k, random.integers(lanes), random.integers(count)] ^= np.uint32(1 << random.integers(32))
        chosen = random.integers(0, different, cases)
        if seed == 0:  # an outer product, as the warps of a launch have it
            chosen = {4: np.arange(cases) % 6, 2: np.arange(cases) // 6 % 3, 1: 0 * chosen}[count]
        registers.append(words[chosen])
    flat, layouts = [], []
    for words in registers:
        count = words.shape[2]
        flat.append(np.ascontiguousarray(words.transpose(2, 0, 1) if by_register else words).ravel())
        size = count * lanes
        layouts.append((count, lanes, cases * lanes, lanes) if by_register else (1, size, 0, size))
    members, starts, marks = sharing.groups(*flat, tuple(layouts), cases)
    found = [
        (tuple(members[first:stop].tolist()), int(mark))
        for first, stop, mark in zip(starts[:-1], starts[1:], marks, strict=True)
    ]
    a, b, e = ([words[k].tobytes() for k in range(cases)] for words in registers)
    assert found == _slow_groups([x + y for x, y in zip(a, e, strict=True)], b)
    assert (seed > 0) or any(mark & sharing.SAME_B for mark in marks)
