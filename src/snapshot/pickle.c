/* SPDX-License-Identifier: MIT */
#include "snapshot/pickle.h"

#include "base/assertion.h"
#include "base/errinfo.h"
#include "base/utf8.h"
#include "snapshot/pickle_op.h"
#include "snapshot/warning.h"

#include <string.h>

enum op_class {
    CLASS_NONE,
    CLASS_DATA,
    CLASS_CALL,
    CLASS_TEXT,
    CLASS_OTHER
};

static const uint8_t op_classes[256] = {
#define X(name, byte, class) [byte] = CLASS_##class,
#include "snapshot/pickle_ops.def"
#undef X
};

static const char *const op_names[256] = {
#define X(name, byte, class) [byte] = #name,
#include "snapshot/pickle_ops.def"
#undef X
};

enum {
    STACK_FIRST = 256,
    PROTOCOL_MIN = 2,
    PROTOCOL_MAX = 5,
    INTEGER_BYTES_MAX = 9
};

/* Failures. */

TN_COLD static enum tarn_status pickle_damaged(struct tn_pickle *pickle, const char *what)
{
    return tn_fail_at(
        pickle->error, TARN_ERR_FORMAT, (int64_t)pickle->op_offset,
        "the pickle is damaged at byte %llu: %s. Copy the file again or write it anew",
        (unsigned long long)pickle->op_offset, what);
}

TN_COLD static enum tarn_status pickle_memory(struct tn_pickle *pickle)
{
    const enum tarn_status status = tn_budget_status(pickle->budget);

    return tn_fail(pickle->error, status,
                   status == TARN_ERR_LIMIT
                       ? "reading this snapshot needs more than the limit of %llu bytes of memory, "
                         "which can be raised"
                       : "no host memory to read a snapshot (used: %llu bytes)",
                   (unsigned long long)(status == TARN_ERR_LIMIT ? pickle->budget->limit
                                                                 : pickle->budget->used));
}

TN_COLD static enum tarn_status pickle_limit(struct tn_pickle *pickle, const char *what,
                                             uint64_t limit)
{
    return tn_fail_at(pickle->error, TARN_ERR_LIMIT, (int64_t)pickle->op_offset,
                      "%s at byte %llu: more than %llu, which no snapshot needs", what,
                      (unsigned long long)pickle->op_offset, (unsigned long long)limit);
}

TN_COLD static enum tarn_status pickle_refuse(struct tn_pickle *pickle, uint8_t op)
{
    const unsigned long long offset = pickle->op_offset;

    switch ((enum op_class)op_classes[op]) {
    case CLASS_TEXT:
        return tn_fail_at(pickle->error, TARN_ERR_FORMAT, (int64_t)offset,
                          "the opcode %s at byte %llu belongs to pickle protocol 0 or 1, which "
                          "PyTorch does not write. Save the snapshot with protocol 2 or later",
                          op_names[op], offset);
    case CLASS_OTHER:
        return tn_fail_at(pickle->error, TARN_ERR_FORMAT, (int64_t)offset,
                          "the opcode %s at byte %llu creates something that no snapshot contains",
                          op_names[op], offset);
    case CLASS_NONE:
        break;
    case CLASS_DATA:
    case CLASS_CALL: /* are not refused */
        tn_no_case();
        break;
    }
    return tn_fail_at(pickle->error, TARN_ERR_FORMAT, (int64_t)offset,
                      "the byte 0x%02x at %llu is not a pickle opcode: the file is damaged", op,
                      offset);
}

/* Init and fini. */

enum tarn_status tn_pickle_init(struct tn_pickle *pickle, struct tn_input *input,
                                struct tn_decoder *decoder, const struct tn_pickle_limits *limits,
                                struct tarn_error *error)
{
    struct tn_budget *budget = &decoder->model->budget;

    tn_assert(limits->max_depth <= TN_PICKLE_MARKS_MAX);
    *pickle = (struct tn_pickle){
        .input = input, .decoder = decoder, .budget = budget, .error = error, .limits = *limits};
    tn_chunked_vec_init(&pickle->memo, budget, sizeof(uint64_t));
    tn_chunked_vec_init(&pickle->boxed, budget, sizeof(struct tn_value));
    tn_row_cache_init(&pickle->rows, &decoder->scratch);
    pickle->stack = tn_budget_alloc(budget, STACK_FIRST * sizeof *pickle->stack);
    if (!pickle->stack) {
        return pickle_memory(pickle);
    }
    pickle->capacity = STACK_FIRST;
    return TARN_OK;
}

