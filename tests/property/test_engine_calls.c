/* SPDX-License-Identifier: MIT */
/*
 * Random programs of the calls for engines: pools as handles, tries, alignments, limits, pressure,
 * streams, mixed with plain allocations, routes and flushes. What holds after each call: the
 * checker finds nothing, what is reserved is what the device has given, no two live blocks overlap,
 * each pool's counters are those of its live blocks, no limit is passed. At the end everything goes
 * back.
 */
#include "support/test.h"

#include "support/rig.h"
#include "tarn/block.h"
#include "tarn/pool.h"
#include "tarn/pressure.h"
#include "tarn/request.h"

static const char *const settings[] = {
    "",           "expandable_segments:True", "policy:compact",
    "rules:2.14", "max_split_size_mb:64",     "garbage_collection_threshold:0.8",
};

enum {
    LIVE = 48,
    POOLS = 4,
    STREAMS = 3,
    STEPS = 1500,
    SEEDS = 12
};

#define NO_POOL POOLS

struct live {
    tarn_ptr ptr;
    uint64_t requested;
    int pool; /* index, NO_POOL: none of these, or one that was destroyed */
};

struct world {
    struct rig rig;
    uint64_t random;
    struct live live[LIVE];
    struct tarn_pool *pools[POOLS];
    uint64_t limits[POOLS]; /* TARN_SIZE_UNLIMITED = none */
    bool blocked[STREAMS];
    bool routed;
    uint64_t routes; /* so far */
    uint64_t served;
};

static uint64_t draw(struct world *world, uint64_t below)
{
    world->random = world->random * 6364136223846793005U + 1442695040888963407U;
    return (world->random >> 33) % below;
}

static uint64_t draw_size(struct world *world)
{
    static const uint64_t most[] = {2 * KIB, MIB, 12 * MIB, 60 * MIB};

    return draw(world, most[draw(world, 4)]) + 1;
}

static struct live *slot_of(struct world *world, bool in_use)
{
    for (int i = 0; i < 8; i++) {
        struct live *slot = &world->live[draw(world, LIVE)];

        if ((slot->ptr != 0) == in_use) {
            return slot;
        }
    }
    return NULL;
}

static void keep(struct world *world, struct live *slot, enum tarn_status status, tarn_ptr ptr,
                 uint64_t size, int pool)
{
    assert_true(status == TARN_OK || status == TARN_ERR_OUT_OF_MEMORY ||
                status == TARN_ERR_NOT_SUPPORTED);
    if (status == TARN_OK) {
        *slot = (struct live){ptr, size, pool};
        world->served++;
    }
}

/* ---- steps ---- */

static bool is_stream_2(void *context, tarn_stream stream)
{
    (void)context;
    return stream == 2;
}

static void step_alloc(struct world *world, struct live *slot)
{
    const uint64_t size = draw_size(world);
    const tarn_stream stream = draw(world, STREAMS);
    const int pool = (int)draw(world, POOLS + 2);
    struct tarn_alloc_options options = {.struct_size = sizeof options};
    tarn_ptr ptr = 0;

    if (pool < POOLS) {
        options.pool = world->pools[pool];
    }
    if (draw(world, 3) == 0) {
        options.alignment = (uint64_t)1 << draw(world, 23);
    }
    options.flags = draw(world, 2) ? (unsigned)draw(world, 8) : 0;
    const enum tarn_status st =
        tarn_alloc_with(world->rig.allocator, size, stream, &options, &ptr, &world->rig.error);

    if (st == TARN_OK && options.alignment) {
        assert_int_equal(ptr % options.alignment, 0);
    }
    keep(world, slot, st, ptr, size, pool < POOLS ? pool : NO_POOL);
}

static void step_free(struct world *world, struct live *slot)
{
    rig_free(&world->rig, slot->ptr);
    slot->ptr = 0;
}

