"""The ctypes side of the capture tool, against a libcuda that hands everything on to the simulated device."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import warpsim
from tools.capture import driver as driver_module
from tools.capture import jobs
from tools.capture.capturing import captured, for_device, parts_of, provenance, target_of
from tools.capture.driver import CudaDriver, Device, DriverError
from tools.capture.jobs import Job, run_job
from tools.capture.operands import Placement, random_set
from tools.capture.simulated import SimulatedDriver
from warpsim.base.errors import IllegalInstruction
from warpsim.workbench.vectors.sets import VectorSet

DENSE = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
WGMMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
NAMES = {1: b"CUDA_ERROR_INVALID_VALUE", 218: b"CUDA_ERROR_INVALID_PTX", 719: b"CUDA_ERROR_LAUNCH_FAILED"}


def value(argument: Any) -> int:
    return int(getattr(argument, "value", argument) or 0)


class FakeCuda:
    """libcuda's functions, as ctypes calls them; ``refuse`` makes one of them fail."""

    def __init__(self, target: str) -> None:
        self.device = SimulatedDriver(target)
        self.refuse: dict[str, int] = {}
        self.calls: list[str] = []
        self.launches: list[tuple[int, ...]] = []

    def __getattr__(self, name: str) -> Callable[..., int]:
        if not name.startswith("cu"):
            raise AttributeError(name)

        def call(*arguments: Any) -> int:
            self.calls.append(name)
            return self.refuse.get(name) or getattr(self, f"do_{name}", lambda *_: 0)(*arguments)

        return call

    def do_cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = 1
        return 0

    def do_cuDeviceGetName(self, name: Any, size: Any, device: Any) -> int:
        name.value = b"NVIDIA Fake"
        return 0

    def do_cuDriverGetVersion(self, version: Any) -> int:
        version._obj.value = 13010
        return 0

    def do_cuDeviceGetAttribute(self, result: Any, which: Any, device: Any) -> int:
        major, minor = self.device.device.capability
        result._obj.value = {75: major, 76: minor, 97: 232448}[value(which)]
        return 0

    def do_cuModuleLoadDataEx(self, module: Any, image: bytes, count: Any, options: Any, values: Any) -> int:
        assert (value(count), list(options)) == (2, [5, 6])
        assert image.endswith(b"\0")
        try:
            module._obj.value = self.device.load(image[:-1].decode())
        except DriverError as error:
            text = str(error).encode()[: values[1] - 1] + b"\0"
            ctypes.memmove(values[0], text, len(text))
            return 218
        return 0

    def do_cuModuleUnload(self, module: Any) -> int:
        self.device.unload(value(module))
        return 0

    def do_cuModuleGetFunction(self, function: Any, module: Any, name: bytes) -> int:
        function._obj.value = self.device.function(value(module), name.decode())
        return 0

    def do_cuMemAlloc_v2(self, address: Any, size: Any) -> int:
        address._obj.value = self.device.allocate(value(size))
        return 0

    def do_cuMemFree_v2(self, address: Any) -> int:
        self.device.free(value(address))
        return 0

    def do_cuMemcpyHtoD_v2(self, address: Any, content: bytes, size: Any) -> int:
        assert len(content) == value(size)
        self.device.write(value(address), content)
        return 0

    def do_cuMemcpyDtoH_v2(self, content: Any, address: Any, size: Any) -> int:
        content.raw = self.device.read(value(address), value(size))
        return 0

    def do_cuLaunchKernel(self, function: Any, *rest: Any) -> int:
        sizes, (stream, parameters, extra) = tuple(map(value, rest[:7])), rest[7:]
        assert (stream, extra) == (None, None)
        pointers = [ctypes.cast(place, ctypes.POINTER(ctypes.c_uint64))[0] for place in parameters]
        self.launches.append(sizes)
        self.device.launch(value(function), sizes[0], sizes[3], sizes[6], pointers)
        return 0

    def do_cuGetErrorName(self, status: Any, text: Any) -> int:
        text._obj.value = NAMES.get(value(status))
        return 0

    def do_cuGetErrorString(self, status: Any, text: Any) -> int:
        text._obj.value = b"in words"
        return 0


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    fake = FakeCuda("sm_90a")
    monkeypatch.setattr(driver_module, "_library", lambda: fake)
    monkeypatch.setattr(driver_module, "_kernel_module", lambda: "580.65.06")
    return fake


def dense(cases: int = 6) -> VectorSet:
    return random_set(warpsim.decode(DENSE, target="sm_90a"), cases, 1)


def test_a_set_through_the_cuda_driver(cuda: FakeCuda) -> None:
    device = CudaDriver()
    for vectors in (dense(), random_set(warpsim.decode(WGMMA, target="sm_90a"), 4, 1)):
        outputs = captured(vectors, device)
        assert np.array_equal(outputs.d, vectors.d)
        origin = {
            "kind": "hardware",
            "chip": "NVIDIA Fake",
            "compute_capability": "9.0",
            "driver": "CUDA 13.1, 580.65.06",
        }
        assert origin.items() <= dict(outputs.provenance).items()
        assert outputs.provenance["ptx"] == next(parts_of(vectors)).kernel.ptx
    assert cuda.device.memory.memory.allocations == []
    assert cuda.device._modules == {}
    device.close()
    assert cuda.calls[-1] == "cuDevicePrimaryCtxRelease_v2"


