"""Rules of collector buffers: a tcgen05.mma may take A, with .ws B, from a buffer only while a fill is valid.

A fill leaves the operand in the buffer; after lastuse and discard, which is what a mnemonic without a word
says, its contents can be gone. What use and lastuse read then is not defined, so it is a warning here, where
products always read the operand itself. Buffers are those of the CTA that issues, in the order of issue.
PTX ISA 9.3, sections 9.7.17.10.9.1 "tcgen05.mma" and 9.7.17.10.9.3 "tcgen05.mma.ws".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ....isa.families.tcgen05 import form_of
from ....machine.run.events import Observer, TensorAccess
from ..finding_catalogue import Site, report
from ..findings import Findings
from ..order_kinds import places_of

if TYPE_CHECKING:
    from ....machine.run.wave import Record, Wave

_READING = ("use", "lastuse")


class _Usage(NamedTuple):
    """What a statement does with a buffer: "a", "b0" to "b3"; "fill", "use", "lastuse" or "discard"."""

    buffer: str
    what: str


class CollectorBuffers(Observer):
    """An observer of products that take an operand from a buffer which has none."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.usages: dict[int, _Usage] = {}  # by statement
        self.filled: set[tuple[int, str]] = set()  # by CTA and buffer
        self.emptied: dict[tuple[int, str], int] = {}  # by which statement, after a fill

    def instrument(self, code: Sequence[Record]) -> Sequence[Record]:
        """Return the code as it is; without .use and .lastuse nothing is looked at."""
        statements = {place: code[place].statement for place in places_of(code, "tcgen05")}
        self.usages = {
            pc: _usage(statement.modifiers)
            for pc, statement in statements.items()
            if statement.modifiers[0] == "mma"
        }
        self.active = any(usage.what in _READING for usage in self.usages.values())
        return code

    def tensor_access(self, wave: Wave, access: TensorAccess) -> None:
        """Find a product without its filled buffer, or note that it fills or empties a buffer."""
        pc = access.path.pc
        usage = self.usages.get(pc)
        if usage is None:
            return
        key = int(wave.cta[access.lane]), usage.buffer
        if usage.what == "fill":
            self.filled.add(key)
            return
        if usage.what in _READING and key not in self.filled:
            self._report(wave, access, usage, self.emptied.get(key))
        if usage.what != "use" and key in self.filled:
            self.filled.remove(key)
            self.emptied[key] = pc

    def _report(self, wave: Wave, access: TensorAccess, usage: _Usage, emptied: int | None) -> None:
        word, operand = f".collector::{usage.buffer}", usage.buffer[0].upper()
        why = f"no tcgen05.mma of the CTA has filled the buffer with {word}::fill"
        if emptied is not None:
            line = wave.code[emptied].statement.location().line
            why = f"the tcgen05.mma of line {line} has let it go ({self.usages[emptied].what})"
        facts: dict[str, Any] = {"operand": operand, "why": why, "word": word, "usage": usage.what}
        key, pc = ("collector buffer", access.path.pc), access.path.pc
        report(self.findings, "collector buffer", Site(wave, pc, access.lane, emptied), key=key, **facts)


def _usage(modifiers: tuple[str, ...]) -> _Usage:
    """Return what the modifiers of a tcgen05.mma say, or what PTX says of those without a word."""
    form = form_of(modifiers)
    default = "collector::b0::discard" if form.weight_stationary else "collector::a::discard"
    _, buffer, what = (form.collector or default).split("::")
    return _Usage(buffer, what)
