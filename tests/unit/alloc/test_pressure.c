/* SPDX-License-Identifier: MIT */
/* Limits in bytes, and callbacks that make room when the device or a limit says no. */
#include "support/test.h"

#include "support/rig.h"
#include "support/scarce.h"
#include "tarn/pool.h"
#include "tarn/pressure.h"
#include "tarn/request.h"

static const char *const settings[] = {"", "expandable_segments:True", "policy:compact",
                                       "rules:2.14"};

#define SETTINGS (sizeof settings / sizeof settings[0])

/* A cache of blocks of 100 MiB that gives one back each time it is asked. */
struct cache {
    struct rig *rig;
    tarn_ptr blocks[16];
    int count;
    int calls;
    struct tarn_pressure last;
};

static uint64_t evict(void *context, const struct tarn_pressure *pressure)
{
    struct cache *cache = context;

    cache->calls++;
    cache->last = *pressure;
    if (cache->count == 0) {
        return 0;
    }
    rig_free(cache->rig, cache->blocks[--cache->count]);
    return 100 * MIB;
}

static void cache_fill(struct cache *cache, struct rig *rig, int count)
{
    *cache = (struct cache){.rig = rig};
    for (int i = 0; i < count; i++) {
        cache->blocks[i] = rig_alloc(rig, 100 * MIB, 0);
    }
    cache->count = count;
    assert_int_equal(tarn_allocator_add_pressure_callback(rig->allocator, evict, cache), TARN_OK);
}

static void cache_empty(struct cache *cache)
{
    while (cache->count > 0) {
        rig_free(cache->rig, cache->blocks[--cache->count]);
    }
}

static void a_full_device_asks_and_a_miss_does_not(void **state)
{
    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        struct cache cache;
        struct rig rig;

        rig_open(&rig, GIB, settings[i]);
        cache_fill(&cache, &rig, 8);
        const tarn_ptr miss = rig_alloc(&rig, 100 * MIB, 0);

        assert_int_equal(cache.calls, 0);
        const tarn_ptr served = rig_alloc(&rig, 250 * MIB, 0);

        assert_true(cache.calls >= 1 && cache.calls <= 2);
        assert_int_equal(cache.last.struct_size, sizeof cache.last);
        assert_false(cache.last.is_soft);
        assert_true(cache.last.bytes >= 150 * MIB);
        assert_ptr_equal(cache.last.allocator, rig.allocator);
        assert_int_equal(rig_stats(&rig).num_ooms, 0);
        rig_check(&rig);
        rig_free(&rig, served);
        rig_free(&rig, miss);
        cache_empty(&cache);
        rig_close(&rig);
    }
}

static uint64_t evict_and_boast(void *context, const struct tarn_pressure *pressure)
{
    (void)evict(context, pressure);
    (void)evict(context, pressure);
    return UINT64_MAX;
}

/* The next is not asked once enough was freed, whatever each says. */
static void callbacks_are_asked_until_there_is_enough(void **state)
{
    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        struct cache cache;
        struct cache second = {0};
        struct rig rig;

        rig_open(&rig, GIB, settings[i]);
        second.rig = &rig;
        cache_fill(&cache, &rig, 9);
        assert_int_equal(tarn_allocator_remove_pressure_callback(rig.allocator, evict, &cache),
                         TARN_OK);
        assert_int_equal(
            tarn_allocator_add_pressure_callback(rig.allocator, evict_and_boast, &cache), TARN_OK);
        assert_int_equal(tarn_allocator_add_pressure_callback(rig.allocator, evict, &second),
                         TARN_OK);
        const tarn_ptr served = rig_alloc(&rig, 200 * MIB, 0);

        assert_true(cache.calls > 0);
        assert_int_equal(second.calls, 0);
        rig_free(&rig, served);
        cache_empty(&cache);
        rig_close(&rig);
    }
}

/* A callback that frees nothing and says something. */
struct liar {
    uint64_t says;
    uint64_t asked_for; /* the first time */
};

static uint64_t lie_in_turn(void *context, const struct tarn_pressure *pressure)
{
    struct liar *liar = context;

    liar->asked_for = liar->asked_for ? liar->asked_for : pressure->bytes;
    return liar->says;
}

/* Each is asked for what those before it have left to free. */
static void callbacks_are_asked_for_the_rest(void **state)
{
    struct liar liars[] = {{.says = MIB}, {.says = 2 * MIB}, {.says = UINT64_MAX}, {.says = MIB}};
    struct rig rig;

    (void)state;
    rig_open(&rig, 256 * MIB, "");
    (void)rig_alloc(&rig, 200 * MIB, 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(
            tarn_allocator_add_pressure_callback(rig.allocator, lie_in_turn, &liars[i]), TARN_OK);
    }
    rig_alloc_oom(&rig, 100 * MIB, 0);
    assert_int_equal(liars[0].asked_for, 100 * MIB);
    assert_int_equal(liars[1].asked_for, 99 * MIB);
    assert_int_equal(liars[2].asked_for, 97 * MIB);
    assert_int_equal(liars[3].asked_for, 0); /* the third claimed everything */
    rig_close(&rig);
}

static void what_is_cached_goes_first(void **state)
{
    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        struct cache cache;
        struct rig rig;

        rig_open(&rig, GIB, settings[i]);
        cache_fill(&cache, &rig, 5);
        rig_free(&rig, rig_alloc(&rig, 300 * MIB, 1));
        const tarn_ptr served = rig_alloc(&rig, 400 * MIB, 0);

        assert_int_equal(cache.calls, 0);
        rig_free(&rig, served);
        cache_empty(&cache);
        rig_close(&rig);
    }
}

