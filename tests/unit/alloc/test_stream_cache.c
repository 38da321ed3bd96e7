/* SPDX-License-Identifier: MIT */
/*
 * Per-stream caches with real threads that take turns, so that what happens is known. They are made
 * to open without contention. The property test shows that decisions stay the same.
 */
#include "support/test.h"

#include "alloc/engine/core_check.h"
#include "alloc/engine/watch_source.h"
#include "support/rig.h"
#include "tarn/graph_pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

/* A thread that does one thing at a time, when told. */
struct hand {
    pthread_t thread;
    struct rig *rig;
    tarn_stream stream;
    uint64_t size; /* what to allocate; 0: free the newest; UINT64_MAX: go home */
    tarn_ptr ptrs[8];
    unsigned held;
    atomic_bool busy;
};

static void hand_act(struct hand *hand)
{
    if (hand->size > 0) {
        hand->ptrs[hand->held++] = rig_alloc(hand->rig, hand->size, hand->stream);
    } else {
        rig_free(hand->rig, hand->ptrs[--hand->held]);
    }
}

static void *hand_work(void *argument)
{
    struct hand *hand = argument;

    for (;;) {
        while (!atomic_load(&hand->busy)) {
            (void)sched_yield();
        }
        if (hand->size == UINT64_MAX) {
            return NULL;
        }
        hand_act(hand);
        atomic_store(&hand->busy, false);
    }
}

static void hand_open(struct hand *hand, struct rig *rig, tarn_stream stream)
{
    *hand = (struct hand){.rig = rig, .stream = stream};
    assert_int_equal(pthread_create(&hand->thread, NULL, hand_work, hand), 0);
}

/* Has it do that, and waits. */
static void tell(struct hand *hand, uint64_t size)
{
    hand->size = size;
    atomic_store(&hand->busy, true);
    while (size != UINT64_MAX && atomic_load(&hand->busy)) {
        (void)sched_yield();
    }
}

static void hand_close(struct hand *hand)
{
    tell(hand, UINT64_MAX);
    assert_int_equal(pthread_join(hand->thread, NULL), 0);
}

struct scene {
    struct rig rig;
    struct tn_stream_caches *caches;
    struct hand hands[2];
};

/* Both streams get their caches, whose logs have entries. */
static void caches_open(struct scene *scene)
{
    for (unsigned i = 0; i < 2; i++) {
        scene->caches->calls_left = UINT32_MAX;
        for (int k = 0; k < 4; k++) {
            tell(&scene->hands[i], 3 * MIB);
        }
        for (int k = 0; k < 4; k++) {
            tell(&scene->hands[i], 0);
        }
    }
    scene->caches->calls_left = 0;
    assert_true(atomic_load(&scene->caches->open));
    assert_int_equal(atomic_load(&rig_engine(scene->rig.allocator)->heap.busy), TN_BUSY_CACHES);
}

/* Two threads, each with a stream, a cache and a log of three entries of one MiB. */
static void scene_open(struct scene *scene)
{
    rig_open(&scene->rig, GIB, "");
    scene->caches = &rig_engine(scene->rig.allocator)->fast.caches;
    for (unsigned i = 0; i < 2; i++) {
        hand_open(&scene->hands[i], &scene->rig, (tarn_stream)i + 1);
        for (int round = 0; round < 2; round++) { /* the first makes the segments */
            for (int k = 0; k < 4; k++) {
                tell(&scene->hands[i], 3 * MIB);
            }
            for (int k = 0; k < 4; k++) {
                tell(&scene->hands[i], 0);
            }
        }
    }
    caches_open(scene);
    assert_int_equal(scene->caches->count, 2);
    tarn_allocator_reset_peak_stats(scene->rig.allocator);
}

static void scene_close(struct scene *scene)
{
    for (unsigned i = 0; i < 2; i++) {
        hand_close(&scene->hands[i]);
    }
    rig_close(&scene->rig);
}

static struct tarn_stat bytes_of(struct scene *scene)
{
    return rig_stats(&scene->rig).by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL];
}

/* One after the other: the peak is the larger one, not the sum. Both at once: it is the sum. */
static void a_peak_is_that_of_the_sum(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene);
    for (int round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 2; i++) {
            tell(&scene.hands[i], 3 * MIB);
            tell(&scene.hands[i], 3 * MIB);
            tell(&scene.hands[i], 0);
            tell(&scene.hands[i], 0);
        }
    }
    assert_int_equal(bytes_of(&scene).peak, 6 * MIB);
    tell(&scene.hands[0], 3 * MIB);
    tell(&scene.hands[1], 3 * MIB);
    tell(&scene.hands[1], 3 * MIB);
    assert_int_equal(bytes_of(&scene).current, 9 * MIB);
    tell(&scene.hands[0], 0);
    tell(&scene.hands[1], 0);
    tell(&scene.hands[1], 0);
    assert_int_equal(bytes_of(&scene).peak, 9 * MIB);
    assert_int_equal(bytes_of(&scene).current, 0);
    scene_close(&scene);
}

/* Below the peak the caches exchange quotas: they go where they are needed. */
static void quota_moves_between_caches(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene);
    for (int k = 0; k < 4; k++) { /* raises the peak to 12 MiB */
        tell(&scene.hands[0], 3 * MIB);
    }
    for (int k = 0; k < 4; k++) {
        tell(&scene.hands[0], 0);
    }
    (void)bytes_of(&scene); /* both caches get half of it */
    const uint64_t slow = scene.caches->slow_calls;

    for (int round = 0; round < 10; round++) {
        for (unsigned i = 0; i < 2; i++) {
            for (int k = 0; k < 4; k++) {
                tell(&scene.hands[i], 3 * MIB);
            }
            for (int k = 0; k < 4; k++) {
                tell(&scene.hands[i], 0);
            }
        }
    }
    assert_int_equal(scene.caches->slow_calls, slow);
    assert_int_equal(bytes_of(&scene).peak, 12 * MIB);
    scene_close(&scene);
}

/* What the caches get of the room below the peak of bytes, in MiB, when it is divided with `first`
 * in turn. */
static void assert_divided(struct scene *scene, uint32_t first, int64_t share_0, int64_t share_1)
{
    scene->caches->first = first;
    (void)bytes_of(scene);
    assert_int_equal(scene->caches->list[0]->quota.of[1][TARN_STAT_ALL], share_0 * (int64_t)MIB);
    assert_int_equal(scene->caches->list[1]->quota.of[1][TARN_STAT_ALL], share_1 * (int64_t)MIB);
}

/* The first in turn gets what its log needs or an equal part of the room, if that is more; the
 * other what is left. */
static void quotas_are_what_logs_need_or_equal_parts(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene);
    for (int k = 0; k < 4; k++) { /* raises the peak to 12 MiB, which that log needs then */
        tell(&scene.hands[0], 3 * MIB);
    }
    for (int k = 0; k < 4; k++) {
        tell(&scene.hands[0], 0);
    }
    assert_divided(&scene, 0, 12, 0);
    assert_divided(&scene, 1, 0, 12);
    tell(&scene.hands[1], 2 * MIB); /* all that its log has then */
    tell(&scene.hands[1], 0);
    assert_divided(&scene, 1, 6, 6);
    assert_divided(&scene, 0, 12, 0);
    tell(&scene.hands[0], 3 * MIB);
    tell(&scene.hands[0], 3 * MIB); /* as far to one end of its log as to the other */
    assert_divided(&scene, 0, 6, 0);
    assert_divided(&scene, 1, 3, 3);
    assert_int_equal(bytes_of(&scene).peak, 12 * MIB);
    tell(&scene.hands[0], 0);
    tell(&scene.hands[0], 0);
    scene_close(&scene);
}

/* Frees and allocates again every other of four blocks: no undo log serves that. */
static void replace_two(struct scene *scene, tarn_ptr blocks[4], int round)
{
    for (int k = round % 2; k < 4; k += 2) {
        rig_free(&scene->rig, blocks[k]);
    }
    for (int k = round % 2; k < 4; k += 2) {
        blocks[k] = rig_alloc(&scene->rig, 3 * MIB, 1);
    }
}

/* Calls in any order need the cache only, once the peaks are there; and what was allocated in a
 * cache is found when it is closed. */
