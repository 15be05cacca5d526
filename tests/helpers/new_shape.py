"""A sparse shape that PTX does not have, m16n8k64 of f16, in the table of mma.sp: run as a program.

Prints what ``warpsim`` says of it, as a second row in the table is all that a new shape takes.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from warpsim.isa import families
from warpsim.isa.products import Shape
from warpsim.show.cli import main

MNEMONIC = "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.f32.f16.f16.f32"


def add_row() -> None:
    """Put the shape beside m16n8k32 into the table, before anything reads it."""
    dense, sparse, *others = families.FAMILIES
    known = [row for row in sparse.rows if str(row.shape) == "m16n8k32" and row.operation == "f16"]
    added = tuple(replace(row, shape=Shape(16, 8, 64)) for row in known)
    families.FAMILIES = (dense, replace(sparse, rows=sparse.rows + added), *others)


if __name__ == "__main__":
    add_row()
    sys.exit(main(sys.argv[1:]))
