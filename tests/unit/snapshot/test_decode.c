/* SPDX-License-Identifier: MIT */
/*
 * What the keys of a snapshot mean, with the decoder driven as a reader drives it: containers
 * are built from values, no file form in between.
 */
#include "support/test.h"

#include "snapshot/decode.h"
#include "snapshot/warning.h"
#include "tarn/host.h"

#include <stdio.h>
#include <string.h>

struct fixture {
    struct tn_model model;
    struct tn_decoder decoder;
    struct tarn_error error;
};

static void start(struct fixture *f)
{
    const struct tn_decode_limits limits = {.max_depth = 8, .max_frames = 16};

    f->error = (struct tarn_error){0};
    assert_int_equal(tn_model_init(&f->model, 0), TARN_OK);
    assert_int_equal(tn_decoder_init(&f->decoder, &f->model, &limits, &f->error), TARN_OK);
}

static void end(struct fixture *f)
{
    tn_decoder_fini(&f->decoder);
    tn_model_fini(&f->model);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static struct tn_value num(int64_t number)
{
    return tn_value_integer(0, number);
}

static struct tn_value str(struct fixture *f, const char *text)
{
    uint32_t string;

    assert_int_equal(tn_model_add_string(&f->model, text, strlen(text), &string), TARN_OK);
    return tn_value_make(TN_VALUE_STRING, 77, string);
}

static struct tn_value new_list(struct fixture *f)
{
    struct tn_value value;

    assert_int_equal(tn_decode_new(&f->decoder, TN_OBJECT_EMPTY_LIST, 55, &value), TARN_OK);
    return value;
}

static struct tn_value new_dict(struct fixture *f)
{
    struct tn_value value;

    assert_int_equal(tn_decode_new(&f->decoder, TN_OBJECT_EMPTY_DICT, 66, &value), TARN_OK);
    return value;
}

static struct tn_value pair(struct fixture *f, int64_t a, int64_t b)
{
    const struct tn_value items[2] = {num(a), num(b)};
    struct tn_value value;

    assert_int_equal(tn_decode_tuple(&f->decoder, items, 2, 44, &value), TARN_OK);
    return value;
}

static enum tarn_status try_set(struct fixture *f, struct tn_value dict, const char *key,
                                struct tn_value value)
{
    const struct tn_value items[2] = {str(f, key), value};

    return tn_decode_set_items(&f->decoder, dict, items, 1);
}

static void set(struct fixture *f, struct tn_value dict, const char *key, struct tn_value value)
{
    assert_int_equal(try_set(f, dict, key, value), TARN_OK);
    assert_string_equal(f->error.text, "");
}

static void append(struct fixture *f, struct tn_value list, struct tn_value item)
{
    assert_int_equal(tn_decode_append(&f->decoder, list, &item, 1), TARN_OK);
}

static struct tn_value list_of(struct fixture *f, struct tn_value item)
{
    const struct tn_value list = new_list(f);

    append(f, list, item);
    return list;
}

static struct tn_value frame(struct fixture *f, int64_t line)
{
    const struct tn_value value = new_dict(f);

    set(f, value, "name", str(f, "main"));
    set(f, value, "filename", str(f, "a.py"));
    set(f, value, "line", num(line));
    return value;
}

static struct tn_value block(struct fixture *f, int64_t size, const char *state)
{
    const struct tn_value value = new_dict(f);

    set(f, value, "size", num(size));
    set(f, value, "state", str(f, state));
    return value;
}

static struct tn_value entry(struct fixture *f, const char *action, int64_t address)
{
    const struct tn_value value = new_dict(f);

    set(f, value, "action", str(f, action));
    set(f, value, "addr", num(address));
    set(f, value, "size", num(512));
    return value;
}

static struct tn_value segment(struct fixture *f, struct tn_value blocks)
{
    const struct tn_value value = new_dict(f);

    set(f, value, "address", num(4096));
    set(f, value, "total_size", num(3072));
    set(f, value, "blocks", blocks);
    return value;
}

static const char *warned(const struct fixture *f, size_t i)
{
    assert_true(i < f->model.warning_count);
    return f->model.warnings[i].text;
}

static void old_blocks_get_addresses_and_sums(void **state)
{
    struct fixture f;
    start(&f);
    const struct tn_value blocks = new_list(&f);
    struct tn_value first = block(&f, 2048, "active_allocated");
    struct tn_value item = new_dict(&f);

    (void)state;
    set(&f, item, "addr", num(4096));
    set(&f, item, "real_size", num(100));
    set(&f, item, "frames", list_of(&f, frame(&f, 7)));
    struct tn_value history = list_of(&f, item);
    item = new_dict(&f);
    set(&f, item, "real_size", num(50));
    append(&f, history, item);
    set(&f, first, "history", history);
    append(&f, blocks, first);
    append(&f, blocks, block(&f, 1024, "active_awaiting_free"));
    assert_int_equal(tn_decode_finish(&f.decoder, list_of(&f, segment(&f, blocks))), TARN_OK);

    const struct tn_model_segment *s = f.model.segments;
    assert_true(f.model.is_list_only && f.model.is_legacy);
    assert_int_equal(s->block_count, 2);
    assert_int_equal(s->blocks[0].address, 4096);
    assert_int_equal(s->blocks[0].requested_size, 100);
    assert_int_equal(s->blocks[0].history_count, 2);
    assert_int_equal(s->blocks[0].history[1].real_size, 50);
    assert_int_equal(s->blocks[0].history[1].stack, TN_STACK_NONE);
    assert_int_equal(tn_model_stack(&f.model, s->blocks[0].stack).count, 1);
    assert_int_equal(s->blocks[1].address, 4096 + 2048);
    assert_int_equal(s->blocks[1].requested_size, 1024);
    assert_int_equal(s->blocks[1].state, TN_BLOCK_ACTIVE_PENDING_FREE);
    assert_int_equal(s->allocated_size, 2048);
    assert_int_equal(s->active_size, 3072);
    assert_int_equal(s->requested_size, 1124);
    assert_false(s->is_large);
    end(&f);
}

static void entries_hold_every_key(void **state)
{
    struct fixture f;
    start(&f);
    struct tn_value a = entry(&f, "oom", 0);
    struct tn_value top = new_dict(&f);

    (void)state;
    set(&f, a, "device_free", num(99));
    set(&f, a, "stream", num(-1));
    set(&f, a, "time_us", num(5));
    set(&f, a, "frames", list_of(&f, frame(&f, 7)));
    set(&f, a, "compile_context", str(&f, "N/A"));
    set(&f, a, "user_metadata", str(&f, "u"));
    set(&f, a, "internal_metadata", str(&f, "i"));
    set(&f, a, "category", str(&f, "parameter"));
    set(&f, a, "pool_id", pair(&f, 3, 4));
    const struct tn_value trace = list_of(&f, a);
    append(&f, trace, entry(&f, "strange", 1));
    set(&f, top, "segments", new_list(&f));
    set(&f, top, "device_traces", list_of(&f, trace));
    assert_int_equal(tn_decode_finish(&f.decoder, top), TARN_OK);

    assert_int_equal(f.model.traces[0].count, 2);
    const struct tn_trace_entry *e = tn_trace_at(&f.model, f.model.traces, 0);
    const struct tn_trace_extra *x = tn_model_extra(&f.model, e->extra);
    assert_int_equal(e->action, TN_TRACE_OOM);
    assert_int_equal(e->address, 99);
    assert_true(e->stream == UINT64_MAX);
    assert_int_equal(e->time_us, 5);
    assert_int_equal(tn_model_stack(&f.model, e->stack).count, 1);
    assert_string_equal(tn_model_string(&f.model, x->category).text, "parameter");
    assert_string_equal(tn_model_string(&f.model, x->internal_metadata).text, "i");
    assert_true(x->has_pool && x->pool.id[0] == 3 && x->pool.id[1] == 4);
    assert_int_equal(tn_model_shape(&f.model, x->shape).count, 12);
    e = tn_trace_at(&f.model, f.model.traces, 1);
    x = tn_model_extra(&f.model, e->extra);
    assert_int_equal(e->action, TN_TRACE_OTHER);
    assert_int_equal(e->time_us, TN_TIME_NONE);
    assert_int_equal(e->stack, TN_STACK_NONE);
    assert_string_equal(tn_model_string(&f.model, x->action_name).text, "strange");
    assert_int_equal(f.model.warning_count, 1);
    end(&f);
}

/* The key that tells what a dict is may come last. */
static void a_dict_is_told_by_a_late_key(void **state)
{
    struct fixture f;
    start(&f);
    struct tn_value late = new_dict(&f);
    struct tn_value top = new_dict(&f);

    (void)state;
    set(&f, late, "addr", num(4096));
    set(&f, late, "size", num(1));
    set(&f, late, "action", str(&f, "alloc"));
    set(&f, top, "device_traces", list_of(&f, list_of(&f, late)));
    assert_int_equal(tn_decode_finish(&f.decoder, top), TARN_OK);
    assert_int_equal(tn_trace_at(&f.model, f.model.traces, 0)->address, 4096);
    end(&f);
}

/* An annotation may hold keys that elsewhere make an entry, a block or a frame. */
static void annotations_keep_any_key(void **state)
{
    static const char *const keys[] = {"action", "state", "filename", "line"};
    struct fixture f;
    start(&f);
    struct tn_value note = new_dict(&f);
    struct tn_value top = new_dict(&f);

    (void)state;
    set(&f, note, "stage", str(&f, "START"));
    for (size_t i = 0; i < 4; i++) {
        set(&f, note, keys[i], num((int64_t)i));
    }
    set(&f, note, "state", num(9));
    set(&f, note, "list", new_list(&f));
    set(&f, top, "segments", new_list(&f));
    set(&f, top, "external_annotations", list_of(&f, note));
    assert_int_equal(tn_decode_finish(&f.decoder, top), TARN_OK);
    const struct tn_annotation *annotation = f.model.annotations;
    assert_string_equal(tn_model_string(&f.model, annotation->stage).text, "START");
    assert_int_equal(annotation->device, -1);
    assert_int_equal(annotation->time_us, TN_TIME_NONE);
    assert_int_equal(annotation->field_count, 5);
    assert_int_equal(annotation->fields[1].value.integer, 9);
    assert_int_equal(annotation->fields[4].kind, TN_FIELD_CONTAINER);
    assert_int_equal(tn_model_container(&f.model, annotation->fields[4].value.number).kind,
                     TN_CONTAINER_LIST);
    assert_non_null(strstr(warned(&f, 0), "`state` occurs twice"));
    end(&f);
}

/* Entries that are shared or out of order still make one run a trace. */
static void shared_entries_are_copied(void **state)
{
    struct fixture f;
    start(&f);
    struct tn_value a = entry(&f, "alloc", 1);
    struct tn_value b = entry(&f, "alloc", 2);
    struct tn_value c = entry(&f, "alloc", 3);
    const struct tn_value items[] = {a, b, a, c, b};
    static const uint64_t wanted[] = {1, 2, 1, 3, 2};
    struct tn_value traces = new_list(&f);
    struct tn_value trace = new_list(&f);
    struct tn_value top = new_dict(&f);

    (void)state;
    assert_int_equal(tn_decode_append(&f.decoder, trace, items, 5), TARN_OK);
    append(&f, traces, trace);
    append(&f, traces, list_of(&f, c));
    set(&f, top, "device_traces", traces);
    assert_int_equal(tn_decode_finish(&f.decoder, top), TARN_OK);
    assert_int_equal(f.model.trace_count, 2);
    assert_int_equal(f.model.traces[0].count, 5);
    for (uint64_t i = 0; i < 5; i++) {
        assert_int_equal(tn_trace_at(&f.model, &f.model.traces[0], i)->address, wanted[i]);
    }
    assert_int_equal(tn_trace_at(&f.model, &f.model.traces[1], 0)->address, 3);
    end(&f);
}

/* Pairs are numbered in 32 bits. */
static void pairs_have_an_end(void **state)
{
    struct fixture f;
    const struct tn_value items[2] = {num(1), num(2)};
    struct tn_value value;

    (void)state;
    start(&f);
    const uint64_t count = f.decoder.pairs.count;

    f.decoder.pairs.count = UINT32_MAX;
    assert_int_not_equal(tn_decode_tuple(&f.decoder, items, 2, 44, &value), TARN_OK);
    f.decoder.pairs.count = count;
    assert_int_equal(tn_decode_tuple(&f.decoder, items, 2, 44, &value), TARN_OK);
    end(&f);
}

static void equal_stacks_are_one(void **state)
{
    struct fixture f;
    start(&f);
    struct tn_value a = entry(&f, "alloc", 1);
    struct tn_value b = entry(&f, "alloc", 2);
    struct tn_value list = list_of(&f, frame(&f, 1));
    struct tn_value top = new_dict(&f);

    (void)state;
    append(&f, list, frame(&f, 2)); /* in a second piece */
    set(&f, a, "frames", list);
    const struct tn_value both[] = {frame(&f, 1), frame(&f, 2)};
    list = new_list(&f);
    assert_int_equal(tn_decode_append(&f.decoder, list, both, 2), TARN_OK);
    set(&f, b, "frames", list);
    list = list_of(&f, a);
    append(&f, list, b);
    set(&f, top, "device_traces", list_of(&f, list));
    assert_int_equal(tn_decode_finish(&f.decoder, top), TARN_OK);
    assert_int_equal(tn_trace_at(&f.model, f.model.traces, 0)->stack,
                     tn_trace_at(&f.model, f.model.traces, 1)->stack);
    end(&f);
}

static uint64_t warnings_of(const struct tn_model *model, enum tn_warning_kind kind)
{
    uint64_t count = 0;

    for (size_t i = 0; i < model->warning_count; i++) {
        count += model->warnings[i].kind == (uint32_t)kind ? model->warnings[i].count : 0;
    }
    return count;
}

/* So that no sum of sizes and no difference of times overflows, whatever a report adds up. */
static void sizes_and_times_stay_in_bounds(void **state)
{
    const int64_t half = (int64_t)1 << 61;
    struct fixture f;
    start(&f);
    struct tn_value a = entry(&f, "alloc", 1);
    struct tn_value b = entry(&f, "segment_free", 2);
    struct tn_value c = entry(&f, "alloc", 3);
    struct tn_value top = new_dict(&f);

    (void)state;
    set(&f, a, "size", num(half));
    set(&f, a, "time_us", num(half));
    set(&f, b, "size", tn_value_make(TN_VALUE_UINT, 0, (uint64_t)1 << 63));
    set(&f, b, "time_us", num(-half - 1));
    set(&f, c, "size", num(half));
    set(&f, c, "time_us", num(-half));
    struct tn_value list = list_of(&f, a);
    append(&f, list, b);
    append(&f, list, c);
    set(&f, top, "device_traces", list_of(&f, list));
    assert_int_equal(tn_decode_finish(&f.decoder, top), TARN_OK);
    const uint64_t sizes[] = {(uint64_t)half, 0, 0};
    const int64_t times[] = {half, TN_TIME_NONE, -half};

    for (size_t i = 0; i < 3; i++) {
        const struct tn_trace_entry *e = tn_trace_at(&f.model, &f.model.traces[0], i);

        assert_int_equal(e->size, sizes[i]);
        assert_true(e->time_us == times[i]);
    }
    assert_int_equal(warnings_of(&f.model, TN_WARNING_NO_TIME), 1);
    assert_int_equal(warnings_of(&f.model, TN_WARNING_TOO_LARGE), 2);
    end(&f);
}

/* Each size of a segment. */
static void sizes_of_segments_stay_in_bounds(void **state)
{
    static const char *const keys[] = {"total_size", "allocated_size", "active_size",
                                       "requested_size"};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct fixture f;
        start(&f);
        struct tn_value s = segment(&f, new_list(&f));

        for (size_t k = 0; k < 4; k++) {
            set(&f, s, keys[k],
                k == i ? tn_value_make(TN_VALUE_UINT, 0, (uint64_t)1 << 63) : num(5));
        }
        assert_int_equal(tn_decode_finish(&f.decoder, list_of(&f, s)), TARN_OK);
        const struct tn_model_segment *made = &f.model.segments[0];

        assert_int_equal(made->total_size, i == 0 ? 0 : 5);
        assert_int_equal(made->allocated_size, i == 1 ? 0 : 5);
        assert_int_equal(made->active_size, i == 2 ? 0 : 5);
        assert_int_equal(made->requested_size, i == 3 ? 0 : 5);
        assert_int_equal(warnings_of(&f.model, TN_WARNING_TOO_LARGE), 1);
        end(&f);
    }
}

