/* SPDX-License-Identifier: MIT */
#include "render/share_bar.h"

enum {
    WIDTH = 6,
    WIDTH_IN_WIDE = 12,
    WIDE = 100, /* columns of a line */
    EIGHTHS = 8
};

unsigned tn_share_bar_width(unsigned columns, size_t before)
{
    const unsigned width = columns >= WIDE ? WIDTH_IN_WIDE : WIDTH;

    return before + 1 + width <= columns / 2 ? width : 0;
}

/* More than nothing shows, unless only whole characters can. */
static unsigned eighths_of(double percent, unsigned width, bool is_utf8)
{
    const unsigned eighths = (unsigned)(percent / 100 * width * EIGHTHS + 0.5);

    if (!is_utf8) {
        return (eighths + EIGHTHS / 2) / EIGHTHS * EIGHTHS;
    }
    return percent > 0 && eighths == 0 ? 1 : eighths;
}

void tn_share_bar_put(struct tn_text_out *out, double percent, unsigned width, bool is_utf8)
{
    /* U+258F to U+2588, from one eighth to all of a character. */
    static const char *const cells[EIGHTHS + 1] = {
        " ",
        "\xe2\x96\x8f",
        "\xe2\x96\x8e",
        "\xe2\x96\x8d",
        "\xe2\x96\x8c",
        "\xe2\x96\x8b",
        "\xe2\x96\x8a",
        "\xe2\x96\x89",
        "\xe2\x96\x88",
    };
    unsigned left = eighths_of(percent, width, is_utf8);

    for (unsigned i = 0; i < width; i++) {
        const unsigned here = left < EIGHTHS ? left : EIGHTHS;

        tn_text_puts(out, is_utf8 ? cells[here] : here > 0 ? "#" : " ");
        left -= here;
    }
}
