/* SPDX-License-Identifier: MIT */
#include "snapshot/keys.h"

#include "base/assertion.h"

#include <string.h>

uint32_t tn_word_of_state(uint8_t state)
{
    static const uint32_t words[] = {
        [TN_BLOCK_INACTIVE] = TN_WORD_INACTIVE,
        [TN_BLOCK_ACTIVE_ALLOCATED] = TN_WORD_ACTIVE_ALLOCATED,
        [TN_BLOCK_ACTIVE_PENDING_FREE] = TN_WORD_ACTIVE_PENDING_FREE,
    };
    return words[state];
}

enum tarn_status tn_keys_enter(struct tn_model *model)
{
    static const char *const words[] = {
#define KEY_TEXT(name, text, class) text,
#define WORD_TEXT(name, text)       text,
#define INTERVAL_TEXT(text)         text,
        TN_KEY_MAP(KEY_TEXT) TN_WORD_MAP(WORD_TEXT) TN_TRACE_ACTION_MAP(WORD_TEXT)
            TN_INTERVAL_MAP(INTERVAL_TEXT)
#undef INTERVAL_TEXT
#undef WORD_TEXT
#undef KEY_TEXT
    };
    enum tarn_status status = TARN_OK;

    for (uint32_t i = 0; i < sizeof words / sizeof *words && status == TARN_OK; i++) {
        uint32_t string;

        status = tn_model_add_string(model, words[i], strlen(words[i]), &string);
        tn_assert(status != TARN_OK || string == i + 1);
    }
    return status;
}
