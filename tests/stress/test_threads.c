/* SPDX-License-Identifier: MIT */
/*
 * Several threads use one allocator at once: each allocates on a stream of its own, writes a mark
 * into every 4 KiB of what it got, and hands blocks to the others, which check the marks, record
 * their streams and free them. In between anybody flushes the cache, changes the fraction, takes
 * counters, walks, or moves the device's clock. The device is backed by host memory, so two live
 * blocks that overlap destroy each other's marks, and memory given back too early faults.
 *
 * What it shows: the number of operations is fixed, not the time. Without sanitizer it is a smoke
 * test of 8 threads x 1,500 operations; under the tsan preset any access to shared state outside
 * the lock that these calls can reach is reported, whether or not it did harm. Eight
 * configurations: plain, expandable segments, the lock dropped during device calls, the compact
 * policy, each with much and with little memory, so that running out, collecting and retrying
 * happen while others allocate. It does not prove the absence of rare interleavings, nor does it
 * touch private pools from several threads.
 */
#include "support/test.h"

#include "alloc/engine/allocator.h"
#include "alloc/engine/engine.h"
#include "support/draw.h"
#include "support/share.h"
#include "tarn/allocator.h"
#include "tarn/sim.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

enum {
    THREADS = 8,
    OPERATIONS = 1500, /* of each thread */
    OWN = 12,          /* blocks that a thread holds at most */
    SHARED = 64        /* blocks on offer to everybody */
};

struct piece {
    tarn_ptr ptr; /* 0 = none */
    uint64_t size;
    uint64_t mark;
};

struct arena {
    struct tarn_device *device;
    struct tarn_allocator *allocator;
    pthread_mutex_t lock; /* of `offer` and `broken` */
    struct piece offer[SHARED];
    const char *broken; /* what went wrong first, or NULL */
    uint64_t oom;
    uint64_t allocated;
};

struct worker {
    struct arena *arena;
    unsigned number;
    uint64_t random;
    struct piece own[OWN];
    uint64_t oom;
    uint64_t allocated;
};

static void report(struct arena *arena, const char *what)
{
    (void)pthread_mutex_lock(&arena->lock);
    if (!arena->broken) {
        arena->broken = what;
    }
    (void)pthread_mutex_unlock(&arena->lock);
}

static void expect(struct arena *arena, bool condition, const char *what)
{
    if (!condition) {
        report(arena, what);
    }
}

static tarn_stream stream_of(const struct worker *worker)
{
    return worker->number % 2 ? 0x1000 * (tarn_stream)worker->number : 0;
}

/* ---- contents ---- */

static char *memory_of(struct arena *arena, const struct piece *piece)
{
    return tarn_sim_host_memory(arena->device, piece->ptr, piece->size);
}

static void write_marks(struct arena *arena, const struct piece *piece)
{
    char *memory = memory_of(arena, piece);

    if (!memory) {
        report(arena, "a block is not backed by memory in one piece");
        return;
    }
    for (uint64_t at = 0; at + sizeof piece->mark <= piece->size; at += 4 * KIB) {
        memcpy(memory + at, &piece->mark, sizeof piece->mark);
    }
}

static void check_marks(struct arena *arena, const struct piece *piece)
{
    const char *memory = memory_of(arena, piece);

    if (!memory) {
        report(arena, "a live block lost its memory");
        return;
    }
    for (uint64_t at = 0; at + sizeof piece->mark <= piece->size; at += 4 * KIB) {
        if (memcmp(memory + at, &piece->mark, sizeof piece->mark) != 0) {
            report(arena, "somebody else wrote into a live block");
            return;
        }
    }
}

/* ---- operations ---- */

static uint64_t draw_size(uint64_t *random)
{
    const uint64_t kind = draw(random) % 16;

    if (kind < 8) {
        return 8 + draw(random) % (32 * KIB);
    }
    return kind < 14 ? 8 + draw(random) % MIB : MIB + draw(random) % (5 * MIB);
}

static void do_alloc(struct worker *worker, struct piece *piece)
{
    struct arena *arena = worker->arena;
    struct piece made = {.size = draw_size(&worker->random), .mark = draw(&worker->random)};
    const enum tarn_status st =
        tarn_allocator_alloc(arena->allocator, made.size, stream_of(worker), &made.ptr, NULL);

    if (st == TARN_ERR_OUT_OF_MEMORY) {
        worker->oom++;
        return;
    }
    expect(arena, st == TARN_OK, "an allocation failed");
    if (st == TARN_OK) {
        worker->allocated++;
        write_marks(arena, &made);
        *piece = made;
    }
}

