/* SPDX-License-Identifier: MIT */
#include "property/ops.h"
#include "support/draw.h"

#include <stdlib.h>
#include <string.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

uint64_t ops_capacity(uint32_t index)
{
    static const uint64_t capacity[OPS_CAPACITIES] = {64 * MIB, 160 * MIB, 320 * MIB,
                                                      1024 * MIB + 512 * KIB};

    return capacity[index % OPS_CAPACITIES];
}

/* Not in the order of the indices: blocks are ordered by handle. */
tarn_stream ops_stream(uint32_t index)
{
    static const tarn_stream stream[OPS_STREAMS] = {0, 0x5000, 0x3000, 0x9000};

    return stream[index % OPS_STREAMS];
}

struct tarn_pool_id ops_pool(uint32_t index)
{
    static const struct tarn_pool_id id[OPS_POOLS] = {{0, 1}, {0, 2}, {7, 0}};

    return id[index % OPS_POOLS];
}

struct tarn_config ops_config(uint32_t index)
{
    struct tarn_config config;

    tarn_config_init(&config);
    index %= OPS_CONFIGS;
    config.expandable_segments = (index & 1) != 0;
    if (index & 2) {
        config.max_split_size = (index & 8 ? 24 : 32) * MIB;
        config.max_non_split_rounding = (index & 4 ? 20 : 28) * MIB;
        config.garbage_collection_threshold = index & 8 ? 0.5 : 0.0;
    }
    if (index & 4) {
        for (uint32_t i = 0; i < TARN_ROUNDUP_INTERVALS; i++) {
            config.roundup_power2_divisions[i] = index & 8 ? 8u >> (i % 4) : 4;
        }
    }
    if (index & 8) {
        config.large_segment_size = (index & 4 ? 12 : 24) * MIB;
        config.garbage_collection_threshold = index & 1 ? 0.0 : 0.6;
    }
    if (index & 16) {
        config.throw_on_device_oom = index & 4;
        config.release_lock_on_device_alloc = true;
        config.memory_fraction_given = index & 8;
        config.memory_fraction = 0.6;
    }
    config.graph_capture_record_stream_reuse = (index & 32) != 0;
    config.rules = index & 64 ? TARN_RULES_2_14 : TARN_RULES_2_11;
    return config;
}

uint64_t ops_offset(const struct op *op)
{
    return op->value % 3 == 0 ? op->value % 97 * 512 : 0;
}

const char *ops_name(enum op_kind kind)
{
    static const char *const name[OP_KINDS] = {
#define OPS_TEXT(text, weight) #text,
        OPS_MAP(OPS_TEXT)
#undef OPS_TEXT
    };

    return kind < OP_KINDS ? name[kind] : "?";
}

/* ---- drawing ---- */

static uint64_t below(uint64_t *state, uint64_t limit)
{
    return draw(state) % limit;
}

/* Sizes where decisions change, sizes between them, and now and then one that cannot be had. */
static uint64_t draw_size(uint64_t *state, uint64_t capacity)
{
    static const uint64_t edge[] = {1,
                                    511,
                                    512,
                                    513,
                                    4096,
                                    MIB - 512,
                                    MIB,
                                    MIB + 1,
                                    2 * MIB,
                                    10 * MIB - 512,
                                    10 * MIB,
                                    20 * MIB,
                                    24 * MIB,
                                    32 * MIB,
                                    32 * MIB - 512,
                                    12 * MIB,
                                    (uint64_t)1 << 60,
                                    0};
    const uint64_t kind = below(state, 64);

    if (kind < 3) {
        return edge[below(state, sizeof edge / sizeof edge[0])];
    }
    if (kind < 4) {
        return below(state, capacity * 5 / 4) + 1;
    }
    if (kind < 8) {
        return below(state, capacity / 4) + 1;
    }
    if (kind < 13) {
        return below(state, 24 * MIB) + 8 * MIB;
    }
    if (kind < 32) {
        return below(state, 9 * MIB) + MIB;
    }
    return kind < 48 ? below(state, MIB) + 1 : below(state, 16 * KIB) + 1;
}

