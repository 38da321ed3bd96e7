/* SPDX-License-Identifier: MIT */
/* torch's allocator class over libtarn, compiled against torch's own headers and called through
 * torch's own functions, with a stand-in for torch's libraries and on simulated devices. */
#include "plug/harness.h"
#include "plug/test_class_pool.h"
#include "plug/torch_stub.h"
#include "plug/torch_versions.h"

#include <algorithm>
#include <c10/cuda/CUDAStream.h>

#include <cstdlib>
#include <stdexcept>
#include <thread>

using namespace harness;
using namespace torch_versions;

namespace
{

using Action = cca::TraceEntry::Action;

/* What the exception says, with "memory: " before it when it is the one for memory that ran out, and
 * "foreign: " when it is not torch's. */
template <class Function> std::string failure(Function function)
{
    try {
        function();
    } catch (const c10::OutOfMemoryError &error) {
        return std::string("memory: ") + error.what();
    } catch (const c10::Error &error) {
        return error.what();
    } catch (const std::exception &error) {
        return std::string("foreign: ") + error.what();
    }
    CHECK(!"an exception");
    return "";
}

cudaStream_t stream(uintptr_t number)
{
    return reinterpret_cast<cudaStream_t>(number);
}

template <class StatArray> auto stat(const StatArray &array)
{
    return array[0];
}

int64_t allocated(c10::DeviceIndex device = 0)
{
    return stat(cca::getDeviceStats(device).allocated_bytes).current;
}

bool any(cudaStream_t)
{
    return true;
}

struct Freer final : c10::FreeMemoryCallback {
    static inline int ran;

    bool Execute() override
    {
        ran++;
        return false;
    }
};

} // namespace

namespace c10
{
REGISTER_FREE_MEMORY_CALLBACK("test", Freer)
}

