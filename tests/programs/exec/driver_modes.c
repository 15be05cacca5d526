// A client of driver and runtime in C: contexts, options of the compiler, registered memory, reset, refusals.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SYNCHRONISE                                                                                 \
    "{ .param .b64 h; .param .b32 f; .param .b32 r; st.param.b64 [h], %d3; st.param.b32 [f], 0; call (r), "      \
    "cudaCGSynchronize, (h, f); }\n"

static const char *PTX =
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .global .align 4 .u32 v = 3;\n"
    ".visible .entry put(.param .u64 p)\n{ .reg .b64 %rd<2>; .reg .b32 %r<12>; ld.param.u64 %rd0, [p];\n"
    "ld.global.u32 %r0, [v]; ld.global.u32 %r1, [%rd0]; add.u32 %r2, %r0, %r1; st.global.u32 [%rd0], %r2;\n"
    "st.global.u32 [v], %r2; ret; }\n";

static const char *GRID = /* each CTA writes a word, and ten times that of the other behind a barrier */
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".extern .func (.param .b64 r) cudaCGGetIntrinsicHandle (.param .b32 s);\n"
    ".extern .func (.param .b32 r) cudaCGSynchronize (.param .b64 h, .param .b32 f);\n"
    ".visible .entry each(.param .u64 p)\n{ .reg .b64 %d<4>; .reg .b32 %r<6>; .reg .pred %q; ld.param.u64 %d0, [p];\n"
    "mov.u32 %r0, %ctaid.x; mad.wide.u32 %d1, %r0, 4, %d0; add.u32 %r1, %r0, 5;\n"
    "xor.b32 %r2, %r0, 1; mad.wide.u32 %d2, %r2, 4, %d0; mov.u32 %r4, %tid.x; setp.ne.u32 %q, %r4, 0;\n"
    "@!%q st.global.u32 [%d1], %r1;\n"
    "{ .param .b32 s; .param .b64 h; st.param.b32 [s], 1; call (h), cudaCGGetIntrinsicHandle, (s); "
    "ld.param.b64 %d3, [h]; }\n" SYNCHRONISE "ld.global.u32 %r3, [%d2]; mul.lo.u32 %r3, %r3, 10;\n" SYNCHRONISE
    "@!%q st.global.u32 [%d1], %r3; ret; }\n";

static const char *COLUMNS = /* each CTA notes its columns of tensor memory, plus 1; a product of ones */
    ".version 8.6\n"
    ".target sm_100a\n"
    ".address_size 64\n"
    ".visible .entry columns(.param .u64 p)\n"
    "{ .reg .b64 %d<9>; .reg .b32 %r<12>; .reg .pred %q, %l; .shared .align 128 .b8 tiles[4608]; .shared .align 8 .b64 bar;\n"
    ".shared .align 4 .b32 got;\n"
    "ld.param.u64 %d0, [p]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; setp.eq.u32 %l, %r0, 0; mov.u32 %r2, tiles;\n"
    "shl.b32 %r3, %r0, 2; add.u32 %r3, %r2, %r3; add.u32 %r4, %r2, 4608;\n"
    "FILL: st.shared.b32 [%r3], 0x3c003c00; add.u32 %r3, %r3, 128; setp.lt.u32 %q, %r3, %r4; @%q bra FILL;\n"
    "mov.u32 %r5, bar; @%l mbarrier.init.shared.b64 [%r5], 1; fence.proxy.async.shared::cta; bar.sync 0;\n"
    "mov.u32 %r6, got; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r6], 256; bar.sync 0;\n"
    "tcgen05.fence::after_thread_sync; ld.shared.b32 %r7, [got];\n"
    "shr.u32 %r8, %r2, 4; cvt.u64.u32 %d1, %r8; or.b64 %d1, %d1, 0x400100080000;\n"
    "add.u32 %r8, %r2, 4096; shr.u32 %r8, %r8, 4; cvt.u64.u32 %d2, %r8; or.b64 %d2, %d2, 0x400100080000;\n"
    "setp.ne.u32 %q, 0, 0;\n"
    "@%l tcgen05.mma.cta_group::1.kind::f16 [%r7], %d1, %d2, 0x08040010, %q;\n"
    "@%l tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r5];\n"
    "WAIT: mbarrier.try_wait.parity.shared.b64 %q, [%r5], 0; @!%q bra WAIT;\n"
    "mul.wide.u32 %d3, %r1, 4; add.u64 %d3, %d0, %d3; add.u32 %r9, %r7, 1; @%l st.volatile.global.u32 [%d3], %r9;\n"
    "xor.b32 %r1, %r1, 1; mul.wide.u32 %d3, %r1, 4; add.u64 %d3, %d0, %d3;\n"
    "HOLD: ld.volatile.global.u32 %r9, [%d3]; setp.eq.u32 %q, %r9, 0; @%q bra HOLD;\n"
    "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r7, 256; ret; }\n"
    ".visible .entry clustered(.param .u64 p)\n{ .reg .b64 %d<3>; .reg .b32 %r<3>; ld.param.u64 %d0, [p];\n"
    "mov.u32 %r0, %ctaid.x; mov.u32 %r1, %cluster_nctaid.x; mad.wide.u32 %d1, %r0, 4, %d0; st.global.u32 [%d1], %r1;\n"
    "ret; }\n";

