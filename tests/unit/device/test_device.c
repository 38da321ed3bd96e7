/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "support/sim.h"

#include <string.h>

static void expect_capacity(const char *spec, uint64_t capacity)
{
    struct tarn_device *device = NULL;
    struct tarn_device_info info = {.struct_size = sizeof info};

    assert_int_equal(tarn_device_open(spec, &device, NULL), TARN_OK);
    tarn_device_get_info(device, &info);
    assert_string_equal(info.backend, "sim");
    assert_int_equal(info.ordinal, 0);
    assert_int_equal(info.total_memory, capacity);
    assert_int_equal(info.granularity, 2 * MIB);
    tarn_device_close(device);
}

static void specs_are_read(void **state)
{
    (void)state;
    expect_capacity(NULL, 80 * GIB);
    expect_capacity("sim", 80 * GIB);
    expect_capacity("sim:141GiB", 141 * GIB);
    expect_capacity("sim:4096", 4096);
    expect_capacity("sim:3KiB", 3 * KIB);
    expect_capacity("sim:7MiB", 7 * MIB);
    expect_capacity("sim:2TiB", 2048 * GIB);
}

static void bad_specs_are_refused_with_a_text(void **state)
{
    static const char *const bad[] = {
        "",
        "cuda",
        "simulated",
        "sim:",
        "sim:0",
        "sim:GiB",
        "sim:1.5GiB",
        "sim:-1",
        "sim:12 GiB",
        "sim:1GB",
        "si",
        "sim:1gib",
        "sim:99999999999999999999",
        "sim:18446744073709551615KiB",
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct tarn_device *device = NULL;
        struct tarn_error error = {.status = TARN_OK};

        assert_int_equal(tarn_device_open(bad[i], &device, &error), TARN_ERR_INVALID_ARGUMENT);
        assert_int_equal(error.status, TARN_ERR_INVALID_ARGUMENT);
        assert_non_null(strstr(error.text, bad[i]));
        assert_null(device);
        assert_int_equal(tarn_device_open(bad[i], &device, NULL), TARN_ERR_INVALID_ARGUMENT);
    }
}

static void info_fills_only_what_the_caller_has(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    struct tarn_device_info info = {.struct_size = offsetof(struct tarn_device_info, total_memory),
                                    .total_memory = 77};

    (void)state;
    tarn_device_get_info(device, &info);
    assert_string_equal(info.backend, "sim");
    assert_int_equal(info.total_memory, 77);
    tarn_device_close(device);
}

static void memory_info_follows_use(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    uint64_t unused = 0;
    uint64_t total = 0;

    (void)state;
    (void)sim_alloc_ok(device, 100 * MIB);
    assert_int_equal(tarn_device_memory_info(device, &unused, &total), TARN_OK);
    assert_int_equal(unused, GIB - 100 * MIB);
    assert_int_equal(total, GIB);
    sim_close(device);
}

static void closing_nothing_is_allowed(void **state)
{
    (void)state;
    tarn_device_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(specs_are_read),
        cmocka_unit_test(bad_specs_are_refused_with_a_text),
        cmocka_unit_test(info_fills_only_what_the_caller_has),
        cmocka_unit_test(memory_info_follows_use),
        cmocka_unit_test(closing_nothing_is_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
