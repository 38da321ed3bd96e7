/* SPDX-License-Identifier: MIT */
/* Plain memory, controls, failing calls, failing host memory, threads. */
#define _GNU_SOURCE /* RTLD_NEXT, memfd_create */
#include "support/failing.h"
#include "support/test.h"

#include "support/child.h"
#include "support/sim.h"
#include "support/system_use.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/types.h>

FAILING(ssize_t, -1, getrandom, (void *bytes, size_t size, unsigned flags), (bytes, size, flags))
FAILING(int, -1, memfd_create, (const char *name, unsigned flags), (name, flags))
FAILING(void *, MAP_FAILED, mmap, (void *at, size_t size, int may, int flags, int file, off_t from),
        (at, size, may, flags, file, from))

static void plain_memory_comes_and_goes(void **state)
{
    struct tarn_device *device = sim_open(10 * MIB);
    tarn_ptr out = 5;

    (void)state;
    const tarn_ptr a = sim_alloc_ok(device, 6 * MIB);
    assert_int_equal(a, SIM_BASE);
    assert_int_equal(device->ops->alloc(device, 4 * MIB + 1, &out), TARN_ERR_OUT_OF_MEMORY);
    assert_string_equal(device->ops->last_error(device),
                        "out of memory: 4194305 bytes wanted, 4194304 free");
    assert_int_equal(device->ops->alloc(device, 0, &out), TARN_ERR_DEVICE);
    assert_int_equal(out, 5);
    const tarn_ptr b = sim_alloc_ok(device, 4 * MIB);
    assert_int_equal(sim_counters(device).live_allocations, 2);
    assert_int_equal(device->ops->free(device, a), TARN_OK);
    assert_int_equal(device->ops->free(device, a), TARN_ERR_DEVICE);
    assert_int_equal(device->ops->free(device, b + 1), TARN_ERR_DEVICE);
    assert_int_equal(device->ops->free(device, 0), TARN_ERR_DEVICE);
    assert_int_equal(device->ops->free(device, b), TARN_OK);
    assert_int_equal(sim_counters(device).used_bytes, 0);
    assert_int_equal(sim_counters(device).peak_used_bytes, 10 * MIB);
    assert_int_equal(sim_counters(device).failures, 5);
    assert_int_equal(sim_counters(device).calls[TARN_SIM_ALLOC], 4);
    assert_int_equal(sim_counters(device).calls[TARN_SIM_FREE], 5);
    sim_close(device);
}

static void foreign_memory_counts(void **state)
{
    struct tarn_device *device = sim_open(10 * MIB);
    tarn_ptr out = 0;
    uint64_t unused = 0;
    uint64_t total = 0;

    (void)state;
    tarn_sim_set_foreign_memory(device, 8 * MIB);
    assert_int_equal(device->ops->alloc(device, 3 * MIB, &out), TARN_ERR_OUT_OF_MEMORY);
    (void)sim_alloc_ok(device, 2 * MIB);
    assert_int_equal(device->ops->memory_info(device, &unused, &total), TARN_OK);
    assert_int_equal(unused, 0);
    assert_int_equal(total, 10 * MIB);
    assert_int_equal(sim_counters(device).used_bytes, 2 * MIB);
    sim_close(device);
}

static void scripted_addresses_are_handed_out(void **state)
{
    struct tarn_device *device = sim_open(GIB);

    (void)state;
    assert_int_equal(tarn_sim_script_alloc(device, 0), TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_sim_script_alloc(device, UINT64_MAX), TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_sim_script_alloc(device, TN_SIM_SPACE_END), TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_sim_script_alloc(device, 0x7abc00000000), TARN_OK);
    assert_int_equal(tarn_sim_script_alloc(device, 0x7abc00000000), TARN_OK);
    assert_int_equal(tarn_sim_script_alloc(device, 0x7abd00000000), TARN_OK);
    assert_int_equal(sim_alloc_ok(device, MIB), 0x7abc00000000);
    assert_int_equal(sim_alloc_ok(device, MIB), SIM_BASE);
    assert_int_equal(sim_counters(device).scripted_skipped, 1);
    tarn_sim_script_clear(device);
    assert_int_equal(sim_alloc_ok(device, MIB), SIM_BASE + 2 * MIB);
    sim_close(device);
}

