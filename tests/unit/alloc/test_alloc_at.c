/* SPDX-License-Identifier: MIT */
/* Allocating at a given address (PyTorch's mallocWithAddress). */
#include "support/any_stream.h"
#include "support/test.h"

#include "support/rig.h"

#define MIB ((uint64_t)1 << 20)
#define KIB ((uint64_t)1 << 10)

static enum tarn_status alloc_at(struct rig *rig, uint64_t size, tarn_stream stream, tarn_ptr at)
{
    return tarn_allocator_alloc_at(rig->allocator, size, stream, at, &rig->error);
}

static void place(struct rig *rig, uint64_t size, tarn_ptr at)
{
    if (alloc_at(rig, size, 0, at)) {
        fail_msg("%s", rig->error.text);
    }
    rig_check(rig);
}

static void refused(struct rig *rig, uint64_t size, tarn_stream stream, tarn_ptr at)
{
    const struct tarn_stats before = rig_stats(rig);

    assert_int_equal(alloc_at(rig, size, stream, at), TARN_ERR_NOT_FOUND);
    const struct tarn_stats after = rig_stats(rig);

    assert_memory_equal(before.by_pool, after.by_pool, sizeof after.by_pool);
    assert_int_equal(before.num_ooms, after.num_ooms);
}

/* What a captured graph left: one free block, and tensors that it expects inside. */
static void tensors_come_back(const char *conf)
{
    struct rig rig;

    rig_open(&rig, 64 * MIB, conf);
    const tarn_ptr base = rig_alloc(&rig, 20 * MIB, 0);
    const int64_t calls = rig_stats(&rig).num_device_alloc;

    rig_free(&rig, base);
    place(&rig, 3 * MIB, base + 10 * MIB);
    place(&rig, 2 * MIB, base);
    place(&rig, 3 * MIB, base + 5 * MIB);
    assert_int_equal(rig_now(&rig, TARN_STAT_ALLOCATED_BYTES), 8 * MIB);
    assert_int_equal(rig_now(&rig, TARN_STAT_ALLOCATION), 3);
    refused(&rig, 2 * MIB, 0, base + 6 * MIB); /* allocated */
    refused(&rig, 2 * MIB, 0, base + 4 * MIB); /* the first half of it is free */
    rig_free(&rig, base + 5 * MIB);
    rig_free(&rig, base);
    rig_free(&rig, base + 10 * MIB);
    place(&rig, 20 * MIB, base); /* whole again */
    rig_free(&rig, base);
    assert_int_equal(rig_stats(&rig).num_device_alloc, calls);
    rig_close(&rig);
}

static void tensors_come_back_anywhere_in_a_free_block(void **state)
{
    (void)state;
    tensors_come_back("");
    tensors_come_back("rules:2.14");
    tensors_come_back("expandable_segments:True");
    tensors_come_back("policy:compact");
}

/* The memory before the address is counted as PyTorch counts it: allocated, and freed at once. */
static void the_part_in_front_is_counted(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 64 * MIB, "");
    const tarn_ptr base = rig_alloc(&rig, 20 * MIB, 0);

    rig_free(&rig, base);
    tarn_allocator_reset_peak_stats(rig.allocator);
    tarn_allocator_reset_accumulated_stats(rig.allocator);
    place(&rig, 2 * MIB, base + 8 * MIB);
    const struct tarn_stat bytes =
        rig_stats(&rig).by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL];
    const struct tarn_stat count = rig_stats(&rig).by_pool[TARN_STAT_ALLOCATION][TARN_STAT_ALL];

    assert_int_equal(bytes.peak, 10 * MIB);
    assert_int_equal(bytes.freed, 8 * MIB);
    assert_int_equal(count.allocated, 2);
    assert_int_equal(count.current, 1);
    rig_free(&rig, base + 8 * MIB);
    rig_close(&rig);
}

static void a_block_must_be_free_and_of_the_right_pool_and_stream(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 64 * MIB, "");
    const tarn_ptr small = rig_alloc(&rig, 100, 0);
    const tarn_ptr large = rig_alloc(&rig, 20 * MIB, 0);

    refused(&rig, 100, 0, small);
    refused(&rig, 512, 0, (tarn_ptr)1 << 40); /* no segment there */
    rig_free(&rig, small);
    rig_free(&rig, large);
    refused(&rig, 2 * MIB, 7, large);            /* another stream's */
    refused(&rig, 100, 0, large);                /* for large requests */
    refused(&rig, 2 * MIB, 0, small);            /* for small ones */
    refused(&rig, 2 * MIB, 0, large + 19 * MIB); /* too short */
    assert_non_null(strstr(rig.error.text, "2097152 bytes"));
    place(&rig, 100, small + 4 * KIB);
    rig_free(&rig, small + 4 * KIB);

    const tarn_ptr waits = rig_alloc(&rig, 20 * MIB, 0);

    rig_record(&rig, waits, 7);
    assert_int_equal(tarn_sim_block_stream(rig.device, 7), TARN_OK);
    rig_free(&rig, waits);
    refused(&rig, 20 * MIB, 0, waits);
    assert_int_equal(tarn_sim_unblock_stream(rig.device, 7), TARN_OK);
    place(&rig, 20 * MIB, waits); /* the free is completed first */
    rig_free(&rig, waits);
    rig_close(&rig);
}

