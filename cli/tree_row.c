/* SPDX-License-Identifier: MIT */
#include "tree_row.h"

#include "size_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    EIGHTHS = 8
};

void cli_tree_size_text(char text[CLI_TREE_NUMBERS_MAX], const struct cli_tree *tree, uint32_t node)
{
    (void)snprintf(text, CLI_TREE_NUMBERS_MAX, "%*s %5.1f%%",
                   cli_units() == TARN_UNITS_BYTES ? 17 : 11,
                   cli_size_text(tree->nodes[node].bytes).text, cli_tree_share(tree, node));
}

void cli_tree_bar_text(char *text, size_t size, double share, unsigned width, bool is_utf8)
{
    static const char *const parts[] = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    unsigned eighths = (unsigned)(share / 100 * width * EIGHTHS + 0.5);
    size_t length = 0;

    if (share > 0 && eighths == 0) {
        eighths = 1;
    }
    if (!is_utf8) {
        eighths = (eighths + EIGHTHS / 2) / EIGHTHS * EIGHTHS;
    }
    text[0] = '\0';
    for (unsigned i = 0; i < width && length + 4 < size; i++) {
        const unsigned rest = eighths > i * EIGHTHS ? eighths - i * EIGHTHS : 0;
        const char *cell = rest >= EIGHTHS ? (is_utf8 ? "█" : "#") : parts[rest];

        length += (size_t)snprintf(text + length, size - length, "%s", cell);
    }
}

/* ---- labels ---- */

static bool is_first_byte(char byte)
{
    return ((unsigned char)byte & 0xC0U) != 0x80;
}

unsigned cli_tree_columns(const char *text)
{
    unsigned columns = 0;

    for (; *text; text++) {
        columns += is_first_byte(*text);
    }
    return columns;
}

/* The text after its first `count` characters. */
static const char *after_columns(const char *text, unsigned count)
{
    while (*text && count > 0) {
        text++;
        count -= is_first_byte(*text);
    }
    return text;
}

/* The last part of a chain, with the blank and arrow before it; NULL: it is no chain. */
static const char *last_part(const char *label)
{
    const char *last = NULL;

    for (const char *at = strstr(label, " > "); at; at = strstr(at + 1, " > ")) {
        last = at;
    }
    return last;
}

/* Siblings differ in the first part, which therefore stays longest; then comes the last. */
void cli_tree_label_text(char *text, const char *label, unsigned width, bool is_utf8)
{
    const char *mark = is_utf8 ? "…" : "...";
    const unsigned mark_columns = is_utf8 ? 1 : 3;
    const char *first_end = strstr(label, " > ");
    const char *last = last_part(label);

    width =
        width < CLI_TREE_LABEL_MAX / 5 ? width : CLI_TREE_LABEL_MAX / 5; /* bytes of one, mark */
    if (cli_tree_columns(label) <= width) {
        (void)snprintf(text, CLI_TREE_LABEL_MAX, "%s", label);
        return;
    }
    if (last && first_end - label < CLI_TREE_LABEL_MAX / 2) {
        const unsigned ends = cli_tree_columns(last) + cli_tree_columns(label) -
                              cli_tree_columns(first_end) + 3 + mark_columns;
        const int first_bytes = (int)(first_end - label);

        (void)snprintf(text, CLI_TREE_LABEL_MAX, "%.*s > %s%s", first_bytes, label, mark,
                       ends <= width ? last : "");
        if (cli_tree_columns(text) <= width) {
            return;
        }
    }
    const char *end = after_columns(label, width > mark_columns ? width - mark_columns : 0);

    (void)snprintf(text, CLI_TREE_LABEL_MAX, "%.*s%s", (int)(end - label), label,
                   width > mark_columns ? mark : "");
}

/* ---- the time point ---- */

void cli_tree_place_text(char *text, size_t size, const struct cli_tree_place *place,
                         const char *when)
{
    const bool is_numbered = strncmp(when, "event:", 6) == 0;
    const struct cli_size_text requested = cli_size_text(place->at.requested);
    const struct cli_size_text reserved = cli_size_text(place->at.reserved);
    char event[64] = "";

    if (place->at.event != TARN_NONE) {
        (void)snprintf(event, sizeof event, "event %" PRIu64 " of %" PRIu64, place->at.event,
                       place->head.events);
    }
    if (is_numbered && event[0]) {
        (void)snprintf(text, size, "%s: %s requested, %s reserved", event, requested.text,
                       reserved.text);
    } else {
        (void)snprintf(text, size, "%s: %s requested, %s reserved%s%s", when, requested.text,
                       reserved.text, event[0] ? ", " : "", event);
    }
}
