"""The command line: what to capture, on which device, and what is said about it.

The only module of the tool that prints. Results go to stdout, progress and complaints to stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

from warpsim.base.errors import IllegalInstruction, TraceError, WarpsimError
from warpsim.isa.architectures import ARCHITECTURES
from warpsim.machine.run.engines import Engine as Arithmetic

from . import assembling
from .bundle import emit, fold
from .campaign import Campaign, Record, chip_folder, pack
from .candidates import as_target, model
from .capturing import for_device, parts_of, target_of
from .driver import CudaDriver, Device, Driver, DriverError
from .experiments import EXPERIMENTS, classes_of
from .experiments.experiment import RULE
from .simulated import SimulatedDriver
from .sources import Item, Size, experiment_items, file_items, form_items

DONE, DIFFERENT, USAGE, UNREADABLE, NO_DEVICE = range(5)

_EPILOG = """\
With a GPU, all of it, nine minutes at a time (repeat until it says that nothing is left):
  python -m tools.capture --everything --verify --tar captured.tgz
Without one, the same on a simulated device:
  python -m tools.capture --simulate sm_90a --experiment all
Where warpsim's packages are missing:
  python -m tools.capture --target sm_90a --everything --emit bundle    here
  python3 bundle/run.py                                                 there
  python -m tools.capture --fold bundle                                 here
