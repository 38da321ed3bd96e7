/* SPDX-License-Identifier: MIT */
/* Functions with other libraries' signatures. */
#include "support/test.h"

#include "support/rig.h"
#include "tarn/foreign.h"

static void cupy_gets_memory_of_its_device_only(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 256 * MIB, "");
    const int device = tn_allocator_ordinal(rig.allocator);
    void *memory = tarn_cupy_alloc(rig.allocator, MIB, device);

    assert_non_null(memory);
    assert_int_equal(rig_now(&rig, TARN_STAT_ALLOCATED_BYTES), MIB);
    assert_null(tarn_cupy_alloc(rig.allocator, MIB, device + 1));
    assert_null(tarn_cupy_alloc(rig.allocator, 300 * MIB, device));
    assert_null(tarn_cupy_alloc(rig.allocator, 0, device));
    tarn_cupy_free(rig.allocator, memory, device);
    tarn_cupy_free(rig.allocator, NULL, device);
    assert_int_equal(rig_now(&rig, TARN_STAT_ALLOCATED_BYTES), 0);
    /* It is of the default stream. */
    const tarn_ptr same = rig_alloc(&rig, MIB, 0);

    assert_int_equal(same, (uintptr_t)memory);
    rig_free(&rig, same);
    rig_close(&rig);
}

static void onnx_uses_the_allocator_of_the_process(void **state)
{
    struct rig rig;

    (void)state;
    assert_null(tarn_onnx_alloc(MIB)); /* none yet */
    tarn_onnx_free(NULL);
    tarn_onnx_empty_cache();
    rig_open(&rig, 256 * MIB, "");
    tarn_onnx_use(rig.allocator);
    void *memory = tarn_onnx_alloc(30 * MIB);

    assert_non_null(memory);
    assert_null(tarn_onnx_alloc(300 * MIB));
    tarn_onnx_free(memory);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 30 * MIB);
    tarn_onnx_empty_cache();
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), 0);
    tarn_onnx_use(NULL);
    assert_null(tarn_onnx_alloc(MIB));
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cupy_gets_memory_of_its_device_only),
        cmocka_unit_test(onnx_uses_the_allocator_of_the_process),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
