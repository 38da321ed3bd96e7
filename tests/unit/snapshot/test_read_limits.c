/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "snapshot/read_limits.h"

#include <string.h>
#include <unistd.h>

/* ---- the machine's memory ---- */

static long pages = 1 << 20; /* of 4 KiB; -1: the system does not say */
static long page_size = 4096;

long sysconf(int name)
{
    return name == _SC_PHYS_PAGES ? pages : name == _SC_PAGESIZE ? page_size : -1;
}

/* ---- limits ---- */

static struct tn_input input_of(int64_t size, enum tn_packing packing)
{
    struct tn_input input;

    memset(&input, 0, sizeof input);
    input.source.size = size;
    input.unpack.packing = packing;
    return input;
}

static uint64_t memory_of(int64_t size, enum tn_packing packing)
{
    const struct tn_input input = input_of(size, packing);
    struct tarn_read_limits limits;

    assert_int_equal(tn_read_limits_complete(NULL, &limits, NULL), TARN_OK);
    return tn_read_limits_memory(&limits, &input);
}

static void memory_is_in_proportion_to_the_input(void **state)
{
    const uint64_t least = (uint64_t)256 << 20;
    const uint64_t most = memory_of(INT64_MAX, TN_PACKING_NONE);

    (void)state;
    assert_true(most >= least && most < (uint64_t)1 << 56); /* half of any machine's */
    assert_int_equal(memory_of(1, TN_PACKING_NONE), least);
    assert_int_equal(memory_of(17 << 20, TN_PACKING_NONE), 16 * ((uint64_t)17 << 20));
    assert_int_equal(memory_of(123000, TN_PACKING_GZIP), least);
    assert_int_equal(memory_of(600000, TN_PACKING_ZSTD), (uint64_t)512 * 600000);
    assert_int_equal(memory_of(INT64_MAX, TN_PACKING_GZIP), most);
    assert_int_equal(memory_of(-1, TN_PACKING_GZIP), least);
    assert_int_equal(memory_of((int64_t)1 << 60, TN_PACKING_NONE), most); /* 16 times is 2^64 */
}

static void an_input_of_unknown_size_counts_as_it_comes(void **state)
{
    struct tn_input input = input_of(-1, TN_PACKING_NONE);
    struct tn_model model = {.budget = {.limit = 100}};
    struct tarn_read_limits limits;

    (void)state;
    assert_int_equal(tn_read_limits_complete(NULL, &limits, NULL), TARN_OK);
    tn_read_limits_follow(&limits, &input, &model);
    assert_int_equal(tn_budget_limit(&model.budget), 100);
    assert_int_equal(tn_model_written_limit(&model), 256 << 20);
    input.source.taken = 1000000;
    assert_int_equal(tn_budget_limit(&model.budget), 16000000);
    assert_int_equal(tn_model_written_limit(&model), 1024000000);
    tn_read_limits_finish(&model.budget);
    input.source.taken = 2000000;
    assert_int_equal(tn_budget_limit(&model.budget), 16000000);
}

/* So that a small file cannot have gigabytes exported. */
static void what_is_written_out_is_in_proportion_to_the_file(void **state)
{
    static const struct {
        int64_t size;
        enum tn_packing packing;
        uint64_t most;
    } rows[] = {
        {1, TN_PACKING_NONE, 256 << 20},
        {1000000, TN_PACKING_NONE, 1024000000},
        {123000, TN_PACKING_GZIP, 1007616000},
        {INT64_MAX, TN_PACKING_GZIP, UINT64_MAX},
    };
    struct tarn_read_limits limits;

    (void)state;
    assert_int_equal(tn_read_limits_complete(NULL, &limits, NULL), TARN_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct tn_input input = input_of(rows[i].size, rows[i].packing);
        struct tn_model model = {.written_most = 5};

        tn_read_limits_follow(&limits, &input, &model);
        assert_int_equal(tn_model_written_limit(&model), rows[i].most);
    }
}

/* Of a file its size counts, were it 0. */
static void an_input_of_known_size_does_not_grow(void **state)
{
    static const int64_t sizes[] = {0, 1, 1 << 20};
    struct tarn_read_limits limits;

    (void)state;
    assert_int_equal(tn_read_limits_complete(NULL, &limits, NULL), TARN_OK);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct tn_input input = input_of(sizes[i], TN_PACKING_NONE);
        struct tn_model model = {.budget = {.limit = 100}};

        tn_read_limits_follow(&limits, &input, &model);
        input.source.taken = 1 << 20;
        assert_int_equal(tn_budget_limit(&model.budget), 100);
    }
}