static void failed_allocation_does_not_use_up_the_script(void **state)
{
    struct tarn_device *device = sim_open(MIB);
    tarn_ptr out = 0;

    (void)state;
    assert_int_equal(tarn_sim_script_alloc(device, 0x7abc00000000), TARN_OK);
    assert_int_equal(device->ops->alloc(device, 2 * MIB, &out), TARN_ERR_OUT_OF_MEMORY);
    tarn_sim_fail_nth(device, TARN_SIM_ALLOC, 1, TARN_ERR_DEVICE);
    assert_int_equal(device->ops->alloc(device, MIB, &out), TARN_ERR_DEVICE);
    assert_int_equal(sim_alloc_ok(device, MIB), 0x7abc00000000);
    sim_close(device);
}

static void options_are_checked(void **state)
{
    struct tarn_device *device = NULL;
    struct tarn_error error;
    struct tarn_sim_options options = {.struct_size = 0};

    (void)state;
    assert_int_equal(tarn_sim_open(&options, &device, &error), TARN_ERR_INVALID_ARGUMENT);
    options.struct_size = sizeof options;
    options.base_address = 4096;
    assert_int_equal(tarn_sim_open(&options, &device, &error), TARN_ERR_INVALID_ARGUMENT);
    options.base_address = (uint64_t)1 << 57;
    assert_int_equal(tarn_sim_open(&options, &device, &error), TARN_ERR_INVALID_ARGUMENT);
    options.base_address = 4 * MIB;
    options.ordinal = -1;
    assert_int_equal(tarn_sim_open(&options, &device, &error), TARN_ERR_INVALID_ARGUMENT);
    options.ordinal = 3;
    assert_int_equal(tarn_sim_open(&options, &device, &error), TARN_OK);
    assert_int_equal(device->ordinal, 3);
    assert_int_equal(sim_alloc_ok(device, 1), 4 * MIB);
    sim_close(device);
    assert_int_equal(tarn_sim_open(NULL, &device, NULL), TARN_OK);
    assert_int_equal(device->total_memory, 80 * GIB);
    sim_close(device);
    options.struct_size = offsetof(struct tarn_sim_options, ordinal); /* of an older caller */
    options.ordinal = -1;
    assert_int_equal(tarn_sim_open(&options, &device, &error), TARN_OK);
    assert_int_equal(device->ordinal, 0);
    sim_close(device);
}

#define BIG (256 * MIB)

/* The system gives no memory, no number, no descriptor, or does not show the memory. */
static void backed_memory_may_be_missing(void **state)
{
    static const struct {
        const char *call;
        int skip;
    } rows[] = {{"mmap", 0}, {"getrandom", 0}, {"memfd_create", 0}, {"mmap", 1}};
    struct tarn_device *device = sim_open_with((struct tarn_sim_options){.backed = true});
    const uint64_t mapped = mapped_bytes();
    const int descriptors = open_descriptors();
    tarn_ptr address = 7;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fail_calls(rows[i].call, rows[i].skip, 1, ENOMEM);
        assert_int_equal(device->ops->alloc(device, BIG, &address), TARN_ERR_HOST_MEMORY);
        assert_true(fail_none());
        assert_int_equal(address, 7);
        assert_int_equal(sim_counters(device).used_bytes, 0);
    }
    tarn_host_fail_nth(1); /* the record of the range, once its memory is there */
    assert_int_equal(device->ops->alloc(device, BIG, &address), TARN_ERR_HOST_MEMORY);
    tarn_host_fail_nth(0);
    assert_true(mapped_bytes() < mapped + BIG / 2); /* nothing of them is left */
    assert_int_equal(open_descriptors(), descriptors);
    assert_int_equal(device->ops->alloc(device, BIG, &address), TARN_OK);
    void *memory = tarn_sim_host_memory(device, address, BIG);

    assert_int_equal(device->ops->free(device, address), TARN_OK);
    assert_false(is_mapped(memory));
    assert_int_equal(open_descriptors(), descriptors);
    sim_close(device);
}

/* A process without standard input: the first memory gets its number. */
static void use_descriptor_0(void *context)
{
    struct tarn_device *device = sim_open_with((struct tarn_sim_options){.backed = true});
    tarn_ptr address = 0;
    tn_page_handle page = 0;

    (void)context;
    CHILD_REQUIRE(close(0) == 0);
    CHILD_REQUIRE(device->ops->alloc(device, MIB, &address) == TARN_OK);
    CHILD_REQUIRE(tarn_sim_host_memory(device, address, MIB));
    CHILD_REQUIRE(device->ops->free(device, address) == TARN_OK);
    CHILD_REQUIRE(device->ops->page_create(device, 2 * MIB, &page) == TARN_OK);
    CHILD_REQUIRE(device->ops->page_release(device, page) == TARN_OK);
    tarn_device_close(device);
}

