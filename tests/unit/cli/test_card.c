/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "cli/card.h"

#include <string.h>

static struct cli_cards cards;
static char error[1024];

static bool read_list(const char *list)
{
    cards.count = 0;
    return cli_cards_read(&cards, list, error, (int)sizeof error);
}

static void a_card_has_its_bytes_however_it_is_spelled(void **state)
{
    static const char *const spellings[] = {"RTX 4090", "rtx4090", "NVIDIA GeForce RTX 4090",
                                            "4090"};

    (void)state;
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        assert_true(read_list(spellings[i]));
        assert_int_equal(cards.count, 1);
        assert_true(cards.items[0].is_known);
        assert_string_equal(cards.items[0].name, "RTX 4090");
        assert_int_equal(cards.items[0].bytes, 25386352640);
    }
    assert_true(read_list("NVIDIA A100-SXM4-80GB"));
    assert_string_equal(cards.items[0].name, "A100-80GB");
    assert_true(read_list("Tesla T4"));
    assert_string_equal(cards.items[0].name, "T4");
}

static void a_list_has_sizes_and_cards(void **state)
{
    (void)state;
    assert_true(read_list("24G, H200,80gb"));
    assert_int_equal(cards.count, 3);
    assert_false(cards.items[0].is_known);
    assert_string_equal(cards.items[0].name, "24G");
    assert_int_equal(cards.items[0].bytes, (uint64_t)24 << 30);
    assert_int_equal(cards.items[1].bytes, 150109880320);
    assert_int_equal(cards.items[2].bytes, 80000000000);
}

static void what_is_no_card_is_refused(void **state)
{
    static const char *const lists[] = {"", "24G,", "H300", "A100", "24G,,40G", "0", "80 Gx"};

    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        assert_false(read_list(lists[i]));
        assert_non_null(strstr(error, "neither a size"));
    }
    assert_false(read_list("H300"));
    assert_non_null(strstr(error, "\"H300\" is neither"));
    assert_non_null(strstr(error, "A100-80GB, A100-40GB"));
    assert_false(read_list("1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17"));
    assert_non_null(strstr(error, "more than 16 cards"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_card_has_its_bytes_however_it_is_spelled),
        cmocka_unit_test(a_list_has_sizes_and_cards),
        cmocka_unit_test(what_is_no_card_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
