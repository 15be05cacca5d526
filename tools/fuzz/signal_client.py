"""A client of the driver that launches a kernel again and again, for signals to come in between."""

import ctypes
import sys
from ctypes import byref, c_int, c_uint64, c_void_p
from pathlib import Path

SIZE = 64
cuda = ctypes.CDLL("libcuda.so.1")


def check(code: int) -> None:
    """Stop at an error."""
    if code:
        sys.exit(f"error {code}")


def main() -> None:
    """Launch until a signal comes."""
    kernel, module, context, size = c_void_p(), c_void_p(), c_void_p(), c_int(SIZE)
    text = (Path(__file__).parents[2] / "traces" / "kernels" / "dense_tiles.ptx").read_bytes()
    check(cuda.cuInit(0))
    check(cuda.cuDevicePrimaryCtxRetain(byref(context), 0))
    check(cuda.cuCtxSetCurrent(context))
    check(cuda.cuModuleLoadData(byref(module), text))
    check(cuda.cuModuleGetFunction(byref(kernel), module, b"dense_f16"))
    memory = [c_uint64() for _ in range(3)]
    for each in memory:
        check(cuda.cuMemAlloc_v2(byref(each), ctypes.c_size_t(SIZE * SIZE * 4)))
        check(cuda.cuMemsetD8_v2(each, 0, ctypes.c_size_t(SIZE * SIZE * 4)))
    arguments = (c_void_p * 5)(*map(ctypes.addressof, (*memory, size, size)))
    while True:
        check(cuda.cuLaunchKernel(kernel, SIZE // 32, SIZE // 32, 1, 64, 1, 1, 0, None, arguments, None))
        check(cuda.cuCtxSynchronize())


if __name__ == "__main__":
    main()
