"""The 32-bit instruction descriptor of tcgen05.mma: fields, their meaning, and what is legal in them.

A mnemonic of tcgen05.mma says kind, CTAs and sparsity; everything else of the product is in this word, which
a register holds while a kernel runs. PTX ISA 9.3, section 9.7.17.4.2 "Instruction descriptor". Knows words;
does not know spellings or places.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, SupportsIndex

from ...base.errors import OperandError
from ..formats import FORMATS

Group = str  # of kinds whose descriptors have the same fields


class BitField(NamedTuple):
    """Where a field lies; the field holds multiples of ``unit``."""

    name: str
    attribute: str
    lowest: int
    bits: int
    unit: int = 1

    @property
    def mask(self) -> int:
        """The bits of the field in the word."""
        return ((1 << self.bits) - 1) << self.lowest

    @property
    def span(self) -> str:
        """The bits in words: ``22:17``, or ``2``."""
        last = self.lowest + self.bits - 1
        return f"{last}:{self.lowest}" if self.bits > 1 else str(self.lowest)

    def value(self, word: int) -> int:
        """Return what the field of a word says."""
        return (word & self.mask) >> self.lowest << self.unit.bit_length() - 1


# --- fields ------------------------------------------------------------------------------------------

_SPARSE = BitField("sparse", "sparse", 2, 1)
_SIGNS = (BitField("negate A", "negate_a", 13, 1), BitField("negate B", "negate_b", 14, 1))
_MAJORS = (BitField("transpose A", "transpose_a", 15, 1), BitField("transpose B", "transpose_b", 16, 1))
_N, _M = BitField("N", "n", 17, 6, 8), BitField("M", "m", 24, 5, 16)
_A_TYPE, _B_TYPE = BitField("type of A", "a_type", 7, 3), BitField("type of B", "b_type", 10, 3)
_SCALES = (BitField("scale B id", "scale_b_id", 4, 2), BitField("scale A id", "scale_a_id", 29, 2))
_SCALE_TYPE = BitField("scale type", "scale_type", 23, 1)

PLAIN, SCALED_BYTES, SCALED_FOURS = "plain", "scaled bytes", "scaled fours"
FIELDS: Mapping[Group, tuple[BitField, ...]] = {
    PLAIN: (
        BitField("sparsity selector", "selector", 0, 2),
        _SPARSE,
        BitField("saturate", "saturate", 3, 1),
        BitField("type of D", "d_type", 4, 2),
        _A_TYPE,
        _B_TYPE,
        *_SIGNS,
        *_MAJORS,
        _N,
        _M,
        BitField("maximum shift", "maximum_shift", 30, 2),
    ),
    SCALED_BYTES: (_SPARSE, _SCALES[0], _A_TYPE, _B_TYPE, *_SIGNS, *_MAJORS, _N, _SCALE_TYPE, _M, _SCALES[1]),
    SCALED_FOURS: (
        _SPARSE,
        _SCALES[0],
        _A_TYPE,
        BitField("type of B", "b_type", 10, 2),
        *_SIGNS,
        _N,
        _SCALE_TYPE,
        _M,
        _SCALES[1],
        BitField("K is 96", "k_96", 31, 1),
    ),
}


# --- kinds -------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Kind:
    """What ``.kind::name`` multiplies: the codes of its types, and K of a dense instruction.

    ``operation`` names the arithmetic in the table of rules, "" that of the type of A.
    """

    name: str
    k: int
    multiplicands: Mapping[int, str]
    results: Mapping[int, str]
    operation: str = ""
    group: Group = PLAIN
    scales: Mapping[int, str] | None = None
    selectors: tuple[int, ...] = (0,)  # of sparse forms

    @property
    def is_scaled(self) -> bool:
        """Whether its forms have block scales."""
        return self.scales is not None


_F8F6F4 = {0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"}
_FLOATS = {0: "f16", 1: "f32"}
_F4 = {1: "e2m1"}
_ALL_SELECTORS = (0, 1, 2, 3)
KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(name="f16", k=16, multiplicands={0: "f16", 1: "bf16"}, results=_FLOATS,
             selectors=_ALL_SELECTORS),
        Kind(name="tf32", k=8, multiplicands={2: "tf32"}, results={1: "f32"}, selectors=_ALL_SELECTORS),
        Kind(name="f8f6f4", k=32, multiplicands=_F8F6F4, results=_FLOATS, operation="f8f6f4"),
        Kind(name="i8", k=32, multiplicands={0: "u8", 1: "s8"}, results={2: "s32"}, operation="integer"),
        Kind(name="mxf8f6f4", k=32, multiplicands=_F8F6F4, results={}, operation="mxf8f6f4",
             group=SCALED_BYTES, scales={1: "ue8m0"}),
        Kind(name="mxf4", k=64, multiplicands=_F4, results={}, operation="mxf4",
             group=SCALED_FOURS, scales={1: "ue8m0"}),
        Kind(name="mxf4nvf4", k=64, multiplicands=_F4, results={}, operation="mxf4",
             group=SCALED_FOURS, scales={0: "ue4m3", 1: "ue8m0"}),
    )
}  # fmt: skip


# --- words -------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class InstructionDescriptor:
    """The instruction descriptor of a kind: what each field says; M and N count rows and columns.

    ``encode`` and ``decode`` are inverse for every word without reserved bits; what is legal is found by
    ``problems``. Raises OperandError for values that their fields cannot hold.
    """

    kind: str
    m: int
    n: int
    a_type: int = 0
    b_type: int = 0
    d_type: int = 0
    sparse: int = 0
    selector: int = 0
    saturate: int = 0
    negate_a: int = 0
    negate_b: int = 0
    transpose_a: int = 0
    transpose_b: int = 0
    maximum_shift: int = 0
    scale_type: int = 0
    scale_a_id: int = 0
    scale_b_id: int = 0
    k_96: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise OperandError(f"kind {self.kind!r}: tcgen05.mma has {', '.join(KINDS)}")
        present = {field.attribute for field in self._fields}
        for name in _ATTRIBUTES:
            if name not in present and getattr(self, name):
                raise OperandError(f"the instruction descriptor of kind::{self.kind} has no field {name}")
        for field in self._fields:
            value, most = getattr(self, field.attribute), ((1 << field.bits) - 1) * field.unit
            if not 0 <= value <= most or value % field.unit:
                step = f" in steps of {field.unit}" if field.unit > 1 else ""
                raise OperandError(
                    f"{field.name} {value} of an instruction descriptor: expected 0 to {most}{step}"
                )

    @property
    def of(self) -> Kind:
        """The kind."""
        return KINDS[self.kind]

    @property
    def _fields(self) -> tuple[BitField, ...]:
        return FIELDS[KINDS[self.kind].group]

    def encode(self) -> int:
        """Return the 32-bit word."""
        return sum(getattr(self, field.attribute) // field.unit << field.lowest for field in self._fields)

    @classmethod
    def decode(cls, value: SupportsIndex, kind: str) -> InstructionDescriptor:
        """Return what a word says for a kind; raises OperandError for reserved bits that are set."""
        word = operator.index(value)
        if not 0 <= word < 1 << 32:
            raise OperandError(f"an instruction descriptor is an unsigned 32-bit word, not {word:#x}")
        if kind not in KINDS:
            raise OperandError(f"kind {kind!r}: tcgen05.mma has {', '.join(KINDS)}")
        fields = FIELDS[KINDS[kind].group]
        reserved = word & ~sum(field.mask for field in fields)
        if reserved:
            bits = ", ".join(str(bit) for bit in range(32) if reserved >> bit & 1)
            raise OperandError(
                f"instruction descriptor {word:#010x} of kind::{kind} has reserved bits {bits} set"
            )
        return cls(kind=kind, **{field.attribute: field.value(word) for field in fields})

    def field(self, attribute: str) -> BitField:
        """Return where a field lies."""
        return next(field for field in self._fields if field.attribute == attribute)

    def wrong(self, attribute: str, legal: object) -> OperandError:
        """Return the error of a field: the word, the field, its value, and what is legal."""
        field, value = self.field(attribute), getattr(self, attribute)
        listed = legal if isinstance(legal, str) else ", ".join(map(str, legal))  # type: ignore[call-overload]
        return OperandError(
            f"instruction descriptor {self.encode():#010x}: {field.name} is {value} (bits {field.span}); "
            f"legal: {listed}"
        )

    # --- what it says ---

    @property
    def k(self) -> int:
        """K of a dense instruction."""
        return 96 if self.k_96 else self.of.k

    @cached_property
    def a(self) -> str:
        """The type of A; raises OperandError for a code without a meaning."""
        return self._type("a_type", self.of.multiplicands)

    @cached_property
    def b(self) -> str:
        """The type of B; raises OperandError for a code without a meaning."""
        return self._type("b_type", self.of.multiplicands)

    @cached_property
    def d(self) -> str:
        """The type of D; raises OperandError for a code without a meaning."""
        return self._type("d_type", self.of.results) if self.of.results else "f32"

    @cached_property
    def scale(self) -> str | None:
        """The type of the block scales, None without; raises OperandError for a code without a meaning."""
        return None if self.of.scales is None else self._type("scale_type", self.of.scales)

    def _type(self, attribute: str, names: Mapping[int, str]) -> str:
        name = names.get(getattr(self, attribute))
        if name is None:
            raise self.wrong(attribute, [f"{code} ({known})" for code, known in names.items()])
        return name

    def explain(self) -> tuple[str, ...]:
        """Return lines of text: the word, and each field with its bits, its value and what it means."""
        lines = [f"instruction descriptor {self.encode():#010x} of kind::{self.kind}"]
        for field in self._fields:
            value = getattr(self, field.attribute)
            raw = value // field.unit
            lines.append(f"bits {field.span:<6} {field.name:<18} {raw:#04x}  {self.meaning(field.attribute)}")
        return tuple(lines)

    def meaning(self, attribute: str) -> str:
        """Return what the value of a field means; of a code that has no meaning, the legal codes."""
        value, known = getattr(self, attribute), self.codes(attribute)
        if known is None:
            return str(value)
        return known.get(value, f"{value}: no meaning; legal: " + ", ".join(map(str, known)))

    def codes(self, attribute: str) -> Mapping[int, str] | None:
        """Return what the codes of a field mean; None for a field that is a number."""
        tables: dict[str, Mapping[int, str]] = {
            "a_type": self.of.multiplicands,
            "b_type": self.of.multiplicands,
            "d_type": self.of.results,
            "scale_type": self.of.scales or {},
        } | _WORDS
        return tables.get(attribute)


_NO_YES: Mapping[int, str] = {0: "no", 1: "yes"}
_MAJOR: Mapping[int, str] = {0: "no: K-major", 1: "yes: MN-major"}
_WORDS: dict[str, Mapping[int, str]] = {
    **dict.fromkeys(("sparse", "saturate", "negate_a", "negate_b", "k_96"), _NO_YES),
    **dict.fromkeys(("transpose_a", "transpose_b"), _MAJOR),
    "maximum_shift": {0: "none", 1: "8 columns of B", 2: "16 columns of B", 3: "32 columns of B"},
}
_ATTRIBUTES = tuple(name for name in InstructionDescriptor.__dataclass_fields__ if name != "kind")


# --- what is legal -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Issue:
    """What the mnemonic of a tcgen05.mma adds: CTAs of the group (1 or 2), ``.ws``, ``.sp``."""

    ctas: int = 1
    weight_stationary: bool = False
    sparse: bool = False


_STEP_8, _STEP_16, _STEP_32 = (tuple(range(step, 257, step)) for step in (8, 16, 32))
_INTEGER_N = (8, 16, 24, *range(32, 257, 16))
_ROWS = {(PLAIN, 1): (64, 128), (PLAIN, 2): (128, 256)}


def legal_m(kind: Kind, issue: Issue) -> tuple[int, ...]:
    """Return the M of a form. PTX ISA 9.3, section 9.7.17.2.1 "Matrix shapes"."""
    if issue.weight_stationary:
        return (32, 64, 128)
    if not kind.is_scaled:
        return _ROWS[PLAIN, issue.ctas]
    if issue.ctas == 1:
        return (128,)
    return (256,) if issue.sparse else (128, 256)


def legal_n(kind: Kind, issue: Issue) -> tuple[int, ...]:
    """Return the N of a form. PTX ISA 9.3, section 9.7.17.2.1 "Matrix shapes"."""
    if issue.weight_stationary:
        return (64, 128) if issue.sparse else (64, 128, 256)
    integers = kind.name == "i8"
    if issue.ctas == 2:
        return _STEP_32 if integers else _STEP_16
    return _INTEGER_N if integers else _STEP_8


def check(word: InstructionDescriptor, issue: Issue) -> None:
    """Raise OperandError, with field, value and legal values, for a word that a form does not take."""
    kind = word.of
    if word.sparse != issue.sparse:
        given = "has .sp" if issue.sparse else "has no .sp"
        raise OperandError(
            f"instruction descriptor {word.encode():#010x}: sparse is {word.sparse} (bit 2), but the "
            f"mnemonic {given}: both must say the same"
        )
    for attribute, legal in (("m", legal_m(kind, issue)), ("n", legal_n(kind, issue))):
        if getattr(word, attribute) not in legal:
            raise word.wrong(attribute, legal)
    _ = word.a, word.b, word.d, word.scale  # raise for codes without a meaning
    if word.k_96 and issue.sparse:
        raise word.wrong("k_96", "0: K of 96 is dense")
    _check_types(word)
    _check_settings(word, issue)
    _check_majors(word, issue)


def _check_types(word: InstructionDescriptor) -> None:
    """kind::f16 multiplies two f16 or two bf16, and D of f16 belongs to f16."""
    if word.kind != "f16":
        return
    if word.a != word.b:
        raise word.wrong("b_type", f"{word.a_type} ({word.a}), the type of A: kind::f16 does not mix types")
    if word.d == "f16" and word.a != "f16":
        raise word.wrong("d_type", "1 (f32) where A and B are bf16")


def _check_settings(word: InstructionDescriptor, issue: Issue) -> None:
    kind = word.of
    if kind.group == PLAIN:
        selectors = kind.selectors if issue.sparse else (0,)
        if word.selector not in selectors:
            raise word.wrong("selector", selectors)
        if word.saturate and kind.name != "i8":
            raise word.wrong("saturate", "0: only kind::i8 saturates")
        if word.maximum_shift and (not issue.weight_stationary or word.m == 32):
            raise word.wrong("maximum_shift", "0: it belongs to .ws with M 64 or 128")
    if kind.name == "i8":
        for attribute in ("negate_a", "negate_b"):
            if getattr(word, attribute):
                raise word.wrong(attribute, "0: kind::i8 has no signs to flip")


def _check_majors(word: InstructionDescriptor, issue: Issue) -> None:
    """6-bit and 4-bit elements are K-major; a transposed B of 8 bits has a wider step of N."""
    for attribute, element in (("transpose_a", word.a), ("transpose_b", word.b)):
        if getattr(word, attribute) and FORMATS[element].bits < 8:
            raise word.wrong(attribute, f"0: elements of {element} are K-major")
    step = 16 * issue.ctas
    if word.transpose_b and FORMATS[word.b].bits == 8 and word.n % step:
        raise word.wrong("n", f"multiples of {step} where B has 8-bit elements and is transposed")
