"""The record of a mistake that was located, and its sentence.

Only ``Located.message`` makes words of it; whatever decides asks the fields.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from os.path import dirname
from typing import Literal

from ....base.errors import Location, SourceLine, inline_stack
from ....isa.displayed import Displayed

Certainty = Literal["proven", "located", "suspected"]
CHOICES = ("max", "min")
_VERBS = {"+": "added", "-": "subtracted", "*": "multiplied", "/": "divided", "fma": "multiplied"}


@dataclass(frozen=True, kw_only=True)
class Located(Displayed):
    """Where a kernel leaves its reference.

    ``kind``: "operand", "operation", "missing", "extra", "order", "missing term", "extra term", "double
    term", "rescaling", "unknown", or of outputs as a whole "never stored", "moved", "stored twice".
    ``found`` stands where ``wanted`` belongs, beside ``partner``, all named with indices; ``map`` says how
    the indices differ over all places. ``copies`` are the statements that brought a wrong operand, from
    memory on; ``loaded`` is the copy at which its indices stop being right, where that is decided.
    ``elements`` are wrong, ``tried`` of them were compared with the mistake put right, ``checked`` of these
    are the reference's then. ``others`` counts further kinds of differences; ``chosen`` says that metadata
    choose what stands beside an element of A; ``operand`` is that of the matrix instruction, a or b, which
    holds what was found; ``elsewhere`` says that another thread computes ``wanted``: not the operand, the
    index of this thread is wrong.
    """

    kind: str
    pc: int
    location: Location | None
    found: str = ""
    wanted: str = ""
    partner: str = ""
    operation: str = ""
    map: str = ""
    places: int = 1
    output: str = ""
    first: tuple[int, ...] = ()
    elements: int = 0
    tried: int = 0
    checked: int = 0
    certainty: Certainty = "suspected"
    copies: tuple[Location, ...] = ()
    loaded: Location | None = None
    others: int = 0
    chosen: bool = False
    operand: str = ""
    elsewhere: bool = False

    @property
    def proven(self) -> bool:
        """Whether all elements that were tried are exactly the reference's with the mistake put right."""
        return self.certainty == "proven"

    @property
    def source(self) -> SourceLine | None:
        """The user's line of what is to change: of the load of a wrong operand, else of the statement."""
        place = self.loaded or self.location
        return None if place is None else user_line(place.source)

    @property
    def message(self) -> str:
        """The mistake in a sentence, without its place."""
        more = f", at {self.places} places" if self.places > 1 else ""
        return f"{self._sentence()}{more}"

    def _sentence(self) -> str:
        found, wanted, partner, operation = self.found, self.wanted, self.partner, self.operation
        verb, choice = _VERBS.get(operation, operation), operation in CHOICES
        match self.kind:
            case "operand":
                beside = f" beside {partner}" if partner else ""
                how = f" ({self.map})" if self.map else ", as the metadata choose" if self.chosen else ""
                how += ": another thread computes that" if self.elsewhere else ""
                return f"{found} stands where the reference has {wanted}{beside}{how}"
            case "operation" if operation in ("+", "-"):
                return f"the reference {'adds' if operation == '+' else 'subtracts'} these operands"
            case "operation":
                return f"the reference has {operation} of these operands"
            case "missing" if choice:
                return f"{operation} with {partner} is missing: {found} stands here"
            case "missing" if partner and operation in ("*", "/"):
                return f"{found} is not {verb} by {partner}"
            case "missing" if partner:
                return f"{found}: {partner} is not {verb}"
            case "missing":
                return f"the reference applies {operation} to {found}, the kernel does not"
            case "extra" if choice:
                return f"{operation} with {partner} is too much: the reference has {wanted}"
            case "extra":
                return f"{partner or operation} is {verb} too much: the reference has {wanted}"
            case kind if kind in _TERMS:
                term = (found if found != "0" else wanted) + (f" * {partner}" if partner else "")
                return f"terms {_TERMS[kind]}, as {term} ({self.map})"
        return _SENTENCES.get(self.kind, _SENTENCES["unknown"]).format(it=self)

    @property
    def fix(self) -> str:
        """What to do, where that is one sentence."""
        match self.kind:
            case "operand" if self.elsewhere:
                return "check the index of the rows and columns that are multiplied, and that of this thread"
            case "operand" if self.loaded is not None and self.map:
                return f"load {self.wanted.split('[', 1)[0]} with the index of {self.wanted}"
            case "operand":
                return f"take {self.wanted} in place of {self.found}"
            case "operation":
                sign = {"+": "add", "-": "subtract"}.get(self.operation)
                return f"{sign} the operands here" if sign else f"compute {self.operation} here"
            case "missing":
                return f"{_IMPERATIVES.get(self.operation, f'apply {self.operation} to')} {self.partner}"
            case "extra" if self.operation in CHOICES:
                return f"leave out {self.operation} with {self.partner}"
            case "extra":
                return f"leave out {self.partner or self.operation}"
            case "missing term":
                return "add these terms: check the bounds of the loop, and the sizes that are given"
            case "stored twice":
                return "add the values, by atomics or in a second pass"
            case "rescaling":
                return "multiply the older sum by exp(old maximum - new maximum)"
        return ""

    @property
    def evidence(self) -> str:
        """How sure it is, in words."""
        where = f"wrong elements of {self.output}, as {list(self.first)}"
        if self.certainty == "suspected":
            return f"suspected: {self.elements:,} {where}"
        if not self.proven and self.kind == "unknown":
            return f"located: the first value that the reference does not have; {self.elements:,} {where}"
        if not self.proven:
            return (
                f"located, not proven: with this put right, {self.checked:,} of {self.tried:,} tried are the "
                f"reference's, of {self.elements:,} {where}"
            )
        if self.checked == self.elements:
            return f"proven: with this put right, all {self.elements:,} {where}, are the reference's"
        return (
            f"proven for {self.checked:,} of {self.elements:,} {where}: with this put right, these are the "
            "reference's"
        )


def user_line(source: SourceLine | None) -> SourceLine | None:
    """Return the innermost line of the user: asm and headers outside the kernel's folder lead out of it."""
    stack = [*inline_stack(source)]
    folder = dirname(stack[-1].file) if stack else ""
    own = (each for each in stack if dirname(each.file) == folder)
    code = (each for each in own if not each.text.lstrip().startswith(("asm", '"', ":")))
    return next(code, stack[-1] if stack else None)


def user_location(location: Location) -> Location:
    """Return a place in the PTX with the user's line as its source."""
    return replace(location, source=user_line(location.source))


_TERMS = {
    "missing term": "are missing in the sum",
    "extra term": "are too many in the sum",
    "double term": "are added more than once",
}
_SENTENCES = {
    "order": "{it.operation} comes at another step: the reference has {it.wanted}",
    "rescaling": "{it.operation} of values that are scaled by different maxima: an operand is not rescaled",
    "never stored": "elements of {it.output} are never stored",
    "moved": "elements of {it.output} are stored at other indices ({it.map})",
    "stored twice": "several values are stored to each element of {it.output}; their sum is the reference's",
    "unknown": "the value here is none of the reference's, which has {it.wanted}",
}
_IMPERATIVES = {"+": "add", "-": "subtract", "*": "multiply by", "/": "divide by"} | {
    choice: f"take the {choice} of it and" for choice in CHOICES
}
