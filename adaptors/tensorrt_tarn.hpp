/* SPDX-License-Identifier: MIT */
/*
 * tarn as the allocator of TensorRT (10 and newer): an nvinfer1::IGpuAsyncAllocator in stream order.
 * Include it after NvInferRuntime.h, and link libtarn.
 *
 *     tarn::allocator allocator("cuda:0");
 *     tarn::tensorrt_allocator adaptor(allocator);
 *     runtime->setGpuAllocator(&adaptor);              // or builder, context->setTemporaryStorageAllocator
 *
 * The adaptor and the allocator must outlive all that uses them. TensorRT calls it from any thread.
 * Failures are null pointers, as its interface asks; tarn_alloc_explain has the message.
 */
#ifndef TARN_TENSORRT_HPP
#define TARN_TENSORRT_HPP

#include <tarn/tarn.hpp>

namespace tarn
{

class tensorrt_allocator final : public nvinfer1::IGpuAsyncAllocator
{
  public:
    template <class Source> explicit tensorrt_allocator(const Source &from) noexcept : source_(from)
    {
    }

    void *allocateAsync(std::uint64_t const size, std::uint64_t const alignment,
                        nvinfer1::AllocatorFlags const, cudaStream_t stream) noexcept override
    {
        tarn_ptr ptr = 0;

        return source_.alloc(size, alignment ? alignment : 1, stream_ref(stream), ptr, nullptr) ==
                       TARN_OK
                   ? reinterpret_cast<void *>(static_cast<std::uintptr_t>(ptr))
                   : nullptr;
    }

    bool deallocateAsync(void *const memory, cudaStream_t stream) noexcept override
    {
        source_.free(memory, stream_ref(stream));
        return true;
    }

  private:
    detail::stream_source source_;
};

} // namespace tarn

#endif
