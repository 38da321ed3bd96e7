/* SPDX-License-Identifier: MIT */
/*
 * test_compact [SEED [PROGRAMS]]: random calls under the compact policy, on several streams whose
 * work ends in any order. After every call: all invariants hold, and no page is used by work that
 * may run at the same time (support/page_watch.h). A request fails only if the pages that live
 * blocks do not touch are not enough; in other programs device calls fail, and requests are routed
 * to private pools, whose pages stay from the first capture on, unless the pool sleeps. Captures
 * are announced, or, under rules:2.11, whatever is routed on a stream but the default one. Some
 * programs limit what may stay cached, and some have pools of their own, which requests name, with
 * a limit or without: one of theirs fails only if its own live pages leave too little of that.
 */
#include "support/page_watch.h"
#include "support/rig.h"
#include "support/share.h"
#include "tarn/pool.h"
#include "tarn/sleep.h"

#include "support/draw.h"

#include <stdlib.h>

enum {
    SLOTS = 64,
    POOLS = 2,
    HANDLES = 2,
    CALLS = 1500,
    PROGRAMS = 120
};

#define PAGE (2 * MIB)

struct slot {
    tarn_ptr ptr; /* 0: empty */
    uint64_t size;
    tarn_stream stream;
    unsigned streams;  /* used on */
    unsigned captured; /* of these, by captures */
    unsigned watched;  /* whose uses the watch has counted already, because its pool was to sleep */
    uint64_t pool;     /* number + 1; 0: none */
    const struct tarn_pool *handle; /* that the request named; NULL: none, or it is gone */
};

struct run {
    struct tarn_device *sim;
    struct page_watch *watch;
    struct tarn_allocator *allocator;
    struct tarn_pool *handles[HANDLES]; /* NULL: the program has none */
    uint64_t limit;                     /* pages that each of them may reserve; 0: no limit */
    struct slot slots[SLOTS];
    uint64_t draws;
    uint64_t pages; /* that may be reserved */
    bool has_faults;
    bool has_pools;
    bool has_captures; /* pages of pools may have to stay */
    bool is_2_11;      /* uses of pools are captures */
    bool is_announced; /* a capture */
    bool is_routed[POOLS];
    bool is_used[POOLS];
    bool is_asleep[POOLS];
    uint64_t latest; /* number + 1 of the pool that requests are routed to; 0: none */
    uint64_t seed;
    uint64_t call;
};

/* Moves, waits, failed requests, calls, sleeps, pages that stay at the end. */
static uint64_t totals[6];

static uint64_t below(struct run *run, uint64_t end)
{
    return draw(&run->draws) % end;
}

/* Every page of the device is counted, and no other. */
static void check_reserved(struct run *run)
{
    struct tarn_stats stats = {.struct_size = sizeof stats};

    tarn_allocator_get_stats(run->allocator, &stats);
    const int64_t reserved = stats.by_pool[TARN_STAT_RESERVED_BYTES][TARN_STAT_ALL].current;
    const uint64_t used = sim_counters(run->sim).used_bytes;

    if ((uint64_t)reserved != used) {
        fail_msg("seed %llu, call %llu: %lld bytes are counted, %llu used",
                 (unsigned long long)run->seed, (unsigned long long)run->call, (long long)reserved,
                 (unsigned long long)used);
    }
}

static void check(struct run *run)
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    if (tarn_allocator_check(run->allocator, &findings) != 0) {
        fail_msg("seed %llu, call %llu: %s", (unsigned long long)run->seed,
                 (unsigned long long)run->call, findings.text[0]);
    }
    check_reserved(run);
    if (page_watch_error(run->watch)) {
        fail_msg("seed %llu, call %llu: %s", (unsigned long long)run->seed,
                 (unsigned long long)run->call, page_watch_error(run->watch));
    }
}

static uint64_t draw_size(struct run *run)
{
    switch (below(run, 4)) {
    case 0:
        return 1 + below(run, 64 * KIB);
    case 1:
        return 1 + below(run, 3 * MIB);
    case 2:
        return PAGE * (1 + below(run, 8));
    default:
        return 1 + below(run, 40 * MIB);
    }
}

/* Nothing but live blocks may keep a request from being served: every other page can be had after
 * waiting. */
static void check_promise(struct run *run, uint64_t size)
{
    const uint64_t live = page_watch_live_pages(run->watch);
    const uint64_t needed = (size + PAGE - 1) / PAGE;

    if (live + needed <= run->pages) {
        fail_msg("seed %llu, call %llu: no memory for %llu pages with %llu of %llu in use",
                 (unsigned long long)run->seed, (unsigned long long)run->call,
                 (unsigned long long)needed, (unsigned long long)live,
                 (unsigned long long)run->pages);
    }
}