static const uint32_t weights[OP_KINDS] = {
#define OPS_WEIGHT(name, weight) weight,
    OPS_MAP(OPS_WEIGHT)
#undef OPS_WEIGHT
};

/* What a seed leaves out, so that some programs are about few things. */
static bool is_left_out(enum op_kind kind, uint64_t seed)
{
    const bool no_streams = seed % 5 == 1;
    const bool no_pools = seed % 3 == 0;
    const bool no_changes = seed % 2 == 0;
    const bool no_captures = no_pools || seed % 4 == 3;

    if (kind == OP_RECORD) {
        return no_streams;
    }
    if (kind >= OP_BEGIN_POOL && kind <= OP_SET_CHECKPOINT) {
        return no_pools;
    }
    if (kind >= OP_BEGIN_CAPTURE && kind <= OP_ANNOUNCE_END) {
        return no_captures;
    }
    return kind == OP_SET_CONFIG && no_changes;
}

static enum op_kind draw_kind(uint64_t *state, uint64_t seed)
{
    uint64_t total = 0;
    uint64_t at;
    unsigned kind = 0;

    for (unsigned i = 0; i < OP_KINDS; i++) {
        total += weights[i];
    }
    at = below(state, total);
    while (at >= weights[kind]) {
        at -= weights[kind];
        kind++;
    }
    return is_left_out((enum op_kind)kind, seed) ? OP_ALLOC : (enum op_kind)kind;
}

static uint64_t draw_value(uint64_t *state, enum op_kind kind, uint64_t capacity)
{
    if (kind == OP_ALLOC || kind == OP_ALLOC_AT) {
        return draw_size(state, capacity);
    }
    if (kind == OP_ENQUEUE || kind == OP_ADVANCE) {
        return below(state, 100);
    }
    return below(state, 257);
}

static struct program program_new(size_t count)
{
    struct program program = {.ops = calloc(count + 1, sizeof *program.ops), .count = count};

    if (!program.ops) {
        abort();
    }
    return program;
}

/* Which slots hold a block, as far as can be told without running the program. */
struct slots {
    bool used[OPS_SLOTS];
    uint32_t count;            /* slots that the program uses */
    struct op last[OPS_SLOTS]; /* the allocation that each had */
};

/* The next slot from `slot` on that is used or not; `slot` when there is none. */
static uint32_t slots_find(const struct slots *slots, uint32_t slot, bool used)
{
    for (uint32_t i = 0; i < slots->count; i++) {
        const uint32_t at = (slot + i) % slots->count;

        if (slots->used[at] == used) {
            return at;
        }
    }
    return slot;
}

/* An allocation at an address is mostly on the stream that its slot had before, and not larger. */
static void op_place(struct op *op, struct op *last)
{
    if (op->kind == OP_ALLOC) {
        *last = *op;
    } else if (last->value > 0 && op->value % 8 != 0) {
        op->stream = last->stream;
        op->value = op->value % 2 == 0 ? last->value : op->value % last->value + 1;
    }
}

/* Most operations shall find what they need: an empty slot to allocate for, a block to free. */
static void op_settle(struct op *op, struct slots *slots)
{
    if (op->kind == OP_SET_CONFIG) {
        return; /* its number is not that of a slot */
    }
    const bool full = slots->used[slots_find(slots, op->slot, false)];
    const bool empty = !slots->used[slots_find(slots, op->slot, true)];

    if (op->kind == OP_ALLOC && full) {
        op->kind = OP_FREE;
    } else if (op->kind == OP_FREE && empty) {
        op->kind = OP_ALLOC;
        op->value = op->value % MIB + 1;
    }
    if (op->kind == OP_ALLOC || op->kind == OP_ALLOC_AT) {
        op->slot = slots_find(slots, op->slot, false);
        slots->used[op->slot] = true;
        op_place(op, &slots->last[op->slot]);
    } else if (op->kind == OP_FREE) {
        op->slot = slots_find(slots, op->slot, true);
        slots->used[op->slot] = false;
    } else if (op->kind == OP_RECORD || op->kind == OP_BASE || op->kind == OP_ARM_CALLBACK) {
        op->slot = slots_find(slots, op->slot, true);
    }
}

