"""What warpsim and ptxas take as legal, target by target: ``python -m tools.legality``.

The oracle, the mutations and the table of known differences are those of the tests.
"""
