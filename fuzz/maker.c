/* SPDX-License-Identifier: MIT */
#include "maker.h"

#include <math.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define A   ((uint64_t)0x7f0000000000) /* where segments begin */

#define COUNT(array) ((unsigned)(sizeof(array) / sizeof *(array)))

static const uint64_t edges[] = {
    1,
    0,
    511,
    513,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0x10000,
    0x7fffffff,
    0x80000000,
    0xffffffff,
    0x100000000,
    (uint64_t)1 << 40,
    ((uint64_t)1 << 53) + 1,
    ((uint64_t)1 << 60) - 512,
    (uint64_t)1 << 60,
    INT64_MAX - 511,
    INT64_MAX,
    (uint64_t)INT64_MAX + 1,
    UINT64_MAX - 511,
    UINT64_MAX - 1,
    UINT64_MAX,
};

static const double real_edges[] = {
    0.5,    -0.0,  1e-320,  9007199254740993.0, 9.2233720368547758e18,
    1.9e19, -1e19, 1.7e308, (double)INFINITY,   (double)NAN};

static const uint64_t sizes[] = {
    512,      MIB,           1,          2 * MIB,  20 * MIB, 10 * MIB,       MIB + 512,
    1000,     2 * MIB - 512, 24 * MIB,   40 * MIB, 12 * MIB, 20 * MIB + 512, 5 * MIB,
    64 * MIB, 100 * MIB,     1024 * MIB, 3 * KIB,
};

static const char *const texts[] = {
    "forward",
    "train.py",
    "/usr/lib/python3/torch/nn/modules/linear.py",
    "",
    "Linear.forward",
    "<module>",
    "## Optimizer.step#Adam ##",
    "step",
    "nn.Module: Block_0",
    "\x1b[31mred\x1b]0;t\x07",
    "\302\23331m\342\200\256abc", /* NOLINT(misc-misleading-bidirectional): to be escaped */
    "\xff\xfe\x80",
    "</script><img src=x onerror=1>",
    "=cmd|'/c calc'!A1",
    "a\"b\\c'd,e;f\tg\nh\ri",
    "'); DROP TABLE blocks; --",
    "%s%n%d",
    "0123456789012345678901234567890123456789012345678901234567890123",
    "at::native::empty(c10::ArrayRef<long>)",
    "_ZN2at6native5emptyEv",
    "default",
    "expandable_segments:True,large_segment_size_mb:40",
    "max_split_size_mb:32,garbage_collection_threshold:0.5",
    "../../../etc/passwd",
};

void maker_init(struct maker *maker, const uint8_t *bytes, size_t size)
{
    maker->dice = (struct dice){bytes, bytes + size};
    maker->recent_count = 0;
    value_pool_clear(&maker->pool);
}

struct value *make_container(struct maker *maker, enum value_kind kind, size_t capacity)
{
    struct value *value = value_make(&maker->pool, kind, capacity);

    maker->recent[maker->recent_count++ % MAKER_RECENT] = value;
    return value;
}

struct value *make_word(struct maker *maker, const char *const *words, unsigned count)
{
    return value_text(&maker->pool, words[dice_below(&maker->dice, count)]);
}

struct value *make_text(struct maker *maker)
{
    return make_word(maker, texts, COUNT(texts));
}

struct value *make_size(struct maker *maker)
{
    return value_uint(&maker->pool, sizes[dice_below(&maker->dice, COUNT(sizes))]);
}

/* Few places, so that what is freed was often allocated: 16 steps in each of 16 ranges. */
struct value *make_address(struct maker *maker)
{
    static const uint64_t steps[] = {0, 512, 20 * MIB, 2 * MIB, 10 * MIB, MIB, 40 * MIB, 60 * MIB};
    const unsigned roll = dice_byte(&maker->dice);

    return value_uint(&maker->pool,
                      A + (uint64_t)(roll >> 4) * 64 * MIB + steps[roll % COUNT(steps)]);
}

struct value *make_time(struct maker *maker)
{
    return value_int(&maker->pool,
                     1700000000000000 + (int64_t)dice_below(&maker->dice, 65536) * 10);
}

struct value *make_small(struct maker *maker, unsigned count)
{
    return value_int(&maker->pool, dice_below(&maker->dice, count));
}

struct value *make_bool(struct maker *maker)
{
    struct value *value = value_make(&maker->pool, VALUE_BOOL, 0);

    value->number = dice_below(&maker->dice, 2);
    return value;
}

struct value *make_pair(struct maker *maker)
{
    struct value *pair = make_container(maker, VALUE_TUPLE, 2);

    value_add(&maker->pool, pair, make_small(maker, 3));
    value_add(&maker->pool, pair, make_small(maker, 2));
    return pair;
}

static struct value *make_edge(struct maker *maker, enum value_kind kind)
{
    struct value *value = value_make(&maker->pool, kind, 0);

    value->number = edges[dice_below(&maker->dice, COUNT(edges))];
    value->real = real_edges[dice_below(&maker->dice, COUNT(real_edges))];
    return value;
}

/* Something that is not what belongs there. */
static struct value *make_other(struct maker *maker, struct value *item)
{
    switch (dice_below(&maker->dice, 12)) {
    case 0:
    case 1:
    case 2:
        return make_edge(maker, VALUE_UINT);
    case 3:
        item = make_edge(maker, VALUE_INT);
        item->number = 0 - item->number;
        return item;
    case 4:
        return make_edge(maker, VALUE_FLOAT);
    case 5:
        return value_make(&maker->pool, VALUE_NONE, 0);
    case 6:
        return make_text(maker);
    case 7:
        return make_container(maker, VALUE_LIST, 0);
    case 8:
        return make_container(maker, VALUE_DICT, 0);
    case 9:
        return make_edge(maker, VALUE_HUGE);
    case 10:
        item = make_text(maker);
        item->kind = VALUE_BYTES;
        return item;
    default:
        return maker->recent_count > 0
                   ? maker->recent[dice_below(&maker->dice, maker->recent_count < MAKER_RECENT
                                                                ? maker->recent_count
                                                                : MAKER_RECENT)]
                   : item;
    }
}

void make_field(struct maker *maker, struct value *dict, const char *key, struct value *item)
{
    const unsigned roll = dice_byte(&maker->dice);

    if (roll == 255) {
        return; /* missing */
    }
    if (roll == 254) {
        value_set(&maker->pool, dict, key, make_other(maker, item));
    }
    if (roll == 253) {
        value_add(&maker->pool, dict, make_text(maker));
        value_add(&maker->pool, dict, item);
    }
    value_set(&maker->pool, dict, key, roll >= 240 && roll < 253 ? make_other(maker, item) : item);
}

void make_item(struct maker *maker, struct value *list, struct value *item)
{
    value_add(&maker->pool, list, dice_byte(&maker->dice) >= 250 ? make_other(maker, item) : item);
}
