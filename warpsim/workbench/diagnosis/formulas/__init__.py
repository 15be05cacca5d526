"""The formula of expected values: which product, epilogue or attention of the arguments it is, by value.

formula_terms      an array expression: its Python text and its values
formula_functions  what expressions call: softmax, activations, blocks, numbers of 4 bits
readings           arguments as terms: decoded, packed, scaled in blocks
epilogues          factors, addends and an activation behind a term, solved from the expected values
found_formulas     the search, and the reference that it returns
"""
