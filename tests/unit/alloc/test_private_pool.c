/* SPDX-License-Identifier: MIT */
/* Private pools, through the public interface. Names in comments are PyTorch's tests. */
#include "support/any_stream.h"
#include "support/test.h"

#include "base/id_table.h"
#include "support/rig.h"

static const struct tarn_pool_id graph = {0, 1};
static const struct tarn_pool_id other = {0, 2};
static const struct tarn_pool_id user = {7, 0};

static bool one_stream(void *context, tarn_stream stream)
{
    return stream == *(const tarn_stream *)context;
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

static void acquire(struct rig *rig, struct tarn_pool_id id)
{
    assert_int_equal(tarn_allocator_acquire_pool(rig->allocator, id, &rig->error), TARN_OK);
}

static void release(struct rig *rig, struct tarn_pool_id id)
{
    assert_int_equal(tarn_allocator_release_pool(rig->allocator, id, &rig->error), TARN_OK);
}

static struct rig_totals pool_totals(struct rig *rig, struct tarn_pool_id id)
{
    struct rig_totals totals = {0};
    const struct tarn_walker walker = {&totals, rig_count_segment, rig_count_block};

    assert_int_equal(tarn_allocator_walk_pool(rig->allocator, id, &walker), TARN_OK);
    return totals;
}

/* test_mempool_with_allocator: uses 1, 2, 1. */
static void uses_are_counted(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    assert_int_equal(tarn_allocator_pool_use_count(rig.allocator, user), 0);
    acquire(&rig, user);
    assert_int_equal(tarn_allocator_pool_use_count(rig.allocator, user), 1);
    begin(&rig, user);
    assert_int_equal(tarn_allocator_pool_use_count(rig.allocator, user), 2);
    end(&rig, user);
    assert_int_equal(tarn_allocator_pool_use_count(rig.allocator, user), 2);
    release(&rig, user);
    assert_int_equal(tarn_allocator_pool_use_count(rig.allocator, user), 1);
    release(&rig, user);
    assert_int_equal(tarn_allocator_pool_use_count(rig.allocator, user), 0);
    rig_close(&rig);
}

static void misuse_is_refused_and_changes_nothing(void **state)
{
    const struct tarn_pool_id none = {0, 0};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    struct tarn_allocator *a = rig.allocator;
    struct tarn_error *e = &rig.error;

    assert_int_equal(tarn_allocator_end_pool(a, graph, e), TARN_ERR_STATE);
    assert_non_null(strstr(e->text, "(0, 1)"));
    assert_int_equal(tarn_allocator_release_pool(a, graph, e), TARN_ERR_NOT_FOUND);
    assert_int_equal(tarn_allocator_set_pool_use_on_oom(a, graph, true), TARN_ERR_NOT_FOUND);
    assert_int_equal(tarn_allocator_set_pool_no_split(a, graph, true), TARN_ERR_NOT_FOUND);
    assert_int_equal(tarn_allocator_acquire_pool(a, none, e), TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_allocator_begin_pool(a, none, any_stream, NULL, e),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_allocator_begin_pool(a, graph, NULL, NULL, e), TARN_ERR_INVALID_ARGUMENT);
    begin(&rig, graph);
    assert_int_equal(tarn_allocator_begin_pool(a, graph, any_stream, NULL, e), TARN_ERR_STATE);
    assert_int_equal(tarn_allocator_pool_use_count(a, graph), 1);
    end(&rig, graph);
    assert_int_equal(tarn_allocator_end_pool(a, graph, e), TARN_ERR_STATE);
    release(&rig, graph);
    assert_int_equal(tarn_allocator_release_pool(a, graph, e), TARN_ERR_NOT_FOUND);
    /* Released and not yet given back: it cannot be used again. */
    assert_int_equal(tarn_allocator_acquire_pool(a, graph, e), TARN_ERR_STATE);
    assert_int_equal(tarn_allocator_begin_pool(a, graph, any_stream, NULL, e), TARN_ERR_STATE);
    (void)rig_alloc(&rig, 512, 0); /* to the default pool */
    assert_int_equal(pool_totals(&rig, graph).segments, 0);
    rig_empty_cache(&rig); /* now it is gone */
    acquire(&rig, graph);
    rig_close(&rig);
}

/* More than anybody counts to. */
static void captures_are_counted_up_to_a_most(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    uint32_t *count = &rig_engine(rig.allocator)->heap.private_pools.capture_count;

    *count = UINT32_MAX - 1;
    assert_int_equal(tarn_allocator_begin_capture(rig.allocator, &rig.error), TARN_OK);
    assert_int_equal(tarn_allocator_begin_capture(rig.allocator, &rig.error), TARN_ERR_STATE);
    assert_non_null(strstr(rig.error.text, "too many captures"));
    assert_int_equal(*count, UINT32_MAX);
    *count = 1;
    assert_int_equal(tarn_allocator_end_capture(rig.allocator, &rig.error), TARN_OK);
    assert_int_equal(tarn_allocator_end_capture(rig.allocator, &rig.error), TARN_ERR_STATE);
    assert_non_null(strstr(rig.error.text, "no capture is under way"));
    assert_int_equal(*count, 0);
    /* Blocks are not freed on streams. */
    assert_int_equal(tarn_allocator_join_frees(rig.allocator, 0, &rig.error), TARN_OK);
    assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_EVENT_RECORD], 0);
    rig_close(&rig);
}

