/* SPDX-License-Identifier: MIT */
/*
 * replay TRACE...: runs traces of stream_cache.pml through the real caches, one call after the
 * other (replay.sh makes the traces). The logs have two entries here, as in the model.
 *
 * First exactly: a call must be served, or be refused, where the model does that, each block must
 * be the one of the model, and after each call every cache must have the model's quota, use as much
 * of it, and have the model's log. The model has two counters of the five; the others get so much
 * room that they never decide.
 *
 * Then with all counters: where they have no room a cache may refuse what the model's serves, and
 * the heap does. After each call the quotas and the heap's peaks must add up to the peaks that
 * follow from the trace, what the caches and the heap counted to the current values, and no cache
 * may have used more than its quota.
 *
 * A line is "THREAD own|heap CACHE ACTION NUMBER": what happens in a call that a cache serves, or
 * that takes the heap's lock; the number is the slot, or the cache that was asked. The last line of
 * a call is "own CACHE leave 0", or "heap CACHE first 0", which names the cache that gets its quota
 * first. A cache that was busy is held during the call. Then come lines of what the caches have
 * that nobody is changing: "THREAD cache CACHE QUOTA QUOTA USED USED" and the log's end, cursor,
 * counted, floor and ceiling.
 */
#include "support/test.h"

#include "support/rig.h"

#include <stdio.h>

enum {
    STREAMS = 2,
    SLOTS = 3,
    THREADS = 2,
    BLOCK = 10 * MIB,
    COUNTERS = 3,
    MODELLED = 2 /* of these, the first ones */
};

#define PLENTY ((int64_t)1 << 40) /* room that is never used up */

static const enum tarn_stat_kind KINDS[COUNTERS] = {TARN_STAT_ALLOCATION, TARN_STAT_INACTIVE_SPLIT,
                                                    TARN_STAT_INACTIVE_SPLIT_BYTES};
static const int QUOTA_OF[COUNTERS] = {0, 3, 4}; /* their places in a quota */

struct line {
    unsigned thread;
    char by[8];
    unsigned stream;
    char action[9];
    unsigned number;
};

/* What the lines say about a call. */
struct call {
    bool by_cache;
    unsigned stream;
    char action[9]; /* empty: none */
    unsigned number;
    unsigned busy; /* caches, a bit each */
    bool opens;    /* the stream's cache */
    bool closes;   /* all */
    bool bare;     /* the allocation gets no entry */
};

struct scene {
    struct rig rig;
    struct tn_heap *heap;
    struct tn_fast *fast;
    struct tn_stream_caches *caches;
    tarn_ptr base[STREAMS];
    unsigned out[STREAMS]; /* allocated slots */
    int64_t top[COUNTERS];
    struct call calls[THREADS]; /* that are being read */
    bool exact;
};

/* What calls do, and how often in all traces. */
static const char *const ACTIONS[] = {"redo",  "alloc", "undo",     "free",    "miss",
                                      "flush", "held",  "no_alloc", "no_free", "full",
                                      "read",  "reset", "close"};

enum {
    ACTION_COUNT = sizeof ACTIONS / sizeof ACTIONS[0]
};

static unsigned steps[2][ACTION_COUNT]; /* with the heap's lock, in a cache */

/* Of these, what caches and the heap served. */
static unsigned by_cache;
static unsigned by_heap;

static struct tn_stream_cache *cache_of(const struct scene *scene, unsigned stream)
{
    return tn_stream_caches_find(scene->caches, (tarn_stream)stream + 1);
}

static tarn_ptr slot_address(const struct scene *scene, const struct call *call)
{
    return scene->base[call->stream] + call->number * (uint64_t)BLOCK;
}

/* ---- what must be ---- */

static int64_t free_parts(unsigned out)
{
    int64_t parts = 0;

    for (unsigned i = 0; i < SLOTS; i++) {
        const bool begins = i == 0 || (out >> (i - 1) & 1U) != 0;

        parts += begins && (out >> i & 1U) == 0;
    }
    return out == 0 ? 0 : parts;
}

