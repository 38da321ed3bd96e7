/* SPDX-License-Identifier: MIT */
#include "support/report.h"

#include "analysis/layout.h"
#include "snapshot/snapshot.h"
#include "tarn/report.h"

static enum tarn_status oom(const void *context, const struct tarn_writer *writer,
                            struct tarn_error *error)
{
    const struct report_asked *asked = context;

    return tarn_report_oom(asked->snapshot, &asked->options, writer, error);
}

static void says(const struct tarn_snapshot *snapshot, const struct tarn_report_options *options,
                 const char *part)
{
    const struct report_asked asked = {snapshot, *options};
    char *text = report_text(oom, &asked);

    if (!strstr(text, part)) {
        fail_msg("\"%s\" is not in:\n%s", part, text);
    }
    free(text);
}

static enum tarn_answer yes(void *context, int device, uint64_t entry, uint64_t capacity,
                            const char *settings)
{
    uint64_t *asked = context;

    assert_int_equal(device, 0);
    assert_string_equal(settings, "expandable_segments:True");
    asked[0] = entry;
    asked[1] = capacity;
    return TARN_ANSWER_YES;
}

static struct tarn_oom_result *compute(const struct tarn_snapshot *snapshot,
                                       const struct tarn_report_options *options)
{
    struct tarn_oom_result *results;
    struct tarn_error error;
    size_t count;

    assert_int_equal(tarn_oom_compute(snapshot, options, &results, &count, &error), TARN_OK);
    assert_int_equal(count, 1);
    return results;
}

/* Against the text of the exception: 7 GiB allowed, 127.64 GiB free on the device, 586.00 MiB
 * requested from it, 609.54 MiB reserved but unallocated. */
static void the_recorded_failure(void **state)
{
    struct tarn_snapshot *snapshot = report_load("oom");
    uint64_t asked[2] = {0, 0};
    const struct tarn_report_options options = {
        .struct_size = sizeof options, .would_fit = yes, .context = asked};
    struct tarn_oom_result *result = compute(snapshot, &options);
    const struct tarn_oom_failure *oom = &result->ooms[0];

    (void)state;
    assert_int_equal(result->oom_count, 1);
    assert_int_equal(oom->event, 4458);
    assert_int_equal(oom->request, 614400000);
    assert_int_equal(oom->segment, 614465536);
    assert_int_equal(oom->device_free, 137047572480);
    assert_true(oom->is_limited);
    assert_int_equal(oom->verdict, TARN_OOM_FRAGMENTED);
    assert_int_equal(oom->own.free, 637222912);
    assert_int_equal(oom->all_pools.free, oom->reserved - 6833008640); /* in use: 6.36 GiB */
    assert_int_equal(oom->own.free_pieces, 204);
    assert_int_equal(oom->own.largest_free, 16515072);
    assert_int_equal(oom->all_pools.free_segments, 0);
    assert_false(oom->emptying_helps);
    assert_int_equal(oom->expandable_helps, TARN_ANSWER_YES);
    assert_int_equal(asked[0], 4458);
    assert_int_equal(asked[1], 7488929792); /* the most that the limit let it reserve */
    says(snapshot, &options, "verdict: fragmented\n  607.70 MiB is free in the request's own pool");
    says(snapshot, &options, "had 127.64 GiB free: a limit of the allocator refused");
    tarn_report_destroy(result);
    tarn_snapshot_destroy(snapshot);
}

/* A segment of 100 MiB on stream 0 with a block of `used` at its start, one of 50 MiB on stream 7
 * that is free, and a request of `size` that failed with `device_free` left. */
static struct tarn_snapshot *failed(const char *used, const char *size, const char *device_free)
{
    char json[2048];

    (void)snprintf(json, sizeof json,
                   "{'segments': [], 'device_traces': [["
                   "{'action': 'segment_alloc', 'addr': 1073741824, 'size': 104857600,"
                   " 'stream': 0},"
                   "{'action': 'alloc', 'addr': 1073741824, 'size': %s, 'stream': 0},"
                   "{'action': 'segment_alloc', 'addr': 2147483648, 'size': 52428800,"
                   " 'stream': 7},"
                   "{'action': 'oom', 'device_free': %s, 'size': %s, 'stream': 0},"
                   "{'action': 'segment_free', 'addr': 1073741824, 'size': 104857600,"
                   " 'stream': 0},"
                   "{'action': 'segment_free', 'addr': 2147483648, 'size': 52428800,"
                   " 'stream': 7}]]}",
                   used, device_free, size);
    return report_parse(json);
}

