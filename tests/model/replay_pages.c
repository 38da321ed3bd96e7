/* SPDX-License-Identifier: MIT */
/*
 * replay_pages TRACE...: runs traces of page_mover.pml through the compact policy on a simulated
 * device of three pages, one step after the other (replay_pages.sh makes the traces). After each
 * step every place must have the model's page, got from where the model got it, and no work may be
 * able to touch a page that is not its own (support/page_watch.h).
 *
 * Stream s of the model has two places: 2s is the first page of the stream's small blocks, 2s + 1
 * that of its large ones. Place 4 is the page of a block that is captured on stream 0; its graph's
 * work is replayed there. A line is "trace ACTION NUMBER PAGE PAGE PAGE PAGE PAGE": the place, or
 * the stream whose next work runs; then the page of each place, NONE where it has none. Work is
 * blocking work of the simulated device, which ends where the model's use runs. A request that
 * fails ("keeps") ends there: the engine would go on with other efforts.
 */
#include "support/any_stream.h"
#include "support/page_watch.h"
#include "support/rig.h"

#include "alloc/compact/compact.h"
#include "alloc/engine/engine.h"
#include "alloc/engine/visit.h"
#include "tarn/graph_pool.h"
#include "tarn/pages.h"

#include <stdio.h>

enum {
    STREAMS = 2,
    PLACES = 5,
    PRIVATE = 4,
    PAGES = 3,
    NONE = 255 /* as in the model */
};

#define PAGE (2 * MIB)

enum action {
    IN_PLACE,
    SAME_STREAM,
    DONE_WITH,
    MADE,
    IN_ORDER,
    FROM_STORE,
    KEPT_IN_ORDER,
    KEEPS,
    CAPTURED,
    REPLAYED,
    USED,
    FREED,
    RAN,
    ACTIONS
};

/* As the model prints them. */
static const char *const ACTION_NAMES[ACTIONS] = {
    "in_place", "same_stream", "done_with", "made", "in_order", "from_store", "kept_in_order",
    "keeps",    "captured",    "replayed",  "used", "freed",    "ran"};

struct line {
    enum action action;
    unsigned number;
    unsigned page[PLACES];
};

struct place {
    tarn_ptr address; /* of its page; 0: not known yet */
    unsigned streams; /* that used the block which lives there */
    bool is_live;
};

struct scene {
    struct tarn_device *sim;
    struct page_watch *watch;
    struct tarn_allocator *allocator;
    struct place places[PLACES];
    uint64_t handles[PAGES]; /* of the model's pages; 0: not made yet */
};

static unsigned long long steps[ACTIONS];

static tarn_stream stream_of(unsigned place)
{
    return place == PRIVATE ? 0 : place / 2;
}

static uint64_t size_of(unsigned place)
{
    return place == 0 || place == 2 ? MIB : PAGE;
}

static struct tarn_page_stats pages_of(const struct scene *scene)
{
    struct tarn_page_stats stats = {.struct_size = sizeof stats};

    tarn_allocator_get_page_stats(scene->allocator, &stats);
    return stats;
}

/* ---- what must be ---- */

struct looking {
    uint64_t address;
    uint64_t handle;
};

static bool look_at_page(void *context, const struct tn_page_info *page)
{
    struct looking *looking = context;

    looking->handle = page->address == looking->address ? page->handle : looking->handle;
    return true;
}

static uint64_t handle_at(const struct scene *scene, tarn_ptr address)
{
    struct looking looking = {.address = address};

    tn_visit_pages(rig_engine(scene->allocator), NULL, look_at_page, &looking);
    return looking.handle;
}

static void compare(struct scene *scene, const struct line *line)
{
    for (unsigned i = 0; i < PLACES; i++) {
        const tarn_ptr address = scene->places[i].address;
        const uint64_t handle = address ? handle_at(scene, address) : 0;
        const unsigned page = line->page[i];

        if (page == NONE) {
            assert_int_equal(handle, 0);
            continue;
        }
        assert_true(page < PAGES && handle != 0);
        scene->handles[page] = scene->handles[page] ? scene->handles[page] : handle;
        assert_int_equal(handle, scene->handles[page]);
    }
    if (page_watch_error(scene->watch)) {
        fail_msg("%s", page_watch_error(scene->watch));
    }
}

