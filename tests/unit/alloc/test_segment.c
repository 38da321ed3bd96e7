/* SPDX-License-Identifier: MIT */
/*
 * Asking the device for a segment while other threads use the allocator. A gate in the device's
 * `alloc` keeps one thread inside the call until the test lets it go, so that what happens
 * meanwhile is not a matter of time.
 */
#include "support/test.h"

#include "alloc/engine/engine.h"
#include "support/rig.h"

#include <pthread.h>
#include <sched.h>

#define UNLOCKED "release_lock_on_cudamalloc:True"

static const struct tarn_pool_id pool_id = {0, 1};

/* ---- the gate ---- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    const struct tn_device_ops *inner;
    const struct tn_engine *engine;
    bool closed;    /* the next call stops inside */
    bool inside;    /* a call is stopped */
    bool refuses;   /* that call finds the device full */
    bool starves;   /* host memory is missing after that call */
    bool lock_held; /* by the thread that stopped, on entry */
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static struct tn_device_ops gated_ops;

static enum tarn_status gated_alloc(struct tarn_device *device, uint64_t size,
                                    tarn_ptr *address_out)
{
    bool refused = false;
    bool starves = false;

    (void)pthread_mutex_lock(&gate.lock);
    if (gate.closed) {
        gate.closed = false;
        gate.inside = true;
        gate.lock_held = tn_lock_is_held(&gate.engine->heap.lock);
        (void)pthread_cond_broadcast(&gate.changed);
        while (gate.inside) {
            (void)pthread_cond_wait(&gate.changed, &gate.lock);
        }
        refused = gate.refuses;
        starves = gate.starves;
    }
    (void)pthread_mutex_unlock(&gate.lock);
    const enum tarn_status st =
        refused ? TARN_ERR_OUT_OF_MEMORY : gate.inner->alloc(device, size, address_out);

    if (starves) {
        tarn_host_fail_nth(1);
    }
    return st;
}

static void gated_open(struct rig *rig, uint64_t capacity, const char *conf)
{
    rig_open(rig, capacity, conf);
    gate.inner = rig->device->ops;
    gate.engine = rig_engine(rig->allocator);
    gate.closed = gate.inside = gate.refuses = gate.starves = false;
    gated_ops = *gate.inner;
    gated_ops.alloc = gated_alloc;
    rig->device->ops = &gated_ops;
}

static void gated_close(struct rig *rig)
{
    rig->device->ops = gate.inner; /* by which the simulated device is known */
    rig_close(rig);
}

static void gate_open(bool refuses)
{
    (void)pthread_mutex_lock(&gate.lock);
    gate.refuses = refuses;
    gate.inside = false;
    (void)pthread_cond_broadcast(&gate.changed);
    (void)pthread_mutex_unlock(&gate.lock);
}

static bool gate_is_occupied(void)
{
    (void)pthread_mutex_lock(&gate.lock);
    const bool inside = gate.inside;

    (void)pthread_mutex_unlock(&gate.lock);
    return inside;
}

/* ---- a thread that allocates ---- */

struct asker {
    struct rig *rig;
    pthread_t thread;
    uint64_t size;
    tarn_ptr ptr;
    enum tarn_status status;
    struct tarn_error error;
    atomic_bool done;
};

static void *asker_run(void *context)
{
    struct asker *asker = context;

    asker->status =
        tarn_allocator_alloc(asker->rig->allocator, asker->size, 0, &asker->ptr, &asker->error);
    atomic_store(&asker->done, true);
    return NULL;
}

static void asker_start(struct asker *asker, struct rig *rig, uint64_t size)
{
    asker->rig = rig;
    asker->size = size;
    asker->ptr = 0;
    atomic_init(&asker->done, false);
    assert_int_equal(pthread_create(&asker->thread, NULL, asker_run, asker), 0);
}

static void asker_join(struct asker *asker, enum tarn_status status)
{
    assert_int_equal(pthread_join(asker->thread, NULL), 0);
    assert_int_equal(asker->status, status);
}

/* Starts a thread and returns when it is inside the device's `alloc`. */
static void asker_start_and_stop(struct asker *asker, struct rig *rig, uint64_t size)
{
    gate.closed = true;
    asker_start(asker, rig, size);
    (void)pthread_mutex_lock(&gate.lock);
    while (!gate.inside) {
        (void)pthread_cond_wait(&gate.changed, &gate.lock);
    }
    (void)pthread_mutex_unlock(&gate.lock);
}