/* A wait may have unblocked it meanwhile. */
static void step_stream(struct world *world)
{
    const tarn_stream stream = draw(world, STREAMS);
    bool *blocked = &world->blocked[stream];
    const enum tarn_status st = *blocked ? tarn_sim_unblock_stream(world->rig.device, stream)
                                         : tarn_sim_block_stream(world->rig.device, stream);

    assert_true(st == TARN_OK || st == TARN_ERR_STATE);
    *blocked = !*blocked;
}

static void step_pool(struct world *world)
{
    const int i = (int)draw(world, POOLS);
    const uint64_t limit = draw(world, 2) ? (draw(world, 8) + 1) * 20 * MIB : TARN_SIZE_UNLIMITED;
    const struct tarn_pool_options options = {
        .struct_size = sizeof options,
        .priority = (int32_t)draw(world, 5) - 2,
        .limit = limit == TARN_SIZE_UNLIMITED ? 0 : limit,
        .no_split = draw(world, 8) == 0,
        .use_on_oom = draw(world, 8) == 0,
    };

    switch (draw(world, 4)) {
    case 0:
        assert_int_equal(
            tarn_pool_trim(world->pools[i], draw(world, 4) * 20 * MIB, NULL, &world->rig.error),
            TARN_OK);
        break;
    case 1:
        if (limit >= world->limits[i]) { /* a lower one does not take anything away */
            assert_int_equal(tarn_pool_set_limit(world->pools[i], limit, &world->rig.error),
                             TARN_OK);
            world->limits[i] = limit;
        }
        break;
    default:
        tarn_pool_destroy(world->pools[i]);
        for (int k = 0; k < LIVE; k++) {
            world->live[k].pool = world->live[k].pool == i ? NO_POOL : world->live[k].pool;
        }
        assert_int_equal(
            tarn_pool_create(world->rig.allocator, &options, &world->pools[i], &world->rig.error),
            TARN_OK);
        world->limits[i] = limit;
    }
}

static void step_route(struct world *world)
{
    const struct tarn_pool_id id = {0, 77 + world->routes}; /* a released one is not used again */
    struct tarn_allocator *allocator = world->rig.allocator;

    if (!world->routed) {
        assert_int_equal(tarn_allocator_begin_pool(allocator, id, is_stream_2, NULL, NULL),
                         TARN_OK);
    } else {
        assert_int_equal(tarn_allocator_end_pool(allocator, id, NULL), TARN_OK);
        assert_int_equal(tarn_allocator_release_pool(allocator, id, NULL), TARN_OK);
        world->routes++;
        rig_empty_cache(&world->rig);
    }
    world->routed = !world->routed;
}

static void step_rare(struct world *world)
{
    struct rig *rig = &world->rig;

    switch (draw(world, 6)) {
    case 0:
        assert_int_equal(
            tarn_allocator_release_stream(rig->allocator, draw(world, STREAMS), &rig->error),
            TARN_OK);
        break;
    case 1:
        assert_int_equal(tarn_allocator_set_soft_limit(rig->allocator,
                                                       draw(world, 2) ? draw(world, 300) * MIB
                                                                      : TARN_SIZE_UNLIMITED,
                                                       &rig->error),
                         TARN_OK);
        break;
    case 2:
        rig_empty_cache(rig);
        break;
    case 3:
        assert_int_equal(
            tarn_allocator_trim(rig->allocator, draw(world, 300) * MIB, NULL, &rig->error),
            TARN_OK);
        break;
    case 4:
        if (!world->routed || draw(world, 3) == 0) {
            step_route(world);
        }
        break;
    default:
        step_pool(world);
    }
}

/* Frees what it finds first. */
static uint64_t make_room(void *context, const struct tarn_pressure *pressure)
{
    struct world *world = context;
    struct live *slot = slot_of(world, true);

    assert_true(pressure->bytes > 0);
    if (!slot) {
        return 0;
    }
    const uint64_t bytes = tarn_allocator_usable_size(world->rig.allocator, slot->ptr);

    step_free(world, slot);
    return bytes;
}

