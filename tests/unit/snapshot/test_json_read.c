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
                                         "[\"\\n\",\"\\nlonger\",\"\\nthe longest of the three\"]",
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

static void what_is_wrong_is_said(void **state)
{
    static const struct {
        const char *value;
        const char *says;
    } rows[] = {
        {"\"a\x01\"", "a control character in a string"},
        {"\"\\x\"", "a string with an unknown escape"},
        {"1111111111111111111111111111111111111111111111111111111111111111",
         "a number that is too long"},
        {"18446744073709551616", "a number of more than 64 bits"},
        {"1e999", "a number out of range"},
        {"nul", "neither a value nor the end of a container"},
        {"[1 2]", "neither a comma nor the end of a container"},
        {"{1:2}", "a key that is not a string"},
        {"{\"a\" 1}", "no colon after a key"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct tarn_error error = {.text = ""};

        assert_int_equal(load_value(rows[i].value, &error), TARN_ERR_FORMAT);
        if (!strstr(error.text, rows[i].says)) {
            fail_msg("%s: %s", rows[i].value, error.text);
        }
    }
}

/* Loads a snapshot with that value as the only unknown setting. */
static struct tarn_snapshot *load_setting(const char *value, const struct tn_field **field_out)
{
    struct tarn_snapshot *snapshot = NULL;
    char text[256];

    (void)snprintf(text, sizeof text, "{\"segments\":[],\"allocator_settings\":{\"x\":%s}}", value);
    assert_int_equal(tarn_snapshot_load_memory(text, strlen(text), NULL, &snapshot, NULL), TARN_OK);
    const struct tn_model *model = tn_snapshot_model(snapshot);

    assert_int_equal(model->settings.field_count, 1);
    *field_out = &model->settings.fields[0];
    return snapshot;
}

/* JSON has no tuples: two whole numbers are one, as the number of a pool is. */
static void two_whole_numbers_are_a_tuple(void **state)
{
    static const struct {
        const char *value;
        enum tn_container_kind kind;
    } rows[] = {
        {"[1,2]", TN_CONTAINER_TUPLE},
        {"[-1,18446744073709551615]", TN_CONTAINER_TUPLE},
        {"[18446744073709551615,-1]", TN_CONTAINER_TUPLE},
        {"[1,\"x\"]", TN_CONTAINER_LIST},
        {"[\"x\",1]", TN_CONTAINER_LIST},
        {"[1,2.0]", TN_CONTAINER_LIST},
        {"[1,2,3]", TN_CONTAINER_LIST},
        {"[1]", TN_CONTAINER_LIST},
        {"[]", TN_CONTAINER_LIST},
    };
    const struct tn_field *field;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct tarn_snapshot *snapshot = load_setting(rows[i].value, &field);

        assert_int_equal(field->kind, TN_FIELD_CONTAINER);
        if (tn_model_container(tn_snapshot_model(snapshot), field->value.number).kind !=
            rows[i].kind) {
            fail_msg("%s", rows[i].value);
        }
        tarn_snapshot_destroy(snapshot);
    }
    /* Whatever was read before. */
    struct tarn_snapshot *snapshot = load_setting("[[1,2,3,4],[1,\"x\"],[\"x\",1],[1,2]]", &field);
    const struct tn_model *model = tn_snapshot_model(snapshot);
    const struct tn_container outer = tn_model_container(model, field->value.number);

    assert_int_equal(outer.count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(tn_model_container(model, outer.items[i].value.number).kind,
                         i == 3 ? TN_CONTAINER_TUPLE : TN_CONTAINER_LIST);
    }
    tarn_snapshot_destroy(snapshot);
}

static void whole_numbers_are_signed_where_they_fit(void **state)
{
    const struct tn_field *field;
    struct tarn_snapshot *snapshot = load_setting("9223372036854775807", &field);

    (void)state;
    assert_int_equal(field->kind, TN_FIELD_INT);
    assert_true(field->value.integer == INT64_MAX);
    tarn_snapshot_destroy(snapshot);
    snapshot = load_setting("9223372036854775808", &field);
    assert_int_equal(field->kind, TN_FIELD_UINT);
    assert_true(field->value.unsigned_integer == (uint64_t)INT64_MAX + 1);
    tarn_snapshot_destroy(snapshot);
}