static void every_verdict(void **state)
{
    struct tarn_report_options options = {.struct_size = sizeof options};
    struct tarn_snapshot *snapshot = failed("83886080", "31457280", "1048576");

    (void)state;
    says(snapshot, &options,
         "verdict: wrong pool or stream\n  70.00 MiB is free, enough for 30.00 MiB,"
         " but only 20.00 MiB of it in the request's own pool and stream");
    says(snapshot, &options, "emptying the cache would have made room: 50.00 MiB");
    tarn_snapshot_destroy(snapshot);

    snapshot = failed("83886080", "209715200", "1048576");
    says(snapshot, &options,
         "verdict: really full\n  only 70.00 MiB of 150.00 MiB reserved is free");
    says(snapshot, &options, "the device had 1.00 MiB free, and 200.00 MiB was requested from it");
    options.device_total = (uint64_t)80 << 30;
    says(snapshot, &options, "verdict: outside the allocator\n");
    says(snapshot, &options, "79.85 GiB of the device is used outside this allocator");
    options.device_total = (uint64_t)200 << 20;
    says(snapshot, &options, "verdict: really full\n");
    tarn_snapshot_destroy(snapshot);

    options.device_total = 0;
    snapshot = failed("31457280", "68157440", "1048576");
    says(snapshot, &options, "verdict: fragmented\n  70.00 MiB is free in the request's own pool");
    tarn_snapshot_destroy(snapshot);

    snapshot = failed("83886080", "73924608", "1048576");
    says(snapshot, &options,
         "verdict: fragmented\n  70.00 MiB is free and 1.00 MiB more could be reserved, together "
         "enough "
         "for 70.50 MiB, but not in one piece\n");
    tarn_snapshot_destroy(snapshot);
}

/* Pages of 2 MiB in the large pool, too: a block of 3 MiB partly uses the second of four. */
static void the_promise_of_the_compact_policy(void **state)
{
    static const struct {
        const char *conf;
        bool is_compact;
    } runs[] = {{"policy:compact", true},
                {"max_split_size_mb:64,policy:compact,rules:2.14", true},
                {"policy:compactor", false},
                {"policy:exact", false},
                {"", false}};
    const struct tarn_report_options options = {.struct_size = sizeof options};

    (void)state;
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        char json[1024];

        (void)snprintf(json, sizeof json,
                       "{'segments': [], 'allocator_settings': {'PYTORCH_CUDA_ALLOC_CONF': '%s',"
                       " 'expandable_segments': true}, 'device_traces': [["
                       "{'action': 'segment_map', 'addr': 1073741824, 'size': 8388608,"
                       " 'stream': 0},"
                       "{'action': 'alloc', 'addr': 1073741824, 'size': 3145728, 'stream': 0},"
                       "{'action': 'oom', 'device_free': 0, 'size': 8388608, 'stream': 0},"
                       "{'action': 'free_completed', 'addr': 1073741824, 'size': 3145728,"
                       " 'stream': 0},"
                       "{'action': 'segment_unmap', 'addr': 1073741824, 'size': 8388608,"
                       " 'stream': 0}]]}",
                       runs[i].conf);
        struct tarn_snapshot *snapshot = report_parse(json);
        const struct report_asked asked = {snapshot, options};
        char *text = report_text(oom, &asked);
        const char *promise = strstr(text, "under policy:compact a request fails only if");

        assert_int_equal(promise != NULL, runs[i].is_compact);
        if (promise) {
            assert_non_null(strstr(promise, "1.00 MiB is free in such pages, 4.00 MiB in whole"));
            assert_non_null(strstr(promise, "large, stream 0"));
        }
        free(text);
        tarn_snapshot_destroy(snapshot);
    }
}