static void do_free(struct worker *worker, struct piece *piece)
{
    struct arena *arena = worker->arena;

    check_marks(arena, piece);
    expect(arena, tarn_allocator_free(arena->allocator, piece->ptr, NULL) == TARN_OK,
           "a free failed");
    piece->ptr = 0;
}

/* Puts the piece on offer and takes what lay there. */
static void do_exchange(struct worker *worker, struct piece *piece)
{
    struct arena *arena = worker->arena;
    struct piece *offer = &arena->offer[draw(&worker->random) % SHARED];

    (void)pthread_mutex_lock(&arena->lock);
    const struct piece taken = *offer;

    *offer = *piece;
    (void)pthread_mutex_unlock(&arena->lock);
    *piece = taken;
    if (taken.ptr) {
        check_marks(arena, piece);
        expect(arena,
               tarn_allocator_record_stream(arena->allocator, taken.ptr, stream_of(worker), NULL) ==
                   TARN_OK,
               "recording a stream failed");
    }
}

static bool count_segment(void *context, const struct tarn_segment_info *segment)
{
    *(uint64_t *)context += segment->total_size;
    return true;
}

static void do_look(struct worker *worker)
{
    struct tarn_stats stats = {.struct_size = sizeof stats};
    uint64_t total = 0;
    const struct tarn_walker walker = {.context = &total, .segment = count_segment};
    struct arena *arena = worker->arena;

    tarn_allocator_get_stats(arena->allocator, &stats);
    expect(arena,
           stats.by_pool[TARN_STAT_ALLOCATED_BYTES][0].current <=
               stats.by_pool[TARN_STAT_RESERVED_BYTES][0].current,
           "more is allocated than reserved");
    expect(arena, tarn_allocator_walk(arena->allocator, &walker) == TARN_OK, "a walk failed");
}

static void do_rare(struct worker *worker)
{
    struct arena *arena = worker->arena;
    const double fraction = draw(&worker->random) % 2 ? 1.0 : 0.75;

    switch (draw(&worker->random) % 6) {
    case 0:
        expect(arena, tarn_allocator_empty_cache(arena->allocator, NULL) == TARN_OK,
               "emptying the cache failed");
        break;
    case 1:
        expect(arena,
               tarn_allocator_set_memory_fraction(arena->allocator, fraction, NULL) == TARN_OK,
               "setting the fraction failed");
        break;
    case 2:
        expect(arena, tarn_sim_enqueue_ns(arena->device, stream_of(worker), 50) == TARN_OK,
               "queueing work failed");
        break;
    case 3:
        tarn_allocator_reset_peak_stats(arena->allocator);
        break;
    case 4:
        tarn_sim_advance_ns(arena->device, 40);
        break;
    default:
        do_look(worker);
        break;
    }
}

static void *work(void *context)
{
    struct worker *worker = context;

    for (unsigned i = 0; i < OPERATIONS / (test_share() > 1 ? 2 : 1); i++) {
        struct piece *piece = &worker->own[draw(&worker->random) % OWN];
        const uint64_t what = draw(&worker->random) % 32;

        if (what == 0) {
            do_rare(worker);
        } else if (what < 9) {
            do_exchange(worker, piece);
        } else if (piece->ptr) {
            do_free(worker, piece);
        } else {
            do_alloc(worker, piece);
        }
    }
    for (unsigned i = 0; i < OWN; i++) {
        if (worker->own[i].ptr) {
            do_free(worker, &worker->own[i]);
        }
    }
    return NULL;
}

/* ---- cases ---- */

struct setting {
    bool expandable;
    bool drop_lock;
    bool compact;
    bool by_age; /* free blocks are ordered by it */
    uint64_t capacity;
};