static void pools_do_not_share_memory(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr a = rig_alloc(&rig, 30 * MIB, 0);

    rig_free(&rig, a);
    begin(&rig, graph);
    const tarn_ptr b = rig_alloc(&rig, 30 * MIB, 0);

    assert_int_not_equal(a, b);
    end(&rig, graph);
    rig_free(&rig, b);
    assert_int_equal(rig_alloc(&rig, 30 * MIB, 0), a);
    assert_int_not_equal(rig_alloc(&rig, 30 * MIB, 0), b);
    assert_int_equal(pool_totals(&rig, graph).segments, 1);
    rig_empty_cache(&rig); /* in use by somebody: its memory stays */
    assert_int_equal(pool_totals(&rig, graph).segments, 1);
    begin(&rig, graph);
    assert_int_equal(rig_alloc(&rig, 30 * MIB, 0), b);
    rig_close(&rig);
}

/* test_mempool_ctx_multithread in one thread: only requests that the filter accepts. */
static void the_filter_chooses_by_stream(void **state)
{
    struct rig rig;
    tarn_stream stream = 5;

    (void)state;
    rig_open(&rig, GIB, "");
    assert_int_equal(tarn_allocator_begin_pool(rig.allocator, graph, one_stream, &stream, NULL),
                     TARN_OK);
    (void)rig_alloc(&rig, MIB, 0);
    assert_int_equal(pool_totals(&rig, graph).segments, 0);
    (void)rig_alloc(&rig, MIB, 5);
    assert_int_equal(pool_totals(&rig, graph).segments, 1);
    stream = 6;
    (void)rig_alloc(&rig, MIB, 5);
    assert_int_equal(pool_totals(&rig, graph).segments, 1);
    end(&rig, graph);
    rig_close(&rig);
}

/* test_nested_mempool: the latest that accepts wins; segments 2, 2, 1. */
static void the_latest_routing_wins(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    acquire(&rig, graph);
    acquire(&rig, other);
    begin(&rig, graph);
    (void)rig_alloc(&rig, 30 * MIB, 0);
    begin(&rig, other);
    (void)rig_alloc(&rig, 30 * MIB, 0);
    (void)rig_alloc(&rig, 30 * MIB, 0);
    end(&rig, other);
    (void)rig_alloc(&rig, 30 * MIB, 0);
    begin(&rig, other);
    end(&rig, graph); /* ends in any order */
    (void)rig_alloc(&rig, 30 * MIB, 0);
    end(&rig, other);
    (void)rig_alloc(&rig, 30 * MIB, 0);
    assert_int_equal(pool_totals(&rig, graph).segments, 2);
    assert_int_equal(pool_totals(&rig, other).segments, 3);
    assert_int_equal(pool_totals(&rig, (struct tarn_pool_id){0, 0}).segments, 1);
    assert_int_equal(rig_totals(&rig).segments, 6);
    rig_close(&rig);
}