static void calls_in_any_order_stay_in_the_cache(void **state)
{
    struct scene scene;
    tarn_ptr blocks[4];

    (void)state;
    scene_open(&scene);
    for (int k = 0; k < 4; k++) {
        blocks[k] = rig_alloc(&scene.rig, 3 * MIB, 1);
    }
    replace_two(&scene, blocks, 0); /* the peaks of the free parts of segments rise */
    replace_two(&scene, blocks, 1);
    (void)bytes_of(&scene); /* the room below them is divided */
    const uint64_t slow = scene.caches->slow_calls;

    for (int round = 0; round < 100; round++) {
        replace_two(&scene, blocks, round);
    }
    assert_int_equal(scene.caches->slow_calls, slow);
    assert_int_equal(bytes_of(&scene).current, 12 * MIB);
    assert_int_equal(bytes_of(&scene).peak, 12 * MIB);
    rig_empty_cache(&scene.rig);
    assert_false(atomic_load(&scene.caches->open));
    rig_check(&scene.rig);
    for (int k = 0; k < 4; k++) {
        tarn_ptr base = 0;

        assert_int_equal(
            tarn_allocator_base_allocation(scene.rig.allocator, blocks[k], &base, NULL, NULL),
            TARN_OK);
        rig_free(&scene.rig, blocks[k]);
    }
    assert_int_equal(bytes_of(&scene).current, 0);
    rig_check(&scene.rig);
    scene_close(&scene);
}

/* Blocks from before a cache opened are freed through the heap, and do not count against it. */
static void older_blocks_do_not_close_a_cache(void **state)
{
    enum {
        OLDER = 4000
    };
    struct scene scene;
    static tarn_ptr older[OLDER];

    (void)state;
    scene_open(&scene);
    rig_empty_cache(&scene.rig);
    assert_false(atomic_load(&scene.caches->open));
    for (int i = 0; i < OLDER; i++) {
        older[i] = rig_alloc(&scene.rig, 512, 1);
    }
    rig_free(&scene.rig, rig_alloc(&scene.rig, 512, 2)); /* gets its segment */
    scene.caches->calls_left = 1;
    rig_free(&scene.rig, rig_alloc(&scene.rig, 1024, 1));
    assert_true(atomic_load(&scene.caches->open));
    for (int i = 0; i < OLDER; i += 2) { /* none beside another */
        rig_free(&scene.rig, older[i]);
        rig_free(&scene.rig, rig_alloc(&scene.rig, 512, 1));
    }
    rig_free(&scene.rig, rig_alloc(&scene.rig, 512, 2)); /* of no cache: looks whether they pay */
    assert_true(atomic_load(&scene.caches->open));
    for (int i = 1; i < OLDER; i += 2) {
        rig_free(&scene.rig, older[i]);
    }
    assert_int_equal(bytes_of(&scene).current, 0);
    scene_close(&scene);
}

/* Each split needs a node: whoever releases the heap's lock sees to it that caches have some. */
static void caches_get_nodes_from_the_heap(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene);
    for (unsigned i = 0; i < 2; i++) {
        struct tn_shard *shard = &scene.caches->list[i]->shard;

        assert_true(shard->spare_count > 0);
        while (shard->spare_count > 0) {
            tn_block_destroy(tn_shard_take_spare(shard));
        }
    }
    /* Without one the call goes to the heap, which also gives the caches new ones. The second call,
     * because the first finds those of the log's blocks. */
    tell(&scene.hands[0], 2 * MIB);
    struct tn_shard *own = &scene.caches->list[0]->shard;

    while (own->spare_count > 0) {
        tn_block_destroy(tn_shard_take_spare(own));
    }
    const uint64_t slow = scene.caches->slow_calls;

    tell(&scene.hands[0], 3 * MIB);
    assert_true(scene.caches->slow_calls > slow);
    tell(&scene.hands[0], 0);
    tn_core_assert_served(rig_engine(scene.rig.allocator)); /* looks at nothing: caches are open */
    rig_engine(scene.rig.allocator)->heap.reserved += 512;
    tn_core_assert_served(rig_engine(scene.rig.allocator));
    rig_engine(scene.rig.allocator)->heap.reserved -= 512;
    for (unsigned i = 0; i < 2; i++) {
        assert_true(scene.caches->list[i]->shard.spare_count > 0);
    }
    tell(&scene.hands[0], 0);
    rig_check(&scene.rig);
    scene_close(&scene);
}

/* And what a cache has beyond need goes back. */
static void caches_keep_no_more_nodes_than_they_need(void **state)
{
    enum {
        MANY = 4000
    };
    struct scene scene;

    (void)state;
    scene_open(&scene);
    struct tn_heap *heap = &rig_engine(scene.rig.allocator)->heap;
    struct tn_shard *shard = &scene.caches->list[0]->shard;

    for (int i = 0; i < MANY; i++) { /* as from merged blocks */
        tn_shard_drop_node(shard, tn_block_create(&heap->slab));
    }
    assert_true(shard->spare_count >= MANY);
    (void)rig_stats(&scene.rig);
    assert_true(shard->spare_count > 0 && shard->spare_count < MANY);
    rig_check(&scene.rig);
    scene_close(&scene);
}

/* The place of a free block that was made without host memory is in a list: calls that would have
 * to look through it leave the cache. */
static void blocks_without_a_place_are_left_to_the_heap(void **state)
{
    struct scene scene;
    tarn_ptr blocks[6];

    (void)state;
    scene_open(&scene);
    for (int i = 0; i < 6; i++) {
        blocks[i] = rig_alloc(&scene.rig, 3 * MIB, 1);
    }
    (void)bytes_of(&scene);          /* the room below the peaks is divided */
    for (int i = 0; i < 6; i += 2) { /* no two are neighbours */
        tarn_host_fail_nth(1);
        rig_free(&scene.rig, blocks[i]);
        tarn_host_fail_nth(0);
    }
    assert_true(atomic_load(&scene.caches->open));
    const struct tn_free_set *set = scene.caches->list[0]->sets[TN_LARGE];

    assert_non_null(set->linked.first);
    const tarn_ptr fits = rig_alloc(&scene.rig, 2 * MIB, 1);

    assert_null(set->linked.first); /* the heap has settled it */
    rig_free(&scene.rig, fits);
    for (int i = 1; i < 6; i += 2) {
        rig_free(&scene.rig, blocks[i]);
    }
    assert_int_equal(bytes_of(&scene).current, 0);
    scene_close(&scene);
}

/* A cache whose map of blocks cannot grow leaves the call to the heap, and the block is where it
 * would have been. */
static void a_map_that_cannot_grow_leaves_a_call_to_the_heap(void **state)
{
    enum {
        MANY = 200
    };
    struct scene scene;
    tarn_ptr blocks[MANY];
    unsigned refused = 0;

    (void)state;
    scene_open(&scene);
    rig_free(&scene.rig, rig_alloc(&scene.rig, 512, 1)); /* its segment: caches close */
    scene.caches->calls_left = 1;
    rig_free(&scene.rig, rig_alloc(&scene.rig, 1024, 1));
    assert_true(atomic_load(&scene.caches->open));
    for (int i = 0; i < MANY; i++) { /* the peaks */
        blocks[i] = rig_alloc(&scene.rig, 512, 1);
    }
    for (int i = 0; i < MANY; i++) { /* the oldest first: no undo log serves that */
        rig_free(&scene.rig, blocks[i]);
    }
    (void)bytes_of(&scene); /* the room below the peaks is divided */
    const struct tn_stream_cache *cache = scene.caches->list[0];

    for (int i = 0; i < MANY; i++) {
        const struct tn_ptr_map *map = &cache->shard.map;
        const bool is_full = map->count == tn_ptr_map_room(map->buckets);
        const uint64_t slow = scene.caches->slow_calls;

        tarn_host_fail_nth(is_full ? 1 : 0);
        assert_int_equal(rig_alloc(&scene.rig, 512, 1), blocks[i]);
        tarn_host_fail_nth(0);
        assert_int_equal(scene.caches->slow_calls - slow, is_full ? 1 : 0);
        refused += is_full;
    }
    assert_true(refused > 1);
    assert_true(atomic_load(&scene.caches->open));
    assert_int_equal(bytes_of(&scene).current, MANY * 512);
    for (int i = 0; i < MANY; i++) {
        rig_free(&scene.rig, blocks[i]);
    }
    assert_int_equal(bytes_of(&scene).current, 0);
    scene_close(&scene);
}

/* Streams beyond the most that caches are made for, and those whose cache the host had no memory
 * for, are served by the heap. */
static void streams_without_a_cache_use_the_heap(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    struct tn_stream_caches *caches = &rig_engine(rig.allocator)->fast.caches;

    for (int i = 0; i < TN_STREAM_CACHES_MAX + 2; i++) {
        rig_free(&rig, rig_alloc(&rig, 512, (tarn_stream)i + 1));
    }
    caches->calls_left = 1;
    tarn_host_fail_nth(1);
    rig_free(&rig, rig_alloc(&rig, 1024, 1));
    tarn_host_fail_nth(0);
    assert_int_equal(caches->count, 0);
    caches->calls_left = UINT32_MAX;
    for (int i = 0; i < TN_STREAM_CACHES_MAX + 2; i++) {
        rig_free(&rig, rig_alloc(&rig, 1024, (tarn_stream)i + 1));
    }
    caches->calls_left = 0;
    assert_int_equal(caches->count, TN_STREAM_CACHES_MAX);
    assert_int_equal(rig_now(&rig, TARN_STAT_ALLOCATED_BYTES), 0);
    rig_close(&rig);
}

