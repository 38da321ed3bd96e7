/* SPDX-License-Identifier: MIT */
/*
 * The undo log seen from inside: when a free only moves the cursor, when the log is flushed and
 * when it is cleared. The property test and the recorded decisions show that decisions stay the
 * same.
 */
#include "support/test.h"

#include "support/rig.h"
#include "tarn/graph_pool.h"
#include "tarn/pool.h"

static const struct tn_undo_log *log_of(const struct rig *rig)
{
    return &rig_engine(rig->allocator)->fast.log;
}

static void log_is(const struct rig *rig, uint32_t cursor, uint32_t end)
{
    assert_int_equal(log_of(rig)->cursor, cursor);
    assert_int_equal(log_of(rig)->end, end);
}

/* A block from the device gets no entry; one that is split off a free block does. */
static void frees_in_reverse_order_are_undone(void **state)
{
    struct rig rig;
    tarn_ptr ptrs[3];

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr base = rig_alloc(&rig, 512, 0);

    log_is(&rig, 0, 0);
    for (int i = 0; i < 3; i++) {
        ptrs[i] = rig_alloc(&rig, 1024, 0);
    }
    log_is(&rig, 3, 3);
    for (int i = 3; i > 0; i--) {
        rig_free(&rig, ptrs[i - 1]);
    }
    log_is(&rig, 0, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rig_alloc(&rig, 1024, 0), ptrs[i]);
    }
    log_is(&rig, 3, 3);
    assert_int_equal(rig_now(&rig, TARN_STAT_REQUESTED_BYTES), 512 + 3 * 1024);
    for (int i = 3; i > 0; i--) {
        rig_free(&rig, ptrs[i - 1]);
    }
    rig_free(&rig, base);
    log_is(&rig, 0, 0);
    rig_close(&rig);
}

static void another_size_or_stream_flushes_it(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr base = rig_alloc(&rig, 512, 0);
    const tarn_ptr other = rig_alloc(&rig, 512, 1);
    const tarn_ptr first = rig_alloc(&rig, 1024, 0);

    rig_free(&rig, rig_alloc(&rig, 1024, 0));
    log_is(&rig, 1, 2);
    const tarn_ptr second = rig_alloc(&rig, 2048, 0);

    assert_int_equal(second, first + 1024);
    log_is(&rig, 2, 2);
    rig_free(&rig, second);
    rig_free(&rig, rig_alloc(&rig, 2048, 1));
    log_is(&rig, 1, 2);
    rig_free(&rig, first); /* still the newest allocation */
    log_is(&rig, 0, 2);
    rig_free(&rig, other);
    rig_free(&rig, base);
    rig_close(&rig);
}

/* A block of the default pool that was just freed serves no request of as many bytes that names a
 * pool, and the other way round. */
static void requests_of_a_pool_are_its_own(void **state)
{
    static const uint64_t sizes[] = {1024, 1023}; /* even and odd */

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct tarn_pool *pool = NULL;
        tarn_ptr base[2];
        tarn_ptr ptr = 0;
        struct rig rig;

        rig_open(&rig, GIB, "");
        assert_int_equal(tarn_pool_create(rig.allocator, NULL, &pool, &rig.error), TARN_OK);
        base[0] = rig_alloc(&rig, 512, 0);
        assert_int_equal(tarn_pool_alloc(pool, 512, 0, &base[1], &rig.error), TARN_OK);
        rig_free(&rig, rig_alloc(&rig, sizes[i], 0));
        assert_int_equal(tarn_pool_alloc(pool, sizes[i], 0, &ptr, &rig.error), TARN_OK);
        assert_int_equal(ptr, base[1] + 512);
        rig_free(&rig, ptr);
        ptr = rig_alloc(&rig, sizes[i], 0);
        assert_int_equal(ptr, base[0] + 512);
        rig_free(&rig, ptr);
        rig_free(&rig, base[1]);
        rig_free(&rig, base[0]);
        tarn_pool_destroy(pool);
        rig_close(&rig);
    }
}