/* What another container holds cannot change, not even to a record like the one before. */
static void a_dict_in_a_list_stays_as_it_is(void **state)
{
    struct fixture f;
    start(&f);
    const struct tn_value pairs[] = {str(&f, "action"), str(&f, "alloc"), str(&f, "addr"), num(1),
                                     str(&f, "size"),   num(512)};
    const struct tn_value first = new_dict(&f);
    const struct tn_value second = new_dict(&f);

    (void)state;
    assert_int_equal(tn_decode_set_items(&f.decoder, first, pairs, 3), TARN_OK);
    (void)list_of(&f, second);
    assert_int_equal(tn_decode_set_items(&f.decoder, second, pairs, 3), TARN_ERR_FORMAT);
    end(&f);
}

/* Not even behind a frame, which a list of numbers may hold as well. */
static void a_list_does_not_contain_itself(void **state)
{
    struct fixture f;
    start(&f);
    const struct tn_value list = list_of(&f, num(1));
    const struct tn_value items[] = {frame(&f, 1), list};
    const struct tn_value other = list_of(&f, num(1));

    (void)state;
    assert_int_equal(tn_decode_append(&f.decoder, list, items, 2), TARN_ERR_FORMAT);
    assert_non_null(strstr(f.error.text, "contains itself"));
    append(&f, other, items[0]);
    assert_int_equal(try_set(&f, items[0], "line", num(2)), TARN_ERR_FORMAT);
    end(&f);
}

/* However its items arrive: at once, one by one, or those that a frame could have at the end. */
static void a_dict_that_is_no_frame_is_kept(void **state)
{
    struct fixture f;
    start(&f);
    const struct tn_value pairs[] = {str(&f, "name"), num(5),          str(&f, "line"),
                                     num(1),          str(&f, "file"), num(2)};

    (void)state;
    for (size_t batch = 1; batch <= 3; batch++) {
        const struct tn_value value = new_dict(&f);

        for (size_t i = 0; i < 3; i += batch) {
            const size_t count = batch < 3 - i ? batch : 3 - i;

            assert_int_equal(tn_decode_set_items(&f.decoder, value, pairs + 2 * i, count), TARN_OK);
        }
        assert_int_equal(tn_decode_object(&f.decoder, value)->kind, TN_OBJECT_DICT);
    }
    end(&f);
}

/* A stack counts for each segment that has it: each is written with it. */
static void stacks_of_segments_are_charged(void **state)
{
    struct fixture f;
    start(&f);
    struct tn_value s = segment(&f, new_list(&f));
    struct tn_value frames = new_list(&f);

    (void)state;
    for (int i = 0; i < 16; i++) {
        append(&f, frames, frame(&f, i));
    }
    set(&f, s, "frames", frames);
    struct tn_value list = list_of(&f, s);

    for (int i = 1; i < 100; i++) {
        append(&f, list, s);
    }
    f.model.written_most = UINT64_MAX; /* without a limit nothing is counted */
    const uint64_t before = f.model.written;

    assert_int_equal(tn_decode_finish(&f.decoder, list), TARN_OK);
    assert_int_equal(f.model.segment_count, 100);
    const uint64_t written = tn_model_stack(&f.model, f.model.segments[0].stack).written;

    assert_true(written > 16);
    assert_true(f.model.written - before >= 100 * (sizeof(struct tn_model_segment) + written));
    end(&f);
}

/* One trace as that of several devices counts as often. */
static void what_is_walked_again_is_charged(void **state)
{
    struct fixture f;
    start(&f);
    struct tn_value run = list_of(&f, entry(&f, "alloc", 1));
    struct tn_value top = new_dict(&f);

    (void)state;
    for (int i = 1; i < 100; i++) {
        append(&f, run, entry(&f, "alloc", 1));
    }
    struct tn_value traces = list_of(&f, run);
    for (int i = 0; i < 10; i++) {
        append(&f, traces, run);
    }
    set(&f, top, "device_traces", traces);
    const uint64_t used = f.model.budget.used;

    assert_int_equal(tn_decode_finish(&f.decoder, top), TARN_OK);
    assert_true(f.model.budget.used - used >= sizeof(struct tn_trace_entry) * 10 * 100);
    assert_int_equal(f.model.trace_count, 11);
    end(&f);
}

