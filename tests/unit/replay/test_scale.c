/* SPDX-License-Identifier: MIT */
/* Larger runs: which requests are scaled, by how much, and what fits. */
#include "support/test.h"

#include "alloc/config/size_class.h"
#include "replay/replay.h"
#include "snapshot/snapshot.h"
#include "tarn/host.h"
#include "tarn/replay.h"

#include <stdio.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)

struct made {
    struct tarn_snapshot *snapshot;
    struct tarn_replay *replay;
};

static struct made open_bytes(const char *text)
{
    struct made made = {NULL, NULL};
    struct tarn_error error;

    if (tarn_snapshot_load_memory(text, strlen(text), NULL, &made.snapshot, &error) ||
        tarn_replay_create(made.snapshot, -1, &made.replay, &error)) {
        fail_msg("%s", error.text);
    }
    return made;
}

static struct made open_file(const char *name)
{
    struct made made = {NULL, NULL};
    char path[1024];
    struct tarn_error error;

    (void)snprintf(path, sizeof path, "%s/snapshots/%s.pickle.gz", TEST_DATA_DIR, name);
    if (tarn_snapshot_load(path, NULL, &made.snapshot, &error) ||
        tarn_replay_create(made.snapshot, -1, &made.replay, &error)) {
        fail_msg("%s: %s", name, error.text);
    }
    return made;
}

static void made_close(struct made *made)
{
    tarn_replay_destroy(made->replay);
    tarn_snapshot_destroy(made->snapshot);
}

static int64_t peak(const struct tarn_replay_result *result, enum tarn_stat_kind kind)
{
    return result->stats.by_pool[kind][TARN_STAT_ALL].peak;
}

/* Runs the trace scaled by these rules. */
static struct tarn_replay_result scaled(const struct made *made,
                                        const struct tarn_scale_rule *rules, size_t count,
                                        struct tarn_scale_info *info)
{
    struct tarn_replay_result result = {.struct_size = sizeof result};
    struct tarn_replay *replay = NULL;
    struct tarn_error error;

    info->struct_size = sizeof *info;
    if (tarn_replay_scale(made->replay, made->snapshot, rules, count, &replay, info, &error) ||
        tarn_replay_run(replay, NULL, &result, &error)) {
        fail_msg("%s", error.text);
    }
    tarn_replay_destroy(replay);
    return result;
}

/* One activation, one parameter that stays, one block of an optimizer, each of 4 MiB. */
#define ENTRY(action, address, frame)                                                              \
    "{\"action\":\"" action "\",\"addr\":" #address ",\"size\":4194305,\"stream\":0,"              \
    "\"frames\":[{\"name\":\"f\",\"filename\":\"a.c\",\"line\":1}," frame "]}"
#define PLAIN   "{\"name\":\"forward\",\"filename\":\"model.py\",\"line\":3}"
#define ADAM    "{\"name\":\"step\",\"filename\":\"/torch/optim/adam.py\",\"line\":3}"
#define WRAPPER "{\"name\":\"MyOptimizer_step\",\"filename\":\"train.py\",\"line\":3}"
#define LIFETIME(address, frame)                                                                   \
    ENTRY("alloc", address, frame)                                                                 \
    "," ENTRY("free_requested", address, frame) "," ENTRY("free_completed", address, frame)

static const char trace[] =
    "{\"segments\":[],\"device_traces\":[[" ENTRY("alloc", 20971520, PLAIN) "," LIFETIME(
        62914560, PLAIN) "," LIFETIME(62914560, ADAM) "," LIFETIME(62914560, WRAPPER) "]]}";

