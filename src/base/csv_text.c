/* SPDX-License-Identifier: MIT */
#include "base/csv_text.h"

#include "base/escaped.h"
#include "tarn/text.h"

void tn_csv_begin(struct tn_text_out *out, const char *text, size_t length)
{
    tn_text_puts(out, tarn_text_is_formula(text, length) ? "\"'" : "\"");
}

void tn_csv_put_part(struct tn_text_out *out, const char *text, size_t length)
{
    struct tn_escaped shown;

    while (length > 0) {
        const size_t taken = tn_escaped_next(text, length, TN_ESCAPED_PLAIN, &shown);

        if (text[0] == '"') {
            tn_text_putc(out, '"');
        }
        tn_text_put(out, shown.text, shown.length);
        text += taken;
        length -= taken;
    }
}

void tn_csv_put(struct tn_text_out *out, const char *text, size_t length)
{
    tn_csv_begin(out, text, length);
    tn_csv_put_part(out, text, length);
    tn_text_putc(out, '"');
}
