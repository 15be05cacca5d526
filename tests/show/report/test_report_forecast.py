"""D of wgmma in a report: kept as differences from a forecast, and bit for bit what the engine computed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import warpsim
from tests.helpers.families import sample
from tests.helpers.reports import TRACES, Scripts, run_of
from warpsim.isa.descriptors.packed_tiles import canonical_bytes, canonical_descriptor
from warpsim.isa.fragments import registers_of
from warpsim.isa.instruction import Instruction
from warpsim.show.report import Report
from warpsim.show.report.document import gather
from warpsim.workbench.diagnosis.search.cases import random_codes
from warpsim.workbench.traces.running import Run

F16 = "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16"
LARGE = (F16, "wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e5m2")


@pytest.fixture(scope="module")
def scripts() -> Iterator[Scripts]:
    engine = Scripts()
    yield engine
    engine.close()


def chain(form: Instruction, rounds: int, count: int, *, any_bits: bool, seed: int = 0) -> Run:
    """``rounds`` times ``count`` wgmma that accumulate onto one D, each with other operands.

    Codes are moderate numbers, or any bits: Inf, NaN, zeros of both signs, subnormals, saturation.
    """
    group, random = warpsim.Warpgroup("sm_90a"), np.random.default_rng(seed)
    shape = form.in_shared_memory("b").shape()
    step = -(-canonical_bytes(shape, swizzle="none") // 1024) * 1024

    def words(operand: str) -> npt.NDArray[Any]:
        if any_bits:
            return random.integers(0, 1 << 32, (128, form.registers[operand]), np.uint32)
        return registers_of(
            random_codes(form.format(operand), form.matrix_shape(operand), random), form, operand
        )

    group["%p"], group[f"%d<{form.registers['d']}>"], events = True, words("c"), []
    for round_ in range(rounds):
        size = form.a.code_dtype.itemsize
        bits = random.integers(0, 256, step * count, np.uint8)
        codes = bits if any_bits else random_codes(form.a, (step * count // size,), random).view(np.uint8)
        group.shared.data[: step * count] = codes
        lines = ["wgmma.fence.sync.aligned;"]
        for index in range(count):
            name = f"{round_}x{index}_"
            group[f"%a{name}<{form.registers['a']}>"] = words("a")
            group[f"%b{name}"] = np.uint64(canonical_descriptor(index * step, shape, swizzle="none").encode())
            if form.sparse:
                group[f"%e{name}"] = 0x44444444
            lines.append(statement(form, name))
        lines += ["wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;"]
        run = run_of(group, "\n".join(lines))
        events += run.events
    return replace(run, events=events)


def statement(form: Instruction, name: str) -> str:
    def vector(stem: str, operand: str) -> str:
        return "{" + ", ".join(f"%{stem}{index}" for index in range(form.registers[operand])) + "}"

    immediates = ["%p", *["-1", "1"] * form.a.is_float, *["0"] * (form.a.bits == 16)]
    metadata = [f"%e{name}", "0"] if form.sparse else []
    operands = [vector("d", "d"), vector(f"a{name}", "a"), f"%b{name}", *metadata, *immediates]
    if form.bit_operation:
        operands = [*operands[:-1], "%p"]
    return f"{form.mnemonic} {', '.join(operands)};"


def forms() -> list[Instruction]:
    """One form for each type and D, dense and sparse, with N = 16."""
    found = {
        (form.family.name, form.a, form.b.is_float, form.d): form
        for form in warpsim.instructions("sm_90a")
        if form.lanes == 128 and form.shape.n == 16
    }
    return list(found.values())


@pytest.mark.parametrize("any_bits", [False, True])
@pytest.mark.parametrize("form", forms(), ids=lambda form: form.mnemonic)
def test_words_come_back_bit_for_bit(scripts: Scripts, form: Instruction, any_bits: bool) -> None:
    run = chain(form, 1, 4, any_bits=any_bits)
    scripts.load(gather(run))
    for index in (3, 0, 1, 2):  # the last one first: it needs all others
        for operand, words in (("d", run.events[index].d), ("c", run.events[index].inputs.registers["c"])):
            assert scripts("words", index, operand) == [str(word) for word in words.ravel().tolist()]


@pytest.mark.parametrize(
    "form", [form for form in forms() if form.a.is_float], ids=lambda form: form.mnemonic
)
def test_the_forecast_is_right_where_nothing_is_special(form: Instruction) -> None:
    report = gather(chain(form, 1, 2, any_bits=False))
    for document in report.document["instructions"]:
        reference = document["words"]["d"]["differences"]
        found = np.frombuffer(
            report.pool.content, f"u{reference['bytes']}", reference["count"], reference["at"]
        )
        assert (found == 0).mean() > 0.9  # ties, which it rounds up, are 6 % of f16 from fp8


def test_accumulators_and_expectations_refer_to_d() -> None:
    trace = warpsim.view(TRACES / "wgmma_m64n8k32_f8.ptx")
    first, second, *_ = trace.document["instructions"]
    assert second["words"]["c"] == {"result": 0}
    assert list(first["words"]["d"]) == ["differences"]
    expecting = [one for one in trace.document["instructions"] if one["expected"]]
    assert expecting
    for one in expecting:
        assert one["expected"] == {"result": trace.document["instructions"].index(one)}


@pytest.mark.parametrize("mnemonic", sample(LARGE, 2))
def test_the_page_of_64_of_the_largest_is_small(mnemonic: str) -> None:
    """Below 2 MB, though D and C alone are 8 MB, and A and B, which nothing shortens, 0.9 MB."""
    run = chain(warpsim.decode(mnemonic, target="sm_90a"), 4, 16, any_bits=False)
    assert len(run.events) == 64
    assert 1_000_000 < len(Report(run=run).html.encode()) < 1_800_000


def test_a_long_chain_is_read_from_its_end(scripts: Scripts) -> None:
    """Deeper than a stack of calls would go."""
    form = warpsim.decode(F16.replace("n256", "n8"), target="sm_90a")
    run = chain(form, 1, 2, any_bits=False)
    report = gather(run)
    first, second = report.document["instructions"]
    count = 3000
    later = [second | {"words": second["words"] | {"c": {"result": index}}} for index in range(count)]
    report.document["instructions"] = [first, *later]
    scripts.load(report)
    assert scripts("words", 1, "d") == [str(word) for word in run.events[1].d.ravel().tolist()]
    assert len(scripts("words", count, "d")) == 512