static void many_routings_at_once(void **state)
{
    enum {
        MANY = 40
    };
    static tarn_stream streams[MANY];
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    for (uint64_t i = 0; i < MANY; i++) {
        streams[i] = i;
        assert_int_equal(tarn_allocator_begin_pool(rig.allocator, (struct tarn_pool_id){0, i + 1},
                                                   one_stream, &streams[i], NULL),
                         TARN_OK);
    }
    for (uint64_t i = 0; i < MANY; i++) {
        (void)rig_alloc(&rig, 512, i);
    }
    for (uint64_t i = 0; i < MANY; i++) {
        const struct tarn_pool_id id = {0, (i * 7) % MANY + 1};

        assert_int_equal(pool_totals(&rig, id).segments, 1);
        end(&rig, id);
        release(&rig, id);
    }
    rig_empty_cache(&rig); /* blocks in use keep their pools */
    assert_int_equal(rig_totals(&rig).segments, MANY);
    rig_close(&rig);
}

/* test_mempool_empty_cache_inactive, test_tensor_delete_after_allocator_delete: a pool that nobody
 * uses goes with its last block. */
static void a_released_pool_goes_with_its_last_block(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    begin(&rig, graph);
    const tarn_ptr a = rig_alloc(&rig, 30 * MIB, 0);
    const tarn_ptr b = rig_alloc(&rig, 30 * MIB, 0);

    end(&rig, graph);
    release(&rig, graph);
    rig_free(&rig, a);
    assert_int_equal(pool_totals(&rig, graph).segments, 2);
    rig_empty_cache(&rig);
    assert_int_equal(pool_totals(&rig, graph).segments, 1);
    rig_free(&rig, b);
    assert_int_equal(tarn_allocator_acquire_pool(rig.allocator, graph, NULL), TARN_ERR_STATE);
    rig_empty_cache(&rig);
    assert_int_equal(rig_totals(&rig).segments, 0);
    acquire(&rig, graph); /* a new one */
    rig_close(&rig);
}

/* A released pool's memory also goes when others run short, before they fail. */
static void released_memory_is_there_for_others(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 100 * MIB, "");
    begin(&rig, graph);
    rig_free(&rig, rig_alloc(&rig, 60 * MIB, 0));
    end(&rig, graph);
    rig_alloc_oom(&rig, 50 * MIB, 0);
    release(&rig, graph);
    (void)rig_alloc(&rig, 50 * MIB, 0);
    rig_close(&rig);
}

static void one_pool_can_be_emptied_alone(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    rig_free(&rig, rig_alloc(&rig, 30 * MIB, 0));
    begin(&rig, graph);
    rig_free(&rig, rig_alloc(&rig, 32 * MIB, 0));
    end(&rig, graph);
    begin(&rig, other);
    rig_free(&rig, rig_alloc(&rig, 34 * MIB, 0));
    end(&rig, other);
    assert_int_equal(tarn_allocator_empty_pool(rig.allocator, graph, NULL), TARN_OK);
    assert_int_equal(rig_totals(&rig).segments, 3); /* in use */
    release(&rig, graph);
    release(&rig, other);
    assert_int_equal(tarn_allocator_empty_pool(rig.allocator, graph, NULL), TARN_OK);
    assert_int_equal(rig_totals(&rig).segments, 2);
    assert_int_equal(pool_totals(&rig, graph).segments, 0);
    assert_int_equal(tarn_allocator_empty_pool(rig.allocator, (struct tarn_pool_id){0, 0}, NULL),
                     TARN_OK);
    assert_int_equal(rig_totals(&rig).segments, 0);
    rig_close(&rig);
}

