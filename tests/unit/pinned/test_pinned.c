/* SPDX-License-Identifier: MIT */
/* Pinned host memory: reuse by size, streams, captures, settings, failures, threads. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "support/child.h"
#include "support/failing.h"
#include "support/test.h"

#include "pinned/pinned_core.h"
#include "pinned/pinned_look.h"
#include "support/sim.h"
#include "tarn/pinned.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

FAILING(void *, MAP_FAILED, mmap, (void *at, size_t size, int may, int flags, int file, off_t from),
        (at, size, may, flags, file, from))
FAILING(int, EAGAIN, pthread_create,
        (pthread_t * thread, const pthread_attr_t *how, void *(*run)(void *), void *argument),
        (thread, how, run, argument))

struct rig {
    struct tarn_device *device;
    struct tarn_pinned *pinned;
    struct tarn_error error;
    uint64_t host_bytes;
};

static void rig_open_with(struct rig *rig, const struct tarn_config *config)
{
    *rig = (struct rig){.host_bytes = tarn_host_get_usage().live_bytes};
    rig->device = sim_open(GIB);
    assert_int_equal(tarn_pinned_create(rig->device, config, &rig->pinned, &rig->error), TARN_OK);
}

static void rig_open(struct rig *rig)
{
    rig_open_with(rig, NULL);
}

static void rig_check(struct rig *rig)
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    if (tarn_pinned_check(rig->pinned, &findings) != 0) {
        fail_msg("%s", findings.text[0]);
    }
}

static void rig_close(struct rig *rig)
{
    rig_check(rig);
    tarn_pinned_destroy(rig->pinned);
    assert_int_equal(sim_counters(rig->device).live_host, 0);
    assert_int_equal(sim_counters(rig->device).live_events, 0);
    sim_close(rig->device);
    assert_int_equal(tarn_host_get_usage().live_bytes, rig->host_bytes);
}

static void *take(struct rig *rig, uint64_t size)
{
    void *memory = NULL;

    if (tarn_pinned_alloc(rig->pinned, size, &memory, &rig->error) != TARN_OK) {
        fail_msg("%s", rig->error.text);
    }
    return memory;
}

static void give(struct rig *rig, void *memory)
{
    if (tarn_pinned_free(rig->pinned, memory, &rig->error) != TARN_OK) {
        fail_msg("%s", rig->error.text);
    }
}

static void use(struct rig *rig, void *memory, tarn_stream stream)
{
    assert_int_equal(tarn_pinned_record_stream(rig->pinned, memory, NULL, stream, &rig->error),
                     TARN_OK);
}

static struct tarn_pinned_stats stats_of(struct rig *rig)
{
    struct tarn_pinned_stats stats = {.struct_size = sizeof stats};

    tarn_pinned_get_stats(rig->pinned, &stats);
    return stats;
}

/* PyTorch: test_host_memory_stats, test_pinned_memory_empty_cache */
static void sizes_are_rounded_and_counted(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig);
    void *a = take(&rig, 10 * KIB);
    void *b = take(&rig, 20 * KIB);
    struct tarn_pinned_stats stats = stats_of(&rig);

    memset(a, 1, 16 * KIB); /* all of it is there */
    assert_int_equal(stats.allocated_bytes.current, 48 * KIB);
    assert_int_equal(stats.active_bytes.current, 48 * KIB);
    assert_int_equal(stats.active_requests.current, 2);
    assert_int_equal(stats.allocations.allocated, 2);
    assert_int_equal(stats.num_host_alloc, 2);
    assert_int_equal(stats.host_alloc_time.count, 2);
    give(&rig, a);
    stats = stats_of(&rig);
    assert_int_equal(stats.active_bytes.current, 32 * KIB);
    assert_int_equal(stats.active_bytes.peak, 48 * KIB);
    assert_int_equal(stats.active_bytes.freed, 16 * KIB);
    assert_int_equal(stats.allocated_bytes.current, 48 * KIB); /* it is cached */
    rig_check(&rig);
    assert_int_equal(tarn_pinned_empty_cache(rig.pinned, &rig.error), TARN_OK);
    stats = stats_of(&rig);
    assert_int_equal(stats.allocated_bytes.current, 32 * KIB);
    assert_int_equal(stats.num_host_free, 1);
    assert_int_equal(sim_counters(rig.device).live_host, 1);
    tarn_pinned_reset_accumulated_stats(rig.pinned);
    tarn_pinned_reset_peak_stats(rig.pinned);
    stats = stats_of(&rig);
    assert_int_equal(stats.num_host_alloc, 0);
    assert_int_equal(stats.active_bytes.peak, 32 * KIB);
    assert_int_equal(stats.active_bytes.freed, 0);
    give(&rig, b);
    rig_close(&rig);
}

static void the_last_freed_is_taken_first(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig);
    void *a = take(&rig, 4096);
    void *b = take(&rig, 4096);

    give(&rig, a);
    give(&rig, b);
    assert_ptr_equal(take(&rig, 2049), b); /* 2,049 bytes are 4,096 */
    assert_ptr_equal(take(&rig, 4096), a);
    assert_true(take(&rig, 4097) != a);
    assert_int_equal(stats_of(&rig).num_host_alloc, 3);
    rig_close(&rig);
}

static void wrong_pointers_are_refused(void **state)
{
    struct rig rig;
    char own[8];
    void *out = own;

    (void)state;
    rig_open(&rig);
    char *a = take(&rig, 8192);

    assert_int_equal(tarn_pinned_free(rig.pinned, a + 1, &rig.error), TARN_ERR_INVALID_POINTER);
    assert_int_equal(tarn_pinned_free(rig.pinned, own, &rig.error), TARN_ERR_INVALID_POINTER);
    assert_int_equal(tarn_pinned_record_stream(rig.pinned, a + 8192, NULL, 1, &rig.error),
                     TARN_ERR_INVALID_POINTER);
    use(&rig, a + 8191, 1); /* anywhere inside */
    give(&rig, a);
    assert_int_equal(tarn_pinned_free(rig.pinned, a, &rig.error), TARN_ERR_INVALID_POINTER);
    assert_int_equal(tarn_pinned_record_stream(rig.pinned, a, NULL, 1, &rig.error),
                     TARN_ERR_INVALID_POINTER);
    give(&rig, NULL);
    assert_int_equal(tarn_pinned_alloc(rig.pinned, 0, &out, &rig.error), TARN_OK);
    assert_null(out);
    out = own;
    assert_int_equal(tarn_pinned_alloc(rig.pinned, UINT64_MAX, &out, &rig.error),
                     TARN_ERR_OUT_OF_MEMORY);
    assert_ptr_equal(out, own);
    rig_close(&rig);
}

