"""The explorer: one HTML file with the layouts of all forms of all targets, that needs nothing but itself.

catalogue.py gathers what the tables of isa and the views know, as few numbers; scripts in static/ evaluate,
draw and write them. Where the explorer has no script or style of a name, the report's is taken.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from ....base.environment import in_default_environment
from ....base.files.archives import write_lines
from ....ptx.decode import Form, resolved
from ..page import bundle, frame, rendered, source
from .catalogue import catalogue

__all__ = ["Explorer", "explore"]

FOLDERS = ("explorer/static", "explorer/described", "static")
STYLES = (
    "static/report.css",
    "explorer/static/explorer.css",
    "explorer/described/described.css",
    "static/print.css",
)
START = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"


@dataclass(frozen=True, kw_only=True)
class Explorer:
    """The page of all layouts, opened at a form; in a notebook it shows itself."""

    form: str

    @property
    def forms(self) -> int:
        """How many forms are in it."""
        return len(catalogue()["forms"])

    @cached_property
    def html(self) -> str:
        """The page of HTML."""
        return _page(self.form)

    def save(self, path: str | Path) -> None:
        """Write the page, whole or not at all; raises OSError."""
        write_lines(Path(path), self.html.removesuffix("\n").split("\n"))

    def _repr_html_(self) -> str:
        return frame(self.html, "Tensor-core layouts")


def explore(instruction: Form = START) -> Explorer:
    """Return the page of all layouts, opened at an instruction.

    Raises PtxError and IllegalInstruction for an instruction that is none.
    """
    return Explorer(form=resolved(instruction).mnemonic)


@in_default_environment
def _page(form: str) -> str:
    """Return the whole page, opened at a form; it loads nothing from anywhere."""
    return rendered(
        "explorer/templates/explorer.html",
        start=json.dumps({"form": form}),
        catalogue=_packed(),
        style="".join(map(source, STYLES)),
        script=bundle("explorer.js", folders=FOLDERS),
    )


@cache
def _packed() -> str:
    """Return the catalogue as JSON, compressed (zlib) and in base64."""
    content = json.dumps(catalogue(), separators=(",", ":")).encode()
    return b64encode(zlib.compress(content, 9)).decode("ascii")