static void too_long_a_stack_is_refused(void **state)
{
    struct fixture f;
    start(&f);
    struct tn_value list = new_list(&f);
    struct tn_value one = frame(&f, 1);

    (void)state;
    for (int i = 0; i < 16; i++) {
        append(&f, list, one);
    }
    assert_int_equal(tn_decode_append(&f.decoder, list, &one, 1), TARN_ERR_LIMIT);
    end(&f);
}

/* The message names the key, the place, what was wanted and what was found. */
static void wrong_kinds_are_named(void **state)
{
    static const struct {
        const char *key;
        const char *wanted;
    } cases[] = {
        {"addr", "an integer"},    {"size", "an integer"},         {"stream", "an integer"},
        {"time_us", "an integer"}, {"frames", "a list of frames"}, {"pool_id", "a tuple"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture f;
        start(&f);
        struct tn_value e = entry(&f, "alloc", 1);

        assert_int_equal(try_set(&f, e, cases[i].key, str(&f, "x")), TARN_ERR_FORMAT);
        assert_int_equal(f.error.offset, 77);
        assert_non_null(strstr(f.error.text, cases[i].key));
        assert_non_null(strstr(f.error.text, cases[i].wanted));
        assert_non_null(strstr(f.error.text, "holds a string"));
        end(&f);
    }
}

static void wrong_shapes_are_refused(void **state)
{
    static const char *const keys[] = {"segments",           "device_traces",
                                       "allocator_settings", "external_annotations",
                                       "host_segments",      "host_traces"};

    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        for (int kind = 0; kind < 2; kind++) {
            struct fixture f;
            start(&f);
            struct tn_value top = new_dict(&f);

            if (i > 1) {
                set(&f, top, "segments", new_list(&f));
            }
            set(&f, top, keys[i], kind == 0 ? str(&f, "x") : list_of(&f, num(1)));
            assert_int_equal(tn_decode_finish(&f.decoder, top), TARN_ERR_FORMAT);
            assert_non_null(strstr(f.error.text, keys[i]));
            end(&f);
        }
    }
}

static void segments_need_their_keys(void **state)
{
    static const char *const keys[] = {"address", "total_size", "blocks"};

    (void)state;
    for (size_t missing = 0; missing < 3; missing++) {
        struct fixture f;
        start(&f);
        struct tn_value s = new_dict(&f);

        for (size_t i = 0; i < 3; i++) {
            if (i != missing) {
                set(&f, s, keys[i], i == 2 ? new_list(&f) : num(1));
            }
        }
        set(&f, s, "real_size", num(1)); /* keeps the dict open without `blocks` */
        assert_int_equal(tn_decode_finish(&f.decoder, list_of(&f, s)), TARN_ERR_FORMAT);
        assert_non_null(strstr(f.error.text, "lacks the key"));
        assert_non_null(strstr(f.error.text, keys[missing]));
        end(&f);
    }
}

static void odd_values_are_counted(void **state)
{
    struct fixture f;
    start(&f);
    struct tn_value b = block(&f, -5, "weird");
    struct tn_value s = segment(&f, list_of(&f, b));

    (void)state;
    set(&f, s, "stuff\n\x1b\xc2\x9b\xe2\x80\xa8", num(1));
    set(&f, s, "address", num(-4096));
    assert_int_equal(tn_decode_finish(&f.decoder, list_of(&f, s)), TARN_OK);
    assert_int_equal(f.model.segments->blocks[0].size, 0);
    assert_int_equal(f.model.warning_count, 4);
    assert_non_null(strstr(warned(&f, 0), "unknown key `stuff\\x0a\\x1b\\x9b\\u2028`"));
    assert_non_null(strstr(warned(&f, 1), "`size` is negative"));
    assert_non_null(strstr(warned(&f, 2), "`state` has an unknown value"));
    assert_non_null(strstr(warned(&f, 3), "do not add up"));
    end(&f);
}

static void settings_have_bounds(void **state)
{
    struct fixture f;
    start(&f);
    struct tn_value settings = new_dict(&f);
    struct tn_value roundup = new_dict(&f);
    struct tn_value top = new_dict(&f);

    (void)state;
    set(&f, roundup, "1", num(2));
    set(&f, roundup, "32768", num(8));
    set(&f, roundup, "65536", num(8));
    set(&f, settings, "roundup_power2_divisions", roundup);
    set(&f, settings, "max_split_size", tn_value_make(TN_VALUE_UINT, 0, UINT64_MAX));
    set(&f, settings, "garbage_collection_threshold", num(1));
    set(&f, top, "allocator_settings", settings);
    set(&f, top, "segments", new_list(&f));
    assert_int_equal(tn_decode_finish(&f.decoder, top), TARN_OK);
    assert_int_equal(f.model.settings.max_split_size, -1);
    assert_true(f.model.settings.garbage_collection_threshold == 1.0);
    assert_int_equal(f.model.settings.roundup_power2_divisions[0], 2);
    assert_int_equal(f.model.settings.roundup_power2_divisions[15], 8);
    assert_non_null(strstr(warned(&f, 0), "`65536`"));
    end(&f);
}

static void many_warnings_are_counted_not_kept(void **state)
{
    struct fixture f;
    start(&f);
    struct tn_value s = segment(&f, new_list(&f));

    (void)state;
    for (int i = 0; i < 100; i++) {
        const char key[] = {'k', (char)('0' + i / 10), (char)('0' + i % 10), '\0'};

        set(&f, s, key, num(1));
    }
    assert_int_equal(tn_decode_finish(&f.decoder, list_of(&f, s)), TARN_OK);
    assert_int_equal(f.model.warning_count, TN_WARNINGS_KEPT);
    assert_int_equal(f.model.warnings_dropped, 101 - TN_WARNINGS_KEPT);
    end(&f);
}

/* Entries that are copied, alone and with all of their list, when there is no memory for more. */
static void copies_of_entries_need_memory(void **state)
{
    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        struct fixture f;
        start(&f);
        const struct tn_value first = entry(&f, "alloc", 1);
        const struct tn_value list = new_list(&f);
        struct tn_value last = first;

        while (f.model.entries.count < TN_CHUNKED_VEC_CHUNK) { /* as many as there is room for */
            last = entry(&f, "alloc", 2);
            if (whole && f.model.entries.count == 5) {
                append(&f, list, last);
            }
        }
        if (!whole) {
            append(&f, list, last);
        }
        tarn_host_fail_nth(1);
        const enum tarn_status st = tn_decode_append(&f.decoder, list, &first, 1);

        tarn_host_fail_nth(0);
        assert_int_equal(st, TARN_ERR_HOST_MEMORY);
        assert_int_equal(f.error.status, TARN_ERR_HOST_MEMORY);
        end(&f);
    }
}

/* A dict that is a block stays as it is in a place for any value, if it has nothing but what a
 * block has; there may be one because it waits for a segment, or because a segment has it, too. */
static void blocks_elsewhere_are_kept_or_skipped(void **state)
{
    struct fixture f;
    start(&f);
    const struct tn_value past = block(&f, 512, "inactive");
    const struct tn_value odd = block(&f, 512, "inactive");
    const struct tn_value event = new_dict(&f);
    const struct tn_value blocks = list_of(&f, block(&f, 512, "inactive"));
    const struct tn_value second = segment(&f, new_list(&f));

    (void)state;
    set(&f, event, "addr", num(4096));
    set(&f, event, "real_size", num(50));
    set(&f, past, "history", list_of(&f, event));
    set(&f, odd, "strange", num(1));
    append(&f, blocks, past);
    const struct tn_value shared = list_of(&f, odd);
    const struct tn_value list = list_of(&f, segment(&f, shared));

    set(&f, second, "a", blocks);
    set(&f, second, "b", shared);
    append(&f, list, second);
    assert_int_equal(tn_decode_finish(&f.decoder, list), TARN_OK);
    assert_int_equal(f.model.segments[0].block_count, 1);
    assert_int_not_equal(f.model.segments[0].blocks[0].rest, TN_CONTAINER_NONE);
    const struct tn_container rest = tn_model_container(&f.model, f.model.segments[1].rest);

    assert_int_equal(rest.count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(tn_model_container(&f.model, rest.items[i].value.number).count, 1 - i);
    }
    assert_int_equal(warnings_of(&f.model, TN_WARNING_SKIPPED_VALUE), 2);
    end(&f);
}

/* Values that are each small enough, and too much together. */
static void what_is_kept_has_a_limit(void **state)
{
    char text[1000];
    struct fixture f;
    start(&f);
    const struct tn_value s = segment(&f, new_list(&f));

    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    f.model.written_most = 1500;
    set(&f, s, "a", list_of(&f, str(&f, text)));
    set(&f, s, "b", list_of(&f, str(&f, text)));
    assert_int_equal(tn_decode_finish(&f.decoder, list_of(&f, s)), TARN_ERR_LIMIT);
    assert_int_equal(f.error.status, TARN_ERR_LIMIT);
    end(&f);
}

/* ---- what is sealed, and how deep containers nest ---- */

/* Wraps a value in so many lists, from the inside. */
static struct tn_value wrapped(struct fixture *f, struct tn_value value, int times)
{
    for (int i = 0; i < times; i++) {
        value = list_of(f, value);
    }
    return value;
}

/* As deep as the limit says (8), and not one deeper: an empty container counts, too, and a
 * block counts as one level with all that it has. */
static void containers_nest_as_deep_as_the_limit(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct fixture f;
        start(&f);
        struct tn_value inner = new_list(&f);

        if (kind == 1) {
            const struct tn_value event = new_dict(&f);

            set(&f, event, "real_size", num(1));
            inner = block(&f, 512, "inactive");
            set(&f, inner, "history", list_of(&f, event));
        }
        const struct tn_value deepest = wrapped(&f, inner, 7);

        assert_int_equal(f.error.status, TARN_OK);
        const struct tn_value list = new_list(&f);

        assert_int_equal(tn_decode_append(&f.decoder, list, &deepest, 1), TARN_ERR_LIMIT);
        assert_non_null(strstr(f.error.text, "nested more than 8 deep"));
        end(&f);
    }
}

