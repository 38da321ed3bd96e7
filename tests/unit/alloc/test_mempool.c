/* SPDX-License-Identifier: MIT */
/*
 * PyTorch's TestMemPool, and its tests of graphs that share a pool, with their numbers. A MemPool
 * object is one use of a pool; `use_mem_pool` and a capture are another one with routing. Names in
 * comments are PyTorch's tests.
 */
#include "support/any_stream.h"
#include "support/test.h"

#include "support/rig.h"

static void pool_create(struct rig *rig, struct tarn_pool_id id)
{
    assert_int_equal(tarn_allocator_acquire_pool(rig->allocator, id, &rig->error), TARN_OK);
}

/* As a MemPool's destructor, which empties the pool. */
static void pool_destroy(struct rig *rig, struct tarn_pool_id id)
{
    assert_int_equal(tarn_allocator_release_pool(rig->allocator, id, &rig->error), TARN_OK);
    assert_int_equal(tarn_allocator_empty_pool(rig->allocator, id, &rig->error), TARN_OK);
}

static void begin(struct rig *rig, struct tarn_pool_id id)
{
    assert_int_equal(tarn_allocator_begin_pool(rig->allocator, id, any_stream, NULL, &rig->error),
                     TARN_OK);
}

static void end(struct rig *rig, struct tarn_pool_id id)
{
    assert_int_equal(tarn_allocator_end_pool(rig->allocator, id, &rig->error), TARN_OK);
}

/* Leaves `use_mem_pool`. */
static void end_use(struct rig *rig, struct tarn_pool_id id)
{
    end(rig, id);
    assert_int_equal(tarn_allocator_release_pool(rig->allocator, id, &rig->error), TARN_OK);
}

static tarn_ptr alloc_in(struct rig *rig, struct tarn_pool_id id, uint64_t size)
{
    begin(rig, id);
    const tarn_ptr ptr = rig_alloc(rig, size, 0);

    end_use(rig, id);
    return ptr;
}

static struct rig_totals pool_totals(struct rig *rig, struct tarn_pool_id id)
{
    struct rig_totals totals = {0};
    const struct tarn_walker walker = {&totals, rig_count_segment, rig_count_block};

    assert_int_equal(tarn_allocator_walk_pool(rig->allocator, id, &walker), TARN_OK);
    return totals;
}

static const struct tarn_pool_id default_pools = {0, 0};

/* ---- TestMemPool ---- */

/* test_mempool_id: handles of graphs and MemPools have 0 as first number, and differ in the second.
 * A capture that was given no pool has one with a first number, which is another one. */
static void pools_are_told_apart_by_both_numbers(void **state)
{
    static const struct tarn_pool_id ids[] = {{0, 1}, {0, 2}, {0, 3}, {1, 0}};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    for (size_t i = 0; i < 4; i++) {
        pool_create(&rig, ids[i]);
        (void)alloc_in(&rig, ids[i], (i + 2) * 10 * MIB);
    }
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(tarn_allocator_pool_use_count(rig.allocator, ids[i]), 1);
        assert_int_equal(pool_totals(&rig, ids[i]).segments, 1);
        assert_int_equal(pool_totals(&rig, ids[i]).reserved, (i + 2) * 10 * MIB);
    }
    rig_close(&rig);
}

/* test_mempool_empty_cache: a pool that goes takes nothing of the default pool with it. */
static void a_pool_empties_itself_only(void **state)
{
    static const struct tarn_pool_id id = {0, 1};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    pool_create(&rig, id);
    const tarn_ptr x = rig_alloc(&rig, 4 * MIB, 0);
    const tarn_ptr y = alloc_in(&rig, id, 4 * MIB);

    rig_free(&rig, y);
    rig_free(&rig, x);
    assert_int_equal(rig_totals(&rig).segments, 2);
    pool_destroy(&rig, id);
    assert_int_equal(rig_totals(&rig).segments, 1);
    assert_int_equal(pool_totals(&rig, default_pools).segments, 1);
    rig_close(&rig);
}

/* test_mempool_empty_cache_inactive, test_tensor_delete_after_allocator_delete: what was allocated
 * outlives the pool's owner, and goes back to the device when it is free. */
