"""``tcgen05.mma``: spellings, what they need, and their product with an instruction descriptor.

PTX ISA 9.3, section 9.7.17.10 "tcgen05.mma instructions". A mnemonic says kind, CTAs, sparsity and the
steps of scales; the instruction descriptor says shape, types, signs and majors. What targets and versions
have is that of ptxas 13.5. Modifiers stand in any order, but ``.ws`` follows ``mma``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import product as choices

from ...base.errors import IllegalInstruction, OperandError
from ..architectures import ARCHITECTURES, least_targets, targets_with
from ..comparisons import REPORTS, Issued
from ..descriptors.instruction_descriptor import (
    KINDS,
    SCALED_FOURS,
    InstructionDescriptor,
    Issue,
    Kind,
    check,
    legal_m,
    legal_n,
)
from ..features import Feature
from ..formats import FORMATS
from ..instruction import Family, Instruction, Spelling
from ..layouts.fragment_layout import Layout
from ..layouts.tensor_memory import LANES, LETTERS
from ..products import Product, Shape
from ..sparsity import FOUR_OF_EIGHT, ONE_OF_TWO, TWO_OF_FOUR, Pattern
from . import tcgen05_operands

Version = tuple[int, int]
Need = tuple[Version, Feature, str]  # the first PTX version, what a target needs, and for what

OPCODE = "tcgen05"
_VECTORS = {  # by kind: the steps of scales that may be written, and the factors of a row
    "mxf8f6f4": {"": 1, "scale_vec::1X": 1, "block32": 1},
    "mxf4": {"": 2, "scale_vec::2X": 2, "block32": 2},
    "mxf4nvf4": {"scale_vec::2X": 2, "scale_vec::4X": 4, "block16": 4, "block32": 2},
}
_STEPS = ("scale_vec::1X", "scale_vec::2X", "scale_vec::4X", "block16", "block32")
_USES = ("fill", "use", "lastuse", "discard")
_COLLECTORS = tuple(f"collector::a::{use}" for use in _USES)
_WEIGHT_COLLECTORS = tuple(f"collector::b{number}::{use}" for number in range(4) for use in _USES)
_PATTERNS: dict[int, Pattern] = {32: ONE_OF_TWO, 16: TWO_OF_FOUR, 8: TWO_OF_FOUR, 4: FOUR_OF_EIGHT}


# --- spellings ---------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Form:
    """What the modifiers of a tcgen05.mma say. ``vector`` and ``collector`` are as written, "" for none."""

    kind: Kind
    ctas: int = 1
    weight_stationary: bool = False
    sparse: bool = False
    vector: str = ""
    shifted: bool = False  # .ashift
    collector: str = ""

    @property
    def issue(self) -> Issue:
        """What the mnemonic adds to the descriptor."""
        return Issue(ctas=self.ctas, weight_stationary=self.weight_stationary, sparse=self.sparse)

    @property
    def mnemonic(self) -> str:
        """The spelling in the order of the manual's syntax."""
        words = (
            *(OPCODE, "mma", "ws" * self.weight_stationary, "sp" * self.sparse),
            *(f"cta_group::{self.ctas}", f"kind::{self.kind.name}", "block_scale" * self.kind.is_scaled),
            *(self.vector, "ashift" * self.shifted, self.collector),
        )
        return ".".join(filter(None, words))

    @property
    def factors(self) -> int:
        """Scale factors of a row of A in one instruction; 0 without block scales."""
        return _VECTORS[self.kind.name][self.vector] if self.kind.is_scaled else 0

    @property
    def needs(self) -> Iterator[Need]:
        """Yield what versions and targets must have."""
        name = f"kind::{self.kind.name}"
        yield (8, 6), Feature.TCGEN05, f"{OPCODE}.mma"
        if self.kind.name == "i8":
            yield (8, 6), Feature.TENSOR_INTEGERS, f".{name}"
        if self.kind.name == "mxf4nvf4":
            yield (8, 7), Feature.TCGEN05, f".{name}"
        if self.sparse and self.kind.k == KINDS["mxf4"].k:
            yield (8, 6), Feature.TENSOR_VECTORS, f".{name} with .sp"
        if self.vector.startswith("scale_vec"):
            yield (8, 6), Feature.TENSOR_VECTORS, f".{self.vector}"
        if self.vector.startswith("block"):
            yield (8, 8), Feature.TCGEN05, f".{self.vector}"


