/* SPDX-License-Identifier: MIT */
/*
 * test_async [SEED [PROGRAMS]]: random calls with backend:cudaMallocAsync, on several streams whose
 * work ends in any order, beside a second allocator on a device of its own
 * (property/async_reference.h). Both get the same calls, and both devices the same work. After
 * every call the two agree on the status, the address, the message of a request that failed, every
 * counter, the limit and the size of a block; the allocator's invariants hold. No request gets
 * memory that a live block has, nor such as work of another stream may still use. In some programs
 * the same device call fails for both, or other processes take memory. In the end all of it is
 * given back, whether the blocks were freed or not.
 */
#include "property/async_reference.h"
#include "support/any_stream.h"
#include "support/draw.h"
#include "support/share.h"
#include "support/sim.h"
#include "tarn/allocator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LIVE = 48, /* blocks, about */
    CALLS = 400,
    PROGRAMS = 1500
};

#define UNIT (32 * MIB) /* in which the simulated pool takes memory from its device */

static const struct tarn_pool_id capture = {0, 1};

struct run {
    struct tarn_device *sim;
    struct tarn_allocator *allocator;
    struct async_reference reference;
    struct tarn_error error; /* of the allocator's last call that failed */
    uint64_t capacity;
    tarn_ptr gone;           /* freed a while ago */
    uint64_t max_split_size; /* of the settings */
    enum tarn_sim_call fault;
    bool has_faults;
    uint64_t draws;
    uint64_t seed;
    uint64_t call;
};

enum total {
    REQUESTS_BEYOND_LIMIT,
    REQUESTS_BEYOND_DEVICE,
    DEVICE_FAILURES,
    CACHES_EMPTIED,
    BLOCKS_JOINED,
    BLOCKS_PUT_OFF,
    STREAMS_JOINED,
    BLOCKS_LEFT,
    TOTALS
};

static const char *const total_names[TOTALS] = {
    "requests beyond the limit",
    "requests beyond the device",
    "device failures",
    "caches emptied",
    "blocks of several streams",
    "blocks kept by captures",
    "streams joined with captures",
    "blocks left to the destruction",
};
static uint64_t totals[TOTALS];

static uint64_t below(struct run *run, uint64_t end)
{
    return draw(&run->draws) % end;
}

static bool one_in(struct run *run, uint64_t times)
{
    return below(run, times) == 0;
}

/* ---- comparing ---- */

static void expect(const struct run *run, const char *what, uint64_t value, uint64_t expected)
{
    if (value != expected) {
        fail_msg("seed %llu, call %llu: %s: %llu (%#llx), should be %llu (%#llx)",
                 (unsigned long long)run->seed, (unsigned long long)run->call, what,
                 (unsigned long long)value, (unsigned long long)value, (unsigned long long)expected,
                 (unsigned long long)expected);
    }
}

static void expect_text(const struct run *run, const char *text, const char *expected)
{
    if (strcmp(text, expected) != 0) {
        fail_msg("seed %llu, call %llu: message\n%s\nshould be\n%s", (unsigned long long)run->seed,
                 (unsigned long long)run->call, text, expected);
    }
}

/* Whether every counter is the same: all that follows struct_size and its padding are numbers of
 * 8 bytes. */
static bool stats_are_same(const struct tarn_stats *a, const struct tarn_stats *b)
{
    const size_t from = offsetof(struct tarn_stats, oversize_allocations);

    return memcmp((const char *)a + from, (const char *)b + from, sizeof *a - from) == 0;
}

