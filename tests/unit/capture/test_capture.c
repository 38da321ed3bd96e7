/* SPDX-License-Identifier: MIT */
/* Live allocators to snapshots. */
#include "support/any_stream.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#include "snapshot/page_list.h"
#include "snapshot/snapshot.h"
#include "support/collect.h"
#include "support/rig.h"
#include "support/same_model.h"
#include "tarn/capture.h"
#include "tarn/host.h"
#include "tarn/observer.h"
#include "tarn/report.h"

struct analysis {
    struct rig rig;
    struct tarn_history *history;
    uint64_t host_bytes;
};

static void scene_open_on(struct analysis *analysis, struct tarn_sim_options sim, const char *conf,
                          struct tarn_history *shared)
{
    struct tarn_sink sink;

    *analysis = (struct analysis){.host_bytes = tarn_host_get_usage().live_bytes};
    rig_open_with(&analysis->rig, sim, conf);
    analysis->history = shared;
    if (!shared) {
        assert_int_equal(tarn_history_create(NULL, &analysis->history, NULL), TARN_OK);
    }
    tarn_history_get_sink(analysis->history, TARN_CONTEXT_ALL, &sink);
    assert_int_equal(tarn_allocator_add_sink(analysis->rig.allocator, &sink, NULL), TARN_OK);
}

static void scene_open(struct analysis *analysis, const char *conf)
{
    scene_open_on(analysis, (struct tarn_sim_options){.capacity = GIB, .manual_events = true}, conf,
                  NULL);
}

static void scene_close(struct analysis *analysis, bool own_history)
{
    struct tarn_history_usage usage = {.struct_size = sizeof usage};

    assert_int_equal(tarn_allocator_remove_sink(analysis->rig.allocator, analysis->history, NULL),
                     TARN_OK);
    if (own_history) {
        tarn_history_clear(analysis->history);
        tarn_history_get_usage(analysis->history, &usage);
        assert_int_equal(usage.stacks, 0);
        assert_int_equal(usage.texts, 0);
        tarn_history_destroy(analysis->history);
    }
    rig_check(&analysis->rig);
    tarn_allocator_destroy(analysis->rig.allocator);
    sim_close(analysis->rig.device);
    if (own_history) {
        assert_int_equal(tarn_host_get_usage().live_bytes, analysis->host_bytes);
    }
}

static struct tarn_capture_source source_of(const struct analysis *analysis)
{
    return (struct tarn_capture_source){analysis->rig.allocator, analysis->history};
}

static struct tarn_snapshot *capture(const struct analysis *analysis,
                                     const struct tarn_capture_options *options)
{
    const struct tarn_capture_source source = source_of(analysis);
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_error error;

    if (tarn_snapshot_capture(&source, 1, options, &snapshot, &error)) {
        fail_msg("%s", error.text);
    }
    return snapshot;
}

static TN_NOINLINE tarn_ptr alloc_here(struct analysis *analysis, uint64_t size, tarn_stream stream)
{
    const tarn_ptr ptr = rig_alloc(&analysis->rig, size, stream);

    __asm__ volatile("" ::: "memory");
    return ptr;
}

static bool stack_has(const struct tn_model *model, uint32_t stack, const char *name)
{
    const struct tn_stack frames = tn_model_stack(model, stack);
    bool found = false;

    for (uint32_t i = 0; i < frames.count; i++) {
        const struct tn_frame *frame = tn_model_frame(model, frames.frames[i]);

        found = found || strcmp(tn_model_string(model, frame->name).text, name) == 0;
    }
    return found;
}

