/* SPDX-License-Identifier: MIT */
#include "history/label.h"

#include <string.h>

struct label {
    char text[TARN_LABEL_MAX];
};

static _Thread_local struct label contexts[TARN_COMPILE_CONTEXTS_MAX];
static _Thread_local unsigned context_count;
static _Thread_local struct label metadata;

const char tn_no_compile_context[] = "N/A";

/* What every event asks for, in the few bytes that a thread reaches fastest: NULL = none. */
#define FAST_LOCAL _Thread_local __attribute__((tls_model("initial-exec")))

static FAST_LOCAL const char *present_context;
static FAST_LOCAL const char *present_metadata;

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
    present_context = context_count > 0 ? contexts[context_count - 1].text : NULL;
    return st;
}

void tarn_pop_compile_context(void)
{
    context_count -= context_count > 0;
    present_context = context_count > 0 ? contexts[context_count - 1].text : NULL;
}

enum tarn_status tarn_set_user_metadata(const char *text)
{
    const enum tarn_status st = label_set(&metadata, text);

    present_metadata = metadata.text;
    return st;
}

const char *tarn_compile_context(void)
{
    const char *text = present_context;

    return text ? text : tn_no_compile_context;
}

const char *tarn_user_metadata(void)
{
    const char *text = present_metadata;

    return text ? text : "";
}