static void rules_select_what_they_say(void **state)
{
    static const struct {
        struct tarn_scale_rule rule;
        uint64_t selected;
        int64_t peak;
    } rows[] = {
        {{TARN_SCALE_BATCH, NULL, 2.5, NULL, NULL}, 1, 4194305 + 10485763}, /* rounded up */
        {{TARN_SCALE_ALL, NULL, 2, NULL, NULL}, 4, 4 * INT64_C(4194305)},
        {{TARN_SCALE_MATCH, "^MyOpt", 3, NULL, NULL}, 1, 4 * INT64_C(4194305)},
        {{TARN_SCALE_MATCH, "optim/(sgd|adam)", 3, NULL, NULL}, 1, 4 * INT64_C(4194305)},
        {{TARN_SCALE_MATCH, "forward", 2, NULL, NULL}, 2, 4 * INT64_C(4194305)},
        {{TARN_SCALE_MATCH, "nowhere", 2, NULL, NULL}, 0, 2 * INT64_C(4194305)},
        {{TARN_SCALE_ALL, NULL, 0.5, NULL, NULL}, 4, 2 * INT64_C(2097153)},
    };
    struct made made = open_bytes(trace);

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tarn_scale_info info;
        const struct tarn_replay_result result = scaled(&made, &rows[i].rule, 1, &info);

        assert_int_equal(info.requests, 4);
        assert_int_equal(info.bytes, 4 * 4194305);
        assert_int_equal(info.selected, rows[i].selected);
        assert_int_equal(info.bytes_selected, rows[i].selected * 4194305);
        assert_int_equal(info.bytes_unscaled, 0);
        assert_int_equal(peak(&result, TARN_STAT_REQUESTED_BYTES), rows[i].peak);
    }
    made_close(&made);
}

static bool is_even(void *context, uint64_t entry)
{
    ++*(int *)context;
    return entry % 2 == 0;
}

/* The requests are entries 0, 1, 4 and 7. */
static void a_function_chooses_entries(void **state)
{
    struct made made = open_bytes(trace);
    struct tarn_scale_info info;
    int asked = 0;
    const struct tarn_scale_rule rule = {TARN_SCALE_CHOSEN, NULL, 3, is_even, &asked};
    const struct tarn_replay_result result = scaled(&made, &rule, 1, &info);

    (void)state;
    assert_int_equal(asked, 4);
    assert_int_equal(info.selected, 2);
    assert_int_equal(peak(&result, TARN_STAT_REQUESTED_BYTES), 6 * INT64_C(4194305));
    made_close(&made);
}

static void the_first_rule_that_selects_counts(void **state)
{
    static const struct tarn_scale_rule rules[] = {{TARN_SCALE_MATCH, "adam", 4, NULL, NULL},
                                                   {TARN_SCALE_ALL, NULL, 2, NULL, NULL}};
    struct made made = open_bytes(trace);
    struct tarn_scale_info info;
    const struct tarn_replay_result result = scaled(&made, rules, 2, &info);

    (void)state;
    assert_int_equal(info.selected, 4);
    assert_int_equal(peak(&result, TARN_STAT_REQUESTED_BYTES), 6 * 4194305);
    made_close(&made);
}

static void a_factor_of_one_is_the_run_as_it_was(void **state)
{
    static const char *const names[] = {"tiny", "cudagraph", "oom", "gpt2_varlen_expandable"};
    const struct tarn_scale_rule rule = {TARN_SCALE_ALL, NULL, 1, NULL, NULL};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct made made = open_file(names[i]);
        struct tarn_scale_info info;
        const struct tarn_replay_result result = scaled(&made, &rule, 1, &info);

        assert_int_equal(result.first_other, -1);
        assert_int_equal(result.same_address + info.requests - info.selected, result.allocations);
        made_close(&made);
    }
}

static void twice_the_run_asks_for_twice_as_much(void **state)
{
    const struct tarn_scale_rule rules[] = {{TARN_SCALE_ALL, NULL, 1, NULL, NULL},
                                            {TARN_SCALE_ALL, NULL, 2, NULL, NULL}};
    struct made made = open_file("gpt2_varlen");
    struct tarn_scale_info info;
    const struct tarn_replay_result once = scaled(&made, &rules[0], 1, &info);
    const struct tarn_replay_result twice = scaled(&made, &rules[1], 1, &info);

    (void)state;
    assert_int_equal(peak(&twice, TARN_STAT_REQUESTED_BYTES),
                     2 * peak(&once, TARN_STAT_REQUESTED_BYTES));
    assert_true(peak(&twice, TARN_STAT_RESERVED_BYTES) > peak(&once, TARN_STAT_RESERVED_BYTES));
    made_close(&made);
}

