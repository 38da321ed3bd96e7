/* SPDX-License-Identifier: MIT */
/*
 * When the fast path may serve a call: while nothing is unusual, and again when that is over. The
 * property test and the recorded decisions show that both paths decide alike.
 */
#include "support/any_stream.h"
#include "support/test.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "support/rig.h"
#include "tarn/graph_pool.h"
#include "tarn/pool.h"

static void idle_is(const struct rig *rig, bool expected)
{
    const struct tn_engine *engine = rig_engine(rig->allocator);

    assert_int_equal(atomic_load(&engine->heap.busy) == 0, expected);
    assert_int_equal(tn_engine_busy(engine) == 0, expected);
}

static void ignore(void *context, const struct tarn_trace_event *event)
{
    (void)context;
    (void)event;
}

static void nobody_may_receive_events(void **state)
{
    struct rig rig;
    const struct tarn_sink sink = {.context = &rig, .receive = ignore};

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr base = rig_alloc(&rig, 512, 0);

    idle_is(&rig, true);
    assert_int_equal(tarn_allocator_add_sink(rig.allocator, &sink, NULL), TARN_OK);
    idle_is(&rig, false);
    rig_free(&rig, rig_alloc(&rig, 512, 0));
    idle_is(&rig, false);
    assert_int_equal(
        tarn_allocator_switch_sink(rig.allocator, &rig, false, TARN_CONTEXT_NEVER, NULL), TARN_OK);
    idle_is(&rig, true);
    assert_int_equal(tarn_allocator_remove_sink(rig.allocator, &rig, NULL), TARN_OK);
    idle_is(&rig, true);
    rig_free(&rig, base);
    rig_close(&rig);
}

static void nothing_may_wait(void **state)
{
    struct rig rig;

    (void)state;
    rig_open_manual(&rig, GIB, "");
    const tarn_ptr base = rig_alloc(&rig, 512, 0);
    const tarn_ptr used = rig_alloc(&rig, 1024, 0);

    rig_record(&rig, used, 7);
    idle_is(&rig, true);
    rig_free(&rig, used); /* not the fast path: it waits for stream 7 */
    idle_is(&rig, false);
    rig_free(&rig, base);
    idle_is(&rig, false);
    rig_empty_cache(&rig); /* waits for the event */
    idle_is(&rig, true);
    rig_close(&rig);
}

static void no_request_may_be_routed(void **state)
{
    const struct tarn_pool_id id = {0, 1};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    rig_free(&rig, rig_alloc(&rig, 512, 0));
    idle_is(&rig, true);
    assert_int_equal(tarn_allocator_begin_pool(rig.allocator, id, any_stream, NULL, NULL), TARN_OK);
    idle_is(&rig, false);
    const tarn_ptr routed = rig_alloc(&rig, 512, 0);

    assert_int_equal(tarn_allocator_end_pool(rig.allocator, id, NULL), TARN_OK);
    idle_is(&rig, true);
    rig_free(&rig, routed);
    assert_int_equal(tarn_allocator_release_pool(rig.allocator, id, NULL), TARN_OK);
    idle_is(&rig, true);
    rig_close(&rig);
}

static void no_search_may_age_blocks(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    rig_free(&rig, rig_alloc(&rig, 512, 0));
    rig_configure(&rig, "garbage_collection_threshold:0.5");
    idle_is(&rig, true); /* not without a limit */
    rig_limit(&rig, 0.9);
    idle_is(&rig, false);
    rig_limit(&rig, 1.0);
    idle_is(&rig, true);
    rig_close(&rig);
}

