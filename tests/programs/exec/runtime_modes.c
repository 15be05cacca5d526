// A client of the runtime in C: programs of several objects, managed variables, graphs, memory that is placed.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int threads, void *,
                            void *, void *, void *, int *);
void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int, size_t, int, int);
char __cudaInitModule(void **handle);

static const char *FIRST = /* p[0] += helper(p[0]) + shared + letter */
    ".version 8.0\n.target sm_75\n.address_size 64\n.file 1 \"first.cu\"\n"
    ".extern .func (.param .b32 r) helper(.param .b32 x);\n.extern .global .align 4 .u32 shared;\n"
    ".global .align 1 .b8 $str[2] = {5, 0};\n"
    ".weak .func (.param .b32 r) twice(.param .b32 x)\n{ .reg .b32 %r; ld.param.b32 %r, [x]; add.u32 %r, %r, %r;\n"
    "st.param.b32 [r], %r; ret; }\n"
    ".visible .entry put(.param .u64 p)\n{ .reg .b64 %d<2>; .reg .b32 %r<6>; .loc 1 7 1\nld.param.u64 %d0, [p];\n"
    "ld.global.u32 %r0, [%d0]; { .param .b32 a; .param .b32 b; st.param.b32 [a], %r0; call (b), helper, (a);\n"
    "ld.param.b32 %r1, [b]; } ld.global.u32 %r2, [shared]; mov.u64 %d1, $str; ld.global.u8 %r3, [%d1];\n"
    "add.u32 %r0, %r0, %r1; add.u32 %r0, %r0, %r2; add.u32 %r0, %r0, %r3; st.global.u32 [%d0], %r0; ret; }\n";
static const char *SECOND = /* helper(x) = 2 x + letter */
    ".version 8.0\n.target sm_75\n.address_size 64\n.file 1 \"second.cu\"\n"
    ".visible .global .align 4 .u32 shared = 100;\n.global .align 1 .b8 $str[2] = {7, 0};\n"
    ".visible .global .attribute(.managed) .align 4 .u32 both = 3;\n"
    ".weak .func (.param .b32 r) twice(.param .b32 x)\n{ .reg .b32 %r; ld.param.b32 %r, [x]; add.u32 %r, %r, %r;\n"
    "st.param.b32 [r], %r; ret; }\n"
    ".visible .func (.param .b32 r) helper(.param .b32 x)\n{ .reg .b64 %d; .reg .b32 %r<3>; .loc 1 9 1\n"
    "ld.param.b32 %r0, [x]; { .param .b32 a; .param .b32 b; st.param.b32 [a], %r0; call (b), twice, (a);\n"
    "ld.param.b32 %r1, [b]; } mov.u64 %d, $str; ld.global.u8 %r2, [%d]; add.u32 %r1, %r1, %r2;\n"
    "st.param.b32 [r], %r1; ret; }\n"
    ".visible .entry ten()\n{ .reg .b32 %r; ld.global.u32 %r, [both]; mul.lo.u32 %r, %r, 10; st.global.u32 [both], %r;\n"
    "ret; }\n";

static char put, ten; /* their addresses stand for host functions */
static int *both;     /* the address of a managed variable */
static void **program;

static void *container(const char *ptx) {
    size_t bytes = ptx ? (strlen(ptx) + 8) / 8 * 8 : 0, header = ptx ? 64 : 0;
    char *made = calloc(1, 16 + header + bytes);
    *(uint32_t *)made = 0xBA55ED50, *(uint16_t *)(made + 4) = 1, *(uint16_t *)(made + 6) = 16;
    *(uint64_t *)(made + 8) = header + bytes;
    if (!ptx) return made;
    *(uint16_t *)(made + 16) = 1, *(uint32_t *)(made + 20) = 64, *(uint64_t *)(made + 24) = bytes;
    *(uint32_t *)(made + 16 + 28) = 75, strcpy(made + 80, ptx);
    return made;
}

