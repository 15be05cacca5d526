"""One promise: what it says, its label, what tests it, and which modules keep it."""

from __future__ import annotations

from dataclasses import dataclass

LABELS = {  # in the order of what one may build on
    "guaranteed": "holds for every input; what breaks it is a mistake of warpsim",
    "measured": "holds for what a tool tries, as often as its figures say",
    "exact": "PTX defines the bits, and two derivations of them agree",
    "validated": "outputs of chips have been compared, and none differs",
    "inferred": "there is a reason, and no outputs of a chip have been compared",
    "approximate": "chips may differ within a documented error, or have values of their own",
    "not modelled": "refused with an error, NotModelled: legal PTX, but nobody has established the result",
    "undefined by PTX": "refused with an error, UndefinedBehavior: PTX leaves the result open",
}


@dataclass(frozen=True, kw_only=True)
class Promise:
    """One line of the page.

    ``tests`` are files and folders of a checkout, ``tools`` commands there, ``figures`` names of what tools
    said when they last ran, and ``modules`` those of this package that decide it, or raise its error.
    ``rows`` are family, operation, type of D and target of the forms that it is about.
    """

    section: str
    label: str
    what: str
    tests: tuple[str, ...]
    tools: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    rows: tuple[tuple[str, str, str, str], ...] = ()
