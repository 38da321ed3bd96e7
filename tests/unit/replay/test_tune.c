/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* pthread_setattr_default_np */
/* The smallest device, and the search over settings: held against replays of what they say. */
#include "support/test.h"

#include "replay/replay.h"
#include "tarn/config.h"
#include "tarn/host.h"
#include "tarn/replay.h"
#include "tarn/snapshot.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)

#ifndef TEST_DATA_DIR
#define TEST_DATA_DIR "tests/data" /* the build says where it is */
#endif

enum {
    ROWS = 30
};

static struct tarn_replay *replay_of(const char *name)
{
    char path[1024];
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_replay *replay = NULL;
    struct tarn_error error;

    (void)snprintf(path, sizeof path, "%s/snapshots/%s.pickle.gz", TEST_DATA_DIR, name);
    if (tarn_snapshot_load(path, NULL, &snapshot, &error) ||
        tarn_replay_create(snapshot, -1, &replay, &error)) {
        fail_msg("%s: %s", name, error.text);
    }
    tarn_snapshot_destroy(snapshot);
    return replay;
}

static struct tarn_replay_result run_on(const struct tarn_replay *replay, const char *conf,
                                        uint64_t device)
{
    const struct tarn_replay_options options = {
        .struct_size = sizeof options, .conf = conf, .device_total = device};
    struct tarn_replay_result result = {.struct_size = sizeof result};

    assert_int_equal(tarn_replay_run(replay, &options, &result, NULL), TARN_OK);
    return result;
}

static uint64_t peak(const struct tarn_replay_result *result, enum tarn_stat_kind kind)
{
    return (uint64_t)result->stats.by_pool[kind][TARN_STAT_ALL].peak;
}

static void the_smallest_device_is_enough_and_one_unit_less_is_not(void **state)
{
    static const char *const names[] = {"tiny", "cudagraph", "oom"};
    static const char *const confs[] = {NULL, "", "expandable_segments:True"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct tarn_replay *replay = replay_of(names[i]);

        for (size_t c = 0; c < 3; c++) {
            struct tarn_error error;
            uint64_t capacity = 0;

            assert_int_equal(tarn_replay_fit(replay, confs[c], &capacity, &error), TARN_OK);
            assert_int_equal(capacity % (2 * MIB), 0);
            struct tarn_replay_result result = run_on(replay, confs[c], capacity);
            assert_int_equal(result.first_oom, -1);
            assert_true(peak(&result, TARN_STAT_REQUESTED_BYTES) <= capacity);
            result = run_on(replay, confs[c], capacity - 2 * MIB);
            assert_true(result.first_oom >= 0);
        }
        tarn_replay_destroy(replay);
    }
}

static void bad_settings_fit_nowhere(void **state)
{
    struct tarn_replay *replay = replay_of("tiny");
    struct tarn_error error;
    uint64_t capacity = 7;

    (void)state;
    assert_int_equal(tarn_replay_fit(replay, "nonsense:1", &capacity, &error), TARN_ERR_CONFIG);
    assert_int_equal(capacity, 7);
    tarn_replay_destroy(replay);
}

static size_t tune(const struct tarn_replay *const *replays, size_t count,
                   struct tarn_tune_options options, struct tarn_tune_row *rows)
{
    struct tarn_error error;
    size_t rows_out = 0;

    options.struct_size = sizeof options;
    if (tarn_replay_tune(replays, count, &options, rows, ROWS, &rows_out, &error)) {
        fail_msg("%s", error.text);
    }
    return rows_out;
}

/* Every row says what a replay of its settings says. */
static void rows_are_true(const struct tarn_replay *replay, const struct tarn_tune_row *rows,
                          size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct tarn_replay_options options = {.struct_size = sizeof options,
                                                    .conf = rows[i].conf};
        struct tarn_replay_result result = {.struct_size = sizeof result};

        assert_int_equal(tarn_replay_run(replay, &options, &result, NULL), TARN_OK);
        assert_int_equal(rows[i].peak_reserved, peak(&result, TARN_STAT_RESERVED_BYTES));
        assert_int_equal(rows[i].peak_allocated, peak(&result, TARN_STAT_ALLOCATED_BYTES));
        assert_int_equal(rows[i].peak_requested, peak(&result, TARN_STAT_REQUESTED_BYTES));
        assert_int_equal(rows[i].device_calls,
                         result.stats.num_device_alloc + result.stats.num_device_free);
        assert_int_equal(rows[i].ooms, result.stats.num_ooms);
    }
}

