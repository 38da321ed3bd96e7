/* SPDX-License-Identifier: MIT */
/* Running out of memory. Names in comments are PyTorch's tests. */
#include "support/any_stream.h"
#include "support/test.h"

#include "support/rig.h"
#include "tarn/pool.h"

#include <stdio.h>

#define TAIL                                                                                       \
    "reserved by PyTorch but unallocated. If reserved but unallocated memory is large try "        \
    "setting "                                                                                     \
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation " \
    "for Memory Management  (https://docs.pytorch.org/docs/stable/notes/cuda.html"                 \
    "#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"

static void the_message_is_pytorchs(void **state)
{
    struct rig rig;

    (void)state;
    rig_open_with(&rig, (struct tarn_sim_options){.capacity = GIB, .ordinal = 3}, "");
    const tarn_ptr a = rig_alloc(&rig, 5 * MIB, 0); /* of 20 MiB */

    (void)rig_alloc(&rig, 512 * MIB, 0);
    (void)a;
    rig_alloc_oom(&rig, 600 * MIB - 100, 0);
    assert_string_equal(
        rig.error.text,
        "CUDA out of memory. Tried to allocate 600.00 MiB. GPU 3 has a total capacity of "
        "1024.00 MiB of which 492.00 MiB is free. Including non-PyTorch memory, this process has "
        "532.00 MiB memory in use. Of the allocated memory 517.00 MiB is allocated "
        "by PyTorch, and 15.00 MiB is " TAIL);
    assert_int_equal(rig.error.status, TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(rig.error.offset, -1);
    rig_close(&rig);
}

static void a_limit_is_named(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 80 * GIB, "");
    rig_limit(&rig, 0.5);
    rig_alloc_oom(&rig, 41 * GIB, 0);
    assert_string_equal(
        rig.error.text,
        "CUDA out of memory. Tried to allocate 41.00 GiB. GPU 0 has a total capacity of 80.00 GiB "
        "of which 80.00 GiB is free. 40.00 GiB allowed; Of the allocated memory 0 bytes is "
        "allocated by PyTorch, and 0 bytes is " TAIL);
    rig_close(&rig);
}

/* The figure of private pools is their free memory, as PyTorch's is. */
static void private_pools_are_named(void **state)
{
    struct rig rig;
    const struct tarn_pool_id id = {0, 1};

    (void)state;
    rig_open(&rig, GIB, "");
    rig_limit(&rig, 0.5);
    assert_int_equal(tarn_allocator_begin_pool(rig.allocator, id, any_stream, NULL, NULL), TARN_OK);
    (void)rig_alloc(&rig, 100 * MIB, 0);
    rig_free(&rig, rig_alloc(&rig, 30 * MIB, 0));
    assert_int_equal(tarn_allocator_end_pool(rig.allocator, id, NULL), TARN_OK);
    (void)rig_alloc(&rig, 200 * MIB, 0);
    rig_alloc_oom(&rig, 400 * MIB, 0);
    assert_string_equal(
        rig.error.text,
        "CUDA out of memory. Tried to allocate 400.00 MiB. GPU 0 has a total capacity of "
        "1024.00 MiB of which 694.00 MiB is free. Including non-PyTorch memory, this process has "
        "330.00 MiB memory in use. 512.00 MiB allowed; Of the allocated memory "
        "330.00 MiB is allocated by PyTorch, with 30.00 MiB allocated in private pools (e.g., CUDA "
        "Graphs), and 0 bytes is " TAIL);
    rig_close(&rig);
}

/* test_out_of_memory */
static void absurd_requests_are_refused_at_once(void **state)
{
    static const char absurd[] = "CUDA out of memory. Tried to allocate more than 1EB memory.";
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    rig_alloc_oom(&rig, (uint64_t)800000000 * GIB, 0);
    assert_non_null(strstr(rig.error.text, "Tried to allocate 800000000.00 GiB. GPU 0 has a total "
                                           "capacity of"));
    assert_int_equal(rig_stats(&rig).num_ooms, 1);
    const struct tarn_sim_counters before = sim_counters(rig.device);

    rig_alloc_oom(&rig, (uint64_t)1 << 60, 0);
    assert_string_equal(rig.error.text, absurd);
    rig_alloc_oom(&rig, UINT64_MAX, 0);
    assert_string_equal(rig.error.text, absurd);
    rig_alloc_oom(&rig, ((uint64_t)1 << 60) - 1, 0);
    assert_non_null(strstr(rig.error.text, "1073741824.00 GiB"));
    assert_int_equal(rig_stats(&rig).num_ooms, 2); /* absurd ones are not counted */
    assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_ALLOC],
                     before.calls[TARN_SIM_ALLOC] + 2);
    rig_free(&rig, rig_alloc(&rig, 512, 0)); /* works as before */
    rig_close(&rig);
}

