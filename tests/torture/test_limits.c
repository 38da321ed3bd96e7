/* SPDX-License-Identifier: MIT */
/*
 * Limits that no test could reach in a reasonable time: here they are low (TN_LIMITS_LOW). What
 * goes beyond them is refused or left out, as the limit says, and nothing else changes. Hashes have
 * three bits (TN_HASHES_ALIKE).
 */
#include "support/test.h"

#include "page/hidden_texts.h"
#include "replay/compile.h"
#include "replay/limit.h"
#include "replay/pool_search.h"
#include "snapshot/snapshot.h"
#include "support/two_pools.h"
#include "tarn/host.h"
#include "tarn/replay.h"
#include "tarn/snapshot.h"
#include "tarn/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- searches ---- */

struct made {
    struct trace_model trace;
    struct tn_program program;
    struct tarn_config config;
};

static void made_open(struct made *made, const struct trace_row *rows, size_t count,
                      const struct tn_model_segment *segments, size_t segment_count)
{
    struct tarn_error error = {.text = ""};

    assert_int_equal(tarn_config_parse("", &made->config, NULL), TARN_OK);
    trace_open(&made->trace, rows, count, segments, segment_count);
    if (tn_program_compile(&made->program, &made->trace.model, 0, &made->config, &error)) {
        fail_msg("%s", error.text);
    }
}