static int64_t oversize(struct rig *rig)
{
    return rig_stats(rig).oversize_allocations.current;
}

/* Blocks that may not be split are counted apart, which only the heap does. */
static void oversize_blocks_are_left_to_the_heap(void **state)
{
    const uint64_t sizes[] = {21 * MIB, 30 * MIB};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "max_split_size_mb:21");
    struct tn_stream_caches *caches = &rig_engine(rig.allocator)->fast.caches;

    for (int i = 0; i < 2; i++) { /* the segments */
        rig_free(&rig, rig_alloc(&rig, sizes[i], 1));
    }
    rig_free(&rig, rig_alloc(&rig, 512, 1));
    caches->calls_left = 1;
    rig_free(&rig, rig_alloc(&rig, 1024, 1));
    assert_true(atomic_load(&caches->open));
    for (int i = 0; i < 2; i++) {
        const int64_t before = oversize(&rig);
        const uint64_t slow = caches->slow_calls;
        const tarn_ptr ptr = rig_alloc(&rig, sizes[i], 1);

        assert_int_equal(caches->slow_calls, slow + 1);
        assert_int_equal(oversize(&rig), before + 1);
        rig_free(&rig, ptr);
        assert_int_equal(oversize(&rig), before);
    }
    assert_true(atomic_load(&caches->open));
    rig_close(&rig);
}

/* A cache may open although the host has no memory for the set of a pool in which the stream had
 * nothing yet: the heap serves what would be from there. */
static void a_cache_without_a_set_leaves_it_to_the_heap(void **state)
{
    bool is_without = false;

    (void)state;
    for (uint64_t n = 1; n < 20; n++) {
        struct rig rig;
        tarn_ptr ptr;

        rig_open(&rig, GIB, "");
        const struct tn_engine *engine = rig_engine(rig.allocator);

        rig_free(&rig, rig_alloc(&rig, 1024, 1));
        rig_engine(rig.allocator)->fast.caches.calls_left = 1;
        tarn_host_fail_nth(n);
        if (tarn_allocator_alloc(rig.allocator, 2048, 1, &ptr, NULL) == TARN_OK) {
            rig_free(&rig, ptr);
        }
        tarn_host_fail_nth(0);
        const struct tn_stream_caches *caches = &engine->fast.caches;

        is_without = is_without || (caches->count == 1 && atomic_load(&caches->open) &&
                                    !caches->list[0]->sets[TN_LARGE]);
        rig_free(&rig, rig_alloc(&rig, 3 * MIB, 1));
        assert_int_equal(rig_now(&rig, TARN_STAT_ALLOCATED_BYTES), 0);
        rig_check(&rig);
        rig_close(&rig);
    }
    assert_true(is_without);
}

/* Looks for contention: a call on that stream, after so many waits for the heap's lock in all. */
static void look(struct rig *rig, uint32_t waits, tarn_stream stream)
{
    struct tn_engine *engine = rig_engine(rig->allocator);

    engine->heap.lock.waits = waits;
    assert_true(tn_stream_caches_may_open(&engine->fast.caches, &engine->heap.lock));
    assert_false(tn_stream_caches_consider(&engine->fast.caches, &engine->heap, stream));
}

/* Caches open when as many calls had to wait as patience asks for, and between calls that took
 * turns: of streams that change at least every fourth time. */
static void caches_open_under_contention_of_several_streams(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    struct tn_engine *engine = rig_engine(rig.allocator);
    struct tn_stream_caches *caches = &engine->fast.caches;
    const uint32_t patience = caches->patience;
    tarn_stream stream = 1;

    look(&rig, 1, stream);
    look(&rig, patience, stream); /* one stream alone */
    assert_int_equal(caches->calls_left, 0);
    assert_int_equal(caches->waits_seen, patience);
    for (uint32_t i = 0; i < patience / 4 - 1; i++) {
        stream = 3 - stream;
        look(&rig, 2 * patience - 1, stream);
    }
    assert_int_equal(caches->waits_seen, patience); /* not yet */
    look(&rig, 2 * patience, stream);
    assert_int_equal(caches->calls_left, 0); /* too few changes */
    assert_int_equal(caches->waits_seen, 2 * patience);
    for (uint32_t i = 0; i < patience / 4; i++) {
        stream = 3 - stream;
        look(&rig, 3 * patience - 1, stream);
    }
    look(&rig, 3 * patience, stream);
    assert_true(caches->calls_left > 0);
    assert_false(atomic_load(&caches->open));

    const uint32_t calls = caches->calls_left;

    rig_free(&rig, rig_alloc(&rig, 512, 1)); /* asks the device, so it opens none */
    rig_free(&rig, rig_alloc(&rig, 1024, 1));
    assert_true(atomic_load(&caches->open));
    assert_int_equal(caches->calls_left, calls - 2); /* the first one looked as well */
    assert_int_equal(caches->count, 1);
    rig_close(&rig);
}

/* Where caches never pay, the time until they open again stops growing. */
static void patience_ends_somewhere(void **state)
{
    struct tn_stream_caches caches;
    uint32_t before = 0;
    int rounds = 0;

    (void)state;
    tn_stream_caches_init(&caches);
    do {
        before = caches.patience;
        caches.slow_calls = UINT16_MAX;
        assert_false(tn_stream_caches_pay(&caches));
        rounds++;
    } while (caches.patience > before);
    assert_int_equal(caches.patience, before);
    assert_in_range(rounds, 10, 30);
    tn_stream_caches_fini(&caches);
}

/* What changes free blocks from outside closes them, and what was freed there is free. */
static void they_close_when_something_else_begins(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene);
    tell(&scene.hands[0], 3 * MIB);
    rig_empty_cache(&scene.rig);
    assert_false(atomic_load(&scene.caches->open));
    assert_int_equal(rig_totals(&scene.rig).segments, 1);
    tell(&scene.hands[0], 0);
    rig_empty_cache(&scene.rig);
    assert_int_equal(rig_totals(&scene.rig).segments, 0);
    scene_close(&scene);
}

/* Nor can what a stream without a cache allocated meanwhile be undone afterwards, when the free
 * blocks around it are others. */
static void what_has_no_cache_cannot_be_undone_either(void **state)
{
    struct scene scene;
    tarn_ptr ptrs[2];

    (void)state;
    scene_open(&scene);
    const struct tn_undo_log *log = &rig_engine(scene.rig.allocator)->fast.log;

    rig_free(&scene.rig, rig_alloc(&scene.rig, 3 * MIB, 3)); /* a segment, for which caches close */
    caches_open(&scene);
    for (int i = 0; i < 2; i++) {
        ptrs[i] = rig_alloc(&scene.rig, 3 * MIB, 3);
    }
    assert_true(atomic_load(&scene.caches->open));
    assert_false(tn_undo_log_is_empty(log));
    rig_empty_cache(&scene.rig);
    assert_true(tn_undo_log_is_empty(log));
    for (int i = 1; i >= 0; i--) {
        rig_free(&scene.rig, ptrs[i]);
    }
    rig_check(&scene.rig);
    rig_empty_cache(&scene.rig);
    assert_int_equal(rig_totals(&scene.rig).segments, 0);
    scene_close(&scene);
}

/* A block of a cache can be freed by any thread, and only once. */
static void others_may_free(void **state)
{
    struct scene scene;
    struct hand *first = &scene.hands[0];

    (void)state;
    scene_open(&scene);
    tell(first, 3 * MIB);
    tell(first, 3 * MIB);
    const tarn_ptr ptr = first->ptrs[0];

    rig_free(&scene.rig, ptr); /* not the newest */
    assert_int_equal(tarn_allocator_free(scene.rig.allocator, ptr, NULL), TARN_ERR_INVALID_POINTER);
    tell(first, 0);
    assert_int_equal(tarn_allocator_free(scene.rig.allocator, first->ptrs[1], NULL),
                     TARN_ERR_INVALID_POINTER);
    assert_int_equal(bytes_of(&scene).current, 0);
    scene_close(&scene);
}