static const char *NESTED = /* a kernel that launches: nvcc's <<<>>> in a kernel is such a call */
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2_ptsz (.param .b64 p, .param .b64 s);\n"
    ".visible .entry outer()\n{ .reg .b64 %d; mov.u64 %d, 0; { .param .b64 p; .param .b64 s; .param .b32 r;\n"
    "st.param.b64 [p], %d; st.param.b64 [s], %d; call (r), __cudaCDP2LaunchDeviceV2_ptsz, (p, s); } ret; }\n";

static int launch(CUfunction put, CUdeviceptr p) {
    void *arguments[] = {&p};
    return cuLaunchKernel(put, 1, 1, 1, 1, 1, 1, 0, 0, arguments, 0);
}

static void contexts(void) {
    CUcontext one, two, now;
    CUdeviceptr p, q;
    CUmodule module;
    CUfunction put;
    CUstream stream;
    unsigned value = 4;
    cuInit(0);
    printf("contexts %d", cuMemAlloc(&p, 64)); /* no context is current */
    cuCtxCreate(&one, NULL, 0, 0), cuMemAlloc(&p, 64), cuStreamCreate(&stream, 0);
    cuModuleLoadData(&module, PTX), cuModuleGetFunction(&put, module, "put"), cuMemcpyHtoD(p, &value, 4);
    cuCtxCreate(&two, NULL, 0, 0), cuMemAlloc(&q, 64), cuMemsetD32(q, 7, 1);
    cuCtxGetCurrent(&now);
    printf(" %d %d", now == two, launch(put, p)), cuStreamGetCtx(stream, &now);
    printf(" %d %d", now == one, cuMemcpyPeer(q + 4, two, p, one, 4)), cuMemcpyDtoH(&value, q + 4, 4), printf(" %u", value);
    cuMemcpyDtoH(&value, p, 4), cuCtxDestroy(one); /* with its memory, stream and module */
    printf(" %u", value), printf(" %d", cuMemcpyDtoH(&value, p, 4)), printf(" %d", launch(put, q));
    printf(" %d", cuStreamSynchronize(stream));
    cuMemcpyDtoH(&value, q, 4), cuCtxDestroy(two), cuCtxGetCurrent(&now);
    printf(" %u %d", value, now == NULL);
    CUlibrary library; /* a kernel of no context: what it takes is known in a context */
    CUkernel kernel;
    size_t count = 9, offset, size;
    cuLibraryLoadData(&library, PTX, 0, 0, 0, 0, 0, 0), cuLibraryGetKernel(&kernel, library, "put");
    printf(" %d", cuKernelGetParamInfo(kernel, 0, &offset, &size)), printf(" %d", cuKernelGetParamCount(kernel, &count));
    cuCtxCreate(&one, NULL, 0, 0);
    printf(" %d", cuKernelGetParamInfo(kernel, 0, &offset, &size));
    printf(" %d %d", (int)size, cuKernelGetParamCount(kernel, &count));
    printf(" %d %d\n", (int)count, cuKernelGetParamInfo(kernel, 1, &offset, &size)), cuCtxDestroy(one);
}

