/* SPDX-License-Identifier: MIT */
#include "base/matcher_filter.h"

enum {
    LANES = 8, /* expressions of a word, a byte each */
    LANE_BITS = 8
};

#define LANE_FIRST ((uint64_t)0x0101010101010101) /* the lowest bit of each lane */
#define LANE_REST  ((uint64_t)0x7f7f7f7f7f7f7f7f) /* what stays in its lane when shifted left */

/* Eight expressions. Bits of a lane are those of tn_matcher.places. */
struct tn_filter_word {
    uint64_t places[256];
    uint64_t last;   /* the bit of the last byte of the beginnings */
    uint64_t always; /* all bits of those that can match anywhere */
};

void tn_matcher_filter_init(struct tn_matcher_filter *filter)
{
    tn_vec_init(&filter->words, sizeof(struct tn_filter_word));
    filter->count = 0;
}

void tn_matcher_filter_fini(struct tn_matcher_filter *filter)
{
    tn_vec_fini(&filter->words);
}

bool tn_matcher_filter_add(struct tn_matcher_filter *filter, const struct tn_matcher *matcher)
{
    const unsigned shift = (unsigned)(filter->count % LANES) * LANE_BITS;

    if (shift == 0) {
        struct tn_filter_word *made = tn_vec_push(&filter->words);

        if (!made) {
            return false;
        }
        *made = (struct tn_filter_word){.last = 0};
    }
    struct tn_filter_word *word =
        (struct tn_filter_word *)filter->words.items + filter->words.count - 1;

    if (matcher->place_count == 0) {
        word->always |= (uint64_t)0xff << shift;
    } else {
        word->last |= (uint64_t)1 << (shift + matcher->place_count - 1);
    }
    for (int byte = 0; byte < 256; byte++) {
        word->places[byte] |= (uint64_t)matcher->places[byte] << shift;
    }
    filter->count++;
    return true;
}

/* The lanes whose beginning is in the text. As begin_find in matcher.c: bit k is set while the last
 * k + 1 bytes can be the first ones of a match. */
static uint64_t word_scan(const struct tn_filter_word *word, const unsigned char *text,
                          size_t length)
{
    uint64_t fitting = 0;
    uint64_t seen = 0;

    for (size_t i = 0; i < length; i++) {
        fitting = ((fitting & LANE_REST) << 1 | LANE_FIRST) & word->places[text[i]];
        seen |= fitting;
    }
    return (seen & word->last) | word->always;
}

struct tn_filter_scan tn_filter_scan_begin(const struct tn_matcher_filter *filter, const char *text,
                                           size_t length)
{
    return (struct tn_filter_scan){
        .filter = filter, .text = (const unsigned char *)text, .length = length};
}

bool tn_filter_scan_next(struct tn_filter_scan *scan, size_t *number_out)
{
    const struct tn_filter_word *words = scan->filter->words.items;

    while (scan->next < scan->filter->count) {
        const size_t number = scan->next++;
        const unsigned shift = (unsigned)(number % LANES) * LANE_BITS;

        if (shift == 0) {
            scan->hits = word_scan(&words[number / LANES], scan->text, scan->length);
        }
        if (scan->hits >> shift & 0xff) {
            *number_out = number;
            return true;
        }
    }
    return false;
}