static void a_limit_of_the_callers_is_fixed(void **state)
{
    const struct tarn_read_limits wanted = {.struct_size = sizeof wanted, .max_memory = 4096};
    const struct tn_input input = input_of(-1, TN_PACKING_NONE);
    struct tn_model model = {.written_most = 5};
    struct tarn_read_limits limits;

    (void)state;
    assert_int_equal(tn_read_limits_complete(&wanted, &limits, NULL), TARN_OK);
    assert_int_equal(tn_read_limits_memory(&limits, &input), 4096);
    tn_read_limits_follow(&limits, &input, &model);
    assert_null(model.budget.input);
    assert_int_equal(tn_model_written_limit(&model), 5);
}

/* However large the input: half of the machine's memory, 4 GiB where that is not known. */
static void the_machine_limits_all(void **state)
{
    const uint64_t gib = (uint64_t)1 << 30;

    (void)state;
    assert_int_equal(memory_of((int64_t)1 << 40, TN_PACKING_NONE), 2 * gib);
    pages = 1024;
    assert_int_equal(memory_of((int64_t)1 << 40, TN_PACKING_NONE), 2 << 20);
    assert_int_equal(memory_of(1, TN_PACKING_NONE), 2 << 20); /* less than the least otherwise */
    pages = -1;
    assert_int_equal(memory_of((int64_t)1 << 40, TN_PACKING_NONE), 4 * gib);
    pages = 0;
    assert_int_equal(memory_of((int64_t)1 << 40, TN_PACKING_NONE), 4 * gib);
    pages = 1024;
    page_size = 0;
    assert_int_equal(memory_of((int64_t)1 << 40, TN_PACKING_NONE), 4 * gib);
    page_size = -1;
    assert_int_equal(memory_of((int64_t)1 << 40, TN_PACKING_NONE), 4 * gib);
    pages = 1 << 20;
    page_size = 4096;
}

/* Those that are given count, the others are as by default. */
static void limits_are_completed(void **state)
{
    const struct tarn_read_limits none = {.struct_size = sizeof none};
    const struct tarn_read_limits all = {.struct_size = sizeof all,
                                         .max_bytes = 1,
                                         .max_ratio = 2,
                                         .max_string = 3,
                                         .max_depth = 4,
                                         .max_frames = 5,
                                         .max_memory = 6};
    struct tarn_read_limits limits;

    (void)state;
    assert_int_equal(tn_read_limits_complete(&all, &limits, NULL), TARN_OK);
    assert_memory_equal(&limits, &all, sizeof all);
    assert_int_equal(tn_read_limits_complete(&none, &limits, NULL), TARN_OK);
    assert_true(limits.max_bytes == (uint64_t)64 << 30); /* as tarn/snapshot.h has it */
    assert_int_equal(limits.max_ratio, 2000);
    assert_int_equal(limits.max_string, 64 << 20);
    assert_int_equal(limits.max_depth, 64);
    assert_int_equal(limits.max_frames, 4096);
    assert_int_equal(limits.max_memory, 0);
}

static void wrong_limits_are_refused(void **state)
{
    const struct tarn_read_limits deep = {.struct_size = sizeof deep, .max_depth = 121};
    const struct tarn_read_limits deepest = {.struct_size = sizeof deepest, .max_depth = 120};
    const struct tarn_read_limits small = {.struct_size = 4};
    struct tarn_read_limits limits;

    (void)state;
    assert_int_equal(tn_read_limits_complete(&deep, &limits, NULL), TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tn_read_limits_complete(&deepest, &limits, NULL), TARN_OK);
    assert_int_equal(limits.max_depth, 120);
    assert_int_equal(tn_read_limits_complete(&small, &limits, NULL), TARN_ERR_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_in_proportion_to_the_input),
        cmocka_unit_test(an_input_of_unknown_size_counts_as_it_comes),
        cmocka_unit_test(what_is_written_out_is_in_proportion_to_the_file),
        cmocka_unit_test(an_input_of_known_size_does_not_grow),
        cmocka_unit_test(a_limit_of_the_callers_is_fixed),
        cmocka_unit_test(the_machine_limits_all),
        cmocka_unit_test(limits_are_completed),
        cmocka_unit_test(wrong_limits_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
