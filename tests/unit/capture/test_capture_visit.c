/* SPDX-License-Identifier: MIT */
/* What tarn_capture_visit shows of a live allocator. */
#include "support/any_stream.h"
#include "support/test.h"

#include <string.h>

#include "support/rig.h"
#include "tarn/capture.h"
#include "tarn/host.h"

struct scene {
    struct rig rig;
    struct tarn_history *history;
    uint64_t stacks; /* captured by the host language so far, which are its numbers */
    uint64_t released;
};

static uint64_t capture_stack(void *context)
{
    return ++((struct scene *)context)->stacks;
}

static void release_stack(void *context, uint64_t stack)
{
    assert_true(stack > 0);
    ((struct scene *)context)->released++;
}

static void scene_open(struct scene *scene)
{
    const struct tarn_host_frames frames = {
        .context = scene, .capture = capture_stack, .release = release_stack};
    const struct tarn_history_options options = {
        .struct_size = sizeof options, .stack_source = TARN_STACK_NONE, .host = &frames};
    struct tarn_sink sink;

    *scene = (struct scene){0};
    rig_open(&scene->rig, GIB, "");
    assert_int_equal(tarn_history_create(&options, &scene->history, NULL), TARN_OK);
    tarn_history_get_sink(scene->history, TARN_CONTEXT_ALL, &sink);
    assert_int_equal(tarn_allocator_add_sink(scene->rig.allocator, &sink, NULL), TARN_OK);
}

static void scene_close(struct scene *scene)
{
    assert_int_equal(tarn_allocator_remove_sink(scene->rig.allocator, scene->history, NULL),
                     TARN_OK);
    rig_check(&scene->rig);
    tarn_allocator_destroy(scene->rig.allocator);
    sim_close(scene->rig.device);
    tarn_history_destroy(scene->history);
    assert_int_equal(scene->released, scene->stacks);
}

/* What was visited. */
struct seen {
    size_t segments;
    size_t blocks;
    size_t allocated;
    size_t events;
    size_t annotations;
    uint64_t end; /* of the blocks so far of this segment */
    uint64_t segment_end;
    uint64_t stack_of_block;
    uint64_t stack_of_event;
    enum tarn_action last;
    int64_t last_us;
};

static void see_segment(void *context, const struct tarn_segment_info *segment, uint64_t stack)
{
    struct seen *seen = context;

    assert_true(stack > 0);
    assert_int_equal(seen->end, seen->segment_end); /* the blocks fill the segment before */
    seen->segments++;
    seen->end = segment->address;
    seen->segment_end = segment->address + segment->total_size;
}

static void see_block(void *context, const struct tarn_block_info *block, uint64_t stack)
{
    struct seen *seen = context;

    assert_int_equal(block->address, seen->end);
    seen->end += block->size;
    seen->blocks++;
    seen->allocated += block->allocated;
    seen->stack_of_block = block->allocated ? stack : seen->stack_of_block;
}

static void see_event(void *context, const struct tarn_history_entry *entry, uint64_t stack)
{
    struct seen *seen = context;

    assert_true(entry->time_us >= seen->last_us);
    seen->last_us = entry->time_us;
    seen->last = entry->event.action;
    seen->stack_of_event = entry->event.action == TARN_ACTION_ALLOC ? stack : seen->stack_of_event;
    seen->events++;
}

static void see_annotation(void *context, const struct tarn_captured_annotation *annotation)
{
    struct seen *seen = context;

    assert_string_equal(annotation->name, "step");
    assert_int_equal(annotation->device, 3);
    assert_int_equal(annotation->stage, TARN_ANNOTATION_END);
    assert_int_equal(annotation->field_count, 1);
    assert_string_equal(annotation->fields[0].key, "more");
    assert_string_equal(annotation->fields[0].value, "field");
    assert_true(annotation->time_us > 0);
    seen->annotations++;
}

static struct tarn_capture_visitor visitor_of(struct seen *seen)
{
    return (struct tarn_capture_visitor){.struct_size = sizeof(struct tarn_capture_visitor),
                                         .context = seen,
                                         .segment = see_segment,
                                         .block = see_block,
                                         .event = see_event,
                                         .annotation = see_annotation};
}

static struct seen visited(const struct scene *scene, const struct tarn_capture_options *options)
{
    const struct tarn_capture_source source = {scene->rig.allocator, scene->history};
    struct seen seen = {0};
    const struct tarn_capture_visitor visitor = visitor_of(&seen);
    struct tarn_error error;

    if (tarn_capture_visit(&source, options, &visitor, &error)) {
        fail_msg("%s", error.text);
    }
    return seen;
}

