/* SPDX-License-Identifier: MIT */
#include "history/label.h"

#include "base/host_mem.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct label {
    char text[TARN_LABEL_MAX];
};

struct labels {
    struct label contexts[TARN_COMPILE_CONTEXTS_MAX];
    struct label metadata;
};

static _Thread_local struct labels *labels; /* NULL = no texts */
static _Thread_local unsigned context_count;
static _Thread_local unsigned unnamed_count; /* entered inside those, without a name */

const char tn_no_compile_context[] = "N/A";

/* Every event reads these, so they use the fastest thread-local storage. NULL = none. */
#define FAST_LOCAL _Thread_local __attribute__((tls_model("initial-exec")))

static FAST_LOCAL const char *present_context;
static FAST_LOCAL const char *present_metadata;

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* its destructor frees the thread's texts */
static bool key_exists;

static void labels_free(void *memory)
{
    tn_host_free(memory, sizeof(struct labels));
    labels = NULL;
    context_count = 0;
    unnamed_count = 0;
    present_context = NULL;
    present_metadata = NULL;
}

static void key_create(void)
{
    key_exists = pthread_key_create(&key, labels_free) == 0;
}

static enum tarn_status labels_need(void)
{
    if (labels) {
        return TARN_OK;
    }
    (void)pthread_once(&key_once, key_create);
    struct labels *const made = tn_host_alloc_zero(sizeof *made);

    if (!made || !key_exists || pthread_setspecific(key, made) != 0) {
        tn_host_free(made, sizeof *made);
        return TARN_ERR_HOST_MEMORY;
    }
    labels = made;
    return TARN_OK;
}

static void labels_drop_if_empty(void)
{
    if (labels && context_count == 0 && labels->metadata.text[0] == '\0') {
        (void)pthread_setspecific(key, NULL);
        labels_free(labels);
    }
}

static enum tarn_status text_check(const char *text)
{
    if (!text) {
        return TARN_ERR_INVALID_ARGUMENT;
    }
    return strnlen(text, TARN_LABEL_MAX) == TARN_LABEL_MAX ? TARN_ERR_LIMIT : TARN_OK;
}

/* The argument may be the current text itself. */
static void label_set(struct label *label, const char *text)
{
    memmove(label->text, text, strlen(text) + 1);
}

enum tarn_status tarn_push_compile_context(const char *text)
{
    enum tarn_status st =
        context_count == TARN_COMPILE_CONTEXTS_MAX ? TARN_ERR_LIMIT : text_check(text);

    if (st == TARN_OK) {
        st = labels_need();
    }
    if (st == TARN_OK) {
        label_set(&labels->contexts[context_count], text);
        present_context = labels->contexts[context_count++].text;
    }
    return st;
}

void tarn_enter_compile_context(const char *text)
{
    char cut[TARN_LABEL_MAX] = "";

    (void)snprintf(cut, sizeof cut, "%s", text ? text : "");
    if (unnamed_count > 0 || tarn_push_compile_context(cut)) {
        unnamed_count++;
    }
}

void tarn_pop_compile_context(void)
{
    if (unnamed_count > 0) {
        unnamed_count--;
        return;
    }
    context_count -= context_count > 0;
    present_context = context_count > 0 ? labels->contexts[context_count - 1].text : NULL;
    labels_drop_if_empty();
}

enum tarn_status tarn_set_user_metadata(const char *text)
{
    enum tarn_status st = text_check(text);

    if (st == TARN_OK && text[0] != '\0') {
        st = labels_need();
    }
    if (st == TARN_OK && labels) {
        label_set(&labels->metadata, text);
        present_metadata = labels->metadata.text;
        labels_drop_if_empty();
    }
    return st;
}

const char *tarn_get_compile_context(void)
{
    const char *text = present_context;

    return text ? text : tn_no_compile_context;
}

const char *tarn_get_user_metadata(void)
{
    const char *text = present_metadata;

    return text ? text : "";
}
