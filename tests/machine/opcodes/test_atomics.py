"""atom and red against a Python loop over the lanes in their order, on addresses that many lanes share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import warpsim
from tests.helpers import float_samples
from tests.helpers.lane_kernels import run
from tests.helpers.slow_floats import evaluate, extremum
from warpsim.base.errors import Fault
from warpsim.machine.opcodes.memory.updates import _rounds, _runs, apply, updates_of

Words = npt.NDArray[Any]
THREADS, CTAS = 80, 3
COUNT = THREADS * CTAS


@pytest.fixture
def random(request: pytest.FixtureRequest) -> np.random.Generator:
    return np.random.default_rng(sum(map(ord, request.node.name)))


def words(random: np.random.Generator, bits: int, count: int = COUNT, few: bool = False) -> Words:
    top = 3 if few else 2**bits - 1
    return random.integers(0, top, count, dtype=f"u{bits // 8}", endpoint=True)


def number(value: int, kind: str) -> int:
    bits = int(kind[1:])
    return value - (1 << bits) if kind[0] == "s" and value >> (bits - 1) else value


INTEGERS: dict[str, Callable[[int, int, str], int]] = {
    "add": lambda old, b, kind: old + b,
    "min": lambda old, b, kind: min(number(old, kind), number(b, kind)),
    "max": lambda old, b, kind: max(number(old, kind), number(b, kind)),
    "inc": lambda old, b, kind: 0 if old >= b else old + 1,
    "dec": lambda old, b, kind: b if old == 0 or old > b else old - 1,
    "and": lambda old, b, kind: old & b,
    "or": lambda old, b, kind: old | b,
    "xor": lambda old, b, kind: old ^ b,
    "exch": lambda old, b, kind: b,
}
FORMS = [
    *(("add", kind) for kind in ("u32", "s32", "u64")),
    *((name, kind) for name in ("min", "max") for kind in ("u32", "s32", "u64", "s64")),
    *((name, "u32") for name in ("inc", "dec")),
    *((name, kind) for name in ("and", "or", "xor", "exch") for kind in ("b32", "b64")),
]


def in_turn(
    memory: list[int], places: Words, operands: list[Words], update: Callable[..., int], bits: int
) -> list[int]:
    """What each lane finds; ``memory`` is changed."""
    found = []
    for lane in range(len(places)):
        old = memory[int(places[lane])]
        found.append(old)
        memory[int(places[lane])] = update(old, *(int(one[lane]) for one in operands)) % 2**bits
    return found


@pytest.mark.parametrize(("name", "kind"), FORMS)
@pytest.mark.parametrize("places", [1, 5, 64])
def test_integers_in_global_memory(name: str, kind: str, places: int, random: np.random.Generator) -> None:
    bits = int(kind[1:])
    start, b = (
        words(random, bits, places, name in ("inc", "dec")),
        words(random, bits, few=name in ("inc", "dec")),
    )
    where = random.integers(0, places, COUNT, dtype=np.uint32)
    body = f"mad.wide.u32 %y0, %k, {bits // 8}, %buffer0;"
    inputs = {"b": b, "k": where}
    memory = start.tolist()
    wanted = in_turn(memory, where, [b], lambda old, one: INTEGERS[name](old, one, kind), bits)
    after = start.copy()
    found = run(f"{body} atom.global.{name}.{kind} %d, [%y0], %b;", inputs, {"d": bits}, threads=THREADS,
                ctas=CTAS, buffers=[after])  # fmt: skip
    assert found["d"].tolist() == wanted
    assert after.tolist() == memory
    if name != "exch":
        run(f"{body} red.{name}.{kind} [%y0], %b;", inputs, {"d": bits}, threads=THREADS, ctas=CTAS,
            buffers=[start])  # fmt: skip
        assert start.tolist() == memory


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_compare_and_swap(bits: int, random: np.random.Generator) -> None:
    start, b, c = (words(random, bits, few=True) for _ in range(3))
    where = random.integers(0, 6, COUNT, dtype=np.uint32)
    body = f"mad.wide.u32 %y0, %k, {bits // 8}, %buffer0; atom.acq_rel.gpu.cas.b{bits} %d, [%y0], %b, %c;"
    memory = start.tolist()
    wanted = in_turn(memory, where, [b, c], lambda old, one, two: two if old == one else old, bits)
    found = run(body, {"b": b, "c": c, "k": where}, {"d": bits}, threads=THREADS, ctas=CTAS, buffers=[start])
    assert found["d"].tolist() == wanted
    assert start.tolist() == memory


@pytest.mark.parametrize("name", ["exch", "cas", "inc", "dec"])
def test_many_lanes_at_one_address_take_no_round_each(name: str, random: np.random.Generator) -> None:
    """A round of NumPy's operations for each of 4,096 lanes would take longer than all else of a launch."""

    def round_of_lanes(old: Words, *operands: Words) -> Words:
        raise AssertionError("a round")

    update = replace(updates_of(name, "b32")["global"], function=round_of_lanes)
    operands = [words(random, 32, 4096, few=True)[:, None] for _ in range(1 + (name == "cas"))]
    places = 4 * random.integers(0, 2, 4096)
    memory = np.zeros(16, np.uint8)
    assert apply(memory, places, operands, update).shape == (4096, 1)


