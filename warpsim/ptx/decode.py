"""PTX text to Instruction."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TypeAlias, TypeVar

from ..base.errors import IllegalInstruction, NotModelled, OperandError, PtxError, located
from ..isa.arrays import as_integer
from ..isa.families import OPCODES, tcgen05
from ..isa.instruction import Instruction
from .binding import Bound, Types, bind, bind_tensor, bind_warpgroup
from .opcode_names import OPCODES as OPCODE_NAMES
from .parser import parse, parse_instruction
from .qualifiers import PTX_VERSION, ModifierError, check_target, default_version, on_target, resolve
from .short_spellings import example_of, read_short
from .statements import InstructionStatement, RegisterDeclaration

_VERSION = re.compile(r"(\d{1,3})\.(\d{1,3})", re.ASCII)
_SHORT = 24  # characters of what was given that an error message quotes
NOT_MODELLED = frozenset({"spcompress", "spdecompress", "wmma"})
_B = TypeVar("_B", bound=Bound)
Bind: TypeAlias = Callable[[Instruction, InstructionStatement, Types | None], _B]
_BINDERS: Mapping[str, Bind[Bound]] = {"mma": bind, "wgmma": bind_warpgroup, "tcgen05": bind_tensor}

Form = Instruction | str
Version = tuple[int, int]  # of PTX: major, minor


def resolved(
    instruction: Form,
    target: str | None = None,
    version: Version | str | None = None,
    idesc: int | None = None,
) -> Instruction:
    """Return the instruction of a text or an Instruction, on ``target``; raises PtxError, IllegalInstruction.

    ``version`` is the PTX ISA version of a text, and ``idesc`` its instruction descriptor, as decode takes
    them.
    """
    if not isinstance(instruction, Instruction):
        return decode(instruction, target=target, version=version, idesc=idesc)
    if idesc is not None:
        raise OperandError(f"idesc goes with text: {instruction} is decoded, and has its descriptor if any")
    return on_target(instruction, target)


def decode(
    text: str,
    target: str | None = None,
    *,
    declarations: str | None = None,
    version: Version | str | None = None,
    idesc: int | None = None,
    numerics: str | None = None,
) -> Instruction:
    """Return the instruction that ``text`` spells: a bare mnemonic, or a whole instruction with operands.

    A short name does where a single form fits: ``m16n8k16.f32.bf16``, ``mma.sp.16832.f32.f16``, or what
    nvdisasm prints, ``HMMA.16816.F32``. One type stands for all where a form has that, else for A and B; what
    is not said is not there (sparsity, kind, scales, saturation). Sparse SASS is read as ordered metadata.

    ``target`` is a PTX target such as ``sm_90a``; without a target the form must exist on some target.
    ``declarations`` is PTX text with the ``.reg`` declarations of the operands; with it their types are
    checked too. ``version`` is the PTX ISA version to go by, such as ``"8.5"`` or ``(8, 5)`` (default 9.5,
    or the first that has the target). ``idesc`` is the 32-bit instruction descriptor of ``tcgen05.mma``,
    which says shape and types there; its operands are those of a launch, and are not looked at. ``numerics``
    asks for other sums than the usual where more than one is believed: "groups_of_4" of nvfp4 (kind
    mxf4nvf4 with ue4m3), the rule of a public model of B200.

    Raises PtxError for text that does not parse, IllegalInstruction where PTX has no such form, not on
    this target, or not with these operands, or where a short name fits none or several, which it lists;
    NotModelled for other matrix instructions; OperandError for
    what is not text, such as a matrix where arguments are in another order.
    """
    if not isinstance(text, str):
        raise OperandError(f"an instruction is PTX text or an Instruction, not {type(text).__name__}")
    try:
        return _decode(text, target, declarations, version, idesc, numerics)
    except (PtxError, IllegalInstruction) as error:
        short = read_short(text, target)
        if short is None:
            raise _with_example(error, text, target) from None
        if len(short.found) != 1:
            raise IllegalInstruction(short.message(target), error.location) from None
    return _decode(short.found[0].mnemonic, target, None, version, idesc, numerics)


def _with_example(
    error: PtxError | IllegalInstruction, text: str, target: str | None
) -> PtxError | IllegalInstruction:
    """Return an error with an instruction of the same words, where the text is words and not PTX."""
    first, *others = text.split() or ("",)
    opcode = first.partition(".")[0]
    is_ptx = opcode in OPCODE_NAMES and (opcode not in OPCODES or not others)
    example = "" if is_ptx else example_of(text, target)
    if not example:
        return error
    return type(error)(f"{error.message}; the nearest complete instruction is {example}", error.location)


def _decode(
    text: str,
    target: str | None,
    declarations: str | None,
    version: Version | str | None,
    idesc: int | None,
    numerics: str | None,
) -> Instruction:
    """decode, of text that is PTX to the letter."""
    statement = parse_instruction(text)
    if statement.opcode == tcgen05.OPCODE:
        form = _decode_tcgen05(statement, target, version_of(version, target), idesc)
        return form if numerics is None else tcgen05.with_numerics(form, numerics)
    if numerics is not None:
        raise OperandError(f"numerics {numerics!r}: {text} has one rule, its usual")
    if idesc is not None:
        raise OperandError(f"idesc is the instruction descriptor of tcgen05.mma: {text} has none")
    instruction = decode_statement(statement, target, version_of(version, target))
    if statement.operand_text is not None:
        types = None if declarations is None else declared_types(declarations)
        bind_operands(instruction, statement, types)
    return instruction


def decode_statement(
    statement: InstructionStatement,
    target: str | None,
    version: tuple[int, int] = PTX_VERSION,
    idesc: int | None = None,
) -> Instruction:
    """Return the instruction of a parsed statement, operands not yet looked at; errors point into its
    text. A tcgen05.mma needs the instruction descriptor that it was given.
    """
    if idesc is not None and statement.opcode == tcgen05.OPCODE:
        return _decode_tcgen05(statement, target, version, idesc)
    if statement.opcode not in OPCODES:
        raise _foreign(statement)
    try:
        return resolve(statement.opcode, statement.modifiers, target, version)
    except ModifierError as error:
        place = statement.location() if error.index is None else statement.modifier_location(error.index)
        raise IllegalInstruction(error.message, place) from None


def _decode_tcgen05(
    statement: InstructionStatement, target: str | None, version: Version, idesc: int | None
) -> Instruction:
    """Return a tcgen05.mma with the product that its instruction descriptor states; errors point at it."""
    with located(statement.location):
        form = tcgen05.form_of(statement.modifiers)
        if target is not None:
            check_target(target, version)
            tcgen05.check_needs(form, target, version)
    if idesc is None:
        raise OperandError(
            f"{form.mnemonic}: its instruction descriptor says shape and types; give it, as idesc=0x08100010"
        )
    return tcgen05.spelling_of(form, target).described(as_integer(idesc, "idesc"))


def bind_operands(instruction: Instruction, statement: InstructionStatement, types: Types | None) -> Bound:
    """Return the operands of a matrix instruction, as its family has them."""
    return _BINDERS[instruction.family.opcode](instruction, statement, types)


def bind_statement(
    statement: InstructionStatement, target: str, version: Version, types: Types | None, binder: Bind[_B]
) -> _B:
    """Return the instruction of a statement together with its operands, checked by bind or bind_warpgroup."""
    return binder(decode_statement(statement, target, version), statement, types)


@lru_cache(maxsize=8)  # a program that decodes many statements gives the same declarations with each
def declared_types(declarations: str) -> Types:
    """Register name to type, of PTX text made of ``.reg`` declarations.

    A vector register has a type of its own, such as ``v2.b32``, and elements, such as ``%r.x``.
    """
    types: dict[str, str] = {}
    for statement in parse(declarations).statements:
        if not isinstance(statement, RegisterDeclaration):
            continue
        if statement.vector == 1:
            types.update(dict.fromkeys(statement.names, statement.type))
            continue
        types.update(dict.fromkeys(statement.names, f"v{statement.vector}.{statement.type}"))
        elements = (letter for letters in ("xyzw", "rgba") for letter in letters[: statement.vector])
        types.update({f"{name}.{letter}": statement.type for letter in elements for name in statement.names})
    return MappingProxyType(types)


def version_of(version: Version | str | None, target: str | None = None) -> Version:
    """Return (major, minor) of a version as a caller gives it: "8.5", (8, 5) or None; raises
    IllegalInstruction.
    """
    if target is not None and not isinstance(target, str):  # may be nothing that a cache can look up
        check_target(target)
    if version is None:
        return default_version(target)
    if isinstance(version, tuple) and [type(part) for part in version] == [int, int]:
        return version
    return parse_version(version)


def parse_version(text: object) -> Version:
    """Return (major, minor) of a PTX version such as "8.5"; raises IllegalInstruction for anything else."""
    match = _VERSION.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        given = repr(text[:_SHORT] if isinstance(text, str) else text)
        raise IllegalInstruction(f"PTX version {given}: expected major.minor, such as '8.5'")
    return int(match[1]), int(match[2])


def _foreign(statement: InstructionStatement) -> IllegalInstruction | NotModelled:
    known = ", ".join(sorted(OPCODES))
    if statement.opcode in NOT_MODELLED:
        return NotModelled(f"{statement.opcode} instructions are not modelled", statement.location())
    message = f"'{statement.opcode}' is not a matrix instruction; known are {known}"
    return IllegalInstruction(message, statement.location())
