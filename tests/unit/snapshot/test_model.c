/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "snapshot/model.h"
#include "tarn/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void equal_things_have_one_number(void **state)
{
    const struct tn_trace_extra extra = {.compile_context = 3, .has_pool = true};
    const struct tn_trace_extra pool = {.has_pool = true, .pool = {{7, 9}}};
    const struct tn_frame frame = {.name = 1, .filename = 2, .line = -5};
    const struct tn_frame_fx fx = {.node_op = 4};
    const uint32_t numbers[] = {1, 0, 1};
    struct tn_model model;
    uint32_t a, b;

    (void)state;
    assert_int_equal(tn_model_init(&model, 0), TARN_OK);
    assert_int_equal(tn_model_add_string(&model, "x\0y", 3, &a), TARN_OK);
    assert_int_equal(tn_model_add_string(&model, "x\0z", 3, &b), TARN_OK);
    assert_int_not_equal(a, b);
    assert_int_equal(tn_model_string(&model, a).length, 3);
    assert_int_equal(tn_model_add_string(&model, "", 0, &b), TARN_OK);
    assert_int_not_equal(b, TN_STRING_NONE);
    assert_int_equal(tn_model_add_frame(&model, &frame, &a), TARN_OK);
    assert_int_equal(tn_model_add_frame(&model, &frame, &b), TARN_OK);
    assert_int_equal(a, b);
    assert_int_equal(tn_model_add_fx(&model, &fx, &a), TARN_OK);
    assert_int_equal(tn_model_add_fx(&model, &fx, &b), TARN_OK);
    assert_int_equal(a, b);
    assert_int_equal(tn_model_add_stack(&model, numbers, 3, &a), TARN_OK);
    assert_int_equal(tn_model_add_stack(&model, numbers, 2, &b), TARN_OK);
    assert_int_not_equal(a, b);
    assert_int_equal(tn_model_add_stack(&model, NULL, 0, &b), TARN_OK);
    assert_int_equal(b, TN_STACK_EMPTY);
    assert_int_equal(tn_model_add_extra(&model, &extra, &a), TARN_OK);
    assert_int_equal(tn_model_add_extra(&model, &extra, &b), TARN_OK);
    assert_int_equal(a, b);
    assert_int_equal(tn_model_add_extra(&model, &(struct tn_trace_extra){0}, &b), TARN_OK);
    assert_int_equal(b, TN_EXTRA_NONE);
    assert_int_equal(tn_model_add_extra(&model, &pool, &a), TARN_OK);
    assert_int_equal(tn_model_add_extra(&model, &pool, &b), TARN_OK);
    assert_int_equal(a, b);
    assert_int_equal(tn_model_add_shape(&model, numbers, 3, &a), TARN_OK);
    assert_int_equal(tn_model_add_shape(&model, numbers, 3, &b), TARN_OK);
    assert_int_equal(a, b);
    tn_model_fini(&model);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* Whoever walks the records meets what they share each time, so it counts each time. */
static void what_is_shared_counts_each_time(void **state)
{
    const struct tn_frame frame = {0};
    const uint32_t frames[] = {1, 1, 1};
    struct tn_model model;
    uint32_t number, stack;
    uint64_t fits = 0;

    (void)state;
    assert_int_equal(tn_model_init(&model, 1 << 20), TARN_OK);
    assert_int_equal(tn_model_add_frame(&model, &frame, &number), TARN_OK);
    assert_int_equal(number, 1);
    assert_int_equal(tn_model_add_stack(&model, frames, 3, &stack), TARN_OK);
    const struct tn_trace_entry entry = {.stack = stack};
    const uint64_t bytes = tn_model_entry_written(&model, &entry);

    assert_true(bytes > 120 && bytes < 1000);
    while (tn_model_charge_written(&model, bytes) == TARN_OK) {
        fits++;
    }
    assert_int_equal(fits, (TN_WRITTEN_PER_MEMORY << 20) / bytes);
    assert_int_equal(tn_model_memory_status(&model), TARN_ERR_LIMIT);
    tn_model_fini(&model);

    assert_int_equal(tn_model_init(&model, 0), TARN_OK);
    assert_int_equal(tn_model_charge_written(&model, UINT64_MAX), TARN_OK);
    assert_int_equal(tn_model_charge_written(&model, UINT64_MAX), TARN_OK);
    tn_model_fini(&model);
}

/* ---- things that differ in one part ---- */

/* Numbers are found by hashes of 32 bits. Of so many things some share a hash, whatever the seed:
 * about ten pairs. */
enum {
    MANY = 300000
};

enum part {
    FRAME_NAME,
    FRAME_FILENAME,
    FRAME_LINE,
    FRAME_FX,
    EXTRA_COMPILE_CONTEXT,
    EXTRA_USER_METADATA,
    EXTRA_INTERNAL_METADATA,
    EXTRA_CATEGORY,
    EXTRA_ACTION_NAME,
    EXTRA_SHAPE,
    EXTRA_REST,
    EXTRA_POOL_FIRST,
    EXTRA_POOL_SECOND,
    FX_OP,
    A_STRING,
    A_STACK,
    A_SHAPE,
    FIELD_KEY,
    FIELD_INTEGER,
    PART_COUNT
};

static enum tarn_status frame_with(struct tn_model *model, enum part part, uint32_t i,
                                   uint32_t *number_out)
{
    struct tn_frame frame = {.name = 1, .filename = 2, .line = 3};

    frame.name = part == FRAME_NAME ? i : frame.name;
    frame.filename = part == FRAME_FILENAME ? i : frame.filename;
    frame.line = part == FRAME_LINE ? (int64_t)i : frame.line;
    frame.fx = part == FRAME_FX ? i : frame.fx;
    return tn_model_add_frame(model, &frame, number_out);
}

static enum tarn_status extra_with(struct tn_model *model, enum part part, uint32_t i,
                                   uint32_t *number_out)
{
    struct tn_trace_extra extra = {.category = 7, .has_pool = true};

    extra.compile_context = part == EXTRA_COMPILE_CONTEXT ? i : 0;
    extra.user_metadata = part == EXTRA_USER_METADATA ? i : 0;
    extra.internal_metadata = part == EXTRA_INTERNAL_METADATA ? i : 0;
    extra.category = part == EXTRA_CATEGORY ? i : extra.category;
    extra.action_name = part == EXTRA_ACTION_NAME ? i : 0;
    extra.shape = part == EXTRA_SHAPE ? i : 0;
    extra.rest = part == EXTRA_REST ? i : 0;
    extra.pool.id[0] = part == EXTRA_POOL_FIRST ? i : 0;
    extra.pool.id[1] = part == EXTRA_POOL_SECOND ? i : 0;
    return tn_model_add_extra(model, &extra, number_out);
}

static enum tarn_status thing_with(struct tn_model *model, enum part part, uint32_t i,
                                   uint32_t *number_out)
{
    const uint32_t numbers[] = {1, i, 2};
    const struct tn_field field = {.key = part == FIELD_KEY ? i : 0,
                                   .kind = TN_FIELD_INT,
                                   .value = {.integer = part == FIELD_INTEGER ? (int64_t)i : 5}};
    char text[16];

    switch ((int)part) {
    case FX_OP:
        return tn_model_add_fx(model, &(struct tn_frame_fx){.node_op = i}, number_out);
    case A_STRING:
        (void)snprintf(text, sizeof text, "text%07u", i);
        return tn_model_add_string(model, text, strlen(text), number_out);
    case A_STACK:
        return tn_model_add_stack(model, numbers, 3, number_out);
    case A_SHAPE:
        return tn_model_add_shape(model, numbers, 3, number_out);
    case FIELD_KEY:
    case FIELD_INTEGER:
        return tn_model_add_container(model, TN_CONTAINER_DICT, &field, 1, number_out);
    default:
        return part < EXTRA_COMPILE_CONTEXT ? frame_with(model, part, i, number_out)
                                            : extra_with(model, part, i, number_out);
    }
}

static void equal_hashes_do_not_make_equal(void **state)
{
    (void)state;
    for (enum part part = 0; part < PART_COUNT; part++) {
        const bool is_shown = part == A_STACK || part == FIELD_KEY; /* looks at what it names */
        struct tn_model model;
        uint32_t before = 0;
        uint32_t number;

        assert_int_equal(tn_model_init(&model, 0), TARN_OK);
        for (uint32_t i = 10; is_shown && i < MANY + 10;
             i++) { /* frames, strings of those numbers */
            assert_int_equal(thing_with(&model, A_STRING, i, &number), TARN_OK);
            assert_int_equal(frame_with(&model, FRAME_LINE, i, &number), TARN_OK);
        }
        for (uint32_t i = 10; i < MANY; i++) {
            assert_int_equal(thing_with(&model, part, i, &number), TARN_OK);
            if (i > 10 && number != before + 1) {
                fail_msg("part %d: %u has the number %u", (int)part, i, number);
            }
            before = number;
        }
        tn_model_fini(&model);
    }
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* These have equal hashes by design. */
static void a_pool_of_zero_is_not_no_pool(void **state)
{
    const struct tn_trace_extra with = {.has_pool = true};
    const struct tn_trace_extra without = {.pool = {{0, 1}}};
    struct tn_model model;
    uint32_t a;
    uint32_t b;

    (void)state;
    assert_int_equal(tn_model_init(&model, 0), TARN_OK);
    assert_int_equal(tn_model_add_extra(&model, &with, &a), TARN_OK);
    assert_int_not_equal(a, TN_EXTRA_NONE);
    assert_int_equal(tn_model_add_extra(&model, &without, &b), TARN_OK);
    assert_int_not_equal(a, b);
    tn_model_fini(&model);
}

/* Numbers have 32 bits. */
static void numbers_end_where_they_must(void **state)
{
    struct tn_model model;
    uint32_t number;

    (void)state;
    assert_int_equal(tn_model_init(&model, 0), TARN_OK);
    const uint64_t count = model.strings.count;

    model.strings.count = UINT32_MAX;
    assert_int_equal(tn_model_add_string(&model, "one more", 8, &number), TARN_ERR_LIMIT);
    model.strings.count = count;
    assert_int_equal(tn_model_add_string(&model, "one more", 8, &number), TARN_OK);
    const uint64_t extras = model.extras.count;
    const struct tn_trace_extra extra = {.category = 7};

    model.extras.count = (uint64_t)1 << 27; /* as many as an entry can name */
    assert_int_equal(tn_model_add_extra(&model, &extra, &number), TARN_ERR_LIMIT);
    model.extras.count = extras;
    tn_model_fini(&model);
}

/* Where a new piece of a table begins, and at every other item. */
static void tables_grow_or_stay(void **state)
{
    struct tn_model model;
    bool failed[3000] = {false};
    size_t failures = 0;

    (void)state;
    assert_int_equal(tn_model_init(&model, 0), TARN_OK);
    for (uint32_t i = 0; i < 3000; i++) {
        char text[16];
        uint32_t number = 0;

        (void)snprintf(text, sizeof text, "%u", i);
        tarn_host_fail_nth(1);
        enum tarn_status status = tn_model_add_string(&model, text, strlen(text), &number);

        if (status) { /* the memory of the text, then that of the table */
            failed[i] = true;
            failures++;
            tarn_host_fail_nth(2);
            status = tn_model_add_string(&model, text, strlen(text), &number);
        }
        tarn_host_fail_nth(0);
        status = status ? tn_model_add_string(&model, text, strlen(text), &number) : status;
        assert_int_equal(status, TARN_OK);
        assert_int_equal(number, i + 1);
    }
    assert_true(failures >= 4 && failed[1023]);
    tn_model_fini(&model);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* ---- containers ---- */

static struct tn_field field_of(enum tn_field_kind kind, uint32_t number)
{
    return (struct tn_field){.kind = (uint8_t)kind, .value = {.number = number}};
}

static uint32_t container_of(struct tn_model *model, enum tn_container_kind kind,
                             const struct tn_field *items, uint32_t count)
{
    uint32_t number;

    assert_int_equal(tn_model_add_container(model, kind, items, count, &number), TARN_OK);
    return number;
}

static void containers_differ_in_kind_count_and_kinds_of_items(void **state)
{
    const struct tn_field whole[] = {field_of(TN_FIELD_INT, 7), field_of(TN_FIELD_INT, 7)};
    const struct tn_field other = field_of(TN_FIELD_UINT, 7);
    struct tn_model model;

    (void)state;
    assert_int_equal(tn_model_init(&model, 0), TARN_OK);
    const uint32_t one = container_of(&model, TN_CONTAINER_LIST, whole, 1);

    assert_int_equal(container_of(&model, TN_CONTAINER_LIST, whole, 1), one);
    assert_int_not_equal(container_of(&model, TN_CONTAINER_TUPLE, whole, 1), one);
    assert_int_not_equal(container_of(&model, TN_CONTAINER_LIST, whole, 2), one);
    assert_int_not_equal(container_of(&model, TN_CONTAINER_LIST, &other, 1), one);
    assert_int_not_equal(container_of(&model, TN_CONTAINER_LIST, NULL, 0), TN_CONTAINER_NONE);
    assert_int_equal(tn_model_container(&model, one).count, 1);
    assert_int_equal(tn_model_container(&model, one).kind, TN_CONTAINER_LIST);
    tn_model_fini(&model);
}

/* What a container costs written out: 8 bytes for an item, and what that is. */
static void containers_know_what_they_cost(void **state)
{
    struct tn_model model;
    uint32_t key;
    uint32_t text;

    (void)state;
    assert_int_equal(tn_model_init(&model, 0), TARN_OK);
    assert_int_equal(tn_model_add_string(&model, "key", 3, &key), TARN_OK);
    assert_int_equal(tn_model_add_string(&model, "four", 4, &text), TARN_OK);
    assert_int_equal(tn_model_fields_written(&model, NULL, 0), 0);
    const struct tn_field items[] = {
        {.key = key, .kind = TN_FIELD_STRING, .value = {.string = text}},
        {.key = key, .kind = TN_FIELD_FLOAT, .value = {.real = 0.5}},
        {.kind = TN_FIELD_BOOL, .value = {.boolean = true}},
        {.kind = TN_FIELD_NONE},
    };
    const uint32_t empty = container_of(&model, TN_CONTAINER_LIST, NULL, 0);
    const uint32_t inner = container_of(&model, TN_CONTAINER_DICT, items, 4);
    const struct tn_field within = field_of(TN_FIELD_CONTAINER, inner);
    const uint32_t outer = container_of(&model, TN_CONTAINER_LIST, &within, 1);

    assert_int_equal(tn_model_container(&model, empty).written, 0);
    assert_int_equal(tn_model_container(&model, inner).written, 4 * 8 + 2 * 3 + 4);
    assert_int_equal(tn_model_container(&model, outer).written, 8 + 4 * 8 + 2 * 3 + 4);
    assert_ptr_equal(tn_container_find(&model, inner, key),
                     tn_model_container(&model, inner).items);
    assert_null(tn_container_find(&model, inner, text));
    tn_model_fini(&model);
}

static void containers_know_of_frames_within(void **state)
{
    const struct tn_frame frame = {.line = 3};
    struct tn_model model;
    uint32_t number;
    uint32_t stack;

    (void)state;
    assert_int_equal(tn_model_init(&model, 0), TARN_OK);
    assert_int_equal(tn_model_add_frame(&model, &frame, &number), TARN_OK);
    assert_int_equal(tn_model_add_stack(&model, &number, 1, &stack), TARN_OK);
    const struct tn_field items[] = {field_of(TN_FIELD_INT, 1), field_of(TN_FIELD_FRAME, number),
                                     field_of(TN_FIELD_INT, 2)};
    const struct tn_field walk[] = {field_of(TN_FIELD_INT, 1), field_of(TN_FIELD_STACK, stack)};
    const uint32_t with_frame = container_of(&model, TN_CONTAINER_LIST, items, 3);
    const uint32_t without = container_of(&model, TN_CONTAINER_LIST, items, 1);
    const uint32_t with_stack = container_of(&model, TN_CONTAINER_LIST, walk, 2);
    const struct tn_field nested[] = {field_of(TN_FIELD_CONTAINER, with_frame),
                                      field_of(TN_FIELD_CONTAINER, without)};

    assert_true(tn_model_container(&model, with_frame).has_frames);
    assert_false(tn_model_container(&model, without).has_frames);
    assert_true(tn_model_container(&model, with_stack).has_frames);
    assert_true(
        tn_model_container(&model, container_of(&model, TN_CONTAINER_LIST, nested, 2)).has_frames);
    assert_false(tn_model_container(&model, container_of(&model, TN_CONTAINER_LIST, &nested[1], 1))
                     .has_frames);
    tn_model_fini(&model);
}

/* Lists of a list twice, in lists twice: each step doubles what is written. */
static void what_doubles_becomes_too_large(void **state)
{
    static const uint64_t limits[] = {1 << 20, 0};

    (void)state;
    for (size_t l = 0; l < 2; l++) {
        const struct tn_field first = {.kind = TN_FIELD_INT};
        struct tn_model model;
        uint64_t written = 8;
        uint32_t inner;

        assert_int_equal(tn_model_init(&model, limits[l]), TARN_OK);
        inner = container_of(&model, TN_CONTAINER_LIST, &first, 1);
        while (inner != TN_CONTAINER_TOO_LARGE) {
            const struct tn_field items[] = {field_of(TN_FIELD_CONTAINER, inner),
                                             field_of(TN_FIELD_CONTAINER, inner)};

            assert_int_equal(tn_model_container(&model, inner).written, written);
            written = 2 * (8 + written);
            inner = container_of(&model, TN_CONTAINER_LIST, items, 2);
        }
        assert_true(written > (limits[l] ? limits[l] * TN_WRITTEN_PER_MEMORY : UINT32_MAX));
        assert_true(written / 2 - 8 <=
                    (limits[l] ? limits[l] * TN_WRITTEN_PER_MEMORY : UINT32_MAX));
        tn_model_fini(&model);
    }
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* ---- bounds ---- */

static void sizes_and_times_have_bounds(void **state)
{
    static const struct {
        int64_t time;
        int64_t taken;
    } times[] = {
        {0, 0},
        {TN_TIME_MAX, TN_TIME_MAX},
        {-TN_TIME_MAX, -TN_TIME_MAX},
        {TN_TIME_MAX + 1, TN_TIME_NONE},
        {-TN_TIME_MAX - 1, TN_TIME_NONE},
        {INT64_MAX, TN_TIME_NONE},
    };
    struct tn_model model;
    uint64_t size = TN_SIZES_MAX - 5;

    (void)state;
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        int64_t time = times[i].time;

        assert_int_equal(tn_time_take(&time), times[i].taken != TN_TIME_NONE);
        assert_int_equal(time, times[i].taken);
    }
    assert_int_equal(tn_model_init(&model, 0), TARN_OK);
    assert_true(tn_model_take_size(&model, &size));
    size = 6;
    assert_false(tn_model_take_size(&model, &size));
    assert_int_equal(size, 0);
    size = 5;
    assert_true(tn_model_take_size(&model, &size));
    assert_int_equal(size, 5);
    tn_model_fini(&model);
}

/* The more was read, the more may be written; not beyond what 64 bits hold. */
static void the_bound_grows_with_the_input(void **state)
{
    struct tn_model model;
    uint64_t input = 0;

    (void)state;
    assert_int_equal(tn_model_init(&model, 1 << 20), TARN_OK);
    assert_int_equal(tn_model_written_limit(&model), 64 << 20);
    model.budget.input = &input;
    model.written_per_byte = 3;
    assert_int_equal(tn_model_written_limit(&model), 64 << 20);
    input = 100 << 20;
    assert_int_equal(tn_model_written_limit(&model), 300 << 20);
    input = UINT64_MAX / 2;
    assert_int_equal(tn_model_written_limit(&model), UINT64_MAX);
    assert_int_equal(tn_model_charge_written(&model, UINT64_MAX - 1), TARN_OK);
    assert_false(model.budget.exceeded);
    assert_int_equal(tn_model_charge_written(&model, 2), TARN_ERR_LIMIT); /* the sum overflows */
    assert_true(model.budget.exceeded);
    tn_model_fini(&model);
    assert_int_equal(tn_model_init(&model, UINT64_MAX / 2), TARN_OK);
    assert_int_equal(tn_model_written_limit(&model), UINT64_MAX);
    tn_model_fini(&model);
}

static void every_init_failure_is_clean(void **state)
{
    struct tn_model model;
    enum tarn_status status = TARN_ERR_HOST_MEMORY;

    (void)state;
    for (uint64_t n = 1; status != TARN_OK; n++) {
        tarn_host_fail_nth(n);
        status = tn_model_init(&model, 0);
        tarn_host_fail_nth(0);
        assert_true(status == TARN_OK || tarn_host_get_usage().live_bytes == 0);
    }
    tn_model_fini(&model);
    assert_int_equal(tn_model_init(&model, 100), TARN_ERR_LIMIT);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void names_are_those_of_files(void **state)
{
    (void)state;
    assert_string_equal(tn_trace_action_name(TN_TRACE_SEGMENT_UNMAP), "segment_unmap");
    assert_string_equal(tn_trace_action_name(TN_TRACE_OTHER), "other");
    assert_string_equal(tn_block_state_name(TN_BLOCK_ACTIVE_PENDING_FREE), "active_pending_free");
}

/* What a stack costs when it is written out has an end. */
static void frames_may_cost_more_than_can_be_counted(void **state)
{
    enum {
        LENGTH = 2 << 20,
        FRAMES = 2200
    };
    char *name = calloc(1, LENGTH);
    uint32_t *frames = calloc(FRAMES, sizeof *frames);
    struct tn_frame frame = {.line = 1};
    struct tn_model model;
    uint32_t number;
    uint32_t stack;

    (void)state;
    assert_int_equal(tn_model_init(&model, 0), TARN_OK);
    assert_int_equal(tn_model_add_string(&model, name, LENGTH, &frame.name), TARN_OK);
    assert_int_equal(tn_model_add_frame(&model, &frame, &number), TARN_OK);
    for (size_t i = 0; i < FRAMES; i++) {
        frames[i] = number;
    }
    assert_int_equal(tn_model_add_stack(&model, frames, FRAMES, &stack), TARN_OK);
    assert_int_equal(tn_model_stack(&model, stack).written, UINT32_MAX);
    assert_int_equal(tn_model_add_stack(&model, frames, 1, &stack), TARN_OK);
    assert_in_range(tn_model_stack(&model, stack).written, LENGTH, LENGTH + 100);
    tn_model_fini(&model);
    free(frames);
    free(name);
}

/* ---- what records cost ---- */

static uint32_t text_of(struct tn_model *model, size_t length)
{
    static char text[1 << 17];
    uint32_t number;

    assert_true(length < sizeof text);
    memset(text, 'x', length);
    assert_int_equal(tn_model_add_string(model, text, length, &number), TARN_OK);
    return number;
}

/* A frame costs 48 bytes and all its texts, a stack its frames. */
static void frames_and_stacks_cost_their_texts(void **state)
{
    struct tn_model model;
    uint32_t frames[2];
    uint32_t stack;

    (void)state;
    assert_int_equal(tn_model_init(&model, 0), TARN_OK);
    const struct tn_field item = field_of(TN_FIELD_STRING, text_of(&model, 70));
    const struct tn_frame_fx fx = {.node_op = text_of(&model, 300),
                                   .node_name = text_of(&model, 1000),
                                   .node_target = text_of(&model, 2000),
                                   .original_trace = text_of(&model, 5000),
                                   .rest = container_of(&model, TN_CONTAINER_DICT, &item, 1)};
    struct tn_frame frame = {.name = text_of(&model, 10), .filename = text_of(&model, 100)};

    assert_int_equal(tn_model_add_frame(&model, &frame, &frames[0]), TARN_OK);
    assert_int_equal(tn_model_add_fx(&model, &fx, &frame.fx), TARN_OK);
    assert_int_equal(tn_model_add_frame(&model, &frame, &frames[1]), TARN_OK);
    assert_int_equal(tn_model_add_stack(&model, frames, 1, &stack), TARN_OK);
    assert_int_equal(tn_model_stack(&model, stack).written, 48 + 110);
    assert_int_equal(tn_model_add_stack(&model, frames, 2, &stack), TARN_OK);
    const uint64_t both = 48 + 110 + 48 + 110 + 300 + 1000 + 2000 + 5000 + 8 + 70;

    assert_int_equal(tn_model_stack(&model, stack).written, both);
    const struct tn_field walk = field_of(TN_FIELD_STACK, stack);
    const struct tn_field one = field_of(TN_FIELD_FRAME, frames[0]);

    assert_int_equal(tn_model_fields_written(&model, &walk, 1), 8 + both);
    assert_int_equal(tn_model_fields_written(&model, &one, 1), 8 + 48 + 110);
    tn_model_fini(&model);
}

/* Each text of an extra, and its other keys. */
static void extras_cost_their_texts(void **state)
{
    struct tn_model model;
    uint32_t number;

    (void)state;
    assert_int_equal(tn_model_init(&model, 0), TARN_OK);
    const struct tn_field item = field_of(TN_FIELD_STRING, text_of(&model, 70));
    const struct tn_trace_extra extra = {.compile_context = text_of(&model, 10),
                                         .user_metadata = text_of(&model, 100),
                                         .internal_metadata = text_of(&model, 300),
                                         .category = text_of(&model, 1000),
                                         .action_name = text_of(&model, 2000),
                                         .rest = container_of(&model, TN_CONTAINER_DICT, &item, 1)};

    assert_int_equal(tn_model_add_extra(&model, &extra, &number), TARN_OK);
    assert_int_equal(tn_model_extra_written(&model, number), 10 + 100 + 300 + 1000 + 2000 + 78);
    assert_int_equal(tn_model_extra_written(&model, TN_EXTRA_NONE), 0);
    tn_model_fini(&model);
}

/* The last byte that is allowed, and one more. */
static void limits_are_exact(void **state)
{
    const struct tn_field item = field_of(TN_FIELD_INT, 5);
    struct tn_model model;
    uint32_t number;

    (void)state;
    assert_int_equal(tn_model_init(&model, 1 << 20), TARN_OK);
    model.written_most = 8;
    assert_int_not_equal(container_of(&model, TN_CONTAINER_LIST, &item, 1), TN_CONTAINER_TOO_LARGE);
    assert_int_equal(tn_model_charge_written(&model, 7), TARN_OK);
    assert_int_equal(tn_model_charge_written(&model, 1), TARN_OK);
    assert_int_equal(tn_model_charge_written(&model, 1), TARN_ERR_LIMIT);
    model.written_most = 7;
    assert_int_equal(container_of(&model, TN_CONTAINER_TUPLE, &item, 1), TN_CONTAINER_TOO_LARGE);
    tn_model_fini(&model);

    /* Without a limit, UINT32_MAX. */
    assert_int_equal(tn_model_init(&model, 0), TARN_OK);
    for (uint64_t less = 0; less < 2; less++) {
        uint32_t lists[30]; /* each twice as large as the one before */
        struct tn_field items[32];
        uint32_t count = 0;
        uint64_t left = UINT32_MAX - less;

        lists[0] = container_of(&model, TN_CONTAINER_LIST, &item, 1);
        for (size_t i = 1; i < 28; i++) {
            const struct tn_field twice[] = {field_of(TN_FIELD_CONTAINER, lists[i - 1]),
                                             field_of(TN_FIELD_CONTAINER, lists[i - 1])};

            lists[i] = container_of(&model, TN_CONTAINER_LIST, twice, 2);
        }
        for (size_t i = 28; i-- > 10;) {
            const uint64_t cost = 8 + tn_model_container(&model, lists[i]).written;

            for (; left > cost + 8 && count < 31; left -= cost) {
                items[count++] = field_of(TN_FIELD_CONTAINER, lists[i]);
            }
        }
        items[count++] = field_of(TN_FIELD_STRING, text_of(&model, left - 8));
        assert_int_equal(tn_model_fields_written(&model, items, count), UINT32_MAX - less);
        number = container_of(&model, TN_CONTAINER_LIST, items, count);
        assert_int_equal(number == TN_CONTAINER_TOO_LARGE, less == 0);
    }
    tn_model_fini(&model);
}

/* The next piece of memory fails, whatever it is for. */
static void copies_need_memory(void **state)
{
    const uint32_t keys[] = {1, 2, 3};
    const struct tn_field item = field_of(TN_FIELD_INT, 5);
    enum tarn_status status[3];
    struct tn_model model;
    uint32_t number;

    (void)state;
    assert_int_equal(tn_model_init(&model, 0), TARN_OK);
    tarn_host_fail_nth(1);
    while (tn_arena_alloc(&model.arena, 1)) { /* takes what there is */
        tarn_host_fail_nth(1);
    }
    tarn_host_fail_nth(1);
    status[0] = tn_model_add_shape(&model, keys, 3, &number);
    tarn_host_fail_nth(1);
    status[1] = tn_model_add_container(&model, TN_CONTAINER_LIST, &item, 1, &number);
    tarn_host_fail_nth(1);
    status[2] = tn_model_add_stack(&model, keys, 0, &number);
    tarn_host_fail_nth(0);
    assert_int_equal(status[0], TARN_ERR_HOST_MEMORY);
    assert_int_equal(status[1], TARN_ERR_HOST_MEMORY);
    assert_int_equal(status[2], TARN_OK); /* there is one already */
    assert_int_equal(tn_model_add_shape(&model, keys, 3, &number), TARN_OK);
    assert_int_equal(tn_model_add_container(&model, TN_CONTAINER_LIST, &item, 1, &number), TARN_OK);
    tn_model_fini(&model);
}

/* ---- texts and traces ---- */

static void a_text_is_another_one_only_as_a_whole(void **state)
{
    (void)state;
    assert_true(tn_string_is((struct tn_string){"alloc", 5}, "alloc"));
    assert_false(tn_string_is((struct tn_string){"alloc", 3}, "alloc"));
    assert_false(tn_string_is((struct tn_string){"alloc", 0}, "alloc"));
    assert_false(tn_string_is((struct tn_string){"allot", 5}, "alloc"));
    assert_true(tn_string_is((struct tn_string){"", 0}, ""));
}

/* From anywhere in a trace, in either direction: as many entries as lie side by side. */
static void runs_are_as_long_as_entries_lie_together(void **state)
{
    enum {
        ENTRIES = 3 * TN_CHUNKED_VEC_CHUNK
    };
    static const uint64_t firsts[] = {0, 1, 700, TN_CHUNKED_VEC_CHUNK - 1, TN_CHUNKED_VEC_CHUNK};
    struct tn_model model;
    uint64_t number;

    (void)state;
    assert_int_equal(tn_model_init(&model, 0), TARN_OK);
    for (uint64_t i = 0; i < ENTRIES; i++) {
        const struct tn_trace_entry entry = {.address = i};

        assert_int_equal(tn_model_add_entry(&model, &entry, &number), TARN_OK);
    }
    for (size_t k = 0; k < sizeof firsts / sizeof *firsts; k++) {
        const struct tn_trace trace = {.first = firsts[k], .count = ENTRIES - 10 - firsts[k]};

        for (uint64_t i = 0; i < trace.count; i++) {
            const uint64_t at = trace.first + i; /* in the vector */
            const uint64_t chunk = at / TN_CHUNKED_VEC_CHUNK * TN_CHUNKED_VEC_CHUNK;
            const uint64_t from = chunk > trace.first ? chunk : trace.first;
            const uint64_t end = chunk + TN_CHUNKED_VEC_CHUNK;
            const uint64_t to = end < ENTRIES - 10 ? end : ENTRIES - 10;
            uint64_t count = 0;
            const struct tn_trace_entry *run = tn_trace_run_from(&model, &trace, i, &count);

            assert_int_equal(run->address, at);
            assert_int_equal(count, to - at);
            run = tn_trace_run_before(&model, &trace, i + 1, &count);
            assert_int_equal(count, at + 1 - from);
            assert_int_equal(run->address, from);
        }
    }
    tn_model_fini(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_things_have_one_number),
        cmocka_unit_test(what_is_shared_counts_each_time),
        cmocka_unit_test(equal_hashes_do_not_make_equal),
        cmocka_unit_test(a_pool_of_zero_is_not_no_pool),
        cmocka_unit_test(numbers_end_where_they_must),
        cmocka_unit_test(tables_grow_or_stay),
        cmocka_unit_test(containers_differ_in_kind_count_and_kinds_of_items),
        cmocka_unit_test(containers_know_what_they_cost),
        cmocka_unit_test(containers_know_of_frames_within),
        cmocka_unit_test(what_doubles_becomes_too_large),
        cmocka_unit_test(sizes_and_times_have_bounds),
        cmocka_unit_test(the_bound_grows_with_the_input),
        cmocka_unit_test(every_init_failure_is_clean),
        cmocka_unit_test(frames_may_cost_more_than_can_be_counted),
        cmocka_unit_test(names_are_those_of_files),
        cmocka_unit_test(frames_and_stacks_cost_their_texts),
        cmocka_unit_test(extras_cost_their_texts),
        cmocka_unit_test(limits_are_exact),
        cmocka_unit_test(copies_need_memory),
        cmocka_unit_test(a_text_is_another_one_only_as_a_whole),
        cmocka_unit_test(runs_are_as_long_as_entries_lie_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
