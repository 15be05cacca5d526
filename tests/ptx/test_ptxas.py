"""warpsim accepts what ptxas accepts, and nothing else, but for the differences of differences.py."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.helpers import ptxas, ptxas_record
from tests.helpers.agreement import Report, compare, forms_of, rejection, sample_mnemonics, sample_operands
from tests.helpers.differences import LENIENCES, STRICTNESSES, Lenience, Strictness
from tests.helpers.families import sample, usual
from tests.helpers.mutations import DECLARATIONS, legal_operands, spelled
from warpsim import Instruction
from warpsim.isa.architectures import ARCHITECTURES
from warpsim.ptx.decode import parse_version

MISSING = ptxas.missing_for_matrices()
pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING or "ptxas is there")

SEED = 13
TARGETS = tuple(target for target in ARCHITECTURES if MISSING or ptxas.knows(target))
# One target of every set of rules: what is legal and which forms are emulated.
DISTINCT = ("sm_70", "sm_75", "sm_80", "sm_89", "sm_90", "sm_100a", "sm_120a", "sm_121f")
VERSIONS = (
    "6.0",
    "6.4",
    "6.5",
    "7.0",
    "7.1",
    "7.3",
    "7.4",
    "7.8",
    "8.0",
    "8.3",
    "8.4",
    "8.5",
    "8.6",
    "8.7",
    "8.8",
    "9.0",
    "9.1",
    "9.2",
    "9.3",
    "9.4",
    "9.5",
)


def check(report: Report) -> None:
    listed = "\n".join(map(str, report.unexplained[:20]))
    assert not report.unexplained, f"{len(report.unexplained)} of {report.cases} statements:\n{listed}"
    assert 0 < report.legal < report.cases  # a sample without both verdicts shows nothing


@pytest.mark.parametrize("target", TARGETS)
def test_every_form_assembles(target: str) -> None:
    texts = [spelled(form.mnemonic, legal_operands(form)) for form in forms_of(target)]
    verdicts = ptxas.verdicts(texts, target=target, declarations=DECLARATIONS)
    assert [(text, error) for text, error in zip(texts, verdicts, strict=True) if error] == []


@pytest.mark.skipif(ptxas.oldest() is None, reason="ptxas 12.9 is not installed")
def test_the_forms_of_volta_assemble_for_volta() -> None:
    """ptxas 12.9 is the last that does: later ones judge its text, and make code for sm_75."""
    texts = [spelled(form.mnemonic, legal_operands(form)) for form in forms_of("sm_70")]
    judge = {"path": ptxas.oldest(), "target": "sm_70", "declarations": DECLARATIONS}
    assert ptxas.verdicts(texts, **judge) == [None] * len(texts)
    assert None not in ptxas.verdicts([text.replace("m8n8k4", "m16n8k8") for text in texts], **judge)


@pytest.mark.parametrize("target", DISTINCT)
def test_mutated_mnemonics(target: str) -> None:
    check(compare(sample_mnemonics(target, usual(3, 12), SEED), target, guessed=True))


@pytest.mark.parametrize("target", DISTINCT)
def test_mutated_operands(target: str) -> None:
    check(compare(sample_operands(target, usual(2, 4), SEED), target))


# --- selectors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["sm_89", "sm_100a", "sm_120a"])
def test_every_selector(target: str) -> None:
    sparse = [form for form in forms_of(target) if form.sparse]
    texts = [
        spelled(form.mnemonic, (*operands[:5], str(selector), *operands[6:]))
        for form in sparse
        for operands in [legal_operands(form)]
        for selector in (-1, 0, 1, 2, 3, 4, 8)
    ]
    check(compare(texts, target))


# --- versions ----------------------------------------------------------------------------------------


def representatives(target: str) -> list[Instruction]:
    """One form of each set of types, shapes and kinds; what they leave out does not touch operands."""
    chosen: dict[tuple[object, ...], Instruction] = {}
    for form in forms_of(target):
        key = (form.variant, str(form.shape), form.kind, form.operation, str(form.c), form.rounding)
        chosen.setdefault(key, form)
    return [form for form in chosen.values() if not form.rounding]


@pytest.mark.parametrize("target", sample(TARGETS, 3))
def test_versions(target: str) -> None:
    random = Random(f"versions {SEED} {target}")
    forms = representatives(target)
    since = "{}.{}".format(*ptxas.first(target))
    early = [version for version in VERSIONS if parse_version(version) < ARCHITECTURES[target].since]
    known = [version for version in VERSIONS if ptxas.first(target) <= parse_version(version) <= ptxas.last()]
    for version in {since, known[-1], *early[-1:], *random.sample(known, min(2, len(known)))}:
        sample = random.sample(forms, min(len(forms), 25))
        texts = [spelled(form.mnemonic, legal_operands(form)) for form in sample]
        theirs = ptxas.verdicts(
            texts,
            target=target,
            declarations=".reg .b32 r<40>; .reg .f32 f<40>; .reg .f64 g<40>;",
            version=version,
        )
        ours = [rejection(text, target, version=version) for text in texts]
        differing = [
            (version, text, mine, its)
            for text, mine, its in zip(texts, ours, theirs, strict=True)
            if (mine is None) != (its is None)
        ]
        assert differing == []


# --- the table of differences -------------------------------------------------------------------------


@pytest.mark.parametrize("difference", LENIENCES, ids=lambda difference: str(difference.name))
def test_ptxas_alone_accepts(difference: Lenience) -> None:
    if ptxas.release() in difference.corrected:
        assert not compare([difference.example], difference.target).disagreements
        return
    (found,) = compare([difference.example], difference.target).disagreements
    assert found.accepted_by == "ptxas"
    assert found.explanation == (difference.name,)


@pytest.mark.parametrize("difference", STRICTNESSES, ids=lambda difference: str(difference.name))
def test_warpsim_alone_accepts(difference: Strictness) -> None:
    (found,) = compare([difference.example], difference.target).disagreements
    assert found.accepted_by == "warpsim"
    assert found.explanation == (difference.name,)


def test_verdicts_are_asked_once_and_compared_when_all_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given = ["first", None, "second; third", None]
    asked: list[str] = []

    def ask() -> list[str | None]:
        asked.append("")
        return given

    monkeypatch.setattr(ptxas_record, "RECORD", tmp_path / "record.jsonl")
    monkeypatch.setattr(ptxas_record, "_record", ptxas_record._read)
    monkeypatch.setattr(ptxas_record, "WHOLE", False)
    assert ptxas_record.recorded(["text"], ask) == given
    monkeypatch.setenv(ptxas_record.ADDING, "1")
    assert ptxas_record.recorded(["text"], ask) == given
    assert len(asked) == 2
    assert ptxas_record.recorded(["text"], ask) == given
    assert ptxas_record.recorded(["text", "more"], ask) == given
    assert len(asked) == 3
    monkeypatch.setattr(ptxas_record, "WHOLE", True)
    assert ptxas_record.recorded(["text"], ask) == given
    given = given[::-1]
    with pytest.raises(AssertionError, match="differs from ptxas"):
        ptxas_record.recorded(["text"], ask)