static void step(struct world *world)
{
    const uint64_t kind = draw(world, 100);
    struct live *empty = slot_of(world, false);
    struct live *used = slot_of(world, true);

    if (kind < 50 && empty) {
        step_alloc(world, empty);
    } else if (kind < 82 && used) {
        step_free(world, used);
    } else if (kind < 88 && used) {
        rig_record(&world->rig, used->ptr, draw(world, STREAMS));
    } else if (kind < 94) {
        step_stream(world);
    } else {
        step_rare(world);
    }
}

/* ---- what holds ---- */

static void expect_apart(const struct world *world)
{
    for (int i = 0; i < LIVE; i++) {
        for (int k = i + 1; k < LIVE; k++) {
            const struct live *a = &world->live[i];
            const struct live *b = &world->live[k];

            assert_true(a->ptr == 0 || b->ptr == 0 || a->ptr + a->requested <= b->ptr ||
                        b->ptr + b->requested <= a->ptr);
        }
    }
}

static void expect_pools(struct world *world)
{
    for (int i = 0; i < POOLS; i++) {
        struct tarn_pool_stats stats = {.struct_size = sizeof stats};
        uint64_t requested = 0;
        uint64_t blocks = 0;

        assert_int_equal(tarn_pool_get_stats(world->pools[i], &stats), TARN_OK);
        for (int k = 0; k < LIVE; k++) {
            if (world->live[k].ptr && world->live[k].pool == i) {
                requested += world->live[k].requested;
                blocks++;
            }
        }
        assert_true(stats.blocks >= blocks); /* others may borrow from it */
        assert_true(stats.requested >= requested);
        assert_true(stats.allocated <= stats.active && stats.active <= stats.reserved);
        assert_true(stats.reserved <= stats.reserved_peak);
        assert_true(stats.reserved <= world->limits[i]);
    }
}

static void run_program(const char *conf, uint64_t seed)
{
    struct world world = {.random = seed};

    rig_open(&world.rig, 400 * MIB, conf);
    assert_int_equal(tarn_allocator_set_limit(world.rig.allocator, 360 * MIB, &world.rig.error),
                     TARN_OK);
    assert_int_equal(tarn_allocator_add_pressure_callback(world.rig.allocator, make_room, &world),
                     TARN_OK);
    for (int i = 0; i < POOLS; i++) {
        assert_int_equal(
            tarn_pool_create(world.rig.allocator, NULL, &world.pools[i], &world.rig.error),
            TARN_OK);
        world.limits[i] = TARN_SIZE_UNLIMITED;
    }
    for (int i = 0; i < STEPS; i++) {
        step(&world);
        rig_check(&world.rig);
        assert_int_equal(sim_counters(world.rig.device).used_bytes,
                         rig_now(&world.rig, TARN_STAT_RESERVED_BYTES));
        /* PyTorch's limit is compared with segments; pages of expandable ones are larger. */
        assert_true(rig_now(&world.rig, TARN_STAT_RESERVED_BYTES) <= (int64_t)(380 * MIB));
        if (i % 8 == 0) {
            expect_apart(&world);
            expect_pools(&world);
        }
    }
    assert_true(world.served > STEPS / 8);
    if (world.routed) {
        step_route(&world);
    }
    for (int i = 0; i < LIVE; i++) {
        rig_free(&world.rig, world.live[i].ptr);
    }
    for (int i = 0; i < POOLS; i++) {
        tarn_pool_destroy(world.pools[i]);
    }
    rig_empty_cache(&world.rig);
    assert_int_equal(rig_now(&world.rig, TARN_STAT_RESERVED_BYTES), 0);
    assert_int_equal(rig_now(&world.rig, TARN_STAT_ACTIVE), 0);
    rig_close(&world.rig);
}

static void random_programs_keep_every_promise(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            run_program(settings[i], seed);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_programs_keep_every_promise),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