/* A value of a wrong kind is refused with its position. */
static void values_have_their_position(void **state)
{
    static const char *const values[] = {"0.5", "\"x\"", "null", "true", "[1,2]", "[]", "{}"};
    static const char *const numbers[] = {"7", "-7", "18446744073709551615", "2.5"};
    static const char first[] = "{\"segments\":";
    static const char begin[] = "{\"segments\":[{\"address\":512,\"stream\":";

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        struct tarn_error error = {.text = ""};
        char text[128];

        (void)snprintf(text, sizeof text, "%s%s,\"total_size\":0,\"blocks\":[]}]}", begin,
                       values[i]);
        assert_int_equal(load(text, strlen(text), &error), TARN_ERR_FORMAT);
        assert_int_equal(error.offset, sizeof begin - 1);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct tarn_error error = {.text = ""};
        char text[128];

        (void)snprintf(text, sizeof text, "%s%s}", first, numbers[i]);
        assert_int_equal(load(text, strlen(text), &error), TARN_ERR_FORMAT);
        assert_int_equal(error.offset, sizeof first - 1);
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
    for (size_t length = 100; length <= 101; length++) {
        memset(text, 'x', sizeof text);
        text[0] = '"';
        memcpy(text + 1 + length, "\"", 2);
        assert_int_equal(load_value(text, &error), length == 100 ? TARN_OK : TARN_ERR_LIMIT);
    }
}

/* Values of one container, lists and dicts, and memory for strings of any kind, within a budget. */
static void memory_is_limited(void **state)
{
    enum {
        SIZE = 1 << 20
    };
    static const char *const items[] = {"1,",       "[],",        "\"\\n\",", "\"\xff\",",
                                        "[\"a\"],", "{\"a\":1},", NULL};
    char *text = malloc(SIZE + 64);
    uint64_t named = 0;

    (void)state;
    for (size_t i = 0; i < sizeof items / sizeof *items * 2; i++) {
        const struct tarn_read_limits limits = {.struct_size = sizeof limits,
                                                .max_memory = (1 << 18) + (i % 2 << 14)};
        const char *item = items[i / 2]; /* NULL: texts, each of which is new */
        struct tarn_snapshot *snapshot = NULL;
        struct tarn_error error = {.text = ""};
        size_t used = (size_t)snprintf(text, 64, "{\"segments\":[],\"x\":[");

        for (size_t k = 0; used < SIZE; k++) {
            const int length = item ? snprintf(text + used, 32, "%s", item)
                                    : snprintf(text + used, 32, "\"%06zu\",", k);

            used += (size_t)length;
        }
        memcpy(text + used, "1]}", 4);
        assert_int_equal(tarn_snapshot_load_memory(text, used + 3, &limits, &snapshot, &error),
                         TARN_ERR_LIMIT);
        assert_non_null(strstr(error.text, "the snapshot needs more "));
        assert_null(snapshot);
        named += strcmp(error.text, "the snapshot needs more memory than it may have") == 0;
    }
    assert_true(named > 2);
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
    assert_int_equal(load(" 12", 3, &error), TARN_ERR_FORMAT);
    assert_int_equal(load(" \"x\"", 4, &error), TARN_ERR_FORMAT);
    assert_int_equal(load(" true", 5, &error), TARN_ERR_FORMAT);
    assert_int_equal(load("{\"segments\":{}}", 15, &error), TARN_ERR_FORMAT);
}

/* Whichever kind of container comes first. */
static void every_host_allocation_may_fail(void **state)
{
    static const char *const texts[] = {
        ("{\"segments\":[],\"device_traces\":[[{\"action\":\"a\\n\",\"addr\":0,"
         "\"user_metadata\":\"\xff\"}]]} \n"),
        "{\"x\":[\"a\"],\"segments\":[]}",
        "{\"x\":{\"a\":1},\"segments\":[]}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        enum tarn_status st = TARN_ERR_HOST_MEMORY;
        uint64_t named = 0;
        uint64_t n = 0;

        while (st == TARN_ERR_HOST_MEMORY) {
            struct tarn_error error = {.text = ""};

            tarn_host_fail_nth(++n);
            st = load(texts[i], strlen(texts[i]), &error);
            tarn_host_fail_nth(0);
            named += strcmp(error.text, "no host memory to read a snapshot") == 0;
        }
        assert_int_equal(st, TARN_OK);
        assert_true(n > 10);
        assert_true(named > 0);
    }
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
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(two_whole_numbers_are_a_tuple),
        cmocka_unit_test(whole_numbers_are_signed_where_they_fit),
        cmocka_unit_test(values_have_their_position),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(memory_is_limited),
        cmocka_unit_test(errors_of_the_input_are_reported),
        cmocka_unit_test(cut_input_ends_early),
        cmocka_unit_test(every_host_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
