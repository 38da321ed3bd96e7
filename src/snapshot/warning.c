/* SPDX-License-Identifier: MIT */
#include "snapshot/warning.h"

#include "base/assertion.h"
#include "base/escaped.h"

#include <stdio.h>

enum {
    KEY_SHOWN_MAX = 60
};

/* Formats the line, with the key truncated if necessary. */
static void warning_format(struct tn_model_warning *warning, enum tn_warning_kind kind,
                           struct tn_string key)
{
    char shown[KEY_SHOWN_MAX + 1];

    (void)tn_escaped_copy(key.text, key.length, TN_ESCAPED_PLAIN, shown, sizeof shown);
    switch (kind) {
#define WARNING_CASE(name, format)                                                                 \
    case TN_WARNING_##name:                                                                        \
        (void)snprintf(warning->text, sizeof warning->text, format, shown);                        \
        break;
        TN_WARNING_MAP(WARNING_CASE)
#undef WARNING_CASE
    case TN_WARNING_KIND_COUNT:
        tn_no_case();
        break;
    }
}

void tn_warning_add(struct tn_model *model, enum tn_warning_kind kind, uint32_t key,
                    uint64_t offset)
{
    for (size_t i = 0; i < model->warning_count; i++) {
        if (model->warnings[i].kind == kind && model->warnings[i].key == key) {
            model->warnings[i].count++;
            return;
        }
    }
    if (model->warning_count == TN_WARNINGS_KEPT) {
        model->warnings_dropped++;
        return;
    }
    struct tn_model_warning *warning = &model->warnings[model->warning_count++];
    *warning = (struct tn_model_warning){.count = 1, .offset = offset, .kind = kind, .key = key};
    warning_format(warning, kind, tn_model_string(model, key));
}
