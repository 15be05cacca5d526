"""Whole numbers in text, read without trusting how many digits there are.

Python refuses to convert more than 4,300 digits, with a ValueError that names no place, and it takes digits
of every script. Here a number that is not a number, or is larger than anything counts to, is None: the
caller says what was expected. Does not know what a number is for.
"""

from __future__ import annotations

import re

__all__ = ["integer_in", "whole_number"]

_LARGEST = (1 << 64) - 1
_DIGITS = re.compile(r"0*([0-9]{1,20})")
_INTEGER = re.compile(r"[+-]?(?:0[xX]0*[0-9a-fA-F]{1,16}|0[bB]0*[01]{1,64}|0[oO]0*[0-7]{1,22}|[0-9]{1,20})")


def whole_number(text: str, largest: int = _LARGEST) -> int | None:
    """Return the number that decimal digits spell, if it is no larger; None for any other text."""
    match = _DIGITS.fullmatch(text)
    value = int(match[1]) if match else largest + 1
    return value if value <= largest else None


def integer_in(text: str) -> int | None:
    """Return the integer of at most 64 bits that a text spells as Python does, as ``-1`` or ``0xff``; or
    None.
    """
    text = text.strip()
    if not _INTEGER.fullmatch(text):
        return None
    try:
        value = int(text, 0)
    except ValueError:  # 010, which Python does not take
        return None
    return value if -(_LARGEST + 1) // 2 <= value <= _LARGEST else None
