/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "cli/opt.h"

#include <string.h>

struct values {
    bool flag;
    bool other;
    const char *text;
    uint64_t number;
    uint64_t size;
    double real;
    int choice;
    uint64_t hinted;
    struct cli_opt_texts texts;
};

static const char *const colours[] = {"red", "green", NULL};

static const struct cli_opt opts[] = {
    {.name = "flag", .letter = 'f', .kind = CLI_OPT_FLAG, .at = offsetof(struct values, flag)},
    {.name = "other-flag",
     .letter = 'g',
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct values, other)},
    {.name = "text", .letter = 't', .kind = CLI_OPT_TEXT, .at = offsetof(struct values, text)},
    {.name = "number",
     .letter = 'n',
     .kind = CLI_OPT_NUMBER,
     .at = offsetof(struct values, number)},
    {.name = "size", .kind = CLI_OPT_SIZE, .at = offsetof(struct values, size)},
    {.name = "real", .kind = CLI_OPT_REAL, .at = offsetof(struct values, real)},
    {.name = "choice",
     .kind = CLI_OPT_CHOICE,
     .at = offsetof(struct values, choice),
     .choices = colours},
    {.name = "texts", .kind = CLI_OPT_TEXTS, .at = offsetof(struct values, texts)},
    {.name = "hinted",
     .kind = CLI_OPT_NUMBER,
     .at = offsetof(struct values, hinted),
     .hint = "it is one"},
    {0},
};

static const struct cli_opt_renamed renamed[] = {{"old-name", "--number"}, {0}};

enum {
    WORDS_MAX = 8
};

/* One parse of words given as a line. */
struct run {
    struct values values;
    char line[128];
    char *argv[WORDS_MAX];
    int argc;
    int kept;
    char error[CLI_OPT_ERROR_MAX];
};

static bool run_parse(struct run *run, const char *line, bool stop_early)
{
    const struct cli_opt_set set = {opts, &run->values};
    struct cli_opt_parser parser = {
        .sets = &set, .set_count = 1, .renamed = renamed, .stop_early = stop_early};

    memset(run, 0, sizeof *run);
    assert_true(strlen(line) < sizeof run->line);
    memcpy(run->line, line, strlen(line) + 1);
    for (char *word = run->line; *word;) {
        const size_t length = strcspn(word, " ");
        char *next = word + length + (word[length] == ' ');

        assert_true(run->argc < WORDS_MAX);
        run->argv[run->argc++] = word;
        word[length] = '\0';
        word = next;
    }
    const bool good = cli_opt_parse(&parser, run->argc, run->argv, &run->kept);
    memcpy(run->error, parser.error, sizeof run->error);
    return good;
}

static void every_spelling_is_read(void **state)
{
    struct run run;

    (void)state;
    assert_true(run_parse(&run, "a --text=x b -fg --number 0x10 c", false));
    assert_int_equal(run.kept, 3);
    assert_string_equal(run.argv[0], "a");
    assert_string_equal(run.argv[2], "c");
    assert_true(run.values.flag && run.values.other);
    assert_string_equal(run.values.text, "x");
    assert_int_equal(run.values.number, 16);
    assert_true(run_parse(&run, "--other_flag -n7 -t word", false));
    assert_true(run.values.other);
    assert_int_equal(run.values.number, 7);
    assert_string_equal(run.values.text, "word");
    assert_true(run_parse(&run, "-fn 8 --text= --choice green", false));
    assert_int_equal(run.values.number, 8);
    assert_string_equal(run.values.text, "");
    assert_int_equal(run.values.choice, 1);
}

static void dashes_alone_are_arguments_or_the_end(void **state)
{
    struct run run;

    (void)state;
    assert_true(run_parse(&run, "- -- -f --flag", false));
    assert_int_equal(run.kept, 3);
    assert_string_equal(run.argv[0], "-");
    assert_string_equal(run.argv[1], "-f");
    assert_false(run.values.flag);
    assert_true(run_parse(&run, "-f cmd -x --y", true));
    assert_int_equal(run.kept, 3);
    assert_string_equal(run.argv[1], "-x");
}

static void numbers_are_read_whole(void **state)
{
    struct run run;

    (void)state;
    assert_true(run_parse(&run, "--size 3GiB --real -1.5", false));
    assert_int_equal(run.values.size, (uint64_t)3 << 30);
    assert_true(run.values.real < -1.4 && run.values.real > -1.6);
    assert_true(run_parse(&run, "--size 80GB", false)); /* as cards are sold */
    assert_int_equal(run.values.size, (uint64_t)80 * 1000 * 1000 * 1000);
    assert_true(run_parse(&run, "--size 512", false));
    assert_int_equal(run.values.size, 512);
    assert_true(run_parse(&run, "--size 23.65GiB", false));
    assert_int_equal(run.values.size, 25393994138);
    assert_true(run_parse(&run, "--number 18446744073709551615", false));
    assert_true(run_parse(&run, "--texts a --texts b -f -f", false));
    assert_int_equal(run.values.texts.count, 2);
}

static void expect_error(const char *line, const char *text)
{
    struct run run;

    assert_false(run_parse(&run, line, false));
    if (!strstr(run.error, text)) {
        fail_msg("\"%s\" does not contain \"%s\"", run.error, text);
    }
}

static void errors_name_the_option_and_what_is_allowed(void **state)
{
    (void)state;
    expect_error("--flg", "unknown option --flg (did you mean --flag?); allowed: --flag, --other-");
    expect_error("--qqqqqq", "unknown option --qqqqqq; allowed: --flag");
    expect_error("-fz", "unknown option -z; allowed: --flag");
    expect_error("--flag=1", "option --flag takes no value");
    expect_error("--text", "option --text needs a value");
    expect_error("-n", "option --number needs a value");
    expect_error("--number 1x", "option --number: \"1x\" is not a whole number");
    expect_error("--number -1", "\"-1\" is not a whole number");
    expect_error("--number 99999999999999999999", "is not a whole number");
    expect_error("--size 1Gx", "allowed: bytes, or a number with KiB");
    expect_error("--number 1 -n 2", "option --number is given twice, and takes one value");
    expect_error("--hinted x", "\"x\" is not a whole number; it is one");
    expect_error("--old_name=3", "option --old-name is now --number");
    expect_error("--size 99999999999TB", "is not a size");
    expect_error("--size 99999999999TiB", "is not a size");
    expect_error("--real nan", "\"nan\" is not a number");
    expect_error("--real 1e999", "is not a number");
    expect_error("--choice blue", "option --choice: \"blue\" is not one of: red, green");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_spelling_is_read),
        cmocka_unit_test(dashes_alone_are_arguments_or_the_end),
        cmocka_unit_test(numbers_are_read_whole),
        cmocka_unit_test(errors_name_the_option_and_what_is_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