/* ---- private pools ---- */

static bool every_request(void *context, tarn_stream stream)
{
    (void)context;
    (void)stream;
    return true;
}

static void pool_begin(struct rig *rig)
{
    assert_int_equal(
        tarn_allocator_begin_pool(rig->allocator, pool_id, every_request, NULL, &rig->error),
        TARN_OK);
}

/* Nobody needs the pool any more, and what can go has gone. */
static void pool_give_up(struct rig *rig)
{
    assert_int_equal(tarn_allocator_end_pool(rig->allocator, pool_id, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_release_pool(rig->allocator, pool_id, NULL), TARN_OK);
    rig_empty_cache(rig);
}

static bool pool_exists(struct rig *rig)
{
    const struct tn_engine *engine = rig_engine(rig->allocator);

    return tn_private_pool_find(&engine->heap.private_pools, pool_id) != NULL;
}

static struct rig_totals pool_totals(struct rig *rig)
{
    struct rig_totals totals = {0};
    const struct tarn_walker walker = {&totals, rig_count_segment, rig_count_block};

    assert_int_equal(tarn_allocator_walk_pool(rig->allocator, pool_id, &walker), TARN_OK);
    return totals;
}

/* ---- with the lock released ---- */

/* While the device is asked, this thread allocates from the cache, frees, and even asks the device
 * for a segment of its own. */
static void others_go_on_when_the_lock_is_released(void **state)
{
    struct rig rig;
    struct asker asker;

    (void)state;
    gated_open(&rig, GIB, UNLOCKED);
    const tarn_ptr first = rig_alloc(&rig, 512, 0);

    asker_start_and_stop(&asker, &rig, 30 * MIB);
    assert_false(gate.lock_held);
    assert_int_equal(rig_alloc(&rig, 512, 0), first + 512); /* from the cache */
    rig_free(&rig, first);
    assert_int_equal(rig_alloc(&rig, 512, 0), first);
    const tarn_ptr large = rig_alloc(&rig, 40 * MIB, 0);

    rig_check(&rig); /* nothing is counted of what is under way */
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 42 * MIB);
    assert_int_equal(rig_now(&rig, TARN_STAT_SEGMENT), 2);
    assert_true(gate_is_occupied());
    assert_false(atomic_load(&asker.done));
    gate_open(false);
    asker_join(&asker, TARN_OK);
    assert_true(asker.ptr != large && asker.ptr != first);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 72 * MIB);
    assert_int_equal(rig_now(&rig, TARN_STAT_SEGMENT), 3);
    assert_int_equal(rig_now(&rig, TARN_STAT_ALLOCATION), 4);
    gated_close(&rig);
}

/* The same request, from the cache: it must wait. That it does is seen at the lock, whose word
 * changes when somebody waits for it. */
static void others_wait_when_the_lock_is_kept(void **state)
{
    struct rig rig;
    struct asker asker;
    struct asker other;

    (void)state;
    gated_open(&rig, GIB, "");
    const tarn_ptr first = rig_alloc(&rig, 512, 0);
    const struct tn_biased_lock *lock = &gate.engine->heap.lock;

    asker_start_and_stop(&asker, &rig, 30 * MIB);
    assert_true(gate.lock_held);
    asker_start(&other, &rig, 512);
    while (atomic_load(&lock->wanted) == 0 && !atomic_load(&other.done)) {
        (void)sched_yield();
    }
    assert_false(atomic_load(&other.done));
    assert_true(gate_is_occupied());
    gate_open(false);
    asker_join(&asker, TARN_OK);
    asker_join(&other, TARN_OK);
    assert_int_equal(other.ptr, first + 512);
    gated_close(&rig);
}

/* What the caller put by before the call is used up meanwhile: the node for the rest of the new
 * block and the place in the pointer map. */