namespace
{

/* The first case: the others need what it leaves. */
void it_is_installed_once_and_early()
{
    tarn_error error;

    (void)open_sim(0, GIB);
    (void)open_sim(1, GIB);
    CHECK(tarn_torch_install("2.5.0", &error) == TARN_ERR_MISMATCH);
    CHECK(has(error.text, "torch 2.5.0 is running: build it again"));
    CHECK(tarn_torch_install(TORCH_VERSION "1", &error) == TARN_ERR_MISMATCH);
    CHECK(tarn_torch_install(TORCH_VERSION ".dev20260101", &error) == TARN_OK);
    CHECK(tarn_torch_install(TORCH_VERSION "+cu130", &error) == TARN_OK); /* again */
    CHECK(c10::GetAllocator(c10::kCUDA) == cca::get());
    CHECK(!cca::get()->initialized());
    cca::init(2);
    CHECK(cca::get()->initialized() && cca::name() == "native");
    CHECK(tarn_torch_install(TORCH_VERSION, &error) == TARN_ERR_STATE);
    CHECK(has(error.text, "in use already"));
}

void tensors_get_memory()
{
    {
        const c10::DataPtr data = cca::get()->allocate(3 * MIB);
        const c10::DataPtr nothing = cca::get()->allocate(0);
        size_t size = 0;

        CHECK(data.get() && data.get_context() == data.get());
        CHECK(data.get_deleter() == cca::get()->raw_deleter() && data.device().index() == 0);
        CHECK(allocated() == 3 * MIB && !nothing.get());
        CHECK(stat(cca::getDeviceStats(0).reserved_bytes).current == 20 * MIB);
        CHECK(cca::getDeviceStats(0).max_split_size == -1);
        CHECK(cca::getBaseAllocation(data.get(), &size) == data.get() && size == 20 * MIB);
        const auto side = c10::cuda::getStreamFromPool(true, 0);
        const c10::DataPtr foreign(data.get(), c10::Device(c10::kCUDA, 0));

        cca::recordStream(data, side);
        cca::recordStream(nothing, side);
        cca::recordStream(foreign, side); /* of another owner: left alone */
    }
    CHECK(allocated() == 0);
    size_t largest = 0;

    cca::cacheInfo(0, &largest);
    CHECK(largest > 0);
    cca::resetPeakStats(0);
    cca::resetAccumulatedStats(0);
    CHECK(stat(cca::getDeviceStats(0).allocation).allocated == 0);
    empty_cache();
    CHECK(stat(cca::getDeviceStats(0).reserved_bytes).current == 0);
}

void failures_are_torchs_exceptions()
{
    CHECK(has(failure([] { cca::raw_delete(stream(0x1234)); }), "invalid device pointer: 0x1234"));
    CHECK(has(failure([] { cca::raw_alloc(2 * GIB); }), "memory: CUDA out of memory. Tried to"));
    CHECK(has(failure([] { cca::raw_alloc(uint64_t{1} << 61); }), "more than 1EB"));
    CHECK(Freer::ran > 0);
    cca::setMemoryFraction(0.5, 0);
    on_allocator([](auto &it) -> decltype(void(it.getMemoryFraction(0))) {
        CHECK(it.getMemoryFraction(0) == 0.5);
    });
    CHECK(has(failure([] { cca::raw_alloc(600 * MIB); }), "512.00 MiB allowed"));
    CHECK(has(failure([] { cca::setMemoryFraction(2, 0); }), "invalid fraction"));
    cca::setMemoryFraction(1.0, 0);
}

void observers_see_memory_run_out()
{
    static int seen;
    const int reported = torch_stub::oom_reports;

    cca::attachOutOfMemoryObserver([](int64_t device, size_t asked, size_t total, size_t free) {
        CHECK(device == 0 && asked >= 200 * MIB && total == GIB && free <= total);
        seen++;
    });
    (void)failure([] { cca::raw_alloc(2 * GIB); });
    CHECK(seen == 1 && torch_stub::oom_reports == reported + 1);
    cca::attachOutOfMemoryObserver([](int64_t, size_t, size_t, size_t) {
        if (seen == 2) {
            throw std::runtime_error("observer");
        }
    });
    CHECK(failure([] { cca::raw_alloc(2 * GIB); }) == "foreign: observer");
    CHECK(has(failure([] { cca::raw_alloc(2 * GIB); }), "memory: "));
}

void the_profiler_sees_memory()
{
    torch_stub::profiler = torch_stub::Profiler::of_memory;
    void *const ptr = cca::raw_alloc(1000);

    CHECK(torch_stub::reports == 1 && torch_stub::reported_size == 1024);
    CHECK(torch_stub::reported_total == 1024);
    cca::raw_delete(ptr);
    CHECK(torch_stub::reports == 2 && torch_stub::reported_size == -1024);
    CHECK(torch_stub::reported_total == 0);
    (void)failure([] { cca::raw_delete(stream(0x1234)); });
    CHECK(torch_stub::reports == 2);
    torch_stub::profiler = torch_stub::Profiler::of_time;
    cca::raw_delete(cca::raw_alloc(1000));
    CHECK(torch_stub::reports == 2);
    torch_stub::profiler = torch_stub::Profiler::none;
}

void pools_and_checkpoints()
{
    const MempoolId_t id{0, 1};

    create_pool(id);
    CHECK(cca::getPoolUseCount(0, id) == 1 && cca::getPoolUseCount(0, {0, 99}) == 0);
    cca::beginAllocateToPool(0, id, [](cudaStream_t asked) { return asked == stream(7); });
    CHECK(has(failure([&] { cca::beginAllocateToPool(0, id, any); }), "already routed"));
    void *const inside = cca::raw_alloc_with_stream(MIB, stream(7));
    void *const outside = cca::raw_alloc(MIB);

    cca::endAllocateToPool(0, id);
    CHECK(has(failure([&] { cca::endAllocateToPool(0, id); }), "pool"));
    CHECK(cca::checkPoolLiveAllocations(0, id, {inside}));
    CHECK(!cca::checkPoolLiveAllocations(0, id, {outside}));
    const auto full = cca::getCheckpointState(0, id);

    cca::raw_delete(inside);
    const auto empty = cca::getCheckpointState(0, id);
    auto delta = cca::setCheckpointPoolState(0, full);

    CHECK(delta.ptrs_freed.empty() && delta.dataptrs_allocd.size() == 1);
    CHECK(delta.dataptrs_allocd[0].get() == inside);
    CHECK(cca::setCheckpointPoolState(0, empty).ptrs_freed.size() == 1);
    (void)delta.dataptrs_allocd[0].release_context(); /* the checkpoint has freed it */
    CHECK(has(failure([] { cca::setCheckpointPoolState(0, nullptr); }), "not one of this"));
    const MempoolId_t unknown{0, 99};

    on_allocator([&](auto &it) -> decltype(void(it.setUseOnOOM(0, id, true))) {
        it.setUseOnOOM(0, id, true);
        it.setUseOnOOM(0, unknown, true); /* a destructor: no exception */
    });
    on_allocator([&](auto &it) -> decltype(void(it.setUseOnOOM(0, id))) { it.setUseOnOOM(0, id); });
    on_allocator([&](auto &it) -> decltype(void(it.setNoSplit(0, id))) {
        it.setNoSplit(0, id);
        CHECK(has(failure([&] { it.setNoSplit(0, unknown); }), "no such pool"));
    });
    cca::releasePool(0, id);
    cca::releasePool(0, id); /* the capture's use */
    CHECK(cca::getPoolUseCount(0, id) == 0);
    cca::releasePool(0, {0, 99}); /* a destructor: no exception */
    tarn_error error;

    CHECK(tarn_devices_last_error(devices, &error) && has(error.text, "no private pool (0, 99)"));
    empty_cache(id);
    cca::raw_delete(outside);
}

/* Since torch 2.14: what a pool reserves, and what stays of it until a reset. */
void private_pools_are_counted()
{
    on_allocator(
        [](auto &it) -> decltype(void(it.getDeviceStats(0).reserved_bytes_by_private_pools)) {
            const MempoolId_t id{0, 3};
            const auto counted = [&] {
                const auto stats = it.getDeviceStats(0).reserved_bytes_by_private_pools;
                const auto found = stats.find(id);

                CHECK(found != stats.end());
                return found == stats.end() ? decltype(found->second)() : found->second;
            };

            it.beginAllocateToPool(0, id, any);
            void *const small = it.raw_alloc(512);
            void *const large = it.raw_alloc(30 * MIB);

            it.endAllocateToPool(0, id);
            CHECK(counted()[0].current == 32 * MIB && counted()[0].allocated == 32 * MIB);
            CHECK(counted()[1].current == 2 * MIB && counted()[2].peak == 30 * MIB);
            it.raw_delete(small);
            it.raw_delete(large);
            it.releasePool(0, id);
            it.emptyCache(id);
            CHECK(counted()[0].current == 0 && counted()[0].peak == 32 * MIB);
            CHECK(counted()[0].freed == 32 * MIB && counted()[2].freed == 30 * MIB);
            it.resetPeakStats(0);
            CHECK(counted()[0].peak == 0);
            it.resetAccumulatedStats(0);
            CHECK(it.getDeviceStats(0).reserved_bytes_by_private_pools.count(id) == 0);
        });
}

void the_exception_of_a_filter_arrives()
{
    const int64_t before = allocated();
    const MempoolId_t id{0, 2};

    cca::beginAllocateToPool(0, id,
                             [](cudaStream_t) -> bool { throw std::runtime_error("filter"); });
    CHECK(failure([] { cca::raw_alloc(MIB); }) == "foreign: filter");
    CHECK(allocated() == before);
    cca::endAllocateToPool(0, id);
    cca::releasePool(0, id);
}

struct Gathered final : c10::GatheredContext {
    static inline int live;

