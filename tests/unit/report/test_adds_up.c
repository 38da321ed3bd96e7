/* SPDX-License-Identifier: MIT */
/* Every report on every recorded run adds up, and says the same as a second, slow computation that
 * shares nothing with the reports but the model: blocks in a plain list, walked entry by entry. */
#include "support/report.h"

#include "snapshot/snapshot.h"
#include "tarn/report.h"

#include <jansson.h>

static const char *const runs[] = {
    "tiny",         "cudagraph", "gpt2_varlen",    "multistream",
    "resnet_sizes", "oom",       "llama_generate", "gpt2_varlen_expandable"};

enum {
    BLOCKS_MAX = 200000
};

struct block {
    uint64_t address;
    uint64_t size;
    uint64_t stream;
    uint64_t start; /* entry; UINT64_MAX: before */
    uint64_t end;   /* entry; UINT64_MAX: never */
};

/* Every block of the trace of device 0. */
struct plain {
    struct block *blocks;
    size_t count;
    uint64_t entries;
};

static struct block *plain_live(struct plain *plain, uint64_t address)
{
    for (size_t i = plain->count; i > 0; i--) {
        struct block *block = &plain->blocks[i - 1];

        if (block->address == address && block->end == UINT64_MAX) {
            return block;
        }
    }
    return NULL;
}

static struct block *plain_push(struct plain *plain, struct block block)
{
    assert_true(plain->count < BLOCKS_MAX);
    plain->blocks[plain->count] = block;
    return &plain->blocks[plain->count++];
}

/* Live blocks are few, so the search from the newest on is short for most. */
static struct plain plain_read(const struct tn_model *model)
{
    struct plain plain = {.blocks = malloc(BLOCKS_MAX * sizeof(struct block)),
                          .entries = model->traces[0].count};

    assert_non_null(plain.blocks);
    for (uint64_t i = 0; i < plain.entries; i++) {
        const struct tn_trace_entry *entry = tn_trace_at(model, &model->traces[0], i);

        if (entry->action == TN_TRACE_ALLOC) {
            plain_push(&plain,
                       (struct block){entry->address, entry->size, entry->stream, i, UINT64_MAX});
        } else if (entry->action == TN_TRACE_FREE_COMPLETED) {
            struct block *block = plain_live(&plain, entry->address);

            if (!block) {
                block = plain_push(&plain, (struct block){entry->address, entry->size,
                                                          entry->stream, UINT64_MAX, UINT64_MAX});
            }
            block->end = i;
        }
    }
    for (size_t i = 0; i < model->segment_count; i++) {
        const struct tn_model_segment *segment = &model->segments[i];

        for (size_t k = 0; k < segment->block_count; k++) {
            const struct tn_model_block *block = &segment->blocks[k];

            if (block->state != TN_BLOCK_INACTIVE && !plain_live(&plain, block->address)) {
                plain_push(&plain, (struct block){block->address, block->requested_size,
                                                  segment->stream, UINT64_MAX, UINT64_MAX});
            }
        }
    }
    return plain;
}

static bool fits(const struct tarn_selection *selection, const struct block *block)
{
    return (!selection->one_stream || block->stream == selection->stream) &&
           block->size >= selection->size_min &&
           (selection->size_max == 0 || block->size <= selection->size_max);
}

static uint64_t plain_sum(const struct plain *plain, uint64_t entry,
                          const struct tarn_selection *selection)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < plain->count; i++) {
        const struct block *block = &plain->blocks[i];
        const bool began = block->start == UINT64_MAX || block->start <= entry;
        const bool ended = block->end != UINT64_MAX && block->end <= entry;

        if (began && !ended && (!selection || fits(selection, block))) {
            sum += block->size;
        }
    }
    return sum;
}

/* ---- reports as values ---- */

typedef enum tarn_status report_of(const struct tarn_snapshot *snapshot,
                                   const struct tarn_report_options *options,
                                   const struct tarn_writer *writer, struct tarn_error *error);

