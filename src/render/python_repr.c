/* SPDX-License-Identifier: MIT */
#include "render/python_repr.h"

#include "base/decimal.h"
#include "base/escaped.h"
#include "snapshot/encode.h"

#include <inttypes.h>
#include <stddef.h>

/* A form that writes to a text, not to bytes: form.out stays NULL. */
struct repr {
    struct tn_format format;
    struct tn_text_out *text;
};

static struct tn_text_out *text_of(struct tn_format *format)
{
    return ((struct repr *)(void *)((char *)format - offsetof(struct repr, format)))->text;
}

static void repr_list_begin(struct tn_format *format, uint64_t count)
{
    (void)count;
    tn_text_putc(text_of(format), '[');
}

static void repr_item(struct tn_format *format, uint64_t index)
{
    tn_text_puts(text_of(format), index > 0 ? ", " : "");
}

static void repr_list_end(struct tn_format *format, uint64_t count)
{
    (void)count;
    tn_text_putc(text_of(format), ']');
}

static void repr_tuple_begin(struct tn_format *format, uint64_t count)
{
    (void)count;
    tn_text_putc(text_of(format), '(');
}

static void repr_tuple_end(struct tn_format *format, uint64_t count)
{
    tn_text_puts(text_of(format), count == 1 ? ",)" : ")");
}

static void repr_dict_begin(struct tn_format *format)
{
    tn_text_putc(text_of(format), '{');
}

static void repr_string(struct tn_format *format, uint32_t string)
{
    const struct tn_string text = tn_model_string(format->model, string);

    tn_text_put_python(text_of(format), text.text, text.length);
}

static void repr_key(struct tn_format *format, uint64_t index, uint32_t string)
{
    repr_item(format, index);
    repr_string(format, string);
    tn_text_puts(text_of(format), ": ");
}

static void repr_dict_end(struct tn_format *format)
{
    tn_text_putc(text_of(format), '}');
}

static void repr_none(struct tn_format *format)
{
    tn_text_puts(text_of(format), "None");
}

static void repr_boolean(struct tn_format *format, bool value)
{
    tn_text_puts(text_of(format), value ? "True" : "False");
}

static void repr_integer(struct tn_format *format, int64_t value)
{
    tn_text_printf(text_of(format), "%" PRId64, value);
}

static void repr_whole(struct tn_format *format, uint64_t value)
{
    tn_text_printf(text_of(format), "%" PRIu64, value);
}

static void repr_real(struct tn_format *format, double value)
{
    tn_text_puts(text_of(format), tn_real_format(value).text);
}

static void repr_pair(struct tn_format *format, const uint64_t pair[2])
{
    tn_text_printf(text_of(format), "(%" PRIu64 ", %" PRIu64 ")", pair[0], pair[1]);
}

static const struct tn_format_ops repr_ops = {
    .list_begin = repr_list_begin,
    .item = repr_item,
    .list_end = repr_list_end,
    .tuple_begin = repr_tuple_begin,
    .tuple_item = repr_item,
    .tuple_end = repr_tuple_end,
    .dict_begin = repr_dict_begin,
    .key = repr_key,
    .dict_end = repr_dict_end,
    .none = repr_none,
    .boolean = repr_boolean,
    .integer = repr_integer,
    .whole = repr_whole,
    .real = repr_real,
    .string = repr_string,
    .pair = repr_pair,
};

void tn_python_repr_entry(struct tn_text_out *out, const struct tn_model *model,
                          const struct tn_trace_entry *entry)
{
    struct repr repr = {.format = {.ops = &repr_ops, .model = model}, .text = out};

    tn_encode_entry(&repr.format, entry);
}