void tn_pickle_fini(struct tn_pickle *pickle)
{
    tn_budget_free(pickle->budget, pickle->stack, pickle->capacity * sizeof *pickle->stack);
    tn_chunked_vec_fini(&pickle->memo);
    tn_chunked_vec_fini(&pickle->boxed);
    pickle->stack = NULL;
}

/* The value stack. */

TN_COLD static enum tarn_status stack_grow(struct tn_pickle *pickle)
{
    const size_t size = pickle->capacity * sizeof *pickle->stack;

    if (pickle->capacity >= pickle->limits.max_stack) {
        return pickle_limit(pickle, "too many open values", pickle->limits.max_stack);
    }
    struct tn_value *stack = tn_budget_alloc(pickle->budget, size * 2);
    if (!stack) {
        return pickle_memory(pickle);
    }
    memcpy(stack, pickle->stack, size);
    tn_budget_free(pickle->budget, pickle->stack, size);
    pickle->stack = stack;
    pickle->capacity *= 2;
    return TARN_OK;
}

static inline enum tarn_status stack_push(struct tn_pickle *pickle, struct tn_value value)
{
    if (tn_unlikely(pickle->depth == pickle->capacity)) {
        const enum tarn_status status = stack_grow(pickle);

        if (status != TARN_OK) {
            return status;
        }
    }
    pickle->stack[pickle->depth++] = value;
    return TARN_OK;
}

enum tarn_status tn_pickle_push(struct tn_pickle *pickle, struct tn_value value)
{
    return stack_push(pickle, value);
}

static enum tarn_status stack_need(struct tn_pickle *pickle, size_t count)
{
    return tn_likely(pickle->depth - pickle->floor >= count)
               ? TARN_OK
               : pickle_damaged(pickle, "an opcode finds too few values");
}

/* A MARK above a new list: if a known row of frames follows, the list is complete. */
static bool row_take(struct tn_pickle *pickle)
{
    struct tn_input *input = pickle->input;

    pickle->row_offset = 0;
    if (pickle->depth == pickle->floor) {
        return false;
    }
    const struct tn_value top = pickle->stack[pickle->depth - 1];
    if (tn_value_kind(top) != TN_VALUE_OBJECT) {
        return false;
    }
    struct tn_object *list = tn_decode_object(pickle->decoder, top);
    if (list->kind != TN_OBJECT_EMPTY_LIST || list->sealed) {
        return false;
    }
    const struct tn_row *row =
        tn_row_cache_find(&pickle->rows, input->at, (size_t)(input->end - input->at));
    if (!row) {
        pickle->row_offset = tn_input_offset(input);
        return false;
    }
    list->kind = TN_OBJECT_STACK;
    list->index = row->stack;
    list->pieces = 1;
    input->at += row->length;
    return true;
}

/* After APPENDS: caches the row of a stack, if all of it is still in the window. */
static void row_keep(struct tn_pickle *pickle, struct tn_value list)
{
    const struct tn_object *object = tn_decode_object(pickle->decoder, list);

    /* Between the mark and here nothing else can have added to the list: it would be on the stack,
     * above the mark, and no opcode that is accepted takes it off again. */
    if (pickle->row_offset > pickle->input->base && object->kind == TN_OBJECT_STACK &&
        tn_always(object->pieces == 1)) {
        const uint8_t *row = pickle->input->start + (pickle->row_offset - pickle->input->base);

        tn_row_cache_keep(&pickle->rows, row, (size_t)(pickle->input->at - row),
                          (uint32_t)object->index);
    }
    pickle->row_offset = 0;
}

static enum tarn_status mark_push(struct tn_pickle *pickle)
{
    if (row_take(pickle)) {
        return TARN_OK;
    }
    if (tn_unlikely(pickle->mark_count >= pickle->limits.max_depth)) {
        return pickle_limit(pickle, "containers nested too deep", pickle->limits.max_depth);
    }
    pickle->marks[pickle->mark_count++] = pickle->depth;
    pickle->floor = pickle->depth;
    return TARN_OK;
}

/* Removes the newest mark; *first_out is the index of the first value above it. */
static enum tarn_status mark_pop(struct tn_pickle *pickle, size_t *first_out)
{
    if (tn_unlikely(pickle->mark_count == 0)) {
        return pickle_damaged(pickle, "an opcode finds no mark");
    }
    *first_out = pickle->marks[--pickle->mark_count];
    pickle->floor = pickle->mark_count == 0 ? 0 : pickle->marks[pickle->mark_count - 1];
    return TARN_OK;
}

