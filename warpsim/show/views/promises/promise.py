"""One promise: what it says, its label, and which modules keep it."""

from __future__ import annotations

from dataclasses import dataclass

LABELS = {  # the most reliable first
    "guaranteed": "holds for every input; what breaks it is a mistake of warpsim",
    "measured": "holds for what a tool tries, as often as its figures say",
    "exact": "PTX defines the bits, and two derivations of them agree",
    "documented": "matrix instructions whose bits PTX defines, on every chip",
    "validated": "outputs of this chip, of these types and this k, have been compared, and none differs",
    "reported": "others state how many outputs of this instruction, shape and types on this chip they "
    "compared with a rule equal to the rule here, none of which differs, and do not publish them",
    "inferred": "there is a reason, and no outputs of a chip with these types and this k have been compared",
    "schedule's order": "PTX leaves an order open; results are those of the order that the schedule chose",
    "approximate": "chips may differ within a documented error, or have values of their own",
    "not modelled": "refused with an error, NotModelled: legal PTX, whose result is not known",
    "undefined by PTX": "refused with an error, UndefinedBehavior: PTX leaves the result open",
}


@dataclass(frozen=True, kw_only=True)
class Promise:
    """One line of the page.

    ``name`` is what tools/promises of a checkout knows its tests by; promises of one table share a name.
    ``modules`` are those of this package that decide it, or raise its error. ``rows`` are the
    keys of evidence (types, k and more) with the target, of the forms that it is about.
    """

    name: str
    section: str
    label: str
    what: str
    modules: tuple[str, ...] = ()
    rows: tuple[tuple[str, str, str, str, int, bool, bool, str, str], ...] = ()
