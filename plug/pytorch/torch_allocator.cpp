/* SPDX-License-Identifier: MIT */
/*
 * The class through which torch allocates CUDA memory: torch's own interface over libtarn's public
 * functions. It decides nothing and keeps nothing that libtarn has; what it does keep is torch's:
 * callbacks, filters of captures, the recorder of stacks.
 *
 * Exceptions. libtarn is C, so no exception may pass through it: a callback of torch that throws
 * inside a call of libtarn leaves its exception in `pending`, and the method throws it once libtarn
 * has returned and released its locks. A method that destructors call throws nothing except for a
 * wrong pointer; what failed, or was thrown, is kept for tarn_devices_last_error.
 *
 * The object is never destroyed: tensors may be freed by destructors of static objects.
 */
#include "plug/pytorch/history.h"
#include "tarn/copy.h"
#include "tarn/ipc.h"
#include "tarn/peer.h"

#include <c10/core/impl/GPUTrace.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <tuple>
#include <vector>

namespace tarn_torch
{
namespace
{

using c10::DeviceIndex;

/* ---- values ---- */

cudaStream_t stream_at(tarn_stream stream)
{
    return static_cast<cudaStream_t>(pointer_of(stream));
}

tarn_pool_id pool_of(MempoolId_t id)
{
    return {id.first, id.second};
}

#if TORCH_VERSION_MINOR < 8
/* What names no pool is about that of the thread's MemPoolContext. */
MempoolId_t active_pool()
{
    auto *const pool = c10::cuda::MemPoolContext::getActiveMemPool();

    return pool ? pool->id() : MempoolId_t{0, 0};
}
#endif

c10::Device device_of(int ordinal)
{
    return {c10::DeviceType::CUDA, static_cast<DeviceIndex>(ordinal)};
}

tarn_stats stats_of(tarn_allocator *allocator)
{
    tarn_stats stats;

    stats.struct_size = sizeof stats;
    tarn_allocator_get_stats(allocator, &stats);
    return stats;
}

using StatArray = decltype(cca::DeviceStats::allocation);
using Stat = StatArray::value_type;

Stat stat_of(const tarn_stat &stat)
{
    return {stat.current, stat.peak, stat.allocated, stat.freed};
}

StatArray stats_by_pool(const tarn_stat (&stats)[TARN_STAT_POOLS])
{
    StatArray made;

    std::transform(std::begin(stats), std::end(stats), made.begin(), stat_of);
    return made;
}

/* All that such a function has to tell; some may go between its calls. */
template <class Item>
std::vector<Item> list_of(size_t (*list)(tarn_allocator *, Item *, size_t),
                          tarn_allocator *allocator)
{
    std::vector<Item> items(list(allocator, nullptr, 0));

    items.resize(std::min(items.size(), list(allocator, items.data(), items.size())));
    return items;
}

cca::DeviceStats device_stats(tarn_allocator *allocator)
{
    const tarn_stats stats = stats_of(allocator);
    using Stats = cca::DeviceStats;
    static constexpr StatArray Stats::*members[] = {
        &Stats::allocation,      &Stats::segment,
        &Stats::active,          &Stats::inactive_split,
        &Stats::allocated_bytes, &Stats::reserved_bytes,
        &Stats::active_bytes,    &Stats::inactive_split_bytes,
        &Stats::requested_bytes,
    };
    Stats made;

    static_assert(std::size(members) == TARN_STAT_KINDS, "in the order of libtarn's kinds");
    for (size_t kind = 0; kind < std::size(members); kind++) {
        made.*members[kind] = stats_by_pool(stats.by_pool[kind]);
    }
    made.num_alloc_retries = stats.num_alloc_retries;
    made.num_ooms = stats.num_ooms;
    made.oversize_allocations = stat_of(stats.oversize_allocations);
    made.oversize_segments = stat_of(stats.oversize_segments);
    made.num_sync_all_streams = stats.num_sync_all_streams;
    made.num_device_alloc = stats.num_device_alloc;
    made.num_device_free = stats.num_device_free;
    TARN_SET_IF_PRESENT(made, num_oom_rejections, stats.num_oom_rejections);
    made.max_split_size = stats.max_split_size;
    /* 2.14 */
    set_if_valid(made, [=](auto &it) -> decltype(void(it.reserved_bytes_by_private_pools)) {
        for (const auto &pool : list_of(tarn_allocator_get_pool_reserved, allocator)) {
            it.reserved_bytes_by_private_pools[{pool.id.first, pool.id.second}] =
                stats_by_pool(pool.by_pool);
        }
    });
    return made;
}

/* ---- callbacks of torch ---- */

/* A list that only grows: one may be being called. No lock: some are called under libtarn's. */
template <class Item> struct Callbacks {
    struct Node {
        const Item item;
        std::atomic<Node *> next;
    };

    void add(Item item)
    {
        auto *const added = new Node{std::move(item), {}};
        std::atomic<Node *> *end = &first;

        for (Node *found = nullptr; !end->compare_exchange_strong(found, added); found = nullptr) {
            end = &found->next;
        }
    }

    template <class... Arguments> void call_all(const Arguments &...arguments) const
    {
        for (const Node *node = first.load(); node; node = node->next.load()) {
            node->item(arguments...);
        }
    }

    std::atomic<Node *> first{nullptr};
};

Callbacks<cca::OutOfMemoryObserver> oom_observers;
Callbacks<cca::OutOfMemoryObserver> rejection_observers; /* torch 2.14 has a name of its own */
Callbacks<cca::AllocatorTraceTracker> trackers;

void run_out(void * /*context*/, const tarn_oom *oom)
{
    const uint64_t total = oom->limit == TARN_SIZE_UNLIMITED ? oom->device_total : oom->limit;

    contained([&] {
        c10::reportOutOfMemoryToProfiler(static_cast<int64_t>(oom->rounded), oom->allocated,
                                         oom->reserved, device_of(oom->device));
        oom_observers.call_all(oom->device, oom->segment_size, total, oom->device_free);
        if (oom->rejected) {
            rejection_observers.call_all(oom->device, oom->rounded, oom->allocated,
                                         oom->device_total);
        }
    });
}

/* What torch registered to be run when no free block fits: memory that other processes have let go
 * of is freed, for example. */
bool free_memory(void * /*context*/, tarn_allocator * /*allocator*/, uint64_t /*size*/,
                 tarn_stream /*stream*/)
{
    return contained([] {
        bool freed = false;

        for (const auto &name : c10::FreeCudaMemoryCallbacksRegistry()->Keys()) {
            freed |= c10::FreeCudaMemoryCallbacksRegistry()->Create(name)->Execute();
        }
        return freed;
    });
}

/* Under the device's lock, as torch promises its trackers. With the stack that a recording of
 * RecordContext::ALLOC or more would keep, as in torch's record_trace. */
void track(void * /*context*/, const tarn_trace_event *event)
{
    contained([&] {
        if (has_entry(event->action)) {
            trackers.call_all(trace_entry(*event, history_stack(event->device, event->stack)));
        }
    });
}

/* ---- pools ---- */

/* torch's own allocator of a torch.cuda.MemPool as the source of a pool's segments. */
using Source = std::shared_ptr<cca::CUDAAllocator>;

tarn_pool_source source_of(Source *source)
{
    const auto alloc = [](void *context, uint64_t size, tarn_stream stream) {
        return contained([&] {
            return ptr_of(
                (*static_cast<Source *>(context))->raw_alloc_with_stream(size, stream_at(stream)));
        });
    };
    const auto free = [](void *context, tarn_ptr ptr) {
        contained([&] { (*static_cast<Source *>(context))->raw_delete(pointer_of(ptr)); });
    };

    return {sizeof(tarn_pool_source), source, alloc, free,
            [](void *context) { delete static_cast<Source *>(context); }};
}

struct Checkpoint final : cca::AllocatorState {
    std::shared_ptr<tarn_checkpoint> kept;
};

/* ---- memory ---- */

/* Bytes of an allocated block that torch's profiler is to know of; 0: it does not ask. Called for
 * every block: most threads have no profiler, and then one call into torch says so, where
 * memoryProfilingEnabled takes two. */
int64_t profiled_size(tarn_ptr ptr, tarn_allocator **owner_out)
{
    uint64_t bytes = 0;

    if (C10_UNLIKELY(c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PROFILER_STATE)) &&
        c10::memoryProfilingEnabled() &&
        !tarn_devices_find_owner(devices, ptr, owner_out, nullptr)) {
        (void)!tarn_allocator_block_size(*owner_out, ptr, &bytes, nullptr);
    }
    return static_cast<int64_t>(bytes);
}

void report_to_profiler(tarn_allocator *owner, tarn_ptr ptr, int64_t size)
{
    const tarn_stats stats = stats_of(owner);

    c10::reportMemoryUsageToProfiler(
        pointer_of(ptr), size, stats.by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL].current,
        stats.by_pool[TARN_STAT_RESERVED_BYTES][TARN_STAT_ALL].current,
        device_of(tarn_allocator_get_ordinal(owner)));
}

