/* SPDX-License-Identifier: MIT */
/* adaptors/tensorrt_tarn.hpp over a declaration of TensorRT's interface, or with REAL_TENSORRT over
 * TensorRT's own headers, on the simulated device. */
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#ifdef REAL_TENSORRT
#include <NvInferRuntime.h>
#else
using cudaStream_t = struct CUstream_st *;

namespace nvinfer1
{ /* what TensorRT 10 declares, in part */

using AllocatorFlags = std::uint32_t;

class IGpuAsyncAllocator
{
  public:
    virtual ~IGpuAsyncAllocator() = default;
    virtual void *allocateAsync(std::uint64_t const size, std::uint64_t const alignment,
                                AllocatorFlags const flags, cudaStream_t stream) noexcept = 0;
    virtual bool deallocateAsync(void *const memory, cudaStream_t stream) noexcept = 0;
};

} // namespace nvinfer1
#endif

#include "adaptors/tensorrt_tarn.hpp"

static int failures;

static void check(bool holds, const char *what)
{
    if (!holds) {
        std::printf("not so: %s\n", what);
        ++failures;
    }
}

int main()
{
    const std::uint64_t mib = 1 << 20;
    const auto stream = reinterpret_cast<cudaStream_t>(std::uintptr_t{16});
    tarn::allocator allocator;

    if (tarn::allocator::open("sim:1GiB", "", allocator) != TARN_OK) {
        std::abort();
    }
    tarn::tensorrt_allocator adaptor(allocator);
    nvinfer1::IGpuAsyncAllocator &interface = adaptor;
    void *memory = interface.allocateAsync(3 * mib, 4096, 0, stream);

    check(memory && reinterpret_cast<std::uintptr_t>(memory) % 4096 == 0, "aligned memory");
    check(interface.allocateAsync(2048 * mib, 256, 0, stream) == nullptr, "a null pointer");
    check(interface.deallocateAsync(memory, stream), "it is freed");
    memory = interface.allocateAsync(mib, 0, 0, stream);
    check(memory != nullptr, "memory without an alignment");
    check(interface.deallocateAsync(memory, nullptr), "freed on another stream");
    check(allocator.stats().by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL].current == 0,
          "nothing is left");
    std::printf("%d passed, %d failed, 0 skipped\n", failures ? 0 : 1, failures ? 1 : 0);
    return failures ? 1 : 0;
}
