/* SPDX-License-Identifier: MIT */
/* Searches against those of the C library, and expressions that it cannot bound. */
#include "support/test.h"

#include "base/matcher.h"
#include "tarn/host.h"

#include <regex.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    PATTERNS = 60000, /* a third of them are expressions */
    TEXTS = 8,
    PATTERN_MAX = 14,
    TEXT_MAX = 8
};

/* Both find it, or neither. */
static void same(const char *pattern, const regex_t *regex, const char *text)
{
    struct tn_matcher matcher;

    assert_int_equal(tn_matcher_init(&matcher, pattern), TARN_OK);
    const bool found = tn_matcher_finds(&matcher, text, strlen(text));

    tn_matcher_fini(&matcher);
    if (found != (regexec(regex, text, 0, NULL, 0) == 0)) {
        fail_msg("\"%s\" %s in \"%s\"", pattern, found ? "is" : "is not", text);
    }
}

static void same_as_library(const char *pattern, const char *text)
{
    regex_t regex;

    assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
    same(pattern, &regex, text);
    regfree(&regex);
}

static void chosen_ones(void **state)
{
    static const char *const patterns[] = {
        "",
        "abc",
        "^abc$",
        "a|b",
        "^(a|bc|)*$",
        "a{2,3}b",
        "^a{0,2}$",
        "^a{,2}$",
        "^a{2,}$",
        "^(ab){2}$",
        "^(a{1,2}){2}$",
        "a{0}b",
        "(a*)*b",
        "(a+)+$",
        "x*",
        "[a-c]+[^a-c]",
        "[]a]",
        "[^]a]",
        "[a-]",
        "[[:alpha:]_]+[[:digit:]]",
        "[[.-.]]",
        "[[=a=]]",
        "\\.py$",
        "\\(a\\)",
        "a\\|b",
        "\\w+\\W\\s?\\S",
        "a)",
        "()",
        "(){3}",
        "((){2}){3}a",
        "(|a)b",
        "(^a|b$)",
        "a.c",
        "[[:space:][:punct:]]",
        "^(((a))|b)+$",
        "(a|ab)(c|bcd)(d*)$",
        "a??",
        "a**",
        "(a?){3}$",
        "forward|backward",
        "[0-9]{1,3}(\\.[0-9]{1,3}){3}",
        "/torch/(nn|optim)/[a-z]+\\.py",
        "\\<aabaabaab",
        /* Plain ends, and what only looks like one. */
        "(for|back)ward$",
        "a?b$",
        "ab?$",
        "(ab$)+",
        "(a|b$)",
        "(xa|b)c$|d$",
        "[ab]c$",
        "a{2}b{2}$",
        "x$b$",
        "^b$",
        /* Classes of one element, as bounds of ranges too. */
        "[[.a.]-[.c.]]+$",
        "[x[=b=]y]",
        "[[:digit:]-]",
        /* An end that is longer than what is kept of it; edges of words from both sides. */
        "abcdefghijklmnopqrstuvwxyz0123456789$",
        "a\\<",
        "\\>b",
        "c\\>",
        "\\<d",
    };
    static const char *const texts[] = {
        "",
        "a",
        "aa",
        "aaa",
        "aaaa",
        "b",
        "ab",
        "abc",
        "c",
        "xabcx",
        "abab",
        "train.py",
        "a)",
        "(a)",
        "a|b",
        "]",
        "-",
        "a1",
        "_ 9",
        "abcd",
        "10.0.0.255",
        "a\nc",
        "forward",
        "x.pyc",
        "bcb",
        "aXbYcZ",
        "a b\tc-d",
        "{",
        "\xc3\xa4\xff",
        "a{2,3}b",
        "\\",
        "^$",
        /* What begins like a match, within what does. */
        "/torch/torch/nn/adam.py",
        "/torch/nn//torch/optim/a.py",
        "/torch/n/a.py",
        "aabaabaabaab",
        "aabaabaa aabaabaab",
        "xaabaabaab",
        "backward",
        "forward(",
        "aabb",
        "xac",
        "xd",
        "xabcdefghijklmnopqrstuvwxyz0123456789",
        "abcdefghijklmnopqrstuvwxyz012345678",
        "a c d",
    };

    (void)state;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        for (size_t j = 0; j < sizeof texts / sizeof *texts; j++) {
            same_as_library(patterns[i], texts[j]);
        }
    }
}

