"""The outputs of real GPUs, reproduced bit for bit through the public interface.

The samples are those of Khattak and Mikaitis, "Accurate Models of NVIDIA Tensor Cores" (arXiv 2512.07004):
github.com/north-numerical-computing/MATLAB-tensor-core, folder model_validation, BSD 2-Clause, Copyright (c)
2025 Faizan A. Khattak and Mantas Mikaitis, converted to float32 bit patterns, half of every set. They are not
part of this repository: where they are not found beside it, these tests are skipped.

One sample is one dot product; eight of them lie on the diagonal of each product of matrices.
"""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

import warpsim
from warpsim.isa.architectures import rule_of
from warpsim.isa.formats import Format
from warpsim.isa.instruction import Instruction
from warpsim.isa.products import Operands
from warpsim.sums.arithmetic import numerics, reference

Floats = npt.NDArray[np.float32]

BESIDE = Path(__file__).resolve().parents[3].parent / "shared" / "hw"
SAMPLES = Path(os.environ.get("WARPSIM_CHIP_OUTPUTS", BESIDE))  # traces/README.md says how to get them

# File name -> target and the name that evidence gives the chip.
CHIPS = {
    "V100": ("sm_70", "V100"),
    "A100": ("sm_80", "A100"),
    "A2": ("sm_86", "A2"),
    "L40S": ("sm_89", "L40S"),
    "Ada": ("sm_89", "RTX Ada"),
    "H100": ("sm_90a", "H100"),
    "H200": ("sm_90a", "H200"),
    "B200": ("sm_100", "B200"),
}
TYPES = {"fp16": "f16", "bf16": "bf16", "tf32": "tf32", "E4M3": "e4m3", "E5M2": "e5m2"}


class Sample(NamedTuple):
    """One published set: a chip, the type of A and B, and the type of D."""

    chip: str
    factor: str
    result: str

    def __str__(self) -> str:
        return f"{self.chip}-{self.factor}-{self.result}"

    @property
    def by_wgmma(self) -> bool:
        """Whether the set was made by wgmma, which then did not add C (scale-d was 0)."""
        return self.chip in ("H100", "H200") and self.factor in ("E4M3", "E5M2") and self.result == "D_fp32"

    def load(self) -> dict[str, Floats]:
        """A and B ``(samples, k)``, C and D ``(samples,)``."""
        with np.load(SAMPLES / f"{self.chip}_{self.factor}.npz") as arrays:
            names = {"A": "A", "B": "B", "C": "C", "D": self.result}
            return {short: arrays[name].view(np.float32) for short, name in names.items()}

    def instruction(self, k: int) -> Instruction:
        """The mma that made the set (of the same formats, where wgmma did)."""
        shape = f"m8n8k{k}" if self.chip == "V100" else f"m16n8k{k}"
        d, ab = {"D_fp32": "f32", "D_fp16": "f16"}[self.result], TYPES[self.factor]
        mnemonic = f"mma.sync.aligned.{shape}.row.col.{d}.{ab}.{ab}.{d}"
        return warpsim.decode(mnemonic, target=CHIPS[self.chip][0])


def published() -> list[Sample]:
    """Every set that is there."""
    sets = []
    for path in sorted(SAMPLES.glob("*.npz")):
        with np.load(path) as arrays:
            results = [name for name in arrays if name.startswith("D_")]
        sets += [Sample(*path.stem.split("_"), result) for result in results]
    return sets


SETS = published()

replayed = pytest.mark.skipif(not SETS, reason="the published GPU samples are not beside the repository")


def exactly(values: Floats, element: Format) -> npt.NDArray[Any]:
    """The values in a narrower format, which holds them all."""
    narrow = values.astype(element.dtype)
    assert np.array_equal(narrow.astype(np.float32), values, equal_nan=True)
    return narrow