/* test_raises_oom: with and without max_split, 4 TiB. */
static void four_tebibytes_are_too_many(void **state)
{
    static const char *const confs[] = {"", "max_split_size_mb:1024", "expandable_segments:True"};

    (void)state;
    for (size_t i = 0; i < sizeof confs / sizeof *confs; i++) {
        struct rig rig;

        rig_open(&rig, 80 * GIB, confs[i]);
        rig_alloc_oom(&rig, 4096 * GIB, 0);
        assert_non_null(strstr(rig.error.text, "Tried to allocate 4096.00 GiB."));
        rig_close(&rig);
    }
}

struct witness {
    struct rig *rig;
    struct tarn_oom oom;
    int calls;
    tarn_ptr ptr;
    char heard[128]; /* of processes */
};

static void witness_oom(void *context, const struct tarn_oom *oom)
{
    struct witness *witness = context;

    witness->calls++;
    witness->oom = *oom;
    (void)snprintf(witness->heard, sizeof witness->heard, "%s", oom->processes);
    witness->ptr = rig_alloc(witness->rig, 1000, 4); /* no lock is held */
    (void)rig_stats(witness->rig);
}

/* test_notifies_oom */
static void observers_hear_of_it_and_may_allocate(void **state)
{
    struct rig rig;
    struct witness one = {.rig = &rig};
    struct witness two = {.rig = &rig};

    (void)state;
    rig_open_with(&rig, (struct tarn_sim_options){.capacity = GIB, .ordinal = 2}, "");
    assert_int_equal(tarn_allocator_add_oom_observer(rig.allocator, witness_oom, &one), TARN_OK);
    assert_int_equal(tarn_allocator_add_oom_observer(rig.allocator, witness_oom, &two), TARN_OK);
    (void)rig_alloc(&rig, 3 * MIB, 0);
    rig_limit(&rig, 0.75);
    assert_int_equal(one.calls, 0);
    rig_alloc_oom(&rig, 4096 * GIB + 5, 7);
    assert_int_equal(one.calls, 1);
    assert_int_equal(two.calls, 1);
    assert_int_equal(one.oom.struct_size, sizeof one.oom);
    assert_int_equal(one.oom.device, 2);
    assert_int_equal(one.oom.requested, 4096 * GIB + 5);
    assert_int_equal(one.oom.rounded, 4096 * GIB + 512);
    assert_int_equal(one.oom.segment_size, 4096 * GIB + 2 * MIB);
    assert_int_equal(one.oom.stream, 7);
    assert_int_equal(one.oom.limit, 768 * MIB);
    assert_int_equal(one.oom.device_total, GIB);
    assert_int_equal(one.oom.device_free, GIB - 20 * MIB);
    assert_int_equal(one.oom.allocated, 3 * MIB);
    assert_int_equal(one.oom.reserved, 20 * MIB);
    assert_int_equal(one.oom.private_free, 0);
    assert_string_equal(one.heard, "Including non-PyTorch memory, this process has 20.00 MiB "
                                   "memory in use. ");
    assert_int_equal(two.oom.allocated, 3 * MIB); /* of the moment of the failure */
    assert_int_not_equal(one.ptr, 0);
    rig_free(&rig, one.ptr);
    rig_free(&rig, two.ptr);
    rig_alloc_oom(&rig, (uint64_t)1 << 60, 0); /* absurd: nobody is told */
    assert_int_equal(one.calls, 1);
    rig_close(&rig);
}

static void observers_are_few(void **state)
{
    struct rig rig;
    struct witness witness = {.rig = &rig};

    (void)state;
    rig_open(&rig, GIB, "");
    for (int i = 0; i < TARN_OBSERVERS_MAX; i++) {
        assert_int_equal(tarn_allocator_add_oom_observer(rig.allocator, witness_oom, &witness),
                         TARN_OK);
    }
    assert_int_equal(tarn_allocator_add_oom_observer(rig.allocator, witness_oom, &witness),
                     TARN_ERR_LIMIT);
    rig_alloc_oom(&rig, 2 * GIB, 0);
    assert_int_equal(witness.calls, TARN_OBSERVERS_MAX);
    rig_close(&rig);
}