static void a_limit_asks_as_the_device_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        struct cache cache;
        struct rig rig;

        rig_open(&rig, GIB, settings[i]);
        assert_int_equal(tarn_allocator_set_limit(rig.allocator, 300 * MIB, &rig.error), TARN_OK);
        assert_int_equal(tarn_allocator_get_limit(rig.allocator), 300 * MIB);
        cache_fill(&cache, &rig, 3);
        const tarn_ptr served = rig_alloc(&rig, 90 * MIB, 0);

        assert_int_equal(cache.calls, 1);
        rig_alloc_oom(&rig, 301 * MIB, 0);
        assert_int_equal(cache.count, 0); /* all was given, in vain */
        rig_free(&rig, served);
        assert_int_equal(tarn_allocator_set_limit(rig.allocator, TARN_SIZE_UNLIMITED, &rig.error),
                         TARN_OK);
        rig_free(&rig, rig_alloc(&rig, 600 * MIB, 0));
        rig_close(&rig);
    }
}

/* Small blocks, one at a time: as often as needed. */
static uint64_t evict_little(void *context, const struct tarn_pressure *pressure)
{
    struct cache *cache = context;

    (void)pressure;
    cache->calls++;
    if (cache->count == 0) {
        return 0;
    }
    rig_free(cache->rig, cache->blocks[--cache->count]);
    return 1;
}

static void small_steps_lead_there(void **state)
{
    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        struct cache cache = {.calls = 0};
        struct rig rig;

        rig_open(&rig, GIB, settings[i]);
        cache.rig = &rig;
        assert_int_equal(tarn_allocator_set_limit(rig.allocator, 320 * MIB, &rig.error), TARN_OK);
        for (int k = 0; k < 16; k++) {
            cache.blocks[k] = rig_alloc(&rig, 20 * MIB, 0);
        }
        cache.count = 16;
        assert_int_equal(tarn_allocator_add_pressure_callback(rig.allocator, evict_little, &cache),
                         TARN_OK);
        const tarn_ptr served = rig_alloc(&rig, 300 * MIB, 0);

        assert_int_equal(cache.calls, 15);
        rig_free(&rig, served);
        cache_empty(&cache);
        rig_close(&rig);
    }
}

static uint64_t lie(void *context, const struct tarn_pressure *pressure)
{
    ++*(int *)context;
    return pressure->bytes;
}

static void a_callback_that_frees_nothing_ends(void **state)
{
    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        int calls = 0;
        struct rig rig;

        rig_open(&rig, 256 * MIB, settings[i]);
        const tarn_ptr most = rig_alloc(&rig, 200 * MIB, 0);

        assert_int_equal(tarn_allocator_add_pressure_callback(rig.allocator, lie, &calls), TARN_OK);
        rig_alloc_oom(&rig, 100 * MIB, 0);
        assert_int_equal(calls, TARN_PRESSURE_ROUNDS);
        assert_int_equal(rig_stats(&rig).num_ooms, 1);
        rig_free(&rig, most);
        rig_close(&rig);
    }
}

/* A callback that frees only what it allocates itself, and claims that this is room. */
static uint64_t free_own(void *context, const struct tarn_pressure *pressure)
{
    tarn_ptr ptr = 0;

    ++*(int *)context;
    assert_int_equal(tarn_allocator_alloc(pressure->allocator, MIB, 0, &ptr, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_free(pressure->allocator, ptr, NULL), TARN_OK);
    return pressure->bytes;
}

/* An error is written by the call that fails, not by one whose callback has made room. */
static void a_request_that_is_served_writes_no_error(void **state)
{
    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        struct cache cache;
        struct rig rig;
        tarn_ptr ptr = 0;

        rig_open(&rig, 256 * MIB, settings[i]);
        cache_fill(&cache, &rig, 2);
        rig.error = (struct tarn_error){.offset = 77};
        assert_int_equal(tarn_allocator_alloc(rig.allocator, 200 * MIB, 0, &ptr, &rig.error),
                         TARN_OK);
        assert_true(cache.calls > 0);
        assert_int_equal(rig.error.offset, 77);
        assert_int_equal(rig.error.text[0], 0);
        rig_free(&rig, ptr);
        cache_empty(&cache);
        rig_close(&rig);
    }
}

static void no_callback_is_refused(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 256 * MIB, "");
    assert_int_equal(tarn_allocator_add_pressure_callback(rig.allocator, NULL, NULL),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_allocator_add_oom_observer(rig.allocator, NULL, NULL),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_allocator_add_memory_callback(rig.allocator, NULL, NULL),
                     TARN_ERR_INVALID_ARGUMENT);
    rig_alloc_oom(&rig, GIB, 0);
    rig_close(&rig);
}

static void a_callback_that_frees_only_its_own_ends(void **state)
{
    int calls = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, 256 * MIB, "");
    const tarn_ptr most = rig_alloc(&rig, 200 * MIB, 0);

    assert_int_equal(tarn_allocator_add_pressure_callback(rig.allocator, free_own, &calls),
                     TARN_OK);
    rig_alloc_oom(&rig, 100 * MIB, 0);
    assert_in_range(calls, 1000, 1100);
    assert_int_equal(tarn_allocator_remove_pressure_callback(rig.allocator, free_own, &calls),
                     TARN_OK);
    rig_free(&rig, most);
    rig_close(&rig);
}

static void the_soft_limit_asks_and_lets_grow(void **state)
{
    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        struct cache cache;
        struct rig rig;

        rig_open(&rig, GIB, settings[i]);
        assert_true(tarn_allocator_get_soft_limit(rig.allocator) == TARN_SIZE_UNLIMITED);
        assert_int_equal(tarn_allocator_set_soft_limit(rig.allocator, 300 * MIB, &rig.error),
                         TARN_OK);
        assert_true(tarn_allocator_get_soft_limit(rig.allocator) == 300 * MIB);
        cache_fill(&cache, &rig, 3);
        assert_int_equal(cache.calls, 0);
        const tarn_ptr fits = rig_alloc(&rig, 100 * MIB, 0); /* where one was evicted */

        assert_int_equal(cache.calls, 1);
        assert_true(cache.last.is_soft);
        assert_int_equal(cache.last.bytes, 100 * MIB);
        assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 300 * MIB);
        cache_empty(&cache);
        const tarn_ptr grown = rig_alloc(&rig, 400 * MIB, 0); /* nothing left to evict */

        assert_int_equal(cache.calls, 2);
        rig_check(&rig);
        rig_free(&rig, grown);
        rig_free(&rig, fits);
        rig_close(&rig);
    }
}