static void it_is_called_an_estimate(void **state)
{
    const struct tarn_scale_rule rule = {TARN_SCALE_BATCH, NULL, 2, NULL, NULL};
    struct made made = open_file("llama_generate");
    struct tarn_replay *replay = NULL;

    (void)state;
    assert_int_equal(tarn_replay_scale(made.replay, made.snapshot, &rule, 1, &replay, NULL, NULL),
                     TARN_OK);
    assert_non_null(strstr(tarn_replay_get_note(replay, 1), "an estimate: "));
    assert_string_equal(tarn_replay_get_note(replay, 2),
                        "561237832 bytes were allocated before the trace and are not scaled");
    tarn_replay_destroy(replay);
    made_close(&made);
}

static bool fits(const struct made *made, double factor, uint64_t device)
{
    const struct tarn_scale_rule rule = {TARN_SCALE_BATCH, NULL, factor, NULL, NULL};
    const struct tarn_replay_options options = {.struct_size = sizeof options,
                                                .device_total = device};
    struct tarn_replay_result result = {.struct_size = sizeof result};
    struct tarn_replay *replay = NULL;

    assert_int_equal(tarn_replay_scale(made->replay, made->snapshot, &rule, 1, &replay, NULL, NULL),
                     TARN_OK);
    assert_int_equal(tarn_replay_run(replay, &options, &result, NULL), TARN_OK);
    tarn_replay_destroy(replay);
    return result.first_oom < 0;
}

static void the_largest_factor_fits_and_one_step_more_does_not(void **state)
{
    const struct tarn_scale_rule rule = {TARN_SCALE_BATCH, NULL, 0, NULL, NULL};
    struct made made = open_file("multistream");

    (void)state;
    for (uint64_t device = 600 * MIB; device <= 3000 * MIB; device += 800 * MIB) {
        const struct tarn_replay_options options = {.struct_size = sizeof options,
                                                    .device_total = device};
        double factor = -1;

        assert_int_equal(tarn_replay_scale_largest(made.replay, made.snapshot, &rule, 1, &options,
                                                   &factor, NULL),
                         TARN_OK);
        if (factor > 0) {
            assert_true(fits(&made, factor, device));
            assert_false(fits(&made, factor + 0x1p-7, device));
        } else {
            assert_false(fits(&made, 0x1p-10, device));
        }
    }
    made_close(&made);
}

static void the_ends_of_the_factors_are_found(void **state)
{
    const struct tarn_scale_rule nothing = {TARN_SCALE_MATCH, "nowhere", 0, NULL, NULL};
    struct made made = open_bytes(trace);
    struct tarn_replay_options options = {.struct_size = sizeof options, .device_total = 64 * MIB};
    double factor = -1;

    (void)state;
    assert_int_equal(
        tarn_replay_scale_largest(made.replay, made.snapshot, &nothing, 1, &options, &factor, NULL),
        TARN_OK);
    assert_true(factor == 0x1p10);
    options.device_total = 2 * MIB;
    assert_int_equal(
        tarn_replay_scale_largest(made.replay, made.snapshot, &nothing, 1, &options, &factor, NULL),
        TARN_OK);
    assert_true(factor == 0);
    made_close(&made);
}

/* No request becomes larger than one that no allocator takes. */
static void sizes_have_an_end(void **state)
{
    static const char asked[] =
        "{\"segments\":[],\"device_traces\":[[{\"action\":\"oom\",\"device_free\":0,"
        "\"size\":36028797018963968,\"stream\":0,\"frames\":[]}]]}";
    const struct tarn_scale_rule rule = {TARN_SCALE_ALL, NULL, 1024, NULL, NULL};
    struct made made = open_bytes(asked);
    struct tarn_replay *replay = NULL;
    struct tarn_replay_result result = {.struct_size = sizeof result};

    (void)state;
    assert_int_equal(tarn_replay_scale(made.replay, made.snapshot, &rule, 1, &replay, NULL, NULL),
                     TARN_OK);
    assert_int_equal(replay->program.ops.count, 1);
    assert_int_equal(((const struct tn_op *)replay->program.ops.items)->size, TN_MAX_REQUEST);
    assert_int_equal(tarn_replay_run(replay, NULL, &result, NULL), TARN_OK);
    assert_int_equal(result.first_oom, 0);
    tarn_replay_destroy(replay);
    made_close(&made);
}