/* PyTorch: test_caching_pinned_memory */
static void a_block_waits_for_its_streams(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig);
    void *a = take(&rig, 4096);

    use(&rig, a, 1);
    use(&rig, a, 2);
    use(&rig, a, 1); /* once is enough */
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    assert_int_equal(tarn_sim_block_stream(rig.device, 2), TARN_OK);
    give(&rig, a);
    assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_EVENT_RECORD], 2);
    rig_check(&rig);
    void *b = take(&rig, 4096);

    assert_ptr_not_equal(b, a);
    assert_int_equal(tarn_sim_unblock_stream(rig.device, 1), TARN_OK);
    void *c = take(&rig, 4096);

    assert_ptr_not_equal(c, a); /* one of two */
    assert_int_equal(stats_of(&rig).active_requests.current, 3);
    assert_int_equal(tarn_sim_unblock_stream(rig.device, 2), TARN_OK);
    assert_ptr_equal(take(&rig, 4096), a);
    use(&rig, a, 1);
    give(&rig, a); /* its events are used again */
    assert_int_equal(sim_counters(rig.device).live_events, 2);
    rig_close(&rig);
}

static void asking_ends_at_the_first_that_is_not_done(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig);
    void *slow = take(&rig, 4096);
    void *quick = take(&rig, 8192);

    use(&rig, slow, 1);
    use(&rig, quick, 2);
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    give(&rig, slow);
    give(&rig, quick);
    assert_ptr_not_equal(take(&rig, 8192), quick); /* as in PyTorch */
    assert_int_equal(tarn_sim_unblock_stream(rig.device, 1), TARN_OK);
    assert_ptr_equal(take(&rig, 8192), quick);
    rig_close(&rig);
}

/* PyTorch: TestCachingHostAllocatorCudaGraph */
static void what_a_graph_uses_is_kept_for_it(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig);
    void *a = take(&rig, 4096);

    assert_int_equal(tarn_sim_set_capturing(rig.device, 5, true), TARN_OK);
    use(&rig, a, 5);
    assert_int_equal(tarn_sim_set_capturing(rig.device, 5, false), TARN_OK);
    give(&rig, a);
    assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_EVENT_RECORD], 0);
    assert_ptr_not_equal(take(&rig, 4096), a);
    assert_int_equal(tarn_pinned_empty_cache(rig.pinned, &rig.error), TARN_OK);
    assert_int_equal(stats_of(&rig).graph_blocks, 1);
    rig_check(&rig);
    tarn_pinned_forget_graphs(rig.pinned);
    assert_int_equal(stats_of(&rig).graph_blocks, 0);
    assert_ptr_equal(take(&rig, 4096), a);
    rig_close(&rig);
}

static struct tarn_config config_of(const char *text)
{
    struct tarn_config config;

    assert_int_equal(tarn_config_parse(text, &config, NULL), TARN_OK);
    return config;
}

/* PyTorch: test_pinned_memory_with_cudaregister */
static void memory_can_be_registered_instead(void **state)
{
    const char *const texts[] = {
        "pinned_use_cuda_host_register:True",
        "pinned_use_cuda_host_register:True,pinned_num_register_threads:8"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const struct tarn_config config = config_of(texts[i]);
        struct rig rig;

        rig_open_with(&rig, &config);
        unsigned char *a = take(&rig, 8 * MIB);
        unsigned char *b = take(&rig, 100); /* less than a page each thread */

        a[8 * MIB - 1] = 1;
        b[127] = 1;
        assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_HOST_REGISTER], 2);
        assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_HOST_ALLOC], 0);
        give(&rig, a);
        assert_int_equal(tarn_pinned_empty_cache(rig.pinned, &rig.error), TARN_OK);
        assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_HOST_UNREGISTER], 1);
        rig_close(&rig);
    }
}

/* Pages of a thread that does not start are touched as well. */
static void registering_needs_no_threads(void **state)
{
    const struct tarn_config config =
        config_of("pinned_use_cuda_host_register:True,pinned_num_register_threads:8");
    struct rig rig;

    (void)state;
    rig_open_with(&rig, &config);
    fail_calls("pthread_create", 2, 3, EAGAIN); /* of seven */
    unsigned char *a = take(&rig, MIB);
    unsigned char touched[MIB / 4096];

    assert_true(fail_none());
    assert_int_equal(mincore(a, MIB, touched), 0);
    for (size_t i = 0; i < sizeof touched; i++) {
        assert_true(touched[i] & 1);
    }
    give(&rig, a);
    rig_close(&rig);
}

/* The system gives no memory, or the device keeps what was registered. */
static void registering_may_fail(void **state)
{
    struct tarn_config config;
    struct rig rig;
    void *memory = NULL;

    (void)state;
    assert_int_equal(tarn_config_parse("pinned_use_cuda_host_register:True", &config, NULL),
                     TARN_OK);
    rig_open_with(&rig, &config);
    fail_calls("mmap", 0, 2, ENOMEM); /* also when the cache was emptied */
    assert_int_equal(tarn_pinned_alloc(rig.pinned, MIB, &memory, &rig.error), TARN_ERR_HOST_MEMORY);
    (void)fail_none();
    assert_null(memory);
    rig_check(&rig);
    memory = take(&rig, MIB);
    assert_int_equal(tarn_pinned_free(rig.pinned, memory, &rig.error), TARN_OK);
    tarn_sim_fail_nth(rig.device, TARN_SIM_HOST_UNREGISTER, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_pinned_empty_cache(rig.pinned, &rig.error), TARN_ERR_DEVICE);
    rig_check(&rig);
    *(char *)memory = 5; /* it is there still */
    assert_int_equal(tarn_pinned_empty_cache(rig.pinned, &rig.error), TARN_OK);
    rig_close(&rig);
}

static uint64_t some_stack(void *context, enum tarn_context_level level)
{
    (void)level;
    return ++*(uint64_t *)context;
}

static void nothing_received(void *context, const struct tarn_trace_event *event)
{
    (void)context;
    (void)event;
}

static void child_asks(void *context)
{
    CHILD_REQUIRE(!tn_pinned_stack_keeper(context));
}

