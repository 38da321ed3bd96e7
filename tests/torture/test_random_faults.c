/* SPDX-License-Identifier: MIT */
/*
 * Random programs in which calls fail: of the host's memory, with and without what the allocator
 * keeps ahead, and of the device, up to two kinds in one step. test_torture has every failure of
 * chosen programs; here are the states that nobody chose: settings that change, pools with limits,
 * priorities and names, shared pages, streams that are behind, routing, sleep, checkpoints and
 * callbacks in any order. After each step
 *
 *   - the status is one that the step can have, and that of a failure only if one was planned;
 *   - the checker finds nothing;
 *   - a failed step handed out nothing.
 *
 * At the end everything that was handed out can be freed, and nothing leaks but pages that the
 * device refused to release.
 */
#include "support/test.h"

#include "base/host_mem.h"
#include "support/draw.h"
#include "support/rig.h"
#include "support/scarce.h"
#include "tarn/block.h"
#include "tarn/graph_pool.h"
#include "tarn/ipc.h"
#include "tarn/peer.h"
#include "tarn/pool.h"
#include "tarn/pressure.h"
#include "tarn/request.h"
#include "tarn/sleep.h"

#include <stdlib.h>

enum {
    PROGRAMS = 1500,
    STEPS = 400,
    SLOTS = 24,
    STREAMS = 3,
    POOLS = 3,
    CAPACITY_MIB = 160,
    MESSAGE = 4096
};

static const char *const settings[] = {
    "",
    "policy:compact",
    "expandable_segments:True",
    "policy:compact,max_cached_mb:4",
    "max_split_size_mb:20",
    "policy:compact,rules:2.14",
    "expandable_segments:True,max_split_size_mb:24",
    "garbage_collection_threshold:0.3",
    "graph_capture_record_stream_reuse:True",
    "policy:compact,max_split_size_mb:32",
    "release_lock_on_cudamalloc:True,throw_on_cudamalloc_oom:True",
    "rules:2.14,expandable_segments:True",
};

enum {
    SETTINGS = sizeof settings / sizeof settings[0]
};

struct run {
    struct rig rig;
    uint64_t seed;
    uint64_t number;      /* of the program */
    tarn_ptr slot[SLOTS]; /* handed out */
    struct tarn_pool *pools[POOLS];
    struct tarn_checkpoint *checkpoint;
    struct tarn_pool_id routed; /* {0, 0}: no requests are */
    bool captures;              /* that was announced */
    tarn_stream route;
    bool is_planned;     /* a failure, of this step */
    bool keeps_contents; /* of pools that sleep; else there are none */
    bool may_report;     /* a query that failed in an earlier step */
    int calling_back;    /* callbacks that may free something */
    unsigned lost;       /* refusals to release or to unmap a page */
};

static uint64_t drawn(struct run *run, uint64_t below)
{
    return draw(&run->seed) % below;
}

static bool one_in(struct run *run, uint64_t count)
{
    return drawn(run, count) == 0;
}

static tarn_stream any_stream(struct run *run)
{
    return (tarn_stream)drawn(run, STREAMS) * 0x100;
}

static uint64_t any_size(struct run *run)
{
    const uint64_t most[] = {4 * KIB, MIB, 8 * MIB, 12 * MIB, 24 * MIB, 60 * MIB};

    const uint64_t size = 1 + drawn(run, most[drawn(run, 6)]);

    return size < 2 * MIB || one_in(run, 3) ? size : size / (2 * MIB) * 2 * MIB; /* whole pages */
}

static tarn_ptr *any_slot(struct run *run, bool taken)
{
    const uint64_t from = drawn(run, SLOTS);

    for (uint64_t i = 0; i < SLOTS; i++) {
        tarn_ptr *slot = &run->slot[(from + i) % SLOTS];

        if ((*slot != 0) == taken) {
            return slot;
        }
    }
    return NULL;
}

/* ---- failures ---- */

