/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "support/cuda.h"

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
    expect_capacity("sim", 80 * GIB);
    expect_capacity("sim:141GiB", 141 * GIB);
    expect_capacity("sim:4096", 4096);
    expect_capacity("sim:3KiB", 3 * KIB);
    expect_capacity("sim:7MiB", 7 * MIB);
    expect_capacity("sim:2TiB", 2048 * GIB);
    expect_capacity("sim:backed", 80 * GIB);
    expect_capacity("sim:3GiB,backed", 3 * GIB);
    expect_capacity("sim:0000000000000000000000000001GiB", GIB); /* 31 characters */
}

static void backed_devices_have_memory(void **state)
{
    static const struct {
        const char *spec;
        bool backed;
    } rows[] = {
        {"sim", false}, {"sim:1GiB", false}, {"sim:backed", true}, {"sim:1GiB,backed", true}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tarn_device *device = NULL;

        assert_int_equal(tarn_device_open(rows[i].spec, &device, NULL), TARN_OK);
        const tarn_ptr ptr = sim_alloc_ok(device, 512);

        assert_int_equal(tarn_sim_host_memory(device, ptr, 512) != NULL, rows[i].backed);
        sim_close(device);
    }
}

static void bad_specs_are_refused_with_a_text(void **state)
{
    static const char *const bad[] = {
        "",
        "cuda:",
        "cuda:one",
        "cuda:-1",
        "cuda:0x0",
        "cuda:00000",
        "cuda:1 ",
        "cudas",
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
        "sim:18446744073709551616",
        "sim:18446744073709551619",
        "sim:18446744073709551615KiB",
        "sim:1GiB,",
        "sim:1GiB,back",
        "sim:,backed",
        "sim:1GiB,backed,backed",
        "sim:0000000000000000000000000000000000001GiB,backed",
        "sim:00000000000000000000000000001GiB", /* 32 characters */
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

/* The fake driver is the one that is found by name once it is loaded. */
static void the_default_is_the_gpu_where_there_is_one(void **state)
{
    const struct fake_cuda *fake = fake_open(FAKE_CUDA);
    struct tarn_device *device = NULL;
    struct tarn_device_info info = {.struct_size = sizeof info};
    struct tarn_error error = {.status = TARN_OK};

    (void)state;
    assert_int_equal(tarn_device_open(NULL, &device, &error), TARN_OK);
    tarn_device_get_info(device, &info);
    assert_string_equal(info.backend, "cuda");
    assert_int_equal(info.ordinal, 0);
    tarn_device_close(device);

    fake->set_devices(0, GIB);
    expect_capacity(NULL, 80 * GIB);

    /* A GPU that cannot be used is no reason to simulate one. */
    fake->set_devices(1, GIB);
    fake->fail_nth("cuInit", 1, TN_CU_ECC_UNCORRECTABLE);
    device = NULL;
    assert_int_equal(tarn_device_open(NULL, &device, &error), TARN_ERR_DEVICE);
    fake->set_version(11000);
    assert_int_equal(tarn_device_open(NULL, &device, &error), TARN_ERR_NOT_SUPPORTED);
    assert_null(device);
}

static void gpus_are_opened_by_number(void **state)
{
    const struct fake_cuda *fake = fake_open(FAKE_CUDA);
    static const char *const specs[] = {"cuda", "cuda:0", "cuda:1", "cuda:0001"};
    struct tarn_error error = {.status = TARN_OK};
    struct tarn_device *device = NULL;

    (void)state;
    fake->set_devices(2, GIB);
    for (int i = 0; i < 4; i++) {
        struct tarn_device_info info = {.struct_size = sizeof info};

        assert_int_equal(tarn_device_open(specs[i], &device, &error), TARN_OK);
        tarn_device_get_info(device, &info);
        assert_string_equal(info.backend, "cuda");
        assert_int_equal(info.ordinal, i / 2);
        tarn_device_close(device);
        device = NULL;
    }
    assert_int_equal(tarn_device_open("cuda:2", &device, &error), TARN_ERR_INVALID_ARGUMENT);
    assert_string_equal(error.text, "there is no GPU 2: this process sees 2, from \"cuda:0\" to "
                                    "\"cuda:1\"");
    assert_int_equal(tarn_device_open("cuda:1904", &device, &error), TARN_ERR_INVALID_ARGUMENT);
    assert_string_equal(error.text, "there is no GPU 1904: this process sees 2, from \"cuda:0\" to "
                                    "\"cuda:1\"");
    fake->set_devices(0, GIB);
    assert_int_equal(tarn_device_open("cuda", &device, &error), TARN_ERR_NOT_FOUND);
    assert_null(device);
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
        cmocka_unit_test(backed_devices_have_memory),
        cmocka_unit_test(bad_specs_are_refused_with_a_text),
        cmocka_unit_test(the_default_is_the_gpu_where_there_is_one),
        cmocka_unit_test(gpus_are_opened_by_number),
        cmocka_unit_test(info_fills_only_what_the_caller_has),
        cmocka_unit_test(memory_info_follows_use),
        cmocka_unit_test(closing_nothing_is_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