static uint64_t last_page(const struct slot *slot)
{
    return (slot->ptr + slot->size - 1) / PAGE;
}

/* Whether a live block of the handle, in a slot below this one, is in the page. */
static bool is_in_page(const struct run *run, const struct tarn_pool *handle, unsigned below_slot,
                       uint64_t page)
{
    bool found = false;

    for (unsigned i = 0; i < below_slot && !found; i++) {
        const struct slot *slot = &run->slots[i];

        found = slot->ptr && slot->handle == handle && slot->ptr / PAGE <= page &&
                page <= last_page(slot);
    }
    return found;
}

/* Pages that live blocks of the handle touch. */
static uint64_t live_pages_of(const struct run *run, const struct tarn_pool *handle)
{
    uint64_t count = 0;

    for (unsigned i = 0; i < SLOTS; i++) {
        const struct slot *slot = &run->slots[i];

        for (uint64_t page = slot->ptr / PAGE;
             slot->ptr && slot->handle == handle && page <= last_page(slot); page++) {
            count += !is_in_page(run, handle, i, page);
        }
    }
    return count;
}

/* Nor do other pages than the handle's own count for its limit. */
static bool is_beyond_limit(const struct run *run, const struct tarn_pool *handle, uint64_t size)
{
    const uint64_t needed = (size + PAGE - 1) / PAGE;

    return handle && run->limit > 0 && live_pages_of(run, handle) + needed > run->limit;
}

static void check_limits(struct run *run)
{
    for (uint64_t i = 0; i < HANDLES && run->limit > 0; i++) {
        struct tarn_pool_stats stats = {.struct_size = sizeof stats};

        assert_int_equal(tarn_pool_get_stats(run->handles[i], &stats), TARN_OK);
        if (stats.reserved > run->limit * PAGE) {
            fail_msg("seed %llu, call %llu: a pool reserves %llu bytes of %llu pages",
                     (unsigned long long)run->seed, (unsigned long long)run->call,
                     (unsigned long long)stats.reserved, (unsigned long long)run->limit);
        }
    }
}

/* One of the next calls of the device fails. */
static bool arm_fault(struct run *run)
{
    static const enum tarn_sim_call calls[] = {
        TARN_SIM_MAP,          TARN_SIM_UNMAP,       TARN_SIM_PAGE_CREATE, TARN_SIM_EVENT_CREATE,
        TARN_SIM_EVENT_RECORD, TARN_SIM_EVENT_QUERY, TARN_SIM_EVENT_WAIT,  TARN_SIM_VA_RESERVE,
        TARN_SIM_STREAM_WAIT,  TARN_SIM_VA_RELEASE,  TARN_SIM_DEVICE_WAIT};
    const bool armed = run->has_faults && below(run, 4) == 0;

    if (armed) {
        const uint64_t kind = below(run, sizeof calls / sizeof calls[0]);

        tarn_sim_fail_nth(run->sim, calls[kind], 1 + below(run, 4),
                          below(run, 2) == 0 ? TARN_ERR_DEVICE : TARN_ERR_HOST_MEMORY);
    }
    return armed;
}

static void disarm_faults(struct run *run)
{
    for (int call = 0; call < TARN_SIM_CALL_COUNT; call++) {
        tarn_sim_fail_nth(run->sim, (enum tarn_sim_call)call, 0, TARN_OK);
    }
}

static bool is_even(void *context, tarn_stream stream)
{
    (void)context;
    return stream % 2 == 0;
}

/* The pool that serves the stream. */
static uint64_t routed_pool(const struct run *run, tarn_stream stream)
{
    return is_even(NULL, stream) ? run->latest : 0;
}

static bool is_capturing(const struct run *run)
{
    return run->is_2_11 ? run->is_routed[0] || run->is_routed[1] : run->is_announced;
}

/* Tells what graphs that were captured into the pool do now, or during the next call. */
static void tell_graphs(struct run *run, uint64_t pool, bool sleeps)
{
    page_watch_graphs(run->watch, (unsigned)pool,
                      !run->is_used[pool] ? WATCH_GONE
                      : sleeps            ? WATCH_ASLEEP
                                          : WATCH_REPLAYED);
}

/* The handle that the next request names; NULL: none. */
static struct tarn_pool *draw_handle(struct run *run)
{
    return run->handles[0] && below(run, 2) == 0 ? run->handles[below(run, HANDLES)] : NULL;
}