static void a_pool_is_named(void **state)
{
    const struct tarn_pool_options options = {.struct_size = sizeof options, .limit = 150 * MIB};
    struct tarn_pool *pool = NULL;
    tarn_ptr ptr = 0;
    struct cache cache;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    cache_fill(&cache, &rig, 1);
    assert_int_equal(tarn_pool_create(rig.allocator, &options, &pool, &rig.error), TARN_OK);
    assert_int_equal(tarn_pool_alloc(pool, 160 * MIB, 7, &ptr, &rig.error), TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(cache.calls, 2);
    assert_int_equal(cache.last.pool.second, tarn_pool_get_id(pool).second);
    assert_int_equal(cache.last.stream, 7);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* A small request needs a small page, under a limit as elsewhere, and not a large one. */
static void small_requests_grow_by_small_pages(void **state)
{
    static const uint64_t sizes[] = {512, 2 * MIB}; /* the second is no small request */

    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        struct tarn_pool_options options = {.struct_size = sizeof options, .limit = 2 * MIB};
        const bool fits[] = {true, strstr(settings[i], "compact") != NULL};
        struct rig rig;

        rig_open(&rig, GIB, settings[i]);
        for (int k = 0; k < 2; k++) {
            struct tarn_pool *pool = NULL;
            tarn_ptr ptr = 0;

            assert_int_equal(tarn_pool_create(rig.allocator, &options, &pool, &rig.error), TARN_OK);
            assert_int_equal(tarn_pool_alloc(pool, sizes[k], 0, &ptr, &rig.error),
                             fits[k] ? TARN_OK : TARN_ERR_OUT_OF_MEMORY);
            tarn_pool_destroy(pool);
        }
        rig_close(&rig);
    }
}

/* ---- callbacks that allocate ---- */

struct greedy {
    struct rig *rig;
    int calls;
    enum tarn_status status;
};

static uint64_t allocate(void *context, const struct tarn_pressure *pressure)
{
    struct greedy *greedy = context;
    tarn_ptr ptr = 0;

    (void)pressure;
    greedy->calls++;
    greedy->status = tarn_allocator_alloc(greedy->rig->allocator, 400 * MIB, 0, &ptr, NULL);
    return 0;
}

static void a_callback_s_own_request_calls_nobody(void **state)
{
    struct greedy greedy = {0};
    struct rig rig;

    (void)state;
    rig_open(&rig, 256 * MIB, "");
    greedy.rig = &rig;
    assert_int_equal(tarn_allocator_add_pressure_callback(rig.allocator, allocate, &greedy),
                     TARN_OK);
    rig_alloc_oom(&rig, 300 * MIB, 0);
    assert_int_equal(greedy.calls, 1);
    assert_int_equal(greedy.status, TARN_ERR_OUT_OF_MEMORY);
    rig_close(&rig);
}

static uint64_t allocate_and_free(void *context, const struct tarn_pressure *pressure)
{
    struct greedy *greedy = context;
    tarn_ptr ptr = 0;

    (void)pressure;
    greedy->calls++;
    greedy->status = tarn_allocator_alloc(greedy->rig->allocator, 50 * MIB, 0, &ptr, NULL);
    rig_free(greedy->rig, ptr);
    return 0;
}

/* Nor does one beyond the soft limit. */
static void a_callback_s_own_request_may_exceed_the_soft_limit(void **state)
{
    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        struct greedy greedy = {0};
        struct rig rig;

        rig_open(&rig, GIB, settings[i]);
        greedy.rig = &rig;
        assert_int_equal(
            tarn_allocator_add_pressure_callback(rig.allocator, allocate_and_free, &greedy),
            TARN_OK);
        assert_int_equal(tarn_allocator_set_soft_limit(rig.allocator, 20 * MIB, &rig.error),
                         TARN_OK);
        rig_free(&rig, rig_alloc(&rig, 60 * MIB, 0));
        assert_true(greedy.calls > 0 && greedy.calls <= TARN_PRESSURE_ROUNDS);
        assert_int_equal(greedy.status, TARN_OK);
        rig_close(&rig);
    }
}

/* ---- adding and removing ---- */

static void count_oom(void *context, const struct tarn_oom *oom)
{
    (void)oom;
    ++*(int *)context;
}

static bool count_miss(void *context, struct tarn_allocator *allocator, uint64_t size,
                       tarn_stream stream)
{
    (void)allocator;
    (void)size;
    (void)stream;
    ++*(int *)context;
    return false;
}

static void all_of_them_can_be_removed(void **state)
{
    int calls = 0;
    int other = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, 256 * MIB, "");
    assert_int_equal(tarn_allocator_add_pressure_callback(rig.allocator, lie, &calls), TARN_OK);
    assert_int_equal(tarn_allocator_add_oom_observer(rig.allocator, count_oom, &calls), TARN_OK);
    assert_int_equal(tarn_allocator_add_memory_callback(rig.allocator, count_miss, &calls),
                     TARN_OK);
    assert_int_equal(tarn_allocator_remove_pressure_callback(rig.allocator, lie, &other),
                     TARN_ERR_NOT_FOUND);
    assert_int_equal(tarn_allocator_remove_pressure_callback(rig.allocator, lie, &calls), TARN_OK);
    assert_int_equal(tarn_allocator_remove_oom_observer(rig.allocator, count_oom, &calls), TARN_OK);
    assert_int_equal(tarn_allocator_remove_oom_observer(rig.allocator, count_oom, &calls),
                     TARN_ERR_NOT_FOUND);
    assert_int_equal(tarn_allocator_remove_memory_callback(rig.allocator, count_miss, &calls),
                     TARN_OK);
    rig_alloc_oom(&rig, 300 * MIB, 0);
    assert_int_equal(calls, 0);
    for (int i = 0; i < TARN_OBSERVERS_MAX; i++) {
        assert_int_equal(tarn_allocator_add_pressure_callback(rig.allocator, lie, &calls), TARN_OK);
    }
    assert_int_equal(tarn_allocator_add_pressure_callback(rig.allocator, lie, &calls),
                     TARN_ERR_LIMIT);
    rig_close(&rig);
}

