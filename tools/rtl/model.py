"""What warpsim says a dot product is: its steps, one a clock, by the slow and independent reference."""

from __future__ import annotations

from warpsim.sums.arithmetic.reference import Step, decode, fused_chain, product

from .configuration import Configuration
from .stimulus import DotProduct


def steps_of(configuration: Configuration, dot: DotProduct) -> list[Step]:
    """One fused sum a clock, with its terms, its alignment and its code."""
    form = configuration.instruction
    factors = zip(dot.a, (dot.b[column] for column in dot.columns), strict=True)
    products = [product(decode(a, form.a), decode(b, form.b)) for a, b in factors]
    return fused_chain(configuration.rule, products, decode(dot.c, form.c))