static void run_alloc(struct run *run, struct slot *slot)
{
    struct tarn_pool *handle = draw_handle(run);
    const uint64_t size = draw_size(run);
    const tarn_stream stream = below(run, WATCH_STREAMS);
    const uint64_t pool = handle ? 0 : routed_pool(run, stream);
    const bool armed = arm_fault(run);
    const enum tarn_status st =
        handle ? tarn_pool_alloc(handle, size, stream, &slot->ptr, NULL)
               : tarn_allocator_alloc(run->allocator, size, stream, &slot->ptr, NULL);

    disarm_faults(run);
    if (st != TARN_OK) {
        slot->ptr = 0;
        totals[2]++;
        assert_true(st == TARN_ERR_OUT_OF_MEMORY || armed ||
                    (st == TARN_ERR_STATE && pool > 0 && run->is_asleep[pool - 1]));
        if (!armed && !run->has_captures && !run->is_asleep[0] && !run->is_asleep[1] &&
            !is_beyond_limit(run, handle, size)) {
            check_promise(run, size);
        }
        return;
    }
    slot->size = size;
    slot->stream = stream;
    slot->streams = 0;
    slot->captured = 0;
    slot->watched = 0;
    slot->pool = pool;
    slot->handle = handle;
    page_watch_alloc(run->watch, slot->ptr, size, stream);
    if (pool > 0 && is_capturing(run) && (!run->is_2_11 || stream != 0)) {
        page_watch_capture(run->watch, slot->ptr, size, (unsigned)pool - 1);
    }
}

static void slot_leave(struct run *run, const struct slot *slot)
{
    const unsigned uses = (slot->streams & ~slot->captured) | 1u << slot->stream;

    page_watch_free(run->watch, slot->ptr, slot->size, uses);
}

static void run_free(struct run *run, struct slot *slot)
{
    if (slot->pool == 0 || !run->is_asleep[slot->pool - 1]) {
        slot_leave(run, slot);
    }
    assert_int_equal(tarn_allocator_free(run->allocator, slot->ptr, NULL), TARN_OK);
    slot->ptr = 0;
}

static void run_record(struct run *run, struct slot *slot)
{
    const tarn_stream stream = below(run, WATCH_STREAMS);

    if (is_capturing(run) && (slot->watched >> stream & 1)) {
        return; /* the allocator would forget a use that the watch has counted */
    }
    assert_int_equal(tarn_allocator_record_stream(run->allocator, slot->ptr, stream, NULL),
                     TARN_OK);
    /* A use meanwhile is that of a capture, which did not run. Like PyTorch the allocator forgets
     * the stream's other uses of the block with it. */
    slot->captured |= is_capturing(run) ? 1u << stream : 0;
    slot->streams |= 1u << stream;
}

static void run_work(struct run *run)
{
    const tarn_stream stream = below(run, WATCH_STREAMS);

    switch (below(run, 4)) {
    case 0:
        assert_int_equal(tarn_sim_block_stream(run->sim, stream), TARN_OK);
        break;
    case 1:
        (void)!tarn_sim_unblock_stream(run->sim, stream);
        break;
    case 2:
        assert_int_equal(tarn_sim_enqueue_ns(run->sim, stream, below(run, 1000)), TARN_OK);
        break;
    default:
        tarn_sim_advance_ns(run->sim, below(run, 1000));
        break;
    }
}

/* Its blocks leave their pages, or get new ones. */
static void pool_visit(struct run *run, uint64_t pool, bool leave)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        struct slot *slot = &run->slots[i];

        if (slot->ptr && slot->pool == pool + 1 && leave) {
            slot_leave(run, slot);
            slot->watched |= slot->streams & ~slot->captured;
        } else if (slot->ptr && slot->pool == pool + 1) {
            page_watch_alloc(run->watch, slot->ptr, slot->size, slot->stream);
        }
    }
}

static void pool_sleep(struct run *run, uint64_t pool)
{
    const struct tarn_sleep_options discard = {.struct_size = sizeof discard, .discard = true};
    const struct tarn_pool_id id = {1, pool + 1};

    pool_visit(run, pool, true);
    tell_graphs(run, pool, true);
    const bool armed = arm_fault(run);
    const enum tarn_status st = tarn_allocator_sleep(run->allocator, id, &discard, NULL);

    disarm_faults(run);
    run->is_asleep[pool] = tarn_allocator_is_asleep(run->allocator, id);
    assert_true(st == TARN_OK || armed || st == TARN_ERR_STATE || st == TARN_ERR_NOT_FOUND);
    assert_true(st == TARN_OK ? run->is_asleep[pool] : !run->is_asleep[pool] || armed);
    tell_graphs(run, pool, run->is_asleep[pool]);
    if (!run->is_asleep[pool]) {
        pool_visit(run, pool, false);
    }
    totals[4] += st == TARN_OK;
}

