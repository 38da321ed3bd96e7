/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot/snapshot.h"
#include "tarn/host.h"

static enum tarn_status load(const char *text, size_t size, struct tarn_error *error)
{
    const struct tarn_read_limits limits = {
        .struct_size = sizeof limits, .max_depth = 8, .max_string = 100};
    const uint64_t before = tarn_host_get_usage().live_bytes;
    struct tarn_snapshot *snapshot = NULL;
    const enum tarn_status status =
        tarn_snapshot_load_memory(text, size, &limits, &snapshot, error);

    assert_int_equal(snapshot != NULL, status == TARN_OK);
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_host_get_usage().live_bytes, before);
    return status;
}

/* In a place where any value may be. */
static enum tarn_status load_value(const char *value, struct tarn_error *error)
{
    char text[1000];

    (void)snprintf(text, sizeof text, "{\"segments\":[],\"x\":%s}", value);
    return load(text, strlen(text), error);
}

static void good_values_are_read(void **state)
{
    static const char *const values[] = {"0",
                                         "-0",
                                         "12",
                                         "-1",
                                         "18446744073709551615",
                                         "-9223372036854775808",
                                         "0.5",
                                         "-1e5",
                                         "1E+5",
                                         "2.5e-3",
                                         "true",
                                         "false",
                                         "null",
                                         "\"\"",
                                         "\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
                                         "\"\\u0041\\uD83D\\ude00\\ud800\\ud800\\u0041\"",
                                         "[]",
                                         "{}",
                                         "[ ]",
                                         "{ }",
                                         "[1,2]",
                                         " [ 1 , [ ] , { \"a\" : 1 } ]\n",
                                         "[[[[[1]]]]]",
                                         "\"\xc3\xa9\""};

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        struct tarn_error error = {.text = ""};

        if (load_value(values[i], &error)) {
            fail_msg("%s: %s", values[i], error.text);
        }
    }
    assert_int_equal(load(" \t\r\n{\"segments\":[]} \n\t", 20, NULL), TARN_OK);
}

static void bad_values_are_refused(void **state)
{
    static const char *const values[] = {
        "01",
        "-",
        "+1",
        ".5",
        "1.",
        "1e",
        "1e+",
        "0x10",
        "nul",
        "True",
        "NaN",
        "--1",
        "1 2",
        "[1,]",
        "[,1]",
        "{,}",
        "{1:2}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{\"a\" 1}",
        "[1}",
        "{\"a\":1]",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\n\"",
        "\"\x01\"",
        "18446744073709551616",
        "-9223372036854775809",
        "1e999",
        "]",
        "}",
        ",",
        ":",
        "1111111111111111111111111111111111111111111111111111111111111111"};

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        struct tarn_error error = {.text = ""};

        assert_int_equal(load_value(values[i], &error), TARN_ERR_FORMAT);
        assert_non_null(strstr(error.text, "at byte"));
        assert_true(error.offset > 0);
    }
}

static void limits_hold(void **state)
{
    struct tarn_error error;
    char text[300];

    (void)state;
    assert_int_equal(load_value("[[[[[[[[1]]]]]]]]", &error), TARN_ERR_LIMIT);
    memset(text, 'x', sizeof text);
    text[0] = '"';
    text[200] = '"';
    text[201] = '\0';
    assert_int_equal(load_value(text, &error), TARN_ERR_LIMIT);
}

/* Values of one container, and memory for strings of any kind, within a budget. */
static void memory_is_limited(void **state)
{
    enum {
        SIZE = 1 << 20
    };
    static const char *const items[] = {"1,", "[],", "\"\\n\",", "\"\xff\","};
    char *text = malloc(SIZE + 64);

    (void)state;
    for (size_t i = 0; i < sizeof items / sizeof *items; i++) {
        const struct tarn_read_limits limits = {.struct_size = sizeof limits,
                                                .max_memory = 1 << 18};
        struct tarn_snapshot *snapshot = NULL;
        struct tarn_error error = {.text = ""};
        size_t used = (size_t)snprintf(text, 64, "{\"segments\":[],\"x\":[");

        while (used < SIZE) {
            memcpy(text + used, items[i], strlen(items[i]));
            used += strlen(items[i]);
        }
        memcpy(text + used, "1]}", 4);
        assert_int_equal(tarn_snapshot_load_memory(text, used + 3, &limits, &snapshot, &error),
                         TARN_ERR_LIMIT);
        assert_non_null(strstr(error.text, "memory"));
        assert_null(snapshot);
    }
    free(text);
}

