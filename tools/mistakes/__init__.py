"""Mistakes and right kernels as rows: who brings them, what was wrong, and what an answer must say.

    users      what users do to one instruction, to loops along k, and what they print
    dumps      dumps, logs, stored results and prints in the styles of other people
    engineers  ten engineers in their own words, and kernels in which nothing is wrong
    launches   mistakes planted in kernels, for ``--why``
    grammar    mistakes drawn from the grammar of the diagnosis

Each was written down before the code that names it, unless its page says so, in plain NumPy from the
manual's words: nothing is taken from the tables of warpsim.workbench.diagnosis.
"""