    Gathered()
    {
        live++;
    }

    ~Gathered() override
    {
        live--;
    }
};

std::shared_ptr<c10::GatheredContext> gather()
{
    return std::make_shared<Gathered>();
}

void annotations_need_no_memory()
{
    record(gather, {});
    torch_stub::device = 1; /* not used so far */
    cca::recordAnnotation({{"name", "init"}, {"stage", "START"}});
    torch_stub::device = 0;
    CHECK(cca::snapshot().external_annotations.size() == 1);
    record(nullptr, {});
}

void history_has_torchs_stacks()
{
    CHECK(!cca::isHistoryEnabled());
    if (record(gather, {"snapshot"})) {
        CHECK(has(failure([] { record(gather, {"nonsense"}); }),
                  "Unknown TraceEntry action: nonsense"));
    }
    CHECK(cca::isHistoryEnabled());
    std::string region = "region";

    on_allocator([&](auto &it) -> decltype(void(it.pushCompileContext(region))) {
        it.pushCompileContext(region);
    });
    void *const ptr = cca::raw_alloc(5 * MIB);

    on_allocator(
        [](auto &it) -> decltype(void(it.popCompileContext())) { it.popCompileContext(); });
    cca::recordAnnotation({{"name", "step"}, {"stage", "START"}, {"more", "field"}});
    auto taken = cca::snapshot();
    const auto &entry = taken.device_traces.at(0).at(1);

    CHECK(taken.device_traces.size() == 2 && taken.device_traces[0].size() == 2);
    CHECK(entry.action_ == Action::ALLOC && entry.size_ == 5 * MIB);
    CHECK(entry.addr_ == reinterpret_cast<uintptr_t>(ptr));
    CHECK(std::dynamic_pointer_cast<Gathered>(entry.context_));
    CHECK(entry.time_.t_ > 1000000000000000); /* microseconds since 1970 */
    on(entry, [](auto &it) -> decltype(void(it.compile_context_)) {
        CHECK(it.compile_context_ == "region");
    });
    CHECK(taken.external_annotations.size() == 1);
    CHECK(taken.external_annotations[0].metadata_.at("name") == "step");
    CHECK(taken.external_annotations[0].metadata_.at("more") == "field");
    CHECK(taken.config_metadata.roundup_power2_divisions.size() == 16);
    on(taken.config_metadata, [](auto &it) -> decltype(void(it.max_cached_size)) {
        CHECK(it.max_cached_size == SIZE_MAX && it.max_round_threshold == SIZE_MAX);
    });
    uint64_t reserved = 0;
    size_t with_stack = 0;

    for (const auto &segment : taken.segments) {
        uint64_t size = 0;

        for (const auto &block : segment.blocks) {
            size += block.size;
            with_stack += block.context_when_allocated ? 1 : 0;
        }
        CHECK(size == segment.total_size);
        reserved += size;
    }
    CHECK(static_cast<int64_t>(reserved) == stat(cca::getDeviceStats(0).reserved_bytes).current);
    CHECK(with_stack == 1);
    cca::raw_delete(ptr);
    record(nullptr, {});
    CHECK(!cca::isHistoryEnabled());
    taken = {};
    empty_cache();
    CHECK(Gathered::live == 0); /* every stack was given back */
}

/* As torch's: the stack moves to the rest when a block is split off, and is lost when they merge. */
void segments_lose_their_stacks_when_they_are_split()
{
    record(gather, {});
    void *const whole = cca::raw_alloc(20 * MIB);
    const auto has_stack = [](const auto &it) { return it.context_when_allocated != nullptr; };

    CHECK(has_stack(cca::snapshot().segments.at(0)));
    cca::raw_delete(whole);
    CHECK(has_stack(cca::snapshot().segments.at(0)));
    void *const part = cca::raw_alloc(5 * MIB);

    CHECK(!has_stack(cca::snapshot().segments.at(0)));
    cca::raw_delete(part);
    CHECK(cca::snapshot().segments.at(0).blocks.size() == 1);
    CHECK(!has_stack(cca::snapshot().segments.at(0)));
    record(nullptr, {});
    empty_cache();
    CHECK(Gathered::live == 0);
}

/* -1 where this torch counts no segments. */
int64_t counter_of(const cca::SegmentInfo &segment)
{
    int64_t counter = -1;

    on(segment, [&](auto &it) -> decltype(void(it.registration_counter)) {
        counter = it.registration_counter;
    });
    return counter;
}

/* In the order in which they were made, whatever their addresses are. */
void segments_are_counted()
{
    std::vector<void *> made;

    for (size_t i = 0; i < 4; i++) {
        made.push_back(cca::raw_alloc(20 * MIB));
    }
    cca::raw_delete(made[0]);
    made.erase(made.begin());
    empty_cache();
    made.push_back(cca::raw_alloc(20 * MIB)); /* at the address of the first one */
    auto segments = cca::snapshot().segments;

    if (counter_of(segments.at(0)) >= 0) {
        CHECK(made.back() < made.front() && segments.size() == made.size());
        std::sort(segments.begin(), segments.end(),
                  [](const auto &a, const auto &b) { return counter_of(a) < counter_of(b); });
        for (size_t i = 0; i < made.size(); i++) {
            CHECK(segments[i].address == reinterpret_cast<uintptr_t>(made[i]));
        }
    }
    for (void *ptr : made) {
        cca::raw_delete(ptr);
    }
    empty_cache();
}

void snapshots_of_one_pool()
{
    const MempoolId_t id{0, 3};

    cca::beginAllocateToPool(0, id, any);
    void *const ptr = cca::raw_alloc(MIB);

    cca::endAllocateToPool(0, id);
    const auto only = snapshot_of(id);

    on_allocator([&](auto &it) -> decltype(void(it.snapshot(id))) {
        CHECK(only.segments.size() == 1 && only.segments[0].owner_private_pool_id == id);
    });
    on_allocator([&](auto &it) -> decltype(void(it.snapshot(id, false))) {
        CHECK(only.device_traces[0].empty());
    });
    cca::raw_delete(ptr);
    cca::releasePool(0, id);
    empty_cache(id);
}

void metadata_goes_with_events()
{
    record(gather, {});
    on_allocator([](auto &it) -> decltype(void(it.setUserMetadata(""))) {
        it.setUserMetadata("step 7");
        CHECK(it.getUserMetadata() == "step 7");
        cca::raw_delete(cca::raw_alloc(MIB));
        const auto taken = it.snapshot();

        CHECK(taken.device_traces[0].back().user_metadata_ == "step 7");
        CHECK(has(failure([&] { it.setUserMetadata(std::string(5000, 'x')); }),
                  "metadata has at most"));
        it.setUserMetadata("");
    });
    record(nullptr, {});
}

/* torch 2.14 */
void live_memory_is_annotated()
{
    void *const ptr = cca::raw_alloc(MIB);

    record(gather, {});
    on_allocator([&](auto &it) -> decltype(void(it.annotateMemory(ptr, ""))) {
        it.annotateMemory(ptr, "kv cache");
        const auto taken = it.snapshot();
        const auto &entry = taken.device_traces[0].back();

        CHECK(entry.action_ == std::decay_t<decltype(entry)>::ANNOTATE && entry.size_ == MIB);
        CHECK(entry.user_metadata_ == "kv cache" && entry.context_);
        CHECK(has(failure([&] { it.annotateMemory(stream(0x1234), ""); }), "not allocated here"));
    });
    record(nullptr, {});
    cca::raw_delete(ptr);
}

/* torch 2.13: torch.cuda.memory._allocation_traceback */
void a_pointer_has_a_stack()
{
    record(gather, {});
    void *const ptr = cca::raw_alloc(MIB);

    on_allocator([&](auto &it) -> decltype(void(it.getContextForPointer(ptr))) {
        CHECK(std::dynamic_pointer_cast<Gathered>(it.getContextForPointer(ptr)));
        CHECK(!it.getContextForPointer(static_cast<char *>(ptr) + 512));
        CHECK(!it.getContextForPointer(stream(0x1234)));
    });
    cca::raw_delete(ptr);
    on_allocator([&](auto &it) -> decltype(void(it.getContextForPointer(ptr))) {
        CHECK(!it.getContextForPointer(ptr));
    });
    record(nullptr, {});
    empty_cache();
    CHECK(Gathered::live == 0);
}

/* torch 2.13: UntypedStorage._resize_with_addr_ */
void memory_comes_back_at_its_address()
{
    char *const whole = static_cast<char *>(cca::raw_alloc(8 * MIB));

    cca::raw_delete(whole);
    on_allocator([&](auto &it) -> decltype(void(it.allocateWithAddress(0, whole))) {
        const int before = torch_stub::reports;

        torch_stub::profiler = torch_stub::Profiler::of_memory;
        {
            const c10::DataPtr data = it.allocateWithAddress(2 * MIB, whole + 2 * MIB);

            CHECK(data.get() == whole + 2 * MIB && data.get_deleter() == it.raw_deleter());
            CHECK(allocated() == 2 * MIB && torch_stub::reports == before + 1);
            CHECK(has(failure([&] { it.allocateWithAddress(2 * MIB, data.get()); }),
                      "no free block"));
        }
        torch_stub::profiler = torch_stub::Profiler::none;
    });
    CHECK(allocated() == 0);
}

void expandable_segments_are_listed()
{
    tarn_error error;

    empty_cache();
    CHECK(tarn_devices_configure(devices, "expandable_segments:True", &error) == TARN_OK);
    void *const first = cca::raw_alloc(30 * MIB);
    void *const second = cca::raw_alloc_with_stream(MIB, stream(55));

    on_allocator([](auto &it) -> decltype(void(it.getExpandableSegmentSizes(0))) {
        const auto sizes = it.getExpandableSegmentSizes(0);

        CHECK(sizes.size() == 2);
        CHECK(!sizes[0].is_small_pool && sizes[0].total_size == 40 * MIB);
        CHECK(sizes[1].is_small_pool && sizes[1].stream == stream(55));
    });
    cca::raw_delete(first);
    cca::raw_delete(second);
    empty_cache();
    CHECK(tarn_devices_configure(devices, "expandable_segments:False", &error) == TARN_OK);
}

void trackers_see_every_event()
{
    static std::vector<Action> actions;
    static bool angry;

    cca::attachAllocatorTraceTracker(
        [](const cca::TraceEntry &entry) { actions.push_back(entry.action_); });
    void *const ptr = cca::raw_alloc(30 * MIB);

    CHECK(actions.size() == 2 && actions[0] == Action::SEGMENT_ALLOC);
    cca::attachAllocatorTraceTracker([](const cca::TraceEntry &) {
        if (angry) {
            throw std::runtime_error("tracker");
        }
    });
    angry = true;
    CHECK(failure([] { cca::raw_alloc(MIB); }) == "foreign: tracker");
    tarn_error kept;

    cca::raw_delete(ptr); /* destructors do: no exception */
    CHECK(tarn_devices_last_error(devices, &kept) && has(kept.text, "tracker"));
    on_allocator([](auto &it) -> decltype(void(it.emptyCache(MempoolId_t()))) {
        const MempoolId_t id{0, 4};

        angry = false;
        it.beginAllocateToPool(0, id, any);
        it.raw_delete(it.raw_alloc(MIB));
        it.endAllocateToPool(0, id);
        cca::releasePool(0, {0, 99}); /* leaves another error */
        angry = true;
        it.releasePool(0, id);
        it.emptyCache(id); /* the destructor of a MemPool does */
        tarn_error error;

        CHECK(tarn_devices_last_error(devices, &error) && has(error.text, "tracker"));
    });
    angry = false;
    cca::raw_delete(cca::raw_alloc(MIB)); /* what was thrown before is not thrown here */
    actions.clear();
    torch_stub::device = 1; /* opened after the trackers came */
    cca::raw_delete(cca::raw_alloc(MIB));
    torch_stub::device = 0;
    CHECK(!actions.empty());
}

/* As torch's record_trace: those of a recording that puts stacks into its events. */
void trackers_get_the_stacks_of_a_recording()
{
    using Level = cca::RecordContext;
    static std::vector<std::pair<Action, std::shared_ptr<c10::GatheredContext>>> seen;
    const auto count = [](Action action) {
        size_t with_stack = 0;

        cca::raw_delete(cca::raw_alloc(30 * MIB));
        for (const auto &[seen_action, stack] : seen) {
            with_stack += seen_action == action && std::dynamic_pointer_cast<Gathered>(stack);
        }
        seen.clear();
        return with_stack;
    };

    cca::attachAllocatorTraceTracker(
        [](const cca::TraceEntry &entry) { seen.emplace_back(entry.action_, entry.context_); });
    CHECK(count(Action::ALLOC) == 0);
    record(gather, {}, Level::ALL);
    CHECK(count(Action::ALLOC) == 1 && count(Action::FREE_REQUESTED) == 1);
    empty_cache();
    seen.clear();
    CHECK(count(Action::SEGMENT_ALLOC) == 1);
    record(gather, {}, Level::ALLOC);
    CHECK(count(Action::ALLOC) == 1);
    record(gather, {}, Level::STATE);
    CHECK(count(Action::ALLOC) == 0);
    torch_stub::device = 1;
    record(gather, {"alloc"}, Level::ALL); /* of a history that has none */
    CHECK(count(Action::ALLOC) == 1);
    torch_stub::device = 0;
    record(nullptr, {});
    CHECK(count(Action::ALLOC) == 0);
    empty_cache();
    seen.clear();
    CHECK(Gathered::live == 0);
}

void several_devices()
{
    torch_stub::target = 1; /* torch has deferred it */
    void *const ptr = cca::raw_alloc(MIB);

    CHECK(torch_stub::device == 1);
    torch_stub::device = 0;
    CHECK(allocated(1) == MIB);
    cca::raw_delete(ptr); /* found, though another device is current */
    CHECK(allocated(1) == 0);
    cca::enablePeerAccess(0, 1);
    CHECK(torch_stub::device == 0);
    (void)cca::memcpyAsync(nullptr, 0, nullptr, 1, 5, nullptr, false);
    (void)cca::memcpyAsync(nullptr, 0, nullptr, 0, 5, nullptr, true);
    CHECK(torch_stub::plain_copies + torch_stub::peer_copies == 2);
    CHECK(torch_stub::plain_copies >= 1);
}

void handles_for_other_processes()
{
    void *const ptr = cca::raw_alloc(MIB);
    const auto handle = cca::shareIpcHandle(ptr);

    CHECK(handle.offset == 0 && handle.handle.size() > 20);
    CHECK(has(failure([&] { cca::getIpcDevPtr(handle.handle); }), "use the original pointer"));
    (void)failure([] { cca::getIpcDevPtr("x"); });
    (void)failure([] { cca::shareIpcHandle(stream(0x1234)); });
    cca::raw_delete(ptr);
}

void the_cache_is_switched_off()
{
    cca::enable(false);
    CHECK(!cca::isEnabled());
    void *const ptr = cca::raw_alloc(MIB);

    CHECK(allocated() == 0);
    torch_stub::profiler = torch_stub::Profiler::of_memory;
    cca::raw_delete(ptr);
    CHECK(torch_stub::reported_size == -static_cast<int64_t>(MIB));
    torch_stub::profiler = torch_stub::Profiler::none;
    cca::enable(true);
    CHECK(cca::isEnabled());
}

void many_threads()
{
    std::vector<std::thread> threads;

    for (uintptr_t i = 0; i < 8; i++) {
        threads.emplace_back([i] {
            for (int step = 0; step < 5000; step++) {
                cca::raw_delete(cca::raw_alloc_with_stream(512 << (step % 8), stream(i + 10)));
            }
        });
    }
    for (auto &thread : threads) {
        thread.join();
    }
    CHECK(allocated() == 0);
}

/* Alone in its process. */
uint64_t waits_of_streams(tarn_device *device)
{
    tarn_sim_counters counters;

    counters.struct_size = sizeof counters;
    tarn_sim_get_counters(device, &counters);
    return counters.calls[TARN_SIM_STREAM_WAIT_EVENT];
}

/* torch's current stream waits for those on which blocks were freed. */
void the_end_of_a_capture_joins_streams(tarn_device *device)
{
    const MempoolId_t id{0, 1};

    cca::beginAllocateToPool(0, id, any);
    cca::raw_delete(cca::raw_alloc_with_stream(MIB, stream(7)));
    cca::raw_delete(cca::raw_alloc_with_stream(MIB, stream(8)));
    const uint64_t before = waits_of_streams(device);

    cca::endAllocateToPool(0, id);
    CHECK(waits_of_streams(device) == before + 2);
    cca::releasePool(0, id);
}

void what_the_drivers_pools_lack_is_refused()
{
    const auto is_refused = [](auto call) {
        try {
            call();
        } catch (const c10::NotImplementedError &error) {
            return has(error.what(), "cudaMallocAsync has no ");
        }
        return false;
    };
    const cca::OutOfMemoryObserver observer = [](int64_t, size_t, size_t, size_t) {};
    tarn_error error;

    tarn_device *const device = open_sim(0, GIB);

    CHECK(tarn_torch_install(TORCH_VERSION, &error) == TARN_OK);
    cca::init(1);
    CHECK(cca::name() == "cudaMallocAsync");
    the_end_of_a_capture_joins_streams(device);
    CHECK(is_refused([&] { cca::attachOutOfMemoryObserver(observer); }));
    CHECK(is_refused([] { cca::attachAllocatorTraceTracker([](const cca::TraceEntry &) {}); }));
    on_allocator([&](auto &it) -> decltype(void(it.attachOomRejectionObserver(observer))) {
        CHECK(is_refused([&] { it.attachOomRejectionObserver(observer); }));
    });
    CHECK(is_refused([] { record(gather, {}); }));
    void *const ptr = cca::raw_alloc(MIB);

    CHECK(allocated() >= static_cast<int64_t>(MIB));
    cca::raw_delete(ptr);
}

} // namespace