/* Only bytes allocated, active and reserved are counted, without small and large. */
static void check_stats(const struct run *run)
{
    const struct async_reference *reference = &run->reference;
    const uint64_t used = reference_used(reference);
    struct tarn_stats expected = {.struct_size = sizeof expected};
    struct tarn_stats stats = {.struct_size = sizeof stats};
    const struct tarn_stat bytes = {.current = (int64_t)used,
                                    .peak = (int64_t)reference->used_peak};
    const struct tarn_stat reserved = {.current = (int64_t)reference_reserved(reference),
                                       .peak = (int64_t)reference->reserved_peak};

    tarn_allocator_get_stats(run->allocator, &stats);
    expected.by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL] = bytes;
    expected.by_pool[TARN_STAT_ACTIVE_BYTES][TARN_STAT_ALL] = bytes;
    expected.by_pool[TARN_STAT_RESERVED_BYTES][TARN_STAT_ALL] = reserved;
    for (int kind = 0; kind < TARN_STAT_KINDS; kind++) {
        const struct tarn_stat *value = &stats.by_pool[kind][TARN_STAT_ALL];
        const struct tarn_stat *other = &expected.by_pool[kind][TARN_STAT_ALL];

        expect(run, tarn_stat_kind_name((enum tarn_stat_kind)kind), (uint64_t)value->current,
               (uint64_t)other->current);
        expect(run, "its peak", (uint64_t)value->peak, (uint64_t)other->peak);
    }
    expect(run, "other counters differ", !stats_are_same(&stats, &expected), 0);
    expect(run, "bytes of the device", sim_counters(run->sim).used_bytes,
           (uint64_t)reserved.current);
    expect(run, "bytes beyond whole units", (uint64_t)reserved.current % UNIT, 0);
    expect(run, "more is used than reserved", used > (uint64_t)reserved.current, 0);
}

static void check_limit(const struct run *run)
{
    const uint64_t limit = run->reference.limit;
    const double fraction =
        limit == TARN_SIZE_UNLIMITED ? 1.0 : (double)limit / (double)run->capacity;

    expect(run, "limit", tarn_allocator_get_limit(run->allocator), limit);
    expect(run, "the fraction differs",
           tarn_allocator_get_memory_fraction(run->allocator) != fraction, 0);
}

/* What is said of an address, whether a block begins there or not. */
static void check_block(const struct run *run, tarn_ptr ptr)
{
    const struct reference_block *block = reference_find(&run->reference, ptr);
    const enum tarn_status expected = block ? TARN_OK : TARN_ERR_INVALID_POINTER;
    tarn_ptr base = 0;
    uint64_t size = 0;
    uint64_t whole = 0;

    expect(run, "status of a block's size",
           tarn_allocator_block_size(run->allocator, ptr, &size, NULL), expected);
    expect(run, "status of a block's base",
           tarn_allocator_base_allocation(run->allocator, ptr, &base, &whole, NULL), expected);
    expect(run, "size of a block", size, block ? block->size : 0);
    expect(run, "size of its allocation", whole, block ? block->size : 0);
    expect(run, "base of a block", base, block ? ptr : 0);
}

/* An address that calls are given: mostly that of a block, which a capture may have kept. */
static tarn_ptr draw_ptr(struct run *run)
{
    const struct async_reference *reference = &run->reference;
    const uint64_t choice = below(run, 32);

    if (choice == 0 || reference->count == 0) {
        return 0;
    }
    if (choice == 1) {
        return run->gone;
    }
    const struct reference_block *block = &reference->blocks[below(run, reference->count)];

    return choice == 2 ? block->ptr + 512 : block->ptr;
}

static void check(struct run *run)
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    check_stats(run);
    check_limit(run);
    for (unsigned i = 0; i < 2; i++) {
        const tarn_ptr ptr = draw_ptr(run);

        if (ptr != 0) {
            check_block(run, ptr);
        }
    }
    (void)tarn_allocator_check(run->allocator, &findings);
    if (run->call % 16 == 0) {
        (void)tn_sim_check(tn_sim_from(run->sim), &findings);
    }
    if (findings.count != 0) {
        fail_msg("seed %llu, call %llu: %s", (unsigned long long)run->seed,
                 (unsigned long long)run->call, findings.text[0]);
    }
}

/* ---- failures of the device ---- */

static void plan(const struct run *run, enum tarn_sim_call call, uint64_t n, enum tarn_status st)
{
    tarn_sim_fail_nth(run->sim, call, n, st);
    tarn_sim_fail_nth(run->reference.device, call, n, st);
}

