"""One execution whose registers are as a kernel takes them: the same D as of a batch, the same errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpsim
from warpsim.base.errors import OperandError, UndefinedBehavior, WarpsimError
from warpsim.sums.execution import fused_registers

TARGETS = ("sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a")


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each call that was plain had a result."""
    found, straight = list[bool](), fused_registers.straight

    def noting(*given: Any) -> Any:
        d = straight(*given)
        found.append(d is not None)
        return d

    monkeypatch.setattr(fused_registers, "straight", noting)
    return found


def registers_of(form: Any, rng: np.random.Generator) -> dict[str, Any]:
    """Any bits, and legal metadata."""
    given = {
        name: rng.integers(0, 1 << 32, (32, count), np.uint64).astype(f"u{form.register_bits // 8}")
        for name, count in form.registers.items()
        if name in ("a", "b", "c")
    }
    if form.sparse:
        given["e"] = np.full((32, 1), 0x44444444 if form.a.name != "tf32" else 0xEEEEEEEE, np.uint32)
    return given


@pytest.mark.parametrize("target", TARGETS)
def test_one_execution_is_one_of_a_batch(target: str, plain: list[bool]) -> None:
    rng = np.random.default_rng(int(target[3:5]))
    forms = [form for form in warpsim.instructions(target) if form.lanes == 32 and form.descriptor is None]
    forms = [form for form in forms if not form.kind.startswith("mx")]
    for form in forms[:: max(len(forms) // 40, 1)]:
        given = registers_of(form, rng)
        try:
            expected = warpsim.execute(form, **{name: words[None] for name, words in given.items()})
        except WarpsimError as error:
            with pytest.raises(type(error)):
                warpsim.execute(form, **given)
            continue
        before = {name: words.copy() for name, words in given.items()}
        found = warpsim.execute(form, **given)
        assert found.dtype == expected.dtype
        assert found.tobytes() == expected.tobytes()
        assert all(np.array_equal(before[name], given[name]) for name in given)
    assert any(plain)


SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"


@pytest.fixture
def sparse() -> tuple[Any, dict[str, Any]]:
    form = warpsim.decode(SPARSE, target="sm_90a")
    return form, registers_of(form, np.random.default_rng(1))


@pytest.mark.parametrize(
    "changed",
    [
        {"a": np.zeros((32, 3), np.uint32)},
        {"a": None},
        {"e": None},
        {"scale_a": np.zeros((32, 1), np.uint32)},
        {"scale_b": np.zeros((32, 1), np.uint32)},
        {"shared": np.zeros(64, np.uint8)},
        {"b_desc": np.zeros(4, np.uint64)},
        {"selector": 7},
        {"selector": True, "a": None},
        {"byte_id_a": 1},
        {"byte_id_a": np.zeros(3)},
        {"scale_d": 0},
        {"enable_input_d": 0},
        {"zero_column_mask": 1},
        {"disable_output_lane": [0] * 4},
        {"threads": 0},
        {"engine": "none"},
        {"undefined": "none"},
        {"target": "sm_999"},
        {"idesc": 3},
    ],
    ids=lambda changed: "-".join(changed),
)
def test_what_is_wrong_is_said_as_of_a_batch(
    changed: dict[str, Any], sparse: tuple[Any, dict[str, Any]]
) -> None:
    form, given = sparse

    def said(batch: bool) -> tuple[str, str] | bytes:
        arguments = given | changed
        if batch:
            arguments |= {name: arguments[name][None] for name in "abce" if arguments[name] is not None}
        try:
            return warpsim.execute(form, **arguments).tobytes()
        except WarpsimError as error:
            return type(error).__name__, error.message

    one, batch = said(False), said(True)
    assert type(one) is type(batch)
    assert one == batch or (isinstance(one, tuple) and one[0] == batch[0])


def test_arrays_of_other_layouts(sparse: tuple[Any, dict[str, Any]], plain: list[bool]) -> None:
    """What is read-only, or of another byte order or type, is converted or refused; strides do not matter."""
    form, given = sparse
    expected = warpsim.execute(form, **given).tobytes()
    strided = np.repeat(given["a"], 2, axis=1)[:, ::2]
    assert warpsim.execute(form, **given | {"a": strided}).tobytes() == expected
    assert warpsim.execute(form, **given | {"a": np.asfortranarray(given["a"])}).tobytes() == expected
    assert plain == [True] * 3
    locked = given["b"].copy()
    locked.flags.writeable = False
    assert warpsim.execute(form, **given | {"b": locked}).tobytes() == expected
    assert warpsim.execute(form, **given | {"e": given["e"][:, 0]}).tobytes() == expected
    assert plain == [True] * 3 + [False] * 2
    with pytest.raises(OperandError):
        warpsim.execute(form, **given | {"a": given["a"].astype(np.float32)})


def test_metadata_without_a_meaning(sparse: tuple[Any, dict[str, Any]]) -> None:
    form, given = sparse
    given["e"][0] = 0
    with pytest.raises(UndefinedBehavior):
        warpsim.execute(form, **given)
    found = warpsim.execute(form, **given, undefined="fallback")
    batch = {name: words[None] for name, words in given.items()}
    assert found.tobytes() == warpsim.execute(form, **batch, undefined="fallback").tobytes()