/* A container that another one has takes no more items, wherever in that one it is. */
static void what_is_in_a_container_no_longer_changes(void **state)
{
    struct fixture f;
    start(&f);
    const struct tn_value lists[] = {new_list(&f), new_list(&f), new_list(&f), new_list(&f)};
    const struct tn_value dicts[] = {new_dict(&f), new_dict(&f), new_dict(&f)};
    const struct tn_value pairs[] = {str(&f, "a"), lists[0],     str(&f, "b"),
                                     lists[1],     str(&f, "c"), lists[2]};
    const struct tn_value frames[] = {frame(&f, 1), frame(&f, 2)};
    const struct tn_value one = num(1);
    const struct tn_value key[] = {str(&f, "line"), num(3)};
    struct tn_value tuple;

    (void)state;
    assert_int_equal(tn_decode_set_items(&f.decoder, new_dict(&f), pairs, 2), TARN_OK);
    assert_int_equal(tn_decode_append(&f.decoder, new_list(&f), dicts, 3), TARN_OK);
    assert_int_equal(tn_decode_tuple(&f.decoder, &lists[2], 2, 44, &tuple), TARN_OK);
    assert_int_equal(tn_decode_append(&f.decoder, new_list(&f), frames, 2), TARN_OK);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(tn_decode_append(&f.decoder, lists[i], &one, 1), TARN_ERR_FORMAT);
        assert_non_null(strstr(f.error.text, "changes after its last use"));
    }
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(tn_decode_set_items(&f.decoder, dicts[i], key, 1), TARN_ERR_FORMAT);
    }
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(tn_decode_set_items(&f.decoder, frames[i], key, 1), TARN_ERR_FORMAT);
    }
    end(&f);
}

/* Only the items that are given belong to it, not those that follow them on the reader's
 * stack. */
static void what_is_not_in_a_container_may_change(void **state)
{
    struct fixture f;
    start(&f);
    const struct tn_value later = new_list(&f);
    const struct tn_value pairs[] = {str(&f, "a"), num(1),       str(&f, "b"),
                                     num(2),       str(&f, "c"), later};

    (void)state;
    assert_int_equal(tn_decode_set_items(&f.decoder, new_dict(&f), pairs, 2), TARN_OK);
    append(&f, later, num(1));
    end(&f);
}

/* Also of an entry with the keys of the one before, which takes a shorter way. */
static void what_a_repeated_entry_has_no_longer_changes(void **state)
{
    struct fixture f;
    start(&f);
    const struct tn_value frames = list_of(&f, frame(&f, 1));
    const struct tn_value note = list_of(&f, num(1));
    const struct tn_value one = num(1);
    const struct tn_value more = frame(&f, 2);
    const struct tn_value pairs[] = {str(&f, "action"), str(&f, "alloc"), str(&f, "frames"),
                                     new_list(&f),      str(&f, "x"),     num(5)};
    struct tn_value again[6];

    (void)state;
    memcpy(again, pairs, sizeof pairs);
    again[3] = frames;
    again[5] = note;
    assert_int_equal(tn_decode_set_items(&f.decoder, new_dict(&f), pairs, 3), TARN_OK);
    assert_int_equal(tn_decode_set_items(&f.decoder, new_dict(&f), again, 3), TARN_OK);
    assert_int_equal(f.decoder.model->entries.count, 2);
    assert_int_equal(tn_decode_append(&f.decoder, frames, &more, 1), TARN_ERR_FORMAT);
    assert_int_equal(tn_decode_append(&f.decoder, note, &one, 1), TARN_ERR_FORMAT);
    end(&f);
}

/* ---- what a dict is ---- */

/* Some value that a segment keeps with its unknown keys: the file is read whatever it is. */
static void keeps(struct fixture *f, struct tn_value value, uint32_t count, uint64_t skipped)
{
    const struct tn_value s = segment(f, new_list(f));

    set(f, s, "x", list_of(f, value));
    assert_int_equal(tn_decode_finish(&f->decoder, list_of(f, s)), TARN_OK);
    const struct tn_container rest = tn_model_container(&f->model, f->model.segments[0].rest);

    assert_int_equal(rest.count, 1);
    const struct tn_container list = tn_model_container(&f->model, rest.items[0].value.number);

    assert_int_equal(list.count, 1);
    assert_int_equal(list.items[0].kind, TN_FIELD_CONTAINER);
    assert_int_equal(tn_model_container(&f->model, list.items[0].value.number).count, count);
    assert_int_equal(warnings_of(&f->model, TN_WARNING_SKIPPED_VALUE), skipped);
}

/* Metadata may use the keys of records for values of other kinds. */
static void metadata_is_no_record(void **state)
{
    (void)state;
    for (int i = 0; i < 9; i++) {
        struct fixture f;
        start(&f);
        const struct tn_value name = str(&f, "name");
        const struct tn_value line = str(&f, "line");
        const struct tn_value text = str(&f, "text");
        /* numbers that keys have, but they are no keys */
        const struct tn_value action = num(TN_KEY_ACTION);
        const struct tn_value addr = num(TN_KEY_ADDR);
        const struct {
            struct tn_value pairs[4];
            uint32_t kept;
        } cases[] = {
            {{name, num(1), line, num(2)}, 2},
            {{str(&f, "filename"), num(1), line, num(2)}, 2},
            {{line, text, name, text}, 2},
            {{line, num(1), name, num(2)}, 2},
            {{line, num(1), num(7), num(8)}, 1},
            {{action, text, addr, num(2)}, 0},
            {{action, text, num(TN_KEY_SIZE), num(2)}, 0},
            {{str(&f, "size"), num(512), str(&f, "state"), num(TN_WORD_INACTIVE)}, 2},
            {{str(&f, "size"), text, str(&f, "state"), str(&f, "inactive")}, 2},
        };
        const struct tn_value dict = new_dict(&f);

        assert_int_equal(tn_decode_set_items(&f.decoder, dict, cases[i].pairs, 2), TARN_OK);
        keeps(&f, dict, cases[i].kept, 2 - cases[i].kept);
        end(&f);
    }
}

/* Beside an entry of two keys, dicts that begin or end as it does. */
static void only_the_same_keys_make_an_entry_again(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        struct fixture f;
        start(&f);
        const struct tn_value action = str(&f, "action");
        const struct tn_value addr = str(&f, "addr");
        const struct tn_value alloc = str(&f, "alloc");
        const struct {
            struct tn_value pairs[4];
            uint32_t kept;
        } cases[] = {
            {{str(&f, "kind"), alloc, addr, num(1)}, 2},
            {{action, alloc, str(&f, "kind"), num(1)}, 2},
            {{action, alloc, str(&f, "kind"), num(TN_KEY_ADDR)}, 2},
            {{action, alloc, num(TN_KEY_ADDR), str(&f, "text")}, 1},
            {{num(TN_KEY_ACTION), alloc, num(TN_KEY_ADDR), num(1)}, 0},
            {{num(TN_KEY_ACTION), alloc, addr, num(1)}, 1},
        };
        const struct tn_value pairs[] = {action, alloc, addr, num(1)};
        const struct tn_value dict = new_dict(&f);

        assert_int_equal(tn_decode_set_items(&f.decoder, new_dict(&f), pairs, 2), TARN_OK);
        assert_int_equal(tn_decode_set_items(&f.decoder, dict, cases[i].pairs, 2), TARN_OK);
        assert_int_equal(f.model.entries.count, 1);
        keeps(&f, dict, cases[i].kept, 2 - cases[i].kept);
        end(&f);
    }
}

/* Whatever items come later. */
static void a_dict_stays_what_its_keys_made_it(void **state)
{
    struct fixture f;
    start(&f);
    const struct tn_value a = entry(&f, "alloc", 1);
    const struct tn_value note = new_dict(&f);
    const struct tn_value named = new_dict(&f);
    const struct tn_value pairs[] = {str(&f, "action"), str(&f, "alloc"), str(&f, "addr"), num(1),
                                     str(&f, "size"),   num(512)};
    const struct tn_value odd_name[] = {
        str(&f, "action"), str(&f, "alloc"), str(&f, "addr"), num(1), str(&f, "name"), num(512)};
    const struct tn_value odd = new_dict(&f);
    const struct tn_value sizes[] = {str(&f, "size"), num(512), str(&f, "state"),
                                     str(&f, "inactive")};
    const struct tn_value top = new_dict(&f);

    (void)state;
    set(&f, a, "line", num(7)); /* an entry with a key of frames */
    set(&f, note, "stage", str(&f, "START"));
    assert_int_equal(tn_decode_set_items(&f.decoder, new_dict(&f), pairs, 3), TARN_OK);
    assert_int_equal(tn_decode_set_items(&f.decoder, note, pairs, 3), TARN_OK);
    assert_int_equal(tn_decode_set_items(&f.decoder, named, odd_name, 3), TARN_OK);
    const struct tn_value trace = list_of(&f, a);

    append(&f, trace, named); /* an entry, though no frame has such a name */
    set(&f, top, "device_traces", list_of(&f, trace));
    set(&f, top, "external_annotations", list_of(&f, note));
    assert_int_equal(tn_decode_finish(&f.decoder, top), TARN_OK);
    const struct tn_trace_entry *e = tn_trace_at(&f.model, f.model.traces, 0);

    assert_int_equal(e->address, 1);
    assert_int_equal(tn_model_container(&f.model, tn_model_extra(&f.model, e->extra)->rest).count,
                     1);
    assert_int_equal(f.model.annotations[0].field_count, 3);
    /* A key that no block has, and then those of a block. */
    set(&f, odd, "stage", str(&f, "END"));
    assert_int_equal(tn_decode_set_items(&f.decoder, odd, sizes, 2), TARN_OK);
    assert_int_equal(tn_decode_finish(&f.decoder, list_of(&f, segment(&f, list_of(&f, odd)))),
                     TARN_ERR_FORMAT);
    assert_non_null(strstr(f.error.text, "dicts with the key `state`"));
    end(&f);
}

/* Blocks are packed as they arrive: the pairs of the next one take the place of the last
 * one's. */