/* A sink need not give stacks back, nor make any; and that of the parent is not a child's. */
static void a_sink_need_not_have_everything(void **state)
{
    uint64_t stacks = 0;
    struct tarn_sink sink = {.context = &stacks,
                             .level = TARN_CONTEXT_ALL,
                             .capture = some_stack,
                             .receive = nothing_received};
    struct rig rig;

    (void)state;
    rig_open(&rig);
    tarn_pinned_set_sink(rig.pinned, &sink);
    assert_int_equal(tarn_pinned_free(rig.pinned, take(&rig, MIB), &rig.error), TARN_OK);
    assert_true(stacks > 0);
    assert_ptr_equal(tn_pinned_stack_keeper(rig.pinned), &stacks);
    child_run(child_asks, rig.pinned);
    sink.capture = NULL;
    tarn_pinned_set_sink(rig.pinned, &sink);
    assert_null(tn_pinned_stack_keeper(rig.pinned));
    tarn_pinned_set_sink(rig.pinned, NULL);
    rig_close(&rig);
}

static void the_reserved_segment_serves_first(void **state)
{
    const struct tarn_config config = config_of("pinned_reserve_segment_size_mb:1");
    struct rig rig;

    (void)state;
    rig_open_with(&rig, &config);
    char *a = take(&rig, 512 * KIB);
    char *b = take(&rig, 100); /* takes a page of it */
    char *c = take(&rig, 512 * KIB);
    char *d = take(&rig, 256 * KIB);

    assert_ptr_equal(b, a + 512 * KIB);
    assert_ptr_equal(d, b + 4096);
    assert_true(c < a || c >= a + MIB);
    assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_HOST_ALLOC], 2);
    give(&rig, a);
    give(&rig, c);
    assert_int_equal(tarn_pinned_empty_cache(rig.pinned, &rig.error), TARN_OK);
    assert_int_equal(sim_counters(rig.device).live_host, 1);
    assert_ptr_equal(take(&rig, 512 * KIB), a); /* still cached */
    rig_close(&rig);

    /* Where there is none, requests are served one by one. */
    rig_open_with(&rig, &config);
    tarn_sim_fail_nth(rig.device, TARN_SIM_HOST_ALLOC, 1, TARN_ERR_OUT_OF_MEMORY);
    (void)take(&rig, 4096);
    assert_int_equal(stats_of(&rig).allocated_bytes.current, 4096);
    rig_close(&rig);
}

/* ---- large requests: PyTorch's #171662 ---- */

static void what_is_not_rounded_is_cached(void **state)
{
    const struct tarn_config config = config_of("pinned_max_round_threshold_mb:4");
    struct rig rig;

    (void)state;
    rig_open_with(&rig, &config);
    give(&rig, take(&rig, 4 * MIB - 1));
    assert_int_equal(stats_of(&rig).allocated_bytes.current,
                     4 * MIB); /* the last that is rounded */
    void *small = take(&rig, 5 * MIB);
    void *large = take(&rig, 7 * MIB + 5);

    assert_int_equal(stats_of(&rig).allocated_bytes.current, 16 * MIB + 5);
    give(&rig, large);
    give(&rig,
         small); /* in the same list: too small for the first two, the last freed for the third */
    assert_ptr_equal(take(&rig, 6 * MIB), large);
    assert_int_equal(stats_of(&rig).active_bytes.current, 7 * MIB + 5);
    rig_check(&rig);
    assert_ptr_not_equal(take(&rig, 6 * MIB), small);
    assert_ptr_equal(take(&rig, 4 * MIB + 1), small);
    assert_int_equal(stats_of(&rig).num_host_alloc, 4);
    rig_close(&rig);
}

/* Also of one list: what is small enough for the cache stays. */
static void only_what_is_too_large_goes(void **state)
{
    const struct tarn_config config =
        config_of("pinned_max_round_threshold_mb:4,pinned_max_cached_size_mb:6");
    struct rig rig;

    (void)state;
    rig_open_with(&rig, &config);
    void *small = take(&rig, 5 * MIB);

    give(&rig, take(&rig, 7 * MIB));
    give(&rig, small);
    give(&rig, take(&rig, 7 * MIB));
    assert_int_equal(stats_of(&rig).num_host_free, 2);
    assert_ptr_equal(take(&rig, 5 * MIB), small);
    rig_close(&rig);
}

static void what_is_too_large_is_not_cached(void **state)
{
    const struct tarn_config config = config_of("pinned_max_cached_size_mb:4");
    struct rig rig;

    (void)state;
    rig_open_with(&rig, &config);
    void *kept = take(&rig, 3 * MIB);
    void *large = take(&rig, 5 * MIB);
    void *used = take(&rig, 5 * MIB + 1);

    assert_int_equal(stats_of(&rig).allocated_bytes.current, 14 * MIB + 1);
    give(&rig, kept);
    give(&rig, large);
    assert_int_equal(stats_of(&rig).allocated_bytes.current, 9 * MIB + 1);
    use(&rig, used, 1);
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    give(&rig, used);
    assert_int_equal(stats_of(&rig).num_host_free, 1); /* not while the stream uses it */
    assert_int_equal(tarn_sim_unblock_stream(rig.device, 1), TARN_OK);
    give(&rig, take(&rig, 1)); /* any request looks at the events */
    assert_int_equal(stats_of(&rig).num_host_free, 2);
    assert_int_equal(stats_of(&rig).allocated_bytes.current, 4 * MIB + 1);
    assert_ptr_equal(take(&rig, 4 * MIB), kept);
    rig_close(&rig);
}

static void what_the_driver_keeps_is_released_later(void **state)
{
    const struct tarn_config config = config_of("pinned_max_cached_size_mb:0");
    struct rig rig;

    (void)state;
    rig_open_with(&rig, &config);
    void *a = take(&rig, 3 * KIB);
    void *b = take(&rig, 5 * KIB);

    assert_int_equal(stats_of(&rig).allocated_bytes.current, 8 * KIB);
    tarn_sim_fail_nth(rig.device, TARN_SIM_HOST_FREE, 1, TARN_ERR_DEVICE);
    give(&rig, a);
    assert_int_equal(stats_of(&rig).active_requests.current, 1);
    assert_int_equal(stats_of(&rig).allocated_bytes.current, 8 * KIB);
    rig_check(&rig);
    give(&rig, b);
    assert_int_equal(stats_of(&rig).allocated_bytes.current, 0);
    rig_close(&rig);
}

static void the_thread_releases_what_is_too_large(void **state)
{
    const struct tarn_config config =
        config_of("pinned_use_background_threads:True,pinned_max_cached_size_mb:1");
    const struct timespec nap = {.tv_nsec = 1000000};
    struct rig rig;

    (void)state;
    rig_open_with(&rig, &config);
    void *a = take(&rig, 3 * MIB); /* starts the thread */

    use(&rig, a, 1);
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    give(&rig, a);
    assert_ptr_not_equal(take(&rig, 3 * MIB), a);
    assert_int_equal(tarn_sim_unblock_stream(rig.device, 1), TARN_OK);
    while (stats_of(&rig).num_host_free == 0) {
        (void)nanosleep(&nap, NULL);
    }
    assert_int_equal(stats_of(&rig).allocated_bytes.current, 3 * MIB);
    rig_close(&rig);
}

