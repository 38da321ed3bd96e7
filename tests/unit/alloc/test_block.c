/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

#include "alloc/pool/block.h"
#include "tarn/host.h"

enum {
    CHUNK_BYTES = 16 * 1024,
    CHUNK_NODES = CHUNK_BYTES / 64 - 1,
    MANY = 5 * CHUNK_NODES
};

static struct tn_block *nodes[MANY];

static void nodes_are_zero_and_aligned(void **state)
{
    struct tn_block_slab slab = {0};
    const struct tn_block zero = {0};

    (void)state;
    for (int i = 0; i < MANY; i++) {
        nodes[i] = tn_block_create(&slab);
        assert_non_null(nodes[i]);
        assert_int_equal((uintptr_t)nodes[i] % 64, 0);
        assert_memory_equal(nodes[i], &zero, sizeof zero);
        memset(nodes[i], 0xff, sizeof *nodes[i]);
    }
    for (int i = 0; i < MANY; i++) {
        tn_block_destroy(nodes[i]);
    }
    struct tn_block *again = tn_block_create(&slab);

    assert_memory_equal(again, &zero, sizeof zero);
    tn_block_destroy(again);
    tn_block_slab_fini(&slab);
}

static int node_compare(const void *a, const void *b)
{
    const uintptr_t x = (uintptr_t) * (struct tn_block *const *)a;
    const uintptr_t y = (uintptr_t) * (struct tn_block *const *)b;

    return (x > y) - (x < y);
}

static void chunks_come_and_go(void **state)
{
    const uint64_t live = tarn_host_get_usage().live_bytes;
    struct tn_block_slab slab = {0};

    (void)state;
    for (int i = 0; i < MANY; i++) {
        nodes[i] = tn_block_create(&slab);
        assert_int_equal(slab.live, i + 1);
        assert_int_equal(slab.chunks, i / CHUNK_NODES + 1);
        assert_int_equal(tn_block_slab_memory(&slab), tarn_host_get_usage().live_bytes - live);
    }
    assert_null(slab.partial);
    qsort(nodes, MANY, sizeof(struct tn_block *), node_compare);
    for (int i = 1; i < MANY; i++) {
        assert_true(nodes[i - 1] + 1 <= nodes[i]); /* no node twice */
    }
    for (int i = 0; i < MANY; i++) {
        tn_block_destroy(nodes[i]);
        /* Whole chunks in address order: one empty one is kept. */
        const uint64_t empty = (uint64_t)(i + 1) / CHUNK_NODES;

        assert_int_equal(slab.chunks, 5 - (empty > 1 ? empty - 1 : 0));
    }
    assert_int_equal(slab.live, 0);
    assert_int_equal(slab.chunks, 1);
    assert_int_equal(tn_block_slab_memory(&slab), CHUNK_BYTES);
    nodes[0] = tn_block_create(&slab); /* from the kept chunk */
    assert_int_equal(slab.chunks, 1);
    tn_block_destroy(nodes[0]);
    tn_block_slab_fini(&slab);
    assert_int_equal(tarn_host_get_usage().live_bytes, live);
}

/* What goes back is used again, whichever chunks it is in. */
static void a_node_that_goes_back_is_there_for_the_next(void **state)
{
    struct tn_block_slab slab = {0};

    (void)state;
    for (int i = 0; i < MANY; i++) {
        nodes[i] = tn_block_create(&slab);
    }
    const uint64_t chunks = slab.chunks;

    assert_true(chunks > 2);
    assert_null(slab.partial);
    for (int round = 0; round < 3; round++) {
        for (int i = round; i < MANY; i += CHUNK_NODES) {
            tn_block_destroy(nodes[i]);
        }
        for (int i = round; i < MANY; i += CHUNK_NODES) {
            nodes[i] = tn_block_create(&slab);
            assert_int_equal(slab.chunks, chunks);
        }
        assert_null(slab.partial);
    }
    for (int i = 0; i < MANY; i++) {
        tn_block_destroy(nodes[i]);
    }
    tn_block_slab_fini(&slab);
    assert_int_equal(tn_block_slab_memory(&slab), 0);
}