/* What the fast path does not serve the slow path does, which finds things as they were. */
static void what_it_does_not_serve_goes_on(void **state)
{
    struct rig rig;
    tarn_ptr ptr = 0;

    (void)state;
    rig_open(&rig, 40 * MIB, "");
    const tarn_ptr base = rig_alloc(&rig, MIB, 0);

    idle_is(&rig, true);
    const tarn_ptr fresh = rig_alloc(&rig, 20 * MIB, 0); /* from the device */

    rig_alloc_oom(&rig, 30 * MIB, 0);
    assert_int_equal(tarn_allocator_alloc(rig.allocator, UINT64_MAX, 0, &ptr, NULL),
                     TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(tarn_allocator_free(rig.allocator, base + 512, NULL),
                     TARN_ERR_INVALID_POINTER);
    idle_is(&rig, true);
    rig_free(&rig, fresh);
    rig_free(&rig, base);
    rig_check(&rig);
    rig_close(&rig);
}

/* For the other thread to come to the lock: 50 ms. */
static const struct timespec long_enough = {.tv_nsec = 50000000};

/* A thread that asks for memory while another one, with the lock, begins to route requests. */
struct encounter {
    struct rig rig;
    _Atomic bool stops; /* the next piece of host memory takes long, and lets the thread go */
    _Atomic bool goes;
    tarn_ptr got;
    enum tarn_status status;
};

static void *host_alloc(void *context, size_t size, size_t alignment)
{
    struct encounter *encounter = context;
    void *memory = NULL;

    if (atomic_exchange(&encounter->stops, false)) {
        atomic_store(&encounter->goes, true);
        (void)nanosleep(&long_enough, NULL);
    }
    return posix_memalign(&memory, alignment > sizeof(void *) ? alignment : sizeof(void *), size)
               ? NULL
               : memory;
}

static void host_release(void *context, void *memory, size_t size)
{
    (void)context;
    (void)size;
    free(memory);
}

static void *ask_when_told(void *context)
{
    struct encounter *encounter = context;

    while (!atomic_load(&encounter->goes)) {
        (void)sched_yield();
    }
    encounter->status =
        tarn_allocator_alloc(encounter->rig.allocator, 512, 0, &encounter->got, NULL);
    return NULL;
}

/* Nothing was unusual when it came, but is when it gets the lock. */
static void who_waited_for_the_lock_is_routed(void **state)
{
    static struct encounter encounter;
    const struct tarn_host_hooks hooks = {.struct_size = sizeof hooks,
                                          .alloc = host_alloc,
                                          .release = host_release,
                                          .context = &encounter};
    const struct tarn_pool_id id = {0, 1};
    struct rig_totals routed = {0};
    const struct tarn_walker walker = {&routed, rig_count_segment, rig_count_block};
    pthread_t thread;

    (void)state;
    assert_int_equal(tarn_host_set_hooks(&hooks), TARN_OK);
    rig_open(&encounter.rig, GIB, "");
    rig_free(&encounter.rig, rig_alloc(&encounter.rig, 512, 0));
    idle_is(&encounter.rig, true);
    assert_int_equal(pthread_create(&thread, NULL, ask_when_told, &encounter), 0);
    atomic_store(&encounter.stops, true);
    assert_int_equal(tarn_allocator_begin_pool(encounter.rig.allocator, id, any_stream, NULL, NULL),
                     TARN_OK);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(encounter.status, TARN_OK);
    assert_false(atomic_load(&encounter.stops));
    assert_int_equal(tarn_allocator_walk_pool(encounter.rig.allocator, id, &walker), TARN_OK);
    assert_int_equal(routed.allocated, 1);
    assert_int_equal(tarn_allocator_end_pool(encounter.rig.allocator, id, NULL), TARN_OK);
    rig_free(&encounter.rig, encounter.got);
    assert_int_equal(tarn_allocator_release_pool(encounter.rig.allocator, id, NULL), TARN_OK);
    rig_close(&encounter.rig);
    assert_int_equal(tarn_host_set_hooks(NULL), TARN_OK);
}

/* Deferred blocks are looked at by every request, also by one that names a pool. */
static void a_request_of_a_pool_looks_at_deferred_blocks(void **state)
{
    struct tarn_pool *pool = NULL;
    tarn_ptr ptrs[2];
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "rules:2.14");
    assert_int_equal(tarn_pool_create(rig.allocator, NULL, &pool, &rig.error), TARN_OK);
    assert_int_equal(tarn_pool_alloc(pool, 512, 0, &ptrs[0], &rig.error), TARN_OK);
    const tarn_ptr used = rig_alloc(&rig, 1024, 0);

    rig_record(&rig, used, 7);
    assert_int_equal(tarn_allocator_begin_capture(rig.allocator, &rig.error), TARN_OK);
    rig_free(&rig, used);
    assert_int_equal(tarn_allocator_end_capture(rig.allocator, &rig.error), TARN_OK);
    assert_int_equal(atomic_load(&rig_engine(rig.allocator)->heap.busy), TN_BUSY_BLOCKS);
    assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE), 2);
    assert_int_equal(tarn_pool_alloc(pool, 512, 0, &ptrs[1], &rig.error), TARN_OK);
    idle_is(&rig, true); /* nothing ran on stream 7 */
    assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE), 2);
    rig_free(&rig, ptrs[1]);
    rig_free(&rig, ptrs[0]);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

static bool only_stream_9(void *context, tarn_stream stream)
{
    (void)context;
    return stream == 9;
}

/* What every request has to look at has come when it gets the lock: a block that was freed during a
 * capture. It leaves the lock to the engine. */
static void who_waited_for_the_lock_looks_at_deferred_blocks(void **state)
{
    static struct encounter encounter;
    const struct tarn_host_hooks hooks = {.struct_size = sizeof hooks,
                                          .alloc = host_alloc,
                                          .release = host_release,
                                          .context = &encounter};
    const struct tarn_pool_id id = {0, 1};
    pthread_t thread;

    (void)state;
    assert_int_equal(tarn_host_set_hooks(&hooks), TARN_OK);
    rig_open(&encounter.rig, GIB, "graph_capture_record_stream_reuse:True");
    const tarn_ptr used = rig_alloc(&encounter.rig, 512, 0);

    rig_record(&encounter.rig, used, 7);
    assert_int_equal(
        tarn_allocator_begin_pool(encounter.rig.allocator, id, only_stream_9, NULL, NULL), TARN_OK);
    assert_int_equal(atomic_load(&rig_engine(encounter.rig.allocator)->heap.busy), TN_BUSY_SOME);
    assert_int_equal(pthread_create(&thread, NULL, ask_when_told, &encounter), 0);
    atomic_store(&encounter.stops, true);
    rig_free(&encounter.rig, used);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(atomic_load(&encounter.stops));
    assert_int_equal(encounter.status, TARN_OK);
    assert_int_equal(tarn_allocator_end_pool(encounter.rig.allocator, id, NULL), TARN_OK);
    rig_free(&encounter.rig, encounter.got);
    assert_int_equal(tarn_allocator_release_pool(encounter.rig.allocator, id, NULL), TARN_OK);
    rig_close(&encounter.rig);
    assert_int_equal(tarn_host_set_hooks(NULL), TARN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_may_receive_events),
        cmocka_unit_test(nothing_may_wait),
        cmocka_unit_test(no_request_may_be_routed),
        cmocka_unit_test(no_search_may_age_blocks),
        cmocka_unit_test(what_it_does_not_serve_goes_on),
        cmocka_unit_test(who_waited_for_the_lock_is_routed),
        cmocka_unit_test(a_request_of_a_pool_looks_at_deferred_blocks),
        cmocka_unit_test(who_waited_for_the_lock_looks_at_deferred_blocks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