struct asked {
    report_of *report;
    const struct tarn_snapshot *snapshot;
    const struct tarn_report_options *options;
};

static enum tarn_status ask(const void *context, const struct tarn_writer *writer,
                            struct tarn_error *error)
{
    const struct asked *asked = context;

    return asked->report(asked->snapshot, asked->options, writer, error);
}

/* The first device of a report; `*root_out` is to be given back. */
static json_t *device_of(report_of *report, const struct tarn_snapshot *snapshot,
                         const struct tarn_report_options *options, json_t **root_out)
{
    const struct asked asked = {report, snapshot, options};
    char *text = report_text(ask, &asked);
    json_error_t error;

    *root_out = json_loads(text, 0, &error);
    if (!*root_out) {
        fail_msg("%s: %s", error.text, text);
    }
    free(text);
    return json_array_get(json_object_get(json_object_get(*root_out, "data"), "devices"), 0);
}

static uint64_t number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_integer(value)) {
        fail_msg("no number \"%s\"", key);
    }
    return (uint64_t)json_integer_value(value);
}

/* Rows of a list plus the others make the total, for one member. */
static void adds_up(const json_t *object, const char *list, const char *key)
{
    uint64_t sum = number(json_object_get(object, "others"), key);
    const json_t *rows = json_object_get(object, list);
    size_t i;
    json_t *row;

    assert_true(json_is_array(rows));
    json_array_foreach(rows, i, row)
    {
        sum += number(row, key);
    }
    assert_int_equal(sum, number(json_object_get(object, "total"), key));
}

/* ---- what is asked ---- */

static const enum tarn_grouping groupings[] = {
    TARN_BY_STACK,   TARN_BY_FRAME,      TARN_BY_FUNCTION, TARN_BY_FILE,    TARN_BY_LINE,
    TARN_BY_STREAM,  TARN_BY_CATEGORY,   TARN_BY_POOL,     TARN_BY_SEGMENT, TARN_BY_SIZE,
    TARN_BY_COMPILE, TARN_BY_ANNOTATION, TARN_BY_METADATA, TARN_BY_MODULE,
};

enum {
    GROUPINGS = sizeof groupings / sizeof groupings[0],
    SELECTIONS = 6
};

static struct tarn_selection selection_of(size_t number, uint64_t entries)
{
    struct tarn_selection selection = {.struct_size = sizeof selection};

    switch (number) {
    case 1:
        selection.size_min = 1 << 20;
        break;
    case 2:
        selection.size_max = 4096;
        break;
    case 3:
        selection.one_stream = true;
        break;
    case 4:
        selection.events = (struct tarn_span){true, entries / 3, entries / 3 * 2};
        break;
    case 5:
        selection.events = (struct tarn_span){true, entries / 4, UINT64_MAX};
        selection.size_min = 1000;
        selection.hide = "/torch/";
        selection.depth = 3;
        break;
    default:
        break;
    }
    return selection;
}

static void live_is_right(const struct tarn_snapshot *snapshot, const struct plain *plain,
                          struct tarn_report_options *options, struct tarn_selection *selection)
{
    const uint64_t first = selection->events.is_given ? selection->events.first : 0;
    const uint64_t last = selection->events.is_given && selection->events.last != UINT64_MAX
                              ? selection->events.last
                              : plain->entries - 1;

    for (int i = 0; i < 3; i++) {
        const uint64_t entry = first + (last - first) * (uint64_t)i / 2;
        json_t *root;

        selection->at = (struct tarn_instant){TARN_AT_EVENT, entry};
        const json_t *device = device_of(tarn_report_live, snapshot, options, &root);
        const json_t *instant = json_object_get(device, "instant");

        adds_up(instant, "groups", "bytes");
        adds_up(instant, "groups", "blocks");
        assert_int_equal(number(instant, "requested_bytes"), plain_sum(plain, entry, selection));
        assert_int_equal(number(json_object_get(instant, "total"), "bytes"),
                         number(instant, "requested_bytes"));
        assert_int_equal(number(instant, "requested_bytes") + number(instant, "left_out_bytes"),
                         plain_sum(plain, entry, NULL));
        json_decref(root);
    }
    selection->at = (struct tarn_instant){.kind = TARN_AT_UNSPECIFIED};
}

