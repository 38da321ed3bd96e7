/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "cli/size_read.h"

static void reads(const char *text, uint64_t expected)
{
    uint64_t bytes = 1;

    assert_true(cli_size_read(text, &bytes));
    assert_int_equal(bytes, expected);
}

static void refuses(const char *text)
{
    uint64_t bytes;

    assert_false(cli_size_read(text, &bytes));
}

static void units_are_those_that_people_write(void **state)
{
    (void)state;
    reads("0", 0);
    reads("512", 512);
    reads("512b", 512);
    reads("24G", (uint64_t)24 << 30);
    reads("24gib", (uint64_t)24 << 30);
    reads("24gb", 24000000000);
    reads("24 GB", 24000000000);
    reads("1K", 1024);
    reads("1kB", 1000);
    reads("3m", (uint64_t)3 << 20);
    reads("2TiB", (uint64_t)2 << 40);
    reads("0x10", 16);
}

static void fractions_are_rounded_to_bytes(void **state)
{
    (void)state;
    reads("23.65GiB", 25393994138);
    reads("0.5K", 512);
    reads("1.0004KB", 1000);
    reads("1.0006KB", 1001);
    reads("18446744073709551615", UINT64_MAX);
    reads("16777215.5TiB", ((uint64_t)16777215 << 40) + ((uint64_t)1 << 39));
}

static void everything_else_is_refused(void **state)
{
    (void)state;
    refuses("");
    refuses("G");
    refuses("-1");
    refuses(" 1");
    refuses("1.");
    refuses(".5G");
    refuses("1.5.2G");
    refuses("1e3");
    refuses("1GiBs");
    refuses("1G 2");
    refuses("99999999999TiB");
    refuses("16777216TiB");
    refuses("18446744073709551616");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(units_are_those_that_people_write),
        cmocka_unit_test(fractions_are_rounded_to_bytes),
        cmocka_unit_test(everything_else_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
