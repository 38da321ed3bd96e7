/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "cli/progress.h"
#include "cli/size_text.h"

#include <string.h>

static void shown_to_people_at_terminals_only(void **state)
{
    static const struct {
        enum cli_progress_when when;
        bool is_terminal;
        const char *term;
        bool is_quiet;
        bool is_shown;
    } rows[] = {
        {CLI_PROGRESS_AUTO, true, "xterm", false, true},
        {CLI_PROGRESS_AUTO, false, "xterm", false, false},
        {CLI_PROGRESS_AUTO, true, "dumb", false, false},
        {CLI_PROGRESS_AUTO, true, "", false, false},
        {CLI_PROGRESS_AUTO, true, NULL, false, false},
        {CLI_PROGRESS_AUTO, true, "xterm", true, false},
        {CLI_PROGRESS_ALWAYS, false, NULL, true, true},
        {CLI_PROGRESS_NEVER, true, "xterm", false, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(
            cli_progress_decide(rows[i].when, rows[i].is_terminal, rows[i].term, rows[i].is_quiet),
            rows[i].is_shown);
    }
}

static void says(struct cli_progress progress, uint64_t done, uint64_t total, double seconds,
                 unsigned width, const char *expected)
{
    char line[CLI_PROGRESS_LINE_MAX];

    assert_int_equal(cli_progress_text(line, &progress, done, total, seconds, width),
                     strlen(expected));
    assert_string_equal(line, expected);
}

static void the_line_says_what_is_known(void **state)
{
    const struct cli_progress reading = {
        .what = "reading", .name = "a/folder/dump.pickle", .is_bytes = true};
    const struct cli_progress trying = {.what = "trying settings"};
    const uint64_t gib = (uint64_t)1 << 30;

    (void)state;
    says(reading, gib, 4 * gib, 2, 200,
         "reading dump.pickle: 25 %, 1.00 GiB of 4.00 GiB, 537 MB/s, 6 s left");
    says(reading, gib, 0, 2, 200, "reading dump.pickle: 1.00 GiB, 537 MB/s");
    says(reading, gib, 4 * gib, 0, 200, "reading dump.pickle: 25 %, 1.00 GiB of 4.00 GiB");
    says(reading, 4 * gib, 2 * gib, 1, 200, /* the file grew while it was read */
         "reading dump.pickle: 200 %, 4.00 GiB of 2.00 GiB, 4295 MB/s");
    says(reading, gib, 4 * gib, 2, 20, "reading dump.pickle:");
    says(trying, 50, 200, 10, 200, "trying settings: 25 %, 50 of 200, 30 s left");
    says(trying, 0, 200, 10, 200, "trying settings: 0 %, 0 of 200");
    cli_units_configure(TARN_UNITS_SI);
    says(reading, 2000000, 0, 1, 200, "reading dump.pickle: 2.00 MB, 2 MB/s");
    cli_units_configure(TARN_UNITS_IEC);
}

static void names_are_harmless_and_short(void **state)
{
    (void)state;
    says((struct cli_progress){.what = "reading", .name = "x\033[2J\n\x7f.p"}, 1, 0, 0, 200,
         "reading x\\x1b[2J\\x0a\\x7f.p: 1");
    says((struct cli_progress){.what = "reading", .name = "folder/"}, 1, 0, 0, 200,
         "reading folder/: 1");
    says((struct cli_progress){.what = "reading",
                               .name = "0123456789012345678901234567890\xc3\xa4.pickle"},
         1, 0, 0, 200, "reading 0123456789012345678901234567890: 1");
    says((struct cli_progress){.what = "reading", .name = "c\xc2\x9b"}, 1, 0, 0, 200,
         "reading c\\x9b: 1");
    says((struct cli_progress){.what = "reading", .name = "c\xc3\xa4"}, 1, 0, 0, 10, "reading c");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shown_to_people_at_terminals_only),
        cmocka_unit_test(the_line_says_what_is_known),
        cmocka_unit_test(names_are_harmless_and_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
