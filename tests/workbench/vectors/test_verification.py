"""Verification: what is compared, what is found, and that chunks may be done in any order."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import warpsim
from tests.helpers.example_sets import arguments, example, sparse_form
from warpsim.base.errors import NotModelled, TraceError, UndefinedBehavior
from warpsim.workbench.traces.reading import read_trace
from warpsim.workbench.traces.running import run_trace
from warpsim.workbench.vectors.sets import VectorSet, make_vectors
from warpsim.workbench.vectors.verification import (
    Chunk,
    Tally,
    run_items,
    serial,
    threads,
    verify_chunk,
    verify_parts,
)

FORM = sparse_form()
TRACE = Path(__file__).parents[3] / "traces" / "mma_sp_m16n8k32_f16.ptx"
LABELS = tuple(f"bin {index}" for index in range(9))


def parts_of(vectors: VectorSet, size: int = 2) -> list[VectorSet]:
    return [vectors.part(start, start + size) for start in range(0, len(vectors), size)]


def damaged(*places: tuple[int, int, int], bit: int = 0) -> VectorSet:
    """Nine cases, with one bit of D flipped at each (case, lane, register)."""
    vectors = example(FORM, 9, labels=LABELS)
    d = vectors.d.copy()
    for place in places:
        d[place] ^= np.uint32(1 << bit)
    return replace(vectors, d=d)


def test_a_set_of_the_model_is_as_expected():
    tally = verify_parts(parts_of(example(FORM, 9))).tally
    assert (tally.cases, tally.words, tally.different_words, tally.first) == (9, 9 * 128, 0, ())
    assert tally.passed


def test_every_bit_of_d_is_compared():
    """Whichever bit of whichever register is flipped, it is found, and only it."""
    vectors = example(FORM, 1)
    for place in np.ndindex(vectors.d.shape):
        d = vectors.d.copy()
        d[place] ^= np.uint32(1 << (place[1] + place[2]) % 32)
        tally = verify_chunk(Chunk(vectors=replace(vectors, d=d)))
        difference = tally.first[0].difference
        assert tally.different_words == 1
        assert (difference.lane, difference.register) == (place[1], f"d{place[2]}")


def test_a_difference_names_case_lane_register_and_element():
    vectors = damaged((5, 14, 1), bit=23)
    (mismatch,) = verify_parts(parts_of(vectors)).tally.first
    words = f"expected {vectors.d[5, 14, 1]:#010x}, got {vectors.d[5, 14, 1] ^ (1 << 23):#010x}"
    assert str(mismatch).startswith(f"case 5 (bin 5): lane 14, register d1: {words}; D[3,5]: expected ")
    element = mismatch.difference.element
    assert (element.row, element.column) == (3, 5)
    right = warpsim.unpack(FORM, "d", vectors.d[5] ^ np.uint32(0))
    assert element.expected == str(right[3, 5])


def test_only_the_first_differences_are_kept():
    vectors = damaged((1, 3, 0), (1, 3, 2), (4, 0, 0), (8, 31, 3))
    tally = verify_parts(parts_of(vectors), kept=2).tally
    assert (tally.different_cases, tally.different_words) == (3, 4)
    assert [(one.case, one.difference.register) for one in tally.first] == [(1, "d0"), (1, "d2")]
    assert verify_parts(parts_of(vectors), kept=0).tally.first == ()


def shuffled(function, chunks: Iterable[Chunk]) -> Iterator[Tally]:
    tallies = [function(chunk) for chunk in chunks]
    random.Random(3).shuffle(tallies)
    return iter(tallies)


def elsewhere(function, chunks: Iterable[Chunk]) -> Iterator[Tally]:
    """As a scheduler of other processes does: functions, chunks and tallies are sent as bytes."""
    for chunk in chunks:
        function, chunk = pickle.loads(pickle.dumps((function, chunk)))
        yield pickle.loads(pickle.dumps(function(chunk)))


@pytest.mark.parametrize("scheduler", [threads(3), threads(1), shuffled, elsewhere])
@pytest.mark.parametrize("size", [1, 2, 9])
def test_the_result_does_not_depend_on_who_does_what_when(scheduler, size):
    vectors = damaged((1, 3, 0), (4, 0, 0), (4, 1, 0), (8, 31, 3))
    once = verify_parts([vectors], scheduler=serial)
    found = verify_parts(parts_of(vectors, size), scheduler=scheduler)
    assert str(found.tally) == str(once.tally)


def test_threads_hold_no_more_chunks_than_they_work_on():
    taken = []

    def chunks() -> Iterator[Chunk]:
        for part in parts_of(example(FORM, 9), 1):
            taken.append(part)
            yield Chunk(vectors=part)

    tallies = threads(2)(verify_chunk, chunks())
    next(tallies)
    assert len(taken) == 3
    assert len(list(tallies)) == 8


def test_every_tally_is_shown_to_who_watches():
    seen: list[int] = []
    verify_parts(parts_of(example(FORM, 9)), watch=lambda tally: seen.append(tally.cases))
    assert seen == [2, 2, 2, 2, 1]


def test_another_target_has_other_bits():
    form = warpsim.decode("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", target="sm_80")
    rng = np.random.default_rng(0)
    words = {name: rng.integers(0, 1 << 32, (50, 32, form.registers[name]), np.uint32) for name in "abc"}
    vectors = make_vectors(form, **words)
    item = verify_parts([vectors], target="sm_90")
    assert (item.target, item.instruction.target) == ("sm_90", "sm_90")
    right = warpsim.execute(form, target="sm_90", **words)
    assert item.tally.different_words == (right != vectors.d).sum() > 0
    with pytest.raises(warpsim.IllegalInstruction, match=r"is not on sm_70; it is on sm_80 and later"):
        verify_parts([vectors], target="sm_70")


def test_the_first_case_that_cannot_be_executed_is_named():
    given = arguments(FORM, 9, 0)
    given["e"][5:8] = 0
    vectors = make_vectors(FORM, undefined="fallback", labels=LABELS, **given)
    for scheduler in (serial, threads(2)):
        with pytest.raises(UndefinedBehavior) as caught:
            verify_parts(parts_of(vectors, 4), scheduler=scheduler)
        message = str(caught.value)
        assert message.startswith("case 5 (bin 5): metadata field 0b0000 in lane ")
        assert "batch element" not in message
    assert verify_parts(parts_of(vectors, 4), undefined="fallback").tally.passed


def test_what_is_not_modelled_is_an_error_of_its_own():
    form = warpsim.decode("mma.sp.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", target="sm_100")
    given = arguments(form, 2, 0) | {"e": np.full((2, 32, 1), 0x11111111, np.uint32)}
    vectors = make_vectors(form, undefined="fallback", **given)
    with pytest.raises(NotModelled, match=r"^case 0: metadata field 0b0001 in lane"):
        verify_parts([vectors])


def test_a_broken_file_ends_the_work():
    def parts() -> Iterator[VectorSet]:
        yield example(FORM, 1)
        raise TraceError("broken")

    with pytest.raises(TraceError, match="broken"):
        verify_parts(parts(), scheduler=threads(2))


def test_the_checks_of_a_trace_belong_to_the_instructions_that_wrote(tmp_path):
    items = run_items(run_trace(read_trace(TRACE)))
    assert sum(item.tally.words for item in items) == 384
    assert sum(item.tally.cases for item in items) == 8
    assert all(item.tally.passed and item.target == "sm_90a" for item in items)
    by_name = {item.instruction.mnemonic: item.tally for item in items}
    assert by_name[FORM.mnemonic].words == 128


def test_a_trace_that_differs_names_the_line(tmp_path):
    trace = tmp_path / "a.ptx"
    trace.write_text("//! target sm_90a\n.reg .b32 %r;\n//! load %r = 0x5\n//! expect %r = 0x7\n")
    (item,) = run_items(run_trace(read_trace(trace)))
    assert item.instruction is None
    assert (item.tally.words, item.tally.different_words) == (32, 32)
    assert str(item.tally.first[0]) == "line 4: lane 0, register %r: expected 0x00000007, got 0x00000005"
