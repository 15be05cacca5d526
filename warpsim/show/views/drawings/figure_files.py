"""Figures as users keep them: a text that shows itself in notebooks, and files of four formats.

SVG is what figures are drawn as; PNG and PDF are made of it by vl-convert, TikZ by tikz.py. Knows suffixes of
files; does not know what a figure shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from ....base.errors import OperandError
from ....base.files.archives import write_content
from .tikz import tikz

_SCALE = 2.0  # pixels of a PNG for each of the figure


class Drawing(str):
    """A drawing: the text that it is (lines, SVG or a page), and the same as a figure.

    ``svg`` is one SVG document, which notebooks show; ``save`` writes it to a file.
    """

    __slots__ = ("_draw",)
    _draw: Callable[[], str]

    def __new__(cls, text: str, draw: Callable[[], str]) -> Drawing:
        """Return a text that ``draw`` makes an SVG document of when it is asked for."""
        made = super().__new__(cls, text)
        made._draw = draw
        return made

    def __repr__(self) -> str:
        lines = self.count("\n") + 1
        return f"<drawing, {lines} line{'s'[: lines != 1]}: print it, or take .svg or .save(path)>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _remade, (str(self), self.svg)

    @property
    def svg(self) -> str:
        """The figure as one SVG document."""
        return self._draw()

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | PathLike[str]) -> None:
        """Write the figure to a file that ends in .svg, .png, .pdf or .tex (TikZ), whole or not at all.

        Raises OperandError for other names, and where vl-convert is missing; OSError.
        """
        save_figure(self.svg, Path(path))


def _remade(text: str, svg: str) -> Drawing:
    return Drawing(text, partial(str, svg))


def save_figure(svg: str, path: Path) -> None:
    """Write an SVG document in the format that the file's name ends in. Raises OperandError, OSError."""
    write_content(path, _format_of(path)(svg))


def check_figure(path: Path) -> None:
    """Raise OperandError for a file that a figure could not be written to: its name, or what is missing."""
    _format_of(path)
    if path.suffix.lower() in _CONVERTED:
        _converter()


def _format_of(path: Path) -> Callable[[str], bytes]:
    made = _FORMATS.get(path.suffix.lower())
    if made is None:
        raise OperandError(f"{path}: a figure is written to a file that ends in {', '.join(FIGURES)}")
    return made


def _converter() -> Any:
    try:
        import vl_convert
    except ImportError as error:
        raise OperandError(
            f"PNG and PDF need vl-convert: pip install 'warpsim[figures]' ({error}); .svg and .tex do not"
        ) from None
    return vl_convert


def _png(svg: str) -> bytes:
    return bytes(_converter().svg_to_png(svg, scale=_SCALE))


def _pdf(svg: str) -> bytes:
    return bytes(_converter().svg_to_pdf(svg))


_CONVERTED: Mapping[str, Callable[[str], bytes]] = {".png": _png, ".pdf": _pdf}
_FORMATS: Mapping[str, Callable[[str], bytes]] = {
    ".svg": lambda svg: f"{svg}\n".encode(),
    **_CONVERTED,
    ".tex": lambda svg: tikz(svg).encode(),
}
FIGURES = tuple(_FORMATS)
