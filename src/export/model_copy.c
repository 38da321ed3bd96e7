/* SPDX-License-Identifier: MIT */
#include "export/model_copy.h"

#include "analysis/code_origin.h"
#include "base/assertion.h"
#include "base/host_mem.h"
#include "snapshot/decode_object.h" /* TN_SHAPE_KEYS_MAX */
#include "snapshot/keys.h"

#include <stdio.h>
#include <string.h>

enum {
    NAME_MAX_BYTES = 64
};

static uint32_t *numbers_alloc(const struct tn_chunked_vec *vec)
{
    return tn_host_alloc_zero((size_t)vec->count * sizeof(uint32_t));
}

static void numbers_free(uint32_t *numbers, const struct tn_chunked_vec *vec)
{
    tn_host_free(numbers, (size_t)vec->count * sizeof(uint32_t));
}

bool tn_model_copy_init(struct tn_model_copy *copy, const struct tn_model *from,
                        struct tn_model *to)
{
    *copy = (struct tn_model_copy){.from = from, .to = to};
    tn_vec_init(&copy->frames, sizeof(uint32_t));
    tn_vec_init(&copy->text, 1);
    copy->stacks = numbers_alloc(&from->stacks);
    copy->extras = numbers_alloc(&from->extras);
    copy->containers = numbers_alloc(&from->containers);
    bool good = copy->stacks && copy->extras && copy->containers;

    for (unsigned i = 0; i < TN_TEXT_KINDS; i++) {
        copy->strings[i] = numbers_alloc(&from->strings);
        good = good && copy->strings[i];
    }
    if (!good) {
        tn_model_copy_fini(copy);
    }
    return good;
}

void tn_model_copy_fini(struct tn_model_copy *copy)
{
    for (unsigned i = 0; i < TN_TEXT_KINDS; i++) {
        numbers_free(copy->strings[i], &copy->from->strings);
    }
    numbers_free(copy->stacks, &copy->from->stacks);
    numbers_free(copy->extras, &copy->from->extras);
    numbers_free(copy->containers, &copy->from->containers);
    tn_vec_fini(&copy->text);
    tn_vec_fini(&copy->frames);
}

bool tn_copy_note(struct tn_model_copy *copy, enum tarn_status status)
{
    if (copy->status == TARN_OK) {
        copy->status = status;
    }
    return copy->status == TARN_OK;
}

void *tn_copy_array(struct tn_model_copy *copy, size_t count, size_t size)
{
    void *array = tn_arena_alloc_array(&copy->to->arena, count, size);

    if (!array) {
        (void)tn_copy_note(copy, tn_model_memory_status(copy->to));
    }
    return array;
}

/* ---- names ---- */

static bool begins_with(const struct tn_string text, const char *start)
{
    const size_t length = strlen(start);

    return text.length >= length && memcmp(text.text, start, length) == 0;
}

static bool ends_with(const struct tn_string text, const char *end)
{
    const size_t length = strlen(end);

    return text.length >= length && memcmp(text.text + text.length - length, end, length) == 0;
}

/* Where the path inside PyTorch's package begins, or NULL. */
static const char *torch_path(const struct tn_string path)
{
    static const char *const folders[] = {"/site-packages/torch/", "/dist-packages/torch/"};

    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        const char *at = strstr(path.text, folders[i]);

        if (at && strlen(path.text) == path.length && !strstr(at, "/../")) {
            return strchr(at + 1, '/') + 1;
        }
    }
    return NULL;
}

/* Whether digits are all that follows; there may be a 0 byte in a text, and anything behind it. */
static bool ends_in_digits(const struct tn_string text, size_t from)
{
    size_t at = from;

    while (at < text.length && text.text[at] >= '0' && text.text[at] <= '9') {
        at++;
    }
    return at == text.length && at > from;
}

/* Texts that say nothing about the program: "N/A" and steps. */
static bool note_is_plain(const struct tn_string text)
{
    return tn_string_is(text, "N/A") ||
           (begins_with(text, "ProfilerStep#") && ends_in_digits(text, strlen("ProfilerStep#")));
}

