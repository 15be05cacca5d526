"""Mistakes that users make, written down before the library knew them, and how ``warpsim diff`` answers.

Each is made here in plain NumPy, from the manual's words alone: nothing is taken from the tables of
warpsim.workbench.diagnosis.
"""