/* Rounding by the settings takes what the request lacks. */
static void what_settings_round_is_said(void **state)
{
    const struct tarn_report_options options = {.struct_size = sizeof options};
    struct tarn_snapshot *snapshot = report_parse(
        "{'segments': [], 'allocator_settings': {'PYTORCH_CUDA_ALLOC_CONF':"
        " 'roundup_power2_divisions:2', 'max_split_size': -1, 'roundup_power2_divisions': {'1': 2, "
        "'2': 2, '4': 2,"
        " '8': 2, '16': 2, '32': 2, '64': 2, '128': 2, '256': 2, '512': 2, '1024': 2, '2048': 2,"
        " '4096': 2, '8192': 2, '16384': 2, '32768': 2}}, 'device_traces': [["
        "{'action': 'segment_alloc', 'addr': 1073741824, 'size': 100663296, 'stream': 0},"
        "{'action': 'alloc', 'addr': 1073741824, 'size': 69206016, 'stream': 0},"
        "{'action': 'oom', 'device_free': 0, 'size': 16777216, 'stream': 0},"
        "{'action': 'free_completed', 'addr': 1073741824, 'size': 69206016, 'stream': 0},"
        "{'action': 'segment_free', 'addr': 1073741824, 'size': 100663296, 'stream': 0}]]}");

    (void)state;
    says(snapshot, &options,
         "only 0 B of 96.00 MiB reserved is free, but roundup_power2_divisions adds 30.00 MiB to "
         "the allocated blocks\n");
    tarn_snapshot_destroy(snapshot);
}

static void many_failures(void **state)
{
    char json[16384] = "{'segments': [], 'device_traces': [[";
    struct tarn_report_options options = {.struct_size = sizeof options};

    (void)state;
    for (int i = 0; i < 103; i++) {
        (void)snprintf(json + strlen(json), sizeof json - strlen(json),
                       "%s{'action': 'oom', 'device_free': 0, 'size': 512, 'stream': 0}",
                       i > 0 ? "," : "");
    }
    (void)snprintf(json + strlen(json), sizeof json - strlen(json), "]]}");
    struct tarn_snapshot *snapshot = report_parse(json);

    struct tarn_oom_result *result = compute(snapshot, &options);

    assert_int_equal(result->oom_count, 100);
    assert_int_equal(result->ooms[99].event, 99);
    assert_int_equal(result->later_ooms, 3);
    tarn_report_destroy(result);
    says(snapshot, &options, "\n3 later requests failed as well\n");
    tarn_snapshot_destroy(snapshot);
}

static size_t no_remedy(void *context, int device, uint64_t *memory,
                        struct tarn_oom_remedy *remedies, size_t count)
{
    (void)context;
    (void)device;
    (void)memory;
    (void)remedies;
    (void)count;
    return 0;
}

static void no_failure(void **state)
{
    struct tarn_snapshot *snapshot = report_load("tiny");
    const struct report_asked asked = {snapshot, {.struct_size = sizeof asked.options}};

    (void)state;
    report_says(oom, &asked, "device 0: no request failed in 21 events\n");

    const struct report_asked helped = {
        snapshot, {.struct_size = sizeof helped.options, .find_remedies = no_remedy}};

    report_says(oom, &helped, "device 0: no request failed in 21 events\n");
    tarn_snapshot_destroy(snapshot);
}

static void equation_holds(const struct tn_layout_row *row)
{
    assert_int_equal(row->reserved, row->used + row->slack + row->free);
    assert_true(row->waiting <= row->used && row->largest_free <= row->free);
}

/* At the end the layout must be what the snapshot itself says. */
static void layouts_add_up(void **state)
{
    static const char *const names[] = {"tiny", "cudagraph", "gpt2_varlen_expandable", "oom",
                                        "llama_generate"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct tarn_snapshot *snapshot = report_load(names[i]);
        struct tn_timeline timeline;

        assert_true(tn_timeline_init(&timeline, tn_snapshot_model(snapshot), 0));
        for (uint64_t at = 0; at < 5; at++) {
            const uint64_t entry = at * (timeline.trace->count - 1) / 4;
            struct tn_layout layout;

            assert_true(tn_layout_collect_at(&layout, &timeline, entry));
            for (size_t k = 0; k < layout.rows.count; k++) {
                equation_holds((struct tn_layout_row *)layout.rows.items + k);
            }
            equation_holds(&layout.total);
            assert_int_equal(layout.outside, 0);
            assert_int_equal(layout.total.reserved, tn_timeline_at(&timeline, entry).reserved);
            tn_layout_fini(&layout);
        }
        tn_timeline_fini(&timeline);
        tarn_snapshot_destroy(snapshot);
    }
}