/* Those that can fail on a device that works again afterwards. */
static const enum tarn_sim_call device_calls[] = {
    TARN_SIM_ALLOC,         TARN_SIM_FREE,
    TARN_SIM_EVENT_CREATE,  TARN_SIM_EVENT_RECORD,
    TARN_SIM_EVENT_QUERY,   TARN_SIM_EVENT_WAIT,
    TARN_SIM_VA_RESERVE,    TARN_SIM_VA_RELEASE,
    TARN_SIM_PAGE_CREATE,   TARN_SIM_PAGE_RELEASE,
    TARN_SIM_MAP,           TARN_SIM_UNMAP,
    TARN_SIM_STREAM_WAIT,   TARN_SIM_VA_GRANT,
    TARN_SIM_HOST_ALLOC,    TARN_SIM_COPY,
    TARN_SIM_DEVICE_WAIT,   TARN_SIM_CAPTURE_INFO,
    TARN_SIM_MEMORY_INFO,   TARN_SIM_PAGE_EXPORT,
    TARN_SIM_STREAM_CREATE, TARN_SIM_STREAM_WAIT_EVENT,
};

enum {
    DEVICE_CALLS = sizeof device_calls / sizeof device_calls[0]
};

static void plan_device(struct run *run)
{
    const enum tarn_sim_call call = device_calls[drawn(run, DEVICE_CALLS)];
    const bool is_full =
        one_in(run, 2) && (call == TARN_SIM_ALLOC || call == TARN_SIM_PAGE_CREATE ||
                           call == TARN_SIM_MAP || call == TARN_SIM_VA_RESERVE);

    tarn_sim_fail_nth(run->rig.device, call, 1 + drawn(run, one_in(run, 2) ? 2 : 8),
                      is_full ? TARN_ERR_OUT_OF_MEMORY : TARN_ERR_DEVICE);
    run->may_report = run->may_report || call == TARN_SIM_EVENT_QUERY;
    run->lost += call == TARN_SIM_PAGE_RELEASE || call == TARN_SIM_UNMAP;
}

static void plan(struct run *run)
{
    run->is_planned = true;
    switch (drawn(run, 8)) {
    case 0:
    case 1:
        scarce_begin(run->rig.allocator);
        tarn_host_fail_nth(1 + drawn(run, 10));
        break;
    case 2:
        tarn_host_fail_nth(1 + drawn(run, 3));
        break;
    case 3:
        plan_device(run);
        plan_device(run);
        break;
    case 4:
    case 5:
        plan_device(run);
        break;
    default:
        run->is_planned = false;
        break;
    }
}

static void plan_end(struct run *run)
{
    tarn_host_fail_nth(0);
    for (int call = 0; call < TARN_SIM_CALL_COUNT; call++) {
        tarn_sim_fail_nth(run->rig.device, (enum tarn_sim_call)call, 0, TARN_OK);
    }
    scarce_end();
}

/* ---- steps ---- */

static tarn_ptr free_one(struct run *run)
{
    tarn_ptr *slot = run->calling_back > 0 ? any_slot(run, true) : NULL;
    const tarn_ptr freed = slot ? *slot : 0;

    if (slot && tarn_allocator_free(run->rig.allocator, *slot, NULL) == TARN_OK) {
        run->calling_back--;
        *slot = 0;
        return freed;
    }
    return 0;
}

static bool on_memory(void *context, struct tarn_allocator *allocator, uint64_t size,
                      tarn_stream stream)
{
    (void)allocator;
    (void)size;
    (void)stream;
    return free_one(context) != 0;
}

static uint64_t on_pressure(void *context, const struct tarn_pressure *pressure)
{
    return free_one(context) ? pressure->bytes : 0;
}

static bool is_routed(void *context, tarn_stream stream)
{
    return ((const struct run *)context)->route == stream;
}

