/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "support/sim.h"
#include "support/system_use.h"

#include <string.h>

enum {
    S1 = 1,
    S2 = 2
};

#define CHUNK (32 * MIB)

static tarn_ptr pool_alloc(struct tarn_device *device, uint64_t size, tarn_stream stream)
{
    tarn_ptr address = 0;

    assert_int_equal(device->ops->pool_alloc(device, size, stream, &address), TARN_OK);
    return address;
}

static void pool_free(struct tarn_device *device, tarn_ptr address, tarn_stream stream)
{
    assert_int_equal(device->ops->pool_free(device, address, stream), TARN_OK);
}

static void expect_pool(struct tarn_device *device, uint64_t reserved, uint64_t used)
{
    uint64_t got_reserved = 0;
    uint64_t got_used = 0;

    assert_int_equal(device->ops->pool_info(device, &got_reserved, &got_used), TARN_OK);
    assert_int_equal(got_reserved, reserved);
    assert_int_equal(got_used, used);
}

static void pool_grows_by_chunks_and_cuts_blocks(void **state)
{
    struct tarn_device *device = sim_open(GIB);

    (void)state;
    expect_pool(device, 0, 0);
    const tarn_ptr a = pool_alloc(device, 1, S1);
    const tarn_ptr b = pool_alloc(device, 513, S1);
    assert_int_equal(b, a + 512);
    expect_pool(device, CHUNK, 1 + 513);
    const tarn_ptr c = pool_alloc(device, CHUNK + 1, S1);
    assert_int_equal(c % 512, 0);
    expect_pool(device, 3 * CHUNK, CHUNK + 1 + 1 + 513);
    assert_int_equal(sim_counters(device).used_bytes, 3 * CHUNK);
    assert_int_equal(sim_counters(device).live_allocations, 0);
    pool_free(device, a, S1);
    pool_free(device, b, S1);
    pool_free(device, c, S1);
    expect_pool(device, 3 * CHUNK, 0);
    sim_close(device);
}

static void same_stream_reuses_at_once(void **state)
{
    struct tarn_device *device = sim_open(GIB);

    (void)state;
    const tarn_ptr a = pool_alloc(device, CHUNK, S1);
    assert_int_equal(tarn_sim_block_stream(device, S1), TARN_OK);
    pool_free(device, a, S1);
    assert_int_equal(pool_alloc(device, CHUNK, S1), a);
    sim_close(device);
}

static void other_stream_reuses_when_the_free_was_reached(void **state)
{
    struct tarn_device *device = sim_open(GIB);

    (void)state;
    const tarn_ptr a = pool_alloc(device, CHUNK, S1);
    assert_int_equal(tarn_sim_enqueue_ns(device, S1, 100), TARN_OK);
    pool_free(device, a, S1);
    const tarn_ptr b = pool_alloc(device, CHUNK, S2);
    assert_true(b != a);
    tarn_sim_advance_ns(device, 100);
    assert_int_equal(pool_alloc(device, CHUNK, S2), a);
    expect_pool(device, 2 * CHUNK, 2 * CHUNK);
    sim_close(device);
}

