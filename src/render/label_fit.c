/* SPDX-License-Identifier: MIT */
#include "render/label_fit.h"

#include "base/host_mem.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char separator[] = " < ";
static const char gap[] = " < ...";

size_t tn_label_columns(const char *text, size_t size)
{
    size_t columns = 0;

    for (size_t i = 0; i < size; i++) {
        columns += ((unsigned char)text[i] & 0xc0) != 0x80;
    }
    return columns;
}

/* The end of the frame that has the byte `at`. */
static size_t frame_end(const char *label, size_t at)
{
    const size_t length = strlen(label);
    const size_t back = sizeof separator - 2;
    const char *end = strstr(label + (at > back ? at - back : 0), separator);

    return end ? (size_t)(end - label) : length;
}

/* The beginning of the frame that ends there. */
static size_t frame_begin(const char *label, size_t end)
{
    size_t begin = end;

    while (begin > 0 &&
           (begin < sizeof separator - 1 ||
            memcmp(label + begin - (sizeof separator - 1), separator, sizeof separator - 1) != 0)) {
        begin--;
    }
    return begin;
}

static size_t common_length(const char *a, const char *b)
{
    size_t length = 0;

    while (a[length] && a[length] == b[length]) {
        length++;
    }
    return length;
}

static int label_compare(const void *left, const void *right)
{
    return strcmp(**(const char *const *const *)left, **(const char *const *const *)right);
}

/* For each label how many of its first bytes another one has as well: the neighbours in order of
 * the texts have the most. Equal labels need not be told apart. */
static bool shared_find(const char *const *labels, size_t count, size_t *shared)
{
    const char *const **order = tn_host_alloc((count + 1) * sizeof *order);

    if (!order) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        order[i] = &labels[i];
        shared[i] = 0;
    }
    qsort(order, count, sizeof *order, label_compare);
    for (size_t i = 1; i < count; i++) {
        const size_t length = common_length(*order[i - 1], *order[i]);
        size_t *before = &shared[order[i - 1] - labels];
        size_t *after = &shared[order[i] - labels];

        if (strcmp(*order[i - 1], *order[i]) != 0) {
            *before = length > *before ? length : *before;
            *after = length > *after ? length : *after;
        }
    }
    tn_host_free(order, (count + 1) * sizeof *order);
    return true;
}

/* The longest beginning of whole frames that fits with a gap behind it, at least up to `least`. */
static size_t beginning_find(const char *label, size_t least, size_t room)
{
    const size_t length = strlen(label);
    size_t end = frame_end(label, least);

    while (end < length) {
        const size_t next = frame_end(label, end + sizeof separator - 1);

        if (tn_label_columns(label, next) + (next < length ? sizeof gap - 1 : 0) > room) {
            break;
        }
        end = next;
    }
    return end;
}

/* Which part of a label a row shows. */
struct part {
    size_t begin; /* frames before it are left out, but for the first one if `has_first` */
    size_t end;   /* frames after it are left out */
    bool has_first;
};

static bool ends_with_gap(const char *label, size_t end)
{
    return end >= sizeof gap - 1 &&
           memcmp(label + end - (sizeof gap - 1), gap, sizeof gap - 1) == 0;
}

static bool text_set(struct tn_label_fit *fit, size_t row, const char *label,
                     const struct part *part)
{
    const size_t size = strlen(label) + 2 * sizeof gap + sizeof separator;
    char *text = tn_host_alloc_zero(size);
    size_t used = 0;

    if (!text) {
        return false;
    }
    if (part->has_first) {
        used = frame_end(label, 0);
        memcpy(text, label, used);
        memcpy(text + used, gap, sizeof gap - 1);
        used += sizeof gap - 1;
    } else if (part->begin > 0) {
        memcpy(text, "...", sizeof "..."); /* the end is overwritten */
        used = 3;
    }
    if (used > 0) {
        memcpy(text + used, separator, sizeof separator - 1);
        used += sizeof separator - 1;
    }
    memcpy(text + used, label + part->begin, part->end - part->begin);
    used += part->end - part->begin;
    if (label[part->end] != '\0' && !ends_with_gap(label, part->end)) {
        memcpy(text + used, gap, sizeof gap - 1);
    }
    fit->texts[row] = text;
    fit->sizes[row] = size;
    return true;
}

static bool label_fit(struct tn_label_fit *fit, size_t row, const char *label, size_t shared,
                      size_t room)
{
    if (tn_label_columns(label, strlen(label)) <= room || !strstr(label, separator)) {
        return true;
    }
    const size_t end = beginning_find(label, shared, room);

    const struct part part = {.end = end};

    return label[end] == '\0' || text_set(fit, row, label, &part);
}

static void text_drop(struct tn_label_fit *fit, size_t row)
{
    tn_host_free(fit->texts[row], fit->sizes[row]);
    fit->texts[row] = NULL;
}

/* The first frame and the one that differs, where all up to it is too long; then that one alone. */
static bool middle_leave(struct tn_label_fit *fit, size_t row, const char *label, size_t shared,
                         size_t room)
{
    const size_t end = frame_end(label, shared);
    struct part part = {.begin = frame_begin(label, end), .end = end, .has_first = true};
    bool good = true;

    for (int i = 0; i < 2 && good; i++) {
        const char *text = fit->texts[row] ? fit->texts[row] : label;

        if (tn_label_columns(text, strlen(text)) <= room || part.begin == 0) {
            break;
        }
        text_drop(fit, row);
        good = text_set(fit, row, label, &part);
        part.has_first = false;
    }
    return good;
}

/* A row that another one looks like now has its label up to where both differ. */
static void likeness_undo(struct tn_label_fit *fit, const char *const *labels)
{
    for (size_t i = 0; i < fit->count; i++) {
        for (size_t k = 0; k < fit->count && fit->texts[i]; k++) {
            const char *other = fit->texts[k] ? fit->texts[k] : labels[k];

            if (k != i && strcmp(fit->texts[i], other) == 0 && strcmp(labels[i], labels[k]) != 0) {
                text_drop(fit, i);
            }
        }
    }
}

enum {
    COMPARED_MAX = 200 /* rows: each is compared with each */
};

bool tn_label_fit_init(struct tn_label_fit *fit, const char *const *labels, size_t count,
                       size_t room)
{
    size_t *shared = tn_host_alloc_zero((count + 1) * sizeof *shared);

    *fit = (struct tn_label_fit){.texts = tn_host_alloc_zero((count + 1) * sizeof(char *)),
                                 .sizes = tn_host_alloc_zero((count + 1) * sizeof(size_t)),
                                 .count = count};
    bool good = shared && fit->texts && fit->sizes && shared_find(labels, count, shared);

    for (size_t i = 0; good && i < count; i++) {
        good = label_fit(fit, i, labels[i], shared[i], room) &&
               (count > COMPARED_MAX || middle_leave(fit, i, labels[i], shared[i], room));
    }
    if (good && count <= COMPARED_MAX) {
        likeness_undo(fit, labels);
    }
    tn_host_free(shared, (count + 1) * sizeof *shared);
    if (!good) {
        tn_label_fit_fini(fit);
    }
    return good;
}

void tn_label_fit_fini(struct tn_label_fit *fit)
{
    for (size_t i = 0; i < fit->count && fit->texts && fit->sizes; i++) {
        tn_host_free(fit->texts[i], fit->sizes[i]);
    }
    tn_host_free(fit->sizes, (fit->count + 1) * sizeof(size_t));
    tn_host_free(fit->texts, (fit->count + 1) * sizeof(char *));
}
