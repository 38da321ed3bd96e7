// SPDX-License-Identifier: MIT
// tarn/tarn.hpp on the simulated device: owners, adaptors, errors. Compiled as C++17 and C++20, by
// g++ and clang++, with and without exceptions and RTTI (tests/cpp/run.sh).
#include "tarn/sim.h"
#include "tarn/tarn.hpp"

#include <cstdio>
#include <cstring>
#include <vector>

static int passed;
static int failed;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            std::printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);                            \
            ++failures;                                                                            \
        }                                                                                          \
    } while (0)

static constexpr std::size_t MIB = 1 << 20;

static std::int64_t allocated(const tarn::allocator &allocator)
{
    return allocator.stats().by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL].current;
}

static tarn::allocator opened()
{
    tarn::allocator made;

    if (tarn::allocator::open("sim:1GiB", "", made) != TARN_OK) {
        std::abort();
    }
    return made;
}

// ---- owners, without exceptions ----

static int owners_free_what_they_own()
{
    int failures = 0;
    tarn::allocator allocator = opened();

    {
        tarn::buffer first;
        tarn::buffer second;

        CHECK(tarn::buffer::make(allocator, 3 * MIB, 7, first) == TARN_OK);
        CHECK(first.size() == 3 * MIB && first.address() != 0 && first.data() != nullptr);
        CHECK(first.stream() == tarn::stream_ref(7) && first.used_on(8));
        second = std::move(first);
        CHECK(first.address() == 0 && second.size() == 3 * MIB);
        tarn::buffer third(std::move(second));

        CHECK(allocated(allocator) == 3 * static_cast<std::int64_t>(MIB));
        CHECK(allocator.deallocate(third.release()));
        CHECK(allocated(allocator) == 0);
        CHECK(tarn::buffer::make(allocator, MIB, {}, third) == TARN_OK);
        CHECK(tarn::buffer::make(allocator, 2 * MIB, {}, third) == TARN_OK);
        CHECK(allocated(allocator) == 2 * static_cast<std::int64_t>(MIB));
    }
    CHECK(allocated(allocator) == 0);
    CHECK(!allocator.deallocate(12345));
    tarn::allocator moved(std::move(allocator));

    CHECK(!allocator && moved);
    return failures;
}

static int failures_are_statuses()
{
    int failures = 0;
    tarn::allocator allocator;
    tarn_error error{};
    tarn::buffer buffer;
    tarn_ptr ptr = 0;

    CHECK(tarn::allocator::open("nothing", "", allocator, &error) == TARN_ERR_INVALID_ARGUMENT);
    CHECK(!allocator && error.text[0] != '\0');
    allocator = opened();
    CHECK(tarn::buffer::make(allocator, 2048 * MIB, {}, buffer, &error) == TARN_ERR_OUT_OF_MEMORY);
    CHECK(std::strstr(error.text, "out of memory") != nullptr);
    CHECK(allocator.alloc(2048 * MIB, {}, ptr) == TARN_ERR_OUT_OF_MEMORY && ptr == 0);
    CHECK(allocator.try_alloc(2048 * MIB) == 0);
    CHECK(allocator.try_alloc(MIB, 0, TARN_ALLOC_NEVER_GROW) == 0);
    ptr = allocator.try_alloc(MIB);
    CHECK(ptr != 0 && allocator.deallocate(ptr));
    return failures;
}

static int pools_are_owned()
{
    int failures = 0;
    const tarn::allocator allocator = opened();
    tarn_pool_options options{};
    tarn::pool pool;

    options.name = "tenant";
    options.limit = 100 * MIB;
    CHECK(tarn::pool::make(allocator, options, pool) == TARN_OK);
    tarn::buffer buffer;

    CHECK(tarn::buffer::make(pool, 60 * MIB, {}, buffer) == TARN_OK);
    CHECK(tarn::buffer::make(pool, 60 * MIB, {}, buffer) == TARN_ERR_OUT_OF_MEMORY);
    CHECK(pool.try_alloc(60 * MIB) == 0);
    CHECK(pool.stats().allocated == 60 * MIB && pool.stats().limit == 100 * MIB);
    buffer.reset();
    const tarn_ptr ptr = pool.try_alloc(60 * MIB);

    CHECK(ptr != 0 && pool.deallocate(ptr));
    return failures;
}