/* At that address, unless it is 0. */
void *allocate_on(int device, size_t size, cudaStream_t stream, tarn_ptr address = 0)
{
    tarn_allocator *owner = nullptr;
    tarn_ptr ptr = address;
    tarn_error error;
    const tarn_status status =
        C10_UNLIKELY(address != 0)
            ? tarn_allocator_alloc_at(allocator_of(device), size, ptr_of(stream), address, &error)
            : tarn_devices_alloc(devices, device, size, ptr_of(stream), &ptr, &error);

    void *const allocated = conclude_alloc(status, ptr, error);

    if (const auto *tracer = c10::impl::GPUTrace::get_trace(); C10_UNLIKELY(tracer != nullptr)) {
        (*tracer)->trace_gpu_memory_allocation(c10::kCUDA, ptr);
    }
    if (const int64_t size_reported = profiled_size(ptr, &owner)) {
        report_to_profiler(owner, ptr, size_reported);
    }
    return allocated;
}

/* torch knows memory of the class by this function. In a forked child there is nothing to free. */
void delete_block(void *ptr)
{
    tarn_allocator *owner = nullptr;
    tarn_error error;

    if (!ptr) {
        return;
    }
    if (const auto *tracer = c10::impl::GPUTrace::get_trace(); C10_UNLIKELY(tracer != nullptr)) {
        (*tracer)->trace_gpu_memory_deallocation(c10::kCUDA, ptr_of(ptr));
    }
    const int64_t size = profiled_size(ptr_of(ptr), &owner);
    const tarn_status status = tarn_devices_free(devices, ptr_of(ptr), &error);

    conclude_free(status, error);
    if (size > 0 && status == TARN_OK) {
        report_to_profiler(owner, ptr_of(ptr), -size);
    }
}

