/* SPDX-License-Identifier: MIT */
/*
 * Recovers the data of a truncated pickle. The value stack then has the open containers, outermost
 * first. They are closed from the inside: a list gets its pending items; the top-level dict gets
 * its complete pairs; any other dict lacks keys and is dropped. If a container of one item is
 * written without a mark, the pending item is above its list, within the values of the enclosing
 * dict.
 */
#include "base/assertion.h"
#include "snapshot/pickle.h"

static bool value_is_empty_dict(const struct tn_pickle *pickle, struct tn_value value)
{
    return tn_value_kind(value) == TN_VALUE_OBJECT &&
           tn_decode_object(pickle->decoder, value)->kind == TN_OBJECT_EMPTY_DICT;
}

static void list_close(struct tn_pickle *pickle, struct tn_value list, size_t first)
{
    for (size_t i = first; i < pickle->depth; i++) {
        const struct tn_value item = pickle->stack[i];

        if (!value_is_empty_dict(pickle, item) &&
            tn_decode_append(pickle->decoder, list, &item, 1) != TARN_OK) {
            return;
        }
    }
}

/* Sets the complete pairs of the top-level dict, including pending items of a list. */
static void top_close(struct tn_pickle *pickle, struct tn_value dict, size_t first)
{
    size_t i = first;

    while (i + 1 < pickle->depth && tn_value_kind(pickle->stack[i]) == TN_VALUE_STRING) {
        const struct tn_value pair[2] = {pickle->stack[i], pickle->stack[i + 1]};

        for (i += 2; i < pickle->depth && tn_value_kind(pickle->stack[i]) != TN_VALUE_STRING; i++) {
            if (!tn_decode_is_list(pickle->decoder, pair[1]) ||
                value_is_empty_dict(pickle, pickle->stack[i]) ||
                tn_decode_append(pickle->decoder, pair[1], &pickle->stack[i], 1) != TARN_OK) {
                break;
            }
        }
        if (tn_decode_set_items(pickle->decoder, dict, pair, 1) != TARN_OK) {
            return;
        }
    }
}

/* Closes the container below the newest mark; its values begin at `first`. */
static void container_close(struct tn_pickle *pickle, size_t first)
{
    const struct tn_value container = pickle->stack[first - 1];

    if (tn_decode_is_list(pickle->decoder, container)) {
        list_close(pickle, container, first);
        pickle->depth = first;
    } else if (first == 1 && tn_decode_is_dict(pickle->decoder, container)) {
        top_close(pickle, container, first);
        pickle->depth = first;
    } else {
        pickle->depth = first - 1;
    }
}

bool tn_pickle_salvage(struct tn_pickle *pickle, struct tn_value *top_out)
{
    struct tarn_error *error = pickle->decoder->error;

    pickle->decoder->error = NULL;
    while (pickle->mark_count > 0) {
        const size_t first = pickle->marks[--pickle->mark_count];

        if (first == 0 || tn_never(first > pickle->depth)) { /* nothing is popped below a mark */
            pickle->depth = 0;
        } else {
            container_close(pickle, first);
        }
    }
    pickle->decoder->error = error;
    if (pickle->depth == 0) {
        return false;
    }
    *top_out = pickle->stack[0];
    return true;
}
