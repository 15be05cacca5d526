"""Variables of a module: set, read, and seen by launches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.exceptions import UsageError

import warpsim
from tests.helpers.command_runner import CliRunner
from warpsim.show.cli import cli

TEXT = """\
.version 8.0
.target sm_80
.address_size 64
.const .align 4 .b8 coef[16];
.global .f32 bias = 0f3F800000;
.global .align 4 .u32 counter;
.global .s32 table[2][3] = {{1, 2, 3}, {4, 5, 6}};
.global .u32 _ZN2ns5scaleE = 7;
.visible .entry k(.param .u64 out)
{
  .reg .b64 %rd<6>; .reg .b32 %r<8>; .reg .f32 %f<4>;
  ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; mad.wide.u32 %rd0, %r0, 4, %rd0;
  mov.u64 %rd1, coef; mad.wide.u32 %rd1, %r0, 4, %rd1; ld.const.f32 %f0, [%rd1];
  ld.global.f32 %f1, [bias]; add.f32 %f0, %f0, %f1; st.global.f32 [%rd0], %f0;
  atom.global.add.u32 %r1, [counter], 1; ret;
}
"""
COEFFICIENTS = np.array([1, 2, 4, 8], np.float32)


@pytest.fixture
def module() -> warpsim.LoadedModule:
    return warpsim.load(TEXT)


def launched(module: warpsim.LoadedModule, **options: object) -> list[float]:
    out = np.zeros(4, np.float32)
    module["k"](1, 4, [out], checks="warn", **options)
    return out.tolist()


def test_a_launch_sees_what_was_set(module: warpsim.LoadedModule) -> None:
    module.symbol("coef").set(COEFFICIENTS)
    assert launched(module) == [2, 3, 5, 9]
    module.symbol("bias").set(np.float32(-1))
    assert launched(module) == [0, 1, 3, 7]
    assert module.symbol("counter").get() == 8  # of both launches


def test_what_a_variable_holds(module: warpsim.LoadedModule) -> None:
    assert module.symbol("bias").get() == np.float32(1)
    table = module.symbol("table")
    assert (table.shape, table.dtype) == ((2, 3), np.int32)
    assert table.get().tolist() == [[1, 2, 3], [4, 5, 6]]
    assert module.symbol("ns::scale").get() == 7
    assert module.symbol("scale").address == module.symbol("_ZN2ns5scaleE").address


def test_an_array_declared_as_bytes_takes_any_type(module: warpsim.LoadedModule) -> None:
    coefficients = module.symbol("coef")
    assert (coefficients.shape, coefficients.dtype) == ((16,), np.uint8)
    coefficients.set(COEFFICIENTS)
    assert coefficients.get().dtype == np.float32
    coefficients.set(np.float32(3), offset=4)
    assert module.symbol("coef").get().view(np.float32).tolist() == [1, 3, 4, 8]


def test_a_device_has_its_own_variables(module: warpsim.LoadedModule) -> None:
    device = warpsim.Device("sm_80")
    device.symbol(module, "coef").set(COEFFICIENTS)
    assert launched(module, device=device) == [2, 3, 5, 9]
    assert launched(module) == [1, 1, 1, 1]
    with pytest.raises(warpsim.OperandError, match="the device is sm_90, but the module is loaded for sm_80"):
        warpsim.Device("sm_90").symbol(module, "coef")


def test_a_variable_that_is_not_there(module: warpsim.LoadedModule) -> None:
    with pytest.raises(warpsim.OperandError) as caught:
        module.symbol("coeff")
    assert str(caught.value) == (
        "no variable 'coeff'; the variables are coef, bias, counter, table, ns::scale"
    )


@pytest.mark.parametrize(
    ("name", "value", "offset", "message"),
    [
        (
            "coef",
            COEFFICIENTS[:3],
            0,
            "coef is uint8 (16,), 16 bytes, but the array is float32 (3,), 12 bytes",
        ),
        ("coef", COEFFICIENTS, 4, "but the array is float32 (4,), 16 bytes from byte 4 on"),
        ("bias", np.float64(1), 0, "bias is float32 (), 4 bytes, but the array is float64 (), 8 bytes"),
        ("bias", np.uint32(1), 0, "bias is float32 (), 4 bytes, but the array is uint32 (), 4 bytes"),
        (
            "table",
            np.zeros((2, 3), np.int64),
            0,
            "is int32 (2, 3), 24 bytes, but the array is int64 (2, 3), 48",
        ),
    ],
)
def test_a_wrong_size_or_type_says_both(
    module: warpsim.LoadedModule, name: str, value: np.ndarray, offset: int, message: str
) -> None:
    before = module.symbol(name).get().tolist()
    with pytest.raises(warpsim.OperandError) as caught:
        module.symbol(name).set(value, offset)
    assert message in str(caught.value)
    assert module.symbol(name).get().tolist() == before


def run(folder: Path, *options: str):
    (folder / "k.ptx").write_text(TEXT)
    np.save(folder / "coef.npy", COEFFICIENTS)
    arguments = ["launch", str(folder / "k.ptx"), "--entry", "k", "--block", "4", "--arg", "zeros:f32:4"]
    return CliRunner().invoke(cli, [*arguments, *options], standalone_mode=False)


def test_symbols_on_the_command_line(tmp_path: Path) -> None:
    options = ["--symbol", f"coef={tmp_path / 'coef.npy'}", "--save-symbol", f"counter={tmp_path / 'n.npy'}"]
    result = run(tmp_path, *options, "--save", f"0={tmp_path / 'out.npy'}")
    assert result.return_value == 0
    assert np.load(tmp_path / "out.npy").tolist() == [2, 3, 5, 9]
    assert np.load(tmp_path / "n.npy") == 4


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--symbol=coef", "--symbol coef: expected NAME=FILE.npy"),
        ("--symbol=none=coef.npy", "no variable 'none'; the variables are coef"),
        ("--symbol=bias={}/coef.npy", "bias is float32 (), 4 bytes, but the array is float32 (4,), 16 bytes"),
        ("--save-symbol=other=x.npy", "--save-symbol other=x.npy: no variable 'other'"),
    ],
)
def test_mistakes_on_the_command_line(tmp_path: Path, option: str, message: str) -> None:
    error = run(tmp_path, option.format(tmp_path)).exception
    assert isinstance(error, UsageError)
    assert message in str(error)


NEVER_SET = "variable without an initial value that was never set"


def test_constants_that_were_never_set_are_a_warning() -> None:
    module = warpsim.load(TEXT)
    out = np.zeros(4, np.float32)
    report = module["k"](1, 4, [out], checks="warn")
    found = [(one.kind, one.severity, one.message.partition(" [")[0]) for one in report.hazards]
    assert found == [
        (
            "uninitialised",
            "warning",
            f"ld.const.f32 reads 4 bytes of coef, a .const {NEVER_SET}",
        ),
        (
            "uninitialised",
            "note",
            f"atom.global.add.u32 reads 4 bytes of counter, a .global {NEVER_SET}",
        ),
    ]
    assert report.hazards[0].fix.startswith('set it before the launch: module.symbol("coef").set(...)')


def test_variables_that_were_set_or_stored_are_no_finding() -> None:
    module = warpsim.load(TEXT)
    module.symbol("coef").set(COEFFICIENTS)
    module.symbol("counter").set(np.uint32(0))
    assert not module["k"](1, 4, [np.zeros(4, np.float32)], checks="warn").hazards


def test_variables_of_the_compiler_are_not_listed() -> None:
    module = warpsim.load(TEXT.replace(".const", ".global .b8 $str[4];\n.const", 1))
    with pytest.raises(warpsim.OperandError) as raised:
        module.symbol("scales")
    assert (
        str(raised.value) == "no variable 'scales'; the variables are coef, bias, counter, table, ns::scale"
    )
    assert module.symbol("$str").shape == (4,)


def test_reads_of_a_variable_that_was_never_set_are_one_finding() -> None:
    again = "ld.const.f32 %f0, [%rd1];\n  ld.const.f32 %f2, [coef+4];"
    kernel = warpsim.load(TEXT.replace("ld.const.f32 %f0, [%rd1];", again))["k"]
    found = [one for one in kernel(1, 4, [np.zeros(4, np.float32)]).hazards if one.severity == "warning"]
    assert [(one.count, one.location.line) for one in found] == [(2, 13)]
    assert "note: 2 statements do this, also line 14\n" in str(found[0])
