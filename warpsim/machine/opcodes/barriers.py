"""bar and barrier: the threads of a CTA that wait for each other (PTX ISA 9.1, section 9.7.13.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lanes import Front, Lanes
from .effect import Effect

if TYPE_CHECKING:
    from ..site import Reader, Site
    from ..wave import Step, Wave

_MOST = 16  # barriers of a CTA


def _uniform(site: Site, read: Reader, wave: Wave, front: Front, lanes: Lanes, what: str) -> int:
    """A value that all lanes share; raises Fault where they do not."""
    values = lanes.of(read(wave, front))
    first = int(values.flat[0])
    if values.size > 1 and (values != first).any():
        lane = int(lanes.index[int((values != first).argmax())])
        raise wave.fault(wave.code[front.pc], lane, f"{what} differs between lanes")
    return first


def _barrier(site: Site, *modifiers: str) -> Step:
    arrives = "arrive" in modifiers
    count = site.count(2) if arrives else site.count(1, 2)
    number = site.reader(site.operands[0], "u32", 0)
    threads = site.reader(site.operands[1], "u32", 1) if count == 2 else None

    def step(wave: Wave, front: Front, lanes: Lanes) -> bool:
        which = _uniform(site, number, wave, front, lanes, "the number of the barrier")
        most = (
            None if threads is None else _uniform(site, threads, wave, front, lanes, "the number of threads")
        )
        if which >= _MOST:
            raise wave.fault(wave.code[front.pc], int(lanes.index[0]), f"barrier {which}: there are 0 to 15")
        if most is not None and (most == 0 or most % 32):
            message = f"a barrier of {most} threads: expected a multiple of 32"
            raise wave.fault(wave.code[front.pc], int(lanes.index[0]), message)
        return wave.barrier(front, lanes, which, most, waits=not arrives)

    return step


_KINDS = ("sync", "arrive")

ROWS: tuple[Effect, ...] = (
    Effect(opcode="bar", slots=(("", "cta"), _KINDS), bind=_barrier),
    Effect(
        opcode="barrier", slots=(("", "cta"), _KINDS, ("", "aligned")), bind=_barrier, since=(6, 0), chip=30
    ),
)
