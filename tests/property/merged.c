/* SPDX-License-Identifier: MIT */
#include "property/merged.h"

#include "alloc/engine/allocator.h"
#include "alloc/engine/engine.h"
#include "base/attr.h"
#include "reference/model.h"
#include "support/draw.h"
#include "support/view.h"
#include "tarn/sim.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)

enum {
    OWN = 40,   /* blocks that a thread holds at most */
    SHARED = 32 /* blocks on offer to everybody */
};

/* A block that was allocated. */
struct handle {
    tarn_ptr real; /* 0 = none */
    tarn_ptr reference;
    tarn_stream stream;
};

/* One call. The handle lives until its free is repeated. */
struct call {
    uint64_t number; /* in the history */
    struct handle *handle;
    uint64_t size; /* 0: a free */
};

struct worker {
    struct merged *merged;
    unsigned index;
    uint64_t random;
    struct handle *own[OWN];
    struct call *calls; /* of this round */
    size_t call_count;
};

struct merged {
    const struct merged_settings *settings;
    struct tarn_device *device[2]; /* the allocator's, the reference's */
    struct tarn_allocator *real;
    struct ref_model *reference;
    pthread_mutex_t stream_lock[MERGED_THREADS_MAX];
    _Atomic uint64_t next_number;
    pthread_mutex_t offer_lock;
    struct handle *offer[SHARED];
    struct worker worker[MERGED_THREADS_MAX];
    char *text;
};

static bool differ(struct merged *merged, const char *format, ...) TN_PRINTF(2, 3);

static bool differ(struct merged *merged, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(merged->text, MERGED_TEXT_MAX, format, arguments);
    va_end(arguments);
    return false;
}

static void must(bool condition, const char *what)
{
    if (!condition) {
        (void)fprintf(stderr, "%s failed\n", what);
        abort();
    }
}

struct tarn_config merged_config(uint64_t number)
{
    struct tarn_config config;

    tarn_config_init(&config);
    config.expandable_segments = number % 3 == 1;
    if (number / 3 % 2) {
        config.max_split_size = 20 * MIB + 1;
    }
    if (number / 6 % 2) {
        for (int i = 0; i < TARN_ROUNDUP_INTERVALS; i++) {
            config.roundup_power2_divisions[i] = 1u << (i % 4);
        }
    }
    config.rules = number / 12 % 2 ? TARN_RULES_2_14 : TARN_RULES_2_11;
    return config;
}

/* ---- the threads ---- */

static tarn_stream stream_of(unsigned index)
{
    return 0x100 * (tarn_stream)index;
}

/* Mostly small, as in programs; repeated sizes are what undo logs live on. */
static uint64_t draw_size(uint64_t *random)
{
    static const uint64_t usual[] = {512, 4096, 65536, MIB, 2 * MIB};
    const uint64_t what = draw(random);

    if (what % 4 == 0) {
        return usual[(what >> 8) % (sizeof usual / sizeof usual[0])];
    }
    return 1 + (what >> 16) % (what % 4 == 1 ? 24 * MIB : MIB);
}

static void call_add(struct worker *worker, struct handle *handle, uint64_t size)
{
    worker->calls[worker->call_count++] = (struct call){
        .number = atomic_fetch_add(&worker->merged->next_number, 1),
        .handle = handle,
        .size = size,
    };
}

static void do_alloc(struct worker *worker, struct handle **slot)
{
    struct merged *merged = worker->merged;
    const uint64_t what = draw(&worker->random);
    const unsigned at =
        what % 16 ? worker->index : (unsigned)(what >> 8) % merged->settings->threads;
    const uint64_t size = draw_size(&worker->random);
    struct handle *handle = calloc(1, sizeof *handle);

    must(handle != NULL, "calloc");
    handle->stream = stream_of(at);
    (void)pthread_mutex_lock(&merged->stream_lock[at]);
    must(tarn_allocator_alloc(merged->real, size, handle->stream, &handle->real, NULL) == TARN_OK,
         "tarn_allocator_alloc");
    call_add(worker, handle, size);
    (void)pthread_mutex_unlock(&merged->stream_lock[at]);
    *slot = handle;
}

static void do_free(struct worker *worker, struct handle **slot)
{
    struct merged *merged = worker->merged;
    const unsigned at = (unsigned)((*slot)->stream / 0x100);

    (void)pthread_mutex_lock(&merged->stream_lock[at]);
    must(tarn_allocator_free(merged->real, (*slot)->real, NULL) == TARN_OK, "tarn_allocator_free");
    call_add(worker, *slot, 0);
    (void)pthread_mutex_unlock(&merged->stream_lock[at]);
    *slot = NULL;
}

static void do_exchange(struct worker *worker, struct handle **slot)
{
    struct merged *merged = worker->merged;
    struct handle **offer = &merged->offer[draw(&worker->random) % SHARED];
    struct handle *taken;

    (void)pthread_mutex_lock(&merged->offer_lock);
    taken = *offer;
    *offer = *slot;
    (void)pthread_mutex_unlock(&merged->offer_lock);
    *slot = taken;
}