/* A block of every state, with stacks where PyTorch has them. */
static void blocks_are_as_they_are(void **state)
{
    struct analysis analysis;

    (void)state;
    scene_open(&analysis, "max_split_size_mb:200,garbage_collection_threshold:0.5");
    const tarn_ptr a = alloc_here(&analysis, 2 * MIB - 1, 6);
    const tarn_ptr b = alloc_here(&analysis, 3 * MIB, 6);
    const tarn_ptr c = alloc_here(&analysis, 4 * MIB - 100, 6);

    rig_free(&analysis.rig, b);
    rig_record(&analysis.rig, c, 7);
    rig_free(&analysis.rig, c);
    struct tarn_snapshot *snapshot = capture(&analysis, NULL);
    const struct tn_model *model = tn_snapshot_model(snapshot);
    const struct tn_model_segment *segment = &model->segments[0];

    assert_int_equal(model->segment_count, 1);
    assert_int_equal(segment->address, a);
    assert_int_equal(segment->total_size, 20 * MIB);
    assert_int_equal(segment->allocated_size, 2 * MIB);
    assert_int_equal(segment->active_size, 6 * MIB);
    assert_int_equal(segment->requested_size, 6 * MIB - 101);
    assert_int_equal(segment->stream, 6);
    assert_int_equal(segment->device, 0);
    assert_true(segment->is_large);
    assert_false(segment->is_expandable);
    assert_true(stack_has(model, segment->stack, "alloc_here"));
    assert_int_equal(segment->block_count, 4);
    assert_int_equal(segment->blocks[0].state, TN_BLOCK_ACTIVE_ALLOCATED);
    assert_int_equal(segment->blocks[1].state, TN_BLOCK_INACTIVE);
    assert_int_equal(segment->blocks[2].state, TN_BLOCK_ACTIVE_PENDING_FREE);
    assert_int_equal(segment->blocks[3].state, TN_BLOCK_INACTIVE);
    assert_int_equal(segment->blocks[0].requested_size, 2 * MIB - 1);
    assert_true(stack_has(model, segment->blocks[0].stack, "alloc_here"));
    assert_true(stack_has(model, segment->blocks[2].stack, "alloc_here"));
    assert_int_equal(segment->blocks[1].stack, TN_STACK_EMPTY);
    assert_true(model->settings.present);
    assert_int_equal(model->settings.max_split_size, 200 * MIB);
    assert_true(model->settings.garbage_collection_threshold == 0.5);
    assert_string_equal(tn_model_string(model, model->settings.conf).text,
                        "max_split_size_mb:200,garbage_collection_threshold:0.5");
    tarn_snapshot_destroy(snapshot);
    scene_close(&analysis, true);
}

/* The events before it; its own mark only in the next. */
static void the_trace_is_the_history(void **state)
{
    static const enum tn_trace_action expected[] = {
        TN_TRACE_SEGMENT_ALLOC,  TN_TRACE_ALLOC,          TN_TRACE_ANNOTATE,
        TN_TRACE_FREE_REQUESTED, TN_TRACE_FREE_COMPLETED, TN_TRACE_SNAPSHOT};
    struct analysis analysis;

    (void)state;
    scene_open(&analysis, "");
    const tarn_ptr a = alloc_here(&analysis, 1000, 3);

    assert_int_equal(tarn_allocator_annotate(analysis.rig.allocator, a, "it is \xff", NULL),
                     TARN_OK);
    assert_int_equal(tarn_set_user_metadata("later"), TARN_OK);
    rig_free(&analysis.rig, a);
    assert_int_equal(tarn_set_user_metadata(""), TARN_OK);
    for (uint64_t round = 0; round < 2; round++) {
        struct tarn_snapshot *snapshot = capture(&analysis, NULL);
        const struct tn_model *model = tn_snapshot_model(snapshot);

        assert_int_equal(model->trace_count, 1);
        assert_int_equal(model->traces[0].count, 5 + round);
        int64_t last = 0;

        for (uint64_t i = 0; i < model->traces[0].count; i++) {
            const struct tn_trace_entry *entry = tn_trace_at(model, &model->traces[0], i);

            assert_int_equal(entry->action, expected[i]);
            assert_true(entry->time_us >= last);
            last = entry->time_us;
        }
        const struct tn_trace_entry *alloc = tn_trace_at(model, &model->traces[0], 1);
        const struct tn_trace_entry *note = tn_trace_at(model, &model->traces[0], 2);
        const struct tn_trace_entry *freed = tn_trace_at(model, &model->traces[0], 3);

        assert_int_equal(alloc->address, a);
        assert_int_equal(alloc->size, 1000);
        assert_int_equal(alloc->stream, 3);
        assert_true(stack_has(model, alloc->stack, "alloc_here"));
        assert_string_equal(
            tn_model_string(model, tn_model_extra(model, note->extra)->user_metadata).text,
            "it is ?");
        assert_string_equal(
            tn_model_string(model, tn_model_extra(model, freed->extra)->user_metadata).text,
            "later");
        assert_string_equal(
            tn_model_string(model, tn_model_extra(model, alloc->extra)->compile_context).text,
            "N/A");
        assert_true(tn_model_extra(model, alloc->extra)->has_pool);
        tarn_snapshot_destroy(snapshot);
    }
    scene_close(&analysis, true);
}

