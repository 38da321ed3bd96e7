/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "base/json_token.h"
#include "base/json_tree.h"
#include "tarn/host.h"

#include <stdlib.h>
#include <string.h>

struct fixture {
    struct tn_json_tree tree;
    struct tarn_error error;
};

static enum tarn_status parse(struct fixture *f, const char *text, bool repeats)
{
    f->error = (struct tarn_error){.offset = -2};
    return tn_json_parse(&f->tree, text, strlen(text), repeats, &f->error);
}

static void values_are_what_the_text_says(void **state)
{
    struct fixture f;

    (void)state;
    tn_json_tree_init(&f.tree);
    assert_int_equal(parse(&f,
                           " {\"b\": [1, -2, 9223372036854775807, -9223372036854775808, 1.5e3],\n"
                           "\"a\":{}, \"c\" : [[ ] ,{\"\":null}], \"t\":true,\"f\":false,"
                           "\"s\":\"x\\n\\u00e9\\ud83d\\ude00\"} ",
                           false),
                     TARN_OK);
    const struct tn_json_value *root = &f.tree.root;
    const struct tn_json_value *b = tn_json_get(root, "b");

    assert_int_equal(tn_json_pairs(root), 6);
    assert_string_equal(tn_json_key(root, 0), "a");
    assert_true(tn_json_is(tn_json_pair(root, 0), TN_JSON_OBJECT));
    assert_int_equal(tn_json_length(b), 5);
    assert_int_equal(tn_json_integer(tn_json_at(b, 1)), -2);
    assert_int_equal(tn_json_integer(tn_json_at(b, 2)), INT64_MAX);
    assert_int_equal(tn_json_integer(tn_json_at(b, 3)), INT64_MIN);
    assert_true(tn_json_number(tn_json_at(b, 4)) > 1499);
    assert_int_equal(b->begin, 7);
    assert_int_equal(b->end, 64);
    assert_int_equal(tn_json_length(tn_json_at(tn_json_get(root, "c"), 0)), 0);
    assert_true(tn_json_is(tn_json_get(tn_json_at(tn_json_get(root, "c"), 1), ""), TN_JSON_NULL));
    assert_true(tn_json_is(tn_json_get(root, "t"), TN_JSON_TRUE));
    assert_true(tn_json_is_bool(tn_json_get(root, "f")));
    assert_string_equal(tn_json_text(tn_json_get(root, "s")), "x\n\xc3\xa9\xf0\x9f\x98\x80");
    tn_json_tree_fini(&f.tree);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* Nobody has to look first whether something is there. */
static void what_is_not_there_is_nothing(void **state)
{
    struct fixture f;

    (void)state;
    tn_json_tree_init(&f.tree);
    assert_int_equal(parse(&f, "[7]", false), TARN_OK);
    const struct tn_json_value *nothing = tn_json_get(&f.tree.root, "a");

    assert_null(nothing);
    assert_null(tn_json_get(nothing, "a"));
    assert_null(tn_json_at(&f.tree.root, 1));
    assert_null(tn_json_at(nothing, 0));
    assert_null(tn_json_text(tn_json_at(&f.tree.root, 0)));
    assert_int_equal(tn_json_integer(nothing), 0);
    assert_int_equal(tn_json_length(nothing), 0);
    assert_int_equal(tn_json_pairs(&f.tree.root), 0);
    assert_int_equal(parse(&f, "[7", false), TARN_ERR_TRUNCATED);
    assert_true(tn_json_is(&f.tree.root, TN_JSON_NULL));
    tn_json_tree_fini(&f.tree);
}

static void wrong_bytes_become_surrogates(void **state)
{
    struct fixture f;

    (void)state;
    tn_json_tree_init(&f.tree);
    assert_int_equal(parse(&f, "[\"a\xff\"]", false), TARN_OK);
    assert_string_equal(tn_json_text(tn_json_at(&f.tree.root, 0)), "a\xed\xb3\xbf");
    tn_json_tree_fini(&f.tree);
}

/* Every form of an escape, and the half of a pair that stays one. */
static void escapes_are_what_they_mean(void **state)
{
    static const struct {
        const char *text;
        const char *means; /* NULL: it is malformed */
    } cases[] = {
        {"\\u00AF\\u00af\\u0e3F", "\xc2\xaf\xc2\xaf\xe0\xb8\xbf"},
        {"\\uD834\\uDD1E", "\xf0\x9d\x84\x9e"},
        {"\\ud834", "\xed\xa0\xb4"},
        {"\\ud834abcdefgh", "\xed\xa0\xb4"
                            "abcdefgh"},
        {"\\ud834\\nabcdefgh", "\xed\xa0\xb4\nabcdefgh"},
        {"\\ud834\\u0041", "\xed\xa0\xb4"
                           "A"},
        {"\\ud834\\ue000", "\xed\xa0\xb4\xee\x80\x80"},
        {"\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\b\f\n\r\t"},
        {"\\u12", NULL},
        {"\\u 123", NULL},
        {"\\u:123", NULL},
        {"\\u12G4", NULL},
        {"\\u12g4", NULL},
        {"\\", NULL},
        {"\\x", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[64];
        size_t size = 0;
        const char *problem = tn_json_unescape(cases[i].text, strlen(cases[i].text), out, &size);

        if ((problem == NULL) != (cases[i].means != NULL) ||
            (cases[i].means &&
             (size != strlen(cases[i].means) || memcmp(out, cases[i].means, size) != 0))) {
            fail_msg("%s: %s", cases[i].text, problem ? problem : "something else");
        }
    }
}

static void what_is_malformed_is_named(void **state)
{
    static const struct {
        const char *text;
        enum tarn_status status;
        int offset;
        const char *says;
    } cases[] = {
        {"", TARN_ERR_TRUNCATED, 0, "the input ends early"},
        {"[1,", TARN_ERR_TRUNCATED, 3, "the input ends early"},
        {"[12", TARN_ERR_TRUNCATED, 1, "the input ends early"},
        {"[\"a", TARN_ERR_TRUNCATED, 3, "the input ends early"},
        {"[\"a\\", TARN_ERR_TRUNCATED, 4, "the input ends early"},
        {"{\"a\"", TARN_ERR_TRUNCATED, 4, "the input ends early"},
        {"[1] 2", TARN_ERR_FORMAT, 4, "extra data after the value"},
        {"[1 2]", TARN_ERR_FORMAT, 3, "neither a comma nor"},
        {"[1,]", TARN_ERR_FORMAT, 3, "neither a value nor"},
        {"[}", TARN_ERR_FORMAT, 1, "neither a value nor"},
        {"[01]", TARN_ERR_FORMAT, 1, "neither a value nor"},
        {"[nan]", TARN_ERR_FORMAT, 1, "neither a value nor"},
        {"{1:2}", TARN_ERR_FORMAT, 1, "a key that is not a string"},
        {"{\"a\" 2}", TARN_ERR_FORMAT, 5, "no colon"},
        {"{\"a\":1,}", TARN_ERR_FORMAT, 7, "a key that is not a string"},
        {"{\"a\":1,\"b\":{},\"a\":3}", TARN_ERR_FORMAT, 19, "a duplicate key"},
        {"[9223372036854775808]", TARN_ERR_FORMAT, 1, "more than 64 bits"},
        {"[-9223372036854775809]", TARN_ERR_FORMAT, 1, "more than 64 bits"},
        {"[1e999]", TARN_ERR_FORMAT, 1, "out of range"},
        {"[\"\\x\"]", TARN_ERR_FORMAT, 1, "unknown escape"},
        {"[\"\\u12g4\"]", TARN_ERR_FORMAT, 1, "invalid \\u escape"},
        {"[\"\\u0000\"]", TARN_ERR_FORMAT, 1, "NUL"},
        {"[\"\n\"]", TARN_ERR_FORMAT, 2, "a control character"},
    };
    struct fixture f;

    (void)state;
    tn_json_tree_init(&f.tree);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (parse(&f, cases[i].text, false) != cases[i].status ||
            f.error.offset != cases[i].offset || !strstr(f.error.text, cases[i].says)) {
            fail_msg("%s: %s at %lld", cases[i].text, f.error.text, (long long)f.error.offset);
        }
    }
    tn_json_tree_fini(&f.tree);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void the_last_of_a_repeated_key_counts(void **state)
{
    struct fixture f;

    (void)state;
    tn_json_tree_init(&f.tree);
    assert_int_equal(parse(&f, "{\"b\":1,\"a\":2,\"b\":3,\"b\":4,\"c\":5}", true), TARN_OK);
    assert_int_equal(tn_json_pairs(&f.tree.root), 3);
    assert_int_equal(tn_json_integer(tn_json_get(&f.tree.root, "a")), 2);
    assert_int_equal(tn_json_integer(tn_json_get(&f.tree.root, "b")), 4);
    assert_int_equal(tn_json_integer(tn_json_get(&f.tree.root, "c")), 5);
    tn_json_tree_fini(&f.tree);
}

/* "[[],[],...": three bytes for each value. */
static void one_text_cannot_take_all_memory(void **state)
{
    const size_t size = (size_t)24 << 20;
    char *text = malloc(size);
    struct fixture f;

    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < size; i++) {
        const char *next = i == 0 ? "[" : "[],";

        text[i] = next[i == 0 ? 0 : (i - 1) % 3];
    }
    tn_json_tree_init(&f.tree);
    assert_int_equal(tn_json_parse(&f.tree, text, size, false, &f.error), TARN_ERR_LIMIT);
    assert_true(tarn_host_get_usage().live_bytes <= (uint64_t)256 << 20);
    memset(text, '[', size);
    assert_int_equal(tn_json_parse(&f.tree, text, size, false, &f.error), TARN_ERR_LIMIT);
    assert_non_null(strstr(f.error.text, "nested too deeply"));
    assert_int_equal(tn_json_parse(&f.tree, text, SIZE_MAX, false, &f.error), TARN_ERR_LIMIT);
    assert_non_null(strstr(f.error.text, "too long"));
    assert_int_equal(parse(&f, "[]", false), TARN_OK); /* nothing of that stays */
    tn_json_tree_fini(&f.tree);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
    free(text);
}

static void every_allocation_may_fail(void **state)
{
    static const char item[] = "{\"key\":\"value\"},";
    static const char last[] = "140737488355328]";
    char text[8192] = "[";
    size_t used = 1;
    enum tarn_status status = TARN_ERR_HOST_MEMORY;
    uint64_t failures = 0;

    (void)state;
    for (int i = 0; i < 300; i++, used += sizeof item - 1) {
        memcpy(text + used, item, sizeof item);
    }
    memcpy(text + used, last, sizeof last);
    for (uint64_t n = 1; status; n++) {
        struct fixture f;

        tn_json_tree_init(&f.tree);
        tarn_host_fail_nth(n);
        status = parse(&f, text, false);
        tarn_host_fail_nth(0);
        assert_true(status == TARN_OK || status == TARN_ERR_HOST_MEMORY);
        failures += status != TARN_OK;
        tn_json_tree_fini(&f.tree);
        assert_int_equal(tarn_host_get_usage().live_bytes, 0);
    }
    assert_true(failures > 5);
}

/* A text that has to be repaired, in which every byte becomes three. */
static void repairs_may_find_no_memory(void **state)
{
    static char text[300000];
    enum tarn_status status = TARN_ERR_HOST_MEMORY;
    uint64_t n = 0;

    (void)state;
    memset(text, '\xff', sizeof text);
    text[0] = '"';
    text[sizeof text - 2] = '"';
    text[sizeof text - 1] = '\0';
    while (status == TARN_ERR_HOST_MEMORY) {
        struct fixture f;

        tn_json_tree_init(&f.tree);
        tarn_host_fail_nth(++n);
        status = parse(&f, text, false);
        tarn_host_fail_nth(0);
        assert_true(status || strlen(tn_json_text(&f.tree.root)) == 3 * (sizeof text - 3));
        tn_json_tree_fini(&f.tree);
        assert_int_equal(tarn_host_get_usage().live_bytes, 0);
    }
    assert_int_equal(status, TARN_OK);
    assert_true(n > 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_what_the_text_says),
        cmocka_unit_test(what_is_not_there_is_nothing),
        cmocka_unit_test(wrong_bytes_become_surrogates),
        cmocka_unit_test(escapes_are_what_they_mean),
        cmocka_unit_test(what_is_malformed_is_named),
        cmocka_unit_test(the_last_of_a_repeated_key_counts),
        cmocka_unit_test(one_text_cannot_take_all_memory),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(repairs_may_find_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