static void blocks_that_arrive_take_the_room_of_the_last(void **state)
{
    struct fixture f;
    start(&f);
    const struct tn_value blocks = new_list(&f);

    (void)state;
    for (int64_t i = 0; i < 100; i++) {
        static const char *const states[] = {"inactive", "active_allocated", "active_pending_free"};
        const struct tn_value b = block(&f, 512, states[i % 3]);

        set(&f, b, "address", num(i * 512));
        set(&f, b, "requested_size", num(0)); /* as of an inactive block */
        set(&f, b, "frames", i % 2 ? list_of(&f, frame(&f, i)) : new_list(&f));
        append(&f, blocks, b);
        assert_true(tn_decode_is_dict(&f.decoder, b));
        assert_true(f.decoder.lists.count <= 3); /* of the list, a block and a frame */
    }
    end(&f);
}

/* ---- errors ---- */

static void lists_of_records_have_nothing_else(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct fixture f;
        start(&f);
        const struct tn_value good = kind == 0 ? entry(&f, "alloc", 1) : frame(&f, 1);
        const struct tn_value list = list_of(&f, good);
        const struct tn_value items[] = {tn_value_integer(33, 7), good};
        const char *const said = kind == 0 ? "a list of trace entries contains another item at"
                                           : "a list of frames contains another item at";

        assert_int_equal(tn_decode_append(&f.decoder, list, items, 2), TARN_ERR_FORMAT);
        assert_non_null(strstr(f.error.text, said));
        assert_int_equal(f.error.offset, 33);
        end(&f);
    }
    struct fixture f;
    start(&f);
    const struct tn_value stack = list_of(&f, frame(&f, 1));

    assert_int_equal(tn_decode_append(&f.decoder, stack, &stack, 1), TARN_ERR_FORMAT);
    assert_non_null(strstr(f.error.text, "a list of frames contains another item"));
    end(&f);
}

/* Two lists that are filled in turn. */
static void stacks_grow_beside_each_other(void **state)
{
    struct fixture f;
    start(&f);
    const struct tn_value a = list_of(&f, frame(&f, 1));
    const struct tn_value b = list_of(&f, frame(&f, 2));
    const struct tn_value first = entry(&f, "alloc", 1);
    const struct tn_value second = entry(&f, "alloc", 2);
    const struct tn_value top = new_dict(&f);
    static const int64_t lines[2][2] = {{1, 3}, {2, 4}};

    (void)state;
    append(&f, a, frame(&f, 3));
    append(&f, b, frame(&f, 4));
    set(&f, first, "frames", a);
    set(&f, second, "frames", b);
    const struct tn_value trace = list_of(&f, first);

    append(&f, trace, second);
    set(&f, top, "device_traces", list_of(&f, trace));
    assert_int_equal(tn_decode_finish(&f.decoder, top), TARN_OK);
    for (uint64_t i = 0; i < 2; i++) {
        const struct tn_stack stack =
            tn_model_stack(&f.model, tn_trace_at(&f.model, f.model.traces, i)->stack);

        assert_int_equal(stack.count, 2);
        for (uint32_t k = 0; k < 2; k++) {
            assert_int_equal(tn_model_frame(&f.model, stack.frames[k])->line, lines[i][k]);
        }
    }
    end(&f);
}

/* The place is that of the first item that does not fit. */
static void what_is_too_long_has_a_place(void **state)
{
    struct fixture f;
    start(&f);
    const struct tn_value frames = new_list(&f);
    struct tn_value items[2] = {frame(&f, 1), frame(&f, 1)};

    (void)state;
    for (int i = 0; i < 16; i++) {
        append(&f, frames, items[0]);
    }
    items[0] = tn_value_make(TN_VALUE_OBJECT, 31, items[0].as.number);
    items[1] = tn_value_make(TN_VALUE_OBJECT, 32, items[1].as.number);
    assert_int_equal(tn_decode_append(&f.decoder, frames, items, 2), TARN_ERR_LIMIT);
    assert_int_equal(f.error.offset, 31);
    assert_non_null(strstr(f.error.text, "at byte 31 has more than 16 frames"));

    const struct tn_value list = list_of(&f, num(1));
    struct tn_value_list *have =
        tn_chunked_vec_at(&f.decoder.lists, tn_decode_object(&f.decoder, list)->index);
    const struct tn_value numbers[] = {tn_value_integer(41, 1), tn_value_integer(42, 1)};
    const struct tn_value deepest = wrapped(&f, new_list(&f), 7);

    have->count = TN_DECODE_ITEMS_MAX; /* as if so many had come */
    assert_int_equal(tn_decode_append(&f.decoder, list, numbers, 2), TARN_ERR_LIMIT);
    assert_int_equal(f.error.offset, 41);
    assert_non_null(strstr(f.error.text, "values at byte 41"));
    assert_int_equal(tn_decode_append(&f.decoder, list, &deepest, 1), TARN_ERR_LIMIT);
    assert_non_null(strstr(f.error.text, "nested more than"));
    have->count = TN_DECODE_ITEMS_MAX - 1; /* room for one, if there is memory */
    tarn_host_fail_nth(1);
    assert_int_equal(tn_decode_append(&f.decoder, list, numbers, 1), TARN_ERR_HOST_MEMORY);
    tarn_host_fail_nth(0);
    have->count = 1;
    end(&f);
}

/* ---- pairs and tuples ---- */

static void equal_pairs_are_one_and_longer_tuples_none(void **state)
{
    struct fixture f;
    start(&f);
    const struct tn_value numbers[] = {num(1), num(2), num(3)};
    const struct tn_value s = segment(&f, new_list(&f));
    struct tn_value tuple;

    (void)state;
    assert_int_equal(pair(&f, 1, 2).as.number, pair(&f, 1, 2).as.number);
    assert_int_not_equal(pair(&f, 1, 2).as.number, pair(&f, 2, 1).as.number);
    assert_int_equal(f.decoder.pairs.count, 2);
    assert_int_equal(tn_decode_tuple(&f.decoder, numbers, 3, 44, &tuple), TARN_OK);
    set(&f, s, "x", tuple);
    assert_int_equal(tn_decode_finish(&f.decoder, list_of(&f, s)), TARN_OK);
    const struct tn_container rest = tn_model_container(&f.model, f.model.segments[0].rest);
    const struct tn_container kept = tn_model_container(&f.model, rest.items[0].value.number);

    assert_int_equal(kept.kind, TN_CONTAINER_TUPLE);
    assert_int_equal(kept.count, 3);
    assert_int_equal(kept.items[2].value.integer, 3);
    end(&f);
}

/* ---- the items of an entry ---- */

static const struct tn_trace_extra *extra_of(const struct fixture *f, uint64_t i)
{
    return tn_model_extra(&f->model, tn_trace_at(&f->model, f->model.traces, i)->extra);
}

/* Its keys in their order, separated by blanks. */
static const char *keys_of(const struct fixture *f, uint64_t i)
{
    static char text[512];
    const struct tn_shape shape = tn_model_shape(&f->model, extra_of(f, i)->shape);
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t k = 0; k < shape.count; k++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", k > 0 ? " " : "",
                                 tn_model_string(&f->model, shape.keys[k]).text);
    }
    return text;
}

static void finish_trace(struct fixture *f, struct tn_value trace)
{
    const struct tn_value top = new_dict(f);

    set(f, top, "device_traces", list_of(f, trace));
    assert_int_equal(tn_decode_finish(&f->decoder, top), TARN_OK);
}

/* Items may come in several parts. A key that comes again keeps its place, its last value
 * counts, and a warning says so: known keys, unknown ones, and such as are words elsewhere. */
static void items_of_an_entry_come_in_parts(void **state)
{
    struct fixture f;
    start(&f);
    const struct tn_value action = str(&f, "action");
    const struct tn_value again = tn_value_make(TN_VALUE_STRING, 88, action.as.number);
    const struct tn_value x = str(&f, "x");
    const struct tn_value word = str(&f, "inactive");
    const struct tn_value first[] = {x,
                                     num(1),
                                     action,
                                     str(&f, "alloc"),
                                     word,
                                     num(2),
                                     str(&f, "addr"),
                                     num(7),
                                     again,
                                     str(&f, "free_requested")};
    const struct tn_value second[] = {x,    num(3), str(&f, "stream"), num(9),
                                      word, num(4), str(&f, "y"),      num(5)};
    const struct tn_value third[] = {action, str(&f, "free_completed"), str(&f, "addr"), num(8)};
    const struct tn_value between[] = {
        action,       str(&f, "alloc"), str(&f, "size"),    num(1), str(&f, "a"), num(1),
        str(&f, "b"), num(1),           str(&f, "time_us"), num(1)};
    const struct tn_value other = new_dict(&f);
    const struct tn_value e = new_dict(&f);

    (void)state;
    assert_int_equal(tn_decode_set_items(&f.decoder, e, first, 5), TARN_OK);
    assert_int_equal(warnings_of(&f.model, TN_WARNING_DUPLICATE_KEY), 1);
    for (size_t i = 0; i < f.model.warning_count; i++) {
        assert_true(f.model.warnings[i].kind != TN_WARNING_DUPLICATE_KEY ||
                    f.model.warnings[i].offset == 88);
    }
    assert_int_equal(tn_decode_set_items(&f.decoder, other, between, 5), TARN_OK);
    assert_int_equal(tn_decode_set_items(&f.decoder, e, second, 4), TARN_OK);
    assert_int_equal(warnings_of(&f.model, TN_WARNING_DUPLICATE_KEY), 3);
    assert_int_equal(tn_decode_set_items(&f.decoder, e, third, 2), TARN_OK);
    assert_int_equal(warnings_of(&f.model, TN_WARNING_DUPLICATE_KEY), 5);
    assert_int_equal(tn_decode_set_items(&f.decoder, other, third, 2), TARN_OK);
    assert_int_equal(warnings_of(&f.model, TN_WARNING_DUPLICATE_KEY), 6); /* its first one */
    finish_trace(&f, list_of(&f, e));
    assert_string_equal(keys_of(&f, 0), "x action inactive addr stream y");
    const struct tn_trace_entry *entry = tn_trace_at(&f.model, f.model.traces, 0);
    const struct tn_container rest = tn_model_container(&f.model, extra_of(&f, 0)->rest);
    static const int64_t values[] = {3, 4, 5};

    assert_int_equal(entry->action, TN_TRACE_FREE_COMPLETED);
    assert_int_equal(entry->address, 8);
    assert_int_equal(entry->stream, 9);
    assert_int_equal(rest.count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(rest.items[i].value.integer, values[i]);
    }
    end(&f);
}

