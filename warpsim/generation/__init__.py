"""Generating vector sets: random, corner and exhaustive cases, their coverage, and inputs that tell models
apart.

    Limits      what formats and a rule make possible        limits
    themes      tiles directed at one corner each            themes, integer_themes, on drafts and codes
    placement   matrices to registers and shared memory      placement, corners, exhaustive
    sums        the arithmetic once more, step by step       arithmetic, summing
    bins        what there is to hit, and what was hit       bins, observations, coverage
    separate    the shortest inputs on which models differ   separation, probes

The left half makes operands and never computes a result; the right half computes, and never sees how the
operands were made.
"""