/* Bytes of the input. */

/* A number of `count` bytes that follows the opcode. */
static inline enum tarn_status take_little(struct tn_pickle *pickle, unsigned count,
                                           uint64_t *value_out)
{
    const enum tarn_status status = tn_input_need(pickle->input, count, pickle->error);

    if (status == TARN_OK) {
        *value_out = tn_op_number(pickle->input->at, count);
        pickle->input->at += count;
    }
    return status;
}

/* Plain values. */

static enum tarn_status push_simple(struct tn_pickle *pickle, enum tn_value_kind kind,
                                    uint64_t number)
{
    return stack_push(pickle, tn_value_make(kind, pickle->op_offset, number));
}

static enum tarn_status push_binint(struct tn_pickle *pickle, unsigned count)
{
    uint64_t value = 0;
    const enum tarn_status status = take_little(pickle, count, &value);

    if (status != TARN_OK) {
        return status;
    }
    const int64_t integer = count == 4 ? (int32_t)(uint32_t)value : (int64_t)value;
    return stack_push(pickle, tn_value_integer(pickle->op_offset, integer));
}

static enum tarn_status push_long_bytes(struct tn_pickle *pickle, const uint8_t *bytes,
                                        unsigned count)
{
    uint64_t value = tn_op_number(bytes, count < 8 ? count : 8);

    if (count == INTEGER_BYTES_MAX) {
        if (bytes[8] != 0) {
            return pickle_damaged(pickle, "an integer has more than 64 bits");
        }
        return push_simple(pickle, value > INT64_MAX ? TN_VALUE_UINT : TN_VALUE_INT, value);
    }
    if (count > 0 && count < 8 && bytes[count - 1] >= 0x80) {
        value |= ~(uint64_t)0 << (8 * count);
    }
    return push_simple(pickle, TN_VALUE_INT, value);
}

static enum tarn_status push_long(struct tn_pickle *pickle, unsigned length_bytes)
{
    uint64_t count = 0;
    enum tarn_status status = take_little(pickle, length_bytes, &count);

    if (status != TARN_OK) {
        return status;
    }
    if (count > INTEGER_BYTES_MAX) {
        return pickle_damaged(pickle, "an integer has more than 64 bits");
    }
    status = tn_input_need(pickle->input, (size_t)count, pickle->error);
    if (status == TARN_OK) {
        const uint8_t *bytes = pickle->input->at;

        pickle->input->at += count;
        status = push_long_bytes(pickle, bytes, (unsigned)count);
    }
    return status;
}

static enum tarn_status push_float(struct tn_pickle *pickle)
{
    uint64_t bits = 0;
    double real;
    const enum tarn_status status = take_little(pickle, 8, &bits);

    if (status != TARN_OK) {
        return status;
    }
    bits = __builtin_bswap64(bits);
    memcpy(&real, &bits, sizeof real);
    return stack_push(pickle, tn_value_real(pickle->op_offset, real));
}

/* Adds a text whose wrong bytes are escaped; false without memory. */
static bool string_repair(struct tn_pickle *pickle, const char *text, size_t length,
                          uint32_t *string_out)
{
    struct tn_model *model = pickle->decoder->model;
    const size_t room = length * TN_UTF8_REPAIR_GROWTH;
    char *copy = tn_budget_alloc(pickle->budget, room);

    if (!copy) {
        return false;
    }
    tn_warning_add(model, TN_WARNING_NOT_UTF8, TN_STRING_NONE, pickle->op_offset);
    const size_t size = tn_utf8_repair(text, length, copy);
    const bool good = tn_model_add_string(model, copy, size, string_out) == TARN_OK;

    tn_budget_free(pickle->budget, copy, room);
    return good;
}

static bool string_add(struct tn_pickle *pickle, const char *text, size_t length,
                       uint32_t *string_out)
{
    return tn_utf8_is_valid(text, length)
               ? tn_model_add_string(pickle->decoder->model, text, length, string_out) == TARN_OK
               : string_repair(pickle, text, length, string_out);
}

static enum tarn_status push_string(struct tn_pickle *pickle, unsigned length_bytes)
{
    uint64_t length = 0;
    uint32_t string;
    enum tarn_status status = take_little(pickle, length_bytes, &length);

