"""Kernels in the manner of CUTLASS, Marlin and others compute their references, by algebra."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import warpsim
from tests.helpers.families import sample
from tests.workbench.unseen_kernels import references
from tests.workbench.unseen_kernels.launches import FOLDER, LAUNCHES, Drawn
from tools.mistakes.launches.judged import asked, edited, guilty_lines
from tools.mistakes.launches.unseen_kernels import LIST
from warpsim.observe.algebra.locating.located_record import Located
from warpsim.programs.launch.located_launches import answer_of
from warpsim.workbench.diagnosis.origins.element_origins import find_origins
from warpsim.workbench.diagnosis.verdicts.repeated_launch import RepeatedLaunch


@pytest.mark.parametrize("seed", sample([1, 2, 3], 3))
@pytest.mark.parametrize("kernel", sample(LAUNCHES, 2))
def test_intact_kernel_computes_its_reference(kernel: str, seed: int) -> None:
    verdict = asked(kernel, FOLDER / "ptx" / f"{kernel}.ptx", seed)
    assert verdict.equivalence.answer == "equal", str(verdict)
    assert verdict.as_expected, str(verdict)


def test_planted_mistakes_apply() -> None:
    """Every edit changes its source once, at lines that it has."""
    for planted in LIST:
        count = len(edited(planted).splitlines())
        lines = guilty_lines(planted)
        assert lines, planted
        assert max(lines) <= count, planted
        assert all(text in edited(planted) for text in planted.at), planted


def test_operands_and_scales_of_other_executions_are_judged_apart(tmp_path: Path) -> None:
    """A finding on B of an execution whose scales are of no array was looked up among them."""
    text = (FOLDER / "ptx" / "mxfp8.ptx").read_text()
    twice = re.sub(r"(add\.s32 \t%r144, %r144,) 2;", r"\1 4;", text)
    assert twice != text
    (tmp_path / "mxfp8.ptx").write_text(twice)
    assert asked("mxfp8", tmp_path / "mxfp8.ptx").equivalence.answer == "other"


def located_in(name: str, text: str, folder: Path) -> Located | None:
    """Where a changed kernel leaves its formula."""
    (folder / f"{name}.ptx").write_text(text)
    launch = LAUNCHES[name]
    repeated = RepeatedLaunch(
        kernel=warpsim.load(folder / f"{name}.ptx")[name],
        sizes={"grid": launch.grid, "block": launch.block},
        args=launch.arguments(Drawn(1)),
        options={},
        before={},
    )
    return answer_of(repeated, getattr(references, name)).located


def test_sums_of_different_maxima_are_not_proven_by_other_terms(tmp_path: Path) -> None:
    """Each lane has a maximum of its own, -inf for lanes that are masked: these NaN are a consequence."""
    text = (FOLDER / "ptx" / "flash.ptx").read_text()
    own, count = re.subn(r"(shfl\.sync\.bfly\.b32 \t%r\d+\|%p\d+, %r\d+, )(%r149|%r166)", r"\g<1>0", text)
    assert count == 4
    located = located_in("flash", own, tmp_path)
    assert located is not None
    assert (located.kind, located.certainty) == ("rescaling", "located")


def test_a_result_of_another_row_is_not_proven_beside_other_mistakes(tmp_path: Path) -> None:
    """Rows of x are chosen wrong: that a whole sum is another row's says nothing of the other sums."""
    text = (FOLDER / "ptx" / "moe.ptx").read_text()
    turned, count = re.subn(r"div\.s32( \t%r30, %r7, %r18;)", r"rem.s32\1", text)
    assert count == 1
    located = located_in("moe", turned, tmp_path)
    assert located is not None
    assert located.certainty == "located"


def test_a_part_of_a_sum_stands_in_place_of_the_sum(tmp_path: Path) -> None:
    """Each lane divides by its own sum, though it has the sum of its four lanes, too: no terms are lost."""
    text = (FOLDER / "ptx" / "flash.ptx").read_text()
    even = r"(div\.rn\.f32 \t%f(?:259|261|263|265|272|274|276|278), %f\d+, )(%f61|%f62);"
    mine = {"%f61": "%f316", "%f62": "%f315"}
    own, count = re.subn(even, lambda found: f"{found[1]}{mine[found[2]]};", text)
    assert count == 8
    located = located_in("flash", own, tmp_path)
    assert located is not None
    assert (located.kind, located.certainty) == ("operand", "proven")
    assert located.wanted.startswith("sums[")
    assert located.location is not None
    assert "div.rn.f32" in located.location.text


def test_a_factor_is_missing_where_a_product_takes_the_value(tmp_path: Path) -> None:
    """A register of A has sums without their scale: the product that takes it is named, not the store."""
    text = (FOLDER / "ptx" / "lora.ptx").read_text()
    scaled = r"mul\.f32 \t(?:%f121, %f162|%f120, %f163), %f49;|(?<=cvt\.rn\.bf16x2\.f32 %r55, )%f121, %f120"
    plain, count = re.subn(scaled, lambda found: "" if "mul" in found[0] else "%f162, %f163", text)
    assert count == 3
    located = located_in("lora", plain, tmp_path)
    assert located is not None
    assert (located.kind, located.partner, located.certainty) == ("missing", "scale", "proven")
    assert located.location is not None
    assert "mma.sync" in located.location.text


def test_a_row_of_another_thread_is_not_proven(tmp_path: Path) -> None:
    """Rows are stored as if lanes had neighbours: no thread can take the result that its index stands for."""
    text = (FOLDER / "ptx" / "moe.ptx").read_text()
    lane, second = "add.s32 \t%r103, %r6, %r102;", "ld.global.u32 \t%r15, [%rd16+32];"
    assert text.count(lane) == text.count(second) == 1
    text = text.replace(lane, "mad.lo.s32 \t%r103, %r102, 2, %r6;").replace(
        second, second.replace("+32", "+4")
    )
    located = located_in("moe", text, tmp_path)
    assert located is not None
    assert (located.kind, located.certainty, located.elsewhere) == ("operand", "located", True)
    assert located.loaded is None
    assert any("weight[to]" in str(each.excerpt()) for each in located.copies)
    assert located.message.endswith(": another thread computes that")


@pytest.mark.parametrize("kernel", ["conv", "moe", "mxfp8", "rope"])
def test_operands_of_an_intact_kernel_fit(kernel: str) -> None:
    """Tiles over the edge of an array begin before it, as those of a convolution: they are in order."""
    launch, entry = LAUNCHES[kernel], warpsim.load(FOLDER / "ptx" / f"{kernel}.ptx")[kernel]
    args = launch.arguments(Drawn(1))
    arrays = [index for index, each in enumerate(args) if np.ndim(each)]
    origins = find_origins(entry, launch.grid, launch.block, args, arrays)
    assert origins.operands
    assert not origins.findings