static void pool_wake(struct run *run, uint64_t pool)
{
    const struct tarn_pool_id id = {1, pool + 1};
    const bool armed = arm_fault(run);
    const enum tarn_status st = tarn_allocator_wake(run->allocator, id, NULL);

    disarm_faults(run);
    assert_true(st == TARN_OK || armed || st == TARN_ERR_OUT_OF_MEMORY || st == TARN_ERR_STATE ||
                st == TARN_ERR_NOT_FOUND);
    if (st == TARN_OK || st == TARN_ERR_NOT_FOUND) { /* released, and nothing was left in it */
        run->is_asleep[pool] = false;
        tell_graphs(run, pool, false);
        pool_visit(run, pool, false);
    }
}

static void run_pool(struct run *run)
{
    const uint64_t pool = below(run, POOLS);
    const struct tarn_pool_id id = {1, pool + 1};

    if (run->is_routed[pool]) {
        assert_int_equal(tarn_allocator_end_pool(run->allocator, id, NULL), TARN_OK);
        run->is_routed[pool] = false;
        run->latest = run->is_routed[1 - pool] ? 2 - pool : 0;
    } else if (run->is_asleep[pool] && below(run, 2) == 0) {
        pool_wake(run, pool);
    } else if (!run->is_asleep[pool] && below(run, 2) == 0) {
        pool_sleep(run, pool);
    } else if (run->is_used[pool]) {
        run->is_used[pool] = false;
        tell_graphs(run, pool, run->is_asleep[pool]);
        assert_int_equal(tarn_allocator_release_pool(run->allocator, id, NULL), TARN_OK);
    } else if (tarn_allocator_begin_pool(run->allocator, id, is_even, NULL, NULL) == TARN_OK) {
        run->is_routed[pool] = true; /* else the released pool still has segments */
        run->is_used[pool] = true;
        run->latest = pool + 1;
        tell_graphs(run, pool, run->is_asleep[pool]);
    }
}

static void run_capture(struct run *run)
{
    const enum tarn_status st = run->is_announced
                                    ? tarn_allocator_end_capture(run->allocator, NULL)
                                    : tarn_allocator_begin_capture(run->allocator, NULL);

    assert_int_equal(st, TARN_OK);
    run->is_announced = !run->is_announced;
}

static void handle_open(struct run *run, uint64_t index)
{
    const struct tarn_pool_options options = {.struct_size = sizeof options,
                                              .limit = run->limit * PAGE};
    const enum tarn_status st =
        tarn_pool_create(run->allocator, &options, &run->handles[index], NULL);

    assert_int_equal(st, TARN_OK);
}

/* Another takes the place of a handle, whose blocks live on. */
static void run_handle(struct run *run)
{
    const uint64_t index = below(run, HANDLES);

    (void)arm_fault(run);
    tarn_pool_destroy(run->handles[index]);
    for (unsigned i = 0; i < SLOTS; i++) { /* the next one may be at the same address */
        struct slot *slot = &run->slots[i];

        slot->handle = slot->handle == run->handles[index] ? NULL : slot->handle;
    }
    disarm_faults(run);
    handle_open(run, index);
}

static void run_flush(struct run *run)
{
    const bool armed = arm_fault(run);
    const enum tarn_status st = tarn_allocator_empty_cache(run->allocator, NULL);

    disarm_faults(run);
    assert_true(st == TARN_OK || armed);
}

static void run_trim(struct run *run)
{
    const uint64_t target = below(run, 64) * MIB;
    const bool armed = arm_fault(run);
    uint64_t reserved = 0;
    const enum tarn_status st = tarn_allocator_trim(run->allocator, target, &reserved, NULL);

    disarm_faults(run);
    assert_true(st == TARN_OK || armed);
}