static void made_close(struct made *made)
{
    tn_program_fini(&made->program);
    trace_close(&made->trace);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

enum {
    ROWS_MAX = 1024
};

/* Pools that the search finds behind so many requests. */
static unsigned pools_found(size_t requests)
{
    static struct trace_row rows[ROWS_MAX];
    struct made made;
    struct tarn_error error;
    unsigned found = 0;

    assert_true(requests + TWO_POOLS <= ROWS_MAX);
    for (size_t i = 0; i < requests; i++) { /* of blocks that are too large for the free ones */
        rows[i] = (struct trace_row){i % 2 ? TN_TRACE_ALLOC : TN_TRACE_SEGMENT_ALLOC,
                                     A + 64 * GIB + i / 2 * 64 * MIB, 20 * MIB, 0};
    }
    memcpy(&rows[requests], two_pools, sizeof two_pools);
    made_open(&made, rows, requests + TWO_POOLS, &two_pools_kept, 1);
    assert_int_equal(tn_pool_search(&made.program, &made.trace.model, &made.config, &error),
                     TARN_OK);
    for (uint32_t i = 0; i < made.program.note_count; i++) {
        const char *at = strstr(made.program.notes[i], "by the addresses of blocks: ");

        found =
            at ? (unsigned)strtoul(at + strlen("by the addresses of blocks: "), NULL, 10) : found;
    }
    made_close(&made);
    return found;
}

static void a_search_for_pools_ends(void **state)
{
    (void)state;
    assert_int_equal(pools_found(0), 1); /* and no more: its place is taken */
    assert_int_equal(pools_found(100), 1);
    assert_int_equal(pools_found(800), 0); /* the first attempts were all that it may replay */
}

/* Allocations of a search for a limit that no replay confirms, with so many pages at the start. */
static uint64_t limit_costs(size_t pages)
{
    static const struct trace_row rows[] = {
        {TN_TRACE_SEGMENT_ALLOC, A + 64 * GIB, 100 * MIB, 0},
        {TN_TRACE_ALLOC, A + 64 * GIB + 512, 50 * MIB, 0}, /* not where an allocator has it */
        {TN_TRACE_OOM, GIB, 300 * MIB, 0},
    };
    const struct tn_model_segment before = {
        .address = A, .total_size = pages * 2 * MIB, .is_expandable = true};
    struct made made;
    struct tarn_error error;

    made_open(&made, rows, 3, &before, pages > 0);
    assert_true(tn_limit_shows(&made.program.limit));
    const uint64_t calls = tarn_host_get_usage().alloc_calls;

    assert_int_equal(tn_limit_search(&made.program, &made.config, &error), TARN_OK);
    assert_int_equal(made.program.limit.bytes, 0);
    const uint64_t made_calls = tarn_host_get_usage().alloc_calls - calls;

    made_close(&made);
    return made_calls;
}

static void a_search_for_a_limit_ends(void **state)
{
    (void)state;
    assert_true(limit_costs(0) > 1000);
    assert_true(limit_costs(6) < limit_costs(0) / 10);
    assert_true(limit_costs(12) < limit_costs(6)); /* one attempt, not two */
}

/* The first round leaves fewer picks than the next one may expand: those are all. */
static void a_search_for_settings_expands_what_there_is(void **state)
{
    struct tarn_tune_row rows[8];
    const struct tarn_tune_options options = {
        .struct_size = sizeof options, .tries = 400, .threads = 1};
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_replay *replay = NULL;
    size_t count = 0;

    (void)state;
    assert_int_equal(
        tarn_snapshot_load(TEST_DATA_DIR "/snapshots/tiny.pickle.gz", NULL, &snapshot, NULL),
        TARN_OK);
    assert_int_equal(tarn_replay_create(snapshot, -1, &replay, NULL), TARN_OK);
    const struct tarn_replay *const replays[] = {replay};

    assert_int_equal(tarn_replay_tune(replays, 1, &options, rows, 8, &count, NULL), TARN_OK);
    assert_true(count > 1);
    for (size_t i = 1; i < count; i++) {
        assert_true(rows[1].peak_reserved <= rows[i].peak_reserved);
    }
    tarn_replay_destroy(replay);
    tarn_snapshot_destroy(snapshot);
}

/* ---- files ---- */

static void refused(const char *bytes, size_t size, const char *says)
{
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_error error = {.text = ""};

    assert_int_equal(tarn_snapshot_load_memory(bytes, size, NULL, &snapshot, &error),
                     TARN_ERR_LIMIT);
    if (!strstr(error.text, says)) {
        fail_msg("\"%s\" does not say \"%s\"", error.text, says);
    }
    assert_null(snapshot);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void read_well(const char *bytes, size_t size)
{
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_error error = {.text = ""};

    if (tarn_snapshot_load_memory(bytes, size, NULL, &snapshot, &error)) {
        fail_msg("%s", error.text);
    }
    tarn_snapshot_destroy(snapshot);
}

/* Opcodes without a NUL among them; returns the size behind them. */
static size_t put(char *bytes, size_t used, const char *opcodes)
{
    while (*opcodes) {
        bytes[used++] = *opcodes++;
    }
    return used;
}

/* Values of containers that are not closed yet, and of one container. */
static void values_have_a_limit(void **state)
{
    static char text[64 << 10];

    (void)state;
    for (size_t count = 4000; count <= 9000; count += 2500) {
        size_t used = (size_t)snprintf(text, sizeof text, "{\"segments\":[],\"x\":[1");

        for (size_t i = 1; i < count; i++) {
            used += (size_t)snprintf(text + used, sizeof text - used, ",1");
        }
        used += (size_t)snprintf(text + used, sizeof text - used, "]}");
        if (count < 4096) {
            read_well(text, used);
        } else {
            refused(text, used, "too many values in one container");
        }

        /* in a pickle all at once, and a few at a time */
        static const char head[] = "\x80\x04}(\x8c\x08segments]\x8c\1x](";

        memcpy(text, head, sizeof head - 1);
        memset(text + sizeof head - 1, 'N', count);
        used = put(text, sizeof head - 1 + count, "eu.");
        if (count < 4096) {
            read_well(text, used);
        } else {
            refused(text, used, "too many open values");
        }
        used = sizeof head - 2;
        for (size_t i = 0; i < count; i++) {
            used = put(text, used, "Na");
        }
        used = put(text, used, "u.");
        if (count < 5000) {
            read_well(text, used);
        } else {
            refused(text, used, "a container has more than 5000 values at byte ");
        }
    }
}

/* ---- equal hashes ---- */

/* Of every kind, with the same bits. */
static void containers_are_told_apart(void **state)
{
    struct tn_field items[100];
    struct tn_model model;
    uint32_t numbers[100 + TN_FIELD_FRAME] = {0};

    (void)state;
    memset(items, 0, sizeof items);
    assert_int_equal(tn_model_init(&model, 0), TARN_OK);
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t count = 0; count < 100 + TN_FIELD_FRAME; count++) {
            struct tn_field other = {.kind = (uint8_t)(count < 100 ? 0 : count - 99)};
            uint32_t number;

            if (other.kind == TN_FIELD_STACK || other.kind == TN_FIELD_FRAME) {
                numbers[count] = count; /* there are none */
                continue;
            }
            assert_int_equal(tn_model_add_container(&model, TN_CONTAINER_LIST,
                                                    other.kind ? &other : items,
                                                    other.kind ? 1 : count, &number),
                             TARN_OK);
            assert_true(round == 0 || number == numbers[count]);
            numbers[count] = number;
            for (uint32_t i = 0; i < count && round == 0; i++) {
                assert_int_not_equal(numbers[i], number);
            }
        }
    }
    tn_model_fini(&model);
}

