"""A command line and the files it reads, as they are tried and as they are kept.

Kept, a case is a line of JSON: ``story``, ``command``, ``files`` as text and, what is none, ``binary`` in
base64, packed by zlib.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Case:
    """``command`` are the words after ``warpsim``; files lie in the folder where it runs."""

    command: tuple[str, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)
    stdin: bytes = b""
    places: Mapping[str, str] = field(default_factory=dict)  # what is no file, by its name (places.py)

    def write(self, folder: Path) -> None:
        """Put the files into a folder."""
        from .places import PLACES  # which makes cases

        for name, kind in self.places.items():
            PLACES[kind](folder / name)
        for name, content in self.files.items():
            (folder / name).write_bytes(content)


def line_of(case: Case, story: str) -> str:
    """Return the line that keeps a case."""
    document = {"story": story, "command": case.command, "files": {}, "binary": {}}
    for name, content in {**case.files, "-": case.stdin}.items():
        text = content.decode("ascii", "replace")
        if "\ufffd" in text:
            document["binary"][name] = base64.b64encode(zlib.compress(content)).decode()  # type: ignore[index]
        elif content or name != "-":
            document["files"][name] = text  # type: ignore[index]
    return json.dumps(document)


def case_of(line: str) -> tuple[Case, str]:
    """Return the case of a line, and its story."""
    document = json.loads(line)
    files = {name: text.encode() for name, text in document["files"].items()}
    packed = document.get("binary", {})
    files |= {name: zlib.decompress(base64.b64decode(text)) for name, text in packed.items()}
    stdin = files.pop("-", b"")
    return Case(command=tuple(document["command"]), files=files, stdin=stdin), document["story"]