int main(int argc, char **)
{
    if (argc > 1) { /* with TARN_ALLOC_CONF=backend:cudaMallocAsync */
        return run(
            {{"what the driver's pools lack is refused", what_the_drivers_pools_lack_is_refused}});
    }
    return run({
        {"it is installed once and early", it_is_installed_once_and_early},
        {"tensors get memory", tensors_get_memory},
        {"failures are torch's exceptions", failures_are_torchs_exceptions},
        {"observers see memory run out", observers_see_memory_run_out},
        {"the profiler sees memory", the_profiler_sees_memory},
        {"pools and checkpoints", pools_and_checkpoints},
        {"private pools are counted", private_pools_are_counted},
        {"the exception of a filter arrives", the_exception_of_a_filter_arrives},
        {"annotations need no memory", annotations_need_no_memory},
        {"history has torch's stacks", history_has_torchs_stacks},
        {"segments lose their stacks when they are split",
         segments_lose_their_stacks_when_they_are_split},
        {"snapshots of one pool", snapshots_of_one_pool},
        {"metadata goes with events", metadata_goes_with_events},
        {"live memory is annotated", live_memory_is_annotated},
        {"a pointer has a stack", a_pointer_has_a_stack},
        {"memory comes back at its address", memory_comes_back_at_its_address},
        {"segments are counted", segments_are_counted},
        {"expandable segments are listed", expandable_segments_are_listed},
        {"pools with an allocator of their own", pools_with_an_allocator_of_their_own},
        {"what names no pool is about the active one", what_names_no_pool_is_about_the_active_one},
        {"trackers see every event", trackers_see_every_event},
        {"trackers get the stacks of a recording", trackers_get_the_stacks_of_a_recording},
        {"several devices", several_devices},
        {"handles for other processes", handles_for_other_processes},
        {"the cache is switched off", the_cache_is_switched_off},
        {"many threads", many_threads},
    });
}