static void *work(void *context)
{
    struct worker *worker = context;

    while (worker->call_count < worker->merged->settings->calls) {
        const uint64_t what = draw(&worker->random);
        struct handle **slot = &worker->own[(what >> 8) % OWN];

        if (what % 32 == 0) {
            do_exchange(worker, slot);
        } else if (*slot) {
            do_free(worker, slot);
        } else {
            do_alloc(worker, slot);
        }
    }
    return NULL;
}

/* ---- the history ---- */

static int by_number(const void *a, const void *b)
{
    const struct call *x = a;
    const struct call *y = b;

    return (x->number > y->number) - (x->number < y->number);
}

/* The calls of all threads in this round, in order. Free the result. */
static struct call *history_merge(const struct merged *merged, size_t *count_out)
{
    struct call *all;
    size_t count = 0;

    for (unsigned i = 0; i < merged->settings->threads; i++) {
        count += merged->worker[i].call_count;
    }
    all = malloc((count + 1) * sizeof *all);
    must(all != NULL, "malloc");
    *count_out = 0;
    for (unsigned i = 0; i < merged->settings->threads; i++) {
        memcpy(all + *count_out, merged->worker[i].calls,
               merged->worker[i].call_count * sizeof *all);
        *count_out += merged->worker[i].call_count;
    }
    qsort(all, count, sizeof *all, by_number);
    return all;
}

static void history_repeat(struct merged *merged)
{
    size_t count;
    struct call *calls = history_merge(merged, &count);

    for (size_t i = 0; i < count; i++) {
        struct handle *handle = calls[i].handle;

        if (calls[i].size > 0) {
            must(ref_alloc(merged->reference, calls[i].size, handle->stream, &handle->reference) ==
                     TARN_OK,
                 "ref_alloc");
        } else {
            must(ref_free(merged->reference, handle->reference) == TARN_OK, "ref_free");
            free(handle);
        }
    }
    free(calls);
}

/* ---- comparing ---- */

/* A segment of a view with its blocks. */
struct part {
    const struct view_item *items;
    size_t count;
};

static int by_stream_and_pool(const void *a, const void *b)
{
    const struct tarn_segment_info *x = &((const struct part *)a)->items->segment;
    const struct tarn_segment_info *y = &((const struct part *)b)->items->segment;

    if (x->stream != y->stream) {
        return x->stream > y->stream ? 1 : -1;
    }
    if (x->is_large != y->is_large) {
        return x->is_large ? 1 : -1;
    }
    return (x->address > y->address) - (x->address < y->address);
}

/* The segments of a view by stream, pool and address. Free the result. */
static struct part *parts_of(const struct view *view, size_t *count_out)
{
    struct part *parts = calloc(view->count + 1, sizeof *parts);
    size_t count = 0;

    must(parts != NULL, "calloc");
    for (size_t i = 0; i < view->count; i++) {
        if (!view->items[i].is_block) {
            parts[count++].items = &view->items[i];
        }
        parts[count - 1].count++;
    }
    qsort(parts, count, sizeof *parts, by_stream_and_pool);
    *count_out = count;
    return parts;
}

static bool same_part(struct merged *merged, const struct part *a, const struct part *b)
{
    const struct tarn_segment_info *real = &a->items->segment;
    const struct tarn_segment_info *reference = &b->items->segment;

    if (real->stream != reference->stream || real->is_large != reference->is_large ||
        real->total_size != reference->total_size || a->count != b->count) {
        return differ(merged,
                      "segment of stream %#llx: allocator %llu bytes in %zu blocks, reference "
                      "%llu in %zu of stream %#llx",
                      (unsigned long long)real->stream, (unsigned long long)real->total_size,
                      a->count - 1, (unsigned long long)reference->total_size, b->count - 1,
                      (unsigned long long)reference->stream);
    }
    for (size_t i = 1; i < a->count; i++) {
        const struct tarn_block_info *x = &a->items[i].block;
        const struct tarn_block_info *y = &b->items[i].block;

        if (x->address - real->address != y->address - reference->address || x->size != y->size ||
            x->requested_size != y->requested_size || x->allocated != y->allocated ||
            x->active != y->active) {
            return differ(merged,
                          "block %zu in a segment of stream %#llx: allocator %llu bytes (%llu "
                          "requested, %s) at %llu, reference %llu (%llu, %s) at %llu",
                          i, (unsigned long long)real->stream, (unsigned long long)x->size,
                          (unsigned long long)x->requested_size, x->allocated ? "live" : "free",
                          (unsigned long long)(x->address - real->address),
                          (unsigned long long)y->size, (unsigned long long)y->requested_size,
                          y->allocated ? "live" : "free",
                          (unsigned long long)(y->address - reference->address));
        }
    }
    return true;
}

