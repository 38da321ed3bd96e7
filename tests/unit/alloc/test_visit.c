/* SPDX-License-Identifier: MIT */
#include "support/any_stream.h"
#include "support/test.h"

#include <pthread.h>
#include <stdio.h>

#include "alloc/engine/engine_methods.h"
#include "alloc/engine/visit.h"
#include "alloc/engine/watch_source.h"
#include "support/rig.h"
#include "support/used_memory.h"
#include "tarn/pool.h"
#include "tarn/sleep.h"

static const struct tarn_pool_id graph = {0, 1};

enum {
    SEEN_MAX = 32
};

/* What a walk shows, and when to stop it. */
struct seen {
    struct tarn_segment_info segments[SEEN_MAX];
    struct tarn_block_info blocks[SEEN_MAX];
    int segment_of[SEEN_MAX]; /* of each block */
    int segment_count;
    int block_count;
    int left; /* shows until it ends the walk; -1 = never */
};

static bool seen_goes_on(struct seen *seen)
{
    return seen->left < 0 || --seen->left > 0;
}

static bool see_segment(void *context, const struct tarn_segment_info *segment)
{
    struct seen *seen = context;

    assert_true(seen->segment_count < SEEN_MAX);
    seen->segments[seen->segment_count++] = *segment;
    return seen_goes_on(seen);
}

static bool see_block(void *context, const struct tarn_block_info *block)
{
    struct seen *seen = context;

    assert_true(seen->block_count < SEEN_MAX);
    seen->segment_of[seen->block_count] = seen->segment_count - 1;
    seen->blocks[seen->block_count++] = *block;
    return seen_goes_on(seen);
}

static void walk(struct rig *rig, struct seen *seen, int left)
{
    const struct tarn_walker walker = {seen, see_segment, see_block};

    *seen = (struct seen){.left = left};
    assert_int_equal(tarn_allocator_walk(rig->allocator, &walker), TARN_OK);
}

static void an_empty_allocator_shows_nothing(void **state)
{
    struct rig rig;
    struct seen seen = {.left = 0};

    (void)state;
    rig_open(&rig, GIB, "");
    walk(&rig, &seen, -1);
    assert_int_equal(seen.segment_count, 0);
    assert_int_equal(seen.block_count, 0);
    rig_close(&rig);
}

static void block_is(const struct tarn_block_info *block, tarn_ptr address, uint64_t size,
                     bool allocated, bool active)
{
    assert_int_equal(block->address, address);
    assert_int_equal(block->size, size);
    assert_int_equal(block->allocated, allocated);
    assert_int_equal(block->active, active);
}

/* One segment with a block of every state. */
static void states_and_sums_are_shown(void **state)
{
    struct rig rig;
    struct seen seen = {.left = 0};

    (void)state;
    rig_open_manual(&rig, GIB, "");
    const tarn_ptr a = rig_alloc(&rig, 2 * MIB - 1, 6);
    const tarn_ptr b = rig_alloc(&rig, 3 * MIB, 6);
    const tarn_ptr c = rig_alloc(&rig, 4 * MIB - 100, 6);

    rig_free(&rig, b);
    rig_record(&rig, c, 7);
    rig_free(&rig, c);
    walk(&rig, &seen, -1);
    assert_int_equal(seen.segment_count, 1);
    const struct tarn_segment_info *s = &seen.segments[0];

    assert_int_equal(s->address, a);
    assert_int_equal(s->total_size, 20 * MIB);
    assert_int_equal(s->allocated_size, 2 * MIB);
    assert_int_equal(s->active_size, 6 * MIB);
    assert_int_equal(s->requested_size, 6 * MIB - 101);
    assert_int_equal(s->stream, 6);
    assert_int_equal(s->pool.first, 0);
    assert_int_equal(s->pool.second, 0);
    assert_true(s->is_large);
    assert_false(s->is_expandable);
    assert_int_equal(seen.block_count, 4);
    block_is(&seen.blocks[0], a, 2 * MIB, true, true);
    block_is(&seen.blocks[1], b, 3 * MIB, false, false);
    block_is(&seen.blocks[2], c, 4 * MIB, false, true);
    block_is(&seen.blocks[3], c + 4 * MIB, 11 * MIB, false, false);
    assert_int_equal(seen.blocks[0].requested_size, 2 * MIB - 1);
    assert_int_equal(seen.blocks[2].requested_size, 4 * MIB - 100);
    rig_close(&rig);
}

/* And are numbered in the order in which they were made. */
static void segments_come_by_address(void **state)
{
    static const uint64_t at[] = {30, 10, 50, 20, 40}; /* in no order */
    static const uint64_t numbers[] = {2, 4, 1, 5, 3};
    struct rig rig;
    struct seen seen = {.left = 0};

    (void)state;
    rig_open(&rig, GIB, "");
    for (int i = 0; i < 5; i++) {
        assert_int_equal(tarn_sim_script_alloc(rig.device, SIM_BASE + at[i] * GIB), TARN_OK);
    }
    for (int i = 0; i < 5; i++) {
        (void)rig_alloc(&rig, i % 2 ? 512 : 30 * MIB, (tarn_stream)i);
    }
    walk(&rig, &seen, -1);
    assert_int_equal(seen.segment_count, 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(seen.segments[i].address, SIM_BASE + (uint64_t)(i + 1) * 10 * GIB);
        assert_int_equal(seen.segments[i].number, numbers[i]);
    }
    rig_close(&rig);
}

