/* SPDX-License-Identifier: MIT */
/* Snapshots, as pickle or JSON: segments with blocks, traces whose entries often fit each other,
 * settings, annotations; of one device or several, that share what they have. */
#include "maker.h"

enum {
    BLOCKS_MAX = 12,
    SEGMENTS_MAX = 8,
    ENTRIES_MAX = 200,
    FRAMES_MAX = 6,
    FIELDS_MAX = 32 /* slots: pairs and repeated ones */
};

static const char *const actions[] = {
    "alloc",         "free_requested", "free_completed", "alloc",         "free_requested",
    "segment_alloc", "segment_free",   "segment_map",    "segment_unmap", "oom",
    "snapshot",      "annotate",       "user_defined",   "fly",           "free_completed",
};

static const char *const states[] = {"active_allocated", "inactive", "active_pending_free",
                                     "active_awaiting_free", "gone"};

static struct value *make_stack(struct maker *m)
{
    struct value *frames = make_container(m, VALUE_LIST, FRAMES_MAX);

    while (frames->count < FRAMES_MAX && dice_once_in(&m->dice, 2)) {
        struct value *frame = make_container(m, VALUE_DICT, FIELDS_MAX);

        make_field(m, frame, "name", make_text(m));
        make_field(m, frame, "filename", make_text(m));
        make_field(m, frame, "line", make_small(m, 300));
        if (dice_once_in(&m->dice, 8)) {
            make_field(m, frame, "fx_node_name", make_text(m));
            make_field(m, frame, "fx_original_trace", make_text(m));
        }
        make_item(m, frames, frame);
    }
    return frames;
}

/* Often one that stands elsewhere already, as PyTorch's do. */
static struct value *any_stack(struct maker *m, struct value *const *stacks, unsigned count)
{
    const unsigned which = dice_below(&m->dice, count + 1);

    return which < count ? stacks[which] : make_stack(m);
}

static struct value *make_block(struct maker *m, struct value *stack)
{
    struct value *block = make_container(m, VALUE_DICT, FIELDS_MAX);

    make_field(m, block, "address", make_address(m));
    make_field(m, block, "size", make_size(m));
    make_field(m, block, "requested_size", make_size(m));
    make_field(m, block, "state", make_word(m, states, 5));
    if (dice_once_in(&m->dice, 8)) {
        struct value *history = make_container(m, VALUE_LIST, 2);
        struct value *held = make_container(m, VALUE_DICT, FIELDS_MAX);

        make_field(m, held, "addr", make_address(m));
        make_field(m, held, "real_size", make_size(m));
        make_field(m, held, "frames", stack);
        make_item(m, history, held);
        make_item(m, history, held);
        make_field(m, block, "history", history);
    } else {
        make_field(m, block, "frames", stack);
    }
    return block;
}

static struct value *make_segment(struct maker *m, struct value *const *stacks, unsigned count)
{
    static const char *const types[] = {"large", "small", "medium"};
    struct value *segment = make_container(m, VALUE_DICT, FIELDS_MAX);
    struct value *blocks = make_container(m, VALUE_LIST, BLOCKS_MAX);

    make_field(m, segment, "device", make_small(m, 3));
    make_field(m, segment, "address", make_address(m));
    make_field(m, segment, "total_size", make_size(m));
    make_field(m, segment, "allocated_size", make_size(m));
    make_field(m, segment, "active_size", make_size(m));
    make_field(m, segment, "requested_size", make_size(m));
    make_field(m, segment, "stream", make_small(m, 4));
    make_field(m, segment, "segment_type", make_word(m, types, 3));
    make_field(m, segment, "segment_pool_id", make_pair(m));
    make_field(m, segment, "is_expandable", make_bool(m));
    make_field(m, segment, "frames", any_stack(m, stacks, count));
    while (blocks->count < BLOCKS_MAX && !dice_once_in(&m->dice, 4) && dice_more(&m->dice)) {
        make_item(m, blocks, make_block(m, any_stack(m, stacks, count)));
    }
    make_field(m, segment, "blocks", blocks);
    return segment;
}

static struct value *make_entry(struct maker *m, struct value *stack)
{
    struct value *entry = make_container(m, VALUE_DICT, FIELDS_MAX);

