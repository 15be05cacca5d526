"""Functions that code computes with many statements, as tanhf does: recognised by value.

Where the reference applies f, each result x of f32 opens "f(x) may follow" in its lanes. A later result that
is f(x) within some ulps in every lane, and not all the same value, has the key of f(x).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import erf
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..keys.constant_keys import LOG2E
from ..keys.finite_fields import ZERO, Keys, exp2, inv, mul
from ..keys.key_cells import Mask
from .rule_calls import FAR, function_keys

_ERF = np.frompyfunc(erf, 1, 1)
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "tanh": np.tanh,
    "sqrt": np.sqrt,
    "lg2": np.log2,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
    "exp": np.exp,
    "ex2": np.exp2,
    "erf": lambda x: np.asarray(_ERF(x), np.float64),
    "expm1": np.expm1,
    "log1p": np.log1p,
    "arctan": np.arctan,
    "cbrt": np.cbrt,
    "sinh": np.sinh,
    "cosh": np.cosh,
}
_KEPT = 48  # results that f may be applied to
_FEWEST = 8  # lanes
_NEAR = 2.0**-19


def applied(name: str, keys: Keys, values: npt.NDArray[Any]) -> Keys:
    """Return the keys of a function of keys; ``values`` are those of the arguments."""
    if name in ("exp", "ex2"):
        scaled = mul(keys, LOG2E) if name == "exp" else keys
        power = values * (np.log2(np.e) if name == "exp" else 1)
        return np.where(power < FAR, np.uint64(ZERO), exp2(scaled))
    if name == "log":
        return mul(function_keys("lg2", keys), inv(LOG2E))
    return function_keys(name, keys)


class _Open(NamedTuple):
    name: str
    wave: Any
    mask: Mask
    keys: Keys
    arguments: npt.NDArray[Any]
    probe: float  # the function of the argument in the middle


class ByValue:
    """Functions that may follow, and the statements that were recognised: ``places`` by pc, name and
    lanes.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(name for name in names if name in FUNCTIONS)
        self.places = dict[int, tuple[str, int]]()
        self._open = list[_Open]()
        self._followed = set[int]()  # keys of first lanes

    def loaded(self, wave: Any, lanes: Any, keys: Keys, values: npt.NDArray[Any]) -> None:
        """Let functions of an operand follow that no statement has computed, as a number from memory."""
        if len(values) >= _FEWEST and int(keys[0]) not in self._followed:
            self.follow(wave, lanes, keys, values)

    def looked_at(
        self, wave: Any, lanes: Any, pc: int, keys: Keys, values: npt.NDArray[Any]
    ) -> tuple[str, Keys, Keys] | None:
        """Return the name, the argument's keys and the keys of the function that a result is, if any; note
        it."""
        if len(values) < _FEWEST:
            return None
        found = self._recognised(wave, lanes, values)
        if found is not None:
            name, _, result = found
            if (result == keys).all():
                return None  # by algebra already
            self.places[pc] = name, self.places.get(pc, ("", 0))[1] + len(values)
            return found
        self.follow(wave, lanes, keys, values)
        return None

    def _recognised(self, wave: Any, lanes: Any, values: npt.NDArray[Any]) -> tuple[str, Keys, Keys] | None:
        probe = values[len(values) // 2]
        for each in reversed(self._open):
            here = each.wave is wave and len(each.arguments) == len(values)
            if (
                not here
                or abs(each.probe - probe) > _NEAR * abs(probe)
                or not (each.mask == lanes.mask).all()
            ):
                continue
            with np.errstate(all="ignore"):
                results, spread = FUNCTIONS[each.name](each.arguments), np.ptp(values)
            flat = spread == 0 or not np.ptp(results) > 1e-3 * np.abs(results).max()  # or not finite
            if not flat and np.allclose(values, results, rtol=_NEAR, atol=2.0**-60):
                return each.name, each.keys, applied(each.name, each.keys, each.arguments)
        return None

    def follow(self, wave: Any, lanes: Any, keys: Keys, values: npt.NDArray[Any]) -> None:
        """Let functions of numbers follow."""
        self._followed.add(int(keys[0]))
        for name in self.names:
            with np.errstate(all="ignore"):
                probe = float(FUNCTIONS[name](values[len(values) // 2]))
            if np.isfinite(probe):
                self._open.append(_Open(name, wave, lanes.mask, keys, values, probe))
        del self._open[:-_KEPT]