/* Stream caches that only cost are closed, and it takes longer until they open again. */
static void caches_that_do_not_pay_close(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene);
    const uint32_t patience = scene.caches->patience;

    rig_free(&scene.rig, rig_alloc(&scene.rig, 4096, 0x900)); /* asks the device: caches close */
    scene.caches->calls_left = 1;
    tell(&scene.hands[0], 3 * MIB);
    tell(&scene.hands[0], 0);
    assert_true(atomic_load(&scene.caches->open));
    for (int i = 0; i < 2000 && atomic_load(&scene.caches->open); i++) {
        const tarn_ptr a = rig_alloc(&scene.rig, 4096, 0x900);
        const tarn_ptr b = rig_alloc(&scene.rig, 4096, 0x900);

        rig_free(&scene.rig, a);
        rig_free(&scene.rig, b);
    }
    assert_false(atomic_load(&scene.caches->open));
    assert_int_equal(scene.caches->patience, 2 * patience);
    scene_close(&scene);
}

/* Sizes in turn, each freed at once, on the first cache's stream. */
static void take_turns(struct scene *scene, int count)
{
    for (int i = 0; i < count; i++) {
        rig_free(&scene->rig, rig_alloc(&scene->rig, UINT64_C(512) << (i % 13), 1));
    }
}

/* While one thread works alone, its cache serves many calls but no faster than the heap would, and
 * the quotas that others hold are in its way: caches close, whether calls go to the heap or only
 * ask for quota, and open again under contention alone. */
static void one_cache_alone_closes(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene);
    take_turns(&scene, 26); /* every size gets its segment: caches close */
    caches_open(&scene);
    const uint32_t patience = scene.caches->patience;

    scene.caches->calls_left = UINT32_MAX;
    take_turns(&scene, 20000);
    assert_false(atomic_load(&scene.caches->open));
    assert_int_equal(scene.caches->calls_left, 0);
    assert_int_equal(scene.caches->patience, 2 * patience);
    assert_int_equal(bytes_of(&scene).current, 0);
    rig_check(&scene.rig);
    scene_close(&scene);
}

/* Each of so many hands allocates and frees, in turn. */
static void hands_take_turns(struct scene *scene, unsigned hands)
{
    for (int i = 0; i < 4000; i++) {
        for (unsigned k = 0; k < hands; k++) {
            tell(&scene->hands[k], 3 * MIB);
            tell(&scene->hands[k], 0);
        }
    }
}

/* The same, then calls of a stream without a cache, so many that one of them looks whether caches
 * pay. */
static void hands_work(struct scene *scene, unsigned hands)
{
    hands_take_turns(scene, hands);
    for (int i = 0; i < 600; i++) {
        rig_free(&scene->rig, rig_alloc(&scene->rig, 4096, 0x900));
    }
}

/* A scene where that stream has free memory, and the peaks have room for both hands at once. */
static void scene_open_with_room(struct scene *scene)
{
    scene_open(scene);
    rig_free(&scene->rig, rig_alloc(&scene->rig, 4096, 0x900)); /* asks the device: caches close */
    caches_open(scene);
    for (unsigned k = 0; k < 2; k++) {
        tell(&scene->hands[k], 3 * MIB);
    }
    for (unsigned k = 0; k < 2; k++) {
        tell(&scene->hands[k], 0);
    }
    (void)bytes_of(scene); /* it is divided */
}

/* However many calls one cache serves, it is of no use while the others serve none. */
static void the_hits_of_one_cache_do_not_pay(void **state)
{
    struct scene scene;

    (void)state;
    scene_open_with_room(&scene);
    hands_work(&scene, 1);
    assert_false(atomic_load(&scene.caches->open));
    scene_close(&scene);
}

/* Also when no call takes the heap's lock any more: a cache lets one look after so many calls. */
static void a_cache_in_use_alone_lets_a_call_look(void **state)
{
    struct scene scene;
    tarn_ptr blocks[4];
    int rounds = 0;

    (void)state;
    scene_open(&scene);
    for (int k = 0; k < 4; k++) {
        blocks[k] = rig_alloc(&scene.rig, 3 * MIB, 1);
    }
    replace_two(&scene, blocks, 0); /* the peaks of the free parts of segments rise */
    replace_two(&scene, blocks, 1);
    (void)bytes_of(&scene); /* the room below them is divided */
    while (rounds < 100000 && atomic_load(&scene.caches->open)) {
        replace_two(&scene, blocks, rounds++);
    }
    assert_in_range(rounds, 50000, 90000); /* of four calls */
    for (int k = 0; k < 4; k++) {
        rig_free(&scene.rig, blocks[k]);
    }
    assert_int_equal(bytes_of(&scene).peak, 12 * MIB);
    scene_close(&scene);
}

/* Nor do caches pay that have to ask each other all the time, although no call takes the heap's
 * lock. */
static void caches_that_only_ask_close(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene);
    hands_take_turns(&scene, 2); /* the peak has room for one of them */
    assert_false(atomic_load(&scene.caches->open));
    assert_int_equal(bytes_of(&scene).peak, 3 * MIB);
    scene_close(&scene);
}

/* Where several caches serve calls, they stay open, and soon open again the next time. */
static void caches_that_pay_forget_that_they_did_not(void **state)
{
    struct scene scene;

    (void)state;
    scene_open_with_room(&scene);
    const uint32_t patience = scene.caches->patience;

    scene.caches->patience = 1024 * patience;
    hands_work(&scene, 2);
    assert_true(atomic_load(&scene.caches->open));
    assert_int_equal(scene.caches->patience, patience);
    scene.caches->patience = 1024 * patience;
    for (unsigned k = 0; k < 2; k++) { /* as if it were much later */
        scene.caches->list[k]->hits = UINT32_MAX;
    }
    tell(&scene.hands[0], 2 * MIB); /* not what the log has: looks */
    assert_true(atomic_load(&scene.caches->open));
    assert_int_equal(scene.caches->patience, patience);
    assert_int_equal(scene.caches->list[1]->hits, 0);
    tell(&scene.hands[0], 0);
    rig_free(&scene.rig, rig_alloc(&scene.rig, 4096, 0x900)); /* does not look again so soon */
    assert_true(atomic_load(&scene.caches->open));
    scene_close(&scene);
}

/* The hint of a thread to the cache it used outlives the allocator, and means nothing to the
 * next; nor does that of a thread that used none. */
static void another_allocator_has_other_caches(void **state)
{
    struct hand hand;
    struct rig rig;

    (void)state;
    for (int i = 0; i < 3; i++) {
        rig_open(&rig, GIB, "");
        struct tn_stream_caches *caches = &rig_engine(rig.allocator)->fast.caches;
        const tarn_ptr base = rig_alloc(&rig, 512, 5);

        for (int k = 0; k < 3; k++) {
            caches->calls_left = 1;
            rig_free(&rig, rig_alloc(&rig, 1024, 5));
        }
        assert_true(atomic_load(&caches->open));
        hand_open(&hand, &rig, 5);
        tell(&hand, 1024);
        tell(&hand, 0);
        hand_close(&hand);
        rig_free(&rig, base);
        rig_close(&rig);
    }
}

/* A segment of three blocks for each of two streams; the middle one of the first is allocated, so
 * that it has two free parts. Both streams have a cache. */
static struct tn_stream_caches *open_thirds(struct rig *rig)
{
    tarn_ptr thirds[3];

    rig_open(rig, GIB, "");
    rig_free(rig, rig_alloc(rig, 30 * MIB, 1));
    rig_free(rig, rig_alloc(rig, 30 * MIB, 2));
    for (int k = 0; k < 3; k++) {
        thirds[k] = rig_alloc(rig, 10 * MIB, 1);
    }
    rig_free(rig, thirds[0]);
    rig_free(rig, thirds[2]);
    struct tn_stream_caches *caches = &rig_engine(rig->allocator)->fast.caches;

    caches->calls_left = UINT32_MAX;
    rig_free(rig, rig_alloc(rig, 10 * MIB, 1));
    rig_free(rig, rig_alloc(rig, 10 * MIB, 2));
    caches->calls_left = 0;
    assert_non_null(tn_stream_caches_find(caches, 1));
    assert_non_null(tn_stream_caches_find(caches, 2));
    tarn_allocator_reset_peak_stats(rig->allocator);
    return caches;
}

/* A thread finds no block in a cache; before it has the heap's lock, another frees the newest block
 * of the log, which raises the number of free parts beyond the cache's quota. */
static void a_miss_keeps_the_log_within_the_quota(void **state)
{
    struct rig rig;
    tarn_ptr missed = 0;

    (void)state;
    struct tn_stream_caches *caches = open_thirds(&rig);
    struct tn_heap *heap = &rig_engine(rig.allocator)->heap;
    const tarn_ptr first = rig_alloc(&rig, 10 * MIB, 1);
    const tarn_ptr second = rig_alloc(&rig, 10 * MIB, 1);

    rig_free(&rig, rig_alloc(&rig, 10 * MIB, 2)); /* the peak of what is allocated */
    tn_stream_caches_remember(caches, 1);
    rig_free(&rig, second);             /* leaves one free part, and can be redone */
    (void)rig_alloc(&rig, 10 * MIB, 2); /* a second free part: their peak */
    tn_stream_caches_remember(caches, 1);
    assert_false(tn_stream_cache_alloc(caches, heap, 40 * MIB, 1, &missed));
    if (!tn_stream_cache_free(caches, heap, first)) {
        rig_free(&rig, first); /* a third part: a new peak, which only the heap can count */
    }
    (void)rig_alloc(&rig, 10 * MIB, 1);
    assert_int_equal(rig_stats(&rig).by_pool[TARN_STAT_INACTIVE_SPLIT][TARN_STAT_ALL].peak, 3);
    assert_int_equal(rig_now(&rig, TARN_STAT_INACTIVE_SPLIT), 2);
    rig_close(&rig);
}