/* Perhaps one of the next device calls fails, for both. */
static void arm(struct run *run)
{
    static const enum tarn_sim_call calls[] = {
        TARN_SIM_POOL_ALLOC,    TARN_SIM_POOL_FREE,         TARN_SIM_POOL_TRIM,
        TARN_SIM_EVENT_RECORD,  TARN_SIM_STREAM_WAIT_EVENT, TARN_SIM_MEMORY_INFO,
        TARN_SIM_STREAM_CREATE, TARN_SIM_EVENT_CREATE,      TARN_SIM_DEVICE_WAIT};
    static const enum tarn_status statuses[] = {TARN_ERR_DEVICE, TARN_ERR_HOST_MEMORY,
                                                TARN_ERR_OUT_OF_MEMORY};

    run->fault = TARN_SIM_CALL_COUNT;
    if (run->has_faults && one_in(run, 4)) {
        run->fault = calls[below(run, sizeof calls / sizeof calls[0])];
        plan(run, run->fault, 1 + below(run, 3), statuses[below(run, 3)]);
    }
}

/* Both calls have been made: their statuses. */
static void compare(struct run *run, const char *call, enum tarn_status st,
                    enum tarn_status expected)
{
    if (run->fault != TARN_SIM_CALL_COUNT) {
        plan(run, run->fault, 0, TARN_OK);
        totals[DEVICE_FAILURES] += expected != TARN_OK && expected != TARN_ERR_OUT_OF_MEMORY &&
                                   expected != TARN_ERR_INVALID_POINTER;
    }
    expect(run, call, st, expected);
}

/* ---- calls ---- */

/* As much as the limit leaves, or one byte more. */
static uint64_t draw_rest(struct run *run)
{
    const uint64_t used = reference_used(&run->reference);
    const uint64_t limit =
        run->reference.limit < run->capacity ? run->reference.limit : run->capacity;

    return (limit > used ? limit - used : 0) + below(run, 2);
}

static uint64_t draw_size(struct run *run)
{
    switch (below(run, 16)) {
    case 0:
        return UNIT * (1 + below(run, 3));
    case 1:
        return 1 + below(run, run->capacity);
    case 2:
        return below(run, 4) * 512;
    case 3:
        return draw_rest(run);
    case 4:
        return one_in(run, 4) ? ((uint64_t)1 << 60) - below(run, 2) : 1 + below(run, 100 * MIB);
    default:
        return 1 + below(run, one_in(run, 2) ? 64 * KIB : 40 * MIB);
    }
}

static void count_refusal(const struct run *run, uint64_t size)
{
    const bool allowed = reference_used(&run->reference) + size <= run->reference.limit;

    totals[allowed ? REQUESTS_BEYOND_DEVICE : REQUESTS_BEYOND_LIMIT]++;
}

static void run_alloc(struct run *run)
{
    const uint64_t size = draw_size(run);
    const tarn_stream stream = below(run, CLOCK_STREAMS);
    tarn_ptr ptr = 1;
    tarn_ptr expected = 1;

    arm(run);
    const enum tarn_status st =
        tarn_allocator_alloc(run->allocator, size, stream, &ptr, &run->error);

    compare(run, "status of an allocation", st,
            reference_alloc(&run->reference, size, stream, &expected));
    expect(run, "address", ptr, expected);
    if (st == TARN_ERR_OUT_OF_MEMORY && run->fault == TARN_SIM_CALL_COUNT) {
        expect_text(run, run->error.text, run->reference.oom_text);
        count_refusal(run, size);
    }
}

static void run_free(struct run *run)
{
    const tarn_ptr ptr = draw_ptr(run);

    arm(run);
    const enum tarn_status st = tarn_allocator_free(run->allocator, ptr, NULL);

    compare(run, "status of a free", st, reference_free(&run->reference, ptr));
    run->gone = ptr != 0 && st == TARN_OK ? ptr : run->gone;
}

static void run_record(struct run *run)
{
    const tarn_ptr ptr = draw_ptr(run);
    const tarn_stream stream = below(run, CLOCK_STREAMS);

    arm(run);
    const enum tarn_status st = tarn_allocator_record_stream(run->allocator, ptr, stream, NULL);

    compare(run, "status of a use", st, reference_record_stream(&run->reference, ptr, stream));
}

/* What stays after it: the units that live blocks touch, which may be one more than they fill. */
static void check_emptied(const struct run *run)
{
    uint64_t most = 0;

    for (unsigned i = 0; i < run->reference.count; i++) {
        most += (run->reference.blocks[i].size / UNIT + 2) * UNIT;
    }
    expect(run, "more is reserved than live blocks touch", sim_counters(run->sim).used_bytes > most,
           0);
}