/* ---- the class ---- */

/* Of getExpandableSegmentSizes, where torch has it. */
template <class Base>
auto sizes_of(int) -> decltype(std::declval<Base>().getExpandableSegmentSizes(0));
template <class Base> auto sizes_of(...) -> std::vector<std::tuple<cudaStream_t, bool, size_t>>;

class Allocator final : public cca::CUDAAllocator
{
  public:
    c10::DataPtr allocate(size_t size) override
    {
        return allocateWithAddress(size, nullptr);
    }

    void *raw_alloc(size_t size) override
    {
        return allocate(size).release_context();
    }

    void *raw_alloc_with_stream(size_t size, cudaStream_t stream) override
    {
        return allocate_on(current_device(), size, stream);
    }

    c10::DataPtr allocateWithAddress(size_t size, void *address) /* 2.13 */
    {
        const c10::Device device = device_of(current_device());
        const auto stream = c10::cuda::getCurrentCUDAStream(device.index());
        void *const ptr = allocate_on(device.index(), size, stream.stream(), ptr_of(address));

        return {ptr, ptr, &delete_block, device};
    }

    c10::DeleterFnPtr raw_deleter() const override
    {
        return &delete_block;
    }

    void raw_delete(void *ptr) override
    {
        delete_block(ptr);
    }

    void *getBaseAllocation(void *ptr, size_t *size) override
    {
        tarn_ptr base = 0;

        call(tarn_allocator_base_allocation, owner_of(ptr), ptr_of(ptr), &base, size);
        return pointer_of(base);
    }

    /* Memory of another owner, such as another process, has another deleter. */
    void recordStream(const c10::DataPtr &data, c10::cuda::CUDAStream stream) override
    {
        if (data.get() && data.get_deleter() == &delete_block) {
            call(tarn_allocator_record_stream, owner_of(data.get()), ptr_of(data.get()),
                 ptr_of(stream.stream()));
        }
    }