static void the_reserved_segment_keeps_what_is_too_large(void **state)
{
    const struct tarn_config config =
        config_of("pinned_reserve_segment_size_mb:8,pinned_max_cached_size_mb:1");
    struct rig rig;

    (void)state;
    rig_open_with(&rig, &config);
    void *a = take(&rig, 3 * MIB);

    give(&rig, a);
    assert_ptr_equal(take(&rig, 3 * MIB), a);
    assert_int_equal(sim_counters(rig.device).live_host, 1);
    rig_close(&rig);
}

/* PyTorch: test_pinned_memory_use_background_threads */
static void a_thread_can_look_for_finished_work(void **state)
{
    const struct tarn_config config = config_of("pinned_use_background_threads:True");
    const struct timespec nap = {.tv_nsec = 1000000};
    struct rig rig;

    (void)state;
    rig_open_with(&rig, &config);
    void *slow = take(&rig, 4096); /* starts the thread */
    void *quick = take(&rig, 8192);

    use(&rig, slow, 1);
    use(&rig, quick, 2);
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    give(&rig, slow);
    give(&rig, quick);
    assert_ptr_equal(take(&rig, 8192), quick); /* behind one that is not done */
    assert_int_equal(tarn_sim_unblock_stream(rig.device, 1), TARN_OK);
    while (stats_of(&rig).active_requests.current > 1) { /* the thread sees it by itself */
        (void)nanosleep(&nap, NULL);
    }
    assert_ptr_equal(take(&rig, 4096), slow);
    rig_close(&rig);
}

/* ---- requests while events are queried ---- */

/* A device whose queries are answered after others have called the allocator. */
static struct {
    struct rig *rig;
    struct tn_device_ops ops; /* of the device, but for the query */
    enum tarn_status (*query)(struct tarn_device *device, tn_event_handle event);
    unsigned depth; /* of queries within queries */
    void *taken;    /* by the request of the first query */
} during;

static enum tarn_status query_during(struct tarn_device *device, tn_event_handle event)
{
    const unsigned depth = during.depth++;

    rig_check(during.rig); /* counts the events that are being queried */
    if (depth == 0) {
        during.taken = take(during.rig, 4096);
    } else if (depth == 1) {
        assert_int_equal(tarn_pinned_empty_cache(during.rig->pinned, NULL), TARN_OK);
    }
    return during.query(device, event);
}

/* One caller queries an event of a block, another the next one of that block, and a third takes
 * what is left of the queue meanwhile: the second finds the queue empty before it has queried as
 * many events as there were, and asks the device for memory. */
static void others_may_take_the_events(void **state)
{
    const struct tarn_config config = config_of("pinned_use_background_threads:True");
    struct rig rig;

    (void)state;
    rig_open_with(&rig, &config);
    fail_calls("pthread_create", 0, 1000, EAGAIN); /* it works without the thread, too */
    void *twice = take(&rig, 4096);
    void *once = take(&rig, 8192);

    use(&rig, twice, 1);
    use(&rig, twice, 2);
    use(&rig, once, 3);
    give(&rig, twice);
    give(&rig, once);
    during.rig = &rig;
    during.ops = *rig.device->ops;
    during.query = during.ops.event_query;
    during.depth = 0;
    during.ops.event_query = query_during;
    const struct tn_device_ops *const before = rig.device->ops;

    rig.device->ops = &during.ops;
    assert_int_equal(tarn_pinned_empty_cache(rig.pinned, &rig.error), TARN_OK);
    rig.device->ops = before;
    assert_int_equal(during.depth, 3);
    assert_ptr_not_equal(during.taken, twice);
    assert_int_equal(stats_of(&rig).active_requests.current, 1);
    assert_int_equal(stats_of(&rig).allocations.current, 1); /* the others were cached, and went */
    (void)fail_none();
    give(&rig, during.taken);
    rig_close(&rig);
}

/* Of blocks of its size a request takes the first that no stream uses any more. */
static void without_the_thread_all_events_of_a_size_are_queried(void **state)
{
    const struct tarn_config config = config_of("pinned_use_background_threads:True");
    struct rig rig;

    (void)state;
    rig_open_with(&rig, &config);
    fail_calls("pthread_create", 0, 1000, EAGAIN);
    void *slow = take(&rig, 4096);
    void *other = take(&rig, 8192);
    void *quick = take(&rig, 4096);

    use(&rig, slow, 1);
    use(&rig, other, 2);
    use(&rig, quick, 3);
    assert_int_equal(tarn_sim_block_stream(rig.device, 1), TARN_OK);
    give(&rig, slow);
    give(&rig, other);
    give(&rig, quick);
    assert_ptr_equal(take(&rig, 4096), quick);
    assert_int_equal(stats_of(&rig).active_requests.current, 3); /* nobody asked for 8192 */
    assert_ptr_not_equal(take(&rig, 4096), slow);
    assert_ptr_equal(take(&rig, 8192), other);
    assert_int_equal(tarn_sim_unblock_stream(rig.device, 1), TARN_OK);
    assert_ptr_equal(take(&rig, 4096), slow);
    (void)fail_none();
    rig_close(&rig);
}

static void a_full_host_empties_the_cache_first(void **state)
{
    struct rig rig;
    void *out = NULL;

    (void)state;
    rig_open(&rig);
    give(&rig, take(&rig, 4096));
    tarn_sim_fail_nth(rig.device, TARN_SIM_HOST_ALLOC, 1, TARN_ERR_OUT_OF_MEMORY);
    (void)take(&rig, 8192);
    assert_int_equal(stats_of(&rig).num_host_free, 1);
    tarn_sim_fail_nth(rig.device, TARN_SIM_HOST_ALLOC, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_pinned_alloc(rig.pinned, 4096, &out, &rig.error), TARN_ERR_DEVICE);
    assert_non_null(strstr(rig.error.text, "allocating pinned memory: planned failure"));
    rig_close(&rig);
}