static void memory_outlives_the_owner_of_its_pool(void **state)
{
    static const uint64_t sizes[] = {16 * MIB, 16};
    static const struct tarn_pool_id id = {0, 1};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct rig rig;

        rig_open(&rig, GIB, "");
        pool_create(&rig, id);
        const tarn_ptr x = alloc_in(&rig, id, sizes[i]);

        assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_ALLOC], 1);
        pool_destroy(&rig, id);
        rig_empty_cache(&rig);
        assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_FREE], 0);
        rig_free(&rig, x);
        rig_empty_cache(&rig);
        assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_FREE], 1);
        assert_int_equal(rig_totals(&rig).segments, 0);
        rig_close(&rig);
    }
}

/* test_mempool_with_allocator: uses 1, 2, 1; segments 1, 1, 2 for requests of 1 MiB. */
static void two_requests_of_a_mebibyte_share_a_segment(void **state)
{
    static const struct tarn_pool_id id = {0, 1};
    struct rig rig;
    tarn_ptr out[3];

    (void)state;
    rig_open(&rig, GIB, "");
    pool_create(&rig, id);
    assert_int_equal(tarn_allocator_pool_use_count(rig.allocator, id), 1);
    begin(&rig, id);
    out[0] = rig_alloc(&rig, MIB, 0);
    assert_int_equal(tarn_allocator_pool_use_count(rig.allocator, id), 2);
    end_use(&rig, id);
    assert_int_equal(tarn_allocator_pool_use_count(rig.allocator, id), 1);
    (void)rig_alloc(&rig, MIB, 0); /* outside */
    begin(&rig, id);
    assert_int_equal(pool_totals(&rig, id).segments, 1);
    out[1] = rig_alloc(&rig, MIB, 0);
    assert_int_equal(pool_totals(&rig, id).segments, 1);
    out[2] = rig_alloc(&rig, MIB, 0);
    assert_int_equal(pool_totals(&rig, id).segments, 2);
    end_use(&rig, id);
    assert_int_equal(pool_totals(&rig, id).segments, 2);
    for (int i = 0; i < 3; i++) {
        rig_free(&rig, out[i]);
    }
    pool_destroy(&rig, id);
    assert_int_equal(pool_totals(&rig, id).segments, 0);
    assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_FREE], 2);
    rig_close(&rig);
}

/* test_mempool_limited_memory_with_allocator: 80 MiB, all of it in two pools of which one lends. */
static void only_the_pool_that_lends_is_borrowed_from(void **state)
{
    static const struct tarn_pool_id do_not_use = {0, 1};
    static const struct tarn_pool_id use = {0, 2};
    struct rig rig;

    (void)state;
    rig_open(&rig, 1280 * MIB, "");
    rig_limit(&rig, 0.0625); /* 80 MiB */
    pool_create(&rig, do_not_use);
    pool_create(&rig, use);
    assert_int_equal(tarn_allocator_set_pool_use_on_oom(rig.allocator, use, true), TARN_OK);
    const tarn_ptr a = alloc_in(&rig, do_not_use, 40 * MIB);
    const tarn_ptr b = alloc_in(&rig, use, 40 * MIB);

    rig_alloc_oom(&rig, 40 * MIB, 0);
    rig_free(&rig, a);
    rig_free(&rig, b);
    const tarn_ptr c = rig_alloc(&rig, 30 * MIB, 0);

    assert_int_equal(c, b);
    rig_alloc_oom(&rig, 30 * MIB, 0);
    rig_free(&rig, c);
    const tarn_ptr e = alloc_in(&rig, use, 20 * MIB);

    assert_int_equal(e, c);
    rig_free(&rig, e);
    pool_destroy(&rig, use);
    pool_destroy(&rig, do_not_use);
    assert_int_equal(rig_totals(&rig).segments, 0);
    rig_close(&rig);
}