static void a_free_out_of_order_clears_it(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr base = rig_alloc(&rig, 512, 0);
    const tarn_ptr first = rig_alloc(&rig, 1024, 0);
    const tarn_ptr second = rig_alloc(&rig, 1024, 0);

    rig_free(&rig, first);
    log_is(&rig, 0, 0);
    rig_free(&rig, second);
    rig_free(&rig, base);
    rig_close(&rig);
}

/* A pointer freed in the log is as unknown as any other that is not allocated. */
static void freed_is_freed(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr base = rig_alloc(&rig, 512, 0);
    const tarn_ptr ptr = rig_alloc(&rig, 1024, 0);

    rig_free(&rig, ptr);
    log_is(&rig, 0, 1);
    assert_int_equal(tarn_allocator_record_stream(rig.allocator, ptr, 3, NULL),
                     TARN_ERR_INVALID_POINTER);
    log_is(&rig, 0, 0);
    rig_free(&rig, rig_alloc(&rig, 1024, 0));
    assert_int_equal(tarn_allocator_free(rig.allocator, ptr, NULL), TARN_ERR_INVALID_POINTER);
    assert_int_equal(tarn_allocator_base_allocation(rig.allocator, ptr, NULL, NULL, NULL),
                     TARN_ERR_INVALID_POINTER);
    rig_free(&rig, base);
    rig_close(&rig);
}

/* Going up and down moves peaks and sums as if every call had counted. */
static void entries_are_counted(void **state)
{
    struct rig rig;
    tarn_ptr ptrs[4];

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr base = rig_alloc(&rig, 512, 0);

    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 4; i++) {
            ptrs[i] = rig_alloc(&rig, 1000, 0);
        }
        for (int i = 4; i > round % 2; i--) {
            rig_free(&rig, ptrs[i - 1]);
        }
        if (round % 2 == 1) {
            rig_free(&rig, ptrs[0]);
        }
        if (round == 0) {
            tarn_allocator_reset_peak_stats(rig.allocator);
        }
    }
    log_is(&rig, 0, 4);
    const struct tarn_stats stats = rig_stats(&rig);
    const struct tarn_stat *bytes = &stats.by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL];
    const struct tarn_stat *requested = &stats.by_pool[TARN_STAT_REQUESTED_BYTES][TARN_STAT_ALL];
    const struct tarn_stat *split = &stats.by_pool[TARN_STAT_INACTIVE_SPLIT_BYTES][TARN_STAT_ALL];

    assert_int_equal(bytes->current, 512);
    assert_int_equal(bytes->peak, 512 + 4 * 1024);
    assert_int_equal(bytes->allocated, 20992);
    assert_int_equal(bytes->freed, 20480);
    assert_int_equal(requested->peak, 512 + 4 * 1000);
    assert_int_equal(requested->allocated, 20512);
    assert_int_equal(stats.by_pool[TARN_STAT_ACTIVE][TARN_STAT_SMALL_POOL].peak, 5);
    assert_int_equal(split->current, 2 * MIB - 512);
    assert_int_equal(split->peak, 2 * MIB - 512);
    assert_int_equal(split->allocated, 2 * MIB + 19968);
    assert_int_equal(split->freed, 20480);
    rig_free(&rig, base);
    rig_close(&rig);
}

/* Other streams and the age of blocks change what is free from outside. */
static void it_is_kept_only_while_nothing_else_moves(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr base = rig_alloc(&rig, 512, 0);
    const tarn_ptr used = rig_alloc(&rig, 1024, 0);

    log_is(&rig, 1, 1);
    rig_record(&rig, used, 7);
    assert_int_equal(tarn_sim_block_stream(rig.device, 7), TARN_OK);
    rig_free(&rig, used); /* waits for stream 7 */
    log_is(&rig, 0, 0);
    for (int i = 0; i < 3; i++) { /* the event is not done: nothing has moved */
        const tarn_ptr above = rig_alloc(&rig, 1024, 0);

        assert_true(above > used);
        log_is(&rig, 1, 1);
        rig_free(&rig, above);
        log_is(&rig, 0, 1);
    }
    assert_int_equal(tarn_sim_unblock_stream(rig.device, 7), TARN_OK);
    assert_int_equal(rig_alloc(&rig, 1024, 0), used); /* not what the entry has */
    log_is(&rig, 0, 0);
    rig_free(&rig, used);
    rig_free(&rig, rig_alloc(&rig, 1024, 0));
    log_is(&rig, 0, 1);
    rig_configure(&rig, "garbage_collection_threshold:0.5");
    log_is(&rig, 0, 0);
    rig_limit(&rig, 0.9);
    rig_free(&rig, rig_alloc(&rig, 1024, 0));
    log_is(&rig, 0, 0);
    rig_free(&rig, base);
    rig_close(&rig);
}

