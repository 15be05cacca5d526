"""What names mean in a module: registers, variables, labels and functions, in nested scopes.

Knows declarations; does not know values, or what statements do with what they name. PTX ISA 9.1, section 5.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ...errors import IllegalInstruction
from ...ptx.statements import Statement


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
    initial: bytes = b""
    addresses: tuple[InitialAddress, ...] = ()  # of variables and functions, that go into ``initial``


@dataclass(eq=False)
class LabelName:
    """A label: the program counter it stands at, known when its block has been read."""

    name: str
    pc: int = -1


@dataclass(eq=False)
class LabelTable:
    """``.branchtargets`` or ``.calltargets``: names, in order."""

    names: tuple[str, ...]


@dataclass(eq=False)
class FunctionName:
    """A function, by name; its code is known when the module has been loaded."""

    name: str


Meaning = RegisterName | Variable | LabelName | LabelTable | FunctionName


@dataclass(eq=False)
class Scope:
    """Names of one pair of braces, and the scope around it."""

    around: Scope | None = None
    names: dict[str, Meaning] = field(default_factory=dict)

    def declare(self, name: str, meaning: Meaning, statement: Statement) -> None:
        """Give a name its meaning here; raises IllegalInstruction where it has a meaning already."""
        if name in self.names:
            raise IllegalInstruction(f"{name} is declared twice in this scope", statement.location())
        self.names[name] = meaning

    def find(self, name: str) -> Meaning | None:
        """Return what a name means here, or None."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.around
        return None

    def visible(self) -> Iterator[str]:
        """Yield every name that means something here, innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield from scope.names
            scope = scope.around