static bool is_one_of(const struct tn_string text, const char *const *words)
{
    while (*words && !tn_string_is(text, *words)) {
        words++;
    }
    return *words != NULL;
}

static const char *const stage_words[] = {"START", "END", NULL};

/* Names and values that PyTorch's settings have, and the keys under which snapshots tell them. */
static const char *const setting_words[] = {"max_split_size_mb",
                                            "max_non_split_rounding_mb",
                                            "large_segment_size_mb",
                                            "garbage_collection_threshold",
                                            "roundup_power2_divisions",
                                            "expandable_segments",
                                            "release_lock_on_cudamalloc",
                                            "release_lock_on_hipmalloc",
                                            "per_process_memory_fraction",
                                            "throw_on_cudamalloc_oom",
                                            "graph_capture_record_stream_reuse",
                                            "backend",
                                            "policy",
                                            "max_cached_mb",
                                            "rules",
                                            "pinned_use_cuda_host_register",
                                            "pinned_use_hip_host_register",
                                            "pinned_num_register_threads",
                                            "pinned_use_background_threads",
                                            "pinned_reserve_segment_size_mb",
                                            "pinned_free_catch_all",
                                            "pinned_max_round_threshold_mb",
                                            "pinned_max_cached_size_mb",
                                            "trace_alloc_overflowed",
                                            "trace_alloc_max_entries",
                                            "native",
                                            "cudaMallocAsync",
                                            "hipMallocAsync",
                                            "exact",
                                            "compact",
                                            "True",
                                            "False",
                                            NULL};

static bool is_kept(const struct tn_string text, enum tn_text_kind kind)
{
    if (text.length == 0) {
        return true;
    }
    switch (kind) {
    case TN_TEXT_NOTE:
        return note_is_plain(text);
    case TN_TEXT_WORD:
        return is_one_of(text, stage_words);
    case TN_TEXT_SETTING:
        return is_one_of(text, setting_words);
    case TN_TEXT_FUNCTION:
    case TN_TEXT_FILE:
        break;
    case TN_TEXT_KINDS:
        tn_no_case();
        break;
    }
    return false;
}

/* A made-up name; optimizers' steps and files keep what tells their kind, files also that they are
 * of a library. */
static void name_invent(struct tn_model_copy *copy, const struct tn_string text,
                        enum tn_text_kind kind, char name[NAME_MAX_BYTES])
{
    static const char *const words[] = {"function", "file", "note", "word", "setting"};
    const char *before =
        kind == TN_TEXT_NOTE && begins_with(text, "Optimizer.step#")     ? "Optimizer.step#"
        : kind == TN_TEXT_FILE && tn_code_origin_of(text) != TN_CODE_OWN ? "site-packages/"
                                                                         : "";
    const char *behind = kind != TN_TEXT_FILE ? "" : ends_with(text, ".py") ? ".py" : ".cpp";

    (void)snprintf(name, NAME_MAX_BYTES, "%s%s%u%s", before, words[kind], ++copy->given[kind],
                   behind);
}

static uint32_t string_make(struct tn_model_copy *copy, const struct tn_string text,
                            enum tn_text_kind kind)
{
    const char *torch = kind == TN_TEXT_FILE ? torch_path(text) : NULL;
    char name[NAME_MAX_BYTES];
    struct tn_string made = text;
    uint32_t string = TN_STRING_NONE;

    if (copy->anonymize && torch) {
        made = (struct tn_string){torch, strlen(torch)};
    } else if (copy->anonymize && !is_kept(text, kind)) {
        name_invent(copy, text, kind, name);
        made = (struct tn_string){name, strlen(name)};
    }
    (void)tn_copy_note(copy, tn_model_add_string(copy->to, made.text, made.length, &string));
    return string;
}

