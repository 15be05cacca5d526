"""clusterlaunchcontrol: a CTA asks for the work of a cluster that has not begun, and reads the answer.

clusterlaunchcontrol.try_cancel.async{.shared::cta}.mbarrier::complete_tx::bytes{.multicast::cluster::all}.b128
    [addr], [mbar];
clusterlaunchcontrol.query_cancel.is_canceled.pred.b128  p, answer;
clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128  {x, y, z, _}, answer;
clusterlaunchcontrol.query_cancel.get_first_ctaid{::x|::y|::z}.b32.b128  d, answer;

An answer is 16 bytes that PTX keeps to itself: here the first CTA of the cluster and a word that says whether
the request was granted. PTX ISA 9.3, section 9.7.13.18.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ....isa.features import Feature
from ....ptx.operands import Sink
from ...run.asynchronous import issue
from ...run.barriers.mbarrier import undefined
from ...run.clusters import ctas_of
from ...run.pending import Pending, Stretches
from ...run.wave import Step, Wave
from ...state.cluster_queue import CLUSTER_QUEUE
from ...state.lanes import DivergentPath, Lanes, Values
from ...state.side_tables import SideTable
from ..effect import Effect
from ..statement_binder import StatementBinder, Writer
from ..wide import word_readers
from .remote import in_shared_memory

_BYTES = 16  # of an answer
_GRANTED, _REFUSED = 0xC1A57E01, 0xC1A57E00  # the last word of an answer
Answer = tuple[int, int, int, int]


_FAILED = SideTable[set[int]](lambda _: set())  # CTAs that have seen a request fail


# --- requests ----------------------------------------------------------------------------------------


def _ask(binder: StatementBinder, *modifiers: str) -> Step:
    binder.count(2)
    everywhere = "multicast::cluster::all" in modifiers
    if everywhere:
        binder.check_available((8, 6), Feature.LAUNCH_MULTICAST, ".multicast::cluster::all")
    space = "shared" if "shared::cta" in modifiers else "generic"
    target, barrier = binder.address(0, space), binder.address(1, space)

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        places = in_shared_memory(wave, path, lanes, space, target, _BYTES)
        barriers = in_shared_memory(wave, path, lanes, space, barrier, 8)
        receivers = [_receivers(wave, path, lane, everywhere) for lane in lanes.index.tolist()]
        for lane, place, signal, ctas in zip(
            lanes.index.tolist(), places.tolist(), barriers.tolist(), receivers, strict=True
        ):
            moves = [(cta - int(wave.cta[lane])) * wave.memories.shared_stride for cta in ctas]
            issue(
                wave,
                path,
                Pending(
                    record=wave.code[path.pc],
                    lane=lane,
                    kind="answer of try_cancel",
                    complete=partial(_write_answer, [place + move for move in moves], _answer(wave)),
                    writes=tuple(Stretches.single("shared", place + move, _BYTES) for move in moves),
                    signals=tuple((signal + move, _BYTES) for move in moves),
                ),
            )

    return step


def _receivers(wave: Wave, path: DivergentPath, lane: int, everywhere: bool) -> list[int]:
    """Return the CTAs of the wave that get the answer; raises UndefinedBehavior for a request that may not
    be.
    """
    own, count = int(wave.cta[lane]), wave.cluster.count
    if own in _FAILED.of(wave):
        raise undefined(
            wave, path, lane, "the CTA has seen a request fail: what a further request does is not defined"
        )
    if not everywhere:
        return [own]
    ctas = list(range(own - own % count, own - own % count + count))
    ended = [cta for cta in ctas if not wave.alive_of_cta[cta]]
    if ended:
        why = f"the answer goes to every CTA of the cluster, but that of rank {ended[0] % count} has ended"
        raise undefined(wave, path, lane, why)
    return ctas


def _answer(wave: Wave) -> Answer:
    """Return the answer to one request: the schedule grants it or not."""
    number = CLUSTER_QUEUE.of(wave).cancel()
    if number is None:
        return (0, 0, 0, _REFUSED)
    x, y, z = next(iter(ctas_of(wave.cluster, wave.grid, [number])))
    return (int(x), int(y), int(z), _GRANTED)


def _write_answer(places: list[int], answer: Answer, wave: Wave) -> None:
    content = np.array(answer, np.uint32).view(np.uint8)
    for place in places:
        wave.memories.shared[place : place + _BYTES] = content


# --- answers -----------------------------------------------------------------------------------------


def _words(binder: StatementBinder) -> Callable[[Wave, DivergentPath, Lanes], list[Values]]:
    """Return a reader of the four words of an answer; raises UndefinedBehavior for what is none."""
    low, high = word_readers(binder, binder.operands[1], "b128", 1)

    def read(wave: Wave, path: DivergentPath, lanes: Lanes) -> list[Values]:
        halves = [np.broadcast_to(half(wave, path), (wave.lanes,)) for half in (low, high)]
        words = [(half >> shift).astype(np.uint32) for half in halves for shift in (0, 32)]
        wrong = lanes.mask & (words[3] != _GRANTED) & (words[3] != _REFUSED)
        if wrong.any():
            why = "the operand is not an answer that try_cancel has written"
            raise undefined(wave, path, int(wrong.argmax()), why)
        return words

    return read


def _is_cancelled(binder: StatementBinder, *modifiers: str) -> Step:
    binder.count(2)
    read, write = _words(binder), binder.writer(binder.operands[0], "pred", 0)

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        granted = read(wave, path, lanes)[3] == _GRANTED
        _FAILED.of(wave).update(wave.cta[lanes.mask & ~granted].tolist())
        write(wave, path, lanes, granted)

    return step


def _first_cta(binder: StatementBinder, *modifiers: str) -> Step:
    binder.count(2)
    read, writers = _words(binder), _coordinates(binder, modifiers)

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        words = read(wave, path, lanes)
        refused = lanes.mask & (words[3] == _REFUSED)
        if refused.any():
            why = "the request was refused: there is no CTA whose coordinates could be read"
            raise undefined(wave, path, int(refused.argmax()), why)
        for axis, write in writers:
            write(wave, path, lanes, words[axis])

    return step


def _coordinates(binder: StatementBinder, modifiers: tuple[str, ...]) -> list[tuple[int, Writer]]:
    """Return the axes that are written, and where to; a fourth register is left as never written."""
    single = next((word for word in modifiers if "::" in word), "")
    if single:
        return [("xyz".index(single[-1]), binder.writer(binder.operands[0], "b32", 0))]
    found = [
        (axis, binder.writer(element, "b32", 0, axis))
        for axis, element in enumerate(binder.elements(0, 4))
        if not isinstance(element, Sink)
    ]
    return [(axis, write) for axis, write in found if axis < 3]


def _row(bind: Callable[..., Step], *slots: tuple[str, ...]) -> Effect:
    return Effect(
        opcode="clusterlaunchcontrol",
        slots=slots,
        bind=bind,
        since=(8, 6),
        feature=Feature.LAUNCH_CONTROL,
    )


ROWS: tuple[Effect, ...] = (
    _row(
        _ask,
        ("try_cancel",),
        ("async",),
        ("", "shared::cta"),
        ("mbarrier::complete_tx::bytes",),
        ("", "multicast::cluster::all"),
        ("b128",),
    ),
    _row(_is_cancelled, ("query_cancel",), ("is_canceled",), ("pred",), ("b128",)),
    _row(_first_cta, ("query_cancel",), ("get_first_ctaid",), ("v4",), ("b32",), ("b128",)),
    _row(
        _first_cta,
        ("query_cancel",),
        tuple(f"get_first_ctaid::{axis}" for axis in "xyz"),
        ("b32",),
        ("b128",),
    ),
)
