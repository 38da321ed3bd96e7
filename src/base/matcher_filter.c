/* SPDX-License-Identifier: MIT */
#include "base/matcher_filter.h"

#include "base/bits.h"

enum {
    SLOTS = 8, /* expressions of a word, a byte each */
    SLOT_BITS = 8,
    WORDS = TN_FILTER_WORDS,
    GROUP_SLOTS = SLOTS * WORDS
};

#define SLOT_FIRST ((uint64_t)0x0101010101010101) /* the lowest bit of each slot */
#define SLOT_REST  ((uint64_t)0x7f7f7f7f7f7f7f7f) /* what stays in its slot when shifted left */

/* Words of eight expressions each. Bits of a slot are those of tn_matcher.places; no bits are set
 * in a slot that is not used. */
struct filter_group {
    uint64_t places[256][WORDS];
    uint64_t last[WORDS];      /* the bit of the last byte of the beginnings */
    uint64_t always[WORDS];    /* all bits of those that can match anywhere */
    uint64_t ends[256][WORDS]; /* of the last byte of a text: all bits of those that can end so */
};

void tn_matcher_filter_init(struct tn_matcher_filter *filter)
{
    tn_vec_init(&filter->groups, sizeof(struct filter_group));
    filter->count = 0;
}

void tn_matcher_filter_fini(struct tn_matcher_filter *filter)
{
    tn_vec_fini(&filter->groups);
}

/* Whether a text that matches can end in that byte. */
static bool ends_in(const struct tn_matcher *matcher, int byte)
{
    return matcher->end_count == 0 ||
           (unsigned char)matcher->end[matcher->end_count - 1] == (unsigned)byte;
}

bool tn_matcher_filter_add(struct tn_matcher_filter *filter, const struct tn_matcher *matcher)
{
    const size_t word = filter->count % GROUP_SLOTS / SLOTS;
    const unsigned shift = (unsigned)(filter->count % SLOTS) * SLOT_BITS;

    if (filter->count % GROUP_SLOTS == 0 && !tn_vec_push(&filter->groups)) {
        return false;
    }
    struct filter_group *group =
        (struct filter_group *)filter->groups.items + filter->groups.count - 1;

    if (matcher->place_count == 0) {
        group->always[word] |= (uint64_t)0xff << shift;
    } else {
        group->last[word] |= (uint64_t)1 << (shift + matcher->place_count - 1);
    }
    for (int byte = 0; byte < 256; byte++) {
        group->places[byte][word] |= (uint64_t)matcher->places[byte] << shift;
        group->ends[byte][word] |= (uint64_t)(ends_in(matcher, byte) ? 0xff : 0) << shift;
    }
    filter->count++;
    return true;
}

/* As begin_find in matcher.c. Words are followed side by side, as each step of one waits for the
 * step before. */
static void group_follow(const struct filter_group *group, struct tn_filter_place *place,
                         const unsigned char *text, size_t length)
{
    struct tn_filter_place now = *place;

    for (size_t i = 0; i < length; i++) {
        const uint64_t *places = group->places[text[i]];

        for (size_t word = 0; word < WORDS; word++) {
            now.fitting[word] = ((now.fitting[word] & SLOT_REST) << 1 | SLOT_FIRST) & places[word];
            now.seen[word] |= now.fitting[word];
        }
    }
    now.last = length > 0 ? text[length - 1] : now.last;
    *place = now;
}

void tn_filter_follow(const struct tn_matcher_filter *filter, struct tn_filter_place *places,
                      const char *text, size_t length)
{
    const struct filter_group *groups = filter->groups.items;

    for (size_t i = 0; i < filter->groups.count; i++) {
        group_follow(&groups[i], &places[i], (const unsigned char *)text, length);
    }
}

/* The slots of a group whose beginning is in the text, which ends as they ask; behind the last
 * group there are none. */
static void group_enter(struct tn_filter_scan *scan, size_t number)
{
    scan->group = number;
    scan->word = 0;
    if (number == scan->filter->groups.count) {
        return;
    }
    const struct filter_group *group =
        (const struct filter_group *)scan->filter->groups.items + number;
    const struct tn_filter_place *place = &scan->places[number];
    const uint64_t *ends = group->ends[place->last];

    for (size_t word = 0; word < WORDS; word++) {
        scan->hits[word] =
            ((place->seen[word] & group->last[word]) | group->always[word]) & ends[word];
    }
}

struct tn_filter_scan tn_filter_scan_begin(const struct tn_matcher_filter *filter,
                                           const struct tn_filter_place *places)
{
    struct tn_filter_scan scan = {.filter = filter, .places = places};

    group_enter(&scan, 0);
    return scan;
}

bool tn_filter_scan_next(struct tn_filter_scan *scan, size_t *number_out)
{
    while (scan->group < scan->filter->groups.count) {
        for (; scan->word < WORDS; scan->word++) {
            uint64_t *hits = &scan->hits[scan->word];

            if (*hits != 0) {
                const unsigned slot = tn_lowest_bit(*hits) / SLOT_BITS;

                *hits &= ~((uint64_t)0xff << slot * SLOT_BITS);
                *number_out = (scan->group * WORDS + scan->word) * SLOTS + slot;
                return true;
            }
        }
        group_enter(scan, scan->group + 1);
    }
    return false;
}
