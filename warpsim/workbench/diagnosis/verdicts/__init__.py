"""Why a launch is wrong: one verdict, by evidence.

    repeated_launch    a launch on the arrays as they were, as often as asked, with nothing written back
    output_errors      which elements of an output are wrong, and what is regular about their places
    statement_chains   the statements that bring an operand of a matrix instruction: loads, copies, stores
    launch_causes      causes that are found: findings of checks, schedules, origins, products; and what to do
    matrix_hooks       matrix instructions computed in another way: what trials and experiments are made of
    corrections        operands put right; hypotheses has what would be right, tried_causes tries it
    computed           operands computed from D, as tiles of a matrix S, and what is wrong with them
    stored_places      where the elements of a product are stored; epilogue_causes its factor, what is added
    retried            arguments exchanged, mistakes of a library undone, other forms of statements; stores
    type_causes        arrays that are read as another type
    why                the order in which they are asked, and the verdict

Knows launches; does not print.
"""

from .repeated_launch import RepeatedLaunch
from .why import Verdict, verdict_of, why

__all__ = ["RepeatedLaunch", "Verdict", "verdict_of", "why"]
