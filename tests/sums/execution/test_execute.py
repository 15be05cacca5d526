"""Registers in, registers out: execute against matmul, against NumPy's integers, and against garbage.

That matmul itself is right is the matter of test_numerics.py; here the question is whether every operand
reaches it, from every lane, and whether what must not matter does not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers import manual_layouts, nasty
from tests.helpers.families import each_of, sample
from warpsim import IllegalInstruction, NotModelled, OperandError, UndefinedBehavior
from warpsim.isa.architectures import ARCHITECTURES
from warpsim.isa.codes import matrix_of
from warpsim.isa.instruction import Instruction
from warpsim.isa.products import Operands
from warpsim.sums.arithmetic import numerics
from warpsim.sums.execution.pipeline import rule_for


def forms_on_a_target() -> list[Instruction]:
    """Every form of one warp, each on the first target that has it."""
    found: dict[str, Instruction] = {}
    for target in ARCHITECTURES:
        for form in warpsim.instructions(target):
            found.setdefault(form.mnemonic, form)
    return [form for form in found.values() if form.lanes == 32]


FORMS = forms_on_a_target()
SPARSE = [form for form in FORMS if form.sparse]
SCALED = [form for form in FORMS if form.scale]
INTEGER = [form for form in FORMS if form.operation == "integer"]
BINARY = [form for form in FORMS if form.operation == "b1"]

F16 = warpsim.decode("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", target="sm_90")
SP = warpsim.decode("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", target="sm_90")
QUADS = warpsim.decode("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", target="sm_70")
MXF4 = next(form for form in SCALED if form.kind == "mxf4" and not form.sparse)


def codes(form: Instruction, operand: str, lead: tuple[int, ...], rng: nasty.Rng) -> Any:
    """Codes of an operand's matrix: of floats within a few binades, so that every element matters."""
    element, shape = form.format(operand), (*lead, *form.matrix_shape(operand))
    if not element.is_float:
        return nasty.random_codes(element, shape, rng)
    return nasty.near(element, shape, 2, rng, middle=0 if operand in "cd" else None)


def problem(form: Instruction, rng: nasty.Rng, lead: tuple[int, ...] = ()) -> dict[str, Any]:
    """Arguments of matmul as raw codes; sparse A as values and indices, scales of many sizes."""
    arguments = {operand.upper(): codes(form, operand, lead, rng) for operand in "abc"}
    if form.sparse:
        indices = nasty.indices(form, (*lead, 16), rng)
        arguments["A"] = (arguments["A"], indices)
    if form.scale:
        (m, n), chunks = (form.shape.m, form.shape.n), form.scale_chunks
        arguments["scale_a"] = nasty.near(form.scale, (*lead, m, chunks), 3, rng)
        arguments["scale_b"] = nasty.near(form.scale, (*lead, chunks, n), 3, rng)
    return arguments


def scale_words(scale: Any, lanes: Any, byte: int, rng: nasty.Rng) -> Any:
    """Random words, with ``scale (..., rows, chunks)`` in the given lane of each row from ``byte`` on."""
    words = rng.integers(0, 255, (*scale.shape[:-2], 32, 4), np.uint8, endpoint=True)
    words[..., lanes, byte : byte + scale.shape[-1]] = scale
    return words.view(np.uint32)


def registers(
    form: Instruction, matrices: dict[str, Any], rng: nasty.Rng, selector: int = 0, ids: Any = (0, 0, 0, 0)
) -> dict[str, Any]:
    """Arguments of execute for the arguments of matmul; whatever is not asked for holds garbage."""
    stored, *indices = matrices["A"] if form.sparse else (matrices["A"],)
    words = {"a": stored, "b": matrices["B"], "c": matrices["C"]}
    arguments = {name: warpsim.pack(form, name, matrix) for name, matrix in words.items()}
    if form.sparse:
        e = rng.integers(0, 2**32, (*stored.shape[:-2], 32, 1), np.uint64).astype(np.uint32)
        section = manual_layouts.find_section(True, str(form.shape), str(form.a))
        lanes = sorted({lane for lane, *_ in section.metadata(selector)})
        e[..., lanes, :] = warpsim.pack_metadata(form, indices[0], selector)[..., lanes, :]
        arguments |= {"e": e, "selector": selector}
    if form.scale:
        byte_a, thread_a, byte_b, thread_b = ids
        row, column = np.arange(16), np.arange(8)
        lanes_a = 4 * (row % 8) + 2 * thread_a + row // 8
        scale_b = matrices["scale_b"].swapaxes(-1, -2)
        arguments["scale_a"] = scale_words(matrices["scale_a"], lanes_a, byte_a, rng)
        arguments["scale_b"] = scale_words(scale_b, 4 * column + thread_b, byte_b, rng)
        arguments |= {"byte_id_a": byte_a, "thread_id_a": thread_a}
        arguments |= {"byte_id_b": byte_b, "thread_id_b": thread_b}
    return arguments


