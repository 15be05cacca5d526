"""Causes in operands that are computed from D: their order, the statistics of rows, the scale of softmax.

What is said of them was measured: the kernel was executed with chosen values in place of D. An order is tried
before it is claimed, as are other operands; a scale is claimed where attention with it gives the output, and
with the right scale what is expected.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from .....base.errors import Location
from .....programs.launch.array_agreement import agree
from ...origins.element_origins import OperandOrigins, Origins
from ...origins.packing_checks import PackingFinding, expected_inner
from ...origins.tile_patterns import permutation_text
from ..corrections import Rearranged
from ..launch_causes import Cause
from ..statement_chains import definer, operand_registers
from ..tried_causes import Trial
from .attention_models import attention, running_attention
from .computed_operands import Computed, ComputedOperand, computed_operands
from .row_statistics import Rows, Statistics, row_statistics

Array = npt.NDArray[Any]
Order = tuple[str, npt.NDArray[np.intp], npt.NDArray[np.intp]]
_BY_VALUES = "the kernel was executed with chosen values in place of D, which show what operand"
_NEAR = 0.01  # of a scale, relative
_LOOSE = 2.0**-6  # of outputs of attention in f16
_LOOSE_SUMS = 2.0**-4  # where S is f16 too: exp takes its error


def computed_causes(trial: Trial, origins: Origins) -> list[Cause]:
    """Return causes in operands that are computed from D of other matrix instructions."""
    computed = computed_operands(trial.launch, origins)
    if computed is None:
        return []
    if any(operand.findings for operand in computed.operands):
        return _order_causes(trial, computed)
    return [*_scale_causes(trial, computed)] or [*_statistic_causes(trial, computed)]


# --- order -----------------------------------------------------------------------------------------


def _order_causes(trial: Trial, computed: Computed) -> list[Cause]:
    orders = {operand.pc: _order(operand) for operand in computed.operands if operand.findings}
    known = {pc: order for pc, order in orders.items() if order is not None}
    shown = _shown(computed)
    evidence = f"{shown}; located: elements that the operand should have are not in it"
    if known and len(known) == len(orders):
        left = trial.wrong(Rearranged(known))
        evidence = f"{shown}; with the operand put right, every output is as expected"
        if left:
            evidence = f"{shown}; located: with it put right {left:,} elements are still wrong"
    seen, causes = set[str](), list[Cause]()
    for operand in computed.operands:
        for finding in operand.findings:
            if finding.message not in seen:
                seen.add(finding.message)
                causes.append(_of_finding(trial, computed, operand, finding, evidence))
    return causes


def _of_finding(
    trial: Trial, computed: Computed, operand: ComputedOperand, finding: PackingFinding, evidence: str
) -> Cause:
    code = trial.launch.kernel._entry.code
    place = operand.made.first(code, "ldmatrix", "ld") or code[operand.pc].statement.location()
    return Cause(
        kind=finding.kind,
        message=f"operand {finding.operand} of the matrix instruction {_made_text(trial, computed)}: "
        f"{finding.message} [{finding.where}]",
        location=place,
        evidence=evidence,
        operand=finding.operand,
        fix=f"give P[i, j] its place in the layout of operand {operand.role}: that of D is another",
        also=(*operand.made.shown(code), ("the matrix instruction", code[operand.pc].statement.location())),
    )


def _shown(computed: Computed) -> str:
    """Return what shows a cause, in words."""
    return f"{_BY_VALUES} {computed.operands[0].role} follows"


def _made_text(trial: Trial, computed: Computed) -> str:
    """Return what S is, in words."""
    code = trial.launch.kernel._entry.code
    lines = [code[pc].statement.location().line for pc in computed.makers]
    names = {role: _array(computed, role) for role in "ab"}
    span = f"line {lines[0]}" if len(lines) == 1 else f"lines {lines[0]} to {lines[-1]}"
    return f"is computed from S, D of the products of {names['a']} and {names['b']} ({span})"


def _array(computed: Computed, role: str) -> str:
    buffers = (given[role].buffer for given in computed.of_makers.values() if role in given)
    return next((buffer.name for buffer in buffers if buffer is not None), "?")


def _order(operand: ComputedOperand) -> Order | None:
    """Return where in the operand each element is that should be at a place; None where some are nowhere."""
    tiles = operand.tiles
    inner = expected_inner(tiles, operand.partner)
    orders = []
    for number in range(len(operand.places)):
        across = tiles.tiles.outer[number] - tiles.outer[number]
        along = tiles.tiles.inner[number] - inner[number]
        at = {pair: place for place, pair in _elements(across, along)}
        size, depth = across.shape
        wanted = [at.get((row, column)) for row in range(size) for column in range(depth)]
        if any(place is None for place in wanted):
            return None
        orders.append(np.array(wanted, np.intp).reshape(size, depth, 2))
    if any((order != orders[0]).any() for order in orders):
        return None
    return operand.role, orders[0][..., 0], orders[0][..., 1]


def _elements(across: Array, along: Array) -> Iterator[tuple[tuple[int, ...], tuple[int, int]]]:
    for place in np.ndindex(across.shape):
        yield place, (int(across[place]), int(along[place]))


# --- statistics of rows ----------------------------------------------------------------------------


def _statistic_causes(trial: Trial, computed: Computed) -> Iterator[Cause]:
    found = row_statistics(trial.launch, computed)
    code, operand = trial.launch.kernel._entry.code, computed.operands[0]
    evidence = _statistic_evidence(trial, computed, found)
    if found.maxima is not None and _others(found.maxima):
        at = operand.made.first(code, "ex2") or code[operand.pc].statement.location()
        text = f"the maximum of another row is subtracted in the exponent of P: {_rows_text(found.maxima)}"
        yield _statistic(trial, computed, text, at, "subtract from each row of S its own maximum", evidence)
    if found.factors is None or found.maxima is None or (found.maxima < 0).any():
        return
    place = _rescaling(trial, computed)
    if (found.factors == -2).all():
        text = "the sums are not rescaled when the maximum of their row grows"
        yield _statistic(
            trial, computed, text, place, "multiply C by exp(old maximum - new maximum) of its row", evidence
        )
    elif (found.factors >= 0).all() and (np.arange(len(found.factors)) != found.factors.T).any():
        fix = "multiply each element of C by the factor of the row that the layout of D gives it"
        yield _statistic(trial, computed, _factor_text(found.factors), place, fix, evidence)


def _others(rows: Rows) -> bool:
    """Return whether all rows have a statistic, and some that of another row."""
    return bool((rows >= 0).all() and (rows != np.arange(len(rows))).any())


def _rows_text(rows: Rows) -> str:
    if sorted(rows.tolist()) == list(range(len(rows))):
        return f"for rows of the tile, {permutation_text(rows)}"
    return f"rows of the tile have those of rows {', '.join(map(str, rows.tolist()))}"


def _factor_text(factors: Rows) -> str:
    if (factors == factors[:, :1]).all():
        return f"the sums are rescaled by the factor of another row: {_rows_text(factors[:, 0])}"
    row, column = np.argwhere(factors != np.arange(len(factors))[:, None])[0].tolist()
    return (
        f"the sums of a row are rescaled by factors of several rows: element {row}, {column} of the tile by "
        f"that of row {factors[row, column]}"
    )


def _statistic_evidence(trial: Trial, computed: Computed, found: Statistics) -> str:
    """Return what shows statistics: attention computed with them, where it is the output."""
    shown = f"{_BY_VALUES}s {computed.operands[0].role} and c follow"
    arrays = _attention_arrays(trial, computed)
    if arrays is None or found.maxima is None or (found.maxima < 0).any():
        return shown
    *matrices, index = arrays
    own = np.repeat(np.arange(len(found.maxima))[:, None], 8, axis=1)
    factors = own if found.factors is None or (found.factors == -1).any() else found.factors
    keys = max(_first_keys(operand) for operand in computed.operands)
    scale = float(np.median([operand.slope for operand in computed.operands]))
    given = trial.launch.attempt(checks="off").arrays[index]
    Q, K, V = matrices
    with np.errstate(all="ignore"):
        wrong = running_attention((Q, K, V), scale, keys, found.maxima, factors)
    loose = max(trial.tolerance, _loose(computed))
    if not agree(wrong, given, loose).all():
        return f"{shown}; located: attention computed with it is not all of the output"
    if not agree(attention(Q, K, V, scale), np.asarray(trial.expected[index]), loose).all():
        return f"{shown}; attention computed with it is the output, without it not what is expected"
    return f"{shown}; attention computed with it is the output, without it what is expected"


def _first_keys(operand: ComputedOperand) -> int:
    """Return how many columns of S a turn of the kernel has, as far as this operand shows it."""
    firsts = [number for number, place in enumerate(operand.places) if place[4] == 0]
    return int(operand.tiles.tiles.inner[firsts].max()) + 1


def _statistic(
    trial: Trial, computed: Computed, text: str, at: Location | None, fix: str, evidence: str
) -> Cause:
    code, operand = trial.launch.kernel._entry.code, computed.operands[0]
    return Cause(
        kind="statistic",
        message=f"{text}; operand {operand.role} {_made_text(trial, computed)}",
        location=at,
        evidence=evidence,
        fix=fix,
        also=(*operand.made.shown(code), ("the matrix instruction", code[operand.pc].statement.location())),
    )


def _rescaling(trial: Trial, computed: Computed) -> Location | None:
    """Return the statement that makes C of the first product of a turn, else the product itself."""
    code = trial.launch.kernel._entry.code
    for operand in computed.operands:
        for register in operand_registers(code[operand.pc].statement.operand_text or "", "c"):
            pc = definer(code, operand.pc, register)
            if pc is not None and code[pc].statement.opcode in ("mul", "fma"):
                return code[pc].statement.location()
    return code[computed.operands[0].pc].statement.location()


# --- the scale of softmax --------------------------------------------------------------------------


def _scale_causes(trial: Trial, computed: Computed) -> Iterator[Cause]:
    """Yield a scale of S that is not one over the root of the depth, if attention explains both outputs."""
    arrays = _attention_arrays(trial, computed)
    if arrays is None:
        return
    Q, K, V, index = arrays
    slope = float(np.median([operand.slope for operand in computed.operands]))
    right = Q.shape[1] ** -0.5
    if not slope > 0 or abs(slope / right - 1) < _NEAR:
        return
    given, wanted = trial.launch.attempt(checks="off").arrays[index], np.asarray(trial.expected[index])
    if computed.operands[0].role == "b":
        given, wanted = given.T, wanted.T
    loose = max(trial.tolerance, _loose(computed))
    measured, proper = (attention(Q, K, V, scale) for scale in (slope, right))
    if not (agree(measured, given, loose).all() and agree(proper, wanted, loose).all()):
        return
    if agree(proper, given, loose).all():
        return  # too near to be distinguished
    code, operand = trial.launch.kernel._entry.code, computed.operands[0]
    made = _made_text(trial, computed)
    yield Cause(
        kind="scale",
        message=f"{_scale_text(slope, right, Q.shape[1])}; operand {operand.role} {made}",
        location=operand.made.first(code, "ex2") or code[operand.pc].statement.location(),
        evidence=f"{_shown(computed)}; attention with this scale is the output, with {right:.6g} "
        "what is expected",
        fix=f"multiply S by {right:.6g} before the exponential, once",
        also=tuple(operand.made.shown(code)),
    )


def _loose(computed: Computed) -> float:
    """Return how near attention in floats is to that of a kernel."""
    forms = (given["a"].operand.instruction for given in computed.of_makers.values())
    return _LOOSE_SUMS if any(form.d.bits == 16 for form in forms) else _LOOSE


def _scale_text(slope: float, right: float, depth: int) -> str:
    known = {1.0: "the scale of softmax is missing", right * right: "the scale of softmax is applied twice"}
    text = next((what for value, what in known.items() if abs(slope / value - 1) < _NEAR), "")
    text = text or "the scale of softmax is another"
    return f"{text}: S is multiplied with {slope:.6g}, not with {right:.6g}, one over the root of {depth}"


def _attention_arrays(trial: Trial, computed: Computed) -> tuple[Array, Array, Array, int] | None:
    """Return Q, K and V of one head, and the number of the output; None for other shapes.

    Where P is operand b, V and the output are transposed: O^T = V^T P^T.
    """
    makers = next(iter(computed.of_makers.values()))
    operands = (makers.get("a"), makers.get("b"), _other(computed.operands[0]))
    buffers = [None if operand is None else operand.buffer for operand in operands]
    if any(buffer is None for buffer in buffers) or len(trial.expected) != 1:
        return None
    Q, K, V = (trial.launch.initial(buffer.parameter) for buffer in buffers if buffer is not None)
    (index,) = trial.expected
    wanted = np.asarray(trial.expected[index]).shape
    if computed.operands[0].role == "b":
        V, wanted = V.T, wanted[::-1]
    fits = Q.ndim == K.ndim == V.ndim == 2 and Q.shape[1] == K.shape[1] and len(K) == len(V)
    return (Q, K, V, index) if fits and wanted == (len(Q), V.shape[1]) else None


def _other(operand: ComputedOperand) -> OperandOrigins | None:
    """Return the operand that is multiplied with P: V."""
    return operand.statement.get("b" if operand.role == "a" else "a")
