/* SPDX-License-Identifier: MIT */
/* Callbacks and observers that ask their allocator for memory, which has run out. */
#include "support/test.h"

#include "alloc/engine/call_back.h"
#include "support/rig.h"

struct asking {
    struct tarn_allocator *asked;
    uint64_t size;
    unsigned calls;
    enum tarn_status status; /* of the last request */
    struct tarn_error error;
};

static void ask(struct asking *asking)
{
    tarn_ptr ptr = 0;

    asking->calls++;
    asking->status = tarn_allocator_alloc(asking->asked, asking->size, 0, &ptr, &asking->error);
    if (ptr) {
        assert_int_equal(tarn_allocator_free(asking->asked, ptr, NULL), TARN_OK);
    }
}

static bool callback(void *context, struct tarn_allocator *allocator, uint64_t size,
                     tarn_stream stream)
{
    (void)allocator;
    (void)size;
    (void)stream;
    ask(context);
    return false;
}

static void observer(void *context, const struct tarn_oom *oom)
{
    (void)oom;
    ask(context);
}

static void a_callback_that_allocates_is_told(void **state)
{
    struct rig rig;
    struct asking asking = {.size = 20 * MIB};

    (void)state;
    rig_open(&rig, GIB, "");
    asking.asked = rig.allocator;
    assert_int_equal(tarn_allocator_add_memory_callback(rig.allocator, callback, &asking), TARN_OK);
    const tarn_ptr ptr = rig_alloc(&rig, 30 * MIB, 0); /* what asked for it is served */

    assert_int_equal(asking.calls, 1);
    assert_int_equal(asking.status, TARN_ERR_STATE);
    assert_string_equal(asking.error.text,
                        "a memory callback asked its allocator for 20971520 bytes, which no free "
                        "block has: a callback may only free");
    rig_check(&rig);
    rig_free(&rig, ptr);
    asking.size = 4 * MIB; /* a free block has that */
    const tarn_ptr more = rig_alloc(&rig, 200 * MIB, 0);

    assert_int_equal(asking.calls, 2);
    assert_int_equal(asking.status, TARN_OK);
    rig_free(&rig, more);
    rig_close(&rig);
}

static void two_allocators_that_ask_each_other_end(void **state)
{
    struct tarn_allocator *allocators[2];
    struct asking asking[2];
    tarn_ptr ptr = 0;

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tarn_allocator_create_on("sim:1GiB", "", &allocators[i], NULL), TARN_OK);
    }
    for (int i = 0; i < 2; i++) {
        asking[i] = (struct asking){.asked = allocators[1 - i], .size = 20 * MIB};
        assert_int_equal(tarn_allocator_add_memory_callback(allocators[i], callback, &asking[i]),
                         TARN_OK);
    }
    assert_int_equal(tarn_allocator_alloc(allocators[0], 30 * MIB, 0, &ptr, NULL), TARN_OK);
    assert_int_equal(asking[0].calls, 1);
    assert_int_equal(asking[0].status, TARN_OK); /* of the other allocator */
    assert_int_equal(asking[1].calls, 1);
    assert_int_equal(asking[1].status, TARN_ERR_STATE);
    tarn_allocator_destroy(allocators[0]);
    tarn_allocator_destroy(allocators[1]);
}

static void observers_are_not_called_for_their_own_requests(void **state)
{
    struct rig rig;
    struct asking asking = {.size = 2 * GIB};
    tarn_ptr ptr = 0;

    (void)state;
    rig_open(&rig, GIB, "");
    asking.asked = rig.allocator;
    assert_int_equal(tarn_allocator_add_oom_observer(rig.allocator, observer, &asking), TARN_OK);
    for (unsigned i = 1; i < 3; i++) {
        assert_int_equal(tarn_allocator_alloc(rig.allocator, 3 * GIB, 0, &ptr, NULL),
                         TARN_ERR_OUT_OF_MEMORY);
        assert_int_equal(asking.calls, i);
        assert_int_equal(asking.status, TARN_ERR_OUT_OF_MEMORY);
    }
    rig_close(&rig);
}

static void calls_end_in_the_reverse_order(void **state)
{
    const struct tn_engine *a = (const struct tn_engine *)(const void *)&state;
    struct tn_call_back first;
    struct tn_call_back second;

    tn_call_back_begin(&first, a, TN_CALL_MEMORY_CALLBACK);
    tn_call_back_begin(&second, a, TN_CALL_OOM_OBSERVER);
    assert_true(tn_call_back_is_inside(a, TN_CALL_MEMORY_CALLBACK));
    assert_true(tn_call_back_is_inside(a, TN_CALL_OOM_OBSERVER));
    assert_false(tn_call_back_is_inside(NULL, TN_CALL_OOM_OBSERVER));
    tn_call_back_end(&second);
    assert_false(tn_call_back_is_inside(a, TN_CALL_OOM_OBSERVER));
    tn_call_back_end(&first);
    assert_false(tn_call_back_is_inside(a, TN_CALL_MEMORY_CALLBACK));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_callback_that_allocates_is_told),
        cmocka_unit_test(two_allocators_that_ask_each_other_end),
        cmocka_unit_test(observers_are_not_called_for_their_own_requests),
        cmocka_unit_test(calls_end_in_the_reverse_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
