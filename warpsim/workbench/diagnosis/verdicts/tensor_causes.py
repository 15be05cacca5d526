"""Operands of tcgen05.mma that are wrong: the launch again with others in their place.

Descriptors follow from where the tiles lie, enable-input-d from which tiles a sum has had before; signs,
selectors, factor ids and addresses are tried. A cause is claimed where every output is right with it. Knows
origins and words; does not know what a kernel stores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ....base.errors import WarpsimError
from ....isa.descriptors.tensor_descriptor import SWIZZLES, TensorDescriptor
from ....machine.opcodes.tensor.tensor_products import Given
from ....ptx.statements import InstructionStatement
from ..descriptors.descriptor_views import DescriptorView, Rewrite, differences, of_words, remedy
from ..origins.element_origins import Origins
from ..origins.packing_checks import PackingFinding
from ..origins.placed_tiles import Fit
from .launch_causes import Cause, number_of
from .tried_repairs import Change, Issue, Place, Reissued, Repair, Trial

_EVIDENCE = (
    "the launch was executed with this in place of what it gives tcgen05.mma: every output is as expected"
)
_OPERANDS = {"d": 0, "a": 1, "b": 2, "idesc": 3}  # places in the statement
_N_LEAST, _SIZES = 8, {"n": 256, "m": 256}  # of a product: columns at least, and rows and columns at most
_COLUMNS = (1, -1, 2, -2, 4, -4)  # by which an address of factors or metadata may be off
_WORDS_COST = 3.0  # of changes of a word that are tried in launches that end there


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """What may be wrong: a sentence, what to do, the operand, and the operands as they would be right."""

    kind: str
    operand: str
    message: str
    fix: str
    change: Change

    def repair(self, statement: InstructionStatement) -> Repair:
        """Return the launch with it, and the cause at a statement."""
        place = _OPERANDS.get(self.operand)
        name = f"operand {self.operand} of the matrix instruction: " if self.operand in ("a", "b") else ""
        cause = Cause(
            kind=self.kind,
            message=f"{name}{self.message}",
            location=statement.location() if place is None else statement.operand_location(place),
            evidence=_EVIDENCE,
            operand="" if self.operand == "idesc" else self.operand,
            fix=self.fix,
        )
        return Repair(cause=cause, hook=Reissued(_tolerant(self.change)))


def tensor_causes(trial: Trial, origins: Origins | None = None) -> list[Cause]:
    """Return what of the operands of tcgen05.mma makes every output right when it is another.

    ``origins`` is None where a launch ends with an error at its first tcgen05.mma.
    """
    noted = Reissued()
    trial.wrong(noted)
    if not noted.issues:
        return []
    candidates = _candidates(trial, noted.issues, origins)
    statement = trial.launch.kernel._entry.code[noted.issues[0].pc].statement
    return trial.first("operands of tcgen05.mma", (each.repair(statement) for each in candidates))


def _tolerant(change: Change) -> Change:
    """Return a change that leaves operands as they are where it makes none."""

    def changed(issue: Issue) -> Given:
        try:
            return change(issue)
        except WarpsimError:
            return issue.given

    return changed


def _candidates(trial: Trial, issues: Sequence[Issue], origins: Origins | None) -> Iterator[Candidate]:
    first = issues[0]
    if origins is None:
        yield from _of_words(first)
        return
    yield from _of_fits(trial, origins)
    if any(finding.operand in ("a", "b") for finding in origins.findings):
        return
    sums = _of_sums(trial, issues, origins)
    suspects = {finding.operand for finding in origins.findings}
    if first.form.sparse:
        yield from _of_selectors(first)
        yield from _of_addresses(first, ("metadata",))
    if first.form.factors:
        yield from _of_factors(issues)
        yield from _of_addresses(first, ("scale_a", "scale_b"))
    if not suspects:
        yield from sums
        yield from _of_signs(first)
        yield from _of_types(first)
        # N and M twice and four times as large, and as small
        own = first.descriptor
        for attribute, most in _SIZES.items():
            given = getattr(own, attribute)
            for size in (2 * given, given // 2, 4 * given, given // 4):
                if _N_LEAST <= size <= most:
                    text = f"{attribute.upper()} is {given} where {size} fits"
                    yield _of_fields(first, {attribute: size}, text)


# --- shared-memory descriptors -----------------------------------------------------------------------


def _of_fits(trial: Trial, origins: Origins) -> Iterator[Candidate]:
    """Yield the descriptors that read the tiles where they lie; those of A and B together at last."""
    found = [finding for finding in origins.findings if finding.fit]
    roles = [role for role in "ab" if any(finding.operand == role for finding in found)]
    for role in (*roles, *(["ab"] if len(roles) > 1 else [])):
        own = [finding for finding in found if finding.operand in role]
        fits = {(number_of(trial.launch, finding.location), finding.operand): finding.fit for finding in own}
        yield Candidate(
            kind="descriptor",
            operand=role[0],
            message="; ".join(dict.fromkeys(finding.message for finding in _firsts(own))),
            fix="; ".join(dict.fromkeys(_fix(finding.fit[0]) for finding in own)),
            change=_placed(fits),
        )


def _firsts(findings: Sequence[PackingFinding]) -> list[PackingFinding]:
    return [*{finding.operand: finding for finding in reversed(findings)}.values()][::-1]


def _fix(fit: Fit) -> str:
    if fit.major != fit.given_major:
        bit = 15 if fit.role == "a" else 16
        return f"{'set' if fit.major == 'MN' else 'clear'} bit {bit} of the instruction descriptor"
    return remedy(*fit.views)


def _placed(fits: Mapping[tuple[int, str], Sequence[Fit]]) -> Change:
    """Return the change that gives each statement the descriptors that fit, those of its executions in turn.

    A statement whose tile was in order by chance gets the fields of the others.
    """

    common = {role: replace(own[0], fits=_unmoved(own[0])) for (_, role), own in fits.items()}

    def changed(issue: Issue) -> Given:
        given = issue.given
        for role, fit in common.items():
            own = fits.get((issue.pc, role))
            chosen = fit if own is None else own[issue.place[-1] % len(own)]
            given = _with_fit(replace(issue, given=given), chosen)
        return given

    return changed


def _set(given: Given, name: str, value: int) -> Given:
    changed: dict[str, Any] = {name: value}
    return replace(given, **changed)


def _unmoved(fit: Fit) -> TensorDescriptor:
    return replace(fit.fits, start_address=fit.given.start_address)


def _with_fit(issue: Issue, fit: Fit) -> Given:
    word = TensorDescriptor.decode(getattr(issue.given, fit.role))
    right = replace(fit.fits, start_address=word.start_address + fit.moved)
    given = _set(issue.given, fit.role, right.encode())
    if fit.major == fit.given_major:
        return given
    return replace(issue, given=given).with_fields(**{f"transpose_{fit.role}": int(fit.major == "MN")})


def _of_words(first: Issue) -> Iterator[Candidate]:
    """Yield other fields of the first descriptor of A or B, for launches that end there."""
    for role in "ba":
        if role == "a" and first.given.a_in_memory:
            continue
        try:
            own = TensorDescriptor.decode(getattr(first.given, role))
        except WarpsimError:
            continue
        given = DescriptorView.of(own)
        for rewrite, view in of_words(given, tuple(SWIZZLES.values()), _WORDS_COST):
            yield Candidate(
                kind="descriptor",
                operand=role,
                message="; ".join(differences(given, view, of=" of the descriptor")),
                fix=remedy(given, view),
                change=_rewritten(role, rewrite),
            )


def _rewritten(role: str, rewrite: Rewrite) -> Change:
    def changed(issue: Issue) -> Given:
        word = TensorDescriptor.decode(getattr(issue.given, role))
        return _set(issue.given, role, rewrite.change(DescriptorView.of(word)).into(word).encode())

    return changed


# --- enable-input-d ----------------------------------------------------------------------------------


def _of_sums(trial: Trial, issues: Sequence[Issue], origins: Origins) -> Iterator[Candidate]:
    """Yield enable-input-d that is false for the first tiles of each sum and true for all others."""
    begins = _beginnings(trial, origins)
    differing = [
        issue
        for issue in issues
        if begins.get((issue.pc, issue.place), not issue.given.enabled) is issue.given.enabled
    ]
    if not differing:
        return
    first = differing[0]
    many = f"in {len(differing)} of {len(issues)} executions"
    step = f"CTA {first.place[:3]}, execution {first.turn} of the warp"
    if first.given.enabled:
        text = f"enable-input-d is true where a sum begins: what D held before is added {many} ({step})"
    else:
        text = f"enable-input-d is false within a sum: what was accumulated before is lost {many} ({step})"
    yield Candidate(
        kind="accumulate",
        operand="d",
        message=text,
        fix="let enable-input-d be false for the first k step of a tile of D, and true for all others",
        change=lambda issue: replace(
            issue.given, enabled=not begins.get((issue.pc, issue.place), not issue.given.enabled)
        ),
    )


def _beginnings(trial: Trial, origins: Origins) -> dict[tuple[int, Place], bool]:
    order = []
    for given in origins.statements:
        if not {"a", "b"} <= given.keys() or given["a"].tiles is None or given["b"].tiles is None:
            continue
        a, b, operand = given["a"].tiles, given["b"].tiles, given["a"].operand
        pc = number_of(trial.launch, operand.given.location)
        for event, place in enumerate(map(tuple, operand.places.tolist())):
            tile = (*place[:4], int(a.outer[event]), int(b.outer[event]))
            order.append((int(operand.given.times[event]), pc, place, tile))
    found, seen = dict[tuple[int, Place], bool](), set[Place]()
    for _, pc, place, tile in sorted(order):
        found[pc, place] = tile not in seen
        seen.add(tile)
    return found


# --- the instruction descriptor ----------------------------------------------------------------------


def _of_signs(first: Issue) -> Iterator[Candidate]:
    sides = [("a", 13), ("b", 14)]
    for role, bit in sorted(sides, key=lambda side: -getattr(first.descriptor, f"negate_{side[0]}", 0)):
        if first.has(f"negate_{role}"):
            own = getattr(first.descriptor, f"negate_{role}")
            yield Candidate(
                kind="sign",
                operand=role,
                message=f"negate {role.upper()} (bit {bit} of the instruction descriptor) is {own}: every "
                f"sign of {role.upper()} is {'flipped' if own else 'kept'}, where the other fits",
                fix=f"{'clear' if own else 'set'} bit {bit} of the instruction descriptor",
                change=lambda issue, role=role, own=own: issue.with_fields(**{f"negate_{role}": 1 - own}),  # type: ignore[misc]
            )


def _of_types(first: Issue) -> Iterator[Candidate]:
    kind, own = first.form.kind, first.descriptor
    tables = {"a_type": kind.multiplicands, "b_type": kind.multiplicands, "d_type": kind.results}
    for attributes in (("a_type",), ("b_type",), ("a_type", "b_type"), ("d_type",)):
        table = tables[attributes[0]]
        for code, name in table.items():
            if any(getattr(own, each) == code for each in attributes) or not table:
                continue
            fields = dict.fromkeys(attributes, code)
            given = " and ".join(str(table.get(getattr(own, each))) for each in attributes)
            what = " and of ".join(each[0].upper() for each in attributes)
            yield _of_fields(first, fields, f"the type of {what} is {given} where {name} fits")


def _of_fields(first: Issue, fields: Mapping[str, int], text: str) -> Candidate:
    own = first.descriptor
    places = {own.field(attribute) for attribute in fields}
    puts = [f"{fields[each.attribute] // each.unit} into bits {each.span}" for each in sorted(places)]
    return Candidate(
        kind="instruction descriptor",
        operand="idesc",
        message=f"{text}, by the instruction descriptor {first.given.word:#010x}",
        fix=f"put {' and '.join(puts)} of the instruction descriptor",
        change=lambda issue: issue.with_fields(**fields),
    )


def _of_selectors(first: Issue) -> Iterator[Candidate]:
    """Yield other sparsity selectors: the same for all, the other of two, or in turn."""
    if not first.has("selector"):
        return
    own = first.descriptor.selector
    changes: list[tuple[str, Change]] = [
        (f"with selector {value} the result matches", _selector(lambda issue, value=value: value))
        for value in first.form.kind.selectors
    ]
    changes += [
        (
            "with selectors 0 and 1 in turn the result matches: selector 1 in every second k step",
            _selector(lambda issue: issue.turn % 2),
        ),
        (
            "with the other of selectors 0 and 1 the result matches: selector 1 where it is 0",
            _selector(lambda issue: issue.descriptor.selector ^ 1),
        ),
    ]
    for text, change in changes:
        yield Candidate(
            kind="selector",
            operand="e",
            message=f"the sparsity selector of the instruction descriptor is {own} at first: {text}",
            fix="put the selector of the k step into bits 1..0 of the instruction descriptor",
            change=change,
        )


def _selector(value: object) -> Change:
    return lambda issue: issue.with_fields(selector=value(issue))  # type: ignore[operator]


def _of_factors(issues: Sequence[Issue]) -> Iterator[Candidate]:
    """Yield other ids of scale factors, and the addresses of SFA and SFB exchanged."""
    first = issues[0]
    yield Candidate(
        kind="scales",
        operand="scale_a",
        message="the addresses of the scales of A and of the scales of B are exchanged: SFA is read where "
        "SFB lies",
        fix="exchange the two addresses in tensor memory",
        change=lambda issue: replace(issue.given, scale_a=issue.given.scale_b, scale_b=issue.given.scale_a),
    )
    factors = first.form.factors
    for side in "ab":
        name = f"scale_{side}_id"
        for by in range(1, 4 // factors):
            yield _of_id(side, name, issues, _id(name, lambda issue, own, by=by: (own + by * factors) % 4))
        yield _of_id(side, name, issues, _id(name, lambda issue, own: issue.turn * factors % 4))


def _id(name: str, value: object) -> Change:
    def changed(issue: Issue) -> Given:
        own = getattr(issue.descriptor, name)
        return issue.with_fields(**{name: value(issue, own)})  # type: ignore[operator]

    return changed


def _of_id(side: str, name: str, issues: Sequence[Issue], change: Change) -> Candidate:
    text = ""
    for issue in issues:
        own = getattr(issue.descriptor, name)
        right = getattr(replace(issue, given=_tolerant(change)(issue)).descriptor, name)
        if own != right:
            text = (
                f"SF{side.upper()} id of the instruction descriptor is {own} where {right} fits: "
                f"SF{side.upper()} of k block {own} is used in block {right} (k step {issue.turn})"
            )
            break
    bits = "30..29" if side == "a" else "5..4"
    return Candidate(
        kind="scales",
        operand=f"scale_{side}",
        message=text or "the id of scale factors is another",
        fix=f"advance the id in bits {bits} of the instruction descriptor with the k step",
        change=change,
    )


# --- addresses in tensor memory ----------------------------------------------------------------------

_WHAT = {"metadata": "metadata", "scale_a": "scales of A (SFA)", "scale_b": "scales of B (SFB)"}
_ROLES = {"metadata": "e", "scale_a": "scale_a", "scale_b": "scale_b"}


def _of_addresses(first: Issue, names: Sequence[str]) -> Iterator[Candidate]:
    """Yield addresses of metadata or factors some columns further on or back."""
    for name in names:
        own = getattr(first.given, name) & 0xFFFF
        for by in _COLUMNS:
            yield Candidate(
                kind="columns",
                operand=_ROLES[name],
                message=f"the {_WHAT[name]} are read from column {own} of tensor memory on at first, where "
                f"column {own + by} fits",
                fix=f"{'add' if by > 0 else 'subtract'} {abs(by)} column{'s'[: abs(by) != 1]}",
                change=lambda issue, name=name, by=by: _set(  # type: ignore[misc]
                    issue.given, name, getattr(issue.given, name) + by
                ),
            )
