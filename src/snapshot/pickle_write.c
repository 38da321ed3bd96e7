/* SPDX-License-Identifier: MIT */
#include "snapshot/pickle_write.h"

#include "base/host_mem.h"

enum {
    BATCH = 1000 /* items; PyTorch's viewer passes a batch as arguments of one call */
};

static struct tn_pickle_format *pickle_of(struct tn_format *format)
{
    return (struct tn_pickle_format *)format;
}

static void put(struct tn_format *format, char op)
{
    tn_bytes_put_one(format->out, (unsigned char)op);
}

/* `size` bytes, little-endian. */
static void put_number(unsigned char *at, uint64_t number, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        at[i] = (unsigned char)(number >> (8 * i));
    }
}

static void put_op_number(struct tn_format *format, char op, uint64_t number, size_t size)
{
    unsigned char *at = tn_bytes_room(format->out);

    at[0] = (unsigned char)op;
    put_number(at + 1, number, size);
    tn_bytes_advance(format->out, 1 + size);
}

static void put_memo(struct tn_format *format, uint32_t number)
{
    put_op_number(format, number < 256 ? 'h' : 'j', number, number < 256 ? 1 : 4);
}

/* Memoizes the value on the stack. */
static void memoize(struct tn_format *format, uint32_t *memo)
{
    put(format, '\x94');
    *memo = ++pickle_of(format)->memo_count;
}

static void pickle_begin(struct tn_format *format)
{
    put_op_number(format, '\x80', 4, 1);
}

static void pickle_end(struct tn_format *format)
{
    put(format, '.');
}

static void pickle_list_begin(struct tn_format *format, uint64_t count)
{
    put(format, ']');
    if (count > 0) {
        put(format, '(');
    }
}

static void pickle_item(struct tn_format *format, uint64_t index)
{
    if (index > 0 && index % BATCH == 0) {
        put(format, 'e');
        put(format, '(');
    }
}

static void pickle_list_end(struct tn_format *format, uint64_t count)
{
    if (count > 0) {
        put(format, 'e');
    }
}

static void pickle_tuple_begin(struct tn_format *format, uint64_t count)
{
    (void)count;
    put(format, '(');
}

static void pickle_tuple_item(struct tn_format *format, uint64_t index)
{
    (void)format;
    (void)index;
}

static void pickle_tuple_end(struct tn_format *format, uint64_t count)
{
    (void)count;
    put(format, 't');
}

static void pickle_dict_begin(struct tn_format *format)
{
    put(format, '}');
    put(format, '(');
}

static void pickle_dict_end(struct tn_format *format)
{
    put(format, 'u');
}

static void pickle_none(struct tn_format *format)
{
    put(format, 'N');
}

static void pickle_boolean(struct tn_format *format, bool value)
{
    put(format, value ? '\x88' : '\x89');
}

/* LONG1: a length, then the bytes. */
static void put_long(struct tn_format *format, uint64_t bits, size_t size, bool has_high_byte)
{
    unsigned char *at = tn_bytes_room(format->out);

    at[0] = 0x8a;
    at[1] = (unsigned char)(size + has_high_byte);
    put_number(at + 2, bits, size);
    at[2 + size] = 0; /* keeps the number positive */
    tn_bytes_advance(format->out, 2 + size + has_high_byte);
}

static void pickle_integer(struct tn_format *format, int64_t value)
{
    if (value >= 0 && value < 256) {
        put_op_number(format, 'K', (uint64_t)value, 1);
    } else if (value >= 0 && value < 65536) {
        put_op_number(format, 'M', (uint64_t)value, 2);
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
        put_op_number(format, 'J', (uint64_t)value, 4);
    } else {
        const uint64_t magnitude = value < 0 ? ~(uint64_t)value : (uint64_t)value;
        const unsigned bits = 65u - (unsigned)__builtin_clzll(magnitude); /* including the sign */

        put_long(format, (uint64_t)value, (bits + 7) / 8, false);
    }
}

static void pickle_whole(struct tn_format *format, uint64_t value)
{
    if (tn_likely(value <= INT64_MAX)) {
        pickle_integer(format, (int64_t)value);
    } else {
        put_long(format, value, 8, true);
    }
}

static void pickle_real(struct tn_format *format, double value)
{
    unsigned char *at = tn_bytes_room(format->out);
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    at[0] = 'G';
    for (int i = 0; i < 8; i++) {
        at[1 + i] = (unsigned char)(bits >> (56 - 8 * i));
    }
    tn_bytes_advance(format->out, 9);
}

static TN_NOINLINE void put_new_string(struct tn_format *format, uint32_t string, uint32_t *memo)
{
    const struct tn_string text = tn_model_string(format->model, string);

    if (text.length < 256) {
        put_op_number(format, '\x8c', text.length, 1);
    } else {
        put_op_number(format, 'X', text.length, 4);
    }
    tn_bytes_put(format->out, text.text, text.length);
    memoize(format, memo);
}

static void pickle_string(struct tn_format *format, uint32_t string)
{
    uint32_t *memo = &pickle_of(format)->strings[string];

    if (tn_likely(*memo != 0)) {
        put_memo(format, *memo - 1);
    } else {
        put_new_string(format, string, memo);
    }
}

static void pickle_key(struct tn_format *format, uint64_t index, uint32_t string)
{
    (void)index;
    pickle_string(format, string);
}

static void pickle_pair(struct tn_format *format, const uint64_t pair[2])
{
    pickle_whole(format, pair[0]);
    pickle_whole(format, pair[1]);
    put(format, '\x86');
}

