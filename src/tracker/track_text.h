/* SPDX-License-Identifier: MIT */
/*
 * Text output of the tracker. A text is built in host memory under the tracker's lock and passed to
 * the writer without it, because the caller's writer may block.
 */
#ifndef TN_TRACKER_TRACK_TEXT_H
#define TN_TRACKER_TRACK_TEXT_H

#include "base/text_out.h"
#include "tracker/track_core.h"

enum {
    TN_AMOUNT_MAX = 48
};

/* A unit of bytes: "B", "KiB", "MiB", "GiB". */
struct tn_track_unit {
    const char *name;
    unsigned shift;
};

struct tn_amount {
    char text[TN_AMOUNT_MAX];
};

/* TARN_ERR_INVALID_ARGUMENT for others, in PyTorch's words. */
enum tarn_status tn_track_unit_find(enum tarn_units wanted, const struct tn_track_unit **unit_out,
                                    struct tarn_error *error) TN_MUST_CHECK;

/* As Python prints round(bytes / unit, 2) and the unit: "12.25 MiB", "0.0 KiB"; "17 B". */
struct tn_amount tn_amount_format(int64_t bytes, const struct tn_track_unit *unit);

/* Whether that is more than 0. */
bool tn_amount_shows(int64_t bytes, const struct tn_track_unit *unit);

/* Prints into `out` under the lock. */
typedef enum tarn_status tn_track_print(struct tn_text_out *out, const struct tarn_tracker *tracker,
                                        const void *how);

/* Runs `print` and passes its text to the writer. */
enum tarn_status tn_track_write(struct tarn_tracker *tracker, tn_track_print *print,
                                const void *how, const struct tarn_writer *writer,
                                struct tarn_error *error) TN_MUST_CHECK;

/* A name, escaped for output. */
void tn_track_put_name(struct tn_text_out *out, const struct tarn_tracker *tracker,
                       enum tarn_track_names names, uint32_t id);

/* Puts a breakdown as PyTorch's dictionary of devices. */
void tn_track_put_json(struct tn_text_out *out, const struct tarn_tracker *tracker,
                       const struct tn_breakdown *breakdown);

/* Levels of a name: parts between dots. */
uint32_t tn_track_depth(const char *name);

/* Negative, 0 or positive, in natural sort order: runs of digits compare as numbers, letters ignore
 * case. */
int tn_natural_compare(const char *a, const char *b);

#endif