def test_rounds_have_each_address_once(random: np.random.Generator) -> None:
    """Lanes of one address come in turn, in the order of their numbers."""
    places = random.integers(0, 9, 300) ** 2
    turns = [chosen.tolist() for chosen in _rounds(*_runs(places))]
    assert sorted(lane for chosen in turns for lane in chosen) == list(range(300))
    for place in set(places.tolist()):
        lanes = [[lane for lane in chosen if places[lane] == place] for chosen in turns]
        found = [lane for some in lanes for lane in some]
        assert found == sorted(found)
        assert [len(some) for some in lanes] == [1] * len(found) + [0] * (len(turns) - len(found))


@pytest.mark.parametrize("generic", [False, True])
def test_shared_memory_is_of_each_cta(generic: bool, random: np.random.Generator) -> None:
    b, where = words(random, 32), random.integers(0, 4, COUNT, dtype=np.uint32)
    address = "cvta.shared.u64 %y1, sm;" if generic else "mov.u64 %y1, sm;"
    space = "" if generic else ".shared::cta"
    body = f"""{address} mad.wide.u32 %y0, %k, 4, %y1;
    atom{space}.add.u32 %d, [%y0], %b; bar.sync 0; atom{space}.exch.b32 %e, [%y0], 9;"""
    found = run(body, {"b": b, "k": where}, {"d": 32, "e": 32}, threads=THREADS, ctas=CTAS)
    for cta in range(CTAS):
        part = slice(cta * THREADS, (cta + 1) * THREADS)
        memory = [0] * 4
        wanted = in_turn(memory, where[part], [b[part]], lambda old, one: old + one, 32)
        assert found["d"][part].tolist() == wanted
        assert found["e"][part].tolist() == in_turn(memory, where[part], [], lambda old: 9, 32)


def test_generic_addresses_of_two_spaces(random: np.random.Generator) -> None:
    b, start = words(random, 32), words(random, 32, 1)
    body = """cvta.shared.u64 %y0, sm; and.b32 %t0, %lane, 1; setp.eq.u32 %p0, %t0, 0;
    selp.b64 %y0, %y0, %buffer0, %p0; atom.add.u32 %d, [%y0], %b;"""
    first = start.copy()
    result = run(body, {"b": b[:32].copy()}, {"d": 32}, threads=32, buffers=[start])["d"]
    for parity, memory in ((0, [0]), (1, first.tolist())):
        wanted = in_turn(memory, np.zeros(16, int), [b[parity:32:2]], lambda old, one: old + one, 32)
        assert result[parity::2].tolist() == wanted
        if parity:
            assert start.tolist() == memory