/* test_mempool_limited_memory_with_allocator: 80 MiB in all, 40 of it cached in the pool. */
static void a_pool_may_lend_when_memory_is_short(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 80 * MIB, "");
    acquire(&rig, user);
    begin(&rig, user);
    const tarn_ptr a = rig_alloc(&rig, 40 * MIB, 0);

    end(&rig, user);
    rig_free(&rig, a);
    (void)rig_alloc(&rig, 40 * MIB, 0);
    rig_alloc_oom(&rig, 40 * MIB, 0);
    assert_int_equal(tarn_allocator_set_pool_use_on_oom(rig.allocator, user, true), TARN_OK);
    assert_int_equal(rig_alloc(&rig, 40 * MIB, 0), a);
    rig_alloc_oom(&rig, 40 * MIB, 0);
    rig_free(&rig, a); /* goes back to its own pool */
    assert_int_equal(tarn_allocator_set_pool_use_on_oom(rig.allocator, user, false), TARN_OK);
    rig_alloc_oom(&rig, 40 * MIB, 0);
    rig_close(&rig);
}

/* test_deleted_mempool_not_used_on_oom */
static void a_released_pool_does_not_lend(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 80 * MIB, "");
    begin(&rig, user);
    const tarn_ptr a = rig_alloc(&rig, 40 * MIB, 0);
    const tarn_ptr b = rig_alloc(&rig, 12 * MIB, 0);

    end(&rig, user);
    assert_int_equal(tarn_allocator_set_pool_use_on_oom(rig.allocator, user, true), TARN_OK);
    release(&rig, user);
    rig_free(&rig, a);
    (void)rig_alloc(&rig, 40 * MIB, 0); /* its memory was given back for this, not lent */
    assert_int_equal(pool_totals(&rig, user).segments, 1);
    rig_free(&rig, b);
    rig_close(&rig);
}

/* test_mempool_no_split */
static void blocks_can_be_handed_out_whole(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    acquire(&rig, user);
    assert_int_equal(tarn_allocator_set_pool_no_split(rig.allocator, user, true), TARN_OK);
    begin(&rig, user);
    (void)rig_alloc(&rig, 512, 0);
    (void)rig_alloc(&rig, 512, 0);
    const tarn_ptr c = rig_alloc(&rig, 3 * MIB, 0);

    end(&rig, user);
    assert_int_equal(pool_totals(&rig, user).segments, 3);
    assert_int_equal(pool_totals(&rig, user).blocks, 3);
    assert_int_equal(rig_now(&rig, TARN_STAT_ALLOCATED_BYTES), 24 * MIB);
    assert_int_equal(rig_now(&rig, TARN_STAT_REQUESTED_BYTES), 3 * MIB + 1024);
    assert_int_equal(rig_now(&rig, TARN_STAT_INACTIVE_SPLIT), 0);
    rig_free(&rig, c);
    begin(&rig, user);
    assert_int_equal(rig_alloc(&rig, 15 * MIB, 0), c);
    end(&rig, user);
    rig_close(&rig);
}

/* test_mempool_expandable: one segment of each kind. */
static void a_pool_may_hold_growing_segments(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    begin(&rig, user);
    const tarn_ptr a = rig_alloc(&rig, 30 * MIB, 0);

    rig_configure(&rig, "expandable_segments:True");
    const tarn_ptr b = rig_alloc(&rig, 30 * MIB, 0);

    end(&rig, user);
    assert_int_equal(pool_totals(&rig, user).segments, 2);
    assert_int_equal(pool_totals(&rig, user).expandable, 1);
    rig_free(&rig, a);
    rig_free(&rig, b);
    release(&rig, user);
    rig_empty_cache(&rig);
    assert_int_equal(rig_totals(&rig).segments, 0);
    acquire(&rig, user); /* gone, so it can be made anew */
    rig_close(&rig);
}

/* Deltas of the counters of one pool between two moments. */
static void delta_is(const struct tarn_stats *before, const struct tarn_stats *after,
                     enum tarn_stat_pool pool, const uint64_t *expected)
{
    static const enum tarn_stat_kind kinds[] = {TARN_STAT_SEGMENT, TARN_STAT_RESERVED_BYTES,
                                                TARN_STAT_ACTIVE, TARN_STAT_ACTIVE_BYTES};