static enum tarn_status any_alloc(struct run *run)
{
    struct tarn_allocator *a = run->rig.allocator;
    const uint64_t size = any_size(run);
    const tarn_stream stream = any_stream(run);
    struct tarn_pool *pool = run->pools[drawn(run, POOLS)];
    const struct tarn_alloc_options aligned = {
        .struct_size = sizeof aligned, .pool = one_in(run, 2) ? pool : NULL, .alignment = 2 * MIB};
    const unsigned flags = (unsigned)drawn(run, 8);
    tarn_ptr *slot = any_slot(run, false);
    enum tarn_status st = TARN_OK;
    tarn_ptr ptr = 0;

    if (!slot) {
        return TARN_OK;
    }
    switch (drawn(run, 8)) {
    case 0:
        st = tarn_alloc_try(a, size, stream, flags, &ptr);
        break;
    case 1:
        st = pool ? tarn_pool_alloc_try(pool, size, stream, flags, &ptr) : TARN_OK;
        break;
    case 2:
        st = tarn_alloc_with(a, size, stream, &aligned, &ptr, &run->rig.error);
        break;
    case 3:
    case 4:
        st = pool ? tarn_pool_alloc(pool, size, stream, &ptr, &run->rig.error) : TARN_OK;
        break;
    default:
        st = tarn_allocator_alloc(a, size, stream, &ptr, &run->rig.error);
        break;
    }
    assert_true(st == TARN_OK || ptr == 0);
    *slot = ptr;
    return st;
}

static enum tarn_status any_use(struct run *run)
{
    struct tarn_allocator *a = run->rig.allocator;
    tarn_ptr *slot = any_slot(run, true);
    char message[MESSAGE];
    size_t length;
    enum tarn_status st;

    if (!slot) {
        return TARN_OK;
    }
    switch (drawn(run, 24)) {
    case 0: /* sharing keeps pages where they are, so seldom */
        return tarn_ipc_export(a, *slot, message, sizeof message, &length, &run->rig.error);
    case 1:
    case 2:
    case 3:
    case 4:
        return tarn_allocator_record_stream(a, *slot, any_stream(run), &run->rig.error);
    default:
        st = tarn_allocator_free(a, *slot, &run->rig.error);
        *slot = st ? *slot : 0;
        return st;
    }
}

/* Frees a block and asks for a part of it. */
static enum tarn_status any_alloc_at(struct run *run)
{
    struct tarn_allocator *a = run->rig.allocator;
    tarn_ptr *slot = any_slot(run, true);
    uint64_t size;

    if (!slot || tarn_allocator_block_size(a, *slot, &size, NULL) != TARN_OK) {
        return TARN_OK;
    }
    const tarn_ptr at = *slot + drawn(run, size / 512) * 512;
    enum tarn_status st = tarn_allocator_free(a, *slot, &run->rig.error);

    if (st) {
        return st;
    }
    st = tarn_allocator_alloc_at(a, 1 + drawn(run, size), any_stream(run), at, &run->rig.error);
    *slot = st ? 0 : at;
    return st;
}

static enum tarn_status any_release(struct run *run)
{
    struct tarn_allocator *a = run->rig.allocator;
    struct tarn_pool *pool = run->pools[drawn(run, POOLS)];
    const uint64_t target = drawn(run, CAPACITY_MIB) * MIB;

    switch (drawn(run, 5)) {
    case 0:
        return tarn_allocator_empty_cache(a, &run->rig.error);
    case 1:
        return tarn_allocator_trim(a, target, NULL, &run->rig.error);
    case 2:
        return tarn_allocator_release_stream(a, any_stream(run), &run->rig.error);
    case 3:
        return pool ? tarn_pool_trim(pool, target / 4, NULL, &run->rig.error) : TARN_OK;
    default:
        return tarn_allocator_empty_pool(a, run->routed, &run->rig.error);
    }
}

static enum tarn_status any_sleep(struct run *run)
{
    struct tarn_allocator *a = run->rig.allocator;
    const struct tarn_pool *pool = run->pools[drawn(run, POOLS)];
    const struct tarn_sleep_options how = {.struct_size = sizeof how,
                                           .discard = one_in(run, 2) || !run->keeps_contents,
                                           .keep_host = one_in(run, 2)};

