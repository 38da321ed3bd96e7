/* SPDX-License-Identifier: MIT */
/* A torch.cuda.MemPool with an allocator of its own: a class of torch's that is not ours. */
#include "plug/test_class_pool.h"

#include "plug/harness.h"
#include "plug/torch_versions.h"

#include <cstdlib>
#include <memory>
#include <stdexcept>

using namespace harness;
using namespace torch_versions;

namespace
{

using c10::DeviceIndex;

template <class Base>
auto sizes_of(int) -> decltype(std::declval<Base>().getExpandableSegmentSizes(0));
template <class Base> void sizes_of(...);
using Sizes = decltype(sizes_of<cca::CUDAAllocator &>(0));

/* Memory of the C library; more than 100 MiB fails. What a pool never calls stops the program. */
struct Own final : cca::CUDAAllocator {
    static inline int blocks;
    static inline int objects;

    Own()
    {
        objects++;
    }

    ~Own() override
    {
        objects--;
    }

    void *raw_alloc(size_t size) override
    {
        if (size > 100 * MIB) {
            throw std::runtime_error("own");
        }
        blocks++;
        return std::aligned_alloc(2 * MIB, size);
    }

    void *raw_alloc_with_stream(size_t size, cudaStream_t /*stream*/) override
    {
        return raw_alloc(size);
    }

    void raw_delete(void *ptr) override
    {
        blocks--;
        std::free(ptr);
    }

    std::string name() override
    {
        return "own";
    }

    /* clang-format off */
    /* Those without `override` are not in all versions. */
    c10::DataPtr allocate(size_t) override { abort(); }
    void copy_data(void *, const void *, size_t) const override { abort(); }
    void init(int) override { abort(); }
    bool initialized() override { abort(); }
    double getMemoryFraction(DeviceIndex) { abort(); }
    void setMemoryFraction(double, DeviceIndex) override { abort(); }
    void emptyCache() { abort(); }
    void emptyCache(MempoolId_t) { abort(); }
    void enable(bool) { abort(); }
    bool isEnabled() const { abort(); }
    void cacheInfo(DeviceIndex, size_t *) override { abort(); }
    void *getBaseAllocation(void *, size_t *) override { abort(); }
    void recordStream(const c10::DataPtr &, c10::cuda::CUDAStream) override { abort(); }
    cca::DeviceStats getDeviceStats(DeviceIndex) override { abort(); }
    void resetAccumulatedStats(DeviceIndex) override { abort(); }
    void resetPeakStats(DeviceIndex) override { abort(); }
    cca::SnapshotInfo snapshot() { abort(); }
    cca::SnapshotInfo snapshot(MempoolId_t) { abort(); }
    cca::SnapshotInfo snapshot(MempoolId_t, bool) { abort(); }
    void beginAllocateToPool(DeviceIndex, MempoolId_t, std::function<bool(cudaStream_t)>) override
    { abort(); }
    void endAllocateToPool(DeviceIndex, MempoolId_t) override { abort(); }
    void releasePool(DeviceIndex, MempoolId_t) override { abort(); }
    cca::ShareableHandle shareIpcHandle(void *) override { abort(); }
    std::shared_ptr<void> getIpcDevPtr(std::string) override { abort(); }
    void recordHistory(bool, cca::CreateContextFn, size_t, cca::RecordContext) { abort(); }
    void recordHistory(bool, cca::CreateContextFn, size_t, cca::RecordContext, bool) { abort(); }
    void recordHistory(bool, cca::CreateContextFn, size_t, cca::RecordContext, bool,
                       const std::vector<std::string> &) { abort(); }
    void attachOutOfMemoryObserver(cca::OutOfMemoryObserver) override { abort(); }
    void attachOomRejectionObserver(cca::OutOfMemoryObserver) { abort(); }
    void attachAllocatorTraceTracker(cca::AllocatorTraceTracker) override { abort(); }
    void enablePeerAccess(DeviceIndex, DeviceIndex) override { abort(); }
    cudaError_t memcpyAsync(void *, int, const void *, int, size_t, cudaStream_t, bool) override
    { abort(); }
    std::shared_ptr<cca::AllocatorState> getCheckpointState(DeviceIndex, MempoolId_t) override
    { abort(); }
    cca::CheckpointDelta
    setCheckpointPoolState(DeviceIndex, std::shared_ptr<cca::AllocatorState>) override { abort(); }
    Sizes getExpandableSegmentSizes(DeviceIndex) { abort(); }
    /* clang-format on */
};

bool any(cudaStream_t)
{
    return true;
}

} // namespace

void what_names_no_pool_is_about_the_active_one()
{
#if TORCH_VERSION_MINOR < 8
    void *const other = cca::raw_alloc(30 * MIB);
    {
        c10::cuda::MemPool pool;
        const c10::cuda::MemPoolContext context(&pool);

        cca::beginAllocateToPool(0, pool.id(), any);
        void *const ptr = cca::raw_alloc(50 * MIB);

        cca::endAllocateToPool(0, pool.id());
        cca::releasePool(0, pool.id()); /* as torch.cuda.use_mem_pool */
        CHECK(cca::snapshot().segments.size() == 1);
        CHECK(cca::snapshot().segments[0].owner_private_pool_id == pool.id());
        cca::raw_delete(ptr);
        cca::raw_delete(other);
    }
    const auto left = cca::snapshot();

    CHECK(!left.segments.empty()); /* the pool returned its memory and no other */
    for (const auto &segment : left.segments) {
        CHECK(segment.owner_private_pool_id.second == 0);
    }
    cca::emptyCache();
    CHECK(cca::snapshot().segments.size() < left.segments.size());
#endif
}

void pools_with_an_allocator_of_their_own()
{
    const MempoolId_t id{0, 9};
    auto own = std::make_shared<Own>();
    bool refused = false;
    bool failed = false;

#if TORCH_VERSION_MINOR < 8
    {
        c10::cuda::MemPool pool(own.get());
        const c10::cuda::MemPoolContext context(&pool);

        try {
            cca::beginAllocateToPool(0, pool.id(), any);
        } catch (const c10::NotImplementedError &) {
            refused = true;
        }
        CHECK(refused);
    }
#endif
    refused = false;
    if (!create_pool_from(id, own)) {
        return;
    }
    try { /* a pool has one source */
        create_pool_from(id, std::make_shared<Own>());
    } catch (const c10::Error &) {
        refused = true;
    }
    CHECK(refused && Own::objects == 1);
    cca::beginAllocateToPool(0, id, any);
    void *const first = cca::raw_alloc(5 * MIB);
    void *const second = cca::raw_alloc(5 * MIB);

    CHECK(Own::blocks == 1); /* both in one segment of it */
    *static_cast<char *>(first) = 1;
    try {
        cca::raw_alloc(200 * MIB);
    } catch (const std::runtime_error &error) {
        failed = std::string(error.what()) == "own";
    }
    CHECK(failed);
    cca::endAllocateToPool(0, id);
    cca::releasePool(0, id);
    cca::raw_delete(first);
    cca::raw_delete(second);
    cca::releasePool(0, id);
    empty_cache(id);
    own.reset();
    CHECK(Own::blocks == 0 && Own::objects == 0);
}
