/* SPDX-License-Identifier: MIT */
#include "support/report.h"

#include "tarn/report.h"

struct asked {
    const struct tarn_snapshot *snapshot;
    enum tarn_page_view view;
    struct tarn_page_options options;
};

static enum tarn_status page(const void *context, const struct tarn_writer *writer,
                             struct tarn_error *error)
{
    const struct asked *asked = context;

    return tarn_report_page(asked->snapshot, asked->view, &asked->options, writer, error);
}

static void totals_of_each_device(void **state)
{
    struct tarn_snapshot *snapshot = report_load("oom");
    const struct asked asked = {
        snapshot, TARN_PAGE_MEMORY_TIMELINE, {.struct_size = sizeof asked.options}};
    char *text = report_text(page, &asked);

    (void)state;
    assert_non_null(strstr(text, "<h1>Active Memory Timeline</h1>"));
    assert_non_null(strstr(text, "<tr><td>0</td><td>219</td>"
                                 "<td title=\"7472152576 bytes\">7.0GiB</td>"
                                 "<td title=\"68157440 bytes\">65.0MiB</td>"));
    assert_non_null(strstr(text, "<td>5841</td><td>1</td></tr>\n</table>"));
    free(text);
    tarn_snapshot_destroy(snapshot);
}

/* Devices out of order, and one that nobody has. */
static void devices_of_any_number(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(
        "{'segments': [{'device': 2147483647, 'address': 1, 'total_size': 4, 'blocks':"
        " [{'size': 3, 'requested_size': 2, 'state': 'active_pending_free'},"
        "  {'size': 1, 'state': 'inactive'}]},"
        " {'device': 0, 'address': 9, 'total_size': 1, 'blocks': [{'size': 1,"
        "  'state': 'inactive'}]}, {'device': 2147483647, 'address': 5, 'total_size': 4,"
        "  'blocks': [{'size': 4, 'requested_size': 3, 'state': 'active_allocated'}]}],"
        " 'device_traces': [[], [{'action': 'snapshot', 'addr': 0, 'size': 0, 'stream': 0}]]}");
    struct asked asked = {snapshot, TARN_PAGE_STATE, {.struct_size = sizeof asked.options}};
    char *text = report_text(page, &asked);
    const char *first = strstr(text, "<tr><td>0</td><td>1</td>");
    const char *second = strstr(text, "<tr><td>1</td><td>0</td>");
    const char *third = strstr(text, "<tr><td>2147483647</td><td>2</td>"
                                     "<td title=\"8 bytes\">8.0B</td><td title=\"4 bytes\">4.0B"
                                     "</td><td title=\"7 bytes\">7.0B</td><td title=\"5 bytes\">");

    (void)state;
    assert_true(first && second && third && first < second && second < third);
    free(text);
    asked.options.one_device = true;
    asked.options.device = 1;
    text = report_text(page, &asked);
    assert_null(strstr(text, "<tr><td>0</td>"));
    assert_non_null(strstr(text, "<tr><td>1</td>"));
    free(text);
    tarn_snapshot_destroy(snapshot);
}

static void failures_leave_nothing(void **state)
{
    struct tarn_snapshot *snapshot = report_load("tiny");
    const struct asked asked = {
        snapshot, TARN_PAGE_SEGMENT_TIMELINE, {.struct_size = sizeof asked.options}};

    (void)state;
    assert_int_equal(report_fails_cleanly(page, &asked), 1);
    report_is_refused(page, &asked);
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_host_usage().live_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_of_each_device),
        cmocka_unit_test(devices_of_any_number),
        cmocka_unit_test(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