static void run_empty(struct run *run)
{
    arm(run);
    const enum tarn_status st = tarn_allocator_empty_cache(run->allocator, NULL);

    compare(run, "status of emptying the cache", st, reference_empty_cache(&run->reference));
    if (st == TARN_OK) {
        totals[CACHES_EMPTIED]++;
        check_emptied(run);
    }
}

static void run_trim(struct run *run)
{
    const uint64_t target = below(run, run->capacity + 1);
    uint64_t reserved = 0;

    arm(run);
    const enum tarn_status st = tarn_allocator_trim(run->allocator, target, &reserved, NULL);

    compare(run, "status of a trim", st, reference_trim(&run->reference, target));
    expect(run, "reserved after a trim", reserved, reference_reserved(&run->reference));
}

static void run_cache_info(struct run *run)
{
    uint64_t largest = 7;
    uint64_t expected = 7;

    arm(run);
    const enum tarn_status st = tarn_allocator_cache_info(run->allocator, &largest, NULL);

    compare(run, "status of a trial", st, reference_cache_info(&run->reference, &expected));
    expect(run, "the most that can be allocated", largest, expected);
}

static void run_limit(struct run *run)
{
    static const double fractions[] = {0.0, 1.0, 0.5, -0.25, 1.5};
    const uint64_t choice = below(run, 12);
    const double fraction =
        choice < 5 ? fractions[choice] : 0.25 + (double)below(run, 1000) / 1333.4;

    arm(run);
    const enum tarn_status st = tarn_allocator_set_memory_fraction(run->allocator, fraction, NULL);

    compare(run, "status of a limit", st, reference_set_fraction(&run->reference, fraction));
}

static void begin_capture(struct run *run)
{
    const enum tarn_status st =
        tarn_allocator_begin_pool(run->allocator, capture, any_stream, NULL, NULL);

    compare(run, "status of beginning a capture", st, reference_begin(&run->reference));
}

/* Mostly as a capture ends, with the stream that captures behind all frees. */
static void end_capture(struct run *run)
{
    const enum tarn_status st = tarn_allocator_end_pool(run->allocator, capture, NULL);

    compare(run, "status of ending a capture", st, reference_end(&run->reference));
    if (!one_in(run, 4)) {
        const tarn_stream stream = below(run, CLOCK_STREAMS);

        totals[STREAMS_JOINED] += run->reference.freed_on_count;
        arm(run);
        const enum tarn_status joined =
            tarn_allocator_join_frees(run->allocator, stream, &run->error);

        compare(run, "status of joining frees", joined,
                reference_join_frees(&run->reference, stream));
    }
}

static void run_capture(struct run *run)
{
    run->fault = TARN_SIM_CALL_COUNT;
    if (run->reference.capturing == one_in(run, 8)) { /* mostly what may be done now */
        begin_capture(run);
    } else {
        end_capture(run);
    }
    expect(run, "status of releasing a pool",
           tarn_allocator_release_pool(run->allocator, capture, NULL), TARN_OK);
}

/* If the device does not reset its peaks, they stay. */
static void run_reset(struct run *run)
{
    const bool fails = run->has_faults && one_in(run, 4);

    tarn_allocator_reset_accumulated_stats(run->allocator); /* does nothing */
    tarn_sim_fail_nth(run->sim, TARN_SIM_POOL_RESET_PEAKS, fails, TARN_ERR_DEVICE);
    tarn_allocator_reset_peak_stats(run->allocator);
    if (!fails) {
        reference_reset_peaks(&run->reference);
    }
}

/* What the device does not say is 0. */
static void run_unknown_stats(struct run *run)
{
    const struct tarn_stats nothing = {.struct_size = sizeof nothing};
    struct tarn_stats stats = {.struct_size = sizeof stats};

    tarn_sim_fail_nth(run->sim, one_in(run, 2) ? TARN_SIM_POOL_INFO : TARN_SIM_POOL_PEAKS, 1,
                      TARN_ERR_DEVICE);
    tarn_allocator_get_stats(run->allocator, &stats);
    expect(run, "unknown counters differ from 0", !stats_are_same(&stats, &nothing), 0);
}