/* Of two pools that lend, one does: the other keeps what is free. */
static void one_pool_lends_at_a_time(void **state)
{
    static const struct tarn_pool_id ids[] = {{0, 1}, {0, 2}};
    tarn_ptr ptrs[2];
    struct rig rig;

    (void)state;
    rig_open(&rig, 1280 * MIB, "");
    rig_limit(&rig, 0.0625); /* 80 MiB */
    for (int i = 0; i < 2; i++) {
        pool_create(&rig, ids[i]);
        assert_int_equal(tarn_allocator_set_pool_use_on_oom(rig.allocator, ids[i], true), TARN_OK);
        ptrs[i] = alloc_in(&rig, ids[i], 40 * MIB);
    }
    rig_free(&rig, ptrs[0]);
    rig_free(&rig, ptrs[1]);
    const tarn_ptr first = rig_alloc(&rig, 40 * MIB, 0);

    assert_int_equal(rig_now(&rig, TARN_STAT_ALLOCATION), 1);
    const tarn_ptr second = rig_alloc(&rig, 40 * MIB, 0);

    assert_int_equal(first + second, ptrs[0] + ptrs[1]);
    rig_free(&rig, first);
    rig_free(&rig, second);
    pool_destroy(&rig, ids[0]);
    pool_destroy(&rig, ids[1]);
    rig_close(&rig);
}

/* test_mempool_no_split: twice 4 MiB, in one segment of 20 MiB or in two with one block each. */
static void a_pool_without_splitting_has_a_block_a_segment(void **state)
{
    static const struct tarn_pool_id split = {0, 1};
    static const struct tarn_pool_id no_split = {0, 2};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    pool_create(&rig, split);
    pool_create(&rig, no_split);
    assert_int_equal(tarn_allocator_set_pool_no_split(rig.allocator, no_split, true), TARN_OK);
    for (int i = 0; i < 2; i++) {
        (void)alloc_in(&rig, split, 4 * MIB);
        (void)alloc_in(&rig, no_split, 4 * MIB);
    }
    assert_int_equal(pool_totals(&rig, split).segments, 1);
    assert_int_equal(pool_totals(&rig, split).blocks, 3);
    assert_int_equal(pool_totals(&rig, no_split).segments, 2);
    assert_int_equal(pool_totals(&rig, no_split).blocks, 2);
    assert_int_equal(pool_totals(&rig, no_split).reserved, 40 * MIB);
    rig_close(&rig);
}

/* test_deleted_mempool_not_used_on_oom: of eleven pools that would lend ten are gone; two requests
 * of half the memory are served by the last. */
static void pools_that_are_gone_do_not_lend(void **state)
{
    struct rig rig;
    struct tarn_pool_id id;

    (void)state;
    rig_open(&rig, 1280 * MIB, "");
    rig_limit(&rig, 0.03125); /* 40 MiB */
    for (uint64_t i = 1; i <= 11; i++) {
        id = (struct tarn_pool_id){0, i};
        pool_create(&rig, id);
        assert_int_equal(tarn_allocator_set_pool_use_on_oom(rig.allocator, id, true), TARN_OK);
        rig_free(&rig, alloc_in(&rig, id, 40 * MIB));
        if (i < 11) {
            pool_destroy(&rig, id);
        }
    }
    const tarn_ptr b = rig_alloc(&rig, 20 * MIB, 0);

    assert_int_equal(rig_alloc(&rig, 20 * MIB, 0), b + 20 * MIB);
    assert_int_equal(pool_totals(&rig, id).segments, 1);
    assert_int_equal(pool_totals(&rig, id).allocated, 2);
    assert_int_equal(rig_totals(&rig).segments, 1);
    assert_int_equal(rig_stats(&rig).num_ooms, 0);
    rig_close(&rig);
}

/* test_nested_mempool: requests of 20 MiB go to the innermost of three pools; segments 2, 2, 1. */
static void the_innermost_pool_serves(void **state)
{
    static const struct tarn_pool_id ids[] = {{0, 1}, {0, 2}, {0, 3}};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    for (int i = 0; i < 3; i++) {
        pool_create(&rig, ids[i]);
    }
    for (int i = 0; i < 3; i++) {
        begin(&rig, ids[i]);
        (void)rig_alloc(&rig, 20 * MIB, 0);
    }
    for (int i = 2; i >= 0; i--) {
        end_use(&rig, ids[i]);
        if (i > 0) {
            (void)rig_alloc(&rig, 20 * MIB, 0);
        }
    }
    assert_int_equal(pool_totals(&rig, ids[0]).segments, 2);
    assert_int_equal(pool_totals(&rig, ids[1]).segments, 2);
    assert_int_equal(pool_totals(&rig, ids[2]).segments, 1);
    rig_close(&rig);
}

/* ---- graphs that share a pool, or do not ---- */