static uint64_t remove_itself(void *context, const struct tarn_pressure *pressure)
{
    ++*(int *)context;
    assert_int_equal(
        tarn_allocator_remove_pressure_callback(pressure->allocator, remove_itself, context),
        TARN_OK);
    return 1;
}

static void a_callback_may_remove_itself(void **state)
{
    int calls = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, 256 * MIB, "");
    assert_int_equal(tarn_allocator_add_pressure_callback(rig.allocator, remove_itself, &calls),
                     TARN_OK);
    rig_alloc_oom(&rig, 300 * MIB, 0);
    assert_int_equal(calls, 1);
    rig_close(&rig);
}

static void other_engines_refuse(void **state)
{
    int calls = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "backend:cudaMallocAsync");
    assert_int_equal(tarn_allocator_add_pressure_callback(rig.allocator, lie, &calls),
                     TARN_ERR_NOT_SUPPORTED);
    assert_int_equal(tarn_allocator_set_limit(rig.allocator, GIB, &rig.error),
                     TARN_ERR_NOT_SUPPORTED);
    assert_int_equal(tarn_allocator_set_soft_limit(rig.allocator, GIB, &rig.error),
                     TARN_ERR_NOT_SUPPORTED);
    assert_true(tarn_allocator_get_soft_limit(rig.allocator) == TARN_SIZE_UNLIMITED);
    rig_close(&rig);
}

/* A device that fails while callbacks make room: reported, and nothing is lost. */
/* Takes the nodes that the allocator keeps ahead, and the host has no more. */
static int nodes_taken; /* how often */

static uint64_t take_nodes(void *context, const struct tarn_pressure *pressure)
{
    nodes_taken++;
    scarce_begin(context);
    tarn_host_fail_nth(1);
    return pressure->bytes / 2;
}

/* What a request needs from the host is looked for again after each call. */
static void without_nodes_a_request_ends(void **state)
{
    (void)state;
    for (int soft = 0; soft < 2; soft++) {
        tarn_ptr ptr = 0;
        struct rig rig;

        rig_open(&rig, GIB, "");
        const tarn_ptr first = rig_alloc(&rig, 600 * MIB, 0);

        if (soft) {
            assert_int_equal(tarn_allocator_set_soft_limit(rig.allocator, 700 * MIB, &rig.error),
                             TARN_OK);
        }
        assert_int_equal(
            tarn_allocator_add_pressure_callback(rig.allocator, take_nodes, rig.allocator),
            TARN_OK);
        nodes_taken = 0;
        const uint64_t size = (soft ? 200 : 600) * MIB;
        const enum tarn_status st = tarn_allocator_alloc(rig.allocator, size, 0, &ptr, &rig.error);

        tarn_host_fail_nth(0);
        scarce_end();
        assert_int_equal(st, TARN_ERR_HOST_MEMORY);
        assert_int_equal(nodes_taken, 1); /* nobody is asked again */
        assert_int_equal(ptr, 0);
        assert_int_equal(rig_stats(&rig).num_ooms, 0);
        rig_check(&rig);
        assert_int_equal(
            tarn_allocator_remove_pressure_callback(rig.allocator, take_nodes, rig.allocator),
            TARN_OK);
        rig_free(&rig, first);
        rig_close(&rig);
    }
}

/* Frees a block that another stream uses as if a graph were being captured. */
struct late_free {
    struct rig *rig;
    tarn_ptr ptr;
};

static bool no_stream(void *context, tarn_stream stream)
{
    (void)context;
    (void)stream;
    return false;
}

static uint64_t free_in_capture(void *context, const struct tarn_pressure *pressure)
{
    const struct tarn_pool_id id = {0, 1};
    struct late_free *late = context;
    struct tarn_allocator *allocator = late->rig->allocator;

    if (late->ptr) {
        assert_int_equal(tarn_allocator_begin_pool(allocator, id, no_stream, NULL, NULL), TARN_OK);
        rig_free(late->rig, late->ptr);
        late->ptr = 0;
        assert_int_equal(tarn_allocator_end_pool(allocator, id, NULL), TARN_OK);
    }
    return pressure->bytes;
}

/* Its events are recorded by the step that waits; each of its calls fails once. */
static void what_a_callback_defers_is_waited_for(void **state)
{
    enum tarn_status st = TARN_ERR_DEVICE;
    unsigned failures = 0;

    (void)state;
    for (uint64_t n = 1; st != TARN_OK; n++) {
        tarn_ptr ptr = 0;
        struct rig rig;

        rig_open(&rig, GIB, "policy:compact");
        struct late_free late = {.rig = &rig, .ptr = rig_alloc(&rig, 600 * MIB, 0)};

        rig_record(&rig, late.ptr, 2);
        assert_int_equal(tarn_allocator_set_soft_limit(rig.allocator, 700 * MIB, &rig.error),
                         TARN_OK);
        assert_int_equal(
            tarn_allocator_add_pressure_callback(rig.allocator, free_in_capture, &late), TARN_OK);
        assert_int_equal(tarn_sim_block_stream(rig.device, 2), TARN_OK);
        tarn_sim_fail_nth(rig.device, TARN_SIM_EVENT_RECORD, n, TARN_ERR_DEVICE);
        st = tarn_allocator_alloc(rig.allocator, 800 * MIB, 0, &ptr, &rig.error);
        tarn_sim_fail_nth(rig.device, TARN_SIM_EVENT_RECORD, 0, TARN_OK);
        assert_true(st == TARN_OK || st == TARN_ERR_DEVICE);
        failures += st != TARN_OK;
        assert_int_equal(late.ptr, 0);
        rig_check(&rig);
        if (st == TARN_OK) {
            rig_free(&rig, ptr);
        }
        assert_int_equal(
            tarn_allocator_remove_pressure_callback(rig.allocator, free_in_capture, &late),
            TARN_OK);
        rig_close(&rig);
    }
    assert_true(failures > 0);
}