static void a_free_that_fails_changes_nothing(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig);
    void *a = take(&rig, 4096);

    use(&rig, a, 1);
    use(&rig, a, 2);
    for (uint64_t n = 1;; n++) {
        tarn_sim_fail_nth(rig.device, TARN_SIM_ANY, n, TARN_ERR_DEVICE);
        const enum tarn_status st = tarn_pinned_free(rig.pinned, a, &rig.error);

        tarn_sim_fail_nth(rig.device, TARN_SIM_ANY, 0, TARN_OK);
        rig_check(&rig);
        if (st == TARN_OK) {
            assert_true(n > 2);
            break;
        }
        assert_int_equal(st, TARN_ERR_DEVICE);
        assert_int_equal(stats_of(&rig).active_requests.current, 1);
    }
    assert_ptr_equal(take(&rig, 4096), a);
    rig_close(&rig);
}

static void an_event_that_cannot_be_asked_is_told(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig);
    void *a = take(&rig, 4096);

    use(&rig, a, 1);
    give(&rig, a);
    tarn_sim_fail_nth(rig.device, TARN_SIM_EVENT_QUERY, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_pinned_empty_cache(rig.pinned, &rig.error), TARN_ERR_DEVICE);
    tarn_sim_fail_nth(rig.device, TARN_SIM_EVENT_QUERY, 0, TARN_OK);
    assert_int_equal(tarn_pinned_empty_cache(rig.pinned, &rig.error), TARN_OK);
    assert_int_equal(stats_of(&rig).num_host_free, 1);
    rig_close(&rig);
}

static void with_catch_all_a_free_does_not_fail(void **state)
{
    const struct tarn_config config = config_of("pinned_free_catch_all:True");
    struct rig rig;

    (void)state;
    rig_open_with(&rig, &config);
    void *a = take(&rig, 4096);

    use(&rig, a, 1);
    tarn_sim_fail_nth(rig.device, TARN_SIM_EVENT_RECORD, 1, TARN_ERR_DEVICE);
    give(&rig, a);
    assert_int_equal(stats_of(&rig).lost_blocks, 1);
    assert_ptr_not_equal(take(&rig, 4096), a);
    assert_int_equal(tarn_pinned_free(rig.pinned, a, &rig.error), TARN_ERR_INVALID_POINTER);
    rig_close(&rig);
}

/* One of everything; the first status that is not good. */
static enum tarn_status scenario(struct rig *rig, void **kept)
{
    void *a = NULL;
    enum tarn_status st = tarn_pinned_alloc(rig->pinned, 5000, &a, &rig->error);

    st = st ? st : tarn_pinned_record_stream(rig->pinned, a, NULL, 3, &rig->error);
    st = st ? st : tarn_pinned_free(rig->pinned, a, &rig->error);
    st = st ? st : tarn_pinned_alloc(rig->pinned, 5000, kept, &rig->error);
    return st ? st : tarn_pinned_empty_cache(rig->pinned, &rig->error);
}

static void every_failure_leaves_it_whole(void **state)
{
    const char *const texts[] = {"", "pinned_use_cuda_host_register:True",
                                 "pinned_reserve_segment_size_mb:1"};

    (void)state;
    for (size_t t = 0; t < 3; t++) {
        const struct tarn_config config = config_of(texts[t]);

        for (int host = 0; host < 2; host++) {
            enum tarn_status st = TARN_ERR_DEVICE;

            for (uint64_t n = 1; st != TARN_OK; n++) {
                void *kept = NULL;
                struct rig rig;

                rig_open_with(&rig, &config);
                if (host) {
                    tarn_host_fail_nth(n);
                } else {
                    tarn_sim_fail_nth(rig.device, TARN_SIM_ANY, n, TARN_ERR_DEVICE);
                }
                st = scenario(&rig, &kept);
                tarn_host_fail_nth(0);
                tarn_sim_fail_nth(rig.device, TARN_SIM_ANY, 0, TARN_OK);
                rig_check(&rig);
                assert_int_equal(scenario(&rig, &kept), TARN_OK);
                rig_close(&rig);
                assert_true(n < 100);
            }
        }
    }
}

enum {
    THREADS = 4,
    ROUNDS = 3000
};

static void *work(void *argument)
{
    struct rig *rig = argument;
    void *held[8] = {NULL};

    for (unsigned i = 0; i < ROUNDS; i++) {
        void **slot = &held[i % 8];

        if (*slot && (i % 3 == 0) &&
            tarn_pinned_record_stream(rig->pinned, *slot, NULL, 1 + i % 4, NULL) != TARN_OK) {
            return rig;
        }
        if (tarn_pinned_free(rig->pinned, *slot, NULL) != TARN_OK ||
            tarn_pinned_alloc(rig->pinned, 64U << (i % 7), slot, NULL) != TARN_OK) {
            return rig;
        }
        *(unsigned char *)*slot = (unsigned char)i; /* nobody else has it */
        if (i % 500 == 0 && tarn_pinned_empty_cache(rig->pinned, NULL) != TARN_OK) {
            return rig;
        }
    }
    for (unsigned i = 0; i < 8; i++) {
        if (tarn_pinned_free(rig->pinned, held[i], NULL) != TARN_OK) {
            return rig;
        }
    }
    return NULL;
}

static void threads_share_it(void **state)
{
    const char *const texts[] = {"", "pinned_use_background_threads:True"};

    (void)state;
    for (size_t t = 0; t < 2; t++) {
        const struct tarn_config config = config_of(texts[t]);
        pthread_t threads[THREADS];
        struct rig rig;

        rig_open_with(&rig, &config);
        for (size_t i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_create(&threads[i], NULL, work, &rig), 0);
        }
        for (size_t i = 0; i < THREADS; i++) {
            void *failed = NULL;

            assert_int_equal(pthread_join(threads[i], &failed), 0);
            assert_null(failed);
            rig_check(&rig); /* while the others go on */
        }
        assert_int_equal(tarn_pinned_empty_cache(rig.pinned, NULL), TARN_OK);
        rig_close(&rig);
    }
}

struct shown {
    char text[2048];
    size_t length;
};

static void show(struct shown *shown, const char *text)
{
    assert_true(strlen(text) < sizeof shown->text - shown->length);
    memcpy(shown->text + shown->length, text, strlen(text) + 1);
    shown->length += strlen(text);
}

static void show_value(void *context, const char *key, int64_t value)
{
    char text[128];

    (void)snprintf(text, sizeof text, "%s=%lld ", key, (long long)value);
    show(context, text);
}

static void show_begin(void *context, const char *key)
{
    show(context, key);
    show(context, "{");
}

static void show_end(void *context)
{
    show(context, "} ");
}