static void rows_are_true_and_the_best_comes_first(void **state)
{
    static const char *const names[] = {"cudagraph", "multistream"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct tarn_replay *replay = replay_of(names[i]);
        const struct tarn_replay *const replays[] = {replay};
        static struct tarn_tune_row rows[ROWS];
        const size_t count = tune(replays, 1, (struct tarn_tune_options){.tries = 60}, rows);

        assert_true(count > 5);
        rows_are_true(replay, rows, count);
        for (size_t k = 2; k < count; k++) {
            assert_true(rows[k].ooms > rows[k - 1].ooms ||
                        (rows[k].ooms == rows[k - 1].ooms &&
                         rows[k].peak_reserved >= rows[k - 1].peak_reserved));
            assert_string_not_equal(rows[k].conf, rows[k - 1].conf);
        }
        assert_true(rows[1].ooms <= rows[0].ooms); /* the recorded settings are no better */
        tarn_replay_destroy(replay);
    }
}

static void goals_have_their_own_order(void **state)
{
    struct tarn_replay *replay = replay_of("cudagraph");
    const struct tarn_replay *const replays[] = {replay};
    static struct tarn_tune_row rows[ROWS];
    size_t count = tune(
        replays, 1, (struct tarn_tune_options){.goal = TARN_TUNE_DEVICE_CALLS, .tries = 60}, rows);

    (void)state;
    for (size_t k = 2; k < count; k++) {
        assert_true(rows[k].device_calls >= rows[k - 1].device_calls);
    }
    count =
        tune(replays, 1, (struct tarn_tune_options){.goal = TARN_TUNE_CAPACITY, .tries = 12}, rows);
    for (size_t k = 1; k < count; k++) {
        uint64_t capacity = 0;

        assert_int_equal(tarn_replay_fit(replay, rows[k].conf, &capacity, NULL), TARN_OK);
        assert_int_equal(rows[k].capacity, capacity);
        assert_true(k == 1 || rows[k].capacity >= rows[k - 1].capacity);
    }
    tarn_replay_destroy(replay);
}

static void the_answer_does_not_depend_on_the_threads(void **state)
{
    struct tarn_replay *first = replay_of("cudagraph");
    struct tarn_replay *second = replay_of("tiny");
    const struct tarn_replay *const replays[] = {first, second};
    static struct tarn_tune_row rows[2][ROWS];
    const size_t count = tune(replays, 2, (struct tarn_tune_options){.threads = 1}, rows[0]);

    (void)state;
    assert_true(count > 5);
    assert_int_equal(tune(replays, 2, (struct tarn_tune_options){.threads = 7}, rows[1]), count);
    assert_memory_equal(rows[0], rows[1], sizeof rows[0]);
    tarn_replay_destroy(first);
    tarn_replay_destroy(second);
}

static void several_traces_are_summed(void **state)
{
    struct tarn_replay *replay = replay_of("tiny");
    const struct tarn_replay *const replays[] = {replay, replay};
    static struct tarn_tune_row one[ROWS];
    static struct tarn_tune_row two[ROWS];

    (void)state;
    assert_int_equal(tune(replays, 1, (struct tarn_tune_options){.tries = 20}, one),
                     tune(replays, 2, (struct tarn_tune_options){.tries = 20}, two));
    assert_string_equal(one[1].conf, two[1].conf);
    assert_int_equal(2 * one[1].peak_reserved, two[1].peak_reserved);
    assert_int_equal(2 * one[0].device_calls, two[0].device_calls);
    tarn_replay_destroy(replay);
}

static void collection_is_only_tried_under_a_limit(void **state)
{
    struct tarn_replay *replay = replay_of("multistream");
    const struct tarn_replay *const replays[] = {replay};
    static struct tarn_tune_row rows[ROWS];
    size_t count = tune(replays, 1, (struct tarn_tune_options){.tries = 40}, rows);
    bool found = false;

    (void)state;
    for (size_t i = 0; i < count; i++) {
        assert_null(strstr(rows[i].conf, "garbage"));
    }
    count =
        tune(replays, 1, (struct tarn_tune_options){.memory_limit = 700 * MIB, .tries = 60}, rows);
    for (size_t i = 0; i < count; i++) {
        found = found || strstr(rows[i].conf, "garbage");
    }
    assert_true(found);
    tarn_replay_destroy(replay);
}