uint32_t tn_copy_string(struct tn_model_copy *copy, uint32_t string, enum tn_text_kind kind)
{
    uint32_t *known = &copy->strings[kind][string];

    if (string == TN_STRING_NONE) {
        return TN_STRING_NONE;
    }
    if (*known == 0) {
        *known = string_make(copy, tn_model_string(copy->from, string), kind) + 1;
    }
    return *known - 1;
}

/* As it is: what names PyTorch's own things. */
static uint32_t string_pass(struct tn_model_copy *copy, uint32_t string)
{
    const struct tn_string text = tn_model_string(copy->from, string);
    uint32_t passed = TN_STRING_NONE;

    if (string != TN_STRING_NONE) {
        (void)tn_copy_note(copy, tn_model_add_string(copy->to, text.text, text.length, &passed));
    }
    return passed;
}

/* ---- settings ---- */

enum {
    SETTING_DIGITS_MAX = 20
};

static bool setting_is_known(const struct tn_string word)
{
    size_t digits = 0;

    while (digits < word.length && strchr("0123456789.", word.text[digits])) {
        digits++;
    }
    return (digits == word.length && digits <= SETTING_DIGITS_MAX) ||
           is_one_of(word, setting_words);
}

static bool text_add(struct tn_model_copy *copy, const char *text, size_t length)
{
    return tn_copy_note(copy,
                        tn_vec_append(&copy->text, text, length) ? TARN_OK : TARN_ERR_HOST_MEMORY);
}

/* Bytes of the word, or of what stands between words, that `text` begins with. */
static size_t piece_length(const char *text, size_t length, bool *is_word_out)
{
    static const char between[] = " ,:;[]<>";
    size_t count = 0;

    *is_word_out = memchr(between, text[0], sizeof between - 1) == NULL;
    while (count < length &&
           (memchr(between, text[count], sizeof between - 1) == NULL) == *is_word_out) {
        count++;
    }
    return count;
}

uint32_t tn_copy_settings(struct tn_model_copy *copy, uint32_t string)
{
    struct tn_string left = tn_model_string(copy->from, string);
    uint32_t made = TN_STRING_NONE;
    bool is_word;

    if (!copy->anonymize || string == TN_STRING_NONE) {
        return string_pass(copy, string);
    }
    copy->text.count = 0;
    while (left.length > 0 && copy->status == TARN_OK) {
        const size_t length = piece_length(left.text, left.length, &is_word);
        const struct tn_string piece = {left.text, length};
        const bool passes = !is_word || setting_is_known(piece);

        (void)text_add(copy, passes ? piece.text : "other", passes ? length : strlen("other"));
        left = (struct tn_string){left.text + length, left.length - length};
    }
    if (copy->status == TARN_OK) {
        (void)tn_copy_note(copy, tn_model_add_string(copy->to,
                                                     copy->text.count > 0 ? copy->text.items : "",
                                                     copy->text.count, &made));
    }
    return made;
}

/* ---- stacks ---- */

static bool is_python(const struct tn_string file)
{
    return ends_with(file, ".py") || begins_with(file, "<");
}

static uint32_t fx_copy(struct tn_model_copy *copy, uint32_t number)
{
    const struct tn_frame_fx *fx = tn_chunked_vec_at(&copy->from->fx, number);
    const struct tn_frame_fx made = {
        .node_op = tn_copy_string(copy, fx->node_op, TN_TEXT_NOTE),
        .node_name = tn_copy_string(copy, fx->node_name, TN_TEXT_NOTE),
        .node_target = tn_copy_string(copy, fx->node_target, TN_TEXT_NOTE),
        .original_trace = tn_copy_string(copy, fx->original_trace, TN_TEXT_NOTE),
        .rest = tn_copy_container(copy, fx->rest)};
    uint32_t copied = 0;

    if (number != 0) {
        (void)tn_copy_note(copy, tn_model_add_fx(copy->to, &made, &copied));
    }
    return copied;
}

/* What the made-up name of a function says of it, or NULL: by it the built-in rules classify the
 * stack again. */