static void descriptor_0_is_one_like_any(void **state)
{
    (void)state;
    child_run(use_descriptor_0, NULL);
}

static void backed_memory_can_be_written(void **state)
{
    struct tarn_device *device = sim_open_with((struct tarn_sim_options){.backed = true});

    (void)state;
    const tarn_ptr a = sim_alloc_ok(device, MIB + 3);
    char *memory = tarn_sim_host_memory(device, a, MIB + 3);
    assert_non_null(memory);
    memory[MIB + 2] = 9;
    assert_ptr_equal(tarn_sim_host_memory(device, a + MIB, 3), memory + MIB);
    assert_null(tarn_sim_host_memory(device, a + MIB, 4));
    assert_null(tarn_sim_host_memory(device, a, 0));
    assert_null(tarn_sim_host_memory(device, a - 1, 1));
    assert_int_equal(device->ops->free(device, a), TARN_OK);
    assert_null(tarn_sim_host_memory(device, a, 1));
    sim_close(device);
    device = sim_open(GIB);
    const tarn_ptr none = sim_alloc_ok(device, 2);

    assert_null(tarn_sim_host_memory(device, none, 1));
    assert_null(tarn_sim_host_memory(device, none + 1, 1));
    sim_close(device);
}

static void counters_fill_only_what_the_caller_has(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    struct tarn_sim_counters counters = {
        .struct_size = offsetof(struct tarn_sim_counters, used_bytes), .used_bytes = 77};

    (void)state;
    (void)sim_alloc_ok(device, 1);
    tarn_sim_get_counters(device, &counters);
    assert_int_equal(counters.calls[TARN_SIM_ALLOC], 1);
    assert_int_equal(counters.used_bytes, 77);
    sim_close(device);
}

/* The calls that need no other process; test_sim_ipc.c has the rest. */
enum {
    CALLS_ALONE = TARN_SIM_IPC_EXPORT
};

/* One call of every kind, in an order in which each can succeed. Goes on after a failure, so that a
 * plan hits exactly the call it names. */
struct all_calls {
    enum tarn_status result[TARN_SIM_CALL_COUNT];
    tarn_ptr plain;
    tarn_ptr pooled;
    tarn_ptr range;
    tn_page_handle page;
    tn_event_handle event;
    tarn_stream stream;
};

static void all_calls_begin(struct tarn_device *device, struct all_calls *calls)
{
    const struct tn_device_ops *ops = device->ops;
    uint64_t a = 0;
    uint64_t b = 0;
    tn_graph_node node = 0;
    uint32_t count = 0;

    calls->result[TARN_SIM_ALLOC] = ops->alloc(device, MIB, &calls->plain);
    calls->result[TARN_SIM_MEMORY_INFO] = ops->memory_info(device, &a, &b);
    calls->result[TARN_SIM_EVENT_CREATE] = ops->event_create(device, &calls->event);
    calls->result[TARN_SIM_EVENT_RECORD] = ops->event_record(device, calls->event, 1);
    calls->result[TARN_SIM_EVENT_QUERY] = ops->event_query(device, calls->event);
    calls->result[TARN_SIM_EVENT_WAIT] = ops->event_wait(device, calls->event);
    calls->result[TARN_SIM_STREAM_WAIT] = ops->stream_wait(device, 1);
    calls->result[TARN_SIM_STREAM_WAIT_EVENT] = ops->stream_wait_event(device, 2, calls->event);
    calls->result[TARN_SIM_STREAM_CREATE] = ops->stream_create(device, &calls->stream);
    enum tarn_status st = tarn_sim_set_capturing(device, 3, true);

    st = st ? st : tarn_sim_enqueue_ns(device, 3, 1);
    calls->result[TARN_SIM_CAPTURE_INFO] = ops->capture_info(device, 3, &a, &node, 1, &count);
    calls->result[TARN_SIM_GRAPH_NODE_PARENTS] =
        st ? st : ops->graph_node_parents(device, node, NULL, 0, &count);
    calls->result[TARN_SIM_VA_RESERVE] = ops->va_reserve(device, 4 * MIB, &calls->range);
    calls->result[TARN_SIM_PAGE_CREATE] = ops->page_create(device, 2 * MIB, &calls->page);
    calls->result[TARN_SIM_MAP] = ops->map(device, calls->range, 2 * MIB, calls->page);
    calls->result[TARN_SIM_VA_GRANT] = ops->va_grant(device, calls->range, 2 * MIB, 0);
    calls->result[TARN_SIM_POOL_ALLOC] = ops->pool_alloc(device, MIB, 1, &calls->pooled);
    calls->result[TARN_SIM_POOL_INFO] = ops->pool_info(device, &a, &b);
    calls->result[TARN_SIM_POOL_PEAKS] = ops->pool_peaks(device, &a, &b);
    calls->result[TARN_SIM_POOL_RESET_PEAKS] = ops->pool_reset_peaks(device);
}