static bool tries_collection(const struct tarn_replay *const *replays, size_t count,
                             uint64_t device)
{
    static struct tarn_tune_row rows[ROWS];
    const size_t found =
        tune(replays, count,
             (struct tarn_tune_options){.tries = 60, .each = true, .device_total = device}, rows);
    bool tries = false;

    for (size_t i = 1; i < found; i++) {
        tries = tries || strstr(rows[i].conf, "garbage");
    }
    return tries;
}

/* A limit that one of the runs had counts, but not the size of its device, nor beside another. */
static void limits_of_the_runs_count(void **state)
{
    struct tarn_replay *replay = replay_of("tiny");
    struct tarn_replay limited = *replay;
    struct tarn_replay small_device = *replay;
    const struct tarn_replay *const replays[] = {&limited, replay, &limited};
    const struct tarn_replay *const small[] = {&small_device, replay};

    (void)state;
    limited.program.limit.bytes = 700 * MIB;
    small_device.program.limit = (struct tn_limit){.bytes = 700 * MIB, .by_device = true};
    assert_true(tries_collection(replays, 1, 0));
    assert_true(tries_collection(replays, 3, 0));
    assert_false(tries_collection(&replays[1], 1, 0));
    assert_false(tries_collection(small, 2, 0));
    assert_false(tries_collection(replays, 3, 700 * MIB));
    tarn_replay_destroy(replay);
}

/* All is computed by the thread that searches. */
static void without_more_threads_the_answer_is_the_same(void **state)
{
    struct tarn_replay *replay = replay_of("tiny");
    const struct tarn_replay *const replays[] = {replay};
    static struct tarn_tune_row rows[2][ROWS];
    pthread_attr_t usual;
    pthread_attr_t huge;
    size_t counts[2];

    (void)state;
    assert_int_equal(pthread_getattr_default_np(&usual), 0);
    assert_int_equal(pthread_attr_init(&huge), 0);
    assert_int_equal(pthread_attr_setstacksize(&huge, (size_t)1 << 50), 0);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pthread_setattr_default_np(i ? &huge : &usual), 0);
        counts[i] =
            tune(replays, 1, (struct tarn_tune_options){.tries = 40, .threads = 4}, rows[i]);
    }
    assert_int_equal(pthread_setattr_default_np(&usual), 0);
    (void)pthread_attr_destroy(&huge);
    (void)pthread_attr_destroy(&usual);
    assert_int_equal(counts[0], counts[1]);
    for (size_t i = 0; i < counts[0]; i++) {
        assert_string_equal(rows[0][i].conf, rows[1][i].conf);
        assert_int_equal(rows[0][i].peak_reserved, rows[1][i].peak_reserved);
    }
    tarn_replay_destroy(replay);
}

struct heard {
    uint64_t calls;
    uint64_t last;
    uint64_t total;
    uint64_t stop_at; /* calls */
};

static bool hear(void *context, uint64_t done, uint64_t total)
{
    struct heard *heard = context;

    assert_true(done >= heard->last && done <= total);
    heard->last = done;
    heard->total = total;
    return ++heard->calls != heard->stop_at;
}

static void progress_is_told_and_may_stop_it(void **state)
{
    struct tarn_replay *replay = replay_of("tiny");
    const struct tarn_replay *const replays[] = {replay};
    struct tarn_tune_row rows[ROWS];
    struct heard heard = {0};
    struct tarn_tune_options options = {
        .struct_size = sizeof options, .tries = 8, .threads = 1, .progress = {hear, &heard}};
    struct tarn_error error;
    size_t count = 0;

    (void)state;
    assert_int_equal(tarn_replay_tune(replays, 1, &options, rows, ROWS, &count, &error), TARN_OK);
    assert_int_equal(heard.total, 8);
    assert_int_equal(heard.calls, 9); /* the recorded settings first */
    heard = (struct heard){.stop_at = 2};
    assert_int_equal(tarn_replay_tune(replays, 1, &options, rows, ROWS, &count, &error),
                     TARN_ERR_CANCELLED);
    assert_string_equal(error.text, "the search was stopped by the caller");
    assert_int_equal(heard.calls, 2);
    options.threads = 3;
    heard = (struct heard){.stop_at = 1};
    (void)!tarn_replay_tune(replays, 1, &options, rows, ROWS, &count, &error);
    assert_true(heard.calls <= 1);
    tarn_replay_destroy(replay);
}

