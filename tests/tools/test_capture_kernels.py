"""Kernels of the capture tool: their text, what it does, and that mistakes in it do not stay hidden."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import warpsim
from tests.helpers import ptxas
from tests.helpers.families import sample, usual
from tools.capture import assembling
from tools.capture.capturing import captured, parts_of
from tools.capture.driver import DriverError
from tools.capture.experiments import EXPERIMENTS
from tools.capture.jobs import Job, run_job
from tools.capture.kernels import build_kernel
from tools.capture.operands import Placement, combinations_of, random_set
from tools.capture.simulated import SimulatedDriver
from tools.capture.tensor_kernels import tensor_kernel
from warpsim.base.errors import NotModelled, OperandError
from warpsim.isa.architectures import ARCHITECTURES
from warpsim.isa.instruction import Instruction

SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
WGMMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"

WIDE = {
    "wgmma.mma_async.sync.aligned.m64n40k16.f32.f16.f16",
    "wgmma.mma_async.sp.sync.aligned.m64n256k32.f16.f16.f16",
    "wgmma.mma_async.sync.aligned.m64n256k32.s32.s8.u8",
}

TEXT = """\
// mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
.version 8.5
.target sm_80
.address_size 64

.visible .entry capture(.param .u64 inputs, .param .u64 outputs)
.reqntid 32, 1, 1
{
    .reg .b64 %input, %output, %from, %to;
    .reg .b32 %lane, %case;
    .reg .b32 %a<2>;
    .reg .b32 %b<2>;
    .reg .f32 %c<4>;
    .reg .f32 %d<4>;
    .reg .b32 %e<1>;
    mov.u32 %lane, %tid.x;
    mov.u32 %case, %ctaid.x;
    ld.param.u64 %input, [inputs];
    cvta.to.global.u64 %input, %input;
    mad.wide.u32 %input, %case, 1152, %input;
    ld.param.u64 %output, [outputs];
    cvta.to.global.u64 %output, %output;
    mad.wide.u32 %output, %case, 512, %output;
    mad.wide.u32 %from, %lane, 8, %input;
    ld.global.b32 %a0, [%from+0];
    ld.global.b32 %a1, [%from+4];
    mad.wide.u32 %from, %lane, 8, %input;
    ld.global.b32 %b0, [%from+256];
    ld.global.b32 %b1, [%from+260];
    mad.wide.u32 %from, %lane, 16, %input;
    ld.global.f32 %c0, [%from+512];
    ld.global.f32 %c1, [%from+516];
    ld.global.f32 %c2, [%from+520];
    ld.global.f32 %c3, [%from+524];
    mad.wide.u32 %from, %lane, 4, %input;
    ld.global.b32 %e0, [%from+1024];
    mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 \
{%d0, %d1, %d2, %d3}, {%a0, %a1}, {%b0, %b1}, {%c0, %c1, %c2, %c3}, %e0, 0x1;
    mad.wide.u32 %to, %lane, 16, %output;
    st.global.f32 [%to+0], %d0;
    st.global.f32 [%to+4], %d1;
    st.global.f32 [%to+8], %d2;
    st.global.f32 [%to+12], %d3;
    ret;
}
"""


def forms(target: str) -> Iterator[Instruction]:
    """One form of each family, shape, operation, kind and result."""
    seen = set()
    for form in warpsim.instructions(target):
        narrow = form.shape.n == 8 or str(form) in WIDE
        key = (
            form.family.name,
            form.variant,
            form.shape,
            form.operation,
            form.kind,
            form.d,
            form.scale_chunks,
        )
        if narrow and key not in seen:
            seen.add(key)
            yield form


def placements(form: Instruction) -> tuple[Placement, ...]:
    if form.family.opcode == "mma":
        return (Placement(),)
    transposed = Placement(a_shared=True, swizzle="32B", majors=("K", "MN"))
    return (Placement(swizzle="64B"), transposed if form.a.bits == 16 else Placement(a_shared=True))


def test_the_text_of_a_kernel() -> None:
    form = warpsim.decode(SPARSE, target="sm_80")
    vectors = random_set(form, 4, 1)
    second = list(parts_of(vectors))[1]
    assert second.kernel.ptx == TEXT
    assert second.cases.tolist() == [1]


@pytest.mark.parametrize(
    "target",
    usual(
        ["sm_70", "sm_90a", "sm_120a"], ["sm_70", "sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a"]
    ),
)
def test_what_a_kernel_computes_is_what_the_model_does(target: str) -> None:
    driver, ran = SimulatedDriver(target), 0
    for form in forms(target):
        for placement in placements(form)[: 1 + (form.shape.n == 8)]:
            vectors = random_set(form, 2, 5, placement=placement)
            assert np.array_equal(captured(vectors, driver).d, vectors.d), (form, placement)
            ran += 1
    assert ran >= {"sm_70": 2, "sm_75": 7}.get(target, 20)


def test_an_instruction_needs_a_target() -> None:
    form = warpsim.decode(SPARSE)
    with pytest.raises(OperandError, match="has no target: decode it with target='sm_…'"):
        build_kernel(form, {}, {})


def test_immediates_that_are_left_out_have_their_defaults() -> None:
    form = warpsim.decode(WGMMA, target="sm_90a")
    arrays = {
        name: array for name, array in random_set(form, 2, 1).arrays().items() if name not in ("scale_d",)
    }
    ptx = build_kernel(form, arrays, {}).ptx
    assert "mov.pred %accumulate, 1;" in ptx
    assert "%b_desc, %accumulate, 1, 1, 0;" in ptx


# --- mistakes --------------------------------------------------------------------------------------

MISTAKES = (  # in the text of a kernel: instruction, pattern, replacement
    (SPARSE, r"%a0, \[%from\+0\]", "%a0, [%from+4]"),  # registers loaded in the wrong order
    (SPARSE, r"\{%b0, %b1\}", "{%b1, %b0}"),
    (SPARSE, r"%e0, 0x1", "%e0, 0x0"),  # another selector
    (SPARSE, r"\[%to\+4\], %d1", "[%to+4], %d2"),  # D stored in the wrong order
    (SPARSE, r"%case, 1152", "%case, 1136"),  # another case
    (SPARSE, r"%lane, 4, %input", "%lane, 8, %input"),  # metadata of other lanes
    (SPARSE, r"ld\.global\.f32 %c3.*", ""),  # a register that nothing writes
    (SPARSE, r"st\.global\.f32 \[%to\+8\].*", ""),  # memory that nothing writes
    (SPARSE, r"\[%to\+12\], %d3", "[%to+100000], %d3"),  # outside the output
    (WGMMA, r"wgmma\.wait_group.*", ""),
    (WGMMA, r"wgmma\.fence.*", ""),
    (WGMMA, r"fence\.proxy\.async;", ""),
    (WGMMA, r"or\.b64 %b_desc.*", ""),  # a descriptor without its address
    (WGMMA, r"%low, 0x3fff", "%low, 0x1f"),
    (WGMMA, r"mov\.pred %accumulate, 1", "mov.pred %accumulate, 0"),
    (WGMMA, r"%accumulate, 1, 1, 0;", "%accumulate, -1, 1, 0;"),
    (WGMMA, r"st\.shared\.v4\.b32 \[%at\+0\]", "st.shared.v4.b32 [%at+16]"),
    (WGMMA, r"mov\.b32 %d2, %c2", "mov.b32 %d2, %c1"),
)


@pytest.mark.parametrize(("mnemonic", "pattern", "replacement"), MISTAKES, ids=str)
def test_a_mistake_in_the_text_does_not_stay_hidden(mnemonic: str, pattern: str, replacement: str) -> None:
    form = warpsim.decode(mnemonic, target="sm_90a")
    vectors = random_set(form, 8, 3)
    *_, part = [part for part in parts_of(vectors) if re.search(pattern, part.kernel.ptx)]
    wrong, count = re.subn(pattern, replacement, part.kernel.ptx)
    assert count >= 1
    driver = SimulatedDriver("sm_90a")
    good = run_job(driver, part.job)
    assert good.tobytes() == vectors.d[part.cases].tobytes()
    assert _outcome(driver, replace(part.job, ptx=wrong)) not in (b"", good.tobytes())


def _outcome(driver: SimulatedDriver, job: Job) -> bytes:
    """The outputs, or the complaint of the device."""
    try:
        return run_job(driver, job).tobytes()
    except DriverError as error:
        return str(error).removeprefix("the simulated device: ").encode()


# --- ptxas -----------------------------------------------------------------------------------------


@pytest.mark.skipif(bool(assembling.missing()), reason=assembling.missing() or "ptxas is there")
@pytest.mark.parametrize(
    "target", sample((one for one in ARCHITECTURES if ptxas.missing() or ptxas.knows(one)), 3)
)
def test_ptxas_assembles_kernels(target: str) -> None:
    kernels = []
    for form in forms(target):
        for placement in placements(form):
            count = len(combinations_of(form, a_shared=placement.a_shared))
            kernels += [part.kernel for part in parts_of(random_set(form, count, 1, placement=placement))]
    assert [(kernel.ptx, errors) for kernel, errors in assembling.refusals(kernels, target)] == []


@pytest.mark.skipif(bool(assembling.missing()), reason=assembling.missing() or "ptxas is there")
def test_ptxas_assembles_kernels_of_tensor_memory() -> None:
    trials = EXPERIMENTS["scale-groups"].trials("sm_100a")
    kernels = [part.kernel for trial in trials for part in parts_of(trial.vectors)]
    assert len(kernels) == 2
    assert list(assembling.refusals(kernels, "sm_100a")) == []


def test_kernels_of_tensor_memory_take_dense_forms_of_a_cta() -> None:
    pair = warpsim.decode("tcgen05.mma.cta_group::2.kind::f16", target="sm_100a", idesc=0x10100010)
    with pytest.raises(NotModelled, match="kernels take dense forms of a CTA, with A behind a descriptor"):
        tensor_kernel(pair, {}, {})


@pytest.mark.skipif(bool(assembling.missing()), reason=assembling.missing() or "ptxas is there")
def test_ptxas_refuses_what_is_wrong() -> None:
    parts = list(parts_of(random_set(warpsim.decode(SPARSE, target="sm_80"), 4, 1)))
    kernels = [part.kernel for part in parts]
    wrong = replace(kernels[1], ptx=kernels[1].ptx.replace("%e0, 0x1", "%e0, 0x7"))
    ((refused, errors),) = assembling.refusals([kernels[0], wrong], "sm_80")
    assert refused is wrong
    assert "selector" in errors.lower() or "immediate" in errors.lower() or "out of" in errors.lower()
