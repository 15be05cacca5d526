"""Operands that a kernel computes, such as P of attention: what they are made of, and what is wrong.

driven_launch      a launch with chosen values in place of D; traced_elements, row_statistics ask with it
computed_operands  operands computed from D, as tiles of a matrix S; computed_causes says what is wrong
attention_models   attention with the statistics that a kernel uses
"""
