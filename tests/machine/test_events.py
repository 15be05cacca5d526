"""Observers: every event is documented and sent; mistakes in observers are errors."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import pytest

import warpsim.checks
from warpsim.errors import OperandError
from warpsim.host.launching import load_text
from warpsim.machine.run.events import EVENTS, Observer, Observers, helper

PAGE = warpsim.checks.__doc__ or ""
STORES = """.version 8.0
.target sm_80
.visible .entry k(.param .u64 out)
{
    .reg .b64 %a; .reg .b32 %r;
    ld.param.u64 %a, [out];
    mov.u32 %r, %tid.x;
    mad.wide.u32 %a, %r, 4, %a;
    st.global.u32 [%a], %r;
    ret;
}
"""


def documented() -> dict[str, tuple[str, ...]]:
    """The events of the page with their parameters after the wave."""
    rows = re.findall(r"^    ([a-z_]+(?:, [a-z_]+)*) \(([a-z_, ]*)\)  ", PAGE, re.M)
    return {name: tuple(taken.split(", ")) for names, taken in rows for name in names.split(", ")}


def test_the_page_has_every_event_with_its_parameters() -> None:
    assert documented() == {name: taken[1:] for name, taken in EVENTS.items()}


def test_an_observer_written_from_the_page_runs() -> None:
    example = inspect.cleandoc(
        PAGE.partition("observers=[StoredBytes()]``:")[2].partition("\nThe events,")[0]
    )
    names: dict[str, Any] = {}
    exec(compile(example, "page", "exec"), names)
    observer = names["StoredBytes"]()
    load_text(STORES)["k"](2, 32, [np.zeros(64, np.uint32)], observers=[observer])
    assert observer.bytes == 2 * 32 * 4


@pytest.mark.parametrize("name", EVENTS)
def test_every_event_can_be_observed(name: str) -> None:
    """An observer of one event with the documented parameters is heard for it, and for nothing else."""
    taken = ", ".join(EVENTS[name])
    names: dict[str, Any] = {"Observer": Observer}
    exec(f"class One(Observer):\n    def {name}(self, {taken}): self.seen = ({taken},)", names)
    one = names["One"]()
    observers = Observers([one])
    assert [event for event in EVENTS if observers.hear(getattr(Observer, event))] == [name]
    news = tuple(range(len(EVENTS[name])))
    getattr(observers, name)(*news)
    assert one.seen == news


def test_a_misspelt_event_is_an_error() -> None:
    with pytest.raises(OperandError, match=r"Wrong.stores: no event has this name; the nearest is store\. "):
        type("Wrong", (Observer,), {"stores": lambda self, wave, access: None})


def test_an_event_with_other_parameters_is_an_error() -> None:
    message = r"Old.store takes \(wave, path, lanes, memory\): the event has \(wave, access\)"
    with pytest.raises(OperandError, match=message):
        type("Old", (Observer,), {"store": lambda self, wave, path, lanes, memory: None})


def test_helpers_are_marked_or_private() -> None:
    marked = helper(lambda self, wave: None)
    made = type("Helped", (Observer,), {"count": marked, "_count": lambda self, wave: None})
    assert not Observers([made()]).hear(Observer.store)


def test_what_is_no_observer_is_an_error() -> None:
    class Counting:
        def store(self, wave: Any, access: Any) -> None: ...

    with pytest.raises(OperandError, match=r"Counting is no observer: it derives from .*events.Observer"):
        load_text(STORES)["k"](1, 32, [np.zeros(32, np.uint32)], observers=[Counting()])


def test_observers_are_called_in_their_order() -> None:
    seen = list[tuple[str, object]]()

    class First(Observer):
        def met(self, wave: Any, lanes: Any) -> None:
            seen.append(("first", lanes))

    class Second(First):
        def met(self, wave: Any, lanes: Any) -> None:
            super().met(wave, lanes)
            seen.append(("second", lanes))

    wave: Any = None
    lanes: Any = 7
    Observers([Second(), Observer(), First()]).met(wave, lanes)
    assert seen == [("first", 7), ("second", 7), ("first", 7)]
    Observers([]).met(wave, lanes)
    assert len(seen) == 3