static void all_calls_end(struct tarn_device *device, struct all_calls *calls)
{
    const struct tn_device_ops *ops = device->ops;

    calls->result[TARN_SIM_POOL_FREE] = ops->pool_free(device, calls->pooled, 1);
    calls->result[TARN_SIM_POOL_TRIM] = ops->pool_trim(device, 0);
    calls->result[TARN_SIM_UNMAP] = ops->unmap(device, calls->range, 2 * MIB);
    calls->result[TARN_SIM_PAGE_RELEASE] = ops->page_release(device, calls->page);
    calls->result[TARN_SIM_VA_RELEASE] = ops->va_release(device, calls->range, 4 * MIB);
    calls->result[TARN_SIM_EVENT_DESTROY] = ops->event_destroy(device, calls->event);
    calls->result[TARN_SIM_STREAM_DESTROY] = ops->stream_destroy(device, calls->stream);
    calls->result[TARN_SIM_DEVICE_WAIT] = ops->device_wait(device);
    calls->result[TARN_SIM_FREE] = ops->free(device, calls->plain);
}

static void nth_call_of_each_kind_fails_once(void **state)
{
    (void)state;
    for (int kind = 0; kind < CALLS_ALONE; kind++) {
        struct tarn_device *device = sim_open(GIB);

        tarn_sim_fail_nth(device, (enum tarn_sim_call)kind, 2, TARN_ERR_DEVICE);
        for (int round = 1; round <= 3; round++) {
            struct all_calls calls = {.plain = 0};

            all_calls_begin(device, &calls);
            all_calls_end(device, &calls);
            assert_int_equal(calls.result[kind], round == 2 ? TARN_ERR_DEVICE : TARN_OK);
            for (int i = 0; round != 2 && i < CALLS_ALONE; i++) {
                assert_int_equal(calls.result[i], TARN_OK);
            }
        }
        assert_int_equal(sim_counters(device).calls[kind], 3);
        sim_close(device);
    }
}

static void planned_failure_changes_nothing(void **state)
{
    (void)state;
    for (int kind = 0; kind < CALLS_ALONE; kind++) {
        struct tarn_device *device = sim_open(GIB);
        struct all_calls calls = {.plain = 0};

        tarn_sim_fail_nth(device, (enum tarn_sim_call)kind, 1, TARN_ERR_OUT_OF_MEMORY);
        all_calls_begin(device, &calls);
        all_calls_end(device, &calls);
        assert_int_equal(calls.result[kind], TARN_ERR_OUT_OF_MEMORY);
        assert_non_null(tn_sim_call_name((enum tarn_sim_call)kind));
        /* the failed call again, then what could not be done after it */
        struct all_calls rest = calls;
        if (kind == TARN_SIM_UNMAP || kind == TARN_SIM_VA_RELEASE || kind == TARN_SIM_FREE ||
            kind == TARN_SIM_PAGE_RELEASE || kind == TARN_SIM_POOL_FREE ||
            kind == TARN_SIM_POOL_TRIM || kind == TARN_SIM_EVENT_DESTROY ||
            kind == TARN_SIM_STREAM_DESTROY || kind == TARN_SIM_DEVICE_WAIT) {
            all_calls_end(device, &rest);
            assert_int_equal(rest.result[kind], TARN_OK);
        }
        assert_int_equal(sim_counters(device).used_bytes, 0);
        assert_int_equal(sim_counters(device).live_events, 0);
        assert_int_equal(sim_counters(device).live_streams, 0);
        assert_int_equal(sim_counters(device).live_reservations, 0);
        sim_close(device);
    }
}

