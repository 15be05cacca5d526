"""What made D come out as it did: the search for the mistake, and the comparison of register dumps."""

from .contents.dump_contents import Holding as Holding
from .contents.dump_contents import held as held
from .contents.located import Location as Location
from .contents.located import Part as Part
from .contents.scale_dumps import held_scales as held_scales
from .dumps.dump_comparison import CLASSES as CLASSES
from .dumps.dump_comparison import DumpComparison as DumpComparison
from .dumps.dump_comparison import compare as compare
from .dumps.dump_comparison import ulps as ulps
from .dumps.wrong_elements import Wrong as Wrong
from .library.mistake import Mistake as Mistake
from .loops.loop_search import LoopCause as LoopCause
from .loops.loop_search import LoopDiagnosis as LoopDiagnosis
from .loops.loop_search import diagnose_product as diagnose_product
from .loops.step_logs import StepLog as StepLog
from .loops.step_logs import diagnose_steps as diagnose_steps
from .search.diagnose import Cause as Cause
from .search.diagnose import Diagnosis as Diagnosis
from .search.diagnose import Match as Match
from .search.diagnose import diagnose as diagnose
from .search.diagnose import diagnose_inputs as diagnose_inputs