/* PyTorch: test_host_memory_stats, the keys of host_memory_stats() */
static void counters_have_pytorchs_keys(void **state)
{
    const struct tarn_pinned_stats stats = {
        .struct_size = sizeof stats,
        .allocations = {1, 2, 3, 4},
        .active_requests = {5, 6, 7, 8},
        .allocated_bytes = {9, 10, 11, 12},
        .active_bytes = {13, 14, 15, 16},
        .num_host_alloc = 17,
        .num_host_free = 18,
        .host_alloc_time = {.total = 100, .max = 60, .min = 10, .count = 3},
    };
    struct shown flat = {.length = 0};
    struct shown levels = {.length = 0};
    const struct tarn_stats_visitor visitor = {&levels, show_begin, show_value, show_end};

    (void)state;
    tarn_pinned_stats_walk(&stats, show_value, &flat);
    assert_string_equal(
        flat.text,
        "active_bytes.allocated=15 active_bytes.current=13 active_bytes.freed=16 "
        "active_bytes.peak=14 active_requests.allocated=7 active_requests.current=5 "
        "active_requests.freed=8 active_requests.peak=6 allocated_bytes.allocated=11 "
        "allocated_bytes.current=9 allocated_bytes.freed=12 allocated_bytes.peak=10 "
        "allocations.allocated=3 allocations.current=1 allocations.freed=4 allocations.peak=2 "
        "host_alloc_time.avg=33 host_alloc_time.count=3 host_alloc_time.max=60 "
        "host_alloc_time.min=10 host_alloc_time.total=100 host_free_time.avg=0 "
        "host_free_time.count=0 host_free_time.max=0 host_free_time.min=0 host_free_time.total=0 "
        "num_host_alloc=17 num_host_free=18 ");
    tarn_pinned_stats_walk_nested(&stats, &visitor);
    assert_string_equal(
        levels.text,
        "num_host_alloc=17 num_host_free=18 allocations{current=1 peak=2 allocated=3 freed=4 } "
        "active_requests{current=5 peak=6 allocated=7 freed=8 } allocated_bytes{current=9 peak=10 "
        "allocated=11 freed=12 } active_bytes{current=13 peak=14 allocated=15 freed=16 } "
        "host_alloc_time{total=100 max=60 min=10 count=3 avg=33 } host_free_time{total=0 max=0 "
        "min=0 count=0 avg=0 } ");
}

/* ---- events ---- */

/* A receiver that counts the references of its stacks, each of which is a new number. */
struct ear {
    char text[2048];
    size_t length;
    uint64_t stacks; /* handed out */
    int64_t references;
};

static uint64_t ear_capture(void *context, enum tarn_context_level level)
{
    struct ear *ear = context;

    (void)level;
    ear->references++;
    return ++ear->stacks;
}

static void ear_release(void *context, uint64_t stack)
{
    struct ear *ear = context;

    assert_true(stack > 0 && stack <= ear->stacks);
    ear->references--;
}

static void ear_receive(void *context, const struct tarn_trace_event *event)
{
    struct ear *ear = context;
    const int added = snprintf(ear->text + ear->length, sizeof ear->text - ear->length,
                               "%s %llu #%llu\n", tarn_action_name(event->action),
                               (unsigned long long)event->size, (unsigned long long)event->stack);

    assert_true(added > 0 && (size_t)added < sizeof ear->text - ear->length);
    assert_int_equal(event->stream, 0);
    assert_int_not_equal(event->address, 0);
    ear->length += (size_t)added;
}

static void listen(struct rig *rig, struct ear *ear, enum tarn_context_level level)
{
    const struct tarn_sink sink = {.context = ear,
                                   .level = level,
                                   .capture = ear_capture,
                                   .receive = ear_receive,
                                   .release = ear_release};

    *ear = (struct ear){.length = 0};
    tarn_pinned_set_sink(rig->pinned, &sink);
}

static void expect_heard(struct ear *ear, const char *text)
{
    assert_string_equal(ear->text, text);
    ear->length = 0;
    ear->text[0] = '\0';
}

static void events_tell_what_happens(void **state)
{
    struct ear ear;
    struct rig rig;
    void *memory = NULL;

    (void)state;
    rig_open(&rig);
    listen(&rig, &ear, TARN_CONTEXT_ALL);
    assert_int_equal(tarn_pinned_alloc(rig.pinned, 3000, &memory, NULL), TARN_OK);
    expect_heard(&ear, "segment_alloc 4096 #1\nalloc 3000 #1\n");
    assert_int_equal(ear.references, 1); /* the block's */
    assert_int_equal(tarn_pinned_free(rig.pinned, memory, NULL), TARN_OK);
    expect_heard(&ear, "free_requested 3000 #2\nfree_completed 3000 #2\n");
    assert_int_equal(ear.references, 0);
    assert_int_equal(tarn_pinned_alloc(rig.pinned, 4000, &memory, NULL), TARN_OK);
    expect_heard(&ear, "alloc 4000 #3\n");
    assert_int_equal(tarn_pinned_free(rig.pinned, (char *)memory + 1, NULL),
                     TARN_ERR_INVALID_POINTER);
    assert_int_equal(ear.references, 1);
    assert_int_equal(tarn_pinned_free(rig.pinned, memory, NULL), TARN_OK);
    ear.length = 0;
    assert_int_equal(tarn_pinned_empty_cache(rig.pinned, NULL), TARN_OK);
    expect_heard(&ear, "segment_free 4096 #0\n");
    tarn_pinned_set_sink(rig.pinned, NULL);
    rig_close(&rig);
}