static int64_t now_of(const struct scene *scene, int counter)
{
    int64_t now = 0;

    for (unsigned i = 0; i < STREAMS; i++) {
        const unsigned out = scene->out[i];
        const int64_t count = (out & 1U) + (out >> 1 & 1U) + (out >> 2 & 1U);
        const int64_t of[COUNTERS] = {count, free_parts(out),
                                      out == 0 ? 0 : (SLOTS - count) * (int64_t)BLOCK};

        now += of[counter];
    }
    return now;
}

/* ---- what is ---- */

static int64_t cache_used(struct tn_stream_cache *cache, int place)
{
    struct tn_quota used = tn_quota_used(&cache->shard.counters);
    const struct tn_undo_log *log = &cache->log;

    for (uint32_t i = 0; i < log->end; i++) {
        const struct tn_quota_change change =
            tn_quota_entry(&log->entries[i], (i < log->cursor) - (i < log->counted));

        tn_quota_add(&used, &change);
    }
    return used.of[place][TARN_STAT_ALL];
}

/* Without disturbing the caches. */
static void read_open(struct scene *scene, int counter, int64_t *now_out, int64_t *peak_out)
{
    struct tn_counter *list[TN_QUOTA_COUNTERS];
    const int place = QUOTA_OF[counter];

    tn_quota_list(&scene->heap->shard.counters, list);
    *now_out = tn_counter_all(list[place]);
    *peak_out = list[place]->peak[TARN_STAT_ALL];
    for (unsigned i = 0; i < STREAMS; i++) {
        struct tn_stream_cache *cache = cache_of(scene, i);

        if (cache) {
            const int64_t used = cache_used(cache, place);

            assert_true(used <= cache->quota.of[place][TARN_STAT_ALL]);
            *now_out += used;
            *peak_out += cache->quota.of[place][TARN_STAT_ALL];
        }
    }
}

static void compare(struct scene *scene)
{
    const bool open = atomic_load(&scene->caches->open);
    const int counters = scene->exact ? MODELLED : COUNTERS;

    for (int i = 0; i < counters; i++) {
        const int64_t expected = now_of(scene, i);
        int64_t now = 0;
        int64_t peak = 0;

        scene->top[i] = expected > scene->top[i] ? expected : scene->top[i];
        if (open) {
            read_open(scene, i, &now, &peak);
        } else {
            const struct tarn_stats stats = rig_stats(&scene->rig);

            now = stats.by_pool[KINDS[i]][TARN_STAT_ALL].current;
            peak = stats.by_pool[KINDS[i]][TARN_STAT_ALL].peak;
        }
        assert_int_equal(now, expected);
        assert_int_equal(peak, scene->top[i]);
    }
}

/* A cache that nobody is changing in the model. */
static void compare_cache(const struct scene *scene, unsigned stream, const int *model)
{
    struct tn_stream_cache *cache = cache_of(scene, stream);

    assert_non_null(cache);
    const struct tn_undo_log *log = &cache->log;

    for (int i = 0; i < MODELLED; i++) {
        assert_int_equal(cache->quota.of[QUOTA_OF[i]][TARN_STAT_ALL], model[i]);
        assert_int_equal(cache_used(cache, QUOTA_OF[i]), model[MODELLED + i]);
    }
    const uint32_t places[] = {log->end, log->cursor, log->counted, log->floor, log->ceiling};

    for (int i = 0; i < 5; i++) {
        assert_int_equal(places[i], model[2 * MODELLED + i]);
    }
}

/* ---- calls ---- */

static bool is(const struct call *call, const char *action)
{
    return strcmp(call->action, action) == 0;
}

static void hold_busy(struct scene *scene, const struct call *call, bool hold)
{
    for (unsigned i = 0; i < STREAMS; i++) {
        struct tn_stream_cache *cache = cache_of(scene, i);

        if (cache && i != call->stream && (call->busy >> i & 1U) != 0) {
            if (hold) {
                tn_biased_lock_acquire_another(&cache->lock);
            } else {
                tn_biased_lock_leave(&cache->lock);
            }
        }
    }
}