static void misuse_is_refused(void **state)
{
    struct tarn_replay *replay = replay_of("tiny");
    const struct tarn_replay *const replays[] = {replay};
    struct tarn_tune_options options = {.struct_size = sizeof options,
                                        .goal = (enum tarn_tune_goal)9};
    static struct tarn_tune_row rows[ROWS];
    struct tarn_error error;
    size_t count = 0;

    (void)state;
    assert_int_equal(tarn_replay_tune(replays, 0, NULL, rows, ROWS, &count, &error),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_replay_tune(replays, 1, NULL, rows, 0, &count, &error),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_replay_tune(replays, 1, &options, rows, ROWS, &count, &error),
                     TARN_ERR_INVALID_ARGUMENT);
    tarn_replay_destroy(replay);
}

/* More tries and threads than there may be, and room for one row or two. */
static void bounds_of_a_search(void **state)
{
    struct tarn_replay *replay = replay_of("tiny");
    const struct tarn_replay *const replays[] = {replay};
    static struct tarn_tune_row rows[ROWS];
    struct tarn_tune_options options = {.struct_size = sizeof options,
                                        .tries = 3,
                                        .threads = 1000,
                                        .recommends = true,
                                        .device_total = (uint64_t)80 << 30};
    struct tarn_error error;
    size_t count = 0;

    (void)state;
    for (size_t capacity = 1; capacity <= 3; capacity++) {
        assert_int_equal(tarn_replay_tune(replays, 1, &options, rows, capacity, &count, &error),
                         TARN_OK);
        assert_true(count >= 1 && count <= capacity);
    }
    options.tries = UINT32_MAX;
    options.each = true; /* which needs few */
    assert_int_equal(tarn_replay_tune(replays, 1, &options, rows, ROWS, &count, &error), TARN_OK);
    assert_true(count > 1);
    tarn_replay_destroy(replay);
}

/* Each row is what a replay under those settings takes. */
static void each_setting_is_shown_by_itself(void **state)
{
    struct tarn_replay *replay = replay_of("oom");
    const struct tarn_replay *const replays[] = {replay};
    static struct tarn_tune_row rows[ROWS];
    const size_t count = tune(replays, 1, (struct tarn_tune_options){.each = true}, rows);
    bool grows = false;

    (void)state;
    assert_true(count > 20);
    assert_string_equal(rows[1].conf, "");
    for (size_t i = 1; i < count; i++) {
        const struct tarn_replay_result result = run_on(replay, rows[i].conf, 0);

        assert_null(strchr(rows[i].conf, ','));
        assert_int_equal(rows[i].peak_reserved, peak(&result, TARN_STAT_RESERVED_BYTES));
        assert_int_equal(rows[i].ooms, result.stats.num_ooms);
        grows = grows || strcmp(rows[i].conf, "expandable_segments:True") == 0;
        for (size_t k = 1; k < i; k++) {
            assert_string_not_equal(rows[k].conf, rows[i].conf);
        }
    }
    assert_true(grows);
    tarn_replay_destroy(replay);
}

static void every_host_failure_is_reported(void **state)
{
    struct tarn_replay *replay = replay_of("tiny");
    const struct tarn_replay *const replays[] = {replay};
    const struct tarn_tune_options options = {
        .struct_size = sizeof options, .tries = 3, .threads = 1};
    static struct tarn_tune_row rows[ROWS];
    const uint64_t live = tarn_host_get_usage().live_bytes;
    uint64_t failures = 0;
    uint64_t calls = UINT64_MAX; /* as many as a run makes: some it can do without */

    (void)state;
    for (uint64_t n = 1; n <= calls; n++) {
        const uint64_t before = tarn_host_get_usage().alloc_calls;
        struct tarn_error error = {.status = TARN_OK};
        size_t count = 0;

        tarn_host_fail_nth(n);
        const enum tarn_status st =
            tarn_replay_tune(replays, 1, &options, rows, ROWS, &count, &error);

        calls = st ? calls : tarn_host_get_usage().alloc_calls - before;
        tarn_host_fail_nth(0);
        assert_true(st == TARN_OK || st == TARN_ERR_HOST_MEMORY);
        assert_int_equal(tarn_host_get_usage().live_bytes, live);
        failures += st != TARN_OK;
    }
    assert_true(failures > 10);
    tarn_replay_destroy(replay);
}

