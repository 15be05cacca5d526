"""What PTX opcodes do: one table row a form, a file a group (PTX ISA 9.1, section 9.7).

Scalar rows are pure functions of values, lane by lane (see operation.py); effects touch memory, other lanes
or the program counter (see effect.py). ``bind`` finds the row that a statement spells.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from ...errors import IllegalInstruction, NotModelled
from ...ptx.opcode_names import OPCODES, advice
from .operation import Operation, Row
from .unexecuted import lacking

if TYPE_CHECKING:
    from ..site import Site
    from ..wave import Step

GROUPS = (
    *("control", "copies", "transfers", "barriers", "exchange", "atomics", "fences", "matrices"),
    *("tiles", "asynchronous", "mbarriers", "caches", "wmma"),
    *("integer", "carries", "bits", "permutations", "compare", "floating", "halves", "minmax"),
    *("rounded", "approximate", "conversion", "packing", "stack"),
)
# How statements begin that PTX has and that are known not to be executed, and what they are.
REFUSED = {
    "cp.async.bulk": "bulk copies are not executed yet",
    "cp.reduce": "bulk copies are not executed yet",
    "barrier.cluster": "clusters of several CTAs are not executed yet",
    "mapa": "clusters of several CTAs are not executed yet",
    "getctarank": "clusters of several CTAs are not executed yet",
    "clusterlaunchcontrol": "clusters of several CTAs are not executed yet",
    "st.async": "clusters of several CTAs are not executed yet",
    "red.async": "clusters of several CTAs are not executed yet",
    "tensormap": "tensor maps are not executed yet",
    "prefetch.tensormap": "tensor maps are not executed yet",
    "setmaxnreg": "warp groups of launched kernels are not executed yet",
    "wgmma": "a launched kernel does not execute it yet; a Warpgroup and traces do",
    "multimem": "several devices are not simulated",
    "tcgen05": "tensor memory is not simulated",
}


@cache
def rows() -> dict[str, tuple[Row, ...]]:
    """Every row by opcode; groups are imported when first asked for."""
    from importlib import import_module

    table: dict[str, tuple[Row, ...]] = {}
    for group in GROUPS:
        for row in import_module(f".{group}", __name__).ROWS:
            table[row.opcode] = (*table.get(row.opcode, ()), row)
    return table


@dataclass(frozen=True, kw_only=True)
class BoundRow:
    """What a statement does, and how exact its results are."""

    step: Step
    fidelity: str
    note: str


def bind(site: Site) -> BoundRow:
    """What a statement does; raises IllegalInstruction, and NotModelled for an opcode without a row."""
    statement = site.statement
    known = rows().get(statement.opcode)
    if known is None:
        raise _foreign(site)
    spelled = _spelled(statement.opcode, statement.modifiers)
    for row, choice in spelled:
        if len(spelled) == 1 or _counts(site, row, choice):
            check_available(site, row)
            return BoundRow(step=row_step(site, row, choice), **_exactness(row, choice))
    raise _no_form(site, known)


@lru_cache(maxsize=4096)
def _spelled(opcode: str, modifiers: tuple[str, ...]) -> tuple[tuple[Row, tuple[str, ...]], ...]:
    """The rows that have a form with these modifiers, each with its choice."""
    found = ((row, row.match(modifiers)) for row in rows()[opcode])
    return tuple((row, choice) for row, choice in found if choice is not None)


def operation(opcode: str, *modifiers: str, sources: int) -> Operation:
    """The scalar operation of a form that has so many sources, for opcodes that compute as others do."""
    from .effect import Effect

    for row in rows()[opcode]:
        choice = None if isinstance(row, Effect) else row.match(modifiers)
        if choice is not None and len((found := row.build(*choice)).sources) == sources:
            return found
    raise AssertionError(f"{opcode} has no form {modifiers} with {sources} sources")


def _foreign(site: Site) -> IllegalInstruction | NotModelled:
    """The error of an opcode without a row: PTX has it, or not."""
    statement, name = site.statement, site.statement.opcode
    if name not in OPCODES:
        return IllegalInstruction(f"PTX has no opcode '{name}'{advice(name)}", statement.location())
    return _refused(site) or NotModelled(
        f"'{statement.mnemonic}' is not modelled: no such opcode is executed", statement.location()
    )


def _refused(site: Site) -> IllegalInstruction | NotModelled | None:
    """The error of what PTX has and nobody executes here, or the target lacks; None for anything else."""
    statement = site.statement
    if (reason := lacking(statement.mnemonic, site.module.target, site.module.version)) is not None:
        return site.illegal(reason)
    for start, reason in REFUSED.items():
        if f"{statement.mnemonic}.".startswith(f"{start}."):
            return NotModelled(f"'{statement.mnemonic}' is not modelled: {reason}", statement.location())
    return None


def row_step(site: Site, row: Row, choice: tuple[str, ...]) -> Step:
    """The step of a statement that spells a form of a row."""
    from .effect import Effect
    from .scalar import scalar_step

    if isinstance(row, Effect):
        return row.bind(site, *choice)
    return scalar_step(site, row.build(*choice))


def _exactness(row: Row, choice: tuple[str, ...]) -> dict[str, str]:
    """``fidelity`` and ``note`` of the form of a row."""
    from .effect import Effect

    source = row if isinstance(row, Effect) else row.build(*choice)
    return {"fidelity": source.fidelity, "note": source.note}


def _counts(site: Site, row: Row, choice: tuple[str, ...]) -> bool:
    """Whether a row has as many operands as are given, where several rows have the same modifiers."""
    from .effect import Effect

    return isinstance(row, Effect) or len(row.build(*choice).sources) + 1 == len(site.operands)


def check_available(site: Site, row: Row) -> None:
    """The module's target and version have the row; raises IllegalInstruction."""
    target = site.module.target
    number = int("".join(filter(str.isdecimal, target)))
    wrong = bool(row.chips) and number not in row.chips
    if wrong or number < row.chip or (row.suffix and not target.endswith(("a", row.suffix))):
        needs = " or ".join(f"sm_{one}{row.suffix}" for one in row.chips or (row.chip,))
        raise site.illegal(
            f"{site.statement.mnemonic} is not on {target}: it needs {needs}" + " or higher" * (not row.chips)
        )
    site.check_available(site.statement.mnemonic, row.since, 0)


def _no_form(site: Site, known: tuple[Row, ...]) -> IllegalInstruction | NotModelled:
    statement = site.statement
    if (refused := _refused(site)) is not None:
        return refused
    vocabulary = {word for row in known for slot in row.slots for word in slot}
    for index, modifier in enumerate(statement.modifiers):
        if modifier not in vocabulary:
            message = f"{statement.opcode} has no modifier .{modifier} here"
            return IllegalInstruction(message, statement.modifier_location(index))
    return IllegalInstruction(
        f"{statement.opcode} has no form {statement.mnemonic}: its modifiers do not go together",
        statement.location(),
    )
