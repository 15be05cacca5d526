"""Compiled inner loops: planes of integers in, result codes or planes out.

All Numba code of the package is here, and no module here knows a format's name, a lane or PTX. Rules arrive
as plain numbers. Everything is signed integer arithmetic: Numba's unsigned arithmetic has another meaning
when the JIT is off.
"""
