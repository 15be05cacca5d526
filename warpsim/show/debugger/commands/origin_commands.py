"""``origins``: which elements of which arrays the matrix instruction at hand is given.

    origins            all findings, and what each statement reads
    origins b          every element of an operand at this statement, in this execution
    origins b[0,4]     one of them

The launch is executed with keys beside its data, once a session. Knows the statement of the focus; tracing is
workbench/diagnosis/origins.
"""

from __future__ import annotations

from ....base.errors import OperandError
from ....isa.operand_places.places import places
from ....isa.warps import WARP
from ....workbench.debugger.travel import Travel
from ....workbench.diagnosis.origins.element_origins import OperandOrigins, Origins, find_origins
from ...views.origins import fragment_lines, origin_lines
from .memory_commands import Part, part_of, split_part

_ALIASES = {"metadata": "e", "meta": "e"}
_LARGEST = 1 << 16  # rows and columns


def origins(session: Travel, text: str) -> str:
    """Print where operands come from."""
    found = _trace_origins(session)
    if not text:
        return "\n".join(origin_lines(found))
    name, brackets = split_part(text)
    traced, execution = _focus_operand(session, found, _ALIASES.get(name, name))
    if not brackets:
        return "\n".join(fragment_lines(traced, execution))
    part = part_of(brackets, (_LARGEST, _LARGEST), Part(rows=range(1), columns=range(1)))
    if not part.single:
        raise OperandError(f"origins {text}: expected an element, as in {name}[3,5], or an operand")
    return f"{name}[{part.rows[0]},{part.columns[0]}] is {_source(traced, execution, part)}"


def _trace_origins(session: Travel) -> Origins:
    if session.origins is None:
        shape, given = session.shape, session.given
        if not session.shapes:
            raise OperandError("no argument is an array that could be followed")
        session.origins = find_origins(
            session.kernel,
            shape.grid,
            shape.block,
            session.args,
            {f"arg{index}": index for index in session.shapes},
            shared_bytes=shape.shared_bytes,
            cluster=shape.cluster,
            most_statements=given.most_statements,
        )
    found: Origins = session.origins
    return found


def _focus_operand(session: Travel, found: Origins, role: str) -> tuple[OperandOrigins, int]:
    """Return an operand of the statement of the focus, and its execution. Raises OperandError."""
    here = session.standing()
    line = here.record.statement.location().line
    known = [each for each in found.operands if each.operand.given.location.line == line]
    if not known:
        raise OperandError(
            f"{here.record.statement.mnemonic}: nothing is known of its operands; it is not a "
            "matrix instruction"
        )
    traced = next((each for each in known if each.role == role), None)
    if traced is None:
        raise OperandError(f"operands are {', '.join(each.role for each in known)}, not {role}")
    number, wave, lane = session.wave()
    alone = here.record.matrix is None  # a thread issues it
    warps = 1 if alone else max(traced.operand.instruction.lanes // WARP, 1)
    first = session.focus.warp // warps * warps
    pc = next(pc for pc, each in enumerate(wave.code) if each.statement is here.record.statement)
    step = session.history.steps_of(pc, number, lane // WARP - session.focus.warp + first, session.time)
    wanted = [*session.focus.cta, first, step]
    for execution, place in enumerate(traced.operand.places.tolist()):
        if place == wanted:
            return traced, execution
    raise OperandError(f"execution {step} of this warp was not followed: lanes depend on the data")


def _source(traced: OperandOrigins, execution: int, part: Part) -> str:
    """Return where an element comes from: tiles are counted by row of M or N and k, fragments by lane."""
    row, column = part.rows[0], part.columns[0]
    table = traced.table(execution)
    if traced.operand.is_matrix:
        key = (column, row) if traced.role == "b" else (row, column)
        found = [each.source for each in table if (each.lane, each.register) == key]
    else:
        held = [
            place
            for place in places(traced.operand.instruction, traced.role)
            if (place.row, place.column, place.product) == (row, column, 0)
        ]
        found = [
            each.source
            for place in held
            for each in table
            if (each.lane, each.register, each.bits[1]) == (place.lane, place.register, place.low_bit)
        ]
    if not found:
        raise OperandError(f"{traced.role}[{row},{column}] is outside of the operand")
    return found[0]