static bool is_stream_7(void *context, tarn_stream stream)
{
    (void)context;
    return stream == 7;
}

/* A route concerns the requests that it takes. */
static void it_is_kept_while_other_streams_are_routed(void **state)
{
    const struct tarn_pool_id id = {0, 1};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr base = rig_alloc(&rig, 512, 0);

    assert_int_equal(tarn_allocator_begin_pool(rig.allocator, id, is_stream_7, NULL, NULL),
                     TARN_OK);
    for (int i = 0; i < 3; i++) {
        rig_free(&rig, rig_alloc(&rig, 1024, 0));
        log_is(&rig, 0, 1);
    }
    const tarn_ptr routed = rig_alloc(&rig, 1024, 7);

    log_is(&rig, 0, 0);
    assert_true(routed - base >= 2 * MIB || base - routed >= 2 * MIB);
    assert_int_equal(tarn_allocator_end_pool(rig.allocator, id, NULL), TARN_OK);
    rig_free(&rig, routed);
    assert_int_equal(tarn_allocator_release_pool(rig.allocator, id, NULL), TARN_OK);
    rig_free(&rig, base);
    rig_close(&rig);
}

/* Settings count for an entry as for any request: what is rounded otherwise is another request. */
static void settings_clear_it(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr base = rig_alloc(&rig, 512, 0);

    rig_free(&rig, rig_alloc(&rig, 2560, 0));
    log_is(&rig, 0, 1);
    rig_configure(&rig, "roundup_power2_divisions:1");
    log_is(&rig, 0, 0);
    rig_free(&rig, rig_alloc(&rig, 2560, 0));
    assert_int_equal(rig_now(&rig, TARN_STAT_ALLOCATED_BYTES), 512);
    rig_free(&rig, base);
    rig_close(&rig);
}

/* The oldest entries go when there are too many. */
static void a_long_log_drops_its_beginning(void **state)
{
    enum {
        COUNT = 3 * TN_UNDO_ENTRIES
    };
    static tarn_ptr ptrs[COUNT];
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr base = rig_alloc(&rig, 512, 0);

    for (int i = 0; i < COUNT; i++) {
        ptrs[i] = rig_alloc(&rig, 512, 0);
        rig_free(&rig, ptrs[i]);
        assert_int_equal(rig_alloc(&rig, 512, 0), ptrs[i]); /* an entry that pays */
        assert_true(log_of(&rig)->end > 0);
    }
    assert_true(log_of(&rig)->end <= TN_UNDO_ENTRIES);
    assert_true(log_of(&rig)->end >= TN_UNDO_ENTRIES / 2);
    const uint32_t kept = log_of(&rig)->end;

    for (uint32_t i = 1; i <= COUNT; i++) {
        rig_free(&rig, ptrs[COUNT - i]);
        if (i <= kept) { /* those that are kept are the last */
            log_is(&rig, kept - i, kept);
        }
    }
    log_is(&rig, 0, 0);
    assert_int_equal(rig_now(&rig, TARN_STAT_ALLOCATION), 1);
    rig_free(&rig, base);
    rig_close(&rig);
}

/* Allocations until the log backs off; and until that ends. */
static uint32_t steps_until_rest(struct tn_undo_log *log)
{
    uint32_t count = 0;

    while (tn_undo_log_wants_entry(log)) {
        count++;
    }
    return count;
}