    if (status != TARN_OK) {
        return status;
    }
    if (length > pickle->limits.max_string) {
        return pickle_limit(pickle, "a string is too long", pickle->limits.max_string);
    }
    status = tn_input_need(pickle->input, (size_t)length, pickle->error);
    if (status != TARN_OK) {
        return status;
    }
    const char *text = (const char *)pickle->input->at;
    if (!string_add(pickle, text, (size_t)length, &string)) {
        return pickle_memory(pickle);
    }
    tn_pickle_remember_string(pickle, text, (size_t)length, string);
    pickle->input->at += length;
    return push_simple(pickle, TN_VALUE_STRING, string);
}

/* Containers. */

static enum tarn_status push_new(struct tn_pickle *pickle, enum tn_object_kind kind)
{
    struct tn_value value;
    const enum tarn_status status = tn_decode_new(pickle->decoder, kind, pickle->op_offset, &value);

    return status == TARN_OK ? stack_push(pickle, value) : status;
}

/* A tuple of the values from `first` on. */
static enum tarn_status make_tuple(struct tn_pickle *pickle, size_t first)
{
    struct tn_value value;
    const enum tarn_status status = tn_decode_tuple(
        pickle->decoder, pickle->stack + first, pickle->depth - first, pickle->op_offset, &value);

    pickle->depth = first;
    return status == TARN_OK ? stack_push(pickle, value) : status;
}

static enum tarn_status make_marked_tuple(struct tn_pickle *pickle)
{
    size_t first = 0;
    const enum tarn_status status = mark_pop(pickle, &first);

    return status == TARN_OK ? make_tuple(pickle, first) : status;
}

static enum tarn_status make_small_tuple(struct tn_pickle *pickle, size_t count)
{
    const enum tarn_status status = stack_need(pickle, count);

    return status == TARN_OK ? make_tuple(pickle, pickle->depth - count) : status;
}

/* The container that an opcode fills is below its values. */
static enum tarn_status container_check(struct tn_pickle *pickle, size_t first, bool dict)
{
    if (first <= pickle->floor) {
        return pickle_damaged(pickle, "an opcode finds no container");
    }
    const struct tn_value container = pickle->stack[first - 1];
    if (dict ? tn_decode_is_dict(pickle->decoder, container)
             : tn_decode_is_list(pickle->decoder, container)) {
        return TARN_OK;
    }
    return pickle_damaged(pickle, dict ? "a key is set in a value that is not a dict"
                                       : "a value is appended to a value that is not a list");
}

static enum tarn_status fill_dict(struct tn_pickle *pickle, size_t first)
{
    const size_t count = pickle->depth - first;
    enum tarn_status status = container_check(pickle, first, true);

    if (status == TARN_OK && count % 2 != 0) {
        status = pickle_damaged(pickle, "a key has no value");
    }
    if (status == TARN_OK) {
        status = tn_decode_set_items(pickle->decoder, pickle->stack[first - 1],
                                     pickle->stack + first, count / 2);
    }
    pickle->depth = first;
    return status;
}

static enum tarn_status fill_list(struct tn_pickle *pickle, size_t first)
{
    enum tarn_status status = container_check(pickle, first, false);

    if (status == TARN_OK) {
        status = tn_decode_append(pickle->decoder, pickle->stack[first - 1], pickle->stack + first,
                                  pickle->depth - first);
    }
    pickle->depth = first;
    return status;
}

static enum tarn_status fill_marked(struct tn_pickle *pickle, bool dict)
{
    size_t first = 0;
    const enum tarn_status status = mark_pop(pickle, &first);

    if (status != TARN_OK) {
        return status;
    }
    if (dict) {
        return fill_dict(pickle, first);
    }
    const enum tarn_status filled = fill_list(pickle, first);
    if (filled == TARN_OK) {
        row_keep(pickle, pickle->stack[first - 1]);
    }
    return filled;
}

static enum tarn_status fill_single(struct tn_pickle *pickle, bool dict)
{
    const size_t count = dict ? 2 : 1;
    const enum tarn_status status = stack_need(pickle, count + 1);

    if (status != TARN_OK) {
        return status;
    }
    return dict ? fill_dict(pickle, pickle->depth - count)
                : fill_list(pickle, pickle->depth - count);
}

