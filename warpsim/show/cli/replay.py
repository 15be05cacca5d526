"""``warpsim replay``: execute register traces of real GPUs again."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from .options import FOLDER, Differences, Json, NeededTarget, Out
from .output import EXPECTED, MISMATCH, UNCHECKED, attempt, complain, perform, print_json, say, worst
from .verbs import verb

if TYPE_CHECKING:
    from ...workbench.vectors.outcomes import Outcome
    from ...workbench.vectors.register_traces import RegisterTrace


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How the log is read, in the terms of read_register_trace."""

    target: Annotated[NeededTarget, "The chip of the log."]
    after: Annotated[Path | None, "A log of the same run, taken after each instruction: D is read from it."]
    chip: Annotated[str, "Its name, for the provenance of --out."] = "a GPU"


@verb
def replay(
    log: Path,
    *,
    reading: Reading,
    show: Annotated[Differences, "Differences to explain."] = 3,
    out: Annotated[Out, FOLDER, "Write a vector set for every form found, to be verified or sent."],
    as_json: Json,
) -> int:
    """Execute the tensor-core instructions of a register trace and compare the D of the chip.

    LOG is what NVBit's record_reg_vals prints, or CUTracer's reg_trace (.ndjson), of HMMA, IMMA, QMMA and
    BMMA instructions, dense and sparse. As they come, these tools record only the first register of each
    operand, and values before the instruction, so D is not among them:

    \b
    - record every register of a matrix instruction's operands D, A, B, C and
      metadata ('warpsim info MNEMONIC' says how many), and make room for 17:
      NVBit's reg_vals[32][8] has 8, CUTracer's MAX_REG_OPERANDS is 16
    - run again with IPOINT_AFTER and give that log as --after; without it, D is
      taken from the next recorded instruction that reads its registers

    The selector of sparse forms is read from the disassembly. Exit code 4: the log does not hold what is
    needed.
    """
    trace = perform(_read, log, reading)
    outcome = perform(_verified, log, trace, show)
    failures = [attempt(_write, out, vectors) for vectors in trace.sets] if out else []
    _report(outcome, trace, as_json)
    codes = [failure.code() for failure in failures if failure]
    codes.append(EXPECTED if outcome.passed else MISMATCH)
    return worst([*codes, EXPECTED if trace.sets else UNCHECKED])


def _read(path: Path, reading: Reading) -> RegisterTrace:
    from ...workbench.vectors.register_traces import read_register_trace

    return read_register_trace(path, **asdict(reading))


def _verified(path: Path, trace: RegisterTrace, show: int) -> Outcome:
    from ...workbench.vectors.outcomes import Outcome
    from ...workbench.vectors.verification import verify_parts

    items = [verify_parts(vectors.parts(), kept=show) for vectors in trace.sets]
    provenance: dict[str, Any] = dict(trace.sets[0].provenance) if trace.sets else {}
    return Outcome(path=str(path), kind="register trace", items=items, provenance=provenance)


def _write(folder: Path, vectors: Any) -> None:
    from ...workbench.vectors.formats import write_vectors

    folder.mkdir(parents=True, exist_ok=True)
    name = vectors.instruction.mnemonic.replace("::", "_").replace(".", "_")
    write_vectors(folder / f"{name}.npz", vectors)


def _report(outcome: Outcome, trace: RegisterTrace, as_json: bool) -> None:
    from ...workbench.vectors.register_traces import HOW_TO_RECORD
    from ..views.verification import outcome_lines, summary_lines, verification_document

    if as_json:
        counts = {"instructions": trace.instructions, "missing": trace.missing}
        print_json({**verification_document([outcome]), **counts})
        return
    if trace.sets:
        say("\n".join([*outcome_lines(outcome), "", *summary_lines([outcome])]))
    for reason, count in trace.missing.items():
        say(f"not compared: {count:,} of {trace.instructions:,} matrix instructions: {reason}")
    if not trace.sets:
        complain(f"{outcome.path}: nothing to compare\n{HOW_TO_RECORD}")
