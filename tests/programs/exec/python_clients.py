# ruff: noqa: T201
"""Python programs that use CUDA, by the name of the package: each prints whether it is right."""

import sys

import numpy as np


def numba() -> bool:
    """A reversal in shared memory, as numba-cuda compiles it."""
    from numba import cuda, float32

    @cuda.jit
    def reverse(x, out):  # type: ignore[no-untyped-def]
        tile = cuda.shared.array(64, float32)
        i = cuda.threadIdx.x
        tile[i] = x[i]
        cuda.syncthreads()
        out[i] = tile[63 - i] + 1

    x = np.arange(64, dtype=np.float32)
    out = np.zeros_like(x)
    reverse[1, 64](x, out)
    return bool((out == x[::-1] + 1).all())


def core() -> bool:
    """A program that NVRTC compiles to machine code, by cuda.core; the runtime of cuda.bindings is static."""
    from cuda.bindings import runtime
    from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

    device = Device()
    device.set_current()
    device.sync()
    stream = device.create_stream()
    code = 'extern "C" __global__ void twice(int *p, int n) { int i = threadIdx.x; if (i < n) p[i] = 2 * i; }'
    program = Program(code, "c++", ProgramOptions(arch=f"sm_{device.arch}"))
    buffer = device.allocate(128, stream=stream)
    kernel = program.compile("cubin").get_kernel("twice")
    launch(stream, LaunchConfig(grid=1, block=32), kernel, buffer, np.int32(32))
    stream.sync()
    out = np.zeros(32, np.int32)
    kind = runtime.cudaMemcpyKind.cudaMemcpyDefault
    runtime.cudaMemcpy(out.ctypes.data, int(buffer.handle), out.nbytes, kind)
    return bool((out == 2 * np.arange(32)).all())


class Tensor:
    """Memory of the device, as Triton takes it."""

    def __init__(self, values: np.ndarray) -> None:
        from cuda.bindings import driver

        self.values, self.dtype = values, str(values.dtype)
        self.address = int(driver.cuMemAlloc(values.nbytes)[1])
        driver.cuMemcpyHtoD(self.address, values.ctypes.data, values.nbytes)

    def data_ptr(self) -> int:
        return self.address

    def back(self) -> np.ndarray:
        """Return the values as they are on the device."""
        from cuda.bindings import driver

        driver.cuMemcpyDtoH(self.values.ctypes.data, self.address, self.values.nbytes)
        return self.values


def triton() -> bool:
    """A softmax by rows, of memory without PyTorch."""
    from cuda.bindings import driver
    from triton_kernel import softmax

    driver.cuInit(0)
    driver.cuCtxSetCurrent(driver.cuDevicePrimaryCtxRetain(0)[1])
    x = np.random.default_rng(0).standard_normal((3, 50)).astype(np.float32)
    given, out = Tensor(x.copy()), Tensor(np.zeros_like(x))
    softmax[(3,)](out, given, 50, COLUMNS=64, num_warps=1)
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return bool(np.abs(out.back() - powers / powers.sum(axis=1, keepdims=True)).max() < 1e-6)


def torch() -> bool:
    """What torch.compile makes of sine, product and sum."""
    import torch as library

    x = library.linspace(0, 1, 100)
    compiled = library.compile(lambda given: given.sin() * 2 + given)
    return bool((compiled(x.cuda()).cpu() - (x.sin() * 2 + x)).abs().max() < 1e-6)


def eager() -> bool:
    """PyTorch's own operators, computed by the CPU, and a kernel of Triton between them."""
    import torch as library
    from triton_kernel import softmax

    library.manual_seed(0)
    x = library.randn(8, 40, device="cuda", requires_grad=True)
    y = x.detach().mul_(2)[:, ::2]  # another view of the same memory
    y[1:3] = 5
    out = library.empty(8, 40, device="cuda")
    softmax[(8,)](out, x, 40, COLUMNS=64, num_warps=1)
    held = x.detach().cpu().requires_grad_()
    loss, wanted = ((each @ each.t()).half().float().square().mean() for each in (x, held))
    loss.backward(), wanted.backward()
    library.add(held.detach().cuda(), 1, out=(total := library.empty(0, device="cuda")))
    checks = (
        library.allclose(out, library.softmax(x, 1), atol=1e-6),
        library.equal(y.cpu(), held.detach()[:, ::2]) and bool((y[1:3] == 5).all()),
        library.equal(x.grad.cpu(), held.grad),
        library.equal(total.cpu(), held.detach() + 1),
        library.arange(3, device="cuda").tolist() == [0, 1, 2],
    )
    return all(checks)


print(globals()[sys.argv[1]]())