static void options(void) {
    CUcontext context;
    CUmodule module;
    CUfunction put;
    CUkernel kernel;
    CUlibrary library;
    int before, after;
    char said[64] = "?", wrong[24] = "?";
    CUjit_option names[] = {CU_JIT_MAX_REGISTERS,    CU_JIT_INFO_LOG_BUFFER,  CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                            CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_WALL_TIME};
    void *values[] = {(void *)2, said, (void *)sizeof said, wrong, (void *)sizeof wrong, 0};
    cuDevicePrimaryCtxRetain(&context, 0), cuCtxSetCurrent(context);
    cuModuleLoadData(&module, PTX), cuModuleGetFunction(&put, module, "put");
    cuFuncGetAttribute(&before, CU_FUNC_ATTRIBUTE_NUM_REGS, put);
    printf("options %d", cuModuleLoadDataEx(&module, PTX, 6, names, values));
    cuModuleGetFunction(&put, module, "put"), cuFuncGetAttribute(&after, CU_FUNC_ATTRIBUTE_NUM_REGS, put);
    printf(" %d %d '%s' '%s' %d", before > 2, after, said, wrong, *(float *)&values[5] > 0);
    values[4] = (void *)sizeof wrong;
    printf(" %d", cuModuleLoadDataEx(&module, ".version 8.0\n.target sm_80\n.address_size 64\nnonsense", 6, names, values));
    printf(" %d %d", strlen(wrong) == sizeof wrong - 1, (int)(long)values[4]);
    cuLibraryLoadData(&library, PTX, names, values, 1, 0, 0, 0), cuLibraryGetKernel(&kernel, library, "put");
    cuKernelGetAttribute(&after, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel, 0);
    printf(" %d %d %d\n", after, cuKernelSetCacheConfig(kernel, CU_FUNC_CACHE_PREFER_L1, 0),
           cuKernelSetCacheConfig((CUkernel)8, CU_FUNC_CACHE_PREFER_L1, 0) != 0);
}

static void registered(void) {
    CUmodule module;
    CUfunction put;
    struct cudaPointerAttributes at;
    unsigned *host = malloc(20000), *part = host + 100; /* pages with memory of others at both ends */
    void *p = 0, *q = 0;
    for (int i = 0; i < 5000; i++) host[i] = i;
    cuModuleLoadData(&module, PTX), cuModuleGetFunction(&put, module, "put");
    printf("registered %d", cudaHostRegister(part, 16000, cudaHostRegisterDefault));
    printf(" %d", cudaHostRegister(part + 1, 4, 0)), printf(" %d", cudaHostGetDevicePointer(&p, part + 1000, 0));
    cudaPointerGetAttributes(&at, part);
    printf(" %d %d %d", p != part + 1000, at.type, (char *)at.devicePointer == (char *)p - 4000);
    printf(" %d", launch(put, (CUdeviceptr)p)), cudaDeviceSynchronize();
    printf(" %u %u", part[1000], host[99]); /* 1100 + 3, at the same place for both */
    part[1000] = 50, host[99] = 7;
    launch(put, (CUdeviceptr)p), cudaDeviceSynchronize();
    printf(" %u", part[1000]), printf(" %d", cudaHostUnregister(part));
    part[1001] = 9;
    printf(" %u %u %u", part[1000], host[99], part[1001]), printf(" %d", cudaHostUnregister(part));
    printf(" %d", cudaHostGetDevicePointer(&q, part, 0));
    CUcontext context; /* memory that is registered in it stays when it goes, as do its neighbours */
    cuCtxCreate(&context, NULL, 0, 0), cudaHostRegister(part, 16000, cudaHostRegisterMapped);
    printf(" %d", cudaHostUnregister(part + 1)), printf(" %d", cuCtxDestroy(context));
    printf(" %u %u\n", host[99], part[1001]);
    free(host);
}