static void levels_say_which_stacks_there_are(void **state)
{
    static const struct {
        enum tarn_context_level level;
        const char *heard;
        int64_t kept;
    } levels[] = {
        {TARN_CONTEXT_NEVER, "segment_alloc 16 #0\nalloc 16 #0\n", 0},
        {TARN_CONTEXT_STATE, "segment_alloc 16 #0\nalloc 16 #0\n", 1},
        {TARN_CONTEXT_ALLOC, "segment_alloc 16 #1\nalloc 16 #1\n", 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        struct ear ear;
        struct rig rig;
        void *memory = NULL;

        rig_open(&rig);
        listen(&rig, &ear, levels[i].level);
        assert_int_equal(tarn_pinned_alloc(rig.pinned, 16, &memory, NULL), TARN_OK);
        expect_heard(&ear, levels[i].heard);
        assert_int_equal(ear.references, levels[i].kept);
        tarn_pinned_set_sink(rig.pinned, NULL); /* takes the stacks of blocks back */
        assert_int_equal(ear.references, 0);
        assert_int_equal(tarn_pinned_free(rig.pinned, memory, NULL), TARN_OK);
        assert_int_equal(ear.length, 0);
        rig_close(&rig);
    }
}

static void a_free_that_waits_is_completed_later(void **state)
{
    struct ear ear;
    struct rig rig;
    void *memory = NULL;
    void *other = NULL;

    (void)state;
    rig_open(&rig);
    listen(&rig, &ear, TARN_CONTEXT_ALL);
    assert_int_equal(tarn_pinned_alloc(rig.pinned, 100, &memory, NULL), TARN_OK);
    ear.length = 0;
    assert_int_equal(tarn_pinned_record_stream(rig.pinned, memory, NULL, 7, NULL), TARN_OK);
    assert_int_equal(tarn_sim_block_stream(rig.device, 7), TARN_OK);
    assert_int_equal(tarn_pinned_free(rig.pinned, memory, NULL), TARN_OK);
    expect_heard(&ear, "free_requested 100 #2\n");
    assert_int_equal(tarn_sim_unblock_stream(rig.device, 7), TARN_OK);
    assert_int_equal(tarn_pinned_alloc(rig.pinned, 90, &other, NULL), TARN_OK);
    assert_ptr_equal(other, memory);
    expect_heard(&ear, "free_completed 100 #2\nalloc 90 #3\n");
    assert_int_equal(ear.references, 1);
    assert_int_equal(tarn_pinned_free(rig.pinned, other, NULL), TARN_OK);
    assert_int_equal(ear.references, 0);
    rig_close(&rig);
}

static bool walk_segment(void *context, const struct tarn_segment_info *segment)
{
    struct shown *shown = context;
    char text[128];

    (void)snprintf(
        text, sizeof text, "%llu/%llu/%llu/%llu:", (unsigned long long)segment->total_size,
        (unsigned long long)segment->allocated_size, (unsigned long long)segment->active_size,
        (unsigned long long)segment->requested_size);
    show(shown, text);
    return true;
}

static bool walk_block(void *context, const struct tarn_block_info *block)
{
    show(context, block->allocated ? "out " : block->active ? "waits " : "cached ");
    return true;
}

static bool stop_at_once(void *context, const struct tarn_segment_info *segment)
{
    ++*(int *)context;
    return segment->total_size == 0;
}

static bool stop_at_block(void *context, const struct tarn_block_info *block)
{
    ++*(int *)context;
    return block->size == 0;
}

static void a_walk_may_end_early(void **state)
{
    int seen = 0;
    struct rig rig;

    (void)state;
    rig_open(&rig);
    void *a = take(&rig, 4096);
    void *b = take(&rig, 4096);

    tarn_pinned_walk(rig.pinned, &(struct tarn_walker){.context = &seen, .segment = stop_at_once});
    assert_int_equal(seen, 1);
    tarn_pinned_walk(rig.pinned, &(struct tarn_walker){.context = &seen, .block = stop_at_block});
    assert_int_equal(seen, 2);
    tarn_pinned_walk(rig.pinned, &(struct tarn_walker){.context = &seen});
    assert_int_equal(seen, 2);
    give(&rig, a);
    give(&rig, b);
    rig_close(&rig);
}

static void memory_that_the_driver_keeps_stays_cached(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig);
    void *a = take(&rig, 4096);
    void *b = take(&rig, 8192);
    void *more = NULL;

    give(&rig, a);
    give(&rig, b);
    const struct tarn_pinned_stats before = stats_of(&rig);

    tarn_sim_fail_nth(rig.device, TARN_SIM_HOST_FREE, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_pinned_empty_cache(rig.pinned, &rig.error), TARN_ERR_DEVICE);
    assert_non_null(strstr(rig.error.text, "releasing pinned memory"));
    rig_check(&rig);
    assert_int_equal(stats_of(&rig).allocations.current, before.allocations.current);
    assert_int_equal(stats_of(&rig).allocations.freed, before.allocations.freed);
    assert_int_equal(stats_of(&rig).allocated_bytes.current, before.allocated_bytes.current);
    assert_int_equal(stats_of(&rig).num_host_free, 0);
    /* A full host, and a cache that cannot be emptied. */
    tarn_sim_fail_nth(rig.device, TARN_SIM_HOST_ALLOC, 1, TARN_ERR_OUT_OF_MEMORY);
    tarn_sim_fail_nth(rig.device, TARN_SIM_HOST_FREE, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_pinned_alloc(rig.pinned, 1 << 20, &more, &rig.error),
                     TARN_ERR_OUT_OF_MEMORY);
    assert_null(more);
    assert_ptr_equal(take(&rig, 4096), a);
    assert_ptr_equal(take(&rig, 8192), b);
    give(&rig, a);
    give(&rig, b);
    assert_int_equal(tarn_pinned_empty_cache(rig.pinned, &rig.error), TARN_OK);
    assert_int_equal(stats_of(&rig).allocations.current, 0);
    rig_close(&rig);
}

/* The same stream number of two devices is two streams. */
static void uses_are_by_device_and_stream(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig);
    struct tarn_device *other =
        sim_open_with((struct tarn_sim_options){.capacity = GIB, .ordinal = 1});
    void *memory = take(&rig, 4096);

    use(&rig, memory, 1);
    use(&rig, memory, 1);
    assert_int_equal(tarn_pinned_record_stream(rig.pinned, memory, other, 1, &rig.error), TARN_OK);
    assert_int_equal(tarn_sim_block_stream(other, 1), TARN_OK);
    give(&rig, memory);
    assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_EVENT_RECORD], 1);
    assert_int_equal(sim_counters(other).calls[TARN_SIM_EVENT_RECORD], 1);
    void *meanwhile = take(&rig, 4096);

    assert_true(meanwhile != memory);
    assert_int_equal(tarn_sim_unblock_stream(other, 1), TARN_OK);
    assert_ptr_equal(take(&rig, 4096), memory);
    for (int i = 0; i < 2; i++) { /* each takes its own of the spare events, in whatever order */
        struct tarn_device *const user = i == 0 ? rig.device : other;

        assert_int_equal(tarn_pinned_record_stream(rig.pinned, memory, user, 1, &rig.error),
                         TARN_OK);
        give(&rig, memory);
        assert_ptr_equal(take(&rig, 4096), memory);
        assert_int_equal(sim_counters(user).live_events, 1);
    }
    rig.device->per_thread_stream = 2;
    assert_int_equal(tarn_pinned_record_stream(rig.pinned, memory, NULL, 2, &rig.error),
                     TARN_ERR_NOT_SUPPORTED);
    rig.device->per_thread_stream = 0;
    give(&rig, memory);
    give(&rig, meanwhile);
    rig_check(&rig);
    tarn_pinned_destroy(rig.pinned); /* while both devices are there */
    assert_int_equal(sim_counters(other).live_events, 0);
    sim_close(other);
    sim_close(rig.device);
    assert_int_equal(tarn_host_get_usage().live_bytes, rig.host_bytes);
}