static uint32_t *memo_of(struct tn_format *format, enum tn_shared kind, uint32_t number)
{
    struct tn_pickle_format *pickle = pickle_of(format);

    return kind == TN_SHARED_FRAME ? &pickle->frames[number] : &pickle->stacks[number];
}

static bool pickle_recall(struct tn_format *format, enum tn_shared kind, uint32_t number)
{
    const uint32_t memo = *memo_of(format, kind, number);

    if (memo != 0) {
        put_memo(format, memo - 1);
    }
    return memo != 0;
}

static void pickle_remember(struct tn_format *format, enum tn_shared kind, uint32_t number)
{
    memoize(format, memo_of(format, kind, number));
}

/* ---- dicts at once ---- */

enum {
    ITEM_BYTES_MAX = 5 + 2 * 11 + 1 /* a key and a pair of long numbers */
};

/* A number in the shortest form, like pickle_whole. */
static inline unsigned char *write_whole(unsigned char *at, uint64_t value)
{
    if (value < 256) {
        at[0] = 'K';
        at[1] = (unsigned char)value;
        return at + 2;
    }
    if (value <= INT32_MAX) {
        const size_t size = value < 65536 ? 2 : 4;

        at[0] = value < 65536 ? 'M' : 'J';
        put_number(at + 1, value, 4);
        return at + 1 + size;
    }
    const size_t size = (72u - (unsigned)__builtin_clzll(value)) / 8; /* including a sign bit */

    at[0] = 0x8a;
    at[1] = (unsigned char)size;
    put_number(at + 2, value, 8);
    at[10] = 0;
    return at + 2 + size;
}

/* Reads the memo; NULL if it has no such value. */
static inline unsigned char *write_memo(unsigned char *at, uint32_t memo)
{
    if (tn_unlikely(memo == 0)) {
        return NULL;
    }
    if (tn_likely(memo <= 256)) {
        at[0] = 'h';
        at[1] = (unsigned char)(memo - 1);
        return at + 2;
    }
    at[0] = 'j';
    put_number(at + 1, memo - 1, 4);
    return at + 5;
}

static inline unsigned char *write_value(const struct tn_pickle_format *pickle, unsigned char *at,
                                         const struct tn_item *item)
{
    switch ((enum tn_item_kind)item->kind) {
    case TN_ITEM_INTEGER:
        return item->value.integer < 0 ? NULL : write_whole(at, item->value.number);
    case TN_ITEM_WHOLE:
        return write_whole(at, item->value.number);
    case TN_ITEM_STRING:
        return write_memo(at, pickle->strings[item->value.number]);
    case TN_ITEM_STACK:
        return write_memo(at, pickle->stacks[item->value.number]);
    case TN_ITEM_PAIR:
        at = write_whole(write_whole(at, item->value.pair[0]), item->value.pair[1]);
        *at = 0x86;
        return at + 1;
    case TN_ITEM_FIELD:
        break;
    }
    return NULL;
}

static bool pickle_row(struct tn_format *format, const struct tn_item *items, uint32_t count)
{
    const struct tn_pickle_format *pickle = pickle_of(format);
    unsigned char *begin = tn_bytes_room_for(format->out, (size_t)count * ITEM_BYTES_MAX + 3);
    unsigned char *at = begin;

    *at++ = '}';
    *at++ = '(';
    for (uint32_t i = 0; i < count; i++) {
        at = write_memo(at, pickle->strings[items[i].key]);
        at = at ? write_value(pickle, at, &items[i]) : NULL;
        if (tn_unlikely(!at)) {
            return false;
        }
    }
    *at++ = 'u';
    tn_bytes_advance(format->out, (size_t)(at - begin));
    return true;
}

static const struct tn_format_ops pickle_ops = {
    .begin = pickle_begin,
    .end = pickle_end,
    .list_begin = pickle_list_begin,
    .item = pickle_item,
    .list_end = pickle_list_end,
    .tuple_begin = pickle_tuple_begin,
    .tuple_item = pickle_tuple_item,
    .tuple_end = pickle_tuple_end,
    .dict_begin = pickle_dict_begin,
    .key = pickle_key,
    .dict_end = pickle_dict_end,
    .none = pickle_none,
    .boolean = pickle_boolean,
    .integer = pickle_integer,
    .whole = pickle_whole,
    .real = pickle_real,
    .string = pickle_string,
    .pair = pickle_pair,
    .row = pickle_row,
    .recall = pickle_recall,
    .remember = pickle_remember,
};

static size_t memo_bytes(const struct tn_chunked_vec *vec)
{
    return (vec->count + 1) * sizeof(uint32_t);
}

bool tn_pickle_format_init(struct tn_pickle_format *pickle, const struct tn_model *model,
                           struct tn_byte_out *out)
{
    *pickle = (struct tn_pickle_format){
        .format = {.ops = &pickle_ops, .model = model, .out = out},
        .strings = tn_host_alloc_zero(memo_bytes(&model->strings)),
        .frames = tn_host_alloc_zero(memo_bytes(&model->frames)),
        .stacks = tn_host_alloc_zero(memo_bytes(&model->stacks)),
    };
    if (pickle->strings && pickle->frames && pickle->stacks) {
        return true;
    }
    tn_pickle_format_fini(pickle);
    return false;
}

void tn_pickle_format_fini(struct tn_pickle_format *pickle)
{
    const struct tn_model *model = pickle->format.model;

    tn_host_free(pickle->strings, memo_bytes(&model->strings));
    tn_host_free(pickle->frames, memo_bytes(&model->frames));
    tn_host_free(pickle->stacks, memo_bytes(&model->stacks));
}