static void read_back(const char *conf)
{
    struct analysis analysis;
    const struct tarn_annotation_field field = {"step", "7"};

    scene_open(&analysis, conf);
    tarn_ptr ptrs[40];

    for (uint64_t i = 0; i < 40; i++) {
        ptrs[i] = alloc_here(&analysis, 1 + i * 100000, i % 3);
    }
    for (uint64_t i = 0; i < 40; i += 3) {
        rig_free(&analysis.rig, ptrs[i]);
    }
    assert_int_equal(
        tarn_history_annotate(analysis.history, TARN_ANNOTATION_START, 0, "fwd", &field, 1),
        TARN_OK);
    assert_int_equal(
        tarn_history_annotate(analysis.history, TARN_ANNOTATION_END, 0, "fwd", NULL, 0), TARN_OK);
    struct tarn_snapshot *snapshot = capture(&analysis, NULL);

    assert_int_equal(tn_snapshot_model(snapshot)->annotation_count, 2);
    for (int format = 0; format < 2; format++) {
        struct test_collect out = {.text = NULL};
        const struct tarn_writer writer = {test_collect_write, &out};
        struct tarn_snapshot *again = NULL;

        assert_int_equal(
            tarn_snapshot_write(snapshot, (enum tarn_snapshot_format)format, &writer, NULL),
            TARN_OK);
        assert_int_equal(tarn_snapshot_load_memory(out.text, out.size, NULL, &again, NULL),
                         TARN_OK);
        same_model(tn_snapshot_model(snapshot), tn_snapshot_model(again));
        assert_int_equal(tarn_snapshot_walk_warnings(again, NULL, NULL), 0);
        tarn_snapshot_destroy(again);
        free(out.text);
    }
    tarn_snapshot_destroy(snapshot);
    scene_close(&analysis, true);
}

static void it_is_read_back_as_it_was(void **state)
{
    (void)state;
    read_back("expandable_segments:True,roundup_power2_divisions:4");
    read_back("policy:compact");
}