/* DICT and LIST: a new container from the values above the mark. */
static enum tarn_status make_marked(struct tn_pickle *pickle, bool dict)
{
    struct tn_value value;
    size_t first = 0;
    enum tarn_status status = mark_pop(pickle, &first);

    if (status != TARN_OK) {
        return status;
    }
    const size_t count = pickle->depth - first;
    if (dict && count % 2 != 0) {
        return pickle_damaged(pickle, "a key has no value");
    }
    status = tn_decode_new(pickle->decoder, dict ? TN_OBJECT_EMPTY_DICT : TN_OBJECT_EMPTY_LIST,
                           pickle->op_offset, &value);
    if (status == TARN_OK) {
        const struct tn_value *items = pickle->stack + first;

        status = dict ? tn_decode_set_items(pickle->decoder, value, items, count / 2)
                      : tn_decode_append(pickle->decoder, value, items, count);
    }
    pickle->depth = first;
    return status == TARN_OK ? stack_push(pickle, value) : status;
}

/* The memo. */

static enum tarn_status memo_word(struct tn_pickle *pickle, struct tn_value value,
                                  uint64_t *word_out)
{
    const enum tn_value_kind kind = tn_value_kind(value);

    if (kind != TN_VALUE_INT && kind != TN_VALUE_UINT && kind != TN_VALUE_FLOAT) {
        *word_out = tn_memo_word(value);
        return TARN_OK;
    }
    struct tn_value *boxed = tn_chunked_vec_push(&pickle->boxed);
    if (!boxed) {
        return pickle_memory(pickle);
    }
    *boxed = value;
    *word_out = TN_MEMO_BOXED | (pickle->boxed.count - 1) << 8;
    return TARN_OK;
}

/* Extends the memo to number `index` with unwritten words. */
static enum tarn_status memo_extend(struct tn_pickle *pickle, uint64_t index)
{
    if (index > tn_input_offset(pickle->input)) {
        return pickle_damaged(pickle, "a memo number is out of order");
    }
    while (pickle->memo.count <= index) {
        uint64_t *word = tn_chunked_vec_push(&pickle->memo);

        if (!word) {
            return pickle_memory(pickle);
        }
        *word = 0;
    }
    return TARN_OK;
}

static enum tarn_status memo_put(struct tn_pickle *pickle, uint64_t index)
{
    uint64_t word = 0;
    enum tarn_status status = stack_need(pickle, 1);

    if (status == TARN_OK) {
        status = memo_word(pickle, pickle->stack[pickle->depth - 1], &word);
    }
    if (status == TARN_OK && index >= pickle->memo.count) {
        status = memo_extend(pickle, index);
    }
    if (status == TARN_OK) {
        uint64_t *slot = tn_chunked_vec_at(&pickle->memo, index);

        if (*slot != 0) {
            tn_row_cache_drop(&pickle->rows);
        }
        *slot = word;
    }
    return status;
}

static enum tarn_status memo_put_numbered(struct tn_pickle *pickle, unsigned count)
{
    uint64_t index = 0;
    const enum tarn_status status = take_little(pickle, count, &index);

    return status == TARN_OK ? memo_put(pickle, index) : status;
}

static inline enum tarn_status memo_get(struct tn_pickle *pickle, unsigned count)
{
    uint64_t index = 0;
    const enum tarn_status status = take_little(pickle, count, &index);

    if (tn_unlikely(status != TARN_OK)) {
        return status;
    }
    const uint64_t word =
        index < pickle->memo.count ? *(const uint64_t *)tn_chunked_vec_at(&pickle->memo, index) : 0;
    if (tn_unlikely(word == 0)) {
        return pickle_damaged(pickle, "a memo number was never written");
    }
    if (tn_unlikely((word & 0xff) == TN_MEMO_BOXED)) {
        return stack_push(pickle,
                          *(const struct tn_value *)tn_chunked_vec_at(&pickle->boxed, word >> 8));
    }
    return stack_push(pickle, tn_memo_value(word, pickle->op_offset));
}

/* Frames are only a hint how much to read at once. */
static enum tarn_status skip_frame(struct tn_pickle *pickle)
{
    uint64_t length = 0;
    const enum tarn_status status = take_little(pickle, 8, &length);

    if (status == TARN_OK && length > INT64_MAX) {
        return pickle_damaged(pickle, "a frame is longer than any file");
    }
    return status;
}

static enum tarn_status stop(struct tn_pickle *pickle)
{
    if (pickle->depth != 1 || pickle->mark_count != 0) {
        return pickle_damaged(pickle, "it ends with more or less than one value");
    }
    pickle->stopped = true;
    return TARN_OK;
}