/* ---- when caches open and whom they serve ---- */

static void ignore(void *context, const struct tarn_trace_event *event)
{
    (void)context;
    (void)event;
}

static bool only_stream_7(void *context, tarn_stream stream)
{
    (void)context;
    return stream == 7;
}

/* Caches send no events, and know neither routes nor ages: they stay closed meanwhile, whatever
 * contention there is, and open afterwards. */
static void caches_stay_closed_while_something_is_unusual(void **state)
{
    const struct tarn_pool_id id = {.first = 1};
    int listener;
    const struct tarn_sink sink = {.context = &listener, .receive = ignore};

    (void)state;
    for (int what = 0; what < 3; what++) {
        struct rig rig;

        rig_open(&rig, GIB, "garbage_collection_threshold:0.9");
        struct tn_stream_caches *caches = &rig_engine(rig.allocator)->fast.caches;

        rig_free(&rig, rig_alloc(&rig, 512, 1));
        if (what == 0) {
            assert_int_equal(tarn_allocator_add_sink(rig.allocator, &sink, NULL), TARN_OK);
        } else if (what == 1) {
            assert_int_equal(
                tarn_allocator_begin_pool(rig.allocator, id, only_stream_7, NULL, NULL), TARN_OK);
        } else {
            rig_limit(&rig, 0.9);
        }
        for (int i = 0; i < 3; i++) {
            caches->calls_left = 1;
            rig_free(&rig, rig_alloc(&rig, UINT64_C(1024) << i, 1));
            assert_false(atomic_load(&caches->open));
        }
        if (what == 0) {
            assert_int_equal(tarn_allocator_remove_sink(rig.allocator, &listener, NULL), TARN_OK);
        } else if (what == 1) {
            assert_int_equal(tarn_allocator_end_pool(rig.allocator, id, NULL), TARN_OK);
            assert_int_equal(tarn_allocator_release_pool(rig.allocator, id, NULL), TARN_OK);
        } else {
            rig_limit(&rig, 1.0);
        }
        caches->calls_left = 1;
        rig_free(&rig, rig_alloc(&rig, 8192, 1));
        assert_true(atomic_load(&caches->open));
        rig_close(&rig);
    }
}

/* The call that opens a cache is the last of its stream to take the heap's lock. */
static void a_cache_serves_from_its_first_call_on(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    struct tn_stream_caches *caches = &rig_engine(rig.allocator)->fast.caches;

    rig_free(&rig, rig_alloc(&rig, 512, 1));
    caches->calls_left = 1;
    const tarn_ptr ptr = rig_alloc(&rig, 1024, 1);

    assert_true(atomic_load(&caches->open));
    const uint64_t slow = caches->slow_calls;

    rig_free(&rig, ptr);
    for (int i = 0; i < 4; i++) {
        rig_free(&rig, rig_alloc(&rig, 1024, 1));
    }
    assert_int_equal(caches->slow_calls, slow);
    rig_close(&rig);
}

/* A thread that turns to another stream takes the heap's lock once, and then finds its cache. */
static void a_thread_finds_the_cache_of_its_stream(void **state)
{
    struct scene scene;

    (void)state;
    scene_open_with_room(&scene);
    for (tarn_stream stream = 1; stream <= 2; stream++) {
        const uint64_t slow = scene.caches->slow_calls;

        for (int i = 0; i < 3; i++) {
            rig_free(&scene.rig, rig_alloc(&scene.rig, 3 * MIB, stream));
            assert_int_equal(scene.caches->slow_calls, slow + 1);
        }
    }
    scene_close(&scene);
}

/* Where a peak rises the heap redoes what is next in the cache's log, which keeps the rest. */
static void the_heap_redoes_what_the_quota_forbids(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene);
    const struct tn_undo_log *log = &scene.caches->list[0]->log;
    const uint32_t end = log->end;

    assert_int_equal(log->cursor, 0);
    for (uint32_t i = 1; i <= end; i++) {
        const uint64_t slow = scene.caches->slow_calls;

        tell(&scene.hands[0], 3 * MIB);
        assert_true(scene.caches->slow_calls > slow);
        assert_int_equal(log->cursor, i);
        assert_int_equal(log->end, end);
    }
    for (uint32_t i = 0; i < end; i++) {
        tell(&scene.hands[0], 0);
    }
    scene_close(&scene);
}

/* A cache counts the calls that it serves: by its log and otherwise. */
static void calls_that_a_cache_serves_are_counted(void **state)
{
    struct scene scene;

    (void)state;
    scene_open_with_room(&scene);
    struct tn_stream_cache *cache = scene.caches->list[0];

    tell(&scene.hands[0], 3 * MIB);
    tell(&scene.hands[0], 0);
    (void)bytes_of(&scene);
    const uint64_t before = cache->hits;

    for (int i = 0; i < 10; i++) {
        tell(&scene.hands[0], 3 * MIB);
        tell(&scene.hands[0], 0);
    }
    (void)bytes_of(&scene);
    assert_int_equal(cache->hits, before + 20);
    scene_close(&scene);
}

/* A block of a cache that another thread frees takes all caches, and counts against them. */
static void frees_by_other_threads_count(void **state)
{
    struct scene scene;

    (void)state;
    scene_open_with_room(&scene);
    tell(&scene.hands[0], 3 * MIB);
    const uint64_t slow = scene.caches->slow_calls;

    rig_free(&scene.rig, scene.hands[0].ptrs[0]);
    assert_int_equal(scene.caches->slow_calls, slow + 1);
    assert_int_equal(bytes_of(&scene).current, 0);
    scene_close(&scene);
}

/* What a cache's log has freed is not allocated, whoever frees it once more. */
static void what_a_log_freed_is_not_freed_again(void **state)
{
    struct scene scene;

    (void)state;
    scene_open_with_room(&scene);
    tell(&scene.hands[0], 3 * MIB);
    const tarn_ptr ptr = scene.hands[0].ptrs[0];

    tell(&scene.hands[0], 0);
    assert_true(scene.caches->list[0]->log.end > scene.caches->list[0]->log.cursor);
    assert_int_equal(tarn_allocator_free(scene.rig.allocator, ptr, NULL), TARN_ERR_INVALID_POINTER);
    assert_int_equal(bytes_of(&scene).current, 0);
    rig_check(&scene.rig);
    scene_close(&scene);
}

/* ---- quotas to the byte ---- */

static int64_t bytes_quota(const struct scene *scene, unsigned cache)
{
    return scene->caches->list[cache]->quota.of[1][TARN_STAT_ALL];
}

/* A scene whose peak is 12 MiB, of which both caches have a half; the first one's log has four
 * entries of 3 MiB, the second one's none of these. */
static void scene_open_halves(struct scene *scene)
{
    scene_open(scene);
    for (int k = 0; k < 4; k++) {
        tell(&scene->hands[0], 3 * MIB);
    }
    for (int k = 0; k < 4; k++) {
        tell(&scene->hands[0], 0);
    }
    tell(&scene->hands[1], 2 * MIB); /* all that its log has then */
    tell(&scene->hands[1], 0);
    assert_divided(scene, 1, 6, 6);
}

/* A cache takes what it lacks, no more than that if the other has hardly more, and its log goes on;
 * each time counts as asked. */
static void a_log_goes_on_with_the_quota_of_another_cache(void **state)
{
    struct scene scene;

    (void)state;
    scene_open_halves(&scene);
    static const uint32_t asked[] = {1, 1, 2, 3}; /* at first for a free part of its segment */
    const struct tn_stream_cache *cache = scene.caches->list[0];
    const uint64_t slow = scene.caches->slow_calls;

    for (uint32_t k = 1; k <= 4; k++) {
        tell(&scene.hands[0], 3 * MIB);
        assert_int_equal(scene.caches->slow_calls, slow);
        assert_int_equal(cache->asked, asked[k - 1]);
        assert_int_equal(cache->log.cursor, k);
        assert_int_equal(cache->log.end, 4);
        assert_int_equal(bytes_quota(&scene, 0), (k < 3 ? 6 : 3 * (int64_t)k) * (int64_t)MIB);
        assert_int_equal(bytes_quota(&scene, 0) + bytes_quota(&scene, 1), 12 * (int64_t)MIB);
    }
    assert_int_equal(bytes_of(&scene).peak, 12 * MIB);
    assert_int_equal(scene.caches->slow_calls, slow + asked[3] + 1); /* and this call */
    for (int k = 0; k < 4; k++) {
        tell(&scene.hands[0], 0);
    }
    scene_close(&scene);
}