static uint32_t allocations_until_step(struct tn_undo_log *log)
{
    uint32_t count = 1; /* the one that began the backoff */

    while (!tn_undo_log_wants_entry(log)) {
        count++;
    }
    return count;
}

/* Backoffs become longer while entries do not pay, up to a bound, and are over when they do. */
static void a_log_that_does_not_pay_backs_off(void **state)
{
    static struct tn_undo_log log;
    uint32_t backoff = TN_BACKOFF_MIN;

    (void)state;
    for (int i = 0; i < 8; i++) {
        assert_in_range(steps_until_rest(&log), TN_UNDO_ENTRIES - 1, TN_UNDO_ENTRIES);
        assert_int_equal(allocations_until_step(&log), backoff + 1);
        backoff = backoff < TN_BACKOFF_MAX ? 2 * backoff : backoff;
    }
    assert_int_equal(backoff, TN_BACKOFF_MAX);
    for (int i = 0; i < 8 * TN_UNDO_ENTRIES; i++) {
        log.reused++;
        assert_true(tn_undo_log_wants_entry(&log));
    }
    (void)steps_until_rest(&log);
    assert_int_equal(log.backoff.left, TN_BACKOFF_MIN); /* from the beginning */
}

static void while_backing_off_it_gets_no_entries(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    (void)rig_alloc(&rig, 512, 0);
    (void)rig_alloc(&rig, 512, 0);
    log_is(&rig, 1, 1);
    rig_engine(rig.allocator)->fast.log.backoff.left = 2;
    for (int i = 0; i < 2; i++) {
        (void)rig_alloc(&rig, 512, 0);
        log_is(&rig, 0, 0);
    }
    (void)rig_alloc(&rig, 512, 0);
    log_is(&rig, 1, 1);
    rig_close(&rig);
}

/* As if nothing had been counted for so many entries that one more cannot be held. */
static void a_full_entry_is_counted_first(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr base = rig_alloc(&rig, 512, 0);
    const tarn_ptr ptr = rig_alloc(&rig, 1024, 0);

    rig_free(&rig, ptr);
    rig_engine(rig.allocator)->fast.log.entries[0].hits = UINT32_MAX - 1;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rig_alloc(&rig, 1024, 0), ptr);
        rig_free(&rig, ptr);
        log_is(&rig, 0, 1);
    }
    const struct tarn_stats stats = rig_stats(&rig);
    const struct tarn_stat *blocks = &stats.by_pool[TARN_STAT_ALLOCATION][TARN_STAT_ALL];

    assert_int_equal(blocks->current, 1);
    assert_int_equal(blocks->allocated, 2 + (int64_t)(UINT32_MAX - 1) + 3);
    assert_int_equal(blocks->freed, blocks->allocated - 1);
    rig_free(&rig, base);
    rig_close(&rig);
}

struct collected {
    unsigned count;
    struct tarn_trace_event events[8];
};

static void collect(void *context, const struct tarn_trace_event *event)
{
    struct collected *collected = context;

    assert_true(collected->count < 8);
    collected->events[collected->count++] = *event;
}

/* Each entry sends the events of an allocation and of a free. */
static void entries_send_events(void **state)
{
    static const enum tarn_action actions[] = {TARN_ACTION_ALLOC, TARN_ACTION_FREE_REQUESTED,
                                               TARN_ACTION_FREE_COMPLETED};
    struct rig rig;
    struct collected collected = {0};
    const struct tarn_sink sink = {.context = &collected, .receive = collect};

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr base = rig_alloc(&rig, 512, 0);

    assert_int_equal(tarn_allocator_add_sink(rig.allocator, &sink, NULL), TARN_OK);
    rig_free(&rig, rig_alloc(&rig, 1000, 0));
    collected.count = 0;
    const tarn_ptr ptr = rig_alloc(&rig, 1000, 0);

    rig_free(&rig, ptr);
    log_is(&rig, 0, 1);
    assert_int_equal(collected.count, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(collected.events[i].action, actions[i]);
        assert_int_equal(collected.events[i].address, ptr);
        assert_int_equal(collected.events[i].size, 1000);
    }
    rig_free(&rig, base);
    rig_close(&rig);
}