    if (!pool) {
        return TARN_OK;
    }
    const struct tarn_pool_id id = tarn_pool_get_id(pool);

    return tarn_allocator_is_asleep(a, id) ? tarn_allocator_wake(a, id, &run->rig.error)
                                           : tarn_allocator_sleep(a, id, &how, &run->rig.error);
}

static void adopt(struct run *run, const struct tarn_checkpoint_delta *delta)
{
    for (size_t i = 0; i < delta->freed_count; i++) {
        for (int s = 0; s < SLOTS; s++) {
            run->slot[s] = run->slot[s] == delta->freed[i] ? 0 : run->slot[s];
        }
    }
    for (size_t i = 0; i < delta->created_count; i++) {
        tarn_ptr *slot = any_slot(run, false);

        if (slot) {
            *slot = delta->created[i];
        } else {
            assert_int_equal(tarn_allocator_free(run->rig.allocator, delta->created[i], NULL),
                             TARN_OK);
        }
    }
}

static enum tarn_status any_checkpoint(struct run *run)
{
    struct tarn_allocator *a = run->rig.allocator;
    const struct tarn_pool *pool = run->pools[drawn(run, POOLS)];
    struct tarn_checkpoint_delta delta = {0};
    struct tarn_checkpoint *taken = NULL;
    enum tarn_status st;

    if (!pool) {
        return TARN_OK;
    }
    if (run->checkpoint && one_in(run, 2)) {
        st = tarn_allocator_set_checkpoint(a, run->checkpoint, &delta, &run->rig.error);
        if (st == TARN_OK) {
            plan_end(run);
            adopt(run, &delta);
            tarn_checkpoint_delta_fini(&delta);
        }
        return st;
    }
    st = tarn_allocator_get_checkpoint(a, tarn_pool_get_id(pool), &taken, &run->rig.error);
    if (st == TARN_OK) {
        tarn_checkpoint_destroy(run->checkpoint);
        run->checkpoint = taken;
    }
    return st;
}

/* Begins or ends a routing of one stream to a pool. */
static enum tarn_status any_route(struct run *run)
{
    struct tarn_allocator *a = run->rig.allocator;
    enum tarn_status st;

    if (run->routed.second == 0) {
        const struct tarn_pool *pool = run->pools[drawn(run, POOLS)];
        const struct tarn_pool_id id = pool && one_in(run, 2)
                                           ? tarn_pool_get_id(pool)
                                           : (struct tarn_pool_id){0, 100 + drawn(run, 2)};

        run->route = any_stream(run);
        st = tarn_allocator_begin_pool(a, id, is_routed, run, &run->rig.error);
        if (st == TARN_OK) {
            run->routed = id;
            run->captures =
                one_in(run, 2) && tarn_allocator_begin_capture(a, &run->rig.error) == TARN_OK;
        }
        return st;
    }
    if (run->captures) {
        assert_int_equal(tarn_allocator_end_capture(a, &run->rig.error), TARN_OK);
        run->captures = false;
    }
    st = tarn_allocator_end_pool(a, run->routed, &run->rig.error);
    if (st == TARN_OK) {
        st = tarn_allocator_release_pool(a, run->routed, &run->rig.error);
        run->routed = (struct tarn_pool_id){0, 0};
    }
    return st;
}

/* A source of segments: the device, too. */
static tarn_ptr source_alloc(void *context, uint64_t size, tarn_stream stream)
{
    struct tarn_device *device = ((struct run *)context)->rig.device;
    uint64_t address = 0;

    (void)stream;
    return device->ops->alloc(device, size, &address) == TARN_OK ? address : 0;
}

static void source_free(void *context, tarn_ptr ptr)
{
    struct tarn_device *device = ((struct run *)context)->rig.device;

    while (device->ops->free(device, ptr) != TARN_OK) {
    }
}