/* It takes half of what the other does not use if that is more than it lacks. */
static void a_cache_takes_half_of_what_another_does_not_use(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene);
    for (int k = 0; k < 6; k++) { /* raises the peak to 24 MiB */
        tell(&scene.hands[0], 3 * MIB);
    }
    tell(&scene.hands[1], 3 * MIB);
    tell(&scene.hands[1], 3 * MIB);
    for (int k = 0; k < 6; k++) {
        tell(&scene.hands[0], 0);
    }
    tell(&scene.hands[1], 0);
    tell(&scene.hands[1], 0);
    for (int k = 0; k < 2; k++) { /* all that the logs have then */
        tell(&scene.hands[k], 2 * MIB);
        tell(&scene.hands[k], 0);
    }
    assert_divided(&scene, 0, 12, 12);
    const uint64_t slow = scene.caches->slow_calls;

    tell(&scene.hands[0], 17 * MIB); /* lacks 5 */
    assert_int_equal(scene.caches->slow_calls, slow);
    assert_int_equal(bytes_quota(&scene, 0), 18 * (int64_t)MIB);
    assert_int_equal(bytes_quota(&scene, 1), 6 * (int64_t)MIB);
    tell(&scene.hands[0], 0);
    assert_int_equal(bytes_of(&scene).peak, 24 * MIB);
    scene_close(&scene);
}

/* A cache that gave its quota away may no longer redo what it could before. */
static void a_log_stops_where_its_quota_went_away(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene);
    tell(&scene.hands[0], 3 * MIB);
    tell(&scene.hands[0], 0);
    assert_divided(&scene, 1, 0, 3);
    tell(&scene.hands[0], 3 * MIB); /* with the quota of the other */
    assert_int_equal(bytes_quota(&scene, 0), 3 * MIB);
    tell(&scene.hands[1], 3 * MIB);
    tell(&scene.hands[0], 0);
    tell(&scene.hands[1], 0);
    assert_int_equal(bytes_of(&scene).peak, 6 * MIB);
    scene_close(&scene);
}

/* Of what another cache freed since quotas were divided, only as much can be had as it freed: here
 * 2 MiB of 3, so that a new peak counts. */
static void what_a_cache_freed_can_be_had(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene);
    tell(&scene.hands[1], 3 * MIB);
    tell(&scene.hands[0], 3 * MIB); /* both have a free part */
    tell(&scene.hands[0], 0);
    for (int k = 0; k < 2; k++) {
        tell(&scene.hands[1], 3 * MIB);
    }
    tell(&scene.hands[1], 2 * MIB);
    assert_divided(&scene, 1, 0, 0);
    tell(&scene.hands[1], 0);
    tell(&scene.hands[0], 3 * MIB);
    tell(&scene.hands[0], 0);
    assert_int_equal(bytes_of(&scene).peak, 12 * MIB);
    for (int k = 0; k < 3; k++) {
        tell(&scene.hands[1], 0);
    }
    scene_close(&scene);
}

/* And only once. */
static void what_a_cache_freed_is_not_lent_twice(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene);
    tell(&scene.hands[1], 3 * MIB);
    tell(&scene.hands[0], 3 * MIB);
    tell(&scene.hands[0], 0);
    for (int k = 0; k < 3; k++) {
        tell(&scene.hands[1], 3 * MIB);
    }
    assert_divided(&scene, 1, 0, 0);
    tell(&scene.hands[1], 0);
    for (int k = 0; k < 2; k++) {
        tell(&scene.hands[0], 3 * MIB);
    }
    for (int k = 0; k < 2; k++) {
        tell(&scene.hands[0], 0);
    }
    assert_int_equal(bytes_of(&scene).peak, 15 * MIB);
    for (int k = 0; k < 3; k++) {
        tell(&scene.hands[1], 0);
    }
    scene_close(&scene);
}

/* A cache that has asked 1,024 times asks no more: the next call looks whether caches pay, where
 * each time counts as a call that took them all, and so does this one. */
static void a_cache_asks_only_so_often(void **state)
{
    (void)state;
    for (int pays = 0; pays < 2; pays++) {
        struct scene scene;

        scene_open_halves(&scene);
        struct tn_stream_caches *caches = scene.caches;
        const uint64_t slow = caches->slow_calls;

        for (int k = 0; k < 2; k++) {
            tell(&scene.hands[0], 3 * MIB);
        }
        caches->list[0]->asked = 1023;
        tell(&scene.hands[0], 3 * MIB);
        assert_int_equal(caches->slow_calls, slow);
        assert_int_equal(caches->list[0]->asked, 1024);
        caches->list[0]->hits = UINT32_MAX;
        caches->list[1]->hits = 4 * (slow + 1024 + 1) - (pays ? 0 : 1);
        tell(&scene.hands[0], 3 * MIB);
        assert_int_equal(atomic_load(&caches->open), pays);
        for (int k = 0; k < 4; k++) {
            tell(&scene.hands[0], 0);
        }
        assert_int_equal(bytes_of(&scene).peak, 12 * MIB);
        scene_close(&scene);
    }
}

/* Whatever the first cache asks, in any order, it comes to the one that has quota. */
static void every_other_cache_is_asked(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene);
    rig_free(&scene.rig, rig_alloc(&scene.rig, 3 * MIB, 3)); /* asks the device: caches close */
    caches_open(&scene);
    scene.caches->calls_left = 1;
    rig_free(&scene.rig, rig_alloc(&scene.rig, 2 * MIB, 3));
    assert_int_equal(scene.caches->count, 3);
    tarn_allocator_reset_peak_stats(scene.rig.allocator);
    tell(&scene.hands[0], 3 * MIB);
    tell(&scene.hands[0], 0);
    for (uint32_t first = 0; first < 3; first++) {
        scene.caches->first = first;
        (void)bytes_of(&scene); /* the first in turn gets all that its log needs */
        const uint64_t slow = scene.caches->slow_calls;

        tell(&scene.hands[0], 3 * MIB);
        assert_int_equal(scene.caches->slow_calls, slow);
        tell(&scene.hands[0], 0);
        assert_int_equal(bytes_of(&scene).peak, 3 * MIB);
    }
    scene_close(&scene);
}

static int64_t split_quota(struct scene *scene, uint32_t first)
{
    scene->caches->first = first;
    (void)bytes_of(scene);
    return scene->caches->list[first]->quota.of[4][TARN_STAT_ALL];
}

/* To undo what it has allocated a log needs room for the free parts that grow, here 3 MiB between
 * two blocks and one: it gets that of all that there are, or of 6 MiB. */
static void logs_need_room_to_undo(void **state)
{
    (void)state;
    for (int others = 0; others <= 6; others += 6) {
        struct scene scene;

        scene_open(&scene);
        for (int k = 0; k < 4; k++) {
            tell(&scene.hands[0], 3 * MIB);
        }
        tell(&scene.hands[0], 0);
        tell(&scene.hands[0], 0); /* two to redo, and 14 MiB free: there were 17 */
        for (int k = 0; k < others; k++) {
            if (k == 4) { /* 8 MiB more are free, and soon only 2 */
                tarn_allocator_reset_peak_stats(scene.rig.allocator);
            }
            tell(&scene.hands[1], 3 * MIB);
        }
        assert_int_equal(scene.caches->list[0]->log.cursor, 2);
        assert_int_equal(scene.caches->list[0]->log.end, 4);
        assert_int_equal(split_quota(&scene, 0), 3 * (int64_t)MIB);
        for (int k = 0; k < others; k++) {
            tell(&scene.hands[1], 0);
        }
        tell(&scene.hands[0], 0);
        tell(&scene.hands[0], 0);
        scene_close(&scene);
    }
}

/* ---- what a cache serves ---- */

/* A request that is not the log's next one, when the quota allows both. */
static void a_cache_serves_other_sizes_than_the_log_s(void **state)
{
    struct scene scene;

    (void)state;
    scene_open_with_room(&scene);
    assert_true(scene.caches->list[0]->log.ceiling > 0);
    const uint64_t slow = scene.caches->slow_calls;

    tell(&scene.hands[0], 2 * MIB + MIB / 2);
    assert_int_equal(scene.caches->slow_calls, slow);
    tell(&scene.hands[0], 0);
    scene_close(&scene);
}

