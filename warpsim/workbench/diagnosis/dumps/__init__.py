"""Dumps of registers and arrays of results: which elements differ, how far apart they are, where they lie."""