static void reset(void) {
    CUmodule module;
    CUfunction put;
    cudaStream_t stream;
    cudaEvent_t event;
    void *p, *host;
    size_t limit, before, after, total;
    cudaStreamCreate(&stream), cudaEventCreate(&event), cudaMalloc(&p, 1 << 20), cudaMallocHost(&host, 64);
    cudaMemGetInfo(&before, &total), cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 1 << 21);
    printf("reset %d", cudaDeviceReset());
    cudaMemGetInfo(&after, &total), cudaDeviceGetLimit(&limit, cudaLimitPrintfFifoSize);
    printf(" %d %d", after >= before + (1 << 20), limit == 1 << 20);
    printf(" %d", cudaFree(p)), printf(" %d", cudaStreamSynchronize(stream));
    printf(" %d", cudaStreamDestroy(stream)), printf(" %d", cudaEventRecord(event, 0));
    unsigned value = 1;
    cuModuleLoadData(&module, PTX), cuModuleGetFunction(&put, module, "put"), cudaMalloc(&p, 4);
    cudaMemcpy(p, &value, 4, cudaMemcpyHostToDevice), launch(put, (CUdeviceptr)p);
    int copied = cudaMemcpy(&value, p, 4, cudaMemcpyDeviceToHost);
    printf(" %d %u\n", copied, value);
}

static void destroyed(void *data) { ++*(int *)data; }

static void user_objects(void) { /* two references: the caller's, and a graph's, which its executable shares */
    int count = 0, later = 0;
    cudaUserObject_t object, other;
    cudaGraph_t graph, longer;
    cudaGraphNode_t node;
    cudaGraphExec_t executable;
    cudaGraphExecUpdateResultInfo info;
    printf("objects %d", cudaUserObjectCreate(&object, &count, destroyed, 1, cudaUserObjectNoDestructorSync));
    cudaGraphCreate(&graph, 0), printf(" %d", cudaGraphRetainUserObject(graph, object, 1, 0));
    cudaUserObjectRetain(object, 2), printf(" %d", cudaUserObjectRelease(object, 3));
    cudaGraphInstantiate(&executable, graph, 0), cudaGraphDestroy(graph), printf(" %d", count);
    cudaGraphCreate(&longer, 0), cudaUserObjectCreate(&other, &later, destroyed, 1, cudaUserObjectNoDestructorSync);
    cudaGraphRetainUserObject(longer, other, 1, cudaGraphUserObjectMove), cudaGraphAddEmptyNode(&node, longer, NULL, 0);
    printf(" %d", cudaGraphExecUpdate(executable, longer, &info)), cudaGraphDestroy(longer);
    printf(" %d %d", count, later); /* the executable has kept its own, and taken nothing */
    cudaGraphExecDestroy(executable), printf(" %d %d\n", count, cudaUserObjectRelease(object, 1) != 0);
}