static const char *function_kind(const struct tn_model_copy *copy, uint32_t frame)
{
    uint32_t category = tn_category_of_frame(copy->categories, frame);
    const char *hint;

    if (category == TN_CATEGORY_UNCLASSIFIED) {
        category = tn_category_of_frame_refined(copy->categories, frame);
    }
    if (category != TN_CATEGORY_UNCLASSIFIED) {
        return tn_category_name(copy->categories, category, &hint);
    }
    return tn_frame_generates(copy->from, frame) ? "generate" : NULL;
}

static uint32_t name_with_category(struct tn_model_copy *copy, uint32_t name, uint32_t frame)
{
    const char *kind = function_kind(copy, frame);
    char text[NAME_MAX_BYTES];
    uint32_t string = name;

    if (!kind) {
        return name;
    }
    (void)snprintf(text, sizeof text, "%s (%s)", tn_model_string(copy->to, name).text, kind);
    (void)tn_copy_note(copy, tn_model_add_string(copy->to, text, strlen(text), &string));
    return string;
}

static uint32_t function_copy(struct tn_model_copy *copy, uint32_t number)
{
    const struct tn_frame *frame = tn_model_frame(copy->from, number);
    const uint32_t name = tn_copy_string(copy, frame->name, TN_TEXT_FUNCTION);

    tn_assert(copy->categories); /* whoever makes names up has them */
    return name_with_category(copy, name, number);
}

static uint32_t frame_make(struct tn_model_copy *copy, uint32_t from)
{
    const struct tn_frame *frame = tn_model_frame(copy->from, from);
    const struct tn_string file = tn_model_string(copy->from, frame->filename);
    /* Names inside PyTorch are public. */
    const bool is_public = !copy->anonymize || torch_path(file) != NULL;
    const struct tn_frame made = {
        .name = is_public ? string_pass(copy, frame->name) : function_copy(copy, from),
        .filename = tn_copy_string(copy, frame->filename, TN_TEXT_FILE),
        .line = frame->line,
        .fx = fx_copy(copy, frame->fx),
    };
    uint32_t number = 0;

    if (copy->status == TARN_OK) {
        (void)tn_copy_note(copy, tn_model_add_frame(copy->to, &made, &number));
    }
    return number;
}

static void frame_copy(struct tn_model_copy *copy, uint32_t from)
{
    const uint32_t made = frame_make(copy, from);
    uint32_t *number = tn_vec_push(&copy->frames);

    if (tn_copy_note(copy, number ? TARN_OK : TARN_ERR_HOST_MEMORY)) {
        *number = made;
    }
}

static uint32_t stack_make(struct tn_model_copy *copy, uint32_t stack)
{
    const struct tn_stack frames = tn_model_stack(copy->from, stack);
    uint32_t made = TN_STACK_EMPTY;

    copy->frames.count = 0;
    for (uint32_t i = 0; i < frames.count && copy->status == TARN_OK; i++) {
        const struct tn_frame *frame = tn_model_frame(copy->from, frames.frames[i]);

        if (!copy->drop_cpp || is_python(tn_model_string(copy->from, frame->filename))) {
            frame_copy(copy, frames.frames[i]);
        }
    }
    if (copy->status == TARN_OK && copy->frames.count > 0) {
        (void)tn_copy_note(
            copy, tn_model_add_stack(copy->to, copy->frames.items, copy->frames.count, &made));
    }
    return made;
}

uint32_t tn_copy_stack(struct tn_model_copy *copy, uint32_t stack)
{
    if (stack == TN_STACK_NONE || stack == TN_STACK_EMPTY) {
        return stack;
    }
    if (copy->stacks[stack] == 0) {
        copy->stacks[stack] = stack_make(copy, stack) + 1;
    }
    return copy->stacks[stack] - 1;
}

/* ---- containers ---- */

uint32_t tn_copy_container(const struct tn_model_copy *copy, uint32_t container)
{
    return copy->containers[container];
}

