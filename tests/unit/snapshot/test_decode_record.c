/* SPDX-License-Identifier: MIT */
/* What records of a snapshot keep: the items of entries, frames and blocks, how much of them, and
 * what happens without memory. */
#include "support/decode_rig.h"

#include <stdio.h>

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
    static const struct CMUnitTest tests[] = {
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
