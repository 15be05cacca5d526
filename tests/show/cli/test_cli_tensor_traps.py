"""What ``warpsim launch`` says of the nine misuses of tensor memory that ptxas -g makes a kernel trap on."""

# ruff: noqa: E501 - messages stand as they are shown

from __future__ import annotations

from pathlib import Path

import pytest

from warpsim.show.cli import main

KERNEL = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k() .reqntid 128 {
.reg .b32 base, where, v0, v1, r0;
.reg .b64 q0;
.reg .pred p, one;
.shared .b32 address;
.shared .align 1024 .b8 tiles[32768];
mov.u32 r0, %tid.x;
setp.lt.u32 p, r0, 32;
setp.eq.u32 one, r0, 0;
@p tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [address], 64;
bar.sync 0;
ld.shared.b32 base, [address];
and.b32 where, r0, 96;
shl.b32 where, where, 16;
add.u32 where, where, base;
BODY
bar.sync 0;
@p tcgen05.dealloc.cta_group::1.sync.aligned.b32 base, 64;
ret;
}
"""
ALLOC = "@p tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [address], "
DEALLOC = "@p tcgen05.dealloc.cta_group::1.sync.aligned.b32 "
SPARSE = (
    "mov.b64 q0, 0x4000404000010040; mov.b32 r0, 0x08080014; "
    "@one tcgen05.mma.cta_group::1.kind::f16 [base], q0, q0, r0, 0;"
)
TRAPS = {
    "bounds": ("tcgen05.ld.sync.aligned.32x32b.x2.b32 {v0, v1}, [where+511];", "19:1: error: tcgen05.ld.sync.aligned.32x32b.x2.b32: the access takes columns 511..512: tensor memory has 512"),
    "columns not allocated": ("tcgen05.ld.sync.aligned.32x32b.x2.b32 {v0, v1}, [where+63];", "19:1: error: tcgen05.ld.sync.aligned.32x32b.x2.b32: the access takes columns 63..64, of which column 64 is not allocated (allocated: columns 0..63 at line 13)"),
    "lanes of another warp": ("tcgen05.ld.sync.aligned.32x32b.x1.b32 {v0}, [base+4194304];", "19:1: error: tcgen05.ld.sync.aligned.32x32b.x1.b32: the address has lane 64, but warp 0 of the CTA reaches lanes 0..31"),
    "lane alignment": ("tcgen05.ld.sync.aligned.16x64b.x1.b32 {v0}, [where+524288];", "19:1: error: tcgen05.ld.sync.aligned.16x64b.x1.b32: the address begins at lane 8; legal here: 0, 16"),
    "size of an allocation": ("mov.b32 r0, 48; " + ALLOC + "r0;", "19:20: error: tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32: an allocation of 48 columns: expected 32, 64, 128, 256, 512"),
    "allocation after relinquish": (
        "@p tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned; " + ALLOC + "32;", "19:66: error: tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32: a thread of the CTA has relinquished the right to allocate at line 19: put tcgen05.relinquish_alloc_permit behind the last allocation"),
    "dealloc of what is not allocated": (DEALLOC + "base, 64; bar.sync 0; " + DEALLOC + "base, 64;", "19:75: error: tcgen05.dealloc.cta_group::1.sync.aligned.b32: column 0 is not an address that an allocation returned (no columns are allocated), and line 19 has freed it"),
    "dealloc of another address": ("add.u32 r0, base, 32; " + DEALLOC + "r0, 32;", "19:26: error: tcgen05.dealloc.cta_group::1.sync.aligned.b32: column 32 is not an address that an allocation returned (allocated: columns 0..63 at line 13)"),
    "sparse bit": (SPARSE, "19:62: error: instruction descriptor 0x08080014: sparse is 1 (bit 2), but the mnemonic has no .sp: both must say the same"),
}  # fmt: skip


@pytest.mark.parametrize("trap", TRAPS)
def test_a_trap_as_a_user_sees_it(
    trap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    body, message = TRAPS[trap]
    Path("k.ptx").write_text(KERNEL.replace("BODY", body))
    with pytest.raises(SystemExit) as left:
        main(["launch", "k.ptx", "--entry", "k", "--grid", "1", "--block", "128"])
    said = capsys.readouterr().err.splitlines()
    assert left.value.code == 3
    assert said[0] == f"k.ptx:{message} [CTA (0, 0, 0), warp 0, lane 0]"
    column = int(message.split(":")[1])
    assert said[1] == f"    {body}"
    assert said[2].startswith(" " * (column + 3) + "^~")


@pytest.mark.parametrize(
    ("resident", "code", "said"),
    [
        ("1", 0, ""),
        ("2", 0, ""),
        ("99", 2, "resident=99: a multiprocessor of sm_100a has at most 5 CTAs of 128 threads and 41984 bytes of shared memory"),
    ],
)  # fmt: skip
def test_ctas_of_one_multiprocessor(
    resident: str,
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each wants all columns; shared memory is for five CTAs."""
    monkeypatch.chdir(tmp_path)
    Path("k.ptx").write_text(
        KERNEL.replace("BODY\n", "").replace(", 64;", ", 512;").replace("32768", "40952")
    )
    options = ["--grid", "4", "--block", "128", "--resident", resident, "--json"]
    with pytest.raises(SystemExit) as left:
        main(["launch", "k.ptx", "--entry", "k", *options])
    shown = capsys.readouterr()
    assert left.value.code == code
    assert said in shown.err
    assert ("PTX does not say which CTA of a multiprocessor gets free columns" in shown.out) == (
        resident == "2"
    )
