"""Objects that notebooks show: show/report/notebooks.py, which comes later, makes their HTML."""

from __future__ import annotations

from importlib import import_module


class Displayed:
    """A base of public classes: notebooks show their figure or their text in place of their repr."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        notebooks = import_module(".show.report.notebooks", __name__.partition(".")[0])
        return str(notebooks.html_of(self))