/* The peak of the slow computation: at every entry that allocates something. */
static void peak_is_right(const struct tarn_snapshot *snapshot, struct tarn_report_options *options)
{
    json_t *root;
    const json_t *device = device_of(tarn_report_peak, snapshot, options, &root);
    const json_t *peak = json_object_get(device, "requested_peak");

    adds_up(peak, "groups", "bytes");
    adds_up(json_object_get(device, "reserved_peak"), "groups", "bytes");
    assert_int_equal(number(json_object_get(peak, "total"), "bytes"),
                     number(peak, "requested_bytes"));
    json_decref(root);
}

static void top_is_right(const struct tarn_snapshot *snapshot, const struct plain *plain,
                         const struct tarn_report_options *options,
                         const struct tarn_selection *selection)
{
    json_t *root;
    const json_t *device = device_of(tarn_report_top, snapshot, options, &root);
    uint64_t count = 0;
    uint64_t bytes = 0;

    for (size_t i = 0; i < plain->count; i++) {
        const struct block *block = &plain->blocks[i];
        const struct tarn_span *part = &selection->events;
        const bool inside =
            block->start != UINT64_MAX &&
            (!part->is_given || (block->start >= part->first && block->start <= part->last));

        if (inside && fits(selection, block)) {
            count++;
            bytes += block->size;
        }
    }
    adds_up(device, "stacks", "peak_bytes");
    adds_up(device, "stacks", "end_bytes");
    adds_up(device, "stacks", "allocated_bytes");
    adds_up(device, "stacks", "allocations");
    assert_int_equal(number(json_object_get(device, "total"), "allocations"), count);
    assert_int_equal(number(json_object_get(device, "total"), "allocated_bytes"), bytes);
    json_decref(root);
}

static void churn_is_right(const struct tarn_snapshot *snapshot, const struct plain *plain,
                           const struct tarn_report_options *options,
                           const struct tarn_selection *selection)
{
    json_t *root;
    const json_t *device = device_of(tarn_report_churn, snapshot, options, &root);
    uint64_t count = 0;

    for (size_t i = 0; i < plain->count; i++) {
        const struct block *block = &plain->blocks[i];
        const struct tarn_span *part = &selection->events;
        const bool inside =
            block->start != UINT64_MAX && block->end != UINT64_MAX &&
            (!part->is_given || (block->start >= part->first && block->end <= part->last));

        count += inside && block->end - block->start <= 64 && fits(selection, block);
    }
    adds_up(device, "groups", "blocks");
    adds_up(device, "groups", "bytes");
    assert_int_equal(number(json_object_get(device, "total"), "blocks"), count);
    json_decref(root);
}

/* Of every moment that leaks compare: rows, more, others and suppressed make the total, which is
 * what is in use. */
static void leaks_are_right(const struct tarn_snapshot *snapshot, const struct plain *plain,
                            const struct tarn_report_options *options,
                            const struct tarn_selection *selection)
{
    static const char *const sums[] = {"more_that_grow", "others", "suppressed"};
    json_t *root;
    const json_t *device = device_of(tarn_report_leaks, snapshot, options, &root);
    const json_t *moments = json_object_get(device, "points");

    for (size_t i = 0; i < json_array_size(moments); i++) {
        const json_t *rows = json_object_get(device, "groups");
        uint64_t sum = 0;
        size_t k;
        json_t *row;

        json_array_foreach(rows, k, row)
        {
            sum += (uint64_t)json_integer_value(json_array_get(json_object_get(row, "bytes"), i));
        }
        for (k = 0; k < sizeof sums / sizeof *sums; k++) {
            sum += (uint64_t)json_integer_value(
                json_array_get(json_object_get(json_object_get(device, sums[k]), "bytes"), i));
        }
        assert_int_equal(sum, json_integer_value(json_array_get(
                                  json_object_get(json_object_get(device, "total"), "bytes"), i)));
        assert_int_equal(
            sum,
            plain_sum(plain, (uint64_t)json_integer_value(json_array_get(moments, i)), selection));
    }
    json_decref(root);
}

