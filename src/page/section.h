/* SPDX-License-Identifier: MIT */
/*
 * A section of the page: bytes, deflated (zlib's format, whose check sum the browser verifies) and
 * in base 128 (base128.h), inside of a script element that no browser runs.
 *
 * A large section is written part by part, each of bytes of one kind. Repetitions are searched in a
 * part only where that makes it smaller: in numbers that follow no order it costs time, and bytes
 * too.
 */
#ifndef TN_PAGE_SECTION_H
#define TN_PAGE_SECTION_H

#include "base/text_out.h"
#include "page/base128.h"
#include "page/column.h"

#define ZLIB_CONST
#include <zlib.h>

enum {
    TN_SECTION_PIECE = 4096 /* deflated bytes that wait to be written */
};

/* Where sections go: their names begin with `prefix`, which tells recordings of a page apart. */
struct tn_section_out {
    struct tn_text_out *text;
    const char *prefix;
};

struct tn_section {
    struct tn_base128 encoder;
    z_stream stream;
    z_stream trial; /* of what looking for repetitions is worth */
    bool has_trial;
    bool failed;
    int strategy;
    uint8_t piece[TN_SECTION_PIECE];
};

/* `name` needs no escape, `size` is that of all parts. False when host memory is missing; then
 * nothing has been written and there is nothing to end. */
bool tn_section_begin(struct tn_section *section, const struct tn_section_out *out,
                      const char *name, size_t size) TN_MUST_CHECK;
void tn_section_add(struct tn_section *section, const uint8_t *bytes, size_t size);

/* False when host memory was missing for a part; what the writer refuses stays with `out`. */
bool tn_section_end(struct tn_section *section) TN_MUST_CHECK;

/* A section of one part. False when host memory is missing, also if it was for the column. */
TN_MUST_CHECK static inline bool tn_section_put(const struct tn_section_out *out, const char *name,
                                                const struct tn_column *column)
{
    struct tn_section section;

    if (column->failed || !tn_section_begin(&section, out, name, column->bytes.count)) {
        return false;
    }
    tn_section_add(&section, column->bytes.items, column->bytes.count);
    return tn_section_end(&section);
}

#endif