/* Entries one after the other whose keys are as many, but others. */
static void each_entry_keeps_the_order_of_its_keys(void **state)
{
    static const char *const orders[] = {
        "action addr size", "action addr stream", "addr action stream", "action addr time_us",
        "size addr action", "action size addr",   "action addr size"};
    struct fixture f;
    start(&f);
    const struct tn_value trace = new_list(&f);

    (void)state;
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        struct tn_value pairs[6];
        char words[64];
        char *next = words;

        (void)snprintf(words, sizeof words, "%s", orders[i]);
        for (size_t k = 0; k < 3; k++) {
            char *word = next;

            next += strcspn(next, " ");
            *next++ = '\0';
            pairs[2 * k] = str(&f, word);
            pairs[2 * k + 1] = strcmp(word, "action") == 0 ? str(&f, "alloc") : num(1);
        }
        const struct tn_value e = new_dict(&f);

        assert_int_equal(tn_decode_set_items(&f.decoder, e, pairs, 3), TARN_OK);
        append(&f, trace, e);
    }
    finish_trace(&f, trace);
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        assert_string_equal(keys_of(&f, i), orders[i]);
    }
    end(&f);
}

/* The last one counts, whatever the first one was. */
static void values_that_come_again_replace_the_first(void **state)
{
    struct fixture f;
    start(&f);
    const struct tn_value a = entry(&f, "alloc", 1);
    const struct tn_value b = entry(&f, "strange", 2);
    const struct tn_value blk = block(&f, 3072, "active_allocated");
    const struct tn_value settings = new_dict(&f);
    const struct tn_value top = new_dict(&f);

    (void)state;
    set(&f, a, "action", str(&f, "1"));
    set(&f, b, "action", str(&f, "alloc"));
    set(&f, a, "frames", list_of(&f, frame(&f, 7)));
    set(&f, a, "frames", tn_value_make(TN_VALUE_NONE, 0, 0));
    set(&f, blk, "state", str(&f, "inactive"));
    set(&f, settings, "max_split_size", num(7));
    set(&f, settings, "max_split_size", tn_value_make(TN_VALUE_UINT, 0, UINT64_MAX));
    set(&f, top, "segments", list_of(&f, segment(&f, list_of(&f, blk))));
    set(&f, top, "allocator_settings", settings);
    const struct tn_value trace = list_of(&f, a);

    append(&f, trace, b);
    set(&f, top, "device_traces", list_of(&f, trace));
    assert_int_equal(tn_decode_finish(&f.decoder, top), TARN_OK);
    assert_int_equal(tn_trace_at(&f.model, f.model.traces, 0)->action, TN_TRACE_OTHER);
    assert_string_equal(tn_model_string(&f.model, extra_of(&f, 0)->action_name).text, "1");
    assert_int_equal(tn_trace_at(&f.model, f.model.traces, 0)->stack, TN_STACK_NONE);
    assert_int_equal(tn_trace_at(&f.model, f.model.traces, 1)->action, TN_TRACE_ALLOC);
    assert_int_equal(extra_of(&f, 1)->action_name, TN_STRING_NONE);
    assert_int_equal(f.model.segments[0].blocks[0].state, TN_BLOCK_INACTIVE);
    assert_int_equal(f.model.segments[0].allocated_size, 0);
    assert_int_equal(f.model.settings.max_split_size, -1);
    end(&f);
}

/* ---- what is kept of other values ---- */

static struct tn_value global(void)
{
    return tn_value_make(TN_VALUE_GLOBAL, 22, 0);
}

/* A container is converted once, and so what it cannot keep is a warning once; so is a key
 * that is no text, whose value counts for nothing. */
static void what_cannot_be_kept_is_a_warning_each(void **state)
{
    struct fixture f;
    start(&f);
    const struct tn_value s = segment(&f, new_list(&f));
    const struct tn_value keyless = new_dict(&f);
    const struct tn_value pairs[] = {num(7), list_of(&f, global())};
    const struct tn_value e = entry(&f, "alloc", 1);

    (void)state;
    set(&f, s, "name", global());
    assert_int_equal(tn_decode_set_items(&f.decoder, keyless, pairs, 1), TARN_OK);
    assert_int_equal(tn_decode_set_items(&f.decoder, s, pairs, 1), TARN_OK);
    set(&f, s, "entry", e);
    set(&f, s, "entries", list_of(&f, e));
    assert_int_equal(tn_decode_finish(&f.decoder, list_of(&f, s)), TARN_OK);
    assert_int_equal(f.model.segments[0].rest, TN_CONTAINER_NONE);
    assert_int_equal(warnings_of(&f.model, TN_WARNING_SKIPPED_VALUE), 4);
    end(&f);

    start(&f);
    const struct tn_value other = segment(&f, new_list(&f));
    const struct tn_value shared = list_of(&f, global());
    const struct tn_value again = new_dict(&f);
    const struct tn_value same[] = {num(7), list_of(&f, global())};

    assert_int_equal(tn_decode_set_items(&f.decoder, again, same, 1), TARN_OK);
    set(&f, other, "a", shared);
    set(&f, other, "b", shared);
    assert_int_equal(tn_decode_finish(&f.decoder, list_of(&f, other)), TARN_OK);
    assert_int_equal(warnings_of(&f.model, TN_WARNING_SKIPPED_VALUE), 1);
    assert_int_equal(tn_model_container(&f.model, f.model.segments[0].rest).count, 2);
    end(&f);

    start(&f);
    const struct tn_value third = segment(&f, new_list(&f));
    const struct tn_value dict = new_dict(&f);
    const struct tn_value items[] = {num(7), list_of(&f, global())};

    assert_int_equal(tn_decode_set_items(&f.decoder, dict, items, 1), TARN_OK);
    set(&f, third, "a", dict);
    assert_int_equal(tn_decode_finish(&f.decoder, list_of(&f, third)), TARN_OK);
    assert_int_equal(warnings_of(&f.model, TN_WARNING_SKIPPED_VALUE), 1);
    end(&f);
}

/* Readers of JSON would refuse it. */
static void a_key_with_a_nul_is_left_out(void **state)
{
    struct fixture f;
    start(&f);
    const struct tn_value s = segment(&f, new_list(&f));
    const struct tn_value note = new_dict(&f);
    const struct tn_value top = new_dict(&f);
    uint32_t key;

    (void)state;
    assert_int_equal(tn_model_add_string(&f.model, "a\0b", 3, &key), TARN_OK);
    const struct tn_value items[] = {tn_value_make(TN_VALUE_STRING, 0, key), num(1)};

    assert_int_equal(tn_decode_set_items(&f.decoder, s, items, 1), TARN_OK);
    assert_int_equal(tn_decode_set_items(&f.decoder, note, items, 1), TARN_OK);
    set(&f, note, "stage", str(&f, "START"));
    set(&f, top, "segments", list_of(&f, s));
    set(&f, top, "external_annotations", list_of(&f, note));
    assert_int_equal(tn_decode_finish(&f.decoder, top), TARN_OK);
    assert_int_equal(f.model.segments[0].rest, TN_CONTAINER_NONE);
    assert_int_equal(f.model.annotations[0].field_count, 0);
    assert_int_equal(warnings_of(&f.model, TN_WARNING_SKIPPED_VALUE), 2);
    end(&f);
}

/* Texts of an entry may be other values; what cannot be kept is a warning. */
static void notes_of_an_entry_may_be_any_value(void **state)
{
    struct fixture f;
    start(&f);
    const struct tn_value a = entry(&f, "alloc", 1);
    const struct tn_value b = entry(&f, "alloc", 1);
    const struct tn_value trace = new_list(&f);

    (void)state;
    set(&f, a, "user_metadata", num(5));
    set(&f, a, "category", list_of(&f, frame(&f, 7)));
    assert_int_equal(f.model.warning_count, 0);
    set(&f, b, "user_metadata", global());
    assert_int_equal(warnings_of(&f.model, TN_WARNING_SKIPPED_VALUE), 1);
    append(&f, trace, a);
    append(&f, trace, b);
    finish_trace(&f, trace);
    const struct tn_container rest = tn_model_container(&f.model, extra_of(&f, 0)->rest);

    assert_int_equal(rest.count, 2);
    assert_int_equal(rest.items[0].value.integer, 5);
    assert_int_equal(rest.items[1].kind, TN_FIELD_STACK);
    assert_int_equal(extra_of(&f, 1)->rest, TN_CONTAINER_NONE);
    end(&f);
}

/* An unknown key alone makes a frame another one. */
static void frames_keep_unknown_keys(void **state)
{
    struct fixture f;
    start(&f);
    const struct tn_value plain = frame(&f, 1);
    const struct tn_value more = frame(&f, 1);
    const struct tn_value e = entry(&f, "alloc", 1);
    const struct tn_value frames = list_of(&f, plain);

    (void)state;
    set(&f, more, "x", num(5));
    set(&f, more, "y", num(6)); /* in another part */
    append(&f, frames, more);
    set(&f, e, "frames", frames);
    finish_trace(&f, list_of(&f, e));
    const struct tn_stack stack =
        tn_model_stack(&f.model, tn_trace_at(&f.model, f.model.traces, 0)->stack);
    const struct tn_frame_fx *fx =
        tn_chunked_vec_at(&f.model.fx, tn_model_frame(&f.model, stack.frames[1])->fx);
    const struct tn_container rest = tn_model_container(&f.model, fx->rest);

    assert_int_not_equal(stack.frames[0], stack.frames[1]);
    assert_int_equal(rest.count, 2);
    assert_int_equal(rest.items[0].value.integer, 5);
    assert_int_equal(rest.items[1].value.integer, 6);
    end(&f);
}

/* Each value is small enough to be kept, and the two of a record are not. */
static void what_a_record_keeps_has_a_limit(void **state)
{
    char text[1000];

    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (int kind = 0; kind < 2; kind++) {
        struct fixture f;
        start(&f);
        const struct tn_value record = kind == 0 ? entry(&f, "alloc", 1) : frame(&f, 1);
        const struct tn_value pairs[] = {str(&f, "a"), list_of(&f, str(&f, text)), str(&f, "b"),
                                         list_of(&f, str(&f, text))};

        f.model.written_most = 1500;
        assert_int_equal(tn_decode_set_items(&f.decoder, record, pairs, 2), TARN_ERR_LIMIT);
        assert_int_equal(f.error.status, TARN_ERR_LIMIT);
        end(&f);
    }
}

/* ---- what is charged ---- */