static void run_call(struct run *run)
{
    struct slot *slot = &run->slots[below(run, SLOTS)];
    const uint64_t choice = below(run, 100);

    if (choice < 20) {
        run_work(run);
    } else if (choice < 21) {
        run_flush(run);
    } else if (choice < 22) {
        run_trim(run);
    } else if (choice < 25 && run->has_pools) {
        run_pool(run);
    } else if (choice < 27 && run->has_captures && !run->is_2_11) {
        run_capture(run);
    } else if (choice < 28 && run->handles[0]) {
        run_handle(run);
    } else if (slot->ptr == 0) {
        run_alloc(run, slot);
    } else if (choice < 40) {
        run_record(run, slot);
    } else {
        run_free(run, slot);
    }
    for (uint64_t pool = 0; pool < POOLS; pool++) { /* a released one goes with its last block */
        const struct tarn_pool_id id = {1, pool + 1};

        run->is_asleep[pool] = run->is_asleep[pool] && tarn_allocator_is_asleep(run->allocator, id);
    }
    check(run);
    check_limits(run);
}

static void run_open(struct run *run, uint64_t seed)
{
    struct tarn_config config;

    *run = (struct run){.draws = seed, .seed = seed};
    run->pages = 16 + below(run, 100);
    run->has_pools = seed % 3 == 1;
    run->has_faults = seed % 3 == 2;
    run->has_pools = run->has_pools || seed % 12 == 2;
    const bool is_limited = below(run, 2) == 0;

    run->sim = sim_open((is_limited ? 2 : 1) * run->pages * PAGE);
    run->watch = page_watch_open(run->sim);
    assert_non_null(run->watch);
    run->has_captures = run->has_pools && below(run, 3) > 0;
    run->is_2_11 = run->has_captures && below(run, 2) == 0;
    assert_int_equal(
        tarn_config_parse(seed % 4 < 3 ? "policy:compact" : "policy:compact,max_cached_mb:12",
                          &config, NULL),
        TARN_OK);
    config.rules = run->is_2_11 ? TARN_RULES_2_11 : TARN_RULES_2_14;
    assert_int_equal(
        tarn_allocator_create(page_watch_device(run->watch), &config, &run->allocator, NULL),
        TARN_OK);
    run->limit = seed % 5 == 1 ? 8 + below(run, run->pages / 2) : 0;
    for (uint64_t i = 0; i < HANDLES && seed % 5 < 2; i++) {
        handle_open(run, i);
    }
    if (is_limited) {
        assert_int_equal(tarn_allocator_set_memory_fraction(run->allocator, 0.5, NULL), TARN_OK);
    }
}

static void run_close(struct run *run)
{
    totals[0] += page_watch_moves(run->watch);
    totals[1] += page_watch_waits(run->watch);
    totals[3] += run->call;
    totals[5] += page_watch_captured(run->watch);
    page_watch_end(run->watch);
    for (uint64_t i = 0; i < HANDLES; i++) {
        tarn_pool_destroy(run->handles[i]);
    }
    tarn_allocator_destroy(run->allocator);
    const struct tarn_sim_counters left = sim_counters(run->sim);

    assert_int_equal(left.used_bytes, 0);
    assert_int_equal(left.live_pages, 0);
    assert_int_equal(left.live_mappings, 0);
    assert_int_equal(left.live_events, 0);
    page_watch_close(run->watch);
    sim_close(run->sim);
}

static uint64_t first_seed = 1;
static uint64_t programs;

static void run_program(uint64_t seed)
{
    struct run run;

    run_open(&run, seed);
    for (run.call = 0; run.call < CALLS; run.call++) {
        run_call(&run);
    }
    run_close(&run);
}

/* A place was sought below a free block that was large enough by itself, and began in it. */
static void what_once_failed_does_not(void **state)
{
    (void)state;
    run_program(30282086);
}

static void pages_move_in_order(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + programs; seed++) {
        run_program(seed);
    }
    print_message("%llu calls, %llu pages moved, %llu waits of streams, %llu requests failed, %llu "
                  "sleeps, %llu pages stayed\n",
                  (unsigned long long)totals[3], (unsigned long long)totals[0],
                  (unsigned long long)totals[1], (unsigned long long)totals[2],
                  (unsigned long long)totals[4], (unsigned long long)totals[5]);
    if (programs >= PROGRAMS) { /* all of it was tried */
        assert_true(totals[0] > 0 && totals[1] > 0 && totals[2] > 0 && totals[4] > 0 &&
                    totals[5] > 0);
    }
}

int main(int count, char **argument)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_once_failed_does_not),
                                       cmocka_unit_test(pages_move_in_order)};

    first_seed = count > 1 ? strtoull(argument[1], NULL, 10) : first_seed;
    programs = count > 2 ? strtoull(argument[2], NULL, 10) : test_part(PROGRAMS);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