/* ---- requests that name a pool ---- */

struct pools {
    struct rig rig;
    struct tarn_pool *pools[2];
    tarn_ptr base[2]; /* of 512 bytes, in each */
};

static void pools_open(struct pools *pools, const char *conf)
{
    rig_open(&pools->rig, GIB, conf);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            tarn_pool_create(pools->rig.allocator, NULL, &pools->pools[i], &pools->rig.error),
            TARN_OK);
        assert_int_equal(
            tarn_pool_alloc(pools->pools[i], 512, 0, &pools->base[i], &pools->rig.error), TARN_OK);
    }
}

static void pools_close(struct pools *pools)
{
    for (int i = 0; i < 2; i++) {
        rig_free(&pools->rig, pools->base[i]);
        tarn_pool_destroy(pools->pools[i]);
    }
    rig_close(&pools->rig);
}

static tarn_ptr alloc_in(struct pools *pools, int pool, uint64_t size)
{
    tarn_ptr ptr = 0;

    assert_int_equal(tarn_pool_alloc(pools->pools[pool], size, 0, &ptr, &pools->rig.error),
                     TARN_OK);
    return ptr;
}

/* They are undone and redone as all others are, and find the lock free. */
static void requests_of_a_pool_are_redone(void **state)
{
    struct pools pools;
    tarn_ptr ptrs[3];

    (void)state;
    pools_open(&pools, "");
    for (int i = 0; i < 3; i++) {
        ptrs[i] = alloc_in(&pools, 0, 1024);
    }
    log_is(&pools.rig, 3, 3);
    for (int i = 3; i > 0; i--) {
        rig_free(&pools.rig, ptrs[i - 1]);
    }
    log_is(&pools.rig, 0, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(alloc_in(&pools, 0, 1024), ptrs[i]);
        log_is(&pools.rig, (uint32_t)i + 1, 3);
    }
    for (int i = 3; i > 0; i--) {
        rig_free(&pools.rig, ptrs[i - 1]);
    }
    pools_close(&pools);
}

/* Only by a request of as many bytes, in the same pool. */
static void other_requests_of_pools_are_not_redone(void **state)
{
    struct pools pools;

    (void)state;
    pools_open(&pools, "");
    rig_free(&pools.rig, alloc_in(&pools, 0, 1024));
    const tarn_ptr larger = alloc_in(&pools, 0, 2048);
    const tarn_ptr next = alloc_in(&pools, 0, 1024);

    assert_int_equal(larger, pools.base[0] + 512);
    assert_int_equal(next, larger + 2048);
    assert_int_equal(rig_now(&pools.rig, TARN_STAT_REQUESTED_BYTES), 2 * 512 + 2048 + 1024);
    rig_free(&pools.rig, next);
    const tarn_ptr other = alloc_in(&pools, 1, 1024);

    assert_int_equal(other, pools.base[1] + 512);
    rig_free(&pools.rig, other);
    rig_free(&pools.rig, larger);
    pools_close(&pools);
}

/* As one without a pool, a request beyond all memory goes to the engine, which refuses it. */
static void a_pool_refuses_what_nobody_can_have(void **state)
{
    static const uint64_t sizes[] = {UINT64_MAX, TN_MAX_REQUEST, TN_MAX_REQUEST - 1};
    struct pools pools;

    (void)state;
    pools_open(&pools, "");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        tarn_ptr ptr = 0;

        assert_int_equal(tarn_pool_alloc(pools.pools[0], sizes[i], 0, &ptr, NULL),
                         TARN_ERR_OUT_OF_MEMORY);
    }
    assert_int_equal(rig_now(&pools.rig, TARN_STAT_ALLOCATION), 2);
    pools_close(&pools);
}

/* ---- what is counted ---- */

/* Blocks that may not be split are counted apart, so they get no entry. */
static void oversize_blocks_get_no_entry(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "max_split_size_mb:22");
    rig_free(&rig, rig_alloc(&rig, 22 * MIB, 0)); /* the segment */
    for (int i = 0; i < 2; i++) {
        const tarn_ptr ptr = rig_alloc(&rig, 22 * MIB, 0);

        log_is(&rig, 0, 0);
        assert_int_equal(rig_stats(&rig).oversize_allocations.current, 1);
        rig_free(&rig, ptr);
        assert_int_equal(rig_stats(&rig).oversize_allocations.current, 0);
    }
    rig_close(&rig);
}

