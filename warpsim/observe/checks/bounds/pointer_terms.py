"""The terms of addresses: which parameters and variables of a kernel are added up in a register.

A term is a word of 8 bytes among the parameters, by its offset, or a variable in global or const space, by
its name. Whether a word holds a pointer its value says, when the kernel runs. Of each register of a kernel
this module knows the terms, over all statements that write it: whether each of them is there once, if at all,
as in ``pointer + index * stride``, or in any other way. Of what comes from memory, from a call or from packed
halves nothing is known: it may be any pointer. Integers without a term may stand beside a pointer.

Only what addresses depend on is looked at. Knows statements; does not know values, lanes or allocations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ....machine.bind.scope import RegisterName, Scope, Variable
from ....machine.bind.value_types import bits_of
from ....machine.run.wave import Entry, Record
from ....machine.state.side_tables import SideTable
from ....ptx.operands import Address, Arguments, Displacement, Operand, Register, Vector
from ....ptx.statements import operand_names

Key = int | str  # the offset of a word among the parameters, or the name of a variable
Terms = Mapping[Key, bool] | None  # whether each is there once, if at all; None: nothing is known
_INTEGER: Terms = {}
_WIDE = 64  # bits of an address


def _merge(first: Terms, other: Terms) -> Terms:
    """Return the terms of a register that holds one of two values."""
    if first is None or other is None:
        return None
    return {key: first.get(key, True) and other.get(key, True) for key in {**first, **other}}


def _add(first: Terms, other: Terms) -> Terms:
    """Return the terms of a sum."""
    if first is None or other is None:
        return None
    both = first.keys() & other.keys()
    return {key: once and key not in both for key, once in {**first, **other}.items()}


def _derive(*terms: Terms) -> Terms:
    """Return the terms of what is computed in any way from values."""
    found = dict[Key, bool]()
    for each in terms:
        if each is None:
            return None
        found |= dict.fromkeys(each, False)
    return found


class _Unset(Exception):
    """The terms of a register are not known yet."""


class PointerTerms:
    """The terms of the addresses of a kernel, each looked at when first asked for."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self._writes: dict[int, list[Record]] | None = None
        self._known: dict[int, Terms] = {}  # by register
        self._of: dict[int, tuple[Terms, ...]] = {}  # by statement

    def of(self, pc: int) -> tuple[Terms, ...]:
        """Return the terms of the addresses of a statement of the kernel, () in other functions."""
        found = self._of.get(pc)
        if found is None:
            found = self._of[pc] = self._addresses(pc)
        return found

    def _addresses(self, pc: int) -> tuple[Terms, ...]:
        record, start = self.entry.code[pc], self.entry.code[self.entry.start]
        if record.scope is None or record.function != start.function:
            return ()
        bases = [
            record.scope.find(operand.base.name)
            for operand in record.statement.operands or ()
            if isinstance(operand, Address) and operand.base is not None and not operand.coordinates
        ]
        self._look(base.number for base in bases if isinstance(base, RegisterName))
        return tuple(self._meaning(base) for base in bases)

    def _meaning(self, found: object) -> Terms:
        """Return the terms of what a name means; a register that is never written is an integer.

        Raises _Unset where it is written, and not known yet.
        """
        if isinstance(found, RegisterName):
            if found.number in self._known:
                return self._known[found.number]
            if found.number in self._all_writes():
                raise _Unset
            return _INTEGER
        if isinstance(found, Variable):
            return {found.name: True} if found.space in ("global", "const") else _INTEGER
        return _INTEGER if found is None else None  # a special register; a function or label

    # --- registers ---

    def _look(self, registers: Iterable[int]) -> None:
        """Find the terms of registers, and of all that these depend on."""
        writes = self._all_writes()
        left, needed = list(registers), dict[int, None]()
        while left:
            number = left.pop()
            if number in self._known or number in needed:
                continue
            needed[number] = None
            left += [source for record in writes.get(number, ()) for source in _registers(record)]
        changed = True
        while changed:
            changed = False
            for number in needed:
                for record in writes.get(number, ()):
                    changed |= self._learn(number, record)
        self._known |= dict.fromkeys(needed.keys() & writes.keys() - self._known.keys())  # in circles alone

    def _learn(self, number: int, record: Record) -> bool:
        """Add what a statement writes to a register; return whether that is new."""
        try:
            new = self._defined_terms(record, number)
        except _Unset:
            return False
        if number in self._known:
            new = _merge(self._known[number], new)
        changed = number not in self._known or new != self._known[number]
        self._known[number] = new
        return changed

    def _all_writes(self) -> dict[int, list[Record]]:
        """Return the statements that write each register of the kernel: it is their first operand."""
        if self._writes is None:
            self._writes = {}
            code, function = self.entry.code, self.entry.code[self.entry.start].function
            for record in code[self.entry.start :]:
                if record.function != function:
                    break
                for register in _targets(record):
                    self._writes.setdefault(register.number, []).append(record)
        return self._writes

    # --- statements ---

    def _defined_terms(self, record: Record, number: int) -> Terms:
        """Return the terms that a statement gives to a register."""
        statement, scope = record.statement, record.scope
        target, *operands = statement.operands or ()
        assert scope is not None
        wide = next(bits_of(each.type) for each in _targets(record) if each.number == number) >= _WIDE
        if any(isinstance(operand, Address | Arguments) for operand in (target, *operands)):
            return self._loaded_terms(record, target, number) if wide else _INTEGER
        if any(isinstance(operand, Vector) for operand in operands):
            return None if wide else _derive(*self._sources(operands, scope))
        sources = self._sources(operands, scope)
        rule = _RULES.get(statement.opcode)
        if rule is None or not wide or statement.modifiers[-1].endswith(("32", "16", "8")):
            return self._narrow(statement.opcode, statement.modifiers, sources)
        return rule(sources)

    @staticmethod
    def _narrow(opcode: str, modifiers: Sequence[str], sources: Sequence[Terms]) -> Terms:
        """Return the terms of a result that is not a sum of words of 64 bits, but for ``mad.wide``."""
        if opcode == "mad" and "wide" in modifiers:
            return _add(_derive(*sources[:2]), sources[2])
        return _derive(*sources)

    def _loaded_terms(self, record: Record, target: Operand, number: int) -> Terms:
        """Return the terms of a word of 64 bits that is loaded: of a parameter of the kernel, or unknown."""
        statement, scope = record.statement, record.scope
        address = (statement.operands or ())[-1]
        if statement.opcode != "ld" or not isinstance(address, Address) or address.base is None:
            return None
        found = scope.find(address.base.name) if scope is not None else None
        if not isinstance(found, Variable) or found.space != "param" or found.framed:
            return None
        place = [register.number for register in _targets(record)].index(number)
        return {found.offset + address.offset + place * _WIDE // 8: True}

    def _sources(self, operands: Sequence[Operand], scope: Scope) -> list[Terms]:
        """Return the terms of operands."""
        return [
            _derive(*(self._meaning(scope.find(name)) for name in operand_names(operand)))
            if not isinstance(operand, Register | Displacement)
            else self._meaning(scope.find(next(iter(operand_names(operand)))))
            for operand in operands
        ]


def _any_of(sources: Sequence[Terms]) -> Terms:
    return _merge(sources[0], sources[1])


def _mask(sources: Sequence[Terms]) -> Terms:
    """Return the terms of bits that are set, cleared or exchanged, as alignment does."""
    return _add(sources[0], sources[1])


_RULES: dict[
    str, Callable[[Sequence[Terms]], Terms]
] = {  # by opcode, of words of 64 bits; others may compute anything from their sources
    "mov": lambda sources: sources[0],
    "cvta": lambda sources: sources[0],
    "cvt": lambda sources: sources[0],
    "add": lambda sources: _add(sources[0], sources[1]),
    "sub": lambda sources: _add(sources[0], _derive(sources[1])),
    "mad": lambda sources: _add(_derive(*sources[:2]), sources[2]),
    "selp": _any_of,
    "min": _any_of,
    "max": _any_of,
    "and": _mask,
    "or": _mask,
    "xor": _mask,
}


def _targets(record: Record) -> Iterator[RegisterName]:
    """Yield the registers of the first operand of a statement, which it writes if it writes any."""
    scope, operands = record.scope, record.statement.operands
    if scope is None or not operands or isinstance(operands[0], Address):
        return
    for name in operand_names(operands[0]):
        found = scope.find(name)
        if isinstance(found, RegisterName) and found.type != "pred":
            yield found


def _registers(record: Record) -> Iterator[int]:
    """Yield the registers that a statement may read."""
    for operand in (record.statement.operands or ())[1:]:
        for name in operand_names(operand):
            found = record.scope.find(name) if record.scope is not None else None
            if isinstance(found, RegisterName):
                yield found.number


POINTER_TERMS = SideTable(PointerTerms)  # of a kernel