static void all_of_it_is_shown(void **state)
{
    const struct tarn_annotation_field field = {"more", "field"};
    struct scene scene;

    (void)state;
    scene_open(&scene);
    const tarn_ptr a = rig_alloc(&scene.rig, 3 * MIB, 0);

    (void)rig_alloc(&scene.rig, 1000, 0);
    assert_int_equal(
        tarn_history_annotate(scene.history, TARN_ANNOTATION_END, 3, "step", &field, 1), TARN_OK);
    struct seen seen = visited(&scene, NULL);

    assert_int_equal(seen.segments, 2);
    assert_int_equal(seen.blocks, 4);
    assert_int_equal(seen.allocated, 2);
    assert_int_equal(seen.events, 4);
    assert_int_equal(seen.last, TARN_ACTION_ALLOC);
    assert_int_equal(seen.annotations, 1);
    assert_true(seen.stack_of_block > 0);
    assert_int_equal(seen.stack_of_event, scene.stacks); /* of the latest allocation */
    rig_free(&scene.rig, a);
    seen = visited(&scene, NULL);
    assert_int_equal(seen.allocated, 1);
    assert_int_equal(seen.events, 7); /* the mark of the first visit, and the free */
    assert_int_equal(seen.last, TARN_ACTION_FREE_COMPLETED);
    scene_close(&scene);
}

/* Without a history nobody knows what a stack is. */
static void without_stack(void *context, const struct tarn_segment_info *segment, uint64_t stack)
{
    (void)context;
    assert_true(segment->total_size > 0);
    assert_int_equal(stack, 0);
}

static void parts_of_it_are_shown(void **state)
{
    const struct tarn_capture_options options = {
        .struct_size = sizeof options, .without_traces = true, .only_pool = true, .pool = {0, 1}};
    struct scene scene;

    (void)state;
    scene_open(&scene);
    (void)rig_alloc(&scene.rig, 30 * MIB, 0);
    assert_int_equal(
        tarn_allocator_begin_pool(scene.rig.allocator, options.pool, any_stream, NULL, NULL),
        TARN_OK);
    (void)rig_alloc(&scene.rig, 3 * MIB, 0);
    assert_int_equal(tarn_allocator_end_pool(scene.rig.allocator, options.pool, NULL), TARN_OK);
    const struct seen seen = visited(&scene, &options);

    assert_int_equal(seen.segments, 1);
    assert_int_equal(seen.allocated, 1);
    assert_int_equal(seen.events, 0);
    /* A visitor without functions, and a source without a history. */
    const struct tarn_capture_source source = {scene.rig.allocator, NULL};
    const struct tarn_capture_visitor none = {.struct_size = sizeof none};

    assert_int_equal(tarn_capture_visit(&source, NULL, &none, NULL), TARN_OK);
    const struct tarn_capture_source with_history = {scene.rig.allocator, scene.history};

    assert_int_equal(tarn_capture_visit(&with_history, NULL, &none, NULL), TARN_OK);
    const struct tarn_capture_visitor segments = {
        .struct_size = sizeof segments, .context = &scene, .segment = without_stack};

    assert_int_equal(tarn_capture_visit(&source, NULL, &segments, NULL), TARN_OK);
    scene_close(&scene);
}

static void wrong_arguments_are_named(void **state)
{
    const struct tarn_capture_options wrong = {.struct_size = 1};
    struct seen seen = {0};
    struct tarn_capture_visitor visitor = visitor_of(&seen);
    struct tarn_capture_source source = {NULL, NULL};
    struct tarn_error error;
    struct rig rig;

    (void)state;
    assert_int_equal(tarn_capture_visit(&source, NULL, &visitor, &error),
                     TARN_ERR_INVALID_ARGUMENT);
    rig_open(&rig, GIB, "");
    source.allocator = rig.allocator;
    assert_int_equal(tarn_capture_visit(&source, &wrong, &visitor, &error),
                     TARN_ERR_INVALID_ARGUMENT);
    visitor.struct_size = 1;
    assert_int_equal(tarn_capture_visit(&source, NULL, &visitor, &error),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "right size"));
    rig_close(&rig);
    visitor = visitor_of(&seen);
    rig_open(&rig, GIB, "backend:cudaMallocAsync");
    source.allocator = rig.allocator;
    assert_int_equal(tarn_capture_visit(&source, NULL, &visitor, &error), TARN_ERR_NOT_SUPPORTED);
    rig_close(&rig);
    assert_int_equal(seen.segments, 0);
}

static void every_host_allocation_may_fail(void **state)
{
    enum tarn_status status = TARN_ERR_HOST_MEMORY;
    struct seen seen = {0};
    const struct tarn_capture_visitor visitor = visitor_of(&seen);
    struct scene scene;
    uint64_t n = 0;

    (void)state;
    scene_open(&scene);
    (void)rig_alloc(&scene.rig, 1000, 0);
    const struct tarn_capture_source source = {scene.rig.allocator, scene.history};
    const uint64_t before = tarn_host_get_usage().live_bytes;

    while (status == TARN_ERR_HOST_MEMORY) {
        assert_int_equal(seen.segments, 0); /* all of it or nothing */
        tarn_host_fail_nth(++n);
        status = tarn_capture_visit(&source, NULL, &visitor, NULL);
        tarn_host_fail_nth(0);
        assert_int_equal(tarn_host_get_usage().live_bytes, before);
    }
    assert_int_equal(status, TARN_OK);
    assert_true(n > 2);
    assert_int_equal(seen.segments, 1);
    scene_close(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_it_is_shown),
        cmocka_unit_test(parts_of_it_are_shown),
        cmocka_unit_test(wrong_arguments_are_named),
        cmocka_unit_test(every_host_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