/* Of a expandable segment each mapped range is a segment; what is not mapped is left out. */
static void mapped_ranges_are_segments(void **state)
{
    struct rig rig;
    struct seen seen = {.left = 0};
    tarn_ptr pages[5];

    (void)state;
    rig_open(&rig, GIB, "expandable_segments:True");
    for (int i = 0; i < 5; i++) {
        pages[i] = rig_alloc(&rig, 20 * MIB, 3);
    }
    rig_free(&rig, pages[0]);
    rig_free(&rig, pages[2]);
    rig_empty_cache(&rig);
    rig_free(&rig, pages[3]); /* free, but mapped */
    walk(&rig, &seen, -1);
    assert_int_equal(seen.segment_count, 2);
    assert_int_equal(seen.segments[0].address, pages[1]);
    assert_int_equal(seen.segments[0].total_size, 20 * MIB);
    assert_int_equal(seen.segments[1].address, pages[3]);
    assert_int_equal(seen.segments[1].total_size, 40 * MIB);
    assert_int_equal(seen.segments[1].allocated_size, 20 * MIB);
    assert_true(seen.segments[0].is_expandable && seen.segments[1].is_expandable);
    assert_int_equal(seen.segments[0].number, seen.segments[1].number);
    assert_int_equal(seen.block_count, 3);
    assert_int_equal(seen.segment_of[0], 0);
    assert_int_equal(seen.segment_of[1], 1);
    assert_int_equal(seen.segment_of[2], 1);
    rig_close(&rig);
}

static void expandable_segments_are_summed_up(void **state)
{
    struct tarn_segment_info found[3];
    struct rig rig;
    tarn_ptr pages[5];

    (void)state;
    rig_open(&rig, GIB, "");
    (void)rig_alloc(&rig, 30 * MIB, 3); /* a plain segment */
    rig_configure(&rig, "expandable_segments:True");
    assert_int_equal(tarn_allocator_get_expandable_segments(rig.allocator, NULL, 0), 0);
    for (int i = 0; i < 5; i++) {
        pages[i] = rig_alloc(&rig, 20 * MIB, 4);
    }
    (void)rig_alloc(&rig, 100, 5);
    rig_free(&rig, pages[0]);
    rig_free(&rig, pages[2]);
    rig_empty_cache(&rig);
    rig_free(&rig, pages[3]); /* free, but mapped */
    assert_int_equal(tarn_allocator_get_expandable_segments(rig.allocator, found, 3), 2);
    assert_int_equal(found[0].total_size, 60 * MIB);
    assert_int_equal(found[0].allocated_size, 40 * MIB);
    assert_int_equal(found[0].active_size, 40 * MIB);
    assert_int_equal(found[0].requested_size, 40 * MIB);
    assert_int_equal(found[0].stream, 4);
    assert_true(found[0].is_large && found[0].is_expandable);
    assert_int_equal(found[1].total_size, 2 * MIB);
    assert_int_equal(found[1].requested_size, 100);
    assert_int_equal(found[1].stream, 5);
    assert_false(found[1].is_large);
    assert_true(found[0].number < found[1].number);

    found[1].total_size = 7;
    assert_int_equal(tarn_allocator_get_expandable_segments(rig.allocator, found, 1), 2);
    assert_int_equal(found[1].total_size, 7);
    rig_close(&rig);

    rig_open(&rig, GIB, "backend:cudaMallocAsync");
    (void)rig_alloc(&rig, 20 * MIB, 4);
    assert_int_equal(tarn_allocator_get_expandable_segments(rig.allocator, found, 1), 0);
    rig_close(&rig);
}

/* Not in that of their addresses, and without those that sleep. */
static void expandable_segments_come_by_age(void **state)
{
    static const uint64_t at[] = {30, 10, 20}; /* in no order */
    const struct tarn_sleep_options discard = {.struct_size = sizeof discard, .discard = true};
    struct tarn_segment_info found[3];
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "expandable_segments:True");
    for (tarn_stream i = 0; i < 3; i++) {
        assert_int_equal(tarn_sim_script_reserve(rig.device, SIM_BASE + at[i] * GIB), TARN_OK);
        (void)rig_alloc(&rig, 30 * MIB, i);
    }
    assert_int_equal(tarn_allocator_get_expandable_segments(rig.allocator, found, 3), 3);
    for (tarn_stream i = 0; i < 3; i++) {
        assert_int_equal(found[i].stream, i);
        assert_int_equal(found[i].address, SIM_BASE + at[i] * GIB);
    }
    assert_int_equal(tarn_allocator_begin_pool(rig.allocator, graph, any_stream, NULL, NULL),
                     TARN_OK);
    (void)rig_alloc(&rig, 30 * MIB, 0);
    assert_int_equal(tarn_allocator_end_pool(rig.allocator, graph, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_get_expandable_segments(rig.allocator, found, 3), 4);
    assert_int_equal(tarn_allocator_sleep(rig.allocator, graph, &discard, &rig.error), TARN_OK);
    assert_int_equal(tarn_allocator_get_expandable_segments(rig.allocator, found, 3), 3);
    assert_int_equal(tarn_allocator_wake(rig.allocator, graph, &rig.error), TARN_OK);
    assert_int_equal(tarn_allocator_get_expandable_segments(rig.allocator, found, 3), 4);
    rig_close(&rig);
}

