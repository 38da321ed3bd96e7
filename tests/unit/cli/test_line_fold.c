/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "cli/line_fold.h"

#include <stdlib.h>
#include <string.h>

static void folds(const char *line, unsigned width, const char *wanted)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);

    assert_non_null(file);
    cli_line_fold_put(file, line, strlen(line), width);
    (void)fclose(file);
    assert_string_equal(text, wanted);
    free(text);
}

static void sentences_break_at_blanks(void **state)
{
    (void)state;
    folds("", 40, "\n");
    folds("as long as the line", 19, "as long as the line\n");
    folds("a line that is longer than that", 20, "a line that is\n    longer than that\n");
    folds("  its beginning stays", 20, "  its beginning\n      stays\n");
}

/* The last cell goes on below itself, if its words fit there. */
static void rows_break_in_their_last_cell(void **state)
{
    (void)state;
    folds("  12 B  100%  one two three four five six seven", 40,
          "  12 B  100%  one two three four five\n              six seven\n");
    folds("  12 B  100%  a_word_that_is_too_long_for_it", 40,
          "  12 B  100%\n      a_word_that_is_too_long_for_it\n");
}

static void words_without_room_are_cut(void **state)
{
    (void)state;
    folds("0123456789012345678901234", 20, "01234567890123456789\n    01234\n");
    folds("conf:123456,conf:789012345", 20, "conf:123456,\n    conf:789012345\n");
}

/* Styles need no columns, characters one. */
static void characters_count(void **state)
{
    (void)state;
    folds("\033[1m0123456789 012345678\033[0m", 20, "\033[1m0123456789 012345678\033[0m\n");
    folds("\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4 \xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4 \xc3\xa4", 11,
          "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4 \xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4 \xc3\xa4\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sentences_break_at_blanks),
        cmocka_unit_test(rows_break_in_their_last_cell),
        cmocka_unit_test(words_without_room_are_cut),
        cmocka_unit_test(characters_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