static void any_plan_counts_every_call(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    uint64_t a = 0;
    uint64_t b = 0;

    (void)state;
    tarn_sim_fail_nth(device, TARN_SIM_ANY, 3, TARN_ERR_DEVICE);
    const tarn_ptr plain = sim_alloc_ok(device, MIB);
    assert_int_equal(device->ops->memory_info(device, &a, &b), TARN_OK);
    assert_int_equal(device->ops->free(device, plain), TARN_ERR_DEVICE);
    assert_string_equal(device->ops->last_error(device), "planned failure of free, call 1");
    assert_int_equal(device->ops->free(device, plain), TARN_OK);
    sim_close(device);
}

static void plans_are_for_calls_that_there_are(void **state)
{
    struct tarn_device *device = sim_open(GIB);

    (void)state;
    tarn_sim_fail_nth(device, (enum tarn_sim_call)(TARN_SIM_ANY + 1), 1, TARN_ERR_DEVICE);
    for (int call = 0; call < TARN_SIM_CALL_COUNT; call++) {
        assert_int_equal(sim_counters(device).calls[call], 0);
    }
    (void)sim_alloc_ok(device, 1);
    sim_close(device);
}

static void plans_can_be_removed(void **state)
{
    struct tarn_device *device = sim_open(GIB);

    (void)state;
    tarn_sim_fail_nth(device, TARN_SIM_ALLOC, 1, TARN_ERR_DEVICE);
    tarn_sim_fail_nth(device, TARN_SIM_ALLOC, 0, TARN_ERR_DEVICE);
    (void)sim_alloc_ok(device, MIB);
    assert_string_equal(device->ops->last_error(device), "");
    tarn_sim_fail_nth(device, TARN_SIM_ALLOC, 1, TARN_OK); /* removes it as well */
    tarn_sim_fail_nth(device, TARN_SIM_ANY, 1, TARN_ERR_DEVICE);
    tarn_ptr out = 7;

    assert_int_equal(device->ops->alloc(device, MIB, &out), TARN_ERR_DEVICE);
    assert_int_equal(out, 7);
    assert_string_equal(tn_sim_call_name(TARN_SIM_ANY), "any");
    sim_close(device);
}

/* Everything that needs host memory; true when nothing failed. Leaves the device to be closed. */
static bool host_hungry_scenario(bool backed)
{
    struct tarn_sim_options options = {
        .struct_size = sizeof options, .backed = backed, .capacity = GIB};
    struct tarn_device *device = NULL;
    struct all_calls calls = {.plain = 0};

    if (tarn_sim_open(&options, &device, NULL) != TARN_OK) {
        return false;
    }
    bool good = tarn_sim_script_alloc(device, SIM_BASE + GIB) == TARN_OK;
    good &= tarn_sim_block_stream(device, 2) == TARN_OK;
    all_calls_begin(device, &calls);
    for (int i = 0; i < TARN_SIM_CALL_COUNT; i++) {
        good &= calls.result[i] == TARN_OK;
    }
    sim_close(device);
    return good;
}

static void nth_host_allocation_fails_without_leak(void **state)
{
    (void)state;
    for (int backed = 0; backed < 2; backed++) {
        const struct tarn_host_usage before = tarn_host_get_usage();
        uint64_t n = 0;
        bool good = false;

        while (!good) {
            tarn_host_fail_nth(++n);
            good = host_hungry_scenario(backed != 0);
            tarn_host_fail_nth(0);
            assert_int_equal(tarn_host_get_usage().live_bytes, before.live_bytes);
            assert_int_equal(tarn_host_get_usage().live_count, before.live_count);
        }
        assert_true(n > 8);
    }
}

