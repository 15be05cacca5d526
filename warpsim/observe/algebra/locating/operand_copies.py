"""The copies that brought a wrong operand: from the device's memory through shared memory to the statement.

Each copy of a run is kept with the keys that it moved. An element that is loaded straight into registers is
wrong at its load. Through shared memory, it is wrong at the copy from the device where no copy has both the
wrong and the right element: it is another tile. Within a tile, the place that is written and the place that
is read could both be wrong.

Knows keys and copies; does not know formulas.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ....machine.bind.scope import RegisterName
from ....machine.run.wave import Record
from ....ptx.statements import operand_names
from .formula_graphs import Name
from .value_edits import Edit

if TYPE_CHECKING:
    from .formula_search import Sides

_LOOKED_AT = 64  # edits
_LOADS = ("ld", "ldmatrix", "wmma", "ldu", "tcgen05")


def loads_of(
    code: Sequence[Record], pc: int, names: Iterable[str], ends: Container[int] = ()
) -> Iterator[int]:
    """Yield the statements that load registers, by name, for a statement, each once: the nearest before it in
    the text, which is a ring, as loops are. Statements that were never executed define nothing. ``ends`` are
    taken for loads, too.
    """
    scope, seen = code[pc].scope, set[tuple[int, int]]()
    found = [None if scope is None else scope.find(name) for name in names]
    wanted = [(each.number, pc) for each in found if isinstance(each, RegisterName)]
    while wanted:
        number, before = wanted.pop()
        function, ring = (
            code[before].function,
            (*range(before - 1, -1, -1), *range(len(code) - 1, before, -1)),
        )
        writers = (at for at in ring if number in code[at].flow.written and code[at].function == function)
        at = next(writers, None)
        if at is None or (number, at) in seen:
            continue
        seen.add((number, at))
        flow = code[at].flow
        if code[at].statement.opcode not in _LOADS and at not in ends:
            wanted += [(each, at) for each in (flow.values | flow.addresses) - flow.written]
        else:
            yield at


def copies_of(
    sides: Sides, edits: Sequence[Edit], name_of: Callable[[int], Name | None], role: str = ""
) -> tuple[tuple[int, ...], int | None]:
    """Return the statements that brought the wrong elements, and the wrong one among them if decided; of
    those to operand ``role`` of a matrix instruction alone, if it is given.
    """
    some = edits[:: max(len(edits) // _LOOKED_AT, 1)]
    pairs = [[_stored_key(sides, name_of(key)) for key in (edit.found, edit.wanted)] for edit in some]
    found = np.array([key for key, _ in pairs if key is not None], np.uint64)
    if not found.size:
        return (), None
    copies = sides.provenance.copies
    if role:
        way = _way(sides, edits[0].pc, role)
        copies = [copy for copy in copies if copy.pc in way]
    moved = {kind: Counter[int]() for kind in ("device", "write", "read")}  # by statement, how many
    for copy in copies:
        moved[copy.kind][copy.pc] += int(np.isin(found, copy.keys).sum())
    path = tuple(dict.fromkeys(pc for pcs in moved.values() for pc, count in pcs.most_common() if count))
    first = path[0] if path else None
    if not moved["write"].total() and not moved["read"].total():
        return path, first
    both = [np.array(pair, np.uint64) for pair in pairs if None not in pair]
    writes = [copy for copy in copies if copy.kind == "write"]
    together = any(np.isin(pair, copy.keys).all() for pair in both for copy in writes)
    return path, first if both and not together else None


def _way(sides: Sides, pc: int, role: str) -> set[int]:
    """Return the statements through which an operand of a matrix instruction may have come: loads of its
    registers, the last writers of the shared memory that is read, and the loads of what these store.
    """
    code, bound = sides.code, sides.code[pc].matrix
    names = getattr(bound, role, ()) or ()
    readers = {*loads_of(code, pc, (names,) if isinstance(names, str) else names)}
    reads = [*((reader, "") for reader in readers), (pc, role), (pc, "")]
    writers = {at for each in reads for at in sides.written_by.get(each, ())}
    stored = (loads_of(code, at, operand_names((code[at].statement.operands or ())[-1])) for at in writers)
    return readers | writers | {pc} | {at for each in stored for at in each}


def _stored_key(sides: Sides, name: Name | None) -> int | None:
    """Return the key of an argument's element as memory has it."""
    if name is None or name.number >= 0 or name.array not in sides.names:
        return None
    keys = sides.leaves.arguments[list(sides.names).index(name.array)].keys
    shape = () if keys is None else keys.shape
    if (
        keys is None
        or len(name.place) != len(shape)
        or any(i >= n for i, n in zip(name.place, shape, strict=True))
    ):
        return None
    return int(keys[name.place])
