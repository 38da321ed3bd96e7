/* SPDX-License-Identifier: MIT */
/*
 * make_snapshot FILE EVENTS DEPTH SEED [KEPT]: a large snapshot of one device, byte for byte as
 * CPython's pickle module writes what torch.cuda.memory._snapshot() gives: protocol 4 in frames of
 * 64 KiB, every dict, list and text put into the memo, lists in batches of 1,000, keys and frames
 * taken from the memo, the list of a stack written once for an allocation and taken from the memo
 * by its frees. The same arguments give the same bytes. Needs little memory however many events.
 *
 * What happens: blocks of up to 1 MiB come and go in segments of 64 MiB, a random one at a time,
 * and near the end one request fails. Before them come KEPT blocks of 1 MiB, all of one stack,
 * which stay. DEPTH is the mean length of a stack, of 4,000 different ones. The result agrees with
 * itself: `tarn check` finds nothing.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLOT = 1 << 20, /* bytes of a place for a block */
    SEGMENT_SLOTS = 64,
    SEGMENTS = 128,
    SLOTS = SEGMENTS * SEGMENT_SLOTS,
    STACKS = 4000,
    FRAMES = 6000,
    BATCH = 1000,
    PICKLE_FRAME = 64 << 10,
    ROOM = PICKLE_FRAME + (1 << 20)
};

#define BASE ((uint64_t)0x7f4c00000000)

/* ---- pickle ---- */

struct out {
    FILE *file;
    unsigned char *bytes;
    size_t used;
    uint32_t memo_count;
};

static void put(struct out *out, const void *bytes, size_t size)
{
    memcpy(out->bytes + out->used, bytes, size);
    out->used += size;
}

static void put_byte(struct out *out, unsigned char byte)
{
    out->bytes[out->used++] = byte;
}

static void put_little(struct out *out, uint64_t value, unsigned size)
{
    for (unsigned i = 0; i < size; i++) {
        put_byte(out, (unsigned char)(value >> (8 * i)));
    }
}

/* Hands a frame over when it is full, or at the end. */
static void frame_end(struct out *out, bool is_last)
{
    unsigned char head[9] = {0x95};

    if (!out->file || (out->used < PICKLE_FRAME && !is_last)) {
        out->used = out->file ? out->used : 0;
        return;
    }
    for (unsigned i = 0; i < 8; i++) {
        head[1 + i] = (unsigned char)((uint64_t)out->used >> (8 * i));
    }
    if (fwrite(head, 1, sizeof head, out->file) != sizeof head ||
        fwrite(out->bytes, 1, out->used, out->file) != out->used) {
        (void)fprintf(stderr, "make_snapshot: cannot write\n");
        exit(1);
    }
    out->used = 0;
}

static uint32_t memoize(struct out *out)
{
    put_byte(out, 0x94);
    return out->memo_count++;
}

static void get(struct out *out, uint32_t number)
{
    if (number < 256) {
        put_byte(out, 'h');
        put_byte(out, (unsigned char)number);
    } else {
        put_byte(out, 'j');
        put_little(out, number, 4);
    }
}

static void put_number(struct out *out, uint64_t value)
{
    unsigned size = 5;

    if (value < 256) {
        put_byte(out, 'K');
        put_little(out, value, 1);
    } else if (value < 65536) {
        put_byte(out, 'M');
        put_little(out, value, 2);
    } else if (value <= INT32_MAX) {
        put_byte(out, 'J');
        put_little(out, value, 4);
    } else {
        while (size < 8 && value >> (8 * size - 1) != 0) {
            size++;
        }
        put_byte(out, 0x8a);
        put_byte(out, (unsigned char)size);
        put_little(out, value, size);
    }
}

static uint32_t put_text(struct out *out, const char *text)
{
    put_byte(out, 0x8c);
    put_byte(out, (unsigned char)strlen(text));
    put(out, text, strlen(text));
    return memoize(out);
}

/* Texts that occur again and again. */
enum word {
    W_ACTION,
    W_ADDR,
    W_SIZE,
    W_STREAM,
    W_TIME_US,
    W_FRAMES,
    W_COMPILE_CONTEXT,
    W_NOT_COMPILED,
    W_USER_METADATA,
    W_EMPTY,
    W_NAME,
    W_FILENAME,
    W_LINE,
    W_ALLOC,
    W_FREE_REQUESTED,
    W_FREE_COMPLETED,
    W_SEGMENT_ALLOC,
    W_OOM,
    W_DEVICE_FREE,
    W_DEVICE,
    W_ADDRESS,
    W_TOTAL_SIZE,
    W_ALLOCATED_SIZE,
    W_ACTIVE_SIZE,
    W_REQUESTED_SIZE,
    W_SEGMENT_TYPE,
    W_LARGE,
    W_POOL,
    W_EXPANDABLE,
    W_BLOCKS,
    W_STATE,
    W_INACTIVE,
    W_ALLOCATED,
    WORDS
};

