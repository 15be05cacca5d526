"""Diagnosis: every mistake injected is found, nothing else is, and dumps compare in classes.

The rates asserted here are for mistakes that change D at all on the random registers. A find counts if it
acts like the injected mistake on other random registers too; a false match is one that does not.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers.families import each_of, sample
from tools.mistakes.grammar.injected import SIMPLE, inputs_of, made, of_grammar
from warpsim import IllegalInstruction, OperandError, UndefinedBehavior
from warpsim.isa.formats import FORMATS
from warpsim.isa.instruction import Instruction
from warpsim.isa.operand_places.placements import ScaleSelectors
from warpsim.workbench.diagnosis import CLASSES, Diagnosis, Match, Mistake, compare, diagnose
from warpsim.workbench.diagnosis.dumps.dump_comparison import closeness
from warpsim.workbench.diagnosis.dumps.wrong_elements import wrong_elements
from warpsim.workbench.diagnosis.library.setting import Setting
from warpsim.workbench.diagnosis.search.cases import case_of, outcome, probe
from warpsim.workbench.diagnosis.search.diagnose import joined_with_others
from warpsim.workbench.diagnosis.solving.linear_operands import unposed
from warpsim.workbench.diagnosis.solving.other_causes import named_mistake, other_causes
from warpsim.workbench.diagnosis.solving.screening import Candidates, alternatives, costs
from warpsim.workbench.diagnosis.solving.solving import explained

Mistakes = tuple[Mistake, ...]


def sampled_forms() -> tuple[Instruction, ...]:
    """One form for each layout of operands, which types of as many bits share, on old and new targets.

    The whole of it: python -m tools.mistakes.grammar.injected.
    """
    found: dict[Any, Instruction] = {}
    for target in ("sm_75", "sm_80", "sm_89", "sm_120a", "sm_90a"):
        for form in warpsim.instructions(target):
            if form.lanes != 32 or form.satfinite or form.rounding:
                continue
            legacy = target in ("sm_75", "sm_89") and form.operation in ("m8n8k4.f16", "f8f6f4")
            types = [(each.bits, each.is_float) for each in (form.a, form.c)]
            scales = form.scale and form.scale_chunks
            found[form.shape, *types, form.sparse, form.bit_operation, scales, legacy and target] = form
    return tuple(found.values())


FORMS = sampled_forms()
F16 = warpsim.decode(
    "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", target="sm_90a"
)
S8 = warpsim.decode("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", target="sm_80")


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A form with random immediates and registers."""

    setting: Setting
    registers: dict[str, Any]

    @property
    def arguments(self) -> dict[str, Any]:
        ids = self.setting.scale_selectors
        return self.registers | {
            "selector": self.setting.selector,
            **{name: getattr(ids, name) for name in ("byte_id_a", "thread_id_a", "byte_id_b", "thread_id_b")},
        }

    def d(self, *explanation: Mistake) -> Any:
        return outcome(self.setting, self.registers, explanation)

    def mistake(self, operand: str, kind: str, **facts: Any) -> Mistake:
        return made(self.setting, operand, kind, **facts)

    def diagnosis(self, d: Any, **more: Any) -> Diagnosis:
        return diagnose(self.setting.instruction, **self.arguments, d=d, **more)

    def effect(self, explanation: Mistakes) -> bytes:
        """What an explanation does to other random registers."""
        return outcome(self.setting, probe(self.setting, 3, seed=77), explanation).tobytes()


@cache
def trial(form: Instruction, seed: int = 0, tiles: int = 1) -> Trial:
    rng = np.random.default_rng(seed)
    ids = ScaleSelectors()
    if form.scale:
        first = [int(x) for x in rng.choice(range(0, 4, form.scale_chunks), 2)]
        ids = ScaleSelectors(first[0], int(rng.integers(2)), first[1], int(rng.integers(4)))
    selector = int(rng.choice(form.selectors)) if form.sparse else 0
    setting = Setting(instruction=form, selector=selector, scale_selectors=ids)
    return Trial(setting=setting, registers=probe(setting, tiles, seed + 1000))


def check(case: Trial, explanation: Mistakes) -> None:
    """The injected mistakes, or what is the same, are found among the simplest causes."""
    d = case.d(*explanation)
    if np.array_equal(d, case.d()):
        return  # no effect on these registers
    found = case.diagnosis(d)
    effects = {case.effect(match.simplest.mistakes) for match in found.matches}
    if case.effect(explanation) not in effects:  # on these data something simpler gives every bit of D
        simpler = [match.simplest.mistakes for match in found.matches]
        most, names = sum(one.cost for one in explanation), [one.name for one in explanation]
        assert simpler, names
        for each in simpler:
            assert np.array_equal(case.d(*each), d), (names, each)
            assert sum(one.cost for one in each) < most, (names, each)


