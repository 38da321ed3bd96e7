/* SPDX-License-Identifier: MIT */
/*
 * Formatted output to a struct tarn_writer through a fixed buffer, so that writing needs no host
 * memory. The first failure sticks: later calls do nothing, and tn_text_finish returns it. So a
 * report writes line after line and checks once.
 */
#ifndef TN_BASE_TEXT_OUT_H
#define TN_BASE_TEXT_OUT_H

#include "base/attr.h"
#include "base/size_text.h"
#include "tarn/writer.h"

enum {
    TN_TEXT_BUFFER = 4096
};

struct tn_text_out {
    const struct tarn_writer *writer;
    enum tarn_status status;
    enum tarn_units units; /* of sizes; whoever makes the report may set it before it writes */
    size_t used;
    char buffer[TN_TEXT_BUFFER];
};

void tn_text_init(struct tn_text_out *out, const struct tarn_writer *writer);
void tn_text_put(struct tn_text_out *out, const char *bytes, size_t size);
void tn_text_puts(struct tn_text_out *out, const char *text);
void tn_text_putc(struct tn_text_out *out, char c);

/* As printf; one call makes at most TN_TEXT_BUFFER - 1 bytes, longer ones fail with
 * TARN_ERR_INTERNAL. */
void tn_text_printf(struct tn_text_out *out, const char *format, ...) TN_PRINTF(2, 3);

/* Bytes in the units of this output. */
struct tn_size_text tn_text_size(const struct tn_text_out *out, double bytes);

/* A column of sizes: two blanks, then the amount, flush right and as wide as such columns are. */
void tn_text_put_size(struct tn_text_out *out, double bytes);

/* Characters of such a column without the blanks. */
int tn_text_size_width(const struct tn_text_out *out);

/* Hands over what is buffered; returns the first failure. */
enum tarn_status tn_text_finish(struct tn_text_out *out) TN_MUST_CHECK;

#endif