static void failures_leave_nothing(void **state)
{
    (void)state;
    report_leaves_nothing(oom, "oom", 15);
}

#define STACK(line) "'frames': [{'name': 'step', 'filename': 'train.py', 'line': " #line "}]"

/* Memory is full. Line 2 asks three times and line 3 once; a limit refuses the third request. */
static struct tarn_snapshot *mixed_failures(void)
{
    return report_parse(
        "{'segments': [], 'device_traces': [["
        "{'action': 'segment_alloc', 'addr': 1073741824, 'size': 104857600, 'stream': 0},"
        "{'action': 'alloc', 'addr': 1073741824, 'size': 104857600, 'stream': 0},"
        "{'action': 'oom', 'device_free': 0, 'size': 4194304, 'stream': 0, " STACK(
            2) "},"
               "{'action': 'oom', 'device_free': 0, 'size': 16777216, 'stream': 0, " STACK(
                   2) "},"
                      "{'action': 'oom', 'device_free': 1073741824, 'size': 4194304,"
                      " 'stream': 0, " STACK(
                          2) "},"
                             "{'action': 'oom', 'device_free': 0, 'size': 4194304,"
                             " 'stream': 0, " STACK(
                                 3) "},"
                                    "{'action': 'oom', 'device_free': 0, 'size': 8388608,"
                                    " 'stream': 0, " STACK(2) "}]]}");
}

static void failures_with_one_reason_are_one_cause(void **state)
{
    struct tarn_snapshot *snapshot = mixed_failures();
    const struct tarn_report_options options = {.struct_size = sizeof options};
    struct tarn_oom_result *result = compute(snapshot, &options);

    (void)state;
    assert_int_equal(result->oom_count, 5);
    assert_int_equal(result->cause_count, 2);
    assert_int_equal(result->causes[0].verdict, TARN_OOM_FULL);
    assert_int_equal(result->causes[0].requests, 4);
    assert_int_equal(result->causes[0].requester_count, 2);
    assert_int_equal(result->causes[0].requesters[0].requests, 3);
    assert_int_equal(result->causes[0].requesters[0].smallest, 4 << 20);
    assert_int_equal(result->causes[0].requesters[0].largest, 16 << 20);
    assert_int_equal(result->causes[1].requests, 1);
    assert_int_equal(result->causes[1].first, 2);
    assert_true(result->causes[1].is_limited);
    says(snapshot, &options, "4 requests failed for this reason, from event 2 to 6");
    says(snapshot, &options, "3  4.00 MiB to 16.00 MiB, by train.py:2:step");

    const struct tarn_report_options wide = {.struct_size = sizeof wide, .columns = 200};

    says(snapshot, &wide, "3  4.00 MiB to 16.00 MiB, by train.py:2:step\n");
    tarn_report_destroy(result);
    tarn_snapshot_destroy(snapshot);
}

static size_t two_remedies(void *context, int device, uint64_t *memory,
                           struct tarn_oom_remedy *remedies, size_t count)
{
    assert_int_equal(device, 0);
    assert_true(count >= 2);
    *(uint64_t *)context = *memory;
    *memory = (uint64_t)7 << 30;
    (void)snprintf(remedies[0].conf, sizeof remedies[0].conf, "expandable_segments:True");
    remedies[0].memory = *memory;
    remedies[0].peak_reserved = (uint64_t)6 << 30;
    (void)snprintf(remedies[1].conf, sizeof remedies[1].conf, "max_split_size_mb:128");
    remedies[1].memory = (uint64_t)8 << 30;
    return 2;
}

static void what_would_have_helped(void **state)
{
    struct tarn_snapshot *snapshot = report_load("oom");
    uint64_t asked = 0;
    struct tarn_report_options options = {
        .struct_size = sizeof options, .find_remedies = two_remedies, .context = &asked};

    (void)state;
    says(snapshot, &options,
         "let the run finish\n  expandable_segments:True, in the same memory: at most 6.00 GiB "
         "reserved\n  8.00 GiB of memory instead of 7.00 GiB, with the recorded settings\n");
    assert_int_equal(asked, 7488929792); /* the most that the limit let it reserve */
    options.find_remedies = no_remedy;
    says(snapshot, &options, "  no settings: it fails in the same memory");
    tarn_snapshot_destroy(snapshot);
}

