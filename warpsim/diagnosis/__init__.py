"""What made D come out as it did: the search for the mistake, and the comparison of register dumps."""

from .dumps import CLASSES as CLASSES
from .dumps import DumpComparison as DumpComparison
from .dumps import compare as compare
from .dumps import ulps as ulps
from .holding import Holding as Holding
from .holding import holding as holding
from .loop_search import LoopCause as LoopCause
from .loop_search import LoopDiagnosis as LoopDiagnosis
from .loop_search import diagnose_product as diagnose_product
from .mistake import Mistake as Mistake
from .report import Cause as Cause
from .report import Diagnosis as Diagnosis
from .report import Match as Match
from .report import diagnose as diagnose
from .report import diagnose_inputs as diagnose_inputs
from .wrong import Wrong as Wrong
