"""Every deliberate fault in the numerics is caught by the corner vectors, and what is no fault is not."""

from __future__ import annotations

import pytest

from tools.mutants.faults import FAULTS, Fault
from tools.mutants.trial import mutated, try_fault


def test_there_are_enough_faults_and_each_has_its_name():
    assert len(FAULTS) >= 30
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_corner_vectors_catch(fault):
    assert try_fault(fault).caught


def test_what_is_no_fault_is_not_caught():
    """The same engine unchanged gives the same D: it is the fault that is caught, and nothing else."""
    form, target = FAULTS[0].form, FAULTS[0].target
    same = Fault(
        name="none",
        form=form,
        target=target,
        old="    terms: tuple[Number, ...]\n",
        new="    terms: tuple[Number, ...]\n",
    )
    assert not try_fault(same, chunks=1).caught
    assert not try_fault(Fault(name="none", form=form, target=target, numbers={"length": 8})).caught


def test_a_fault_has_to_change_one_place():
    with pytest.raises(ValueError, match="occurs 0 times"):
        mutated(Fault(name="nowhere", form="", target="", old="no such line"))
