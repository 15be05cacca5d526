"""The operands that a form of tcgen05 takes, right ones only: what its modifiers ask for.

Registers are those of opcode_space.DECLARATIONS. Knows spelling; knows no verdict.
"""

from __future__ import annotations

from collections.abc import Sequence

Words = tuple[str, ...]
_MOST = 32  # registers of a vector that are declared
_EACH = {"16x128b": 2, "16x256b": 4}  # registers of a repetition; of others 1


def _vector(words: Words) -> str | None:
    """The registers of ld and st, None for more than there are."""
    count = int(next(word for word in words if word[0] == "x" and word[1:].isdigit())[1:])
    count *= next((each for shape, each in _EACH.items() if shape in words), 1)
    return None if count > _MOST else "{" + ", ".join(f"%r{place}" for place in range(1, count + 1)) + "}"


def _transfer(words: Words) -> Sequence[str]:
    registers, offset = _vector(words), ", 4" * ("16x32bx2" in words)
    if registers is None:
        return ()
    if words[0] == "st":
        return (f"[%r33]{offset}, {registers}",)
    reduced = ", %r34" * ("red" in words)
    return (f"{registers}{reduced}, [%r33]{offset}",)


def _multiplication(words: Words) -> Sequence[str]:
    metadata = "[%r2], " * ("sp" in words)
    scales = "[%r4], [%r5], " * ("block_scale" in words)
    count = 8 if "cta_group::2" in words else 4
    mask = "{" + ", ".join(f"%r{place}" for place in range(10, 10 + count)) + "}, "
    tails = ["%p1"]
    if not scales:
        tails += ["%p1, %d3"] if "ws" in words else [f"{mask}%p1", "!%p1", f"{mask}1"]
    found = [f"[%r1], {a}, %d2, {metadata}%r3, {scales}{tail}" for a in ("%d1", "[%r6]") for tail in tails]
    return [*found, "[%r1], [%r6+4], %d2, 5, %p1"] if words == ("mma", "cta_group::1", "kind::f16") else found


def of_tensor_memory(words: Words) -> Sequence[str]:
    """Of tcgen05."""
    if words[0] in ("ld", "st"):
        return _transfer(words)
    if words[0] == "mma":
        return _multiplication(words)
    if words[0] == "alloc":
        where = "[%r1]" if "shared::cta" in words else "[%d1]"
        return (f"{where}, %r2", f"{where}, 64")
    if words[0] == "commit":
        where = "[%r1]" if "shared::cluster" in words else "[%d1]"
        return (where + ", %h1" * ("multicast::cluster" in words),)
    return {"dealloc": ("%r1, %r2", "%r1, 64"), "cp": ("[%r1], %d1",), "shift": ("[%r1]",)}.get(
        words[0], ("",)
    )