/* A trace of `count` events of which each `every`-th is a failed request, else an annotation's. */
static struct tarn_snapshot *failures_among(size_t count, size_t every)
{
    static const char head[] = "\x80\x04}(\x8c\x08segments]\x8c\x0d"
                               "device_traces](](";
    static const char oom_entry[] = "}(\x8c\x06"
                                    "action\x8c\x03"
                                    "oom\x8c\x0b"
                                    "device_freeK\0\x8c\x04"
                                    "sizeM\0\x02\x8c\x06streamK\0u\x94";
    static const char other[] = "}(\x8c\x06"
                                "action\x8c\x08snapshot\x8c\x04"
                                "addrK\0\x8c\x04"
                                "sizeK\0\x8c\x06streamK\0u\x94";
    const size_t room = sizeof head + sizeof oom_entry + sizeof other + 2 * count + 8;
    const struct tarn_read_limits limits = {.struct_size = sizeof limits,
                                            .max_memory = (uint64_t)4 << 30};
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_error error = {.text = ""};
    char *bytes = malloc(room);
    char *at = bytes;

    assert_non_null(bytes);
    memcpy(at, head, sizeof head - 1);
    at += sizeof head - 1;
    memcpy(at, oom_entry, sizeof oom_entry - 1);
    at += sizeof oom_entry - 1;
    memcpy(at, other, sizeof other - 1);
    at += sizeof other - 1;
    for (size_t i = 2; i < count; i++) {
        *at++ = 'h';
        *at++ = (char)(i % every != 0);
    }
    memcpy(at, "eeu.", 5);
    if (tarn_snapshot_load_memory(bytes, (size_t)(at + 4 - bytes), &limits, &snapshot, &error)) {
        fail_msg("%s", error.text);
    }
    free(bytes);
    return snapshot;
}

/* Of a long trace fewer failures are examined, but some. */
static void few_failures_of_a_long_trace(void **state)
{
    static const struct {
        size_t events, every, examined, later;
    } rows[] = {{400000, 8000, 49, 1}, {1200000, 50000, 20, 4}};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const struct tarn_report_options options = {.struct_size = sizeof options};
        struct tarn_snapshot *snapshot = failures_among(rows[i].events, rows[i].every);
        struct tarn_oom_result *result = compute(snapshot, &options);

        assert_int_equal(result->oom_count, rows[i].examined);
        assert_int_equal(result->later_ooms, rows[i].later);
        tarn_report_destroy(result);
        tarn_snapshot_destroy(snapshot);
    }
}

/* Steps that end before a selected part or after the failure are not what changes count from. */
static void changes_count_from_the_last_step(void **state)
{
    static const struct {
        const char *action;
        int size;
    } rows[] = {{"segment_alloc", 104857600},
                {"alloc", 1024},
                {"free_completed", 1024},
                {"alloc", 2048},
                {"oom", 4194304},
                {"free_completed", 2048}};
    char json[4096] = "{'segments': [], 'device_traces': [[";

    (void)state;
    for (int i = 0; i < 6; i++) { /* a step ends before each of the even ones */
        (void)snprintf(json + strlen(json), sizeof json - strlen(json),
                       "%s{'action': '%s', 'addr': 1073741824, 'device_free': 0, 'size': %d,"
                       " 'stream': 0, 'time_us': %d}",
                       i > 0 ? "," : "", rows[i].action, rows[i].size, 10 * i + 10);
    }
    (void)snprintf(json + strlen(json), sizeof json - strlen(json),
                   "]], 'external_annotations': [");
    for (int i = 0; i < 3; i++) {
        (void)snprintf(
            json + strlen(json), sizeof json - strlen(json),
            "%s{'stage': 'START', 'name': 'Optimizer.step#A', 'device': 0, 'time_us': %d},"
            "{'stage': 'END', 'name': 'Optimizer.step#A', 'device': 0, 'time_us': %d}",
            i > 0 ? "," : "", 20 * i + 12, 20 * i + 15);
    }
    (void)snprintf(json + strlen(json), sizeof json - strlen(json), "]}");
    struct tarn_snapshot *snapshot = report_parse(json);
    struct tarn_selection part = {.struct_size = sizeof part};
    struct tarn_report_options options = {.struct_size = sizeof options, .selection = &part};
    struct tarn_oom_result *result = compute(snapshot, &options);

    assert_true(result->ooms[0].is_since_step);
    assert_int_equal(result->ooms[0].since, 2);
    tarn_report_destroy(result);
    part.events =
        (struct tarn_span){true, 3, 5}; /* all steps are before it, or after the failure */
    result = compute(snapshot, &options);
    assert_false(result->ooms[0].is_since_step);
    assert_true(result->ooms[0].since >= 2);
    tarn_report_destroy(result);
    tarn_snapshot_destroy(snapshot);
}