/* Of a compact allocator whose first block has gone and left its pages to the second. */
static void pages_are_where_they_moved(void **state)
{
    struct analysis analysis;

    (void)state;
    scene_open(&analysis, "policy:compact");
    const tarn_ptr first = rig_alloc(&analysis.rig, 8 * MIB, 0);
    const tarn_ptr kept = rig_alloc(&analysis.rig, 2 * MIB, 0);
    struct tarn_snapshot *before = capture(&analysis, NULL);

    rig_free(&analysis.rig, first);
    const tarn_ptr second = rig_alloc(&analysis.rig, 12 * MIB, 0);
    struct tarn_snapshot *after = capture(&analysis, NULL);
    const struct tn_model *was = tn_snapshot_model(before);
    const struct tn_model *is = tn_snapshot_model(after);
    struct tn_page_list old;
    struct tn_page_list new;

    assert_int_equal(was->segment_count, 1);
    assert_true(tn_page_list_find(was, &was->segments[0], &old));
    assert_int_equal(old.size, 2 * MIB);
    assert_int_equal(old.count, 5);
    assert_int_equal(is->segment_count, 1);
    assert_int_equal(is->segments[0].address, kept);
    assert_int_equal(second, kept + 2 * MIB);
    assert_true(tn_page_list_find(is, &is->segments[0], &new));
    assert_int_equal(new.count, 7);
    for (uint32_t i = 0; i < 5; i++) { /* each of them is somewhere */
        const uint64_t handle = tn_page_list_number(&old.handles[i]);
        uint32_t at = 0;

        while (at < new.count && tn_page_list_number(&new.handles[at]) != handle) {
            at++;
        }
        assert_int_equal(at == 0, i == 4); /* the one that was kept begins the segment now */
        assert_true(at < new.count);
        assert_int_equal(tn_page_list_number(&new.times[at]), 1);
    }
    tarn_snapshot_destroy(before);
    tarn_snapshot_destroy(after);
    scene_close(&analysis, true);
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

/* Beside segments of pages there may be one that the program gave. */
static void segments_of_a_source_have_no_pages(void **state)
{
    const struct tarn_pool_id id = {0, 5};
    struct tarn_pool_source source = {
        .struct_size = sizeof source, .alloc = source_alloc, .free = source_free};
    struct analysis analysis;
    unsigned with_pages = 0;

    (void)state;
    scene_open(&analysis, "policy:compact");
    struct tarn_allocator *allocator = analysis.rig.allocator;

    source.context = analysis.rig.device;
    assert_int_equal(tarn_allocator_create_pool_from(allocator, id, &source, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_begin_pool(allocator, id, any_stream, NULL, NULL), TARN_OK);
    const tarn_ptr given = rig_alloc(&analysis.rig, 8 * MIB, 0);

    assert_int_equal(tarn_allocator_end_pool(allocator, id, NULL), TARN_OK);
    const tarn_ptr own = rig_alloc(&analysis.rig, 8 * MIB, 0);
    struct tarn_snapshot *snapshot = capture(&analysis, NULL);
    const struct tn_model *model = tn_snapshot_model(snapshot);

    assert_int_equal(model->segment_count, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct tn_model_segment *segment = &model->segments[i];
        struct tn_page_list pages;

        assert_int_equal(segment->is_expandable, segment->address == own);
        assert_int_equal(tn_page_list_find(model, segment, &pages), segment->address == own);
        with_pages += segment->address == own;
    }
    assert_int_equal(with_pages, 1);
    tarn_snapshot_destroy(snapshot);
    rig_free(&analysis.rig, given);
    rig_free(&analysis.rig, own);
    for (int i = 0; i < 2; i++) { /* its use, and the routing */
        assert_int_equal(tarn_allocator_release_pool(allocator, id, NULL), TARN_OK);
    }
    assert_int_equal(tarn_allocator_empty_pool(allocator, id, NULL), TARN_OK);
    scene_close(&analysis, true);
}

static void parts_can_be_asked_for(void **state)
{
    const struct tarn_pool_id id = {0, 9};
    const struct tarn_capture_options options = {
        .struct_size = sizeof options, .without_traces = true, .only_pool = true, .pool = id};
    struct analysis analysis;

    (void)state;
    scene_open(&analysis, "");
    (void)alloc_here(&analysis, 1000, 0);
    assert_int_equal(tarn_allocator_begin_pool(analysis.rig.allocator, id, any_stream, NULL, NULL),
                     TARN_OK);
    (void)alloc_here(&analysis, 3 * MIB, 0);
    assert_int_equal(tarn_allocator_end_pool(analysis.rig.allocator, id, NULL), TARN_OK);
    struct tarn_snapshot *snapshot = capture(&analysis, &options);
    const struct tn_model *model = tn_snapshot_model(snapshot);

    assert_int_equal(model->segment_count, 1);
    assert_int_equal(model->segments[0].pool.id[1], 9);
    assert_int_equal(model->trace_count, 1);
    assert_int_equal(model->traces[0].count, 0);
    tarn_snapshot_destroy(snapshot);
    scene_close(&analysis, true);
}

static void devices_without_anything_have_a_trace(void **state)
{
    struct tarn_capture_options options = {.struct_size = sizeof options, .device_count = 4};
    struct tarn_snapshot *snapshot = NULL;
    struct analysis analysis;

    (void)state;
    scene_open(&analysis, "");
    (void)alloc_here(&analysis, 1000, 0);
    snapshot = capture(&analysis, &options);
    const struct tn_model *model = tn_snapshot_model(snapshot);

    assert_int_equal(model->trace_count, 4);
    assert_int_equal(model->traces[0].count, 2);
    assert_int_equal(model->traces[3].count, 0);
    tarn_snapshot_destroy(snapshot);
    const struct tarn_capture_source source = source_of(&analysis);

    options.device_count = 100000;
    assert_int_equal(tarn_snapshot_capture(&source, 1, &options, &snapshot, NULL),
                     TARN_ERR_INVALID_ARGUMENT);
    scene_close(&analysis, true);
}

/* Two devices, one history: a trace each; devices in order, whatever the order of the sources. */
static void devices_share_a_history(void **state)
{
    struct analysis scenes[2];
    struct tarn_snapshot *snapshot = NULL;

    (void)state;
    scene_open_on(&scenes[0], (struct tarn_sim_options){.capacity = GIB, .ordinal = 2}, "", NULL);
    scene_open_on(&scenes[1], (struct tarn_sim_options){.capacity = GIB, .ordinal = 1}, "",
                  scenes[0].history);
    (void)alloc_here(&scenes[0], 1000, 0);
    (void)alloc_here(&scenes[1], 3 * MIB, 0);
    (void)alloc_here(&scenes[0], 2000, 0);
    const struct tarn_capture_source sources[] = {source_of(&scenes[0]), source_of(&scenes[1])};

    assert_int_equal(tarn_snapshot_capture(sources, 2, NULL, &snapshot, NULL), TARN_OK);
    const struct tn_model *model = tn_snapshot_model(snapshot);

    assert_int_equal(model->segment_count, 2);
    assert_int_equal(model->segments[0].device, 1);
    assert_int_equal(model->segments[1].device, 2);
    assert_int_equal(model->trace_count, 3);
    assert_int_equal(model->traces[0].count, 0);
    assert_int_equal(model->traces[1].count, 2);
    assert_int_equal(model->traces[2].count, 3);
    tarn_snapshot_destroy(snapshot);
    const struct tarn_capture_source turned[] = {source_of(&scenes[1]), source_of(&scenes[0])};

    assert_int_equal(tarn_snapshot_capture(turned, 2, NULL, &snapshot, NULL), TARN_OK);
    model = tn_snapshot_model(snapshot);
    assert_int_equal(model->segments[0].device, 1);
    assert_int_equal(model->segments[1].device, 2);
    tarn_snapshot_destroy(snapshot);
    scene_close(&scenes[1], false);
    scene_close(&scenes[0], true);
}

static void devices_have_numbers_that_snapshots_can_have(void **state)
{
    struct tarn_snapshot *snapshot = NULL;
    struct analysis analysis;
    struct tarn_error error;

    (void)state;
    scene_open_on(&analysis, (struct tarn_sim_options){.capacity = GIB, .ordinal = 1024}, "", NULL);
    const struct tarn_capture_source source = source_of(&analysis);

    assert_int_equal(tarn_snapshot_capture(&source, 1, NULL, &snapshot, &error),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "of a device above 1023"));
    scene_close(&analysis, true);
}

/* Without a history, with a foreign one, and with one that is switched off. */
static void stacks_are_the_historys_own(void **state)
{
    struct analysis analysis;
    struct tarn_history *foreign = NULL;
    struct tarn_snapshot *snapshot = NULL;

    (void)state;
    scene_open(&analysis, "");
    (void)alloc_here(&analysis, 1000, 0);
    assert_int_equal(tarn_history_create(NULL, &foreign, NULL), TARN_OK);
    struct tarn_history *const histories[] = {NULL, foreign};

    for (int i = 0; i < 2; i++) {
        const struct tarn_capture_source source = {analysis.rig.allocator, histories[i]};

        assert_int_equal(tarn_snapshot_capture(&source, 1, NULL, &snapshot, NULL), TARN_OK);
        const struct tn_model *model = tn_snapshot_model(snapshot);

        assert_int_equal(model->segments[0].stack, TN_STACK_EMPTY);
        assert_int_equal(model->segments[0].blocks[0].stack, TN_STACK_EMPTY);
        assert_int_equal(model->traces[0].count, 0);
        tarn_snapshot_destroy(snapshot);
    }
    tarn_history_destroy(foreign);
    assert_int_equal(tarn_allocator_switch_sink(analysis.rig.allocator, analysis.history, false,
                                                TARN_CONTEXT_NEVER, NULL),
                     TARN_OK);
    tarn_history_clear(analysis.history);
    snapshot = capture(&analysis, NULL);
    assert_true(stack_has(tn_snapshot_model(snapshot),
                          tn_snapshot_model(snapshot)->segments[0].blocks[0].stack, "alloc_here"));
    tarn_snapshot_destroy(snapshot);
    scene_close(&analysis, true);
}

static void what_cannot_be_captured_is_said(void **state)
{
    const struct tarn_capture_source none = {NULL, NULL};
    const struct tarn_capture_options wrong = {.struct_size = 1};
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_error error;
    struct rig rig;

    (void)state;
    assert_int_equal(tarn_snapshot_capture(&none, 0, NULL, &snapshot, &error),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_snapshot_capture(&none, 1, NULL, &snapshot, &error),
                     TARN_ERR_INVALID_ARGUMENT);
    rig_open(&rig, GIB, "backend:cudaMallocAsync");
    const struct tarn_capture_source async = {rig.allocator, NULL};

    assert_int_equal(tarn_snapshot_capture(&async, 1, &wrong, &snapshot, &error),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_snapshot_capture(&async, 1, NULL, &snapshot, &error),
                     TARN_ERR_NOT_SUPPORTED);
    assert_non_null(strstr(error.text, "not meaningful"));
    rig_close(&rig);
    rig_open(&rig, GIB, "");
    const struct tarn_capture_source empty = {rig.allocator, NULL};

    assert_int_equal(tarn_snapshot_capture(&empty, 1, NULL, &snapshot, &error), TARN_OK);
    assert_int_equal(tarn_snapshot_segment_count(snapshot), 0);
    tarn_snapshot_destroy(snapshot);
    rig_close(&rig);
}

static size_t count_allocated(const struct analysis *analysis)
{
    struct tarn_snapshot *snapshot = capture(analysis, NULL);
    const struct tn_model *model = tn_snapshot_model(snapshot);
    size_t allocated = 0;

    for (size_t i = 0; i < model->segment_count; i++) {
        for (size_t k = 0; k < model->segments[i].block_count; k++) {
            allocated += model->segments[i].blocks[k].state == TN_BLOCK_ACTIVE_ALLOCATED;
        }
    }
    tarn_snapshot_destroy(snapshot);
    return allocated;
}

/* More blocks than room was got for at first, and more segments. */
static void many_blocks_are_copied(void **state)
{
    struct analysis analysis;

    (void)state;
    scene_open(&analysis, "");
    for (int i = 0; i < 5000; i++) {
        (void)rig_alloc(&analysis.rig, 512, 0);
    }
    assert_int_equal(count_allocated(&analysis), 5000);
    for (uint64_t i = 0; i < 100; i++) {
        (void)rig_alloc(&analysis.rig, 512, 1 + i);
    }
    assert_int_equal(count_allocated(&analysis), 5100);
    scene_close(&analysis, true);
}

static void every_host_allocation_may_fail(void **state)
{
    struct analysis analysis;
    struct tarn_snapshot *snapshot = NULL;
    enum tarn_status st = TARN_ERR_HOST_MEMORY;
    uint64_t n = 0;

    (void)state;
    scene_open(&analysis, "");
    (void)alloc_here(&analysis, 1000, 0);
    assert_int_equal(tarn_allocator_annotate(analysis.rig.allocator, SIM_BASE, "\xff", NULL),
                     TARN_OK);
    assert_int_equal(
        tarn_history_annotate(analysis.history, TARN_ANNOTATION_START, 0, "a", NULL, 0), TARN_OK);
    tarn_snapshot_destroy(capture(&analysis, NULL)); /* symbols are known from now on */
    const uint64_t before = tarn_host_get_usage().live_bytes;

    while (st == TARN_ERR_HOST_MEMORY) {
        const struct tarn_capture_source source = source_of(&analysis);

        tarn_host_fail_nth(++n);
        st = tarn_snapshot_capture(&source, 1, NULL, &snapshot, NULL);
        tarn_host_fail_nth(0);
        tarn_snapshot_destroy(snapshot);
        assert_int_equal(tarn_host_get_usage().live_bytes, before);
    }
    assert_int_equal(st, TARN_OK);
    assert_true(n > 20);
    scene_close(&analysis, true);
}

/* ---- pinned memory ---- */

struct pinned_scene {
    struct analysis analysis;
    struct tarn_pinned *pinned;
    struct tarn_history *history;
    struct tarn_capture_options options;
};

static void pinned_open(struct pinned_scene *pinned)
{
    struct tarn_sink sink;

    scene_open(&pinned->analysis, "");
    assert_int_equal(tarn_pinned_create(pinned->analysis.rig.device, NULL, &pinned->pinned, NULL),
                     TARN_OK);
    assert_int_equal(tarn_history_create(NULL, &pinned->history, NULL), TARN_OK);
    tarn_history_get_sink(pinned->history, TARN_CONTEXT_ALL, &sink);
    tarn_pinned_set_sink(pinned->pinned, &sink);
    pinned->options = (struct tarn_capture_options){.struct_size = sizeof pinned->options,
                                                    .pinned = pinned->pinned,
                                                    .pinned_history = pinned->history};
}

static void pinned_close(struct pinned_scene *pinned)
{
    struct tarn_history_usage usage = {.struct_size = sizeof usage};

    tarn_pinned_set_sink(pinned->pinned, NULL);
    tarn_history_clear(pinned->history);
    tarn_history_get_usage(pinned->history, &usage);
    assert_int_equal(usage.stacks, 0); /* nobody kept a reference */
    tarn_pinned_destroy(pinned->pinned);
    tarn_history_destroy(pinned->history);
    scene_close(&pinned->analysis, true);
}

static TN_NOINLINE void *pin_here(struct pinned_scene *pinned, uint64_t size)
{
    void *memory = NULL;

    assert_int_equal(tarn_pinned_alloc(pinned->pinned, size, &memory, NULL), TARN_OK);
    __asm__ volatile("" ::: "memory");
    return memory;
}

static void pinned_use(struct pinned_scene *pinned)
{
    void *memory = pin_here(pinned, 3000);

    (void)pin_here(pinned, 2 * MIB);
    assert_int_equal(tarn_pinned_free(pinned->pinned, memory, NULL), TARN_OK);
    (void)alloc_here(&pinned->analysis, 1000, 0);
}

static void pinned_memory_is_shown_apart(void **state)
{
    static const uint8_t actions[] = {TN_TRACE_SEGMENT_ALLOC,  TN_TRACE_ALLOC,
                                      TN_TRACE_SEGMENT_ALLOC,  TN_TRACE_ALLOC,
                                      TN_TRACE_FREE_REQUESTED, TN_TRACE_FREE_COMPLETED};
    struct pinned_scene pinned;

    (void)state;
    pinned_open(&pinned);
    pinned_use(&pinned);
    struct tarn_snapshot *snapshot = capture(&pinned.analysis, &pinned.options);
    const struct tn_model *model = tn_snapshot_model(snapshot);
    uint64_t bytes = 0;

    assert_true(model->has_host);
    assert_int_equal(model->segment_count, 1);
    assert_int_equal(model->traces[0].count, 2);
    assert_int_equal(model->host_segment_count, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct tn_model_segment *segment = &model->host_segments[i];
        const bool is_large = segment->total_size == 2 * MIB;

        bytes += segment->total_size;
        assert_int_equal(segment->block_count, 1);
        assert_int_equal(segment->is_large, is_large);
        assert_int_equal(segment->blocks[0].state,
                         is_large ? TN_BLOCK_ACTIVE_ALLOCATED : TN_BLOCK_INACTIVE);
        assert_int_equal(stack_has(model, segment->blocks[0].stack, "pin_here"), is_large);
    }
    assert_int_equal(bytes, 2 * MIB + 4096);
    assert_int_equal(model->host_trace_count, 1);
    assert_int_equal(model->host_traces[0].count, sizeof actions);
    for (uint64_t i = 0; i < sizeof actions; i++) {
        const struct tn_trace_entry *entry = tn_trace_at(model, &model->host_traces[0], i);

        assert_int_equal(entry->action, actions[i]);
        assert_int_equal(stack_has(model, entry->stack, "pin_here"), i < 4);
    }
    tarn_snapshot_destroy(snapshot);
    pinned.options.pinned_history = NULL; /* the blocks alone */
    snapshot = capture(&pinned.analysis, &pinned.options);
    assert_int_equal(tn_snapshot_model(snapshot)->host_segment_count, 2);
    assert_int_equal(tn_snapshot_model(snapshot)->host_traces[0].count, 0);
    tarn_snapshot_destroy(snapshot);
    pinned_close(&pinned);
}

static void pinned_memory_is_read_back_as_it_was(void **state)
{
    struct pinned_scene pinned;

    (void)state;
    pinned_open(&pinned);
    pinned_use(&pinned);
    struct tarn_snapshot *snapshot = capture(&pinned.analysis, &pinned.options);

    for (int format = TARN_SNAPSHOT_PICKLE; format <= TARN_SNAPSHOT_JSON; format++) {
        struct test_collect collect = {0};
        const struct tarn_writer writer = {test_collect_write, &collect};
        struct tarn_snapshot *again = NULL;

        assert_int_equal(
            tarn_snapshot_write(snapshot, (enum tarn_snapshot_format)format, &writer, NULL),
            TARN_OK);
        assert_int_equal(tarn_snapshot_load_memory(collect.text, collect.size, NULL, &again, NULL),
                         TARN_OK);
        same_model(tn_snapshot_model(snapshot), tn_snapshot_model(again));
        tarn_snapshot_destroy(again);
        free(collect.text);
    }
    tarn_snapshot_destroy(snapshot);
    pinned_close(&pinned);
}

static void pinned_memory_needs_a_history_of_its_own(void **state)
{
    struct pinned_scene pinned;
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_error error;

    (void)state;
    pinned_open(&pinned);
    const struct tarn_capture_source source = source_of(&pinned.analysis);

    pinned.options.pinned_history = source.history;
    assert_int_equal(tarn_snapshot_capture(&source, 1, &pinned.options, &snapshot, &error),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_string_equal(error.text, "the history of pinned memory is that of source 0 too: it "
                                    "needs one of its own");
    /* One that is not its sink's has no stacks of it, and an observer has other memory. */
    struct tarn_history *other = NULL;
    struct tarn_observer *observer = NULL;

    assert_int_equal(tarn_history_create(NULL, &other, NULL), TARN_OK);
    pinned.options.pinned_history = other;
    void *memory = NULL;

    assert_int_equal(tarn_pinned_alloc(pinned.pinned, 1000, &memory, NULL), TARN_OK);
    assert_int_equal(tarn_snapshot_capture(&source, 1, &pinned.options, &snapshot, &error),
                     TARN_OK);
    const struct tn_model *model = tn_snapshot_model(snapshot);

    assert_int_equal(model->host_segment_count, 1);
    assert_int_equal(model->host_segments[0].blocks[0].stack, TN_STACK_EMPTY);
    assert_int_equal(tarn_pinned_free(pinned.pinned, memory, NULL), TARN_OK);
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_observer_create(0, NULL, TARN_CONTEXT_NEVER, &observer, NULL), TARN_OK);
    pinned.options.host_observer = observer;
    assert_int_equal(tarn_snapshot_capture(&source, 1, &pinned.options, &snapshot, &error),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "of an allocator or of an observer"));
    tarn_observer_destroy(observer);
    tarn_history_destroy(other);
    pinned_close(&pinned);
}

