/* SPDX-License-Identifier: MIT */
#include "base/text_out.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void tn_text_init(struct tn_text_out *out, const struct tarn_writer *writer)
{
    out->writer = writer;
    out->status = TARN_OK;
    out->units = TARN_UNITS_IEC;
    out->used = 0;
}

static enum tarn_status vec_write(void *context, const char *bytes, size_t size)
{
    return tn_vec_append(context, bytes, size) ? TARN_OK : TARN_ERR_HOST_MEMORY;
}

struct tarn_writer tn_text_to_vec(struct tn_vec *vec)
{
    return (struct tarn_writer){vec_write, vec};
}

static void text_write(struct tn_text_out *out, const char *bytes, size_t size)
{
    if (out->status == TARN_OK && size > 0) {
        out->status = out->writer->write(out->writer->context, bytes, size);
    }
}

static void text_flush(struct tn_text_out *out)
{
    text_write(out, out->buffer, out->used);
    out->used = 0;
}

void tn_text_put(struct tn_text_out *out, const char *bytes, size_t size)
{
    if (size > sizeof out->buffer - out->used) {
        text_flush(out);
    }
    if (size > sizeof out->buffer) {
        text_write(out, bytes, size);
        return;
    }
    if (size > 0) { /* of nothing `bytes` may be a null pointer */
        memcpy(out->buffer + out->used, bytes, size);
        out->used += size;
    }
}

void tn_text_puts(struct tn_text_out *out, const char *text)
{
    tn_text_put(out, text, strlen(text));
}

void tn_text_putc(struct tn_text_out *out, char c)
{
    if (out->used == sizeof out->buffer) {
        text_flush(out);
    }
    out->buffer[out->used++] = c;
}

void tn_text_printf(struct tn_text_out *out, const char *format, ...)
{
    char line[TN_TEXT_BUFFER];
    va_list args;

    va_start(args, format);
    const int size = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if ((size_t)size >= sizeof line) { /* also where it could not be formatted: -1 */
        out->status = out->status == TARN_OK ? TARN_ERR_INTERNAL : out->status;
        return;
    }
    tn_text_put(out, line, (size_t)size);
}

void tn_text_put_number(struct tn_text_out *out, uint64_t number)
{
    char text[20]; /* of 64 bits */
    char *at = text + sizeof text;

    do {
        *--at = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    tn_text_put(out, at, (size_t)(text + sizeof text - at));
}

/* ---- sizes ---- */

struct tn_size_text tn_text_size(const struct tn_text_out *out, double bytes)
{
    return tn_size_text_in(out->units, bytes);
}

struct tn_size_text tn_text_size_viz(const struct tn_text_out *out, double bytes)
{
    return tn_size_text_viz(out->units, bytes);
}

int tn_text_size_width(const struct tn_text_out *out)
{
    return out->units == TARN_UNITS_BYTES ? 17 : 12; /* bytes below a petabyte */
}

void tn_text_put_size(struct tn_text_out *out, double bytes)
{
    tn_text_printf(out, "%*s", tn_text_size_width(out), tn_text_size(out, bytes).text);
}

enum tarn_status tn_text_finish(struct tn_text_out *out)
{
    text_flush(out);
    return out->status;
}

void tn_text_style(struct tn_text_out *out, enum tn_text_style style)
{
    static const char *const codes[] = {
        [TN_STYLE_PLAIN] = "\033[0m", [TN_STYLE_BOLD] = "\033[1m", [TN_STYLE_RED] = "\033[31m"};

    tn_text_puts(out, out->color ? codes[style] : "");
}
