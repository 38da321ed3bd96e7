/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "base/matcher_filter.h"
#include "tarn/host.h"

#include <string.h>

/* More than eight: two words. */
static const char *const expressions[] = {"abc",
                                          "^x",
                                          "y*",
                                          "a.c$",
                                          "[0-9]+:forward$",
                                          "/torch/(optim|nn)/",
                                          "\\bword\\b",
                                          "z{3}",
                                          "(cat|elephant)s",
                                          "abcdefghijkl",
                                          "q",
                                          "$"};

enum {
    COUNT = sizeof expressions / sizeof *expressions
};

struct made {
    struct tn_matcher matchers[COUNT];
    struct tn_matcher_filter filter;
};

static void make(struct made *made)
{
    tn_matcher_filter_init(&made->filter);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(tn_matcher_init(&made->matchers[i], expressions[i]), TARN_OK);
        assert_true(tn_matcher_filter_add(&made->filter, &made->matchers[i]));
    }
}

static void drop(struct made *made)
{
    tn_matcher_filter_fini(&made->filter);
    for (size_t i = 0; i < COUNT; i++) {
        tn_matcher_fini(&made->matchers[i]);
    }
}

/* Bits of the expressions that it names, when the text comes in two parts. */
static unsigned named_in_parts(const struct tn_matcher_filter *filter, const char *text,
                               size_t first)
{
    struct tn_filter_place place = {.fitting = {0}}; /* all fit into one group */

    tn_filter_follow(filter, &place, text, first);
    tn_filter_follow(filter, &place, text + first, strlen(text) - first);
    struct tn_filter_scan scan = tn_filter_scan_begin(filter, &place);
    unsigned bits = 0;
    size_t number;
    size_t before = 0;

    while (tn_filter_scan_next(&scan, &number)) {
        assert_true(bits == 0 || number > before);
        before = number;
        bits |= 1u << number;
    }
    return bits;
}

static unsigned named(const struct tn_matcher_filter *filter, const char *text)
{
    return named_in_parts(filter, text, strlen(text));
}

static unsigned matched(const struct made *made, const char *text)
{
    unsigned bits = 0;

    for (size_t i = 0; i < COUNT; i++) {
        bits |= (unsigned)tn_matcher_finds(&made->matchers[i], text, strlen(text)) << i;
    }
    return bits;
}

static void what_matches_is_named(void **state)
{
    static const char letters[] = "abcxyz09:/torwdcnepmis ";
    struct made made;
    unsigned random = 1;

    (void)state;
    make(&made);
    for (int round = 0; round < 20000; round++) {
        char text[24];
        const size_t length = (random = random * 1103515245u + 12345u) >> 16 & 15;

        for (size_t i = 0; i < length; i++) {
            random = random * 1103515245u + 12345u;
            text[i] = letters[(random >> 16) % (sizeof letters - 1)];
        }
        text[length] = '\0';
        const unsigned found = matched(&made, text);

        assert_int_equal(named(&made.filter, text) & found, found);
        assert_int_equal(named_in_parts(&made.filter, text, length / 2), named(&made.filter, text));
    }
    drop(&made);
}

/* Else it filters nothing. Those that may match the empty text are always named. */
static void what_cannot_match_is_not_named(void **state)
{
    const unsigned always = 1u << 2 | 1u << 11;
    struct made made;

    (void)state;
    make(&made);
    assert_int_equal(named(&made.filter, ""), always);
    assert_int_equal(named(&made.filter, "a_b_c"), always);
    assert_int_equal(named(&made.filter, "elefants"), always);
    assert_int_equal(named(&made.filter, "abcdefgh"), always | 1u << 0 | 1u << 9);
    assert_int_equal(named(&made.filter, "adc"), always | 1u << 3);
    assert_int_equal(named(&made.filter, "adcd"), always); /* "a.c$" is not at its end */
    assert_int_equal(named(&made.filter, "p.py:7:forward"), always | 1u << 4);
    assert_int_equal(named(&made.filter, "p.py:7:forwards"), always);
    assert_int_equal(named(&made.filter, "site-packages/torch/optim/x.py:1:step"),
                     always | 1u << 1 | 1u << 5);
    drop(&made);
}

static void texts_with_all_bytes(void **state)
{
    struct made made;
    char text[256];

    (void)state;
    make(&made);
    for (int i = 0; i < 256; i++) {
        text[i] = (char)(255 - i);
    }
    struct tn_filter_place place = {.fitting = {0}};

    tn_filter_follow(&made.filter, &place, text, sizeof text);
    struct tn_filter_scan scan = tn_filter_scan_begin(&made.filter, &place);
    size_t number;

    assert_true(tn_filter_scan_next(&scan, &number));
    drop(&made);
}

static void without_host_memory(void **state)
{
    struct tn_matcher matcher;
    struct tn_matcher_filter filter;

    (void)state;
    assert_int_equal(tn_matcher_init(&matcher, "a"), TARN_OK);
    tn_matcher_filter_init(&filter);
    tarn_host_fail_nth(1);
    assert_false(tn_matcher_filter_add(&filter, &matcher));
    tarn_host_fail_nth(0);
    assert_int_equal(named(&filter, "a"), 0);
    assert_true(tn_matcher_filter_add(&filter, &matcher));
    assert_int_equal(named(&filter, "a"), 1);
    tn_matcher_filter_fini(&filter);
    tn_matcher_fini(&matcher);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_matches_is_named),
        cmocka_unit_test(what_cannot_match_is_not_named),
        cmocka_unit_test(texts_with_all_bytes),
        cmocka_unit_test(without_host_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