static void graphs_in_graphs(void) { /* what a graph has released is gone once; copies are nested as graphs are */
    int count = 0, inner_count = 0;
    cudaUserObject_t object, held;
    cudaGraph_t graph, inner, copy;
    cudaGraphNode_t node, child, nested, found, before;
    cudaGraphExec_t executable;
    cudaGraphInstantiateParams how = {.flags = cudaGraphInstantiateFlagAutoFreeOnLaunch};
    unsigned long long flags = 0;
    struct cudaMemAllocNodeParams asked = {.poolProps = {.allocType = cudaMemAllocationTypePinned}, .bytesize = 48}, had;
    asked.poolProps.location.type = cudaMemLocationTypeDevice;
    cudaGraphCreate(&graph, 0), cudaUserObjectCreate(&object, &count, destroyed, 1, cudaUserObjectNoDestructorSync);
    cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove);
    cudaGraphInstantiateWithParams(&executable, graph, &how), cudaGraphExecGetFlags(executable, &flags);
    cudaGraphReleaseUserObject(graph, object, 1), printf("nests %d %d", (int)flags, count);
    cudaGraphExecDestroy(executable), printf(" %d", count), cudaGraphDestroy(graph), printf(" %d", count);
    cudaGraphCreate(&inner, 0), cudaUserObjectCreate(&held, &inner_count, destroyed, 1, cudaUserObjectNoDestructorSync);
    cudaGraphRetainUserObject(inner, held, 1, cudaGraphUserObjectMove), cudaGraphAddEmptyNode(&node, inner, NULL, 0);
    cudaGraphAddMemAllocNode(&before, inner, NULL, 0, &asked), cudaGraphMemAllocNodeGetParams(before, &had);
    printf(" %d %d %d", (int)had.bytesize, had.dptr == asked.dptr, had.poolProps.location.type == cudaMemLocationTypeDevice);
    cudaGraphCreate(&graph, 0), cudaGraphAddChildGraphNode(&child, graph, NULL, 0, inner);
    cudaGraphChildGraphNodeGetGraph(child, &copy), printf(" %d", cudaGraphNodeFindInClone(&nested, node, copy));
    cudaGraphDestroy(inner), printf(" %d", inner_count), cudaGraphClone(&inner, graph);
    cudaGraphNodeFindInClone(&found, child, inner), cudaGraphChildGraphNodeGetGraph(found, &copy);
    printf(" %d", cudaGraphNodeFindInClone(&found, nested, copy)), cudaGraphDestroyNode(child), cudaGraphDestroy(graph);
    printf(" %d", inner_count), cudaGraphDestroy(inner), asked.bytesize = 0, cudaGraphCreate(&graph, 0);
    printf(" %d %d", inner_count, cudaGraphAddMemAllocNode(&before, graph, NULL, 0, &asked));
    cudaGraphAddEmptyNode(&node, graph, NULL, 0), cudaGraphCreate(&inner, 0), cudaGraphAddEmptyNode(&child, inner, NULL, 0);
    printf(" %d %d", cudaGraphAddDependencies(graph, &node, &node, NULL, 1), cudaGraphAddDependencies(graph, &node, &child, NULL, 1));
    asked.bytesize = 48, cudaGraphAddMemAllocNode(&before, graph, NULL, 0, &asked), printf(" %d", cudaGraphDestroyNode(node));
    flags = 0, printf(" %d", cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &flags));
    printf(" %d\n", cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &flags));
}