/* A peak that is reset does not see what was before: with three blocks allocated, the free part of
 * the segment is smaller than it was without them. */
static void states_before_the_last_count_leave_no_peak(void **state)
{
    struct rig rig;
    tarn_ptr ptrs[3];

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr base = rig_alloc(&rig, 512, 0);

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3; i++) {
            ptrs[i] = rig_alloc(&rig, 1024, 0);
        }
        for (int i = 3; i > 0 && round == 0; i--) {
            rig_free(&rig, ptrs[i - 1]);
        }
    }
    log_is(&rig, 3, 3);
    (void)rig_stats(&rig);
    tarn_allocator_reset_peak_stats(rig.allocator);
    const struct tarn_stats stats = rig_stats(&rig);
    const struct tarn_stat *split = &stats.by_pool[TARN_STAT_INACTIVE_SPLIT_BYTES][TARN_STAT_ALL];

    assert_int_equal(split->current, 2 * MIB - 512 - UINT64_C(3) * 1024);
    assert_int_equal(split->peak, split->current);
    for (int i = 3; i > 0; i--) {
        rig_free(&rig, ptrs[i - 1]);
    }
    rig_free(&rig, base);
    rig_close(&rig);
}

/* Entries pay if one of four is redone: 128 of 512, counted anew each time. */
static void entries_pay_if_one_of_four_is_redone(void **state)
{
    struct rig rig;
    static tarn_ptr ptrs[2 * TN_UNDO_ENTRIES + 1];

    (void)state;
    for (int redone = TN_UNDO_ENTRIES / 4 - 1; redone <= TN_UNDO_ENTRIES / 4; redone++) {
        rig_open(&rig, GIB, "");
        const struct tn_undo_log *log = log_of(&rig);
        const tarn_ptr base = rig_alloc(&rig, 512, 0);
        int count = 0;

        for (int round = 0; round < 2; round++) { /* the first pays */
            const int hits = round == 0 ? TN_UNDO_ENTRIES / 4 : redone;

            for (int i = 0; i < TN_UNDO_ENTRIES + round; i++, count++) {
                ptrs[count] = rig_alloc(&rig, 512, 0);
                assert_int_equal(log->backoff.left, 0);
                for (int k = 0; i == 0 && k < hits; k++) {
                    rig_free(&rig, ptrs[count]);
                    assert_int_equal(rig_alloc(&rig, 512, 0), ptrs[count]);
                }
            }
        }
        const tarn_ptr last = rig_alloc(&rig, 512, 0);

        assert_int_equal(log->backoff.left > 0, redone < TN_UNDO_ENTRIES / 4);
        rig_free(&rig, last);
        while (count > 0) {
            rig_free(&rig, ptrs[--count]);
        }
        rig_free(&rig, base);
        rig_close(&rig);
    }
}

/* A full log keeps the newer half of its entries. */
static void a_full_log_keeps_half(void **state)
{
    static tarn_ptr ptrs[TN_UNDO_ENTRIES + 1];
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr base = rig_alloc(&rig, 512, 0);

    for (int i = 0; i <= TN_UNDO_ENTRIES; i++) {
        ptrs[i] = rig_alloc(&rig, 512, 0);
        rig_free(&rig, ptrs[i]);
        assert_int_equal(rig_alloc(&rig, 512, 0), ptrs[i]); /* an entry that pays */
    }
    log_is(&rig, TN_UNDO_ENTRIES / 2 + 1, TN_UNDO_ENTRIES / 2 + 1);
    for (int i = TN_UNDO_ENTRIES; i >= 0; i--) {
        rig_free(&rig, ptrs[i]);
    }
    rig_free(&rig, base);
    rig_close(&rig);
}

/* ---- while somebody receives events ---- */