static void a_pool_can_be_walked_alone(void **state)
{
    struct rig rig;
    struct seen seen = {.left = -1};
    const struct tarn_walker walker = {&seen, see_segment, see_block};

    (void)state;
    rig_open(&rig, GIB, "");
    (void)rig_alloc(&rig, 512, 0);
    assert_int_equal(tarn_allocator_begin_pool(rig.allocator, graph, any_stream, NULL, NULL),
                     TARN_OK);
    const tarn_ptr a = rig_alloc(&rig, 512, 0);

    (void)rig_alloc(&rig, 30 * MIB, 0);
    assert_int_equal(tarn_allocator_end_pool(rig.allocator, graph, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_walk_pool(rig.allocator, graph, &walker), TARN_OK);
    assert_int_equal(seen.segment_count, 2);
    assert_int_equal(seen.segments[0].address, a);
    assert_int_equal(seen.segments[0].pool.second, 1);
    assert_false(seen.segments[0].is_large);
    seen = (struct seen){.left = -1};
    assert_int_equal(tarn_allocator_walk_pool(rig.allocator, (struct tarn_pool_id){0, 0}, &walker),
                     TARN_OK);
    assert_int_equal(seen.segment_count, 1);
    seen = (struct seen){.left = -1};
    assert_int_equal(tarn_allocator_walk_pool(rig.allocator, (struct tarn_pool_id){9, 9}, &walker),
                     TARN_OK);
    assert_int_equal(seen.segment_count, 0);
    rig_close(&rig);
}

static void a_walk_ends_when_told(void **state)
{
    struct rig rig;
    struct seen seen = {.left = 0};

    (void)state;
    rig_open(&rig, GIB, "");
    for (uint64_t i = 0; i < 3; i++) {
        (void)rig_alloc(&rig, 3 * MIB, i); /* two blocks each */
    }
    for (int left = 1; left <= 9; left++) {
        walk(&rig, &seen, left);
        assert_int_equal(seen.segment_count + seen.block_count, left);
        const struct tarn_walker walker = {&seen, see_segment, see_block};

        seen = (struct seen){.left = left};
        assert_int_equal(
            tarn_allocator_walk_pool(rig.allocator, (struct tarn_pool_id){0, 0}, &walker), TARN_OK);
        assert_int_equal(seen.segment_count + seen.block_count, left);
    }
    rig_close(&rig);
}

static void either_function_may_be_missing(void **state)
{
    struct rig rig;
    struct seen seen = {.left = -1};
    const struct tarn_walker segments = {&seen, see_segment, NULL};
    const struct tarn_walker blocks = {&seen, NULL, see_block};
    const struct tarn_walker none = {NULL, NULL, NULL};

    (void)state;
    rig_open(&rig, GIB, "");
    (void)rig_alloc(&rig, 3 * MIB, 0);
    assert_int_equal(tarn_allocator_walk(rig.allocator, &segments), TARN_OK);
    assert_int_equal(seen.segment_count, 1);
    assert_int_equal(seen.block_count, 0);
    assert_int_equal(tarn_allocator_walk(rig.allocator, &blocks), TARN_OK);
    assert_int_equal(seen.segment_count, 1);
    assert_int_equal(seen.block_count, 2);
    assert_int_equal(tarn_allocator_walk(rig.allocator, &none), TARN_OK);
    rig_close(&rig);
}

/* ---- stacks and the mark of a snapshot ---- */

struct recorder {
    struct tarn_trace_event events[64];
    int count;
    uint64_t next_stack;
    int references; /* to stacks */
};

static uint64_t recorder_capture(void *context, enum tarn_context_level level)
{
    (void)level;
    return ++((struct recorder *)context)->next_stack;
}

static void recorder_receive(void *context, const struct tarn_trace_event *event)
{
    struct recorder *recorder = context;

    assert_true(recorder->count < 64);
    recorder->events[recorder->count++] = *event;
}

/* Stacks of live blocks and of segments; free blocks have none. */
static void stacks_are_those_of_the_allocations(void **state)
{
    struct rig rig;
    struct seen seen = {.left = 0};
    struct recorder recorder = {.count = 0};
    const struct tarn_sink sink = {.context = &recorder,
                                   .level = TARN_CONTEXT_ALL,
                                   .capture = recorder_capture,
                                   .receive = recorder_receive};

    (void)state;
    rig_open(&rig, GIB, "");
    assert_int_equal(tarn_allocator_add_sink(rig.allocator, &sink, NULL), TARN_OK);
    const tarn_ptr a = rig_alloc(&rig, 3 * MIB, 0); /* stack 1 */

    (void)rig_alloc(&rig, 4 * MIB, 0); /* 2 */
    rig_free(&rig, a);                 /* 3 */
    walk(&rig, &seen, -1);
    assert_int_equal(seen.segments[0].stack, 1);
    assert_int_equal(seen.block_count, 3);
    assert_int_equal(seen.blocks[0].stack, 0);
    assert_int_equal(seen.blocks[1].stack, 2);
    assert_int_equal(seen.blocks[2].stack, 0);
    assert_int_equal(recorder.count, 5); /* segment, two blocks, two events of the free */
    assert_int_equal(recorder.events[4].action, TARN_ACTION_FREE_COMPLETED);
    assert_int_equal(recorder.events[4].stack, 3);
    rig_close(&rig);
}

static struct tarn_sink recorder_sink(struct recorder *recorder, enum tarn_context_level level)
{
    return (struct tarn_sink){.context = recorder,
                              .level = level,
                              .capture = recorder_capture,
                              .receive = recorder_receive};
}

static uint64_t recorder_capture_counted(void *context, enum tarn_context_level level)
{
    ((struct recorder *)context)->references++;
    return recorder_capture(context, level);
}

static void recorder_retain(void *context, uint64_t stack)
{
    (void)stack;
    ((struct recorder *)context)->references++;
}

static void recorder_release(void *context, uint64_t stack)
{
    (void)stack;
    ((struct recorder *)context)->references--;
}

/* PyTorch's block takes the stack with it when another is split off in front of it, and loses it
 * when both merge; the first mapping behind that gives an expandable segment one again. */
static void split_segments_say_so(void **state)
{
    static const char *const confs[] = {"", "expandable_segments:True"};

    (void)state;
    for (size_t c = 0; c < 2; c++) {
        struct rig rig;
        struct seen seen = {.left = 0};
        struct recorder recorder = {.count = 0};
        struct tarn_sink sink = recorder_sink(&recorder, TARN_CONTEXT_ALL);

        sink.capture = recorder_capture_counted;
        sink.retain = recorder_retain;
        sink.release = recorder_release;
        rig_open(&rig, GIB, confs[c]);
        assert_int_equal(tarn_allocator_add_sink(rig.allocator, &sink, NULL), TARN_OK);
        const tarn_ptr whole = rig_alloc(&rig, 20 * MIB, 0); /* stack 1 */

        rig_free(&rig, whole); /* 2 */
        walk(&rig, &seen, -1);
        assert_int_equal(seen.segments[0].stack, 1);
        assert_false(seen.segments[0].was_split);
        const tarn_ptr part = rig_alloc(&rig, 5 * MIB, 0); /* 3 */

        walk(&rig, &seen, -1);
        assert_true(seen.block_count == 2 && seen.segments[0].was_split);
        rig_free(&rig, part); /* 4 */
        walk(&rig, &seen, -1);
        assert_true(seen.block_count == 1 && seen.segments[0].was_split);
        assert_int_equal(seen.segments[0].stack, 1);
        rig_free(&rig, rig_alloc(&rig, 40 * MIB, 0)); /* 5, 6: another segment, or more pages */
        walk(&rig, &seen, -1);
        assert_int_equal(seen.segment_count, c ? 1 : 2);
        assert_int_equal(seen.segments[c ? 0 : 1].stack, 5);
        assert_false(seen.segments[c ? 0 : 1].was_split);
        assert_int_equal(recorder.references, seen.segment_count); /* no block is allocated */
        rig_close(&rig);
    }
}

/* test_memory_snapshot, test_cpp_memory_snapshot_pickle: every segment has a stack, a block of
 * 311 x 411 floats its address and one, and the newest event is its allocation; after the cache is
 * emptied the newest one is a segment's. */
static void the_newest_event_is_the_allocation(void **state)
{
    static const char *const confs[] = {"", "expandable_segments:True"};
    const uint64_t size = (uint64_t)311 * 411 * 4;

    (void)state;
    for (size_t c = 0; c < 2; c++) {
        struct rig rig;
        struct seen seen = {.left = 0};
        struct recorder recorder = {.count = 0};
        const struct tarn_sink sink = recorder_sink(&recorder, TARN_CONTEXT_STATE);

        rig_open(&rig, GIB, confs[c]);
        assert_int_equal(tarn_allocator_add_sink(rig.allocator, &sink, NULL), TARN_OK);
        (void)rig_alloc(&rig, 30 * MIB, 0);
        const tarn_ptr x = rig_alloc(&rig, size, 0);
        const struct tarn_trace_event *last = &recorder.events[recorder.count - 1];
        int found = 0;

        assert_int_equal(last->action, TARN_ACTION_ALLOC);
        assert_int_equal(last->size, size);
        assert_int_equal(last->address, x);
        walk(&rig, &seen, -1);
        assert_int_equal(seen.segment_count, 2);
        assert_true(seen.segments[0].stack != 0 && seen.segments[1].stack != 0);
        for (int i = 0; i < seen.block_count; i++) {
            if (seen.blocks[i].allocated && seen.blocks[i].requested_size == size) {
                assert_int_equal(seen.blocks[i].address, x);
                assert_int_equal(seen.blocks[i].stack, 2);
                found++;
            }
        }
        assert_int_equal(found, 1);
        rig_free(&rig, x);
        rig_empty_cache(&rig);
        last = &recorder.events[recorder.count - 1];
        assert_int_equal(last->action, c ? TARN_ACTION_SEGMENT_UNMAP : TARN_ACTION_SEGMENT_FREE);
        rig_close(&rig);
    }
}

/* test_memory_plots_free_stack, test_memory_plots_free_segment_stack: only with all context have
 * frees and what emptying the cache gives back a stack of their own; without that of allocations,
 * events have none. An annotation has the stack of its call (#190575). */
static void stacks_of_events_follow_the_level(void **state)
{
    static const struct {
        enum tarn_context_level level;
        uint64_t alloc, annotate, free, segment_free;
    } rows[] = {
        {TARN_CONTEXT_STATE, 0, 0, 0, 0},
        {TARN_CONTEXT_ALLOC, 1, 2, 1, 1},
        {TARN_CONTEXT_ALL, 1, 2, 3, 4},
    };

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct rig rig;
        struct recorder recorder = {.count = 0};
        const struct tarn_sink sink = recorder_sink(&recorder, rows[i].level);

        rig_open(&rig, GIB, "");
        assert_int_equal(tarn_allocator_add_sink(rig.allocator, &sink, NULL), TARN_OK);
        const tarn_ptr ptr = rig_alloc(&rig, 48, 0);

        assert_int_equal(tarn_allocator_annotate(rig.allocator, ptr, "kv cache", NULL), TARN_OK);
        rig_free(&rig, ptr);
        rig_empty_cache(&rig);
        assert_int_equal(recorder.count, 6);
        assert_int_equal(recorder.events[1].action, TARN_ACTION_ALLOC);
        assert_int_equal(recorder.events[1].stack, rows[i].alloc);
        assert_int_equal(recorder.events[2].action, TARN_ACTION_ANNOTATE);
        assert_int_equal(recorder.events[2].stack, rows[i].annotate);
        assert_int_equal(recorder.events[3].action, TARN_ACTION_FREE_REQUESTED);
        assert_int_equal(recorder.events[3].stack, rows[i].free);
        assert_int_equal(recorder.events[5].action, TARN_ACTION_SEGMENT_FREE);
        assert_int_equal(recorder.events[5].stack, rows[i].segment_free);
        rig_close(&rig);
    }
}