@lru_cache(maxsize=1024)
def form_of(modifiers: tuple[str, ...]) -> Form:
    """Return what modifiers say, the name ``mma`` first; raises IllegalInstruction for what no form has."""
    left = list(modifiers)
    if left[:1] != ["mma"]:
        raise IllegalInstruction(f"{'.'.join((OPCODE, *modifiers))}: expected tcgen05.mma")
    del left[0]
    stationary = left[:1] == ["ws"]
    if stationary:
        del left[0]
    sparse, block, shifted = (_take_modifier(left, (word,)) != "" for word in ("sp", "block_scale", "ashift"))
    group = _take_modifier(left, ("cta_group::1", "cta_group::2"))
    kind = _take_modifier(left, tuple(f"kind::{name}" for name in KINDS))
    vector, collector = (
        _take_modifier(left, _STEPS),
        _take_modifier(left, (*_COLLECTORS, *_WEIGHT_COLLECTORS)),
    )
    if left:
        hint = "; .ws follows mma" if "ws" in left else ""
        raise IllegalInstruction(f"tcgen05.mma has no modifier .{left[0]}{hint}")
    if not group or not kind:
        missing = "cta_group::1 or .cta_group::2" if not group else " or .".join(f"kind::{k}" for k in KINDS)
        raise IllegalInstruction(f"tcgen05.mma lacks .{missing}")
    form = Form(
        kind=KINDS[kind.removeprefix("kind::")],
        ctas=int(group[-1]),
        weight_stationary=stationary,
        sparse=sparse,
        vector=vector,
        shifted=shifted,
        collector=collector,
    )
    _check(form, block)
    return form


def _take_modifier(left: list[str], words: Sequence[str]) -> str:
    """Take the modifier that is one of some words from a list; "" where there is none."""
    found = next((word for word in left if word in words), "")
    if found:
        left.remove(found)
    return found


def _check(form: Form, block: bool) -> None:
    """Raise IllegalInstruction for modifiers that do not go together."""
    name = f"tcgen05.mma with .kind::{form.kind.name}"
    if block is not form.kind.is_scaled:
        raise IllegalInstruction(f"{name} {'takes no' if block else 'needs'} .block_scale")
    vectors = _VECTORS.get(form.kind.name, {"": 0})
    if form.vector not in vectors:
        legal = " or ".join(f".{word}" for word in vectors if word) or "none"
        given = f", not .{form.vector}" if form.vector else ""
        raise IllegalInstruction(f"{name} takes {legal}{given}")
    if form.weight_stationary and form.ctas == 2:
        raise IllegalInstruction("tcgen05.mma.ws has .cta_group::1 only")
    if form.weight_stationary and form.kind.is_scaled:
        raise IllegalInstruction(f"tcgen05.mma.ws has no .kind::{form.kind.name}")
    collectors = _WEIGHT_COLLECTORS if form.weight_stationary else _COLLECTORS
    if form.collector and form.collector not in collectors:
        legal = "collector::b0 to b3" if form.weight_stationary else "collector::a"
        raise IllegalInstruction(f"{form.mnemonic}: it has .{legal}, not .{form.collector}")
    if form.shifted and (form.weight_stationary or form.kind.is_scaled):
        raise IllegalInstruction(
            f"{form.mnemonic}: .ashift belongs to kinds without block scales, and not to .ws"
        )
    if form.shifted and form.collector.endswith(("fill", "::use")):
        raise IllegalInstruction(f"{form.mnemonic}: .ashift does not go with .{form.collector}")


def check_needs(form: Form, target: str, version: Version) -> None:
    """Raise IllegalInstruction where a target or a PTX version lacks a form."""
    for since, feature, name in form.needs:
        if feature not in ARCHITECTURES[target].features:
            raise IllegalInstruction(f"{name} is not on {target}: it needs {least_targets(feature)}")
        if version < since:
            wanted, given = (".".join(map(str, numbers)) for numbers in (since, version))
            raise IllegalInstruction(f"{name} needs PTX {wanted}, but the version is {given}")


