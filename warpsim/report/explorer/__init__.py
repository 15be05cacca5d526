"""The explorer: one HTML file with the layouts of all forms of all targets, that needs nothing but itself.

catalogue.py gathers what the tables of isa and the views know, as few numbers; explorer_page.py makes a page,
whose scripts in static/ evaluate, draw and write them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ...files.archives import write_lines
from ...ptx.decode import Form, resolved
from ..page import frame
from .catalogue import catalogue
from .explorer_page import page

__all__ = ["Explorer", "explore"]

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
        """The page of HTML. Raises ModuleNotFoundError where jinja2 is not installed."""
        return page(self.form)

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
