/* SPDX-License-Identifier: MIT */
/*
 * Per-stream caches with real threads that take turns, so that what happens is known. They are made
 * to open without contention. The property test shows that decisions stay the same.
 */
#include "support/test.h"

#include "alloc/engine/core_check.h"
#include "support/rig.h"

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
 * next. */
static void another_allocator_has_other_caches(void **state)
{
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
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