    for (int i = 0; i < 4; i++) {
        const int64_t delta =
            after->by_pool[kinds[i]][pool].current - before->by_pool[kinds[i]][pool].current;

        assert_int_equal(delta, expected[i]);
    }
}

/* test_graph_memory_stats_and_use_result_after_destroy_graph, without the two blocks of a graph's
 * random number generator: `b = a.clone()`, then five times `b = b.clone() + 1`. */
static void a_graph_takes_what_it_needs(void **state)
{
    static const struct {
        uint64_t bytes;
        uint64_t segments;
        uint64_t segment_bytes;
        enum tarn_stat_pool pool;
    } rows[] = {
        {512, 1, 2 * MIB, TARN_STAT_SMALL_POOL},
        {MIB, 2, 2 * MIB, TARN_STAT_SMALL_POOL},
        {MIB + 512, 1, 20 * MIB, TARN_STAT_LARGE_POOL},
        {10 * MIB - 512, 2, 20 * MIB, TARN_STAT_LARGE_POOL},
        {10 * MIB + 512, 3, 12 * MIB, TARN_STAT_LARGE_POOL},
    };
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const uint64_t bytes = rows[i].bytes;
        const struct tarn_pool_id id = {0, i + 1};
        const uint64_t during[4] = {rows[i].segments, rows[i].segments * rows[i].segment_bytes, 1,
                                    bytes};
        const uint64_t after[4] = {1, rows[i].segment_bytes, 1, bytes};
        const tarn_ptr a = rig_alloc(&rig, bytes, 3);
        const struct tarn_stats before = rig_stats(&rig);
        struct tarn_stats stats;

        begin(&rig, id);
        tarn_ptr b = rig_alloc(&rig, bytes, 3);

        for (int k = 0; k < 5; k++) {
            const tarn_ptr clone = rig_alloc(&rig, bytes, 3);
            const tarn_ptr sum = rig_alloc(&rig, bytes, 3);

            rig_free(&rig, clone);
            rig_free(&rig, b);
            b = sum;
        }
        end(&rig, id);
        for (int k = 0; k < 2; k++) {
            stats = rig_stats(&rig);
            delta_is(&before, &stats, rows[i].pool, during);
            rig_empty_cache(&rig);
        }
        release(&rig, id); /* the graph is destroyed, its result is not */
        rig_empty_cache(&rig);
        stats = rig_stats(&rig);
        delta_is(&before, &stats, rows[i].pool, after);
        rig_free(&rig, b);
        rig_free(&rig, a);
        rig_empty_cache(&rig);
    }
    rig_close(&rig);
}

/* test_repeat_graph_capture_cublas_workspace_memory: captures do not add up. */
static void a_hundred_captures_leave_nothing(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    for (uint64_t i = 0; i < 100; i++) {
        const struct tarn_pool_id id = {0, i + 1};

        rig_empty_cache(&rig); /* as torch.cuda.graph does before a capture */
        begin(&rig, id);
        rig_free(&rig, rig_alloc(&rig, 30 * MIB, 0));
        end(&rig, id);
        release(&rig, id);
    }
    assert_int_equal(rig_stats(&rig).num_ooms, 0);
    rig_empty_cache(&rig);
    assert_int_equal(rig_totals(&rig).reserved, 0);
    rig_close(&rig);
}

/* test_memory_stats_of_multiple_generators_and_graphs: two blocks of 512 bytes for each generator
 * while its graphs live, none after. */
static void generators_of_graphs_leave_nothing(void **state)
{
    struct rig rig;
    tarn_ptr blocks[8];

    (void)state;
    rig_open(&rig, GIB, "");
    begin(&rig, graph);
    for (int i = 0; i < 8; i++) {
        blocks[i] = rig_alloc(&rig, 8, 0);
    }
    end(&rig, graph);
    assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE), 8);
    assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE_BYTES), 8 * 512);
    for (int i = 0; i < 8; i++) {
        rig_free(&rig, blocks[i]);
    }
    release(&rig, graph);
    rig_empty_cache(&rig);
    assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE), 0);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 0);
    rig_close(&rig);
}

