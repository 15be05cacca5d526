// Host programs of the tests: one executable, a mode each.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>
#include <sys/wait.h>
#include <unistd.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#define CHECK(call) check(call, __LINE__)
static void check(cudaError_t error, int line) {
    if (error == cudaSuccess) return;
    printf("line %d: %s: %s\n", line, cudaGetErrorName(error), cudaGetErrorString(error));
    exit(3);
}

__constant__ float factors[2];
__device__ int counter = 0;

__global__ void add(const float *a, const float *b, float *c, int n) {
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < n) c[i] = factors[0] * a[i] + b[i], atomicAdd(&counter, 1);
    if (i == 3) printf("thread %d\n", i);
}
__global__ void fill(int *p, int n, int value) {
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < n) p[i] = value + i;
}
__global__ void reversed(int *p) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    p[threadIdx.x] = s[63 - threadIdx.x];  // no __syncthreads()
}
__global__ void product(const __half *a, const __half *b, float *d) {  // m16n8k16, row and column major
    int lane = threadIdx.x, group = lane / 4, pair = lane % 4 * 2;
    auto word = [](const __half *p) { return *(const uint32_t *)p; };
    uint32_t a0 = word(a + group * 16 + pair), a1 = word(a + (group + 8) * 16 + pair);
    uint32_t a2 = word(a + group * 16 + pair + 8), a3 = word(a + (group + 8) * 16 + pair + 8);
    uint32_t b0 = word(b + group * 16 + pair), b1 = word(b + group * 16 + pair + 8);
    float d0 = 0, d1 = 0, d2 = 0, d3 = 0;
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    d[group * 8 + pair] = d0, d[group * 8 + pair + 1] = d1;
    d[(group + 8) * 8 + pair] = d2, d[(group + 8) * 8 + pair + 1] = d3;
}
__global__ void endless(volatile int *p) { while (p[0] == 0) p[1] = p[1] + 1; }

__global__ void first(int *p) { if (threadIdx.x == 0) atomicCAS(p, 0, blockIdx.x + 1); }

__global__ void chain(int *p, const int *q, int value) {
    p[threadIdx.x] = q[threadIdx.x] + value;
    if (threadIdx.x == 0) printf("launch %d\n", value);
}

