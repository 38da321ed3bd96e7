/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "snapshot/model.h"
#include "tarn/host.h"

#include <string.h>

static void equal_things_have_one_number(void **state)
{
    const struct tn_trace_extra extra = {.compile_context = 3, .has_pool = true};
    const struct tn_frame frame = {.name = 1, .filename = 2, .line = -5};
    const struct tn_frame_fx fx = {.node_op = 4};
    const uint32_t numbers[] = {1, 0, 1};
    struct tn_model model;
    uint32_t a, b;

    (void)state;
    assert_int_equal(tn_model_init(&model, 0), TARN_OK);
    assert_int_equal(tn_model_add_string(&model, "x\0y", 3, &a), TARN_OK);
    assert_int_equal(tn_model_add_string(&model, "x\0z", 3, &b), TARN_OK);
    assert_int_not_equal(a, b);
    assert_int_equal(tn_model_string(&model, a).length, 3);
    assert_int_equal(tn_model_add_string(&model, "", 0, &b), TARN_OK);
    assert_int_not_equal(b, TN_STRING_NONE);
    assert_int_equal(tn_model_add_frame(&model, &frame, &a), TARN_OK);
    assert_int_equal(tn_model_add_frame(&model, &frame, &b), TARN_OK);
    assert_int_equal(a, b);
    assert_int_equal(tn_model_add_fx(&model, &fx, &a), TARN_OK);
    assert_int_equal(tn_model_add_fx(&model, &fx, &b), TARN_OK);
    assert_int_equal(a, b);
    assert_int_equal(tn_model_add_stack(&model, numbers, 3, &a), TARN_OK);
    assert_int_equal(tn_model_add_stack(&model, numbers, 2, &b), TARN_OK);
    assert_int_not_equal(a, b);
    assert_int_equal(tn_model_add_stack(&model, NULL, 0, &b), TARN_OK);
    assert_int_equal(b, TN_STACK_EMPTY);
    assert_int_equal(tn_model_add_extra(&model, &extra, &a), TARN_OK);
    assert_int_equal(tn_model_add_extra(&model, &extra, &b), TARN_OK);
    assert_int_equal(a, b);
    assert_int_equal(tn_model_add_extra(&model, &(struct tn_trace_extra){0}, &b), TARN_OK);
    assert_int_equal(b, TN_EXTRA_NONE);
    assert_int_equal(tn_model_add_shape(&model, numbers, 3, &a), TARN_OK);
    assert_int_equal(tn_model_add_shape(&model, numbers, 3, &b), TARN_OK);
    assert_int_equal(a, b);
    tn_model_fini(&model);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* Whoever walks the records meets what they share each time, so it counts each time. */
static void what_is_shared_counts_each_time(void **state)
{
    const struct tn_frame frame = {0};
    const uint32_t frames[] = {1, 1, 1};
    struct tn_model model;
    uint32_t number, stack;
    uint64_t fits = 0;

    (void)state;
    assert_int_equal(tn_model_init(&model, 1 << 20), TARN_OK);
    assert_int_equal(tn_model_add_frame(&model, &frame, &number), TARN_OK);
    assert_int_equal(number, 1);
    assert_int_equal(tn_model_add_stack(&model, frames, 3, &stack), TARN_OK);
    const struct tn_trace_entry entry = {.stack = stack};
    const uint64_t bytes = tn_model_entry_written(&model, &entry);

    assert_true(bytes > 120 && bytes < 1000);
    while (tn_model_charge_written(&model, bytes) == TARN_OK) {
        fits++;
    }
    assert_int_equal(fits, (TN_WRITTEN_PER_MEMORY << 20) / bytes);
    assert_int_equal(tn_model_memory_status(&model), TARN_ERR_LIMIT);
    tn_model_fini(&model);

    assert_int_equal(tn_model_init(&model, 0), TARN_OK);
    assert_int_equal(tn_model_charge_written(&model, UINT64_MAX), TARN_OK);
    assert_int_equal(tn_model_charge_written(&model, UINT64_MAX), TARN_OK);
    tn_model_fini(&model);
}

static void every_init_failure_is_clean(void **state)
{
    struct tn_model model;
    enum tarn_status status = TARN_ERR_HOST_MEMORY;

    (void)state;
    for (uint64_t n = 1; status != TARN_OK; n++) {
        tarn_host_fail_nth(n);
        status = tn_model_init(&model, 0);
        tarn_host_fail_nth(0);
        assert_true(status == TARN_OK || tarn_host_get_usage().live_bytes == 0);
    }
    tn_model_fini(&model);
    assert_int_equal(tn_model_init(&model, 100), TARN_ERR_LIMIT);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void names_are_those_of_files(void **state)
{
    (void)state;
    assert_string_equal(tn_trace_action_name(TN_TRACE_SEGMENT_UNMAP), "segment_unmap");
    assert_string_equal(tn_trace_action_name(TN_TRACE_OTHER), "other");
    assert_string_equal(tn_block_state_name(TN_BLOCK_ACTIVE_PENDING_FREE), "active_pending_free");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_things_have_one_number),
        cmocka_unit_test(what_is_shared_counts_each_time),
        cmocka_unit_test(every_init_failure_is_clean),
        cmocka_unit_test(names_are_those_of_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