/* One that would split a block, for which the cache has no node and the log none to give. */
static void without_a_node_a_cache_splits_nothing(void **state)
{
    struct scene scene;
    tarn_ptr blocks[3];

    (void)state;
    scene_open_with_room(&scene);
    for (int k = 0; k < 3; k++) {
        blocks[k] = rig_alloc(&scene.rig, 3 * MIB, 1);
    }
    rig_free(&scene.rig, blocks[0]); /* not the newest: the log is emptied */
    struct tn_shard *shard = &scene.caches->list[0]->shard;

    assert_int_equal(scene.caches->list[0]->log.end, 0);
    (void)bytes_of(&scene);
    while (shard->spare_count > 0) {
        tn_block_destroy(tn_shard_take_spare(shard));
    }
    const uint64_t slow = scene.caches->slow_calls;
    const tarn_ptr part = rig_alloc(&scene.rig, 2 * MIB, 1);

    assert_int_equal(scene.caches->slow_calls, slow + 1);
    assert_int_equal(part, blocks[0]);
    rig_free(&scene.rig, part);
    rig_free(&scene.rig, blocks[1]);
    rig_free(&scene.rig, blocks[2]);
    assert_int_equal(bytes_of(&scene).current, 0);
    scene_close(&scene);
}

/* After 2^18 calls one goes to the heap, which looks whether caches pay, whichever cache it is. */
static void a_cache_that_served_many_calls_lets_one_look(void **state)
{
    (void)state;
    for (unsigned k = 0; k < 2; k++) {
        for (unsigned missing = 0; missing < 2; missing++) {
            struct scene scene;

            scene_open_with_room(&scene);
            (void)bytes_of(&scene);
            scene.caches->list[k]->hits = (1U << 18) - missing;
            scene.caches->list[1 - k]->hits = 0;
            tell(&scene.hands[k], 2 * MIB); /* not what the log has */
            assert_int_equal(atomic_load(&scene.caches->open), missing > 0);
            tell(&scene.hands[k], 0);
            scene_close(&scene);
        }
    }
}

/* Calls that the caches served, but for the busiest's, are four times as many as those that took
 * them all, or caches do not pay; which is looked at after 1,024 of these. */
static void caches_pay_four_to_one(void **state)
{
    static const struct {
        uint64_t slow;
        uint64_t hits;
        bool looks;
        bool pays;
    } cases[] = {
        {1023, 0, false, true},
        {1024, 4096, true, true},
        {1024, 4095, true, false},
    };
    struct scene scene;

    (void)state;
    scene_open(&scene);
    struct tn_stream_caches *caches = scene.caches;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        caches->slow_calls = cases[i].slow;
        caches->list[0]->hits = 5000;
        caches->list[1]->hits = cases[i].hits;
        assert_int_equal(tn_stream_caches_pay(caches), cases[i].pays);
        assert_int_equal(caches->slow_calls, cases[i].looks ? 0 : cases[i].slow);
        assert_int_equal(caches->list[0]->hits, cases[i].looks ? 0 : 5000);
    }
    scene_close(&scene);
}

/* A cache that opens again starts to count its calls anew. */
static void a_cache_that_opens_again_has_served_nothing(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene);
    scene.caches->list[0]->hits = 1000;
    rig_empty_cache(&scene.rig);
    assert_false(atomic_load(&scene.caches->open));
    rig_free(&scene.rig, rig_alloc(&scene.rig, 3 * MIB, 1)); /* the segment */
    scene.caches->calls_left = 1;
    const tarn_ptr ptr = rig_alloc(&scene.rig, 2 * MIB, 1);

    assert_true(scene.caches->list[0]->open);
    assert_int_equal(scene.caches->list[0]->hits, 0);
    rig_free(&scene.rig, ptr);
    scene_close(&scene);
}

/* ---- what a cache frees ---- */

/* A log that may undo nothing asks for what the growing free parts need, and only a block that is
 * the newest is undone. */
static void a_log_undoes_the_newest_block_with_quota_of_another_cache(void **state)
{
    (void)state;
    for (int is_newest = 0; is_newest < 2; is_newest++) {
        struct rig rig;
        struct tn_stream_caches *caches = open_thirds(&rig);
        const struct tn_undo_log *log = &caches->list[0]->log;
        const tarn_ptr first = rig_alloc(&rig, 10 * MIB, 1);
        const tarn_ptr second = rig_alloc(&rig, 10 * MIB, 1);

        tarn_allocator_reset_peak_stats(rig.allocator);
        rig_free(&rig, rig_alloc(&rig, 10 * MIB, 2)); /* one free part, which its log needs */
        caches->first = 1;
        const int64_t before = rig_now(&rig, TARN_STAT_ALLOCATION);
        const uint64_t slow = caches->slow_calls;

        assert_int_equal(log->cursor, 2);
        assert_int_equal(log->floor, 2);
        tn_stream_caches_remember(caches, 1);
        rig_free(&rig, is_newest ? second : first);
        assert_int_equal(caches->slow_calls, slow); /* one part is enough */
        assert_int_equal(log->end, is_newest ? 2 : 0);
        assert_int_equal(rig_now(&rig, TARN_STAT_ALLOCATION), before - 1);
        assert_int_equal(rig_stats(&rig).by_pool[TARN_STAT_INACTIVE_SPLIT][TARN_STAT_ALL].peak, 1);
        rig_check(&rig);
        rig_close(&rig);
    }
}

/* An entry that a cache adds leaves older ones where the quota does: undone, they would make a
 * third free part, which only the heap can count. */
static void a_new_entry_keeps_the_log_within_the_quota(void **state)
{
    struct rig rig;

    (void)state;
    struct tn_stream_caches *caches = open_thirds(&rig);
    const tarn_ptr first = rig_alloc(&rig, 10 * MIB, 1);
    tarn_ptr second = rig_alloc(&rig, 10 * MIB, 1);

    rig_free(&rig, rig_alloc(&rig, 10 * MIB, 2)); /* the peak of what is allocated */
    tn_stream_caches_remember(caches, 1);
    rig_free(&rig, second);             /* leaves one free part */
    (void)rig_alloc(&rig, 10 * MIB, 2); /* a second one: their peak */
    tn_stream_caches_remember(caches, 1);
    const uint64_t slow = caches->slow_calls;

    second = rig_alloc(&rig, 10 * MIB - 1, 1); /* not what the log has */
    assert_int_equal(caches->slow_calls, slow);
    rig_free(&rig, second);
    rig_free(&rig, first);
    (void)rig_alloc(&rig, 10 * MIB, 1);
    assert_int_equal(rig_stats(&rig).by_pool[TARN_STAT_INACTIVE_SPLIT][TARN_STAT_ALL].peak, 3);
    assert_int_equal(rig_now(&rig, TARN_STAT_INACTIVE_SPLIT), 2);
    rig_close(&rig);
}

/* Free parts of expandable segments are not counted, so that frees in any order need no quota. */
static void blocks_of_expandable_segments_are_freed_in_the_cache(void **state)
{
    tarn_ptr blocks[4];
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "expandable_segments:True");
    struct tn_stream_caches *caches = &rig_engine(rig.allocator)->fast.caches;

    for (int round = 0; round < 2; round++) {
        for (int k = 0; k < 4; k++) {
            blocks[k] = rig_alloc(&rig, 3 * MIB, 1);
        }
        if (round == 0) {
            for (int k = 0; k < 4; k++) {
                rig_free(&rig, blocks[k]);
            }
            caches->calls_left = 1;
        }
    }
    assert_true(atomic_load(&caches->open));
    const uint64_t slow = caches->slow_calls;

    for (int k = 0; k < 3; k++) {
        rig_free(&rig, blocks[k]);
    }
    assert_int_equal(caches->slow_calls, slow);
    rig_empty_cache(&rig); /* closes the cache, which knows the last block still */
    assert_false(atomic_load(&caches->open));
    rig_free(&rig, blocks[3]);
    assert_int_equal(rig_now(&rig, TARN_STAT_ALLOCATED_BYTES), 0);
    rig_check(&rig);
    rig_close(&rig);
}

/* A cache that is closed frees nothing, though its thread still asks it while others are open. */
static void a_closed_cache_frees_nothing(void **state)
{
    struct rig rig;
    struct hand hand;

    (void)state;
    rig_open(&rig, GIB, "expandable_segments:True");
    struct tn_stream_caches *caches = &rig_engine(rig.allocator)->fast.caches;

    hand_open(&hand, &rig, 1);
    tell(&hand, 3 * MIB);
    tell(&hand, 3 * MIB);
    tell(&hand, 0);
    caches->calls_left = 1;
    tell(&hand, 2 * MIB);
    assert_non_null(tn_stream_caches_find(caches, 1));
    rig_empty_cache(&rig);
    rig_free(&rig, rig_alloc(&rig, 3 * MIB, 2));
    caches->calls_left = 1;
    rig_free(&rig, rig_alloc(&rig, 2 * MIB, 2));
    assert_null(tn_stream_caches_find(caches, 1));
    assert_non_null(tn_stream_caches_find(caches, 2));
    tell(&hand, 0);
    assert_int_equal(rig_now(&rig, TARN_STAT_ALLOCATED_BYTES), 3 * MIB);
    rig_check(&rig);
    tell(&hand, 0);
    hand_close(&hand);
    rig_close(&rig);
}