# --- every mistake is found ----------------------------------------------------------------------------


@cache
def every_kind() -> dict[str, tuple[Instruction, Mistake]]:
    """A mistake of every kind of the grammar, and every other cause, types aside, of the smallest form."""
    rng, homes = np.random.default_rng(3), dict[str, list[tuple[Instruction, str, Candidates]]]()
    others: dict[str, list[tuple[Instruction, Mistake]]] = {}
    for form in FORMS[::4]:
        for name in form.operands:
            operand = unposed(trial(form).setting, name)
            every = alternatives(operand)
            for number in rng.choice(np.flatnonzero(costs(operand, every) <= SIMPLE), 80).tolist():
                single = every.of(np.array([number]))
                homes.setdefault(explained(operand, single, 0).kind, []).append((form, name, single))
    for form in FORMS:
        for other in other_causes(trial(form).setting):
            words = (word for word in other.name.split() if not any(map(str.isdigit, word)))  # without types
            others.setdefault(" ".join(words), []).append((form, other))
    found = {}
    for kind, known in homes.items():
        form, name, single = min(known, key=lambda home: multiplications(home[0]))
        found[kind] = form, named_mistake(explained(unposed(trial(form).setting, name), single, 0))
    smallest = {name: min(known, key=lambda home: multiplications(home[0])) for name, known in others.items()}
    return found | smallest


def multiplications(form: Instruction) -> int:
    return form.shape.m * form.shape.n * form.shape.k


@pytest.mark.parametrize("part", range(4))
def test_every_kind_is_found(part: int) -> None:
    @each_of(sample(every_kind().values(), 2)[part::4], lambda found: found[1].name)
    def is_found(form: Instruction, mistake: Mistake) -> None:
        check(trial(form), (mistake,))

    is_found()


@pytest.mark.parametrize("form", sample(FORMS, 5), ids=lambda form: f"{form.target} {form.mnemonic}")
def test_mistakes_in_every_form_are_found(form: Instruction) -> None:
    case, rng = trial(form, seed=1), np.random.default_rng(4)
    check(case, (of_grammar(case.setting, rng),))


SECOND = (("b", {"by": 8}), ("c", {"by": 1}), ("d", {"by": 16}))


@pytest.mark.parametrize("form", sample(FORMS, 32), ids=lambda form: f"{form.target} {form.mnemonic}")
def test_pairs_of_mistakes_are_found(form: Instruction) -> None:
    case = trial(form, seed=2)
    operand, facts = SECOND[len(form.mnemonic) % len(SECOND)]
    first = case.mistake("a", "xor", field="lane", by=4)
    check(case, (first, case.mistake(operand, "xor", field="lane", **facts)))


def test_advice_tells_what_to_change() -> None:
    for _, mistake in every_kind().values():
        assert len(mistake.advice) > 15
        assert "{" not in mistake.advice + mistake.name
        assert not mistake.advice.endswith(".")


# --- mistakes made by hand, through the public functions ------------------------------------------------

F16_DENSE = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
TF32_DENSE = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
F64_DENSE = "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"
S8_SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32"
MXF4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"


def ran(case: Trial, mnemonic: str = "", target: str | None = None, **other: Any) -> Any:
    """D of execute, some arguments or the form being others than the trial's."""
    form = case.setting.instruction
    chosen = warpsim.decode(mnemonic or form.mnemonic, target=target or form.target)
    taken = {"selector", "byte_id_a", "thread_id_a", "byte_id_b", "thread_id_b", *case.registers}
    arguments = {name: value for name, value in case.arguments.items() if name in taken}
    return warpsim.execute(chosen, **arguments | other)


def moved(case: Trial, operand: str, change: Any) -> Any:
    """Registers of an operand whose matrix was changed."""
    form = case.setting.instruction
    return warpsim.pack(form, operand, change(warpsim.unpack(form, operand, case.registers[operand])))


def swapped_blocks(matrix: Any) -> Any:
    """Each 8 x 8 block of B transposed."""
    return np.concatenate([matrix[:, :8].swapaxes(1, 2), matrix[:, 8:].swapaxes(1, 2)], axis=1)