@cache
def forms() -> tuple[Form, ...]:
    """Return every form without collector words and ``.ashift``, which do not change the product."""
    found = []
    for kind in KINDS.values():
        for vector in _VECTORS.get(kind.name, {"": 0}):
            for sparse in (False, True):
                found += [Form(kind=kind, ctas=ctas, sparse=sparse, vector=vector) for ctas in (1, 2)]
                if not kind.is_scaled:
                    found.append(Form(kind=kind, weight_stationary=True, sparse=sparse))
    return tuple(found)


# --- products ----------------------------------------------------------------------------------------


def product_of(form: Form, word: int) -> Product:
    """Return the product of a form and an instruction descriptor.

    Raises OperandError, with the field, for a descriptor that the form does not take, as a pair of scale step
    and type that is not documented.
    """
    descriptor = InstructionDescriptor.decode(word, form.kind.name)
    check(descriptor, form.issue)
    factors = form.factors * descriptor.k // form.kind.k
    _check_scales(form, descriptor, factors)
    a, d = FORMATS[descriptor.a], FORMATS[descriptor.d]
    operation = _OPERATIONS.get(descriptor.scale or "", form.kind.operation or descriptor.a)
    product = Product(
        shape=Shape(descriptor.m, descriptor.n, descriptor.k * (2 if form.sparse else 1)),
        a=a,
        b=FORMATS[descriptor.b],
        c=d,
        d=d,
        operation=operation + _DEEPER * descriptor.k_96,
        kind=form.kind.name,
        scale=FORMATS[descriptor.scale] if descriptor.scale else None,
        scale_chunks=factors,
        satfinite=bool(descriptor.saturate),
        negated=(bool(descriptor.negate_a), bool(descriptor.negate_b)),
        transposed=(bool(descriptor.transpose_a), bool(descriptor.transpose_b)),
    )
    if not form.sparse:
        return product
    return product.with_pattern(_PATTERNS[product.storage("a").bits])


_OPERATIONS = {"ue4m3": "nvf4"}  # by the type of scales: what has evidence of its own
_DEEPER = "_k96"  # the same of a K of 96
_NUMERICS = dict.fromkeys(("nvf4", "nvf4_k96"), ("groups_of_4",))  # by operation: others than its rule


def with_numerics(instruction: Instruction, numerics: str) -> Instruction:
    """Return the instruction with other sums; raises OperandError where it has none of that name."""
    operation = instruction.operation
    if numerics not in _NUMERICS.get(operation, ()):
        known = ", ".join(_NUMERICS.get(operation, ())) or "none but the usual"
        raise OperandError(f"numerics {numerics!r}: {instruction} has {known}")
    product = replace(instruction.product, operation=f"{operation}.{numerics}")
    return replace(instruction, product=product)


def numerics_of(instruction: Instruction) -> str:
    """Return the numerics that were asked for, "" for the usual."""
    return instruction.operation.partition(".")[2]


def _check_scales(form: Form, descriptor: InstructionDescriptor, factors: int) -> None:
    """Raise for a scale id that is no place of the first of so many factors; for ue4m3 with two or three."""
    for attribute in ("scale_a_id", "scale_b_id") if factors else ():
        legal = FIRST_BYTES[factors]
        if getattr(descriptor, attribute) not in legal:
            raise descriptor.wrong(attribute, legal)
    if form.factors == 2 and descriptor.scale == "ue4m3":
        raise descriptor.wrong("scale_type", "1 (ue8m0) with two factors a row: ue4m3 has four")


FIRST_BYTES = {1: (0, 1, 2, 3), 2: (0, 2), 3: (0, 1, 2, 3), 4: (0,), 6: (0, 2)}  # of a cell, by factors


def typical() -> Iterator[Instruction]:
    """Yield an instruction of every form, pair of types of A and D, and K, of a common shape: 128 or 256
    rows; where other numerics may be asked for, with these too.
    """
    for form in forms():
        yield from _instructions(form, legal_m(form.kind, form.issue)[-1], 128)


def reported() -> Iterator[Instruction]:
    """Yield an instruction of each form, shape and type of A and B, that others report outputs of."""
    for form in forms():
        issued = [each.issued for each in REPORTS if each.issued.words == spelling_of(form).issue]
        for m, n in dict.fromkeys((each.m, each.n) for each in issued):
            if m in legal_m(form.kind, form.issue):
                yield from filter(_is_reported, _instructions(form, m, n))