static bool same_segments(struct merged *merged)
{
    struct view views[2] = {{0}, {0}};
    const struct tarn_walker walkers[2] = {view_walker(&views[0]), view_walker(&views[1])};
    size_t counts[2];

    must(tarn_allocator_walk(merged->real, &walkers[0]) == TARN_OK, "tarn_allocator_walk");
    ref_walk(merged->reference, &walkers[1]);
    struct part *real = parts_of(&views[0], &counts[0]);
    struct part *reference = parts_of(&views[1], &counts[1]);
    bool same = counts[0] == counts[1] ||
                differ(merged, "allocator has %zu segments, reference %zu", counts[0], counts[1]);

    for (size_t i = 0; same && i < counts[0]; i++) {
        same = same_part(merged, &real[i], &reference[i]);
    }
    free(real);
    free(reference);
    view_fini(&views[0]);
    view_fini(&views[1]);
    return same;
}

/* What every order of the calls gives, and bounds of a peak. */
static bool same_stats(struct merged *merged)
{
    struct tarn_stats a = {.struct_size = sizeof a};
    struct tarn_stats b = {.struct_size = sizeof b};

    tarn_allocator_get_stats(merged->real, &a);
    ref_get_stats(merged->reference, &b);
    for (unsigned kind = 0; kind < TARN_STAT_KINDS; kind++) {
        for (unsigned pool = 0; pool < TARN_STAT_POOLS; pool++) {
            const struct tarn_stat *x = &a.by_pool[kind][pool];
            const struct tarn_stat *y = &b.by_pool[kind][pool];

            if (x->current != y->current || x->allocated != y->allocated || x->freed != y->freed ||
                x->peak < x->current || x->peak > x->allocated) {
                return differ(merged,
                              "%s %s: allocator current %lld peak %lld allocated %lld freed %lld, "
                              "reference %lld %lld %lld %lld",
                              tarn_stat_kind_name((enum tarn_stat_kind)kind),
                              tarn_stat_pool_name((enum tarn_stat_pool)pool), (long long)x->current,
                              (long long)x->peak, (long long)x->allocated, (long long)x->freed,
                              (long long)y->current, (long long)y->peak, (long long)y->allocated,
                              (long long)y->freed);
            }
        }
    }
    return true;
}

static bool checks(struct merged *merged)
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    return tarn_allocator_check(merged->real, &findings) == 0 ||
           differ(merged, "check: %s", findings.text[0]);
}

/* ---- running ---- */

static void merged_open(struct merged *merged)
{
    const struct tarn_sim_options options = {.struct_size = sizeof options,
                                             .capacity = (uint64_t)1 << 45};
    const struct merged_settings *settings = merged->settings;

    must(tarn_sim_open(&options, &merged->device[0], NULL) == TARN_OK, "tarn_sim_open");
    must(tarn_sim_open(&options, &merged->device[1], NULL) == TARN_OK, "tarn_sim_open");
    must(tarn_allocator_create(merged->device[0], &settings->config, &merged->real, NULL) ==
             TARN_OK,
         "tarn_allocator_create");
#if TN_FAST_PATH
    tn_allocator_engine(merged->real)->fast.caches.calls_left = UINT32_MAX;
#endif
    merged->reference = ref_create(merged->device[1], &settings->config);
    (void)pthread_mutex_init(&merged->offer_lock, NULL);
    for (unsigned i = 0; i < settings->threads; i++) {
        struct worker *worker = &merged->worker[i];

        (void)pthread_mutex_init(&merged->stream_lock[i], NULL);
        worker->merged = merged;
        worker->index = i;
        worker->random = settings->seed * MERGED_THREADS_MAX + i;
        worker->calls = calloc(settings->calls + 1, sizeof *worker->calls);
        must(worker->calls != NULL, "calloc");
    }
}

static void merged_close(struct merged *merged)
{
    for (unsigned i = 0; i < merged->settings->threads; i++) {
        for (unsigned k = 0; k < OWN; k++) {
            free(merged->worker[i].own[k]);
        }
        free(merged->worker[i].calls);
        (void)pthread_mutex_destroy(&merged->stream_lock[i]);
    }
    for (unsigned k = 0; k < SHARED; k++) {
        free(merged->offer[k]);
    }
    (void)pthread_mutex_destroy(&merged->offer_lock);
    tarn_allocator_destroy(merged->real);
    ref_destroy(merged->reference);
    tarn_device_close(merged->device[0]);
    tarn_device_close(merged->device[1]);
    free(merged);
}

static void round_run(struct merged *merged)
{
    pthread_t threads[MERGED_THREADS_MAX];

    for (unsigned i = 0; i < merged->settings->threads; i++) {
        merged->worker[i].call_count = 0;
        must(pthread_create(&threads[i], NULL, work, &merged->worker[i]) == 0, "pthread_create");
    }
    for (unsigned i = 0; i < merged->settings->threads; i++) {
        (void)pthread_join(threads[i], NULL);
    }
}

bool merged_run(const struct merged_settings *settings, char text[MERGED_TEXT_MAX])
{
    struct merged *merged = calloc(1, sizeof *merged);
    bool same = true;

    must(merged && settings->threads > 0 && settings->threads <= MERGED_THREADS_MAX, "merged_run");
    merged->settings = settings;
    merged->text = text;
    merged_open(merged);
    for (uint64_t i = 0; same && i < settings->rounds; i++) {
        round_run(merged);
        history_repeat(merged);
        same = same_stats(merged) && same_segments(merged) && checks(merged);
    }
    merged_close(merged);
    return same;
}