/* Cut anywhere it ends early; what is not a snapshot is no snapshot. */
static void cut_input_ends_early(void **state)
{
    static const char whole[] =
        "{\"segments\": [{\"address\": 1024, \"total_size\": 512, \"blocks\": [{\"size\": 512, "
        "\"state\": \"inactive\"}]}], \"device_traces\": [[{\"action\": \"a\\u0041\", "
        "\"addr\": 0}]]}";
    struct tarn_error error;

    (void)state;
    assert_int_equal(load(whole, sizeof whole - 1, &error), TARN_OK);
    for (size_t size = 1; size < sizeof whole - 1; size++) {
        char *exact = malloc(size); /* so that reading behind the end is seen */

        assert_non_null(exact);
        memcpy(exact, whole, size);
        assert_int_equal(load(exact, size, &error), TARN_ERR_TRUNCATED);
        free(exact);
    }
    assert_int_equal(load("{}", 2, &error), TARN_ERR_FORMAT);
    assert_int_equal(load("[]", 2, &error), TARN_OK);
    assert_int_equal(load("[]x", 3, &error), TARN_ERR_FORMAT);
    assert_int_equal(load("[1]", 3, &error), TARN_ERR_FORMAT);
    assert_int_equal(load("   ", 3, &error), TARN_ERR_TRUNCATED);
    assert_int_equal(load("{\"segments\":{}}", 15, &error), TARN_ERR_FORMAT);
}

static void every_host_allocation_may_fail(void **state)
{
    static const char text[] =
        "{\"segments\":[],\"device_traces\":[[{\"action\":\"a\\n\",\"addr\":0,"
        "\"user_metadata\":\"\xff\"}]]} \n";
    enum tarn_status st = TARN_ERR_HOST_MEMORY;
    uint64_t n = 0;

    (void)state;
    while (st == TARN_ERR_HOST_MEMORY) {
        tarn_host_fail_nth(++n);
        st = load(text, sizeof text - 1, NULL);
        tarn_host_fail_nth(0);
    }
    assert_int_equal(st, TARN_OK);
    assert_true(n > 10);
}

/* Input that cannot be read on, in a number or after the last value, wherever a window ends. */
static void errors_of_the_input_are_reported(void **state)
{
    enum {
        SIZE = 600 << 10
    };
    static const char *const items[] = {"123456789012345678,", "          "};
    char *text = malloc(SIZE + 64);

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        size_t used = (size_t)snprintf(text, 64, "{\"segments\":[]%s", i ? "}" : ",\"x\":[");

        while (used < SIZE) {
            memcpy(text + used, items[i], strlen(items[i]));
            used += strlen(items[i]);
        }
        memcpy(text + used, i ? "   " : "1]}", 4);
        for (uint64_t most = 1000; most < SIZE + 20000; most += 19999) {
            const struct tarn_read_limits limits = {.struct_size = sizeof limits,
                                                    .max_bytes = most};
            struct tarn_snapshot *snapshot = NULL;
            struct tarn_error error = {.text = ""};
            const enum tarn_status st =
                tarn_snapshot_load_memory(text, used + 3, &limits, &snapshot, &error);

            assert_int_equal(st, most < used + 3 ? TARN_ERR_LIMIT : TARN_OK);
            assert_int_equal(error.status, st);
            tarn_snapshot_destroy(snapshot);
        }
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_values_are_read),
        cmocka_unit_test(bad_values_are_refused),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(memory_is_limited),
        cmocka_unit_test(errors_of_the_input_are_reported),
        cmocka_unit_test(cut_input_ends_early),
        cmocka_unit_test(every_host_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