/* Released while requests still go to it, then flushed: the routing must not lead nowhere. */
static void a_pool_with_a_routing_stays(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    begin(&rig, graph);
    release(&rig, graph);
    rig_empty_cache(&rig);
    const tarn_ptr a = rig_alloc(&rig, 30 * MIB, 0);

    assert_int_equal(pool_totals(&rig, graph).segments, 1);
    rig_free(&rig, a);
    rig_empty_cache(&rig);
    (void)rig_alloc(&rig, 512, 0);
    end(&rig, graph);
    rig_close(&rig);
}

/* An id by its hash. */
struct hashed {
    uint32_t hash;
    uint32_t second;
};

static int by_hash(const void *a, const void *b)
{
    const struct hashed *x = a;
    const struct hashed *y = b;

    return (x->hash > y->hash) - (x->hash < y->hash);
}

/* Two ids of which a hash table of 32 bits sees the same. */
static void find_alike(struct tarn_pool_id ids[2])
{
    enum {
        MANY = 1000000 /* of which about a hundred pairs are alike */
    };
    struct hashed *all = malloc(MANY * sizeof *all);

    assert_non_null(all);
    for (uint32_t i = 0; i < MANY; i++) {
        const uint64_t halves[] = {0, i + 1};

        all[i] = (struct hashed){tn_hash_bytes(halves, sizeof halves), i + 1};
    }
    qsort(all, MANY, sizeof *all, by_hash);
    size_t at = 1;

    while (at < MANY && all[at - 1].hash != all[at].hash) {
        at++;
    }
    assert_true(at < MANY);
    ids[0] = (struct tarn_pool_id){0, all[at - 1].second};
    ids[1] = (struct tarn_pool_id){0, all[at].second};
    free(all);
}

static void ids_with_the_same_hash_are_told_apart(void **state)
{
    struct tarn_pool_id ids[2];

    (void)state;
    find_alike(ids);
    for (int first_gone = 0; first_gone < 2; first_gone++) {
        struct rig rig;

        rig_open(&rig, GIB, "");
        for (int i = 0; i < 2; i++) {
            for (int use = 0; use <= i; use++) {
                acquire(&rig, ids[i]);
            }
        }
        assert_int_equal(tarn_allocator_pool_use_count(rig.allocator, ids[0]), 1);
        assert_int_equal(tarn_allocator_pool_use_count(rig.allocator, ids[1]), 2);
        for (int use = 0; use <= first_gone; use++) {
            release(&rig, ids[first_gone]);
        }
        rig_empty_cache(&rig);
        assert_int_equal(tarn_allocator_pool_use_count(rig.allocator, ids[first_gone]), 0);
        assert_int_equal(tarn_allocator_pool_use_count(rig.allocator, ids[1 - first_gone]),
                         first_gone ? 1 : 2);
        rig_close(&rig);
    }
}

/* A search through all of them for each would never end. */
static void many_pools(void **state)
{
    enum {
        POOLS = 200000
    };
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    for (uint64_t i = 1; i <= POOLS; i++) {
        acquire(&rig, (struct tarn_pool_id){0, i});
    }
    for (uint64_t i = 1; i <= POOLS; i++) {
        begin(&rig, (struct tarn_pool_id){0, i});
        end(&rig, (struct tarn_pool_id){0, i});
    }
    assert_int_equal(tarn_allocator_pool_use_count(rig.allocator, (struct tarn_pool_id){0, POOLS}),
                     2);
    for (uint64_t i = 1; i <= POOLS; i++) {
        release(&rig, (struct tarn_pool_id){0, i});
        release(&rig, (struct tarn_pool_id){0, i});
    }
    rig_empty_cache(&rig);
    assert_int_equal(tarn_allocator_pool_use_count(rig.allocator, (struct tarn_pool_id){0, POOLS}),
                     0);
    rig_close(&rig);
}

