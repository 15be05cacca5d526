"""What every scalar opcode of launched kernels makes of nasty values, in all its forms.

Knows the tables' rows, not what they compute: results are there to be compared with those of another process,
library or machine (see environments.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.helpers.opcode_values import arrays_of, lanes_of, operations
from warpsim.base.environment import in_default_environment
from warpsim.machine.opcodes import rows
from warpsim.machine.opcodes.effect import Effect
from warpsim.machine.opcodes.operation import Row

_LANES = 96
_FEW = ("add", "fma", "div", "ex2", "min")  # opcodes that stand for the others


def opcode_jobs(every: bool) -> Iterator[tuple[str, Callable[[], Any]]]:
    """A job for each opcode that has scalar rows, or for a few of them: the bits of all results."""
    for opcode, known in rows().items():
        scalar = [row for row in known if not isinstance(row, Effect)]
        if scalar and (every or opcode in _FEW):
            yield f"opcode {opcode}", lambda scalar=scalar: _results(scalar)


@in_default_environment
def _results(scalar: list[Row]) -> list[Any]:
    """In the environment that whoever executes statements sets."""
    found = list[Any]()
    for opcode, modifiers, operation in operations(scalar):
        lanes = lanes_of(operation, f"{opcode} {modifiers}", _LANES)
        found += operation.compute(*arrays_of(operation, lanes))
    return found