enum {
    BURST_DEPTH = 12,
    BURST_ODDS = 40 /* one operation in so many begins a burst */
};

/* What programs do most: allocations that are freed in reverse order, and then nearly the same
 * again. `level` of them are held. */
struct burst {
    uint32_t depth;
    uint32_t level;
    uint32_t slot[BURST_DEPTH];
    uint32_t stream[BURST_DEPTH];
    uint64_t size[BURST_DEPTH];
};

static struct burst burst_begin(uint64_t *state, uint64_t streams, uint64_t capacity)
{
    struct burst burst = {.depth = 1 + (uint32_t)below(state, BURST_DEPTH)};
    const uint32_t stream = (uint32_t)below(state, streams);

    for (uint32_t i = 0; i < burst.depth; i++) {
        const bool as_before = i > 0 && below(state, 3) == 0;

        burst.size[i] = as_before ? burst.size[i - 1] : draw_size(state, capacity);
        burst.stream[i] = below(state, 12) == 0 ? (uint32_t)below(state, streams) : stream;
    }
    return burst;
}

/* Now and then another size: one that may be rounded alike, or that of the level below. */
static struct op burst_up(struct burst *burst, uint64_t *state, struct slots *slots)
{
    const uint32_t level = burst->level++;
    const uint64_t less = below(state, 6) == 0 ? below(state, 1024) : 0;

    if (less < burst->size[level]) {
        burst->size[level] -= less;
    }
    if (level > 0 && below(state, 12) == 0) {
        burst->size[level] = burst->size[level - 1];
    }
    burst->slot[level] = slots_find(slots, 0, false);
    slots->used[burst->slot[level]] = true;
    return (struct op){.kind = OP_ALLOC,
                       .slot = burst->slot[level],
                       .stream = burst->stream[level],
                       .value = burst->size[level]};
}

static struct op burst_down(struct burst *burst, struct slots *slots)
{
    const uint32_t slot = burst->slot[--burst->level];

    slots->used[slot] = false;
    return (struct op){.kind = OP_FREE, .slot = slot};
}

/* Writes a burst at `at`; returns the index behind it. */
static size_t draw_burst(struct program *program, size_t at, uint64_t *state, struct slots *slots,
                         uint64_t streams)
{
    struct burst burst = burst_begin(state, streams, ops_capacity(program->capacity));
    const uint64_t rounds = 2 + below(state, 4);

    for (uint64_t round = 0; round < rounds; round++) {
        const uint64_t bottom = below(state, 4) == 0 ? below(state, burst.depth) : 0;

        while (burst.level < burst.depth && at < program->count &&
               !slots->used[slots_find(slots, 0, false)]) {
            program->ops[at++] = burst_up(&burst, state, slots);
        }
        while (burst.level > bottom && at < program->count) {
            program->ops[at++] = burst_down(&burst, slots);
        }
    }
    return at;
}

struct program program_from_seed(uint64_t seed, size_t count)
{
    struct program program = program_new(count);
    uint64_t state = seed * 0x2545f4914f6cdd1du + 1;

    program.seed = seed;
    program.capacity = (uint32_t)below(&state, OPS_CAPACITIES);
    program.config = (uint32_t)below(&state, OPS_CONFIGS);
    program.mode = (enum program_mode)below(&state, PROGRAM_MODES);
    /* A program fills its slots first and holds more or less of them later on. */
    struct slots slots = {.count = 8 + (uint32_t)below(&state, OPS_SLOTS - 7)};
    const uint64_t streams = 1 + below(&state, OPS_STREAMS);

