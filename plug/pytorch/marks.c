/* SPDX-License-Identifier: MIT */
#include "plug/pytorch/marks.h"

#include "plug/pytorch/plug.h"
#include "plug/pytorch/symbol.h"

#include <stdio.h>
#include <string.h>

bool tn_torch_is_history_enabled(void *self)
{
    (void)self;
    return tarn_torch_is_recording();
}

void tn_torch_ignore_record_history(void *self)
{
    (void)self;
}

/* Device 0 if CUDA does not know. */
static int current_device(void)
{
    int (*get_device)(int *device_out) = NULL;
    int device = 0;

    return tn_torch_function("cudaGetDevice", &get_device) && get_device(&device) == 0 ? device : 0;
}

void tn_torch_record_annotation(void *self, const struct tn_torch_text_pairs *pairs)
{
    struct tarn_history *const history =
        tarn_torch_is_recording() ? tarn_torch_find_history(current_device()) : NULL;
    struct tarn_annotation_field fields[TARN_ANNOTATION_FIELDS_MAX];
    enum tarn_annotation_stage stage = TARN_ANNOTATION_START;
    const char *name = "";
    size_t count = 0;

    (void)self;
    for (const struct tn_torch_text_pair *pair = pairs->begin; pair < pairs->end; pair++) {
        if (strcmp(pair->key.bytes, "name") == 0) {
            name = pair->value.bytes;
        } else if (strcmp(pair->key.bytes, "stage") == 0) {
            stage =
                strcmp(pair->value.bytes, "END") == 0 ? TARN_ANNOTATION_END : TARN_ANNOTATION_START;
        } else if (count < TARN_ANNOTATION_FIELDS_MAX) {
            fields[count++] =
                (struct tarn_annotation_field){.key = pair->key.bytes, .value = pair->value.bytes};
        }
    }
    if (history) { /* the history counts texts that it drops */
        (void)!tarn_history_annotate(history, stage, current_device(), name, fields, count);
    }
}

/* Number of regions of this thread that could not be entered. They are the innermost ones, because
 * only excessive depth fails, so torch leaves them first. */
static _Thread_local unsigned regions_lost;

void tn_torch_push_compile_context(void *self, const struct tn_torch_text *text)
{
    char label[TARN_LABEL_MAX];

    (void)self;
    (void)snprintf(label, sizeof label, "%s", text->bytes); /* truncates long names */
    if (tarn_push_compile_context(label)) {
        regions_lost++;
    }
}

void tn_torch_pop_compile_context(void *self)
{
    (void)self;
    if (regions_lost > 0) {
        regions_lost--;
    } else {
        tarn_pop_compile_context();
    }
}

void tn_torch_set_user_metadata(void *self, const struct tn_torch_text *text)
{
    char label[TARN_LABEL_MAX];

    (void)self;
    (void)snprintf(label, sizeof label, "%s", text->bytes);
    (void)!tarn_set_user_metadata(label);
}
