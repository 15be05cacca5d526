"""warpsim.verify: sets in memory and in files, and traces."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import warpsim
from tests.helpers.example_sets import example, sparse_form

FORM = sparse_form()
TRACE = Path(__file__).parents[3] / "traces" / "mma_sp_m16n8k32_f16.ptx"


def test_sets_in_memory_and_in_files_and_traces_are_verified(tmp_path):
    vectors = example(FORM, 5)
    for suffix in (".npz", ".csv"):
        warpsim.write_vectors(tmp_path / f"set{suffix}", vectors)
    for source in (vectors, str(tmp_path / "set.npz"), tmp_path / "set.csv"):
        outcome = warpsim.verify(source)
        assert outcome.passed
        assert (outcome.tally.cases, outcome.tally.words) == (5, 640)
        assert outcome.provenance["kind"] == "model"
    outcome = warpsim.verify(TRACE)
    assert (outcome.kind, outcome.passed, outcome.tally.words) == ("trace", True, 384)


def test_differences_are_no_error(tmp_path):
    vectors = example(FORM, 5)
    d = vectors.d.copy()
    d[3, 2, 1] ^= np.uint32(4)
    outcome = warpsim.verify(replace(vectors, d=d), jobs=1, engine="reference")
    assert not outcome.passed
    assert outcome.tally.different_words == 1
    assert [mismatch.case for mismatch in outcome.tally.first] == [3]
    assert warpsim.verify(replace(vectors, d=d), show=0).tally.first == ()


def test_another_target_has_its_own_rules():
    vectors = warpsim.generate_vectors(str(FORM), target="sm_90a", kind="random", count=3)
    assert warpsim.verify(vectors).passed
    assert not warpsim.verify(vectors, target="sm_80").passed
    with pytest.raises(warpsim.IllegalInstruction, match="is not on sm_75"):
        warpsim.verify(vectors, target="sm_75")


def test_what_cannot_be_read_names_the_file(tmp_path):
    (tmp_path / "empty.npz").touch()
    with pytest.raises(warpsim.TraceError) as caught:
        warpsim.verify(tmp_path / "empty.npz")
    assert str(caught.value).startswith(f"{tmp_path / 'empty.npz'}: cannot be read as an .npz file")
    with pytest.raises(FileNotFoundError):
        warpsim.verify(tmp_path / "none.npz")
    with pytest.raises(warpsim.OperandError, match="show=-1: at least 0 differences"):
        warpsim.verify(TRACE, show=-1)
