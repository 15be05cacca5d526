"""Verdicts of ptxas on record, by release and text: it is asked about other texts alone, or about all again.

Knows questions by the digest of their text. With WARPSIM_TEST_ALL=1 the assembler is asked whatever is on
record, and both have to agree; with WARPSIM_PTXAS_RECORD=1 new verdicts are added to the record.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import os
import zlib
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.helpers.families import WHOLE

RECORD = Path(__file__).with_name("ptxas_verdicts.jsonl")
ADDING = "WARPSIM_PTXAS_RECORD"

Verdicts = list[str | None]


def recorded(texts: Iterable[str], ask: Callable[[], Verdicts]) -> Verdicts:
    """The verdicts on a question, whose texts name the release, the options and the statements."""
    key = hashlib.sha256("\0".join(texts).encode()).hexdigest()[:24]
    errors, questions = _record()
    if key not in questions:
        found = ask()
        if os.environ.get(ADDING) and not any("no end" in str(one) for one in found):  # of this machine
            _add(key, found)
        return found
    different, packed = questions[key]
    messages = [None if one is None else "; ".join(errors[number] for number in one) for one in different]
    numbers = np.frombuffer(zlib.decompress(base64.b64decode(packed)), "<u2")
    known = [messages[number] for number in numbers.tolist()]
    assert not WHOLE or ask() == known, f"{RECORD.name} differs from ptxas: {key}"
    return known


def _add(key: str, found: Verdicts) -> None:
    different = list(dict.fromkeys(found))
    numbers = np.array([different.index(verdict) for verdict in found], "<u2").tobytes()
    with RECORD.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        errors, questions = _read()
        known = {error: number for number, error in enumerate(errors)}
        row = [
            None if one is None else [known.setdefault(error, len(known)) for error in one.split("; ")]
            for one in different
        ]
        questions[key] = [row, base64.b64encode(zlib.compress(numbers, 9)).decode()]
        rows = [list(known), *sorted(questions.items())]
        lines = [json.dumps(row, separators=(",", ":")) for row in rows]
        RECORD.write_text("\n".join(lines) + "\n")


def _read() -> tuple[list[str], dict[str, Any]]:
    """All errors, and for each question its different verdicts, and of each statement the number of its own.

    A verdict is null, or the numbers of its errors; numbers of statements are 16-bit words, packed by zlib.
    """
    text = RECORD.read_text() if RECORD.exists() else ""
    errors, *questions = map(json.loads, text.splitlines()) if text else [[]]
    return errors, dict(questions)


_record = cache(_read)