static void arena_open(struct arena *arena, const struct setting *setting)
{
    const struct tarn_sim_options options = {
        .struct_size = sizeof options, .capacity = setting->capacity, .backed = true};
    struct tarn_config config;

    tarn_config_init(&config);
    config.expandable_segments = setting->expandable;
    config.release_lock_on_device_alloc = setting->drop_lock;
    config.policy = setting->compact ? TARN_POLICY_COMPACT : TARN_POLICY_EXACT;
    config.rules = setting->by_age ? TARN_RULES_2_14 : TARN_RULES_2_11;
    config.garbage_collection_threshold = 0.5;
    assert_int_equal(tarn_sim_open(&options, &arena->device, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_create(arena->device, &config, &arena->allocator, NULL),
                     TARN_OK);
    assert_int_equal(pthread_mutex_init(&arena->lock, NULL), 0);
}

static void arena_close(struct arena *arena)
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;
    struct tarn_stats stats = {.struct_size = sizeof stats};
    struct tarn_sim_counters counters = {.struct_size = sizeof counters};

    for (unsigned i = 0; i < SHARED; i++) {
        if (arena->offer[i].ptr) {
            check_marks(arena, &arena->offer[i]);
            assert_int_equal(tarn_allocator_free(arena->allocator, arena->offer[i].ptr, NULL),
                             TARN_OK);
        }
    }
    if (tarn_allocator_check(arena->allocator, &findings) > 0) {
        fail_msg("%s", findings.text[0]);
    }
    assert_int_equal(tarn_allocator_empty_cache(arena->allocator, NULL), TARN_OK);
    tarn_allocator_get_stats(arena->allocator, &stats);
    assert_int_equal(stats.by_pool[TARN_STAT_ALLOCATION][0].current, 0);
    assert_int_equal(stats.by_pool[TARN_STAT_ACTIVE][0].current, 0);
    assert_int_equal(stats.by_pool[TARN_STAT_RESERVED_BYTES][0].current, 0);
    assert_true(stats.by_pool[TARN_STAT_ALLOCATION][0].allocated == (int64_t)arena->allocated);
    assert_true(stats.num_ooms == (int64_t)arena->oom);
    tarn_allocator_destroy(arena->allocator);
    tarn_sim_get_counters(arena->device, &counters);
    assert_int_equal(counters.used_bytes, 0);
    assert_int_equal(counters.live_events, 0);
    tarn_device_close(arena->device);
    (void)pthread_mutex_destroy(&arena->lock);
}

static void threads_share_an_allocator(void **state)
{
    struct arena arena = {0};
    static struct worker workers[THREADS];
    pthread_t threads[THREADS];

    memset(workers, 0, sizeof workers);
    arena_open(&arena, *state);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i].arena = &arena;
        workers[i].number = i;
        workers[i].random = 1000 + i;
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        arena.oom += workers[i].oom;
        arena.allocated += workers[i].allocated;
    }
    if (arena.broken) {
        fail_msg("%s", arena.broken);
    }
    arena_close(&arena);
}

/* ---- streams of their own ---- */

enum {
    CACHE_THREADS = 4,
    CACHE_ROUNDS = 3000,
    CACHE_DEPTH = 6
};

/* What all threads of a cache run share. */
struct cache_run {
    struct tarn_allocator *allocator;
    _Atomic tarn_ptr offered; /* a block for whoever comes first to free */
    _Atomic bool broken;
};

struct cache_worker {
    struct cache_run *run;
    uint64_t number;
    uint64_t random;
    uint64_t bytes; /* allocated in all */
};

static tarn_ptr cache_alloc(struct cache_worker *worker, uint64_t size)
{
    tarn_ptr ptr = 0;

    if (tarn_allocator_alloc(worker->run->allocator, size, 0x100 * worker->number, &ptr, NULL)) {
        atomic_store(&worker->run->broken, true);
    }
    worker->bytes += size;
    return ptr;
}

static void cache_free(struct cache_worker *worker, tarn_ptr ptr)
{
    if (tarn_allocator_free(worker->run->allocator, ptr, NULL)) {
        atomic_store(&worker->run->broken, true);
    }
}

/* Allocates some, frees them in reverse order; rarely leaves one to another thread, or looks. */
static void cache_round(struct cache_worker *worker)
{
    static const uint64_t sizes[CACHE_DEPTH] = {512, 4096, 65536, 524288, 1024, 2 * MIB};
    tarn_ptr ptrs[CACHE_DEPTH];
    const uint64_t what = draw(&worker->random);
    const unsigned depth = 1 + (unsigned)(what >> 8) % CACHE_DEPTH;

    for (unsigned i = 0; i < depth; i++) {
        ptrs[i] = cache_alloc(worker, sizes[i]);
    }
    if (what % 64 == 0) {
        ptrs[0] = atomic_exchange(&worker->run->offered, ptrs[0]);
    }
    for (unsigned i = depth; i > 0; i--) {
        cache_free(worker, ptrs[i - 1]);
    }
    if (what % 256 == 1) {
        struct tarn_stats stats = {.struct_size = sizeof stats};

        tarn_allocator_get_stats(worker->run->allocator, &stats);
        const struct tarn_stat *bytes = &stats.by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL];

        if (bytes->current < 0 || bytes->peak < bytes->current ||
            bytes->allocated - bytes->freed != bytes->current) {
            atomic_store(&worker->run->broken, true);
        }
    }
}

