"""Makes the helpers of the tests above importable here, as ``import ptxas``."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