def same(x: Any, y: Any) -> bool:
    """Equal to the bit, shape and dtype."""
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


def agrees(form: Instruction, matrices: dict[str, Any], words: dict[str, Any], **options: Any) -> bool:
    """Whether execute and matmul give the same D."""
    D = warpsim.matmul(form, **matrices, **options)
    return same(warpsim.unpack(form, "d", warpsim.execute(form, **words, **options)), D)


# --- execute = matmul ------------------------------------------------------------------------------


@each_of(FORMS, nasty.name, parts=4)
def test_execute_is_matmul_between_pack_and_unpack(form: Instruction) -> None:
    rng = np.random.default_rng(form.stored_k)
    lead = (2, 4) if form.products > 1 else (2,)
    for selector in form.selectors or (0,):
        matrices = problem(form, rng, lead)
        D = warpsim.execute(form, **registers(form, matrices, rng, selector))
        assert D.shape == (2, 32, form.registers["d"])
        assert agrees(form, matrices, registers(form, matrices, rng, selector))
        results = warpsim.unpack(form, "d", D)
        assert len(np.unique(results.view(f"u{results.dtype.itemsize}"))) > results.size // 4


@each_of(sample(SCALED, 3), nasty.name, parts=4)
def test_execute_takes_scales_from_every_byte_and_thread(form: Instruction) -> None:
    rng = np.random.default_rng(form.stored_k)
    matrices = problem(form, rng)
    byte_ids = range(0, 4, form.scale_chunks)
    for ids in np.array(np.meshgrid(byte_ids, range(2), byte_ids, range(4))).reshape(4, -1).T.tolist():
        assert agrees(form, matrices, registers(form, matrices, rng, ids=ids)), ids


@each_of(SCALED, nasty.name)
def test_every_scale_matters(form: Instruction) -> None:
    rng = np.random.default_rng(form.stored_k)
    matrices = problem(form, rng)
    matrices["C"] = np.zeros_like(matrices["C"])
    before = warpsim.matmul(form, **matrices)
    for chunk in range(form.scale_chunks):
        for side, place in (("scale_a", (5, chunk)), ("scale_b", (chunk, 3))):
            scales = matrices[side].copy()
            scales[place] += 1 if str(form.scale) == "ue8m0" else 8  # doubled
            changed = warpsim.matmul(form, **(matrices | {side: scales})) != before
            line = changed[5] if side == "scale_a" else changed[:, 3]
            assert line.all() if form.scale_chunks == 1 else line.any()
            assert changed.sum() == line.sum()


@pytest.mark.parametrize("form", [F16, SP, MXF4], ids=nasty.name)
def test_the_reference_is_an_engine_of_execute(form: Instruction) -> None:
    rng = np.random.default_rng(0)
    matrices = problem(form, rng)
    words = registers(form, matrices, rng)
    assert same(warpsim.execute(form, **words, engine="reference"), warpsim.execute(form, **words))


@each_of(SPARSE, nasty.name)
def test_a_sparse_matrix_may_be_given_whole(form: Instruction) -> None:
    rng = np.random.default_rng(form.stored_k)
    matrices = problem(form, rng, (2,))
    whole = warpsim.decompress(*matrices["A"], form)
    assert same(warpsim.matmul(form, **(matrices | {"A": whole})), warpsim.matmul(form, **matrices))