static void reserved_is_its_parts(const json_t *state)
{
    assert_int_equal(number(state, "reserved_bytes"),
                     number(state, "requested_bytes") + number(state, "rounding_bytes") +
                         number(state, "slack_bytes") + number(state, "free_bytes"));
}

static void frag_is_right(const struct tarn_snapshot *snapshot, const struct plain *plain,
                          const struct tarn_report_options *options)
{
    json_t *root;
    const json_t *device = device_of(tarn_report_frag, snapshot, options, &root);
    const json_t *instant = json_object_get(device, "instant");
    const json_t *states = json_object_get(device, "over_time");
    const json_t *pinned = json_object_get(device, "pinned");
    size_t i;
    json_t *state;

    reserved_is_its_parts(instant);
    json_array_foreach(states, i, state)
    {
        reserved_is_its_parts(state);
        assert_int_equal(number(state, "requested_bytes"),
                         plain_sum(plain, number(state, "event"), NULL));
    }
    adds_up(pinned, "segments", "unused_bytes");
    adds_up(pinned, "segments", "used_bytes");
    adds_up(pinned, "segments", "blocks");
    json_decref(root);
}

static void everything_adds_up(void **state)
{
    (void)state;
    for (size_t r = 0; r < sizeof runs / sizeof *runs; r++) {
        struct tarn_snapshot *snapshot = report_load(runs[r]);
        struct plain plain = plain_read(tn_snapshot_model(snapshot));

        for (size_t s = 0; s < SELECTIONS; s++) {
            struct tarn_selection selection = selection_of(s, plain.entries);
            struct tarn_report_options options = {.struct_size = sizeof options,
                                                  .format = TARN_REPORT_JSON,
                                                  .rows = 3,
                                                  .selection = &selection};

            top_is_right(snapshot, &plain, &options, &selection);
            churn_is_right(snapshot, &plain, &options, &selection);
            leaks_are_right(snapshot, &plain, &options, &selection);
            peak_is_right(snapshot, &options);
            frag_is_right(snapshot, &plain, &options);
            live_is_right(snapshot, &plain, &options, &selection);
        }
        free(plain.blocks);
        tarn_snapshot_destroy(snapshot);
    }
}

static void every_grouping_adds_up(void **state)
{
    (void)state;
    for (size_t r = 0; r < sizeof runs / sizeof *runs; r++) {
        struct tarn_snapshot *snapshot = report_load(runs[r]);
        struct plain plain = plain_read(tn_snapshot_model(snapshot));

        for (size_t g = 0; g < GROUPINGS; g++) {
            struct tarn_selection selection = selection_of(g % SELECTIONS, plain.entries);
            struct tarn_report_options options = {.struct_size = sizeof options,
                                                  .format = TARN_REPORT_JSON,
                                                  .rows = 2,
                                                  .selection = &selection,
                                                  .by = groupings[g]};

            live_is_right(snapshot, &plain, &options, &selection);
        }
        free(plain.blocks);
        tarn_snapshot_destroy(snapshot);
    }
}

