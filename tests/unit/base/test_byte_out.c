/* SPDX-License-Identifier: MIT */
#include "support/collect.h"

#include "base/byte_out.h"

static int writes;

static enum tarn_status count_write(void *context, const char *bytes, size_t size)
{
    assert_true(size > 0);
    writes++;
    return test_collect_write(context, bytes, size);
}

static struct tarn_writer begin(struct test_collect *collect)
{
    writes = 0;
    return (struct tarn_writer){count_write, collect};
}

static void nothing_is_not_written(void **state)
{
    struct test_collect collect = {0};
    const struct tarn_writer writer = begin(&collect);
    struct tn_byte_out out = {.writer = &writer};

    (void)state;
    tn_bytes_put(&out, "", 0);
    tn_bytes_flush(&out);
    assert_int_equal(tn_bytes_finish(&out), TARN_OK);
    assert_int_equal(writes, 0);
    assert_int_equal(out.written, 0);
}

static void pieces_of_every_size_arrive_in_order(void **state)
{
    static char big[TN_BYTES_BUFFER + 1];
    struct test_collect collect = {0};
    const struct tarn_writer writer = begin(&collect);
    struct tn_byte_out out = {.writer = &writer};

    (void)state;
    memset(big, 'b', sizeof big);
    tn_bytes_put(&out, big, sizeof big); /* nothing waits before it */
    assert_int_equal(writes, 1);
    tn_bytes_put(&out, "a", 1);
    assert_int_equal(writes, 1);
    tn_bytes_put(&out, big, TN_BYTES_BUFFER); /* fits when the first went */
    assert_int_equal(writes, 2);
    tn_bytes_put(&out, "c", 1);
    assert_int_equal(tn_bytes_finish(&out), TARN_OK);
    assert_int_equal(out.written, sizeof big + 1 + TN_BYTES_BUFFER + 1);
    assert_int_equal(collect.size, out.written);
    assert_memory_equal(collect.text + sizeof big - 1, "bab", 3);
    assert_memory_equal(collect.text + collect.size - 2, "bc", 2);
    free(collect.text);
}

static void after_a_failure_nothing_is_written(void **state)
{
    struct test_collect collect = {.room = 3};
    const struct tarn_writer writer = begin(&collect);
    struct tn_byte_out out = {.writer = &writer};

    (void)state;
    tn_bytes_put(&out, "too long", 8);
    tn_bytes_flush(&out);
    const enum tarn_status failed = out.status;

    assert_int_not_equal(failed, TARN_OK);
    tn_bytes_put(&out, "x", 1);
    assert_int_equal(tn_bytes_finish(&out), failed);
    assert_int_equal(writes, 1);
    free(collect.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_not_written),
        cmocka_unit_test(pieces_of_every_size_arrive_in_order),
        cmocka_unit_test(after_a_failure_nothing_is_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