static void registers(void) {
    static void *objects[3];
    static struct { uint32_t magic, version; void *data, *objects; } wrapper;
    objects[0] = container(FIRST), objects[1] = container(SECOND);
    wrapper.magic = 0x466243b1, wrapper.version = 2, wrapper.data = container(NULL), wrapper.objects = objects;
    program = __cudaRegisterFatBinary(&wrapper);
    __cudaRegisterFunction(program, &put, "put", "put", -1, 0, 0, 0, 0, 0);
    __cudaRegisterFunction(program, &ten, "ten", "ten", -1, 0, 0, 0, 0, 0);
    __cudaRegisterManagedVar(program, (void **)&both, "both", "both", 0, 4, 0, 1);
    __cudaRegisterFatBinaryEnd(program);
}

static int launch(void *function, int *p, cudaStream_t stream) {
    void *arguments[] = {&p};
    dim3 one = {1, 1, 1};
    return cudaLaunchKernel(function, one, one, arguments, 0, stream);
}

static void linked(void) {
    int *p, value = 1;
    struct cudaFuncAttributes found;
    size_t offset, size;
    dim3 many = {9000, 1, 1}, one = {1, 1, 1};
    void *arguments[] = {&p};
    cudaMalloc((void **)&p, 4), cudaMemcpy(p, &value, 4, cudaMemcpyHostToDevice);
    printf("linked %d", launch(&put, p, 0)), cudaMemcpy(&value, p, 4, cudaMemcpyDeviceToHost);
    cudaFuncGetAttributes(&found, &put), cudaFuncGetParamInfo(&put, 0, &offset, &size);
    cudaFuncGetParamInfo(&put, 1, &offset, NULL);
    printf(" %d %d %d %d", value, found.ptxVersion, (int)offset, (int)size);
    printf(" %d\n", cudaLaunchCooperativeKernel(&put, many, one, arguments, 0, 0));
}

static void managed(void) {
    struct cudaPointerAttributes found;
    launch(&ten, NULL, 0), __cudaInitModule(program), cudaDeviceSynchronize();
    printf("managed %d", *both), *both = 4, launch(&ten, NULL, 0), cudaDeviceSynchronize();
    cudaPointerGetAttributes(&found, both), printf(" %d %d\n", *both, found.type);
}