static void a_snapshot_leaves_its_mark(void **state)
{
    struct rig rig;
    struct recorder recorder = {.count = 0};
    const struct tarn_sink sink = {
        .context = &recorder, .level = TARN_CONTEXT_NEVER, .receive = recorder_receive};

    (void)state;
    rig_open(&rig, GIB, "");
    (void)rig_alloc(&rig, 3 * MIB, 0);
    assert_int_equal(tarn_allocator_add_sink(rig.allocator, &sink, NULL), TARN_OK);
    tn_allocator_mark_snapshot(rig.allocator);
    assert_int_equal(recorder.count, 1);
    assert_int_equal(recorder.events[0].action, TARN_ACTION_SNAPSHOT);
    assert_int_equal(recorder.events[0].address, 0);
    assert_int_equal(recorder.events[0].size, 3 * MIB);
    for (int i = 1; i < TARN_SINKS_MAX; i++) {
        assert_int_equal(tarn_allocator_add_sink(rig.allocator, &sink, NULL), TARN_OK);
    }
    assert_int_equal(tarn_allocator_add_sink(rig.allocator, &sink, NULL), TARN_ERR_LIMIT);
    rig_close(&rig);
}

/* ---- texts that events carry ---- */

/* What `receive` may keep of the texts: copies. */
struct texts {
    char compile_context[TARN_LABEL_MAX];
    char user_metadata[TARN_LABEL_MAX];
    struct tarn_trace_event event;
};