static uint64_t capture(void *context, enum tarn_context_level level)
{
    uint64_t *next = context;

    (void)level;
    return ++*next;
}

static uint64_t last_stack;

static void note_stack(void *context, const struct tarn_trace_event *event)
{
    (void)context;
    last_stack = event->stack;
}

static void keep(void *context, uint64_t stack)
{
    (void)context;
    (void)stack;
}

/* The log serves calls whose stacks are recorded, and each event has the stack of its call; that of
 * a free has the allocation's if frees have none. */
static void events_of_entries_have_stacks(void **state)
{
    static const enum tarn_context_level levels[] = {TARN_CONTEXT_ALL, TARN_CONTEXT_ALLOC};

    (void)state;
    for (int k = 0; k < 2; k++) {
        uint64_t next = 0;
        const struct tarn_sink sink = {.context = &next,
                                       .level = levels[k],
                                       .capture = capture,
                                       .receive = note_stack,
                                       .retain = keep,
                                       .release = keep};
        tarn_ptr ptrs[3];
        struct rig rig;

        rig_open(&rig, GIB, "");
        const tarn_ptr base = rig_alloc(&rig, 512, 0);

        assert_int_equal(tarn_allocator_add_sink(rig.allocator, &sink, NULL), TARN_OK);
        for (int round = 0; round < 2; round++) {
            for (int i = 0; i < 3; i++) {
                ptrs[i] = rig_alloc(&rig, 1024, 0);
                assert_int_equal(last_stack, next);
                log_is(&rig, (uint32_t)i + 1, round == 0 ? (uint32_t)i + 1 : 3);
            }
            const uint64_t allocated = next;

            for (int i = 3; i > 0; i--) {
                rig_free(&rig, ptrs[i - 1]);
                assert_int_equal(last_stack, k == 0 ? next : allocated + (uint64_t)i - 3);
                log_is(&rig, (uint32_t)i - 1, 3);
            }
        }
        rig_free(&rig, base);
        rig_close(&rig);
    }
}

/* A request beyond all memory is none of a pool, whatever the log has. */
static void a_request_beyond_all_memory_is_not_redone(void **state)
{
    struct pools pools;
    tarn_ptr ptr = 0;

    (void)state;
    pools_open(&pools, "");
    rig_free(&pools.rig, alloc_in(&pools, 0, 1024));
    log_is(&pools.rig, 0, 1);
    assert_int_equal(
        tarn_allocator_alloc(pools.rig.allocator, (UINT64_C(1) << 63) + 1024, 0, &ptr, NULL),
        TARN_ERR_OUT_OF_MEMORY);
    pools_close(&pools);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frees_in_reverse_order_are_undone),
        cmocka_unit_test(another_size_or_stream_flushes_it),
        cmocka_unit_test(requests_of_a_pool_are_its_own),
        cmocka_unit_test(a_free_out_of_order_clears_it),
        cmocka_unit_test(freed_is_freed),
        cmocka_unit_test(it_is_kept_only_while_nothing_else_moves),
        cmocka_unit_test(it_is_kept_while_other_streams_are_routed),
        cmocka_unit_test(entries_are_counted),
        cmocka_unit_test(a_log_that_does_not_pay_backs_off),
        cmocka_unit_test(while_backing_off_it_gets_no_entries),
        cmocka_unit_test(a_full_entry_is_counted_first),
        cmocka_unit_test(settings_clear_it),
        cmocka_unit_test(a_long_log_drops_its_beginning),
        cmocka_unit_test(entries_send_events),
        cmocka_unit_test(requests_of_a_pool_are_redone),
        cmocka_unit_test(other_requests_of_pools_are_not_redone),
        cmocka_unit_test(a_pool_refuses_what_nobody_can_have),
        cmocka_unit_test(a_request_beyond_all_memory_is_not_redone),
        cmocka_unit_test(oversize_blocks_get_no_entry),
        cmocka_unit_test(states_before_the_last_count_leave_no_peak),
        cmocka_unit_test(entries_pay_if_one_of_four_is_redone),
        cmocka_unit_test(a_full_log_keeps_half),
        cmocka_unit_test(events_of_entries_have_stacks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