def _is_reported(form: Instruction) -> bool:
    issued = Issued(form.issue, form.operation, form.shape.m, form.shape.n)
    types = tuple(element.name for element in (form.a, form.b, form.d))
    return any((each.issued, (each.a, each.b, each.d)) == (issued, types) for each in REPORTS)


def _instructions(form: Form, m: int, n: int) -> Iterator[Instruction]:
    """Yield an instruction of each type of A and B, type of D, K and numerics."""
    kind = form.kind
    scales = kind.scales if kind.scales and form.factors != 2 else {1: "ue8m0"}
    deeper = (0, 1) if kind.group == SCALED_FOURS and not form.sparse else (0,)
    for a_type, d_type, scale, deep in choices(kind.multiplicands, kind.results or (0,), scales, deeper):
        fields = {"a_type": a_type, "b_type": a_type, "d_type": d_type, "m": m, "n": n, "k_96": deep}
        if kind.is_scaled:
            fields |= {"scale_type": scale}
        word = InstructionDescriptor(kind=kind.name, sparse=int(form.sparse), **fields)
        if (word.a, word.d) != ("bf16", "f16"):
            found = spelling_of(form).described(word.encode())
            yield found
            yield from (with_numerics(found, name) for name in _NUMERICS.get(found.operation, ()))


# --- families ----------------------------------------------------------------------------------------


def _no_registers(instruction: Instruction, operand: str) -> Layout:
    raise OperandError(f"{instruction} has no registers: {operand} lies in tensor memory or shared memory")


def _product(spelling: Spelling, word: int) -> Product:
    """Return the product; raises OperandError as product_of, and for a K of 96 that the target lacks."""
    product = product_of(form_of(tuple(spelling.mnemonic.split(".")[1:])), word)
    if spelling.target is not None and spelling.target not in _having(product):
        raise OperandError(
            f"instruction descriptor {word:#010x}: K of 96 (bit 31) is not on {spelling.target}: "
            f"it needs {least_targets(Feature.TENSOR_DEPTH_96)}"
        )
    return product


def _having(product: Product) -> frozenset[str]:
    """Return the targets that have the K of a product."""
    return targets_with(*[Feature.TENSOR_DEPTH_96] * (product.shape.k == 96))


TCGEN05 = Family(
    name="tcgen05.mma",
    opcode=OPCODE,
    lanes=LANES,
    rules=OPCODE,
    rows=(),
    fragment=_no_registers,
    places=tcgen05_operands.PLACES,
    product=_product,
    having=_having,
    arranged=tcgen05_operands.arranged,
    adjusted=tcgen05_operands.adjusted,
    modifiers=("mma",),
    fields=frozenset({0x4, 0x8, 0xC, 0x9, 0xD, 0x6, 0xE}),
    one_thread=True,
)
TCGEN05_PAIR = replace(TCGEN05, name="tcgen05.mma.cta_group::2", lanes=2 * LANES)


@lru_cache(maxsize=1024)
def spelling_of(form: Form, target: str | None = None) -> Spelling:
    """Return the spelling of a form on a target, whose product a descriptor states (``described``)."""
    needs = tuple(form.needs)
    return Spelling(
        mnemonic=form.mnemonic,
        target=target,
        family=TCGEN05_PAIR if form.ctas == 2 else TCGEN05,
        since=max(since for since, _, _ in needs),
        targets=targets_with(*(feature for _, feature, _ in needs)),
        variant="sp" * form.sparse,
        scale_vector=form.vector,
    )


def letter_of(form: Form, m: int) -> str:
    """Return the layout of D, by the letter of the manual."""
    return LETTERS[form.ctas, form.weight_stationary, m, form.sparse]


__all__ = [
    "KINDS",
    "OPCODE",
    "TCGEN05",
    "Form",
    "check_needs",
    "form_of",
    "forms",
    "legal_m",
    "legal_n",
    "letter_of",
    "numerics_of",
    "product_of",
    "reported",
    "spelling_of",
    "typical",
    "with_numerics",
]