@pytest.mark.parametrize("form", [f for f in SPARSE if "ordered" not in f.mnemonic], ids=nasty.name)
def test_plain_metadata_may_name_the_pairs_in_any_order(form: Instruction) -> None:
    """What is stored goes with its own index. The sums do not change: a pair is in one step."""
    rng = np.random.default_rng(form.stored_k)
    matrices = problem(form, rng)
    values, indices = matrices["A"]
    pattern = form.pattern
    assert pattern is not None
    kept = pattern.kept
    turned = indices.reshape(16, -1, kept)[..., ::-1].reshape(16, -1)
    swapped = values.reshape(16, -1, kept, pattern.unit)[:, :, ::-1].reshape(16, -1)
    other = matrices | {"A": (swapped, turned)}
    assert same(warpsim.matmul(form, **other), warpsim.matmul(form, **matrices))
    assert agrees(form, other, registers(form, other, rng, form.selectors[-1]))


@each_of(SPARSE, nasty.name)
def test_rows_of_b_that_no_index_names_do_not_matter(form: Instruction) -> None:
    """All rows of A alike, so that the other rows of B are free; NaN there, or ones."""
    rng = np.random.default_rng(form.stored_k)
    matrices = problem(form, rng)
    values, indices = matrices["A"]
    indices = np.broadcast_to(indices[:1], indices.shape)
    used = np.isin(np.arange(form.shape.k), nasty.columns(form, indices[0]))
    matrices["A"] = (values, indices)
    other = np.where(used[:, None], matrices["B"], matrices["B"].dtype.type(form.b.mask))
    assert same(warpsim.matmul(form, **(matrices | {"B": other})), warpsim.matmul(form, **matrices))


@each_of([f for f in FORMS if f.kind in ("f8f6f4", "mxf8f6f4")], nasty.name)
def test_padding_of_byte_containers_does_not_matter(form: Instruction) -> None:
    rng = np.random.default_rng(form.stored_k)
    matrices = problem(form, rng)
    words = registers(form, matrices, rng)
    expected = warpsim.execute(form, **words)
    for operand in "ab":
        storage, mask = form.storage(operand), form.format(operand).mask
        used = sum(mask << (8 * byte + storage.shift) for byte in range(4))
        garbage = rng.integers(0, 2**32 - 1, words[operand].shape, np.uint64, endpoint=True)
        words[operand] = words[operand] | garbage.astype(np.uint32) & ~np.uint32(used)
    assert same(warpsim.execute(form, **words), expected)


# --- batches ---------------------------------------------------------------------------------------

BATCHED = [F16, SP, MXF4] + [
    next(form for form in FORMS if chosen(form))
    for chosen in (
        lambda form: form.sparse and form.a.name == "s4",
        lambda form: form.sparse and form.a.name == "e2m1" and form.scale,
        lambda form: form.a.name == "e3m2",
        lambda form: form.a.name == "f64",
        lambda form: form.a.name == "b1",
    )
]


@pytest.mark.parametrize("form", BATCHED, ids=nasty.name)
def test_a_batch_is_one_by_one(form: Instruction) -> None:
    rng = np.random.default_rng(0)
    matrices = problem(form, rng, (3, 2))
    words = registers(form, matrices, rng)
    arrays = {name: value for name, value in words.items() if isinstance(value, np.ndarray)}
    D = warpsim.execute(form, **words)
    for place in np.ndindex(3, 2):
        single = words | {name: array[place] for name, array in arrays.items()}
        assert same(warpsim.execute(form, **single), D[place])


@pytest.mark.parametrize("form", BATCHED, ids=nasty.name)
def test_leading_axes_broadcast(form: Instruction) -> None:
    rng = np.random.default_rng(0)
    matrices = problem(form, rng, (3, 2))
    words = registers(form, matrices, rng)
    part: dict[str, Any] = {"a": np.s_[:, :1], "b": np.s_[0], "c": np.s_[1, 1], "e": np.s_[:, :1]}
    part |= {"scale_a": np.s_[:1], "scale_b": np.s_[2]}
    small = {name: words[name][part[name]] for name in part if name in words}
    full = {name: np.broadcast_to(array, (3, 2, *array.shape[-2:])) for name, array in small.items()}
    D = warpsim.execute(form, **(words | small))
    assert D.shape == (3, 2, 32, form.registers["d"])
    assert same(D, warpsim.execute(form, **(words | full)))