    for (size_t i = 0; i < count; i++) {
        if (below(&state, BURST_ODDS) == 0) {
            i = draw_burst(&program, i, &state, &slots, streams);
        }
        if (i == count) {
            break;
        }
        struct op *op = &program.ops[i];

        op->kind = draw_kind(&state, seed);
        op->slot = (uint32_t)below(&state, op->kind == OP_SET_CONFIG ? OPS_CONFIGS : slots.count);
        op->stream = (uint32_t)below(&state, streams);
        if (op->kind == OP_RECORD || op->kind == OP_JOIN) {
            op->stream = (uint32_t)below(&state, OPS_STREAMS);
        }
        op->value = draw_value(&state, op->kind, ops_capacity(program.capacity));
        op_settle(op, &slots);
    }
    return program;
}

/* Two bytes of header, then five an operation: kind, slot, stream, a small float for the value. */
struct program program_from_bytes(const uint8_t *data, size_t size)
{
    const size_t count = size < 7 ? 0 : (size - 2) / 5;
    struct program program = program_new(count);

    if (count > 0) {
        program.capacity = data[0] % OPS_CAPACITIES;
        program.mode = (enum program_mode)(data[0] / OPS_CAPACITIES % PROGRAM_MODES);
        program.config = data[1] % OPS_CONFIGS;
    }
    for (size_t i = 0; i < count; i++) {
        const uint8_t *at = data + 2 + i * 5;
        struct op *op = &program.ops[i];

        op->kind = (enum op_kind)(at[0] % OP_KINDS);
        op->slot = at[1] % OPS_SLOTS;
        op->stream = at[2] % OPS_STREAMS;
        const bool sized = op->kind == OP_ALLOC || op->kind == OP_ALLOC_AT;

        op->value = sized ? (uint64_t)at[3] << (at[4] % 32) : at[3];
        if (sized && at[4] >= 128) {
            op->value += 1;
        }
    }
    return program;
}

struct program program_copy(const struct program *program)
{
    struct program copy = program_new(program->count);
    struct op *const ops = copy.ops;

    memcpy(ops, program->ops, program->count * sizeof *ops);
    copy = *program;
    copy.ops = ops;
    return copy;
}

void program_fini(struct program *program)
{
    free(program->ops);
    program->ops = NULL;
    program->count = 0;
}

/* ---- printing ---- */

static void print_config(uint32_t index, FILE *out)
{
    const struct tarn_config c = ops_config(index);

    (void)fprintf(out,
                  "    tarn_config_init(&c);\n"
                  "    c.expandable_segments = %d;\n"
                  "    c.max_split_size = %lluu;\n"
                  "    c.max_non_split_rounding = %lluu;\n"
                  "    c.large_segment_size = %lluu;\n"
                  "    c.garbage_collection_threshold = %g;\n"
                  "    c.graph_capture_record_stream_reuse = %d;\n"
                  "    c.rules = %d;\n",
                  c.expandable_segments, (unsigned long long)c.max_split_size,
                  (unsigned long long)c.max_non_split_rounding,
                  (unsigned long long)c.large_segment_size, c.garbage_collection_threshold,
                  c.graph_capture_record_stream_reuse, (int)c.rules);
    for (int i = 0; i < TARN_ROUNDUP_INTERVALS; i++) {
        if (c.roundup_power2_divisions[i] > 0) {
            (void)fprintf(out, "    c.roundup_power2_divisions[%d] = %u;\n", i,
                          c.roundup_power2_divisions[i]);
        }
    }
}

