"""What there is to capture: files that somebody has, the forms of a chip, the trials of experiments.

Items are made when their turn comes, for a chip has more forms than fit into memory. Knows names and order;
does not know drivers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np

import warpsim
from warpsim.isa.instruction import Instruction
from warpsim.isa.operand_places.placements import Inputs
from warpsim.workbench.traces.reading import read_trace
from warpsim.workbench.traces.running import run_trace
from warpsim.workbench.vectors.formats import read_vectors
from warpsim.workbench.vectors.sets import VectorSet, expected, immediates_of

from .capturing import file_words
from .experiments import EXPERIMENTS, Trial
from .kernels import DEFAULTS
from .operands import ENGINE, Placement, random_set

_NARROWEST = 8  # columns of wgmma
_WIDE_CASES = 6
_CORNER_ROUNDS = 3  # corner cases for every random one
_WAYS = {"scale_d": (1, 1, 1, 0), "imm_scale_a": (1, -1, 1, -1), "imm_scale_b": (1, 1, -1, -1)}


@dataclass(frozen=True, kw_only=True)
class Item:
    """Something to capture: where the file goes, below a chip's folder, and how to make the set.

    ``experiment`` and ``trial`` are those that the outputs decide, if any. What is not ``kept`` is compared
    with the model, and written only where it differs.
    """

    path: str
    mnemonic: str
    make: Callable[[], VectorSet]
    experiment: str = ""
    trial: Trial | None = None
    kept: bool = True


# --- experiments -----------------------------------------------------------------------------------


def experiment_items(target: str, names: Iterable[str]) -> Iterator[Item]:
    """Yield the trials of experiments."""
    for name in names:
        for trial in EXPERIMENTS[name].trials(target):
            vectors = trial.vectors
            yield Item(
                path=f"experiments/{file_words(vectors.instruction.mnemonic, vectors.title)}.npz",
                mnemonic=vectors.instruction.mnemonic,
                make=partial(_given, vectors),
                experiment=name,
                trial=trial,
            )


def _given(vectors: VectorSet) -> VectorSet:
    return vectors


# --- the forms of a chip ---------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much of every form: cases of a random set that is kept, bytes that such a set has at most, random
    cases that are compared and not kept, and the seed."""

    cases: int = 32
    set_bytes: int = 96 << 10
    soak: int = 0
    seed: int = 1


def form_items(target: str, size: Size) -> Iterator[Item]:
    """Random and corner sets of every form.

    Of wgmma the narrowest forms are kept; wider ones, which are many and large, differ from them in nothing
    but N, and come last: they are compared, and kept only where they differ from the model.
    """
    forms = list(warpsim.instructions(target))
    wide = [form for form in forms if form.family.opcode == "wgmma" and form.shape.n > _NARROWEST]
    narrow = [form for form in forms if form not in set(wide)]
    for form in narrow:
        for placement in _placements(form):
            yield _item(form, placement, "random", partial(_random, form, placement, size))
            if _has_corners():
                yield _item(form, placement, "corner", partial(_corner, form, placement, size))
    for form in narrow if size.soak else ():
        for placement in _placements(form):
            make = partial(random_set, form, size.soak, size.seed + 1, placement=placement)
            yield replace(_item(form, placement, f"soak {size.soak}", make), kept=False)
    for number, form in enumerate(wide):
        placement = tuple(_placements(form))[number % 2]
        make = partial(random_set, form, _WIDE_CASES, size.seed, placement=placement)
        yield replace(_item(form, placement, "random", make), kept=False)


def _item(form: Instruction, placement: Placement, kind: str, make: Callable[[], VectorSet]) -> Item:
    title = f"{kind} shared" if placement.a_shared else kind
    return Item(path=f"forms/{file_words(form.mnemonic, title)}.npz", mnemonic=form.mnemonic, make=make)


def _placements(form: Instruction) -> Iterator[Placement]:
    yield Placement()
    if form.family.opcode == "wgmma":
        yield Placement(a_shared=True)


