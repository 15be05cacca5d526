"""What PTX opcodes do: one table row a form, a file a group (PTX ISA 9.1, section 9.7).

Scalar rows are pure functions of values, lane by lane (see operation.py); effects touch memory, other lanes
or the program counter (see effect.py). ``bind`` finds the row that a statement spells.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache

from ...base.errors import IllegalInstruction, NotModelled
from ...ptx.opcode_names import OPCODES, advice
from ...ptx.statements import InstructionStatement
from ..run.wave import Step
from .operation import Operation, Row
from .statement_binder import StatementBinder
from .unexecuted import unexecuted

GROUPS = (
    *("control.flow", "memory.mov", "memory.transfers", "control.barriers", "control.cluster"),
    *("control.exchange", "memory.atomics", "control.fences", "matrix.mma", "matrix.tiles"),
    *("asynchronous.cp_async", "asynchronous.bulk", "asynchronous.mbarriers", "asynchronous.remote"),
    *("memory.bulk_stores", "asynchronous.launch_control"),
    *("control.setmaxnreg", "memory.caches", "matrix.wmma", "asynchronous.tensors"),
    *("asynchronous.tensormap", "matrix.wgmma", "integer.integers", "integer.carries", "integer.bits"),
    *("integer.prmt", "integer.compare", "floating.singles", "floating.halves", "floating.minmax"),
    *("floating.rounded", "floating.approximate", "conversion.cvt", "conversion.cvt_packed", "control.stack"),
    *("tensor.allocation", "tensor.cell_transfers", "tensor.copies", "tensor.commits", "tensor.multiply"),
)
# All groups of some opcodes: a trace of them begins without the other groups.
ALONE = {
    "mov": ("memory.mov",),
    "ld": ("memory.transfers",),
    "st": ("memory.transfers", "asynchronous.remote", "memory.bulk_stores"),
    **dict.fromkeys(("ldmatrix", "stmatrix", "movmatrix"), ("matrix.tiles",)),
    "bar": ("control.barriers",),
    "barrier": ("control.barriers", "control.cluster"),
    "fence": ("control.fences",),
    "mma": ("matrix.mma",),
    "wgmma": ("matrix.wgmma",),
}


@cache
def rows() -> dict[str, tuple[Row, ...]]:
    """Return every row by opcode; groups are imported when first asked for."""
    from importlib import import_module

    table: dict[str, tuple[Row, ...]] = {}
    for group in GROUPS:
        for row in import_module(f".{group}", __name__).ROWS:
            table[row.opcode] = (*table.get(row.opcode, ()), row)
    return table


@cache
def rows_of(opcode: str) -> tuple[Row, ...]:
    """Return the rows of an opcode, none where it is not executed."""
    from importlib import import_module

    if opcode in ALONE:
        groups = (import_module(f".{name}", __name__) for name in ALONE[opcode])
        return tuple(row for group in groups for row in group.ROWS if row.opcode == opcode)
    return rows().get(opcode, ())


@dataclass(frozen=True, kw_only=True)
class BoundRow:
    """What a statement does, and how exact its results are."""

    step: Step
    fidelity: str
    note: str


def bind(binder: StatementBinder) -> BoundRow:
    """Return what a statement does; raises IllegalInstruction, and NotModelled for an opcode without a
    row.
    """
    statement = binder.statement
    known = rows_of(statement.opcode)
    if not known:
        raise _foreign(binder)
    spelled = forms_of(statement.opcode, statement.modifiers)
    for row, choice in spelled:
        if len(spelled) == 1 or _counts(binder, row, choice):
            binder.check_available(row.since, row.feature)
            fidelity, note = ("exact", "") if _at_times(row, choice) else exactness(row, choice)
            return BoundRow(step=row_step(binder, row, choice), fidelity=fidelity, note=note)
    raise _no_form(binder, known)


@lru_cache(maxsize=4096)
def forms_of(opcode: str, modifiers: tuple[str, ...]) -> tuple[tuple[Row, tuple[str, ...]], ...]:
    """Return the rows that have a form with these modifiers, each with its choice."""
    found = ((row, row.match(modifiers)) for row in rows_of(opcode))
    return tuple((row, choice) for row, choice in found if choice is not None)


@lru_cache(maxsize=4096)
def takes_any_constant(opcode: str, modifiers: tuple[str, ...]) -> bool:
    """Return whether a form takes constants whatever their values are, as long as it takes their kind."""
    from .effect import Effect

    return "b128" not in modifiers and all(  # a constant of 128 bits has no sign here
        row.any_constant
        if isinstance(row, Effect)
        else not (operation := row.build(*choice)).constants and not operation.bytes
        for row, choice in forms_of(opcode, modifiers)
    )


def lanes_together(statement: InstructionStatement) -> int:
    """Return how many neighbouring lanes execute a statement together, 1 where each does by itself."""
    spelled = forms_of(statement.opcode, statement.modifiers)
    return max((getattr(row, "together", 1) for row, _ in spelled), default=1)


def operation(opcode: str, *modifiers: str, sources: int) -> Operation:
    """Return the scalar operation of a form that has so many sources, for opcodes that compute as others
    do.
    """
    from .effect import Effect

    for row in rows()[opcode]:
        choice = None if isinstance(row, Effect) else row.match(modifiers)
        if choice is not None and len((found := row.build(*choice)).sources) == sources:
            return found
    raise AssertionError(f"{opcode} has no form {modifiers} with {sources} sources")


def _foreign(binder: StatementBinder) -> IllegalInstruction | NotModelled:
    """Return the error of an opcode without a row: PTX has it, or not."""
    statement, name = binder.statement, binder.statement.opcode
    if name not in OPCODES:
        return IllegalInstruction(f"PTX has no opcode '{name}'{advice(name)}", statement.location())
    return _not_modelled(binder) or NotModelled(
        f"'{statement.mnemonic}' is not modelled: no such opcode is executed", statement.location()
    )


def _not_modelled(binder: StatementBinder) -> IllegalInstruction | NotModelled | None:
    """Return the error of a statement of PTX that is not executed here, or that the target lacks."""
    statement = binder.statement
    if (known := unexecuted(statement.mnemonic)) is None:
        return None
    try:
        binder.check_available(known.since, known.feature)
    except IllegalInstruction as error:
        return error
    return NotModelled(f"'{statement.mnemonic}' is not modelled: {known.reason}", statement.location())


def row_step(binder: StatementBinder, row: Row, choice: tuple[str, ...]) -> Step:
    """Return the step of a statement that spells a form of a row."""
    from .effect import Effect
    from .scalar import scalar_step

    if isinstance(row, Effect):
        return row.bind(binder, *choice)
    return scalar_step(binder, operation_of(row, choice))


@lru_cache(maxsize=4096)
def operation_of(row: Row, choice: tuple[str, ...]) -> Operation:
    """Return what a form computes: the same for all its statements."""
    return row.build(*choice)


def exactness(row: Row, choice: tuple[str, ...]) -> tuple[str, str]:
    """Return ``fidelity`` and ``note`` of the form of a row."""
    from .effect import Effect

    source = row if isinstance(row, Effect) else operation_of(row, choice)
    return source.fidelity, source.note


def _at_times(row: Row, choice: tuple[str, ...]) -> bool:
    """Return whether the form of a row is exact but for values that show while it is executed."""
    from .effect import Effect

    return row.at_times if isinstance(row, Effect) else operation_of(row, choice).where is not None


def _counts(binder: StatementBinder, row: Row, choice: tuple[str, ...]) -> bool:
    """Return whether a row has as many operands as are given, where several rows have the same modifiers."""
    from .effect import Effect

    return isinstance(row, Effect) or len(operation_of(row, choice).sources) + 1 == len(binder.operands)


def _no_form(binder: StatementBinder, known: tuple[Row, ...]) -> IllegalInstruction | NotModelled:
    statement = binder.statement
    if (refused := _not_modelled(binder)) is not None:
        return refused
    vocabulary = {word for row in known for slot in row.slots for word in slot}
    for index, modifier in enumerate(statement.modifiers):
        if modifier not in vocabulary:
            message = f"{statement.opcode} has no modifier .{modifier} here"
            return IllegalInstruction(message, statement.modifier_location(index))
    reason = _lacking(statement.modifiers, known) or "its modifiers do not go together"
    message = f"{statement.opcode} has no form {statement.mnemonic}: {reason}"
    return IllegalInstruction(message, statement.location())


def _lacking(modifiers: tuple[str, ...], known: tuple[Row, ...]) -> str:
    """Return what would make modifiers those of some form: a choice that none of them makes; empty if not
    that.
    """
    least: tuple[tuple[str, ...], ...] | None = None
    for row in known:
        if all(any(modifier in slot for slot in row.slots) for modifier in modifiers):
            lacking = tuple(slot for slot in row.slots if "" not in slot and not set(slot) & set(modifiers))
            least = lacking if least is None or len(lacking) < len(least) else least
    return f"it lacks {', '.join(map(_choice, least))}" if least else ""


def _choice(slot: tuple[str, ...]) -> str:
    """Return what a slot takes, in words."""
    return "a type" if "b32" in slot and len(slot) > 1 else " or ".join(f".{modifier}" for modifier in slot)