static void misuse_is_refused(void **state)
{
    static const struct tarn_scale_rule rows[] = {
        {TARN_SCALE_ALL, NULL, 0, NULL, NULL},    {TARN_SCALE_ALL, NULL, 1025, NULL, NULL},
        {TARN_SCALE_ALL, NULL, -1, NULL, NULL},   {TARN_SCALE_MATCH, NULL, 2, NULL, NULL},
        {TARN_SCALE_MATCH, "(", 2, NULL, NULL},   {(enum tarn_scale_what)9, NULL, 2, NULL, NULL},
        {TARN_SCALE_CHOSEN, NULL, 2, NULL, NULL},
    };
    struct tarn_scale_rule many[17];
    struct made made = open_bytes(trace);
    struct made other = open_file("tiny");
    struct tarn_replay *replay = NULL;
    struct tarn_error error;
    double factor;

    (void)state;
    for (size_t i = 0; i < 17; i++) {
        many[i] = (struct tarn_scale_rule){TARN_SCALE_ALL, NULL, 2, NULL, NULL};
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(
            tarn_replay_scale(made.replay, made.snapshot, &rows[i], 1, &replay, NULL, &error),
            TARN_ERR_INVALID_ARGUMENT);
    }
    assert_int_equal(tarn_replay_scale(made.replay, made.snapshot, many, 0, &replay, NULL, &error),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_replay_scale(made.replay, made.snapshot, many, 17, &replay, NULL, &error),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_replay_scale(made.replay, other.snapshot, many, 1, &replay, NULL, &error),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        tarn_replay_scale_largest(made.replay, made.snapshot, many, 17, NULL, &factor, &error),
        TARN_ERR_INVALID_ARGUMENT);
    assert_null(replay);
    made_close(&other);
    made_close(&made);
}

static void every_host_failure_is_reported(void **state)
{
    static const struct tarn_scale_rule rules[] = {{TARN_SCALE_MATCH, "adam", 4, NULL, NULL},
                                                   {TARN_SCALE_ALL, NULL, 2, NULL, NULL}};
    struct made made = open_bytes(trace);
    const uint64_t live = tarn_host_get_usage().live_bytes;
    enum tarn_status st = TARN_ERR_HOST_MEMORY;
    uint64_t failures = 0;

    (void)state;
    for (uint64_t n = 1; st != TARN_OK; n++) {
        struct tarn_replay *replay = NULL;
        struct tarn_error error = {.status = TARN_OK};

        tarn_host_fail_nth(n);
        st = tarn_replay_scale(made.replay, made.snapshot, rules, 2, &replay, NULL, &error);
        tarn_host_fail_nth(0);
        assert_true(st == TARN_OK || st == TARN_ERR_HOST_MEMORY);
        assert_int_equal(replay != NULL, st == TARN_OK);
        tarn_replay_destroy(replay);
        assert_int_equal(tarn_host_get_usage().live_bytes, live);
        failures += st != TARN_OK;
    }
    assert_true(failures > 5);
    made_close(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_select_what_they_say),
        cmocka_unit_test(a_function_chooses_entries),
        cmocka_unit_test(the_first_rule_that_selects_counts),
        cmocka_unit_test(a_factor_of_one_is_the_run_as_it_was),
        cmocka_unit_test(twice_the_run_asks_for_twice_as_much),
        cmocka_unit_test(it_is_called_an_estimate),
        cmocka_unit_test(the_largest_factor_fits_and_one_step_more_does_not),
        cmocka_unit_test(the_ends_of_the_factors_are_found),
        cmocka_unit_test(sizes_have_an_end),
        cmocka_unit_test(misuse_is_refused),
        cmocka_unit_test(every_host_failure_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