/* ---- steps ---- */

/* A request is served from where the model takes the page. */
static void take(struct scene *scene, const struct line *line)
{
    struct place *place = &scene->places[line->number];
    const tarn_stream stream = stream_of(line->number);
    const uint64_t waits = page_watch_waits(scene->watch);
    const struct tarn_page_stats before = pages_of(scene);
    const bool is_moved =
        line->action == SAME_STREAM || line->action == DONE_WITH || line->action == IN_ORDER;
    const bool is_new = line->action == MADE || line->action == CAPTURED;
    const bool waited = line->action == IN_ORDER || line->action == KEPT_IN_ORDER;
    const bool is_kept = line->action == FROM_STORE || line->action == KEPT_IN_ORDER;
    tarn_ptr ptr = 0;

    assert_int_equal(
        tarn_allocator_alloc(scene->allocator, size_of(line->number), stream, &ptr, NULL), TARN_OK);
    page_watch_alloc(scene->watch, ptr, size_of(line->number), stream);
    place->address = place->address ? place->address : ptr;
    assert_int_equal(ptr, place->address);
    assert_int_equal(pages_of(scene).moved - before.moved, is_moved);
    assert_int_equal(pages_of(scene).created - before.created, is_new);
    assert_int_equal(before.kept - pages_of(scene).kept, is_kept);
    assert_int_equal(page_watch_waits(scene->watch) - waits, waited);
    assert_int_equal(tarn_sim_block_stream(scene->sim, stream), TARN_OK);
    place->streams = 1U << stream;
    place->is_live = true;
}