/* The same numbers in every run. */
static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static void text_fill(uint32_t *seed, const char *letters, size_t most, char *text)
{
    const size_t length = next_random(seed) % (most + 1);

    for (size_t i = 0; i < length; i++) {
        text[i] = letters[next_random(seed) % strlen(letters)];
    }
    text[length] = '\0';
}

static bool refers_back(const char *pattern)
{
    const char *at = pattern;

    while ((at = strchr(at, '\\')) != NULL && !(at[1] >= '1' && at[1] <= '9')) {
        at += 1 + (at[1] != '\0');
    }
    return at != NULL;
}

static void random_ones(void **state)
{
    uint32_t seed = 12345;
    size_t compared = 0;

    (void)state;
    for (size_t i = 0; i < PATTERNS; i++) {
        char pattern[PATTERN_MAX + 1];
        char text[TEXT_MAX + 1];
        regex_t regex;

        text_fill(&seed, "aaabbc()|*+?^$.{},012[]-^\\", PATTERN_MAX, pattern);
        if (refers_back(pattern) || regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB) != 0) {
            continue;
        }
        for (int j = 0; j < TEXTS; j++) {
            text_fill(&seed, "aaabbc(]-^\\", TEXT_MAX, text);
            same(pattern, &regex, text);
        }
        compared++;
        regfree(&regex);
    }
    assert_true(compared > PATTERNS / 10);
}

static void words(void **state)
{
    static const struct {
        const char *pattern, *text;
        bool found;
    } rows[] = {
        {"\\<step\\>", "train step", true},
        {"\\<step\\>", "train_step", false},
        {"\\bstep", "a.step", true},
        {"\\bstep", "a_step", false},
        {"st\\Bep", "step", true},
        {"\\Bstep", "step", false},
        {"\\`a", "ab", true},
        {"\\`b", "ab", false},
        {"b\\'", "ab", true},
        {"a\\'", "ab", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tn_matcher matcher;

        assert_int_equal(tn_matcher_init(&matcher, rows[i].pattern), TARN_OK);
        assert_int_equal(tn_matcher_finds(&matcher, rows[i].text, strlen(rows[i].text)),
                         rows[i].found);
        tn_matcher_fini(&matcher);
    }
}

/* For some of these the C library's search does not end. No clock is asked: the test itself would
 * not end. */
static void what_cannot_be_bounded_elsewhere(void **state)
{
    static const char *const patterns[] = {
        "(a*)*b",
        "(a|b)*a(a|b){300}c",
        "((a?){1,40}){1,40}b",
        "(x+x+)+y",
        "(a{1,255}){1,15}b",
        "(.*.*.*.*){200}c",
        "(a?){1990}a{1990}c",
        "a.{3900}c",
    };
    char text[4097];
    uint32_t seed = 1;

    (void)state;
    for (size_t i = 0; i < sizeof text - 1; i++) {
        text[i] = "ab"[next_random(&seed) % 2];
    }
    text[sizeof text - 1] = '\0';
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        struct tn_matcher matcher;
        const bool found = i == 0 || i == 2 || i == 4;

        assert_int_equal(tn_matcher_init(&matcher, patterns[i]), TARN_OK);
        assert_int_equal(tn_matcher_finds(&matcher, text, strlen(text)), found);
        tn_matcher_fini(&matcher);
    }
}