static void a_failing_device_is_reported(void **state)
{
    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        for (uint64_t n = 1; n < 8; n++) {
            struct cache cache;
            tarn_ptr ptr = 0;
            struct rig rig;

            rig_open(&rig, GIB, settings[i]);
            cache_fill(&cache, &rig, 9);
            tarn_sim_fail_nth(rig.device, TARN_SIM_ALLOC, n, TARN_ERR_DEVICE);
            tarn_sim_fail_nth(rig.device, TARN_SIM_UNMAP, n, TARN_ERR_DEVICE);
            const enum tarn_status st =
                tarn_allocator_alloc(rig.allocator, 250 * MIB, 0, &ptr, &rig.error);

            assert_true(st == TARN_OK || st == TARN_ERR_DEVICE);
            tarn_sim_fail_nth(rig.device, TARN_SIM_ALLOC, 0, TARN_OK);
            tarn_sim_fail_nth(rig.device, TARN_SIM_UNMAP, 0, TARN_OK);
            rig_check(&rig);
            ptr = ptr ? ptr : rig_alloc(&rig, 250 * MIB, 0);
            rig_free(&rig, ptr);
            cache_empty(&cache);
            rig_close(&rig);
        }
    }
}

/* ---- how often, and for how much ---- */

/* Answers in phases. */
struct phased {
    struct rig *rig;
    int calls;
    int lies;       /* of the first calls: nothing is freed */
    tarn_ptr block; /* freed by the call after them, 0 = none */
};

static uint64_t answer_in_phases(void *context, const struct tarn_pressure *pressure)
{
    struct phased *phased = context;
    const int call = phased->calls++;
    tarn_ptr ptr = 0;

    if (call < phased->lies) {
        return 1;
    }
    if (phased->block) {
        rig_free(phased->rig, phased->block);
        phased->block = 0;
        return 1;
    }
    assert_int_equal(tarn_allocator_alloc(pressure->allocator, 512, 0, &ptr, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_free(pressure->allocator, ptr, NULL), TARN_OK);
    return 1;
}

static int calls_in_phases(bool soft, int lies, bool frees)
{
    struct phased phased = {.lies = lies};
    tarn_ptr ptr = 0;
    struct rig rig;

    rig_open(&rig, 256 * MIB, "");
    phased.rig = &rig;
    const tarn_ptr most = rig_alloc(&rig, 200 * MIB, 0);

    phased.block = frees ? rig_alloc(&rig, 512, 0) : 0;
    rig_free(&rig, rig_alloc(&rig, 512, 0));
    assert_int_equal(tarn_allocator_add_pressure_callback(rig.allocator, answer_in_phases, &phased),
                     TARN_OK);
    if (soft) {
        assert_int_equal(tarn_allocator_set_soft_limit(rig.allocator, 20 * MIB, &rig.error),
                         TARN_OK);
        ptr = rig_alloc(&rig, 30 * MIB, 0);
        rig_free(&rig, ptr);
    } else {
        rig_alloc_oom(&rig, 100 * MIB, 0);
    }
    assert_int_equal(phased.block, 0);
    rig_free(&rig, most);
    rig_close(&rig);
    return phased.calls;
}

/* After a call that has freed something the rounds in vain are counted anew, of both kinds. */
static void a_free_that_helps_starts_the_count_anew(void **state)
{
    (void)state;
    const int in_vain = calls_in_phases(false, 0, false);

    assert_true(in_vain >= 1000);
    assert_int_equal(calls_in_phases(true, 0, false), in_vain);
    for (int soft = 0; soft < 2; soft++) {
        assert_int_equal(calls_in_phases(soft, 0, true), 1 + in_vain);
        assert_int_equal(calls_in_phases(soft, TARN_PRESSURE_ROUNDS - 1, true),
                         TARN_PRESSURE_ROUNDS + in_vain);
        assert_int_equal(calls_in_phases(soft, TARN_PRESSURE_ROUNDS + 1, false),
                         TARN_PRESSURE_ROUNDS);
    }
}

struct hoard {
    struct rig *rig;
    uint64_t size;
    tarn_ptr blocks[64];
    int count;
};

static uint64_t hoard_more(void *context, const struct tarn_pressure *pressure)
{
    struct hoard *hoard = context;

    assert_true(hoard->count < 64);
    hoard->blocks[hoard->count++] = rig_alloc(hoard->rig, hoard->size, 0);
    return pressure->bytes;
}

/* Whatever it allocates. */
static void a_callback_that_only_allocates_ends(void **state)
{
    static const uint64_t sizes[] = {512, MIB, 2 * MIB};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct hoard hoard = {.size = sizes[i]};
        struct rig rig;

        rig_open(&rig, 256 * MIB, "");
        hoard.rig = &rig;
        const tarn_ptr most = rig_alloc(&rig, 150 * MIB, 0);

        rig_free(&rig, rig_alloc(&rig, 2 * MIB, 0));
        assert_int_equal(tarn_allocator_add_pressure_callback(rig.allocator, hoard_more, &hoard),
                         TARN_OK);
        rig_alloc_oom(&rig, 200 * MIB, 0);
        assert_int_equal(hoard.count, TARN_PRESSURE_ROUNDS);
        for (int k = 0; k < hoard.count; k++) {
            rig_free(&rig, hoard.blocks[k]);
        }
        rig_free(&rig, most);
        rig_close(&rig);
    }
}

/* A segment, or whole pages of the policy. */
static void callbacks_are_asked_for_what_the_device_would_give(void **state)
{
    static const uint64_t bytes[] = {30 * MIB, 40 * MIB, 30 * MIB, 30 * MIB};

    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        struct liar liar = {.says = 0};
        struct rig rig;

        rig_open(&rig, 256 * MIB, settings[i]);
        const tarn_ptr most = rig_alloc(&rig, 240 * MIB, 0);

        assert_int_equal(tarn_allocator_add_pressure_callback(rig.allocator, lie_in_turn, &liar),
                         TARN_OK);
        rig_alloc_oom(&rig, 30 * MIB, 0);
        assert_int_equal(liar.asked_for, bytes[i]);
        rig_free(&rig, most);
        rig_close(&rig);
    }
}

