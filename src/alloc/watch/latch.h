/* SPDX-License-Identifier: MIT */
/*
 * A record with one writer that any number of readers copy without waiting for it: a sequence lock
 * over two copies. The writer fills the copy that is not current and then makes it current. So a
 * process that stops in the middle of a publication can still be read: what it published before is
 * whole. A reader copies the current one, and begins again if the writer has come to that copy
 * meanwhile: that takes two publications.
 *
 * Why no reader gets parts of two records: the writer stores the generation of a copy before its
 * words, with a release fence in between. A reader that sees one word of a later record, and then
 * passes an acquire fence, sees that record's generation too. tests/model/latch.pml is a model.
 */
#ifndef TN_ALLOC_WATCH_LATCH_H
#define TN_ALLOC_WATCH_LATCH_H

#include "alloc/watch/watch_page.h"

#include <stdbool.h>
#include <string.h>

static inline void tn_latch_write(struct tn_page_slot *slot, const struct tn_page_record *record)
{
    const uint64_t next = atomic_load_explicit(&slot->current, memory_order_relaxed) + 1;
    struct tn_page_copy *copy = &slot->copies[next % 2];
    uint64_t words[TN_RECORD_WORDS];

    memcpy(words, record, sizeof words);
    atomic_store_explicit(&copy->generation, next, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    for (int i = 0; i < TN_RECORD_WORDS; i++) {
        atomic_store_explicit(&copy->words[i], words[i], memory_order_relaxed);
    }
    atomic_store_explicit(&slot->current, next, memory_order_release);
}

/* How a reader gets at the page: reads `size` bytes at this offset, and false if they are not
 * there. */
typedef bool (*tn_latch_source)(void *context, uint64_t offset, void *bytes_out, size_t size);

enum tn_latch_result {
    TN_LATCH_READ,
    TN_LATCH_EMPTY,   /* nothing was published yet */
    TN_LATCH_CHANGED, /* the writer came in between: try again */
    TN_LATCH_CUT_OFF  /* the page ends early */
};

/* One try. `offset` is that of the slot. */
static inline enum tn_latch_result tn_latch_read(tn_latch_source read, void *context,
                                                 uint64_t offset, struct tn_page_record *record_out)
{
    uint64_t current;
    uint64_t generation;

    if (!read(context, offset + offsetof(struct tn_page_slot, current), &current, sizeof current)) {
        return TN_LATCH_CUT_OFF;
    }
    if (current == 0) {
        return TN_LATCH_EMPTY;
    }
    const uint64_t copy =
        offset + offsetof(struct tn_page_slot, copies) + current % 2 * sizeof(struct tn_page_copy);

    atomic_thread_fence(memory_order_acquire);
    if (!read(context, copy + offsetof(struct tn_page_copy, words), record_out,
              sizeof *record_out)) {
        return TN_LATCH_CUT_OFF;
    }
    atomic_thread_fence(memory_order_acquire);
    if (!read(context, copy + offsetof(struct tn_page_copy, generation), &generation,
              sizeof generation)) {
        return TN_LATCH_CUT_OFF;
    }
    return generation == current ? TN_LATCH_READ : TN_LATCH_CHANGED;
}

#endif