/* Settings of PyTorch's own allocator change nothing here; the backend stays. */
static void run_settings(struct run *run)
{
    const bool native = one_in(run, 2);
    struct tarn_config config;

    tarn_allocator_get_config(run->allocator, &config);
    expect(run, "backend", config.backend, TARN_BACKEND_ASYNC);
    expect(run, "max_split_size", config.max_split_size, run->max_split_size);
    config.max_split_size = (20 + below(run, 100)) * MIB;
    config.backend = native ? TARN_BACKEND_NATIVE : TARN_BACKEND_ASYNC;
    expect(run, "status of new settings", tarn_allocator_set_config(run->allocator, &config, NULL),
           native ? TARN_ERR_CONFIG : TARN_OK);
    run->max_split_size = native ? run->max_split_size : config.max_split_size;
    expect(run, "status of switching off", tarn_allocator_set_enabled(run->allocator, false, NULL),
           TARN_ERR_NOT_SUPPORTED);
    expect(run, "is on", tarn_allocator_is_enabled(run->allocator), true);
}

/* ---- work of the devices ---- */

static void run_foreign(struct run *run)
{
    const uint64_t bytes = one_in(run, 2) ? 0 : below(run, run->capacity / 2);

    tarn_sim_set_foreign_memory(run->sim, bytes);
    tarn_sim_set_foreign_memory(run->reference.device, bytes);
}

static void queue_work(struct run *run, unsigned stream)
{
    const uint64_t ns = below(run, 1000);

    expect(run, "status of work", tarn_sim_enqueue_ns(run->sim, stream, ns), TARN_OK);
    expect(run, "status of work", tarn_sim_enqueue_ns(run->reference.device, stream, ns), TARN_OK);
    clock_work_add(&run->reference.clock, stream, ns);
}

static void block(struct run *run, unsigned stream)
{
    expect(run, "status of blocking", tarn_sim_block_stream(run->sim, stream), TARN_OK);
    expect(run, "status of blocking", tarn_sim_block_stream(run->reference.device, stream),
           TARN_OK);
    clock_block(&run->reference.clock, stream);
}

static void unblock(struct run *run, unsigned stream)
{
    const enum tarn_status expected =
        clock_unblock(&run->reference.clock, stream) ? TARN_OK : TARN_ERR_STATE;

    expect(run, "status of unblocking", tarn_sim_unblock_stream(run->sim, stream), expected);
    expect(run, "status of unblocking", tarn_sim_unblock_stream(run->reference.device, stream),
           expected);
}

static void join_streams(struct run *run, unsigned stream)
{
    const unsigned other = (unsigned)below(run, CLOCK_STREAMS);

    expect(run, "status of joining", tarn_sim_join_stream(run->sim, stream, other), TARN_OK);
    expect(run, "status of joining", tarn_sim_join_stream(run->reference.device, stream, other),
           TARN_OK);
    clock_join(&run->reference.clock, stream, other);
}

static void advance(struct run *run)
{
    const uint64_t ns = below(run, 1000);

    tarn_sim_advance_ns(run->sim, ns);
    tarn_sim_advance_ns(run->reference.device, ns);
    clock_advance(&run->reference.clock, ns);
    expect(run, "time of the device", tarn_sim_now_ns(run->sim), run->reference.clock.now);
}

static void run_work(struct run *run)
{
    const unsigned stream = (unsigned)below(run, CLOCK_STREAMS);

    switch (below(run, 10)) {
    case 0:
        block(run, stream);
        break;
    case 1:
    case 2:
        unblock(run, stream);
        break;
    case 3:
        join_streams(run, stream);
        break;
    case 4:
    case 5:
    case 6:
        queue_work(run, stream);
        break;
    default:
        advance(run);
        break;
    }
}

/* ---- programs ---- */

static void run_rare(struct run *run)
{
    switch (below(run, 12)) {
    case 0:
    case 1:
        run_empty(run);
        break;
    case 2:
    case 3:
        run_trim(run);
        break;
    case 4:
        run_cache_info(run);
        break;
    case 5:
    case 6:
        run_reset(run);
        break;
    case 7:
        run_unknown_stats(run);
        break;
    case 8:
        run_settings(run);
        break;
    case 9:
        run_foreign(run);
        break;
    default:
        run_limit(run);
        break;
    }
}