static void graphs(void) {
    int *p, out = 0, value = 2;
    void *arguments[] = {&p};
    cudaGraph_t graph, copy, inner, whole;
    cudaGraphNode_t fill, kernel, back, nodes[8], first[8], last[8], other;
    cudaGraphExec_t executable, all;
    cudaGraphExecUpdateResultInfo info;
    enum cudaGraphNodeType type;
    size_t n = 8, m = 8;
    unsigned enabled;
    cudaMalloc((void **)&p, 8);
    struct cudaMemsetParams zero = {.dst = p, .elementSize = 4, .width = 1, .height = 1, .value = 1}, read;
    struct cudaKernelNodeParams work = {.func = &put, .gridDim = {1, 1, 1}, .blockDim = {1, 1, 1}, .kernelParams = arguments};
    cudaGraphCreate(&graph, 0), cudaGraphAddMemsetNode(&fill, graph, NULL, 0, &zero);
    cudaGraphAddKernelNode(&kernel, graph, &fill, 1, &work);
    cudaGraphAddMemcpyNode1D(&back, graph, &kernel, 1, &out, p, 4, cudaMemcpyDeviceToHost);
    cudaGraphInstantiate(&executable, graph, 0), cudaGraphLaunch(executable, 0), cudaDeviceSynchronize();
    printf("graphs %d", out); /* 1 + (2 + 7) + 100 + 5 */
    cudaGraphGetEdges(graph, first, last, NULL, &n), cudaGraphGetRootNodes(graph, nodes, &m);
    printf(" %d %d %d", (int)n, (int)m, first[0] == fill && last[0] == kernel && nodes[0] == fill);
    m = 8, cudaGraphNodeGetDependentNodes(fill, nodes, NULL, &m), cudaGraphNodeGetType(back, &type);
    cudaGraphMemsetNodeGetParams(fill, &read), memset(&work, 0, sizeof work), cudaGraphKernelNodeGetParams(kernel, &work);
    printf(" %d %d %d %d", nodes[0] == kernel, type, (int)read.value, work.func == &put && *(int **)work.kernelParams[0] == p);
    zero.value = value, cudaGraphExecMemsetNodeSetParams(executable, fill, &zero);
    cudaGraphLaunch(executable, 0), cudaDeviceSynchronize(), printf(" %d", out); /* 2 + (4 + 7) + 105 */
    cudaGraphNodeSetEnabled(executable, kernel, 0), cudaGraphNodeGetEnabled(executable, kernel, &enabled);
    cudaGraphLaunch(executable, 0), cudaDeviceSynchronize(), printf(" %d %u", out, enabled);
    cudaGraphClone(&copy, graph), cudaGraphNodeFindInClone(&other, kernel, copy), cudaGraphDestroyNode(other);
    n = 8, cudaGraphGetEdges(copy, NULL, NULL, NULL, &n);
    printf(" %d %d", (int)n, cudaGraphExecUpdate(executable, copy, &info)), printf(" %d", info.result);
    printf(" %d", cudaGraphExecUpdate(executable, graph, &info)), cudaGraphLaunch(executable, 0);
    cudaDeviceSynchronize(), printf(" %d", out);
    cudaGraphCreate(&whole, 0), cudaGraphAddChildGraphNode(&other, whole, NULL, 0, graph);
    cudaGraphChildGraphNodeGetGraph(other, &inner), m = 0, cudaGraphGetNodes(inner, NULL, &m);
    cudaGraphInstantiate(&all, whole, 0), out = 0, cudaGraphLaunch(all, 0), cudaDeviceSynchronize();
    printf(" %d %d", (int)m, out), cudaGraphRemoveDependencies(graph, &fill, &kernel, NULL, 1);
    printf(" %d", cudaGraphRemoveDependencies(graph, &fill, &kernel, NULL, 1));
    printf(" %d", cudaGraphAddDependencies(graph, &fill, &kernel, NULL, 1));
    printf(" %d", cudaGraphDebugDotPrint(graph, "/nowhere/graph.dot", 0));
    printf(" %d\n", cudaGraphAddMemFreeNode(&other, graph, NULL, 0, NULL));
}

/* of runtime 13.1 */
int cudaGraphGetId(cudaGraph_t, unsigned *), cudaGraphExecGetId(cudaGraphExec_t, unsigned *);
int cudaGraphNodeGetLocalId(cudaGraphNode_t, unsigned *), cudaGraphNodeGetContainingGraph(cudaGraphNode_t, cudaGraph_t *);
int cudaGraphNodeGetToolsId(cudaGraphNode_t, unsigned long long *);

static void numbers(void) {
    cudaGraph_t graph, other, found;
    cudaGraphNode_t first, second;
    cudaGraphExec_t executable;
    unsigned id[5];
    unsigned long long tools[2];
    cudaGraphCreate(&graph, 0), cudaGraphCreate(&other, 0), cudaGraphAddEmptyNode(&first, graph, NULL, 0);
    cudaGraphAddEmptyNode(&second, graph, NULL, 0), cudaGraphInstantiate(&executable, graph, 0);
    printf("numbers %d", cudaGraphGetId(graph, &id[0])), cudaGraphGetId(other, &id[1]);
    printf(" %d", cudaGraphExecGetId(executable, &id[2])), cudaGraphNodeGetLocalId(first, &id[3]);
    cudaGraphNodeGetLocalId(second, &id[4]), cudaGraphNodeGetToolsId(first, &tools[0]);
    cudaGraphNodeGetToolsId(second, &tools[1]), cudaGraphNodeGetContainingGraph(second, &found);
    printf(" %d %d %d", id[0] != id[1] && id[2], id[3] != id[4] && tools[0] != tools[1], found == graph);
    printf(" %d %d\n", cudaGraphGetId((cudaGraph_t)first, &id[0]), cudaGraphNodeGetLocalId(NULL, &id[0]));
}

