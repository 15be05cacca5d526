# ruff: noqa: T201
"""A client of the driver, in plain ctypes: contexts, modules, links, tensor maps, functions by name."""

import ctypes
from ctypes import byref, c_int, c_uint, c_uint64, c_void_p

PTX = b"""
.version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .u32 factor = 3;
.visible .entry scale(.param .u64 p, .param .u32 n)
{
    .reg .b64 %rd<4>; .reg .b32 %r<6>; .reg .pred %p;
    ld.param.u64 %rd1, [p];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %tid.x;
    setp.ge.u32 %p, %r2, %r1;
    @%p ret;
    mul.wide.u32 %rd2, %r2, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.u32 %r3, [%rd3];
    ld.global.u32 %r4, [factor];
    mul.lo.u32 %r5, %r3, %r4;
    st.global.u32 [%rd3], %r5;
    ret;
}
"""
OTHER = b".version 8.0\\n.target sm_80\\n.address_size 64\\n.visible .entry nothing() { ret; }\\n".replace(
    b"\\n", b"\n"
)
COMMENT = b"// a long part, in 70,000 letters\n" * 2100
cuda = ctypes.CDLL("libcuda.so.1")


def check(code: int) -> None:
    """Stop at an error, by its name."""
    name = ctypes.c_char_p()
    if code:
        cuda.cuGetErrorName(code, byref(name))
        raise SystemExit(f"{name.value!r}")


def launched(function: c_void_p) -> list[int]:
    """Launch the kernel on 40 integers, of which it changes 33."""
    memory, data = c_uint64(), (c_uint * 40)(*range(40))
    check(cuda.cuMemAlloc_v2(byref(memory), ctypes.c_size_t(160)))
    check(cuda.cuMemcpyHtoD_v2(memory, data, ctypes.c_size_t(160)))
    count = c_uint(33)
    parameters = (c_void_p * 2)(ctypes.addressof(memory), ctypes.addressof(count))
    sizes = [1, 1, 1, 64, 1, 1, 0]
    check(cuda.cuLaunchKernel(function, *map(c_uint, sizes), None, parameters, None))
    check(cuda.cuMemcpyDtoH_v2(data, memory, ctypes.c_size_t(160)))
    check(cuda.cuMemFree_v2(memory))
    return list(data)


def main() -> None:
    """Use most of what Python packages use, and print what came of it."""
    context, module, function, library = c_void_p(), c_void_p(), c_void_p(), c_void_p()
    check(cuda.cuInit(0))
    print(cuda.cuCtxGetDevice(byref(c_int())))
    check(cuda.cuDevicePrimaryCtxRetain(byref(context), 0))
    check(cuda.cuCtxSetCurrent(context))
    check(cuda.cuModuleLoadData(byref(module), PTX))
    check(cuda.cuModuleGetFunction(byref(function), module, b"scale"))
    expected = [3 * value if value < 33 else value for value in range(40)]
    print(launched(function) == expected)
    print(cuda.cuModuleGetFunction(byref(c_void_p()), module, b"absent"))

    address, size = c_uint64(), ctypes.c_size_t()
    check(cuda.cuModuleGetGlobal_v2(byref(address), byref(size), module, b"factor"))
    check(cuda.cuMemsetD32_v2(address, 5, ctypes.c_size_t(1)))
    print(size.value, launched(function)[32])

    state, image = c_void_p(), c_void_p()
    most = (c_int * 1)(0), (c_void_p * 1)(4)
    check(cuda.cuLinkCreate_v2(1, most[0], most[1], byref(state)))
    for text in (COMMENT + PTX, OTHER):
        check(cuda.cuLinkAddData_v2(state, 1, text, ctypes.c_size_t(len(text)), b"part", 0, None, None))
    check(cuda.cuLinkComplete(state, byref(image), byref(size)))
    check(cuda.cuLibraryLoadData(byref(library), image, None, None, 0, None, None, 0))
    check(cuda.cuLinkDestroy(state))
    check(cuda.cuLibraryGetKernel(byref(function), library, b"scale"))
    count = c_uint()
    check(cuda.cuLibraryGetKernelCount(byref(count), library))
    print(launched(function) == expected, count.value)
    check(cuda.cuKernelGetAttribute(byref(count), 4, function, 0))
    check(cuda.cuLibraryGetKernel(byref(function), library, b"nothing"))
    sizes = [1, 1, 1, 1025, 1, 1, 0]
    print(count.value, cuda.cuLaunchKernel(function, *map(c_uint, sizes), None, None, None))

    entry = c_void_p()
    check(cuda.cuGetProcAddress_v2(b"cuDeviceGetCount", byref(entry), 12000, c_uint64(0), None))
    check(ctypes.CFUNCTYPE(c_int, c_void_p)(entry.value)(ctypes.addressof(count)))
    print(count.value, cuda.cuGetProcAddress_v2(b"cuAbsent", byref(entry), 12000, c_uint64(0), None))

    room = (c_uint64 * 40)()
    tensor = c_void_p(ctypes.addressof(room) + -ctypes.addressof(room) % 64)
    three = (c_uint * 2)(64, 8), (c_uint * 2)(1, 1), (c_uint64 * 2)(256, 64)
    stride = (c_uint64 * 1)(512)
    tiled = [7 - 1, 2, c_uint64(0x2000_0000_0000), three[2], stride, three[0], three[1], 0, 3, 0, 0]
    print(cuda.cuTensorMapEncodeTiled(tensor, *tiled), any(room))
    print(
        cuda.cuMemFree_v2(c_uint64(0x2000_0000_0040)),
        cuda.cuModuleLoadData(byref(module), b".version 8.0\nno"),
    )


main()
