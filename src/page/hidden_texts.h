/* SPDX-License-Identifier: MIT */
/*
 * Numbers for texts that a redaction hides. Equal texts of one kind have one number, also in two
 * recordings, so that what they hold can be compared.
 *
 * Owns its tables; borrows the texts until it ends. Remembers that host memory was missing; numbers
 * are then 0. Guarded by its owner. Cost: O(length) expected.
 */
#ifndef TN_PAGE_HIDDEN_TEXTS_H
#define TN_PAGE_HIDDEN_TEXTS_H

#include "base/id_table.h"
#include "base/vec.h"
#include "snapshot/model.h"

enum tn_text_kind {
    TN_TEXT_NAME, /* of a function */
    TN_TEXT_FILE,
    TN_TEXT_OTHER,
    TN_TEXT_KINDS
};

struct tn_hidden_texts {
    struct tn_budget budget;            /* without a limit */
    struct tn_vec texts[TN_TEXT_KINDS]; /* struct tn_string */
    struct tn_id_table ids[TN_TEXT_KINDS];
    bool failed;
};

void tn_hidden_texts_init(struct tn_hidden_texts *hidden);
void tn_hidden_texts_fini(struct tn_hidden_texts *hidden);

/* From 1 on, in the order of first use. */
uint32_t tn_hidden_texts_number(struct tn_hidden_texts *hidden, struct tn_string text,
                                enum tn_text_kind kind);

#endif
