"""The formula of expected values: which product, epilogue or attention of the arguments it is, by value.

formula_terms   an array expression and the functions that it calls: its Python text, its values, its epilogue
found_formulas  arguments as terms, the search, and the reference that it returns
"""