static void random_use_never_gives_a_node_twice(void **state)
{
    struct tn_block_slab slab = {0};
    uint64_t random = 1;

    (void)state;
    memset(nodes, 0, sizeof nodes);
    for (int step = 0; step < 200000; step++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const uint64_t i = (random >> 33) % MANY;

        if (!nodes[i]) {
            nodes[i] = tn_block_create(&slab);
            assert_int_equal(nodes[i]->address, 0);
            nodes[i]->address = i + 1;
        } else {
            assert_int_equal(nodes[i]->address, i + 1);
            tn_block_destroy(nodes[i]);
            nodes[i] = NULL;
        }
    }
    for (int i = 0; i < MANY; i++) {
        if (nodes[i]) {
            tn_block_destroy(nodes[i]);
        }
    }
    tn_block_slab_fini(&slab);
}

static void without_host_memory_nothing_changes(void **state)
{
    struct tn_block_slab slab = {0};

    (void)state;
    tarn_host_fail_nth(1);
    assert_null(tn_block_create(&slab));
    assert_int_equal(slab.live, 0);
    assert_int_equal(slab.chunks, 0);
    for (int i = 0; i < CHUNK_NODES; i++) {
        nodes[i] = tn_block_create(&slab);
    }
    tarn_host_fail_nth(1);
    assert_null(tn_block_create(&slab));
    assert_int_equal(slab.live, CHUNK_NODES);
    tn_block_destroy(nodes[0]);
    nodes[0] = tn_block_create(&slab); /* needs no host memory */
    assert_non_null(nodes[0]);
    for (int i = 0; i < CHUNK_NODES; i++) {
        tn_block_destroy(nodes[i]);
    }
    tn_block_slab_fini(&slab);
}

static void splitting_keeps_neighbours_and_state(void **state)
{
    struct tn_block last = {.address = 4096, .size = 512};
    struct tn_block whole = {.address = 1024,
                             .size = 3072,
                             .requested_size = 77,
                             .next = &last,
                             .set = (struct tn_free_set *)(uintptr_t)64,
                             .mapped = true,
                             .expandable = true};
    struct tn_block rest = {.allocated = true}; /* everything is written */

    (void)state;
    last.prev = &whole;
    tn_block_split(&whole, 512, &rest);
    assert_int_equal(whole.address, 1024);
    assert_int_equal(whole.size, 512);
    assert_int_equal(whole.requested_size, 77);
    assert_ptr_equal(whole.next, &rest);
    assert_null(whole.prev);
    assert_int_equal(rest.address, 1536);
    assert_int_equal(rest.size, 2560);
    assert_int_equal(rest.requested_size, 77); /* stale, as in PyTorch */
    assert_ptr_equal(rest.prev, &whole);
    assert_ptr_equal(rest.next, &last);
    assert_ptr_equal(last.prev, &rest);
    assert_ptr_equal(rest.set, whole.set);
    assert_true(rest.mapped && rest.expandable && !rest.allocated && rest.slot == 0);
    assert_true(tn_block_is_split(&whole) && tn_block_is_split(&rest));
    tn_block_absorb_next(&whole);
    assert_int_equal(whole.size, 3072);
    assert_ptr_equal(whole.next, &last);
    assert_ptr_equal(last.prev, &whole);
    tn_block_absorb_next(&whole);
    assert_int_equal(whole.size, 3584);
    assert_null(whole.next);
    assert_false(tn_block_is_split(&whole));
}

static void idle_and_active_are_not_opposites_of_allocated(void **state)
{
    struct tn_block block = {0};

    (void)state;
    assert_true(tn_block_is_idle(&block) && !tn_block_is_active(&block));
    block.uses = 3; /* waits for streams */
    assert_true(!tn_block_is_idle(&block) && tn_block_is_active(&block));
    block.allocated = true;
    assert_true(!tn_block_is_idle(&block) && tn_block_is_active(&block));
    block.uses = 0;
    assert_true(!tn_block_is_idle(&block) && tn_block_is_active(&block));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_are_zero_and_aligned),
        cmocka_unit_test(chunks_come_and_go),
        cmocka_unit_test(a_node_that_goes_back_is_there_for_the_next),
        cmocka_unit_test(random_use_never_gives_a_node_twice),
        cmocka_unit_test(without_host_memory_nothing_changes),
        cmocka_unit_test(splitting_keeps_neighbours_and_state),
        cmocka_unit_test(idle_and_active_are_not_opposites_of_allocated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