static void what_was_put_by_is_put_by_again(void **state)
{
    struct rig rig;
    struct asker asker;

    (void)state;
    gated_open(&rig, GIB, UNLOCKED);
    const struct tn_engine *engine = gate.engine;

    while (engine->heap.shard.map.count + 1 !=
           tn_ptr_map_room(engine->heap.shard.map.buckets)) { /* room for one */
        (void)rig_alloc(&rig, 512, 0);
    }
    const uint64_t buckets = engine->heap.shard.map.buckets;

    asker_start_and_stop(&asker, &rig, 5 * MIB);
    (void)rig_alloc(&rig, 512, 0); /* splits: takes the node and the place */
    assert_int_equal(engine->heap.shard.map.buckets, buckets);
    assert_int_equal(engine->heap.shard.spare_count, 0);
    gate_open(false);
    asker_join(&asker, TARN_OK);
    assert_true(engine->heap.shard.map.buckets > buckets);
    assert_int_equal(rig_now(&rig, TARN_STAT_INACTIVE_SPLIT), 2); /* 20 MiB were split */
    gated_close(&rig);
}

/* The same with no host memory left: the segment stays in the cache, and a retry takes it. */
static void without_host_memory_the_segment_is_kept(void **state)
{
    struct rig rig;
    struct asker asker;

    (void)state;
    gated_open(&rig, GIB, UNLOCKED);
    const struct tn_engine *engine = gate.engine;

    while (engine->heap.shard.map.count + 1 != tn_ptr_map_room(engine->heap.shard.map.buckets)) {
        (void)rig_alloc(&rig, 512, 0);
    }
    asker_start_and_stop(&asker, &rig, 30 * MIB);
    (void)rig_alloc(&rig, 512, 0);
    gate.starves = true;
    gate_open(false);
    asker_join(&asker, TARN_ERR_HOST_MEMORY);
    tarn_host_fail_nth(0);
    assert_int_equal(asker.ptr, 0);
    assert_string_equal(asker.error.text, "host out of memory");
    rig_check(&rig);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 32 * MIB);
    (void)rig_alloc(&rig, 30 * MIB, 0);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 32 * MIB);
    gated_close(&rig);
}

/* The cache is emptied, the settings and the limit change, events are received: nothing of what was
 * there at the beginning is there at the end. */
static void everything_else_may_change_meanwhile(void **state)
{
    struct rig rig;
    struct asker asker;
    tarn_ptr blocks[6];

    (void)state;
    gated_open(&rig, GIB, UNLOCKED);
    for (int i = 0; i < 6; i++) {
        blocks[i] = rig_alloc(&rig, 12 * MIB, 0);
    }
    rig_free(&rig, blocks[0]);
    asker_start_and_stop(&asker, &rig, 30 * MIB);
    for (int i = 1; i < 6; i++) {
        rig_free(&rig, blocks[i]);
    }
    rig_empty_cache(&rig);
    assert_int_equal(rig_now(&rig, TARN_STAT_SEGMENT), 0);
    rig_configure(&rig, "max_split_size_mb:25,release_lock_on_cudamalloc:False");
    rig_limit(&rig, 0.01); /* 10 MiB: the request was let through before */
    gate_open(false);
    asker_join(&asker, TARN_OK);
    rig_check(&rig);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 30 * MIB);
    assert_int_equal(rig_stats(&rig).oversize_segments.current, 1); /* by the new settings */
    assert_int_equal(rig_stats(&rig).oversize_allocations.current, 1);
    rig_free(&rig, asker.ptr);
    rig_empty_cache(&rig);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 0);
    assert_int_equal(rig_stats(&rig).oversize_segments.current, 0);
    gated_close(&rig);
}

/* ---- the pool in use is pinned ---- */

static void a_pool_given_up_stays_until_its_segment_came(void **state)
{
    struct rig rig;
    struct asker asker;

    (void)state;
    gated_open(&rig, GIB, UNLOCKED);
    pool_begin(&rig);
    asker_start_and_stop(&asker, &rig, 30 * MIB);
    pool_give_up(&rig);
    assert_true(pool_exists(&rig));
    assert_int_equal(pool_totals(&rig).segments, 0);
    assert_int_equal(tarn_allocator_acquire_pool(rig.allocator, pool_id, NULL), TARN_ERR_STATE);
    rig_check(&rig);
    gate_open(false);
    asker_join(&asker, TARN_OK);
    assert_int_equal(pool_totals(&rig).segments, 1);
    assert_int_equal(pool_totals(&rig).allocated, 1);
    rig_free(&rig, asker.ptr);
    rig_empty_cache(&rig); /* nothing pins it any more */
    assert_false(pool_exists(&rig));
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 0);
    gated_close(&rig);
}

/* The device is full, and the pool was given up meanwhile: the flush before the last try must not
 * take the pool from under the request. It fails, or finds the memory that the flush gave back. */