static void captured(void) { /* the graph of a capture is known while it is captured */
#if CUDA_VERSION >= 13000
#define INFO(graph) cuStreamGetCaptureInfo(stream, &status, &number, graph, NULL, NULL, NULL)
#else
#define INFO(graph) cuStreamGetCaptureInfo(stream, &status, &number, graph, NULL, NULL)
#endif
    CUstream stream;
    CUstreamCaptureStatus status;
    CUgraph known, graph;
    CUgraphExec executable;
    CUDA_GRAPH_INSTANTIATE_PARAMS with = {0, 0, 0, CUDA_GRAPH_INSTANTIATE_ERROR};
    cuuint64_t number;
    cuStreamCreate(&stream, 0), cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    printf("captured %d %d", INFO(&known), INFO(NULL)), cuStreamEndCapture(stream, &graph);
    printf(" %d", known == graph), printf(" %d", cuGraphInstantiateWithParams(&executable, graph, &with));
    printf(" %d %d", with.result_out, cuGraphDestroy(graph));
    CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_HOST, .dstMemoryType = CU_MEMORYTYPE_DEVICE, .WidthInBytes = 8,
                         .Height = 3, .Depth = 1, .srcPitch = 16, .dstPitch = 32, .srcXInBytes = 4}, had;
    char *host = calloc(64, 1), back[16] = {0};
    CUdeviceptr p;
    CUgraphNode first, nodes[4];
    CUcontext context;
    cuCtxGetCurrent(&context), cuMemAlloc(&p, 96), cuMemsetD8(p, 9, 96), box.srcHost = host, box.dstDevice = p;
    cuGraphCreate(&graph, 0), cuGraphAddMemcpyNode(&first, graph, NULL, 0, &box, context);
    printf(" %d", cuGraphMemcpyNodeGetParams(first, &had)); /* it begins at the address, with x of it */
    printf(" %d %d", had.srcMemoryType == 1 && had.srcHost == host + 4, had.dstMemoryType == 2 && had.dstDevice == p);
    printf(" %d %d", had.srcPitch == 16 && had.dstPitch == 32, had.WidthInBytes == 8 && had.Height == 3 && had.Depth == 1);
    size_t count = 4; /* a fill behind the copy, captured into the same graph */
    printf(" %d", cuStreamBeginCaptureToGraph(stream, graph, &first, NULL, 1, CU_STREAM_CAPTURE_MODE_GLOBAL));
    cuMemsetD8Async(p, 7, 4, stream), printf(" %d", cuStreamEndCapture(stream, &known)), cuGraphGetNodes(graph, nodes, &count);
    printf(" %d %d", known == graph, (int)count), count = 4, cuGraphNodeGetDependencies(nodes[1], &nodes[2], NULL, &count);
    printf(" %d %d", (int)count, nodes[2] == first), host[4] = 5, host[10] = 6, cuGraphInstantiate(&executable, graph, 0);
    cuGraphLaunch(executable, stream), cuStreamSynchronize(stream), cuMemcpyDtoH(back, p, 16);
    printf(" %d %d %d", back[0], back[6], back[8]), cuGraphCreate(&known, 0);
    printf(" %d\n", cuStreamBeginCaptureToGraph(stream, known, &first, NULL, 1, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

static void linked(void) { /* a grid of two CTAs that synchronises by a function of libcudadevrt.a */
    CUlinkState state;
    CUmodule module;
    CUfunction function;
    CUdeviceptr p;
    void *image, *parameters[] = {&p};
    int words[2] = {0, 0};
    size_t size;
    static char archive[] = "!<arch>\nmembers";
    cuLinkCreate(0, 0, 0, &state), cuLinkAddData(state, CU_JIT_INPUT_CUBIN, (void *)GRID, strlen(GRID) + 1, "g", 0, 0, 0);
    printf("linked %d", cuLinkAddData(state, CU_JIT_INPUT_LIBRARY, archive, 15, "lib.a", 0, 0, 0));
    printf(" %d", cuLinkAddData(state, CU_JIT_INPUT_LIBRARY, "none", 4, "no.a", 0, 0, 0));
    printf(" %d", cuLinkComplete(state, &image, &size)), printf(" %d", cuModuleLoadData(&module, image));
    cuModuleGetFunction(&function, module, "each"), cuMemAlloc(&p, 8), cuMemcpyHtoD(p, words, 8);
    printf(" %d", cuLaunchCooperativeKernel(function, 2, 1, 1, 64, 1, 1, 0, 0, parameters));
    printf(" %d", cuMemcpyDtoH(words, p, 8)), printf(" %d %d", words[0], words[1]);
    cuOccupancyMaxPotentialBlockSize(&words[0], &words[1], function, NULL, 0, 96), printf(" %d", words[1]);
    cuOccupancyMaxPotentialBlockSize(&words[0], &words[1], function, NULL, 0, 0), printf(" %d", words[1]);
    cuOccupancyAvailableDynamicSMemPerBlock(&size, function, 1, 64), printf(" %d", (int)size);
    printf(" %d %d", cuFuncSetAttribute(function, 9, 3), cuFuncSetAttribute(function, 17, 3));
    printf(" %d\n", cuFuncSetAttribute(NULL, 9, 3));
}

static void nested(void) {
    CUmodule module;
    CUfunction outer;
    printf("nested %d", cuModuleLoadData(&module, NESTED)), printf(" %d", cuModuleGetFunction(&outer, module, "outer"));
    printf(" %d\n", cuLaunchKernel(outer, 1, 1, 1, 1, 1, 1, 0, 0, NULL, 0));
}

static void refused(void) {
    cudaArray_t array = 0;
    cudaIpcMemHandle_t handle;
    cudaTextureObject_t texture;
    struct cudaChannelFormatDesc format = {32, 0, 0, 0, cudaChannelFormatKindFloat};
    void *p;
    cudaMalloc(&p, 64);
    printf("refused %d", cudaMallocArray(&array, &format, 8, 4, 0));
    printf(" %d", cudaCreateTextureObject(&texture, 0, 0, 0));
    printf(" %d", cudaFreeArray(array)), printf(" %d", cudaMemcpy2DToArray(array, 0, 0, p, 4, 4, 1, 3));
    printf(" %d", cudaIpcGetMemHandle(&handle, p)), printf(" %d\n", cudaGetLastError());
}

static void clusters(CUmodule module, CUdeviceptr p) { /* of nodes of a graph, whose parameters are set again */
    CUDA_KERNEL_NODE_PARAMS work = {.gridDimX = 2, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1};
    CUkernelNodeAttrValue two = {.clusterDim = {2, 1, 1}}, found;
    CUgraph graph;
    CUgraphNode first, second;
    CUgraphExec executable;
    CUdeviceptr behind = p + 8;
    void *parameters[] = {&p};
    int words[4];
    cuModuleGetFunction(&work.func, module, "clustered"), work.kernelParams = parameters;
    cuGraphCreate(&graph, 0), cuGraphAddKernelNode(&first, graph, NULL, 0, &work);
    parameters[0] = &behind, cuGraphAddKernelNode(&second, graph, NULL, 0, &work);
    printf("clusters %d", cuGraphKernelNodeSetAttribute(second, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &two));
    cuGraphKernelNodeSetParams(second, &work), printf(" %d", cuGraphKernelNodeCopyAttributes(first, second));
    cuGraphKernelNodeGetAttribute(first, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &found);
    two.clusterDim.x = 1, cuGraphKernelNodeSetAttribute(second, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &two);
    cuGraphInstantiate(&executable, graph, 0), cuGraphLaunch(executable, 0), cuMemcpyDtoH(words, p, 16);
    printf(" %d %d %d %d %d\n", found.clusterDim.x, words[0], words[1], words[2], words[3]);
}

static int columns(void) { /* CTAs that share a multiprocessor have other columns, until they give them back */
    CUcontext context;
    CUmodule module;
    CUfunction function;
    CUdeviceptr p;
    void *parameters[] = {&p};
    int words[2] = {0, 0};
    cuInit(0), cuDevicePrimaryCtxRetain(&context, 0), cuCtxSetCurrent(context), cuMemAlloc(&p, 16);
    cuModuleLoadData(&module, COLUMNS), cuModuleGetFunction(&function, module, "columns");
    cuMemcpyHtoD(p, words, 8), cuLaunchKernel(function, 2, 1, 1, 32, 1, 1, 0, 0, parameters, 0);
    printf("columns %d", cuMemcpyDtoH(words, p, 8)), printf(" %d %d\n", words[0], words[1]);
    clusters(module, p);
    return 0;
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1) return columns();
    contexts(), options(), registered(), reset(), user_objects(), graphs_in_graphs(), captured(), linked(), nested(), refused();
    return 0;
}