@pytest.mark.parametrize("form", [*BATCHED, QUADS], ids=nasty.name)
def test_an_empty_batch_is_empty(form: Instruction) -> None:
    rng = np.random.default_rng(0)
    matrices = problem(form, rng, (0, 4))
    words = registers(form, matrices, rng)
    D = warpsim.execute(form, **words)
    assert D.shape == ((0,) if form.products > 1 else (0, 4)) + (32, form.registers["d"])
    assert warpsim.unpack(form, "d", D).size == 0
    assert warpsim.matmul(form, **matrices).shape == (0, 4, form.shape.m, form.shape.n)
    if form.sparse:
        empty = np.zeros((0, 16, form.shape.k), form.a.code_dtype)
        assert warpsim.prune(empty, form).shape == empty.shape
        values, indices = warpsim.compress(empty, form)
        assert warpsim.decompress(values, indices, form).shape == empty.shape
        assert warpsim.unpack_metadata(form, warpsim.pack_metadata(form, indices)).shape == indices.shape


def test_matmul_broadcasts_matrices() -> None:
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((5, 1, 16, 16)).astype("f2"), rng.standard_normal((4, 16, 8)).astype("f2")
    D = warpsim.matmul(F16, A, B)
    assert D.shape == (5, 4, 16, 8)
    for i, j in np.ndindex(5, 4):
        assert same(warpsim.matmul(F16, A[i, 0], B[j], np.zeros((16, 8), "f4")), D[i, j])


def test_the_four_products_of_m8n8k4_are_independent() -> None:
    rng = np.random.default_rng(0)
    matrices = problem(QUADS, rng, (4,))
    words = registers(QUADS, matrices, rng)
    D = warpsim.unpack(QUADS, "d", warpsim.execute(QUADS, **words))
    assert D.shape == (4, 8, 8)
    for product in range(4):
        alone = {name: matrix[product] for name, matrix in matrices.items()}
        assert same(warpsim.matmul(QUADS, **alone), D[product])


@pytest.mark.parametrize("form", [f for f in FORMS if f.products > 1], ids=nasty.name)
def test_m8n8k4_takes_batches_of_four_products(form: Instruction) -> None:
    rng = np.random.default_rng(0)
    matrices = problem(form, rng, (3, 4))
    words = registers(form, matrices, rng)
    assert agrees(form, matrices, words)
    assert same(
        warpsim.execute(form, **(words | {"b": words["b"][:1]})),
        warpsim.execute(form, **(words | {"b": np.repeat(words["b"][:1], 3, axis=0)})),
    )


# --- integers against NumPy ------------------------------------------------------------------------


def integer_problem(form: Instruction, rng: nasty.Rng) -> tuple[dict[str, Any], Any]:
    """Arguments of matmul by value, C near both ends of 32 bits, and the exact sums in int64."""
    matrices = problem(form, rng, (8,))
    stored, *indices = matrices["A"] if form.sparse else (matrices["A"],)
    stored, B = matrix_of(stored, form.a), matrix_of(matrices["B"], form.b)
    whole = warpsim.decompress(stored, indices[0], form) if form.sparse else stored
    products = whole.astype(np.int64) @ B.astype(np.int64)
    away = rng.integers(0, np.abs(products).max(), products.shape)
    C = np.where(rng.random(products.shape) < 0.5, 2**31 - 1 - away, away - 2**31)
    A = (stored, indices[0]) if form.sparse else stored
    return {"A": A, "B": B, "C": C.astype(np.int32)}, products + C


@each_of(INTEGER, nasty.name)
def test_integers_wrap_or_saturate_as_in_numpy(form: Instruction) -> None:
    rng = np.random.default_rng(form.stored_k)
    matrices, exact = integer_problem(form, rng)
    wrapped, clamped = exact.astype(np.uint32).view(np.int32), np.clip(exact, -(2**31), 2**31 - 1)
    expected = clamped if form.satfinite else wrapped
    assert (wrapped != clamped).mean() > 0.05
    assert np.array_equal(warpsim.matmul(form, **matrices), expected)
    words = registers(form, matrices, rng, (form.selectors or (0,))[-1])
    assert np.array_equal(warpsim.unpack(form, "d", warpsim.execute(form, **words)), expected)