    make_field(m, entry, "action", make_word(m, actions, 15));
    make_field(m, entry, dice_once_in(&m->dice, 16) ? "device_free" : "addr", make_address(m));
    make_field(m, entry, "size", make_size(m));
    make_field(m, entry, "stream", make_small(m, 3));
    make_field(m, entry, "time_us", make_time(m));
    make_field(m, entry, "frames", stack);
    if (dice_once_in(&m->dice, 8)) {
        make_field(m, entry, "compile_context", make_text(m));
        make_field(m, entry, "user_metadata", make_text(m));
        make_field(m, entry, "category", make_text(m));
        make_field(m, entry, "pool_id", make_pair(m));
    }
    return entry;
}

static struct value *make_trace(struct maker *m, struct value *const *stacks, unsigned count)
{
    struct value *trace = make_container(m, VALUE_LIST, ENTRIES_MAX);

    while (trace->count < ENTRIES_MAX && dice_more(&m->dice) && !dice_once_in(&m->dice, 64)) {
        make_item(m, trace, make_entry(m, any_stack(m, stacks, count)));
    }
    return trace;
}

static struct value *make_settings(struct maker *m)
{
    struct value *settings = make_container(m, VALUE_DICT, FIELDS_MAX);
    struct value *divisions = make_container(m, VALUE_DICT, FIELDS_MAX);

    make_field(m, divisions, "1", make_small(m, 65));
    make_field(m, divisions, "256", make_small(m, 65));
    make_field(m, settings, "PYTORCH_CUDA_ALLOC_CONF", make_text(m));
    make_field(m, settings, "max_split_size", make_size(m));
    make_field(m, settings, "garbage_collection_threshold", make_small(m, 2));
    make_field(m, settings, "expandable_segments", make_bool(m));
    make_field(m, settings, "roundup_power2_divisions", divisions);
    make_field(m, settings, "other", make_text(m));
    return settings;
}

static struct value *make_annotations(struct maker *m)
{
    static const char *const stages[] = {"START", "END", "MIDDLE"};
    struct value *annotations = make_container(m, VALUE_LIST, 16);

    while (annotations->count < 16 && dice_once_in(&m->dice, 2)) {
        struct value *annotation = make_container(m, VALUE_DICT, FIELDS_MAX);

        make_field(m, annotation, "stage", make_word(m, stages, 3));
        make_field(m, annotation, "name", make_text(m));
        make_field(m, annotation, "device", make_small(m, 3));
        make_field(m, annotation, "time_us", make_time(m));
        make_item(m, annotations, annotation);
    }
    return annotations;
}

static struct value *make_segments(struct maker *m, struct value *const *stacks, unsigned count)
{
    struct value *segments = make_container(m, VALUE_LIST, SEGMENTS_MAX);

    while (segments->count < SEGMENTS_MAX && dice_once_in(&m->dice, 2)) {
        make_item(m, segments, make_segment(m, stacks, count));
    }
    return segments;
}

static struct value *make_top(struct maker *m)
{
    struct value *top = make_container(m, VALUE_DICT, FIELDS_MAX);
    struct value *traces = make_container(m, VALUE_LIST, 8);
    struct value *stacks[4];

    for (unsigned i = 0; i < 4; i++) {
        stacks[i] = make_stack(m);
    }
    make_field(m, top, "segments", make_segments(m, stacks, 4));
    make_field(m, top, "allocator_settings", make_settings(m));
    make_field(m, top, "external_annotations", make_annotations(m));
    if (dice_once_in(&m->dice, 8)) {
        make_field(m, top, "host_segments", make_segments(m, stacks, 4));
        make_field(m, top, "host_traces", traces);
    }
    make_item(m, traces, make_trace(m, stacks, 4));
    while (traces->count < 4 && dice_once_in(&m->dice, 4)) {
        make_item(m, traces, make_trace(m, stacks, 4));
    }
    make_field(m, top, "device_traces", traces);
    return top;
}

void make_snapshot(struct maker *m, struct document *document)
{
    const unsigned format = dice_byte(&m->dice);
    struct value *top = make_top(m);

    if (format % 8 == 7) {
        top = m->pool.slots[top->first + 1]; /* a bare list of segments */
    }
    if (format % 4 == 3) {
        value_write_json(&m->pool, top, document);
    } else {
        value_write_pickle(&m->pool, top, format >> 4, document);
    }
    if (document->is_full || format >= 250) {
        document->size -= document->size / 4; /* cut off */
    }
}