static void requests_are_routed(void **state)
{
    const struct tarn_pool_id id = {0, 1};
    struct rig rig;

    (void)state;
    rig_open(&rig, 128 * MIB, "");
    const tarn_ptr outside = rig_alloc(&rig, 20 * MIB, 0);

    rig_free(&rig, outside);
    assert_int_equal(tarn_allocator_begin_pool(rig.allocator, id, any_stream, NULL, NULL), TARN_OK);
    const tarn_ptr inside = rig_alloc(&rig, 20 * MIB, 0);

    rig_free(&rig, inside);
    refused(&rig, 2 * MIB, 0, outside);
    place(&rig, 2 * MIB, inside + 4 * MIB);
    rig_free(&rig, inside + 4 * MIB);
    assert_int_equal(tarn_allocator_set_pool_no_split(rig.allocator, id, true), TARN_OK);
    refused(&rig, 2 * MIB, 0, inside + 4 * MIB);
    place(&rig, 2 * MIB, inside);
    assert_int_equal(rig_now(&rig, TARN_STAT_ALLOCATED_BYTES), 20 * MIB);
    rig_free(&rig, inside);
    assert_int_equal(tarn_allocator_end_pool(rig.allocator, id, NULL), TARN_OK);
    refused(&rig, 2 * MIB, 0, inside);
    rig_close(&rig);
}

static void large_blocks_that_are_not_split_stay_whole(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 128 * MIB, "max_split_size_mb:30");
    const tarn_ptr base = rig_alloc(&rig, 40 * MIB, 0);

    rig_free(&rig, base);
    refused(&rig, 2 * MIB, 0, base + 32 * MIB);
    place(&rig, 2 * MIB, base + 28 * MIB); /* what is in front of it may be split off */
    rig_free(&rig, base + 28 * MIB);
    rig_close(&rig);
}

static void mapped_parts_of_expandable_segments_serve(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 128 * MIB, "expandable_segments:True");
    const tarn_ptr base = rig_alloc(&rig, 40 * MIB, 0);

    rig_free(&rig, base);
    place(&rig, 2 * MIB, base + 30 * MIB);
    refused(&rig, 2 * MIB, 0, base + 60 * MIB); /* not mapped */
    rig_free(&rig, base + 30 * MIB);
    rig_close(&rig);
}

/* The part in front needs a place in the map for a moment: also where that has room for one more
 * pointer only. */
static void the_part_in_front_needs_room_in_the_map(void **state)
{
    enum {
        COUNT = 200
    };
    unsigned failures = 0;
    tarn_ptr ptrs[COUNT];
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    const tarn_ptr base = rig_alloc(&rig, 20 * MIB, 0);

    rig_free(&rig, base);
    for (int i = 0; i < COUNT; i++) {
        ptrs[i] = rig_alloc(&rig, 512, 0);
        tarn_host_fail_nth(1);
        enum tarn_status st = alloc_at(&rig, 3 * MIB, 0, base + MIB);

        tarn_host_fail_nth(0);
        if (st) {
            assert_int_equal(st, TARN_ERR_HOST_MEMORY);
            failures++;
            st = alloc_at(&rig, 3 * MIB, 0, base + MIB);
        }
        assert_int_equal(st, TARN_OK);
        rig_free(&rig, base + MIB);
    }
    assert_true(failures > 0);
    for (int i = 0; i < COUNT; i++) {
        rig_free(&rig, ptrs[i]);
    }
    rig_close(&rig);
}

/* Frees that are done are completed first; if that fails, nothing is allocated. */
static void a_device_that_fails_first_is_reported(void **state)
{
    struct rig rig;

    (void)state;
    rig_open_manual(&rig, GIB, "");
    const tarn_ptr base = rig_alloc(&rig, 20 * MIB, 0);
    const tarn_ptr waits = rig_alloc(&rig, 20 * MIB, 0);

    rig_record(&rig, waits, 7);
    rig_free(&rig, waits);
    rig_free(&rig, base);
    tarn_sim_fail_nth(rig.device, TARN_SIM_EVENT_QUERY, 1, TARN_ERR_DEVICE);
    assert_int_equal(alloc_at(&rig, 3 * MIB, 0, base + MIB), TARN_ERR_DEVICE);
    assert_int_equal(rig_now(&rig, TARN_STAT_ALLOCATION), 0);
    rig_check(&rig);
    place(&rig, 3 * MIB, base + MIB);
    rig_free(&rig, base + MIB);
    rig_close(&rig);
}

