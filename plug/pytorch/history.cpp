/* SPDX-License-Identifier: MIT */
/*
 * A stack is what torch's recorder gathers, an object that torch also resolves to names; libtarn
 * keeps a number for it, which is the address of a reference. The recorder takes the interpreter's
 * lock, so libtarn calls it before its own.
 */
#include "plug/pytorch/history.h"

#include "tarn/capture.h"

#include <map>

namespace tarn_torch
{
namespace
{

std::atomic<cca::CreateContextFn> recorder;

/* ---- stacks ---- */

uint64_t capture_stack(void * /*context*/)
{
    const cca::CreateContextFn gather = recorder.load(std::memory_order_acquire);

    try {
        Stack stack = gather ? gather() : nullptr;

        return stack ? ptr_of(new Stack(std::move(stack))) : 0;
    } catch (...) {
        return 0; /* an event without a stack */
    }
}

/* ---- snapshots ---- */

struct Building {
    c10::DeviceIndex device;
    cca::SnapshotInfo *info;
    std::multimap<uint64_t, size_t> by_number; /* the device's segments: where `info` has them */
};

void add_segment(void *context, const tarn_segment_info *segment, uint64_t stack)
{
    auto *const building = static_cast<Building *>(context);
    auto &segments = building->info->segments;
    auto &info = segments.emplace_back();

    info.device = building->device;
    info.address = segment->address;
    info.total_size = segment->total_size;
    info.requested_size = segment->requested_size;
    info.allocated_size = segment->allocated_size;
    info.active_size = segment->active_size;
    info.stream = static_cast<decltype(info.stream)>(pointer_of(segment->stream));
    info.is_large = segment->is_large;
    info.is_expandable = segment->is_expandable;
    info.owner_private_pool_id = {segment->pool.first, segment->pool.second};
    info.context_when_allocated = segment->was_split ? nullptr : stack_of(stack);
    building->by_number.emplace(segment->number, segments.size() - 1);
}

void add_block(void *context, const tarn_block_info *block, uint64_t stack)
{
    auto &info = static_cast<Building *>(context)->info->segments.back().blocks.emplace_back();

    info.size = block->size;
    info.requested_size = block->requested_size;
    info.allocated = block->allocated;
    info.active = block->active;
    info.context_when_allocated = stack_of(stack);
}

void add_event(void *context, const tarn_history_entry *event, uint64_t stack)
{
    const auto *const building = static_cast<Building *>(context);

    if (has_entry(event->event.action)) {
        auto &trace = building->info->device_traces[static_cast<size_t>(building->device)];

        trace.push_back(trace_entry(event->event, stack_of(stack)));
        trace.back().time_.t_ = event->time_us;
    }
}

void add_annotation(void *context, const tarn_captured_annotation *annotation)
{
    auto &entry = static_cast<Building *>(context)->info->external_annotations.emplace_back(
        static_cast<c10::DeviceIndex>(annotation->device), c10::approx_time_t());

    entry.time_.t_ = annotation->time_us;
    entry.recordUserMetadata("name", annotation->name);
    entry.recordUserMetadata("stage", annotation->stage == TARN_ANNOTATION_START ? "START" : "END");
    for (size_t i = 0; i < annotation->field_count; i++) {
        entry.recordUserMetadata(annotation->fields[i].key, annotation->fields[i].value);
    }
}

void add_device(int ordinal, tarn_pool_id pool, bool with_traces, cca::SnapshotInfo *info)
{
    Building building = {static_cast<c10::DeviceIndex>(ordinal), info, {}};
    const tarn_capture_source source = {tarn_devices_find(devices, ordinal),
                                        tarn_devices_find_history(devices, ordinal)};
    tarn_capture_options options = {};
    const tarn_capture_visitor visitor = {
        sizeof visitor,
        &building,
        [](auto... given) { contained([&] { add_segment(given...); }); },
        [](auto... given) { contained([&] { add_block(given...); }); },
        [](auto... given) { contained([&] { add_event(given...); }); },
        [](auto... given) { contained([&] { add_annotation(given...); }); }};

    options.struct_size = sizeof options;
    options.only_pool = pool.first != 0 || pool.second != 0;
    options.pool = pool;
    options.without_traces = !with_traces;
    call(tarn_capture_visit, &source, &options, &visitor);

    /* NCCL registers the segments of a pool in the order of this counter, which has to be the same
     * on all ranks, where addresses are not (pytorch #167662). Ranges of one expandable segment have
     * one number, and the order of their addresses. */
    auto counter = static_cast<int32_t>(info->segments.size() - building.by_number.size());

    for (const auto &numbered : building.by_number) {
        TARN_SET_IF_PRESENT(info->segments[numbered.second], registration_counter, counter);
        counter++;
    }
}

} // namespace

Stack stack_of(uint64_t host_stack)
{
    return host_stack ? *static_cast<Stack *>(pointer_of(host_stack)) : nullptr;
}

tarn_status history_record(tarn_recording recording, cca::CreateContextFn gather, tarn_error *error)
{
    const auto release = [](void * /*context*/, uint64_t stack) {
        delete static_cast<Stack *>(pointer_of(stack));
    };
    const tarn_host_frames frames = {nullptr, capture_stack, release, nullptr};

    recording.struct_size = sizeof recording;
    recording.stack_source = TARN_STACK_NONE;
    recording.host = &frames;
    recorder.store(gather);
    return tarn_devices_record(devices, &recording, error);
}

/* Events of early versions do not know their pool. */
template <class Entry>
Entry make_entry(typename Entry::Action action, const tarn_trace_event &event, Stack stack)
{
    const auto device = static_cast<c10::DeviceIndex>(event.device);
    const auto stream = static_cast<cudaStream_t>(pointer_of(event.stream));
    const auto time = c10::getApproximateTime();

    if constexpr (std::is_constructible_v<Entry, typename Entry::Action, c10::DeviceIndex, size_t,
                                          size_t, cudaStream_t, MempoolId_t, decltype(time),
                                          Stack>) {
        return Entry(action, device, event.address, event.size, stream,
                     MempoolId_t{event.pool_id[0], event.pool_id[1]}, time, std::move(stack));
    } else {
        return Entry(action, device, event.address, event.size, stream, time, std::move(stack));
    }
}

cca::TraceEntry trace_entry(const tarn_trace_event &event, Stack stack)
{
    using Entry = cca::TraceEntry;
    static_assert(static_cast<int>(Entry::ALLOC) == TARN_ACTION_ALLOC &&
                      static_cast<int>(Entry::SEGMENT_UNMAP) == TARN_ACTION_SEGMENT_UNMAP &&
                      static_cast<int>(Entry::OOM) == TARN_ACTION_OOM,
                  "both have the same order");
    auto entry =
        make_entry<Entry>(static_cast<Entry::Action>(event.action), event, std::move(stack));

    TARN_SET_IF_PRESENT(entry, compile_context_, event.compile_context);
    TARN_SET_IF_PRESENT(entry, user_metadata_, event.user_metadata);
    return entry;
}

cca::SnapshotInfo history_snapshot(int device_count, tarn_pool_id pool, bool with_traces)
{
    const auto config = get<tarn_config>(tarn_devices_get_config, devices);
    cca::SnapshotInfo info = {}; /* with zeros where this torch has more settings */
    auto &settings = info.config_metadata;

    info.device_traces.resize(static_cast<size_t>(device_count));
    for (int device = 0; device < device_count; device++) {
        if (tarn_devices_find(devices, device)) {
            add_device(device, pool, with_traces, &info);
        }
    }
    settings.garbage_collection_threshold = config.garbage_collection_threshold;
    settings.max_split_size = config.max_split_size;
    settings.pinned_num_register_threads = config.pinned_num_register_threads;
    settings.expandable_segments = config.expandable_segments;
    settings.release_lock_on_malloc = config.release_lock_on_device_alloc;
    settings.pinned_use_host_register = config.pinned_use_host_register;
    TARN_SET_IF_PRESENT(settings, graph_capture_record_stream_reuse,
                        config.graph_capture_record_stream_reuse);
    TARN_SET_IF_PRESENT(settings, max_round_threshold, config.pinned_max_round_threshold);
    TARN_SET_IF_PRESENT(settings, max_cached_size, config.pinned_max_cached_size);
    settings.last_allocator_settings = config.text;
    settings.roundup_power2_divisions.assign(std::begin(config.roundup_power2_divisions),
                                             std::end(config.roundup_power2_divisions));
    return info;
}

Stack history_stack(int ordinal, uint64_t stack)
{
    const tarn_history *const history = tarn_devices_find_history(devices, ordinal);

    return history ? stack_of(tarn_history_host_stack(history, stack)) : nullptr;
}

} // namespace tarn_torch