/* Blocks that may not be split are freed by the heap, also where quotas would let the cache. */
static void oversize_blocks_are_freed_by_the_heap(void **state)
{
    const uint64_t sizes[] = {22 * MIB, 30 * MIB};
    tarn_ptr parts[7];
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "max_split_size_mb:22");
    struct tn_stream_caches *caches = &rig_engine(rig.allocator)->fast.caches;

    for (int i = 0; i < 2; i++) { /* the segments */
        rig_free(&rig, rig_alloc(&rig, sizes[i], 1));
    }
    for (int k = 0; k < 7; k++) {
        parts[k] = rig_alloc(&rig, 3 * MIB, 1);
    }
    for (int k = 0; k < 7; k++) { /* free parts: two segments of 20 MiB, but for a block of each */
        rig_free(&rig, parts[k]);
    }
    caches->calls_left = 1;
    rig_free(&rig, rig_alloc(&rig, 2 * MIB, 1));
    assert_true(atomic_load(&caches->open));
    for (int i = 0; i < 2; i++) {
        const int64_t before = oversize(&rig);
        const tarn_ptr ptr = rig_alloc(&rig, sizes[i], 1);

        assert_int_equal(oversize(&rig), before + 1);
        const uint64_t slow = caches->slow_calls;

        rig_free(&rig, ptr);
        assert_true(caches->slow_calls > slow);
        assert_int_equal(oversize(&rig), before);
    }
    rig_close(&rig);
}

/* ---- nodes and visits ---- */

/* A cache keeps a thousand nodes, no more and no fewer. */
static void a_cache_keeps_as_many_nodes_as_it_may(void **state)
{
    struct scene scene;

    (void)state;
    scene_open(&scene);
    struct tn_heap *heap = &rig_engine(scene.rig.allocator)->heap;
    struct tn_shard *shard = &scene.caches->list[0]->shard;

    for (int round = 0; round < 2; round++) {
        while (shard->spare_count < 1024 + 1000U * (unsigned)round) {
            tn_shard_drop_node(shard, tn_block_create(&heap->slab));
        }
        (void)rig_stats(&scene.rig);
        assert_int_equal(shard->spare_count, 1024);
    }
    scene_close(&scene);
}

/* Who only looks in leaves the caches biased to their threads, does not count as a call that took
 * them, and lets them go on. */
static void a_visit_leaves_caches_as_they_are(void **state)
{
    struct scene scene;
    struct tn_observation observation = {.walker = NULL};

    (void)state;
    scene_open_with_room(&scene);
    for (int i = 0; i < 500; i++) {
        tell(&scene.hands[0], 3 * MIB);
        tell(&scene.hands[0], 0);
    }
    const struct tn_biased_lock *lock = &scene.caches->list[0]->lock;
    const struct tn_seat *seat = atomic_load(&lock->leans);
    const bool may_be_biased = rig_engine(scene.rig.allocator)->heap.lock.needed > 0;
    const uint64_t slow = scene.caches->slow_calls;

    assert_true(scene.rig.allocator->methods->observe(scene.rig.allocator, &observation));
    assert_int_equal(observation.stats.by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL].current,
                     0);
    assert_int_equal(seat != NULL, may_be_biased);
    assert_ptr_equal(atomic_load(&lock->leans), seat);
    assert_int_equal(scene.caches->slow_calls, slow);
    tell(&scene.hands[0], 3 * MIB);
    tell(&scene.hands[0], 0);
    assert_int_equal(scene.caches->slow_calls, slow);
    scene_close(&scene);
}

/* Caches that were closed for another reason are not judged: the calls that took them just before
 * say nothing, and do not put off the next time. */
static void closed_caches_are_not_judged(void **state)
{
    const struct tarn_sink sink = {.receive = ignore};
    struct scene scene;

    (void)state;
    scene_open(&scene);
    const uint32_t patience = scene.caches->patience;

    scene.caches->slow_calls = 1023;
    rig_empty_cache(&scene.rig);
    assert_false(atomic_load(&scene.caches->open));
    assert_int_equal(tarn_allocator_add_sink(scene.rig.allocator, &sink, NULL), TARN_OK);
    for (int k = 0; k < 2; k++) {
        rig_free(&scene.rig, rig_alloc(&scene.rig, (2 + (uint64_t)k) * MIB, 1));
    }
    assert_int_equal(scene.caches->patience, patience);
    scene_close(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peak_is_that_of_the_sum),
        cmocka_unit_test(quota_moves_between_caches),
        cmocka_unit_test(quotas_are_what_logs_need_or_equal_parts),
        cmocka_unit_test(calls_in_any_order_stay_in_the_cache),
        cmocka_unit_test(older_blocks_do_not_close_a_cache),
        cmocka_unit_test(caches_get_nodes_from_the_heap),
        cmocka_unit_test(caches_keep_no_more_nodes_than_they_need),
        cmocka_unit_test(blocks_without_a_place_are_left_to_the_heap),
        cmocka_unit_test(a_map_that_cannot_grow_leaves_a_call_to_the_heap),
        cmocka_unit_test(streams_without_a_cache_use_the_heap),
        cmocka_unit_test(oversize_blocks_are_left_to_the_heap),
        cmocka_unit_test(a_cache_without_a_set_leaves_it_to_the_heap),
        cmocka_unit_test(caches_open_under_contention_of_several_streams),
        cmocka_unit_test(patience_ends_somewhere),
        cmocka_unit_test(they_close_when_something_else_begins),
        cmocka_unit_test(what_has_no_cache_cannot_be_undone_either),
        cmocka_unit_test(others_may_free),
        cmocka_unit_test(caches_that_do_not_pay_close),
        cmocka_unit_test(one_cache_alone_closes),
        cmocka_unit_test(the_hits_of_one_cache_do_not_pay),
        cmocka_unit_test(a_cache_in_use_alone_lets_a_call_look),
        cmocka_unit_test(caches_that_only_ask_close),
        cmocka_unit_test(caches_that_pay_forget_that_they_did_not),
        cmocka_unit_test(another_allocator_has_other_caches),
        cmocka_unit_test(a_miss_keeps_the_log_within_the_quota),
        cmocka_unit_test(caches_stay_closed_while_something_is_unusual),
        cmocka_unit_test(a_cache_serves_from_its_first_call_on),
        cmocka_unit_test(a_thread_finds_the_cache_of_its_stream),
        cmocka_unit_test(the_heap_redoes_what_the_quota_forbids),
        cmocka_unit_test(calls_that_a_cache_serves_are_counted),
        cmocka_unit_test(frees_by_other_threads_count),
        cmocka_unit_test(what_a_log_freed_is_not_freed_again),
        cmocka_unit_test(a_log_goes_on_with_the_quota_of_another_cache),
        cmocka_unit_test(a_cache_takes_half_of_what_another_does_not_use),
        cmocka_unit_test(a_log_stops_where_its_quota_went_away),
        cmocka_unit_test(what_a_cache_freed_can_be_had),
        cmocka_unit_test(what_a_cache_freed_is_not_lent_twice),
        cmocka_unit_test(a_cache_asks_only_so_often),
        cmocka_unit_test(every_other_cache_is_asked),
        cmocka_unit_test(logs_need_room_to_undo),
        cmocka_unit_test(a_cache_serves_other_sizes_than_the_log_s),
        cmocka_unit_test(without_a_node_a_cache_splits_nothing),
        cmocka_unit_test(a_cache_that_served_many_calls_lets_one_look),
        cmocka_unit_test(caches_pay_four_to_one),
        cmocka_unit_test(a_cache_that_opens_again_has_served_nothing),
        cmocka_unit_test(a_log_undoes_the_newest_block_with_quota_of_another_cache),
        cmocka_unit_test(a_new_entry_keeps_the_log_within_the_quota),
        cmocka_unit_test(blocks_of_expandable_segments_are_freed_in_the_cache),
        cmocka_unit_test(a_closed_cache_frees_nothing),
        cmocka_unit_test(oversize_blocks_are_freed_by_the_heap),
        cmocka_unit_test(a_cache_keeps_as_many_nodes_as_it_may),
        cmocka_unit_test(a_visit_leaves_caches_as_they_are),
        cmocka_unit_test(closed_caches_are_not_judged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