/* The pools of up to three graphs: their own, the first one's, or a handle made beforehand. */
static const struct sharing {
    struct tarn_pool_id ids[3];
    bool shared;
} sharings[] = {
    {{{1, 0}, {2, 0}, {3, 0}}, false}, /* "Don't share" */
    {{{1, 0}, {1, 0}, {1, 0}}, true},  /* "via pool()" */
    {{{0, 1}, {0, 1}, {0, 1}}, true},  /* "via graph_pool_handle()" */
};

/* Addresses handed out in a capture. */
struct handed_out {
    tarn_ptr ptrs[64];
    int count;
};

static tarn_ptr note(struct rig *rig, uint64_t size, tarn_stream stream, struct handed_out *list)
{
    const tarn_ptr ptr = rig_alloc(rig, size, stream);

    if (list) {
        assert_true(list->count < 64);
        list->ptrs[list->count++] = ptr;
    }
    return ptr;
}

/* `x = t.clone() + v; y = t.clone() + v; return x + y`, and `t` is not needed any more. */
static tarn_ptr func_with_temps(struct rig *rig, tarn_ptr t, uint64_t size, tarn_stream stream,
                                struct handed_out *list)
{
    tarn_ptr parts[2];

    for (int i = 0; i < 2; i++) {
        const tarn_ptr clone = note(rig, size, stream, list);

        parts[i] = note(rig, size, stream, list);
        rig_free(rig, clone);
    }
    const tarn_ptr sum = note(rig, size, stream, list);

    rig_free(rig, parts[0]);
    rig_free(rig, parts[1]);
    rig_free(rig, t);
    return sum;
}

/* test_graph_two_successive: sharing saves one small segment, 2,097,152 bytes. */
static void sharing_a_pool_saves_a_segment(void **state)
{
    const uint64_t size = 4000; /* 1,000 floats */
    int64_t reserved_no_sharing = 0;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        const struct sharing *sharing = &sharings[i];
        struct rig rig;

        rig_open(&rig, GIB, "");
        const tarn_ptr a = rig_alloc(&rig, size, 0);

        begin(&rig, sharing->ids[0]);
        tarn_ptr b = rig_alloc(&rig, size, 5);

        for (int k = 0; k < 10; k++) {
            if (k == 5) { /* the second graph goes on with the first one's result */
                end(&rig, sharing->ids[0]);
                begin(&rig, sharing->ids[1]);
            }
            b = func_with_temps(&rig, b, size, 5, NULL);
        }
        end(&rig, sharing->ids[1]);
        tarn_ptr c = rig_alloc(&rig, size, 0);

        for (int k = 0; k < 6; k++) {
            c = func_with_temps(&rig, c, size, 0, NULL);
        }
        if (sharing->shared) {
            assert_int_equal(reserved_no_sharing - rig_now(&rig, TARN_STAT_RESERVED_BYTES),
                             2097152);
        } else {
            reserved_no_sharing = rig_now(&rig, TARN_STAT_RESERVED_BYTES);
        }
        rig_free(&rig, a);
        rig_free(&rig, b);
        rig_free(&rig, c);
        assert_int_equal(tarn_allocator_release_pool(rig.allocator, sharing->ids[0], NULL),
                         TARN_OK);
        assert_int_equal(tarn_allocator_release_pool(rig.allocator, sharing->ids[1], NULL),
                         TARN_OK);
        rig_empty_cache(&rig);
        assert_int_equal(rig_totals(&rig).segments, 0);
        rig_close(&rig);
    }
}

/* test_graph_three_successive: the third graph gets what the second one gave back, so that
 * replaying them in another order is not allowed, only if they share. */
static void the_third_graph_gets_what_the_second_gave_back(void **state)
{
    const uint64_t size = 4000; /* 1,000 floats */

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        const struct sharing *sharing = &sharings[i];
        struct rig rig;

        rig_open(&rig, GIB, "");
        begin(&rig, sharing->ids[0]);
        const tarn_ptr b = rig_alloc(&rig, size, 5);
        const tarn_ptr c = rig_alloc(&rig, size, 5);
        const tarn_ptr d = rig_alloc(&rig, size, 5);

        end(&rig, sharing->ids[0]);
        begin(&rig, sharing->ids[1]);
        const tarn_ptr e = rig_alloc(&rig, size, 5);

        rig_free(&rig, c);
        end(&rig, sharing->ids[1]);
        begin(&rig, sharing->ids[2]);
        const tarn_ptr f = rig_alloc(&rig, size, 5);

        end(&rig, sharing->ids[2]);
        assert_int_equal(f == c, sharing->shared);
        assert_true(f != b && f != d && f != e);
        rig_close(&rig);
    }
}