def test_guards_and_parted_lanes(random: np.random.Generator) -> None:
    start = np.zeros(1, np.uint32)
    body = """setp.lt.u32 %p0, %lane, 10; @%p0 atom.global.add.u32 %d, [%buffer0], 1;
    @!%p0 red.relaxed.sys.global.add.u32 [%buffer0], 100;"""
    found = run(body, {}, {"d": 32}, threads=32, buffers=[start])["d"]
    assert found.tolist() == [*range(10), *[0] * 22]
    assert start.tolist() == [2210]


# --- floats --------------------------------------------------------------------------------------------


def values(name: str, count: int, random: np.random.Generator, gentle: bool) -> list[int]:
    """Bits of a format: with ``gentle`` numbers around one, else also NaN, infinities and subnormals."""
    if gentle:
        return [int(one) for one in random.normal(size=count).astype(f"f{8 if name == 'f64' else 4}").view(
            f"u{8 if name == 'f64' else 4}")]  # fmt: skip
    nasty = float_samples.nasty(name)
    chosen = float_samples.random(name, count, random)
    return [nasty[int(random.integers(len(nasty)))] if random.random() < 0.3 else int(one) for one in chosen]


def slow_add(name: str, ftz: bool) -> Callable[[int, int], int]:
    return lambda old, b: evaluate("add", [old, b], [name] * 2, name, "rn", ftz)


@pytest.mark.parametrize(("name", "bits"), [("f32", 32), ("f64", 64)])
@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize("gentle", [True, False])
@pytest.mark.parametrize("places", [1, 3, 200])
def test_float_sums(
    name: str, bits: int, space: str, gentle: bool, places: int, random: np.random.Generator
) -> None:
    b = np.array(values(name, COUNT, random, gentle), f"u{bits // 8}")
    where = random.integers(0, places if space == "global" else min(places, 128), COUNT, dtype=np.uint32)
    start = np.array(values(name, places, random, gentle), f"u{bits // 8}")
    update = slow_add(name, space == "global" and name == "f32")
    base = "%buffer0" if space == "global" else "%y1"
    body = f"""mov.u64 %y1, sm; mad.wide.u32 %y0, %k, {bits // 8}, {base};
    atom.{space}.add.{name} %d, [%y0], %b;"""
    found = run(body, {"b": b, "k": where}, {"d": bits}, threads=THREADS, ctas=CTAS, buffers=[start.copy()])[
        "d"
    ]
    if space == "global":
        assert found.tolist() == in_turn(start.tolist(), where, [b], update, bits)
        return
    for cta in range(CTAS):
        part = slice(cta * THREADS, (cta + 1) * THREADS)
        assert found[part].tolist() == in_turn([0] * 128, where[part], [b[part]], update, bits)


@pytest.mark.parametrize("name", ["f16", "bf16"])
@pytest.mark.parametrize("pair", ["", "x2"])
def test_half_sums(name: str, pair: str, random: np.random.Generator) -> None:
    each = 2 if pair else 1
    b = np.array(values(name, COUNT * each, random, False), np.uint16)
    start, where = np.array(values(name, 4 * each, random, False), np.uint16), random.integers(0, 4, COUNT)
    inputs = {"b": b.view(f"u{2 * each}"), "k": where.astype(np.uint32)}
    after = start.copy()
    body = f"mad.wide.u32 %y0, %k, {2 * each}, %buffer0; atom.add.noftz.{name}{pair} %d, [%y0], %b;"
    found = run(body, inputs, {"d": 16 * each}, threads=THREADS, ctas=CTAS, buffers=[after])["d"].view(
        np.uint16
    )
    for half in range(each):
        memory = start[half::each].tolist()
        assert found[half::each].tolist() == in_turn(
            memory, where, [b[half::each]], slow_add(name, False), 16
        )
        assert after[half::each].tolist() == memory


VECTORS = [
    *(("add", "f32", count, 1) for count in (2, 4)),
    *(
        (op, name, count, 1)
        for op in ("add", "min", "max")
        for name in ("f16", "bf16")
        for count in (2, 4, 8)
    ),
    *((op, name, count, 2) for op in ("add", "min", "max") for name in ("f16", "bf16") for count in (2, 4)),
]