static void print_pool_op(const struct op *op, FILE *out)
{
    const struct tarn_pool_id id = ops_pool(op->slot);
    const unsigned long long first = id.first;
    const unsigned long long second = id.second;
    const unsigned pool = op->slot % OPS_POOLS;
    const int on = (int)(op->value % 2);
    static const char name[] = "(struct tarn_pool_id)";

    switch ((int)op->kind) {
    case OP_BEGIN_POOL:
        (void)fprintf(out,
                      "    USE(tarn_allocator_begin_pool(a, %s{%llu, %llu}, %s, &s[%u], 0));\n",
                      name, first, second, on ? "to_all" : "to_one", op->stream);
        break;
    case OP_END_POOL:
        (void)fprintf(out, "    USE(tarn_allocator_end_pool(a, %s{%llu, %llu}, 0));\n", name, first,
                      second);
        break;
    case OP_ACQUIRE_POOL:
        (void)fprintf(out, "    USE(tarn_allocator_acquire_pool(a, %s{%llu, %llu}, 0));\n", name,
                      first, second);
        break;
    case OP_RELEASE_POOL:
        (void)fprintf(out, "    USE(tarn_allocator_release_pool(a, %s{%llu, %llu}, 0));\n", name,
                      first, second);
        break;
    case OP_EMPTY_POOL:
        (void)fprintf(out, "    USE(tarn_allocator_empty_pool(a, %s{%llu, %llu}, 0));\n", name,
                      first, second);
        break;
    case OP_USE_ON_OOM:
        (void)fprintf(out, "    USE(tarn_allocator_set_pool_use_on_oom(a, %s{%llu, %llu}, %d));\n",
                      name, first, second, on);
        break;
    case OP_NO_SPLIT:
        (void)fprintf(out, "    USE(tarn_allocator_set_pool_no_split(a, %s{%llu, %llu}, %d));\n",
                      name, first, second, on);
        break;
    case OP_GET_CHECKPOINT:
        (void)fprintf(out,
                      "    USE(tarn_allocator_get_checkpoint(a, %s{%llu, %llu}, &k[%u], 0));\n",
                      name, first, second, pool);
        break;
    case OP_SET_CHECKPOINT:
        (void)fprintf(out,
                      "    USE(tarn_allocator_set_checkpoint(a, k[%u], &delta, 0)); "
                      "/* slots change */\n",
                      pool);
        break;
    default:
        (void)fprintf(out, "    /* %s */\n", ops_name(op->kind));
        break;
    }
}

static void print_device_op(const struct op *op, FILE *out)
{
    const unsigned long long value = op->value;

    switch ((int)op->kind) {
    case OP_BLOCK_STREAM:
        (void)fprintf(out, "    USE(tarn_sim_block_stream(d, s[%u]));\n", op->stream);
        break;
    case OP_UNBLOCK_STREAM:
        (void)fprintf(out, "    USE(tarn_sim_unblock_stream(d, s[%u]));\n", op->stream);
        break;
    case OP_ENQUEUE:
        (void)fprintf(out, "    USE(tarn_sim_enqueue_ns(d, s[%u], %llu));\n", op->stream, value);
        break;
    case OP_ADVANCE:
        (void)fprintf(out, "    tarn_sim_advance_ns(d, %llu);\n", value);
        break;
    case OP_BEGIN_CAPTURE:
        (void)fprintf(out, "    USE(tarn_sim_set_capturing(d, s[%u], true));\n", op->stream);
        break;
    case OP_END_CAPTURE:
        (void)fprintf(out,
                      "    USE(tarn_sim_set_capturing(d, s[%u], false)); "
                      "/* if one began on it */\n",
                      op->stream);
        break;
    case OP_JOIN:
        (void)fprintf(out, "    USE(tarn_sim_join_stream(d, s[%u], s[%u]));\n", op->stream,
                      op->slot % OPS_STREAMS);
        break;
    case OP_ANNOUNCE_CAPTURE:
        (void)fprintf(out, "    USE(tarn_allocator_begin_capture(a, 0));\n");
        break;
    case OP_ANNOUNCE_END:
        (void)fprintf(out, "    USE(tarn_allocator_end_capture(a, 0));\n");
        break;
    case OP_FOREIGN:
        (void)fprintf(out, "    tarn_sim_set_foreign_memory(d, %llu * capacity / 1024);\n", value);
        break;
    default:
        print_pool_op(op, out);
        break;
    }
}