static void texts_receive(void *context, const struct tarn_trace_event *event)
{
    struct texts *texts = context;

    snprintf(texts->compile_context, sizeof texts->compile_context, "%s", event->compile_context);
    snprintf(texts->user_metadata, sizeof texts->user_metadata, "%s", event->user_metadata);
    texts->event = *event;
}

static void texts_are(const struct texts *texts, const char *compile_context,
                      const char *user_metadata)
{
    assert_string_equal(texts->compile_context, compile_context);
    assert_string_equal(texts->user_metadata, user_metadata);
}

static void open_with_texts(struct rig *rig, struct texts *texts)
{
    const struct tarn_sink sink = {.context = texts, .receive = texts_receive};

    rig_open(rig, GIB, "");
    assert_int_equal(tarn_allocator_add_sink(rig->allocator, &sink, NULL), TARN_OK);
}

/* PyTorch's test_memory_compile_regions: allocations carry the region they were made in. */
static void events_carry_the_innermost_compile_context(void **state)
{
    struct rig rig;
    struct texts texts = {.event = {.size = 0}};

    (void)state;
    open_with_texts(&rig, &texts);
    tarn_pop_compile_context(); /* outside of all: nothing happens */
    (void)rig_alloc(&rig, 512, 0);
    texts_are(&texts, "N/A", "");
    assert_int_equal(tarn_push_compile_context("0/0"), TARN_OK);
    assert_int_equal(tarn_push_compile_context("0/0_1"), TARN_OK);
    (void)rig_alloc(&rig, 512, 0);
    texts_are(&texts, "0/0_1", "");
    tarn_pop_compile_context();
    (void)rig_alloc(&rig, 512, 0);
    texts_are(&texts, "0/0", "");
    tarn_pop_compile_context();
    (void)rig_alloc(&rig, 512, 0);
    texts_are(&texts, "N/A", "");
    rig_close(&rig);
}