static void what_creating_needs(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    struct tarn_config config = {.struct_size = 1};
    struct tarn_pinned *pinned = NULL;
    struct tarn_error error;

    (void)state;
    assert_int_equal(tarn_pinned_create(device, &config, &pinned, &error),
                     TARN_ERR_INVALID_ARGUMENT);
    tarn_host_fail_nth(1);
    assert_int_equal(tarn_pinned_create(device, NULL, &pinned, &error), TARN_ERR_HOST_MEMORY);
    tarn_host_fail_nth(0);
    assert_null(pinned);
    tarn_pinned_destroy(NULL);
    assert_int_equal(tarn_pinned_create(device, NULL, &pinned, &error), TARN_OK);
    assert_int_equal(tarn_pinned_free(pinned, (void *)(uintptr_t)16, &error),
                     TARN_ERR_INVALID_POINTER); /* below all blocks: there are none */
    tarn_pinned_destroy(pinned);
    sim_close(device);
}

/* ---- the checker ---- */

static void expect_finding(struct rig *rig, const char *text)
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    assert_int_equal(tarn_pinned_check(rig->pinned, &findings), 1);
    if (!strstr(findings.text[0], text)) {
        fail_msg("%s is not in %s", text, findings.text[0]);
    }
}

static void counters_that_the_blocks_contradict_are_found(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig);
    void *memory = take(&rig, 4096);
    const struct {
        int64_t *counter;
        const char *found;
    } cases[] = {
        {&rig.pinned->stats.allocations.current, "number of blocks is 2, the blocks say 1"},
        {&rig.pinned->stats.allocated_bytes.current,
         "allocated bytes is 4097, the blocks say 4096"},
        {&rig.pinned->stats.active_requests.current, "active requests is 2, the blocks say 1"},
        {&rig.pinned->stats.active_bytes.current, "active bytes is 4097, the blocks say 4096"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ++*cases[i].counter;
        expect_finding(&rig, cases[i].found);
        --*cases[i].counter;
    }
    rig.pinned->asked++;
    expect_finding(&rig, "number of events is 1, the blocks say 0");
    rig.pinned->asked--;
    give(&rig, memory);
    rig_close(&rig);
}

static void blocks_in_a_wrong_free_list_are_found(void **state)
{
    static const char text[] = "bytes is in a free list that it does not belong to";
    struct rig rig;

    (void)state;
    rig_open(&rig);
    give(&rig, take(&rig, 4096));
    struct tn_pinned_block *block = rig.pinned->cached[12];
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    rig.pinned->cached[12] = NULL;
    rig.pinned->cached[13] = block;
    expect_finding(&rig, text);
    rig.pinned->cached[13] = NULL;
    expect_finding(&rig, "number of cached blocks is 0, the blocks say 1");
    rig.pinned->cached[12] = block;
    block->uses.count = 1;
    expect_finding(&rig, text);
    block->uses.count = 0;
    block->event_count = 1;
    assert_int_equal(tarn_pinned_check(rig.pinned, &findings), 2); /* and there is no event */
    block->event_count = 0;
    block->state = TN_PINNED_WAITING;
    assert_int_equal(tarn_pinned_check(rig.pinned, &findings), 4); /* it would be active */
    block->state = TN_PINNED_CACHED;
    rig_close(&rig);
}

static void a_walk_shows_every_block(void **state)
{
    struct shown shown = {.length = 0};
    const struct tarn_walker walker = {
        .context = &shown, .segment = walk_segment, .block = walk_block};
    struct rig rig;
    void *memory = NULL;

    (void)state;
    rig_open(&rig);
    tarn_pinned_walk(rig.pinned, &walker);
    assert_string_equal(shown.text, "");
    assert_int_equal(tarn_pinned_alloc(rig.pinned, 3000, &memory, NULL), TARN_OK);
    tarn_pinned_walk(rig.pinned, &walker);
    assert_int_equal(tarn_pinned_free(rig.pinned, memory, NULL), TARN_OK);
    tarn_pinned_walk(rig.pinned, &walker);
    assert_string_equal(shown.text, "4096/4096/4096/3000:out 4096/0/0/0:cached ");
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_rounded_and_counted),
        cmocka_unit_test(counters_have_pytorchs_keys),
        cmocka_unit_test(the_last_freed_is_taken_first),
        cmocka_unit_test(wrong_pointers_are_refused),
        cmocka_unit_test(a_block_waits_for_its_streams),
        cmocka_unit_test(asking_ends_at_the_first_that_is_not_done),
        cmocka_unit_test(what_a_graph_uses_is_kept_for_it),
        cmocka_unit_test(memory_can_be_registered_instead),
        cmocka_unit_test(registering_needs_no_threads),
        cmocka_unit_test(registering_may_fail),
        cmocka_unit_test(a_sink_need_not_have_everything),
        cmocka_unit_test(the_reserved_segment_serves_first),
        cmocka_unit_test(what_is_not_rounded_is_cached),
        cmocka_unit_test(only_what_is_too_large_goes),
        cmocka_unit_test(what_is_too_large_is_not_cached),
        cmocka_unit_test(what_the_driver_keeps_is_released_later),
        cmocka_unit_test(the_thread_releases_what_is_too_large),
        cmocka_unit_test(the_reserved_segment_keeps_what_is_too_large),
        cmocka_unit_test(a_thread_can_look_for_finished_work),
        cmocka_unit_test(others_may_take_the_events),
        cmocka_unit_test(without_the_thread_all_events_of_a_size_are_queried),
        cmocka_unit_test(a_full_host_empties_the_cache_first),
        cmocka_unit_test(a_free_that_fails_changes_nothing),
        cmocka_unit_test(an_event_that_cannot_be_asked_is_told),
        cmocka_unit_test(with_catch_all_a_free_does_not_fail),
        cmocka_unit_test(every_failure_leaves_it_whole),
        cmocka_unit_test(threads_share_it),
        cmocka_unit_test(events_tell_what_happens),
        cmocka_unit_test(levels_say_which_stacks_there_are),
        cmocka_unit_test(a_free_that_waits_is_completed_later),
        cmocka_unit_test(a_walk_may_end_early),
        cmocka_unit_test(memory_that_the_driver_keeps_stays_cached),
        cmocka_unit_test(uses_are_by_device_and_stream),
        cmocka_unit_test(what_creating_needs),
        cmocka_unit_test(counters_that_the_blocks_contradict_are_found),
        cmocka_unit_test(blocks_in_a_wrong_free_list_are_found),
        cmocka_unit_test(a_walk_shows_every_block),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
