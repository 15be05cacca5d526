

@pytest.mark.parametrize("schedule", ["program", "earliest", "latest", "random:1"])
@pytest.mark.parametrize(("grid", "block"), [(1, 64), (64, 128)])
def test_a_standstill_is_seen_under_every_schedule(grid: int, block: int, schedule: str) -> None:
    text = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p) {
 .reg .b64 %d; .reg .b32 %r; .reg .pred %p;
 ld.param.u64 %d, [p];
L: ld.acquire.gpu.global.u32 %r, [%d]; setp.ne.u32 %p, %r, 7; @%p bra L;
 ret; }"""
    with pytest.raises(Fault, match="nobody is left to write what they wait for"):
        load_text(text)["k"](grid, block, [np.zeros(4, np.uint32)], schedule=schedule)
