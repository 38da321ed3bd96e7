/* SPDX-License-Identifier: MIT */
/*
 * adaptors [DEVICE]: the allocator in C++17. Buffers that free themselves, containers in pinned
 * memory, and the shape of RMM's and CCCL's memory resources, for programs that are written against
 * those; with RMM installed, the base class and the stream are rmm::mr::device_memory_resource and
 * rmm::cuda_stream_view.
 */
#include <tarn/tarn.hpp>

#include <cstdio>
#include <exception>
#include <vector>

namespace
{

/* Stands for rmm::cuda_stream_view and rmm::mr::device_memory_resource. */
struct stream_view {
    CUstream_st *stream;
    CUstream_st *value() const noexcept
    {
        return stream;
    }
};

class memory_resource
{
  public:
    virtual ~memory_resource() = default;
    void *allocate(std::size_t bytes, stream_view stream)
    {
        return do_allocate(bytes, stream);
    }
    void deallocate(void *memory, std::size_t bytes, stream_view stream)
    {
        do_deallocate(memory, bytes, stream);
    }

  private:
    virtual void *do_allocate(std::size_t bytes, stream_view stream) = 0;
    virtual void do_deallocate(void *memory, std::size_t bytes, stream_view stream) = 0;
    virtual bool do_is_equal(const memory_resource &other) const noexcept = 0;
};

/* Stands for cuda::mr::device_accessible. */
struct device_accessible {
};

/* Code of somebody else, written against RMM. */
void use_rmm(memory_resource &resource)
{
    const stream_view stream{nullptr};
    void *memory = resource.allocate(1 << 20, stream);

    resource.deallocate(memory, 1 << 20, stream);
}

/* And against CCCL. */
template <class Resource> void use_cccl(Resource resource)
{
    const stream_view stream{nullptr};
    void *memory = resource.allocate_async(1 << 20, 256, stream);

    resource.deallocate_async(memory, 1 << 20, 256, stream);
}

void run(const char *device)
{
    const tarn::allocator allocator(device, nullptr);
    const tarn::buffer activations(allocator, 24 << 20);

    /* A tenant with a pool of its own, which cannot take more than 64 MiB. */
    tarn_pool_options options{};

    options.name = "tenant";
    options.limit = 64 << 20;
    const tarn::pool tenant(allocator, options);

    try {
        const tarn::buffer too_large(tenant, 65 << 20);
    } catch (const std::bad_alloc &) {
        std::printf(
            "the tenant is out of memory, %lld bytes are allocated\n",
            static_cast<long long>(
                allocator.stats().by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL].current));
    }

    tarn::device_memory_resource<memory_resource, stream_view> rmm(allocator);
    const tarn::resource<device_accessible> cccl(tenant);

    use_rmm(rmm);
    use_cccl(cccl);

    const tarn::pinned pinned(allocator);
    tarn::pinned_resource resource(pinned);
    std::pmr::vector<float> numbers(1000, 1.0F, &resource);

    std::printf("%zu numbers in pinned memory\n", numbers.size());
}

} // namespace

int main(int argc, char **argv)
{
    try {
        run(argc > 1 ? argv[1] : nullptr);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
