/* SPDX-License-Identifier: MIT */
/* A program of the CUDA runtime: every kind of memory, streams, a kernel on each. */
#include <cstdio>
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda_runtime.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        const cudaError_t error = (call);                                                          \
        if (error != cudaSuccess) {                                                                \
            std::printf("%s: %s\n", #call, cudaGetErrorString(error));                             \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)

__global__ void add(float *to, const float *from, size_t count)
{
    const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

    if (i < count) {
        to[i] += from[i] + 1.0f;
    }
}

static float last(const float *from, size_t count)
{
    float value = 0;

    CHECK(cudaMemcpy(&value, from + count - 1, sizeof value, cudaMemcpyDeviceToHost));
    return value;
}

static void work(size_t megabytes)
{
    const size_t count = (megabytes << 20) / sizeof(float);
    const unsigned blocks = (unsigned)((count + 255) / 256);
    float *a = nullptr;
    float *b = nullptr;
    float *managed = nullptr;
    float *host = nullptr;
    cudaStream_t stream;

    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaMalloc(&a, count * sizeof *a));
    CHECK(cudaMemset(a, 0, count * sizeof *a));
    CHECK(cudaMallocAsync(&b, count * sizeof *b, stream));
    CHECK(cudaMemsetAsync(b, 0, count * sizeof *b, stream));
    CHECK(cudaMallocManaged(&managed, count * sizeof *managed));
    CHECK(cudaMallocHost(&host, count * sizeof *host));
    CHECK(cudaStreamSynchronize(stream));
    for (int i = 0; i < 10; i++) {
        add<<<blocks, 256, 0, stream>>>(b, a, count);
        add<<<blocks, 256, 0, stream>>>(a, b, count);
    }
    CHECK(cudaMemcpyAsync(host, a, count * sizeof *a, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    managed[count - 1] = host[0];
    std::printf("%zu MiB: %.1f %.1f %.1f\n", megabytes, last(a, count), last(b, count),
                managed[count - 1]);
    CHECK(cudaFreeAsync(b, stream));
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaFree(a));
    CHECK(cudaFree(managed));
    CHECK(cudaFreeHost(host));
}

/* Blocks of many sizes, replaced at random; the same numbers come out whoever serves them. */
static void churn()
{
    unsigned random = 1;
    float *blocks[64] = {};
    double sum = 0;

    for (int i = 0; i < 5000; i++) {
        random = random * 1103515245u + 12345u;
        float **block = &blocks[(random >> 16) % 64];
        const size_t count = 256 + (random >> 8) % 100000;

        CHECK(cudaFree(*block));
        CHECK(cudaMalloc(block, count * sizeof **block));
        CHECK(cudaMemset(*block, 0, count * sizeof **block));
        add<<<(unsigned)((count + 255) / 256), 256>>>(*block, *block, count);
        sum += i % 100 == 0 ? last(*block, count) : 0;
    }
    for (float *block : blocks) {
        CHECK(cudaFree(block));
    }
    std::printf("churn: %.1f\n", sum);
}

int main(int argc, char **)
{
    if (argc > 1) { /* before CUDA is used: the child has it for itself */
        const pid_t child = fork();

        if (child == 0) {
            work(16);
            std::exit(0);
        }
        int status = 0;

        (void)waitpid(child, &status, 0);
        std::printf("child: %d\n", status);
    }
    for (const size_t megabytes : {1, 7, 64, 200}) {
        work(megabytes);
    }
    churn();
    return 0;
}