/* Under the compact policy events mark where streams are; an allocation records none while nothing
 * is done that blocks wait for. */
static void no_event_is_recorded_while_nothing_is_done(void **state)
{
    struct rig rig;

    (void)state;
    rig_open_manual(&rig, GIB, "policy:compact");
    const tarn_ptr base = rig_alloc(&rig, 20 * MIB, 0);
    const tarn_ptr waits = rig_alloc(&rig, 20 * MIB, 0);
    const tarn_ptr other = rig_alloc(&rig, 20 * MIB, 1);

    rig_record(&rig, waits, 7);
    rig_free(&rig, waits);
    rig_free(&rig, base);
    rig_free(&rig, other);
    const uint64_t recorded = sim_counters(rig.device).calls[TARN_SIM_EVENT_RECORD];

    place(&rig, 3 * MIB, base + MIB);
    assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_EVENT_RECORD], recorded);
    rig_free(&rig, base + MIB);
    rig_close(&rig);
}

static void misuse_is_refused(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 64 * MIB, "");
    assert_int_equal(alloc_at(&rig, 0, 0, 512), TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(alloc_at(&rig, 512, 0, 0), TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(alloc_at(&rig, 512, 0, 513), TARN_ERR_INVALID_ARGUMENT);
    assert_string_equal(rig.error.text,
                        "an allocation at an address needs a size and an address that is a "
                        "multiple of 512, not 512 bytes at 0x201");
    assert_int_equal(alloc_at(&rig, UINT64_MAX, 0, 512), TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(tarn_allocator_set_enabled(rig.allocator, false, NULL), TARN_OK);
    assert_int_equal(alloc_at(&rig, 512, 0, 512), TARN_ERR_STATE);
    rig_close(&rig);
    rig_open(&rig, 64 * MIB, "backend:cudaMallocAsync");
    assert_int_equal(alloc_at(&rig, 512, 0, 512), TARN_ERR_NOT_SUPPORTED);
    rig_close(&rig);
}

/* Stacks that a sink has given out and not had back. */
static uint64_t stack_capture(void *context, enum tarn_context_level level)
{
    (void)level;
    ++*(int *)context;
    return 7;
}

static void stack_retain(void *context, uint64_t stack)
{
    assert_int_equal(stack, 7);
    ++*(int *)context;
}

static void stack_release(void *context, uint64_t stack)
{
    assert_int_equal(stack, 7);
    --*(int *)context;
}

/* The free of the part in front is nobody's call. */
static void event_check(void *context, const struct tarn_trace_event *event)
{
    (void)context;
    assert_true(event->stack == 0 || event->stack == 7);
}

/* A call that succeeded and one that failed are done with the stack: the sink can go. */
static void stacks_are_given_back(void **state)
{
    int out = 0;
    const struct tarn_sink sink = {.context = &out,
                                   .level = TARN_CONTEXT_ALL,
                                   .capture = stack_capture,
                                   .receive = event_check,
                                   .retain = stack_retain,
                                   .release = stack_release};
    struct rig rig;

    (void)state;
    rig_open(&rig, 64 * MIB, "");
    const tarn_ptr base = rig_alloc(&rig, 20 * MIB, 0);

    rig_free(&rig, base);
    assert_int_equal(tarn_allocator_add_sink(rig.allocator, &sink, NULL), TARN_OK);
    place(&rig, 3 * MIB, base + 10 * MIB);
    refused(&rig, 2 * MIB, 0, base + 11 * MIB);
    rig_free(&rig, base + 10 * MIB);
    assert_int_equal(tarn_allocator_empty_cache(rig.allocator, NULL), TARN_OK);
    assert_int_equal(out, 0);
    assert_int_equal(tarn_allocator_remove_sink(rig.allocator, &out, NULL), TARN_OK);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_come_back_anywhere_in_a_free_block),
        cmocka_unit_test(the_part_in_front_is_counted),
        cmocka_unit_test(a_block_must_be_free_and_of_the_right_pool_and_stream),
        cmocka_unit_test(requests_are_routed),
        cmocka_unit_test(large_blocks_that_are_not_split_stay_whole),
        cmocka_unit_test(mapped_parts_of_expandable_segments_serve),
        cmocka_unit_test(stacks_are_given_back),
        cmocka_unit_test(the_part_in_front_needs_room_in_the_map),
        cmocka_unit_test(a_device_that_fails_first_is_reported),
        cmocka_unit_test(no_event_is_recorded_while_nothing_is_done),
        cmocka_unit_test(misuse_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
