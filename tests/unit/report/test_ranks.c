/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "report/name_table.h"
#include "report/ranks.h"
#include "tarn/host.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    ALIKE = 20
};

static void rank_add(struct tn_ranks *ranks, uint64_t requested)
{
    const struct tn_rank_part part = {.name = 0, .bytes = requested, .blocks = 1};
    const struct tn_rank rank = {.file = "host/rank", .requested = requested};
    uint32_t name = 0;

    assert_true(tn_name_find_text(tn_ranks_names(ranks), "stack", 5, &name));
    assert_int_equal(name, 0);
    assert_true(tn_ranks_add_parts(ranks, &rank, &part, 1));
}

/* Six stand out, of which five are compared: the farthest first, above or below. */
static void the_farthest_are_compared(void **state)
{
    static const uint64_t far[] = {7000, 90000, 500, 20000, 7000, 11000};
    static const uint64_t order[] = {90000, 20000, 500, 11000, 7000, 7000};
    const struct tarn_report_options options = {.struct_size = sizeof options};
    struct tn_ranks_result *result;
    struct tn_ranks *ranks;

    (void)state;
    assert_int_equal(tn_ranks_create(&options, &ranks, NULL), TARN_OK);
    for (uint64_t i = 0; i < ALIKE; i++) {
        rank_add(ranks, 6000 + i);
    }
    for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
        rank_add(ranks, far[i]);
    }
    assert_int_equal(tn_ranks_compare(ranks, &result, NULL), TARN_OK);
    assert_int_equal(result->rank_count, ALIKE + 6);
    assert_int_equal(result->outlier_count, 5);
    for (size_t i = 0; i < 6; i++) {
        assert_true(result->ranks[i].is_outlier);
        assert_int_equal(result->ranks[i].requested, order[i]);
    }
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(result->outliers[i].rank.requested, order[i]);
        assert_int_equal(result->outliers[i].changes.total.before, result->typical.requested);
        assert_int_equal(result->outliers[i].changes.total.after, order[i]);
    }
    assert_int_equal(tn_ranks_number(ranks, 4), ALIKE); /* of equal ones the first that came */
    assert_int_equal(tn_ranks_number(ranks, 5), ALIKE + 4);
    assert_false(result->ranks[6].is_outlier);
    assert_int_equal(result->ranks[6].requested, 6000 + ALIKE - 1);
    tarn_report_destroy(result);
    tn_ranks_destroy(ranks);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void without_ranks_nothing_is_compared(void **state)
{
    const struct tarn_report_options options = {.struct_size = sizeof options};
    struct tn_ranks_result *result;
    struct tn_ranks *ranks;

    (void)state;
    tn_ranks_destroy(NULL);
    assert_int_equal(tn_ranks_create(&options, &ranks, NULL), TARN_OK);
    assert_int_equal(tn_ranks_compare(ranks, &result, NULL), TARN_ERR_STATE);
    assert_null(result);
    tn_ranks_destroy(ranks);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* ---- names ---- */

enum {
    TEXTS = 1 << 20, /* of which two have the same hash of 32 bits, as good as surely */
    SLOTS = 2 * TEXTS,
    DIGITS = 8
};

struct numbered {
    uint32_t hash;
    uint32_t number; /* from 1 on */
};

static void text_of(char text[DIGITS + 1], uint32_t number)
{
    for (int i = DIGITS; i-- > 0; number /= 10) {
        text[i] = (char)('0' + number % 10);
    }
    text[DIGITS] = '\0';
}

/* Two texts of one length with the same hash. */
static void find_alike(char a[DIGITS + 1], char b[DIGITS + 1])
{
    struct numbered *seen = calloc(SLOTS, sizeof *seen);

    assert_non_null(seen);
    *a = '\0';
    for (uint32_t number = 1; number <= TEXTS && !*a; number++) {
        text_of(b, number);
        const uint32_t hash = tn_hash_bytes(b, DIGITS);
        size_t i = hash % SLOTS;

        while (seen[i].number != 0 && seen[i].hash != hash) {
            i = (i + 1) % SLOTS;
        }
        if (seen[i].number != 0) {
            text_of(a, seen[i].number);
        }
        seen[i] = (struct numbered){hash, number};
    }
    free(seen);
    assert_true(*a);
}

static void names_with_one_hash_are_told_apart(void **state)
{
    const struct tn_path_format format = {0};
    struct tn_name_table table;
    char texts[2][DIGITS + 1];
    uint32_t names[2];
    uint32_t again;

    (void)state;
    find_alike(texts[0], texts[1]);
    tn_name_table_init(&table, &format);
    for (size_t i = 0; i < 2; i++) {
        assert_true(tn_name_find_text(&table, texts[i], DIGITS, &names[i]));
    }
    assert_int_not_equal(names[0], names[1]);
    for (size_t i = 0; i < 2; i++) {
        assert_true(tn_name_find_text(&table, texts[i], DIGITS, &again));
        assert_int_equal(again, names[i]);
        assert_memory_equal(tn_name_at(&table, again)->path, texts[i], DIGITS);
    }
    tn_name_table_fini(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_farthest_are_compared),
        cmocka_unit_test(without_ranks_nothing_is_compared),
        cmocka_unit_test(names_with_one_hash_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
