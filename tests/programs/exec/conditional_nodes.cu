// Graphs with conditional nodes: while, if and else, switch, one in another.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call) check(call, __LINE__)
static void check(cudaError_t error, int line) {
    if (error == cudaSuccess) return;
    printf("line %d: %s: %s\n", line, cudaGetErrorName(error), cudaGetErrorString(error));
    exit(3);
}
__global__ void countdown(cudaGraphConditionalHandle condition, int *p) {
    p[1] += p[0];
    cudaGraphSetConditional(condition, --p[0] > 0);
}
__global__ void choose(cudaGraphConditionalHandle condition, const int *p) { cudaGraphSetConditional(condition, p[0]); }
__global__ void put(int *p, int value) { *p = value; }

static int *p, out[4];
static cudaGraph_t graph;

static cudaGraphNode_t kernel(cudaGraph_t to, cudaGraphNode_t *after, void *function, void **arguments) {
    cudaGraphNode_t node;
    cudaKernelNodeParams launch = {function, dim3(1), dim3(1), 0, arguments, nullptr};
    CHECK(cudaGraphAddKernelNode(&node, to, after, after != nullptr, &launch));
    return node;
}
static cudaGraphNode_t putting(cudaGraph_t to, int place, int value) {
    int *q = p + place;
    void *arguments[] = {&q, &value};
    return kernel(to, nullptr, (void *)put, arguments);
}
static cudaGraph_t *conditional(cudaGraph_t to, cudaGraphNode_t *after, cudaGraphConditionalHandle condition,
                                cudaGraphConditionalNodeType type, int size, cudaError_t *error = nullptr) {
    cudaGraphNode_t node;
    cudaGraphNodeParams parameters = {cudaGraphNodeTypeConditional};
    parameters.conditional.handle = condition, parameters.conditional.type = type, parameters.conditional.size = size;
    cudaError_t found = cudaGraphAddNode(&node, to, after, nullptr, after != nullptr, &parameters);
    if (error) return *error = found, nullptr;
    CHECK(found);
    cudaGraphNodeType kind;
    CHECK(cudaGraphNodeGetType(node, &kind));
    if (kind != cudaGraphNodeTypeConditional) exit(4);
    return parameters.conditional.phGraph_out;
}
static void launched(int times, int first) {
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < times; i++) {
        int in[4] = {first + i, 0, 0, 0};
        CHECK(cudaMemcpy(p, in, sizeof in, cudaMemcpyHostToDevice));
        CHECK(cudaGraphLaunch(exec, 0)), CHECK(cudaMemcpy(out, p, sizeof out, cudaMemcpyDeviceToHost));
        printf("%d %d %d %d\n", out[0], out[1], out[2], out[3]);
    }
    CHECK(cudaGraphExecDestroy(exec)), CHECK(cudaGraphDestroy(graph));
}

int main() {
    cudaGraphConditionalHandle condition, inner;
    CHECK(cudaMalloc(&p, 16));

    CHECK(cudaGraphCreate(&graph, 0));  // 4 + 3 + 2 + 1, by a default that is not 0
    CHECK(cudaGraphConditionalHandleCreate(&condition, graph, 1, cudaGraphCondAssignDefault));
    void *counted[] = {&condition, &p};
    kernel(*conditional(graph, nullptr, condition, cudaGraphCondTypeWhile, 1), nullptr, (void *)countdown, counted);
    launched(2, 4);

    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphConditionalHandleCreate(&condition, graph, 0, 0));
    void *chosen[] = {&condition, &p};
    cudaGraphNode_t first = kernel(graph, nullptr, (void *)choose, chosen);
    cudaGraph_t *bodies = conditional(graph, &first, condition, cudaGraphCondTypeIf, 2);
    putting(bodies[0], 1, 10), putting(bodies[1], 2, 20);
    launched(2, 0);

    CHECK(cudaGraphCreate(&graph, 0));  // a loop in the last of three
    CHECK(cudaGraphConditionalHandleCreate(&condition, graph, 0, 0));
    first = kernel(graph, nullptr, (void *)choose, chosen);
    bodies = conditional(graph, &first, condition, cudaGraphCondTypeSwitch, 3);
    CHECK(cudaGraphConditionalHandleCreate(&inner, bodies[2], 1, cudaGraphCondAssignDefault));
    void *nested[] = {&inner, &p};
    putting(bodies[0], 3, 30), putting(bodies[1], 3, 31);
    kernel(*conditional(bodies[2], nullptr, inner, cudaGraphCondTypeWhile, 1), nullptr, (void *)countdown, nested);
    launched(4, 0);

    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphConditionalHandleCreate(&condition, graph, 0, 0));
    cudaError_t errors[3];
    conditional(graph, nullptr, condition + 64, cudaGraphCondTypeIf, 1, errors);
    conditional(graph, nullptr, condition, cudaGraphCondTypeWhile, 2, errors + 1);
    conditional(graph, nullptr, condition, (cudaGraphConditionalNodeType)9, 1, errors + 2);
    printf("%d %d %d %d\n", errors[0], errors[1], errors[2], cudaGraphConditionalHandleCreate(&inner, graph, 0, 8));
    return 0;
}