static const char *const words[WORDS] = {"action",
                                         "addr",
                                         "size",
                                         "stream",
                                         "time_us",
                                         "frames",
                                         "compile_context",
                                         "N/A",
                                         "user_metadata",
                                         "",
                                         "name",
                                         "filename",
                                         "line",
                                         "alloc",
                                         "free_requested",
                                         "free_completed",
                                         "segment_alloc",
                                         "oom",
                                         "device_free",
                                         "device",
                                         "address",
                                         "total_size",
                                         "allocated_size",
                                         "active_size",
                                         "requested_size",
                                         "segment_type",
                                         "large",
                                         "segment_pool_id",
                                         "is_expandable",
                                         "blocks",
                                         "state",
                                         "inactive",
                                         "active_allocated"};

/* ---- what happened ---- */

struct slot {
    uint64_t size; /* asked for; 0 = free */
    uint32_t stack;
    uint32_t list; /* memo number of the list of its stack */
};

struct maker {
    struct out out;
    uint32_t word[WORDS];   /* memo number + 1; 0 = not yet written */
    uint32_t frame[FRAMES]; /* the same of frames */
    struct slot slots[SLOTS];
    uint32_t order[SLOTS]; /* slots in use first, then free ones */
    uint32_t in_use;
    uint32_t kept; /* the first ones in use, which are never freed */
    uint64_t random;
    uint64_t events; /* done */
    uint64_t wanted;
    unsigned depth;
};

static uint64_t draw(struct maker *maker, uint64_t limit)
{
    maker->random ^= maker->random << 13;
    maker->random ^= maker->random >> 7;
    maker->random ^= maker->random << 17;
    return (maker->random >> 11) % limit;
}

static void put_word(struct maker *maker, enum word word)
{
    if (maker->word[word] == 0) {
        maker->word[word] = put_text(&maker->out, words[word]) + 1;
    } else {
        get(&maker->out, maker->word[word] - 1);
    }
}

static void put_pair(struct maker *maker, enum word key, uint64_t value)
{
    put_word(maker, key);
    put_number(&maker->out, value);
}

static void dict_begin(struct maker *maker)
{
    put_byte(&maker->out, '}');
    (void)memoize(&maker->out);
    put_byte(&maker->out, '(');
}

/* ---- stacks ---- */

/* Outer frames are shared by many stacks, the innermost by few. */
static uint32_t frame_number(uint32_t stack, unsigned level, unsigned depth)
{
    const uint32_t group = level * 3 < depth ? stack : level * 3 < 2 * depth ? stack % 97 : 0;

    return (group * 131 + level * 17) % FRAMES;
}

static void put_frame(struct maker *maker, uint32_t number)
{
    struct out *out = &maker->out;
    char text[96];

    if (maker->frame[number] != 0) {
        get(out, maker->frame[number] - 1);
        return;
    }
    put_byte(out, '}');
    maker->frame[number] = memoize(out) + 1;
    put_byte(out, '(');
    put_word(maker, W_NAME);
    (void)snprintf(text, sizeof text, "function_%" PRIu32, number % 3000);
    (void)put_text(out, text);
    put_word(maker, W_FILENAME);
    (void)snprintf(text, sizeof text,
                   "/opt/venv/lib/python3.12/site-packages/torch/part_%" PRIu32 ".py",
                   number % 211);
    (void)put_text(out, text);
    put_word(maker, W_LINE);
    put_number(out, 10 + number % 900);
    put_byte(out, 'u');
}

/* A new list; returns its memo number. */
static uint32_t put_stack(struct maker *maker, uint32_t stack)
{
    const unsigned depth = maker->depth / 2 + stack % (maker->depth + 1);
    struct out *out = &maker->out;

    put_byte(out, ']');
    const uint32_t list = memoize(out);

    if (depth > 0) {
        put_byte(out, '(');
        for (unsigned i = 0; i < depth; i++) {
            put_frame(maker, frame_number(stack, i, depth));
        }
        put_byte(out, 'e');
    }
    return list;
}

/* ---- events ---- */

static void event_begin(struct maker *maker, enum word action, enum word address_key,
                        uint64_t address, uint64_t size)
{
    dict_begin(maker);
    put_word(maker, W_ACTION);
    put_word(maker, action);
    put_pair(maker, address_key, address);
    put_pair(maker, W_SIZE, size);
    put_pair(maker, W_STREAM, 0);
    put_pair(maker, W_TIME_US, 1795227643803016 + maker->events * 30);
    put_word(maker, W_COMPILE_CONTEXT);
    put_word(maker, W_NOT_COMPILED);
    put_word(maker, W_USER_METADATA);
    put_word(maker, W_EMPTY);
}