/* The first says that it freed just what was missing. */
static void nobody_is_asked_for_nothing(void **state)
{
    struct liar liars[] = {{.says = 100 * MIB}, {.says = MIB}};
    struct rig rig;

    (void)state;
    rig_open(&rig, 256 * MIB, "");
    const tarn_ptr most = rig_alloc(&rig, 200 * MIB, 0);
    int calls = 0;

    assert_int_equal(tarn_allocator_add_pressure_callback(rig.allocator, lie_in_turn, &liars[0]),
                     TARN_OK);
    assert_int_equal(tarn_allocator_add_pressure_callback(rig.allocator, lie, &calls), TARN_OK);
    rig_alloc_oom(&rig, 100 * MIB, 0);
    assert_int_equal(liars[0].asked_for, 100 * MIB);
    assert_int_equal(calls, 0);
    rig_free(&rig, most);
    rig_close(&rig);
}

/* ---- the soft limit ---- */

static void soft_limit(struct rig *rig, uint64_t bytes)
{
    assert_int_equal(tarn_allocator_set_soft_limit(rig->allocator, bytes, &rig->error), TARN_OK);
}

static void what_just_reaches_the_soft_limit_asks_nobody(void **state)
{
    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        int calls = 0;
        struct rig rig;

        rig_open(&rig, GIB, settings[i]);
        soft_limit(&rig, 100 * MIB);
        assert_int_equal(tarn_allocator_add_pressure_callback(rig.allocator, lie, &calls), TARN_OK);
        const tarn_ptr first = rig_alloc(&rig, 60 * MIB, 0);
        const tarn_ptr second = rig_alloc(&rig, 40 * MIB, 0);

        assert_int_equal(calls, 0);
        rig_free(&rig, rig_alloc(&rig, 20 * MIB, 0));
        assert_true(calls > 0);
        rig_free(&rig, first);
        rig_free(&rig, second);
        rig_close(&rig);
    }
}

/* Pages are small under the policy: a small hole in the budget is enough. */
static void pages_fill_the_budget(void **state)
{
    int calls = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "policy:compact");
    soft_limit(&rig, 30 * MIB);
    assert_int_equal(tarn_allocator_add_pressure_callback(rig.allocator, lie, &calls), TARN_OK);
    const tarn_ptr first = rig_alloc(&rig, 20 * MIB, 0);
    const tarn_ptr second = rig_alloc(&rig, 4 * MIB, 0);

    assert_int_equal(calls, 0);
    rig_free(&rig, first);
    rig_free(&rig, second);
    rig_close(&rig);
}

/* Free pages in two holes serve the request, and nothing grows. */
static void pages_that_move_need_no_budget(void **state)
{
    int calls = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "policy:compact");
    const tarn_ptr first = rig_alloc(&rig, 20 * MIB, 0);
    const tarn_ptr between = rig_alloc(&rig, 20 * MIB, 0);
    const tarn_ptr last = rig_alloc(&rig, 20 * MIB, 0);
    const tarn_ptr end = rig_alloc(&rig, 20 * MIB, 0);

    rig_free(&rig, first);
    rig_free(&rig, last);
    soft_limit(&rig, 80 * MIB);
    assert_int_equal(tarn_allocator_add_pressure_callback(rig.allocator, lie, &calls), TARN_OK);
    const tarn_ptr moved = rig_alloc(&rig, 40 * MIB, 0);

    assert_int_equal(calls, 0);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 80 * MIB);
    rig_free(&rig, moved);
    rig_free(&rig, between);
    rig_free(&rig, end);
    rig_close(&rig);
}

struct first_call {
    int calls;
    bool is_soft;
};

static uint64_t note_first(void *context, const struct tarn_pressure *pressure)
{
    struct first_call *first = context;

    first->is_soft = first->calls++ == 0 ? pressure->is_soft : first->is_soft;
    return 0;
}

/* A segment that the limit refuses anyway is not asked for on account of the budget; pages may come
 * from elsewhere. */
static void beyond_both_limits_the_hard_one_asks(void **state)
{
    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        struct first_call first = {0};
        struct rig rig;

        rig_open(&rig, GIB, settings[i]);
        const tarn_ptr most = rig_alloc(&rig, 160 * MIB, 0);

        soft_limit(&rig, 100 * MIB);
        assert_int_equal(tarn_allocator_set_limit(rig.allocator, 200 * MIB, &rig.error), TARN_OK);
        assert_int_equal(tarn_allocator_add_pressure_callback(rig.allocator, note_first, &first),
                         TARN_OK);
        rig_alloc_oom(&rig, 100 * MIB, 0);
        assert_true(first.calls > 0);
        assert_int_equal(first.is_soft, strstr(settings[i], "compact") != NULL);
        rig_free(&rig, most);
        rig_close(&rig);
    }
}

/* 150 MiB are missing at first, and 50 after the first answer. */
static void the_soft_limit_asks_for_the_rest(void **state)
{
    struct cache cache;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    soft_limit(&rig, 300 * MIB);
    cache_fill(&cache, &rig, 3);
    const tarn_ptr ptr = rig_alloc(&rig, 150 * MIB, 0);

    assert_int_equal(cache.calls, 2);
    assert_int_equal(cache.last.bytes, 50 * MIB);
    rig_free(&rig, ptr);
    cache_empty(&cache);
    rig_close(&rig);
}

/* The block is there, though the callback says that it has freed next to nothing. */
static void a_block_that_fits_ends_the_soft_limit_s_questions(void **state)
{
    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        struct cache cache;
        struct rig rig;

        rig_open(&rig, GIB, settings[i]);
        soft_limit(&rig, 300 * MIB);
        cache_fill(&cache, &rig, 3);
        assert_int_equal(tarn_allocator_remove_pressure_callback(rig.allocator, evict, &cache),
                         TARN_OK);
        assert_int_equal(tarn_allocator_add_pressure_callback(rig.allocator, evict_little, &cache),
                         TARN_OK);
        const tarn_ptr ptr = rig_alloc(&rig, 90 * MIB, 0);

        assert_int_equal(cache.calls, 1);
        assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 300 * MIB);
        rig_free(&rig, ptr);
        cache_empty(&cache);
        rig_close(&rig);
    }
}