static void pools(void) {
    struct cudaMemLocation device = {cudaMemLocationTypeDevice, 0}, host = {cudaMemLocationTypeHost, 0};
    struct cudaMemPoolProps managed = {.allocType = cudaMemAllocationTypeManaged, .location = device};
    cudaMemPool_t usual, pool, now;
    struct cudaPointerAttributes found;
    unsigned long long most, used;
    int *p, reuse = 0;
    printf("pools %d", cudaMemGetMemPool(&usual, &device, cudaMemAllocationTypeManaged)), cudaMemPoolCreate(&pool, &managed);
    printf(" %d", cudaMemSetMemPool(&device, cudaMemAllocationTypeManaged, pool));
    cudaMemGetMemPool(&now, &device, cudaMemAllocationTypeManaged), printf(" %d", now == pool);
    cudaMemGetDefaultMemPool(&now, &device, cudaMemAllocationTypeManaged), printf(" %d", now == usual);
    printf(" %d", cudaMemSetMemPool(&host, cudaMemAllocationTypePinned, pool));
    cudaMallocFromPoolAsync((void **)&p, 64, pool, 0), p[0] = 0, p[1] = 0, launch(&put, p, 0), cudaDeviceSynchronize();
    cudaPointerGetAttributes(&found, p), printf(" %d %d", p[0], found.type); /* 0 + 7 + 105; the host reads it */
    cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used), cudaFreeAsync(p, 0), cudaDeviceSynchronize();
    cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &most), printf(" %d", most >= used && used >= 64);
    cudaMemPoolGetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &reuse), printf(" %d", reuse);
    cudaMemGetMemPool(&now, &host, cudaMemAllocationTypePinned), cudaMallocFromPoolAsync((void **)&p, 64, now, 0);
    cudaPointerGetAttributes(&found, p), printf(" %d\n", found.type);
}

static void captured(void) {
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    const cudaGraphNode_t *ends;
    const cudaGraphEdgeData *edges = NULL;
    enum cudaStreamCaptureStatus status;
    unsigned long long number;
    size_t count = 9;
    int *p, out[2] = {0, 0};
    cudaStreamCreate(&stream), cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    cudaMallocAsync((void **)&p, 4, stream), cudaMemsetAsync(p, 0, 4, stream), launch(&put, p, stream);
    cudaMemcpyAsync(out, p, 4, cudaMemcpyDeviceToHost, stream), cudaFreeAsync(p, stream);
    cudaStreamGetCaptureInfo(stream, &status, &number, &graph, &ends, &edges, &count);
    printf("captured %d %d %d %d", status, (int)count, edges[0].type, cudaStreamUpdateCaptureDependencies(stream, (void *)ends, NULL, 1, 1));
    cudaStreamEndCapture(stream, &graph), cudaGraphInstantiate(&executable, graph, 0);
    for (int i = 0; i < 2; i++) out[0] = 0, cudaGraphLaunch(executable, stream), cudaStreamSynchronize(stream), out[1] += out[0];
    printf(" %d", out[1]); /* twice 7 + 105 */
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), printf(" %d", cudaStreamSynchronize(stream));
    printf(" %d\n", cudaStreamEndCapture(stream, &graph));
}