static inline enum tarn_status execute(struct tn_pickle *pickle, uint8_t op)
{
    switch (op) {
    case OP_BINGET:
        return memo_get(pickle, 1);
    case OP_LONG_BINGET:
        return memo_get(pickle, 4);
    case OP_MEMOIZE:
        return memo_put(pickle, pickle->memo.count);
    case OP_BINPUT:
        return memo_put_numbered(pickle, 1);
    case OP_LONG_BINPUT:
        return memo_put_numbered(pickle, 4);
    case OP_MARK:
        return mark_push(pickle);
    case OP_EMPTY_DICT:
        return push_new(pickle, TN_OBJECT_EMPTY_DICT);
    case OP_EMPTY_LIST:
        return push_new(pickle, TN_OBJECT_EMPTY_LIST);
    case OP_SETITEMS:
        return fill_marked(pickle, true);
    case OP_SETITEM:
        return fill_single(pickle, true);
    case OP_APPENDS:
        return fill_marked(pickle, false);
    case OP_APPEND:
        return fill_single(pickle, false);
    case OP_DICT:
        return make_marked(pickle, true);
    case OP_LIST:
        return make_marked(pickle, false);
    case OP_TUPLE:
        return make_marked_tuple(pickle);
    case OP_EMPTY_TUPLE:
        return make_small_tuple(pickle, 0);
    case OP_TUPLE1:
        return make_small_tuple(pickle, 1);
    case OP_TUPLE2:
        return make_small_tuple(pickle, 2);
    case OP_TUPLE3:
        return make_small_tuple(pickle, 3);
    case OP_NONE:
        return push_simple(pickle, TN_VALUE_NONE, 0);
    case OP_NEWTRUE:
        return push_simple(pickle, TN_VALUE_BOOL, 1);
    case OP_NEWFALSE:
        return push_simple(pickle, TN_VALUE_BOOL, 0);
    case OP_BININT:
        return push_binint(pickle, 4);
    case OP_BININT1:
        return push_binint(pickle, 1);
    case OP_BININT2:
        return push_binint(pickle, 2);
    case OP_LONG1:
        return push_long(pickle, 1);
    case OP_LONG4:
        return push_long(pickle, 4);
    case OP_BINFLOAT:
        return push_float(pickle);
    case OP_SHORT_BINUNICODE:
        return push_string(pickle, 1);
    case OP_BINUNICODE:
        return push_string(pickle, 4);
    case OP_BINUNICODE8:
        return push_string(pickle, 8);
    case OP_FRAME:
        return skip_frame(pickle);
    case OP_STOP:
        return stop(pickle);
    case OP_PROTO:
        return pickle_damaged(pickle, "a second header");
    default:
        return op_classes[op] == CLASS_CALL ? tn_pickle_call(pickle, op)
                                            : pickle_refuse(pickle, op);
    }
}

static enum tarn_status read_header(struct tn_pickle *pickle)
{
    const enum tarn_status status = tn_input_need(pickle->input, 2, pickle->error);

    if (tn_never(status != TARN_OK)) { /* whoever saw that it is a pickle has read them */
        return status;
    }
    const unsigned version = pickle->input->at[1];
    if (pickle->input->at[0] != OP_PROTO) {
        return TARN_OK;
    }
    pickle->input->at += 2;
    if (version < PROTOCOL_MIN || version > PROTOCOL_MAX) {
        return tn_fail_at(pickle->error, TARN_ERR_FORMAT, 1,
                          "the pickle says protocol %u; snapshots are written in protocols %d to "
                          "%d. Save it again with protocol 4",
                          version, PROTOCOL_MIN, PROTOCOL_MAX);
    }
    return TARN_OK;
}

enum tarn_status tn_pickle_read(struct tn_pickle *pickle, struct tn_value *top_out)
{
    struct tn_input *input = pickle->input;
    enum tarn_status status = read_header(pickle);

    while (status == TARN_OK && !pickle->stopped) {
        tn_pickle_burst(pickle);
        status = tn_input_need(input, 1, pickle->error);
        if (tn_likely(status == TARN_OK)) {
            pickle->op_offset = tn_input_offset(input);
            status = execute(pickle, *input->at++);
        }
    }
    if (status == TARN_OK) {
        *top_out = pickle->stack[0];
    }
    return status;
}