static void events_carry_user_metadata(void **state)
{
    struct rig rig;
    struct texts texts = {.event = {.size = 0}};

    (void)state;
    open_with_texts(&rig, &texts);
    assert_int_equal(tarn_set_user_metadata("step 7"), TARN_OK);
    assert_string_equal(tarn_get_user_metadata(), "step 7");
    (void)rig_alloc(&rig, 512, 0);
    texts_are(&texts, "N/A", "step 7");
    assert_int_equal(tarn_set_user_metadata(""), TARN_OK);
    (void)rig_alloc(&rig, 512, 0);
    texts_are(&texts, "N/A", "");
    rig_close(&rig);
}

static void metadata_receive(void *context, const struct tarn_trace_event *event)
{
    assert_string_equal(event->user_metadata, "metadata test");
    (*(int *)context)++;
}

/* test_memory_plots_metadata: every event has the text, those of the empty cache as well. */
static void every_event_carries_user_metadata(void **state)
{
    struct rig rig;
    int count = 0;
    const struct tarn_sink sink = {.context = &count, .receive = metadata_receive};

    (void)state;
    rig_open(&rig, GIB, "");
    assert_int_equal(tarn_allocator_add_sink(rig.allocator, &sink, NULL), TARN_OK);
    assert_int_equal(tarn_set_user_metadata("metadata test"), TARN_OK);
    rig_free(&rig, rig_alloc(&rig, 48, 0));
    rig_empty_cache(&rig);
    assert_int_equal(count, 5);
    assert_int_equal(tarn_set_user_metadata(""), TARN_OK);
    rig_close(&rig);
}

static void *set_and_end(void *unused)
{
    assert_int_equal(tarn_push_compile_context("0/0"), TARN_OK);
    assert_int_equal(tarn_set_user_metadata("step 7"), TARN_OK);
    return unused;
}