def test_large_shared_memory_is_asked_for(cuda: FakeCuda) -> None:
    vectors = random_set(warpsim.decode(WGMMA, target="sm_90a"), 2, 1, placement=Placement(a_shared=True))
    assert vectors.shared is not None
    large = replace(vectors, shared=np.pad(vectors.shared, ((0, 0), (0, 50000 - vectors.shared.shape[1]))))
    assert np.array_equal(captured(large, CudaDriver()).d, vectors.d)
    assert cuda.calls.count("cuFuncSetAttribute") == len(cuda.launches) == len(list(parts_of(large)))
    assert all(sizes[1:] == (1, 1, 128, 1, 1, 50000) for sizes in cuda.launches)


def test_many_cases_go_in_bounded_launches(cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "MOST_BLOCKS", 4)
    assert np.array_equal(captured(dense(10), CudaDriver()).d, dense(10).d)
    assert [sizes[0] for sizes in cuda.launches] == [4, 4, 2]
    monkeypatch.setattr(jobs, "LARGEST_LAUNCH", 3 * (1280 + 512))
    cuda.launches.clear()
    captured(dense(10), CudaDriver())
    assert [sizes[0] for sizes in cuda.launches] == [3, 3, 3, 1]


def test_no_driver() -> None:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        with pytest.raises(DriverError, match=r"^no CUDA driver on this computer: "):
            CudaDriver()
    else:
        pytest.skip("there is a CUDA driver here")


def test_no_such_gpu(cuda: FakeCuda) -> None:
    with pytest.raises(DriverError, match=r"^no GPU 3: the CUDA driver sees 1, counted from 0$"):
        CudaDriver(3)


@pytest.mark.parametrize(
    ("name", "status", "message"),
    [
        ("cuInit", 719, "cuInit: CUDA_ERROR_LAUNCH_FAILED (in words)"),
        ("cuInit", 34, "cuInit: in words: only the toolkit's stub of libcuda was found"),
        ("cuMemAlloc_v2", 1, "cuMemAlloc_v2: CUDA_ERROR_INVALID_VALUE (in words)"),
        ("cuCtxSynchronize", 719, "cuCtxSynchronize: CUDA_ERROR_LAUNCH_FAILED (in words)"),
        (
            "cuModuleLoadDataEx",
            222,
            "the driver refuses the PTX: in words\n\nthe driver is older than this PTX: update it",
        ),
    ],
)
def test_failures_have_the_names_of_the_driver(cuda: FakeCuda, name: str, status: int, message: str) -> None:
    cuda.refuse[name] = status
    with pytest.raises(DriverError) as caught:
        captured(dense(), CudaDriver())
    assert str(caught.value) == message


def test_refused_ptx_comes_with_the_log(cuda: FakeCuda) -> None:
    job = next(parts_of(dense())).job
    with pytest.raises(DriverError) as caught:
        run_job(CudaDriver(), replace(job, ptx=job.ptx.replace(".reg .b32 %a<4>", ".reg .b32 %a<4")))
    first, second, *_ = str(caught.value).splitlines()
    assert first == "the driver refuses the PTX: CUDA_ERROR_INVALID_PTX (in words)"
    assert second.startswith("the driver refuses the PTX: module.ptx:11:19: error:")


def test_shared_memory_that_a_block_does_not_have() -> None:
    job = next(parts_of(dense())).job
    with pytest.raises(DriverError) as caught:
        run_job(SimulatedDriver("sm_90a"), replace(job, shared_bytes=300_000))
    message = "a case needs 300,000 bytes of shared memory, but a block on simulated sm_90a has 232,448"
    assert str(caught.value) == message


def test_what_no_kernel_writes_shows() -> None:
    job = next(parts_of(dense(2))).job
    silent = "\n".join(line for line in job.ptx.splitlines() if "st.global" not in line)
    assert set(run_job(SimulatedDriver("sm_90a"), replace(job, ptx=silent)).ravel()) == {0xA5}


def test_a_simulated_chip_refuses_code_for_others() -> None:
    job = next(parts_of(dense())).job
    with pytest.raises(DriverError, match=r"^the driver refuses the PTX: simulated sm_80 does not run"):
        run_job(SimulatedDriver("sm_80"), job)
    older = replace(job, ptx=job.ptx.replace("sm_90a", "sm_80"))
    assert isinstance(run_job(SimulatedDriver("sm_89"), older), np.ndarray)
    with pytest.raises(DriverError, match="no entry other in the module"):
        run_job(SimulatedDriver("sm_90a"), replace(job, entry="other"))
    with pytest.raises(DriverError, match="no target 'sm_1'"):
        SimulatedDriver("sm_1")


def test_the_target_of_a_chip() -> None:
    assert target_of(Device("x", (9, 0), "", 0)) == "sm_90a"
    assert target_of(Device("x", (8, 9), "", 0)) == "sm_89"
    assert target_of(Device("x", (12, 0), "", 0)) == "sm_120a"
    with pytest.raises(DriverError, match=r"^x has compute capability 5\.2, which warpsim does not model"):
        target_of(Device("x", (5, 2), "", 0))


def test_forms_move_to_the_chip_at_hand() -> None:
    ada = Device("L4", (8, 9), "", 0)
    assert for_device(warpsim.decode(DENSE, target="sm_80"), ada).target == "sm_89"
    assert for_device(warpsim.decode(DENSE, target="sm_89"), ada).target == "sm_89"
    with pytest.raises(IllegalInstruction, match=r"is not on L4 \(sm_89\)"):
        for_device(warpsim.decode(WGMMA, target="sm_90a"), ada)


def test_simulated_outputs_never_pass_for_those_of_hardware() -> None:
    origin = provenance(SimulatedDriver("sm_90a").device, "2026-01-01")
    assert origin["kind"] == "model"
    assert origin["chip"] == "simulated sm_90a"
    assert Job.__dataclass_params__.frozen  # type: ignore[attr-defined]
