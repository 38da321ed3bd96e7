/* SPDX-License-Identifier: MIT */
#include "history/symbol.h"

#include "base/arena.h"
#include "base/cxx_name.h"
#include "base/host_mem.h"
#include "base/map.h"
#include "base/os_symbol.h"
#include "base/vec.h"
#include "history/debug_info.h"

#include <string.h>

/* The resolved frames of an address. */
struct answer {
    const struct tarn_stack_frame *frames;
    size_t count;
};

struct tn_symbols {
    struct tn_debug_info *debug_info; /* NULL: only exported functions have names */
    struct tn_budget budget;
    struct tn_arena arena;
    struct tn_map known;          /* address to struct answer */
    struct tn_vec frames;         /* of the current address */
    struct tn_os_symbol exported; /* of the current address */
};

static const char unknown[] = "??";

void tn_symbols_expect_modules(struct tn_symbols *symbols)
{
    tn_debug_info_expect_modules(symbols->debug_info);
}

struct tn_symbols *tn_symbols_create(void)
{
    struct tn_symbols *symbols = tn_host_alloc_zero(sizeof *symbols);

    if (symbols) {
        tn_arena_init(&symbols->arena, &symbols->budget);
        tn_vec_init(&symbols->frames, sizeof(struct tarn_stack_frame));
    }
    if (symbols && !tn_debug_info_open(&symbols->debug_info)) {
        tn_symbols_destroy(symbols);
        symbols = NULL;
    }
    return symbols;
}

void tn_symbols_destroy(struct tn_symbols *symbols)
{
    if (symbols) {
        tn_debug_info_close(symbols->debug_info);
        tn_vec_fini(&symbols->frames);
        tn_map_fini(&symbols->known);
        tn_arena_fini(&symbols->arena);
        tn_host_free(symbols, sizeof *symbols);
    }
}

/* A copy stored with the results; NULL when host memory runs out. */
static const char *keep_text(struct tn_symbols *symbols, const char *text)
{
    const size_t size = strlen(text) + 1;
    char *kept = tn_arena_alloc(&symbols->arena, size);

    if (kept) {
        memcpy(kept, text, size);
    }
    return kept;
}

/* The demangled name, stored with the results; NULL when host memory runs out. */
static const char *source_name(struct tn_symbols *symbols, const char *name)
{
    char *found = tn_cxx_name(name);
    const char *kept = keep_text(symbols, found ? found : name);

    tn_cxx_name_free(found);
    return kept;
}

static bool add_frame(struct tn_symbols *symbols, const char *name, const char *filename,
                      uint64_t line)
{
    const char *shown = name ? source_name(symbols, name) : unknown;
    struct tarn_stack_frame *frame = shown ? tn_vec_push(&symbols->frames) : NULL;

    if (frame) {
        *frame = (struct tarn_stack_frame){
            .name = shown,
            .filename = filename ? filename : unknown,
            .line = line,
        };
    }
    return frame != NULL;
}

static bool debug_frame(void *context, const char *name, const char *file, uint64_t line)
{
    return add_frame(context, name, file, line);
}

/* The function that the address's module exports there: as the only frame, or as the name of the
 * only one. False when host memory runs out. */
static bool add_exported(struct tn_symbols *symbols, uint64_t address)
{
    const bool found = tn_os_symbol_find((uintptr_t)address, &symbols->exported);
    const char *name = found && symbols->exported.name[0] ? symbols->exported.name : NULL;

    if (symbols->frames.count == 0) {
        const char *module = found ? keep_text(symbols, symbols->exported.module) : unknown;

        return module && add_frame(symbols, name, module, 0);
    }
    struct tarn_stack_frame *frame = symbols->frames.items;

    frame->name = name ? source_name(symbols, name) : unknown;
    return frame->name != NULL;
}

/* Whether debug information left the address without a name. */
static bool is_nameless(const struct tn_symbols *symbols)
{
    const struct tarn_stack_frame *frames = symbols->frames.items;

    return symbols->frames.count == 0 || (symbols->frames.count == 1 && frames[0].name == unknown);
}

/* Fills symbols->frames; false when host memory runs out. */
static bool look_up(struct tn_symbols *symbols, uint64_t address)
{
    const uint64_t at = address - 1; /* of the call, not of the next instruction */

    symbols->frames.count = 0;
    return tn_debug_info_visit(symbols->debug_info, at, debug_frame, symbols) &&
           (!is_nameless(symbols) || add_exported(symbols, at));
}

/* Stores the result in symbols->frames. */
static const struct answer *keep_answer(struct tn_symbols *symbols, uint64_t address)
{
    const size_t count = symbols->frames.count;
    struct answer *answer = tn_arena_alloc(&symbols->arena, sizeof *answer);
    struct tarn_stack_frame *frames = tn_arena_alloc_array(&symbols->arena, count, sizeof *frames);

    if (!answer || !frames || !tn_map_reserve(&symbols->known, 1)) {
        return NULL;
    }
    memcpy(frames, symbols->frames.items, count * sizeof *frames);
    *answer = (struct answer){.frames = frames, .count = count};
    tn_map_insert(&symbols->known, address, (uint64_t)(uintptr_t)answer);
    return answer;
}

const struct tarn_stack_frame *tn_symbols_find(struct tn_symbols *symbols, uint64_t address,
                                               size_t *count_out)
{
    const uint64_t *known = tn_map_find(&symbols->known, address);
    const struct answer *answer = known ? (const struct answer *)(uintptr_t)*known : NULL;

    if (!answer && look_up(symbols, address)) {
        answer = keep_answer(symbols, address);
    }
    if (!answer) {
        return NULL;
    }
    *count_out = answer->count;
    return answer->frames;
}
