"""Which rules are fused sums of short products, which float32 values and int16 exponents represent exactly.

Knows rules and formats; does not know how such a sum is computed: compiled (plans) or not (array_sums).
"""

from __future__ import annotations

from ...isa.products import Product
from ...isa.rules import EmulatedF8, FusedSum, Rule

_LOWEST_FLOOR = -100  # kernels.steps: an f32 rule's floor must be below the accumulators of the fast step


def applies(product: Product, rule: Rule) -> bool:
    """Return whether the kernels compute this rule: sums of products of at most 12 significant bits."""
    step = step_of(rule)
    if step is None or product.c != product.d:
        return False
    half = step.output.format == "f16"
    return half or (step.exponent_floor <= _LOWEST_FLOOR and step.output.format == "f32")


def step_of(rule: Rule) -> FusedSum | None:
    """Return the fused sum that a rule repeats, or None."""
    step = rule.step if isinstance(rule, EmulatedF8) else rule
    return step if isinstance(step, FusedSum) else None


def order_of(product: Product, rule: Rule) -> list[int]:
    """Return the stored columns of an instruction in the order in which its steps take them."""
    columns = range(product.stored_k)
    return sorted(columns, key=lambda column: column % 4 // 2) if isinstance(rule, EmulatedF8) else [*columns]
