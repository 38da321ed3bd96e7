/* SPDX-License-Identifier: MIT */
#include "openmetrics.h"

#include "tarn/text.h"

#include <inttypes.h>
#include <string.h>

enum {
    PIECE_BYTES = 256
};

const char *cli_om_content_type(enum cli_om_format format)
{
    return format == CLI_OM_OPENMETRICS
               ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
               : "text/plain; version=0.0.4; charset=utf-8";
}

/* A newline has been escaped before, as all that is invisible. */
static void escaped_write(FILE *file, const char *text, const char *escaped)
{
    for (; *text; text++) {
        if (strchr(escaped, *text)) {
            (void)fputc('\\', file);
        }
        (void)fputc(*text, file);
    }
}

static void value_write(FILE *file, const char *text)
{
    char piece[PIECE_BYTES];
    size_t length = strlen(text);

    while (length > 0) {
        const size_t taken = tarn_text_escape(text, length, TARN_TEXT_PLAIN, piece, sizeof piece);

        escaped_write(file, piece, "\"\\");
        text += taken;
        length -= taken;
    }
}

static const char *type_suffix(enum cli_om_type type)
{
    switch (type) {
    case CLI_OM_COUNTER:
        return "_total";
    case CLI_OM_INFO:
        return "_info";
    case CLI_OM_GAUGE:
        break;
    }
    return "";
}

static const char *type_name(enum cli_om_type type, enum cli_om_format format)
{
    switch (type) {
    case CLI_OM_COUNTER:
        return "counter";
    case CLI_OM_INFO:
        return format == CLI_OM_OPENMETRICS ? "info" : "gauge";
    case CLI_OM_GAUGE:
        break;
    }
    return "gauge";
}

static void family_write(const struct cli_om *om, const struct cli_om_family *family)
{
    const bool is_open = om->format == CLI_OM_OPENMETRICS;
    const char *suffix = is_open ? "" : type_suffix(family->type);

    (void)fprintf(om->file, "# TYPE %s%s %s\n", family->name, suffix,
                  type_name(family->type, om->format));
    if (is_open && family->unit) {
        (void)fprintf(om->file, "# UNIT %s %s\n", family->name, family->unit);
    }
    (void)fprintf(om->file, "# HELP %s%s ", family->name, suffix);
    escaped_write(om->file, family->help, is_open ? "\"\\" : "\\");
    (void)fputc('\n', om->file);
}

static void number_write(FILE *file, uint64_t value, unsigned decimals)
{
    uint64_t one = 1;

    for (unsigned i = 0; i < decimals; i++) {
        one *= 10;
    }
    (void)fprintf(file, "%" PRIu64, value / one);
    if (decimals > 0) {
        (void)fprintf(file, ".%0*" PRIu64, (int)decimals, value % one);
    }
}

void cli_om_sample(struct cli_om *om, const struct cli_om_family *family,
                   const struct cli_om_label *labels, size_t label_count, uint64_t value)
{
    if (om->family != family) {
        family_write(om, family);
        om->family = family;
    }
    (void)fprintf(om->file, "%s%s", family->name, type_suffix(family->type));
    for (size_t i = 0; i < label_count; i++) {
        (void)fprintf(om->file, "%c%s=\"", i == 0 ? '{' : ',', labels[i].name);
        value_write(om->file, labels[i].value);
        (void)fputc('"', om->file);
    }
    (void)fputs(label_count > 0 ? "} " : " ", om->file);
    number_write(om->file, value, family->decimals);
    (void)fputc('\n', om->file);
}

void cli_om_end(const struct cli_om *om)
{
    if (om->format == CLI_OM_OPENMETRICS) {
        (void)fputs("# EOF\n", om->file);
    }
}