@pytest.mark.parametrize("form", BINARY, ids=nasty.name)
def test_bits_are_counted_as_in_numpy(form: Instruction) -> None:
    rng = np.random.default_rng(form.stored_k)
    A, B = (rng.random((4, *form.matrix_shape(operand))) < 0.5 for operand in "ab")
    C = rng.integers(2**31 - 300, 2**31, (4, form.shape.m, form.shape.n)).astype(np.int32)
    pairs = A[..., :, :, None], B[..., None, :, :]
    both = pairs[0] ^ pairs[1] if "xor" in form.mnemonic else pairs[0] & pairs[1]
    expected = (C + both.sum(axis=-2)).astype(np.uint32).view(np.int32)
    assert (expected < 0).any()
    matrices = {"A": A, "B": B, "C": C}
    assert np.array_equal(warpsim.matmul(form, **matrices), expected)
    D = warpsim.execute(form, **registers(form, matrices, rng))
    assert np.array_equal(warpsim.unpack(form, "d", D), expected)


# --- metadata without a meaning --------------------------------------------------------------------

# One form of each element type, plain and ordered, on a chip of each kind.
METADATA = [
    (target, variant, text)
    for target in ("sm_80", "sm_89", "sm_90", "sm_100", "sm_110f", "sm_120", "sm_121a")
    for variant in ("sp", "sp::ordered_metadata")
    for text in (
        "m16n8k32.row.col.f32.f16.f16.f32",
        "m16n8k16.row.col.f32.bf16.bf16.f32",
        "m16n8k16.row.col.f32.tf32.tf32.f32",
        "m16n8k64.row.col.s32.s8.u8.s32",
        "m16n8k64.row.col.satfinite.s32.u4.s4.s32",
        "m16n8k64.row.col.f32.e4m3.e5m2.f32",
    )
    if target != "sm_80" or "e4m3" not in text
]


def unsorted_by_ptxas(target: str, form: Instruction) -> bool:
    """Where nobody knows what descending plain metadata does: Blackwell's bf16 and native fp8."""
    blackwell, native_f8 = target[3:5] in ("10", "11", "12"), target[3:5] == "12"
    return form.variant == "sp" and {"bf16": blackwell, "e4m3": native_f8}.get(form.a.name, False)


def expected_error(form: Instruction, target: str, value: int) -> tuple[type[Exception] | None, str]:
    """The error for a field value under undefined='error', and the reason in its message."""
    first, second = value % 4, value // 4
    if form.a.name == "tf32":
        wrong = UndefinedBehavior if value not in (0b0100, 0b1110) else None
        return wrong, f"a 1:2 field is 0b0100 or 0b1110, {value:#06b} is undefined"
    if first == second:
        return UndefinedBehavior, f"indices {first}, {second} are equal, which PTX leaves undefined"
    if first > second and form.variant == "sp::ordered_metadata":
        reason = f"indices {first}, {second} descend, which PTX leaves undefined under .sp::ordered_metadata"
        return UndefinedBehavior, reason
    if first > second and unsorted_by_ptxas(target, form):
        return NotModelled, (
            f"descending indices are legal under plain .sp, but on {target} ptxas hands {form.a} metadata "
            f"to the hardware unsorted and its effect is not known; sort the pairs, or ask for the "
            f"documented fallback (undefined='fallback')"
        )
    return None, ""


def read_literally(form: Instruction, matrices: dict[str, Any], units: Any) -> Any:
    """D where every stored unit multiplies the rows of B that its own index names."""
    operands = Operands(
        product=form.product,
        a=matrices["A"][0][None],
        b=matrices["B"][None],
        c=matrices["C"][None],
        columns=nasty.columns(form, units)[None],
    )
    return matrix_of(numerics.compute(operands, rule_for(form)), form.d)[0]