static void neighbours_freed_by_two_streams_merge_when_reached(void **state)
{
    struct tarn_device *device = sim_open(CHUNK);
    tarn_ptr out = 0;

    (void)state;
    const tarn_ptr a = pool_alloc(device, CHUNK / 2, S1);
    const tarn_ptr b = pool_alloc(device, CHUNK / 2, S1);
    assert_int_equal(tarn_sim_enqueue_ns(device, S1, 10), TARN_OK);
    pool_free(device, a, S1);
    pool_free(device, b, S2);
    assert_int_equal(device->ops->pool_alloc(device, CHUNK, S2, &out), TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(out, 0);
    tarn_sim_advance_ns(device, 10);
    assert_int_equal(pool_alloc(device, CHUNK, S2), a);
    sim_close(device);
}

/* Whatever the stream has still to do: it would use both only after that. */
static void neighbours_freed_by_one_stream_merge_at_once(void **state)
{
    (void)state;
    for (int order = 0; order < 2; order++) {
        struct tarn_device *device = sim_open(CHUNK);
        const tarn_ptr a = pool_alloc(device, CHUNK / 2, S1);
        const tarn_ptr b = pool_alloc(device, CHUNK / 2, S1);

        assert_int_equal(tarn_sim_block_stream(device, S1), TARN_OK);
        pool_free(device, order == 0 ? a : b, S1);
        pool_free(device, order == 0 ? b : a, S1);
        assert_int_equal(pool_alloc(device, CHUNK, S1), a);
        sim_close(device);
    }
}

static void a_neighbour_that_is_not_reached_stays_apart(void **state)
{
    struct tarn_device *device = sim_open(CHUNK);
    const tarn_ptr a = pool_alloc(device, CHUNK / 2, S1);
    const tarn_ptr b = pool_alloc(device, CHUNK / 2, S1);

    (void)state;
    assert_int_equal(tarn_sim_enqueue_ns(device, S2, 10), TARN_OK);
    pool_free(device, a, S1);
    pool_free(device, b, S2);
    assert_int_equal(pool_alloc(device, CHUNK / 2, S1), a);
    sim_close(device);
}

/* Two streams' blocks merge when both are done; the first stream's later block is not. */
static void merging_waits_for_each_of_three(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    const tarn_stream s3 = 3;
    const tarn_ptr a = pool_alloc(device, CHUNK / 4, S1);
    const tarn_ptr b = pool_alloc(device, CHUNK / 4, S1);
    const tarn_ptr c = pool_alloc(device, CHUNK / 2, S1);

    (void)state;
    pool_free(device, a, S1);
    assert_int_equal(tarn_sim_enqueue_ns(device, S2, 10), TARN_OK);
    pool_free(device, b, S2);
    assert_int_equal(tarn_sim_enqueue_ns(device, S1, 100), TARN_OK);
    pool_free(device, c, S1);
    tarn_sim_advance_ns(device, 10);
    const tarn_ptr more = pool_alloc(device, CHUNK / 4 * 3, s3);

    assert_int_not_equal(more, a);
    expect_pool(device, 2 * CHUNK, CHUNK / 4 * 3);
    assert_int_equal(pool_alloc(device, CHUNK / 2, s3), a);
    sim_close(device);
}

static void what_merges_is_used_before_the_pool_grows(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    const tarn_ptr a = pool_alloc(device, CHUNK / 4, S1);
    const tarn_ptr b = pool_alloc(device, CHUNK / 4, S1);

    (void)state;
    (void)pool_alloc(device, CHUNK / 2, S1); /* no whole unit is free */
    assert_int_equal(tarn_sim_enqueue_ns(device, S1, 10), TARN_OK);
    pool_free(device, a, S1);
    pool_free(device, b, S2);
    tarn_sim_advance_ns(device, 10);
    assert_int_equal(pool_alloc(device, CHUNK / 2, S2), a);
    expect_pool(device, CHUNK, CHUNK);
    sim_close(device);
}

/* Nothing merges while a block fits as it is; what merges spares the pool growing. */
static void blocks_merge_before_the_pool_grows(void **state)
{
    struct tarn_device *device = sim_open(GIB);

    (void)state;
    const tarn_ptr below = sim_alloc_ok(device, CHUNK);
    const tarn_ptr a = pool_alloc(device, 512, S1);
    const tarn_ptr b = pool_alloc(device, CHUNK - 512, S2);

    assert_int_equal(b, a + 512);
    assert_int_equal(tarn_sim_enqueue_ns(device, S1, 10), TARN_OK);
    pool_free(device, a, S1);
    pool_free(device, b, S2);
    tarn_sim_advance_ns(device, 10);
    assert_int_equal(pool_alloc(device, CHUNK - 512, S2), b);
    pool_free(device, b, S2);
    assert_int_equal(device->ops->free(device, below), TARN_OK); /* where a new chunk would be */
    assert_int_equal(pool_alloc(device, CHUNK, S2), a);
    expect_pool(device, CHUNK, CHUNK);
    pool_free(device, a, S2);
    sim_close(device);
}

static void a_block_has_its_own_bytes_only(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    const struct tn_sim *sim = tn_sim_from(device);
    const tarn_ptr a = pool_alloc(device, 512, S1);

    (void)state;
    assert_true(tn_sim_pool_covers(sim, a, 512));
    assert_true(tn_sim_pool_covers(sim, a + 511, 1));
    assert_false(tn_sim_pool_covers(sim, a, 513));
    assert_false(tn_sim_pool_covers(sim, a + 511, 2));
    assert_false(tn_sim_pool_covers(sim, a + 512, 1));
    const tarn_ptr b = pool_alloc(device, CHUNK, S1); /* all of a chunk */

    assert_true(tn_sim_pool_covers(sim, b, CHUNK));
    assert_false(tn_sim_pool_covers(sim, b + CHUNK, 0));
    assert_false(tn_sim_pool_covers(sim, a - 1, 1)); /* before the first of all blocks */
    pool_free(device, b, S1);
    pool_free(device, a, S1);
    assert_false(tn_sim_pool_covers(sim, a, 1));
    sim_close(device);
}

static void growth_gives_back_free_chunks_first(void **state)
{
    struct tarn_device *device = sim_open(2 * CHUNK);

    (void)state;
    pool_free(device, pool_alloc(device, CHUNK, S1), S1);
    const tarn_ptr a = pool_alloc(device, 2 * CHUNK, S1);
    expect_pool(device, 2 * CHUNK, 2 * CHUNK);
    pool_free(device, a, S1);
    sim_close(device);
}

static void growth_moves_whole_free_units(void **state)
{
    struct tarn_device *device = sim_open(GIB);

    (void)state;
    const tarn_ptr a = pool_alloc(device, 3 * CHUNK, S1);
    const tarn_ptr b = pool_alloc(device, CHUNK, S1);
    const tarn_ptr c = pool_alloc(device, 2 * CHUNK, S1);
    pool_free(device, a, S1);
    pool_free(device, c, S1);
    const tarn_ptr cut = pool_alloc(device, CHUNK / 2, S1); /* of c, the best fit */
    expect_pool(device, 6 * CHUNK, CHUNK + CHUNK / 2);
    const tarn_ptr d = pool_alloc(device, 4 * CHUNK, S1); /* one unit of c, all of a */
    expect_pool(device, 6 * CHUNK, 5 * CHUNK + CHUNK / 2);
    pool_free(device, d, S1);
    pool_free(device, cut, S1);
    pool_free(device, b, S1);
    assert_int_equal(device->ops->pool_trim(device, 0), TARN_OK);
    expect_pool(device, 0, 0);
    assert_int_equal(sim_counters(device).used_bytes, 0);
    sim_close(device);
}

/* As many units as the request needs; blocks that have none to give do not count. */
static void growth_moves_no_more_than_it_needs(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    tarn_ptr block[4];

    (void)state;
    for (int i = 0; i < 4; i++) {
        block[i] = pool_alloc(device, CHUNK, S1);
    }
    for (int i = 1; i < 4; i++) {
        pool_free(device, block[i], S1);
    }
    const tarn_ptr first = pool_alloc(device, 2 * CHUNK, S1);

    expect_pool(device, 4 * CHUNK, 3 * CHUNK);
    pool_free(device, first, S1);
    expect_pool(device, 4 * CHUNK, CHUNK);
    assert_int_equal(device->ops->pool_trim(device, CHUNK), TARN_OK);
    pool_free(device, block[0], S1);
    for (int i = 0; i < 3; i++) {
        block[i] = pool_alloc(device, CHUNK, S1);
    }
    assert_int_equal(tarn_sim_block_stream(device, S2), TARN_OK);
    for (int i = 0; i < 3; i++) {
        pool_free(device, block[i],
                  block[i] < block[(i + 1) % 3] && block[i] < block[(i + 2) % 3]
                      ? S2 /* the first that is looked at */
                      : S1);
    }
    (void)pool_alloc(device, 2 * CHUNK, S1);
    expect_pool(device, 3 * CHUNK, 2 * CHUNK);
    sim_close(device);
}

static void without_host_memory_for_the_rest_others_give_their_units(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    const tarn_ptr big = pool_alloc(device, 3 * CHUNK, S1);
    const tarn_ptr others[2] = {pool_alloc(device, 3 * CHUNK, S1),
                                pool_alloc(device, 3 * CHUNK, S1)};

    (void)state;
    pool_free(device, big, S1);
    const tarn_ptr low = pool_alloc(device, CHUNK / 2, S1);
    const tarn_ptr mid = pool_alloc(device, 2 * CHUNK, S1); /* with one unit in its middle */

    (void)pool_alloc(device, CHUNK / 2, S1);
    assert_int_equal(mid, low + CHUNK / 2);
    pool_free(device, mid, S1);
    pool_free(device, others[0], S1);
    pool_free(device, others[1], S1);
    expect_pool(device, 9 * CHUNK, CHUNK);
    tarn_host_fail_nth(3);
    (void)pool_alloc(device, 4 * CHUNK, S1);
    tarn_host_fail_nth(0);
    expect_pool(device, 9 * CHUNK, 5 * CHUNK);
    sim_close(device);
}

/* A chunk stays while one of its blocks is left, whichever. */
static void a_chunk_goes_with_its_last_block(void **state)
{
    (void)state;
    for (int high = 0; high < 2; high++) {
        struct tarn_device *device = sim_open(GIB);
        const tarn_ptr both = pool_alloc(device, 2 * CHUNK, S1);

        pool_free(device, both, S1);
        const tarn_ptr halves[2] = {pool_alloc(device, CHUNK, S1), pool_alloc(device, CHUNK, S1)};

        assert_int_equal(halves[0], both);
        assert_int_equal(halves[1], both + CHUNK);
        pool_free(device, halves[high], S1);
        assert_int_equal(device->ops->pool_trim(device, 0), TARN_OK);
        expect_pool(device, CHUNK, CHUNK);
        assert_true(tn_sim_pool_covers(tn_sim_from(device), halves[1 - high], CHUNK));
        assert_non_null(tn_sim_space_first(&tn_sim_from(device)->space));
        pool_free(device, halves[1 - high], S1);
        assert_int_equal(device->ops->pool_trim(device, 0), TARN_OK);
        expect_pool(device, 0, 0);
        assert_null(tn_sim_space_first(&tn_sim_from(device)->space));
        sim_close(device);
    }
}

static void units_behind_unfinished_work_stay(void **state)
{
    struct tarn_device *device = sim_open(GIB);

    (void)state;
    const tarn_ptr a = pool_alloc(device, CHUNK, S1);
    assert_int_equal(tarn_sim_enqueue_ns(device, S1, 10), TARN_OK);
    pool_free(device, a, S1);
    const tarn_ptr b = pool_alloc(device, 2 * CHUNK, S1);
    expect_pool(device, 3 * CHUNK, 2 * CHUNK);
    pool_free(device, b, S1);
    tarn_sim_advance_ns(device, 10);
    (void)pool_alloc(device, 4 * CHUNK, S2);
    expect_pool(device, 4 * CHUNK, 4 * CHUNK);
    sim_close(device);
}

static void units_in_the_middle_of_a_block_leave_two(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    tarn_ptr block[4];

    (void)state;
    for (int i = 0; i < 4; i++) {
        block[i] =
            pool_alloc(device, i == 3 ? 512 : CHUNK - 512, S1); /* one chunk each but the last */
    }
    const tarn_ptr big = pool_alloc(device, 3 * CHUNK, S1);
    pool_free(device, big, S1);
    const tarn_ptr low = pool_alloc(device, CHUNK / 2, S1);
    const tarn_ptr mid = pool_alloc(device, 2 * CHUNK, S1);
    const tarn_ptr high = pool_alloc(device, CHUNK / 2, S1);
    pool_free(device, mid, S1);
    expect_pool(device, 6 * CHUNK, 3 * (CHUNK - 512) + 512 + CHUNK);
    tarn_host_fail_nth(3); /* the record of the second part: nothing is moved, the pool grows */
    const tarn_ptr far = pool_alloc(device, 3 * CHUNK, S1);
    tarn_host_fail_nth(0);
    expect_pool(device, 9 * CHUNK, 3 * (CHUNK - 512) + 512 + 4 * CHUNK);
    pool_free(device, far, S1);
    assert_int_equal(device->ops->pool_trim(device, 0), TARN_OK);
    expect_pool(device, 5 * CHUNK, 3 * (CHUNK - 512) + 512 + CHUNK);
    pool_free(device, low, S1);
    pool_free(device, high, S1);
    for (int i = 0; i < 4; i++) {
        pool_free(device, block[i], S1);
    }
    assert_int_equal(device->ops->pool_trim(device, 0), TARN_OK);
    expect_pool(device, 0, 0);
    sim_close(device);
}

static void peaks_are_kept_until_reset(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    uint64_t reserved = 0;
    uint64_t used = 0;

    (void)state;
    assert_int_equal(device->ops->pool_peaks(device, &reserved, &used), TARN_OK);
    assert_int_equal(reserved, 0);
    assert_int_equal(used, 0);
    pool_free(device, pool_alloc(device, CHUNK + 5, S1), S1);
    assert_int_equal(device->ops->pool_trim(device, 0), TARN_OK);
    assert_int_equal(device->ops->pool_peaks(device, &reserved, &used), TARN_OK);
    assert_int_equal(reserved, 2 * CHUNK);
    assert_int_equal(used, CHUNK + 5);
    (void)pool_alloc(device, 7, S1);
    assert_int_equal(device->ops->pool_reset_peaks(device), TARN_OK);
    assert_int_equal(device->ops->pool_peaks(device, &reserved, &used), TARN_OK);
    assert_int_equal(reserved, CHUNK);
    assert_int_equal(used, 7);
    sim_close(device);
}

static void trim_keeps_what_it_is_told(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    tarn_ptr block[4];

    (void)state;
    for (int i = 0; i < 4; i++) {
        block[i] = pool_alloc(device, CHUNK, S1);
    }
    for (int i = 0; i < 3; i++) {
        pool_free(device, block[i], S1);
    }
    assert_int_equal(device->ops->pool_trim(device, 3 * CHUNK - 1), TARN_OK);
    expect_pool(device, 3 * CHUNK, CHUNK);
    assert_int_equal(device->ops->pool_trim(device, 3 * CHUNK), TARN_OK); /* as it is */
    expect_pool(device, 3 * CHUNK, CHUNK);
    assert_int_equal(device->ops->pool_trim(device, 4 * CHUNK), TARN_OK); /* more than there is */
    expect_pool(device, 3 * CHUNK, CHUNK);
    assert_int_equal(device->ops->pool_trim(device, 0), TARN_OK);
    expect_pool(device, CHUNK, CHUNK);
    assert_int_equal(tarn_sim_block_stream(device, S1), TARN_OK);
    pool_free(device, block[3], S1);
    assert_int_equal(device->ops->pool_trim(device, 0), TARN_OK);
    expect_pool(device, CHUNK, 0); /* the stream has not reached the free */
    assert_int_equal(tarn_sim_unblock_stream(device, S1), TARN_OK);
    assert_int_equal(device->ops->pool_trim(device, 0), TARN_OK);
    expect_pool(device, 0, 0);
    sim_close(device);
}

static void misuse_is_refused(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    tarn_ptr out = 5;

    (void)state;
    const tarn_ptr a = pool_alloc(device, 512, S1);
    assert_int_equal(device->ops->pool_alloc(device, 0, S1, &out), TARN_ERR_DEVICE);
    assert_int_equal(device->ops->pool_alloc(device, UINT64_MAX, S1, &out), TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(device->ops->pool_alloc(device, UINT64_MAX - MIB, S1, &out),
                     TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(out, 5);
    assert_int_equal(device->ops->pool_free(device, a + 512, S1), TARN_ERR_DEVICE);
    assert_int_equal(device->ops->free(device, a), TARN_ERR_DEVICE);
    pool_free(device, a, S1);
    assert_int_equal(device->ops->pool_free(device, a, S1), TARN_ERR_DEVICE);
    assert_non_null(strstr(device->ops->last_error(device), "pool_free"));
    sim_close(device);
}

static void backed_blocks_have_memory(void **state)
{
    struct tarn_device *device = sim_open_with((struct tarn_sim_options){.backed = true});
    const int descriptors = open_descriptors();

    (void)state;
    const tarn_ptr a = pool_alloc(device, 1024, S1);
    assert_int_equal(open_descriptors(), descriptors); /* no other process can have it */
    char *memory = tarn_sim_host_memory(device, a, 1024);
    assert_non_null(memory);
    memset(memory, 1, 1024);
    assert_null(tarn_sim_host_memory(device, a, 1025));
    const tarn_ptr b = pool_alloc(device, 1024, S1);

    pool_free(device, a, S1);
    assert_null(tarn_sim_host_memory(device, a, 1));
    assert_int_equal(device->ops->pool_trim(device, 0), TARN_OK); /* not what is in use */
    assert_null(tarn_sim_host_memory(device, a, 1));
    assert_non_null(tarn_sim_host_memory(device, b, 1));
    pool_free(device, b, S1);
    assert_true(is_mapped(memory));
    assert_int_equal(device->ops->pool_trim(device, 0), TARN_OK);
    assert_false(is_mapped(memory));
    sim_close(device);
}

/* A free that the stream has not reached keeps a record of its place in the stream. */
static void closing_leaves_no_host_memory(void **state)
{
    const uint64_t bytes = tarn_host_get_usage().live_bytes;
    struct tarn_device *device = sim_open(GIB);
    const tarn_ptr a = pool_alloc(device, 1024, S1);

    (void)state;
    assert_int_equal(tarn_sim_block_stream(device, S1), TARN_OK);
    pool_free(device, a, S1);
    sim_close(device);
    assert_int_equal(tarn_host_get_usage().live_bytes, bytes);
}

static uint64_t random_next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* No two blocks in use overlap; sums agree; at the end nothing is left. */
static void random_use_never_overlaps(void **state)
{
    enum {
        SLOTS = 40,
        STEPS = 5000
    };
    struct tarn_device *device = sim_open(16 * CHUNK);
    tarn_ptr start[SLOTS] = {0};
    uint64_t size[SLOTS] = {0};
    uint64_t seed = 3;

    (void)state;
    for (int step = 0; step < STEPS; step++) {
        const unsigned slot = (unsigned)(random_next(&seed) % SLOTS);
        const tarn_stream stream = random_next(&seed) % 3;

        if (random_next(&seed) % 4 == 0) {
            assert_int_equal(tarn_sim_enqueue_ns(device, stream, 5), TARN_OK);
        }
        tarn_sim_advance_ns(device, random_next(&seed) % 3);
        if (start[slot]) {
            pool_free(device, start[slot], stream);
            start[slot] = 0;
            continue;
        }
        size[slot] = 1 + random_next(&seed) % (step % 5 == 0 ? 3 * CHUNK : CHUNK / 4);
        if (device->ops->pool_alloc(device, size[slot], stream, &start[slot]) != TARN_OK) {
            continue;
        }
        for (unsigned i = 0; i < SLOTS; i++) {
            assert_true(i == slot || !start[i] || start[i] + size[i] <= start[slot] ||
                        start[slot] + size[slot] <= start[i]);
        }
        struct tarn_findings findings = TARN_FINDINGS_INIT;
        if (tn_sim_check(tn_sim_from(device), &findings) != 0) {
            fail_msg("%s", findings.text[0]);
        }
    }
    for (unsigned i = 0; i < SLOTS; i++) {
        if (start[i]) {
            pool_free(device, start[i], 0);
        }
    }
    tarn_sim_advance_ns(device, UINT64_MAX);
    assert_int_equal(device->ops->pool_trim(device, 0), TARN_OK);
    expect_pool(device, 0, 0);
    sim_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pool_grows_by_chunks_and_cuts_blocks),
        cmocka_unit_test(same_stream_reuses_at_once),
        cmocka_unit_test(other_stream_reuses_when_the_free_was_reached),
        cmocka_unit_test(neighbours_freed_by_two_streams_merge_when_reached),
        cmocka_unit_test(neighbours_freed_by_one_stream_merge_at_once),
        cmocka_unit_test(a_neighbour_that_is_not_reached_stays_apart),
        cmocka_unit_test(merging_waits_for_each_of_three),
        cmocka_unit_test(what_merges_is_used_before_the_pool_grows),
        cmocka_unit_test(blocks_merge_before_the_pool_grows),
        cmocka_unit_test(a_block_has_its_own_bytes_only),
        cmocka_unit_test(growth_gives_back_free_chunks_first),
        cmocka_unit_test(growth_moves_whole_free_units),
        cmocka_unit_test(growth_moves_no_more_than_it_needs),
        cmocka_unit_test(without_host_memory_for_the_rest_others_give_their_units),
        cmocka_unit_test(a_chunk_goes_with_its_last_block),
        cmocka_unit_test(units_behind_unfinished_work_stay),
        cmocka_unit_test(units_in_the_middle_of_a_block_leave_two),
        cmocka_unit_test(peaks_are_kept_until_reset),
        cmocka_unit_test(trim_keeps_what_it_is_told),
        cmocka_unit_test(misuse_is_refused),
        cmocka_unit_test(backed_blocks_have_memory),
        cmocka_unit_test(closing_leaves_no_host_memory),
        cmocka_unit_test(random_use_never_overlaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
