"""Instructions of x86 for which LLVM makes wrong code, as bytes that an object with them has.

LLVM 20 to 22 select them for right text, where registers of masks (AVX-512) are involved:

- VPTERNLOG with a mask and an operand in memory: ``select(c, (x & M) | (y & ~M), x)`` gets the table of
  another order of operands (llvm-project issue 157929; corrected by pull request 209782).
- VPMOVMSKB, VMOVMSKPS, VMOVMSKPD in place of VPMOVB2M, VPMOVD2M, VPMOVQ2M and KMOV: registers 16 to 31 are
  taken for 0 to 15, or the mask is lost that is shifted afterwards (issues 191304 and 198197).

Without AVX-512 there is neither. The search looks at the bytes of every place, so it misses no instruction;
bytes that look alike cost a second compilation. Knows bytes; does not know texts or compilers.
"""

from __future__ import annotations

import re
from collections.abc import Callable


def _any(holds: Callable[[int], bool]) -> bytes:
    """Return the pattern of a byte of which something holds."""
    return b"[%b]" % b"".join(b"\\x%02x" % byte for byte in range(256) if holds(byte))


# The prefixes of Intel's manual, volume 2A: EVEX 62 P0 P1 P2 (2.7.1), VEX C5 P or C4 P0 P1 (2.3.5).
_MAP_3A = _any(lambda byte: byte & 7 == 3)
_PREFIX_66 = _any(lambda byte: byte & 3 == 1)
_MASKED = _any(lambda byte: byte & 7 != 0)
_MASKED_TERNARY = b"\\x62" + _MAP_3A + _PREFIX_66 + _MASKED + b"\\x25"
_MAP_0F = _any(lambda byte: byte & 31 == 1)
_ONE_SOURCE = _any(lambda byte: byte & 0x78 == 0x78 and byte & 3 < 2)
_OF_REGISTER = _any(lambda byte: byte >= 0xC0)
_MOVED_SIGNS = b"(?:\\xc5|\\xc4" + _MAP_0F + b")" + _ONE_SOURCE + b"[\\x50\\xd7]" + _OF_REGISTER
WRONG_FOLDS = {
    "VPTERNLOG with a mask": re.compile(_MASKED_TERNARY, re.DOTALL),
    "VMOVMSK": re.compile(_MOVED_SIGNS, re.DOTALL),
}


def wrong_folds(content: bytes) -> list[str]:
    """Return the instructions of an object that LLVM may have selected wrongly."""
    return [name for name, pattern in WRONG_FOLDS.items() if pattern.search(content)]