static void print_op(const struct op *op, FILE *out)
{
    switch ((int)op->kind) {
    case OP_ALLOC:
        (void)fprintf(out, "    USE(tarn_allocator_alloc(a, %lluu, s[%u], &p[%u], 0));\n",
                      (unsigned long long)op->value, op->stream, op->slot);
        break;
    case OP_ALLOC_AT: /* where the slot's last block was, or behind */
        (void)fprintf(out,
                      "    if (!tarn_allocator_alloc_at(a, %lluu, s[%u], p[%u] + %lluu, 0)) {\n"
                      "        p[%u] += %lluu;\n    }\n",
                      (unsigned long long)op->value, op->stream, op->slot,
                      (unsigned long long)ops_offset(op), op->slot,
                      (unsigned long long)ops_offset(op));
        break;
    case OP_FREE:
        (void)fprintf(out, "    USE(tarn_allocator_free(a, p[%u], 0));\n", op->slot);
        break;
    case OP_RECORD:
        (void)fprintf(out, "    USE(tarn_allocator_record_stream(a, p[%u], s[%u], 0));\n", op->slot,
                      op->stream);
        break;
    case OP_EMPTY_CACHE:
        (void)fprintf(out, "    USE(tarn_allocator_empty_cache(a, 0));\n");
        break;
    case OP_SET_CONFIG:
        print_config(op->slot, out);
        (void)fprintf(out, "    USE(tarn_allocator_set_config(a, &c, 0));\n");
        break;
    case OP_SET_FRACTION:
        (void)fprintf(out, "    USE(tarn_allocator_set_memory_fraction(a, %llu / 256.0, 0));\n",
                      (unsigned long long)op->value);
        break;
    default:
        print_device_op(op, out);
        break;
    }
}

void program_print(const struct program *program, const char *why, FILE *out)
{
    (void)fprintf(
        out,
        "/* %s */\n"
        "#include <tarn/allocator.h>\n#include <tarn/sim.h>\n\n"
        "#define USE(call) ((void)(call))\n"
        "static tarn_ptr p[%d];\n"
        "static tarn_stream s[] = {0x%llx, 0x%llx, 0x%llx, 0x%llx};\n"
        "static bool to_one(void *c, tarn_stream x) { return *(tarn_stream *)c == x; }\n"
        "static bool to_all(void *c, tarn_stream x) { return (void)c, (void)x, true; }\n\n"
        "int main(void)\n{\n"
        "    const uint64_t capacity = %lluu;\n"
        "    struct tarn_sim_options o = {.struct_size = sizeof o, .capacity = capacity};\n"
        "    struct tarn_checkpoint *k[%d];\n"
        "    struct tarn_checkpoint_delta delta;\n"
        "    struct tarn_device *d;\n    struct tarn_allocator *a;\n"
        "    struct tarn_config c;\n\n",
        why, OPS_SLOTS, (unsigned long long)ops_stream(0), (unsigned long long)ops_stream(1),
        (unsigned long long)ops_stream(2), (unsigned long long)ops_stream(3),
        (unsigned long long)ops_capacity(program->capacity), OPS_POOLS);
    print_config(program->config, out);
    (void)fprintf(out, "    USE(tarn_sim_open(&o, &d, 0));\n"
                       "    USE(tarn_allocator_create(d, &c, &a, 0));\n");
    for (size_t i = 0; i < program->count; i++) {
        print_op(&program->ops[i], out);
    }
    (void)fprintf(out, "}\n");
}