static void placed(void) {
    CUmemAllocationProp wanted = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemAccessDesc access = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle one, two;
    CUdeviceptr range, again;
    unsigned long long flags;
    size_t g;
    int value[2] = {11, 22}, out[2] = {0, 0};
    cuMemGetAllocationGranularity(&g, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    printf("placed %d", cuMemCreate(&one, 100, &wanted, 0)), cuMemCreate(&one, g, &wanted, 0), cuMemCreate(&two, g, &wanted, 0);
    cuMemAddressReserve(&range, 4 * g, 0, 0, 0), printf(" %d", cuMemMap(range, g, 0, one, 0));
    cuMemMap(range + g, g, 0, two, 0), printf(" %d", cuMemcpyHtoD(range + g - 4, value, 8)); /* no access yet */
    cuMemSetAccess(range, 2 * g, &access, 1), printf(" %d", cuMemcpyHtoD(range + g - 4, value, 8));
    cuMemGetAccess(&flags, &access.location, range), cuMemUnmap(range, 2 * g);
    printf(" %d %d", (int)flags, cuMemcpyDtoH(out, range + g - 4, 8));
    cuMemAddressReserve(&again, 2 * g, 0, 0, 0), cuMemMap(again, g, 0, two, 0), cuMemSetAccess(again, g, &access, 1);
    cuMemcpyDtoH(out, again, 4), printf(" %d", out[0]); /* the bytes of a handle stay */
    printf(" %d", cuMemMap(again + g, g, 0, two, 0)), cuMemUnmap(again, g), cuMemRelease(one), cuMemRelease(two);
    printf(" %d", cuMemAddressFree(again, g)), printf(" %d", cuMemAddressFree(again, 2 * g));
    printf(" %d %d\n", cuMemAddressFree(range, 4 * g), cuMemAddressReserve(&range, 1ull << 40, 0, 0, 0));
}

static void hints(void) {
    struct cudaMemLocation device = {cudaMemLocationTypeDevice, 0}, host = {cudaMemLocationTypeHost, 0};
    union cudaLaunchAttributeValue value = {.accessPolicyWindow = {.num_bytes = 64}}, found;
    cudaMemPool_t pool, now;
    enum cudaMemAccessFlags flags;
    cudaStream_t stream;
    int *p, number[3];
    CUdeviceptr rows;
    unsigned out[12];
    cudaMallocManaged((void **)&p, 64, cudaMemAttachGlobal), cudaMemAdvise(p, 64, cudaMemAdviseSetReadMostly, device);
    cudaMemPrefetchAsync(p, 64, host, 0, 0), cudaMemRangeGetAttribute(&number[0], 4, cudaMemRangeAttributeReadMostly, p, 64);
    cudaMemRangeGetAttribute(&number[1], 4, cudaMemRangeAttributeLastPrefetchLocation, p, 64);
    cudaMemRangeGetAttribute(&number[2], 4, cudaMemRangeAttributePreferredLocation, p, 64);
    printf("hints %d %d %d", number[0], number[1], number[2]), cudaStreamCreate(&stream);
    cudaStreamSetAttribute(stream, cudaLaunchAttributeAccessPolicyWindow, &value);
    cudaStreamGetAttribute(stream, cudaLaunchAttributeAccessPolicyWindow, &found);
    struct cudaMemPoolProps wanted = {.allocType = cudaMemAllocationTypePinned, .location = device};
    cudaMemPoolCreate(&pool, &wanted), cudaDeviceSetMemPool(0, pool), cudaDeviceGetMemPool(&now, 0);
    cudaMemPoolGetAccess(&flags, pool, &device);
    printf(" %d %d %d", (int)found.accessPolicyWindow.num_bytes, now == pool, flags);
    cuMemAlloc(&rows, 48), cuMemsetD32(rows, 1, 12), cuMemsetD2D32(rows, 16, 9, 2, 3), cuMemcpyDtoH(out, rows, 48);
    printf(" %u %u %u %u", out[1], out[2], out[4], out[9]);
    struct cudaMemLocation node = {cudaMemLocationTypeHostNuma, 3};
    cudaMemRangeGetAttribute(&number[0], 4, cudaMemRangeAttributePreferredLocationType, p, 64);
    cudaMemAdvise(p, 64, cudaMemAdviseSetPreferredLocation, node);
    cudaMemRangeGetAttribute(&number[1], 4, cudaMemRangeAttributePreferredLocationType, p, 64);
    cudaMemRangeGetAttribute(&number[2], 4, cudaMemRangeAttributePreferredLocationId, p, 64);
    printf(" %d %d %d", number[0], number[1], number[2]);
    cudaMemRangeGetAttribute(&number[0], 4, cudaMemRangeAttributePreferredLocation, p, 64);
    cudaMemAdvise(p, 64, cudaMemAdviseUnsetPreferredLocation, node);
    cudaMemRangeGetAttribute(&number[1], 4, cudaMemRangeAttributePreferredLocation, p, 64);
    cudaMemRangeGetAttribute(&number[2], 4, cudaMemRangeAttributeLastPrefetchLocationType, p, 64);
    printf(" %d %d %d", number[0], number[1], number[2]);
    void *both[] = {p, (char *)p + 32};
    size_t sizes[] = {32, 32}, firsts[] = {0, 1}, wrong[] = {1};
    struct cudaMemLocation places[] = {host, device};
    cudaMemAdvise(p, 64, cudaMemAdviseSetAccessedBy, host), cudaMemAdvise(p, 64, cudaMemAdviseSetAccessedBy, device);
    cudaMemRangeGetAttribute(number, 12, cudaMemRangeAttributeAccessedBy, p, 64);
    printf(" %d %d %d", number[0], number[1], number[2]), p[0] = p[8] = 1;
    printf(" %d", cudaMemPrefetchBatchAsync(both, sizes, 2, places, firsts, 2, 0, stream));
    cudaMemRangeGetAttribute(number, 4, cudaMemRangeAttributeLastPrefetchLocation, p, 64);
    printf(" %d %d", number[0], cudaMemPrefetchBatchAsync(both, sizes, 2, places, wrong, 1, 0, stream));
    printf(" %d", cudaMemDiscardAndPrefetchBatchAsync(both, sizes, 1, places, firsts, 1, 0, stream));
    launch(&put, p + 8, 0), launch(&put, p, 0), cudaDeviceSynchronize(); /* the first was written, not discarded */
    printf(" %d", cudaMemDiscardBatchAsync(both, sizes, 0, 0, stream));
    unsigned synchronous[2] = {9, 9}, yes = 1;
    cuPointerGetAttribute(&synchronous[0], CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (CUdeviceptr)p);
    printf(" %d", cuPointerSetAttribute(&yes, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (CUdeviceptr)p + 4));
    cuPointerGetAttribute(&synchronous[1], CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (CUdeviceptr)p);
    printf(" %u %u", synchronous[0], synchronous[1]);
    printf(" %d\n", cuPointerSetAttribute(&yes, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)p));
}

