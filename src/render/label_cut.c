/* SPDX-License-Identifier: MIT */
#include "render/label_cut.h"

#include "base/assertion.h"
#include "base/host_mem.h"
#include "tarn/report.h"

#include <string.h>

static const char mark[] = "...";
static const char gap_before[] = "... < ";
static const char gap_after[] = " < ...";

enum {
    MARK_SIZE = sizeof mark - 1,
    GAP_SIZE = sizeof gap_after - 1,
    ROOM_MIN = 16,     /* less is no label */
    COMPARED_MAX = 200 /* rows: each is compared with each */
};

/* The bytes of the first `columns` characters of a text that has more. */
static size_t bytes_of_columns(const char *text, size_t columns)
{
    size_t at = 0;

    for (; tn_always(text[at]) && columns > 0; columns--) {
        at++;
        while (((unsigned char)text[at] & 0xc0) == 0x80) {
            at++;
        }
    }
    return at;
}

size_t tn_label_cut_size(const char *text, size_t room)
{
    const size_t length = strlen(text);

    if (tn_label_columns(text, length) <= room) {
        return length;
    }
    return bytes_of_columns(text, room > MARK_SIZE ? room - MARK_SIZE : 0);
}

static bool is_path(const char *text)
{
    return strchr(text, '/') && !strstr(text, " < ");
}

/* The end of a path that fits behind the mark, from a '/' on if one is in it. */
static const char *path_tail(const char *text, size_t room)
{
    const size_t columns = tn_label_columns(text, strlen(text));
    const char *tail = text + bytes_of_columns(text, columns - (room - MARK_SIZE));
    const char *slash = strchr(tail, '/');

    return slash ? slash : tail;
}

/* The text as far as it fits, of at most its own size and the mark's. */
static void text_cut(char *cut, const char *text, size_t room)
{
    const size_t length = strlen(text);
    size_t begin = 0;
    size_t end = length;

    if (is_path(text)) {
        const char *tail = path_tail(text, room);

        memcpy(cut, mark, MARK_SIZE);
        memcpy(cut + MARK_SIZE, tail, strlen(tail) + 1);
        return;
    }
    tn_assert(room >= ROOM_MIN && tn_label_columns(text, end) > room); /* more than gaps */
    if (memcmp(text + end - GAP_SIZE, gap_after, GAP_SIZE) == 0) {
        end -= GAP_SIZE;
    }
    if (tn_label_columns(text, end) > room && memcmp(text, gap_before, GAP_SIZE) == 0) {
        begin = MARK_SIZE + 1; /* "< " marks the gap */
    }
    memcpy(cut, text + begin, end - begin);
    cut[end - begin] = '\0';
    if (tn_label_columns(cut, end - begin) > room) {
        memcpy(cut + tn_label_cut_size(cut, room), mark, sizeof mark);
    }
}

static const char *shown(const struct tn_label_fit *fit, const char *const *labels, size_t row)
{
    return fit->texts[row] ? fit->texts[row] : labels[row];
}

/* Whether another row, cut or not, has that text, though not the same label. */
static bool is_shared(const struct tn_label_fit *fit, const char *const *labels, char *const *cuts,
                      size_t row)
{
    for (size_t i = 0; i < fit->count; i++) {
        const char *other = cuts[i] ? cuts[i] : shown(fit, labels, i);

        if (i != row && strcmp(cuts[row], other) == 0 && strcmp(labels[row], labels[i]) != 0) {
            return true;
        }
    }
    return false;
}

static size_t cut_room(const struct tn_label_fit *fit, const char *const *labels, size_t row)
{
    return strlen(shown(fit, labels, row)) + sizeof mark;
}

static void cut_take(struct tn_label_fit *fit, const char *const *labels, size_t row, char *cut)
{
    const size_t size = cut_room(fit, labels, row);

    tn_host_free(fit->texts[row], fit->sizes[row]);
    fit->texts[row] = cut;
    fit->sizes[row] = size;
}

static bool cuts_make(const struct tn_label_fit *fit, const char *const *labels, size_t room,
                      char **cuts)
{
    for (size_t i = 0; i < fit->count; i++) {
        const char *text = shown(fit, labels, i);

        if (tn_label_columns(text, strlen(text)) > room) {
            cuts[i] = tn_host_alloc_zero(cut_room(fit, labels, i));
            if (!cuts[i]) {
                return false;
            }
            text_cut(cuts[i], text, room);
        }
    }
    return true;
}

bool tn_labels_cut(struct tn_label_fit *fit, const char *const *labels, size_t room)
{
    const size_t size = (fit->count + 1) * sizeof(char *);

    if (room < ROOM_MIN || fit->count > COMPARED_MAX) {
        return true;
    }
    char **cuts = tn_host_alloc_zero(2 * size);
    const bool good = cuts && cuts_make(fit, labels, room, cuts);
    char **kept = cuts ? cuts + fit->count + 1 : NULL;

    for (size_t i = 0; good && i < fit->count; i++) {
        kept[i] = cuts[i] && !is_shared(fit, labels, cuts, i) ? cuts[i] : NULL;
    }
    for (size_t i = 0; cuts && i < fit->count; i++) {
        if (good && kept[i]) {
            cut_take(fit, labels, i, kept[i]);
        } else if (cuts[i]) {
            tn_host_free(cuts[i], cut_room(fit, labels, i));
        }
    }
    tn_host_free(cuts, 2 * size);
    return good;
}

static bool groups_fit(struct tn_label_fit *fit, const char **labels, size_t count, size_t room)
{
    if (!tn_label_fit_init(fit, labels, count, room)) {
        return false;
    }
    if (!tn_labels_cut(fit, labels, room)) {
        tn_label_fit_fini(fit);
        return false;
    }
    return true;
}

void tn_group_labels_fit(struct tn_label_fit *fit, const void *groups, size_t count,
                         size_t row_size, size_t room)
{
    const char **labels = room > 0 && count > 0 ? tn_host_alloc(count * sizeof *labels) : NULL;

    for (size_t i = 0; labels && i < count; i++) {
        labels[i] =
            ((const struct tarn_group *)(const void *)((const char *)groups + i * row_size))->text;
    }
    if (!labels || !groups_fit(fit, labels, count, room)) {
        *fit = (struct tn_label_fit){.count = 0};
    }
    tn_host_free(labels, count * sizeof *labels);
}
