"""Explanations: how an element of D gets its bits."""