static int containers_live_in_pinned_memory()
{
    int failures = 0;
    const tarn::allocator allocator = opened();
    tarn::pinned pinned;

    CHECK(tarn::pinned::make(allocator, pinned) == TARN_OK);
    tarn::pinned_resource resource(pinned);
    tarn::pinned_resource same(pinned);

    {
        std::pmr::vector<int> numbers(&resource);

        for (int i = 0; i < 10000; i++) {
            numbers.push_back(i);
        }
        CHECK(numbers[9999] == 9999);
        tarn_pinned_stats stats{};

        stats.struct_size = sizeof stats;
        tarn_pinned_get_stats(pinned.get(), &stats);
        CHECK(stats.active_bytes.current >= 40000);
    }
    void *aligned = resource.allocate(10, 1024);

    CHECK(reinterpret_cast<std::uintptr_t>(aligned) % 1024 == 0);
    resource.deallocate(aligned, 10, 1024);
#if TARN_EXCEPTIONS
    try { // such a block may happen to be there
        aligned = resource.allocate(10, std::size_t{1} << 24);
        resource.deallocate(aligned, 10, std::size_t{1} << 24);
    } catch (const std::bad_alloc &error) {
        CHECK(std::strstr(error.what(), "alignment"));
    }
#endif
    CHECK(resource == resource);
#if defined(__cpp_rtti)
    CHECK(resource == same);
#endif
    CHECK(resource != *std::pmr::new_delete_resource());
    tarn_pinned_stats stats{};

    stats.struct_size = sizeof stats;
    tarn_pinned_get_stats(pinned.get(), &stats);
    CHECK(stats.active_bytes.current == 0);
    return failures;
}

// ---- streams ----

struct rmm_stream_view { // as rmm::cuda_stream_view
    CUstream_st *stream;
    CUstream_st *value() const noexcept
    {
        return stream;
    }
};

struct cccl_stream_ref { // as cuda::stream_ref
    CUstream_st *stream;
    CUstream_st *get() const noexcept
    {
        return stream;
    }
};

static CUstream_st *handle(std::uintptr_t number)
{
    return reinterpret_cast<CUstream_st *>(number);
}

static int streams_of_all_types_are_understood()
{
    int failures = 0;
    const tarn::allocator allocator = opened();
    void *memory = nullptr;

    CHECK(tarn::stream_ref().number() == 0);
    CHECK(tarn::stream_ref(nullptr).number() == 0);
    CHECK(tarn::stream_ref(handle(48)).number() == 48);
    CHECK(tarn::stream_ref(rmm_stream_view{handle(48)}).number() == 48);
    CHECK(tarn::stream_ref(cccl_stream_ref{handle(48)}) == tarn::stream_ref(48));
    CHECK(tarn::stream_ref(1) != tarn::stream_ref(2));
    CHECK(tarn_stream_to_cuda(48) == handle(48));
    CHECK(tarn_cuda_alloc(allocator.get(), MIB, handle(48), &memory, nullptr) == TARN_OK);
    CHECK(tarn_cuda_record_stream(allocator.get(), memory, handle(64), nullptr) == TARN_OK);
    tarn_block block{};

    block.struct_size = sizeof block;
    CHECK(tarn_allocator_find_block(allocator.get(), reinterpret_cast<std::uintptr_t>(memory),
                                    &block, nullptr) == TARN_OK);
    CHECK(block.stream == 48);
    CHECK(tarn_cuda_free(allocator.get(), memory, nullptr) == TARN_OK);
    return failures;
}

#if TARN_EXCEPTIONS

// ---- exceptions ----

static int failures_are_thrown()
{
    int failures = 0;
    bool caught = false;

    try {
        const tarn::allocator none("nothing");
    } catch (const tarn::failure &error) {
        caught = error.status() == TARN_ERR_INVALID_ARGUMENT && error.what()[0] != '\0';
    }
    CHECK(caught);
    const tarn::allocator allocator("sim:1GiB");

    caught = false;
    try {
        const tarn::buffer buffer(allocator, 2048 * MIB);
    } catch (const std::bad_alloc &error) {
        caught = std::strstr(error.what(), "out of memory") != nullptr;
    }
    CHECK(caught);
    const tarn::pool pool(allocator);
    const tarn_ptr ptr = pool.allocate(MIB, 5);

    allocator.record_stream(ptr, 6);
    CHECK(pool.deallocate(ptr));
    CHECK(allocator.deallocate(allocator.allocate(MIB)));
    allocator.empty_cache();
    const tarn::pinned pinned(allocator);

    CHECK(static_cast<bool>(pinned));
    return failures;
}

// ---- RMM ----

class rmm_resource
{ // as rmm::mr::device_memory_resource
  public:
    virtual ~rmm_resource() = default;
    void *allocate(std::size_t bytes, rmm_stream_view stream)
    {
        return do_allocate(bytes, stream);
    }
    void deallocate(void *memory, std::size_t bytes, rmm_stream_view stream)
    {
        do_deallocate(memory, bytes, stream);
    }
    bool is_equal(const rmm_resource &other) const noexcept
    {
        return do_is_equal(other);
    }

  private:
    virtual void *do_allocate(std::size_t bytes, rmm_stream_view stream) = 0;
    virtual void do_deallocate(void *memory, std::size_t bytes, rmm_stream_view stream) = 0;
    virtual bool do_is_equal(const rmm_resource &other) const noexcept
    {
        return this == &other;
    }
};

