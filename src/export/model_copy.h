/* SPDX-License-Identifier: MIT */
/*
 * Copying pieces of one model into another: strings, frames, stacks and extras get the numbers of
 * the new model, each looked up once, and lose on the way what shall not be passed on.
 *
 * The first failure sticks in `status`; what comes after it is without meaning.
 */
#ifndef TN_EXPORT_MODEL_COPY_H
#define TN_EXPORT_MODEL_COPY_H

#include "analysis/category.h"
#include "base/vec.h"
#include "snapshot/model.h"

enum tn_text_kind {
    TN_TEXT_FUNCTION,
    TN_TEXT_FILE,
    TN_TEXT_NOTE,    /* annotations, metadata, categories */
    TN_TEXT_WORD,    /* actions, stages of annotations */
    TN_TEXT_SETTING, /* names of settings */
    TN_TEXT_KINDS
};

struct tn_model_copy {
    const struct tn_model *from;
    struct tn_model *to;
    struct tn_categories *categories; /* of `from`; NULL unless `anonymize` */
    bool drop_cpp;
    bool anonymize;
    int64_t time_shift; /* taken off every time */
    enum tarn_status status;
    uint32_t *strings[TN_TEXT_KINDS]; /* number in `to` + 1 by number in `from`; 0 = not yet */
    uint32_t *stacks;
    uint32_t *extras;
    uint32_t *containers;          /* number in `to`; filled before anything else */
    uint32_t given[TN_TEXT_KINDS]; /* names made up so far */
    struct tn_vec frames;          /* uint32_t, of the stack at hand */
    struct tn_vec text;            /* char, the settings at hand */
};

/* `to` has the keys already. False without host memory; there is nothing to release then. */
bool tn_model_copy_init(struct tn_model_copy *copy, const struct tn_model *from,
                        struct tn_model *to) TN_MUST_CHECK;
void tn_model_copy_fini(struct tn_model_copy *copy);

/* Keeps the first failure; false once there was one. */
bool tn_copy_note(struct tn_model_copy *copy, enum tarn_status status);

/* Memory of the new model; NULL, which is a failure, without host memory. */
void *tn_copy_array(struct tn_model_copy *copy, size_t count, size_t size) TN_MUST_CHECK;

uint32_t tn_copy_string(struct tn_model_copy *copy, uint32_t string, enum tn_text_kind kind);

/* A text such as "max_split_size_mb:20,backend:native": of one that shall not be passed on, words
 * that are no settings' become "other". */
uint32_t tn_copy_settings(struct tn_model_copy *copy, uint32_t string);

uint32_t tn_copy_stack(struct tn_model_copy *copy, uint32_t stack);
/* Once `anonymize` and `drop_cpp` are set: copies all containers; none for a model without names,
 * because both keys and values may be private. */
void tn_copy_containers(struct tn_model_copy *copy);
uint32_t tn_copy_container(const struct tn_model_copy *copy, uint32_t container);

/* The value of a field that is no text. */
void tn_copy_value(struct tn_model_copy *copy, struct tn_field *field);

uint32_t tn_copy_extra(struct tn_model_copy *copy, uint32_t extra);
int64_t tn_copy_time(const struct tn_model_copy *copy, int64_t time_us);

#endif
