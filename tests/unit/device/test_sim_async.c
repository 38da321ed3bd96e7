/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "support/sim.h"

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
    expect_pool(device, CHUNK, 512 + 1024);
    const tarn_ptr c = pool_alloc(device, CHUNK + 1, S1);
    assert_int_equal(c % 512, 0);
    expect_pool(device, 3 * CHUNK, CHUNK + 512 + 512 + 1024);
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

    (void)state;
    const tarn_ptr a = pool_alloc(device, 1024, S1);
    char *memory = tarn_sim_host_memory(device, a, 1024);
    assert_non_null(memory);
    memset(memory, 1, 1024);
    assert_null(tarn_sim_host_memory(device, a, 1025));
    pool_free(device, a, S1);
    assert_null(tarn_sim_host_memory(device, a, 1));
    sim_close(device);
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
        size[slot] = 1 + random_next(&seed) % (CHUNK / 2);
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
        cmocka_unit_test(growth_gives_back_free_chunks_first),
        cmocka_unit_test(trim_keeps_what_it_is_told),
        cmocka_unit_test(misuse_is_refused),
        cmocka_unit_test(backed_blocks_have_memory),
        cmocka_unit_test(random_use_never_overlaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
