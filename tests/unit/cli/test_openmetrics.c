/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "cli/openmetrics.h"

#include <stdlib.h>
#include <string.h>

static const struct cli_om_family used = {
    .name = "tarn_used_bytes", .unit = "bytes", .help = "Bytes of \"used\\free\" blocks."};
static const struct cli_om_family asked = {.name = "tarn_asked_seconds",
                                           .type = CLI_OM_COUNTER,
                                           .unit = "seconds",
                                           .decimals = 9,
                                           .help = "Time."};
static const struct cli_om_family build = {
    .name = "tarn_build", .type = CLI_OM_INFO, .help = "The build."};

/* A document in memory. */
struct document {
    struct cli_om om;
    char *text;
    size_t size;
};

static void document_open(struct document *document, enum cli_om_format format)
{
    *document = (struct document){.om = {.format = format}};
    document->om.file = open_memstream(&document->text, &document->size);
    assert_non_null(document->om.file);
}

static void document_expect(struct document *document, const char *text)
{
    cli_om_end(&document->om);
    assert_int_equal(fclose(document->om.file), 0);
    assert_string_equal(document->text, text);
    free(document->text);
}

static void write_all(struct cli_om *om)
{
    const struct cli_om_label labels[] = {{"pid", "1"}, {"program", "a"}};

    cli_om_sample(om, &used, NULL, 0, UINT64_MAX);
    cli_om_sample(om, &used, labels, 2, 0);
    cli_om_sample(om, &asked, labels, 1, 1000000002);
    cli_om_sample(om, &build, labels + 1, 1, 1);
}

static void openmetrics_has_units_types_and_an_end(void **state)
{
    struct document document;

    (void)state;
    document_open(&document, CLI_OM_OPENMETRICS);
    write_all(&document.om);
    document_expect(&document, "# TYPE tarn_used_bytes gauge\n"
                               "# UNIT tarn_used_bytes bytes\n"
                               "# HELP tarn_used_bytes Bytes of \\\"used\\\\free\\\" blocks.\n"
                               "tarn_used_bytes 18446744073709551615\n"
                               "tarn_used_bytes{pid=\"1\",program=\"a\"} 0\n"
                               "# TYPE tarn_asked_seconds counter\n"
                               "# UNIT tarn_asked_seconds seconds\n"
                               "# HELP tarn_asked_seconds Time.\n"
                               "tarn_asked_seconds_total{pid=\"1\"} 1.000000002\n"
                               "# TYPE tarn_build info\n"
                               "# HELP tarn_build The build.\n"
                               "tarn_build_info{program=\"a\"} 1\n"
                               "# EOF\n");
}

static void the_older_format_describes_samples_by_their_names(void **state)
{
    struct document document;

    (void)state;
    document_open(&document, CLI_OM_PROMETHEUS);
    write_all(&document.om);
    document_expect(&document, "# TYPE tarn_used_bytes gauge\n"
                               "# HELP tarn_used_bytes Bytes of \"used\\\\free\" blocks.\n"
                               "tarn_used_bytes 18446744073709551615\n"
                               "tarn_used_bytes{pid=\"1\",program=\"a\"} 0\n"
                               "# TYPE tarn_asked_seconds_total counter\n"
                               "# HELP tarn_asked_seconds_total Time.\n"
                               "tarn_asked_seconds_total{pid=\"1\"} 1.000000002\n"
                               "# TYPE tarn_build_info gauge\n"
                               "# HELP tarn_build_info The build.\n"
                               "tarn_build_info{program=\"a\"} 1\n");
}

static void without_samples_there_is_an_end_alone(void **state)
{
    struct document document;

    (void)state;
    document_open(&document, CLI_OM_OPENMETRICS);
    document_expect(&document, "# EOF\n");
}

static void written_as(const char *value, const char *written)
{
    const struct cli_om_label label = {"program", value};
    struct document document;
    char expected[1400];

    document_open(&document, CLI_OM_OPENMETRICS);
    cli_om_sample(&document.om, &build, &label, 1, 1);
    (void)snprintf(expected, sizeof expected,
                   "# TYPE tarn_build info\n# HELP tarn_build The build.\n"
                   "tarn_build_info{program=\"%s\"} 1\n# EOF\n",
                   written);
    document_expect(&document, expected);
}

static void values_are_escaped(void **state)
{
    char longest[600];

    (void)state;
    written_as("", "");
    written_as("a\"b\\c", "a\\\"b\\\\c");
    written_as("\xC3\xA4 {x=\"1\"} # EOF", "\xC3\xA4 {x=\\\"1\\\"} # EOF");
    written_as("line\n# EOF\n\x1b[2J", "line\\\\x0a# EOF\\\\x0a\\\\x1b[2J");
    written_as("\xff\xC0\x80", "\\\\xff\\\\xc0\\\\x80");
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    written_as(longest, longest);
}

static void the_content_type_names_the_format(void **state)
{
    (void)state;
    assert_string_equal(cli_om_content_type(CLI_OM_OPENMETRICS),
                        "application/openmetrics-text; version=1.0.0; charset=utf-8");
    assert_string_equal(cli_om_content_type(CLI_OM_PROMETHEUS),
                        "text/plain; version=0.0.4; charset=utf-8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(openmetrics_has_units_types_and_an_end),
        cmocka_unit_test(the_older_format_describes_samples_by_their_names),
        cmocka_unit_test(without_samples_there_is_an_end_alone),
        cmocka_unit_test(values_are_escaped),
        cmocka_unit_test(the_content_type_names_the_format),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
