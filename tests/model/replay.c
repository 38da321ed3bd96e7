/* SPDX-License-Identifier: MIT */
/*
 * replay TRACE...: runs traces of stream_cache.pml through the real caches, one step after the
 * other (replay.sh makes the traces). After each step the quotas and the heap's peaks must add up
 * to the peaks that follow from the trace, what the caches and the heap counted to the current
 * values, and no cache may have used more than its quota; each block must be the one of the model.
 *
 * A line is "THREAD own|heap CACHE ACTION NUMBER": the call took effect in the cache or with the
 * heap's lock; the number is the slot, or the cache that was asked. A cache that refused because it
 * was busy is held during the thread's next call.
 */
#include "support/test.h"

#include "support/rig.h"

#include <stdio.h>

enum {
    STREAMS = 2,
    SLOTS = 3,
    THREADS = 2,
    BLOCK = 10 * MIB,
    COUNTERS = 3
};

static const enum tarn_stat_kind KINDS[COUNTERS] = {TARN_STAT_ALLOCATION, TARN_STAT_INACTIVE_SPLIT,
                                                    TARN_STAT_INACTIVE_SPLIT_BYTES};
static const int QUOTA_OF[COUNTERS] = {0, 3, 4}; /* their places in a quota */

struct scene {
    struct rig rig;
    struct tn_heap *heap;
    struct tn_stream_caches *caches;
    tarn_ptr base[STREAMS];
    unsigned out[STREAMS]; /* allocated slots */
    int64_t top[COUNTERS];
    unsigned busy[THREADS]; /* caches that refused this thread */
    unsigned by_cache;      /* calls that the model and the program both served there */
    unsigned by_heap;
};

struct line {
    unsigned thread;
    char by[8];
    unsigned stream;
    char action[8];
    unsigned number;
};

static struct tn_stream_cache *cache_of(const struct scene *scene, unsigned stream)
{
    return tn_stream_caches_find(scene->caches, (tarn_stream)stream + 1);
}

