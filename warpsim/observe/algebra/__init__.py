"""Whether a kernel computes a formula: keys, formulas at random points of finite fields, beside its
values.
"""
