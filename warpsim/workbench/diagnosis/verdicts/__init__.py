"""Why a launch is wrong: one verdict, by evidence.

    repeated_launch    a launch on the arrays as they were, as often as the budget of statements allows
    output_errors      wrong elements of an output, and the regularity of their places
    formula_causes     proofs: the formula of the expected values, and the statement that leaves it
    launch_causes      causes in findings of checks, schedules, origins; what brings an operand; fixes
    descriptor_causes  fields of descriptors put right by trial; tensor_causes operands of tcgen05.mma
    tried_repairs      trials: matrix instructions computed in another way, and the elements that stay wrong
    counterfactuals    arguments exchanged, mistakes undone, other forms of statements and comparisons; stores
    why                the order of all these, and the verdict

Knows launches; does not print.
"""

from .repeated_launch import RepeatedLaunch
from .why import Verdict, verdict_of, why

__all__ = ["RepeatedLaunch", "Verdict", "verdict_of", "why"]
