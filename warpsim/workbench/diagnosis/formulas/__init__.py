"""The formula of expected values: which product, epilogue or attention of the arguments it is, by value.

formula_terms   an array expression: its Python text and its values, and the functions that it calls
epilogues       factors, addends and an activation behind a term, solved from the expected values
found_formulas  arguments as terms, the search, and the reference that it returns
"""
