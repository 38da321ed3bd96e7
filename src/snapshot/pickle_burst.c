/* SPDX-License-Identifier: MIT */
/*
 * The fast path of the interpreter. Nearly all opcodes of a file push a small value that is
 * completely in the window and cannot fail. Those are executed here in one loop that keeps its
 * state in registers. Everything else is left to pickle.c, which has all opcodes, refills the
 * window and reports errors. So this file may stop before any opcode.
 */
#include "snapshot/pickle.h"
#include "snapshot/pickle_op.h"

#include <string.h>

/* The longest opcode with its argument, or with the bytes read ahead: 2 and 16 bytes of a string.
 * */
enum {
    REACH = 18
};

struct burst {
    const uint8_t *at;
    struct tn_value *top; /* one past the newest value */
    uint64_t offset;      /* of the opcode */
};

static inline void burst_push(struct burst *burst, struct tn_value value, unsigned size)
{
    *burst->top++ = value;
    burst->at += size;
}

static inline bool burst_get(const struct tn_pickle *pickle, struct burst *burst, uint64_t index,
                             unsigned size)
{
    if (tn_unlikely(index >= pickle->memo.count)) {
        return false;
    }
    uint64_t word;
    memcpy(&word,
           pickle->memo.chunks[index >> TN_CHUNKED_VEC_SHIFT] +
               (index % TN_CHUNKED_VEC_CHUNK) * sizeof word,
           sizeof word);
    if (tn_unlikely(word == 0 || (word & 0xff) == TN_MEMO_BOXED)) {
        return false;
    }
    burst_push(burst, tn_memo_value(word, burst->offset), size);
    return true;
}

static inline bool burst_memoize(struct tn_pickle *pickle, struct burst *burst)
{
    if (burst->top <= pickle->stack + pickle->floor) {
        return false;
    }
    const struct tn_value value = burst->top[-1];
    const enum tn_value_kind kind = tn_value_kind(value);
    if (kind != TN_VALUE_OBJECT && kind != TN_VALUE_STRING && kind != TN_VALUE_PAIR) {
        return false;
    }
    uint64_t *word = tn_chunked_vec_push(&pickle->memo);
    if (!word) {
        return false;
    }
    *word = tn_memo_word(value);
    burst->at++;
    return true;
}

static inline bool burst_long(struct burst *burst)
{
    const unsigned size = burst->at[1];

    if (size == 0 || size > 8) {
        return false;
    }
    const unsigned unused = 64 - 8 * size;
    const uint64_t bits = tn_op_number(burst->at + 2, 8) << unused;
    burst_push(burst, tn_value_integer(burst->offset, (int64_t)bits >> unused), size + 2);
    return true;
}

/* The first 16 bytes at `text`, zero after the end of the string. */
static inline void string_words(const uint8_t *text, size_t length, uint64_t words[2])
{
    const unsigned low = length < 8 ? (unsigned)length : 8;
    const unsigned high = (unsigned)length - low;

    words[0] = low == 0 ? 0 : tn_op_number(text, 8) << (64 - 8 * low);
    words[1] = high == 0 ? 0 : tn_op_number(text + 8, 8) << (64 - 8 * high);
}

static inline size_t string_place(const uint64_t words[2], size_t length)
{
    return (size_t)(((words[0] ^ words[1] * 31 ^ length) * 0x9e3779b97f4a7c15u) >>
                    (64 - TN_RECENT_STRINGS_LOG));
}

static inline bool burst_string(const struct tn_pickle *pickle, struct burst *burst)
{
    const size_t length = burst->at[1];
    uint64_t words[2];

    if (length > TN_RECENT_STRING_MAX) {
        return false;
    }
    string_words(burst->at + 2, length, words);
    const struct tn_recent_string *recent = &pickle->recent[string_place(words, length)];
    if (recent->string == TN_STRING_NONE || recent->length != length ||
        recent->words[0] != words[0] || recent->words[1] != words[1]) {
        return false;
    }
    burst_push(burst, tn_value_make(TN_VALUE_STRING, burst->offset, recent->string),
               (unsigned)length + 2);
    return true;
}

void tn_pickle_remember_string(struct tn_pickle *pickle, const char *text, size_t length,
                               uint32_t string)
{
    uint8_t bytes[TN_RECENT_STRING_MAX] = {0};
    uint64_t words[2];

    if (length <= sizeof bytes) {
        memcpy(bytes, text, length);
        string_words(bytes, length, words);
        pickle->recent[string_place(words, length)] =
            (struct tn_recent_string){{words[0], words[1]}, string, (uint32_t)length};
    }
}

static inline bool burst_new(struct tn_pickle *pickle, struct burst *burst,
                             enum tn_object_kind kind)
{
    struct tn_object *object = tn_chunked_vec_push(&pickle->decoder->objects);

    if (!object) {
        return false;
    }
    *object = (struct tn_object){.kind = kind, .depth = 1};
    burst_push(burst,
               tn_value_make(TN_VALUE_OBJECT, burst->offset, pickle->decoder->objects.count - 1),
               1);
    return true;
}

/* One opcode; false if it needs the slow path. */
static inline bool burst_step(struct tn_pickle *pickle, struct burst *burst)
{
    const uint8_t *argument = burst->at + 1;

    switch (*burst->at) {
    case OP_BINGET:
        return burst_get(pickle, burst, argument[0], 2);
    case OP_LONG_BINGET:
        return burst_get(pickle, burst, tn_op_number(argument, 4), 5);
    case OP_MEMOIZE:
        return burst_memoize(pickle, burst);
    case OP_BININT1:
        burst_push(burst, tn_value_integer(burst->offset, argument[0]), 2);
        return true;
    case OP_BININT2:
        burst_push(burst, tn_value_integer(burst->offset, (int64_t)tn_op_number(argument, 2)), 3);
        return true;
    case OP_BININT:
        burst_push(burst,
                   tn_value_integer(burst->offset, (int32_t)(uint32_t)tn_op_number(argument, 4)),
                   5);
        return true;
    case OP_LONG1:
        return burst_long(burst);
    case OP_SHORT_BINUNICODE:
        return burst_string(pickle, burst);
    case OP_EMPTY_DICT:
        return burst_new(pickle, burst, TN_OBJECT_EMPTY_DICT);
    case OP_EMPTY_LIST:
        return burst_new(pickle, burst, TN_OBJECT_EMPTY_LIST);
    default:
        return false;
    }
}

void tn_pickle_burst(struct tn_pickle *pickle)
{
    struct tn_input *input = pickle->input;
    const uint64_t start = input->base - (uint64_t)(uintptr_t)input->start;
    const struct tn_value *full = pickle->stack + pickle->capacity;
    struct burst burst = {.at = input->at, .top = pickle->stack + pickle->depth};

    while (input->end - burst.at >= REACH && burst.top < full) {
        burst.offset = start + (uint64_t)(uintptr_t)burst.at;
        if (!burst_step(pickle, &burst)) {
            break;
        }
    }
    input->at = burst.at;
    pickle->depth = (size_t)(burst.top - pickle->stack);
}