/* Memory callbacks: asked when nothing fits, before the device is. */
struct helper {
    struct rig *rig;
    tarn_ptr victim; /* freed when asked; 0 = cannot help */
    int calls;
    uint64_t size;
    tarn_stream stream;
    uint64_t device_allocs;
};

static bool helper_call(void *context, struct tarn_allocator *allocator, uint64_t size,
                        tarn_stream stream)
{
    struct helper *helper = context;
    const bool helps = helper->victim != 0;

    assert_ptr_equal(allocator, helper->rig->allocator);
    helper->calls++;
    helper->size = size;
    helper->stream = stream;
    helper->device_allocs = sim_counters(helper->rig->device).calls[TARN_SIM_ALLOC];
    if (helps) {
        rig_free(helper->rig, helper->victim);
        helper->victim = 0;
    }
    return helps;
}

static void callbacks_are_asked_before_the_device(void **state)
{
    struct rig rig;
    struct helper helper = {.rig = &rig};

    (void)state;
    rig_open(&rig, GIB, "");
    assert_int_equal(tarn_allocator_add_memory_callback(rig.allocator, helper_call, &helper),
                     TARN_OK);
    const tarn_ptr a = rig_alloc(&rig, 30 * MIB, 0); /* cannot help: the device is asked */

    assert_int_equal(helper.calls, 1);
    assert_int_equal(helper.device_allocs, 0);
    helper.victim = a;
    assert_int_equal(rig_alloc(&rig, 30 * MIB - 7, 0), a);
    assert_int_equal(helper.calls, 2);
    assert_int_equal(helper.size, 30 * MIB - 7); /* what the caller asked for */
    assert_int_equal(helper.stream, 0);
    helper.victim = a;
    assert_int_not_equal(rig_alloc(&rig, 30 * MIB, 5), a); /* no use on another stream */
    assert_int_equal(helper.calls, 3);
    assert_int_equal(rig_alloc(&rig, 30 * MIB, 0), a); /* found at once: not asked */
    assert_int_equal(helper.calls, 3);
    rig_close(&rig);
}

/* All are asked; one that helped is enough, wherever it is in the list. */
static void one_of_several_callbacks_helps(void **state)
{
    (void)state;
    for (int helping = 0; helping < 2; helping++) {
        struct rig rig;
        struct helper helpers[2] = {{.rig = &rig}, {.rig = &rig}};

        rig_open(&rig, GIB, "");
        for (int i = 0; i < 2; i++) {
            assert_int_equal(
                tarn_allocator_add_memory_callback(rig.allocator, helper_call, &helpers[i]),
                TARN_OK);
        }
        const tarn_ptr a = rig_alloc(&rig, 30 * MIB, 0);

        helpers[helping].victim = a;
        assert_int_equal(rig_alloc(&rig, 30 * MIB, 0), a);
        assert_int_equal(helpers[0].calls, 2);
        assert_int_equal(helpers[1].calls, 2);
        rig_close(&rig);
    }
}

/* throw_on_cudamalloc_oom: what the limit forbids is refused before anything is given back. */
static void a_request_beyond_the_limit_can_be_refused_at_once(void **state)
{
    struct rig rig;
    struct witness witness = {.rig = &rig};

    (void)state;
    rig_open(&rig, GIB, "throw_on_cudamalloc_oom:True");
    assert_int_equal(tarn_allocator_add_oom_observer(rig.allocator, witness_oom, &witness),
                     TARN_OK);
    rig_limit(&rig, 0.5);
    rig_free(&rig, rig_alloc(&rig, 300 * MIB, 0));
    rig_alloc_oom(&rig, 301 * MIB, 0); /* a flush would make room */
    assert_int_equal(rig_stats(&rig).num_oom_rejections, 1);
    assert_int_equal(rig_stats(&rig).num_ooms, 0);
    assert_int_equal(rig_stats(&rig).num_alloc_retries, 0);
    assert_true(witness.oom.rejected);
    assert_int_equal(rig_now(&rig, TARN_STAT_SEGMENT), 2); /* cached, and the witness's */
    rig_close(&rig);
}

