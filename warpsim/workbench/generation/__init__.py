"""Vector sets: random, corner and exhaustive cases, their coverage, and inputs that distinguish two models.

    sums        what formats and a rule make possible; the arithmetic a second time, step by step
    cases       matrices directed at one corner each, placed in registers and shared memory
    coverage    the bins of an instruction, and the bins that a set of cases hits
    generate    vector sets of each kind
    separation  the shortest inputs on which two models differ; probes write them as traces

``cases`` makes operands and never computes a result; ``sums`` and ``coverage`` compute, and do not know how
operands are made.
"""
