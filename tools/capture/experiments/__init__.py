"""Questions that nobody has answered about real chips, each with inputs whose outputs answer it.

An experiment is some trials, one for each form of instruction that it concerns. A trial is a vector set and
the candidate models of the question; a candidate survives where it predicts every output bit for bit.
Candidates whose predictions agree on all inputs of a trial cannot be told apart by it, and survive or fall
together.
"""

from __future__ import annotations

from .experiment import Experiment, Trial, Verdict, classes_of, decide
from .exponent_floor import EXPONENT_FLOOR
from .fp8_sync import FP8_SYNC
from .imma_saturation import IMMA_SATURATION
from .metadata_undefined import METADATA_UNDEFINED
from .nan_payload import NAN_PAYLOAD
from .scale_groups import SCALE_GROUPS
from .sparse_grouping import SPARSE_GROUPING
from .tf32_low_bits import TF32_LOW_BITS

__all__ = ["EXPERIMENTS", "Experiment", "Trial", "Verdict", "classes_of", "decide"]

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        SPARSE_GROUPING,
        EXPONENT_FLOOR,
        TF32_LOW_BITS,
        IMMA_SATURATION,
        METADATA_UNDEFINED,
        FP8_SYNC,
        NAN_PAYLOAD,
        SCALE_GROUPS,
    )
}