/* Exactly what the records take, written out. */
static void records_are_charged_as_they_are_written(void **state)
{
    struct fixture f;
    start(&f);
    const struct tn_value b = block(&f, 3072, "active_allocated");
    const struct tn_value history = new_list(&f);
    const struct tn_value note = new_dict(&f);
    const struct tn_value settings = new_dict(&f);
    const struct tn_value top = new_dict(&f);
    const struct tn_value trace = new_list(&f);

    (void)state;
    f.model.written_most = UINT64_MAX; /* without a limit nothing is counted */
    for (int64_t i = 0; i < 3; i++) {
        const struct tn_value event = new_dict(&f);

        set(&f, event, "real_size", num(1));
        set(&f, event, "frames", list_of(&f, frame(&f, i)));
        append(&f, history, event);
    }
    for (int64_t i = 0; i < 5; i++) {
        const struct tn_value e = entry(&f, "alloc", i);

        set(&f, e, "frames", list_of(&f, frame(&f, i)));
        set(&f, e, "user_metadata", str(&f, i < 2 ? "text of an entry" : "another"));
        append(&f, trace, e);
    }
    set(&f, b, "history", history);
    set(&f, note, "name", str(&f, "ten bytes."));
    set(&f, note, "stage", str(&f, "START"));
    set(&f, note, "four", str(&f, "six..."));
    set(&f, settings, "four", str(&f, "seven.."));
    set(&f, top, "segments", list_of(&f, segment(&f, list_of(&f, b))));
    set(&f, top, "device_traces", list_of(&f, trace));
    set(&f, top, "external_annotations", list_of(&f, note));
    set(&f, top, "allocator_settings", settings);
    assert_int_equal(f.model.written, 0);
    assert_int_equal(tn_decode_finish(&f.decoder, top), TARN_OK);
    const struct tn_model_block *blk = &f.model.segments[0].blocks[0];
    uint64_t bytes = sizeof(struct tn_model_segment) + sizeof *blk +
                     tn_model_stack(&f.model, blk->stack).written;

    for (uint32_t i = 0; i < 3; i++) {
        bytes += tn_model_stack(&f.model, blk->history[i].stack).written;
    }
    for (uint64_t i = 0; i < 5; i++) {
        const struct tn_trace_entry *e = tn_trace_at(&f.model, f.model.traces, i);

        bytes += tn_model_entry_written(&f.model, e) + (i < 2 ? 16 : 7);
    }
    bytes += sizeof(struct tn_annotation) + 10 + 5 + (8 + 4 + 6);
    bytes += 8 + 4 + 7;
    assert_int_equal(f.model.written, bytes);
    end(&f);
}

/* Each kind of record alone may be more than is allowed. */
static void each_kind_of_record_has_a_limit(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        struct fixture f;
        start(&f);
        const struct tn_value top = new_dict(&f);
        const struct tn_value blocks = new_list(&f);
        const struct tn_value b = block(&f, 3072, "inactive");
        const struct tn_value e = entry(&f, "alloc", 1);
        const struct tn_value trace = new_list(&f);
        const struct tn_value note = new_dict(&f);
        const struct tn_value notes = new_list(&f);

        set(&f, note, "stage", str(&f, "START"));
        for (int i = 0; i < 100; i++) {
            append(&f, blocks, b);
            append(&f, trace, e);
            append(&f, notes, note);
        }
        set(&f, top, "segments", list_of(&f, segment(&f, kind == 1 ? blocks : new_list(&f))));
        set(&f, top, "device_traces", list_of(&f, kind == 2 ? trace : new_list(&f)));
        set(&f, top, "external_annotations", kind == 3 ? notes : new_list(&f));
        f.model.written_most = 1000;
        assert_int_equal(tn_decode_finish(&f.decoder, top), kind == 0 ? TARN_OK : TARN_ERR_LIMIT);
        assert_int_equal(f.error.status, kind == 0 ? TARN_OK : TARN_ERR_LIMIT);
        end(&f);
    }
}

/* What is walked once is paid by its bytes in the file; each time more counts, up to the limit of
 * memory. */
static void walks_are_charged_from_the_second_on(void **state)
{
    enum {
        ITEMS = 2 * 200
    };
    (void)state;
    for (uint64_t times = 1; times <= 200; times += 199) {
        for (int limited = 0; limited < 2; limited++) {
            struct fixture f;
            start(&f);
            struct tn_value pairs[ITEMS];
            const struct tn_value event = new_dict(&f);
            const struct tn_value history = new_list(&f);
            const struct tn_value b = block(&f, 3072, "inactive");

            for (size_t i = 0; i < ITEMS; i += 2) {
                pairs[i] = str(&f, i == 0 ? "real_size" : "addr");
                pairs[i + 1] = num(1);
            }
            assert_int_equal(tn_decode_set_items(&f.decoder, event, pairs, ITEMS / 2), TARN_OK);
            for (uint64_t i = 0; i < times; i++) {
                append(&f, history, event);
            }
            set(&f, b, "history", history);
            const uint64_t used = f.model.budget.used;
            const uint64_t charge = (times - 1) * ITEMS * sizeof(struct tn_value);
            const uint64_t slack = 200 << 10; /* memory that is taken on the way */

            f.model.budget.limit = limited ? used + charge / 2 + slack : 0;
            const struct tn_value list = new_list(&f);
            const enum tarn_status status = tn_decode_append(&f.decoder, list, &b, 1);

            assert_int_equal(status, limited && times > 1 ? TARN_ERR_LIMIT : TARN_OK);
            if (status == TARN_OK) {
                assert_in_range(f.model.budget.used - used, charge, charge + slack);
            }
            end(&f);
        }
    }
}

/* The first walk over entries is free as well. */
static void the_first_walk_is_free(void **state)
{
    struct fixture f;
    start(&f);
    const struct tn_value run = new_list(&f);
    const struct tn_value top = new_dict(&f);

    (void)state;
    for (int i = 0; i < 2000; i++) {
        append(&f, run, entry(&f, "alloc", 1));
    }
    set(&f, top, "device_traces", list_of(&f, run));
    const uint64_t used = f.model.budget.used;

    assert_int_equal(tn_decode_finish(&f.decoder, top), TARN_OK);
    assert_true(f.model.budget.used - used < 2000 * sizeof(struct tn_trace_entry));
    end(&f);
}

/* ---- host memory that runs out ---- */

/* Fills the memory that the arena has already: the next piece needs more of the host. */
static void use_up(struct tn_arena *arena)
{
    tarn_host_fail_nth(1);
    while (tn_arena_alloc(arena, 1)) {
        tarn_host_fail_nth(1);
    }
    tarn_host_fail_nth(0);
}

/* A value that the step reads, made beforehand. */
enum place {
    OF_SEGMENTS,
    OF_TRACES,
    OF_ANNOTATIONS,
    OF_FIELDS, /* of settings */
    OF_A_PAIR,
    OF_A_LIST,
    OF_A_LIST_IN_A_LIST,
    OF_AN_UNKNOWN_VALUE,
    PLACES
};

static struct tn_value top_of(struct fixture *f, enum place place)
{
    const struct tn_value top = new_dict(f);
    const struct tn_value settings = new_dict(f);

    set(f, settings, "x", list_of(f, num(1)));
    switch ((int)place) {
    case OF_SEGMENTS:
        set(f, top, "segments", list_of(f, segment(f, new_list(f))));
        break;
    case OF_TRACES:
        set(f, top, "device_traces", list_of(f, list_of(f, entry(f, "alloc", 1))));
        break;
    case OF_ANNOTATIONS:
        set(f, top, "external_annotations", new_list(f));
        break;
    case OF_FIELDS:
        set(f, top, "allocator_settings", settings);
        break;
    case OF_A_PAIR:
        set(f, top, "x", list_of(f, pair(f, 1, 2)));
        break;
    case OF_A_LIST:
        set(f, top, "x", list_of(f, num(1)));
        break;
    case OF_A_LIST_IN_A_LIST:
        set(f, top, "x", list_of(f, list_of(f, num(1))));
        break;
    default:
        set(f, top, "x", num(1));
    }
    if (place != OF_SEGMENTS && place != OF_TRACES) {
        set(f, top, "segments", new_list(f));
    }
    return top;
}

/* Whichever piece of memory is missing, the failure is reported, even if there is memory again
 * for what comes after it. */
static void each_piece_of_memory_may_be_missing(void **state)
{
    (void)state;
    for (enum place place = 0; place < PLACES; place++) {
        for (int scratch = 0; scratch < 2; scratch++) {
            struct fixture f;
            start(&f);
            const struct tn_value top = top_of(&f, place);

            use_up(scratch ? &f.decoder.scratch : &f.model.arena);
            const uint64_t calls = tarn_host_get_usage().alloc_calls;

            tarn_host_fail_nth(1);
            const enum tarn_status status = tn_decode_finish(&f.decoder, top);

            tarn_host_fail_nth(0);
            const bool failed = tarn_host_get_usage().alloc_calls > calls;

            assert_true(failed || scratch);
            assert_int_equal(status, failed ? TARN_ERR_HOST_MEMORY : TARN_OK);
            assert_int_equal(f.error.status, status);
            end(&f);
        }
    }
}

/* Blocks of a segment, more than a piece of memory has; the second piece is theirs. */
static void blocks_need_memory(void **state)
{
    struct fixture f;
    start(&f);
    const struct tn_value blocks = new_list(&f);

    (void)state;
    for (int i = 0; i < 20000; i++) {
        append(&f, blocks, block(&f, 512, "inactive"));
    }
    const struct tn_value list = list_of(&f, segment(&f, blocks));

    use_up(&f.model.arena);
    tarn_host_fail_nth(2);
    assert_int_equal(tn_decode_finish(&f.decoder, list), TARN_ERR_HOST_MEMORY);
    tarn_host_fail_nth(0);
    end(&f);
}