"""


class _Usage(Exception):
    """Options that do not go together."""


def run(arguments: Sequence[str]) -> int:
    """Do what the command line says; the exit code."""
    options = _parser().parse_args(arguments)
    try:
        return _action(options)(options)
    except _Usage as error:
        return _failed(USAGE, str(error))
    except DriverError as error:
        return _failed(NO_DEVICE, str(error))
    except BrokenPipeError:  # whoever reads has left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except (WarpsimError, OSError) as error:
        return _failed(UNREADABLE, str(error))
    except KeyboardInterrupt:
        return _failed(130, "interrupted; what is written stays, and the next run goes on from there")


def _failed(code: int, message: str) -> int:
    print(f"capture: {message}", file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.capture",
        description="Runs matrix instructions on a GPU and keeps inputs and outputs as vector sets.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_argument_group("what to capture")
    what.add_argument("files", nargs="*", metavar="FILE", help="traces (.ptx) and vector sets")
    names = [*EXPERIMENTS, "all"]
    what.add_argument("--experiment", action="append", default=[], choices=names, help="an open question")
    what.add_argument("--all", action="store_true", help="random and corner sets of every form of the chip")
    what.add_argument("--everything", action="store_true", help="all experiments, then --all")
    what.add_argument(
        "--cases", type=_positive, default=Size().cases, help="of a random set (default %(default)s)"
    )
    what.add_argument(
        "--soak",
        type=int,
        default=0,
        metavar="N",
        help="N more random cases of each form, compared but not kept",
    )
    what.add_argument("--seed", type=int, default=Size().seed, help="of random and corner sets")
    how = parser.add_argument_group("how")
    how.add_argument("--verify", action="store_true", help="exit with 1 where a bit differs from the model")
    how.add_argument("--minutes", type=float, help="start no set after so many (default 9 with --all)")
    how.add_argument(
        "--out", type=Path, help="folder (default traces/hw; build/simulated-captures with --simulate)"
    )
    how.add_argument("--tar", type=Path, metavar="FILE", help="pack the chip's folder at the end")
    how.add_argument("--device", type=int, default=0, help="which GPU (default 0)")
    how.add_argument(
        "--simulate", metavar="TARGET", help="a simulated device of this target instead of a GPU"
    )
    how.add_argument(
        "--behave", metavar="AS", help="the simulated device follows another target, or EXPERIMENT:CANDIDATE"
    )
    how.add_argument("--json", action="store_true", help="results as JSON lines")
    instead = parser.add_argument_group("instead of capturing")
    instead.add_argument(
        "--list", action="store_true", help="experiments, their candidates and decision rules"
    )
    instead.add_argument("--plan", action="store_true", help="what would be captured")
    instead.add_argument("--assemble", action="store_true", help="have ptxas assemble every kernel")
    instead.add_argument(
        "--emit", type=Path, metavar="DIR", help="write a bundle for a computer without warpsim"
    )
    instead.add_argument(
        "--fold", type=Path, metavar="DIR", help="make captured sets of a bundle that was run"
    )
    instead.add_argument("--target", choices=list(ARCHITECTURES), help="the chip, where none is asked")
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value}: at least 1")
    return value


def _action(options: argparse.Namespace) -> Callable[[argparse.Namespace], int]:
    actions = {
        "list": _list, "fold": _fold, "emit": _emit, "plan": _plan, "assemble": _assemble,
    }  # fmt: skip
    chosen = [name for name in actions if getattr(options, name)]
    if len(chosen) > 1:
        raise _Usage(f"--{chosen[0]} and --{chosen[1]} do not go together")
    if options.behave and not options.simulate:
        raise _Usage("--behave is for a simulated device: add --simulate TARGET")
    if options.simulate and options.simulate not in ARCHITECTURES:
        raise _Usage(f"--simulate {options.simulate}: the targets are {', '.join(ARCHITECTURES)}")
    wanted = options.files or options.experiment or options.all or options.everything
    if not wanted and not options.fold and not options.list:
        raise _Usage("nothing to capture: name files, --experiment, --all or --everything (see --help)")
    return actions[chosen[0]] if chosen else _capture


# --- what ------------------------------------------------------------------------------------------


def _target(options: argparse.Namespace) -> str:
    """Return the chip to plan for: as told, or the one that is there."""
    named = options.target or options.simulate
    return named if named else target_of(CudaDriver(options.device).device)


def _experiments(options: argparse.Namespace) -> list[str]:
    everything = options.everything or "all" in options.experiment
    return list(EXPERIMENTS) if everything else list(dict.fromkeys(options.experiment))


def _items(options: argparse.Namespace, target: str) -> Iterator[Item]:
    major, minor = divmod(ARCHITECTURES[target].number, 10)
    device = Device(target, (major, minor), "", 0)
    size = Size(cases=options.cases, seed=options.seed, soak=options.soak)
    whole = form_items(target, size) if options.all or options.everything else ()
    files = file_items(options.files, partial(_on_chip, device)) if options.files else ()
    return chain(files, experiment_items(target, _experiments(options)), whole)


def _on_chip(device: Device, instruction: Any) -> Any:
    try:
        return for_device(instruction, device)
    except IllegalInstruction as error:
        raise TraceError(error.message) from None


# --- capturing -------------------------------------------------------------------------------------


def _capture(options: argparse.Namespace) -> int:
    driver = _driver(options)
    try:
        return _captured(options, driver)
    finally:
        driver.close()


def _captured(options: argparse.Namespace, driver: Driver) -> int:
    device, target = driver.device, options.simulate or target_of(driver.device)
    folder = chip_folder(_out(options), device)
    _note(
        f"{device.chip}, compute capability {device.compute_capability}, driver {device.driver} -> {folder}"
    )
    if not find_spec("numba"):
        _note("numba is missing here: the model runs in plain Python, which is slow")
    for name in _experiments(options):
        _say_rule(name, options)
    minutes = options.minutes or (9.0 if options.all or options.everything else None)
    campaign = Campaign(folder=folder, driver=driver, seconds=minutes and 60 * minutes)
    for record in campaign.run(_items(options, target)):
        _say(record, options)
    if options.tar:
        pack(folder, options.tar)
    return _summary(campaign.records, options, campaign.skipped, campaign.unfinished)


def _driver(options: argparse.Namespace) -> Driver:
    if not options.simulate:
        return CudaDriver(options.device)
    return SimulatedDriver(options.simulate, _behaviour(options.simulate, options.behave))


def _behaviour(target: str, name: str | None) -> Arithmetic | None:
    """Return what a simulated device computes."""
    if not name:
        return None
    if name in ARCHITECTURES:
        return as_target(name)
    experiment, _, wanted = name.partition(":")
    if experiment not in EXPERIMENTS:
        raise _Usage(f"--behave {name}: expected a target, or EXPERIMENT:CANDIDATE as --list shows them")
    found = {
        trial.form.mnemonic: candidate.arithmetic
        for trial in EXPERIMENTS[experiment].trials(target)
        for candidate in trial.candidates
        if candidate.name == wanted
    }
    if not found:
        raise _Usage(f"--behave {name}: {experiment} has no candidate {wanted!r} on {target}; see --list")
    return lambda instruction, inputs: found.get(instruction.mnemonic, model)(instruction, inputs)


def _out(options: argparse.Namespace) -> Path:
    default = "build/simulated-captures" if options.simulate else "traces/hw"
    return options.out or Path(default)


def _fold(options: argparse.Namespace) -> int:
    records = []
    for record in fold(options.fold, _out(options)):
        records.append(record)
        _say(record, options)
    return _summary(records, options)


def _emit(options: argparse.Namespace) -> int:
    target = _target(options)
    records = list(emit(options.emit, target, _items(options, target)))
    for record in records:
        if record.error:
            _say(record, options)
    good = sum(not record.error for record in records)
    print(f"{options.emit}: {good} sets for {target}; run 'python3 {options.emit}/run.py' where the GPU is")
    return DIFFERENT if good < len(records) else DONE


# --- planning --------------------------------------------------------------------------------------


def _list(options: argparse.Namespace) -> int:
    """Return experiments; their candidates where a target is named."""
    target = options.target or options.simulate
    for name in _experiments(options) or EXPERIMENTS:
        _say_rule(name, options)
        for trial in EXPERIMENTS[name].trials(target) if target else ():
            print(f"  {trial.form.mnemonic}, {trial.vectors.title}: {len(trial.vectors)} cases")
            for candidate in trial.candidates:
                print(f"    {candidate.name}: {candidate.meaning}")
            for names in classes_of(trial):
                if len(names) > 1:
                    print(f"    cannot be told apart here: {', '.join(names)}")
    if not target:
        print("the candidates of a chip: --list --target sm_90a")
    return DONE


def _plan(options: argparse.Namespace) -> int:
    target = _target(options)
    count = cases = size = 0
    for item in _items(options, target):
        count += 1
        try:
            vectors = item.make()
        except WarpsimError as error:
            _note(f"{item.path}: cannot be made: {error.message}")
            continue
        kernels = sum(1 for _ in parts_of(vectors))
        held = sum(array.nbytes for array in vectors.arrays().values())
        cases, size = cases + len(vectors), size + held
        document = {"path": item.path, "cases": len(vectors), "kernels": kernels, "bytes": held}
        print(
            json.dumps(document) if options.json else f"{item.path}: {len(vectors)} cases, {kernels} kernels"
        )
    if not options.json:
        print(f"{count} sets for {target}, {cases:,} cases, {size / 1e6:.0f} MB before compression")
    return DONE


def _assemble(options: argparse.Namespace) -> int:
    """Have ptxas judge the kernels of everything that would be captured."""
    if reason := assembling.missing():
        raise DriverError(reason)
    target, refused, kernels = _target(options), 0, 0
    waiting: list[Any] = []
    for item in chain(_items(options, target), [None]):
        if item is not None:
            waiting += [part.kernel for part in parts_of(item.make())]
        if item is None or len(waiting) > 200:
            kernels += len(waiting)
            for kernel, errors in assembling.refusals(waiting, target):
                refused += 1
                print(f"{kernel.ptx.splitlines()[0]}\n{errors}")
            waiting = []
    print(f"{target}: {kernels:,} kernels, {refused} refused")
    return DIFFERENT if refused else DONE


# --- saying ----------------------------------------------------------------------------------------


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _say_rule(name: str, options: argparse.Namespace) -> None:
    """Print the question and the decision rule, before anything runs."""
    experiment = EXPERIMENTS[name]
    text = (
        f"{name}: {experiment.question}\n"
        f"  open because: {experiment.source}\n"
        f"  decision rule: {RULE}\n"
        f"  meaning: {experiment.answers}"
    )
    print(text, file=sys.stderr if options.json else sys.stdout, flush=True)


def _say(record: Record, options: argparse.Namespace) -> None:
    if options.json:
        print(json.dumps(record.document()), flush=True)
    elif record.error:
        _note(f"{record.path}: FAILED: {record.error}")
    elif record.verdict:
        _say_verdict(record)
    elif record.differences:
        print(
            f"{record.path}: {record.differences} of {record.outputs} outputs differ; {record.first}",
            flush=True,
        )
    else:
        print(f"{record.path}: {record.outputs} outputs, all as the model", flush=True)


def _say_verdict(record: Record) -> None:
    verdict = record.verdict or {}
    print(f"{record.mnemonic}: {record.outputs} outputs", flush=True)
    counts: Iterable[tuple[str, int]] = verdict["differences"].items()
    survivors = verdict["survivors"]
    nearest = sorted(counts, key=lambda pair: pair[1])[:3]
    if survivors:
        print(f"  VERDICT: {verdict['verdict']}")
    else:
        near = ", ".join(f"{name} ({count} differ)" for name, count in nearest)
        print(f"  VERDICT: none of the candidates; nearest: {near}")
    for observation in verdict["observations"]:
        print(f"  {observation}")
    for left in verdict["not asked"]:
        print(f"  not asked: {left}")


def _summary(records: list[Record], options: argparse.Namespace, skipped: int = 0, left: int = 0) -> int:
    failed = sum(bool(record.error) for record in records)
    different = sum(bool(record.differences) for record in records)
    outputs = sum(record.outputs for record in records)
    wrong = sum(record.differences for record in records)
    _note(
        f"{len(records) - failed} sets captured, {outputs:,} outputs, {wrong:,} in {different} sets differ "
        f"from the model; "
        f"{failed} failed, {skipped} were done before, {left} left for another run"
    )
    return DIFFERENT if failed or (options.verify and different) else DONE