/* The block of a graph that may be replayed from now on. */
static void capture(struct scene *scene, const struct line *line)
{
    const struct tarn_pool_id id = {1, 1};
    const struct place *place = &scene->places[PRIVATE];

    assert_int_equal(tarn_allocator_begin_pool(scene->allocator, id, any_stream, NULL, NULL),
                     TARN_OK);
    assert_int_equal(tarn_allocator_begin_capture(scene->allocator, NULL), TARN_OK);
    take(scene, line);
    page_watch_capture(scene->watch, place->address, PAGE, 0);
    page_watch_graphs(scene->watch, 0, WATCH_REPLAYED);
    assert_int_equal(tarn_allocator_end_capture(scene->allocator, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_end_pool(scene->allocator, id, NULL), TARN_OK);
}

/* A request of two pages gets one, and no more. */
static void keep(struct scene *scene, const struct line *line)
{
    struct tn_engine *engine = rig_engine(scene->allocator);
    struct tn_heap *heap = &engine->heap;
    struct tn_request request = {.requested = 2 * PAGE, .stream = stream_of(line->number)};
    const struct tarn_page_stats before = pages_of(scene);

    tn_engine_lock(engine);
    tn_request_route(heap, &request, NULL);
    assert_int_equal(tn_request_prepare(heap, &heap->shard, &request, NULL), TARN_OK);
    assert_int_equal(tn_compact_alloc(&engine->compact, &request, TN_COMPACT_FREE, NULL),
                     TARN_ERR_NOT_FOUND);
    tn_engine_unlock(engine);
    assert_int_equal(pages_of(scene).moved - before.moved, 1);
    assert_int_equal(pages_of(scene).kept - before.kept, 1);
}

static void use(struct scene *scene, unsigned number)
{
    struct place *place = &scene->places[number];
    const tarn_stream other = 1 - stream_of(number);

    assert_int_equal(tarn_allocator_record_stream(scene->allocator, place->address, other, NULL),
                     TARN_OK);
    assert_int_equal(tarn_sim_block_stream(scene->sim, other), TARN_OK);
    place->streams |= 1U << other;
}

static void give(struct scene *scene, unsigned number)
{
    struct place *place = &scene->places[number];

    page_watch_free(scene->watch, place->address, size_of(number), place->streams);
    assert_int_equal(tarn_allocator_free(scene->allocator, place->address, NULL), TARN_OK);
    place->is_live = false;
}

static void step(struct scene *scene, const struct line *line)
{
    switch (line->action) {
    case USED:
        use(scene, line->number);
        break;
    case FREED:
        give(scene, line->number);
        break;
    case RAN:
        assert_int_equal(tarn_sim_unblock_stream(scene->sim, line->number), TARN_OK);
        break;
    case CAPTURED:
        capture(scene, line);
        break;
    case REPLAYED:
        assert_int_equal(tarn_sim_block_stream(scene->sim, 0), TARN_OK);
        break;
    case KEEPS:
        keep(scene, line);
        break;
    case FROM_STORE:
    case KEPT_IN_ORDER:
    case IN_PLACE:
    case SAME_STREAM:
    case DONE_WITH:
    case MADE:
    case IN_ORDER:
    case ACTIONS:
        take(scene, line);
        break;
    }
    steps[line->action]++;
    compare(scene, line);
}

/* ---- traces ---- */

static void scene_open(struct scene *scene)
{
    struct tarn_config config;

    *scene = (struct scene){.sim = sim_open(PAGES * PAGE)};
    scene->watch = page_watch_open(scene->sim);
    assert_non_null(scene->watch);
    assert_int_equal(tarn_config_parse("policy:compact", &config, NULL), TARN_OK);
    assert_int_equal(
        tarn_allocator_create(page_watch_device(scene->watch), &config, &scene->allocator, NULL),
        TARN_OK);
}

/* Nothing was waited for on the host, nor anything refused, on the way. */
static void scene_close(struct scene *scene)
{
    assert_int_equal(sim_counters(scene->sim).forced_unblocks, 0);
    for (unsigned i = 0; i < PLACES; i++) {
        if (scene->places[i].is_live) {
            give(scene, i);
        }
    }
    page_watch_end(scene->watch);
    tarn_allocator_destroy(scene->allocator);
    page_watch_close(scene->watch);
    sim_close(scene->sim);
}

static enum action action_of(const char *name)
{
    int i = 0;

    while (i < ACTIONS && strcmp(name, ACTION_NAMES[i]) != 0) {
        i++;
    }
    assert_true(i < ACTIONS);
    return (enum action)i;
}

static bool line_read(FILE *file, struct line *line)
{
    char name[16];
    /* NOLINTBEGIN(cert-err34-c): written by the model, and checked below */
    const int found =
        fscanf(file, " trace %15s %u %u %u %u %u %u", name, &line->number, &line->page[0],
               &line->page[1], &line->page[2], &line->page[3], &line->page[4]);
    /* NOLINTEND(cert-err34-c) */

    if (found != 7) {
        assert_int_equal(found, EOF);
        return false;
    }
    line->action = action_of(name);
    assert_true(line->number < (line->action == RAN ? (unsigned)STREAMS : (unsigned)PLACES));
    return true;
}

static int trace_count;
static char **traces;
static char where[64]; /* the line that is being replayed; empty: none */

static void pages_move_as_in_the_model(void **state)
{
    (void)state;
    for (int i = 0; i < trace_count; i++) {
        struct scene scene;
        struct line line;
        FILE *file = fopen(traces[i], "r");

        assert_non_null(file);
        scene_open(&scene);
        for (unsigned number = 1; line_read(file, &line); number++) {
            (void)snprintf(where, sizeof where, "%s:%u: %s", traces[i], number,
                           ACTION_NAMES[line.action]);
            step(&scene, &line);
        }
        scene_close(&scene);
        (void)fclose(file);
    }
    where[0] = '\0';
    for (int i = 0; i < ACTIONS; i++) {
        print_message("%s %llu\n", ACTION_NAMES[i], steps[i]);
        assert_true(steps[i] > 5);
    }
}

static int say_where(void **state)
{
    (void)state;
    if (where[0] != '\0') {
        print_message("%s\n", where);
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(pages_move_as_in_the_model, say_where)};

    trace_count = argc - 1;
    traces = argv + 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
