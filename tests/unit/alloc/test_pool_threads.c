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

static bool add_active(void *context, const struct tarn_segment_info *segment)
{
    *(int64_t *)context += (int64_t)segment->active_size;
    return true;
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

/* Two requests of 1 MiB in all, one of them by another thread while this one's go to a pool. */
static void *allocate_a_mebibyte(void *context)
{
    (void)worker_alloc(context, MIB);
    return NULL;
}

static int64_t pool_active(struct rig *rig, struct tarn_pool_id id)
{
    int64_t active = 0;
    const struct tarn_walker walker = {&active, add_active, NULL};

    assert_int_equal(tarn_allocator_walk_pool(rig->allocator, id, &walker), TARN_OK);
    return active;
}

/* test_mempool_ctx_multithread: another thread's requests do not go to this one's pool: two
 * segments, 2,097,152 bytes active in the default pool, 0 in the other. */
static void requests_of_other_threads_stay_out(void **state)
{
    struct rig rig;
    struct worker self = {.id = {0, 1}, .rig = &rig};
    struct worker other = {.rig = &rig};
    pthread_t thread;

    (void)state;
    rig_open(&rig, GIB, "");
    (void)rig_alloc(&rig, MIB, 0);
    worker_begin(&self);
    rig_free(&rig, rig_alloc(&rig, MIB, 0));
    assert_int_equal(pthread_create(&thread, NULL, allocate_a_mebibyte, &other), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(self.failures + other.failures, 0);
    assert_int_equal(rig_totals(&rig).segments, 2);
    assert_int_equal(pool_active(&rig, default_pools), 2097152);
    assert_int_equal(pool_active(&rig, self.id), 0);
    assert_int_equal(tarn_allocator_end_pool(rig.allocator, self.id, NULL), TARN_OK);
    rig_close(&rig);
}

/* test_mempool_emptycache_multithread: emptying the cache while requests go to a pool leaves that
 * pool alone; each has its segment in the end. */
static void *allocate_and_empty_inside(void *context)
{
    struct worker *worker = context;
    struct tarn_allocator *allocator = worker->rig->allocator;

    worker_begin(worker);
    expect_ok(worker, tarn_allocator_free(allocator, worker_alloc(worker, 16), NULL));
    expect_ok(worker, tarn_allocator_empty_cache(allocator, NULL));
    expect_ok(worker, tarn_allocator_end_pool(allocator, worker->id, NULL));
    expect_ok(worker, tarn_allocator_release_pool(allocator, worker->id, NULL));
    return NULL;
}

static void emptying_the_cache_leaves_pools_in_use(void **state)
{
    struct rig rig;
    struct worker workers[WORKERS];

    (void)state;
    rig_open(&rig, GIB, "");
    for (uint64_t i = 1; i <= WORKERS; i++) { /* the owners of the pools */
        assert_int_equal(
            tarn_allocator_acquire_pool(rig.allocator, (struct tarn_pool_id){0, i}, NULL), TARN_OK);
    }
    run_workers(&rig, workers, allocate_and_empty_inside);
    for (int i = 0; i < WORKERS; i++) {
        assert_int_equal(pool_totals(&rig, workers[i].id).segments, 1);
    }
    rig_close(&rig);
}

static void allocate_large(struct worker *worker, int count, tarn_stream stream)
{
    tarn_ptr ptrs[3] = {0};

    for (int i = 0; i < count; i++) {
        expect_ok(worker,
                  tarn_allocator_alloc(worker->rig->allocator, 20 * MIB, stream, &ptrs[i], NULL));
    }
    for (int i = 0; i < count; i++) {
        expect_ok(worker, tarn_allocator_free(worker->rig->allocator, ptrs[i], NULL));
    }
}

static void *three_in_the_pool(void *context)
{
    struct worker *worker = context;

    worker_begin(worker);
    for (int i = 0; i < 10; i++) {
        allocate_large(worker, 3, 5);
    }
    expect_ok(worker, tarn_allocator_end_pool(worker->rig->allocator, worker->id, NULL));
    expect_ok(worker, tarn_allocator_release_pool(worker->rig->allocator, worker->id, NULL));
    allocate_large(worker, 3, 0); /* not in the pool */
    return NULL;
}

static void *two_outside(void *context)
{
    for (int i = 0; i < 10; i++) {
        allocate_large(context, 2, 0);
    }
    return NULL;
}

/* test_allocate_in_thread_to_pool: a graph's pool has a small segment; one thread takes three
 * blocks of 20 MiB there, over and over, while another one takes some elsewhere: 4 segments, 2 if
 * they grow, 0 when nobody needs them. */
static void one_threads_blocks_go_to_the_pool(void **state)
{
    static const char *const confs[] = {"", "expandable_segments:True"};

    (void)state;
    for (int expandable = 0; expandable < 2; expandable++) {
        struct rig rig;
        struct worker graph = {.id = {0, 1}, .rig = &rig};
        struct worker inside = graph;
        struct worker outside = graph;
        pthread_t threads[2];

        rig_open(&rig, GIB, confs[expandable]);
        worker_begin(&graph);
        rig_free(&rig, rig_alloc(&rig, 16, 5));
        assert_int_equal(tarn_allocator_end_pool(rig.allocator, graph.id, NULL), TARN_OK);
        assert_int_equal(pool_totals(&rig, graph.id).segments, 1);
        assert_int_equal(pthread_create(&threads[0], NULL, three_in_the_pool, &inside), 0);
        assert_int_equal(pthread_create(&threads[1], NULL, two_outside, &outside), 0);
        assert_int_equal(pthread_join(threads[0], NULL), 0);
        assert_int_equal(pthread_join(threads[1], NULL), 0);
        assert_int_equal(graph.failures + inside.failures + outside.failures, 0);
        assert_int_equal(pool_totals(&rig, graph.id).segments, expandable ? 2 : 4);
        assert_int_equal(tarn_allocator_release_pool(rig.allocator, graph.id, NULL), TARN_OK);
        rig_empty_cache(&rig);
        assert_int_equal(pool_totals(&rig, graph.id).segments, 0);
        rig_close(&rig);
    }
}

/* The same over and over, with the pool emptied each time: nothing stays. */
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
        cmocka_unit_test(emptying_the_cache_leaves_pools_in_use),
        cmocka_unit_test(one_threads_blocks_go_to_the_pool),
        cmocka_unit_test(pools_of_threads_come_and_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