#undef STACK
#define FRAME(file, line) "{'name': 'f', 'filename': '" file "', 'line': " line "}"
#define ASKS(line)                                                                                 \
    "{'action': 'oom', 'device_free': 0, 'size': 4194304, 'stream': 0, 'frames': [" FRAME(         \
        "m.py",                                                                                    \
        "1") ", " FRAME("a.py",                                                                    \
                        "1") ", " FRAME("b.py",                                                    \
                                        "1") ", " FRAME("c.py",                                    \
                                                        "1") ", " FRAME("d.py",                    \
                                                                        line) ", " FRAME("main."   \
                                                                                         "py",     \
                                                                                         "1") "]}"

/* In the frames that labels leave out, until they differ. */
static void requesters_differ(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(
        "{'segments': [], 'device_traces': [["
        "{'action': 'segment_alloc', 'addr': 1073741824, 'size': 104857600, 'stream': 0},"
        "{'action': 'alloc', 'addr': 1073741824, 'size': 104857600, 'stream': 0}," ASKS(
            "5") "," ASKS("6") "," ASKS("5") "]]}");
    struct tarn_report_options options = {.struct_size = sizeof options};
    struct tarn_oom_result *result = compute(snapshot, &options);
    static const char five[] = "m.py:1:f < a.py:1:f < b.py:1:f < c.py:1:f < d.py:5:f < ...";
    static const char six[] = "m.py:1:f < a.py:1:f < b.py:1:f < c.py:1:f < d.py:6:f < ...";

    (void)state;
    assert_string_equal(result->ooms[0].stack.text, five);
    assert_string_equal(result->ooms[1].stack.text, six);
    assert_string_equal(result->ooms[2].stack.text, five);
    assert_int_equal(result->cause_count, 1);
    assert_string_equal(result->causes[0].requesters[0].stack.text, five);
    assert_string_equal(result->causes[0].requesters[1].stack.text, six);
    tarn_report_destroy(result);
    says(snapshot, &options, "  requested by m.py:1:f < a.py:1:f < b.py:1:f < c.py:1:f < d.py:5:f");
    options.columns = 50;
    says(snapshot, &options, "  requested by m.py:1:f < a.py:1:f < ...\n");
    says(snapshot, &options, ", by ... < d.py:5:f < ...\n");
    says(snapshot, &options, ", by ... < d.py:6:f < ...\n");
    options.full_stacks = true;
    says(snapshot, &options,
         "  requested by m.py:1:f < a.py:1:f < b.py:1:f < c.py:1:f < d.py:5:f < main.py:1:f\n");
    tarn_snapshot_destroy(snapshot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_recorded_failure),
        cmocka_unit_test(every_verdict),
        cmocka_unit_test(the_promise_of_the_compact_policy),
        cmocka_unit_test(what_settings_round_is_said),
        cmocka_unit_test(many_failures),
        cmocka_unit_test(no_failure),
        cmocka_unit_test(few_failures_of_a_long_trace),
        cmocka_unit_test(changes_count_from_the_last_step),
        cmocka_unit_test(failures_with_one_reason_are_one_cause),
        cmocka_unit_test(requesters_differ),
        cmocka_unit_test(what_would_have_helped),
        cmocka_unit_test(layouts_add_up),
        cmocka_unit_test(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