    void copy_data(void *to, const void *from, size_t count) const override
    {
        C10_CUDA_CHECK(cudaMemcpy(to, from, count, cudaMemcpyDeviceToDevice));
    }

    void init(int device_count) override
    {
        device_count_ = device_count;
    }

    bool initialized() override
    {
        return device_count_ > 0;
    }

    void enable(bool value)
    {
        call(tarn_devices_set_enabled, devices, value);
    }

    bool isEnabled() const
    {
        return tarn_devices_is_enabled(devices);
    }

#if TORCH_VERSION_MINOR < 8
    void emptyCache() override
    {
        emptyCache(active_pool());
    }

    cca::SnapshotInfo snapshot() override
    {
        return snapshot(active_pool(), true);
    }
#endif

    void emptyCache(MempoolId_t pool)
    {
        if (pool == MempoolId_t{0, 0}) {
            call(tarn_devices_empty_pool, devices, pool_of(pool));
        } else { /* called by the destructor of the pool */
            attempt(tarn_devices_empty_pool, devices, pool_of(pool));
        }
    }

    std::string name() override
    {
        const auto backend = get<tarn_config>(tarn_devices_get_config, devices).backend;

        return backend == TARN_BACKEND_ASYNC ? "cudaMallocAsync" : "native";
    }

    double getMemoryFraction(DeviceIndex device)
    {
        return tarn_allocator_get_memory_fraction(allocator_of(device));
    }

    void setMemoryFraction(double fraction, DeviceIndex device) override
    {
        call(tarn_allocator_set_memory_fraction, allocator_of(device), fraction);
    }

    decltype(sizes_of<cca::CUDAAllocator &>(0)) getExpandableSegmentSizes(DeviceIndex device)
    {
        decltype(sizes_of<cca::CUDAAllocator &>(0)) sizes;

        for (const auto &segment :
             list_of(tarn_allocator_get_expandable_segments, allocator_of(device))) {
            sizes.emplace_back(stream_at(segment.stream), !segment.is_large, segment.total_size);
        }
        return sizes;
    }

    void cacheInfo(DeviceIndex device, size_t *largest) override
    {
        call(tarn_allocator_cache_info, allocator_of(device), largest);
    }

    cca::DeviceStats getDeviceStats(DeviceIndex device) override
    {
        return device_stats(allocator_of(device));
    }

    void resetAccumulatedStats(DeviceIndex device) override
    {
        tarn_allocator_reset_accumulated_stats(allocator_of(device));
    }

    void resetPeakStats(DeviceIndex device) override
    {
        tarn_allocator_reset_peak_stats(allocator_of(device));
    }

    void enablePeerAccess(DeviceIndex device, DeviceIndex peer) override
    {
        TORCH_CHECK(get<bool>(tarn_allocator_reach_peer, allocator_of(device), allocator_of(peer)),
                    "device ", int{device}, " cannot access the memory of device ", int{peer});
    }

    cudaError_t memcpyAsync(void *to, int to_device, const void *from, int from_device,
                            size_t count, cudaStream_t stream, bool peer_access) override
    {
        const bool by_peer = tarn_allocator_choose_copy(tarn_devices_find(devices, to_device),
                                                        tarn_devices_find(devices, from_device),
                                                        peer_access) == TARN_COPY_PEER;

        return by_peer ? cudaMemcpyPeerAsync(to, to_device, from, from_device, count, stream)
                       : cudaMemcpyAsync(to, from, count, cudaMemcpyDeviceToDevice, stream);
    }

    /* The handle is a message of libtarn and names the block itself. */
    cca::ShareableHandle shareIpcHandle(void *ptr) override
    {
        tarn_allocator *const owner = owner_of(ptr);
        size_t length = TARN_IPC_MESSAGE_SIZE;
        std::string message;
        tarn_error error;
        tarn_status status;

        do {
            message.resize(length);
            status = tarn_ipc_export(owner, ptr_of(ptr), message.data(), length, &length, &error);
        } while (status == TARN_ERR_LIMIT && length > message.size());
        conclude(status, error);
        message.resize(length);
        return {0, std::move(message)};
    }