static enum tarn_status any_pool(struct run *run)
{
    const uint64_t i = drawn(run, POOLS);
    const struct tarn_pool_source source = {
        .struct_size = sizeof source, .context = run, .alloc = source_alloc, .free = source_free};
    const struct tarn_pool_options options = {.struct_size = sizeof options,
                                              .priority = (int32_t)drawn(run, 3) - 1,
                                              .limit = one_in(run, 3) ? 0 : 44 * MIB,
                                              .no_split = one_in(run, 6),
                                              .use_on_oom = one_in(run, 3),
                                              .source = one_in(run, 5) ? &source : NULL,
                                              .pages_stay = one_in(run, 6)};

    if (!run->pools[i]) {
        return tarn_pool_create(run->rig.allocator, &options, &run->pools[i], &run->rig.error);
    }
    if (one_in(run, 3)) {
        tarn_pool_destroy(run->pools[i]);
        run->pools[i] = NULL;
        return TARN_OK;
    }
    return tarn_pool_set_limit(run->pools[i], drawn(run, 3) * 30 * MIB, &run->rig.error);
}

static enum tarn_status any_setting(struct run *run)
{
    struct tarn_allocator *a = run->rig.allocator;
    struct tarn_config config;
    struct tarn_config now;

    switch (drawn(run, 4)) {
    case 0:
        tarn_allocator_get_config(a, &now);
        config = now;
        assert_int_equal(tarn_config_update(settings[drawn(run, SETTINGS)], &config, NULL),
                         TARN_OK);
        config.policy = now.policy; /* which is there to stay */
        return tarn_allocator_set_config(a, &config, &run->rig.error);
    case 1:
        return tarn_allocator_set_limit(
            a, one_in(run, 2) ? TARN_SIZE_UNLIMITED : (40 + drawn(run, 160)) * MIB,
            &run->rig.error);
    case 2:
        return tarn_allocator_set_soft_limit(
            a, one_in(run, 2) ? TARN_SIZE_UNLIMITED : (20 + drawn(run, 100)) * MIB,
            &run->rig.error);
    default:
        return tarn_allocator_add_peer(a, 1 + (int)drawn(run, 2), &run->rig.error);
    }
}

/* What happens to the device. */
static enum tarn_status outside(struct run *run)
{
    struct tarn_device *device = run->rig.device;
    const tarn_stream stream = any_stream(run);

    switch (drawn(run, 9)) {
    case 0:
        return tarn_sim_block_stream(device, stream);
    case 6:
        (void)!tarn_sim_join_stream(device, stream, any_stream(run));
        return TARN_OK;
    case 7:
        return tarn_sim_enqueue_ns(device, stream, 1000000);
    case 8:
        return tarn_sim_set_capturing(device, run->route, run->captures && one_in(run, 2));
    case 1:
    case 2:
        (void)!tarn_sim_unblock_stream(device, stream);
        return TARN_OK;
    case 3:
        tarn_sim_set_foreign_memory(device, drawn(run, 3) * 20 * MIB);
        return TARN_OK;
    case 4:
        run->calling_back = (int)drawn(run, 4);
        return TARN_OK;
    default:
        tarn_sim_advance_ns(device, drawn(run, 40) * 1000000);
        return TARN_OK;
    }
}

static enum tarn_status step(struct run *run)
{
    static const struct {
        enum tarn_status (*make)(struct run *run);
        unsigned weight;
    } steps[] = {
        {any_alloc, 40}, {any_use, 34},  {any_release, 6}, {outside, 18},    {any_alloc_at, 3},
        {any_sleep, 4},  {any_route, 3}, {any_pool, 3},    {any_setting, 2}, {any_checkpoint, 2},
    };
    const size_t kinds = sizeof steps / sizeof steps[0];
    unsigned left = (unsigned)drawn(run, 115); /* their sum */
    size_t i = 0;

    while (i + 1 < kinds && left >= steps[i].weight) {
        left -= steps[i++].weight;
    }
    return steps[i].make(run);
}

/* ---- programs ---- */

