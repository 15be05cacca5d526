"""Results of a device under test, as its simulation prints or stores them: D of a vector set's cases.

    simulator_lines  lines of the generated bench, of others, and JSON objects: a place and a value each
    result_tables    CSV and other tables with a header
    result_words     words in the order of the set: ``$writememh``, hexadecimal, ``.npy``

A log may hold some of the results alone, and unknown bits. What the log does not have is unknown, and is
neither right nor wrong. Knows the shape of a set; does not know arithmetic.
"""

from __future__ import annotations

import re
from pathlib import Path

from ....base.errors import Location, TraceError
from ....base.files.archives import read_lines
from ..sets import VectorSet
from .result_tables import is_table, read_table
from .result_words import is_words, read_stored, read_words
from .simulator_lines import read_simulator
from .unit_results import UnitResults

__all__ = ["UnitResults", "read_unit_results"]

_BLANK = re.compile(r"\s*(//.*)?")


def read_unit_results(path: Path, vectors: VectorSet, order: str = "") -> UnitResults:
    """Return D of a device under test for the cases of ``vectors``, from any of the formats above.

    ``order`` says how words without places follow each other: "registers" (case, lane, register) or "matrix"
    (case, row, column); where it is empty, the content decides, and a TraceError asks where both are
    possible. Raises TraceError with the line, OSError.
    """
    if path.suffix in (".npy", ".npz"):
        return read_stored(path, vectors, order)
    lines = [*read_lines(path)]
    if all(_BLANK.fullmatch(line) for line in lines):
        raise TraceError("there is no result in this file", Location(str(path), 1))
    if is_words(lines):
        return read_words(path, lines, vectors, order)
    if is_table(lines):
        return read_table(path, lines, vectors)
    return read_simulator(path, lines, vectors)