/* test_graph_concurrent_replay: both graphs use the same memory if they share, and then may not run
 * at once; otherwise none of it. */
static void graphs_overlap_only_if_they_share(void **state)
{
    const uint64_t size = 4000000; /* 1,000,000 floats */

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        const struct sharing *sharing = &sharings[i];
        struct handed_out used[2] = {{.count = 0}, {.count = 0}};
        struct rig rig;
        bool overlap = false;

        rig_open(&rig, GIB, "");
        for (int g = 0; g < 2; g++) {
            begin(&rig, sharing->ids[g]);
            tarn_ptr b = note(&rig, size, 5, &used[g]);

            for (int k = 0; k < 5; k++) {
                b = func_with_temps(&rig, b, size, 5, &used[g]);
            }
            end(&rig, sharing->ids[g]);
        }
        for (int k = 0; k < used[0].count; k++) {
            for (int m = 0; m < used[1].count; m++) {
                overlap = overlap || used[0].ptrs[k] == used[1].ptrs[m];
            }
        }
        assert_int_equal(overlap, sharing->shared);
        rig_close(&rig);
    }
}

static bool captured_stream(void *context, tarn_stream stream)
{
    (void)context;
    return stream == 5 || stream == 6;
}

/* test_cuda_graph_allocator_propagates_stream: a capture spread to a second stream; both get a
 * segment of their own in the one pool. */
static void a_capture_has_a_segment_a_stream(void **state)
{
    static const struct tarn_pool_id id = {1, 0};
    const uint64_t size = (uint64_t)10240000 * 4;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    (void)rig_alloc(&rig, size, 0);
    (void)rig_alloc(&rig, size, 0);
    assert_int_equal(
        tarn_allocator_begin_pool(rig.allocator, id, captured_stream, NULL, &rig.error), TARN_OK);
    (void)rig_alloc(&rig, size, 5);
    (void)rig_alloc(&rig, size, 6);
    end(&rig, id);
    assert_int_equal(pool_totals(&rig, id).segments, 2);
    assert_int_equal(pool_totals(&rig, default_pools).segments, 2);
    rig_close(&rig);
}

/* ---- pools with a source of their own (test_mempool_with_allocator) ---- */

struct source {
    uint64_t blocks;
    uint64_t made;
    uint64_t gone;
    bool empty; /* out of memory */
    uint64_t size;
    tarn_stream stream;
};

static const tarn_ptr SOURCE_BASE = 0x500000000000;

static tarn_ptr source_alloc(void *context, uint64_t size, tarn_stream stream)
{
    struct source *source = context;

    source->size = size;
    source->stream = stream;
    if (source->empty) {
        return 0;
    }
    source->blocks++;
    return SOURCE_BASE + source->made++ * GIB;
}

static void source_free(void *context, tarn_ptr ptr)
{
    assert_int_equal(ptr % GIB, 0);
    assert_true(ptr >= SOURCE_BASE);
    ((struct source *)context)->blocks--;
}

static void source_gone(void *context)
{
    ((struct source *)context)->gone++;
}

static struct tarn_pool_source source_of(struct source *source)
{
    return (struct tarn_pool_source){.struct_size = sizeof(struct tarn_pool_source),
                                     .context = source,
                                     .alloc = source_alloc,
                                     .free = source_free,
                                     .gone = source_gone};
}

