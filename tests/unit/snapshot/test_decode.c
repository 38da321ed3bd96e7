/* SPDX-License-Identifier: MIT */
/* What the containers of a snapshot mean: which kind a dict or list is, and what it may hold. */
#include "support/decode_rig.h"

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

int main(void)
{
    static const struct CMUnitTest tests[] = {
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