def _fitting(form: Instruction, placement: Placement, size: Size) -> int:
    """Return cases that keep a set within its bytes, but at least eight."""
    word = form.register_bits // 8
    case = sum(form.registers.values()) * form.lanes * word
    if form.family.opcode == "wgmma":
        case += (form.shape.n + 64 * placement.a_shared) * form.shape.k * max(form.b.bits, 8) // 8
    return max(8, min(size.cases, size.set_bytes // case))


def _random(form: Instruction, placement: Placement, size: Size) -> VectorSet:
    return random_set(form, _fitting(form, placement, size), size.seed, placement=placement)


def _has_corners() -> bool:
    return (
        find_spec("warpsim.workbench.generation") is not None
        and find_spec("warpsim.workbench.generation.generate") is not None
    )


def _corner(form: Instruction, placement: Placement, size: Size) -> VectorSet:
    from warpsim.workbench.generation.generate import generate_vectors

    count = _CORNER_ROUNDS * _fitting(form, placement, size)
    place: Literal["shared", "registers"] = "shared" if placement.a_shared else "registers"
    vectors = generate_vectors(form, kind="corner", count=count, seed=size.seed, a_in=place)
    return _fewer_kernels(vectors) if form.family.opcode == "wgmma" else vectors


def _fewer_kernels(vectors: VectorSet) -> VectorSet:
    """Return the set with the immediates that do not touch where anything lies tied to those that do.

    Corner sets vary all of them independently, and every combination is a kernel.
    """
    form, zero = vectors.instruction, np.zeros(len(vectors), np.int64)
    given = DEFAULTS | dict(vectors.immediates)
    way = zero + given["imm_trans_a"] + 2 * given["imm_trans_b"]
    if not way.any():
        way = np.arange(len(vectors)) % 4
    changed = {name: np.array(values, np.int8)[way] for name, values in _WAYS.items()}
    if not form.a.is_float:
        changed = {"scale_d": changed["scale_d"]}
    return modelled(replace(vectors, immediates={**vectors.immediates, **changed}))


# --- files -----------------------------------------------------------------------------------------


def file_items(paths: Iterable[str], retarget: Callable[[Instruction], Instruction]) -> Iterator[Item]:
    """Yield the sets in vector files, and a set for each form in a trace; D is what the model computes.

    Raises what reading raises, and IllegalInstruction where the chip does not have a form.
    """
    for path in paths:
        for name, vectors in _sets_in(Path(path)):
            changed = replace(vectors, instruction=retarget(vectors.instruction))
            yield Item(
                path=f"files/{name}.npz",
                mnemonic=changed.instruction.mnemonic,
                make=partial(modelled, changed),
            )


def modelled(vectors: VectorSet) -> VectorSet:
    """Return the set with the model's D, whatever D it had."""
    return replace(vectors, d=expected(vectors, ENGINE, "fallback"))


def _sets_in(path: Path) -> Iterator[tuple[str, VectorSet]]:
    if path.suffix != ".ptx":
        yield path.stem, read_vectors(path)
        return
    for vectors in trace_sets(path):
        placed = " shared" if "a_desc" in vectors.descriptors else ""
        yield f"{path.stem}.{file_words(vectors.instruction.mnemonic, placed.strip())}", vectors


def trace_sets(path: Path) -> list[VectorSet]:
    """Return every matrix instruction that a trace executes as a case, a set for each form and place of A."""
    groups: dict[Any, list[tuple[Inputs, Any]]] = {}
    for event in run_trace(read_trace(path), engine=ENGINE).events:
        for _, inputs, d in event.executions():
            key = event.instruction, inputs.a_descriptor is None, "c" in inputs.registers
            groups.setdefault(key, []).append((inputs, d))
    return [_set_of(form, cases, f"trace {path.name}") for (form, *_), cases in groups.items()]


def _set_of(form: Instruction, cases: list[tuple[Inputs, Any]], title: str) -> VectorSet:
    first, _ = cases[0]
    columns = [_immediates(form, inputs) for inputs, _ in cases]
    descriptors = {"a_desc": "a_descriptor", "b_desc": "b_descriptor"}
    return VectorSet(
        instruction=form,
        registers={name: np.stack([case.registers[name] for case, _ in cases]) for name in first.registers},
        d=np.stack([d for _, d in cases]),
        immediates={name: _column([column[name] for column in columns]) for name in columns[0]},
        descriptors={
            name: np.array([getattr(case, attribute) for case, _ in cases], np.uint64)
            for name, attribute in descriptors.items()
            if getattr(first, attribute) is not None
        },
        shared=None if first.shared is None else _used([case.shared for case, _ in cases]),
        provenance={"kind": "model", "version": warpsim.__version__},
        seed=None,
        title=title,
    )


def _immediates(form: Instruction, inputs: Inputs) -> dict[str, int]:
    scales = inputs.scale_selectors
    every: Mapping[str, int] = {
        "selector": inputs.selector,
        "byte_id_a": scales.byte_id_a,
        "thread_id_a": scales.thread_id_a,
        "byte_id_b": scales.byte_id_b,
        "thread_id_b": scales.thread_id_b,
        "scale_d": int(inputs.scale_d),
        "imm_scale_a": -1 if inputs.negate[0] else 1,
        "imm_scale_b": -1 if inputs.negate[1] else 1,
        "imm_trans_a": int(inputs.transposed[0]),
        "imm_trans_b": int(inputs.transposed[1]),
    }
    return {name: every[name] for name in immediates_of(form)}


def _column(values: list[int]) -> Any:
    return np.array(values, np.int8) if len(set(values)) > 1 else values[0]


def _used(memories: list[Any]) -> Any:
    """Return the memories up to the last byte that is not zero in any of them, at least a kilobyte."""
    stacked = np.stack(memories)
    used = np.flatnonzero(stacked.any(axis=0))
    end = max(int(used[-1]) + 1 if used.size else 0, 1024)
    return np.ascontiguousarray(stacked[:, : min(-(-end // 1024) * 1024, stacked.shape[1])])
