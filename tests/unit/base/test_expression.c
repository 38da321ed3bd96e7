/* SPDX-License-Identifier: MIT */
/* Which regular expressions are compiled, and which are too large. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "support/failing.h"
#include "support/test.h"

#include "base/expression.h"
#include "tarn/host.h"

#include <regex.h>

#include <stdio.h>
#include <string.h>

FAILING(int, REG_ESPACE, regcomp, (regex_t * regex, const char *text, int flags),
        (regex, text, flags))

static const char *refusal(const char *text)
{
    static char reason[TN_EXPRESSION_REASON_MAX];
    struct tn_matcher matcher;

    (void)snprintf(reason, sizeof reason, "taken");
    if (tn_expression_init(&matcher, text, reason) == TARN_OK) {
        tn_matcher_fini(&matcher);
    }
    return reason;
}

static void matches_what_it_says(void **state)
{
    char reason[TN_EXPRESSION_REASON_MAX];
    struct tn_matcher matcher;

    (void)state;
    assert_int_equal(tn_expression_init(&matcher, "^(a|[[:digit:]]{2,3})+\\)$", reason), TARN_OK);
    assert_true(tn_matcher_finds(&matcher, "a12a)", 5));
    assert_false(tn_matcher_finds(&matcher, "a1)", 3));
    tn_matcher_fini(&matcher);
}

static void what_is_written_out_is_bounded(void **state)
{
    static const char *const large[] = {
        "((a{255}){255}){255}",
        "a{4001}",
        "a{99999999999999999999}",
        "(ab){2,2000}",
        "a{64}{64}",
        "(a{4000}|b)",
        "x{4000,}",
        "[[:alpha:]]{4001}",
        "(a{0,4001})*",
        "a+++++++++++++",
        "\\({4001}",
        "(a{0,2000}){0,2}",
    };
    static const char *const small[] = {
        "a{3999}",      "[]{4001}",    "[^]{9999}]", "[[:alpha:]{9999}]",
        "(a{60}){60}",  "\\{4001}",    "a|b|c*",     "a???????????????",
        "a+++++++++++", "[[.{.]9999]", "[[a]{3}",    "[[=a=]]",
        "[[:a]",        "a{1,2x",
    };

    (void)state;
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        if (!strstr(refusal(large[i]), "repetitions expanded")) {
            fail_msg("%s: %s", large[i], refusal(large[i]));
        }
    }
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
        assert_null(strstr(refusal(small[i]), "repetitions expanded"));
    }
}

/* Each by itself changes nothing, but the C library takes time in the square of their number. */
static void repetitions_are_counted_too(void **state)
{
    static const char *const parts[] = {"{1}", "{0,1}", "?", "{0}"};
    static char text[200000];

    (void)state;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const size_t length = strlen(parts[i]);

        text[0] = 'a';
        for (size_t used = 1; used + length < sizeof text; used += length) {
            memcpy(text + used, parts[i], length + 1);
        }
        assert_non_null(strstr(refusal(text), "repetitions expanded"));
        text[1 + 3000 * length] = '\0';
        assert_null(strstr(refusal(text), "repetitions expanded"));
    }
}

static void without_memory_it_says_so(void **state)
{
    char reason[TN_EXPRESSION_REASON_MAX] = "";
    enum tarn_status status = TARN_ERR_HOST_MEMORY;
    struct tn_matcher matcher;
    uint64_t n = 0;

    (void)state;
    while (status == TARN_ERR_HOST_MEMORY) {
        tarn_host_fail_nth(++n);
        status = tn_expression_init(&matcher, "([ab]c{2,40}|d)+", reason);
        tarn_host_fail_nth(0);
        assert_string_not_equal(status ? reason : "none", "");
        reason[0] = '\0';
    }
    assert_int_equal(status, TARN_OK);
    tn_matcher_fini(&matcher);
    fail_calls("regcomp", 0, 1, ENOMEM);
    assert_int_equal(tn_expression_init(&matcher, "ab", reason), TARN_ERR_HOST_MEMORY);
    assert_true(fail_none());
    assert_string_not_equal(reason, "");
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void parentheses_are_bounded(void **state)
{
    char text[2 * 101 + 2];

    (void)state;
    memset(text, '(', 101);
    text[101] = 'a';
    memset(text + 102, ')', 101);
    text[sizeof text - 1] = '\0';
    assert_non_null(strstr(refusal(text), "parentheses"));
    text[sizeof text - 2] = '\0'; /* one less of each */
    assert_string_equal(refusal(text + 1), "taken");
    assert_string_equal(refusal("(a)(b)(c))"), refusal("(a)(b)(c))")); /* more closed than open */
}

static void what_is_none_is_refused_with_the_reason(void **state)
{
    static const char *const none[] = {"(", "[a", "a{2,1}", "*{", "[[:what:]]", "\\"};

    (void)state;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_string_not_equal(refusal(none[i]), "taken");
        assert_true(strlen(refusal(none[i])) > 5);
    }
}

/* The C library alone takes years for some of these. */
static void loops_in_loops_are_compiled_at_once(void **state)
{
    static const char *const parts[] = {"a???+",      "a*",      "(a*)+",
                                        "((a?b?)*)*", "a{0,3}+", "a{1}{2,}"};
    char text[2048];

    (void)state;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        text[0] = '\0';
        for (size_t k = 0; k < 60; k++) {
            (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s", parts[i]);
        }
        assert_string_equal(refusal(text), "taken");
    }
}

static void references_back_are_refused(void **state)
{
    (void)state;
    assert_non_null(strstr(refusal("(a)\\1"), "back-reference"));
    assert_non_null(strstr(refusal("((a*)*)\\9b"), "back-reference"));
    assert_string_equal(refusal("(a)\\\\1"), "taken"); /* a backslash, then a digit */
    assert_string_equal(refusal("(a)[\\1]"), "taken");
    assert_string_equal(refusal("a\\0"), "taken");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_what_it_says),
        cmocka_unit_test(what_is_written_out_is_bounded),
        cmocka_unit_test(repetitions_are_counted_too),
        cmocka_unit_test(without_memory_it_says_so),
        cmocka_unit_test(parentheses_are_bounded),
        cmocka_unit_test(loops_in_loops_are_compiled_at_once),
        cmocka_unit_test(references_back_are_refused),
        cmocka_unit_test(what_is_none_is_refused_with_the_reason),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