using rmm_adaptor = tarn::device_memory_resource<rmm_resource, rmm_stream_view>;

static int rmm_gets_a_resource()
{
    int failures = 0;
    const tarn::allocator allocator = opened();
    const tarn::pool pool(allocator);
    rmm_adaptor ours(allocator);
    rmm_adaptor same(allocator);
    rmm_adaptor pooled(pool);
    rmm_resource &resource = ours;
    void *memory = resource.allocate(MIB, {handle(16)});

    CHECK(memory != nullptr);
    CHECK(resource.is_equal(same) && !resource.is_equal(pooled));
    resource.deallocate(memory, MIB, {handle(16)});
    CHECK(resource.allocate(MIB, {handle(16)}) == memory); /* reused on its stream */
    bool caught = false;

    try {
        (void)resource.allocate(2048 * MIB, {handle(16)});
    } catch (const std::bad_alloc &) {
        caught = true;
    }
    CHECK(caught);
    resource.deallocate(memory, MIB, {handle(16)});
    memory = static_cast<rmm_resource &>(pooled).allocate(MIB, {nullptr});
    CHECK(pool.stats().allocated == MIB);
    static_cast<rmm_resource &>(pooled).deallocate(memory, MIB, {nullptr});
    CHECK(allocated(allocator) == 0);
    return failures;
}

// Given back on a stream that is not done: not reused before it is.
static int memory_waits_for_the_stream_that_gave_it_back()
{
    int failures = 0;
    const tarn::allocator allocator = opened();
    tarn_device *device = tarn_allocator_get_device(allocator.get());
    rmm_adaptor adaptor(allocator);
    rmm_resource &resource = adaptor;
    void *memory = resource.allocate(MIB, {handle(16)});

    CHECK(tarn_sim_block_stream(device, 32) == TARN_OK);
    resource.deallocate(memory, MIB, {handle(32)});
    void *other = resource.allocate(MIB, {handle(16)});

    CHECK(other != memory);
    CHECK(tarn_sim_unblock_stream(device, 32) == TARN_OK);
    CHECK(resource.allocate(MIB, {handle(16)}) == memory);
    resource.deallocate(memory, MIB, {handle(16)});
    resource.deallocate(other, MIB, {handle(16)});
    return failures;
}

// ---- CCCL ----

struct device_accessible {
};
struct host_accessible {
};

template <class Resource, class Property, class = void> struct has_property : std::false_type {
};
template <class Resource, class Property>
struct has_property<Resource, Property,
                    decltype(get_property(std::declval<const Resource &>(), Property{}))>
    : std::true_type {
};

static int cccl_gets_a_resource()
{
    int failures = 0;
    using resource_type = tarn::resource<device_accessible>;
    const tarn::allocator allocator = opened();
    resource_type resource(allocator);
    resource_type copy = resource;
    const cccl_stream_ref stream{handle(16)};

    static_assert(has_property<resource_type, device_accessible>::value, "has");
    static_assert(!has_property<resource_type, host_accessible>::value, "has not");
    static_assert(std::is_copy_constructible_v<resource_type>, "copies");
    static_assert(!has_property<tarn::resource<>, device_accessible>::value, "without any");
    CHECK(resource == copy);
    void *sync = resource.allocate(MIB);
    void *async = copy.allocate_async(MIB, 4096, stream);
    void *ordered = copy.allocate(stream, MIB, 64);

    CHECK(reinterpret_cast<std::uintptr_t>(async) % 4096 == 0);
    CHECK(sync != nullptr && ordered != async);
    resource.deallocate(sync, MIB);
    copy.deallocate_async(async, MIB, 4096, stream);
    copy.deallocate(stream, ordered, MIB, 64);
    sync = resource.allocate_sync(10, 8);
    resource.deallocate_sync(sync, 10, 8);
    async = resource.allocate_async(MIB, stream);
    resource.deallocate_async(async, MIB, stream);
    CHECK(allocated(allocator) == 0);
    CHECK(resource_type(tarn::pool(allocator)) != resource);
    return failures;
}

#endif

static void run(const char *name, int (*test)())
{
    if (test() == 0) {
        ++passed;
    } else {
        ++failed;
        std::printf("failed: %s\n", name);
    }
}

int main()
{
    run("owners", owners_free_what_they_own);
    run("statuses", failures_are_statuses);
    run("pools", pools_are_owned);
    run("pinned", containers_live_in_pinned_memory);
    run("streams", streams_of_all_types_are_understood);
#if TARN_EXCEPTIONS
    run("exceptions", failures_are_thrown);
    run("rmm", rmm_gets_a_resource);
    run("waiting", memory_waits_for_the_stream_that_gave_it_back);
    run("cccl", cccl_gets_a_resource);
#endif
    std::printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed ? 1 : 0;
}
