/* SPDX-License-Identifier: MIT */
/* Shared by the parts of the pickle reader: names of opcodes, numbers, words of the memo. */
#ifndef TN_SNAPSHOT_PICKLE_OP_H
#define TN_SNAPSHOT_PICKLE_OP_H

#include "snapshot/value.h"

#include <stddef.h>

struct tn_pickle;

enum tn_op {
#define X(name, byte, class) OP_##name = byte,
#include "snapshot/pickle_ops.def"
#undef X
};

/* `count` <= 8 bytes, lowest first. */
static inline uint64_t tn_op_number(const uint8_t *bytes, unsigned count)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < count; i++) {
        value |= (uint64_t)bytes[i] << (8 * i);
    }
    return value;
}

/* A value in the memo: kind + 1 in the low 8 bits, then the number; 0 = unwritten. Integers do not
 * fit: they are boxed, and the word has the number of the box. */
enum {
    TN_MEMO_BOXED = 0xff
};

static inline uint64_t tn_memo_word(struct tn_value value)
{
    return ((uint64_t)tn_value_kind(value) + 1) | value.as.number << 8;
}

static inline struct tn_value tn_memo_value(uint64_t word, uint64_t offset)
{
    return tn_value_make((enum tn_value_kind)((word & 0xff) - 1), offset, word >> 8);
}

/* Executes the longest series of plain opcodes at the window's start that needs no more input and
 * does not fail, possibly none. */
void tn_pickle_burst(struct tn_pickle *pickle);

/* Adds a short string to the cache of tn_pickle_burst. */
void tn_pickle_remember_string(struct tn_pickle *pickle, const char *text, size_t length,
                               uint32_t string);

#endif