/* The call gets an entry or none, and the log never asks whether entries pay. */
static void log_prepare(struct tn_undo_log *log, const struct call *call)
{
    log->backoff.left = call->bare;
    log->added = 0;
}

static void logs_prepare(struct scene *scene, const struct call *call)
{
    log_prepare(&scene->fast->log, call);
    for (uint32_t i = 0; i < scene->caches->count; i++) {
        log_prepare(&scene->caches->list[i]->log, call);
    }
}

/* The request of the entry that can be redone, or another one for as large a block. */
static uint64_t request_size(const struct scene *scene, const struct call *call)
{
    const struct tn_stream_cache *cache = cache_of(scene, call->stream);
    const struct tn_undo_log *log = cache ? &cache->log : &scene->fast->log;

    if (log->cursor == log->end) {
        return BLOCK;
    }
    const uint64_t requested = log->entries[log->cursor].requested;

    return is(call, "redo") ? requested : 2 * (uint64_t)BLOCK - 1 - requested;
}

static tarn_stream stream_of(const struct call *call)
{
    return (tarn_stream)call->stream + 1;
}

/* ---- calls that a cache serves ---- */

static bool cache_take(struct scene *scene, const struct call *call, uint64_t size,
                       tarn_ptr *ptr_out)
{
    tn_stream_caches_remember(scene->caches, stream_of(call));
    hold_busy(scene, call, true);
    const bool served =
        tn_stream_cache_alloc(scene->caches, scene->heap, size, stream_of(call), ptr_out);

    hold_busy(scene, call, false);
    return served;
}

static bool cache_give(struct scene *scene, const struct call *call, tarn_ptr ptr)
{
    tn_stream_caches_remember(scene->caches, stream_of(call));
    hold_busy(scene, call, true);
    const bool served = tn_stream_cache_free(scene->caches, scene->heap, ptr);

    hold_busy(scene, call, false);
    return served;
}

static void take(struct scene *scene, const struct call *call)
{
    const uint64_t size = request_size(scene, call);
    tarn_ptr ptr = 0;
    const bool served = call->by_cache && cache_take(scene, call, size, &ptr);

    assert_true(served || !call->by_cache || !scene->exact);
    if (!served) {
        ptr = rig_alloc(&scene->rig, size, stream_of(call));
    }
    assert_int_equal(ptr, slot_address(scene, call));
    scene->out[call->stream] |= 1U << call->number;
    by_cache += served;
    by_heap += !served;
}

static void give(struct scene *scene, const struct call *call)
{
    const tarn_ptr ptr = slot_address(scene, call);
    const bool served = call->by_cache && cache_give(scene, call, ptr);

    assert_true(served || !call->by_cache || !scene->exact);
    if (!served) {
        rig_free(&scene->rig, ptr);
    }
    scene->out[call->stream] &= ~(1U << call->number);
    by_cache += served;
    by_heap += !served;
}

/* A call that the cache does not serve, and that has not gone to the heap yet. */
static void refuse(struct scene *scene, const struct call *call)
{
    tarn_ptr ptr = 0;

    if (is(call, "miss")) {
        assert_false(cache_take(scene, call, 4 * (uint64_t)BLOCK, &ptr));
    } else if (is(call, "flush")) {
        assert_false(cache_give(scene, call, 1));
    } else if (scene->exact && is(call, "no_free")) {
        assert_false(cache_give(scene, call, slot_address(scene, call)));
    } else if (scene->exact) {
        assert_true(is(call, "held") || is(call, "no_alloc"));
        assert_false(cache_take(scene, call, request_size(scene, call), &ptr));
    }
}