@pytest.mark.parametrize(("op", "name", "count", "each"), VECTORS)
def test_vectors(op: str, name: str, count: int, each: int, random: np.random.Generator) -> None:
    bits = 32 if name == "f32" else 16
    threads, places = 40, 3
    wide = bits * each
    b = np.array(values(name, threads * count * each, random, False), f"u{bits // 8}").reshape(
        threads, count, each
    )
    start = np.array(values(name, places * count * each, random, False), f"u{bits // 8}")
    where = random.integers(0, places, threads, dtype=np.uint32)
    inputs = {f"b{i}": np.ascontiguousarray(b[:, i]).view(f"u{wide // 8}")[:, 0] for i in range(count)}
    update = slow_add(name, name == "f32") if op == "add" else lambda x, y: extremum(op, [x, y], name, set())
    kind = name + ("x2" if each == 2 else "")
    flush = "" if name == "f32" else ".noftz"
    ends = ", ".join(f"%b{i}" for i in range(count))
    targets = ", ".join(f"%d{i}" for i in range(1, count))
    body = f"""mad.wide.u32 %y0, %k, {wide * count // 8}, %buffer0;
    atom.global.v{count}.{kind}.{op}{flush} {{_, {targets}}}, [%y0], {{{ends}}};"""
    outputs = {f"d{i}": wide for i in range(1, count)}
    after = start.copy()
    found = run(body, {**inputs, "k": where}, outputs, threads=threads, buffers=[after])
    for i in range(count):
        for half in range(each):
            memory = start.reshape(places, count, each)[:, i, half].tolist()
            wanted = in_turn(memory, where, [b[:, i, half]], update, bits)
            assert after.reshape(places, count, each)[:, i, half].tolist() == memory
            if i:
                assert found[f"d{i}"].view(f"u{bits // 8}").reshape(threads, each)[:, half].tolist() == wanted


# --- what goes wrong --------------------------------------------------------------------------------------


def test_a_fault_leaves_memory_as_it_was() -> None:
    start = np.zeros(4, np.uint32)
    body = "mad.wide.u32 %y0, %lane, 4, %buffer0; red.global.add.u32 [%y0], 1;"
    with pytest.raises(
        Fault, match=r"red\.global\.add\.u32: address .* is in no allocation: 0 bytes past the end"
    ):
        run(body, {}, {}, threads=32, buffers=[start])
    assert not start.any()


def test_vectors_are_aligned_as_a_whole() -> None:
    body = "add.u64 %y0, %buffer0, 4; red.global.add.v2.f32 [%y0], {%lane, %lane};"
    with pytest.raises(Fault, match="is not a multiple of 8"):
        run(body, {}, {}, threads=32, buffers=[np.zeros(4, np.uint32)])


def test_local_memory_is_refused() -> None:
    body = ".local .b32 place; mov.u64 %y0, place; cvta.local.u64 %y0, %y0; atom.add.u32 %t0, [%y0], 1;"
    with pytest.raises(
        Fault, match=r"atom\.add\.u32: the address lies in \.local \[CTA \(0, 0, 0\), warp 0, lane 0\]"
    ):
        run(body, {}, {}, threads=32)


@pytest.mark.parametrize(
    ("version", "target", "legal"),
    [("7.8", "sm_90", True), ("8.0", "sm_80", False), ("7.7", "sm_80", False), ("7.6", "sm_80", False)],
)
def test_scopes_of_clusters_need_version_and_target(version: str, target: str, legal: bool) -> None:
    text = (
        f".version {version}\n.target {target}\n.address_size 64\n.visible .entry k(.param .u64 p) {{\n"
        ".reg .b64 %d; .reg .b32 %r; ld.param.u64 %d, [p]; atom.global.cluster.add.u32 %r, [%d], 1; ret; }"
    )
    if legal:
        counter = np.zeros(1, np.uint32)
        warpsim.load(text)["k"](1, 32, [counter])
        assert counter[0] == 32
        return
    message = r"atom\.cluster (is not on sm_80: it needs sm_90 or higher|needs PTX 7\.8)"
    with pytest.raises(warpsim.IllegalInstruction, match=message):
        warpsim.load(text)["k"](1, 32, [np.zeros(1, np.uint32)])