static void run_call(struct run *run)
{
    const uint64_t choice = below(run, 100);
    const bool is_full = run->reference.count >= LIVE;

    if (choice < 25) {
        run_work(run);
    } else if (choice < 33) {
        run_rare(run);
    } else if (choice < 37) {
        run_capture(run);
    } else if (choice < 50) {
        run_record(run);
    } else if (choice < 76 && !is_full) {
        run_alloc(run);
    } else {
        run_free(run);
    }
    if (run->reference.wrong) {
        fail_msg("seed %llu, call %llu: %s", (unsigned long long)run->seed,
                 (unsigned long long)run->call, run->reference.wrong);
    }
    check(run);
}

static void run_open(struct run *run, uint64_t seed)
{
    struct tarn_config config;

    memset(run, 0, sizeof *run);
    run->draws = seed;
    run->seed = seed;
    run->has_faults = seed % 3 == 0;
    run->capacity = UNIT * (2 + below(run, 16)) + (one_in(run, 2) ? 0 : below(run, UNIT));
    run->sim = sim_open(run->capacity);
    reference_open(&run->reference, sim_open(run->capacity));
    assert_int_equal(tarn_config_parse("backend:cudaMallocAsync", &config, NULL), TARN_OK);
    run->max_split_size = config.max_split_size;
    assert_int_equal(tarn_allocator_create(run->sim, &config, &run->allocator, &run->error),
                     TARN_OK);
}

/* Frees all that is alive, after the last capture; then nothing is reserved. */
static void free_all(struct run *run)
{
    struct async_reference *reference = &run->reference;

    run->fault = TARN_SIM_CALL_COUNT;
    if (reference->capturing) {
        compare(run, "status of ending a capture",
                tarn_allocator_end_pool(run->allocator, capture, NULL), reference_end(reference));
    }
    while (reference->count > 0) {
        const struct reference_block *block = &reference->blocks[reference->count - 1];
        const tarn_ptr ptr = block->ptr;

        if (block->deferred > 0) {
            compare(run, "status of emptying the cache",
                    tarn_allocator_empty_cache(run->allocator, NULL),
                    reference_empty_cache(reference));
            continue;
        }
        compare(run, "status of a free", tarn_allocator_free(run->allocator, ptr, NULL),
                reference_free(reference, ptr));
    }
    compare(run, "status of emptying the cache", tarn_allocator_empty_cache(run->allocator, NULL),
            reference_empty_cache(reference));
    check(run);
    expect(run, "bytes left in the pool", sim_counters(run->sim).used_bytes, 0);
}

static void run_close(struct run *run)
{
    if (one_in(run, 2)) {
        free_all(run);
    }
    totals[BLOCKS_JOINED] += run->reference.joined;
    totals[BLOCKS_PUT_OFF] += run->reference.put_off;
    totals[BLOCKS_LEFT] += run->reference.count;
    tarn_allocator_destroy(run->allocator);
    const struct tarn_sim_counters left = sim_counters(run->sim);

    expect(run, "bytes left", left.used_bytes, 0);
    expect(run, "events left", left.live_events, 0);
    expect(run, "streams left", left.live_streams, 0);
    reference_close(&run->reference);
    sim_close(run->sim);
}

static uint64_t first_seed = 1;
static uint64_t programs;

static void run_program(uint64_t seed)
{
    static struct run run; /* too large for a stack */
    const uint64_t live = tarn_host_get_usage().live_bytes;

    run_open(&run, seed);
    for (run.call = 0; run.call < CALLS; run.call++) {
        run_call(&run);
    }
    run_close(&run);
    expect(&run, "bytes of the host", tarn_host_get_usage().live_bytes, live);
}

static void programs_are_answered_alike(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + programs; seed++) {
        run_program(seed);
    }
    for (unsigned i = 0; i < TOTALS; i++) {
        print_message("%llu %s%s", (unsigned long long)totals[i], total_names[i],
                      i + 1 < TOTALS ? ", " : "\n");
        assert_true(programs < PROGRAMS || totals[i] > 0); /* all of it was tried */
    }
}

int main(int count, char **argument)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(programs_are_answered_alike)};

    first_seed = count > 1 ? strtoull(argument[1], NULL, 10) : first_seed;
    programs = count > 2 ? strtoull(argument[2], NULL, 10) : test_part(PROGRAMS);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
