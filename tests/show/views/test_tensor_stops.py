"""``--trace-mma``, ``--break`` and the report of a kernel with tcgen05.mma, as a user asks for them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.described_products import Product, mnemonic
from warpsim.isa.families.tcgen05_operands import behind_descriptor
from warpsim.isa.operand_places.placements import Inputs
from warpsim.observe.stops.debugger import Debugger, WarpStop
from warpsim.show.cli import main
from warpsim.show.views.stops import stop_document, stop_lines

KERNEL = Path("traces/kernels/tensor_pipelines.ptx").resolve()
LINE = 323  # of the first tcgen05.mma of tensor_stored


def ask(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        main([*arguments])
    return int(end.value.code or 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with A and the columns of B, and the recording of a launch."""
    found, rng = tmp_path_factory.mktemp("tensor"), np.random.default_rng(0)
    np.save(found / "A.npy", rng.standard_normal((128, 64)).astype(np.float16))
    np.save(found / "Bt.npy", rng.standard_normal((64, 64)).astype(np.float16))
    assert ask(*launch(found), "--trace-mma", str(found / "mma.npz")) == 0
    return found


def launch(folder: Path) -> list[str]:
    arrays = [f"--arg={folder / name}.npy" for name in ("A", "Bt")]
    sizes = ["--block", "160", "--shared", "50000", *arrays, "--arg=zeros:f32:128x64", "--arg=i32:64"]
    return ["launch", str(KERNEL), "--entry", "tensor_stored", *sizes]


def test_a_recording_is_verified_diffed_and_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(folder / "mma.npz")
    assert ask("verify", file) == 0
    assert "32,768 words as expected" in capsys.readouterr().out
    assert ask("diff", file) == 0
    assert ask("diff", file, file) == 0
    assert "equal, bit for bit: 4 matrix instructions" in capsys.readouterr().out
    assert ask("explain", file, "--event", "3", "--element", "0,0") == 0
    assert ask("view", file, "-o", str(folder / "page.html")) == 0
    assert "4 instructions" in capsys.readouterr().out


def test_a_break_shows_d_with_lane_and_column(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(*launch(folder), "--break", str(LINE)) == 0
    out = capsys.readouterr().out
    assert f":{LINE}: CTA (0, 0, 0), warp 4, step 0: tcgen05.mma.cta_group::1.kind::f16" in out
    assert "A (128 x 16, f16) in shared memory, a-desc 0x4000404000010040:" in out
    assert "D (128 x 64, f32) in [%r71], tensor memory from lane 0, column 0:" in out


def test_a_break_shows_metadata_scales_masks_and_lanes() -> None:
    stops: list[WarpStop] = []
    product = Product(mnemonic("mxf4", vector="block32", sp=True), n=16)
    run = product.run()
    line = run.report(record=True).events[0].line
    run.report(observers=[Debugger(show=stops.append, breaks=[line])])
    (stop,) = stops
    lines = list(stop_lines(stop))
    assert product.mnemonic in lines[0]
    for words in (
        "metadata (selector 0, indices) in [r2], tensor memory from lane 0, column 320:",
        "scales of A (ue8m0) in [r6], tensor memory from lane 0, column 330:",
        "scales of B (ue8m0) in [r7], tensor memory from lane 0, column 340:",
        "C (128 x 16, f32) in [r0], tensor memory from lane 0, column 0:",
    ):
        assert f"  {words}" in lines
    (own,) = (entry for entry in stop_lines(stop, lane=5) if entry.split()[0] == "C331")
    assert own.split()[1].startswith("0x")
    document = stop_document(stop)["operands"]
    assert document["scale_a-address"] == f"{330:#010x}"
    assert len(document["d"]) == 128
    json.dumps(document)


@pytest.mark.parametrize(
    ("kind", "fields"), [("f8f6f4", {"a_type": 3, "b_type": 5}), ("mxf4", {}), ("tf32", {})]
)
def test_addresses_of_elements_are_those_of_their_bytes(kind: str, fields: dict[str, int]) -> None:
    """Each element is changed at the byte that is said to hold it: only elements of that byte change."""
    vector = "block32" if kind == "mxf4" else ""
    product = Product(mnemonic(kind, vector=vector), **fields)
    run, form = product.run(), product.instruction
    given = {"a_descriptor": np.array(run.a, np.uint64), "b_descriptor": np.array(run.b, np.uint64)}
    shared = run.image[0]
    memory = np.concatenate([np.zeros(1024, np.uint8), shared])[: 1 << 16]
    for operand in "ab":
        tile = behind_descriptor(form, operand)
        inputs = Inputs(registers={}, shared=memory, **given)
        codes = tile.gather(inputs, form.product)
        addresses = tile.element_addresses(int(given[f"{operand}_descriptor"]), inputs, form.product)
        assert addresses.shape == codes.shape
        for row, column in ((0, 0), (5, 3), (7, 6), (codes.shape[0] - 1, codes.shape[1] - 1)):
            other = memory.copy()
            other[addresses[row, column]] ^= 0xFF
            changed = tile.gather(Inputs(registers={}, shared=other, **given), form.product) != codes
            assert changed[row, column]
            assert (addresses[changed] >= addresses[row, column] - 1).all()
            assert changed.sum() <= 3
