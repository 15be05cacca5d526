"""What warpsim and ptxas take as legal, target by target: ``python -m tools.legality``."""

import sys
from pathlib import Path

# The oracle, the mutations and the table of known differences are those of the tests.
sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