/* Records are made as their items come: blocks, their history, stacks, notes of an entry. */
static void records_need_memory(void **state)
{
    struct fixture f;

    (void)state;
    start(&f);
    const struct tn_value items[] = {block(&f, 512, "inactive"), block(&f, 512, "inactive")};
    const struct tn_value list = new_list(&f);

    tarn_host_fail_nth(1); /* of the first block, not of the second */
    assert_int_equal(tn_decode_append(&f.decoder, list, items, 2), TARN_ERR_HOST_MEMORY);
    tarn_host_fail_nth(0);
    end(&f);

    start(&f);
    const struct tn_value past = block(&f, 512, "inactive");
    const struct tn_value event = new_dict(&f);
    const struct tn_value blocks = list_of(&f, block(&f, 512, "inactive"));

    set(&f, event, "real_size", num(50));
    set(&f, past, "history", list_of(&f, event));
    use_up(&f.model.arena);
    tarn_host_fail_nth(1);
    assert_int_equal(tn_decode_append(&f.decoder, blocks, &past, 1), TARN_ERR_HOST_MEMORY);
    tarn_host_fail_nth(0);
    end(&f);

    start(&f);
    const struct tn_value one = frame(&f, 1);
    const struct tn_value stack = new_list(&f);

    use_up(&f.model.arena);
    tarn_host_fail_nth(1);
    assert_int_equal(tn_decode_append(&f.decoder, stack, &one, 1), TARN_ERR_HOST_MEMORY);
    tarn_host_fail_nth(0);
    end(&f);

    start(&f);
    const struct tn_value e = entry(&f, "alloc", 1);
    const struct tn_value pairs[] = {str(&f, "user_metadata"), list_of(&f, num(1))};

    use_up(&f.model.arena);
    tarn_host_fail_nth(1);
    assert_int_equal(tn_decode_set_items(&f.decoder, e, pairs, 1), TARN_ERR_HOST_MEMORY);
    tarn_host_fail_nth(0);
    end(&f);

    start(&f);
    (void)entry(&f, "alloc", 1);
    const struct tn_value keys[] = {str(&f, "addr"), num(1), str(&f, "action"), str(&f, "alloc")};
    const struct tn_value other = new_dict(&f); /* its keys are in an order of their own */

    use_up(&f.model.arena);
    tarn_host_fail_nth(1);
    assert_int_equal(tn_decode_set_items(&f.decoder, other, keys, 2), TARN_ERR_HOST_MEMORY);
    tarn_host_fail_nth(0);
    end(&f);
}

/* Each frame is another one: at some of them the table of frames grows. */
static void frames_need_memory(void **state)
{
    struct fixture f;
    int failures = 0;

    (void)state;
    start(&f);
    const struct tn_value name = str(&f, "name");
    const struct tn_value line = str(&f, "line");
    const struct tn_value filename = str(&f, "filename");

    for (int64_t i = 0; i < 3000; i++) {
        const struct tn_value pairs[] = {name, name, filename, name, line, num(i)};
        const struct tn_value dict = new_dict(&f);
        const uint64_t calls = tarn_host_get_usage().alloc_calls;

        tarn_host_fail_nth(1);
        const enum tarn_status status = tn_decode_set_items(&f.decoder, dict, pairs, 3);

        tarn_host_fail_nth(0);
        const bool failed = tarn_host_get_usage().alloc_calls > calls;

        assert_int_equal(status, failed ? TARN_ERR_HOST_MEMORY : TARN_OK);
        failures += failed;
        if (failed) {
            assert_int_equal(tn_decode_set_items(&f.decoder, new_dict(&f), pairs, 3), TARN_OK);
        }
    }
    assert_true(failures >= 2);
    end(&f);
}

/* Without a limit a record may still be too large for its size to be counted: it loses what it
 * keeps, which is no failure. */
static void what_is_too_large_to_count_is_left_out(void **state)
{
    const struct tn_decode_limits limits = {.max_depth = 64, .max_frames = 16};
    struct fixture f;
    start(&f);

    (void)state;
    tn_decoder_fini(&f.decoder);
    assert_int_equal(tn_decoder_init(&f.decoder, &f.model, &limits, &f.error), TARN_OK);
    struct tn_value list = list_of(&f, num(1));

    for (int i = 0; i < 27; i++) { /* each time twice as much, to 3 GB */
        const struct tn_value twice[] = {list, list};

        list = new_list(&f);
        assert_int_equal(tn_decode_append(&f.decoder, list, twice, 2), TARN_OK);
    }
    const struct tn_value s = segment(&f, new_list(&f));

    set(&f, s, "a", list);
    set(&f, s, "b", list);
    assert_int_equal(tn_decode_finish(&f.decoder, list_of(&f, s)), TARN_OK);
    assert_int_equal(f.model.segments[0].rest, TN_CONTAINER_NONE);
    end(&f);
}

/* ---- in parts ---- */

/* A file that ends early may end before its segments. */
static void a_part_of_a_file_may_lack_its_segments(void **state)
{
    (void)state;
    for (int partial = 0; partial < 2; partial++) {
        struct fixture f;
        start(&f);
        const struct tn_value top = new_dict(&f);

        set(&f, top, "allocator_settings", new_dict(&f));
        f.model.is_partial = partial == 1;
        assert_int_equal(tn_decode_finish(&f.decoder, top), partial ? TARN_OK : TARN_ERR_FORMAT);
        assert_int_equal(f.model.settings.present, partial == 1);
        end(&f);
    }
}

/* The number of a block's container is none. */
static void a_number_is_no_block(void **state)
{
    struct fixture f;
    start(&f);
    const struct tn_value blocks = list_of(&f, block(&f, 512, "inactive"));
    const struct tn_value_list *have = tn_decode_items(&f.decoder, blocks, false);

    (void)state;
    append(&f, blocks, num((int64_t)have->items[0].as.number));
    assert_int_equal(tn_decode_finish(&f.decoder, list_of(&f, segment(&f, blocks))),
                     TARN_ERR_FORMAT);
    assert_non_null(strstr(f.error.text, "but holds an integer"));
    end(&f);
}

/* An entry with a wrong value is refused whatever follows it, also one with the keys of the
 * last. */
static void a_wrong_value_counts_wherever_it_is(void **state)
{
    struct fixture f;
    start(&f);
    const struct tn_value text = str(&f, "x");
    const struct tn_value good[] = {
        str(&f, "action"), str(&f, "alloc"), str(&f, "addr"), num(1), str(&f, "size"), num(1)};

    (void)state;
    for (int repeated = 0; repeated < 2; repeated++) {
        for (size_t i = 0; i < 3; i++) {
            struct tn_value wrong[6];

            memcpy(wrong, good, sizeof good);
            wrong[2 * i + 1] = i == 0 ? num(7) : text;
            f.error = (struct tarn_error){0};
            assert_int_equal(tn_decode_set_items(&f.decoder, new_dict(&f), wrong, 3),
                             TARN_ERR_FORMAT);
            assert_non_null(strstr(f.error.text, i == 0 ? "must hold a string" : "an integer"));
        }
        assert_int_equal(tn_decode_set_items(&f.decoder, new_dict(&f), good, 3), TARN_OK);
    }
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(old_blocks_get_addresses_and_sums),
        cmocka_unit_test(entries_hold_every_key),
        cmocka_unit_test(a_dict_is_told_by_a_late_key),
        cmocka_unit_test(annotations_keep_any_key),
        cmocka_unit_test(shared_entries_are_copied),
        cmocka_unit_test(pairs_have_an_end),
        cmocka_unit_test(equal_stacks_are_one),
        cmocka_unit_test(sizes_and_times_stay_in_bounds),
        cmocka_unit_test(sizes_of_segments_stay_in_bounds),
        cmocka_unit_test(stacks_of_segments_are_charged),
        cmocka_unit_test(a_dict_in_a_list_stays_as_it_is),
        cmocka_unit_test(a_list_does_not_contain_itself),
        cmocka_unit_test(a_dict_that_is_no_frame_is_kept),
        cmocka_unit_test(what_is_walked_again_is_charged),
        cmocka_unit_test(too_long_a_stack_is_refused),
        cmocka_unit_test(wrong_kinds_are_named),
        cmocka_unit_test(wrong_shapes_are_refused),
        cmocka_unit_test(segments_need_their_keys),
        cmocka_unit_test(odd_values_are_counted),
        cmocka_unit_test(settings_have_bounds),
        cmocka_unit_test(copies_of_entries_need_memory),
        cmocka_unit_test(blocks_elsewhere_are_kept_or_skipped),
        cmocka_unit_test(what_is_kept_has_a_limit),
        cmocka_unit_test(many_warnings_are_counted_not_kept),
        cmocka_unit_test(containers_nest_as_deep_as_the_limit),
        cmocka_unit_test(what_is_in_a_container_no_longer_changes),
        cmocka_unit_test(what_is_not_in_a_container_may_change),
        cmocka_unit_test(what_a_repeated_entry_has_no_longer_changes),
        cmocka_unit_test(metadata_is_no_record),
        cmocka_unit_test(only_the_same_keys_make_an_entry_again),
        cmocka_unit_test(a_dict_stays_what_its_keys_made_it),
        cmocka_unit_test(blocks_that_arrive_take_the_room_of_the_last),
        cmocka_unit_test(lists_of_records_have_nothing_else),
        cmocka_unit_test(stacks_grow_beside_each_other),
        cmocka_unit_test(what_is_too_long_has_a_place),
        cmocka_unit_test(equal_pairs_are_one_and_longer_tuples_none),
        cmocka_unit_test(items_of_an_entry_come_in_parts),
        cmocka_unit_test(each_entry_keeps_the_order_of_its_keys),
        cmocka_unit_test(values_that_come_again_replace_the_first),
        cmocka_unit_test(what_cannot_be_kept_is_a_warning_each),
        cmocka_unit_test(a_key_with_a_nul_is_left_out),
        cmocka_unit_test(notes_of_an_entry_may_be_any_value),
        cmocka_unit_test(frames_keep_unknown_keys),
        cmocka_unit_test(what_a_record_keeps_has_a_limit),
        cmocka_unit_test(records_are_charged_as_they_are_written),
        cmocka_unit_test(each_kind_of_record_has_a_limit),
        cmocka_unit_test(walks_are_charged_from_the_second_on),
        cmocka_unit_test(the_first_walk_is_free),
        cmocka_unit_test(each_piece_of_memory_may_be_missing),
        cmocka_unit_test(blocks_need_memory),
        cmocka_unit_test(records_need_memory),
        cmocka_unit_test(frames_need_memory),
        cmocka_unit_test(what_is_too_large_to_count_is_left_out),
        cmocka_unit_test(a_part_of_a_file_may_lack_its_segments),
        cmocka_unit_test(a_number_is_no_block),
        cmocka_unit_test(a_wrong_value_counts_wherever_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