    std::shared_ptr<void> getIpcDevPtr(std::string handle) override
    {
        tarn_allocator *const allocator = allocator_of(current_device());
        tarn_ptr ptr = 0;

        call(tarn_ipc_open, allocator, handle.data(), handle.size(), &ptr, nullptr);
        return {pointer_of(ptr),
                [=](void *opened) { attempt(tarn_ipc_close, allocator, ptr_of(opened)); }};
    }

    void beginAllocateToPool(DeviceIndex device, MempoolId_t id,
                             std::function<bool(cudaStream_t)> filter) override
    {
#if TORCH_VERSION_MINOR < 8 /* the pool is made before torch says where its memory comes from */
        auto *const pool = c10::cuda::MemPoolContext::getActiveMemPool();

        TORCH_CHECK_NOT_IMPLEMENTED(!pool || !pool->allocator(),
                                    "tarn takes a MemPool's own allocator since torch 2.8");
#endif
        /* torch 2.13 and newer announces captures; before, any use may be one */
        call(begin_pool, device, pool_of(id), TORCH_VERSION_MINOR < 13,
             [kept = std::move(filter)](void *stream) {
                 return kept(static_cast<cudaStream_t>(stream));
             });
    }

    void endAllocateToPool(DeviceIndex device, MempoolId_t id) override
    {
        call(tarn_devices_end_pool, devices, device, pool_of(id));
        call(tarn_allocator_join_frees, allocator_of(device),
             ptr_of(c10::cuda::getCurrentCUDAStream(device).stream()));
    }

    void markCaptureBegin(DeviceIndex device) /* 2.13 */
    {
        call(tarn_allocator_begin_capture, allocator_of(device));
    }

    void markCaptureEnd(DeviceIndex device)
    {
        call(tarn_allocator_end_capture, allocator_of(device));
    }

    /* Destructors of graphs and pools call it. */
    void releasePool(DeviceIndex device, MempoolId_t id) override
    {
        if (tarn_allocator *const allocator = tarn_devices_find(devices, device)) {
            attempt(tarn_allocator_release_pool, allocator, pool_of(id));
        }
    }

    int getPoolUseCount(DeviceIndex device, MempoolId_t id)
    {
        tarn_allocator *const allocator = tarn_devices_find(devices, device);

        return allocator ? static_cast<int>(tarn_allocator_pool_use_count(allocator, pool_of(id)))
                         : 0;
    }

    void ensureExistsAndIncrefPool(DeviceIndex device, MempoolId_t id)
    {
        createOrIncrefPool(device, id, Source());
    }

    void createOrIncrefPool(DeviceIndex device, MempoolId_t id, cca::CUDAAllocator *source)
    {
        createOrIncrefPool(device, id, Source(Source(), source)); /* torch owns it */
    }

    void createOrIncrefPool(DeviceIndex device, MempoolId_t id, Source source) /* 2.11 */
    {
        tarn_allocator *const allocator = allocator_of(device);

        if (!source) {
            call(tarn_allocator_acquire_pool, allocator, pool_of(id));
            return;
        }
        auto kept = std::make_unique<Source>(std::move(source));
        const tarn_pool_source from = source_of(kept.get());

        call(tarn_allocator_create_pool_from, allocator, pool_of(id), &from);
        (void)kept.release();
    }

    void setUseOnOOM(DeviceIndex device, MempoolId_t id)
    {
        setUseOnOOM(device, id, true);
    }

    void setUseOnOOM(DeviceIndex device, MempoolId_t id, bool use_on_oom)
    {
        if (tarn_allocator *const allocator = tarn_devices_find(devices, device)) {
            /* the destructor of a pool calls it for one that is gone */
            (void)!tarn_allocator_set_pool_use_on_oom(allocator, pool_of(id), use_on_oom);
        }
    }

    void setNoSplit(DeviceIndex device, MempoolId_t id)
    {
        TORCH_CHECK(!tarn_allocator_set_pool_no_split(allocator_of(device), pool_of(id), true),
                    "there is no such pool to switch splitting off in");
    }

