"""membar, fence and griddepcontrol (PTX ISA 9.1, sections 9.7.13.3, 9.7.13.4 and 9.7.13.14).

A statement completes, visible to every thread, before the next begins: no order is needed. Fences do
nothing but notify observers (races, the async proxy). Knows the forms of fences.
"""

from __future__ import annotations

from collections.abc import Callable

from ....isa.features import Feature
from ....ptx.constants import Immediate
from ...run.events import observers_of
from ...run.wave import Step, Wave
from ...state.lanes import DivergentPath, Lanes
from ..effect import Effect
from ..statement_binder import StatementBinder

_MAP_BYTES = 128  # of a tensor map, the one size that its fence takes


def _fence(binder: StatementBinder, *modifiers: str) -> Step:
    binder.count(0)
    return _telling(modifiers)


def _telling(modifiers: tuple[str, ...]) -> Step:
    words = tuple(filter(None, modifiers))

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        observers_of(wave).fence(wave, path, lanes, words)

    return step


def _tensormap_fence(binder: StatementBinder, *modifiers: str) -> Step:
    """fence.proxy.tensormap::generic.acquire [address], 128."""
    binder.count(2)
    binder.address(0, "generic")
    size = binder.operands[1]
    if not isinstance(size, Immediate) or size.value != _MAP_BYTES:
        raise binder.illegal(f"expected {_MAP_BYTES}, the bytes of a tensor map, not '{size}'", 1)
    return _telling(modifiers)


def _nothing(binder: StatementBinder, what: str) -> Step:
    """Return a step without effect: the grid before has ended, and the next grid begins afterwards."""
    binder.count(0)
    return lambda wave, path, lanes: None


_SCOPES, _CLUSTER = ("cta", "gpu", "sys"), ("cluster",)
_ALL = (*_SCOPES, *_CLUSTER)
_PROXY, _TENSOR, _ASYNC = ("proxy",), ("tensormap::generic",), ("async::generic",)
_SPACES = ("", "global", "shared::cta", "shared::cluster")
_FAR, _NEAR = ("sync_restrict::shared::cluster",), ("sync_restrict::shared::cta",)
_ACQUIRE, _RELEASE = ("acquire",), ("release",)

_ORDERS, _HALVES = ("", "sc", "acq_rel"), ("acquire", "release")

_Slots = tuple[tuple[str, ...], ...]

# fmt: off
_TABLE: tuple[tuple[str, _Slots, Callable[..., Step], tuple[int, int], Feature | None], ...] = (
    ("membar", (("cta", "gl"),), _fence, (1, 4), None),
    ("membar", (("sys",),), _fence, (2, 0), None),
    ("membar", (_PROXY, ("alias",)), _fence, (7, 5), None),
    ("fence", (_ORDERS, _SCOPES), _fence, (6, 0), None),
    ("fence", (_ORDERS, _CLUSTER), _fence, (7, 8), Feature.CLUSTERS),
    ("fence", (_HALVES, _ALL), _fence, (8, 6), Feature.SPLIT_FENCES),
    ("fence", (_ACQUIRE, _FAR, _CLUSTER), _fence, (8, 6), Feature.SPLIT_FENCES),
    ("fence", (_RELEASE, _NEAR, _CLUSTER), _fence, (8, 6), Feature.SPLIT_FENCES),
    ("fence", (("mbarrier_init",), _RELEASE, _CLUSTER), _fence, (8, 0), Feature.CLUSTERS),
    ("fence", (_PROXY, ("alias",)), _fence, (7, 5), None),
    ("fence", (_PROXY, ("async",), _SPACES), _fence, (8, 0), Feature.PROXY_FENCE),
    ("fence", (_PROXY, _TENSOR, _RELEASE, _ALL), _fence, (8, 3), Feature.TENSOR_COPY),
    ("fence", (_PROXY, _TENSOR, _ACQUIRE, _ALL), _tensormap_fence, (8, 3), Feature.TENSOR_COPY),
    ("fence", (_PROXY, _ASYNC, _ACQUIRE, _FAR, _CLUSTER), _fence, (8, 6), Feature.PROXY_FENCE),
    ("fence", (_PROXY, _ASYNC, _RELEASE, _NEAR, _CLUSTER), _fence, (8, 6), Feature.PROXY_FENCE),
    ("griddepcontrol", (("wait", "launch_dependents"),), _nothing, (7, 8), Feature.DEPENDENT_LAUNCH),
)
# fmt: on

ROWS: tuple[Effect, ...] = tuple(
    Effect(opcode=opcode, slots=slots, bind=bind, since=since, feature=feature)
    for opcode, slots, bind, since, feature in _TABLE
)