def on_diagonals(rows: npt.NDArray[Any], height: int, width: int) -> npt.NDArray[Any]:
    """``(samples,)`` as diagonals of matrices ``(matrices, height, width)``, eight each."""
    eights = np.zeros((-(-len(rows) // 8), 8), rows.dtype)
    eights.reshape(-1)[: len(rows)] = rows
    matrices = np.zeros((len(eights), height, width), rows.dtype)
    matrices[:, range(8), range(8)] = eights
    return matrices


def in_rows(rows: npt.NDArray[Any], height: int) -> npt.NDArray[Any]:
    """``(samples, k)`` as rows 0 to 7 of matrices ``(matrices, height, k)``."""
    matrices = np.zeros((-(-len(rows) // 8), height, rows.shape[1]), rows.dtype)
    for row in range(8):
        part = rows[row::8]
        matrices[: len(part), row] = part
    return matrices


def simulated(sample: Sample, data: dict[str, Floats]) -> Floats:
    """What matmul makes of the samples, widened to float32."""
    form = sample.instruction(data["A"].shape[1])
    m, n = form.shape.m, form.shape.n
    D = warpsim.matmul(
        form,
        in_rows(exactly(data["A"], form.a), m),
        in_rows(exactly(data["B"], form.b), n).swapaxes(1, 2),
        on_diagonals(data["C"].astype(form.c.dtype), m, n),
    )
    return D[:, range(8), range(8)].reshape(-1)[: len(data["D"])].astype(np.float32)


def differences(result: Floats, expected: Floats) -> int:
    """How many bit patterns differ."""
    assert result.shape == expected.shape
    return int((result.view(np.uint32) != expected.view(np.uint32)).sum())


@replayed
@pytest.mark.parametrize("sample", [s for s in SETS if not s.by_wgmma], ids=str)
def test_mma_gives_the_outputs_of_the_chip(sample: Sample) -> None:
    data = sample.load()
    assert len(data["D"]) == 2500
    assert not np.isnan(data["D"]).any()  # or widening f16 results in software would matter
    assert differences(simulated(sample, data), data["D"]) == 0


@replayed
@pytest.mark.parametrize("engine", [numerics, reference], ids=["kernel", "reference"])
@pytest.mark.parametrize("sample", [s for s in SETS if s.by_wgmma], ids=str)
def test_the_rule_of_wgmma_gives_the_outputs_of_the_chip(sample: Sample, engine: Any) -> None:
    data = sample.load()
    form = sample.instruction(data["A"].shape[1])
    rule = rule_of("sm_90a", "wgmma", form.product, with_c=False)
    operands = Operands(
        product=form.product,
        a=exactly(data["A"], form.a).view(np.uint8)[:, None, :],
        b=exactly(data["B"], form.b).view(np.uint8)[:, :, None],
        c=np.zeros((len(data["D"]), 1, 1), np.uint32),
    )
    result = engine.compute(operands, rule).reshape(-1).view(np.float32)
    assert len(result) == 2500
    assert differences(result, data["D"]) == 0


@replayed
@pytest.mark.parametrize(
    ("chip", "other"), [("A100", "H100"), ("H100", "A100"), ("V100", "A100"), ("L40S", "H100")]
)
def test_the_samples_tell_one_chip_from_another(chip: str, other: str) -> None:
    """The comparison can fail: the inputs of one chip give other bits by the rule of another."""
    factor = "E4M3" if chip == "L40S" else "fp16"
    result = "D_fp16" if chip == "H100" and factor == "E4M3" else "D_fp32"
    data = Sample(chip, factor, result).load()
    k = max(data["A"].shape[1], 8)
    padded = {**data, **{x: np.pad(data[x], ((0, 0), (0, k - data[x].shape[1]))) for x in "AB"}}
    assert differences(simulated(Sample(other, factor, result), padded), data["D"]) > 100


# --- evidence --------------------------------------------------------------------------------------


Use = tuple[
    str, str, str, str, str, str, int, bool
]  # target, family, types of A, B, C and D, k, whether C is added
SAME_CHIP = {"sm_90a": "sm_90", "sm_100a": "sm_100", "sm_100f": "sm_100"}

# What the sets above are: by target, the types of A and B (of D: f32, f16, both) and k. A second statement
# for clones without the samples; where they are, it is compared with them.
STATED = """
sm_70   V100         f16:both:4
sm_80   A100         f16:both:8 bf16:f32:8 tf32:f32:4
sm_86   A2           f16:both:8 bf16:f32:8 tf32:f32:4
sm_89   L40S         f16:both:8 bf16:f32:8 tf32:f32:4 e4m3:f32:32 e5m2:f32:32
sm_89   RTX_Ada      f16:both:8 bf16:f32:8 tf32:f32:4 e4m3:both:32 e5m2:both:32
sm_90   H100         f16:both:16 bf16:f32:16 tf32:f32:4 e4m3:both:32 e5m2:both:32
sm_90   H200         f16:both:16 bf16:f32:16 tf32:f32:4 e4m3:both:32 e5m2:both:32
sm_100  B200         f16:both:16 bf16:f32:16 tf32:f32:4 e4m3:both:32 e5m2:both:32
"""


def stated() -> dict[Use, dict[str, int]]:
    """(what was compared) -> outputs by chip, of the table above: 2,500 a set."""
    found: dict[Use, dict[str, int]] = defaultdict(dict)
    for line in STATED.split("\n")[1:-1]:
        target, chip, *sets = line.split()
        for factor, results, k in (one.split(":") for one in sets):
            for d in {"both": ("f32", "f16")}.get(results, (results,)):
                by_wgmma = target == "sm_90" and factor[0] == "e" and d == "f32"
                family = "wgmma" if by_wgmma else "mma"
                use = (target, family, factor, factor, d, d, int(k), not by_wgmma)
                found[use][chip.replace("_", " ")] = 2500
    return found


@replayed
def test_the_samples_are_those_that_are_stated() -> None:
    found: dict[Use, dict[str, int]] = defaultdict(dict)
    for sample in SETS:
        data = sample.load()
        form = sample.instruction(data["A"].shape[1])
        target, chip = CHIPS[sample.chip]
        family = "wgmma" if sample.by_wgmma else "mma"
        types = (form.a.name, form.b.name, form.c.name, form.d.name)
        use = (SAME_CHIP.get(target, target), family, *types, form.shape.k, not sample.by_wgmma)
        found[use][chip] = len(data["D"])
    assert found == stated()


def test_forms_are_validated_where_outputs_of_their_types_and_k_were_compared_and_nowhere_else() -> None:
    """Every form on every target, with C and, where it can leave C out, without: both numbers are equal."""
    known, labelled = stated(), 0
    for form in warpsim.instructions():
        for target in form.targets:
            for with_c in (True, False) if form.reads_tiles else (True,):
                types = (form.a.name, form.b.name, form.c.name, form.d.name)
                use = (SAME_CHIP.get(target, target), form.family.name, *types, form.shape.k, with_c)
                chips = known.get(use, {})
                found = warpsim.evidence(form, target, with_c=with_c)
                assert (found.label == "validated") == bool(chips), (str(form), target, with_c)
                assert (found.chips, found.outputs) == (", ".join(chips), sum(chips.values()))
                labelled += found.label == "validated"
    assert labelled == 68 + 64  # of mma, and of wgmma without C
