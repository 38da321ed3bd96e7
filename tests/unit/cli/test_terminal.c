/* SPDX-License-Identifier: MIT */
/* The rules that decide on plain values: colour, exit codes, suggestions. */
#include "support/test.h"

#include "cli/exit_code.h"
#include "cli/suggest.h"
#include "cli/terminal.h"

static void colour_follows_option_then_environment_then_terminal(void **state)
{
    (void)state;
    assert_true(cli_color_decide(CLI_COLOR_ALWAYS, false, "1", NULL, "dumb"));
    assert_false(cli_color_decide(CLI_COLOR_NEVER, true, NULL, "1", "xterm"));
    assert_true(cli_color_decide(CLI_COLOR_AUTO, true, NULL, NULL, "xterm"));
    assert_true(cli_color_decide(CLI_COLOR_AUTO, true, "", "", "xterm"));
    assert_false(cli_color_decide(CLI_COLOR_AUTO, true, "1", "1", "xterm"));
    assert_true(cli_color_decide(CLI_COLOR_AUTO, false, NULL, "1", "dumb"));
    assert_false(cli_color_decide(CLI_COLOR_AUTO, false, NULL, "0", "xterm"));
    assert_false(cli_color_decide(CLI_COLOR_AUTO, true, NULL, NULL, "dumb"));
    assert_false(cli_color_decide(CLI_COLOR_AUTO, true, NULL, NULL, NULL));
}

static void styles_are_empty_without_colour(void **state)
{
    struct cli_terminal terminal = {.out_color = false};

    (void)state;
    assert_string_equal(cli_terminal_style(&terminal, CLI_STYLE_RED), "");
    terminal.out_color = true;
    assert_string_equal(cli_terminal_style(&terminal, CLI_STYLE_RED), "\033[31m");
}

static void every_status_has_an_exit_code(void **state)
{
    (void)state;
    for (int i = 1; i < TARN_STATUS_COUNT; i++) {
        assert_int_not_equal(cli_exit_from_status((enum tarn_status)i), CLI_EXIT_OK);
    }
    assert_int_equal(cli_exit_from_status(TARN_OK), 0);
    assert_int_equal(cli_exit_from_status(TARN_ERR_MISMATCH), 1);
    assert_int_equal(cli_exit_from_status(TARN_ERR_CONFIG), 2);
    assert_int_equal(cli_exit_from_status(TARN_ERR_FORMAT), 3);
    assert_int_equal(cli_exit_from_status(TARN_ERR_UNSAFE), 4);
    assert_int_equal(cli_exit_from_status(TARN_ERR_TRUNCATED), 5);
    assert_int_equal(cli_exit_from_status(TARN_ERR_IO), 6);
    assert_int_equal(cli_exit_from_status(TARN_ERR_LIMIT), 7);
    assert_int_equal(cli_exit_from_status(TARN_ERR_INTERNAL), 70);
}

static void nearest_word_is_suggested(void **state)
{
    struct cli_suggest search = {.word = "staats"};

    (void)state;
    cli_suggest_offer(&search, "replay");
    assert_null(search.best);
    cli_suggest_offer(&search, "state");
    cli_suggest_offer(&search, "stats");
    assert_string_equal(search.best, "stats");
    cli_suggest_offer(&search, "a-word-that-is-far-too-long-to-be-considered");
    assert_string_equal(search.best, "stats");
    struct cli_suggest swapped = {.word = "hlep"};
    cli_suggest_offer(&swapped, "help");
    assert_string_equal(swapped.best, "help");
    assert_int_equal(swapped.best_cost, 1);
    struct cli_suggest empty = {.word = ""};
    cli_suggest_offer(&empty, "help");
    assert_null(empty.best);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(colour_follows_option_then_environment_then_terminal),
        cmocka_unit_test(styles_are_empty_without_colour),
        cmocka_unit_test(every_status_has_an_exit_code),
        cmocka_unit_test(nearest_word_is_suggested),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