/* Texts take host memory while they are there, and give it back with the last one or the thread. */
static void texts_take_host_memory(void **state)
{
    const uint64_t before = tarn_host_get_usage().live_bytes;
    pthread_t thread;

    (void)state;
    tarn_host_fail_nth(1);
    assert_int_equal(tarn_push_compile_context("0/0"), TARN_ERR_HOST_MEMORY);
    assert_string_equal(tarn_get_compile_context(), "N/A");
    tarn_host_fail_nth(1);
    assert_int_equal(tarn_set_user_metadata("step 7"), TARN_ERR_HOST_MEMORY);
    assert_string_equal(tarn_get_user_metadata(), "");
    assert_int_equal(tarn_push_compile_context("0/0"), TARN_OK);
    assert_int_equal(tarn_set_user_metadata("step 7"), TARN_OK);
    assert_true(tarn_host_get_usage().live_bytes > before);
    tarn_pop_compile_context();
    assert_true(tarn_host_get_usage().live_bytes > before);
    assert_int_equal(tarn_set_user_metadata(""), TARN_OK);
    assert_int_equal(tarn_host_get_usage().live_bytes, before);
    assert_int_equal(pthread_create(&thread, NULL, set_and_end, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(tarn_host_get_usage().live_bytes, before);
}

static void texts_beyond_the_limits_change_nothing(void **state)
{
    char text[TARN_LABEL_MAX + 1];

    (void)state;
    memset(text, 'x', sizeof text);
    text[TARN_LABEL_MAX] = '\0';
    assert_int_equal(tarn_push_compile_context(NULL), TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_set_user_metadata(NULL), TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_push_compile_context(text), TARN_ERR_LIMIT);
    assert_int_equal(tarn_set_user_metadata(text), TARN_ERR_LIMIT);
    assert_string_equal(tarn_get_compile_context(), "N/A");
    assert_string_equal(tarn_get_user_metadata(), "");
    for (int i = 0; i < TARN_COMPILE_CONTEXTS_MAX; i++) {
        assert_int_equal(tarn_push_compile_context(text + 1 + i), TARN_OK);
    }
    assert_int_equal(tarn_push_compile_context("one too deep"), TARN_ERR_LIMIT);
    assert_string_equal(tarn_get_compile_context(), text + TARN_COMPILE_CONTEXTS_MAX);
    for (int i = 0; i < TARN_COMPILE_CONTEXTS_MAX; i++) {
        tarn_pop_compile_context();
    }
    assert_string_equal(tarn_get_compile_context(), "N/A");
}

/* PyTorch's _annotate_memory: an event of its own for memory that is live, an error otherwise. */
static void live_memory_can_be_annotated(void **state)
{
    struct rig rig;
    struct texts texts = {.event = {.size = 0}};
    struct tarn_error error;

    (void)state;
    open_with_texts(&rig, &texts);
    const tarn_ptr ptr = rig_alloc(&rig, 700, 0);

    assert_int_equal(tarn_allocator_annotate(rig.allocator, ptr, "kv cache", NULL), TARN_OK);
    texts_are(&texts, "N/A", "kv cache");
    assert_int_equal(texts.event.action, TARN_ACTION_ANNOTATE);
    assert_int_equal(texts.event.address, ptr);
    assert_int_equal(texts.event.size, 700);
    assert_string_equal(tarn_action_name(texts.event.action), "annotate");
    rig_free(&rig, ptr);
    assert_int_equal(tarn_allocator_annotate(rig.allocator, ptr, "gone", &error),
                     TARN_ERR_INVALID_POINTER);
    assert_non_null(strstr(error.text, "is not allocated here"));
    assert_int_equal(texts.event.action, TARN_ACTION_FREE_COMPLETED);
    rig_close(&rig);
}

struct pages {
    uint64_t addresses[SEEN_MAX];
    int count;
    int most; /* then the walk ends */
};

static bool see_page(void *context, const struct tn_page_info *page)
{
    struct pages *pages = context;

    assert_true(page->handle != 0);
    assert_int_equal(page->size, 2 * MIB);
    assert_in_range(page->times, 1, 2); /* mapped once, and once more where it moved */
    pages->addresses[pages->count++] = page->address;
    return pages->count < pages->most;
}

static int pages_seen(struct rig *rig, const struct tarn_pool_id *id, int most)
{
    struct pages pages = {.most = most};

    tn_visit_pages(rig_engine(rig->allocator), id, see_page, &pages);
    for (int i = 1; i < pages.count; i++) {
        assert_true(pages.addresses[i] > pages.addresses[i - 1]);
    }
    return pages.count;
}

static void pages_are_shown_by_pool(void **state)
{
    const struct tarn_pool_id none = {0, 0};
    struct rig rig;

    (void)state;
    used_memory_begin();
    rig_open(&rig, GIB, "policy:compact");
    const tarn_ptr own = rig_alloc(&rig, 10 * MIB, 0);
    const tarn_ptr other = rig_alloc(&rig, 4 * MIB, 1);

    assert_int_equal(tarn_allocator_begin_pool(rig.allocator, graph, any_stream, NULL, NULL),
                     TARN_OK);
    const tarn_ptr of_graph = rig_alloc(&rig, 6 * MIB, 0);

    assert_int_equal(tarn_allocator_end_pool(rig.allocator, graph, NULL), TARN_OK);
    assert_int_equal(pages_seen(&rig, NULL, SEEN_MAX), 5 + 2 + 3);
    assert_int_equal(pages_seen(&rig, &none, SEEN_MAX), 5 + 2);
    assert_int_equal(pages_seen(&rig, &graph, SEEN_MAX), 3);
    for (int most = 1; most <= 9; most++) {
        assert_int_equal(pages_seen(&rig, NULL, most), most);
    }
    rig_free(&rig, own);
    rig_free(&rig, other);
    rig_free(&rig, of_graph);
    rig_close(&rig);
    rig_open(&rig, GIB, "expandable_segments:True"); /* whose pages have no history */
    rig_free(&rig, rig_alloc(&rig, 10 * MIB, 0));
    assert_int_equal(pages_seen(&rig, NULL, SEEN_MAX), 0);
    rig_close(&rig);
    used_memory_end();
}

/* Addresses whose pages have moved elsewhere have none. */
static void holes_are_not_shown(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "policy:compact");
    const tarn_ptr hole = rig_alloc(&rig, 30 * MIB, 0);

    (void)rig_alloc(&rig, 2 * MIB, 0);
    rig_free(&rig, hole);
    rig_free(&rig, rig_alloc(&rig, 40 * MIB, 0));
    assert_int_equal(rig_engine(rig.allocator)->compact.pages_moved, 15);
    assert_int_equal(pages_seen(&rig, NULL, SEEN_MAX), sim_counters(rig.device).live_pages);
    rig_close(&rig);
}

static bool no_page(void *context, const struct tn_page_info *page)
{
    (void)context;
    (void)page;
    fail();
    return false;
}

static tarn_ptr source_alloc(void *context, uint64_t size, tarn_stream stream)
{
    (void)stream;
    return sim_alloc_ok(context, size);
}

static void source_free(void *context, tarn_ptr ptr)
{
    struct tarn_device *device = context;

    assert_int_equal(device->ops->free(device, ptr), TARN_OK);
}

static void look_begin(void *context)
{
    ((struct seen *)context)->left = -1;
}

static bool look_end(void *context)
{
    return ((struct seen *)context)->segment_count == 0; /* no mark in the events */
}

/* Plain segments have no pages, and a look need not ask for any. */
static void plain_segments_have_no_pages(void **state)
{
    struct seen seen = {.left = 0};
    struct tn_look look = {.context = &seen,
                           .begin = look_begin,
                           .walker = {&seen, see_segment, see_block},
                           .end = look_end};
    struct tarn_pool *pool = NULL;
    tarn_ptr ptr = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "policy:compact");
    const struct tarn_pool_source source = {.struct_size = sizeof source,
                                            .context = rig.device,
                                            .alloc = source_alloc,
                                            .free = source_free};
    const struct tarn_pool_options options = {.struct_size = sizeof options, .source = &source};

    assert_int_equal(tarn_pool_create(rig.allocator, &options, &pool, &rig.error), TARN_OK);
    assert_int_equal(tarn_pool_alloc(pool, 30 * MIB, 0, &ptr, &rig.error), TARN_OK);
    tn_visit_pages(rig_engine(rig.allocator), NULL, no_page, NULL);
    assert_int_equal(tn_allocator_look(rig.allocator, NULL, &look, &rig.error), TARN_OK);
    assert_int_equal(seen.segment_count, 1);
    assert_int_equal(seen.blocks[0].address, ptr);
    rig_free(&rig, ptr);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* Who looks on in passing sees counters, and blocks as long as these are not too many. */
static void many_blocks_are_not_walked_in_passing(void **state)
{
    struct seen seen = {.left = -1};
    const struct tarn_walker walker = {&seen, see_segment, see_block};
    struct tn_observation observation = {.walker = &walker};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr ptr = rig_alloc(&rig, 10 * MIB, 0);
    int64_t *blocks = &rig_engine(rig.allocator)->heap.shard.counters.blocks.out.current[TN_LARGE];

    assert_true(rig.allocator->methods->observe(rig.allocator, &observation));
    assert_true(observation.walked);
    assert_int_equal(seen.block_count, 1);
    *blocks += 1 << 20; /* as if there were so many */
    observation = (struct tn_observation){.walker = &walker};
    assert_true(rig.allocator->methods->observe(rig.allocator, &observation));
    *blocks -= 1 << 20;
    assert_false(observation.walked);
    assert_true(observation.stats.by_pool[TARN_STAT_ALLOCATION][TARN_STAT_ALL].current > 1 << 20);
    assert_int_equal(seen.block_count, 1);
    rig_free(&rig, ptr);
    rig_close(&rig);
}

static void no_sink(void *context, const struct tarn_sink *sink)
{
    (void)context;
    (void)sink;
    fail();
}

/* Of an engine without receivers nobody keeps stacks. */
static void other_engines_have_no_keeper(void **state)
{
    struct rig rig;
    int context = 0;

    (void)state;
    rig_open(&rig, GIB, "backend:cudaMallocAsync");
    assert_null(tn_allocator_stack_keeper(rig.allocator));
    tn_allocator_visit_keeper(rig.allocator, no_sink, NULL);
    tn_allocator_yield_sink(rig.allocator, &context);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_allocator_shows_nothing),
        cmocka_unit_test(states_and_sums_are_shown),
        cmocka_unit_test(segments_come_by_address),
        cmocka_unit_test(mapped_ranges_are_segments),
        cmocka_unit_test(expandable_segments_are_summed_up),
        cmocka_unit_test(expandable_segments_come_by_age),
        cmocka_unit_test(a_pool_can_be_walked_alone),
        cmocka_unit_test(a_walk_ends_when_told),
        cmocka_unit_test(either_function_may_be_missing),
        cmocka_unit_test(events_carry_the_innermost_compile_context),
        cmocka_unit_test(events_carry_user_metadata),
        cmocka_unit_test(every_event_carries_user_metadata),
        cmocka_unit_test(texts_beyond_the_limits_change_nothing),
        cmocka_unit_test(texts_take_host_memory),
        cmocka_unit_test(live_memory_can_be_annotated),
        cmocka_unit_test(pages_are_shown_by_pool),
        cmocka_unit_test(holes_are_not_shown),
        cmocka_unit_test(plain_segments_have_no_pages),
        cmocka_unit_test(many_blocks_are_not_walked_in_passing),
        cmocka_unit_test(other_engines_have_no_keeper),
        cmocka_unit_test(stacks_are_those_of_the_allocations),
        cmocka_unit_test(split_segments_say_so),
        cmocka_unit_test(the_newest_event_is_the_allocation),
        cmocka_unit_test(stacks_of_events_follow_the_level),
        cmocka_unit_test(a_snapshot_leaves_its_mark),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