/* Of several traces, those behind one that failed are left out. */
static void a_trace_that_fails_is_the_last(void **state)
{
    struct tarn_replay *replay = replay_of("tiny");
    const struct tarn_replay *const replays[] = {replay, replay};
    const struct tarn_tune_options options = {
        .struct_size = sizeof options, .tries = 1, .threads = 1};
    static struct tarn_tune_row rows[ROWS];
    uint64_t fewest = UINT64_MAX;
    uint64_t most = 0;

    (void)state;
    for (uint64_t n = 1; n <= 40; n++) {
        const uint64_t before = tarn_host_get_usage().alloc_calls;
        struct tarn_error error = {.status = TARN_OK};
        size_t count = 0;

        tarn_host_fail_nth(n);
        const enum tarn_status st =
            tarn_replay_tune(replays, 2, &options, rows, ROWS, &count, &error);
        const uint64_t calls = tarn_host_get_usage().alloc_calls - before;

        tarn_host_fail_nth(0);
        assert_true(st == TARN_OK || st == TARN_ERR_HOST_MEMORY);
        fewest = st != TARN_OK && calls < fewest ? calls : fewest;
        most = calls > most ? calls : most;
    }
    assert_true(fewest < most);
    tarn_replay_destroy(replay);
}

/* The recorded run again, under other settings. */
static struct tarn_replay *replay_again(const char *name, const char *conf)
{
    const struct tarn_replay_options options = {
        .struct_size = sizeof options, .conf = conf, .memory_limit = UINT64_MAX};
    struct tarn_replay_result result = {.struct_size = sizeof result};
    char path[1024];
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_snapshot *again = NULL;
    struct tarn_replay *replay = NULL;
    struct tarn_error error;

    (void)snprintf(path, sizeof path, "%s/snapshots/%s.pickle.gz", TEST_DATA_DIR, name);
    if (tarn_snapshot_load(path, NULL, &snapshot, &error) ||
        tarn_replay_create(snapshot, -1, &replay, &error) ||
        tarn_replay_capture(replay, snapshot, &options, &result, &again, &error)) {
        fail_msg("%s: %s", name, error.text);
    }
    tarn_replay_destroy(replay);
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_replay_create(again, -1, &replay, &error), TARN_OK);
    tarn_snapshot_destroy(again);
    return replay;
}

static size_t options_in(const char *conf)
{
    size_t count = conf[0] != '\0';

    for (; *conf; conf++) {
        count += *conf == ',';
    }
    return count;
}

/* Against all that the search tried: nothing simpler is within 1 %. */
static void what_it_recommends_is_the_simplest_of_the_best(void **state)
{
    static const char *const names[] = {"cudagraph", "oom", "multistream"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        static struct tarn_tune_row rows[ROWS];
        static struct tarn_tune_row all[ROWS];
        struct tarn_replay *replay = replay_of(names[i]);
        const struct tarn_replay *const replays[] = {replay};
        const size_t count =
            tune(replays, 1, (struct tarn_tune_options){.tries = 60, .recommends = true}, rows);
        const size_t found = tune(replays, 1, (struct tarn_tune_options){.tries = 60}, all);
        const double enough = 1.01 * (double)all[1].peak_reserved;

        assert_true(count > 2);
        assert_true(rows[1].ooms <= all[1].ooms && (double)rows[1].peak_reserved <= enough);
        for (size_t k = 1; k < found; k++) {
            assert_false(all[k].ooms <= all[1].ooms && (double)all[k].peak_reserved <= enough &&
                         options_in(all[k].conf) < options_in(rows[1].conf));
        }
        tarn_replay_destroy(replay);
    }
}

static void recorded_settings_are_kept_when_nothing_gains(void **state)
{
    static struct tarn_tune_row rows[ROWS];
    struct tarn_replay *replay = replay_again("tiny", "max_split_size_mb:512");
    const struct tarn_replay *const replays[] = {replay};

    (void)state;
    (void)tune(replays, 1, (struct tarn_tune_options){.recommends = true}, rows);
    assert_string_equal(rows[0].conf, "max_split_size_mb:512");
    assert_string_equal(rows[1].conf, "max_split_size_mb:512");
    assert_string_equal(rows[1].removed, "");
    tarn_replay_destroy(replay);
}

