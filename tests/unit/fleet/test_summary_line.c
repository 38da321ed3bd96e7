/* SPDX-License-Identifier: MIT */
/* Numbers of stacks, and lines that have them. */
#include "support/test.h"

#include "fleet/fleet.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void numbers_have_sixteen_lower_digits(void **state)
{
    static const struct {
        const char *text;
        bool good;
    } cases[] = {
        {"0123456789abcdef", true},  {"0123456789abcde", false},  {"0123456789abcdef0", false},
        {"0123456789ABCDEF", false}, {"0123456789abcde ", false}, {"0123456789abcde/", false},
        {"0123456789abcde:", false}, {"0123456789abcde`", false}, {"0123456789abcdeg", false},
        {"-123456789abcdef", false},
    };
    uint64_t number;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        number = 5;
        assert_int_equal(tn_hex_read(cases[i].text, strlen(cases[i].text), &number), cases[i].good);
        assert_int_equal(number, cases[i].good ? 0x0123456789abcdef : 5);
    }
}

/* 0 is that of no stack, so bytes whose hash it is have another: bytes of which the second word is
 * what the first one leaves. */
static void no_stack_has_the_number_0(void **state)
{
    char frames[16] = "[[\"a\",\"";
    char line[128];
    const char *found;
    size_t length;
    uint64_t id;
    const uint64_t left = tn_stable_hash(TN_STABLE_HASH_BEGIN, frames, sizeof left);

    (void)state;
    memcpy(frames + sizeof left, &left, sizeof left);
    assert_int_equal(tn_stable_hash(TN_STABLE_HASH_BEGIN, frames, sizeof frames), 0);
    assert_int_equal(tn_stack_line_id(frames, sizeof frames), 1);
    int size = snprintf(line, sizeof line, "%s%016d\",\"frames\":", TN_SUMMARY_STACK, 1);

    memcpy(line + size, frames, sizeof frames);
    size += (int)sizeof frames;
    line[size++] = '}';
    assert_true(tn_stack_line_check(line, (size_t)size, &id, &found, &length));
    assert_int_equal(id, 1);
    assert_int_equal(length, sizeof frames);
    assert_memory_equal(found, frames, sizeof frames);
}

/* A line without each of its parts, and the whole. */
static void lines_of_stacks_are_checked(void **state)
{
    char line[128];
    const char *found;
    size_t length;
    uint64_t id;
    const int size = snprintf(line, sizeof line, "%s%016" PRIx64 "\",\"frames\":[[1]]}",
                              TN_SUMMARY_STACK, tn_stack_line_id("[[1]]", 5));

    (void)state;
    assert_true(tn_stack_line_check(line, (size_t)size, &id, &found, &length));
    assert_int_equal(length, 5);
    for (size_t i = 0; i < (size_t)size; i++) {
        const char before = line[i];

        line[i] ^= 1; /* the head, a digit, the middle, the frames, the brace */
        assert_false(tn_stack_line_check(line, (size_t)size, &id, &found, &length));
        line[i] = before;
        assert_false(tn_stack_line_check(line, i, &id, &found, &length));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_have_sixteen_lower_digits),
        cmocka_unit_test(no_stack_has_the_number_0),
        cmocka_unit_test(lines_of_stacks_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
