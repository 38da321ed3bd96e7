/* SPDX-License-Identifier: MIT */
/*
 * Pages of expandable segments in a recorded run: of 2 MiB in the small pool, and of 20 MiB in the
 * large one, but of 2 MiB in both under libtarn's policy:compact, where they move.
 */
#ifndef TN_ANALYSIS_PAGE_POLICY_H
#define TN_ANALYSIS_PAGE_POLICY_H

#include "snapshot/model.h"

#include <string.h>

#define TN_PAGE_SMALL ((uint64_t)2 << 20)
#define TN_PAGE_LARGE ((uint64_t)20 << 20)

/* Whether the settings in the file name the policy. */
static inline bool tn_model_is_compact(const struct tn_model *model)
{
    static const char word[] = "policy:compact";
    const size_t length = sizeof word - 1;

    if (!model->settings.present) {
        return false;
    }
    const char *conf = tn_model_string(model, model->settings.conf).text;

    for (const char *at = strstr(conf, word); at; at = strstr(at + 1, word)) {
        if ((at == conf || at[-1] == ',') && (at[length] == '\0' || at[length] == ',')) {
            return true;
        }
    }
    return false;
}

/* Bytes of a page of that pool. */
static inline uint64_t tn_model_page(const struct tn_model *model, bool is_large)
{
    return is_large && !tn_model_is_compact(model) ? TN_PAGE_LARGE : TN_PAGE_SMALL;
}

#endif
