/* SPDX-License-Identifier: MIT */
/* What is an expression and what is none; what it means is tested in test_where_view.c. */
#include "support/test.h"

#include "analysis/where.h"
#include "tarn/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expressions_are_read(void **state)
{
    static const struct {
        const char *text;
        size_t terms;
    } rows[] = {
        {"size>=64MiB", 1},
        {" size == 1.5GB ", 1},
        {"size<0x400||size > 1KiB&&size!=7", 3},
        {"!!(!freed)&&before", 2},
        {"lifetime>2s && age < 1.25min && start >= 10 && end <= 3h", 4},
        {"address==0x7f00 && segment=1 && stream!=0 && device == 0", 4},
        {"pool==default || pool != private || pool = 1,0", 3},
        {"frame ~ 'a|b(c)' || frame !~ \"quo\\\"te\"", 2},
        {"file==adam.py && function==<module> && annotation=~step#3", 3},
        {"category == \"parameter (by lifetime)\" && metadata=m && compile=0/0", 3},
        {"((((((((((((((((((((((((((((((((freed))))))))))))))))))))))))))))))))", 1},
        {"freed\n\t", 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tarn_where *where;
        struct tarn_error error;

        if (tarn_where_parse(rows[i].text, &where, &error)) {
            fail_msg("%s: %s", rows[i].text, error.text);
        }
        assert_int_equal(where->terms.count, rows[i].terms);
        assert_string_equal(where->text, rows[i].text);
        tarn_where_destroy(where);
    }
    tarn_where_destroy(NULL);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static const struct tn_where_term *term_of(const struct tarn_where *where, size_t number)
{
    return (const struct tn_where_term *)where->terms.items + number;
}

static void numbers_have_bases_and_units(void **state)
{
    static const struct {
        const char *text;
        uint64_t number;
        bool is_time;
    } rows[] = {
        {"size==0", 0, false},
        {"size==18446744073709551615", UINT64_MAX, false},
        {"size==0xffffffffffffffff", UINT64_MAX, false},
        {"size==0X1F", 31, false},
        {"size==0x0aAbBcCdDeEfF", 0xaabbccddeeff, false},
        {"size==0x09", 9, false},
        {"size==7B", 7, false},
        {"size==7b", 7, false},
        {"size==1KiB", 1024, false},
        {"size==2k", 2048, false},
        {"size==3kB", 3000, false},
        {"size==1MiB", 1 << 20, false},
        {"size==1M", 1 << 20, false},
        {"size==1MB", 1000000, false},
        {"size==1GiB", 1 << 30, false},
        {"size==1G", 1 << 30, false},
        {"size==1GB", 1000000000, false},
        {"size==1TiB", (uint64_t)1 << 40, false},
        {"size==1T", (uint64_t)1 << 40, false},
        {"size==1TB", 1000000000000, false},
        {"size==16777215TiB", (uint64_t)16777215 << 40, false},
        {"size==1.5KiB", 1536, false},
        {"size==0.001KB", 1, false},
        {"size==0.0004KB", 0, false}, /* rounded to the nearest byte */
        {"size==0.0005KB", 1, false},
        {"size==1.123456789GB", 1123456789, false},
        {"lifetime==5", 5, false}, /* events */
        {"lifetime==5us", 5, true},
        {"lifetime==5ms", 5000, true},
        {"lifetime==5s", 5000000, true},
        {"lifetime==2min", 120000000, true},
        {"lifetime==2h", 7200000000, true},
        {"lifetime==0.5h", 1800000000, true},
        {"stream==0x7f", 127, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tarn_where *where;
        struct tarn_error error;

        if (tarn_where_parse(rows[i].text, &where, &error)) {
            fail_msg("%s: %s", rows[i].text, error.text);
        }
        if (term_of(where, 0)->number != rows[i].number ||
            term_of(where, 0)->is_time != rows[i].is_time) {
            fail_msg("%s: %llu", rows[i].text, (unsigned long long)term_of(where, 0)->number);
        }
        assert_int_equal(where->uses_time, rows[i].is_time);
        tarn_where_destroy(where);
    }
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* Also where the last of several numbers is no time. */
static void one_time_is_enough_to_need_times(void **state)
{
    struct tarn_where *where;

    (void)state;
    assert_int_equal(tarn_where_parse("lifetime > 2s && lifetime > 7 && size > 3", &where, NULL),
                     TARN_OK);
    assert_true(where->uses_time);
    tarn_where_destroy(where);
    assert_int_equal(tarn_where_parse("lifetime > 7 && lifetime > 2s", &where, NULL), TARN_OK);
    assert_true(where->uses_time);
    tarn_where_destroy(where);
}

/* A number without a unit has none, whatever unit the one before it has. */
static void each_number_has_its_own_unit(void **state)
{
    struct tarn_where *where;

    (void)state;
    assert_int_equal(tarn_where_parse("lifetime > 2s && size > 0x10 && stream == 7", &where, NULL),
                     TARN_OK);
    assert_true(term_of(where, 0)->is_time);
    assert_int_equal(term_of(where, 1)->number, 16);
    assert_false(term_of(where, 1)->is_time);
    assert_false(term_of(where, 2)->is_time);
    tarn_where_destroy(where);
}

static void pools_have_two_numbers(void **state)
{
    static const struct {
        const char *text;
        uint64_t id[2];
    } rows[] = {{"pool==1,0", {1, 0}}, {"pool==0,12", {0, 12}}, {"pool==34,56", {34, 56}}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tarn_where *where;

        assert_int_equal(tarn_where_parse(rows[i].text, &where, NULL), TARN_OK);
        assert_int_equal(term_of(where, 0)->pools, TARN_POOLS_ONE);
        assert_memory_equal(term_of(where, 0)->pool.id, rows[i].id, sizeof rows[i].id);
        tarn_where_destroy(where);
    }
}

static void texts_end_where_they_should(void **state)
{
    static const struct {
        const char *text;
        const char *wanted;
    } rows[] = {
        {"metadata==plain", "plain"},           {"metadata==plain&&freed", "plain"},
        {"metadata==plain||freed", "plain"},    {"(metadata==plain)", "plain"},
        {"metadata==plain\t", "plain"},         {"metadata==plain\n", "plain"},
        {"metadata=='a \"b\" c'", "a \"b\" c"}, {"metadata==\"a 'b' c\"", "a 'b' c"},
        {"metadata==\"a \\\" b\"", "a \" b"},   {"metadata=='a \\' b'", "a ' b"},
        {"metadata=='a \\\" b'", "a \\\" b"}, /* not this quote: the backslash stays */
        {"metadata=='a\\nb'", "a\\nb"},         {"metadata==\"\"", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tarn_where *where;
        struct tarn_error error;

        if (tarn_where_parse(rows[i].text, &where, &error)) {
            fail_msg("%s: %s", rows[i].text, error.text);
        }
        assert_string_equal(term_of(where, 0)->text, rows[i].wanted);
        tarn_where_destroy(where);
    }
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void what_is_wrong_is_said_with_its_column(void **state)
{
    static const struct {
        const char *text;
        const char *said;
    } rows[] = {
        {"", "column 1: expected a field, ! or (, not the end"},
        {"  ", "column 3: expected a field, ! or (, not the end"},
        {"sizze>4",
         "column 1: \"sizze\" is not a field (did you mean \"size\"?); allowed: size, lifetime, "
         "age, start, end, address, segment, stream, device, pool, category, "
         "annotation, metadata, compile, frame, function, file, freed, before"},
        {"size", "column 5: expected ==, !=, <, <=, > or >=, not the end"},
        {"size>", "column 6: expected a size (512, 64MiB), not the end"},
        {"size>4s", "column 6: expected a size (512, 64MiB), not \"4s\""},
        {"size>4x", "column 6: expected a size (512, 64MiB), not \"4x\""},
        {"size>1.5", "column 6: expected a size (512, 64MiB), not \"1.5\""},
        {"size>1.MiB", "column 6: expected a size (512, 64MiB), not \"1.MiB\""},
        {"size>0x", "column 6: expected a size (512, 64MiB), not \"0x\""},
        {"size>-1", "column 6: expected a size (512, 64MiB), not \"-1\""},
        {"size>18446744073709551616",
         "column 6: expected a size (512, 64MiB), not \"18446744073709551616\""},
        {"size>17000000TiB", "column 6: expected a size (512, 64MiB), not \"17000000TiB\""},
        {"size>16777215.9999999999TiB",
         "column 6: expected a size (512, 64MiB), not \"16777215.9999999999T\""},
        {"size ~ 4", "column 6: expected ==, !=, <, <=, > or >=, not \"~ 4\""},
        {"size>18446744073709551600.9999999999B",
         "column 6: expected a size (512, 64MiB), not \"18446744073709551600\""},
        {"size>18446744073709551615.9B",
         "column 6: expected a size (512, 64MiB), not \"18446744073709551615\""},
        {"size>28446744073709551615",
         "column 6: expected a size (512, 64MiB), not \"28446744073709551615\""},
        {"size>0x1ffffffffffffffff",
         "column 6: expected a size (512, 64MiB), not \"0x1ffffffffffffffff\""},
        {"size>0x7g", "column 6: expected a size (512, 64MiB), not \"0x7g\""},
        {"size>1KiB7", "column 6: expected a size (512, 64MiB), not \"1KiB7\""},
        {"size>1KiB.5", "column 6: expected a size (512, 64MiB), not \"1KiB.5\""},
        {"pool==privates", "column 7: expected default, private, or the number of a pool (1,0), "
                           "not \"privates\""},
        {"pool==privat_", "column 7: expected default, private, or the number of a pool (1,0), "
                          "not \"privat_\""},
        {"pool==1,", "column 7: expected default, private, or the number of a pool (1,0), not "
                     "\"1,\""},
        {"pool==1,2x", "column 7: expected default, private, or the number of a pool (1,0), not "
                       "\"1,2x\""},
        {"si7e>4",
         "column 1: \"si7e\" is not a field (did you mean \"size\"?); allowed: size, lifetime, "
         "age, start, end, address, segment, stream, device, pool, category, "
         "annotation, metadata, compile, frame, function, file, freed, before"},
        {"se>4", /* of fields that are equally near, the first */
         "column 1: \"se\" is not a field (did you mean \"size\"?); allowed: size, lifetime, "
         "age, start, end, address, segment, stream, device, pool, category, "
         "annotation, metadata, compile, frame, function, file, freed, before"},
        {"sizzzze>4", /* none is near */
         "column 1: \"sizzzze\" is not a field; allowed: size, lifetime, "
         "age, start, end, address, segment, stream, device, pool, category, "
         "annotation, metadata, compile, frame, function, file, freed, before"},
        {"7size>4", "column 1: expected a field, ! or (, not \"7size>4\""},
        {"size>4A", "column 6: expected a size (512, 64MiB), not \"4A\""},
        {"size>4Z", "column 6: expected a size (512, 64MiB), not \"4Z\""},
        {"size>7x5", "column 6: expected a size (512, 64MiB), not \"7x5\""},
        {"pool==,5", "column 7: expected default, private, or the number of a pool (1,0), not "
                     "\",5\""},
        {"pool==1;5", "column 7: expected default, private, or the number of a pool (1,0), not "
                      "\"1;5\""},
        {"pool==1,5a", "column 7: expected default, private, or the number of a pool (1,0), not "
                       "\"1,5a\""},
        {"stream==1KiB", "column 9: expected a number (7, 0x7f00), not \"1KiB\""},
        {"lifetime>1KiB",
         "column 10: expected a number of events (100) or a time (2s, 300ms), not \"1KiB\""},
        {"pool<1,0", "column 5: expected == or !=, not \"<1,0\""},
        {"pool==1", "column 7: expected default, private, or the number of a pool (1,0), not "
                    "\"1\""},
        {"pool==mine", "column 7: expected default, private, or the number of a pool (1,0), not "
                       "\"mine\""},
        {"frame<x", "column 6: expected ==, !=, ~ or !~, not \"<x\""},
        {"frame~", "column 7: expected a text (\"attention\"), not the end"},
        {"frame~)", "column 7: expected a text (\"attention\"), not \")\""},
        {"frame~'abc", "column 11: expected the quote that ends the text, not the end"},
        {"frame~'('", "column 7: \"(\" is not a regular expression: Unmatched ( or \\("},
        {"(freed", "column 7: expected &&, || or ), not the end"},
        {"freed)", "column 6: expected &&, || or the end, not \")\""},
        {"freed before", "column 7: expected &&, || or the end, not \"before\""},
        {"freed & before", "column 7: expected &&, || or the end, not \"& before\""},
        {"freed &&", "column 9: expected a field, ! or (, not the end"},
        {"|| freed", "column 1: expected a field, ! or (, not \"|| freed\""},
        {"()", "column 2: expected a field, ! or (, not \")\""},
        {"a_word_that_is_far_too_long_to_be_the_name_of_any_field_or_of_anything_else==1",
         "column 1: \"a_word_that_is_far_too_long_to_be_the_na\" is not a field; allowed: size, "
         "lifetime, "
         "age, start, end, address, segment, stream, device, pool, category, annotation, "
         "metadata, compile, frame, function, file, freed, before"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tarn_where *where;
        struct tarn_error error;
        const size_t before = strlen("column ");

        assert_int_equal(tarn_where_parse(rows[i].text, &where, &error), TARN_ERR_INVALID_ARGUMENT);
        assert_null(where);
        assert_string_equal(error.text, rows[i].said);
        assert_int_equal(strncmp(error.text, "column ", before), 0);
        assert_int_equal(error.offset, strtoll(error.text + before, NULL, 10) - 1);
        assert_int_equal(tarn_where_parse(rows[i].text, &where, NULL), TARN_ERR_INVALID_ARGUMENT);
    }
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void expect_limit(const char *text, const char *said)
{
    struct tarn_where *where;
    struct tarn_error error;

    assert_int_equal(tarn_where_parse(text, &where, &error), TARN_ERR_LIMIT);
    assert_string_equal(error.text, said);
    assert_null(where);
}

static void limits_are_kept(void **state)
{
    static char text[TN_WHERE_TEXT_MAX + 2];
    struct tarn_where *where;

    (void)state;
    memset(text, ' ', sizeof text - 1);
    expect_limit(text, "an expression of more than 4096 bytes");
    memset(text, '(', TN_WHERE_DEPTH_MAX + 1);
    text[TN_WHERE_DEPTH_MAX + 1] = '\0';
    expect_limit(text, "column 33: more than 32 parentheses in parentheses");
    size_t used = 0;

    for (size_t i = 0; i < TN_WHERE_TERMS_MAX; i++) {
        used += (size_t)snprintf(text + used, 10, "%s", i == 0 ? "freed" : " || freed");
    }
    assert_int_equal(tarn_where_parse(text, &where, NULL), TARN_OK);
    tarn_where_destroy(where);
    (void)snprintf(text + used, 8, "&&freed");
    expect_limit(text, "column 2303: more than 256 comparisons");
    used = 0;
    for (size_t i = 0; i <= TN_WHERE_DEPTH_MAX; i++) { /* side by side, none is in another */
        used += (size_t)snprintf(text + used, 12, "%s", i == 0 ? "(freed)" : " || (freed)");
    }
    assert_int_equal(tarn_where_parse(text, &where, NULL), TARN_OK);
    tarn_where_destroy(where);
    memset(text, '!', TN_WHERE_TEXT_MAX); /* no deeper for that */
    (void)snprintf(text + TN_WHERE_TEXT_MAX - 5, 6, "freed");
    assert_int_equal(tarn_where_parse(text, &where, NULL), TARN_OK);
    tarn_where_destroy(where);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void failures_leave_nothing(void **state)
{
    enum tarn_status status = TARN_ERR_HOST_MEMORY;
    uint64_t n = 0;

    (void)state;
    while (status) {
        struct tarn_where *where;
        struct tarn_error error;

        tarn_host_fail_nth(++n);
        status =
            tarn_where_parse("!(frame ~ 'a.*b' && size != 7) || metadata == \"x\"", &where, &error);
        tarn_host_fail_nth(0);
        assert_true(status == TARN_OK || status == TARN_ERR_HOST_MEMORY);
        assert_int_equal(where != NULL, status == TARN_OK);
        tarn_where_destroy(where);
        assert_int_equal(tarn_host_get_usage().live_bytes, 0);
    }
    assert_true(n > 4);
}

/* Each host allocation of parsing a text fails in turn, and is reported; returns how many. */
static uint64_t fails_cleanly(const char *text)
{
    enum tarn_status status = TARN_ERR_HOST_MEMORY;
    uint64_t n = 0;

    while (status) {
        struct tarn_where *where;
        const uint64_t calls = tarn_host_get_usage().alloc_calls;

        tarn_host_fail_nth(++n);
        status = tarn_where_parse(text, &where, NULL);
        tarn_host_fail_nth(0);
        assert_int_equal(
            status, tarn_host_get_usage().alloc_calls - calls < n ? TARN_OK : TARN_ERR_HOST_MEMORY);
        tarn_where_destroy(where);
    }
    return n - 1;
}

/* Lists of every length are full at some point, also where a term is to be negated. */
static void fails_cleanly_at_any_length(const char *first, const char *last)
{
    char text[1024];

    (void)snprintf(text, sizeof text, "%s", first);
    for (int terms = 1; terms <= 40; terms++) {
        const size_t used = strlen(text);

        (void)snprintf(text + used, sizeof text - used, "%s", last);
        (void)fails_cleanly(text);
        (void)snprintf(text + used, sizeof text - used, "size == 7 && ");
    }
}

static void negations_fail_cleanly_at_any_length(void **state)
{
    (void)state;
    fails_cleanly_at_any_length("", "size != 7");
    fails_cleanly_at_any_length("size != 7 && ", "size != 7"); /* one step more */
    fails_cleanly_at_any_length("", "!freed");
    fails_cleanly_at_any_length("size != 7 && ", "!freed");
}

/* Texts of more than there is room for: in quotes, and a word. */
static void long_texts_fail_cleanly(void **state)
{
    static const char *const quotes[] = {"\"", ""};
    char text[TN_WHERE_TEXT_MAX + 1];

    (void)state;
    for (size_t i = 0; i < sizeof quotes / sizeof *quotes; i++) {
        (void)snprintf(text, sizeof text, "freed && metadata == %s%03000d%s", quotes[i], 0,
                       quotes[i]);
        assert_true(fails_cleanly(text) > 2);
    }
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expressions_are_read),
        cmocka_unit_test(numbers_have_bases_and_units),
        cmocka_unit_test(one_time_is_enough_to_need_times),
        cmocka_unit_test(each_number_has_its_own_unit),
        cmocka_unit_test(pools_have_two_numbers),
        cmocka_unit_test(texts_end_where_they_should),
        cmocka_unit_test(what_is_wrong_is_said_with_its_column),
        cmocka_unit_test(limits_are_kept),
        cmocka_unit_test(failures_leave_nothing),
        cmocka_unit_test(negations_fail_cleanly_at_any_length),
        cmocka_unit_test(long_texts_fail_cleanly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