static void failed_allocation_holds_no_memory(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    uint64_t out = 0;
    tn_event_handle event = 0;

    (void)state;
    assert_int_equal(device->ops->event_create(device, &event), TARN_OK);
    assert_int_equal(device->ops->event_record(device, event, 1), TARN_OK);
    tarn_host_fail_nth(1);
    assert_int_equal(device->ops->stream_wait_event(device, 2, event), TARN_ERR_HOST_MEMORY);
    assert_int_equal(device->ops->free(device, 5), TARN_ERR_DEVICE);
    assert_string_equal(device->ops->last_error(device), "free of 0x5, which is not allocated");
    tarn_host_fail_nth(1);
    assert_int_equal(device->ops->alloc(device, MIB, &out), TARN_ERR_HOST_MEMORY);
    assert_string_equal(device->ops->last_error(device), "host out of memory");
    tarn_host_fail_nth(1);
    assert_int_equal(device->ops->page_create(device, 2 * MIB, &out), TARN_ERR_HOST_MEMORY);
    for (uint64_t n = 1; n <= 3; n++) {
        tarn_host_fail_nth(n);
        assert_int_equal(device->ops->pool_alloc(device, MIB, 1, &out), TARN_ERR_HOST_MEMORY);
    }
    tarn_host_fail_nth(0);
    assert_int_equal(out, 0);
    assert_int_equal(sim_counters(device).used_bytes, 0);
    assert_string_equal(device->ops->last_error(device), "host out of memory");
    sim_close(device);
}

enum {
    THREADS = 4,
    ROUNDS = 300
};

static void *thread_body(void *argument)
{
    struct tarn_device *device = argument;

    for (int i = 0; i < ROUNDS; i++) {
        struct all_calls calls = {.plain = 0};

        all_calls_begin(device, &calls);
        tarn_sim_advance_ns(device, 1);
        all_calls_end(device, &calls);
        for (int kind = 0; kind < TARN_SIM_CALL_COUNT; kind++) {
            if (calls.result[kind] != TARN_OK) {
                return device;
            }
        }
        /* this thread's own failure has this thread's own text */
        if (device->ops->free(device, (tarn_ptr)i + 1) != TARN_ERR_DEVICE ||
            !strstr(device->ops->last_error(device), "not allocated")) {
            return device;
        }
    }
    return NULL;
}

static void threads_share_a_device(void **state)
{
    struct tarn_device *device = sim_open(80 * GIB);
    pthread_t threads[THREADS];

    (void)state;
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, thread_body, device), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *failed = NULL;

        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_int_equal(sim_counters(device).calls[TARN_SIM_ALLOC], THREADS * ROUNDS);
    assert_int_equal(sim_counters(device).used_bytes, 0);
    assert_int_equal(sim_counters(device).live_events, 0);
    sim_close(device);
}

static void controls_refuse_other_devices(void **state)
{
    static const struct tn_device_ops other_ops = {.name = "other"};
    struct tarn_device other = {.ops = &other_ops};
    struct tarn_sim_counters counters = {.struct_size = sizeof counters, .failures = 4};

    (void)state;
    assert_int_equal(tarn_sim_script_alloc(&other, 4096), TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_sim_enqueue_ns(&other, 1, 1), TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_sim_complete_event(&other, 1), TARN_ERR_INVALID_ARGUMENT);
    assert_null(tarn_sim_host_memory(&other, 4096, 1));
    assert_int_equal(tarn_sim_now_ns(&other), 0);
    tarn_sim_advance_ns(&other, 1);
    tarn_sim_script_clear(&other);
    tarn_sim_set_foreign_memory(&other, 1);
    tarn_sim_set_event_oracle(&other, NULL, NULL);
    tarn_sim_fail_nth(&other, TARN_SIM_ANY, 1, TARN_ERR_DEVICE);
    tarn_sim_get_counters(&other, &counters);
    assert_int_equal(counters.failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_memory_comes_and_goes),
        cmocka_unit_test(foreign_memory_counts),
        cmocka_unit_test(scripted_addresses_are_handed_out),
        cmocka_unit_test(failed_allocation_does_not_use_up_the_script),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(backed_memory_may_be_missing),
        cmocka_unit_test(descriptor_0_is_one_like_any),
        cmocka_unit_test(backed_memory_can_be_written),
        cmocka_unit_test(counters_fill_only_what_the_caller_has),
        cmocka_unit_test(nth_call_of_each_kind_fails_once),
        cmocka_unit_test(planned_failure_changes_nothing),
        cmocka_unit_test(any_plan_counts_every_call),
        cmocka_unit_test(plans_can_be_removed),
        cmocka_unit_test(plans_are_for_calls_that_there_are),
        cmocka_unit_test(nth_host_allocation_fails_without_leak),
        cmocka_unit_test(failed_allocation_holds_no_memory),
        cmocka_unit_test(threads_share_a_device),
        cmocka_unit_test(controls_refuse_other_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
