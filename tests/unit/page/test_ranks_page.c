/* SPDX-License-Identifier: MIT */
/* Pages of many ranks as a whole; what they say is looked at in a browser by tests/viewer. */
#include "support/report.h"

#include "support/collect.h"

#include "tarn/fleet.h"
#include "tarn/host.h"
#include "tarn/viewer.h"

enum {
    RANKS = 5
};

struct asked {
    struct tarn_snapshot *snapshots[RANKS];
    int count;
    int first; /* in what order they are added */
    struct tarn_view_ranks_options options;
};

/* A block, larger in the third of them. */
static struct tarn_snapshot *run(int number)
{
    char json[512];

    (void)snprintf(json, sizeof json,
                   "{'segments': [], 'device_traces': [["
                   "{'action': 'alloc', 'addr': 512, 'size': %d, 'stream': 0, 'frames': ["
                   " {'name': 'a', 'filename': 'a.py', 'line': 1}]}]]}",
                   number == 2 ? 90000 : 1000 + number);
    return report_parse(json);
}

static struct asked asked_of(int count)
{
    struct asked asked = {.count = count, .options = {.struct_size = sizeof asked.options}};

    for (int i = 0; i < count; i++) {
        asked.snapshots[i] = run(i);
    }
    return asked;
}

static void asked_close(struct asked *asked)
{
    for (int i = 0; i < asked->count; i++) {
        tarn_snapshot_destroy(asked->snapshots[i]);
    }
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static enum tarn_status page(const void *context, const struct tarn_writer *writer,
                             struct tarn_error *error)
{
    const struct asked *asked = context;
    struct tarn_fleet *fleet;
    enum tarn_status status = tarn_fleet_create(&fleet, error);

    for (int i = 0; status == TARN_OK && i < asked->count; i++) {
        const int number = (asked->first + i) % asked->count;
        char name[32];

        (void)snprintf(name, sizeof name, "rank%d.pickle", number);
        status = tarn_fleet_add(fleet, asked->snapshots[number], name, NULL, error);
    }
    if (status == TARN_OK) {
        status = tarn_view_write_ranks(fleet, NULL, &asked->options, writer, error);
    }
    tarn_fleet_destroy(fleet);
    return status;
}

static void a_page_is_whole(void **state)
{
    static const char *const parts[] = {"default-src 'none'; script-src 'sha256-",
                                        "<title>Ranks</title>",
                                        "data-name=\"head\"",
                                        "data-name=\"report\"",
                                        "data-name=\"requested\"",
                                        "data-name=\"reserved\"",
                                        "<script type=\"module\">"};
    struct asked asked = asked_of(RANKS);
    char *text = report_text(page, &asked);
    const char *at = text;

    (void)state;
    assert_int_equal(strncmp(text, "<!DOCTYPE html>", 15), 0);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        at = strstr(at, parts[i]);
        assert_non_null(at); /* in this order */
    }
    assert_null(strstr(at + 1, "<script"));
    assert_null(strstr(text, "unsafe-inline"));
    assert_null(strstr(text, "://"));
    free(text);
    asked_close(&asked);
}

static void the_order_of_files_does_not_matter(void **state)
{
    struct asked asked = asked_of(RANKS);
    char *wanted = report_text(page, &asked);

    (void)state;
    for (asked.first = 1; asked.first < RANKS; asked.first++) {
        char *text = report_text(page, &asked);

        assert_string_equal(text, wanted);
        free(text);
    }
    free(wanted);
    asked_close(&asked);
}

static void titles_do_not_become_markup(void **state)
{
    struct asked asked = asked_of(1);

    (void)state;
    asked.options.title = "</title><script>alert(1)</script>";
    char *text = report_text(page, &asked);

    assert_null(strstr(text, "alert(1)</script>"));
    assert_non_null(strstr(text, "<title>&lt;/title&gt;"));
    free(text);
    asked.options.title = ""; /* is none */
    text = report_text(page, &asked);
    assert_non_null(strstr(text, "<title>Ranks</title>"));
    free(text);
    asked_close(&asked);
}

/* What find_page was asked, and how often. */
struct finding {
    int calls;
    int third; /* calls for the third rank */
};

static bool finding_find(void *context, const char *file, int device, char *path, size_t size)
{
    struct finding *finding = context;

    finding->calls++;
    finding->third += strcmp(file, "rank2.pickle") == 0 && device == 0 ? 1 : 0;
    return snprintf(path, size, "own/%s.html", file) < (int)size;
}

static void pages_are_asked_for_once_per_rank(void **state)
{
    struct asked asked = asked_of(RANKS);
    struct finding finding = {.calls = 0};
    char *without = report_text(page, &asked);

    (void)state;
    asked.options.find_page = finding_find;
    asked.options.context = &finding;
    char *with = report_text(page, &asked);

    assert_int_equal(finding.calls, RANKS);
    assert_int_equal(finding.third, 1);
    assert_string_not_equal(with, without);
    free(with);
    free(without);
    asked_close(&asked);
}

static void nothing_makes_no_page(void **state)
{
    const struct asked asked = asked_of(0);
    struct tarn_error error;

    (void)state;
    assert_int_equal(page(&asked, NULL, &error), TARN_ERR_STATE);
}

static void failures_leave_nothing(void **state)
{
    struct asked asked = asked_of(3);

    (void)state;
    assert_true(report_fails_or_copes(page, &asked) >= 20);
    report_is_refused(page, &asked);
    asked_close(&asked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_is_whole),
        cmocka_unit_test(the_order_of_files_does_not_matter),
        cmocka_unit_test(titles_do_not_become_markup),
        cmocka_unit_test(pages_are_asked_for_once_per_rank),
        cmocka_unit_test(nothing_makes_no_page),
        cmocka_unit_test(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
