"""Where warpsim and ptxas disagree on purpose, each with its reason and an example.

Two tables: what only ptxas accepts, and what only warpsim accepts. An entry of the first says how to
undo it in a text, so that a disagreement is explained only if nothing else is wrong with the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Lenience:
    """Something that only ptxas accepts.

    ``pattern`` finds it and ``replacement`` is what legal PTX may have in its place; ``within`` is a
    pattern that the whole text has to match as well. ``example`` is a statement on ``target``; releases that
    no longer accept it are ``corrected``.
    """

    name: str
    reason: str
    pattern: str
    replacement: str | tuple[str, ...]
    target: str
    example: str
    within: str = ""
    corrected: tuple[str, ...] = ()

    def undone(self, text: str) -> Iterator[str]:
        """The text with one occurrence undone, for each, and with all of them undone."""
        if not re.search(self.within, text):
            return
        replacements = (self.replacement,) if isinstance(self.replacement, str) else self.replacement
        matches = list(re.finditer(self.pattern, text))
        for replacement in replacements:
            for match in matches:
                yield text[: match.start()] + match.expand(replacement) + text[match.end() :]
            yield re.sub(self.pattern, replacement, text)


@dataclass(frozen=True, kw_only=True)
class Strictness:
    """Something that only warpsim accepts, known by the ``error`` that ptxas has for it."""

    name: str
    reason: str
    error: str
    target: str
    example: str
    within: str = ""


LENIENCES = (
    Lenience(
        name="a type too many",
        reason="ptxas overlooks a word among b1 s2 u2 s4 u4 tf32 bf16 bf16x2 beside the four types",
        pattern=r"\.(?:b1|s2|u2|s4|u4|tf32|bf16|bf16x2)(?![:\w])",
        replacement="",
        target="sm_80",
        example="mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64.u4 {g0, g1}, {g8}, {g16}, {g24, g25};",
    ),
    Lenience(
        name="bit operation on 4-bit integers",
        reason="ptxas overlooks .and .or .xor and .popc where the multiplicands are s4 or u4",
        pattern=r"\.(?:and|or|xor|popc)(?![:\w])",
        replacement="",
        within=r"\.[su]4[.\w]*\.[su]4\b",
        target="sm_80",
        example="mma.sync.aligned.m16n8k32.row.col.s32.s4.s4.s32.xor "
        "{r0, r1, r2, r3}, {r16, r17}, {r20}, {r24, r25, r26, r27};",
    ),
    Lenience(
        name=".v4 on sparse forms",
        reason="ptxas overlooks a vector length where A has as many registers",
        pattern=r"\.v[248](?![:\w])",
        replacement="",
        within=r"\.sp\b",
        target="sm_80",
        example="mma.sp.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32.v4 "
        "{r0, r1, r2, r3}, {r8, r9, r10, r11}, {r16, r17, r18, r19}, {r24, r25, r26, r27}, r33, 0;",
    ),
    Lenience(
        name="another kind for e4m3 and e5m2",
        reason="without .block_scale ptxas takes any .kind to be .kind::f8f6f4",
        pattern=r"\.kind::(?:mxf8f6f4|mxf4|mxf4nvf4|i8|f16|tf32)(?![:\w])",
        replacement=".kind::f8f6f4",
        within=r"^(?!.*block_scale).*\.e[45]m[23]\b",
        target="sm_100a",
        example="mma.sync.aligned.m16n8k32.row.col.kind::mxf4.f32.e4m3.e4m3.f32 "
        "{f0, f1, f2, f3}, {r16, r17, r18, r19}, {r20, r21}, {f24, f25, f26, f27};",
    ),
    Lenience(
        name="m8n8k4 of bf16 and tf32",
        reason="ptxas accepts it and emits no instruction for it",
        pattern=r"\.(?:bf16|tf32)(?![:\w])",
        replacement=".f16",
        within="m8n8k4",
        target="sm_80",
        example="mma.sync.aligned.m8n8k4.row.col.f32.bf16.bf16.f32 "
        "{f0, f1, f2, f3, f4, f5, f6, f7}, {r0, r1}, {r2, r3}, {f8, f9, f10, f11, f12, f13, f14, f15};",
    ),
    Lenience(
        name="selectors 2 and 3 of f16 m16n8k32",
        reason="PTX defines 0 and 1; with f32 accumulators ptxas hands 2 and 3 to the chip",
        pattern=r"(?<=, )[^,]*(?=;$)",
        replacement="0",
        within=r"\.sp\b.*m16n8k32\b.*\.f32\.f16\.f16\.f32",
        target="sm_80",
        example="mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 "
        "{f0, f1, f2, f3}, {r16, r17, r18, r19}, {r16, r17, r18, r19}, {f24, f25, f26, f27}, r33, 2;",
    ),
    Lenience(
        name="B of fp8 m16n8k16",
        reason="B is one register; ptxas overlooks the others of 2, 4 or 8, which ptxas 13.5 rejects",
        corrected=("13.5",),
        pattern=r"(?<=}, )\{([^,}]*), [^}]*\}(?=, \{[^}]*\};)",
        replacement=r"{\1}",
        within=r"m16n8k16\b.*\.e[45]m[23]\b",
        target="sm_89",
        example="mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e4m3.f32 "
        "{f0, f1, f2, f3}, {r16, r17}, {r20, r21}, {f24, f25, f26, f27};",
    ),
    Lenience(
        name="B of m8n8k16",
        reason="A and B take integer registers; where ptxas emulates the form (sm_100 on) B takes any",
        pattern=r"(?<=\}, \{)(?:[fxp]\d+|0f\w+)(?=\}, \{)",
        replacement="r1",
        within="m8n8k16",
        target="sm_100a",
        example="mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {r0, r1}, {r16}, {f20}, {r24, r25};",
    ),
    Lenience(
        name="predicates for 32-bit registers",
        reason="a predicate holds no element, metadata or scale; ptxas takes it for anything of 32 bits",
        # not the guard, and not scale-d, which only immediates of wgmma follow
        pattern=r"(?<![@!])!?\bp(?=\d)(?:(?<=\}, p)|(?<=\}, !p)|(?!\d+(?:, 1, 1)?(?:, 0){0,2};))",
        replacement="r",
        target="sm_80",
        example="mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
        "{r0, r1, r2, r3}, {p0, p1, p2, p3}, {r20, r21}, {r24, r25, r26, r27};",
    ),
    Lenience(
        name="f32 register as metadata",
        reason="metadata is not a number; the other 32-bit types are accepted",
        pattern=r"((?:\}|\bd\d+), \{?)f(\d+\}?)(?=, )",
        replacement=r"\1r\2",
        within=r"\.sp\b",
        target="sm_80",
        example="mma.sp.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{f0, f1, f2, f3}, {r16, r17}, {r20, r21}, {f24, f25, f26, f27}, f33, 0;",
    ),
    Lenience(
        name="constants of more than 32 bits",
        reason="ptxas cuts them off without a word",
        pattern=r"\b(?:4294967296|4294967297)\b|-2147483649|0x100000000",
        replacement="0",
        target="sm_80",
        example="mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
        "{r0, r1, r2, r3}, {r16, r17, r18, r19}, {r20, r21}, {4294967296, 0, 0, 0};",
    ),
    Lenience(
        name="special registers",
        reason="PTX reads them with mov and cvt; ptxas takes them for any register, even of D",
        pattern=r"%(?:laneid|tid\.x|clock)",
        replacement="r1",
        target="sm_80",
        example="mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
        "{r0, r1, r2, r3}, {%laneid, r17, r18, r19}, {r20, r21}, {r24, r25, r26, r27};",
    ),
    Lenience(
        name="variables",
        reason="ptxas takes the name of a variable, which is an address, for any register, even of D",
        pattern=r"\bplace\b",
        replacement="r1",
        target="sm_80",
        example="mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
        "{r0, r1, r2, r3}, {place, r17, r18, r19}, {r20, r21}, {r24, r25, r26, r27};",
    ),
    Lenience(
        name="vector registers",
        reason="registers declared .v2 or .v4 are not modelled; a vector is written in braces",
        pattern=r"\bquad\b(?!\.)",
        replacement="{r0, r1, r2, r3}",
        target="sm_80",
        example="mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
        "{r0, r1, r2, r3}, quad, {r20, r21}, {r24, r25, r26, r27};",
    ),
    Lenience(
        name="register plus offset",
        reason="a sum is an address; ptxas overlooks it where it expects one register",
        pattern=r"\br0\+4",
        replacement="r0",
        target="sm_80",
        example="mma.sp.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{f0, f1, f2, f3}, {r16, r17}, {r20, r21}, {f24, f25, f26, f27}, r0+4, 0;",
    ),
    Lenience(
        name="constant as metadata or scale",
        reason="ptxas takes an 0f constant, which has 32 bits, for a register",
        pattern=r"(?<=, )(\{?)0f[0-9A-F]{8}(?=\}?, [\d{])",
        replacement=r"\1r1",
        within=r"\.sp\b|block_scale",
        target="sm_80",
        example="mma.sp.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{f0, f1, f2, f3}, {r16, r17}, {r20, r21}, {f24, f25, f26, f27}, 0f00000000, 0;",
    ),
    Lenience(
        name="registers of another width after a constant",
        reason="ptxas does not compare the widths in a vector that begins with a constant",
        pattern=r"(\{(?:[-~!(.\d]|WARP_SZ)[^{}]*?, )[hvtyzdwqgl](?=\d)",
        replacement=(r"\1r", r"\1d"),
        target="sm_80",
        example="mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
        "{r0, r1, r2, r3}, {1.0, h17, r18, r19}, {r20, r21}, {r24, r25, r26, r27};",
    ),
    Lenience(
        name="wider registers as scale ids",
        reason="the ids are 16-bit registers; ptxas takes others next to a constant",
        pattern=r"(?<=\{)[^{},]+, [^{},]+(?=\})",
        replacement="h0, h0",
        within="block_scale",
        target="sm_120a",
        example="mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0 "
        "{f0, f1, f2, f3}, {r8, r9, r10, r11}, {r20, r21}, {f24, f25, f26, f27}, r34, {0, r1}, r35, {0, 0};",
    ),
    Lenience(
        name="scalar A of sparse integers",
        reason="A is a vector; ptxas crashes on the scalar where it emulates the form",
        pattern=r"(?<=\}, )[^{},]+(?=, \{)",
        replacement=("{r0, r1}", "{r0, r1, r2, r3}"),
        within=r"\.sp\b.*\.[su][48]\.[su][48]\.",
        target="sm_80",
        example="mma.sp.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
        "{r0, r1, r2, r3}, r16, {r20, r21}, {r24, r25, r26, r27}, r33, 0;",
    ),
    Lenience(
        name="vector as metadata or scale",
        reason="metadata and scales are one register; ptxas overlooks the others",
        pattern=r"\{(\w+), [^}]*\}",
        replacement=r"\1",
        within=r"\.sp\b|block_scale",
        target="sm_100a",
        example="mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.s8.u8.s32 "
        "{r0, r1, r2, r3}, {r16, r17, r18, r19}, {r16, r17, r18, r19}, {r24, r25, r26, r27}, {r16, r17}, 0;",
    ),
)

_EMULATION = "ptxas calls a routine of its own for the form, whose text does not suit these operands"

STRICTNESSES = (
    Strictness(
        name="operands of emulated forms",
        reason=_EMULATION,
        error=r"<builtin>|formal parameter|Call argument|instruction '(?:add|mov|ld|st|cvt|call)\b",
        target="sm_90",
        example="mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 "
        "{f0, _, f2, f3}, {r16, r17, r18, r19}, {r20, r21}, {f24, f25, f26, f27};",
    ),
    Strictness(
        name="C of m8n8k16",
        reason=_EMULATION,
        error="Vector with elements of different types|Arguments mismatch",
        within=r"m8n8k16\b.*\{(?:[^{}]+, (?:[fxp]\d|0[fd]|[^{}]*\.\d)[^{}]*|0f\w+, [^{}]+)\};$",
        target="sm_100",
        example="mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {r0, r1}, {r16}, {r20}, {r24, f25};",
    ),
    Strictness(
        name="0f before decimal floats",
        reason="ptxas takes a vector with both spellings of floats only if a decimal one is first",
        error="Arguments mismatch|Unexpected instruction types",
        within=r"\{0f[0-9A-F]{8},[^}]*(?:\d\.\d|0d|e\d)",
        target="sm_80",
        example="mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{f0, f1, f2, f3}, {r16, r17, r18, r19}, {r20, r21}, {0f00000000, 1.0, f26, f27};",
    ),
)


def lenience(text: str, accepts: Callable[[str], bool], depth: int = 3) -> tuple[str, ...]:
    """Names of the leniences that explain why only ptxas accepts the text; empty if none do."""
    frontier: list[tuple[str, tuple[str, ...]]] = [(text, ())]
    for _ in range(depth):
        following: dict[str, tuple[str, ...]] = {}
        for before, names in frontier:
            for one in LENIENCES:
                for after in one.undone(before):
                    following.setdefault(after, (*names, one.name))
        for after, names in following.items():
            if accepts(after):
                return names
        frontier = list(following.items())
    return ()


def strictness(text: str, error: str) -> tuple[str, ...]:
    """Names of the strictnesses that explain why ptxas rejects the text with the error."""
    return tuple(
        one.name for one in STRICTNESSES if re.search(one.error, error) and re.search(one.within, text)
    )
