/* SPDX-License-Identifier: MIT */
/*
 * One history of libtarn per device, like torch's ring per device. It is created when the device is
 * first recorded and stays its event sink, enabled or disabled: removing it would require that no
 * call of the allocator is in progress.
 *
 * A stack is what torch's recorder gathers, an object that torch also resolves to names; libtarn
 * keeps a number for it, which is the address of a reference. The recorder takes the interpreter's
 * lock, so libtarn calls it before its own.
 *
 * `lock` guards changes of the recording. Opening a device takes the table's lock first.
 */
#include "plug/pytorch/history.h"

#include "tarn/capture.h"

#include <algorithm>
#include <memory>
#include <mutex>

namespace tarn_torch
{
namespace
{

constexpr size_t entries_unlimited = 2097152; /* 56 bytes each, committed on use */

using Guard = std::lock_guard<std::mutex>;
using Stack = std::shared_ptr<c10::GatheredContext>;

std::mutex lock;
Recording wish; /* guarded by lock */
std::atomic<bool> enabled;
std::atomic<cca::CreateContextFn> recorder;

/* Regions of this thread that could not be entered. They are the innermost ones, because only
 * excessive depth fails, so torch leaves them first. */
thread_local unsigned regions_lost;

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

void release_stack(void * /*context*/, uint64_t stack)
{
    delete static_cast<Stack *>(pointer_of(stack));
}

Stack stack_of(uint64_t stack)
{
    return stack ? *static_cast<Stack *>(pointer_of(stack)) : nullptr;
}

/* ---- recording ---- */

tarn_status create(tarn_allocator *allocator, tarn_history **history_out, tarn_error *error)
{
    tarn_host_frames frames = {};
    tarn_history_options options = {};
    tarn_history *history = nullptr;
    tarn_sink sink;

    frames.capture = capture_stack;
    frames.release = release_stack;
    options.struct_size = sizeof options;
    options.stack_source = TARN_STACK_NONE;
    options.max_entries = wish.max_entries;
    options.host = &frames;
    tarn_status status = tarn_history_create(&options, &history, error);

    if (status == TARN_OK) {
        tarn_history_get_sink(history, TARN_CONTEXT_NEVER, &sink);
        status = tarn_allocator_add_sink(allocator, &sink, error);
    }
    if (status) {
        tarn_history_destroy(history);
    }
    *history_out = status == TARN_OK ? history : nullptr;
    return status;
}

tarn_status record_one(int ordinal, tarn_allocator *allocator, tarn_error *error)
{
    tarn_history *history = devices[ordinal].history.load();
    const tarn_status status = history
                                   ? tarn_history_set_max_entries(history, wish.max_entries, error)
                                   : create(allocator, &history, error);

    if (status) {
        return status;
    }
    devices[ordinal].history.store(history);
    tarn_history_set_skip_actions(history, wish.skip_actions);
    if (wish.clear) {
        tarn_history_clear(history);
    }
    return tarn_allocator_switch_sink(allocator, history, true, wish.level, error);
}

tarn_status stop_one(int ordinal, tarn_allocator *allocator)
{
    tarn_history *const history = devices[ordinal].history.load();

    if (history) {
        (void)!tarn_allocator_switch_sink(allocator, history, false, TARN_CONTEXT_NEVER, nullptr);
        tarn_history_clear(history);
    }
    return TARN_OK;
}

/* ---- snapshots ---- */

struct Building {
    c10::DeviceIndex device;
    cca::SnapshotInfo *info;
};

void add_segment(void *context, const tarn_segment_info *segment, uint64_t stack)
{
    const auto *const building = static_cast<Building *>(context);
    cca::SegmentInfo info;

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
    info.context_when_allocated = stack_of(stack);
    building->info->segments.push_back(std::move(info));
}

void add_block(void *context, const tarn_block_info *block, uint64_t stack)
{
    cca::BlockInfo info;

    info.size = block->size;
    info.requested_size = block->requested_size;
    info.allocated = block->allocated;
    info.active = block->active;
    info.context_when_allocated = stack_of(stack);
    static_cast<Building *>(context)->info->segments.back().blocks.push_back(std::move(info));
}

void add_event(void *context, const tarn_history_entry *event, uint64_t stack)
{
    const auto *const building = static_cast<Building *>(context);
    cca::TraceEntry::Action action;

    if (action_of(event->event.action, &action)) {
        auto &trace = building->info->device_traces[static_cast<size_t>(building->device)];

        trace.push_back(trace_entry(action, event->event, stack_of(stack)));
        trace.back().time_.t_ = event->time_us;
    }
}

void add_annotation(void *context, const tarn_captured_annotation *annotation)
{
    auto &annotations = static_cast<Building *>(context)->info->external_annotations;

    annotations.emplace_back(static_cast<c10::DeviceIndex>(annotation->device),
                             c10::approx_time_t());
    auto &entry = annotations.back();

    entry.time_.t_ = annotation->time_us;
    entry.recordUserMetadata("name", annotation->name);
    entry.recordUserMetadata("stage", annotation->stage == TARN_ANNOTATION_START ? "START" : "END");
    for (size_t i = 0; i < annotation->field_count; i++) {
        entry.recordUserMetadata(annotation->fields[i].key, annotation->fields[i].value);
    }
}

} // namespace

tarn_status history_record(const Recording &recording, tarn_error *error)
{
    const Guard guard(lock);
    tarn_status status = TARN_OK;

    if (recording.enabled) {
        wish = recording;
        wish.max_entries = recording.max_entries >= PTRDIFF_MAX
                               ? entries_unlimited
                               : std::max<size_t>(recording.max_entries, 1);
        recorder.store(recording.recorder);
        status = each_open([&](int ordinal, tarn_allocator *allocator) {
            return record_one(ordinal, allocator, error);
        });
        wish.clear = false; /* applies now, not to devices opened later */
    }
    enabled.store(recording.enabled && status == TARN_OK);
    if (!enabled.load()) {
        wish = Recording();
        (void)!each_open(stop_one);
    }
    return status;
}

bool history_is_enabled()
{
    return enabled.load(std::memory_order_relaxed);
}

tarn_status history_opened(int ordinal, tarn_allocator *allocator, tarn_error *error)
{
    const Guard guard(lock);

    return enabled.load() ? record_one(ordinal, allocator, error) : TARN_OK;
}

void history_annotate(int device, const std::vector<std::pair<std::string, std::string>> &fields)
{
    tarn_history *const history = tarn_torch_find_history(device);
    tarn_annotation_field kept[TARN_ANNOTATION_FIELDS_MAX];
    tarn_annotation_stage stage = TARN_ANNOTATION_START;
    const char *name = nullptr;
    size_t count = 0;

    for (const auto &[key, value] : fields) {
        if (key == "name") {
            name = value.c_str();
        } else if (key == "stage") {
            stage = value == "END" ? TARN_ANNOTATION_END : TARN_ANNOTATION_START;
        } else if (count < TARN_ANNOTATION_FIELDS_MAX) {
            kept[count++] = {key.c_str(), value.c_str()};
        }
    }
    if (history && name) { /* it counts what it drops */
        (void)!tarn_history_annotate(history, stage, device, name, kept, count);
    }
}

void history_push_context(const std::string &text)
{
    if (tarn_push_compile_context(text.substr(0, TARN_LABEL_MAX - 1).c_str())) {
        regions_lost++;
    }
}

void history_pop_context()
{
    if (regions_lost > 0) {
        regions_lost--;
    } else {
        tarn_pop_compile_context();
    }
}

bool action_of(tarn_action action, cca::TraceEntry::Action *action_out)
{
    using Entry = cca::TraceEntry;
    static constexpr Entry::Action actions[] = {
        Entry::ALLOC,         Entry::FREE_REQUESTED, Entry::FREE_COMPLETED,
        Entry::SEGMENT_ALLOC, Entry::SEGMENT_FREE,   Entry::SEGMENT_MAP,
        Entry::SEGMENT_UNMAP, Entry::SNAPSHOT,       Entry::OOM,
    };
    const bool known = action < TARN_ACTION_ANNOTATE;

    static_assert(std::size(actions) == TARN_ACTION_ANNOTATE, "in the order of libtarn's actions");
    if (known) {
        *action_out = actions[action];
    }
    return known;
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

cca::TraceEntry trace_entry(cca::TraceEntry::Action action, const tarn_trace_event &event,
                            Stack stack)
{
    auto entry = make_entry<cca::TraceEntry>(action, event, std::move(stack));

    TARN_SET_IF_PRESENT(entry, compile_context_, event.compile_context);
    TARN_SET_IF_PRESENT(entry, user_metadata_, event.user_metadata);
    return entry;
}

tarn_status history_snapshot(int ordinal, tarn_allocator *allocator, tarn_pool_id pool,
                             bool with_traces, cca::SnapshotInfo *info, tarn_error *error)
{
    Building building = {static_cast<c10::DeviceIndex>(ordinal), info};
    const tarn_capture_source source = {allocator, devices[ordinal].history.load()};
    tarn_capture_options options = {};
    const tarn_capture_visitor visitor = {sizeof visitor, &building, add_segment,
                                          add_block,      add_event, add_annotation};
    const size_t needed = static_cast<size_t>(ordinal) + 1;

    options.struct_size = sizeof options;
    options.only_pool = pool.first != 0 || pool.second != 0;
    options.pool = pool;
    options.without_traces = !with_traces;
    info->device_traces.resize(std::max(info->device_traces.size(), needed));
    return tarn_capture_visit(&source, &options, &visitor, error);
}

void fill_settings(const tarn_config &config, cca::AllocatorConfigInfo *info)
{
    info->garbage_collection_threshold = config.garbage_collection_threshold;
    info->max_split_size = config.max_split_size;
    info->pinned_num_register_threads = config.pinned_num_register_threads;
    info->expandable_segments = config.expandable_segments;
    info->release_lock_on_malloc = config.release_lock_on_device_alloc;
    info->pinned_use_host_register = config.pinned_use_host_register;
    TARN_SET_IF_PRESENT(*info, graph_capture_record_stream_reuse,
                        config.graph_capture_record_stream_reuse);
    info->last_allocator_settings = config.text;
    info->roundup_power2_divisions.assign(std::begin(config.roundup_power2_divisions),
                                          std::end(config.roundup_power2_divisions));
}

} // namespace tarn_torch