/* ---- what is tried again ---- */

/* Frees these blocks at once. */
struct release {
    struct rig *rig;
    tarn_ptr blocks[2];
};

static uint64_t release_blocks(void *context, const struct tarn_pressure *pressure)
{
    struct release *release = context;
    uint64_t freed = 0;

    (void)pressure;
    for (int i = 0; i < 2; i++) {
        if (release->blocks[i]) {
            rig_free(release->rig, release->blocks[i]);
            release->blocks[i] = 0;
            freed++;
        }
    }
    return freed;
}

static void release_when_asked(struct rig *rig, struct release *release)
{
    release->rig = rig;
    assert_int_equal(tarn_allocator_add_pressure_callback(rig->allocator, release_blocks, release),
                     TARN_OK);
}

/* A pool at its limit gives back what the callback has freed of it, and no other memory goes. */
static void a_pool_at_its_limit_takes_only_its_own(void **state)
{
    const struct tarn_pool_options options = {.struct_size = sizeof options, .limit = 60 * MIB};
    struct tarn_pool *pool = NULL;
    struct release release = {0};
    tarn_ptr ptr = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    assert_int_equal(tarn_pool_create(rig.allocator, &options, &pool, &rig.error), TARN_OK);
    assert_int_equal(tarn_pool_alloc(pool, 60 * MIB, 1, &release.blocks[0], &rig.error), TARN_OK);
    release.blocks[1] = rig_alloc(&rig, 20 * MIB, 0);
    release_when_asked(&rig, &release);
    assert_int_equal(tarn_pool_alloc(pool, 50 * MIB, 0, &ptr, &rig.error), TARN_OK);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 70 * MIB);
    assert_int_equal(rig_stats(&rig).num_alloc_retries, 1); /* before the callback */
    rig_free(&rig, ptr);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* What a callback frees may be a pool's that has the same priority as the request. */
static void what_is_freed_of_a_pool_goes_back(void **state)
{
    const struct tarn_pool_options options = {.struct_size = sizeof options};
    struct tarn_pool *pool = NULL;
    struct release release = {0};
    struct rig rig;

    (void)state;
    rig_open(&rig, 128 * MIB, "");
    assert_int_equal(tarn_pool_create(rig.allocator, &options, &pool, &rig.error), TARN_OK);
    assert_int_equal(tarn_pool_alloc(pool, 100 * MIB, 0, &release.blocks[0], &rig.error), TARN_OK);
    release_when_asked(&rig, &release);
    rig_free(&rig, rig_alloc(&rig, 90 * MIB, 0));
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

/* The device does not take back what the callback has freed. */
static void a_failing_free_after_a_callback_is_reported(void **state)
{
    struct release release = {0};
    tarn_ptr ptr = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig, 128 * MIB, "");
    release.blocks[0] = rig_alloc(&rig, 50 * MIB, 1);
    release.blocks[1] = rig_alloc(&rig, 60 * MIB, 1);
    release_when_asked(&rig, &release);
    tarn_sim_fail_nth(rig.device, TARN_SIM_FREE, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_alloc(rig.allocator, 90 * MIB, 0, &ptr, &rig.error),
                     TARN_ERR_DEVICE);
    assert_int_equal(release.blocks[0], 0);
    rig_check(&rig);
    rig_free(&rig, rig_alloc(&rig, 90 * MIB, 0));
    rig_close(&rig);
}

/* As what_a_callback_defers_is_waited_for, while another block waits already: the failure of the
 * deferred one is not forgotten over it. */
static void a_failure_while_others_wait_is_reported(void **state)
{
    struct rig rig;
    tarn_ptr ptr = 0;

    (void)state;
    rig_open(&rig, GIB, "policy:compact");
    const tarn_ptr other = rig_alloc(&rig, 100 * MIB, 0);
    struct late_free late = {.rig = &rig, .ptr = rig_alloc(&rig, 600 * MIB, 0)};

    rig_record(&rig, other, 3);
    rig_record(&rig, late.ptr, 2);
    for (tarn_stream stream = 2; stream <= 3; stream++) {
        assert_int_equal(tarn_sim_block_stream(rig.device, stream), TARN_OK);
    }
    rig_free(&rig, other);
    soft_limit(&rig, 700 * MIB);
    assert_int_equal(tarn_allocator_add_pressure_callback(rig.allocator, free_in_capture, &late),
                     TARN_OK);
    tarn_sim_fail_nth(rig.device, TARN_SIM_EVENT_RECORD, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_alloc(rig.allocator, 800 * MIB, 0, &ptr, &rig.error),
                     TARN_ERR_DEVICE);
    assert_int_equal(late.ptr, 0);
    rig_check(&rig);
    rig_free(&rig, rig_alloc(&rig, 800 * MIB, 0));
    rig_close(&rig);
}

/* A pool's source, called without the lock: the nodes that the allocator kept ahead are taken
 * meanwhile, and the host has no more. */
static tarn_ptr give_and_take_nodes(void *context, uint64_t size, tarn_stream stream)
{
    struct rig *rig = context;
    tarn_ptr ptr = 0;

    (void)stream;
    assert_int_equal(rig->device->ops->alloc(rig->device, size, &ptr), TARN_OK);
    scarce_begin(rig->allocator);
    tarn_host_fail_nth(1);
    return ptr;
}

static void take_segment(void *context, tarn_ptr ptr)
{
    struct rig *rig = context;

    assert_int_equal(rig->device->ops->free(rig->device, ptr), TARN_OK);
}