static tarn_ptr slot_address(const struct scene *scene, const struct line *line)
{
    return scene->base[line->stream] + line->number * (uint64_t)BLOCK;
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

    for (int i = 0; i < COUNTERS; i++) {
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

/* ---- steps ---- */

static void hold_busy(struct scene *scene, const struct line *line, bool hold)
{
    for (unsigned i = 0; i < STREAMS; i++) {
        struct tn_stream_cache *cache = cache_of(scene, i);

        if (cache && i != line->stream && (scene->busy[line->thread] >> i & 1U) != 0) {
            if (hold) {
                tn_biased_lock_acquire_another(&cache->lock);
            } else {
                tn_biased_lock_leave(&cache->lock);
            }
        }
    }
}

/* The request of the entry that can be redone, or another one for as large a block. */
static uint64_t request_size(const struct scene *scene, const struct line *line)
{
    const struct tn_stream_cache *cache = cache_of(scene, line->stream);
    const struct tn_undo_log *log = cache ? &cache->log : NULL;
    const bool redo = strcmp(line->action, "redo") == 0;

    if (!log || log->cursor == log->end) {
        return BLOCK;
    }
    const uint64_t requested = log->entries[log->cursor].requested;

    return redo ? requested : 2 * (uint64_t)BLOCK - 1 - requested;
}

static void take(struct scene *scene, const struct line *line, bool try_cache)
{
    const uint64_t size = try_cache ? request_size(scene, line) : BLOCK;
    const tarn_stream stream = (tarn_stream)line->stream + 1;
    tarn_ptr ptr = 0;

    tn_stream_caches_remember(scene->caches, try_cache ? stream : STREAMS - line->stream);
    hold_busy(scene, line, true);
    const bool served =
        try_cache && tn_stream_cache_alloc(scene->caches, scene->heap, size, stream, &ptr);

    hold_busy(scene, line, false);
    if (!served) {
        ptr = rig_alloc(&scene->rig, size, stream);
    }
    assert_int_equal(ptr, slot_address(scene, line));
    scene->out[line->stream] |= 1U << line->number;
    scene->by_cache += served;
    scene->by_heap += !served;
}

static void give(struct scene *scene, const struct line *line, bool try_cache)
{
    const tarn_stream stream = (tarn_stream)line->stream + 1;
    const tarn_ptr ptr = slot_address(scene, line);

    tn_stream_caches_remember(scene->caches, try_cache ? stream : STREAMS - line->stream);
    hold_busy(scene, line, true);
    const bool served = try_cache && cache_of(scene, line->stream) &&
                        tn_stream_cache_free(scene->caches, scene->heap, ptr);

    hold_busy(scene, line, false);
    if (!served) {
        rig_free(&scene->rig, ptr);
    }
    scene->out[line->stream] &= ~(1U << line->number);
    scene->by_cache += served;
    scene->by_heap += !served;
}

/* A call that finds nothing in the cache, and has not gone to the heap yet. */
static void miss(struct scene *scene, const struct line *line)
{
    const tarn_stream stream = (tarn_stream)line->stream + 1;
    tarn_ptr ptr = 0;

    tn_stream_caches_remember(scene->caches, stream);
    if (!cache_of(scene, line->stream)) {
        return;
    }
    if (strcmp(line->action, "miss") == 0) {
        assert_false(
            tn_stream_cache_alloc(scene->caches, scene->heap, 4 * (uint64_t)BLOCK, stream, &ptr));
    } else {
        assert_false(tn_stream_cache_free(scene->caches, scene->heap, 1));
    }
}

static void step_heap(struct scene *scene, const struct line *line)
{
    if (strcmp(line->action, "open") == 0) {
        scene->caches->calls_left = 1;
        return;
    }
    if (strcmp(line->action, "alloc") == 0) {
        take(scene, line, false);
    } else if (strcmp(line->action, "free") == 0) {
        give(scene, line, false);
    } else if (strcmp(line->action, "read") == 0) {
        (void)rig_stats(&scene->rig);
    } else if (strcmp(line->action, "reset") == 0) {
        tarn_allocator_reset_peak_stats(scene->rig.allocator);
        memset(scene->top, 0, sizeof scene->top);
    } else {
        assert_string_equal(line->action, "close");
        rig_limit(&scene->rig, 1.0);
        assert_false(atomic_load(&scene->caches->open));
    }
    scene->caches->calls_left = 0;
}

static void step(struct scene *scene, const struct line *line)
{
    if (strcmp(line->action, "busy") == 0) {
        scene->busy[line->thread] |= 1U << line->number;
        return;
    }
    if (strcmp(line->action, "ask") == 0) {
        return; /* by itself */
    }
    if (strcmp(line->by, "heap") == 0) {
        step_heap(scene, line);
    } else if (strcmp(line->action, "redo") == 0 || strcmp(line->action, "alloc") == 0) {
        take(scene, line, true);
    } else if (strcmp(line->action, "undo") == 0 || strcmp(line->action, "free") == 0) {
        give(scene, line, true);
    } else {
        miss(scene, line);
    }
    scene->busy[line->thread] = 0;
    compare(scene);
}

static void scene_open(struct scene *scene)
{
    *scene = (struct scene){0};
    rig_open(&scene->rig, GIB, "");
    scene->heap = &rig_engine(scene->rig.allocator)->heap;
    scene->caches = &rig_engine(scene->rig.allocator)->fast.caches;
    for (unsigned i = 0; i < STREAMS; i++) {
        scene->base[i] = rig_alloc(&scene->rig, SLOTS * (uint64_t)BLOCK, (tarn_stream)i + 1);
        rig_free(&scene->rig, scene->base[i]);
    }
    tarn_allocator_reset_peak_stats(scene->rig.allocator);
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

static void the_caches_do_what_the_model_does(void **state)
{
    unsigned by_cache = 0;
    unsigned by_heap = 0;

    (void)state;
    for (int i = 0; i < trace_count; i++) {
        struct scene scene;
        struct line line;
        FILE *file = fopen(traces[i], "r");

        assert_non_null(file);
        scene_open(&scene);
        /* NOLINTNEXTLINE(cert-err34-c): written by the model, and checked below */
        while (fscanf(file, "%u %7s %u %7s %u", &line.thread, line.by, &line.stream, line.action,
                      &line.number) == 5) {
            assert_true(line.thread < THREADS && line.stream < STREAMS);
            step(&scene, &line);
        }
        by_cache += scene.by_cache;
        by_heap += scene.by_heap;
        scene_close(&scene);
        (void)fclose(file);
    }
    print_message("%d traces: %u calls served by caches, %u by the heap\n", trace_count, by_cache,
                  by_heap);
    assert_true(by_cache > 100);
    assert_true(by_heap > 100);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_caches_do_what_the_model_does)};

    trace_count = argc - 1;
    traces = argv + 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
