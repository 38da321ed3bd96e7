/* SPDX-License-Identifier: MIT */
/* Private pools that only one thread's requests go to. Names in comments are PyTorch's tests. */
#include "support/test.h"

#include <pthread.h>

#include "support/rig.h"

enum {
    WORKERS = 4,
    ROUNDS = 50
};

static const struct tarn_pool_id default_pools = {0, 0};

/* One thread with a pool of its own. */
struct worker {
    struct rig *rig;
    struct tarn_pool_id id;
    pthread_t self; /* set by the thread before it begins the pool */
    tarn_ptr kept;
    int failures;
};

static bool own_thread(void *context, tarn_stream stream)
{
    (void)stream;
    return pthread_equal(((struct worker *)context)->self, pthread_self()) != 0;
}

static void expect_ok(struct worker *worker, enum tarn_status st)
{
    worker->failures += st != TARN_OK; /* cmocka's assertions are for the main thread */
}

static void worker_begin(struct worker *worker)
{
    worker->self = pthread_self();
    expect_ok(worker, tarn_allocator_begin_pool(worker->rig->allocator, worker->id, own_thread,
                                                worker, NULL));
}

static tarn_ptr worker_alloc(struct worker *worker, uint64_t size)
{
    tarn_ptr ptr = 0;

    expect_ok(worker, tarn_allocator_alloc(worker->rig->allocator, size, 0, &ptr, NULL));
    return ptr;
}

static void *begin_only(void *context)
{
    worker_begin(context);
    return NULL;
}

/* Allocates a block of each kind in the pool and keeps one. */
static void *allocate(void *context)
{
    struct worker *worker = context;

    worker_begin(worker);
    worker->kept = worker_alloc(worker, 512);
    expect_ok(worker,
              tarn_allocator_free(worker->rig->allocator, worker_alloc(worker, 30 * MIB), NULL));
    expect_ok(worker, tarn_allocator_end_pool(worker->rig->allocator, worker->id, NULL));
    return NULL;
}

/* The same over and over, with the pool emptied each time. */
static void *allocate_and_empty(void *context)
{
    struct worker *worker = context;

    for (int i = 0; i < ROUNDS; i++) {
        struct tarn_allocator *allocator = worker->rig->allocator;

        allocate(worker);
        expect_ok(worker, tarn_allocator_free(allocator, worker->kept, NULL));
        expect_ok(worker, tarn_allocator_release_pool(allocator, worker->id, NULL));
        expect_ok(worker, tarn_allocator_empty_pool(allocator, worker->id, NULL));
    }
    return NULL;
}

static void run_workers(struct rig *rig, struct worker *workers, void *(*work)(void *))
{
    pthread_t threads[WORKERS];

    for (int i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){.rig = rig, .id = {0, (uint64_t)i + 1}};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < WORKERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(workers[i].failures, 0);
    }
}

static struct rig_totals pool_totals(struct rig *rig, struct tarn_pool_id id)
{
    struct rig_totals totals = {0};
    const struct tarn_walker walker = {&totals, rig_count_segment, rig_count_block};

    assert_int_equal(tarn_allocator_walk_pool(rig->allocator, id, &walker), TARN_OK);
    return totals;
}

/* test_mempool_multithread: each thread's memory is in its own pool, all of it. */
static void every_thread_has_its_pool(void **state)
{
    struct rig rig;
    struct worker workers[WORKERS];

    (void)state;
    rig_open(&rig, GIB, "");
    run_workers(&rig, workers, allocate);
    for (int i = 0; i < WORKERS; i++) {
        assert_int_equal(pool_totals(&rig, workers[i].id).segments, 2);
        assert_int_equal(pool_totals(&rig, workers[i].id).reserved, 2 * MIB + 30 * MIB);
    }
    assert_int_equal(pool_totals(&rig, default_pools).segments, 0);
    rig_close(&rig);
}

/* test_mempool_ctx_multithread: another thread's pool takes nothing of this one's: 2,097,152 bytes
 * in the default pool, 0 in the other. */
static void requests_of_other_threads_stay_out(void **state)
{
    struct rig rig;
    struct worker worker = {.id = {0, 1}};

    (void)state;
    pthread_t thread;

    rig_open(&rig, GIB, "");
    worker.rig = &rig;
    assert_int_equal(pthread_create(&thread, NULL, begin_only, &worker), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(worker.failures, 0);
    (void)rig_alloc(&rig, 512, 0);
    assert_int_equal(pool_totals(&rig, default_pools).reserved, 2097152);
    assert_int_equal(pool_totals(&rig, worker.id).reserved, 0);
    assert_int_equal(tarn_allocator_end_pool(rig.allocator, worker.id, NULL), TARN_OK);
    rig_close(&rig);
}

/* test_allocate_in_thread_to_pool, test_mempool_emptycache_multithread: nothing stays. */
static void pools_of_threads_come_and_go(void **state)
{
    struct rig rig;
    struct worker workers[WORKERS];

    (void)state;
    rig_open(&rig, 4 * GIB, "");
    run_workers(&rig, workers, allocate_and_empty);
    assert_int_equal(rig_totals(&rig).segments, 0);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 0);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_thread_has_its_pool),
        cmocka_unit_test(requests_of_other_threads_stay_out),
        cmocka_unit_test(pools_of_threads_come_and_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
