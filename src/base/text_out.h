/* SPDX-License-Identifier: MIT */
/*
 * Formatted output to a struct tarn_writer through a fixed buffer, so that writing needs no host
 * memory. The first failure is kept: later calls do nothing, and tn_text_finish returns it. So a
 * report writes all its lines and checks once.
 */
#ifndef TN_BASE_TEXT_OUT_H
#define TN_BASE_TEXT_OUT_H

#include "base/attr.h"
#include "base/size_text.h"
#include "base/vec.h"
#include "tarn/writer.h"

enum {
    TN_TEXT_BUFFER = 4096
};

struct tn_text_out {
    const struct tarn_writer *writer;
    enum tarn_status status;
    enum tarn_units units; /* of sizes; may be set before the first output */
    bool color;            /* the same: tn_text_style writes something */
    size_t used;
    char buffer[TN_TEXT_BUFFER];
};

void tn_text_init(struct tn_text_out *out, const struct tarn_writer *writer);

/* A writer that appends to a vector of char. */
struct tarn_writer tn_text_to_vec(struct tn_vec *vec);

void tn_text_put(struct tn_text_out *out, const char *bytes, size_t size);
void tn_text_puts(struct tn_text_out *out, const char *text);
void tn_text_putc(struct tn_text_out *out, char c);

/* In decimal; printf takes several times as long. */
void tn_text_put_number(struct tn_text_out *out, uint64_t number);

/* As printf; output of more than TN_TEXT_BUFFER - 1 bytes in one call fails with
 * TARN_ERR_INTERNAL. */
void tn_text_printf(struct tn_text_out *out, const char *format, ...) TN_PRINTF(2, 3);

/* Styles of a terminal. */
enum tn_text_style {
    TN_STYLE_PLAIN,
    TN_STYLE_BOLD,
    TN_STYLE_RED
};

/* Begins a style, which PLAIN ends; nothing without colour. */
void tn_text_style(struct tn_text_out *out, enum tn_text_style style);

/* A byte count in the units of this output; as PyTorch's tools write it. */
struct tn_size_text tn_text_size(const struct tn_text_out *out, double bytes);
struct tn_size_text tn_text_size_viz(const struct tn_text_out *out, double bytes);

/* Writes a size column: the right-aligned amount. */
void tn_text_put_size(struct tn_text_out *out, double bytes);

/* Width of a size column with its leading blanks: one before the longest amount, "1023.99 KiB". */
int tn_text_size_width(const struct tn_text_out *out);

/* Flushes the buffer; returns the first failure. */
enum tarn_status tn_text_finish(struct tn_text_out *out) TN_MUST_CHECK;

#endif