static void finish_own(struct scene *scene, const struct call *call)
{
    logs_prepare(scene, call);
    if (is(call, "redo") || is(call, "alloc")) {
        take(scene, call);
    } else if (is(call, "undo") || is(call, "free")) {
        give(scene, call);
    } else if (call->action[0] != '\0') { /* else the cache is closed */
        refuse(scene, call);
    }
}

/* ---- calls with the heap's lock ---- */

/* What the model does not count. */
static void make_room(struct scene *scene)
{
    struct tn_counter *list[TN_QUOTA_COUNTERS];

    tn_quota_list(&scene->heap->shard.counters, list);
    for (int i = 0; i < TN_QUOTA_COUNTERS; i++) {
        for (int stat = 0; stat < TARN_STAT_POOLS; stat++) {
            const bool is_modelled = i == QUOTA_OF[0] || i == QUOTA_OF[1];

            list[i]->peak[stat] += is_modelled ? 0 : PLENTY;
        }
    }
}

static void reset(struct scene *scene, unsigned first)
{
    tarn_allocator_reset_peak_stats(scene->rig.allocator);
    memset(scene->top, 0, sizeof scene->top);
    if (scene->exact) {
        make_room(scene);
        scene->caches->first = first;
        (void)rig_stats(&scene->rig); /* divides it */
    }
}

/* No cache is tried: it looks as if the thread used one of another heap last. */
static void finish_heap(struct scene *scene, const struct call *call, unsigned first)
{
    const uint64_t id = scene->caches->id;
    static uint64_t foreign_id = UINT64_MAX;
    const bool allocates = is(call, "alloc") || is(call, "redo");
    const bool frees = is(call, "free");

    logs_prepare(scene, call);
    scene->caches->id = --foreign_id;
    scene->caches->first = first;
    scene->caches->calls_left = call->opens;
    if (call->closes && (allocates || frees)) { /* they do not pay */
        scene->caches->slow_calls = UINT32_MAX;
    }
    if (allocates) {
        take(scene, call);
    } else if (frees) {
        give(scene, call);
    } else if (is(call, "reset")) {
        reset(scene, first);
    } else if (call->closes) {
        rig_limit(&scene->rig, 1.0);
    } else {
        assert_true(is(call, "read") || is(call, "full"));
        (void)rig_stats(&scene->rig);
    }
    assert_true(!call->opens || cache_of(scene, call->stream));
    assert_true(!call->closes || !atomic_load(&scene->caches->open));
    scene->caches->id = id;
    scene->caches->calls_left = 0;
    scene->caches->slow_calls = 0;
}

/* ---- lines ---- */

static void note(struct call *call, const struct line *line)
{
    if (strcmp(line->action, "busy") == 0) {
        call->busy |= 1U << line->number;
    } else if (strcmp(line->action, "bare") == 0) {
        call->bare = true;
    } else if (strcmp(line->action, "open") == 0) {
        call->opens = true;
        call->stream = line->stream;
    } else if (strcmp(line->action, "close") == 0) {
        call->closes = true;
    } else if (strcmp(line->action, "ask") != 0) { /* which caches do by themselves */
        assert_int_equal(call->action[0], '\0');
        memcpy(call->action, line->action, sizeof call->action);
        call->by_cache = strcmp(line->by, "own") == 0;
        call->stream = line->stream;
        call->number = line->number;
    }
}

static void count(const struct line *line)
{
    for (unsigned i = 0; i < ACTION_COUNT; i++) {
        steps[strcmp(line->by, "own") == 0][i] += strcmp(line->action, ACTIONS[i]) == 0;
    }
}

static void step(struct scene *scene, const struct line *line)
{
    struct call *call = &scene->calls[line->thread];
    const bool leaves = strcmp(line->action, "leave") == 0;

    assert_true(line->thread < THREADS && line->stream < STREAMS);
    count(line);
    if (!leaves && strcmp(line->action, "first") != 0) {
        note(call, line);
        return;
    }
    if (leaves) {
        finish_own(scene, call);
    } else {
        finish_heap(scene, call, line->stream);
    }
    *call = (struct call){0};
    compare(scene);
}

