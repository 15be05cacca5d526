"""Tensor memory in the debugger: fragments of tcgen05.mma, cells, allocations, and what writes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers.kernel_products import Case
from tests.helpers.tensor_core_products import mxf8, sparse_f16
from tests.helpers.tensor_pipeline_products import TENSOR_PIPELINES
from warpsim import OperandError
from warpsim.show.debugger import Session
from warpsim.show.debugger.commands.fragment_commands import fragment_at

FOLDER = Path(__file__).parents[3] / "traces" / "kernels"


def session_of(case: Case, **options: Any) -> Session:
    """A session before the first tcgen05.mma of a case."""
    kernel = warpsim.load(FOLDER / case.file)[case.entry]
    given = case.passed(case.arguments)
    found = Session(
        kernel, case.grid, case.block, given, shared_bytes=case.shared_bytes, cluster=case.cluster, **options
    )
    found.do("tbreak mnemonic tcgen05.mma")
    found.do("run")
    return found


def numbers(session: Session, operand: str, dtype: str = "f2") -> np.ndarray:
    """The elements of a fragment as they are shown, with 8 digits."""
    found = fragment_at(session.standing(), session.at(), operand)
    matrix = np.full(found.shape, np.nan, dtype)
    for key, text in found.values.items():
        matrix[key] = float(text)
    return matrix


@pytest.fixture(scope="module")
def stored() -> Iterator[tuple[Session, Case]]:
    """A kernel that stores its tiles, before its first product, as late as possible."""
    case = TENSOR_PIPELINES["tensor_stored"](np.random.default_rng(3))
    with session_of(case, schedule="latest") as found:
        yield found, case


def test_a_dense_product_shows_its_operands_and_what_it_will_write(stored) -> None:
    session, case = stored
    session.do("goto 0")
    session.do("tbreak mnemonic tcgen05.mma")
    session.do("continue")
    A, B = (case.arguments[place][:, :16] for place in (0, 1))
    assert np.array_equal(numbers(session, "a"), A)
    assert np.array_equal(numbers(session, "b"), B.T)
    assert session.do("fragment d[3,5]") == "d[3,5] = never written: tmem[3,453]"
    assert session.do("print tmem[3,453]") == "tmem[3,453] = never written"
    assert session.do("x/1xw tmem[3,453]") == "tmem[3,453]:  never written"
    assert "allocated at line" in session.do("info tmem")
    assert "nothing is written" in session.do("info tmem")
    session.do("watch f32 tmem[3,453]")
    stop = session.do("continue")
    assert "before: never written" in stop
    assert "a tcgen05.mma issued at tensor_pipelines.ptx:" in stop
    form = warpsim.decode("tcgen05.mma.cta_group::1.kind::f16", target="sm_100a", idesc=0x08100010)
    first = warpsim.gemm(form, case.arguments[0][:, :64], case.arguments[1][:, :64].T)  # all four parts
    assert session.value("f32(tmem[0x301c5])") == first[3, 5]
    assert session.do("x/1fw tmem[3,453]").startswith(f"tmem[3,453]:  {first[3, 5]:.8g}")
    shown = session.do("print tmem[3:5,453:455] as f32").splitlines()
    assert shown[0] == "lanes down, columns across; - was never written"
    assert shown[2].split() == ["3", *(f"{number:.8g}" for number in first[3, 5:7])]
    assert "are written" in session.do("info tmem")
    session.do("delete")


def test_what_is_in_flight_names_its_group_and_its_mbarrier(stored) -> None:
    session, _ = stored
    session.do("goto 0")
    session.do("tbreak mnemonic tcgen05.commit")
    session.do("continue")
    session.do("stepi")
    lines = session.do("info async").splitlines()
    assert sum(line.startswith("tcgen05.mma of ") for line in lines) == 4
    assert all("group 0 of tcgen05.cta_group::1" in line for line in lines[:4])
    assert lines[-1].startswith("commit of ")
    assert lines[-1].endswith("arrives at mbarrier empty[0]")
    assert "mbarrier empty[0] at shared" in session.do("info barriers")
    assert "arrival to come" in session.do("info barriers")


def test_a_sparse_product_shows_stored_values_and_indices() -> None:
    case = sparse_f16(np.random.default_rng(4), size=(128, 64, 128))
    with session_of(case) as session:
        assert np.array_equal(numbers(session, "a"), case.arguments[0][:, :16])
        found = fragment_at(session.standing(), session.at(), "e")
        form = warpsim.decode("tcgen05.mma.sp.cta_group::1.kind::f16", target="sm_100a", idesc=0x08100014)
        A = warpsim.decompress(case.arguments[0][:, :16], indices_of(found), form)
        wanted = warpsim.matmul(form, A, case.arguments[2].T[:32], np.zeros((128, 64), np.float32))
        session.do("stepi")
        assert session.value("f32(tmem[0x70009])") == wanted[7, 9]
        assert "stored" in found.title or found.shape == (128, 8)


def indices_of(found: Any) -> np.ndarray:
    """The indices of metadata, from what is shown."""
    rows, chunks = found.shape
    pairs = [
        [found.values[row, chunk].strip("()").split(", ") for chunk in range(chunks)] for row in range(rows)
    ]
    return np.array(pairs, np.uint8).reshape(rows, -1)


def test_block_scales_are_shown_as_numbers() -> None:
    case = mxf8(np.random.default_rng(5), size=(128, 64, 128))
    with session_of(case) as session:
        form = warpsim.decode(
            "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale", target="sm_100a", idesc=0x08900000
        )
        scales = [numbers(session, f"scale_{side}", "f4") for side in "ab"]
        A, B = numbers(session, "a", "f4"), numbers(session, "b", "f4")
        session.do("stepi")
        codes = [np.log2(scale).astype(np.uint8) + np.uint8(127) for scale in scales]
        wanted = warpsim.matmul(
            form,
            *(part.astype(form.a.dtype) for part in (A, B)),
            np.zeros((128, 64), np.float32),
            scale_a=codes[0],
            scale_b=codes[1].T,
        )
        assert session.value("f32(tmem[0x70009])") == wanted[7, 9]


def test_operands_of_a_pair_lie_in_both_ctas() -> None:
    case = TENSOR_PIPELINES["tensor_pair"](np.random.default_rng(6))
    with session_of(case) as session:
        maps = case.arguments
        assert np.array_equal(numbers(session, "a"), maps[0][:, :16])
        assert np.array_equal(numbers(session, "b"), maps[1][:, :16].T)
        assert session.do("fragment a[200,3]").endswith(" of the odd CTA")
        assert session.do("fragment d[200,3]") == "d[200,3] = never written: tmem[72,3] of the odd CTA"
        assert session.do("origins a[200,3]") == "a[200,3] is arg0[200, 3]"
        session.do("cta 1")
        assert session.do("print tmem[72,3]") == "tmem[72,3] = never written"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("fragment metadata", "has fragments a, b, c, d here, not e"),
        ("fragment scale_a", "has fragments a, b, c, d here, not scale_a"),
        ("fragment d[128,0]", r"\[128,0\] is outside of 128 x 64 elements"),
        ("print tmem[128,0]", r"\[128,0\] is outside of 128 x 512 elements"),
        ("print tmem[0:2,0:2] as f33", "f33 is not a format"),
        ("watch tmem[128,0]", "lane 128, column 0: tensor memory has 128 lanes of 512 columns"),
        ("x/4xw tmem[0,510]", "lane 0, columns 510..513: tensor memory has"),
        ("x/1xh tmem[0,0]", "cells of tensor memory have 32 bits"),
        ("print tmem.f16[0]", ".f16: cells of tensor memory have 32 bits"),
    ],
)
def test_what_is_no_cell(stored, command: str, message: str) -> None:
    session, _ = stored
    session.do("goto 0")
    session.do("tbreak mnemonic tcgen05.mma")
    session.do("continue")
    with pytest.raises(OperandError, match=message):
        session.do(command)