static void a_harmful_option_is_named(void **state)
{
    static struct tarn_tune_row rows[ROWS];
    struct tarn_replay *replay =
        replay_again("gpt2_varlen", "garbage_collection_threshold:0.8,"
                                    "roundup_power2_divisions:[256:1,512:2,>:1]");
    const struct tarn_replay *const replays[] = {replay};
    size_t named = 0;

    (void)state;
    const size_t count = tune(replays, 1, (struct tarn_tune_options){.recommends = true}, rows);

    for (size_t i = 1; i < count && i < 3; i++) {
        if (rows[i].removed[0]) {
            named++;
            assert_true((double)rows[0].peak_reserved > 1.01 * (double)rows[i].peak_reserved);
            assert_string_equal(rows[i].removed, "roundup_power2_divisions");
            assert_string_equal(rows[i].conf, "garbage_collection_threshold:0.8");
        }
    }
    assert_int_equal(named, 1);

    /* What is recommended comes before what does harm, where there is room for one. */
    for (size_t capacity = 1; capacity <= 2; capacity++) {
        const struct tarn_tune_options few = {
            .struct_size = sizeof few, .tries = 3, .recommends = true};
        size_t given = 0;

        assert_int_equal(tarn_replay_tune(replays, 1, &few, rows, capacity, &given, NULL), TARN_OK);
        assert_int_equal(given, capacity);
    }
    assert_string_equal(rows[1].conf, "");
    assert_string_equal(rows[1].removed, "");
    tarn_replay_destroy(replay);
}

/* Each option but the rules; as many as may be tried. */
static void options_are_removed_one_by_one(void **state)
{
    static const char *const removed[][2] = {
        {"max_split_size_mb", "rules:2.14,roundup_power2_divisions:[256:1,512:2,>:1],"
                              "garbage_collection_threshold:0.8"},
        {"roundup_power2_divisions",
         "rules:2.14,max_split_size_mb:64,garbage_collection_threshold:0.8"},
        {"garbage_collection_threshold",
         "rules:2.14,max_split_size_mb:64,roundup_power2_divisions:[256:1,512:2,>:1]"}};
    char conf[] = "rules:2.14,max_split_size_mb:64,roundup_power2_divisions:[256:1,512:2,>:1],"
                  "garbage_collection_threshold:0.8";
    struct tarn_replay *replay = replay_of("multistream");
    struct tarn_replay recorded = *replay;
    const struct tarn_replay *const replays[] = {&recorded};
    static struct tarn_tune_row rows[ROWS];

    (void)state;
    recorded.conf = conf;
    for (uint32_t tries = 1; tries <= 3; tries++) {
        const size_t count =
            tune(replays, 1, (struct tarn_tune_options){.tries = tries, .recommends = true}, rows);
        size_t seen = 0;

        assert_string_equal(rows[0].conf, conf);
        for (size_t i = 1; i < count; i++) {
            for (uint32_t k = 0; k < tries; k++) {
                if (strcmp(rows[i].removed, removed[k][0]) == 0) {
                    assert_string_equal(rows[i].conf, removed[k][1]);
                    seen++;
                }
            }
        }
        assert_true(seen > 0);
    }
    tarn_replay_destroy(replay);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_smallest_device_is_enough_and_one_unit_less_is_not),
        cmocka_unit_test(bad_settings_fit_nowhere),
        cmocka_unit_test(rows_are_true_and_the_best_comes_first),
        cmocka_unit_test(goals_have_their_own_order),
        cmocka_unit_test(the_answer_does_not_depend_on_the_threads),
        cmocka_unit_test(several_traces_are_summed),
        cmocka_unit_test(collection_is_only_tried_under_a_limit),
        cmocka_unit_test(progress_is_told_and_may_stop_it),
        cmocka_unit_test(misuse_is_refused),
        cmocka_unit_test(bounds_of_a_search),
        cmocka_unit_test(each_setting_is_shown_by_itself),
        cmocka_unit_test(what_it_recommends_is_the_simplest_of_the_best),
        cmocka_unit_test(recorded_settings_are_kept_when_nothing_gains),
        cmocka_unit_test(a_harmful_option_is_named),
        cmocka_unit_test(options_are_removed_one_by_one),
        cmocka_unit_test(limits_of_the_runs_count),
        cmocka_unit_test(without_more_threads_the_answer_is_the_same),
        cmocka_unit_test(every_host_failure_is_reported),
        cmocka_unit_test(a_trace_that_fails_is_the_last),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