void tn_copy_value(struct tn_model_copy *copy, struct tn_field *field)
{
    if (field->kind == TN_FIELD_CONTAINER) {
        field->value.number = tn_copy_container(copy, field->value.number);
    } else if (field->kind == TN_FIELD_STACK) {
        field->value.number = tn_copy_stack(copy, field->value.number);
    } else if (field->kind == TN_FIELD_FRAME) {
        field->value.number = frame_make(copy, field->value.number);
    }
}

static void container_copy(struct tn_model_copy *copy, uint32_t number)
{
    const struct tn_container from = tn_model_container(copy->from, number);
    struct tn_field *items = tn_copy_array(copy, from.count, sizeof *items);

    for (uint32_t i = 0; items && i < from.count; i++) {
        items[i] = from.items[i];
        items[i].key = string_pass(copy, items[i].key);
        if (items[i].kind == TN_FIELD_STRING) {
            items[i].value.string = string_pass(copy, items[i].value.string);
        } else {
            tn_copy_value(copy, &items[i]);
        }
    }
    if (copy->status == TARN_OK) {
        (void)tn_copy_note(copy,
                           tn_model_add_container(copy->to, (enum tn_container_kind)from.kind,
                                                  items, from.count, &copy->containers[number]));
    }
}

void tn_copy_containers(struct tn_model_copy *copy)
{
    for (uint32_t i = 1; i < copy->from->containers.count && !copy->anonymize; i++) {
        container_copy(copy, i);
    }
}

/* ---- entries ---- */

/* Known keys have the same numbers in every model. Others leave with their values. */
static uint32_t shape_copy(struct tn_model_copy *copy, uint32_t number)
{
    const struct tn_shape shape = tn_model_shape(copy->from, number);
    uint32_t keys[TN_SHAPE_KEYS_MAX];
    uint32_t count = 0;
    uint32_t copied = 0;

    for (uint32_t i = 0; i < shape.count; i++) {
        const uint32_t key = shape.keys[i];

        if (key < TN_KEY_END) {
            keys[count++] = key;
        } else if (!copy->anonymize) {
            keys[count++] = string_pass(copy, key);
        }
    }
    if (number != 0) {
        (void)tn_copy_note(copy, tn_model_add_shape(copy->to, keys, count, &copied));
    }
    return copied;
}

static uint32_t extra_make(struct tn_model_copy *copy, uint32_t number)
{
    const struct tn_trace_extra *extra = tn_model_extra(copy->from, number);
    const struct tn_trace_extra made = {
        .compile_context = tn_copy_string(copy, extra->compile_context, TN_TEXT_NOTE),
        .user_metadata = tn_copy_string(copy, extra->user_metadata, TN_TEXT_NOTE),
        .internal_metadata = tn_copy_string(copy, extra->internal_metadata, TN_TEXT_NOTE),
        .category = tn_copy_string(copy, extra->category, TN_TEXT_NOTE),
        .action_name = tn_copy_string(copy, extra->action_name, TN_TEXT_WORD),
        .shape = shape_copy(copy, extra->shape),
        .rest = tn_copy_container(copy, extra->rest),
        .has_pool = extra->has_pool,
        .pool = extra->pool,
    };
    uint32_t copied = TN_EXTRA_NONE;

    if (copy->status == TARN_OK) {
        (void)tn_copy_note(copy, tn_model_add_extra(copy->to, &made, &copied));
    }
    return copied;
}

uint32_t tn_copy_extra(struct tn_model_copy *copy, uint32_t extra)
{
    if (extra == TN_EXTRA_NONE) {
        return TN_EXTRA_NONE;
    }
    if (copy->extras[extra] == 0) {
        copy->extras[extra] = extra_make(copy, extra) + 1;
    }
    return copy->extras[extra] - 1;
}

int64_t tn_copy_time(const struct tn_model_copy *copy, int64_t time_us)
{
    return time_us == TN_TIME_NONE ? TN_TIME_NONE : time_us - copy->time_shift;
}
