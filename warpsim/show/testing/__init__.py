"""Tests of kernels under pytest: the plugin, the simulator that its fixture gives, and what it compares.

    plugin        options, marks, the fixture ``simulator``; what JUnit files and the end of a run say
    simulator     kernels loaded, launched and judged for one test: findings, schedules, outputs
    comparison    which elements of an output are wrong, by bits, in ulps or beyond a tolerance, and where
    failures      errors and failed comparisons without the frames of this package

Knows launches and verdicts; pytest itself is imported by plugin.py alone.
"""

from .failures import KernelFailure

__all__ = ["KernelFailure"]