static void event_end(struct maker *maker)
{
    put_byte(&maker->out, 'u');
    maker->events++;
    if (maker->events % BATCH == 0 || maker->events == maker->wanted) {
        put_byte(&maker->out, 'e');
        if (maker->events < maker->wanted) {
            put_byte(&maker->out, '(');
        }
    }
    frame_end(&maker->out, false);
}

static uint64_t slot_address(uint32_t slot)
{
    return BASE + (uint64_t)slot * SLOT;
}

static void slot_swap(struct maker *maker, uint32_t a, uint32_t b)
{
    const uint32_t kept = maker->order[a];

    maker->order[a] = maker->order[b];
    maker->order[b] = kept;
}

/* Into the slot at that place of the order. */
static void slot_alloc(struct maker *maker, uint32_t at, uint64_t size, uint32_t stack)
{
    struct slot *slot = &maker->slots[maker->order[at]];

    slot->size = size;
    slot->stack = stack;
    event_begin(maker, W_ALLOC, W_ADDR, slot_address(maker->order[at]), slot->size);
    put_word(maker, W_FRAMES);
    slot->list = put_stack(maker, slot->stack);
    event_end(maker);
    slot_swap(maker, at, maker->in_use++);
}

static void block_alloc(struct maker *maker)
{
    const uint32_t at = maker->in_use + (uint32_t)draw(maker, SLOTS - maker->in_use);
    const uint64_t size = 1 + (draw(maker, SLOT) >> draw(maker, 12));

    slot_alloc(maker, at, size, (uint32_t)draw(maker, STACKS));
}

static void block_free(struct maker *maker)
{
    static const enum word steps[] = {W_FREE_REQUESTED, W_FREE_COMPLETED};
    const uint32_t at = maker->kept + (uint32_t)draw(maker, maker->in_use - maker->kept);
    struct slot *slot = &maker->slots[maker->order[at]];

    for (int i = 0; i < 2; i++) {
        event_begin(maker, steps[i], W_ADDR, slot_address(maker->order[at]), slot->size);
        put_word(maker, W_FRAMES);
        get(&maker->out, slot->list);
        event_end(maker);
    }
    slot->size = 0;
    slot_swap(maker, at, --maker->in_use);
}

static void segments_begin(struct maker *maker)
{
    for (uint32_t i = 0; i < SEGMENTS && maker->events < maker->wanted; i++) {
        event_begin(maker, W_SEGMENT_ALLOC, W_ADDR, slot_address(i * SEGMENT_SLOTS),
                    (uint64_t)SLOT * SEGMENT_SLOTS);
        event_end(maker);
    }
}

/* The whole trace. Without a file only the state at the end comes of it. */
static void events_make(struct maker *maker, uint64_t seed)
{
    const uint64_t oom_at = maker->wanted - maker->wanted / 50;
    bool has_failed = false;

    maker->random = seed * 2654435761u + 88172645463325252u;
    maker->events = 0;
    maker->in_use = 0;
    for (uint32_t i = 0; i < SLOTS; i++) {
        maker->order[i] = i;
        maker->slots[i].size = 0;
    }
    segments_begin(maker);
    while (maker->in_use < maker->kept) {
        slot_alloc(maker, maker->in_use, SLOT, STACKS);
    }
    while (maker->events < maker->wanted) {
        const uint64_t phase = maker->events * 20 / maker->wanted % 2; /* grows, then shrinks */

        if (!has_failed && maker->events >= oom_at) {
            event_begin(maker, W_OOM, W_DEVICE_FREE, 10 << 20, (uint64_t)700 << 20);
            event_end(maker);
            has_failed = true;
        } else if (maker->in_use == maker->kept || maker->wanted - maker->events < 2 ||
                   (maker->in_use < SLOTS && draw(maker, 100) < (phase ? 48 : 52))) {
            block_alloc(maker);
        } else {
            block_free(maker);
        }
    }
}

/* ---- segments ---- */

static uint64_t rounded(uint64_t size)
{
    return (size + 511) / 512 * 512;
}

static void put_block(struct maker *maker, uint64_t address, uint64_t size, const struct slot *slot)
{
    dict_begin(maker);
    put_pair(maker, W_ADDRESS, address);
    put_pair(maker, W_SIZE, size);
    put_pair(maker, W_REQUESTED_SIZE, slot ? slot->size : 0);
    put_word(maker, W_STATE);
    put_word(maker, slot ? W_ALLOCATED : W_INACTIVE);
    put_word(maker, W_FRAMES);
    if (slot) {
        (void)put_stack(maker, slot->stack);
    } else {
        put_byte(&maker->out, ']');
        (void)memoize(&maker->out);
    }
    put_byte(&maker->out, 'u');
}

