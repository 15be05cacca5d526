"""Launches of a host program beside references: which of them are decided, and what was found.

Knows launches and answers; does not know options.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from ....base.errors import OperandError, WarpsimError
from ....ptx.symbols import matching
from ...launch.located_launches import Answer, answer_of
from ...launch.reference_runs import reference_of
from ..host_launch import HostLaunch
from .host_arguments import argument_count
from .repeated_host_launch import RepeatedHostLaunch

Function = Callable[..., Any]
_ORDER = ("equal", "undecided", "not compared", "other")  # of answers, the worst last


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What was found of one launch: ``answer`` is "equal", "other", "undecided" or "not compared"."""

    launch: int
    kernel: str
    answer: str
    text: str
    document: Mapping[str, Any]


@dataclass
class References:
    """References by kernel, "" for every kernel that takes as many arguments."""

    functions: Mapping[str, tuple[str, Function]]
    decisions: list[Decision] = field(default_factory=list)
    unfit: dict[str, str] = field(default_factory=dict)  # kernels whose arguments no reference takes, and why

    @classmethod
    def named(cls, texts: tuple[str, ...]) -> References:
        """Return references of ``FILE.py:FUNCTION``, a name, or either behind ``KERNEL=``.

        Raises OperandError.
        """
        found = dict[str, tuple[str, Function]]()
        for text in texts:
            kernel, sign, given = text.rpartition("=")
            if kernel in found:
                raise OperandError(f"reference {text!r}: {kernel or 'every kernel'} has a reference already")
            if sign and not kernel:
                raise OperandError(f"reference {text!r}: expected the name of a kernel before =")
            found[kernel] = reference_of(given)
        return cls(found)

    def decide(self, launch: HostLaunch, number: int) -> None:
        """Compare a launch that is about to begin with its reference, if it has any."""
        kernel = launch.kernel
        named = (each for name, each in self.functions.items() if name and matching(name, [kernel.name]))
        own = next(named, None)
        found = own or self.functions.get("")
        if found is None:
            return
        (name, function), count = found, argument_count(launch)
        if not _takes(function, count):
            why = f"{name} does not take its {count} argument{'s'[: count != 1]}"
            if own is None:
                self.unfit[kernel.signature] = why
            else:
                self._add(number, kernel.signature, "not compared", why)
            return
        try:
            self._keep(number, kernel.signature, answer_of(RepeatedHostLaunch(launch, function), function))
        except WarpsimError as error:  # the program goes on
            place = "" if error.location is None else f"{error.location}: "
            self._add(number, kernel.signature, "not compared", f"{place}{error.message}")

    def _keep(self, number: int, kernel: str, answer: Answer) -> None:
        text, place = str(answer.equivalence), answer.located
        document: dict[str, Any] = {"equivalence": answer.equivalence.document()}
        if place is not None:
            where = place.loaded or place.location
            own = place.message if where is None else f"{where}: {place.message}"
            fix = (f"fix: {place.fix}",) if place.fix else ()
            text = "\n  ".join((text, own, f"evidence: {place.evidence}", *fix))
            words = {name: getattr(place, name) for name in ("kind", "message", "evidence", "fix")}
            document["located"] = {**words, "location": None if where is None else str(where)}
        found = answer.equivalence
        kind = "other" if found.answer == "equal" and not found.close else found.answer
        self._add(number, kernel, kind, text, document)

    def _add(self, number: int, kernel: str, answer: str, text: str, document: Any = None) -> None:
        found = Decision(launch=number, kernel=kernel, answer=answer, text=text, document=document or {})
        self.decisions.append(found)

    @property
    def worst(self) -> str:
        """The worst answer of all launches, "not compared" for none."""
        return max((each.answer for each in self.decisions), key=_ORDER.index, default="not compared")

    def lines(self) -> Iterator[str]:
        """Yield what was found; successive launches with the same answer share a line."""
        found = self.decisions
        for _, same in groupby(found, lambda each: (each.kernel, each.answer, each.text)):
            each, *more = same
            which = f"launches {each.launch} to {more[-1].launch}" if more else f"launch {each.launch}"
            verb = "not compared: " if each.answer == "not compared" else ""
            yield f"reference: {which}, {each.kernel}: {verb}{each.text}"
        yield from (f"reference: {kernel} is not compared: {why}" for kernel, why in self.unfit.items())
        if not found:
            yield "reference: no launch was compared"

    def documents(self) -> list[dict[str, Any]]:
        """Return the answers as JSON has them."""
        names = ("launch", "kernel", "answer", "text")
        return [{**{name: getattr(each, name) for name in names}, **each.document} for each in self.decisions]


def _takes(function: Function, count: int) -> bool:
    """Return whether a function can be called with so many arguments."""
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        return False
    return True