static void *cache_work(void *context)
{
    struct cache_worker *worker = context;

    for (int i = 0; i < CACHE_ROUNDS; i++) {
        cache_round(worker);
    }
    return NULL;
}

/* Every thread has a stream; caches open as soon as there is contention. */
static void threads_have_streams_of_their_own(void **state)
{
    const struct tarn_sim_options options = {.struct_size = sizeof options, .capacity = 1024 * MIB};
    struct cache_worker workers[CACHE_THREADS];
    pthread_t threads[CACHE_THREADS];
    struct cache_run run = {.offered = 0};
    struct tarn_device *device = NULL;
    struct tarn_findings findings = TARN_FINDINGS_INIT;
    struct tarn_stats stats = {.struct_size = sizeof stats};
    struct tarn_config config;
    int64_t bytes = 0;

    tarn_config_init(&config);
    config.rules = *(const enum tarn_rules_version *)*state;
    assert_int_equal(tarn_sim_open(&options, &device, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_create(device, &config, &run.allocator, NULL), TARN_OK);
#if TN_FAST_PATH
    tn_allocator_engine(run.allocator)->fast.caches.calls_left = UINT32_MAX;
#endif
    for (uint64_t i = 0; i < CACHE_THREADS; i++) {
        workers[i] = (struct cache_worker){.run = &run, .number = i + 1, .random = i};
        assert_int_equal(pthread_create(&threads[i], NULL, cache_work, &workers[i]), 0);
    }
    for (int i = 0; i < CACHE_THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        bytes += (int64_t)workers[i].bytes;
    }
    if (run.offered) {
        cache_free(&workers[0], run.offered);
    }
    assert_false(run.broken);
    assert_int_equal(tarn_allocator_check(run.allocator, &findings), 0);
    tarn_allocator_get_stats(run.allocator, &stats);
    const struct tarn_stat *all = &stats.by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL];

    assert_int_equal(all->current, 0);
    assert_int_equal(all->allocated, bytes); /* every size is a multiple of 512 */
    assert_int_equal(all->freed, bytes);
    assert_true(all->peak >= (int64_t)(2 * MIB) && all->peak <= (int64_t)(3 * MIB * CACHE_THREADS));
    tarn_allocator_destroy(run.allocator);
    tarn_device_close(device);
}

int main(void)
{
    static struct setting settings[] = {
        {.expandable = false, .drop_lock = false, .capacity = 1024 * MIB},
        {.expandable = false, .drop_lock = false, .capacity = 96 * MIB},
        {.expandable = true, .drop_lock = false, .capacity = 1024 * MIB},
        {.expandable = true, .drop_lock = false, .capacity = 160 * MIB},
        {.expandable = false, .drop_lock = true, .capacity = 1024 * MIB},
        {.expandable = false, .drop_lock = true, .capacity = 96 * MIB},
        {.compact = true, .capacity = 1024 * MIB},
        {.compact = true, .capacity = 64 * MIB},
        {.by_age = true, .capacity = 1024 * MIB},
        {.by_age = true, .drop_lock = true, .capacity = 96 * MIB},
    };
    static enum tarn_rules_version rules[] = {TARN_RULES_2_11, TARN_RULES_2_14};
    static const char *const names[] = {
        "plain, much memory",     "plain, little memory",      "growing, much memory",
        "growing, little memory", "lock dropped, much memory", "lock dropped, little memory",
        "compact, much memory",   "compact, little memory",    "by age, much memory",
        "by age, little memory",
    };
    struct CMUnitTest tests[12] = {{0}};

    for (unsigned i = 0; i < 10; i++) {
        tests[i].name = names[i];
        tests[i].test_func = threads_share_an_allocator;
        tests[i].initial_state = &settings[i];
    }
    for (unsigned i = 0; i < 2; i++) {
        tests[10 + i].name = i == 0 ? "streams of their own" : "streams of their own, by age";
        tests[10 + i].test_func = threads_have_streams_of_their_own;
        tests[10 + i].initial_state = &rules[i];
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