    bool checkPoolLiveAllocations(DeviceIndex device, MempoolId_t id,
                                  const std::unordered_set<void *> &expected) override
    {
        std::vector<tarn_ptr> pointers(expected.size());

        std::transform(expected.begin(), expected.end(), pointers.begin(), ptr_of);
        return get<bool>(tarn_allocator_check_pool_live, allocator_of(device), pool_of(id),
                         pointers.data(), pointers.size());
    }

    std::shared_ptr<cca::AllocatorState> getCheckpointState(DeviceIndex device,
                                                            MempoolId_t id) override
    {
        const auto state = std::make_shared<Checkpoint>();

        state->kept.reset(get<tarn_checkpoint *>(tarn_allocator_get_checkpoint,
                                                 allocator_of(device), pool_of(id)),
                          tarn_checkpoint_destroy);
        return state;
    }

    cca::CheckpointDelta setCheckpointPoolState(DeviceIndex device,
                                                std::shared_ptr<cca::AllocatorState> state) override
    {
        const auto *const checkpoint = dynamic_cast<const Checkpoint *>(state.get());
        cca::CheckpointDelta result;
        tarn_checkpoint_delta delta = {};
        const std::unique_ptr<tarn_checkpoint_delta, void (*)(tarn_checkpoint_delta *)> owned(
            &delta, tarn_checkpoint_delta_fini);

        TORCH_CHECK(checkpoint, "the checkpoint of a pool is not one of this allocator");
        call(tarn_allocator_set_checkpoint, allocator_of(device), checkpoint->kept.get(), &delta);
        std::transform(delta.freed, delta.freed + delta.freed_count,
                       std::back_inserter(result.ptrs_freed), pointer_of);
        for (size_t i = 0; i < delta.created_count; i++) {
            void *const ptr = pointer_of(delta.created[i]);

            result.dataptrs_allocd.emplace_back(ptr, ptr, &delete_block, device_of(device));
        }
        return result;
    }

    bool isHistoryEnabled() override
    {
        return tarn_devices_is_recording(devices);
    }

    void recordHistory(bool enabled, cca::CreateContextFn recorder, size_t max_entries,
                       cca::RecordContext when)
    {
        recordHistory(enabled, recorder, max_entries, when, false, {});
    }

    void recordHistory(bool enabled, cca::CreateContextFn recorder, size_t max_entries,
                       cca::RecordContext when, bool clear)
    {
        recordHistory(enabled, recorder, max_entries, when, clear, {});
    }

    void recordHistory(bool enabled, cca::CreateContextFn recorder, size_t max_entries,
                       cca::RecordContext when, bool clear,
                       const std::vector<std::string> &skip_actions)
    {
        TORCH_CHECK(when == cca::RecordContext::NEVER || recorder,
                    "stacks need a recorder of stacks");
        tarn_recording recording = {};

        recording.level = static_cast<tarn_context_level>(when);
        recording.clear = clear;
        recording.max_entries = max_entries;
        for (const std::string &skipped : skip_actions) {
            tarn_action action;

            TORCH_CHECK(tarn_action_find(skipped.c_str(), &action),
                        "Unknown TraceEntry action: ", skipped);
            recording.skip_actions |= uint64_t{1} << action;
        }
        if (enabled) {
            check_native("recordHistory");
            call(history_record, recording, recorder);
        } else {
            call(tarn_devices_record, devices, nullptr);
        }
    }

    void recordAnnotation(const std::vector<std::pair<std::string, std::string>> &fields)
    {
        std::vector<tarn_annotation_field> kept;

        if (!isHistoryEnabled()) {
            return; /* and the device stays as it is */
        }
        for (const auto &[key, value] : fields) {
            kept.push_back({key.c_str(), value.c_str()});
        }
        tarn_devices_annotate(devices, current_device(), kept.data(), kept.size());
    }

    void pushCompileContext(std::string &text)
    {
        tarn_enter_compile_context(text.c_str());
    }

    void popCompileContext()
    {
        tarn_pop_compile_context();
    }

    void setUserMetadata(const std::string &text)
    {
        TORCH_CHECK(!tarn_set_user_metadata(text.c_str()), "metadata has at most ",
                    TARN_LABEL_MAX - 1, " bytes");
    }

    bool supportsUserMetadata()
    {
        return true;
    }

    std::string getUserMetadata()
    {
        return tarn_get_user_metadata();
    }