static void a_pool_has_segments_from_its_source(void **state)
{
    static const char *const settings[] = {"", "expandable_segments:True"};
    static const struct tarn_pool_id id = {0, 1};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct source source = {0};
        const struct tarn_pool_source from = source_of(&source);
        struct rig rig;

        rig_open(&rig, GIB, settings[i]);
        assert_int_equal(tarn_allocator_create_pool_from(rig.allocator, id, &from, &rig.error),
                         TARN_OK);
        const tarn_ptr x = alloc_in(&rig, id, 5 * MIB);
        const tarn_ptr y = alloc_in(&rig, id, 5 * MIB);

        assert_int_equal(x, SOURCE_BASE);
        assert_int_equal(y, SOURCE_BASE + 5 * MIB); /* the rest of one segment */
        assert_int_equal(source.size, 20 * MIB);
        assert_int_equal(sim_counters(rig.device).used_bytes, 0);
        assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 20 * MIB);
        (void)rig_alloc(&rig, MIB, 0); /* others come from the device */
        assert_true(sim_counters(rig.device).used_bytes > 0);
        rig_free(&rig, x);
        rig_free(&rig, y);
        assert_int_equal(source.blocks, 1); /* cached */
        pool_destroy(&rig, id);
        assert_int_equal(source.blocks, 0);
        assert_int_equal(source.gone, 1);
        rig_close(&rig);
    }
}

static void an_empty_source_is_out_of_memory(void **state)
{
    static const struct tarn_pool_id id = {0, 1};
    struct source source = {.empty = true};
    const struct tarn_pool_source from = source_of(&source);
    struct rig rig;
    tarn_ptr ptr = 0;

    (void)state;
    rig_open(&rig, GIB, "");
    assert_int_equal(tarn_allocator_create_pool_from(rig.allocator, id, &from, NULL), TARN_OK);
    begin(&rig, id);
    assert_int_equal(tarn_allocator_alloc(rig.allocator, MIB, 7, &ptr, &rig.error),
                     TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(source.stream, 7);
    source.empty = false;
    ptr = rig_alloc(&rig, MIB, 7);
    end_use(&rig, id);
    assert_int_equal(sim_counters(rig.device).used_bytes, 0); /* never from the device instead */
    rig_free(&rig, ptr);
    tarn_allocator_destroy(rig.allocator); /* gives back what is left, and the source */
    assert_int_equal(source.blocks, 0);
    assert_int_equal(source.gone, 1);
    sim_close(rig.device);
}

static void sources_that_are_refused(void **state)
{
    static const struct tarn_pool_id id = {0, 1};
    struct source source = {0};
    struct tarn_pool_source from = source_of(&source);
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "backend:cudaMallocAsync");
    assert_int_equal(tarn_allocator_create_pool_from(rig.allocator, id, &from, &rig.error),
                     TARN_ERR_NOT_SUPPORTED);
    rig_close(&rig);
    rig_open(&rig, GIB, "");
    pool_create(&rig, id);
    assert_int_equal(tarn_allocator_create_pool_from(rig.allocator, id, &from, &rig.error),
                     TARN_ERR_STATE);
    assert_non_null(strstr(rig.error.text, "private pool (0, 1) exists already"));
    from.free = NULL;
    assert_int_equal(tarn_allocator_create_pool_from(rig.allocator, (struct tarn_pool_id){0, 2},
                                                     &from, &rig.error),
                     TARN_ERR_INVALID_ARGUMENT);
    from = source_of(&source);
    from.struct_size = 3;
    assert_int_equal(tarn_allocator_create_pool_from(rig.allocator, (struct tarn_pool_id){0, 2},
                                                     &from, &rig.error),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(source.gone, 0); /* still the caller's */
    pool_destroy(&rig, id);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pools_are_told_apart_by_both_numbers),
        cmocka_unit_test(a_pool_empties_itself_only),
        cmocka_unit_test(memory_outlives_the_owner_of_its_pool),
        cmocka_unit_test(two_requests_of_a_mebibyte_share_a_segment),
        cmocka_unit_test(only_the_pool_that_lends_is_borrowed_from),
        cmocka_unit_test(one_pool_lends_at_a_time),
        cmocka_unit_test(a_pool_without_splitting_has_a_block_a_segment),
        cmocka_unit_test(pools_that_are_gone_do_not_lend),
        cmocka_unit_test(the_innermost_pool_serves),
        cmocka_unit_test(sharing_a_pool_saves_a_segment),
        cmocka_unit_test(the_third_graph_gets_what_the_second_gave_back),
        cmocka_unit_test(graphs_overlap_only_if_they_share),
        cmocka_unit_test(a_capture_has_a_segment_a_stream),
        cmocka_unit_test(a_pool_has_segments_from_its_source),
        cmocka_unit_test(an_empty_source_is_out_of_memory),
        cmocka_unit_test(sources_that_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
