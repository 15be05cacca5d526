"""The first target that has the forms of a row, as the records of chips say."""

from __future__ import annotations

from warpsim.isa.architectures import ARCHITECTURES, Architecture, has
from warpsim.machine.opcodes.operation import Row


def is_on(row: Row, target: str) -> bool:
    """Return whether a target has the forms of a row."""
    return row.feature is None or has(target, row.feature)


def first_target(row: Row) -> Architecture:
    """Return the first target, by its chip's number, with the forms of a row."""
    return next(target for name, target in ARCHITECTURES.items() if is_on(row, name))


def first_chip(row: Row) -> int:
    """Return the number of the first chip with the forms of a row; 0 where every chip has them."""
    return 0 if row.feature is None else first_target(row).number
