"""What is changed in a pipeline: each synchronising statement left out, each number that it has another.

A change keeps the lines where they are: what it computes stands in braces in the line of the statement. Knows
statements of PTX and where rings lie; does not know kernels or what becomes of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .kernels import Pipeline, Ring

_SYNCHRONISES = (
    r"mbarrier\.",
    r"fence\.",
    r"bar\.(?:sync|arrive|warp\.sync)",
    r"barrier\.cluster\.",
    r"cp\.(?:reduce\.)?async\.bulk\.(?!prefetch)",
    r"st\.async\.",
    r"wgmma\.(?:fence|commit_group|wait_group)\.",
    r"setmaxnreg\.",
    r"tcgen05\.(?:alloc|dealloc|relinquish_alloc_permit|commit|wait|fence|cp)",
)
_STATEMENT = re.compile(r"^\s*(?P<guard>@!?\S+\s+)?(?P<name>[a-z][\w.:]*)\s*(?P<operands>[^;]*);\s*$")
_NEEDED = re.compile("|".join(_SYNCHRONISES))


@dataclass(frozen=True, kw_only=True)
class Change:
    """One text with one change: its line, the statement that stands there, and what was done to it."""

    line: int
    statement: str
    what: str
    text: str


@dataclass(frozen=True, kw_only=True)
class _Number:
    """A number that statements have: the operand is the first group of ``operand``; ``by`` computes another.

    ``by`` has lines of PTX that leave it in ``other``; {0} is the operand, and a ring is asked for by name.
    """

    name: str
    operand: str
    what: str
    by: str
    ring: str = ""
    wide: bool = False


_INIT, _WAIT, _ARRIVE = r"mbarrier\.init\.", r"mbarrier\.(?:try|test)_wait\.", r"mbarrier\.arrive\.(?!expect)"
_EXPECT, _LOAD = r"mbarrier\.arrive\.expect_tx\.", r"cp\.async\.bulk\.(?:tensor\.\dd\.)?shared::cluster\."
_GROUPS = r"(?:wgmma|cp\.async\.bulk)\.wait_group"
_COMMIT, _MMA = r"tcgen05\.commit\.", r"tcgen05\.mma\."
_LAST = r"(?s:.*)\[(%\w+)\]"  # the mbarrier of a copy comes last
_STAGE = "the next stage's"
_NUMBERS = (
    _Number(name=_INIT, operand=r", (\S+)$", what="count + 1", by="add.s32 other, {0}, 1;"),
    _Number(name=_INIT, operand=r", (\S+)$", what="count - 1", by="sub.s32 other, {0}, 1;"),
    _Number(name=_WAIT, operand=r", (\S+)$", what="other parity", by="xor.b32 other, {0}, 1;"),
    _Number(name=_EXPECT, operand=r", (\S+)$", what="16 bytes more", by="add.s32 other, {0}, 16;"),
    _Number(name=_EXPECT, operand=r", (\S+)$", what="16 bytes less", by="sub.s32 other, {0}, 16;"),
    _Number(name=_INIT, operand=r"\[(%\w+)\]", what=f"{_STAGE} mbarrier", by="", ring="barriers"),
    _Number(name=_COMMIT, operand=r"\[(%\w+)\]", what=f"{_STAGE} mbarrier", by="", ring="barriers"),
    _Number(name=_MMA, operand=r"\], (%rd\d+)", what=f"{_STAGE} A", by="", ring="tiles", wide=True),
    _Number(name=_MMA, operand=r", (%rd\d+), %r\d+,", what=f"{_STAGE} B", by="", ring="tiles", wide=True),
    _Number(name=_WAIT, operand=r"\[(%\w+)\]", what=f"{_STAGE} mbarrier", by="", ring="barriers"),
    _Number(name=_ARRIVE, operand=r"\[(\w+|%\w+)\]", what=f"{_STAGE} mbarrier", by="", ring="barriers"),
    _Number(name=_EXPECT, operand=r"\[(%\w+)\]", what=f"{_STAGE} mbarrier", by="", ring="barriers"),
    _Number(name=_LOAD, operand=_LAST, what=f"{_STAGE} mbarrier", by="", ring="barriers"),
    _Number(name=_LOAD, operand=r"\[(%\w+)\]", what=f"{_STAGE} tile", by="", ring="tiles"),
    _Number(name=r"ldmatrix\.", operand=r"\[(%\w+)\]", what=f"{_STAGE} tile", by="", ring="tiles"),
    _Number(
        name=r"wgmma\.mma_async\.",
        operand=r"\}, (%rd\d+)",
        what=f"{_STAGE} A",
        by="",
        ring="tiles",
        wide=True,
    ),
    _Number(
        name=r"wgmma\.mma_async\.",
        operand=r"\}, %rd\d+, (%rd\d+)",
        what=f"{_STAGE} B",
        by="",
        ring="tiles",
        wide=True,
    ),
    _Number(
        name=r"cp\.async\.bulk\.shared::cluster\.global\.",
        operand=r"\[%\w+\], \[%\w+\], (%\w+)",
        what="16 bytes less",
        by="sub.s32 other, {0}, 16;",
    ),
)
_TEXTS = (  # a pattern in the statement, what stands there instead, in words
    (_GROUPS, r"(\d+)$", lambda n: str(n + 1), "one group more"),
    (r"bar\.sync", r"(?<=, )(\d+)$", lambda n: str(n + 32), "32 threads more"),
    (r"bar\.(?:sync|arrive)", r"^(\d+)", lambda n: str(n + 1), "the next barrier"),
    (r"setmaxnreg\.inc", r"(\d+)$", lambda n: str(n + 8), "8 registers more"),
    (r"setmaxnreg\.dec", r"(\d+)$", lambda n: str(n + 8), "8 registers more"),
    (r"tcgen05\.(?:de)?alloc", r", (\d+)$", lambda n: str(n // 2), "half the columns"),
    (r"tcgen05\.alloc", r", (\d+)$", lambda n: str(n + 16), "16 columns more"),
)
_REGISTERS = (  # as _Number, of named barriers whose numbers stand in registers
    (r"bar\.(?:sync|arrive)", r", (%\w+)$", "32 threads more", "add.s32 other, {0}, 32;"),
    (r"bar\.(?:sync|arrive)", r", (%\w+)$", "32 threads less", "sub.s32 other, {0}, 32;"),
    (r"bar\.(?:sync|arrive)", r"^(%\w+)", "the next barrier", "add.s32 other, {0}, 1;"),
    (r"cp\.async\.bulk.*multicast", r", (%\w+)$", "only to itself", "mov.b16 other, 1;"),
    (r"tcgen05\.commit.*multicast", r", (\w+)$", "only to itself", "mov.b16 other, 1;"),
    (r"tcgen05\.commit.*multicast", r", (\w+)$", "only to the peer", "mov.b16 other, 2;"),
    (r"tcgen05\.(?:de)?alloc", r", (%\w+)$", "half the columns", "shr.u32 other, {0}, 1;"),
    (r"tcgen05\.alloc", r", (%\w+)$", "16 columns more", "add.s32 other, {0}, 16;"),
    (r"tcgen05\.dealloc", r"^(%\w+)", "another address", "add.s32 other, {0}, 32;"),
    (r"tcgen05\.(?:ld|st)\.", r"\[(%\w+)", "the next warp's lanes", "add.s32 other, {0}, 2097152;"),
    (r"tcgen05\.(?:ld|st)\.", r"\[(%\w+)", "columns not allocated", "add.s32 other, {0}, 256;"),
    (r"tcgen05\.mma", r"%rd\d+, (%r\d+),", "the sparse bit", "xor.b32 other, {0}, 4;"),
    (r"tcgen05\.mma", r"^\[(%r\d+)", "D 32 columns further", "add.s32 other, {0}, 32;"),
)
_ALL_NUMBERS = (*_NUMBERS, *(_Number(name=n, operand=o, what=w, by=b) for n, o, w, b in _REGISTERS))


def changes(pipeline: Pipeline) -> Iterator[Change]:
    """Yield every change of a pipeline, in the order of its lines."""
    lines = pipeline.text.split("\n")
    for place, line in enumerate(lines):
        found = _STATEMENT.match(line)
        if found:
            for what, instead in _instead(pipeline, found):
                gone = instead == "" and re.match(_WAIT, found["name"])
                text = "\n".join(
                    [*lines[:place], instead, *([""] if gone else []), *lines[place + 1 + bool(gone) :]]
                )
                yield Change(line=place + 1, statement=found["name"], what=what, text=text)


def _instead(pipeline: Pipeline, found: re.Match[str]) -> Iterator[tuple[str, str]]:
    """Yield what may stand in a statement's place, in words and as PTX."""
    guard, name, operands = found["guard"] or "", found["name"], found["operands"].strip()
    if _NEEDED.match(name):
        yield "left out", ""
    for pattern, number, other, what in _TEXTS:
        where = re.search(number, operands) if re.match(pattern, name) else None
        if where:
            yield what, f"{guard}{name} {_put(operands, where, other(int(where[1])))};"
    for one in _ALL_NUMBERS:
        where = re.search(one.operand, operands) if re.match(one.name, name) else None
        by = _computed(pipeline, one, where[1]) if where else ""
        if where and by:
            kind = ".b64" if one.wide else ".b16" if ".b16" in by else ".b32"
            yield one.what, f"{{ .reg {kind} other; {by} {guard}{name} {_put(operands, where, 'other')}; }}"