/* Changes between any two runs add up, and are those of the totals. */
/* Every row of a tree is the sum of the rows below it, if there are any; the first is the total. */
static void tree_adds_up(const json_t *object, const char *key)
{
    const json_t *rows = json_object_get(object, "tree");
    const size_t count = json_array_size(rows);
    uint64_t *below = calloc(count, sizeof *below);
    bool *has_below = calloc(count, sizeof *has_below);

    assert_true(count > 0 && below && has_below);
    assert_int_equal(number(json_array_get(rows, 0), key),
                     number(json_object_get(object, "total"), key));
    for (size_t i = 0; i < count; i++) {
        const json_t *row = json_array_get(rows, i);

        assert_int_equal(number(row, "id"), i);
        assert_int_equal(json_is_null(json_object_get(row, "parent")), i == 0);
        if (i > 0) {
            const uint64_t parent = number(row, "parent");

            assert_true(parent < i);
            below[parent] += number(row, key);
            has_below[parent] = true;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (has_below[i]) {
            assert_int_equal(below[i], number(json_array_get(rows, i), key));
        }
    }
    free(has_below);
    free(below);
}

static void trees_add_up(void **state)
{
    static const struct {
        uint64_t rows;
        double min_share;
    } shapes[] = {{0, 0}, {3, 0}, {1, 10}, {1000000, 1}, {1000000, 0}};

    (void)state;
    for (size_t run = 0; run < sizeof runs / sizeof *runs; run++) {
        struct tarn_snapshot *snapshot = report_load(runs[run]);

        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            const struct tarn_report_options options = {.struct_size = sizeof options,
                                                        .format = TARN_REPORT_JSON,
                                                        .tree = true,
                                                        .one_device = true,
                                                        .rows = shapes[i].rows,
                                                        .min_share = shapes[i].min_share};
            json_t *root;
            const json_t *device = device_of(tarn_report_peak, snapshot, &options, &root);

            tree_adds_up(json_object_get(device, "requested_peak"), "bytes");
            tree_adds_up(json_object_get(device, "reserved_peak"), "blocks");
            json_decref(root);
            device = device_of(tarn_report_top, snapshot, &options, &root);
            tree_adds_up(device, "peak_bytes");
            tree_adds_up(device, "end_bytes");
            tree_adds_up(device, "allocated_bytes");
            tree_adds_up(device, "allocations");
            json_decref(root);
        }
        tarn_snapshot_destroy(snapshot);
    }
}

static void differences_add_up(void **state)
{
    (void)state;
    for (size_t r = 1; r < sizeof runs / sizeof *runs; r++) {
        struct tarn_snapshot *before = report_load(runs[r - 1]);
        struct tarn_snapshot *after = report_load(runs[r]);
        const struct tarn_report_options options = {
            .struct_size = sizeof options, .format = TARN_REPORT_JSON, .rows = 4};
        struct test_collect collect = {.text = calloc(1, 1)};
        const struct tarn_writer writer = {test_collect_write, &collect};
        struct tarn_diff_counts counts;
        struct tarn_error error;
        json_error_t json_error;

        assert_int_equal(tarn_report_diff(before, after, &options, NULL, &writer, &counts, &error),
                         TARN_OK);
        json_t *root = json_loads(collect.text, 0, &json_error);

        assert_non_null(root);
        const json_t *device =
            json_array_get(json_object_get(json_object_get(root, "data"), "devices"), 0);
        const json_t *total = json_object_get(device, "total");
        const json_t *kinds = json_object_get(device, "kinds");
        json_int_t change = 0;
        const char *kind;
        json_t *sum;

        adds_up(device, "changes", "before_bytes");
        adds_up(device, "changes", "after_bytes");
        assert_int_equal(number(total, "before_bytes"),
                         number(json_object_get(device, "before"), "requested_bytes"));
        assert_int_equal(number(total, "after_bytes"),
                         number(json_object_get(device, "after"), "requested_bytes"));
        assert_int_equal(number(total, "after_bytes"), counts.after_bytes);
        json_object_foreach((json_t *)(uintptr_t)kinds, kind, sum)
        {
            change += json_integer_value(json_object_get(sum, "change_bytes"));
        }
        assert_int_equal(change, json_integer_value(json_object_get(total, "change_bytes")));
        json_decref(root);
        free(collect.text);
        tarn_snapshot_destroy(after);
        tarn_snapshot_destroy(before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_adds_up),
        cmocka_unit_test(every_grouping_adds_up),
        cmocka_unit_test(trees_add_up),
        cmocka_unit_test(differences_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