/* Of three bits: each is that of many texts. */
static void texts_of_a_page_are_told_apart(void **state)
{
    static char texts[200][4];
    struct tn_hidden_texts hidden;

    (void)state;
    tn_hidden_texts_init(&hidden);
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 200; i++) {
            const struct tn_string text = {.text = texts[i],
                                           .length = (uint32_t)snprintf(texts[i], 4, "%u", i)};

            assert_int_equal(tn_hidden_texts_number(&hidden, text, TN_TEXT_FILE), i + 1);
        }
    }
    assert_int_equal(tn_hidden_texts_number(&hidden, (struct tn_string){.text = ""}, TN_TEXT_FILE),
                     201);
    assert_false(hidden.failed);
    tn_hidden_texts_fini(&hidden);
}

/* Requests go to the pool of their segment, however many hashes are equal. There are more pools
 * than hashes that differ in the first number alone, and more that differ in the second. */
static void pools_of_a_trace_are_told_apart(void **state)
{
    enum {
        IDS = 9, /* and eight hashes */
        POOLS = 2 * IDS
    };
    static struct tn_model_segment segments[POOLS];
    static struct trace_row rows[2 * POOLS];
    struct made made;
    unsigned seen = 0;

    (void)state;
    for (uint64_t i = 0; i < POOLS; i++) {
        const uint64_t address = A + i * 2 * MIB;

        segments[i] = (struct tn_model_segment){.address = address, .total_size = 2 * MIB};
        segments[i].pool.id[i / IDS] = i % IDS + 1;
        rows[2 * i] = (struct trace_row){TN_TRACE_SEGMENT_ALLOC, address, 2 * MIB, 0};
        rows[2 * i + 1] = (struct trace_row){TN_TRACE_ALLOC, address, 512, 0};
    }
    made_open(&made, rows, sizeof rows / sizeof *rows, segments, POOLS);
    const struct tarn_pool_id *pools = made.program.pools.items;
    const struct tn_op *ops = made.program.ops.items;

    assert_int_equal(made.program.pools.count, 1 + POOLS);
    for (size_t i = 0; i < made.program.ops.count; i++) {
        if (ops[i].kind == TN_OP_ALLOC) {
            const uint64_t *id = segments[(ops[i].address - A) / (2 * MIB)].pool.id;

            assert_int_equal(pools[ops[i].pool].first, id[0]);
            assert_int_equal(pools[ops[i].pool].second, id[1]);
            seen++;
        }
    }
    assert_int_equal(seen, POOLS);
    made_close(&made);
}

/* ---- histories ---- */

static void a_history_keeps_the_last_events(void **state)
{
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_error error = {.text = ""};

    (void)state;
    if (tarn_verify_snapshot(TEST_DATA_DIR "/decisions/small_default.jsonl.gz", &snapshot,
                             &error)) {
        fail_msg("%s", error.text);
    }
    const struct tn_model *model = tn_snapshot_model(snapshot);

    assert_int_equal(model->traces[0].count, 2048);
    tarn_snapshot_destroy(snapshot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_search_for_pools_ends),
        cmocka_unit_test(a_search_for_a_limit_ends),
        cmocka_unit_test(a_search_for_settings_expands_what_there_is),
        cmocka_unit_test(values_have_a_limit),
        cmocka_unit_test(containers_are_told_apart),
        cmocka_unit_test(texts_of_a_page_are_told_apart),
        cmocka_unit_test(pools_of_a_trace_are_told_apart),
        cmocka_unit_test(a_history_keeps_the_last_events),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