static int vectors() {
    const int n = 1000;
    std::vector<float> a(n), b(n), c(n);
    for (int i = 0; i < n; i++) a[i] = i * 0.5f, b[i] = i * 0.25f;
    float *da, *db, *dc, f[2] = {2, 3}, ms;
    int done;
    cudaEvent_t begin, end;
    cudaStream_t stream;
    CHECK(cudaMalloc(&da, n * 4)), CHECK(cudaMalloc(&db, n * 4)), CHECK(cudaMalloc(&dc, n * 4));
    CHECK(cudaMemcpyToSymbol(factors, f, sizeof f));
    CHECK(cudaMemcpy(da, a.data(), n * 4, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(db, b.data(), n * 4, cudaMemcpyHostToDevice));
    CHECK(cudaEventCreate(&begin)), CHECK(cudaEventCreate(&end)), CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventRecord(begin, stream));
    add<<<(n + 255) / 256, 256, 0, stream>>>(da, db, dc, n);
    CHECK(cudaGetLastError()), CHECK(cudaEventRecord(end, stream)), CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaEventElapsedTime(&ms, begin, end));
    CHECK(cudaMemcpy(c.data(), dc, n * 4, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpyFromSymbol(&done, counter, 4));
    for (int i = 0; i < n; i++) if (c[i] != 2 * a[i] + b[i]) return printf("c[%d] = %f\n", i, c[i]), 1;
    printf("%d right\n", done);
    CHECK(cudaFree(da)), CHECK(cudaFree(db)), CHECK(cudaFree(dc));
    return ms <= 0;
}
static int tensor() {
    std::vector<__half> a(256), b(128);
    std::vector<float> d(128);
    for (int i = 0; i < 256; i++) a[i] = __float2half(i % 7 - 3);
    for (int i = 0; i < 128; i++) b[i] = __float2half(i % 5 - 2);
    __half *da, *db;
    float *dd;
    CHECK(cudaMalloc(&da, 512)), CHECK(cudaMalloc(&db, 256)), CHECK(cudaMalloc(&dd, 512));
    CHECK(cudaMemcpy(da, a.data(), 512, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(db, b.data(), 256, cudaMemcpyHostToDevice));
    product<<<1, 32>>>(da, db, dd);
    CHECK(cudaMemcpy(d.data(), dd, 512, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 8; j++) {
            float sum = 0;
            for (int k = 0; k < 16; k++) sum += (i * 16 + k) % 7 * 1.0f * ((j * 16 + k) % 5 - 2) - 3.0f * ((j * 16 + k) % 5 - 2);
            if (sum != d[i * 8 + j]) return printf("d[%d,%d] = %f, not %f\n", i, j, d[i * 8 + j], sum), 1;
        }
    puts("products right");
    return 0;
}
static int errors() {
    int *p;
    CHECK(cudaMalloc(&p, 64));
    printf("%d ", cudaMalloc((void **)&p, (size_t)1 << 45));
    printf("%d ", cudaGetLastError());
    printf("%d ", cudaGetLastError());
    printf("%d ", cudaMemcpy(p, p + 100, 64, cudaMemcpyDeviceToDevice));
    int other = -1;
    std::thread([&] { other = cudaGetLastError(); }).join();
    printf("%d %d ", other, cudaGetLastError());
    fill<<<1, 2000>>>(p, 1, 0);
    printf("%d ", cudaGetLastError());
    printf("%d ", cudaFree((void *)0x1234));
    printf("%d ", cudaGetLastError());
    fill<<<1, 32>>>(p, 32, 0);
    printf("%d ", cudaGetLastError());  // the launch has not failed yet
    printf("%d ", cudaDeviceSynchronize());
    printf("%d ", cudaGetLastError());
    printf("%d\n", cudaMalloc(&p, 4));
    return 0;
}
static int forgotten() {
    int host[32] = {}, *p, out[32];
    CHECK(cudaMalloc(&p, 128));
    CHECK(cudaMemcpy(out, p, 128, cudaMemcpyDeviceToHost));
    fill<<<1, 32>>>(host, 32, 0);
    printf("%d\n", cudaDeviceSynchronize());
    return 0;
}
static int race() {
    int *p;
    CHECK(cudaMalloc(&p, 256));
    reversed<<<1, 64>>>(p);
    CHECK(cudaDeviceSynchronize());
    return 0;
}
static int streams(bool ordered) {
    int *p;
    cudaStream_t one, two;
    cudaEvent_t event;
    CHECK(cudaMalloc(&p, 256));
    CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking)), CHECK(cudaStreamCreate(&two));
    CHECK(cudaEventCreate(&event));
    fill<<<1, 64, 0, one>>>(p, 64, 0);
    CHECK(cudaEventRecord(event, one));
    if (ordered) CHECK(cudaStreamWaitEvent(two, event, 0));
    fill<<<1, 64, 0, two>>>(p + 32, 32, 5);
    CHECK(cudaDeviceSynchronize());
    fill<<<1, 64, 0, one>>>(p, 64, 0);
    CHECK(cudaStreamDestroy(one)), CHECK(cudaDeviceSynchronize());
    return 0;
}
static int together(bool chained) {
    int *p[3], *q, out[3], sum = 0;
    cudaStream_t s[3];
    CHECK(cudaMallocManaged(&q, 256)), q[0] = 5;
    for (int i = 0; i < 3; i++)
        CHECK(cudaMalloc(&p[i], 256)), CHECK(cudaMemset(p[i], 0, 256)), CHECK(cudaStreamCreateWithFlags(&s[i], cudaStreamNonBlocking));
    for (int i = 0; i < 64; i++) q[i] = 5;
    chain<<<1, 64>>>(p[0], q, 0), CHECK(cudaDeviceSynchronize());
    for (int r = 0; r < 2; r++) {
        for (int i = 0; i < 3; i++) chain<<<1, 64, 0, s[i]>>>(p[i], chained && i ? p[i - 1] : q, 10 * r + i + 1);
        CHECK(cudaGetLastError()), CHECK(cudaDeviceSynchronize());
    }
    chain<<<1, 64, 0, s[1]>>>(q, p[1], 30);  // the host waits for the memory that it sees, and calls nothing
    while (((volatile int *)q)[0] == 5) usleep(1000);
    for (int i = 0; i < 3; i++) CHECK(cudaMemcpy(out + i, p[i], 4, cudaMemcpyDeviceToHost)), sum = 100 * sum + out[i];
    printf("%d %d\n", sum, q[0]);
    return 0;
}
static int managed() {
    int *p, *pinned;
    CHECK(cudaMallocManaged(&p, 256)), CHECK(cudaMallocHost(&pinned, 256));
    p[63] = -1, pinned[0] = 7;
    fill<<<1, 32>>>(p, 32, pinned[0]);
    fill<<<1, 32>>>(pinned, 32, 100);
    CHECK(cudaDeviceSynchronize());
    cudaPointerAttributes a, b;
    CHECK(cudaPointerGetAttributes(&a, p)), CHECK(cudaPointerGetAttributes(&b, pinned));
    printf("%d %d %d %d %d\n", p[0], p[31], p[63], pinned[31], a.type * 10 + b.type);
    CHECK(cudaFree(p)), CHECK(cudaFreeHost(pinned));
    return 0;
}
static int order() {
    int *p, out[32] = {};
    CHECK(cudaMalloc(&p, 128)), CHECK(cudaMemset(p, 0, 128));
    first<<<8, 32>>>(p);
    CHECK(cudaMemcpy(out, p, 128, cudaMemcpyDeviceToHost));
    return 0;
}
static int shown() {
    int *p;
    CHECK(cudaMallocManaged(&p, 128)), p[1] = getpid();  // which is the host's own
    first<<<8, 32>>>(p);
    CHECK(cudaDeviceSynchronize()), CHECK(cudaDeviceSynchronize());
    return 0;
}
static void host(void *data) { *(int *)data += 1; }
static int graphs() {
    int *p, out[32], calls = 0;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaMalloc(&p, 128)), CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    fill<<<1, 32, 0, stream>>>(p, 32, 5);
    CHECK(cudaMemcpyAsync(out, p, 128, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaLaunchHostFunc(stream, host, &calls));
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    printf("%d ", calls);
    for (int i = 0; i < 3; i++) CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    printf("%d %d", calls, out[31]);
    cudaGraphNode_t node;  // a launch that is added, and then changed in what is launched
    int count = 32, value = 70;
    void *arguments[] = {&p, &count, &value};
    cudaKernelNodeParams launch = {(void *)fill, dim3(1), dim3(32), 0, arguments, nullptr};
    CHECK(cudaGraphCreate(&graph, 0)), CHECK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &launch));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    for (value = 80; value < 100; value += 10) {
        CHECK(cudaGraphLaunch(exec, stream)), CHECK(cudaStreamSynchronize(stream));
        CHECK(cudaMemcpy(out, p, 128, cudaMemcpyDeviceToHost));
        printf(" %d", out[1]);
        CHECK(cudaGraphExecKernelNodeSetParams(exec, node, &launch));
    }
    puts("");
    return 0;
}
static int threads() {
    int sums[4] = {};
    std::vector<std::thread> all;
    for (int t = 0; t < 4; t++)
        all.emplace_back([&, t] {
            int *p, out[64];
            cudaStream_t stream;
            CHECK(cudaStreamCreate(&stream)), CHECK(cudaMalloc(&p, 256));
            for (int i = 0; i < 5; i++) fill<<<1, 64, 0, stream>>>(p, 64, t);
            CHECK(cudaMemcpyAsync(out, p, 256, cudaMemcpyDeviceToHost, stream)), CHECK(cudaStreamSynchronize(stream));
            for (int v : out) sums[t] += v;
        });
    for (auto &thread : all) thread.join();
    printf("%d %d %d %d\n", sums[0], sums[1], sums[2], sums[3]);
    return 0;
}
static int forks(char **argv) {
    int *p, out[2] = {}, status = 0;
    CHECK(cudaMalloc(&p, 256));
    fill<<<1, 64>>>(p, 64, 1);
    if (pid_t child = fork()) {
        waitpid(child, &status, 0);
        CHECK(cudaMemcpy(out, p, 8, cudaMemcpyDeviceToHost));
        printf("parent %d, child %d\n", out[1], WEXITSTATUS(status));
        return 0;
    }
    int *q;
    if (cudaMalloc(&q, 256) != cudaSuccess) _exit(7);
    fill<<<1, 64>>>(q, 64, 40);
    cudaMemcpy(out, q, 8, cudaMemcpyDeviceToHost);
    execl(argv[0], argv[0], out[1] == 41 ? "managed" : "?", nullptr);
    _exit(8);
}
static int dies() {
    int *p;
    if (fork() == 0) CHECK(cudaMalloc(&p, 1 << 20)), abort();
    wait(nullptr);
    return vectors();
}
static int limit() {
    int *p;
    CHECK(cudaMalloc(&p, 256)), CHECK(cudaMemset(p, 0, 256));
    endless<<<1, 32>>>(p);
    printf("%d\n", cudaDeviceSynchronize());
    return 0;
}
static int copies() {
    char in[6][10], out[6][10] = {}, *p;
    size_t pitch;
    for (int i = 0; i < 60; i++) in[0][i] = i;
    CHECK(cudaMallocPitch(&p, &pitch, 10, 6));
    CHECK(cudaMemcpy2D(p, pitch, in, 10, 10, 6, cudaMemcpyHostToDevice));
    CHECK(cudaMemset2D(p, pitch, 9, 2, 3));
    CHECK(cudaMemcpy2D(out, 10, p, pitch, 10, 6, cudaMemcpyDeviceToHost));
    cudaMemcpy3DParms box = {};
    char deep[2][6][10] = {};
    cudaPitchedPtr whole;
    CHECK(cudaMalloc3D(&whole, make_cudaExtent(10, 6, 2)));
    CHECK(cudaMemset3D(whole, 3, make_cudaExtent(10, 6, 2)));
    box.srcPtr = whole, box.dstPtr = make_cudaPitchedPtr(deep, 10, 10, 6);
    box.extent = make_cudaExtent(10, 6, 2), box.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaMemcpy3D(&box));
    void *async;
    CHECK(cudaMallocAsync(&async, 64, 0)), CHECK(cudaFreeAsync(async, 0));
    printf("%d %d %d %d %d\n", (int)pitch, out[0][1], out[0][2], out[5][9], deep[1][5][9]);
    return 0;
}
static int device() {
    cudaDeviceProp p;
    int count, smem, blocks;
    CHECK(cudaGetDeviceCount(&count)), CHECK(cudaGetDeviceProperties(&p, 0));
    CHECK(cudaDeviceGetAttribute(&smem, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fill, 256, 0));
    printf("%d %s %d.%d %d %d %d\n", count, p.name, p.major, p.minor, (int)p.sharedMemPerBlockOptin, smem, blocks);
    return 0;
}
static int lacking() {
    for (int i = 0; i < 2; i++) printf("%d ", cudaDeviceRegisterAsyncNotification(0, nullptr, nullptr, nullptr));
    puts("");
    return 0;
}

int main(int argc, char **argv) {
    setvbuf(stdout, nullptr, _IOLBF, 0);
    struct { const char *name; int (*run)(); } modes[] = {
        {"vectors", vectors}, {"tensor", tensor}, {"errors", errors}, {"forgotten", forgotten}, {"race", race},
        {"managed", managed}, {"graphs", graphs}, {"threads", threads}, {"dies", dies}, {"limit", limit},
        {"copies", copies}, {"order", order}, {"shown", shown}, {"device", device}, {"lacking", lacking},
        {"together", [] { return together(false); }}, {"chained", [] { return together(true); }},
        {"streams", [] { return streams(false); }}, {"ordered", [] { return streams(true); }},
    };
    if (argc > 1 && !strcmp(argv[1], "forks")) return forks(argv);
    int worst = argc > 1 ? 0 : 2;
    for (int i = 1; i < argc; i++)
        for (auto &mode : modes)
            if (!strcmp(argv[i], mode.name)) worst |= mode.run();
    return worst;
}
