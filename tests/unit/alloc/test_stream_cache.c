/* SPDX-License-Identifier: MIT */
/*
 * Per-stream caches with real threads that take turns, so that what happens is known. They are made
 * to open without contention. The property test shows that decisions stay the same.
 */
#include "support/test.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peak_is_that_of_the_sum),
        cmocka_unit_test(quota_moves_between_caches),
        cmocka_unit_test(they_close_when_something_else_begins),
        cmocka_unit_test(others_may_free),
        cmocka_unit_test(caches_that_do_not_pay_close),
        cmocka_unit_test(another_allocator_has_other_caches),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
