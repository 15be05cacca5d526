"""Failing cases of a unit under test: what they have in common, and which arithmetic fault gives every bit.

    wrong_units       wrong units: the rule's program rewritten, operands read otherwise
    result_relations  what a unit does to results of a kind, found from its outputs by value
    shared_traits     what wrong outputs have in common and right outputs lack
    unit_search       the search over them, for one fault and for two

Knows numbers; does not know files, nor what computed the set's D.
"""

from .unit_search import Explanation, UnitDiagnosis, diagnose_unit

__all__ = ["Explanation", "UnitDiagnosis", "diagnose_unit"]