static void put_blocks(struct maker *maker, uint32_t first)
{
    put_byte(&maker->out, ']');
    (void)memoize(&maker->out);
    put_byte(&maker->out, '(');
    for (uint32_t i = first; i < first + SEGMENT_SLOTS; i++) {
        const struct slot *slot = &maker->slots[i];
        const uint64_t used = rounded(slot->size);

        if (used > 0) {
            put_block(maker, slot_address(i), used, slot);
        }
        if (used < SLOT) {
            put_block(maker, slot_address(i) + used, SLOT - used, NULL);
        }
    }
    put_byte(&maker->out, 'e');
}

static void put_segment(struct maker *maker, uint32_t first)
{
    uint64_t requested = 0;
    uint64_t used = 0;

    for (uint32_t i = first; i < first + SEGMENT_SLOTS; i++) {
        requested += maker->slots[i].size;
        used += rounded(maker->slots[i].size);
    }
    dict_begin(maker);
    put_pair(maker, W_DEVICE, 0);
    put_pair(maker, W_ADDRESS, slot_address(first));
    put_pair(maker, W_TOTAL_SIZE, (uint64_t)SLOT * SEGMENT_SLOTS);
    put_pair(maker, W_ALLOCATED_SIZE, used);
    put_pair(maker, W_ACTIVE_SIZE, used);
    put_pair(maker, W_REQUESTED_SIZE, requested);
    put_pair(maker, W_STREAM, 0);
    put_word(maker, W_SEGMENT_TYPE);
    put_word(maker, W_LARGE);
    put_word(maker, W_POOL);
    put(&maker->out, "K\0K\0\x86", 5);
    (void)memoize(&maker->out);
    put_word(maker, W_EXPANDABLE);
    put_byte(&maker->out, 0x89);
    put_word(maker, W_BLOCKS);
    put_blocks(maker, first);
    put_byte(&maker->out, 'u');
    frame_end(&maker->out, false);
}

static void snapshot_make(struct maker *maker, uint64_t seed)
{
    struct out *out = &maker->out;

    dict_begin(maker);
    (void)put_text(out, "segments");
    put_byte(out, ']');
    (void)memoize(out);
    put_byte(out, '(');
    for (uint32_t i = 0; i < SEGMENTS; i++) {
        put_segment(maker, i * SEGMENT_SLOTS);
    }
    put_byte(out, 'e');
    (void)put_text(out, "device_traces");
    put_byte(out, ']');
    (void)memoize(out);
    put_byte(out, ']');
    (void)memoize(out);
    put_byte(out, '(');
    events_make(maker, seed);
    put(out, "au.", 3); /* the trace into the list, the pairs into the dict, the end */
    frame_end(out, true);
}

int main(int argc, char **argv)
{
    static struct maker large;
    struct maker *maker = &large;

    if (argc != 5 && argc != 6) {
        (void)fprintf(stderr, "usage: make_snapshot FILE EVENTS DEPTH SEED [KEPT]\n");
        return 2;
    }
    maker->wanted = strtoull(argv[2], NULL, 10);
    maker->depth = (unsigned)strtoul(argv[3], NULL, 10);
    const uint64_t seed = strtoull(argv[4], NULL, 10);
    const uint64_t kept = argc > 5 ? strtoull(argv[5], NULL, 10) : 0;

    maker->out.bytes = malloc(ROOM);
    if (!maker->out.bytes || maker->wanted < 1000 || maker->depth > 1000) {
        (void)fprintf(stderr, "make_snapshot: at least 1000 events, a depth of at most 1000\n");
        return 2;
    }
    if (kept > SLOTS - 1000 || kept + SEGMENTS >= maker->wanted) {
        (void)fprintf(stderr, "make_snapshot: at most %d kept blocks, fewer than events\n",
                      SLOTS - 1000);
        return 2;
    }
    maker->kept = (uint32_t)kept;
    events_make(maker, seed);
    memset(maker->word, 0, sizeof maker->word);
    memset(maker->frame, 0, sizeof maker->frame);
    maker->out.used = 0;
    maker->out.memo_count = 0;
    maker->out.file = fopen(argv[1], "wb");
    if (!maker->out.file || fwrite("\x80\x04", 1, 2, maker->out.file) != 2) {
        (void)fprintf(stderr, "make_snapshot: cannot write %s\n", argv[1]);
        return 1;
    }
    snapshot_make(maker, seed);
    const bool good = fclose(maker->out.file) == 0;

    free(maker->out.bytes);
    return good ? 0 : 1;
}
