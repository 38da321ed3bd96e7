/* SPDX-License-Identifier: MIT */
/* Texts that a thread's events carry. They live with the thread, so that setting one takes neither
 * a lock nor host memory. */
#include <string.h>

#include "tarn/event.h"

struct label {
    char text[TARN_LABEL_MAX];
};

static _Thread_local struct label contexts[TARN_COMPILE_CONTEXTS_MAX];
static _Thread_local unsigned context_count;
static _Thread_local struct label metadata;

static enum tarn_status label_set(struct label *label, const char *text)
{
    const size_t length = text ? strnlen(text, TARN_LABEL_MAX) : 0;

    if (!text) {
        return TARN_ERR_INVALID_ARGUMENT;
    }
    if (length == TARN_LABEL_MAX) {
        return TARN_ERR_LIMIT;
    }
    memmove(label->text, text, length + 1); /* it may be the text that is there */
    return TARN_OK;
}

enum tarn_status tarn_push_compile_context(const char *text)
{
    if (context_count == TARN_COMPILE_CONTEXTS_MAX) {
        return TARN_ERR_LIMIT;
    }
    const enum tarn_status st = label_set(&contexts[context_count], text);

    context_count += st == TARN_OK;
    return st;
}

void tarn_pop_compile_context(void)
{
    context_count -= context_count > 0;
}

enum tarn_status tarn_set_user_metadata(const char *text)
{
    return label_set(&metadata, text);
}

const char *tarn_compile_context(void)
{
    return context_count > 0 ? contexts[context_count - 1].text : "N/A";
}

const char *tarn_user_metadata(void)
{
    return metadata.text;
}
