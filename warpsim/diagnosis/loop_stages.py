"""In which order the candidates of a loop along k are tried: what happens most often, and costs least, first.

Knows where candidates come from. Does not judge them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from .library import mistakes
from .local import local_mistakes
from .loop_candidates import Candidate, Candidates
from .loop_memory import Memory
from .loop_mistakes import WithinSteps
from .loop_sources import Sources
from .loops import Loop, View

_ALL_LOCAL = 16  # steps, up to which mistakes of one lane or row are tried


def stages(loop: Loop, view: View) -> Iterator[Iterator[Candidate]]:
    """Candidates, stage by stage; later ones are tried where the earlier ones explain nothing exactly."""
    within = WithinSteps(loop, view)
    yield chain(Candidates(loop, view), Sources(loop, view), within(mistakes(loop.setting)))
    if loop.setting.tiles is not None:
        yield chain(Memory(loop, view).candidates(within), _of_registers(loop, view))
    if loop.steps <= _ALL_LOCAL:
        yield within(local_mistakes(loop.setting))


def _of_registers(loop: Loop, view: View) -> Iterator[Candidate]:
    """Mistakes in A where it is in registers, and not in shared memory."""
    other = Loop(loop.form, loop.given, a_in_registers=True)
    held = [one for one in mistakes(other.setting) if one.operands == ("a",)]
    if other.steps <= _ALL_LOCAL:
        held += [one for one in local_mistakes(other.setting) if one.operands == ("a",)]
    return WithinSteps(other, view)(held)