static void too_many_operations(void **state)
{
    struct tn_matcher matcher;
    char deep[TN_MATCHER_DEPTH_MAX + 2];

    (void)state;
    assert_int_equal(tn_matcher_init(&matcher, "((a{255}){255}){255}"), TARN_ERR_LIMIT);
    assert_int_equal(tn_matcher_init(&matcher, "a{0,8192}"), TARN_ERR_LIMIT);
    assert_int_equal(tn_matcher_init(&matcher, "a{99999999999999999999}"), TARN_ERR_LIMIT);
    memset(deep, '(', sizeof deep - 1);
    deep[sizeof deep - 1] = '\0';
    assert_int_equal(tn_matcher_init(&matcher, deep), TARN_ERR_LIMIT);
}

/* Each bracket has a set of its own, of which there can be as many as operations. */
static void too_many_sets(void **state)
{
    const size_t count = TN_MATCHER_OPS_MAX + 1;
    const size_t fits = 100;
    char *text = malloc(4 * count + 1);
    struct tn_matcher matcher;

    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < count; i++) {
        memcpy(text + 4 * i, "[ab]", 5);
    }
    assert_int_equal(tn_matcher_init(&matcher, text), TARN_ERR_LIMIT);
    text[4 * fits] = '\0';
    assert_int_equal(tn_matcher_init(&matcher, text), TARN_OK);
    assert_false(tn_matcher_finds(&matcher, text, 4 * fits));
    tn_matcher_fini(&matcher);
    free(text);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* What the C library refuses is read nevertheless, and ends where it ends. */
static void what_is_cut_or_odd(void **state)
{
    static const struct {
        const char *pattern, *text;
        bool found;
    } rows[] = {
        {"x(a", "xa", true}, {"x(a", "xb", false},  {"((a|b", "b", true}, {"[a", "a", true},
        {"[", "a", false},   {"[^", "a", true},     {"[a-", "-", true},   {"[[", "[", true},
        {"[[", "a", false},  {"\\", "a", false},    {"*", "*", true},     {"*", "a", false},
        {"^+a", "+a", true}, {"(?", "?", true},     {"{2}", "{2}", true}, {"{2}", "2", false},
        {"|*b", "", true},   {"x{2,*", "xx", true}, {"x{2", "xx", true},  {"x{2", "x", false},
    };
    struct tn_matcher matcher;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(tn_matcher_init(&matcher, rows[i].pattern), TARN_OK);
        if (tn_matcher_finds(&matcher, rows[i].text, strlen(rows[i].text)) != rows[i].found) {
            fail_msg("\"%s\" in \"%s\"", rows[i].pattern, rows[i].text);
        }
        tn_matcher_fini(&matcher);
    }
    assert_int_equal(tn_matcher_init(&matcher, "a{3,2}"), TARN_ERR_LIMIT);
    assert_int_equal(tn_matcher_init(&matcher, "(a{3,2}"), TARN_ERR_LIMIT);
}

static void every_allocation_fails_once(void **state)
{
    enum tarn_status status = TARN_ERR_HOST_MEMORY;
    struct tn_matcher matcher;
    uint64_t n = 0;

    (void)state;
    while (status == TARN_ERR_HOST_MEMORY) {
        tarn_host_fail_nth(++n);
        status = tn_matcher_init(&matcher, "(ab{0,300}|c{1,300}){2}d*");
        tarn_host_fail_nth(0);
    }
    assert_int_equal(status, TARN_OK);
    assert_true(n > 3);
    tn_matcher_fini(&matcher);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void without_host_memory(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 3; n++) {
        struct tn_matcher matcher;

        tarn_host_fail_nth(n);
        assert_int_equal(tn_matcher_init(&matcher, "[ab]"), TARN_ERR_HOST_MEMORY);
        tarn_host_fail_nth(0);
    }
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chosen_ones),
        cmocka_unit_test(random_ones),
        cmocka_unit_test(words),
        cmocka_unit_test(what_cannot_be_bounded_elsewhere),
        cmocka_unit_test(too_many_operations),
        cmocka_unit_test(too_many_sets),
        cmocka_unit_test(without_host_memory),
        cmocka_unit_test(what_is_cut_or_odd),
        cmocka_unit_test(every_allocation_fails_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