/* An event that could not be queried may be reported later. */
static bool is_expected(const struct run *run, enum tarn_status st)
{
    if (st == TARN_ERR_HOST_MEMORY) {
        return run->is_planned;
    }
    if (st == TARN_ERR_DEVICE) {
        return run->is_planned || run->may_report;
    }
    return st == TARN_OK || st == TARN_ERR_OUT_OF_MEMORY || st == TARN_ERR_STATE ||
           st == TARN_ERR_NOT_FOUND || st == TARN_ERR_NOT_SUPPORTED || st == TARN_ERR_LIMIT;
}

static void check_slots(struct run *run)
{
    uint64_t size;

    for (int i = 0; i < SLOTS; i++) {
        if (run->slot[i]) {
            assert_int_equal(
                tarn_allocator_block_size(run->rig.allocator, run->slot[i], &size, NULL), TARN_OK);
        }
    }
}

static void run_step(struct run *run)
{
    plan(run);
    const enum tarn_status st = step(run);

    plan_end(run);
    if (!is_expected(run, st)) {
        fail_msg("program %llu: status %s, %s", (unsigned long long)run->number,
                 tarn_status_name(st), run->rig.error.text);
    }
    rig_check(&run->rig);
}

static void wake_all(struct run *run)
{
    for (int i = 0; i < POOLS; i++) {
        if (run->pools[i] &&
            tarn_allocator_is_asleep(run->rig.allocator, tarn_pool_get_id(run->pools[i]))) {
            (void)!tarn_allocator_wake(run->rig.allocator, tarn_pool_get_id(run->pools[i]), NULL);
        }
    }
}

static void free_all(struct run *run)
{
    for (int i = 0; i < SLOTS; i++) {
        if (run->slot[i]) {
            enum tarn_status st = TARN_ERR_DEVICE;

            for (int tries = 0; st && tries < 3; tries++) { /* a failed query is reported once */
                st = tarn_allocator_free(run->rig.allocator, run->slot[i], &run->rig.error);
            }
            assert_int_equal(st, TARN_OK);
        }
    }
    for (int i = 0; i < POOLS; i++) {
        tarn_pool_destroy(run->pools[i]);
    }
}

static void run_end(struct run *run)
{
    check_slots(run);
    if (run->routed.second != 0) {
        assert_int_equal(any_route(run), TARN_OK);
    }
    wake_all(run);
    free_all(run);
    tarn_checkpoint_destroy(run->checkpoint);
    rig_check(&run->rig);
    tarn_allocator_destroy(run->rig.allocator);
    const struct tarn_sim_counters left = sim_counters(run->rig.device);

    assert_in_range(left.live_pages, 0, run->lost);
    assert_int_equal(left.live_allocations, 0);
    assert_int_equal(left.live_events, 0);
    assert_int_equal(left.live_host, 0);
    if (run->lost == 0) {
        assert_int_equal(left.used_bytes + left.live_mappings + left.live_reservations, 0);
    }
    sim_close(run->rig.device);
    assert_int_equal(tarn_host_get_usage().live_bytes, run->rig.host_bytes);
}

static void run_program(uint64_t number)
{
    struct run run = {.seed = number, .number = number, .keeps_contents = number % 5 == 0};

    rig_open_with(
        &run.rig,
        (struct tarn_sim_options){.capacity = CAPACITY_MIB * MIB, .backed = run.keeps_contents},
        settings[number % SETTINGS]);
    if (number % 3 == 0) {
        assert_int_equal(tarn_allocator_add_memory_callback(run.rig.allocator, on_memory, &run),
                         TARN_OK);
        assert_int_equal(tarn_allocator_add_pressure_callback(run.rig.allocator, on_pressure, &run),
                         TARN_OK);
    }
    for (int i = 0; i < STEPS; i++) {
        run_step(&run);
    }
    run_end(&run);
}

static uint64_t first_program = 1;
static uint64_t programs = PROGRAMS;

static void survives(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < programs; i++) {
        run_program(first_program + i);
    }
}

/* test_random_faults [FIRST [COUNT]] */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(survives)};

    first_program = argc > 1 ? strtoull(argv[1], NULL, 10) : first_program;
    programs = argc > 2 ? strtoull(argv[2], NULL, 10) : programs;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
