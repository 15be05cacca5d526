"""What names mean in a module: registers, variables, labels and functions, in nested scopes.

Knows declarations; does not know values, or what statements do with what they name. PTX ISA 9.1, section 5.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ...base.errors import IllegalInstruction
from ...ptx.statements import Kernel, NumberedNames, Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """Registers by number: those read as values, as parts of addresses, and those written.

    ``framed`` says that it touches the .param variables of calls, ``made_up`` names the special registers
    that a chip may see otherwise.
    """

    values: frozenset[int] = frozenset()
    addresses: frozenset[int] = frozenset()
    written: frozenset[int] = frozenset()
    framed: bool = False
    made_up: tuple[str, ...] = ()


NOTHING = Flow()


@dataclass(frozen=True, slots=True)
class RegisterName:
    """A register: its number in the frame of its function, and its type."""

    number: int
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InitialAddress:
    """``size`` bytes from byte ``place`` on hold the address of ``name`` plus ``addend``.

    Of the address only the bits of ``mask`` are taken, and shifted down to bit 0.
    """

    place: int
    size: int
    name: str
    addend: int = 0
    mask: int = (1 << 64) - 1
    generic: bool = False

    def content(self, address: int) -> bytes:
        """Return the bytes, where the name lies at that address."""
        lowest = (self.mask & -self.mask).bit_length() - 1
        value = (address + self.addend & self.mask) >> max(lowest, 0)
        return (value & (1 << 8 * self.size) - 1).to_bytes(self.size, "little")


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A variable in memory: space, size in bytes, alignment, and where it lies.

    ``offset`` is the address in its space for shared and the kernel's param, the place in the frame for local
    and other param; variables of global and const space get their address from the device, by ``name``.
    """

    name: str
    space: str
    size: int
    alignment: int
    offset: int = 0
    element: int = 1  # bytes
    extents: tuple[int, ...] = ()  # elements along each dimension, as declared; none of a single element
    dynamic: bool = False  # .extern .shared name[]: as large as the launch says
    framed: bool = False  # .param of a call or device function: it lies in the frame, in local memory
    formal: str = ""  # "parameter" or "result" of the function that it is declared by
    initial: bytes = b""
    addresses: tuple[InitialAddress, ...] = ()  # of variables and functions, that go into ``initial``


@dataclass(eq=False)
class LabelName:
    """A label: the program counter it stands at, known when its block has been read."""

    name: str
    pc: int = -1


@dataclass(eq=False)
class LabelTable:
    """``.branchtargets`` or ``.calltargets``: names, in order, and where it stands."""

    names: tuple[str, ...]
    start: int = 0


@dataclass(eq=False)
class Prototype:
    """``.callprototype``: parameters and results of functions that are called by their address."""

    kernel: Kernel
    start: int = 0


@dataclass(eq=False)
class FunctionName:
    """A function, by name; its code is known when the module has been loaded."""

    name: str


Meaning = RegisterName | Variable | LabelName | LabelTable | Prototype | FunctionName


class Numbered(NamedTuple):
    """Registers of one type, ``%r<9>``: how many, and the number of the first."""

    size: int
    first: int
    type: str


@dataclass(eq=False)
class Scope:
    """Names of one pair of braces, and the scope around it.

    ``numbered`` are registers by the stem of their names; those that were asked for are in ``names``, too.
    """

    around: Scope | None = None
    names: dict[str, Meaning] = field(default_factory=dict)
    numbered: dict[str, Numbered] = field(default_factory=dict)

    def declare(self, name: str, meaning: Meaning, statement: Statement) -> None:
        """Give a name its meaning here; raises IllegalInstruction where it has a meaning already."""
        if name in self.names or (self.numbered and self._find_numbered(name)):
            raise IllegalInstruction(f"{name} is declared twice in this scope", statement.location())
        self.names[name] = meaning

    def declare_numbered(self, names: NumberedNames, first: int, type_name: str) -> bool:
        """Declare registers whose numbers are ``first`` and those behind it; return whether that was done.

        It is not where some of their names may have a meaning here.
        """
        stems = (names.stem, *self.numbered)
        if any(name.startswith(names.stem) for name in self.names) or any(map(_ends_in_digit, stems)):
            return False
        if names.stem in self.numbered:
            return False
        self.numbered[names.stem] = Numbered(names.size, first, type_name)
        return True

    def find(self, name: str) -> Meaning | None:
        """Return what a name means here, or None."""
        scope: Scope | None = self
        while scope is not None:
            found = scope.names.get(name)
            if found is None and scope.numbered:
                found = scope._find_numbered(name)
            if found is not None:
                return found
            scope = scope.around
        return None

    def register_type(self, name: str) -> str | None:
        """Return the type of the register that a name means here, None where it means no register."""
        scope: Scope | None = self
        while scope is not None:
            known = scope.names.get(name)
            if known is not None:
                return known.type if isinstance(known, RegisterName) else None
            if scope.numbered and (group := scope._group(name)) is not None:
                return group[0].type
            scope = scope.around
        return None

    def _find_numbered(self, name: str) -> RegisterName | None:
        """Return the register that a name with a number means in these braces, and remember it."""
        found = self._group(name)
        if found is None:
            return None
        group, number = found
        register = self.names[name] = RegisterName(group.first + number, group.type)
        return register

    def _group(self, name: str) -> tuple[Numbered, int] | None:
        stem = name.rstrip("0123456789")
        group, digits = self.numbered.get(stem), name[len(stem) :]
        if group is None or not 0 < len(digits) < 10 or (digits[0] == "0" and digits != "0"):
            return None
        number = int(digits)
        return (group, number) if number < group.size else None

    def visible(self) -> Iterator[str]:
        """Yield every name that means something here, innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield from dict.fromkeys((*scope.names, *scope._all_numbered()))
            scope = scope.around

    def _all_numbered(self) -> Iterator[str]:
        for stem, group in self.numbered.items():
            yield from NumberedNames(stem, group.size)


def _ends_in_digit(stem: str) -> bool:
    return stem[-1].isdigit()
