// target: sm_80
// options: --jump-table-density=50
// What a compiler makes of ordinary code: calls, structs by value, constants, local arrays, a switch.

struct Frame {  // 24 bytes, by value
    int scale, shift;
    double weight;
    unsigned char order[4];
};

__constant__ int TABLE[16] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};
__constant__ Frame DEFAULTS = {2, 7, 0.25, {3, 2, 1, 0}};

__device__ __noinline__ int power(int base, int exponent) {
    int product = 1;
#pragma unroll 1
    for (; exponent; exponent--) product *= base;
    return product;
}

__device__ __noinline__ int weighted(Frame frame, int x, const int* table) {
    return static_cast<int>((x * frame.scale + frame.shift) * frame.weight) + table[x & 15];
}

__device__ __noinline__ int collatz(int x) {  // calls itself
    return x <= 1 ? 0 : 1 + collatz(x % 2 ? 3 * x + 1 : x / 2);
}

extern "C" __global__ void called(const int* x, int* y, int count, Frame frame) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    int result = weighted(x[i] % 2 ? frame : DEFAULTS, x[i], TABLE);
    if (x[i] % 3 == 0) result += power(x[i], frame.order[x[i] & 3]);
    y[i] = result + collatz((x[i] & 31) + 1);
}

// Programs of a small stack machine, one a thread: an opcode in the low 4 bits, an operand above.
extern "C" __global__ void interpret(const unsigned char* programs, int length, int* results) {
    extern __shared__ unsigned char code[];
    int stack[16] = {}, top = 0;
    const unsigned char* program = programs + static_cast<size_t>(blockIdx.x * blockDim.x) * length;
#pragma unroll 1
    for (int i = threadIdx.x; i < blockDim.x * length; i += blockDim.x) code[i] = program[i];
    __syncthreads();
#pragma unroll 1
    for (int i = 0; i < length; i++) {
        const int instruction = code[threadIdx.x * length + i], operand = instruction >> 4;
        int &last = stack[top];
        switch (instruction & 15) {
            case 0: case 1: top = min(top + 1, 15); stack[top] = operand; break;
            case 2: last += TABLE[operand]; break;
            case 3: last *= operand - 11; break;
            case 4: top = max(top - 1, 0); stack[top] -= stack[top + 1]; break;
            case 5: last ^= stack[operand % (top + 1)]; break;
            case 6: last = static_cast<unsigned>(last) / (operand + 1); break;
            case 7: last = power(last & 15, operand & 3); break;
            case 8: last = __popc(last) + operand; break;
            case 9: last = __clz(last | 1) * last; break;
            case 10: last = __brev(last); break;
            case 11: last = abs(last) % (operand + 3); break;
            case 12: last = ~last | operand; break;
            case 13: top = min(top + 1, 15); stack[top] = last; break;
            case 14: last = __byte_perm(last, last, 0x1032); break;
            default: last = last >> operand; break;
        }
    }
    results[blockIdx.x * blockDim.x + threadIdx.x] = stack[top] + top;
}