static void read_line(struct scene *scene, const char *text)
{
    struct line line = {0};
    unsigned stream = 0;
    int of[9];

    /* NOLINTBEGIN(cert-err34-c): written by the model, and checked */
    if (sscanf(text, "%*u cache %u %d %d %d %d %d %d %d %d %d", &stream, &of[0], &of[1], &of[2],
               &of[3], &of[4], &of[5], &of[6], &of[7], &of[8]) == 10) {
        if (scene->exact) {
            compare_cache(scene, stream, of);
        }
        return;
    }
    assert_int_equal(sscanf(text, "%u %7s %u %8s %u", &line.thread, line.by, &line.stream,
                            line.action, &line.number),
                     5);
    /* NOLINTEND(cert-err34-c) */
    step(scene, &line);
}

/* ---- traces ---- */

/* Both caches exist: the model opens one that does not, too, but then its log is a new one. */
static void caches_create(struct scene *scene)
{
    for (unsigned i = 0; i < STREAMS; i++) {
        scene->caches->calls_left = 1;
        rig_free(&scene->rig, rig_alloc(&scene->rig, BLOCK, (tarn_stream)i + 1));
    }
    rig_limit(&scene->rig, 1.0);
}

static void scene_open(struct scene *scene, bool exact)
{
    *scene = (struct scene){.exact = exact};
    rig_open(&scene->rig, GIB, "");
    scene->heap = &rig_engine(scene->rig.allocator)->heap;
    scene->fast = &rig_engine(scene->rig.allocator)->fast;
    scene->caches = &scene->fast->caches;
    for (unsigned i = 0; i < STREAMS; i++) {
        scene->base[i] = rig_alloc(&scene->rig, SLOTS * (uint64_t)BLOCK, (tarn_stream)i + 1);
        rig_free(&scene->rig, scene->base[i]);
    }
    caches_create(scene);
    reset(scene, 0);
}

static void scene_close(struct scene *scene)
{
    for (unsigned i = 0; i < STREAMS; i++) {
        for (unsigned k = 0; k < SLOTS; k++) {
            if ((scene->out[i] >> k & 1U) != 0) {
                rig_free(&scene->rig, scene->base[i] + k * (uint64_t)BLOCK);
            }
        }
    }
    rig_close(&scene->rig);
}

static int trace_count;
static char **traces;
static char place[64]; /* the line that is being replayed; empty: none */

static void replay(bool exact)
{
    by_cache = 0;
    by_heap = 0;
    for (int i = 0; i < trace_count; i++) {
        struct scene scene;
        char text[128];
        FILE *file = fopen(traces[i], "r");

        assert_non_null(file);
        scene_open(&scene, exact);
        for (unsigned number = 1; fgets(text, sizeof text, file); number++) {
            (void)snprintf(place, sizeof place, "%s:%u: %.24s", traces[i], number, text);
            read_line(&scene, text);
        }
        place[0] = '\0';
        scene_close(&scene);
        (void)fclose(file);
    }
}

static void the_caches_do_what_the_model_does(void **state)
{
    (void)state;
    replay(true);
    for (unsigned i = 0; i < ACTION_COUNT; i++) {
        print_message("%s: %u in caches, %u in the heap\n", ACTIONS[i], steps[1][i], steps[0][i]);
        assert_true(steps[0][i] + steps[1][i] > 5);
    }
    assert_true(by_cache > 1000);
    assert_true(by_heap > 1000);
}

static void all_counters_are_right(void **state)
{
    (void)state;
    replay(false);
    print_message("%u calls served by caches, %u by the heap\n", by_cache, by_heap);
    assert_true(by_cache > 1000);
    assert_true(by_heap > 1000);
}

static int say_where(void **state)
{
    (void)state;
    if (place[0] != '\0') {
        print_message("%s\n", place);
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_caches_do_what_the_model_does, say_where),
        cmocka_unit_test_teardown(all_counters_are_right, say_where)};

    trace_count = argc - 1;
    traces = argv + 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