static void a_pool_given_up_stays_for_the_last_try(void **state)
{
    (void)state;
    for (int cached = 0; cached < 2; cached++) {
        struct rig rig;
        struct asker asker;
        tarn_ptr large;

        gated_open(&rig, 64 * MIB, UNLOCKED);
        large = rig_alloc(&rig, 60 * MIB, 0);
        pool_begin(&rig);
        asker_start_and_stop(&asker, &rig, 30 * MIB);
        pool_give_up(&rig);
        if (cached) {
            rig_free(&rig, large);
        }
        assert_true(pool_exists(&rig));
        gate_open(true);
        asker_join(&asker, cached ? TARN_OK : TARN_ERR_OUT_OF_MEMORY);
        rig_check(&rig);
        if (cached) {
            assert_int_equal(pool_totals(&rig).segments, 1);
            rig_free(&rig, asker.ptr);
        }
        rig_empty_cache(&rig);
        assert_false(pool_exists(&rig));
        gated_close(&rig);
    }
}

static bool give_up_in_callback(void *context, struct tarn_allocator *allocator, uint64_t size,
                                tarn_stream stream)
{
    struct rig *rig = context;

    (void)allocator;
    (void)size;
    (void)stream;
    if (tarn_allocator_pool_use_count(rig->allocator, pool_id) > 0) {
        pool_give_up(rig);
    }
    return false;
}

/* Callbacks run without the lock under any settings. */
static void a_pool_given_up_by_a_callback_stays(void **state)
{
    static const struct {
        uint64_t size;
        enum tarn_status status;
    } rows[] = {{30 * MIB, TARN_OK}, {65 * MIB, TARN_ERR_OUT_OF_MEMORY}};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct rig rig;
        tarn_ptr ptr = 0;

        rig_open(&rig, 64 * MIB, "");
        assert_int_equal(
            tarn_allocator_add_memory_callback(rig.allocator, give_up_in_callback, &rig), TARN_OK);
        pool_begin(&rig);
        assert_int_equal(tarn_allocator_alloc(rig.allocator, rows[i].size, 0, &ptr, NULL),
                         rows[i].status);
        rig_check(&rig);
        assert_true(pool_exists(&rig));
        if (ptr) {
            assert_int_equal(pool_totals(&rig).segments, 1);
            rig_free(&rig, ptr);
        }
        rig_empty_cache(&rig);
        assert_false(pool_exists(&rig));
        rig_close(&rig);
    }
}

/* A segment of just max_split_size is oversize when it comes and when it goes. */
static void of_the_split_limit_is_oversize(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "max_split_size_mb:30");
    const tarn_ptr below = rig_alloc(&rig, 28 * MIB, 0);
    const tarn_ptr at = rig_alloc(&rig, 30 * MIB, 0);

    assert_int_equal(rig_stats(&rig).oversize_segments.current, 1);
    assert_int_equal(rig_stats(&rig).oversize_allocations.current, 1);
    rig_free(&rig, below);
    assert_int_equal(rig_stats(&rig).oversize_allocations.current, 1);
    rig_free(&rig, at);
    assert_int_equal(rig_stats(&rig).oversize_allocations.current, 0);
    assert_int_equal(rig_stats(&rig).oversize_segments.current, 1);
    rig_free(&rig, rig_alloc(&rig, 30 * MIB, 0)); /* from the cache */
    assert_int_equal(rig_stats(&rig).oversize_allocations.allocated, 2);
    rig_empty_cache(&rig);
    assert_int_equal(rig_stats(&rig).oversize_segments.current, 0);
    assert_int_equal(rig_stats(&rig).oversize_segments.freed, 1);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_go_on_when_the_lock_is_released),
        cmocka_unit_test(others_wait_when_the_lock_is_kept),
        cmocka_unit_test(what_was_put_by_is_put_by_again),
        cmocka_unit_test(without_host_memory_the_segment_is_kept),
        cmocka_unit_test(everything_else_may_change_meanwhile),
        cmocka_unit_test(a_pool_given_up_stays_until_its_segment_came),
        cmocka_unit_test(a_pool_given_up_stays_for_the_last_try),
        cmocka_unit_test(a_pool_given_up_by_a_callback_stays),
        cmocka_unit_test(of_the_split_limit_is_oversize),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