/* test_graph_capture_oom: while requests are routed the cache is not flushed. */
static void a_capture_runs_out_without_a_flush(void **state)
{
    struct rig rig;
    const struct tarn_pool_id id = {0, 1};

    (void)state;
    rig_open(&rig, GIB, "");
    rig_free(&rig, rig_alloc(&rig, 600 * MIB, 0));
    assert_int_equal(tarn_allocator_begin_pool(rig.allocator, id, any_stream, NULL, NULL), TARN_OK);
    rig_alloc_oom(&rig, (uint64_t)1 << 40, 0);
    assert_non_null(strstr(rig.error.text, "out of memory"));
    rig_alloc_oom(&rig, 600 * MIB, 0); /* the default pool's cache is not for it */
    assert_int_equal(rig_stats(&rig).num_alloc_retries, 0);
    assert_int_equal(tarn_allocator_end_pool(rig.allocator, id, NULL), TARN_OK);
    (void)rig_alloc(&rig, 700 * MIB, 0);
    assert_int_equal(rig_stats(&rig).num_alloc_retries, 1);
    rig_close(&rig);
}

/* The limit that a report names is the smaller one, of the allocator or of the pool. */
static void a_report_names_the_limit_that_counts(void **state)
{
    static const uint64_t limits[][3] = {
        {100 * MIB, 500 * MIB, 100 * MIB},
        {500 * MIB, 100 * MIB, 100 * MIB}}; /* of the pool, of all, reported */
    tarn_ptr ptr = 0;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const struct tarn_pool_options options = {.struct_size = sizeof options,
                                                  .limit = limits[i][0]};
        struct tarn_pool *pool = NULL;
        struct rig rig;
        struct witness witness = {.rig = &rig};

        rig_open(&rig, GIB, "");
        rig_limit(&rig, (double)limits[i][1] / (double)GIB);
        assert_int_equal(tarn_pool_create(rig.allocator, &options, &pool, &rig.error), TARN_OK);
        assert_int_equal(tarn_allocator_add_oom_observer(rig.allocator, witness_oom, &witness),
                         TARN_OK);
        assert_int_equal(tarn_pool_alloc(pool, 600 * MIB, 0, &ptr, &rig.error),
                         TARN_ERR_OUT_OF_MEMORY);
        assert_int_equal(witness.oom.limit, limits[i][2]);
        rig_free(&rig, witness.ptr);
        rig_alloc_oom(&rig, 600 * MIB, 0); /* of no pool */
        assert_int_equal(witness.oom.limit, limits[i][1]);
        rig_free(&rig, witness.ptr);
        tarn_pool_destroy(pool);
        rig_close(&rig);
    }
}

static void note_oom_event(void *context, const struct tarn_trace_event *event)
{
    if (event->action == TARN_ACTION_OOM) {
        *(uint64_t *)context = event->address;
    }
}

/* The event has the free bytes of the device, 0 if that does not know. */
static void the_event_has_the_free_bytes(void **state)
{
    uint64_t free_bytes = 7;
    const struct tarn_sink sink = {.context = &free_bytes, .receive = note_oom_event};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    assert_int_equal(tarn_allocator_add_sink(rig.allocator, &sink, &rig.error), TARN_OK);
    rig_alloc_oom(&rig, 2 * GIB, 0);
    assert_int_equal(free_bytes, GIB);
    tarn_sim_fail_nth(rig.device, TARN_SIM_MEMORY_INFO, 1, TARN_ERR_DEVICE);
    rig_alloc_oom(&rig, 2 * GIB, 0);
    assert_int_equal(free_bytes, 0);
    assert_int_equal(tarn_allocator_remove_sink(rig.allocator, &free_bytes, &rig.error), TARN_OK);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_message_is_pytorchs),
        cmocka_unit_test(a_limit_is_named),
        cmocka_unit_test(private_pools_are_named),
        cmocka_unit_test(absurd_requests_are_refused_at_once),
        cmocka_unit_test(four_tebibytes_are_too_many),
        cmocka_unit_test(observers_hear_of_it_and_may_allocate),
        cmocka_unit_test(observers_are_few),
        cmocka_unit_test(callbacks_are_asked_before_the_device),
        cmocka_unit_test(one_of_several_callbacks_helps),
        cmocka_unit_test(a_request_beyond_the_limit_can_be_refused_at_once),
        cmocka_unit_test(a_capture_runs_out_without_a_flush),
        cmocka_unit_test(a_report_names_the_limit_that_counts),
        cmocka_unit_test(the_event_has_the_free_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