static void a_source_may_leave_no_nodes(void **state)
{
    (void)state;
    for (int tries = 0; tries < 2; tries++) {
        struct rig rig;
        struct tarn_pool *pool = NULL;
        tarn_ptr ptr = 0;

        rig_open(&rig, GIB, "");
        const struct tarn_pool_source source = {.struct_size = sizeof source,
                                                .context = &rig,
                                                .alloc = give_and_take_nodes,
                                                .free = take_segment};
        const struct tarn_pool_options options = {.struct_size = sizeof options, .source = &source};

        assert_int_equal(tarn_pool_create(rig.allocator, &options, &pool, &rig.error), TARN_OK);
        const enum tarn_status st = tries ? tarn_pool_alloc_try(pool, 5 * MIB, 0, 0, &ptr)
                                          : tarn_pool_alloc(pool, 5 * MIB, 0, &ptr, &rig.error);

        tarn_host_fail_nth(0);
        scarce_end();
        assert_int_equal(st, TARN_ERR_HOST_MEMORY);
        assert_int_equal(ptr, 0);
        rig_check(&rig);
        tarn_pool_destroy(pool);
        rig_close(&rig);
    }
}

static uint64_t reset_counters(void *context, const struct tarn_pressure *pressure)
{
    ++*(int *)context;
    tarn_allocator_reset_accumulated_stats(pressure->allocator);
    return pressure->bytes;
}

/* Counters that are set back are no free. */
static void a_callback_that_resets_counters_frees_nothing(void **state)
{
    static const uint64_t sizes[] = {512, 100 * MIB};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        int calls = 0;
        struct rig rig;

        rig_open(&rig, 128 * MIB, "");
        const tarn_ptr ptr = rig_alloc(&rig, sizes[i], 0);

        assert_int_equal(
            tarn_allocator_add_pressure_callback(rig.allocator, reset_counters, &calls), TARN_OK);
        rig_alloc_oom(&rig, 200 * MIB, 0);
        assert_int_equal(calls, TARN_PRESSURE_ROUNDS);
        rig_free(&rig, ptr);
        rig_close(&rig);
    }
}

/* Without a callback nobody can be asked: the soft limit decides nothing then. */
static void a_soft_limit_without_callbacks_changes_nothing(void **state)
{
    enum {
        CALLS = 300,
        LIVE = 16
    };

    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        for (uint64_t seed = 1; seed < 4; seed++) {
            uint64_t numbers = seed;
            tarn_ptr ptrs[2][LIVE] = {{0}};
            struct rig rigs[2];

            rig_open(&rigs[0], GIB, settings[i]);
            rig_open(&rigs[1], GIB, settings[i]);
            soft_limit(&rigs[1], 60 * MIB);
            for (int call = 0; call < CALLS; call++) {
                numbers = numbers * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
                const uint64_t number = numbers >> 33;
                const uint64_t size = (number % 20 + 1) * 2 * MIB;
                const tarn_stream stream = number / 32 % 2;
                const uint64_t place = number / 64 % LIVE;

                for (int k = 0; k < 2; k++) {
                    if (ptrs[k][place]) {
                        rig_free(&rigs[k], ptrs[k][place]);
                        ptrs[k][place] = 0;
                    } else {
                        ptrs[k][place] = rig_alloc(&rigs[k], size, stream);
                    }
                }
                assert_int_equal(ptrs[0][place], ptrs[1][place]);
                assert_int_equal(rig_now(&rigs[0], TARN_STAT_RESERVED_BYTES),
                                 rig_now(&rigs[1], TARN_STAT_RESERVED_BYTES));
            }
            for (int place = 0; place < LIVE; place++) {
                for (int k = 0; k < 2; k++) {
                    if (ptrs[k][place]) {
                        rig_free(&rigs[k], ptrs[k][place]);
                    }
                }
            }
            tarn_allocator_destroy(rigs[1].allocator);
            sim_close(rigs[1].device);
            tarn_allocator_destroy(rigs[0].allocator);
            sim_close(rigs[0].device);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_device_asks_and_a_miss_does_not),
        cmocka_unit_test(callbacks_are_asked_until_there_is_enough),
        cmocka_unit_test(callbacks_are_asked_for_the_rest),
        cmocka_unit_test(what_is_cached_goes_first),
        cmocka_unit_test(a_limit_asks_as_the_device_does),
        cmocka_unit_test(small_steps_lead_there),
        cmocka_unit_test(a_callback_that_frees_nothing_ends),
        cmocka_unit_test(a_callback_that_frees_only_its_own_ends),
        cmocka_unit_test(a_request_that_is_served_writes_no_error),
        cmocka_unit_test(no_callback_is_refused),
        cmocka_unit_test(the_soft_limit_asks_and_lets_grow),
        cmocka_unit_test(a_pool_is_named),
        cmocka_unit_test(small_requests_grow_by_small_pages),
        cmocka_unit_test(a_callback_s_own_request_calls_nobody),
        cmocka_unit_test(a_callback_s_own_request_may_exceed_the_soft_limit),
        cmocka_unit_test(all_of_them_can_be_removed),
        cmocka_unit_test(a_callback_may_remove_itself),
        cmocka_unit_test(other_engines_refuse),
        cmocka_unit_test(a_failing_device_is_reported),
        cmocka_unit_test(without_nodes_a_request_ends),
        cmocka_unit_test(what_a_callback_defers_is_waited_for),
        cmocka_unit_test(a_free_that_helps_starts_the_count_anew),
        cmocka_unit_test(a_callback_that_only_allocates_ends),
        cmocka_unit_test(callbacks_are_asked_for_what_the_device_would_give),
        cmocka_unit_test(nobody_is_asked_for_nothing),
        cmocka_unit_test(what_just_reaches_the_soft_limit_asks_nobody),
        cmocka_unit_test(pages_fill_the_budget),
        cmocka_unit_test(pages_that_move_need_no_budget),
        cmocka_unit_test(beyond_both_limits_the_hard_one_asks),
        cmocka_unit_test(the_soft_limit_asks_for_the_rest),
        cmocka_unit_test(a_block_that_fits_ends_the_soft_limit_s_questions),
        cmocka_unit_test(a_pool_at_its_limit_takes_only_its_own),
        cmocka_unit_test(what_is_freed_of_a_pool_goes_back),
        cmocka_unit_test(a_failing_free_after_a_callback_is_reported),
        cmocka_unit_test(a_failure_while_others_wait_is_reported),
        cmocka_unit_test(a_source_may_leave_no_nodes),
        cmocka_unit_test(a_callback_that_resets_counters_frees_nothing),
        cmocka_unit_test(a_soft_limit_without_callbacks_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