def _put(operands: str, where: re.Match[str], other: str) -> str:
    return operands[: where.start(1)] + other + operands[where.end(1) :]


def _computed(pipeline: Pipeline, one: _Number, operand: str) -> str:
    """Return PTX that leaves another value in ``other``; "" where the pipeline has no such ring."""
    if not one.ring:
        return one.by.format(operand)
    ring: Ring | None = getattr(pipeline, one.ring)
    if ring is None:
        return ""
    unit = 4 if one.wide else 0  # descriptors count in 16 bytes
    each, row = ring.each >> unit, ring.each * ring.count >> unit
    low = (
        f"cvt.u32.u64 at, {operand}; and.b32 at, at, 16383;"
        if one.wide
        else f"and.b32 at, {operand}, 16777215;"
    )
    add = (
        f"cvt.s64.s32 far, at; add.s64 other, {operand}, far;"
        if one.wide
        else f"add.s32 other, {operand}, at;"
    )
    return (
        f".reg .b32 at, of; .reg .b64 far; {low} mov.u32 of, {ring.variable}; add.s32 of, of, {ring.offset}; "
        f"shr.u32 of, of, {unit}; sub.s32 at, at, of; rem.u32 of, at, {row}; add.s32 at, of, {each}; "
        f"rem.u32 at, at, {row}; sub.s32 at, at, of; {add}"
    )
