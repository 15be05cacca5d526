"""In which order the candidates of a loop along k are tried: what happens most often, and costs least, first.

Knows where candidates come from. Does not judge them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain

from ..library.all_mistakes import mistakes
from ..library.grids import Setting
from ..library.local_mistakes import local_mistakes
from ..library.mistake import Mistake
from ..library.store_mistakes import stored_mistakes
from .loop_candidates import Candidate, Candidates
from .loop_memory import Memory
from .loop_mistakes import Around, WithinSteps
from .loop_sources import Sources
from .product_loops import Loop, View

CHEAP = 2  # stages that are tried whatever the remarks on D
_ALL_LOCAL = 16  # steps, up to which mistakes of one lane or row are tried


def stages(loop: Loop, view: View) -> Iterator[Iterator[Candidate]]:
    """Yield candidates by stage; a stage is tried if earlier stages explain nothing exactly."""
    within, around = WithinSteps(loop, view), Around(loop, view)
    library = mistakes(loop.setting)
    first: list[Iterable[Candidate]] = [
        Candidates(loop, view),
        Sources(loop, view),
        within(library),
        around(library),
    ]
    yield chain(*first, _of_registers(loop, view, mistakes))
    yield around((*local_mistakes(loop.setting), *stored_mistakes(loop.setting)))
    if loop.steps <= _ALL_LOCAL:
        yield chain(within(local_mistakes(loop.setting)), _of_registers(loop, view, local_mistakes))
    if loop.setting.tiles is not None:
        yield Memory(loop, view).candidates(within)


def _of_registers(
    loop: Loop, view: View, library: Callable[[Setting], Iterable[Mistake]]
) -> Iterator[Candidate]:
    """Yield mistakes in A of a wgmma where it is in registers, and not in shared memory."""
    if loop.setting.tiles is None:
        return
    other = Loop(loop.form, loop.given, a_in_registers=True)
    yield from WithinSteps(other, view)(
        replace(mistake, name=f"{mistake.name} (A in registers)")
        for mistake in library(other.setting)
        if mistake.operands == ("a",)
    )