    void annotateMemory(const void *ptr, const std::string &text) /* 2.14 */
    {
        call(tarn_allocator_annotate, owner_of(ptr), ptr_of(ptr), text.c_str());
    }

    std::shared_ptr<c10::GatheredContext> getContextForPointer(const void *ptr)
    {
        return stack_of(tarn_devices_find_host_stack(devices, ptr_of(ptr)));
    }

    cca::SnapshotInfo snapshot(MempoolId_t pool)
    {
        return snapshot(pool, true);
    }

    cca::SnapshotInfo snapshot(MempoolId_t pool, bool with_traces)
    {
        return history_snapshot(device_count_, pool_of(pool), with_traces);
    }

    void attachOutOfMemoryObserver(cca::OutOfMemoryObserver observer) override
    {
        check_native("attachOutOfMemoryObserver");
        oom_observers.add(std::move(observer));
    }

    /* of requests that throw_on_cudamalloc_oom refused */
    void attachOomRejectionObserver(cca::OutOfMemoryObserver observer)
    {
        check_native("attachOomRejectionObserver");
        rejection_observers.add(std::move(observer));
    }

    void attachAllocatorTraceTracker(cca::AllocatorTraceTracker tracker) override
    {
        const tarn_sink sink = {&trackers, TARN_CONTEXT_NEVER, nullptr, track, nullptr, nullptr};

        check_native("attachAllocatorTraceTracker");
        trackers.add(std::move(tracker));
        call(tarn_devices_add_sink, devices, &sink); /* once */
    }

  private:
    void check_native(const char *method)
    {
        TORCH_CHECK_NOT_IMPLEMENTED(name() == "native", "cudaMallocAsync has no ", method);
    }

    /* Threads without a context get one: asking the runtime takes them 10 us each time. */
    int current_device() const
    {
        if (C10_LIKELY(device_count_ == 1)) {
            return 0; /* there is no other */
        }
        c10::cuda::SetTargetDevice(); /* torch defers it while the device has no context */
        const int found = CUDART_VERSION < 12000 ? TARN_DEVICE_UNKNOWN /* see there */
                                                 : tarn_devices_find_current(devices);
        const int device = C10_LIKELY(found >= 0) ? found : c10::cuda::current_device();

        if (C10_UNLIKELY(found == TARN_DEVICE_UNBOUND)) {
            C10_CUDA_CHECK(cudaSetDevice(device));
        }
        return device;
    }

    std::atomic<int> device_count_{0};
};

} // namespace

void conclude(tarn_status status, const tarn_error &error)
{
    TORCH_CHECK_WITH(OutOfMemoryError, status != TARN_ERR_OUT_OF_MEMORY, error.text);
    TORCH_CHECK_NOT_IMPLEMENTED(status != TARN_ERR_NOT_SUPPORTED, error.text);
    TORCH_CHECK(status == TARN_OK, error.text);
}

} // namespace tarn_torch

tarn_status tarn_torch_install(const char *torch_version, tarn_error *error)
{
    using namespace tarn_torch;

    constexpr size_t length = sizeof TORCH_VERSION - 1; /* "2.11.0" of "2.11.0+cu130" */
    const bool is_same = std::strncmp(torch_version, TORCH_VERSION, length) == 0 &&
                         !std::isdigit(static_cast<unsigned char>(torch_version[length]));
    cca::CUDAAllocator *const present = cca::allocator.load();

    if (!is_same || (present && present->initialized())) {
        error->status = is_same ? TARN_ERR_STATE : TARN_ERR_MISMATCH;
        error->offset = -1;
        (void)std::snprintf(error->text, sizeof error->text,
                            is_same ? "the allocator of torch %s is in use already: install tarn "
                                      "before the first use of a GPU"
                                    : "this library was compiled for torch " TORCH_VERSION
                                      ", and torch %s is running: build it again for that one",
                            torch_version);
        return error->status;
    }
    if (tarn_devices_add_oom_observer(devices, run_out, nullptr, error) ||
        tarn_devices_add_memory_callback(devices, free_memory, nullptr, error)) {
        return error->status;
    }
    static auto *const instance = new Allocator; /* for good */

    cca::allocator.store(instance);
    c10::SetAllocator(c10::DeviceType::CUDA, instance);
    return TARN_OK;
}
