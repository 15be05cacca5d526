"""The operands that a form of an effect row takes, right ones only: what its modifiers ask for.

Registers are those of effect_statements.DECLARATIONS. Knows spelling; knows no verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.helpers.tensor_operands import of_tensor_memory
from warpsim.isa.formats import FORMATS
from warpsim.machine.bind.value_types import bits_of
from warpsim.machine.opcodes.matrix.wmma_fragments import SHAPES, Fragment

Words = tuple[str, ...]


def _tile(opcode: str, words: Words) -> Sequence[str]:
    if opcode == "movmatrix":
        return ("%r1, %r2",)
    count = int(next(one for one in words if one in ("x1", "x2", "x4"))[1:]) * (2 if "m16n16" in words else 1)
    registers = "{" + ", ".join(f"%r{place}" for place in range(1, count + 1)) + "}"
    address = "[%r9]" if any(one.startswith("shared") for one in words) else "[%d9]"
    return (f"{registers}, {address}" if opcode == "ldmatrix" else f"{address}, {registers}",)


def _copy(words: Words) -> Sequence[str]:
    if "global" not in words:
        return {"wait_group": ("2",)}.get(words[1], ("",))
    hint = ", %d4" if "L2::cache_hint" in words else ""
    sizes = ("16",) if "cg" in words else ("4", "8", "16")
    return [
        f"[%r1], [%d1], {size}{more}{hint}" for size in sizes for more in ("", ", %r2", ", %p1", ", !%p1")
    ]


def _barrier(opcode: str, words: Words) -> Sequence[str]:
    where = "[%r1]" if any(one.startswith("shared") for one in words) else "[%d1]"
    first = next(one for one in words if one not in ("async", "mbarrier"))
    if opcode == "cp" or first == "inval":
        return (where,)
    if first == "pending_count":
        return ("%r2, %d2",)
    if first in ("init", "expect_tx", "complete_tx"):
        return (f"{where}, %r2", f"{where}, 5")
    if first.startswith("arrive"):
        states = ("_",) if "shared::cluster" in words else ("%d2", "_")
        counts = (", %r2",) if {"noComplete", "expect_tx"} & set(words) else ("", ", %r2")
        return [f"{state}, {where}{count}" for state in states for count in counts]
    phase = "%r2" if "parity" in words else "%d2"
    return [f"%p1, {where}, {phase}{limit}" for limit in ("", ", %r3")[: 1 + (first == "try_wait")]]


def of_memory(opcode: str, words: Words) -> Sequence[str]:
    """Of tiles, copies of threads and barriers in memory."""
    if opcode.endswith("matrix"):
        return _tile(opcode, words)
    if opcode == "cp" and "mbarrier" not in words:
        return _copy(words)
    return _barrier(opcode, words)


def _registers(words: Words) -> str:
    count = int(next((one[1:] for one in words if one in ("v2", "v4", "v8")), "1"))
    bits = bits_of(words[-1]) if words[-1][-1].isdigit() and words[-1][0] in "busf" else 32
    prefix = {8: "%h", 16: "%h", 32: "%r", 64: "%d", 128: "%q"}[bits]
    names = [f"{prefix}{place}" for place in range(1, count + 1)]
    return names[0] if count == 1 else "{" + ", ".join(names) + "}"


def of_transfers(opcode: str, words: Words) -> Sequence[str]:
    """Of ld, st and what is said to caches."""
    if opcode.startswith("prefetch"):
        return ("[%d9]",)
    if opcode in ("applypriority", "discard"):
        return ("[%d9], 128",)
    if opcode == "createpolicy":
        return {
            "fractional": ("%d1", "%d1, %f1", "%d1, 0f3F000000"),
            "range": ("%d1, [%d2], %r1, %r2",),
            "cvt": ("%d1, %d2", "%d1, 5"),
        }.get(words[0], ("%d1, %d2",))
    address = "[pf]" if {"param", "param::func"} & set(words) and opcode == "st" else "[%d9]"
    operands = (address, _registers(words)) if opcode == "st" else (_registers(words), address)
    return (", ".join((*operands, *(("%d8",) if "L2::cache_hint" in words else ()))),)


def of_bulk(opcode: str, words: Words) -> Sequence[str]:
    """Of bulk copies."""
    if "commit_group" in words:
        return ("",)
    if "wait_group" in words:
        return ("0", "7")
    hint = ", %d4" if "L2::cache_hint" in words else ""
    if "prefetch" in words:
        return (f"[%d1], %r2{hint}", f"[%d1], 32{hint}")
    barrier = ", [%r3]" if any(one.startswith("mbarrier") for one in words) else ""
    ranks = ", %h1" if "multicast::cluster" in words else ""
    mask = ", %h2" if "cp_mask" in words else ""
    return [f"[%d1], [%d2], {size}{barrier}{ranks}{hint}{mask}" for size in ("%r2", "48")]


def _box(words: Words) -> str:
    count = 5 if any(word.endswith("4") and "::" in word for word in words) else _rank(words)
    return "[%d1, {" + ", ".join(f"%r{place}" for place in range(1, count + 1)) + "}]"


def _rank(words: Words) -> int:
    return next(int(word[0]) for word in words if word in ("1d", "2d", "3d", "4d", "5d"))


def _info(words: Words) -> str:
    if "im2col" in words:
        return ", {" + ", ".join(f"%h{place}" for place in range(1, max(_rank(words) - 1, 2))) + "}"
    return ", {%h1, %h2}" if any(word.startswith("im2col::") for word in words) else ""


def _tensor_copy(words: Words) -> Sequence[str]:
    hint = ", %d8" if "L2::cache_hint" in words else ""
    if "prefetch" in words:
        return (f"{_box(words)}{_info(words)}{hint}",)
    if "bulk_group" in words:
        return (f"{_box(words)}, [%r9]{hint}",)
    mask = ", %h8" if "multicast::cluster" in words else ""
    return (f"[%r9], {_box(words)}, [%r10]{_info(words)}{mask}{hint}",)


def _map(words: Words) -> Sequence[str]:
    if "cp_fenceproxy" in words:
        return ("[%d1], [%r1], 128",)
    where = "[%r9]" if "shared::cta" in words else "[%d1]"
    if {"elemtype", "interleave_layout", "swizzle_mode", "swizzle_atomicity", "fill_mode"} & set(words):
        return (f"{where}, 1",)
    ordinal = "" if {"global_address", "rank"} & set(words) else "3, "
    return [f"{where}, {ordinal}{value}" for value in ("%d2" if "b64" in words else "%r2", "64")]


def of_tensors(opcode: str, words: Words) -> Sequence[str]:
    """Of copies of tensors, and of tensormap."""
    return _tensor_copy(words) if opcode == "cp" else _map(words)


def of_wmma(opcode: str, words: Words) -> Sequence[str]:
    """Of wmma."""
    shape = next((one for one in words if one in SHAPES), "m16n16k16")
    kinds = [one for one in words if one in FORMATS]

    def vector(role: str, kind: str, first: int) -> str:
        prefix = "%d" if kind == "f64" else "%r"
        count = Fragment.of(role, shape, kind, "sm_80").registers(role)
        return "{" + ", ".join(f"{prefix}{first + place}" for place in range(count)) + "}"

    if words[0] == "mma":
        d, a, b, c = (
            kinds if len(kinds) == 4 else ((kinds or ["f32"])[0], "f16", "f16", (kinds or ["f32"])[-1])
        )
        pairs = (("d", d, 0), ("a", a, 10), ("b", b, 20), ("c", c, 30))
        return (", ".join(vector(*one) for one in pairs),)
    role = next((one for one in words if one in "abcd" and len(one) == 1), "a")
    names = vector(role, kinds[0] if kinds else "f16", 0)
    operands = f"[%d39], {names}" if words[0] == "store" else f"{names}, [%d39]"
    return operands, f"{operands}, %r39"


_OF_PLACES: dict[str, tuple[str, ...]] = {
    "mapa": ("%r6, %r1, %r2", "%d6, %d1, %r2", "%d6, %d1, 1", "%r6, sm, 1"),
    "getctarank": ("%r6, %r1", "%r6, %d1", "%r6, sm"),
    "setmaxnreg": ("24", "0x20", "256"),
    "barrier": ("",),
}
_TELLING = "mbarrier::complete_tx::bytes"


def of_clusters(opcode: str, words: Words) -> Sequence[str]:
    """Of what reaches other CTAs of a cluster."""
    if opcode in _OF_PLACES:
        return _OF_PLACES[opcode]
    bits = bits_of(words[-1])
    one, count = (
        ("%d" if bits == 64 else "%r"),
        next((int(word[1:]) for word in words if word in ("v2", "v4")), 1),
    )
    value = (
        f"{one}2" if count == 1 else "{" + ", ".join(f"{one}{place}" for place in range(2, 2 + count)) + "}"
    )
    return (f"[%d1], {value}" + (", [%d3]" if _TELLING in words else ""),)


_TILES = ("ldmatrix", "stmatrix", "movmatrix")
_HINTS = ("ld", "st", "prefetch", "prefetchu", "applypriority", "discard", "createpolicy")
_BY_OPCODE: dict[str, Callable[[str, Words], Sequence[str]]] = {
    **dict.fromkeys((*_TILES, "mbarrier"), of_memory),
    **dict.fromkeys(_HINTS, of_transfers),
    **dict.fromkeys(_OF_PLACES, of_clusters),
    "tensormap": of_tensors,
    "wmma": of_wmma,
}


def own_operands(opcode: str, words: Words) -> Sequence[str]:
    """Operands of a form of any of them, right ones; none where nobody says."""
    if opcode == "tcgen05":
        return of_tensor_memory(words)
    if "tensor" in words:
        return of_tensors(opcode, words)
    if opcode == "cp":
        return (of_bulk if "bulk" in words else of_memory)(opcode, words)
    if opcode in ("st", "red") and "async" in words:
        return of_clusters(opcode, words)
    if opcode == "barrier" and "cluster" not in words:
        return ()
    return _BY_OPCODE[opcode](opcode, words) if opcode in _BY_OPCODE else ()