@pytest.mark.parametrize(("target", "variant", "text"), METADATA)
def test_every_field_value_executes_or_says_why_not(target: str, variant: str, text: str) -> None:
    """The field under test is the first one of row 13, under the last selector."""
    form = warpsim.decode(f"mma.{variant}.sync.aligned.{text}", target=target)
    rng = np.random.default_rng(0)
    matrices, selector = problem(form, rng), form.selectors[-1]
    words = registers(form, matrices, rng, selector)
    fields = manual_layouts.find_section(True, str(form.shape), str(form.a)).metadata(selector)
    lane, low = next((lane, low) for lane, low, _, row, chunk in fields if (row, chunk) == (13, 0))
    units = matrices["A"][1].copy()
    for value in range(16):
        words["e"][lane] = int(words["e"][lane, 0]) & ~(15 << low) | value << low
        named = [value >> 1 & 1] if form.a.name == "tf32" else [value % 4, value // 4]
        units[13, : len(named)] = named
        literal = read_literally(form, matrices, units)
        D = warpsim.unpack(form, "d", warpsim.execute(form, **words, undefined="fallback"))
        assert same(D, literal), f"{value:04b}"
        wrong, reason = expected_error(form, target, value)
        if wrong is None:
            assert same(warpsim.unpack(form, "d", warpsim.execute(form, **words)), literal), f"{value:04b}"
            continue
        with pytest.raises(wrong) as error:
            warpsim.execute(form, **words)
        place = f"lane {lane}, bits {low + 3}..{low} (row 13, chunk 0)"
        assert str(error.value) == f"metadata field {value:#06b} in {place}: {reason}"


def test_the_fallback_of_equal_indices_counts_a_row_of_b_twice() -> None:
    A = np.zeros((16, 16), np.float16)
    A[0, :2] = 3, 4
    B = np.zeros((32, 8), np.float16)
    B[2] = 10
    indices = np.tile(np.array([0, 1], np.uint8), (16, 8))
    indices[0, :2] = 2, 2
    D = warpsim.matmul(SP, (A, indices), B, undefined="fallback")
    assert D[0].tolist() == [70.0] * 8
    with pytest.raises(UndefinedBehavior) as error:
        warpsim.matmul(SP, (A, indices), B)
    assert str(error.value) == (
        "metadata field 0b1010 in row 0, chunk 0: indices 2, 2 are equal, which PTX leaves undefined"
    )


def test_the_first_wrong_field_of_a_batch_is_named() -> None:
    rng = np.random.default_rng(0)
    matrices = problem(SP, rng, (2, 3))
    words = registers(SP, matrices, rng, 1)
    words["e"][1, 2, 7] = 0
    with pytest.raises(UndefinedBehavior) as error:
        warpsim.execute(SP, **words)
    assert str(error.value) == (
        "metadata field 0b0000 in lane 7, bits 3..0 (row 1, chunk 4) of batch element (1, 2): "
        "indices 0, 0 are equal, which PTX leaves undefined"
    )


# --- what execute and matmul refuse ----------------------------------------------------------------


def words_of(form: Instruction, **more: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {**registers(form, problem(form, rng), rng), **more}


def without(arguments: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in arguments.items() if key != name}


U4 = np.zeros((32, 1), "u4")
MATRICES = {"A": np.zeros((16, 16), "f2"), "B": np.zeros((16, 8), "f2"), "C": np.zeros((16, 8), "f4")}
SCALES = {
    "A": np.zeros((16, 64), "u1"),
    "B": np.zeros((64, 8), "u1"),
    "scale_a": np.zeros((16, 2), "u1"),
    "scale_b": np.zeros((2, 8), "u1"),
}


@pytest.mark.parametrize(
    ("form", "arguments", "error", "message"),
    [
        (F16, without(words_of(F16), "b"), OperandError, "{form} needs registers a, b, c; b is missing"),
        (SP, without(words_of(SP), "e"), OperandError, "{form} needs registers a, b, c, e; e is missing"),
        (MXF4, without(words_of(MXF4), "scale_b"), OperandError,
         "{form} needs registers a, b, c, scale_a, scale_b; scale_b is missing"),
        (F16, words_of(F16, e=U4), OperandError, "{form} has no operand e; it takes a, b, c"),
        (SP, words_of(SP, scale_a=U4), OperandError, "{form} has no operand scale_a; it takes a, b, c, e"),
        (F16, words_of(F16, a=np.zeros((32, 2), "u4")), OperandError,
         "a has shape (32, 2), but its registers come as (..., 32, 4): lanes, then registers"),
        (F16, words_of(F16, c=np.zeros((16, 8), "f4")), OperandError,
         "c has dtype float32, but registers are uint32: "
         "give bits (array.view(np.uint32)) or use warpsim.pack"),
        (SP, words_of(SP, selector=2), UndefinedBehavior, "sparsity selector 2: {form} has 0, 1"),
        (MXF4, words_of(MXF4, byte_id_a=1), IllegalInstruction,
         "byte-id-a 1: with 2 scales a word it is 0, 2"),
        (MXF4, words_of(MXF4, thread_id_a=2), IllegalInstruction, "thread-id-a 2: expected 0..1"),
        (MXF4, words_of(MXF4, thread_id_b=4), IllegalInstruction, "thread-id-b 4: expected 0..3"),
        (F16, words_of(F16, engine="cuda"), OperandError, "engine 'cuda': expected 'kernel' or 'reference'"),
        (SP, words_of(SP, undefined="ignore"), OperandError,
         "undefined='ignore': expected 'error' or 'fallback'"),
        (F16, words_of(F16, a=np.zeros((2, 32, 4), "u4"), b=np.zeros((3, 32, 2), "u4")), OperandError,
         "the leading (batch) axes do not broadcast together: (2,), (3,), ()"),
    ],
)  # fmt: skip
def test_execute_refuses(form: Instruction, arguments: dict[str, Any], error: Any, message: str) -> None:
    with pytest.raises(error) as raised:
        warpsim.execute(form, **arguments)
    assert str(raised.value) == message.format(form=form)


@pytest.mark.parametrize(
    ("form", "arguments", "message"),
    [
        (F16, MATRICES | {"A": np.zeros((16, 8), "f2")},
         "A has shape (16, 8), but this instruction takes (..., 16, 16)"),
        (F16, MATRICES | {"B": np.zeros((8, 16), "f2")},
         "B has shape (8, 16), but this instruction takes (..., 16, 8)"),
        (F16, MATRICES | {"C": np.zeros((16, 4), "f4")},
         "C has shape (16, 4), but this instruction takes (..., 16, 8)"),
        (F16, MATRICES | {"A": np.zeros((16, 16))},
         "A has dtype float64, but f16 elements come as float16 or uint16 codes: "
         "convert it first, so that the rounding is yours"),
        (F16, MATRICES | {"A": np.zeros((2, 16, 16), "f2"), "B": np.zeros((3, 16, 8), "f2")},
         "the leading (batch) axes do not broadcast together: (2,), (3,), ()"),
        (F16, MATRICES | {"scale_a": np.zeros((16, 1), "u1")}, "{form} does not take scale_a"),
        (MXF4, without(SCALES, "scale_b"), "{form} needs scale_b"),
        (MXF4, SCALES | {"scale_a": np.zeros((16, 1), "u1")},
         "scale_a has shape (16, 1), but this instruction takes (..., 16, 2)"),
        (MXF4, SCALES | {"scale_b": np.zeros((2, 8))},
         "scale_b has dtype float64, but ue8m0 elements come as float8_e8m0fnu or uint8 codes: "
         "convert it first, so that the rounding is yours"),
        (SP, MATRICES | {"A": np.zeros((16, 16), "f2"), "B": np.zeros((32, 8), "f2")},
         "A has shape (16, 16), but this instruction takes (..., 16, 32)"),
        (SP, MATRICES | {"A": np.ones((16, 32), "f2"), "B": np.zeros((32, 8), "f2")},
         "A, row 0, columns 0..3 (chunk 0): 4 non-zero elements, but 2:4 sparsity keeps 2 of 4"),
        (SP, MATRICES | {"A": (np.ones((16, 32), "f2"), np.zeros((16, 16), int)),
                         "B": np.zeros((32, 8), "f2")},
         "A's stored values has shape (16, 32), but this instruction takes (..., 16, 16)"),
        (F16, MATRICES | {"engine": "cuda"}, "engine 'cuda': expected 'kernel' or 'reference'"),
    ],
)  # fmt: skip
def test_matmul_refuses(form: Instruction, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(OperandError) as raised:
        warpsim.matmul(form, **arguments)
    assert str(raised.value) == message.format(form=form)


def test_a_form_without_a_target_has_no_result() -> None:
    form = next(form for form in warpsim.instructions() if form.mnemonic == F16.mnemonic)
    message = f"{form} has no target, and the result depends on it: give target='sm_…' (--target sm_…)"
    for call in (
        lambda: warpsim.matmul(form, **MATRICES),
        lambda: warpsim.execute(form, **words_of(F16)),
        lambda: warpsim.evidence(form),
    ):
        with pytest.raises(IllegalInstruction) as error:
            call()
        assert str(error.value) == message


def test_text_and_a_target_do_for_an_instruction() -> None:
    words = words_of(F16)
    expected = warpsim.execute(F16, **words)
    assert same(warpsim.execute(F16.mnemonic, target="sm_90", **words), expected)
    assert same(warpsim.execute(F16, target="sm_90", **words), expected)


def test_matmul_without_c_adds_nothing() -> None:
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((16, 16)).astype("f2"), rng.standard_normal((16, 8)).astype("f2")
    zero = warpsim.matmul(F16, A, B, np.zeros((16, 8), np.float32))
    assert same(warpsim.matmul(F16, A, B), zero)


def test_scales_come_as_codes_or_in_the_type_of_ml_dtypes() -> None:
    rng = np.random.default_rng(0)
    for vector in ("2X", "4X"):
        form = next(f for f in SCALED if f.scale_vector == vector and f.kind == "mxf4nvf4" and not f.sparse)
        assert form.scale is not None
        matrices = problem(form, rng)
        typed = {side: matrices[side].view(form.scale.dtype) for side in ("scale_a", "scale_b")}
        assert same(warpsim.matmul(form, **(matrices | typed)), warpsim.matmul(form, **matrices))


def test_the_top_bit_of_a_ue4m3_scale_is_ignored() -> None:
    form = next(f for f in SCALED if str(f.scale) == "ue4m3" and not f.sparse)
    matrices = problem(form, np.random.default_rng(0))
    marked = {side: matrices[side] | np.uint8(0x80) for side in ("scale_a", "scale_b")}
    assert form.scale is not None
    typed = {side: codes.view(form.scale.dtype) for side, codes in marked.items()}
    for scales in (marked, typed):
        assert same(warpsim.matmul(form, **(matrices | scales)), warpsim.matmul(form, **matrices))


@pytest.mark.parametrize("engine", ["kernel", "reference"])
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"b_desc": 5, "scale_d": 0}, "takes no descriptors, shared memory, scale_d"),
        ({"a_desc": 5}, "takes no descriptors"),
        ({"scale_d": 0}, "takes no descriptors"),
        ({"imm_scale_a": -1}, "takes no descriptors"),
        ({"imm_trans_b": 1}, "takes no descriptors"),
        ({"shared": np.zeros(64, np.uint8)}, "takes no descriptors"),
        ({"selector": 1}, "is dense: it takes no selector"),
        ({"threads": 0}, "threads=0: at least 1, or None for all cores"),
    ],
)
def test_settings_of_other_instructions_are_refused(settings, message, engine):
    form = warpsim.decode("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", target="sm_80")
    words = {name: np.zeros((32, count), np.uint32) for name, count in form.registers.items() if name != "d"}
    with pytest.raises(OperandError, match=message):
        warpsim.execute(form, engine=engine, **words, **settings)


@pytest.mark.parametrize("engine", ["kernel", "reference"])
def test_ids_without_block_scales_are_refused(engine):
    form = warpsim.decode("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", target="sm_80")
    words = {name: np.zeros((32, count), np.uint32) for name, count in form.registers.items() if name != "d"}
    with pytest.raises(OperandError, match="has no block scales: it takes no byte or thread ids"):
        warpsim.execute(form, **words, byte_id_a=2, engine=engine)