static void host_memory_for_pinned_may_fail(void **state)
{
    struct pinned_scene pinned;
    struct tarn_snapshot *snapshot = NULL;
    enum tarn_status st = TARN_ERR_HOST_MEMORY;
    uint64_t n = 0;

    (void)state;
    pinned_open(&pinned);
    pinned_use(&pinned);
    const struct tarn_capture_source source = source_of(&pinned.analysis);

    tarn_snapshot_destroy(capture(&pinned.analysis, &pinned.options)); /* names are known then */
    while (st != TARN_OK) {
        const uint64_t before = tarn_host_get_usage().live_bytes;

        tarn_host_fail_nth(++n);
        st = tarn_snapshot_capture(&source, 1, &pinned.options, &snapshot, NULL);
        tarn_host_fail_nth(0);
        assert_true(st == TARN_OK || st == TARN_ERR_HOST_MEMORY);
        assert_true(st == TARN_OK || tarn_host_get_usage().live_bytes == before);
    }
    assert_true(n > 10);
    tarn_snapshot_destroy(snapshot);
    pinned_close(&pinned);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_as_they_are),
        cmocka_unit_test(the_trace_is_the_history),
        cmocka_unit_test(it_is_read_back_as_it_was),
        cmocka_unit_test(pages_are_where_they_moved),
        cmocka_unit_test(segments_of_a_source_have_no_pages),
        cmocka_unit_test(parts_can_be_asked_for),
        cmocka_unit_test(devices_without_anything_have_a_trace),
        cmocka_unit_test(devices_share_a_history),
        cmocka_unit_test(devices_have_numbers_that_snapshots_can_have),
        cmocka_unit_test(stacks_are_the_historys_own),
        cmocka_unit_test(what_cannot_be_captured_is_said),
        cmocka_unit_test(pinned_memory_is_shown_apart),
        cmocka_unit_test(pinned_memory_is_read_back_as_it_was),
        cmocka_unit_test(pinned_memory_needs_a_history_of_its_own),
        cmocka_unit_test(host_memory_for_pinned_may_fail),
        cmocka_unit_test(many_blocks_are_copied),
        cmocka_unit_test(every_host_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