/* two streams that change a word, with an event between them or without; a launch that cannot be */
static int streams(int ordered) {
    int *p, *out;
    cudaStream_t one, two;
    cudaEvent_t event;
    dim3 grid = {1, 1, 1}, block = {2000, 1, 1};
    void *arguments[] = {&p};
    cudaMalloc((void **)&p, 4), cudaMallocHost((void **)&out, 4), cudaMemset(p, 0, 4), cudaEventCreate(&event);
    cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking), cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking);
    cudaMemsetAsync(p, 1, 4, one), cudaEventRecord(event, one);
    if (ordered) cudaStreamWaitEvent(two, event, 0);
    launch(&put, p, two), cudaMemcpyAsync(out, p, 4, cudaMemcpyDeviceToHost, two), cudaStreamSynchronize(two);
    printf("%d %d\n", *out, cudaLaunchKernel(&put, grid, block, arguments, 0, one));
    return cudaDeviceSynchronize();
}

/* what a stream is given last, and that nothing waits for: a kernel at an address of no allocation */
static int ends(void) {
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    return launch(&put, (int *)64, stream);
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    registers();
    if (argc > 1 && !strcmp(argv[1], "ends")) return ends();
    if (argc > 1) return streams(argc > 2);
    linked(), managed(), graphs(), captured(), placed(), hints(), numbers(), pools();
    return 0;
}
