/* SPDX-License-Identifier: MIT */
#include "alloc/engine/callback_list.h"

#include <string.h>

enum tarn_status tn_callback_add(struct tn_callback_list *list, tn_any_function call, void *context)
{
    if (!call) {
        return TARN_ERR_INVALID_ARGUMENT;
    }
    if (list->count == TARN_OBSERVERS_MAX) {
        return TARN_ERR_LIMIT;
    }
    list->items[list->count++] = (struct tn_callback){.call = call, .context = context};
    return TARN_OK;
}

enum tarn_status tn_callback_remove(struct tn_callback_list *list, tn_any_function call,
                                    const void *context)
{
    for (unsigned i = list->count; i > 0; i--) {
        struct tn_callback *item = &list->items[i - 1];

        if (item->call == call && item->context == context) {
            list->count--;
            memmove(item, item + 1, (list->count - (i - 1)) * sizeof *item);
            return TARN_OK;
        }
    }
    return TARN_ERR_NOT_FOUND;
}