def upper_zero(matrix: Any) -> Any:
    half = matrix.copy()
    half[..., matrix.shape[-1] // 2 :] = 0
    return half


def rounded(words: Any) -> Any:
    """cvt.rna.tf32.f32, by values."""
    value = words.view(np.float32).astype(np.float64)
    step = np.exp2(np.floor(np.log2(np.abs(value))) - 10)
    return (np.sign(value) * np.floor(np.abs(value) / step + 0.5) * step).astype(np.float32).view(np.uint32)


def as_for_wide_elements(case: Trial) -> Any:
    """Metadata of k64 with four chunks of rows g and g + 8 in each word, as f16 has it."""
    wrong = np.zeros_like(case.registers["e"])
    for lane, bit, _, row, chunk in warpsim.metadata_map(case.setting.instruction, 0).tolist():
        field = case.registers["e"][:, lane, 0] >> np.uint32(bit) & np.uint32(15)
        wrong[:, 4 * (row % 8) + chunk // 4, 0] |= field << np.uint32(16 * (row // 8) + 4 * (chunk % 4))
    return wrong


def rotated(words: Any, bits: int) -> Any:
    return words >> np.uint32(bits) | words << np.uint32(32 - bits)


BY_HAND: dict[str, tuple[str, str, Any]] = {
    "A: registers 1 and 2 exchanged": (
        *(F16_DENSE, "sm_90a"),
        lambda case: ran(case, a=case.registers["a"][..., [0, 2, 1, 3]]),
    ),
    "A: rows g and g + 8 exchanged": (
        *(F16_DENSE, "sm_90a"),
        lambda case: ran(case, a=moved(case, "a", lambda m: m[:, [*range(8, 16), *range(8)]])),
    ),
    "A: k halves exchanged": (
        *(F16_DENSE, "sm_80"),
        lambda case: ran(case, a=moved(case, "a", lambda m: m[..., [*range(8, 16), *range(8)]])),
    ),
    "A: second half of k is zero": (
        *(F16_DENSE, "sm_90a"),
        lambda case: ran(case, a=moved(case, "a", upper_zero)),
    ),
    "B: 8 x 8 blocks transposed": (
        *(F16_DENSE, "sm_90a"),
        lambda case: ran(case, b=moved(case, "b", swapped_blocks)),
    ),
    "B: transposed (rows read as columns)": (
        *(F16_DENSE, "sm_90a"),
        lambda case: ran(case, b=moved(case, "b", lambda m: m.reshape(-1, 8, 16).swapaxes(1, 2))),
    ),
    "B: transposed (columns read as rows)": (
        *(F16_DENSE, "sm_90a"),
        lambda case: ran(case, b=moved(case, "b", lambda m: m.swapaxes(1, 2).reshape(-1, 16, 8))),
    ),
    "B: 16-bit halves of each register exchanged": (
        *(F16_DENSE, "sm_90a"),
        lambda case: ran(case, b=rotated(case.registers["b"], 16)),
    ),
    "A: lane group off by +1": (
        *(F16_DENSE, "sm_90a"),
        lambda case: ran(case, a=np.roll(case.registers["a"], -4, axis=-2)),
    ),
    "D: rows g and g + 8 exchanged": (*(F16_DENSE, "sm_90a"), lambda case: ran(case)[..., [2, 3, 0, 1]]),
    "C and D: registers 1 and 2 exchanged": (
        *(F16_DENSE, "sm_90a"),
        lambda case: ran(case, c=case.registers["c"][..., [0, 2, 1, 3]])[..., [0, 2, 1, 3]],
    ),
    "C: lane l holds elements 4 * l to 4 * l + 3": (
        *(F16_DENSE, "sm_90a"),
        lambda case: ran(
            case,
            c=np.ascontiguousarray(warpsim.unpack(case.setting.instruction, "c", case.registers["c"]))
            .view(np.uint32)
            .reshape(-1, 32, 4),
        ),
    ),
    "accumulator not added": (
        *(F16_DENSE, "sm_90a"),
        lambda case: ran(case, c=np.zeros_like(case.registers["c"])),
    ),
    "accumulator added again to the result": (
        *(F16_DENSE, "sm_90a"),
        lambda case: (ran(case).view(np.float32) + case.registers["c"].view(np.float32)).view(np.uint32),
    ),
    "type of A bf16 instead of f16, type of B bf16 instead of f16": (
        *(F16_DENSE, "sm_90a"),
        lambda case: ran(case, F16_DENSE.replace(".f16", ".bf16")),
    ),
    "numerics of sm_70": (
        *("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", "sm_90"),
        lambda case: ran(case, target="sm_75"),
    ),
    "accumulator type f16.f16 instead of f32.f32": (
        *(F16_DENSE, "sm_90a"),
        lambda case: warpsim.matmul(
            F16_DENSE.replace("f32", "f16"),
            *(warpsim.unpack(F16_DENSE, name, case.registers[name]) for name in "ab"),
            warpsim.unpack(F16_DENSE, "c", case.registers["c"]).astype(np.float16),
            target="sm_90a",
        ).astype(np.float32),
    ),
    "rounding rz instead of rn": (
        *(F64_DENSE, "sm_90"),
        lambda case: ran(case, F64_DENSE.replace("row.col", "row.col.rz")),
    ),
    "A and B: f32 not rounded to tf32 (cvt.rna)": (
        *(TF32_DENSE, "sm_90a"),
        lambda case: ran(case, a=rounded(case.registers["a"]), b=rounded(case.registers["b"])),
    ),
    "metadata: selector 1 meant": (*(F16.mnemonic, "sm_90a"), lambda case: ran(case, selector=1)),
    "metadata: rows g and g + 8 exchanged": (
        *(S8_SPARSE, "sm_90a"),
        lambda case: ran(case, e=case.registers["e"][:, np.arange(32) ^ 1]),
    ),
    "metadata: arranged for elements of another width": (
        *(S8_SPARSE, "sm_90a"),
        lambda case: ran(case, e=as_for_wide_elements(case)),
    ),
    "metadata: the first k half's words used for both": (
        *(S8_SPARSE, "sm_90a"),
        lambda case: ran(case, e=case.registers["e"][:, np.arange(32) & ~2]),
    ),
    "type of A u8 instead of s8": (
        *(S8_SPARSE, "sm_90a"),
        lambda case: ran(case, S8_SPARSE.replace("s32.s8.s8", "s32.u8.s8")),
    ),
    "scales of A: byte id off by 2": (*(MXF4, "sm_120a"), lambda case: ran(case, byte_id_a=2)),
    "scales of A: thread id off by 2": (*(MXF4, "sm_120a"), lambda case: ran(case, thread_id_a=1)),
    "scales of B: thread id off by 3": (*(MXF4, "sm_120a"), lambda case: ran(case, thread_id_b=3)),
    "scales of A and B exchanged": (
        *(MXF4, "sm_120a"),
        lambda case: ran(case, scale_a=case.registers["scale_b"], scale_b=case.registers["scale_a"]),
    ),
}


def in_memory_order(case: Trial) -> Any:
    """Metadata of m16n8k32: the word of row i in the i-th lane that selector 0 reads."""
    wrong, lanes = np.zeros_like(case.registers["e"]), [4 * g + i for g in range(8) for i in range(2)]
    for lane, bit, _, row, chunk in warpsim.metadata_map(case.setting.instruction, 0).tolist():
        field = case.registers["e"][:, lane, 0] >> np.uint32(bit) & np.uint32(15)
        wrong[:, lanes[row], 0] |= field << np.uint32(4 * chunk)
    return wrong


def words(change: Any) -> Any:
    """D where every word of metadata was changed, as Python's integers; fields without a meaning are read."""

    def make(case: Trial) -> Any:
        changed = [change(int(word)) % 2**32 for word in case.registers["e"].flat]
        e = np.array(changed, np.uint32).reshape(case.registers["e"].shape)
        return ran(case, e=e, undefined="fallback")

    return make


def from_lanes(operand: str, source: list[int]) -> Any:
    """D where each lane has the registers of another one."""
    return lambda case: ran(case, **{operand: case.registers[operand][:, source]})


LANES = range(32)
QUAD = [lane // 4 * 4 for lane in LANES]  # the first lane of each lane's quad
WORDS_BY_HAND = {
    "metadata: shifted left by 4 bits": words(lambda word: word << 4),
    "metadata: shifted right by 8 bits": words(lambda word: word >> 8),
    "metadata: lower half-word only": words(lambda word: word & 0xFFFF),
    "metadata: upper half-word only": words(lambda word: word & 0xFFFF0000),
    "metadata: lower half-word in both": words(lambda word: (word & 0xFFFF) * 0x10001),
    "metadata: upper half-word in both": words(lambda word: (word >> 16) * 0x10001),
    "metadata: fields of 4 bits spread to 8": words(lambda word: int("0".join(f"{word & 0xFFFF:04x}"), 16)),
    "metadata: bytes of each register reversed": words(
        lambda word: int.from_bytes(word.to_bytes(4, "little"), "big")
    ),
    "metadata: bytes of each 16-bit half exchanged": words(
        lambda word: word >> 8 & 0x00FF00FF | (word & 0x00FF00FF) << 8
    ),
    "metadata: nibbles of each byte exchanged": words(
        lambda word: word >> 4 & 0x0F0F0F0F | (word & 0x0F0F0F0F) << 4
    ),
    "metadata: nibbles of each register reversed": words(lambda word: int(f"{word:08x}"[::-1], 16)),
    "metadata: indices of each field exchanged": words(
        lambda word: word >> 2 & 0x33333333 | (word & 0x33333333) << 2
    ),
    "metadata: in memory order, not reordered": lambda case: ran(case, e=in_memory_order(case)),
    "metadata: lane group off by -1": from_lanes("e", [(lane - 4) % 32 for lane in LANES]),
    "metadata: thread in group off by +1": from_lanes(
        "e", [first + (lane + 1) % 4 for lane, first in zip(LANES, QUAD, strict=True)]
    ),
    "A: lane off by +1": from_lanes("a", [(lane + 1) % 32 for lane in LANES]),
    "A: neighbouring lanes exchanged": from_lanes("a", [lane + 1 - 2 * (lane % 2) for lane in LANES]),
    "A: group and thread confused": from_lanes("a", [lane % 8 * 4 + lane // 8 for lane in LANES]),
    "A: lane halves exchanged": from_lanes("a", [*range(16, 32), *range(16)]),
}
S8_BY_HAND = {
    "metadata: row half and k half of the lane exchanged": [0, 2, 1, 3],
    "metadata: the first k half's words used for both": [0, 1, 0, 1],
    "metadata: the second k half's words used for both": [2, 3, 2, 3],
    "metadata: even lane's word in both lanes of a pair": [0, 0, 2, 2],
    "metadata: odd lane's word in both lanes of a pair": [1, 1, 3, 3],
    "metadata: lane 2's word broadcast": [2, 2, 2, 2],
}
BY_HAND |= {name: (F16.mnemonic, "sm_90a", make) for name, make in WORDS_BY_HAND.items()}
BY_HAND |= {
    name: (S8_SPARSE, "sm_90a", from_lanes("e", [first + one for first in QUAD[::4] for one in quad]))
    for name, quad in S8_BY_HAND.items()
}


@pytest.mark.parametrize("name", sample(BY_HAND, 2))
def test_mistakes_made_by_hand(name: str) -> None:
    mnemonic, target, make = BY_HAND[name]
    setting = Setting(instruction=warpsim.decode(mnemonic, target=target))
    case = Trial(setting=setting, registers=probe(setting, 1, seed=6))
    found = case.diagnosis(make(case), most=1)
    fresh = Trial(setting=setting, registers=probe(setting, 1, seed=7))
    (match,) = (match for match in found.matches if fresh_d(match, fresh, make))
    operands = {operand for cause in match.equivalent for each in cause.mistakes for operand in each.operands}
    assert {*name_operands(name)} <= operands


def fresh_d(match: Match, fresh: Trial, make: Any) -> bool:
    """Whether an explanation gives what the mistake gives on other data."""
    made, form = make(fresh), fresh.setting.instruction
    words = warpsim.pack(form, "d", made) if made.shape[-2:] == form.matrix_shape("d") else made
    return np.array_equal(fresh.d(*match.simplest.mistakes), words)


def name_operands(name: str) -> str:
    """The operand that a name starts with, if it does."""
    return name[0].lower() if name[1:2] == ":" else "e" if name.startswith("metadata") else ""


# --- what is reported ----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", sample(FORMS, 9, 2), ids=lambda form: f"{form.target} {form.mnemonic}")
def test_nothing_is_wrong(form: Instruction) -> None:
    case = trial(form)
    found = case.diagnosis(case.d())
    assert found.as_expected
    assert not found.found
    assert found.closest == ()
    assert str(found) == "D is as expected, bit for bit"


def test_the_selector_of_the_manual_example() -> None:
    """The registers are as dumped, D is what was expected: the other direction of the same search."""
    case = trial(F16, seed=8)
    assert case.setting.selector == 1
    meant = diagnose(F16, **case.arguments | {"selector": 0}, d=case.d())
    (match,) = meant.matches
    assert match.simplest.names == ("metadata: selector 1 meant",)
    assert match.simplest.advice.startswith("pass sparsity selector 1, or move the words")


def test_report_of_a_match() -> None:
    case = trial(F16)
    found = case.diagnosis(case.d(case.mistake("a", "swapped", field="register", first=1, second=2)))
    assert str(found) == (
        "D differs: 128 of 128 elements (by more than 1 ulp); every element wrong\n"
        "matches bit for bit: A: registers 1 and 2 exchanged: exchange registers 1 and 2 of A"
    )
    assert found.found
    assert found.matches[0].simplest.fraction == 1.0


def test_what_no_data_tells_apart_is_one_match() -> None:
    """Sums of integers do not depend on order: exchanging k halves of A or of B is the same."""
    case = trial(S8)
    found = case.diagnosis(case.d(case.mistake("b", "xor", field="row", by=16)))
    (match,) = found.matches
    names = [one.names for one in match.equivalent]
    assert names == [("A: k halves exchanged",), ("B: k halves exchanged",)]
    assert "(or 1 other of the same effect)" in str(match)


def test_of_what_this_data_does_not_tell_apart_the_simplest_is_named() -> None:
    """With C zero, C exchanged or not is the same; with other registers it is not."""
    case = trial(F16)
    zero = Trial(setting=case.setting, registers=case.registers | {"c": np.zeros_like(case.registers["c"])})
    d = zero.d(zero.mistake("d", "swapped", field="register", first=0, second=1))
    names = [match.simplest.names for match in zero.diagnosis(d).matches]
    assert names == [("D: registers 0 and 1 exchanged",)]


def test_tiles_must_all_be_explained() -> None:
    """One tile of three is as expected: the mistake explains the other two only."""
    case = trial(F16, tiles=3)
    d = case.d(case.mistake("b", "xor", field="row", by=16))
    assert case.diagnosis(d).found
    d[1] = case.d()[1]
    found = case.diagnosis(d, most=1)
    assert not found.found
    assert found.closest[0].names == ("B: k halves exchanged",)
    assert found.closest[0].fraction == pytest.approx(2 / 3)


def test_closest_explanation_and_what_is_left() -> None:
    case = trial(F16)
    d = case.d(case.mistake("e", "xor", field="lane", by=1))
    d[0, 9, 2] ^= np.uint32(1)
    found = case.diagnosis(d)
    assert not found.found
    best = found.closest[0]
    assert best.names == ("metadata: lanes i and i ^ 1 exchanged",)
    assert best.fraction == 127 / 128
    assert (best.wrong.rows, best.wrong.columns, best.wrong.lanes, best.wrong.registers) == (
        (10,),
        (2,),
        (9,),
        (2,),
    )
    assert best.wrong.text == "column 2 of row 10 wrong"
    assert "99.2% of D: metadata: lanes i and i ^ 1 exchanged" in str(found)


def test_the_right_mistake_is_first_though_every_element_is_one_bit_off() -> None:
    case = trial(warpsim.decode(F16_DENSE, target="sm_80"))
    d = case.d(case.mistake("a", "swapped", field="register", first=1, second=2)) ^ np.uint32(1)
    found = case.diagnosis(d)
    (best,) = found.closest
    assert best.names == ("A: registers 1 and 2 exchanged",)
    assert best.fraction == 0
    assert best.closeness == pytest.approx(1 - 1 / 23)
    assert best.remainder == "every element wrong; at most 1 ulps off, which is rounding"


def test_explanations_that_say_the_same_are_one_and_the_simplest() -> None:
    """tf32 metadata written as 0 and 1 reads as no metadata does, and as that of lanes that hold none."""
    form = warpsim.decode(
        "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32", target="sm_90a"
    )
    rng = np.random.default_rng(1)
    values, indices = warpsim.compress(warpsim.prune(rng.standard_normal((16, 16)).astype("f4"), form), form)
    b = warpsim.pack(form, "b", rng.standard_normal((16, 8)).astype("f4"))
    given = {"a": warpsim.pack(form, "a", values), "b": b, "c": np.zeros((32, 4), np.uint32)}
    e = warpsim.pack_metadata(form, indices)
    d = warpsim.execute(form, **given, e=e >> np.uint32(3) & np.uint32(0x11111111), undefined="fallback")
    (match,) = diagnose(form, **given, e=e, d=d).matches
    names = [cause.names[0] for cause in match.equivalent]
    assert names[0] == "metadata: all zero"
    assert "metadata: indices 0 and 1 written as fields" in names


def test_closeness_counts_bits() -> None:
    f32, x = FORMATS["f32"], np.float32([1, 2, 3, -4]).view(np.uint32)
    assert closeness(x, x, f32).tolist() == [1, 1, 1, 1]
    assert closeness(x, x ^ np.uint32(1), f32).tolist() == [1 - 1 / 23] * 4
    assert closeness(x, x ^ np.uint32(1 << 31), f32).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("suffix", ["m16n8k32.row.col.f32.f16.f16.f32", "m16n8k64.row.col.s32.s8.s8.s32"])
def test_noise_has_no_explanation_and_is_fast_enough(suffix: str) -> None:
    case = trial(warpsim.decode(f"mma.sp::ordered_metadata.sync.aligned.{suffix}", target="sm_90a"))
    d = np.random.default_rng(0).integers(0, 1 << 32, case.d().shape, np.uint32)
    start = time.process_time()
    found = case.diagnosis(d)
    assert time.process_time() - start < 15
    assert not found.found
    assert found.closest == ()
    assert found.simulated > 5000
    assert str(found).endswith(f"none of {found.simulated:,} explanations gives every bit")


def test_d_may_be_a_matrix_and_c_left_out() -> None:
    case = trial(F16)
    registers = {name: words[0] for name, words in case.registers.items() if name != "c"}
    d = warpsim.execute(F16, **registers, c=np.zeros((32, 4), np.uint32), selector=case.setting.selector)
    matrix = warpsim.unpack(F16, "d", d)
    given = {"selector": case.setting.selector, **registers}
    assert diagnose(F16, **given, d=matrix).as_expected
    assert diagnose(F16, **given, d=matrix.view(np.uint32)).as_expected
    halves = matrix.copy()
    halves[8:] = 0
    found = diagnose(F16, **given, d=halves)
    every = {one.names for match in found.matches for one in match.equivalent}
    assert {("A: odd registers are zero",), ("D: registers 2-3 are zero",)} <= every  # the same, as C is zero
    assert found.wrong.text == "rows 8-15 wrong, columns all alike"


def test_arguments_are_checked() -> None:
    case = trial(F16)
    with pytest.raises(OperandError, match="needs registers a, b, c, e; e is missing"):
        diagnose(F16, **{name: case.registers[name] for name in "abc"}, d=case.d())
    with pytest.raises(OperandError, match="has no operand scale_a; it takes a, b, c, e"):
        diagnose(F16, **case.registers, d=case.d(), scale_a=np.zeros((32, 1), np.uint32))
    with pytest.raises(UndefinedBehavior, match="sparsity selector 2"):
        diagnose(F16, **case.registers, d=case.d(), selector=2)
    with pytest.raises(OperandError, match="do not broadcast together"):
        diagnose(
            F16, **case.registers | {"a": np.zeros((3, 32, 4), np.uint32)}, d=np.zeros((2, 32, 4), np.uint32)
        )
    with pytest.raises(IllegalInstruction, match="no target"):
        diagnose(F16.mnemonic, **case.registers, d=case.d())


# --- patterns ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "columns", "expected"),
    [
        (slice(8, 16), slice(None), "rows 8-15 wrong, columns all alike"),
        (slice(None), slice(0, 8, 2), "columns 0, 2, ..., 6 wrong, rows all alike"),
        (slice(3, 4), slice(1, 3), "columns 1-2 of row 3 wrong"),
        (slice(0, 0), slice(None), "nothing wrong"),
        (slice(None), slice(None), "every element wrong"),
        ([1, 5], [2, 3], "2 of 128 elements wrong, in rows 1, 5, columns 2-3"),
    ],
)
def test_patterns(rows: Any, columns: Any, expected: str) -> None:
    matrix = np.zeros((16, 8), np.bool_)
    matrix[rows, columns] = True
    layout = F16.in_registers("d").layout
    found = wrong_elements(F16, layout.distribute(matrix).reshape(1, -1))
    assert found.text == str(found) == expected
    assert found.count == matrix.sum()
    assert found.rows == tuple(np.flatnonzero(matrix.any(axis=1)))


def test_patterns_in_lanes_and_registers() -> None:
    mask = np.zeros((1, 32, 4), np.bool_)
    mask[0, :, [1, 2]] = True
    assert wrong_elements(F16, mask.reshape(1, -1)).text == "registers 1-2 wrong, lanes all alike"
    mask[:] = False
    mask[0, 5, [0, 3]] = True
    found = wrong_elements(F16, mask.reshape(1, -1))
    assert (found.text, found.lanes, found.registers) == ("registers 0, 3 of lane 5 wrong", (5,), (0, 3))


# --- dumps ---------------------------------------------------------------------------------------------

CASES = [
    ("f32", 0x3F800000, 0x3F800000, "equal"),
    ("f32", 0x00000000, 0x80000000, "sign of zero"),
    ("f32", 0x7FFFFFFF, 0x7FC00001, "NaN payload"),
    ("f32", 0x7FFFFFFF, 0xFFFFFFFF, "NaN payload"),
    ("f32", 0x3F800000, 0x3F7FFFFF, "1 ulp"),
    ("f32", 0x00000000, 0x80000001, "1 ulp"),
    ("f32", 0xBF800000, 0xBF800001, "1 ulp"),
    ("f32", 0x3F800000, 0x3F800002, "more"),
    ("f32", 0x3F800000, 0xBF800000, "more"),
    ("f32", 0x7F800000, 0x7F7FFFFF, "more"),
    ("f32", 0x7F800000, 0x7FC00000, "more"),
    ("f32", 0x7F800000, 0xFF800000, "more"),
    ("s32", 0xFFFFFFFF, 0x00000000, "1 ulp"),
    ("s32", 0x7FFFFFFF, 0x80000000, "more"),
    ("tf32", 0x00000001, 0x00000000, "1 ulp"),
    ("tf32", 0x80000000, 0x00000000, "sign of zero"),
]


@pytest.mark.parametrize(("element", "x", "y", "expected"), CASES)
def test_classes(element: str, x: int, y: int, expected: str) -> None:
    for one, other in ((x, y), (y, x)):
        found = compare(np.uint32([one]), np.uint32([other]), element)
        assert CLASSES[found.words[0]] == expected
        assert found.equal == (expected == "equal")


def test_every_pair_of_f16_codes_near_the_edges() -> None:
    """Against a definition by values: neighbours in the sorted list of finite values."""
    codes = np.array([0, 1, 2, 0x3FF, 0x400, 0x3C00, 0x7BFE, 0x7BFF, 0x7C00, 0x7E00, 0x7FFF], np.uint16)
    codes = np.concatenate([codes, codes | 0x8000])
    values = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    ladder = {float(v): i for i, v in enumerate(np.unique(values[np.isfinite(values)]).astype(np.float64))}
    for x in codes:
        for y in codes:
            a, b = (float(np.array(code).view(np.float16)) for code in (x, y))
            near = a in ladder and b in ladder and abs(ladder[a] - ladder[b]) == 1
            expected = "equal" if x == y else "1 ulp" if near else "sign of zero" if a == b == 0 else "more"
            expected = "NaN payload" if x != y and np.isnan(a) and np.isnan(b) else expected
            words = np.array([[x, 0], [0, y]], np.uint16).view(np.uint32)
            found = compare(words[:1], np.array([[y, 0]], np.uint16).view(np.uint32), "f16")
            assert CLASSES[found.elements[0, 0, 0]] == expected, (hex(x), hex(y))


def test_f16_words_and_counts() -> None:
    a, b = np.uint32([[0x3C008000, 0x3C003C00]]), np.uint32([[0x3C010000, 0x3C003C00]])
    found = compare(a, b, "f16")
    assert found.elements.shape == (1, 2, 2)
    assert [CLASSES[word] for word in found.words[0]] == ["1 ulp", "equal"]
    assert found.counts == {"equal": 2, "sign of zero": 1, "NaN payload": 0, "1 ulp": 1, "more": 0}
    assert str(found) == "2 of 4 elements (1 in the sign of zero, 1 by 1 ulp)"


def test_differences_are_said_of_how_many_and_by_how_much() -> None:
    """Integers have no ulps."""
    a = np.uint32([5, 6, 7, 9])
    assert str(compare(a, a, "s32")) == "0 of 4 elements"
    assert str(compare(a, a + 1, "s32")) == "4 of 4 elements (by 1)"
    assert str(compare(a, np.uint32([5, 7, 9, 9]), "s32")) == "2 of 4 elements (1 by 1, 1 by more than 1)"
    nans = np.uint32([0x7FFFFFFF]), np.uint32([0x7FC00001])
    assert str(compare(*nans, "f32")) == "1 of 1 element (in the payload of a NaN)"


def test_f64_and_float_dumps() -> None:
    a = np.array([0.0, 1.0, np.nan, -1.0])
    b = np.array([-0.0, np.nextafter(1.0, 2.0), -np.nan, 1.0])
    names = [CLASSES[word] for word in compare(a, b, "f64").words]
    assert names == ["sign of zero", "1 ulp", "NaN payload", "more"]


def test_dumps_must_be_alike() -> None:
    with pytest.raises(OperandError, match="must be alike"):
        compare(np.zeros(3, np.uint32), np.zeros(4, np.uint32), "f32")
    with pytest.raises(OperandError, match="register dumps are 32- or 64-bit words"):
        compare(np.zeros(3, np.uint16), np.zeros(3, np.uint16), "f16")
    with pytest.raises(OperandError, match="format 'f17': it is one of"):
        compare(np.zeros(3, np.uint32), np.zeros(3, np.uint32), "f17")
    with pytest.raises(OperandError, match="do not fill words of 32 bits"):
        compare(np.zeros(3, np.uint32), np.zeros(3, np.uint32), "f64")


def test_probes_saturate():
    """C added twice before clamping is not C added to the clamped sum: they must not be called the same."""
    form = warpsim.decode("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32", target="sm_80")
    setting = Setting(instruction=form)
    c = unposed(setting, "c")
    number = next(at for at, each in enumerate(c.sources) if each.facts == {"factor": 2.0})
    twice = named_mistake(explained(c, Candidates(*np.array([[number], [0], [-1]])), 0))
    again = next(each for each in other_causes(setting) if "added again" in each.name)
    registers = probe(setting, 1, seed=0)
    assert (outcome(setting, registers, [twice]) != outcome(setting, registers, [again])).any()


def test_ids_of_scales_that_another_instruction_lacks() -> None:
    """Byte 2 of .scale_vec::2X is none of 4X: the search for two causes ended in an IndexError."""
    form = warpsim.decode(
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0",
        target="sm_120a",
    )
    setting = Setting(instruction=form, scale_selectors=ScaleSelectors(byte_id_a=2, byte_id_b=2))
    registers = probe(setting, 1, 0)
    case = case_of(form, inputs_of(setting, registers), outcome(setting, probe(setting, 1, 1), ()))
    forms = {mistake.arithmetic.instruction for mistake in other_causes(setting) if mistake.arithmetic}
    assert any(other.scale_chunks == 4 for other in forms)
    assert all(others for _, _, others in joined_with_others(case))