static void without_host_memory_nothing_changes(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    for (uint64_t n = 1; n <= 2; n++) { /* the list of routings, the pool */
        tarn_host_fail_nth(n);
        assert_int_equal(
            tarn_allocator_begin_pool(rig.allocator, graph, any_stream, NULL, &rig.error),
            TARN_ERR_HOST_MEMORY);
        assert_int_equal(tarn_allocator_pool_use_count(rig.allocator, graph), 0);
        assert_int_equal(tarn_allocator_end_pool(rig.allocator, graph, NULL), TARN_ERR_STATE);
    }
    begin(&rig, graph);
    rig_close(&rig);
}

/* Pools are visited in the order of their creation, unless one is put first. */
static void a_pool_can_be_put_first(void **state)
{
    static const struct tarn_pool_id ids[] = {{0, 1}, {0, 2}, {7, 0}};
    const uint64_t live = tarn_host_get_usage().live_bytes;
    struct tn_private_pools pools = {0};
    struct tn_private_pool *made[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tn_private_pool_acquire(&pools, ids[i], NULL), TARN_OK);
        made[i] = tn_private_pool_find(&pools, ids[i]);
        assert_non_null(made[i]);
    }
    for (int i = 0; i < 3; i++) { /* the last one each time: all have been first then */
        struct tn_private_pool *const last = made[2 - i];

        assert_ptr_equal(pools.last, last);
        tn_private_pool_put_first(&pools, last);
        assert_ptr_equal(pools.first, last);
        assert_null(last->prev);
        unsigned count = 0;
        const struct tn_private_pool *before = NULL;

        for (const struct tn_private_pool *p = pools.first; p; p = p->next) {
            assert_ptr_equal(p->prev, before);
            before = p;
            assert_true(++count <= 3);
        }
        assert_int_equal(count, 3);
        assert_ptr_equal(pools.last, before);
    }
    assert_ptr_equal(pools.first, made[0]);
    assert_ptr_equal(pools.last, made[2]);
    assert_int_equal(tn_private_pool_begin(&pools, ids[0], any_stream, NULL, NULL), TARN_OK);
    tn_private_pools_fini(&pools);
    assert_null(tn_private_pool_find(&pools, ids[0]));
    assert_null(tn_private_pool_route(&pools, 0));
    assert_int_equal(tarn_host_get_usage().live_bytes, live);
}

static void pages_of_some_pools_stay(void **state)
{
    struct tn_private_pool pool = {0};

    (void)state;
    assert_true(tn_private_pool_may_move(NULL));
    assert_true(tn_private_pool_may_move(&pool));
    pool.pages_stay = true;
    assert_false(tn_private_pool_may_move(&pool));
    pool = (struct tn_private_pool){.sleeps = true};
    assert_false(tn_private_pool_may_move(&pool));
    pool = (struct tn_private_pool){.no_split = true};
    assert_false(tn_private_pool_may_move(&pool));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uses_are_counted),
        cmocka_unit_test(misuse_is_refused_and_changes_nothing),
        cmocka_unit_test(captures_are_counted_up_to_a_most),
        cmocka_unit_test(pools_do_not_share_memory),
        cmocka_unit_test(the_filter_chooses_by_stream),
        cmocka_unit_test(the_latest_routing_wins),
        cmocka_unit_test(many_routings_at_once),
        cmocka_unit_test(a_released_pool_goes_with_its_last_block),
        cmocka_unit_test(released_memory_is_there_for_others),
        cmocka_unit_test(one_pool_can_be_emptied_alone),
        cmocka_unit_test(a_pool_may_lend_when_memory_is_short),
        cmocka_unit_test(a_released_pool_does_not_lend),
        cmocka_unit_test(blocks_can_be_handed_out_whole),
        cmocka_unit_test(a_pool_may_hold_growing_segments),
        cmocka_unit_test(a_graph_takes_what_it_needs),
        cmocka_unit_test(a_hundred_captures_leave_nothing),
        cmocka_unit_test(generators_of_graphs_leave_nothing),
        cmocka_unit_test(a_pool_with_a_routing_stays),
        cmocka_unit_test(ids_with_the_same_hash_are_told_apart),
        cmocka_unit_test(many_pools),
        cmocka_unit_test(a_pool_can_be_put_first),
        cmocka_unit_test(pages_of_some_pools_stay),
        cmocka_unit_test(without_host_memory_nothing_changes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
