/* SPDX-License-Identifier: MIT */
/*
 * Anomalies of a file that did not stop the reader: one counted line per kind and key.
 */
#ifndef TN_SNAPSHOT_WARNING_H
#define TN_SNAPSHOT_WARNING_H

#include "snapshot/model.h"

/* enumerator, text with the key's name */
#define TN_WARNING_MAP(X)                                                                          \
    X(UNKNOWN_KEY, "kept the unknown key `%s`")                                                    \
    X(DUPLICATE_KEY, "the key `%s` occurs twice in a dict; the last one counts")                   \
    X(NEGATIVE, "the key `%s` is negative; taken as 0")                                            \
    X(SKIPPED_VALUE, "the key `%s` has a value of an unexpected kind, which was skipped")          \
    X(UNKNOWN_WORD, "the key `%s` has an unknown value")                                           \
    X(WRAPS, "address and `%s` exceed the address space")                                          \
    X(BLOCK_SUM, "the blocks of a segment do not add up to its `%s`")                              \
    X(TOO_LARGE, "the sizes (`%s`) add up to more than 2^62 bytes; the rest is taken as 0")        \
    X(NO_TIME, "the key `%s` is not a time since the epoch; ignored")                              \
    X(TIME_BACKWARDS, "the times (`%s`) of a trace go backwards")                                  \
    X(NOT_UTF8, "a text is not UTF-8; its wrong bytes are shown as \\udc80 to \\udcff%s")          \
    X(TRAILING_BYTES, "there are bytes after the end of the snapshot%s")                           \
    X(ENDS_EARLY, "the input ends early: this is what could be read%s")

enum tn_warning_kind {
#define TN_WARNING_ENUM(name, text) TN_WARNING_##name,
    TN_WARNING_MAP(TN_WARNING_ENUM)
#undef TN_WARNING_ENUM
    TN_WARNING_KIND_COUNT
};

/* `key` is a string of the model, or TN_STRING_NONE. Never fails: kinds beyond the limit are only
 * counted. */
void tn_warning_add(struct tn_model *model, enum tn_warning_kind kind, uint32_t key,
                    uint64_t offset);

#endif
