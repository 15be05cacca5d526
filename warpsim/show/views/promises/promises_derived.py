"""The promises that tables of the package make: evidence of forms, exactness of statements, what is refused.

What statements of launched kernels promise is found by building all
of their forms, which takes seconds: a tool does that and records it (tools/promises), a test does it again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from ....isa.architectures import ARCHITECTURES, targets_text
from ....isa.instruction import Instruction
from ....machine.opcodes import special_registers
from ....machine.opcodes.unexecuted import REFUSED
from ....programs.interactive.interactive_binder import ELSEWHERE
from ....ptx.decode import NOT_MODELLED
from ..evidence import Row, alike, evidence_rows, products_text, types_text
from .promise import Promise
from .promises_stated import LIMITS, RESULTS, STATEMENTS

Statement = dict[str, Any]  # label, note, opcodes, forms

_NESTED = re.compile(r" \((?:inferred|validated|reported).*|; dense rule .*|; [\d,]+ outputs of .*")

# --- matrix instructions ---------------------------------------------------------------------------


def result_promises(forms: Iterable[Instruction]) -> Iterator[Promise]:
    """Yield a promise for each family, label, and chips or reason, of the types with the same targets.

    Every form on every target is a row of some promise.
    """
    for rows in alike(evidence_rows(forms), _reasoned):
        family, label, why, _ = _reasoned(rows[0])
        yield Promise(
            section=RESULTS,
            label=label,
            what=f"{family} of {_types(rows)} on {_targets(rows)}: {_reason(label, why, rows)}",
            name=f"results {label}",
            modules=("isa/architectures.py", "isa/comparisons.py"),
            rows=tuple((*row.key, row.target) for row in rows),
        )


def _reasoned(row: Row) -> tuple[str, str, str, bool]:
    """Return family, label, the chips compared or the reason, and whether C is added."""
    why = row.evidence.chips or _NESTED.sub("", row.evidence.detail)
    return row.family, row.evidence.label, why, row.with_c


def _types(rows: Iterable[Row]) -> str:
    """Return operations with their types of A, B, C and D, and k: ``f16 (f16.f16.f32 to f32, k 16)``."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row.operation, row.d), []).append(row)
    return ", ".join(
        f"{operation} ({types_text(members)} to {d}, k {products_text(members)})"
        for (operation, d), members in found.items()
    )


def _targets(rows: Iterable[Row]) -> str:
    named = {row.target for row in rows}
    return targets_text([name for name in ARCHITECTURES if name in named])


def _reason(label: str, why: str, rows: Iterable[Row]) -> str:
    if label != "validated":
        return why
    outputs = {row.key: row.evidence.outputs for row in rows}  # the same on all of a chip's targets
    return f"{sum(outputs.values()):,} outputs of {why}, 0 differ"


# --- statements of launched kernels ----------------------------------------------------------------


def all_statements() -> list[Statement]:
    """Return labels and notes of all forms of all opcodes: how many forms, and of which opcodes."""
    from ....machine.opcodes import exactness, rows

    found: dict[tuple[str, str, bool], tuple[set[str], list[int]]] = {}
    for opcode, known in rows().items():
        for row in known:
            for choice in row.forms():
                key = (*exactness(row, choice), opcode in _MOVES)
                opcodes, count = found.setdefault(key, (set(), [0]))
                opcodes.add(opcode)
                count[0] += 1
    return [
        {"label": label, "note": note, "moves": moves, "opcodes": sorted(opcodes), "forms": count}
        for (label, note, moves), (opcodes, [count]) in sorted(found.items())
    ]


_MOVES = frozenset({"ld", "ldu", "st"})  # counted apart: caches, scopes and vectors make many forms of them


def statement_promises(statements: Iterable[Statement]) -> Iterator[Promise]:
    """Yield a promise for each label and note of statements, and a promise for special registers."""
    for statement in statements:
        yield Promise(
            section=STATEMENTS,
            label=statement["label"],
            what=_statement_text(statement),
            name=f"statements {statement['label']}",
            modules=("programs/launch/fidelity.py", "machine/opcodes/scalar.py"),
        )
    yield Promise(
        section=STATEMENTS,
        label="approximate",
        what=f"special registers with values of their own: {', '.join(_made_up())}",
        name="special registers",
        modules=("machine/opcodes/special_registers.py",),
    )


def _made_up() -> Iterator[str]:
    """Yield special registers whose values are made up, those that differ in a number as a range."""
    found: dict[str, list[str]] = {}
    for name, item in special_registers.REGISTERS.items():
        if item.made_up:
            found.setdefault(re.sub(r"\d+", "#", name), []).append(name)
    for names in found.values():
        yield names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"


def _statement_text(statement: Statement) -> str:
    opcodes, note = statement["opcodes"], statement["note"].removeprefix("inferred: ")
    if not note and statement["moves"]:
        return (
            f"{statement['forms']:,} forms of {', '.join(opcodes)}: loads and stores, which compute nothing"
        )
    if not note:
        forms = f"{statement['forms']:,} forms of {len(opcodes)} opcodes"
        return f"{forms}, as PTX defines (mma and wgmma: as above)"
    forms = "1 form" if statement["forms"] == 1 else f"{statement['forms']:,} forms"
    return f"{forms} of {', '.join(opcodes)}: {note}"


# --- what is refused -------------------------------------------------------------------------------


def refused_promises() -> Iterator[Promise]:
    """Yield opcodes without a model, those of launches only, and metadata that ptxas does not sort."""
    for start, reason in REFUSED.items():
        yield _refused("refused opcodes", f"{start}: {reason}", "machine/opcodes/__init__.py")
    names = ", ".join(sorted(NOT_MODELLED))
    yield _refused("single instructions", f"as single matrix instructions: {names}", "ptx/decode.py")
    elsewhere: dict[str, list[str]] = {}
    for start, reason in ELSEWHERE.items():
        elsewhere.setdefault(reason, []).append(start)
    for reason, starts in elsewhere.items():
        what = f"in a Warp or Warpgroup {', '.join(starts)}: {reason}"
        yield _refused("opcodes of launches", what, "programs/interactive/interactive_binder.py")
    for targets, operations in _unsorted().items():
        what = (
            f"descending metadata indices of plain .sp on {targets_text(targets)}: ptxas does not sort "
            f"those of {', '.join(operations)} (undefined='fallback' reads them literally)"
        )
        yield _refused("unsorted metadata", what, "isa/fragments.py")


def _refused(name: str, what: str, module: str) -> Promise:
    return Promise(name=name, section=LIMITS, label="not modelled", what=what, modules=(module,))


def _unsorted() -> dict[tuple[str, ...], list[str]]:
    """Return operations whose metadata ptxas does not sort, by the targets where that is so."""
    found: dict[str, list[str]] = {}
    for name, target in ARCHITECTURES.items():
        for operation in sorted(target.unsorted_operations):
            found.setdefault(operation, []).append(name)
    by_targets: dict[tuple[str, ...], list[str]] = {}
    for operation, names in found.items():
        by_targets.setdefault(tuple(names), []).append(operation)
    return by_targets
